//! Claude Code `stream-json`: the messages of a whole run, a line each, and around them the events of the messages as they grow.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use streamkeeper_contract::{
    Body, Channel, Chunk, ErrorInfo, FinishReason, Json, Lane, RunInfo, Text, ToolResult, Usage, codes,
};

use crate::output::{Leaf, Output};

use super::{
    Dialect, Event,
    anthropic::{self, Growth, Message, MessageWire, Said, usage_of},
    chunks::{custom, finish},
    pull::Pull,
    read::{Flag, Lanes, List, Str, filled, is_filled, leaf, parse, plain},
};

/// Reads one run.
///
/// The run has one finish, in its result; its messages only end. What an `assistant` line or the result repeats of text that was
/// streamed is a snapshot of it.
#[derive(Debug, Default)]
pub(super) struct ClaudeCode {
    lanes: Lanes,
    message: Message,
    /// Messages of agents that work inside a call, by the call's id.
    inside: BTreeMap<Text, Message>,
    /// What the messages before the current one used.
    before: Usage,
    current: Usage,
    run: RunInfo,
    finished: bool,
}

#[derive(Debug, Default, Deserialize)]
struct Wire<'a> {
    #[serde(borrow, rename = "type")]
    kind: Str<'a>,
    #[serde(borrow)]
    subtype: Str<'a>,
    #[serde(borrow)]
    event: Option<anthropic::Wire<'a>>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    parent_tool_use_id: Str<'a>,
    #[serde(borrow)]
    session_id: Str<'a>,
    #[serde(borrow)]
    uuid: Str<'a>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    structured_output: Option<&'a RawValue>,
    #[serde(borrow)]
    errors: Option<&'a RawValue>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    is_error: Flag,
}

/// Where the events of a message stand in those of the run.
const EVENT: &str = "event/";

impl Dialect for ClaudeCode {
    fn event(&mut self, event: &Event<'_>, out: &mut Output) {
        match self.read(event, out) {
            Some(()) => out.known += 1,
            None => out.raw(event.name, event.data),
        }
    }
}

impl ClaudeCode {
    /// At most so many agents inside calls are tracked at once.
    const MOST_INSIDE: usize = 256;

    fn read(&mut self, event: &Event<'_>, out: &mut Output) -> Option<()> {
        if let Some((call, growth)) = growth_of(event.data) {
            let (message, lanes) = self.message(call, out)?;
            let before = std::mem::replace(&mut out.prefix, EVENT);
            let grown = message.grow(growth, lanes, out);
            out.prefix = before;
            return grown;
        }
        let wire: Wire<'_> = serde_json::from_str(event.data).ok()?;
        match wire.kind.as_str() {
            "stream_event" => self.streamed(&wire, out)?,
            "assistant" => self.assistant(&wire, out)?,
            "user" => self.user(wire.message?, out)?,
            "system" => {
                if wire.subtype.as_str() == "init" {
                    self.run = RunInfo { run: wire.uuid.text(), thread: wire.session_id.text(), parent: None };
                    out.push(Body::RunStart(Box::new(self.run.clone())));
                }
                out.push(Chunk::custom(format!("system/{}", wire.subtype.as_str()), Json::from_text(event.data).ok()?));
            }
            "result" => self.result(&wire, out),
            "keep_alive" => {}
            kind @ ("control_request"
            | "control_response"
            | "control_cancel_request"
            | "tool_progress"
            | "auth_status"
            | "rate_limit_event"
            | "tool_use_summary") => {
                out.push(Chunk::custom(kind, Json::from_text(event.data).ok()?));
            }
            _ => return None,
        }
        Some(())
    }

    fn streamed(&mut self, wire: &Wire<'_>, out: &mut Output) -> Option<()> {
        let event = wire.event.as_ref()?;
        let (message, lanes) = self.message(wire.parent_tool_use_id.as_str(), out)?;
        let main = message.inside == 0;
        let before = std::mem::replace(&mut out.prefix, EVENT);
        let said = message.event(event.kind.as_str(), event, lanes, out);
        out.prefix = before;
        match said? {
            Said::Begun { usage } if main => self.next_message(usage, out),
            Said::Done { usage, .. } if main => self.count(usage, out),
            Said::Over if main => out.push(Body::MessageEnd { choice: 0 }),
            Said::Failed(error) => out.error_at(error, Leaf::new("event/error/message", [0; 4])),
            _ => {}
        }
        Some(())
    }

    /// A message, or some blocks of one. All of it was streamed before, or nothing.
    fn assistant(&mut self, wire: &Wire<'_>, out: &mut Output) -> Option<()> {
        let whole: MessageWire<'_> = parse(wire.message?)?;
        let blocks: List<'_> = whole.content.and_then(parse).unwrap_or_default();
        let (message, lanes) = self.message(wire.parent_tool_use_id.as_str(), out)?;
        let new = message.begin(&whole, out);
        for (at, block) in blocks.0.iter().enumerate() {
            if message.whole_block(at, block, lanes, out).is_none() {
                out.chunk(custom("assistant", block), leaf("message/content/*", &[at]));
            }
        }
        // A streamed message states its usage as it goes; the line repeats what was known when the message began.
        if message.inside == 0 && !message.streamed {
            if new {
                self.next_message(whole.usage, out);
            } else {
                self.count(whole.usage, out);
            }
        }
        Some(())
    }

    fn user(&mut self, raw: &RawValue, out: &mut Output) -> Option<()> {
        #[derive(Default, Deserialize)]
        struct Wire<'a> {
            #[serde(borrow)]
            content: Option<&'a RawValue>,
        }
        #[derive(Default, Deserialize)]
        struct Block<'a> {
            #[serde(borrow, rename = "type")]
            kind: Str<'a>,
            #[serde(borrow)]
            tool_use_id: Str<'a>,
            #[serde(borrow)]
            content: Option<&'a RawValue>,
            is_error: Flag,
        }
        let message: Wire<'_> = parse(raw)?;
        let content = message.content?;
        let Some(blocks) = parse::<Vec<&RawValue>>(content) else {
            out.chunk(custom("user", content), Leaf::new("message/content", [0; 4]));
            return Some(());
        };
        for (at, raw) in blocks.into_iter().enumerate() {
            let block = parse::<Block<'_>>(raw).filter(|block| block.kind.as_str() == "tool_result");
            let Some(block) = block else {
                out.chunk(custom("user", raw), leaf("message/content/*", &[at]));
                continue;
            };
            let id = block.tool_use_id.text().unwrap_or_default();
            let call = self.lanes.named(&id).unwrap_or(Lane::new(Channel::ToolResult));
            let lane = Lane { part: self.lanes.part(out), channel: Channel::ToolResult, ..call };
            let content = block.content.filter(|content| content.get() != "null").map(plain).unwrap_or_default();
            let result = ToolResult { lane, id, content, is_error: block.is_error.0 };
            out.chunk(Body::ToolResult(Box::new(result)).into(), leaf("message/content/*/content", &[at]));
            out.push(Body::PartEnd { choice: 0, part: lane.part });
        }
        Some(())
    }

    fn result(&mut self, wire: &Wire<'_>, out: &mut Output) {
        for message in std::iter::once(&mut self.message).chain(self.inside.values_mut()) {
            message.blocks.end_all(out);
        }
        const RESULT: Leaf = Leaf::new("result", [0; 4]);
        let text = filled(wire.result);
        match (text.clone().filter(|_| !wire.is_error.0), self.message.last_text) {
            (Some(text), Some(lane)) => out.snapshot(lane, text, RESULT),
            (Some(text), None) => {
                let part = self.lanes.part(out);
                out.delta(Lane::TEXT.in_part(part), text, RESULT);
                out.push(Body::PartEnd { choice: 0, part });
            }
            (None, _) => {}
        }
        if let Some(output) = wire.structured_output.filter(|output| is_filled(Some(output))) {
            out.chunk(custom("structured_output", output), Leaf::new("structured_output", [0; 4]));
        }
        if let Some(usage) = wire.usage.and_then(usage_of) {
            out.push(Body::Usage(Box::new(usage)));
        }
        let stated = wire.subtype.as_str();
        if wire.is_error.0 {
            let error = ErrorInfo::new(if stated.starts_with("error") { stated } else { codes::ERROR });
            match (text, wire.errors.filter(|errors| is_filled(Some(errors)))) {
                (Some(text), _) => out.error_at(error.with_message(text), RESULT),
                (None, Some(errors)) => out.error(error.with_message(errors.get())),
                (None, None) => out.error(error),
            }
        }
        out.ended = true;
        if out.failed {
            out.stated_end = Some(stated.into());
        } else if !std::mem::replace(&mut self.finished, true) {
            let reason = match stated {
                "success" => FinishReason::Stop,
                word => FinishReason::Other(word.into()),
            };
            out.push(finish(0, reason, Some(stated.into())));
        }
        out.push(Body::RunEnd(Box::new(self.run.clone())));
    }

    /// The message that grows: of the run itself, or of the agent inside this call. `None` for an id that is too long to be kept.
    fn message(&mut self, call: &str, out: &mut Output) -> Option<(&mut Message, &mut Lanes)> {
        if call.is_empty() {
            return Some((&mut self.message, &mut self.lanes));
        }
        let id = Some(call).filter(|call| call.len() <= Lanes::LONGEST_ID).map(Text::from)?;
        if !self.inside.contains_key(&id) && self.inside.len() >= Self::MOST_INSIDE {
            self.inside.pop_first();
        }
        let lanes = &mut self.lanes;
        let message = self.inside.entry(id).or_insert_with(|| {
            let known = lanes.named(call).map(|lane| lane.call).filter(|call| *call != 0);
            Message {
                inside: known.unwrap_or_else(|| lanes.call(0, Channel::ToolResult, out).call),
                ..Message::default()
            }
        });
        Some((message, lanes))
    }

    /// The usage of the messages before stays counted until the result states that of the run.
    fn next_message(&mut self, usage: Option<&RawValue>, out: &mut Output) {
        self.before.add(&std::mem::take(&mut self.current));
        self.count(usage, out);
    }

    fn count(&mut self, usage: Option<&RawValue>, out: &mut Output) {
        if let Some(usage) = usage.and_then(usage_of) {
            self.current.update(&usage);
            let mut all = self.before.clone();
            all.add(&self.current);
            out.push(Body::Usage(Box::new(all)));
        }
    }
}

/// A streamed event by which a block grows, and the call whose agent writes it.
fn growth_of(data: &str) -> Option<(&str, Growth<'_>)> {
    let mut json = Pull::object(data)?;
    let (mut kind, mut growth, mut call) = (None, None, None);
    let mut first = true;
    while let Some(key) = json.key(&mut first)? {
        match key {
            "type" if json.word()? == "stream_event" => kind = Some(()),
            "event" if growth.is_none() => {
                json.open(b'{')?;
                growth = Some(Growth::read(&mut json)?);
            }
            "parent_tool_use_id" if call.is_none() => call = Some(json.word_or_null()?),
            "session_id" | "uuid" | "ttft_ms" => json.skip()?,
            _ => return None,
        }
    }
    json.end()?;
    kind?;
    Some((call.flatten().unwrap_or_default(), growth?))
}

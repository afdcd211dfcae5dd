//! AG-UI: the events of an agent's run. Messages and calls have ids and may interleave.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use streamkeeper_contract::{
    Body, Channel, Chunk, ErrorInfo, FinishReason, Json, Lane, MessageInfo, Raw, RunInfo, Text, ToolCallStart,
    ToolResult,
};

use crate::output::{Leaf, Output};

use super::{
    Dialect, Event,
    chunks::{custom, finish, opaque},
    pull::Pull,
    read::{Lanes, List, Str, filled, is_filled, leaf, parse, plain},
};

/// Reads one run.
#[derive(Debug, Default)]
pub(super) struct AgUi {
    lanes: Lanes,
    /// Messages by id, with their channel: answer and thinking may share an id.
    messages: BTreeMap<(Text, Channel), Lane>,
    /// Parts that have not ended, with the call that one is.
    open: BTreeMap<u16, Option<Lane>>,
    /// The message or call that `*_CHUNK` events continue; any other event ends it.
    chunked: Option<Lane>,
    /// The text that grew last.
    last: Option<(Text, Lane)>,
    calls: bool,
    run: RunInfo,
    finished: bool,
}

/// Spelled in camel case by the protocol, in snake case by some servers.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wire<'a> {
    #[serde(borrow, rename = "type")]
    kind: Str<'a>,
    #[serde(borrow, alias = "message_id")]
    message_id: Str<'a>,
    #[serde(borrow)]
    role: Str<'a>,
    #[serde(borrow)]
    delta: Option<&'a RawValue>,
    #[serde(borrow, alias = "tool_call_id")]
    tool_call_id: Str<'a>,
    #[serde(borrow, alias = "tool_call_name")]
    tool_call_name: Str<'a>,
    #[serde(borrow, alias = "thread_id")]
    thread_id: Str<'a>,
    #[serde(borrow, alias = "run_id")]
    run_id: Str<'a>,
    #[serde(borrow, alias = "parent_run_id")]
    parent_run_id: Str<'a>,
    #[serde(borrow, alias = "step_name")]
    step_name: Str<'a>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    snapshot: Option<&'a RawValue>,
    #[serde(borrow)]
    messages: Option<&'a RawValue>,
    #[serde(borrow)]
    event: Option<&'a RawValue>,
    #[serde(borrow)]
    name: Str<'a>,
    #[serde(borrow)]
    value: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    code: Option<&'a RawValue>,
    #[serde(borrow)]
    outcome: Option<&'a RawValue>,
    #[serde(borrow)]
    interrupt: Option<&'a RawValue>,
    #[serde(borrow, alias = "encrypted_value")]
    encrypted_value: Str<'a>,
    #[serde(borrow, alias = "entity_id")]
    entity_id: Str<'a>,
}

const DELTA: Leaf = Leaf::new("delta", [0; 4]);

impl Dialect for AgUi {
    fn event(&mut self, event: &Event<'_>, out: &mut Output) {
        match self.read(event, out) {
            Some(()) => out.known += 1,
            None => out.raw(event.name, event.data),
        }
    }
}

impl AgUi {
    fn read(&mut self, event: &Event<'_>, out: &mut Output) -> Option<()> {
        if self.chunked.is_none()
            && let Some((channel, id, text)) = growth_of(event.data)
            && id.len() <= Lanes::LONGEST_ID
        {
            self.grow(channel, id, text, out);
            return Some(());
        }
        let wire: Wire<'_> = serde_json::from_str(event.data).ok()?;
        let kind = wire.kind.get().or(event.name).unwrap_or_default();
        // Cut short, two of them could be one.
        if [&wire.message_id, &wire.tool_call_id, &wire.entity_id]
            .iter()
            .any(|id| id.as_str().len() > Lanes::LONGEST_ID)
        {
            return None;
        }
        if !kind.ends_with("_CHUNK") && kind != "RAW" {
            self.end_chunked(out);
        }
        match kind {
            "TEXT_MESSAGE_CONTENT" => self.grow(Channel::Text, wire.message_id.as_str(), text(wire.delta), out),
            "THINKING_TEXT_MESSAGE_CONTENT" | "REASONING_MESSAGE_CONTENT" => {
                self.grow(Channel::Reasoning, wire.message_id.as_str(), text(wire.delta), out);
            }
            "TOOL_CALL_ARGS" => {
                let lane = self.call(wire.tool_call_id.as_str())?;
                out.delta(lane, text(wire.delta), DELTA);
            }

            "TEXT_MESSAGE_START" => {
                self.begin(Channel::Text, wire.message_id.as_str(), wire.role.text(), out);
            }
            "THINKING_TEXT_MESSAGE_START" | "REASONING_MESSAGE_START" => {
                self.begin(Channel::Reasoning, wire.message_id.as_str(), None, out);
            }
            "TEXT_MESSAGE_END" => self.end(Channel::Text, &wire, out),
            "THINKING_TEXT_MESSAGE_END" | "REASONING_MESSAGE_END" => self.end(Channel::Reasoning, &wire, out),
            "TEXT_MESSAGE_CHUNK" => self.chunk(Channel::Text, &wire, out),
            "REASONING_MESSAGE_CHUNK" => self.chunk(Channel::Reasoning, &wire, out),
            "THINKING_START" | "THINKING_END" | "REASONING_START" | "REASONING_END" => {}
            "REASONING_ENCRYPTED_VALUE" => self.encrypted(&wire, out),

            "TOOL_CALL_START" => {
                self.begin_call(&wire, out);
            }
            "TOOL_CALL_END" => {
                if let Some(lane) = self.call(wire.tool_call_id.as_str()) {
                    self.end_part(lane.part, out);
                }
            }
            "TOOL_CALL_CHUNK" => self.call_chunk(&wire, out),
            "TOOL_CALL_RESULT" => self.result(&wire, out),

            "RUN_STARTED" => {
                let (run, thread, parent) = (wire.run_id.text(), wire.thread_id.text(), wire.parent_run_id.text());
                self.run = RunInfo { run, thread, parent };
                out.push(Body::RunStart(Box::new(self.run.clone())));
            }
            "RUN_FINISHED" => self.finish_run(kind, &wire, out),
            "RUN_ERROR" => {
                let code = filled(wire.code).unwrap_or(Text::from_static("RUN_ERROR"));
                let message = wire.message.or(wire.error).filter(|message| message.get() != "null");
                let error = ErrorInfo::new(code);
                let error = match message {
                    Some(message) => error.with_message(plain(message)),
                    None => error,
                };
                out.error_at(error, Leaf::new("message|error", [0; 4]));
                out.stated_end = Some(kind.into());
                out.ended = true;
            }
            "STEP_STARTED" => out.push(Body::StepStart(Box::new(wire.step_name.text().unwrap_or_default()))),
            "STEP_FINISHED" => out.push(Body::StepEnd(Box::new(wire.step_name.text().unwrap_or_default()))),

            "STATE_SNAPSHOT" => {
                out.chunk(Body::StateSnapshot(Box::new(wire.snapshot?.into())).into(), Leaf::new("snapshot", [0; 4]));
            }
            "STATE_DELTA" => out.chunk(Body::StateDelta(Box::new(wire.delta?.into())).into(), DELTA),
            "MESSAGES_SNAPSHOT" => self.messages(wire.messages?, out),
            "ACTIVITY_SNAPSHOT" | "ACTIVITY_DELTA" | "META" => {
                out.push(Chunk::custom(kind, Json::from_text(event.data).ok()?));
            }
            "CUSTOM" => {
                let value = wire.value.map_or_else(|| Json::from_text("null").ok(), |value| Some(value.into()))?;
                out.chunk(Chunk::custom(wire.name.as_str(), value), Leaf::new("value", [0; 4]));
            }
            "RAW" => {
                let data = wire.event.map_or(event.data, RawValue::get);
                let raw = Raw { event: Some("RAW".into()), data: data.into() };
                out.chunk(Body::Raw(Box::new(raw)).into(), Leaf::new("event", [0; 4]));
            }
            _ => return None,
        }
        Some(())
    }

    /// Begins a message, unless it is open already.
    fn begin(&mut self, channel: Channel, id: &str, role: Option<Text>, out: &mut Output) -> Lane {
        let key = (Text::from(id), channel);
        if let Some(lane) = self.messages.get(&key).filter(|lane| self.open.contains_key(&lane.part)) {
            return *lane;
        }
        self.last = None;
        let lane = Lane::new(channel).in_part(self.lanes.part(out));
        self.messages.insert(key, lane);
        self.open.insert(lane.part, None);
        if channel == Channel::Text {
            let id = Some(id).filter(|id| !id.is_empty()).map(Text::from);
            out.push(Body::MessageStart(Box::new(MessageInfo { choice: 0, id, role, model: None })));
        }
        out.push(Body::PartStart(lane));
        lane
    }

    fn grow(&mut self, channel: Channel, id: &str, text: impl Into<Text>, out: &mut Output) {
        let lane = match &self.last {
            Some((last, lane)) if lane.channel == channel && last == id => *lane,
            _ => {
                let lane = self.begin(channel, id, None, out);
                self.last = Some((id.into(), lane));
                lane
            }
        };
        out.delta(lane, text, DELTA);
    }

    fn end(&mut self, channel: Channel, wire: &Wire<'_>, out: &mut Output) {
        if let Some(lane) = self.messages.get(&(wire.message_id.as_str().into(), channel)).copied() {
            self.end_part(lane.part, out);
        }
    }

    /// The first chunk of a message names it; those that follow need not.
    fn chunk(&mut self, channel: Channel, wire: &Wire<'_>, out: &mut Output) {
        let named = wire
            .message_id
            .filled()
            .and_then(|_| self.messages.get(&(wire.message_id.as_str().into(), channel)).copied());
        let lane = match self.chunked {
            Some(lane) if lane.channel == channel && (wire.message_id.filled().is_none() || named == Some(lane)) => {
                lane
            }
            _ => {
                self.end_chunked(out);
                let lane = self.begin(channel, wire.message_id.as_str(), wire.role.text(), out);
                self.chunked = Some(lane);
                lane
            }
        };
        out.delta(lane, text(wire.delta), DELTA);
    }

    fn call_chunk(&mut self, wire: &Wire<'_>, out: &mut Output) {
        let named = self.call(wire.tool_call_id.as_str());
        let lane = match self.chunked {
            Some(lane) if lane.call != 0 && (wire.tool_call_id.filled().is_none() || named == Some(lane)) => lane,
            _ => {
                self.end_chunked(out);
                let lane = self.begin_call(wire, out);
                self.chunked = Some(lane);
                lane
            }
        };
        out.delta(lane, text(wire.delta), DELTA);
    }

    fn end_chunked(&mut self, out: &mut Output) {
        if let Some(lane) = self.chunked.take() {
            self.end_part(lane.part, out);
        }
    }

    fn begin_call(&mut self, wire: &Wire<'_>, out: &mut Output) -> Lane {
        self.calls = true;
        let part = self.lanes.part(out);
        let lane = self.lanes.call(part, Channel::Arguments, out);
        let id = wire.tool_call_id.filled().map_or_else(|| Output::made_up_id(lane), Text::from);
        self.lanes.name(&id, lane);
        self.open.insert(part, Some(lane));
        let name = wire.tool_call_name.text().unwrap_or_default();
        out.push(Body::ToolCallStart(Box::new(ToolCallStart { lane, id, name })));
        lane
    }

    /// The call with this id, if it has not ended.
    fn call(&self, id: &str) -> Option<Lane> {
        self.lanes.named(id).filter(|lane| self.open.contains_key(&lane.part))
    }

    fn result(&mut self, wire: &Wire<'_>, out: &mut Output) {
        let id = wire.tool_call_id.text().unwrap_or_default();
        let call = self.lanes.named(&id).unwrap_or(Lane::new(Channel::ToolResult));
        let lane = Lane { part: self.lanes.part(out), channel: Channel::ToolResult, ..call };
        let content = wire.content.or(wire.result).map(plain).unwrap_or_default();
        let result = ToolResult { lane, id, content, is_error: false };
        out.chunk(Body::ToolResult(Box::new(result)).into(), Leaf::new("content|result", [0; 4]));
        out.push(Body::PartEnd { choice: 0, part: lane.part });
    }

    fn encrypted(&mut self, wire: &Wire<'_>, out: &mut Output) {
        let reasoning = self.messages.get(&(wire.entity_id.as_str().into(), Channel::Reasoning)).copied();
        let lane = reasoning
            .or_else(|| self.lanes.named(wire.entity_id.as_str()))
            .unwrap_or_else(|| Lane::new(Channel::Reasoning).in_part(self.lanes.part(out)));
        let place = Leaf::new("encryptedValue|encrypted_value", [0; 4]);
        out.chunk(opaque(lane, "encrypted", wire.encrypted_value.as_str()), place);
    }

    /// Text of this run that the conversation repeats is named, so that it gets the same edits; older text is not of this run.
    fn messages(&mut self, raw: &RawValue, out: &mut Output) {
        #[derive(Default, Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Message<'a> {
            #[serde(borrow)]
            id: Str<'a>,
            #[serde(borrow)]
            role: Str<'a>,
            #[serde(borrow)]
            content: Option<&'a RawValue>,
            #[serde(borrow, alias = "tool_calls")]
            tool_calls: Option<List<'a>>,
        }
        #[derive(Default, Deserialize)]
        struct Call<'a> {
            #[serde(borrow)]
            id: Str<'a>,
            #[serde(borrow)]
            function: Function<'a>,
        }
        #[derive(Default, Deserialize)]
        struct Function<'a> {
            #[serde(borrow)]
            arguments: Str<'a>,
        }
        let list: List<'_> = parse(raw).unwrap_or_default();
        for (i, raw) in list.0.iter().enumerate() {
            let Some(message) = parse::<Message<'_>>(raw) else { continue };
            let channel = if message.role.as_str() == "reasoning" { Channel::Reasoning } else { Channel::Text };
            if let Some(lane) = self.messages.get(&(message.id.as_str().into(), channel))
                && let Some(content) = filled(message.content)
            {
                out.snapshot(*lane, content, leaf("messages/*/content", &[i]));
            }
            for (j, call) in message.tool_calls.iter().flat_map(|list| &list.0).enumerate() {
                let Some(call) = parse::<Call<'_>>(call) else { continue };
                if let Some(lane) = self.lanes.named(call.id.as_str())
                    && let Some(arguments) = call.function.arguments.filled()
                {
                    const PLACE: &str =
                        "messages/*/toolCalls/*/function/arguments|messages/*/tool_calls/*/function/arguments";
                    out.snapshot(lane, arguments, leaf(PLACE, &[i, j]));
                }
            }
        }
        out.chunk(Body::MessagesSnapshot(Box::new(raw.into())).into(), Leaf::new("messages", [0; 4]));
    }

    fn finish_run(&mut self, stated: &str, wire: &Wire<'_>, out: &mut Output) {
        for part in self.open.keys().copied().collect::<Vec<_>>() {
            self.end_part(part, out);
        }
        let outcome = wire.outcome.filter(|outcome| outcome.get().starts_with('{'));
        for (name, value) in [("result", wire.result), ("outcome", outcome), ("interrupt", wire.interrupt)] {
            if let Some(value) = value.filter(|value| is_filled(Some(value))) {
                out.chunk(custom(name, value), Leaf::new(name, [0; 4]));
            }
        }
        out.ended = true;
        if out.failed {
            out.stated_end = Some(stated.into());
        } else if !std::mem::replace(&mut self.finished, true) {
            let interrupted =
                is_filled(wire.interrupt) || wire.outcome.is_some_and(|outcome| outcome.get().contains("interrupt"));
            let reason = if interrupted { FinishReason::Pause } else { FinishReason::Stop };
            out.push(finish(0, reason, Some(stated.into())));
        }
        let run = RunInfo {
            run: wire.run_id.text().or(self.run.run.clone()),
            thread: wire.thread_id.text().or(self.run.thread.clone()),
            parent: self.run.parent.clone(),
        };
        out.push(Body::RunEnd(Box::new(run)));
    }

    fn end_part(&mut self, part: u16, out: &mut Output) {
        self.last = None;
        if let Some(call) = self.open.remove(&part) {
            if let Some(lane) = call {
                out.push(Body::ToolCallEnd(lane));
            }
            out.push(Body::PartEnd { choice: 0, part });
        }
    }
}

/// Reads a piece of a message's text, without the general way.
fn growth_of(data: &str) -> Option<(Channel, &str, Str<'_>)> {
    let mut json = Pull::object(data)?;
    let (mut channel, mut id, mut text) = (None, None, None);
    let mut first = true;
    while let Some(key) = json.key(&mut first)? {
        match key {
            "type" => {
                channel = Some(match json.word()? {
                    "TEXT_MESSAGE_CONTENT" => Channel::Text,
                    "REASONING_MESSAGE_CONTENT" => Channel::Reasoning,
                    _ => return None,
                });
            }
            "messageId" | "message_id" if id.is_none() => id = Some(json.word()?),
            "delta" if text.is_none() => text = Some(json.string()?),
            _ => json.skip()?,
        }
    }
    json.end()?;
    Some((channel?, id?, text?))
}

/// The text of a delta; servers that send none, or null, mean an empty one.
fn text(delta: Option<&RawValue>) -> Text {
    delta.filter(|delta| delta.get() != "null").map(plain).unwrap_or_default()
}

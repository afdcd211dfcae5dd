//! Cohere v2 chat: blocks of content and tool calls that begin, grow and end, each under its own count.

use serde::Deserialize;
use serde_json::value::RawValue;
use streamkeeper_contract::{
    Annotation, Body, Channel, Custom, ErrorInfo, Finish, FinishReason, Json, Lane, MessageInfo, Stated, Text,
    ToolCallStart, Usage,
};

use crate::output::{Leaf, Output};

use super::{
    Dialect, Event,
    blocks::{Blocks, Tool},
    read::{Lanes, Num, Str, Word, error_info, parse, plain},
};

/// Reads one message.
///
/// A tool plan is no answer and no reasoning in this provider's words, so it comes as `custom` chunks named `tool_plan`.
#[derive(Debug, Default)]
pub(super) struct Cohere {
    lanes: Lanes,
    content: Blocks,
    calls: Blocks,
    /// The index of the call that began last: its fragments may state none.
    last_call: u64,
    /// The lane of the last text.
    text: Option<Lane>,
    begun: bool,
    finished: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Wire<'a> {
    #[serde(borrow, rename = "type")]
    kind: Word<'a>,
    #[serde(borrow)]
    id: Word<'a>,
    index: Num,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Delta<'a> {
    #[serde(borrow)]
    message: Option<Message<'a>>,
    #[serde(borrow)]
    finish_reason: Word<'a>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Message<'a> {
    #[serde(borrow)]
    role: Word<'a>,
    #[serde(borrow)]
    content: Option<Content<'a>>,
    #[serde(borrow)]
    tool_plan: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_calls: Option<&'a RawValue>,
    #[serde(borrow)]
    citations: Option<&'a RawValue>,
}

/// A block of content. Read by hand where a message begins with an empty list of them.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Content<'a> {
    #[serde(borrow, rename = "type")]
    kind: Word<'a>,
    #[serde(borrow)]
    text: Str<'a>,
    #[serde(borrow)]
    thinking: Str<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Call<'a> {
    #[serde(borrow)]
    id: Word<'a>,
    #[serde(borrow)]
    function: Option<Function<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Function<'a> {
    #[serde(borrow)]
    name: Word<'a>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

const TEXT: Leaf = Leaf::new("delta/message/content/text", [0; 4]);
const THINKING: Leaf = Leaf::new("delta/message/content/thinking", [0; 4]);
const ARGUMENTS: Leaf = Leaf::new("delta/message/tool_calls/function/arguments", [0; 4]);

impl Dialect for Cohere {
    fn event(&mut self, event: &Event<'_>, out: &mut Output) {
        match self.read(event, out) {
            Some(()) => out.known += 1,
            None => out.raw(event.name, event.data),
        }
    }
}

impl Cohere {
    fn read(&mut self, event: &Event<'_>, out: &mut Output) -> Option<()> {
        let data = event.data.trim_ascii();
        if data == "[DONE]" {
            out.ended = true;
            return Some(());
        }
        let wire: Wire<'_> = data.starts_with('{').then(|| serde_json::from_str(data).ok())??;
        let index = wire.index.or_zero();
        let message = wire.delta.as_ref().and_then(|delta| delta.message.as_ref());
        match wire.kind.filled().or(event.name).unwrap_or_default() {
            "content-delta" => self.text(index, message?.content.as_ref()?, out),
            "content-start" => {
                let content = message?.content.as_ref()?;
                let part = self.content.begin(index, &mut self.lanes, out);
                out.push(Body::PartStart(Lane::new(content.channel()).in_part(part)));
                self.text(index, content, out);
            }
            "content-end" => self.content.end(index, out),
            "tool-plan-delta" => {
                let plan = Custom { name: "tool_plan".into(), value: message?.tool_plan?.into() };
                out.chunk(Body::Custom(Box::new(plan)).into(), Leaf::new("delta/message/tool_plan", [0; 4]));
            }
            "tool-call-start" => self.begin_call(index, message?.tool_calls?, out)?,
            "tool-call-delta" => {
                let call: Call<'_> = parse(message?.tool_calls?)?;
                let Tool { lane, .. } = self.calls.tool(wire.index.0.unwrap_or(self.last_call))?;
                out.delta(lane, plain(call.function?.arguments?), ARGUMENTS);
            }
            "tool-call-end" => self.calls.end(wire.index.0.unwrap_or(self.last_call), out),
            "citation-start" => {
                let lane = self.text.unwrap_or(Lane::TEXT);
                let (form, value) = (Text::from_static("citation"), message?.citations?.into());
                out.push(Body::Annotation(Box::new(Annotation { lane, form, value })));
            }
            "citation-end" => {}
            "message-start" => self.begin(&wire.id, message, out),
            "message-end" => self.end(wire.delta.as_ref()?, out),
            "error" => out.error(serde_json::from_str(data).map_or_else(|_| ErrorInfo::new("error"), error_info)),
            _ => out.error(error_info(wire.error.or(wire.message)?)),
        }
        Some(())
    }

    fn begin(&mut self, id: &Str<'_>, message: Option<&Message<'_>>, out: &mut Output) {
        if !self.begun {
            self.begun = true;
            let role = message.and_then(|message| message.role.filled()).map(Text::from);
            let id = id.filled().map(Text::from);
            out.push(Body::MessageStart(Box::new(MessageInfo { choice: 0, id, role, model: None })));
        }
    }

    fn text(&mut self, index: u64, content: &Content<'_>, out: &mut Output) {
        let channel = content.channel();
        let lane = self.content.lane(index, channel, &mut self.lanes);
        if channel == Channel::Text {
            self.text = Some(lane);
        }
        out.delta(lane.in_channel(Channel::Reasoning), content.thinking.clone(), THINKING);
        out.delta(lane.in_channel(Channel::Text), content.text.clone(), TEXT);
    }

    fn begin_call(&mut self, index: u64, raw: &RawValue, out: &mut Output) -> Option<()> {
        let call: Call<'_> = parse(raw)?;
        let function = call.function?;
        let part = self.calls.begin(index, &mut self.lanes, out);
        let lane = self.lanes.call(part, Channel::Arguments);
        self.calls.set_tool(index, Tool { lane, whole: false });
        self.last_call = index;
        let id = call.id.filled().map_or_else(|| Output::made_up_id(lane), Text::from);
        let name = function.name.text().unwrap_or_default();
        out.push(Body::ToolCallStart(Box::new(ToolCallStart { lane, id, name })));
        out.delta(lane, function.arguments.map(plain).unwrap_or_default(), ARGUMENTS);
        Some(())
    }

    fn end(&mut self, delta: &Delta<'_>, out: &mut Output) {
        out.ended = true;
        self.content.end_all(out);
        self.calls.end_all(out);
        if let Some(usage) = delta.usage.and_then(usage_of) {
            out.push(Body::Usage(Box::new(usage)));
        }
        match (delta.error, delta.finish_reason.filled()) {
            (Some(error), _) => out.error(error_info(error)),
            (None, Some(word @ ("ERROR" | "TIMEOUT"))) => out.error(ErrorInfo::new(word)),
            (None, stated) if !self.finished && !out.failed => {
                self.finished = true;
                out.push(finish(stated));
            }
            _ => {}
        }
        if out.failed {
            out.stated_end = delta.finish_reason.text();
        }
    }
}

impl Content<'_> {
    fn channel(&self) -> Channel {
        match (self.kind.as_str(), self.thinking.get()) {
            ("thinking", _) | (_, Some(_)) => Channel::Reasoning,
            _ => Channel::Text,
        }
    }
}

fn finish(stated: Option<&str>) -> Body {
    let reason = match stated {
        Some("COMPLETE" | "STOP_SEQUENCE") => FinishReason::Stop,
        Some("MAX_TOKENS") => FinishReason::Length,
        Some("TOOL_CALL") => FinishReason::ToolCalls,
        Some(word) => FinishReason::Other(word.into()),
        None => FinishReason::Unstated,
    };
    Body::Finish(Box::new(Finish { choice: 0, reason, stated: stated.map(Text::from) }))
}

/// The provider's numbers. Input includes what a cache served; billed units are kept in the statement alone.
fn usage_of(raw: &RawValue) -> Option<Usage> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Wire {
        tokens: Option<Tokens>,
        cached_tokens: Num,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Tokens {
        input_tokens: Num,
        output_tokens: Num,
    }
    let wire: Wire = parse(raw)?;
    let tokens = wire.tokens.unwrap_or_default();
    let (input, output, cached) = (tokens.input_tokens.0, tokens.output_tokens.0, wire.cached_tokens.0);
    let stated = Stated { input, output, cached, raw: Some(Json::from(raw)), ..Stated::default() };
    Some(Usage {
        uncached_input: input.map(|input| input.saturating_sub(cached.unwrap_or(0))),
        cache_read: cached,
        output,
        stated,
        ..Usage::default()
    })
}

//! Cohere v2 chat: blocks of content and tool calls that begin, grow and end, each under its own count.

use serde::Deserialize;
use serde_json::value::RawValue;
use streamkeeper_contract::{
    Body, Channel, ErrorInfo, FinishReason, Json, Lane, MessageInfo, Stated, Text, ToolCallStart, Usage, codes,
};

use crate::output::{Leaf, Output};

use super::{
    Dialect, Event,
    blocks::{Blocks, Tool},
    chunks::{annotation, custom, finish},
    pull::Pull,
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

/// A block of content. The default is for the empty list of them that a message begins with.
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
struct Call<'a> {
    #[serde(borrow)]
    id: Word<'a>,
    #[serde(borrow)]
    function: Option<Function<'a>>,
}

#[derive(Debug, Default, Deserialize)]
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
        if let Some((index, content)) = growth_of(data) {
            self.text(index, &content, out);
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
                let plan = custom("tool_plan", message?.tool_plan?);
                out.chunk(plan, Leaf::new("delta/message/tool_plan", [0; 4]));
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
                out.push(annotation(lane, "citation", message?.citations?));
            }
            "citation-end" => {}
            "message-start" => self.begin(&wire.id, message, out),
            "message-end" => self.end(wire.delta.as_ref()?, out),
            "error" => out.error(serde_json::from_str(data).map_or_else(|_| ErrorInfo::new(codes::ERROR), error_info)),
            _ => out.error(error_info(wire.error.or(wire.message.filter(|message| message.get().starts_with('"')))?)),
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
        let lane = self.content.lane(index, channel, &mut self.lanes, out);
        if channel == Channel::Text {
            self.text = Some(lane);
        }
        out.delta(lane.in_channel(Channel::Reasoning), content.thinking.as_str(), THINKING);
        out.delta(lane.in_channel(Channel::Text), content.text.as_str(), TEXT);
    }

    fn begin_call(&mut self, index: u64, raw: &RawValue, out: &mut Output) -> Option<()> {
        let call: Call<'_> = parse(raw)?;
        let function = call.function?;
        let part = self.calls.begin(index, &mut self.lanes, out);
        let lane = self.lanes.call(part, Channel::Arguments, out);
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
                out.push(finish(0, reason(stated), stated.map(Text::from)));
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

/// What nearly every event says: a block of content grows. Read in one pass; `None` for an event that says more, or may.
fn growth_of(data: &str) -> Option<(u64, Content<'_>)> {
    /// Goes into the one member of an object.
    fn only<'a, T>(json: &mut Pull<'a>, name: &str, read: impl Fn(&mut Pull<'a>) -> Option<T>) -> Option<T> {
        let mut first = true;
        json.open(b'{')?;
        (json.key(&mut first)?? == name).then_some(())?;
        let value = read(json)?;
        json.at_end(&mut first, b'}')?;
        Some(value)
    }
    fn read_content<'a>(json: &mut Pull<'a>) -> Option<Content<'a>> {
        let mut content = Content::default();
        let mut first = true;
        json.open(b'{')?;
        while let Some(key) = json.key(&mut first)? {
            match key {
                "text" if content.text == Str::Unstated => content.text = json.string()?,
                "thinking" if content.thinking == Str::Unstated => content.thinking = json.string()?,
                _ => return None,
            }
        }
        Some(content)
    }
    let mut json = Pull::object(data)?;
    let (mut is_delta, mut index, mut content) = (false, None, None);
    let mut first = true;
    while let Some(key) = json.key(&mut first)? {
        match key {
            "type" => is_delta = (json.word()? == "content-delta").then_some(true)?,
            "index" => index = Some(json.count()?),
            "delta" => {
                content = Some(only(&mut json, "message", |json| only(json, "content", read_content))?);
            }
            _ => return None,
        }
    }
    json.end()?;
    is_delta.then_some((index?, content?))
}

fn reason(stated: Option<&str>) -> FinishReason {
    match stated {
        Some("COMPLETE" | "STOP_SEQUENCE") => FinishReason::Stop,
        Some("MAX_TOKENS") => FinishReason::Length,
        Some("TOOL_CALL") => FinishReason::ToolCalls,
        Some(word) => FinishReason::Other(word.into()),
        None => FinishReason::Unstated,
    }
}

/// The provider's numbers. Input includes what a cache served; billed units are kept in the statement alone.
fn usage_of(raw: &RawValue) -> Option<Usage> {
    #[derive(Default, Deserialize)]
    struct Wire {
        tokens: Option<Tokens>,
        cached_tokens: Num,
    }
    #[derive(Default, Deserialize)]
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

#[cfg(test)]
mod tests {
    use super::super::testing::{lines, read};
    use crate::Format;

    #[track_caller]
    fn check(payloads: &[&str], expected: &[&str]) {
        assert_eq!(lines(Format::CohereV2, payloads), expected);
    }

    const START: &str = r#"{"id":"i","type":"message-start","delta":{"message":{"role":"assistant","content":[],"tool_plan":"","tool_calls":[],"citations":[]}}}"#;

    // spec 2.6, 2.7
    #[test]
    fn blocks_of_thinking_and_text_are_parts() {
        check(
            &[
                START,
                r#"{"type":"content-start","index":0,"delta":{"message":{"content":{"type":"thinking","thinking":""}}}}"#,
                r#"{"type":"content-delta","index":0,"delta":{"message":{"content":{"thinking":"hm"}}}}"#,
                r#"{"type":"content-end","index":0}"#,
                r#"{"type":"content-start","index":1,"delta":{"message":{"content":{"type":"text","text":"H"}}}}"#,
                r#"{"type":"content-delta","index":1,"delta":{"message":{"content":{"text":"i"}}}}"#,
                r#"{"type":"citation-start","index":0,"delta":{"message":{"citations":{"start":0,"end":2}}}}"#,
                r#"{"type":"citation-end","index":0}"#,
                r#"{"type":"content-end","index":1}"#,
                r#"{"type":"message-end","delta":{"finish_reason":"COMPLETE","usage":{"billed_units":{"input_tokens":1},"tokens":{"input_tokens":1645,"output_tokens":33},"cached_tokens":1600}}}"#,
                "[DONE]",
            ],
            &[
                "message_start i assistant -",
                "part_start 0.0/reasoning",
                "reasoning_delta 0.0/reasoning \"hm\" @delta/message/content/thinking",
                "part_end 0.0",
                "part_start 0.1/text",
                "content_delta 0.1/text \"H\" @delta/message/content/text",
                "content_delta 0.1/text \"i\" @delta/message/content/text",
                r#"annotation 0.1/text citation {"start":0,"end":2}"#,
                "part_end 0.1",
                "usage in 45 read 1600 out 33 | in 1645 out 33 cached 1600",
                "finish 0 stop (COMPLETE)",
            ],
        );
    }

    // spec 2.5
    #[test]
    fn a_tool_plan_is_no_answer_and_calls_end_where_the_provider_says() {
        check(
            &[
                START,
                r#"{"type":"tool-plan-delta","delta":{"message":{"tool_plan":"I will"}}}"#,
                r#"{"type":"tool-call-start","index":0,"delta":{"message":{"tool_calls":{"id":"a","type":"function","function":{"name":"f","arguments":""}}}}}"#,
                r#"{"type":"tool-call-delta","index":0,"delta":{"message":{"tool_calls":{"function":{"arguments":"{}"}}}}}"#,
                r#"{"type":"tool-call-end","index":0}"#,
                r#"{"type":"tool-call-start","index":1,"delta":{"message":{"tool_calls":{"function":{"name":"g","arguments":""}}}}}"#,
                r#"{"type":"tool-call-delta","delta":{"message":{"tool_calls":{"function":{"arguments":"{"}}}}}"#,
                r#"{"type":"message-end","delta":{"finish_reason":"TOOL_CALL"}}"#,
            ],
            &[
                "message_start i assistant -",
                "custom tool_plan \"I will\" @delta/message/tool_plan",
                "tool_call_start 0.0#1/arguments a f",
                "tool_call_delta 0.0#1/arguments \"{}\" @delta/message/tool_calls/function/arguments",
                "tool_call_end 0.0#1/arguments",
                "part_end 0.0",
                "tool_call_start 0.1#2/arguments unnamed_call_0_2 g",
                "tool_call_delta 0.1#2/arguments \"{\" @delta/message/tool_calls/function/arguments",
                "tool_call_end 0.1#2/arguments",
                "part_end 0.1",
                "finish 0 tool_calls (TOOL_CALL)",
            ],
        );
    }

    // spec 2.4
    #[test]
    fn an_end_that_is_an_error_is_no_finish() {
        for (end, error, stated) in [
            (
                r#"{"type":"message-end","delta":{"finish_reason":"ERROR","error":"boom"}}"#,
                "error error boom",
                Some("ERROR"),
            ),
            (r#"{"type":"message-end","delta":{"finish_reason":"TIMEOUT"}}"#, "error TIMEOUT -", Some("TIMEOUT")),
            (r#"{"message":"too many tokens"}"#, "error error too many tokens", None),
            (r#"{"type":"error","message":"no","code":"x"}"#, "error x no", None),
        ] {
            let (lines, out) = read(Format::CohereV2, &[START, end]);
            assert_eq!(lines[1..], [error], "{end}");
            assert_eq!(out.stated_end.as_deref(), stated, "{end}");
            assert!(out.failed);
        }
    }

    // spec 2.10
    #[test]
    fn what_fits_no_rule_becomes_raw() {
        for data in [
            "",
            "{}",
            "[]",
            r#"{"type":"debug","prompt":"x"}"#,
            r#"{"type":"content-delta"}"#,
            r#"{"type":"content-delta","delta":{"message":{"content":{"text":7}}}}"#,
            r#"{"type":"tool-call-delta","index":3,"delta":{"message":{"tool_calls":{"function":{"arguments":"x"}}}}}"#,
        ] {
            let (lines, out) = read(Format::CohereV2, &[data]);
            assert_eq!((lines, out.unknown), (vec![format!("raw - {data}")], 1));
        }
    }
}

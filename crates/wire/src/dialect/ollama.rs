//! Ollama: a line for each piece of a message or of generated text, of which the last is done.

use serde::Deserialize;
use serde_json::value::RawValue;
use streamkeeper_contract::{
    Body, Channel, FinishReason, Json, Lane, Media, MediaData, MessageInfo, Stated, Text, ToolCall, Usage,
};

use crate::output::{Leaf, Output};

use super::{
    Dialect, Event,
    chunks::{annotation, custom, finish},
    pull::Pull,
    read::{Flag, Lanes, List, Num, Str, Word, error_info, filled, is_filled, leaf, parse, plain},
};

/// Reads one answer of `/api/chat` or `/api/generate`. All text is in the first part; tool calls come whole.
#[derive(Debug, Default)]
pub(super) struct Ollama {
    lanes: Lanes,
    begun: bool,
    finished: bool,
}

#[derive(Debug, Default, Deserialize)]
struct Wire<'a> {
    #[serde(borrow)]
    model: Word<'a>,
    #[serde(borrow)]
    message: Option<Message<'a>>,
    #[serde(borrow)]
    response: Str<'a>,
    #[serde(borrow)]
    thinking: Str<'a>,
    done: Flag,
    #[serde(borrow)]
    done_reason: Word<'a>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    logprobs: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    role: Word<'a>,
    #[serde(borrow)]
    content: Str<'a>,
    #[serde(borrow)]
    thinking: Str<'a>,
    #[serde(borrow)]
    tool_calls: Option<List<'a>>,
    #[serde(borrow)]
    images: Option<List<'a>>,
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

impl Dialect for Ollama {
    fn event(&mut self, event: &Event<'_>, out: &mut Output) {
        match self.read(event, out) {
            Some(()) => out.known += 1,
            None => out.raw(event.name, event.data),
        }
    }
}

impl Ollama {
    fn read(&mut self, event: &Event<'_>, out: &mut Output) -> Option<()> {
        if self.begun
            && let Some((channel, text, path)) = growth_of(event.data)
        {
            out.delta(Lane::new(channel), text, Leaf::new(path, [0; 4]));
            return Some(());
        }
        let is_object = event.data.trim_ascii_start().starts_with('{');
        let wire: Wire<'_> = is_object.then(|| serde_json::from_str(event.data).ok())??;
        let text = Lane::TEXT;
        let reasoning = Lane::new(Channel::Reasoning);
        match (&wire.message, wire.response.get(), wire.error) {
            (None, None, Some(error)) => {
                out.ended = true;
                out.error_at(error_info(error), Leaf::new("error", [0; 4]));
                return Some(());
            }
            (None, None, None) if !wire.done.0 => return None,
            _ => {}
        }
        if !self.begun {
            self.begun = true;
            let role = wire.message.as_ref().and_then(|message| message.role.filled()).map(Text::from);
            let model = wire.model.filled().map(Text::from);
            out.push(Body::MessageStart(Box::new(MessageInfo { choice: 0, id: None, role, model })));
        }
        out.delta(reasoning, wire.thinking, Leaf::new("thinking", [0; 4]));
        out.delta(text, wire.response, Leaf::new("response", [0; 4]));
        if let Some(message) = wire.message {
            out.delta(reasoning, message.thinking, Leaf::new("message/thinking", [0; 4]));
            out.delta(text, message.content, Leaf::new("message/content", [0; 4]));
            for (at, call) in message.tool_calls.unwrap_or_default().0.into_iter().enumerate() {
                self.call(at, call, out);
            }
            for image in message.images.unwrap_or_default().0 {
                if let Some(data) = filled(Some(image)) {
                    let data = MediaData::Base64(data.as_str().into());
                    let media = Media { lane: text, form: Text::from_static("image"), mime: None, data };
                    out.push(Body::Media(Box::new(media)));
                }
            }
        }
        if let Some(logprobs) = wire.logprobs.filter(|logprobs| is_filled(Some(logprobs))) {
            out.chunk(annotation(text, "logprobs", logprobs), Leaf::new("logprobs", [0; 4]));
        }
        if wire.done.0 {
            out.ended = true;
            if let Some(usage) = usage_of(event.data) {
                out.push(Body::Usage(Box::new(usage)));
            }
            if !self.finished && !out.failed {
                self.finished = true;
                let stated = wire.done_reason.filled();
                out.push(finish(0, reason(stated), stated.map(Text::from)));
            }
        }
        if let Some(error) = wire.error {
            out.error_at(error_info(error), Leaf::new("error", [0; 4]));
        }
        Some(())
    }

    fn call(&mut self, at: usize, raw: &RawValue, out: &mut Output) {
        let call: Call<'_> = parse(raw).unwrap_or_default();
        let Some(function) = call.function else {
            return out.push(custom("message.tool_calls", raw));
        };
        let lane = self.lanes.call(0, Channel::Arguments, out);
        let id = call.id.filled().map_or_else(|| Output::made_up_id(lane), Text::from);
        let name = function.name.text().unwrap_or_default();
        let arguments = function.arguments.map(plain).unwrap_or_default();
        let call = ToolCall { lane, id, name, arguments };
        out.chunk(Body::ToolCall(Box::new(call)).into(), leaf("message/tool_calls/*/function/arguments", &[at]));
    }
}

/// What nearly every line says: the answer or the thinking grows. Read in one pass; `None` for a line that says more, or may.
fn growth_of(line: &str) -> Option<(Channel, Str<'_>, &'static str)> {
    let mut json = Pull::object(line)?;
    let (mut text, mut thinking) = (None, None);
    let mut first = true;
    while let Some(key) = json.key(&mut first)? {
        match key {
            "model" | "created_at" => drop(json.word()?),
            "done" => (!json.flag()?).then_some(())?,
            "response" if text.is_none() => text = Some((json.string()?, "response")),
            "thinking" if thinking.is_none() => thinking = Some((json.string()?, "thinking")),
            "message" => {
                let mut first = true;
                json.open(b'{')?;
                while let Some(key) = json.key(&mut first)? {
                    match key {
                        "role" => drop(json.word()?),
                        "content" if text.is_none() => text = Some((json.string()?, "message/content")),
                        "thinking" if thinking.is_none() => thinking = Some((json.string()?, "message/thinking")),
                        _ => return None,
                    }
                }
            }
            _ => return None,
        }
    }
    json.end()?;
    match (text?, thinking) {
        ((text, path), None) => Some((Channel::Text, text, path)),
        ((text, _), Some((thinking, path))) if text.as_str().is_empty() => Some((Channel::Reasoning, thinking, path)),
        _ => None,
    }
}

fn reason(stated: Option<&str>) -> FinishReason {
    match stated {
        Some("stop") => FinishReason::Stop,
        Some("length") => FinishReason::Length,
        Some(word) => FinishReason::Other(word.into()),
        None => FinishReason::Unstated,
    }
}

/// The counts of the last line. Input that the server still had from an earlier call is not counted at all.
fn usage_of(line: &str) -> Option<Usage> {
    #[derive(Default, Deserialize)]
    struct Wire {
        prompt_eval_count: Num,
        eval_count: Num,
    }
    let Wire { prompt_eval_count: Num(input), eval_count: Num(output) } = serde_json::from_str(line).ok()?;
    if input.is_none() && output.is_none() {
        return None;
    }
    let raw = [("prompt_eval_count", input), ("eval_count", output)];
    let raw = raw.iter().filter_map(|(name, count)| Some(format!("\"{name}\":{}", (*count)?)));
    let raw = Json::from_text(&format!("{{{}}}", raw.collect::<Vec<_>>().join(","))).ok();
    let stated = Stated { input, output, raw, ..Stated::default() };
    Some(Usage { uncached_input: input, output, stated, ..Usage::default() })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{lines, read};
    use crate::Format;

    #[track_caller]
    fn check(payloads: &[&str], expected: &[&str]) {
        assert_eq!(lines(Format::Ollama, payloads), expected);
    }

    // spec 2.5, 2.6, 2.7
    #[test]
    fn a_chat_ends_with_its_counts_and_its_reason() {
        check(
            &[
                r#"{"model":"m","message":{"role":"assistant","content":"","thinking":"hm"},"done":false}"#,
                r#"{"model":"m","message":{"role":"assistant","content":"Hi"},"done":false}"#,
                r#"{"model":"m","message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":{"a": 1}}},{"id":"x","function":{"name":"g","arguments":{}}}]},"done":false}"#,
                r#"{"model":"m","message":{"role":"assistant","content":"!"},"done":true,"done_reason":"stop","prompt_eval_count":17,"eval_count":63}"#,
            ],
            &[
                "message_start - assistant m",
                "reasoning_delta 0.0/reasoning \"hm\" @message/thinking",
                "content_delta 0.0/text \"Hi\" @message/content",
                r#"tool_call 0.0#1/arguments unnamed_call_0_1 f {"a": 1} @message/tool_calls/0/function/arguments"#,
                "tool_call 0.0#2/arguments x g {} @message/tool_calls/1/function/arguments",
                "content_delta 0.0/text \"!\" @message/content",
                "usage in 17 out 63 | in 17 out 63",
                "finish 0 stop (stop)",
            ],
        );
    }

    // spec 1.6, 2.4
    #[test]
    fn generated_text_may_state_no_count_and_no_reason() {
        check(
            &[
                r#"{"model":"m","response":"A","done":false}"#,
                r#"{"model":"m","response":"","done":true,"eval_count":58}"#,
            ],
            &[
                "message_start - - m",
                "content_delta 0.0/text \"A\" @response",
                "usage out 58 | out 58",
                "finish 0 unstated (-)",
            ],
        );
    }

    // spec 2.4
    #[test]
    fn an_error_line_ends_the_stream() {
        let (lines, out) = read(Format::Ollama, &[r#"{"response":"A","done":false}"#, r#"{"error":"out of memory"}"#]);
        assert_eq!(lines[2..], ["error error out of memory @error"]);
        assert!(out.failed && out.ended);
    }

    // spec 2.4
    #[test]
    fn a_stream_that_is_not_done_has_no_finish() {
        let (lines, out) = read(Format::Ollama, &[r#"{"response":"A","done":false}"#]);
        assert_eq!(lines.len(), 2);
        assert!(!out.ended);
    }

    // spec 2.10
    #[test]
    fn what_fits_no_rule_becomes_raw() {
        for data in ["", "[DONE]", "[]", "{}", r#"{"done":false}"#, r#"{"message":{"content":5}}"#, r#"{"response":["#]
        {
            let (lines, out) = read(Format::Ollama, &[data]);
            assert_eq!((lines, out.unknown), (vec![format!("raw - {data}")], 1));
        }
        check(
            &[r#"{"message":{"role":7,"content":"a","tool_calls":[5]},"done":"no","model":[]}"#],
            &["message_start - - -", "content_delta 0.0/text \"a\" @message/content", "custom message.tool_calls 5"],
        );
    }
}

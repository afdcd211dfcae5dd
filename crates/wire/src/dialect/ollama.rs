//! Ollama: a line for each piece of a message or of generated text, of which the last is done.

use serde::Deserialize;
use serde_json::value::RawValue;
use streamkeeper_contract::{
    Annotation, Body, Channel, Finish, FinishReason, Json, Lane, Media, MediaData, MessageInfo, Stated, Text, ToolCall,
    Usage,
};

use crate::output::{Leaf, Output};

use super::{
    Dialect, Event,
    object::{self, objects},
    read::{Flag, Lanes, List, Num, Str, Word, error_info, filled, is_filled, leaf, parse, plain},
};

/// Reads one answer of `/api/chat` or `/api/generate`. All text is in the first part; tool calls come whole.
#[derive(Debug, Default)]
pub(super) struct Ollama {
    lanes: Lanes,
    begun: bool,
    finished: bool,
}

objects! {
    struct Wire<'a> {
        "model" => model: Word<'a>,
        "message" => message: Option<Message<'a>>,
        "response" => response: Str<'a>,
        "thinking" => thinking: Str<'a>,
        "done" => done: Flag,
        "done_reason" => done_reason: Word<'a>,
        "error" => error: Option<&'a RawValue>,
        "logprobs" => logprobs: Option<&'a RawValue>,
    }

    struct Message<'a> {
        "role" => role: Word<'a>,
        "content" => content: Str<'a>,
        "thinking" => thinking: Str<'a>,
        "tool_calls" => tool_calls: Option<List<'a>>,
        "images" => images: Option<List<'a>>,
    }

    struct Call<'a> {
        "id" => id: Word<'a>,
        "function" => function: Option<Function<'a>>,
    }

    struct Function<'a> {
        "name" => name: Word<'a>,
        "arguments" => arguments: Option<&'a RawValue>,
    }
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
        let is_object = event.data.trim_ascii_start().starts_with('{');
        let wire: Wire<'_> = is_object.then(|| object::read(event.data))??;
        let text = Lane::TEXT;
        let reasoning = Lane::new(Channel::Reasoning);
        match (&wire.message, wire.response.get(), wire.error) {
            (None, None, Some(error)) => {
                out.ended = true;
                out.error(error_info(error));
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
            let note = Annotation { lane: text, form: Text::from_static("logprobs"), value: logprobs.into() };
            out.chunk(Body::Annotation(Box::new(note)).into(), Leaf::new("logprobs", [0; 4]));
        }
        if wire.done.0 {
            out.ended = true;
            if let Some(usage) = usage_of(event.data) {
                out.push(Body::Usage(Box::new(usage)));
            }
            if !self.finished && !out.failed {
                self.finished = true;
                out.push(finish(wire.done_reason.filled()));
            }
        }
        if let Some(error) = wire.error {
            out.error(error_info(error));
        }
        Some(())
    }

    fn call(&mut self, at: usize, raw: &RawValue, out: &mut Output) {
        let call: Call<'_> = parse(raw).unwrap_or_default();
        let Some(function) = call.function else {
            out.push(Body::Custom(Box::new(streamkeeper_contract::Custom {
                name: "message.tool_calls".into(),
                value: raw.into(),
            })));
            return;
        };
        let lane = self.lanes.call(0, Channel::Arguments);
        let id = call.id.filled().map_or_else(|| Output::made_up_id(lane), Text::from);
        let name = function.name.text().unwrap_or_default();
        let arguments = function.arguments.map(plain).unwrap_or_default();
        let call = ToolCall { lane, id, name, arguments };
        out.chunk(Body::ToolCall(Box::new(call)).into(), leaf("message/tool_calls/*/function/arguments", &[at]));
    }
}

fn finish(stated: Option<&str>) -> Body {
    let reason = match stated {
        Some("stop") => FinishReason::Stop,
        Some("length") => FinishReason::Length,
        Some(word) => FinishReason::Other(word.into()),
        None => FinishReason::Unstated,
    };
    Body::Finish(Box::new(Finish { choice: 0, reason, stated: stated.map(Text::from) }))
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
        assert_eq!(lines[2..], ["error error out of memory"]);
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

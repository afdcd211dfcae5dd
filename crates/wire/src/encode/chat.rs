//! Chat Completions: a small object for each piece.

use std::{
    collections::BTreeMap,
    fmt::{self, Write as _},
};

use streamkeeper_contract::{Body, Channel, Chunk, FinishReason, Lane, Outcome, ToolCall, Usage};

use crate::{ending::Ending, json::Quoted};

use super::{Head, Out, Seen};

/// One completion.
#[derive(Debug, Default)]
pub(super) struct Chat {
    choices: BTreeMap<u16, Choice>,
    error: bool,
}

#[derive(Debug, Default)]
struct Choice {
    begun: bool,
    finished: bool,
    /// The lanes of its calls in the order of their index, and whether any arguments came.
    calls: Vec<(Lane, bool)>,
}

impl Chat {
    pub(super) fn push(&mut self, chunk: &Chunk, head: &Head, seen: &Seen, out: &mut Out<'_>) {
        if let Some((lane, text)) = seen.text(chunk) {
            return self.text(lane, text, head, out);
        }
        match chunk.body() {
            Body::MessageStart(message) => self.begin(message.choice, head, out),
            Body::ToolCallStart(call) => self.call(call.lane, &call.id, &call.name, "", head, out),
            Body::ToolCall(call) => self.whole_call(call, head, out),
            Body::ToolCallEnd(lane) => self.end_call(*lane, head, out),
            Body::Finish(finish) => self.finish(finish.choice, &finish.reason, head, out),
            Body::Error(error) => {
                self.error = true;
                let message = error.message.as_deref().unwrap_or(&error.code);
                out.event(
                    None,
                    &format!(
                        r#"{{"error":{{"message":{},"type":"provider_error","param":null,"code":{}}}}}"#,
                        Quoted(message),
                        Quoted(&error.code)
                    ),
                );
            }
            Body::End(end) => self.end(end.outcome(), head, seen, out),
            _ => {}
        }
    }

    fn begin(&mut self, choice: u16, head: &Head, out: &mut Out<'_>) {
        if !std::mem::replace(&mut self.choices.entry(choice).or_default().begun, true) {
            delta(choice, r#""role":"assistant","content":"""#, head, out);
        }
    }

    fn text(&mut self, lane: Lane, text: &str, head: &Head, out: &mut Out<'_>) {
        let member = match lane.channel {
            Channel::Text => "content",
            Channel::Reasoning => "reasoning_content",
            Channel::Refusal => "refusal",
            Channel::Arguments => return self.arguments(lane, text, head, out),
            _ => return,
        };
        self.begin(lane.choice, head, out);
        delta(lane.choice, &format!(r#""{member}":{}"#, Quoted(text)), head, out);
    }

    fn arguments(&mut self, lane: Lane, text: &str, head: &Head, out: &mut Out<'_>) {
        let calls = &mut self.choices.entry(lane.choice).or_default().calls;
        // Arguments of a call that never began have nobody to belong to.
        let Some(index) = calls.iter().rposition(|(known, _)| *known == lane) else { return };
        calls[index].1 = true;
        let text = Quoted(text);
        delta(
            lane.choice,
            &format!(r#""tool_calls":[{{"index":{index},"function":{{"arguments":{text}}}}}]"#),
            head,
            out,
        );
    }

    fn call(&mut self, lane: Lane, id: &str, name: &str, arguments: &str, head: &Head, out: &mut Out<'_>) {
        self.begin(lane.choice, head, out);
        let calls = &mut self.choices.entry(lane.choice).or_default().calls;
        let index = calls.len();
        calls.push((lane, !arguments.is_empty()));
        let (id, name, arguments) = (Quoted(id), Quoted(name), Quoted(arguments));
        delta(
            lane.choice,
            &format!(
                r#""tool_calls":[{{"index":{index},"id":{id},"type":"function","function":{{"name":{name},"arguments":{arguments}}}}}]"#
            ),
            head,
            out,
        );
    }

    fn whole_call(&mut self, call: &ToolCall, head: &Head, out: &mut Out<'_>) {
        let arguments = if call.arguments.is_empty() { "{}" } else { &call.arguments };
        self.call(call.lane, &call.id, &call.name, arguments, head, out);
    }

    /// Empty arguments mean an empty object; readers want one.
    fn end_call(&mut self, lane: Lane, head: &Head, out: &mut Out<'_>) {
        let calls = &self.choices.entry(lane.choice).or_default().calls;
        if calls.contains(&(lane, false)) {
            self.arguments(lane, "{}", head, out);
        }
    }

    fn finish(&mut self, choice: u16, reason: &FinishReason, head: &Head, out: &mut Out<'_>) {
        let open: Vec<Lane> = self.choices.entry(choice).or_default().calls.iter().map(|(lane, _)| *lane).collect();
        open.into_iter().for_each(|lane| self.end_call(lane, head, out));
        if std::mem::replace(&mut self.choices.entry(choice).or_default().finished, true) {
            return;
        }
        let reason = match reason {
            FinishReason::Stop | FinishReason::Pause | FinishReason::Unstated => "stop",
            FinishReason::Refusal => "content_filter",
            reason => reason.as_str(),
        };
        object(
            head,
            format_args!(r#""choices":[{{"index":{choice},"delta":{{}},"finish_reason":{}}}]"#, Quoted(reason)),
            out,
        );
    }

    fn end(&mut self, outcome: &Outcome, head: &Head, seen: &Seen, out: &mut Out<'_>) {
        if self.choices.is_empty() && !self.error {
            self.begin(0, head, out);
        }
        let ending = Ending::of(outcome);
        let reason = match outcome {
            Outcome::Finished { reason } => reason,
            _ => &FinishReason::ContentFilter,
        };
        if !self.error {
            let open: Vec<u16> = self.choices.iter().filter(|(_, c)| !c.finished).map(|(choice, _)| *choice).collect();
            open.into_iter().for_each(|choice| self.finish(choice, reason, head, out));
        }
        if let Some(usage) = &seen.usage {
            object(head, format_args!(r#""choices":[],"usage":{}"#, usage_of(usage)), out);
        }
        if let Some(ending) = ending.filter(|ending| !ending.is_stop && !self.error) {
            out.event(None, &ending.openai_error());
        }
        out.event(None, "[DONE]");
    }
}

fn delta(choice: u16, members: &str, head: &Head, out: &mut Out<'_>) {
    let choices = format_args!(r#""choices":[{{"index":{choice},"delta":{{{members}}},"finish_reason":null}}]"#);
    object(head, choices, out);
}

fn object(head: &Head, members: fmt::Arguments<'_>, out: &mut Out<'_>) {
    let (id, model, created) = (Quoted(head.id()), Quoted(head.model()), head.created);
    out.event(
        None,
        &format!(r#"{{"id":{id},"object":"chat.completion.chunk","created":{created},"model":{model},{members}}}"#),
    );
}

fn usage_of(usage: &Usage) -> String {
    let input = usage.input().or(usage.stated.input);
    let output = usage.output_total().or(usage.stated.output);
    let (prompt, completion) = (input.unwrap_or(0), output.unwrap_or(0));
    let total = prompt.saturating_add(completion);
    let mut json = format!(r#"{{"prompt_tokens":{prompt},"completion_tokens":{completion},"total_tokens":{total}"#);
    if let Some(cached) = usage.cache_read {
        let _ = write!(json, r#","prompt_tokens_details":{{"cached_tokens":{cached}}}"#);
    }
    if let Some(reasoning) = usage.reasoning {
        let _ = write!(json, r#","completion_tokens_details":{{"reasoning_tokens":{reasoning}}}"#);
    }
    json.push('}');
    json
}

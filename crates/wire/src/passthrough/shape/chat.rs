//! OpenAI Chat Completions and completions: every event is a whole small object, and `[DONE]` ends them.

use std::collections::BTreeMap;

use streamkeeper_contract::{Body, Channel, Chunk, Lane, ToolCall};

use crate::json::{Edits, Quoted, find, number_at};

use super::{Choices, Ending, Event, MAX_TRACKED, Shape, Shift, Template};
use crate::passthrough::template::identity_of;

/// Members of the object itself.
const HEAD: &[&str] = &["id", "object", "created", "model", "system_fingerprint", "service_tier", "provider"];

const CHUNK: &str = "chat.completion.chunk";

/// What both know of the stream.
#[derive(Debug, Default)]
struct Stream {
    /// The members of the object itself, without braces.
    head: String,
    choices: Choices,
    done: bool,
}

impl Stream {
    fn seen(&mut self, json: &str) {
        // The first event of some gateways has empty ids.
        if self.head.is_empty() || self.head.contains(r#""id":"""#) {
            let head = identity_of(json, HEAD);
            self.head = head.trim_matches(['{', '}', '[', ']']).to_owned();
        }
    }

    fn written(&mut self, json: &str, chunks: &mut dyn Iterator<Item = &Chunk>) {
        self.choices.note(chunks);
        self.done |= json.trim() == "[DONE]";
    }

    /// An object with these further members. `kind` is what it is called if no event has said so yet.
    fn object(&self, kind: &str, members: &str) -> Event {
        let head = match self.head.as_str() {
            "" => format!(r#""id":"","object":"{kind}","created":0,"model":"""#),
            head => head.to_owned(),
        };
        Event::unnamed(format!("{{{head},{members}}}"))
    }

    fn ending(&mut self, ending: &Ending<'_>, kind: &str, choice: impl Fn(u16) -> String) -> Vec<Event> {
        if std::mem::replace(&mut self.done, true) {
            return Vec::new();
        }
        let mut events: Vec<_> = self.choices.unfinished().into_iter().map(|i| self.object(kind, &choice(i))).collect();
        if !ending.is_stop {
            events.push(Event::unnamed(ending.openai_error()));
        }
        events.push(Event::unnamed("[DONE]"));
        events
    }
}

/// Chat Completions.
#[derive(Debug, Default)]
pub(in crate::passthrough) struct Chat {
    stream: Stream,
    /// By the index of the choice.
    calls: BTreeMap<u64, Calls>,
}

/// The tool calls of a choice.
#[derive(Debug, Default)]
struct Calls {
    /// The next index, as the provider counts.
    next: u64,
    shift: Shift,
}

impl Shape for Chat {
    fn identity(&self) -> &'static [&'static str] {
        &[
            "id",
            "object",
            "created",
            "model",
            "system_fingerprint",
            "service_tier",
            "provider",
            "choices/*/index",
            "choices/*/delta/tool_calls/*/index",
            "choices/*/delta/content/*/type",
            "choices/*/delta/content/*/thinking/*/type",
            "choices/*/delta/reasoning_details/*/type",
            "choices/*/delta/reasoning_details/*/format",
            "choices/*/delta/reasoning_details/*/index",
        ]
    }

    fn seen(&mut self, json: &str) {
        self.stream.seen(json);
    }

    fn written(&mut self, _: Option<&str>, json: &str, chunks: &mut dyn Iterator<Item = &Chunk>) {
        let mut starts = false;
        self.stream.written(json, &mut chunks.inspect(|chunk| starts |= is_call(chunk)));
        if starts {
            self.count_calls(json);
        }
    }

    fn renumbers(&self) -> bool {
        self.calls.values().any(|calls| !calls.shift.is_empty())
    }

    fn renumber(&self, json: &str, edits: &mut Edits) {
        for choice in find(json, "choices/#") {
            let start = choice.start;
            let choice = &json[choice];
            let Some(calls) = self.calls.get(&number_at(choice, "index").unwrap_or(0)) else { continue };
            let mut inside = Edits::default();
            calls.shift.renumber(choice, "delta/tool_calls/#/index", &mut inside);
            edits.extend_from(inside, start);
        }
    }

    fn left_out(&mut self, _: Option<&str>, json: &str) {
        for choice in find(json, "choices/#").into_iter().map(|range| &json[range]) {
            let Some(calls) = self.calls_of(number_at(choice, "index").unwrap_or(0)) else { continue };
            for call in find(choice, "delta/tool_calls/#").into_iter().map(|range| &choice[range]) {
                if !find(call, "function/name").is_empty() {
                    let index = number_at(call, "index").unwrap_or(calls.next);
                    calls.next = calls.next.max(index.saturating_add(1));
                    calls.shift.close(index);
                }
            }
        }
    }

    fn tool_call(&mut self, call: &ToolCall, lane: Lane, template: Option<&Template>) -> Option<Vec<Event>> {
        let choice = template.and_then(|t| number_at(&t.json, "choices/#/index")).unwrap_or(u64::from(lane.choice));
        let calls = self.calls_of(choice)?;
        let index = calls.shift.apply(calls.next);
        calls.shift.open(calls.next);
        let (id, name, arguments) = (Quoted(&call.id), Quoted(&call.name), Quoted(&call.arguments));
        Some(vec![self.stream.object(CHUNK, &format!(
            r#""choices":[{{"index":{choice},"delta":{{"tool_calls":[{{"index":{index},"id":{id},"type":"function","function":{{"name":{name},"arguments":{arguments}}}}}]}},"finish_reason":null}}]"#
        ))])
    }

    /// Reasoning that an observer made out of answer text.
    fn chunk(&mut self, chunk: &Chunk) -> Option<Event> {
        let Body::Delta { lane: Lane { choice, channel: Channel::Reasoning, .. }, text } = chunk.body() else {
            return None;
        };
        let text = Quoted(text);
        Some(self.stream.object(
            CHUNK,
            &format!(r#""choices":[{{"index":{choice},"delta":{{"reasoning_content":{text}}},"finish_reason":null}}]"#),
        ))
    }

    fn ending(&mut self, ending: &Ending<'_>) -> Vec<Event> {
        self.stream.ending(ending, CHUNK, |choice| {
            format!(r#""choices":[{{"index":{choice},"delta":{{}},"finish_reason":"content_filter"}}]"#)
        })
    }
}

fn is_call(chunk: &Chunk) -> bool {
    matches!(chunk.body(), Body::ToolCallStart(_) | Body::ToolCall(_) | Body::ProviderToolStart(_))
}

impl Chat {
    /// The calls of a choice. `None` if there are too many choices.
    fn calls_of(&mut self, choice: u64) -> Option<&mut Calls> {
        if self.calls.len() >= MAX_TRACKED && !self.calls.contains_key(&choice) {
            return None;
        }
        Some(self.calls.entry(choice).or_default())
    }

    /// Notes the indices of the calls in an event that was written, with the provider's own numbers.
    fn count_calls(&mut self, json: &str) {
        for choice in find(json, "choices/#").into_iter().map(|range| &json[range]) {
            let Some(calls) = self.calls_of(number_at(choice, "index").unwrap_or(0)) else { continue };
            for call in find(choice, "delta/tool_calls/#").into_iter().map(|range| &choice[range]) {
                let index = number_at(call, "index").unwrap_or(calls.next);
                calls.next = calls.next.max(index.saturating_add(1));
            }
        }
    }
}

/// Legacy completions: text alone.
#[derive(Debug, Default)]
pub(in crate::passthrough) struct Completions {
    stream: Stream,
}

impl Shape for Completions {
    fn identity(&self) -> &'static [&'static str] {
        &["id", "object", "created", "model", "system_fingerprint", "choices/*/index"]
    }

    fn seen(&mut self, json: &str) {
        self.stream.seen(json);
    }

    fn written(&mut self, _: Option<&str>, json: &str, chunks: &mut dyn Iterator<Item = &Chunk>) {
        self.stream.written(json, chunks);
    }

    fn tool_call(&mut self, _: &ToolCall, _: Lane, _: Option<&Template>) -> Option<Vec<Event>> {
        None
    }

    fn ending(&mut self, ending: &Ending<'_>) -> Vec<Event> {
        self.stream.ending(ending, "text_completion", |choice| {
            format!(r#""choices":[{{"text":"","index":{choice},"logprobs":null,"finish_reason":"content_filter"}}]"#)
        })
    }
}

//! Ollama: lines, of which the last one is done.

use streamkeeper_contract::{Body, Channel, Chunk, Lane, ToolCall};

use crate::json::{Quoted, find};
use crate::passthrough::{splice::object, template::identity_of};

use super::{Ending, Event, Shape, Template};

/// One answer of `/api/chat` or `/api/generate`.
#[derive(Debug, Default)]
pub(in crate::passthrough) struct Ollama {
    /// The members that every line has, without braces.
    head: String,
    /// Lines have `response`, not `message`.
    generates: bool,
    done: bool,
}

impl Ollama {
    fn line(&self, members: &str) -> Event {
        let comma = if self.head.is_empty() { "" } else { "," };
        Event::unnamed(format!("{{{}{comma}{members}}}", self.head))
    }
}

impl Shape for Ollama {
    fn identity(&self) -> &'static [&'static str] {
        &["model", "created_at", "remote_model", "remote_host", "message/role", "done"]
    }

    fn seen(&mut self, json: &str) {
        if self.head.is_empty() {
            let head = identity_of(json, &["model", "created_at", "remote_model", "remote_host"]);
            self.head = head.trim_matches(['{', '}', '[', ']']).to_owned();
            self.generates = !find(json, "response").is_empty();
        }
    }

    fn written(&mut self, _: Option<&str>, json: &str, _: &mut dyn Iterator<Item = &Chunk>) {
        self.done |= find(json, "done").pop().is_some_and(|range| &json[range] == "true");
    }

    fn tool_call(&mut self, call: &ToolCall, _: Lane, _: Option<&Template>) -> Option<Vec<Event>> {
        if self.generates {
            return None;
        }
        let (id, name, arguments) = (Quoted(&call.id), Quoted(&call.name), object(&call.arguments));
        Some(vec![self.line(&format!(
            r#""message":{{"role":"assistant","content":"","tool_calls":[{{"id":{id},"function":{{"name":{name},"arguments":{arguments}}}}}]}},"done":false"#
        ))])
    }

    /// Reasoning that an observer made out of answer text.
    fn chunk(&mut self, chunk: &Chunk) -> Option<Event> {
        let Body::Delta { lane: Lane { channel: Channel::Reasoning, .. }, text } = chunk.body() else { return None };
        let text = Quoted(text);
        Some(self.line(&if self.generates {
            format!(r#""response":"","thinking":{text},"done":false"#)
        } else {
            format!(r#""message":{{"role":"assistant","content":"","thinking":{text}}},"done":false"#)
        }))
    }

    fn ending(&mut self, ending: &Ending<'_>) -> Vec<Event> {
        if std::mem::replace(&mut self.done, true) {
            return Vec::new();
        }
        if !ending.is_stop {
            return vec![Event::unnamed(format!(r#"{{"error":{}}}"#, Quoted(&ending.words)))];
        }
        let text = if self.generates { r#""response":"""# } else { r#""message":{"role":"assistant","content":""}"# };
        vec![self.line(&format!(r#"{text},"done":true,"done_reason":"content_filter""#))]
    }
}

//! Gemini: every event is a response of its own, and the last one says why it ended.

use streamkeeper_contract::{Chunk, Lane, ToolCall};

use crate::json::{Quoted, number_at};
use crate::passthrough::{splice::object, template::identity_of};

use super::{Choices, Ending, Event, Shape, Template};

/// One stream of responses.
#[derive(Debug, Default)]
pub(in crate::passthrough) struct Gemini {
    /// The members that every response has, without braces.
    head: String,
    choices: Choices,
}

impl Gemini {
    fn response(&self, candidate: &str) -> Event {
        let comma = if self.head.is_empty() { "" } else { "," };
        Event::unnamed(format!(r#"{{"candidates":[{candidate}]{comma}{}}}"#, self.head))
    }
}

impl Shape for Gemini {
    fn identity(&self) -> &'static [&'static str] {
        &[
            "modelVersion",
            "responseId",
            "createTime",
            "candidates/*/index",
            "candidates/*/content/role",
            "candidates/*/content/parts/*/thought",
        ]
    }

    fn seen(&mut self, json: &str) {
        if self.head.is_empty() {
            let head = identity_of(json, &["modelVersion", "responseId", "createTime"]);
            self.head = head.trim_matches(['{', '}', '[', ']']).to_owned();
        }
    }

    fn written(&mut self, _: Option<&str>, _: &str, chunks: &mut dyn Iterator<Item = &Chunk>) {
        self.choices.note(chunks);
    }

    fn tool_call(&mut self, call: &ToolCall, lane: Lane, template: Option<&Template>) -> Option<Vec<Event>> {
        let index = template
            .and_then(|template| number_at(&template.json, "candidates/#/index"))
            .unwrap_or(u64::from(lane.choice));
        let (id, name, args) = (Quoted(&call.id), Quoted(&call.name), object(&call.arguments));
        Some(vec![self.response(&format!(
            r#"{{"content":{{"parts":[{{"functionCall":{{"id":{id},"name":{name},"args":{args}}}}}],"role":"model"}},"index":{index}}}"#
        ))])
    }

    fn ending(&mut self, ending: &Ending<'_>) -> Vec<Event> {
        let (reason, words) = (if ending.is_stop { "SAFETY" } else { "OTHER" }, Quoted(&ending.words));
        self.choices
            .unfinished()
            .into_iter()
            .map(|index| {
                self.response(&format!(
                    r#"{{"content":{{"parts":[],"role":"model"}},"finishReason":"{reason}","finishMessage":{words},"index":{index}}}"#
                ))
            })
            .collect()
    }
}

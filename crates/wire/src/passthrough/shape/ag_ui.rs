//! AG-UI: everything that begins has an end of its own, and the run has exactly one.

use streamkeeper_contract::{Chunk, Lane, ToolCall};

use crate::json::{Quoted, string_at};

use super::{Ending, Event, MAX_TRACKED, Shape, Template};

/// One run.
#[derive(Debug, Default)]
pub(in crate::passthrough) struct AgUi {
    run: Option<(String, String)>,
    begun: bool,
    over: bool,
    /// What is open: the event that ends it, the member that names it, and its name.
    open: Vec<(&'static str, &'static str, String)>,
}

/// The event that opens, the one that closes, and the member that says which.
const PAIRS: &[(&str, &str, &str)] = &[
    ("TEXT_MESSAGE_START", "TEXT_MESSAGE_END", "messageId"),
    ("TOOL_CALL_START", "TOOL_CALL_END", "toolCallId"),
    ("REASONING_START", "REASONING_END", "messageId"),
    ("REASONING_MESSAGE_START", "REASONING_MESSAGE_END", "messageId"),
    ("THINKING_START", "THINKING_END", ""),
    ("THINKING_TEXT_MESSAGE_START", "THINKING_TEXT_MESSAGE_END", ""),
    ("STEP_STARTED", "STEP_FINISHED", "stepName"),
];

/// A member under its name, or as servers written by hand spell it.
fn member(json: &str, name: &str) -> Option<String> {
    string_at(json, name).or_else(|| string_at(json, &snake_case(name)))
}

fn snake_case(name: &str) -> String {
    name.chars().fold(String::new(), |mut out, c| {
        if c.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
        out
    })
}

impl Shape for AgUi {
    fn identity(&self) -> &'static [&'static str] {
        &["type", "messageId", "message_id", "toolCallId", "tool_call_id", "subagentRunId"]
    }

    fn echoes(&self) -> &'static [&'static str] {
        &["rawEvent", "raw_event"]
    }

    fn seen(&mut self, json: &str) {
        if self.run.is_none()
            && let (Some(thread), Some(run)) = (member(json, "threadId"), member(json, "runId"))
        {
            self.run = Some((thread, run));
        }
    }

    fn written(&mut self, _: Option<&str>, json: &str, _: &mut dyn Iterator<Item = &Chunk>) {
        let Some(kind) = string_at(json, "type") else { return };
        match kind.as_str() {
            "RUN_STARTED" => (self.begun, self.over) = (true, false),
            "RUN_FINISHED" | "RUN_ERROR" => self.over = true,
            kind => {
                for (start, end, name) in PAIRS {
                    let id = || if name.is_empty() { String::new() } else { member(json, name).unwrap_or_default() };
                    if kind == *start && self.open.len() < MAX_TRACKED {
                        self.open.push((end, name, id()));
                    } else if kind == *end
                        && let id = id()
                        && let Some(at) = self.open.iter().rposition(|open| open.0 == *end && open.2 == id)
                    {
                        self.open.remove(at);
                    }
                }
            }
        }
    }

    fn tool_call(&mut self, call: &ToolCall, _: Lane, template: Option<&Template>) -> Option<Vec<Event>> {
        let (id, name, arguments) = (Quoted(&call.id), Quoted(&call.name), Quoted(&call.arguments));
        let parent = template.and_then(|template| member(&template.json, "messageId"));
        let parent = parent.map(|parent| format!(r#","parentMessageId":{}"#, Quoted(&parent))).unwrap_or_default();
        Some(vec![
            Event::unnamed(format!(r#"{{"type":"TOOL_CALL_START","toolCallId":{id},"toolCallName":{name}{parent}}}"#)),
            Event::unnamed(format!(r#"{{"type":"TOOL_CALL_ARGS","toolCallId":{id},"delta":{arguments}}}"#)),
            Event::unnamed(format!(r#"{{"type":"TOOL_CALL_END","toolCallId":{id}}}"#)),
        ])
    }

    fn ending(&mut self, ending: &Ending<'_>) -> Vec<Event> {
        if std::mem::replace(&mut self.over, true) {
            return Vec::new();
        }
        let (thread, run) = self.run.clone().unwrap_or_default();
        let mut events = Vec::new();
        if !self.begun {
            events.push(Event::unnamed(format!(
                r#"{{"type":"RUN_STARTED","threadId":{},"runId":{}}}"#,
                Quoted(&thread),
                Quoted(&run)
            )));
        }
        for (end, name, id) in std::mem::take(&mut self.open).into_iter().rev() {
            let id = if name.is_empty() { String::new() } else { format!(r#","{name}":{}"#, Quoted(&id)) };
            events.push(Event::unnamed(format!(r#"{{"type":"{end}"{id}}}"#)));
        }
        events.push(Event::unnamed(ending.ag_ui_terminal(&thread, &run)));
        events
    }
}

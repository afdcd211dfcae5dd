//! Cohere v2: content and tool calls are numbered apart, and `[DONE]` follows the end.

use streamkeeper_contract::{Chunk, Lane, ToolCall};

use crate::json::{Edits, Quoted, number_at, string_at};

use super::{Before, Ending, Event, MAX_TRACKED, Shape, Shift, Template};

/// One message.
#[derive(Debug, Default)]
pub(in crate::passthrough) struct Cohere {
    id: Option<String>,
    begun: bool,
    finished: bool,
    done: bool,
    /// Content and calls that are open: how their end is called, and their index as written.
    open: Vec<(&'static str, u64)>,
    /// The next index of a call, as the provider counts.
    calls: u64,
    shift: Shift,
    /// Calls that were left out, as the provider counts.
    gone: Vec<u64>,
}

impl Cohere {
    fn kind(name: Option<&str>, json: &str) -> String {
        string_at(json, "type").or_else(|| name.map(str::to_owned)).unwrap_or_default()
    }
}

impl Shape for Cohere {
    fn identity(&self) -> &'static [&'static str] {
        &["type", "index", "delta/message/content/type"]
    }

    fn seen(&mut self, json: &str) {
        if self.id.is_none() {
            self.id = string_at(json, "id");
        }
    }

    fn written(&mut self, name: Option<&str>, json: &str, _: &mut dyn Iterator<Item = &Chunk>) {
        let index = number_at(json, "index").unwrap_or(0);
        if self.open.len() == MAX_TRACKED {
            self.open.remove(0);
        }
        match Self::kind(name, json).as_str() {
            "message-start" => self.begun = true,
            "content-start" => self.open.push(("content-end", index)),
            "tool-call-start" => {
                self.calls = self.calls.max(index.saturating_add(1));
                self.open.push(("tool-call-end", self.shift.apply(index)));
            }
            "content-end" => self.open.retain(|open| *open != ("content-end", index)),
            "tool-call-end" => {
                let index = self.shift.apply(index);
                self.open.retain(|open| *open != ("tool-call-end", index));
            }
            "message-end" => self.finished = true,
            _ => self.done |= json.trim() == "[DONE]",
        }
    }

    fn renumbers(&self) -> bool {
        !self.shift.is_empty()
    }

    fn renumber(&self, json: &str, edits: &mut Edits) {
        if !string_at(json, "type").is_some_and(|kind| kind.starts_with("tool-call")) {
            return;
        }
        self.shift.renumber(json, "index", edits);
    }

    fn before(&mut self, name: Option<&str>, json: &str) -> Before {
        let gone = !self.gone.is_empty()
            && Self::kind(name, json).starts_with("tool-call")
            && number_at(json, "index").is_some_and(|index| self.gone.contains(&index));
        if gone { Before::LeaveOut } else { Before::Write }
    }

    fn left_out(&mut self, name: Option<&str>, json: &str) {
        if Self::kind(name, json) == "tool-call-start" && self.gone.len() < MAX_TRACKED {
            let index = number_at(json, "index").unwrap_or(self.calls);
            self.calls = self.calls.max(index.saturating_add(1));
            self.shift.close(index);
            self.gone.push(index);
        }
    }

    fn tool_call(&mut self, call: &ToolCall, _: Lane, _: Option<&Template>) -> Option<Vec<Event>> {
        let index = self.shift.apply(self.calls);
        self.shift.open(self.calls);
        let (id, name, arguments) = (Quoted(&call.id), Quoted(&call.name), Quoted(&call.arguments));
        let event =
            |kind: &'static str, rest: &str| Event::new(kind, format!(r#"{{"type":"{kind}","index":{index}{rest}}}"#));
        Some(vec![
            event(
                "tool-call-start",
                &format!(
                    r#","delta":{{"message":{{"tool_calls":{{"id":{id},"type":"function","function":{{"name":{name},"arguments":""}}}}}}}}"#
                ),
            ),
            event(
                "tool-call-delta",
                &format!(r#","delta":{{"message":{{"tool_calls":{{"function":{{"arguments":{arguments}}}}}}}}}"#),
            ),
            event("tool-call-end", ""),
        ])
    }

    fn ending(&mut self, ending: &Ending<'_>) -> Vec<Event> {
        if std::mem::replace(&mut self.done, true) {
            return Vec::new();
        }
        let mut events = Vec::new();
        if !self.finished {
            if !self.begun {
                let id = self.id.as_deref().unwrap_or_default();
                events.push(Event::new(
                    "message-start",
                    format!(
                        r#"{{"type":"message-start","id":{},"delta":{{"message":{{"role":"assistant","content":[],"tool_plan":"","tool_calls":[],"citations":[]}}}}}}"#,
                        Quoted(id)
                    ),
                ));
            }
            for (kind, index) in std::mem::take(&mut self.open) {
                events.push(Event::new(kind, format!(r#"{{"type":"{kind}","index":{index}}}"#)));
            }
            let error = Quoted(ending.code);
            events.push(Event::new(
                "message-end",
                format!(r#"{{"type":"message-end","delta":{{"finish_reason":"ERROR","error":{error}}}}}"#),
            ));
        }
        events.push(Event::unnamed("[DONE]"));
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_count_from_the_chunks_of_the_provider() {
        let mut cohere = Cohere::default();
        let start = r#"{"type":"tool-call-start","index":2}"#;
        cohere.written(None, start, &mut std::iter::empty());
        let lane = Lane::TEXT;
        let call = ToolCall { lane, id: "a".into(), name: "f".into(), arguments: "{}".into() };
        let events = cohere.tool_call(&call, lane, None).unwrap();
        assert_eq!(number_at(&events[0].json, "index"), Some(3));
    }
}

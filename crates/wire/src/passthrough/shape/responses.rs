//! OpenAI Responses: items with an index each, events with a number each, and an end that repeats everything.

use streamkeeper_contract::{Lane, ToolCall};

use crate::json::{Edits, Quoted, find, number_at, string_at};

use super::{Before, Ending, Event, MAX_TRACKED, Shape, Shift, Template};

/// One response.
#[derive(Debug, Default)]
pub(in crate::passthrough) struct Responses {
    /// `response` of the first event that has one.
    response: Option<String>,
    over: bool,
    /// Of `output_index`.
    shift: Shift,
    /// Items that were put in, with their place in the output, ascending.
    items: Vec<(u64, String)>,
    /// Items that were left out, as the provider counts.
    gone: Vec<u64>,
    /// The number of the provider's last event.
    number: u64,
    /// How many more events were written than the provider sent.
    sequence: i64,
}

const OVER: &[&str] = &["response.completed", "response.incomplete", "response.failed", "response.cancelled"];

impl Responses {
    fn item(call: &ToolCall, status: &str, arguments: &str) -> String {
        let (id, name, arguments) = (Quoted(&call.id), Quoted(&call.name), Quoted(arguments));
        let item = Self::item_id(call);
        format!(
            r#"{{"id":{},"type":"function_call","status":"{status}","arguments":{arguments},"call_id":{id},"name":{name}}}"#,
            Quoted(&item)
        )
    }

    fn item_id(call: &ToolCall) -> String {
        format!("fc_{}", call.id)
    }
}

impl Shape for Responses {
    fn identity(&self) -> &'static [&'static str] {
        &["type", "sequence_number", "item_id", "output_index", "content_index", "summary_index"]
    }

    fn came(&mut self, json: &str) {
        if let Some(number) = number_at(json, "sequence_number") {
            self.number = number;
        }
    }

    fn seen(&mut self, json: &str) {
        if self.response.is_none() {
            let response = find(json, "response").pop().filter(|range| range.len() <= 64 * 1024);
            self.response = response.map(|range| json[range].to_owned());
        }
    }

    fn written(&mut self, name: Option<&str>, json: &str, _: &mut dyn Iterator<Item = &streamkeeper_contract::Chunk>) {
        let stated = string_at(json, "type");
        let kind = stated.as_deref().or(name).unwrap_or_default();
        self.over |= OVER.contains(&kind) || json.trim() == "[DONE]";
    }

    fn renumbers(&self) -> bool {
        self.sequence != 0 || !self.shift.is_empty()
    }

    fn renumber(&self, json: &str, edits: &mut Edits) {
        for range in find(json, "sequence_number") {
            if let Ok(number) = json[range.clone()].parse::<u64>()
                && self.sequence != 0
            {
                edits.replace(range, number.saturating_add_signed(self.sequence));
            }
        }
        self.shift.renumber(json, "output_index", edits);
        let changed = !self.items.is_empty() || !self.gone.is_empty();
        if !changed || !string_at(json, "type").is_some_and(|kind| OVER.contains(&kind.as_str())) {
            return;
        }
        // The end repeats all items, so what was put in has its place there too, and what was left out has none.
        let output: Vec<_> = find(json, "response/output/#");
        let kept: Vec<_> = (0..output.len()).filter(|index| !self.gone.contains(&(*index as u64))).collect();
        let mut items = self.items.iter().peekable();
        for (index, range) in output.iter().enumerate() {
            while let Some((_, item)) = items.next_if(|(place, _)| *place < self.shift.apply(index as u64)) {
                edits.replace(range.start..range.start, format!("{item},"));
            }
            if self.gone.contains(&(index as u64)) {
                // With the comma after it, or, if nothing follows, the one before.
                let gone = match (output.get(index + 1), kept.last().filter(|last| **last < index)) {
                    (Some(next), _) => range.start..next.start,
                    (None, Some(last)) => output[*last].end..range.end,
                    (None, None) => range.clone(),
                };
                edits.replace(gone, "");
            }
        }
        let rest: Vec<&str> = items.map(|(_, item)| item.as_str()).collect();
        if let (false, Some(array)) = (rest.is_empty(), find(json, "response/output").pop()) {
            let comma = if kept.is_empty() { "" } else { "," };
            edits.replace(array.end - 1..array.end - 1, format!("{comma}{}", rest.join(",")));
        }
    }

    fn before(&mut self, _: Option<&str>, json: &str) -> Before {
        let gone =
            !self.gone.is_empty() && number_at(json, "output_index").is_some_and(|index| self.gone.contains(&index));
        if gone { Before::LeaveOut } else { Before::Write }
    }

    fn insert(&mut self, json: String, after: bool) -> String {
        let number = self.number.saturating_add(u64::from(after)).saturating_add_signed(self.sequence);
        self.sequence += 1;
        let mut edits = Edits::default();
        find(&json, "sequence_number").into_iter().for_each(|range| edits.replace(range, number));
        edits.apply(&json)
    }

    fn left_out(&mut self, name: Option<&str>, json: &str) {
        if number_at(json, "sequence_number").is_some() {
            self.sequence -= 1;
        }
        let stated = string_at(json, "type");
        if stated.as_deref().or(name) == Some("response.output_item.added")
            && self.gone.len() < MAX_TRACKED
            && let Some(index) = number_at(json, "output_index")
        {
            self.shift.close(index);
            self.gone.push(index);
        }
    }

    fn tool_call(&mut self, call: &ToolCall, _: Lane, template: Option<&Template>) -> Option<Vec<Event>> {
        let index = number_at(&template?.json, "output_index")?;
        if self.items.len() == MAX_TRACKED {
            return None;
        }
        let place = self.shift.apply(index.saturating_add(1));
        self.shift.open(index.saturating_add(1));
        self.items.push((place, Self::item(call, "completed", &call.arguments)));
        let (item, arguments, name) = (Self::item_id(call), Quoted(&call.arguments), Quoted(&call.name));
        let item_id = Quoted(&item);
        let event = |kind: &'static str, members: &str| {
            Event::new(kind, format!(r#"{{"type":"{kind}","sequence_number":0,"output_index":{place},{members}}}"#))
        };
        Some(vec![
            event("response.output_item.added", &format!(r#""item":{}"#, Self::item(call, "in_progress", ""))),
            event("response.function_call_arguments.delta", &format!(r#""item_id":{item_id},"delta":{arguments}"#)),
            event(
                "response.function_call_arguments.done",
                &format!(r#""item_id":{item_id},"name":{name},"arguments":{arguments}"#),
            ),
            event(
                "response.output_item.done",
                &format!(r#""item":{}"#, Self::item(call, "completed", &call.arguments)),
            ),
        ])
    }

    fn ending(&mut self, ending: &Ending<'_>) -> Vec<Event> {
        if std::mem::replace(&mut self.over, true) {
            return Vec::new();
        }
        let (code, words) = (Quoted(ending.code), Quoted(&ending.words));
        let (kind, status, details, error) = if ending.is_stop {
            ("response.incomplete", "incomplete", r#"{"reason":"content_filter"}"#.to_owned(), "null".to_owned())
        } else {
            let error = format!(r#"{{"code":{code},"message":{words}}}"#);
            ("response.failed", "failed", "null".to_owned(), error)
        };
        let unknown = r#"{"id":"","object":"response","created_at":0,"status":null,"error":null,"incomplete_details":null,"model":"","output":[],"parallel_tool_calls":true,"tool_choice":"auto","tools":[],"usage":null}"#;
        let response = self.response.as_deref().unwrap_or(unknown);
        let mut edits = Edits::default();
        let mut missing = String::new();
        for (member, value) in [
            ("status", Quoted(status).to_string()),
            ("incomplete_details", details),
            ("error", error),
            ("output", "[]".to_owned()),
        ] {
            let found = find(response, member);
            if found.is_empty() {
                missing.push_str(&format!(r#","{member}":{value}"#));
            }
            found.into_iter().for_each(|range| edits.replace(range, &value));
        }
        let end = response.len().saturating_sub(1);
        edits.replace(end..end, missing);
        let response = edits.apply(response);
        vec![Event::new(kind, format!(r#"{{"type":"{kind}","sequence_number":0,"response":{response}}}"#))]
    }
}

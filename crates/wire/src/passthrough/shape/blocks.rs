//! Anthropic Messages, alone and inside Claude Code, and Bedrock Converse: numbered blocks, one after the other.

use streamkeeper_contract::{Body, Channel, Chunk, Lane, ToolCall};

use crate::json::{Edits, Entries, Quoted, find, number_at, string_at};

use super::{Before, Ending, Event, MAX_TRACKED, Shape, Shift, Template};
use crate::passthrough::{splice::object, template::identity_of};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Words {
    Anthropic,
    ClaudeCode,
    Converse,
}

/// A message of blocks.
#[derive(Debug)]
pub(in crate::passthrough) struct Blocks {
    words: Words,
    /// Members of every line around an event (Claude Code), without braces.
    around: String,
    /// `message` of the event that began it.
    message: Option<String>,
    begun: bool,
    finished: bool,
    over: bool,
    /// The blocks that are open, as they were written.
    open: Vec<u64>,
    /// The last block, as the provider counts.
    last: u64,
    shift: Shift,
    /// A block that had to be closed for something put in, as the provider counts: it is opened again if more of it comes.
    suspended: Option<(u64, Channel)>,
    /// Blocks that were left out, as the provider counts.
    gone: Vec<u64>,
    /// Events stand under their name in an object (recorded Converse).
    wrapped: bool,
}

enum Kind {
    Begin,
    Start,
    Stop,
    Finish,
    Over,
    Other,
}

impl Blocks {
    pub(super) fn anthropic() -> Self {
        Self::new(Words::Anthropic)
    }

    pub(super) fn claude_code() -> Self {
        Self::new(Words::ClaudeCode)
    }

    pub(super) fn converse() -> Self {
        Self::new(Words::Converse)
    }

    fn new(words: Words) -> Self {
        Self {
            words,
            around: String::new(),
            message: None,
            begun: false,
            finished: false,
            over: false,
            open: Vec::new(),
            last: 0,
            shift: Shift::default(),
            suspended: None,
            gone: Vec::new(),
            wrapped: false,
        }
    }

    fn index_paths(&self) -> &'static [&'static str] {
        match self.words {
            Words::Anthropic => &["index"],
            Words::ClaudeCode => &["event/index"],
            Words::Converse if self.wrapped => &[
                "contentBlockStart/contentBlockIndex",
                "contentBlockDelta/contentBlockIndex",
                "contentBlockStop/contentBlockIndex",
            ],
            Words::Converse => &["contentBlockIndex"],
        }
    }

    fn index(&self, json: &str) -> Option<u64> {
        self.index_paths().iter().find_map(|path| number_at(json, path))
    }

    fn kind(&self, name: Option<&str>, json: &str) -> Kind {
        let stated;
        let kind = match self.words {
            Words::Converse if self.wrapped => {
                stated = Entries::of(json, 0).next().map(|entry| entry.key().to_owned());
                stated.as_deref().unwrap_or_default()
            }
            Words::Converse => name.unwrap_or_default(),
            Words::Anthropic | Words::ClaudeCode => {
                let path = if self.words == Words::Anthropic { "type" } else { "event/type" };
                stated = string_at(json, path).or_else(|| string_at(json, "type"));
                stated.as_deref().or(name).unwrap_or_default()
            }
        };
        match kind {
            "message_start" | "messageStart" => Kind::Begin,
            "content_block_start" | "contentBlockStart" => Kind::Start,
            "content_block_stop" | "contentBlockStop" => Kind::Stop,
            "message_delta" | "messageStop" => Kind::Finish,
            "message_stop" if self.words == Words::Anthropic => Kind::Over,
            "result" if self.words == Words::ClaudeCode => Kind::Over,
            _ => Kind::Other,
        }
    }

    fn open_block(&mut self, written: u64) {
        if !self.open.contains(&written) && self.open.len() < MAX_TRACKED {
            self.open.push(written);
        }
    }

    /// An event of this kind with these further members.
    fn event(&self, kind: &'static str, members: &str) -> Event {
        match self.words {
            Words::Converse if self.wrapped => Event::unnamed(format!(r#"{{"{kind}":{{{members}}}}}"#)),
            Words::Converse => Event::new(kind, format!("{{{members}}}")),
            Words::Anthropic if members.is_empty() => Event::new(kind, format!(r#"{{"type":"{kind}"}}"#)),
            Words::Anthropic => Event::new(kind, format!(r#"{{"type":"{kind}",{members}}}"#)),
            Words::ClaudeCode => {
                let comma = if members.is_empty() { "" } else { "," };
                let event = format!(r#"{{"type":"{kind}"{comma}{members}}}"#);
                let around = if self.around.is_empty() { String::new() } else { format!(",{}", self.around) };
                Event::unnamed(format!(r#"{{"type":"stream_event","event":{event}{around}}}"#))
            }
        }
    }

    fn start_tool(&self, index: u64, call: &ToolCall) -> Event {
        let (id, name) = (Quoted(&call.id), Quoted(&call.name));
        match self.words {
            Words::Converse => self.event(
                "contentBlockStart",
                &format!(r#""contentBlockIndex":{index},"start":{{"toolUse":{{"name":{name},"toolUseId":{id}}}}}"#),
            ),
            _ => self.event(
                "content_block_start",
                &format!(
                    r#""index":{index},"content_block":{{"type":"tool_use","id":{id},"name":{name},"input":{{}}}}"#
                ),
            ),
        }
    }

    fn input(&self, index: u64, call: &ToolCall) -> Event {
        let input = Quoted(&call.arguments);
        match self.words {
            Words::Converse => self.event(
                "contentBlockDelta",
                &format!(r#""contentBlockIndex":{index},"delta":{{"toolUse":{{"input":{input}}}}}"#),
            ),
            _ => self.event(
                "content_block_delta",
                &format!(r#""index":{index},"delta":{{"type":"input_json_delta","partial_json":{input}}}"#),
            ),
        }
    }

    fn stop(&self, index: u64) -> Event {
        match self.words {
            Words::Converse => self.event("contentBlockStop", &format!(r#""contentBlockIndex":{index}"#)),
            _ => self.event("content_block_stop", &format!(r#""index":{index}"#)),
        }
    }

    /// A call as a whole message, where messages come whole.
    fn whole_call(&self, call: &ToolCall, template: &Template) -> Event {
        let said = |path: &str| string_at(&template.json, path).unwrap_or_default();
        let (message, model) = (said("message/id"), said("message/model"));
        let (message, model) = (Quoted(&message), Quoted(&model));
        let (id, name, input) = (Quoted(&call.id), Quoted(&call.name), object(&call.arguments));
        let around = if self.around.is_empty() { String::new() } else { format!(",{}", self.around) };
        Event::unnamed(format!(
            r#"{{"type":"assistant","message":{{"id":{message},"type":"message","role":"assistant","model":{model},"content":[{{"type":"tool_use","id":{id},"name":{name},"input":{input}}}],"stop_reason":null,"stop_sequence":null}}{around}}}"#
        ))
    }

    /// The end of a message that was stopped. Its usage repeats what was said at the beginning: readers want one.
    fn refused(&self) -> Event {
        let tokens = self.message.as_deref().and_then(|message| number_at(message, "usage/output_tokens")).unwrap_or(0);
        self.event(
            "message_delta",
            &format!(
                r#""delta":{{"stop_reason":"refusal","stop_sequence":null}},"usage":{{"output_tokens":{tokens}}}"#
            ),
        )
    }

    /// Opens a block again. Converse opens blocks of text by their first piece.
    fn reopen(&self, index: u64, channel: Channel) -> Option<Event> {
        let block = match (self.words, channel) {
            (Words::Converse, _) => return None,
            (_, Channel::Reasoning) => r#"{"type":"thinking","thinking":"","signature":""}"#,
            _ => r#"{"type":"text","text":""}"#,
        };
        Some(self.event("content_block_start", &format!(r#""index":{index},"content_block":{block}"#)))
    }
}

impl Shape for Blocks {
    fn echoes(&self) -> &'static [&'static str] {
        match self.words {
            Words::ClaudeCode => &["tool_use_result"],
            _ => &[],
        }
    }

    fn identity(&self) -> &'static [&'static str] {
        match self.words {
            Words::Anthropic => &["type", "index", "delta/type"],
            Words::ClaudeCode => &[
                "type",
                "event/type",
                "event/index",
                "event/delta/type",
                "message/id",
                "message/type",
                "message/role",
                "message/model",
                "message/content/*/type",
                "session_id",
                "parent_tool_use_id",
                "uuid",
            ],
            Words::Converse => &["contentBlockIndex", "contentBlockDelta/contentBlockIndex"],
        }
    }

    fn seen(&mut self, json: &str) {
        if self.words == Words::Converse && !self.wrapped {
            self.wrapped = Entries::of(json, 0)
                .next()
                .is_some_and(|entry| entry.key() == "messageStart" || entry.key().starts_with("contentBlock"))
                && find(json, "contentBlockIndex").is_empty();
        }
        if self.message.is_none() {
            let path = if self.words == Words::ClaudeCode { "event/message" } else { "message" };
            self.message =
                find(json, path).pop().filter(|range| range.len() <= 16 * 1024).map(|range| json[range].into());
        }
        if self.words == Words::ClaudeCode && self.around.is_empty() {
            let around = identity_of(json, &["session_id", "parent_tool_use_id", "uuid"]);
            self.around = around.trim_matches(['{', '}', '[', ']']).to_owned();
        }
    }

    fn written(&mut self, name: Option<&str>, json: &str, chunks: &mut dyn Iterator<Item = &Chunk>) {
        let index = self.index(json);
        match self.kind(name, json) {
            Kind::Begin => {
                (self.begun, self.finished) = (true, false);
                self.open.clear();
                self.last = 0;
                self.shift = Shift::default();
                self.suspended = None;
                self.gone.clear();
            }
            Kind::Start => {
                let index = index.unwrap_or(0);
                self.last = index;
                self.open_block(self.shift.apply(index));
            }
            Kind::Stop => {
                let index = self.shift.apply(index.unwrap_or(0));
                self.open.retain(|open| *open != index);
            }
            Kind::Finish => self.finished = true,
            Kind::Over => self.over = true,
            Kind::Other => {}
        }
        for chunk in chunks {
            if self.words == Words::Converse
                && let (Body::Delta { .. } | Body::PartStart(_), Some(index)) = (chunk.body(), index)
            {
                // A block of text that has no start of its own.
                self.last = index;
                self.open_block(self.shift.apply(index));
            }
        }
    }

    fn before(&mut self, name: Option<&str>, json: &str) -> Before {
        if !self.gone.is_empty() && self.index(json).is_some_and(|index| self.gone.contains(&index)) {
            return Before::LeaveOut;
        }
        let Some((index, channel)) = self.suspended else { return Before::Write };
        if self.index(json) != Some(index) {
            return Before::Write;
        }
        self.suspended = None;
        if let Kind::Stop = self.kind(name, json) {
            return Before::LeaveOut;
        }
        self.shift.pull(index);
        self.shift.open(index);
        let written = self.shift.apply(index);
        self.open_block(written);
        match self.reopen(written, channel) {
            Some(event) => Before::Insert(event),
            None => Before::Write,
        }
    }

    fn renumbers(&self) -> bool {
        !self.shift.is_empty() || self.suspended.is_some()
    }

    fn renumber(&self, json: &str, edits: &mut Edits) {
        self.index_paths().iter().for_each(|path| self.shift.renumber(json, path, edits));
    }

    fn left_out(&mut self, name: Option<&str>, json: &str) {
        let starts = matches!(self.kind(name, json), Kind::Start);
        if let (true, Some(index)) = (starts && self.gone.len() < MAX_TRACKED, self.index(json)) {
            self.shift.close(index);
            self.gone.push(index);
        }
    }

    fn tool_call(&mut self, call: &ToolCall, lane: Lane, template: Option<&Template>) -> Option<Vec<Event>> {
        if self.words == Words::ClaudeCode && !self.begun {
            return template.map(|template| vec![self.whole_call(call, template)]);
        }
        let index = template.and_then(|template| self.index(&template.json)).unwrap_or(self.last);
        let mut events = Vec::with_capacity(4);
        let written = self.shift.apply(index);
        if self.suspended.is_none() {
            if let Some(at) = self.open.iter().position(|open| *open == written) {
                self.open.remove(at);
                events.push(self.stop(written));
            }
            self.suspended = Some((index, lane.channel));
        }
        let new = self.shift.apply(index.saturating_add(1));
        self.shift.open(index.saturating_add(1));
        events.extend([self.start_tool(new, call), self.input(new, call), self.stop(new)]);
        Some(events)
    }

    fn ending(&mut self, ending: &Ending<'_>) -> Vec<Event> {
        if std::mem::replace(&mut self.over, true) {
            return Vec::new();
        }
        let mut events = Vec::new();
        if !self.begun && self.words == Words::Anthropic {
            let unknown = r#"{"id":"","type":"message","role":"assistant","model":"","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":0,"output_tokens":0}}"#;
            let message = self.message.as_deref().unwrap_or(unknown);
            events.push(self.event("message_start", &format!(r#""message":{message}"#)));
        }
        if !self.begun && self.words == Words::Converse {
            events.push(self.event("messageStart", r#""role":"assistant""#));
        }
        let mut open = std::mem::take(&mut self.open);
        open.sort_unstable();
        events.extend(open.into_iter().map(|index| self.stop(index)));
        let unfinished = !std::mem::replace(&mut self.finished, true);
        match self.words {
            Words::Anthropic => {
                if unfinished {
                    events.push(self.refused());
                }
                if !ending.is_stop {
                    events.push(self.event("error", &ending.anthropic_error()));
                }
                events.push(self.event("message_stop", ""));
            }
            Words::ClaudeCode => {
                if self.begun && unfinished {
                    events.push(self.refused());
                    events.push(self.event("message_stop", ""));
                }
                let around = if self.around.is_empty() { String::new() } else { format!(",{}", self.around) };
                let error = format!("{}: {}", ending.code, ending.words);
                let error = Quoted(&error);
                events.push(Event::unnamed(format!(
                    r#"{{"type":"result","subtype":"error_during_execution","is_error":true,"duration_ms":0,"duration_api_ms":0,"num_turns":1{around},"total_cost_usd":0,"usage":{{"input_tokens":0,"output_tokens":0}},"errors":[{error}]}}"#
                )));
            }
            Words::Converse => {
                if unfinished {
                    events.push(self.event("messageStop", r#""stopReason":"guardrail_intervened""#));
                }
                if !ending.is_stop {
                    let words = Quoted(&ending.words);
                    events.push(self.event("modelStreamErrorException", &format!(r#""message":{words}"#)));
                }
            }
        }
        events
    }
}

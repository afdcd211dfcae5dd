//! One module a family of formats: how an event is written where the provider wrote none, and how a stream ends before its end.
//!
//! A shape sees the JSON of events, before and after they are written, and answers with more JSON. It knows no bytes around it.

mod ag_ui;
mod blocks;
mod chat;
mod chunks;
mod cohere;
mod gemini;
mod ollama;
mod responses;

use std::{borrow::Cow, fmt};

use streamkeeper_contract::{Body, Chunk, Lane, ToolCall};

use crate::{
    Format,
    ending::Ending,
    json::{Edits, find},
};

use super::template::Template;

/// The most things of one kind that a shape keeps track of: open blocks, choices, places where something was put in. What comes beyond
/// is written as it is, but not closed, counted or renumbered.
const MAX_TRACKED: usize = 4096;

/// An event to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Event {
    /// Its name, for framings that state one.
    pub(super) name: Option<Cow<'static, str>>,
    /// Its payload: JSON, or an end mark.
    pub(super) json: String,
}

impl Event {
    pub(super) fn new(name: &'static str, json: String) -> Self {
        Self { name: Some(Cow::Borrowed(name)), json }
    }

    pub(super) fn unnamed(json: impl Into<String>) -> Self {
        Self { name: None, json: json.into() }
    }
}

/// What has to happen before an event may be written.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Before {
    /// Nothing.
    Write,
    /// This has to be written first.
    Insert(Event),
    /// It must not be written: what it says was said already.
    LeaveOut,
}

/// What is particular about a family of formats.
pub(super) trait Shape: Send + fmt::Debug {
    /// The members of an event that say to which text it belongs, and those that every event has.
    fn identity(&self) -> &'static [&'static str];

    /// The members of an event that may repeat what the others say, in some other shape: they go where anything of the event changes.
    fn echoes(&self) -> &'static [&'static str] {
        &[]
    }

    /// Every event of the provider, before it is known what of it is delivered. Must be cheap.
    fn came(&mut self, json: &str) {
        let _ = json;
    }

    /// Like [`came`](Shape::came), but not for the second and later events of a text.
    fn seen(&mut self, json: &str) {
        let _ = json;
    }

    /// The provider's event goes out, numbered as the provider did, with these chunks in it. Not called for events of text alone.
    fn written(&mut self, name: Option<&str>, json: &str, chunks: &mut dyn Iterator<Item = &Chunk>) {
        let _ = (name, json, chunks);
    }

    /// What is needed before this event, numbered as the provider did.
    fn before(&mut self, name: Option<&str>, json: &str) -> Before {
        let _ = (name, json);
        Before::Write
    }

    /// Whether numbers in later events have to change.
    fn renumbers(&self) -> bool {
        false
    }

    /// Changes the numbers of an event.
    fn renumber(&self, json: &str, edits: &mut Edits) {
        let _ = (json, edits);
    }

    /// An event is put in: before the provider's last one, or `after` it. Gives it its number in the stream.
    fn insert(&mut self, json: String, after: bool) -> String {
        let _ = after;
        json
    }

    /// An event of the provider was left out.
    fn left_out(&mut self, name: Option<&str>, json: &str) {
        let _ = (name, json);
    }

    /// A whole tool call that an observer made out of text of this lane. `None` if the format has no place for one.
    fn tool_call(&mut self, call: &ToolCall, lane: Lane, template: Option<&Template>) -> Option<Vec<Event>>;

    /// Another way to write any chunk.
    fn chunk(&mut self, chunk: &Chunk) -> Option<Event> {
        let _ = chunk;
        None
    }

    /// What ends a stream that did not end by itself. Nothing if it did.
    fn ending(&mut self, ending: &Ending<'_>) -> Vec<Event>;
}

/// By how much numbers change: one more for each place where something was put in, one less where something was left out.
#[derive(Debug, Default)]
pub(super) struct Shift(Vec<(u64, i64)>);

impl Shift {
    /// From here on, as the provider numbers, everything is one further.
    pub(super) fn open(&mut self, from: u64) {
        self.add(from, 1);
    }

    /// Everything past this number is one less.
    pub(super) fn close(&mut self, number: u64) {
        self.add(number.saturating_add(1), -1);
    }

    fn add(&mut self, from: u64, by: i64) {
        if let Some(last) = self.0.last_mut().filter(|last| last.0 == from && (last.1 > 0) == (by > 0)) {
            last.1 += by;
        } else if self.0.len() < MAX_TRACKED {
            self.0.push((from, by));
        }
    }

    /// What was put in after `number` stands before it now.
    pub(super) fn pull(&mut self, number: u64) {
        self.0
            .iter_mut()
            .filter(|(from, by)| *from == number.saturating_add(1) && *by > 0)
            .for_each(|(from, _)| *from = number);
    }

    pub(super) fn apply(&self, number: u64) -> u64 {
        let by = self.0.iter().filter(|(from, _)| *from <= number).map(|(_, by)| by).sum();
        number.saturating_add_signed(by)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Changes the numbers at this path.
    pub(super) fn renumber(&self, json: &str, path: &str, edits: &mut Edits) {
        for range in find(json, path) {
            if let Ok(number) = json[range.clone()].parse()
                && self.apply(number) != number
            {
                edits.replace(range, self.apply(number));
            }
        }
    }
}

/// The shape of a format, of which this is an event.
pub(super) fn shape(format: Format, json: &str) -> Box<dyn Shape> {
    match format {
        Format::OpenAiChat => Box::<chat::Chat>::default(),
        Format::OpenAiCompletions => Box::<chat::Completions>::default(),
        Format::OpenAiResponses => Box::<responses::Responses>::default(),
        Format::AnthropicMessages => Box::new(blocks::Blocks::anthropic()),
        Format::ClaudeCode => Box::new(blocks::Blocks::claude_code()),
        Format::BedrockConverse => Box::new(blocks::Blocks::converse()),
        // A model's own format.
        Format::BedrockInvoke if !find(json, "type").is_empty() => Box::new(blocks::Blocks::anthropic()),
        Format::BedrockInvoke if !find(json, "choices").is_empty() => Box::<chat::Chat>::default(),
        Format::CohereV2 => Box::<cohere::Cohere>::default(),
        Format::Gemini => Box::<gemini::Gemini>::default(),
        Format::Ollama => Box::<ollama::Ollama>::default(),
        Format::AgUi => Box::<ag_ui::AgUi>::default(),
        Format::Jsonl => Box::<chunks::Chunks>::default(),
        Format::BedrockInvoke | Format::Raw => Box::new(Unknown),
    }
}

/// Nothing is known of the format: nothing is put in, and a stream that is cut off just ends.
#[derive(Debug)]
pub(super) struct Unknown;

impl Shape for Unknown {
    fn identity(&self) -> &'static [&'static str] {
        &[]
    }

    fn tool_call(&mut self, _: &ToolCall, _: Lane, _: Option<&Template>) -> Option<Vec<Event>> {
        None
    }

    fn ending(&mut self, _: &Ending<'_>) -> Vec<Event> {
        Vec::new()
    }
}

/// The choices that are done, of those that were seen.
#[derive(Debug, Default)]
struct Choices {
    open: Vec<u16>,
    done: Vec<u16>,
}

impl Choices {
    fn note(&mut self, chunks: &mut dyn Iterator<Item = &Chunk>) {
        for chunk in chunks {
            match chunk.body() {
                Body::Finish(finish) => {
                    self.open.retain(|choice| *choice != finish.choice);
                    if !self.done.contains(&finish.choice) && self.done.len() < MAX_TRACKED {
                        self.done.push(finish.choice);
                    }
                }
                Body::MessageStart(message) => self.see(message.choice),
                _ => {
                    if let Some(lane) = chunk.lane() {
                        self.see(lane.choice);
                    }
                }
            }
        }
    }

    fn see(&mut self, choice: u16) {
        if !self.open.contains(&choice) && !self.done.contains(&choice) && self.open.len() < MAX_TRACKED {
            self.open.push(choice);
        }
    }

    /// The choices that still need an end: the first one if none was seen.
    fn unfinished(&mut self) -> Vec<u16> {
        if self.open.is_empty() && self.done.is_empty() {
            self.open.push(0);
        }
        self.open.sort_unstable();
        std::mem::take(&mut self.open)
    }
}

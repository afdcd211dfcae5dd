//! Canonical JSON lines: an event is a chunk, so every chunk has a place.

use streamkeeper_contract::{Chunk, EndToken, Lane, ToolCall};

use crate::json::string_at;

use super::{Ending, Event, Shape, Template};

/// A stream of chunks.
#[derive(Debug, Default)]
pub(in crate::passthrough) struct Chunks {
    over: bool,
}

impl Shape for Chunks {
    fn identity(&self) -> &'static [&'static str] {
        &["kind", "lane"]
    }

    fn written(&mut self, _: Option<&str>, json: &str, _: &mut dyn Iterator<Item = &Chunk>) {
        self.over |= string_at(json, "kind").as_deref() == Some("end");
    }

    fn tool_call(&mut self, _: &ToolCall, _: Lane, _: Option<&Template>) -> Option<Vec<Event>> {
        None
    }

    fn chunk(&mut self, chunk: &Chunk) -> Option<Event> {
        serde_json::to_string(chunk).ok().map(Event::unnamed)
    }

    fn ending(&mut self, ending: &Ending<'_>) -> Vec<Event> {
        if std::mem::replace(&mut self.over, true) {
            return Vec::new();
        }
        self.chunk(&Chunk::end(EndToken::open(), ending.outcome.clone().into())).into_iter().collect()
    }
}

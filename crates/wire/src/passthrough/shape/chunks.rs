//! Canonical JSON lines: an event is a chunk, so every chunk has a place.

use streamkeeper_contract::{Body, Chunk, EndToken, Lane, Outcome, ToolCall};

use super::{Ending, Event, Shape, Template};

/// A stream of chunks.
#[derive(Debug, Default)]
pub(in crate::passthrough) struct Chunks {
    over: bool,
}

impl Shape for Chunks {
    fn identity(&self) -> &'static [&'static str] {
        &[]
    }

    fn written(&mut self, _: Option<&str>, _: &str, chunks: &mut dyn Iterator<Item = &Chunk>) {
        for chunk in chunks {
            self.over |= matches!(chunk.body(), Body::End(_));
        }
    }

    fn tool_call(&mut self, _: &ToolCall, _: Lane, _: Option<&Template>) -> Option<Vec<Event>> {
        None
    }

    fn chunk(&mut self, chunk: &Chunk) -> Option<Event> {
        serde_json::to_string(chunk).ok().map(Event::unnamed)
    }

    fn finished(&mut self, outcome: &Outcome) -> Vec<Event> {
        if std::mem::replace(&mut self.over, true) {
            return Vec::new();
        }
        self.chunk(&Chunk::end(EndToken::open(), outcome.clone().into())).into_iter().collect()
    }

    fn ending(&mut self, ending: &Ending<'_>) -> Vec<Event> {
        self.finished(ending.outcome)
    }
}

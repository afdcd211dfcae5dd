//! Canonical chunks: an event is a chunk in its JSON form.

use streamkeeper_contract::{Body, Chunk, Finish, Outcome, Provenance, Text};

use crate::output::{Leaf, Output};

use super::{Dialect, Event};

/// Reads chunks.
///
/// An `end` is not handed on, since whoever reads the chunks makes one of his own; what it says becomes a finish or an error, unless there was
/// one. Nor is provenance: its positions mean another stack.
#[derive(Debug, Default)]
pub(super) struct Jsonl {
    finished: bool,
}

impl Dialect for Jsonl {
    fn event(&mut self, event: &Event<'_>, out: &mut Output) {
        let Ok(chunk) = serde_json::from_str::<Chunk>(event.data) else {
            return out.raw(event.name, event.data);
        };
        out.known += 1;
        match chunk.body() {
            Body::End(end) => self.end(end.outcome(), out),
            Body::Error(error) => out.error(error.as_ref().clone()),
            _ => self.chunk(chunk, out),
        }
    }
}

impl Jsonl {
    fn chunk(&mut self, mut chunk: Chunk, out: &mut Output) {
        self.finished |= matches!(chunk.body(), Body::Finish(_));
        chunk.meta_mut().provenance = Provenance::default();
        let path = match chunk.body() {
            Body::Delta { .. } | Body::Snapshot(_) => "text",
            Body::ToolCall(_) => "arguments",
            Body::ToolResult(_) => "content",
            Body::ProviderToolOutput(_) => "output",
            Body::Annotation(_)
            | Body::Custom(_)
            | Body::StateSnapshot(_)
            | Body::StateDelta(_)
            | Body::MessagesSnapshot(_) => "value",
            Body::Raw(_) => "data",
            _ => "",
        };
        out.chunk(chunk, Leaf::new(path, [0; 4]));
    }

    fn end(&mut self, outcome: &Outcome, out: &mut Output) {
        out.ended = true;
        match outcome {
            Outcome::Finished { reason } if !self.finished && !out.failed => {
                self.finished = true;
                out.push(Body::Finish(Box::new(Finish { choice: 0, reason: reason.clone(), stated: None })));
            }
            Outcome::Finished { .. } => {}
            Outcome::Failed { error } => out.error(error.clone()),
            other => out.stated_end = Some(Text::from_static(other.code())),
        }
    }
}

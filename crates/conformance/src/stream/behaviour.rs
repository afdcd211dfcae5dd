use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use streamkeeper_contract::{Body, Channel, Chunk, Id, Json, Piece, Release, SideEvent, Text, Verdict, id};
use streamkeeper_stream::{Interest, InvocationResult, ObserverContext, StreamObserver, StreamWatcher};

/// What a scripted observer does. `docs/conformance.md` describes each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Does {
    /// Nothing.
    Look,
    /// Amends text to its upper case.
    Upper,
    /// Amends text that contains `find`.
    Replace {
        /// What to look for in one delta.
        find: String,
        /// What to put there.
        with: String,
    },
    /// Buffers text until so many bytes are pending.
    HoldUntil(usize),
    /// Buffers every delta.
    Hold,
    /// Buffers every delta and does not settle it.
    ForgetBarrier,
    /// Releases pending text but for its last bytes.
    Keep(usize),
    /// Releases these pieces in place of text.
    Release(Vec<String>),
    /// Stops at this entering chunk.
    StopAt(u64),
    /// Stops where pending text contains this.
    StopOn(String),
    /// Panics at this entering chunk.
    PanicAt(u64),
    /// Emits one event a chunk.
    Emit,
    /// Amends text to text of another lane.
    AmendOtherLane,
    /// Amends every opaque chunk.
    AmendOpaque,
}

const CHANNEL: Id = id!("test");
const SEEN: Id = id!("seen");

/// What happened to all observers of an invocation.
#[derive(Debug, Default)]
pub(super) struct Log {
    pub(super) verdicts: Vec<Value>,
    pub(super) saw: Vec<(Id, String)>,
    pub(super) ended: Vec<Id>,
    pub(super) result: Option<InvocationResult>,
}

/// An observer that does what a vector says and takes down what it is asked.
#[derive(Debug, Clone)]
pub(super) struct Scripted {
    pub(super) id: Id,
    pub(super) does: Does,
    pub(super) interest: Interest,
    pub(super) log: Arc<Mutex<Log>>,
}

impl Scripted {
    fn log(&self) -> MutexGuard<'_, Log> {
        // A panic that a vector asks for happens while nothing is locked; a poisoned log is still whole.
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn decide(&self, chunk: &Chunk, ctx: &ObserverContext<'_>) -> Verdict {
        let is_text = matches!(chunk.body(), Body::Delta { lane, .. } if lane.channel == Channel::Text);
        let amend = |text: String| chunk.with_text(text).map_or(Verdict::Continue, Verdict::Amend);
        let stop = || Verdict::stop("test.stop", "as told");
        let text = chunk.text().unwrap_or_default();
        match &self.does {
            Does::Upper if is_text => amend(text.to_uppercase()),
            Does::Replace { find, with } if is_text && text.contains(find.as_str()) => amend(text.replace(find, with)),
            Does::HoldUntil(bytes) if chunk.is_delta() && ctx.pending().len() < *bytes => Verdict::Buffer,
            Does::Hold | Does::ForgetBarrier if chunk.is_delta() => Verdict::Buffer,
            Does::Keep(bytes) if chunk.is_delta() => Release::unchanged().keep(last(ctx.pending(), *bytes)).into(),
            Does::Release(pieces) if is_text => release(pieces),
            Does::StopAt(index) if ctx.chunk_index() == *index => stop(),
            Does::StopOn(word) if is_text && ctx.pending().contains(word.as_str()) => stop(),
            // The same as `panic!`, without the message on stderr that the default hook prints.
            Does::PanicAt(index) if ctx.chunk_index() == *index => std::panic::resume_unwind(Box::new("as told")),
            Does::Emit => Verdict::Emit(vec![seen(chunk)]),
            Does::AmendOtherLane => match chunk.body() {
                Body::Delta { lane, text } => {
                    Verdict::Amend(Chunk::delta(lane.in_choice(lane.choice + 1), text.clone()))
                }
                _ => Verdict::Continue,
            },
            Does::AmendOpaque => match chunk.body() {
                Body::Opaque(opaque) => {
                    let mut opaque = opaque.clone();
                    opaque.data = "changed".into();
                    Verdict::Amend(Body::Opaque(opaque).into())
                }
                _ => Verdict::Continue,
            },
            _ => Verdict::Continue,
        }
    }
}

fn release(pieces: &[String]) -> Verdict {
    Release::pieces(pieces.iter().map(|piece| Piece::Text(Text::from(piece.as_str())))).into()
}

fn seen(chunk: &Chunk) -> SideEvent {
    SideEvent { channel: CHANNEL, name: SEEN, payload: Json::string(chunk.kind().as_str()) }
}

/// So many bytes at the end, fewer where a character would be cut, all if there are not so many.
fn last(text: &str, bytes: usize) -> usize {
    let from = text.len().saturating_sub(bytes);
    text.len() - (from..=text.len()).find(|&at| text.is_char_boundary(at)).unwrap_or(text.len())
}

impl StreamObserver for Scripted {
    fn interest(&self) -> Interest {
        self.interest
    }

    fn on_chunk(&mut self, chunk: &Chunk, ctx: &mut ObserverContext<'_>) -> Verdict {
        let shown = if chunk.is_delta() { chunk.text().unwrap_or_default() } else { chunk.kind().as_str() };
        self.log().saw.push((self.id.clone(), shown.to_owned()));
        let verdict = self.decide(chunk, ctx);
        if verdict != Verdict::Continue {
            let verdict = json!({"observer": self.id, "chunk": ctx.chunk_index(), "verdict": verdict.name()});
            self.log().verdicts.push(verdict);
        }
        verdict
    }

    fn on_barrier(&mut self, _: &mut ObserverContext<'_>) -> Verdict {
        match &self.does {
            Does::ForgetBarrier => Verdict::Buffer,
            Does::Release(pieces) => release(pieces),
            _ => Verdict::Continue,
        }
    }

    fn on_end_invocation(&mut self, result: &InvocationResult, _: &mut ObserverContext<'_>) {
        let mut log = self.log();
        log.ended.push(self.id.clone());
        log.result = Some(result.clone());
    }
}

/// The same as a watcher, which has no verdicts: events are all it can do.
impl StreamWatcher for Scripted {
    fn interest(&self) -> Interest {
        self.interest
    }

    fn on_chunk(&mut self, chunk: &Chunk, ctx: &mut ObserverContext<'_>) {
        if let Verdict::Emit(events) = StreamObserver::on_chunk(self, chunk, ctx) {
            events.into_iter().for_each(|event| ctx.emit(event));
        }
    }

    fn on_end_invocation(&mut self, result: &InvocationResult, ctx: &mut ObserverContext<'_>) {
        StreamObserver::on_end_invocation(self, result, ctx);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_bytes_cut_no_character() {
        for (text, bytes, expected) in
            [("abc", 2, 2), ("abc", 5, 3), ("a€", 1, 0), ("a€", 2, 0), ("a€", 3, 3), ("", 1, 0)]
        {
            assert_eq!(last(text, bytes), expected, "{text} {bytes}");
        }
    }
}

//! The state machine: chunks in, verdicts applied, chunks out.

mod account;
mod build;
mod ending;
mod failure;
mod fingerprint;
mod hold;
mod lanes;
mod outlet;
mod snapshot;
mod verdict;
mod way;

use std::{collections::VecDeque, fmt, sync::Arc};

use smallvec::SmallVec;
#[cfg(feature = "wire")]
use streamkeeper_contract::id;
use streamkeeper_contract::{Body, Chunk, EndToken, ErrorInfo, Hook, Id, Outcome, Text, Usage, Verdict};

pub use self::build::StackBuilder;
use self::{account::Account, hold::Slot, lanes::Lanes, outlet::Fault};
pub(crate) use self::{build::recorded_observers, outlet::Outlet};
use crate::{
    Limits, SourceEnd,
    context::{Call, Position},
};

/// The observers of one invocation, as a state machine: chunks in with [`push`](Stack::push), chunks out with [`pop`](Stack::pop).
///
/// No runtime, task, lock or clock is involved. After each `push` take what there is with `pop`; when
/// [`is_ended`](Stack::is_ended) says so, let go of the source without asking it again. At the end of the source call
/// [`finish`](Stack::finish), when it fails [`fail`](Stack::fail), to give up [`abort`](Stack::abort). Whichever comes first decides the
/// outcome; the last chunk to pop is then an `end`, and there is exactly one.
///
/// The invocation is over when that `end` has been popped, or when the stack is dropped. Then the observers are told, so that what nobody
/// took is not reported as delivered: a `Finished` that was never popped becomes `Dropped`.
///
/// With no observer a chunk passes without being moved to the heap; with observers that hold nothing there is no allocation per chunk.
pub struct Stack {
    slots: Vec<Slot>,
    call: Call,
    limits: Limits,
    out: VecDeque<Passed>,
    /// Where the short way ended for the chunk that entered last, see [`Stack::passes`].
    met: Option<(usize, Option<Result<Verdict, Fault>>)>,
    /// What is on its way, the next on top: a chunk or the end, and the position of the observer that it meets next.
    todo: Vec<(Item, usize)>,
    position: Position,
    account: Account,
    lanes: Lanes,
    /// Bytes held by all observers.
    held: usize,
    /// Pieces that may still be released for the chunk that entered last.
    pieces_left: usize,
    /// Tool calls made by observers so far.
    derived: u16,
    token: Option<EndToken>,
    outcome: Option<Arc<Outcome>>,
    is_closed: bool,
    is_text_only: bool,
    /// Somebody may change text, so that snapshots have to be compared.
    is_tracking: bool,
    #[cfg(feature = "wire")]
    told_no_place: bool,
    outlet: Outlet,
}

/// A chunk that has passed all observers, and which entering chunk made it pass.
pub(crate) struct Passed {
    pub(crate) index: u64,
    pub(crate) chunk: Chunk,
}

enum Item {
    Chunk(Chunk),
    /// A chunk that has come to this position before: the observer has failed over it.
    Again(Chunk),
    /// The end of the source: a barrier for everything.
    End,
}

/// An answer, and whether the chunk's text has joined a hold.
type Answer = (Result<Verdict, Fault>, bool);

impl Stack {
    /// Takes a chunk from the source and takes it through the observers. Does nothing once the outcome is decided.
    pub fn push(&mut self, chunk: Chunk) {
        if self.passes(&chunk) {
            self.out.push_back(self.passed(chunk));
        } else {
            self.go_on(chunk);
        }
    }

    /// [`push`](Stack::push), and the same chunk back if it passes everyone as it is and nothing waits before it.
    ///
    /// That is then a delivery, as if it had been popped. `None` says nothing about the chunk: go on with [`pop`](Stack::pop).
    #[inline]
    pub fn transit(&mut self, chunk: Chunk) -> Option<Chunk> {
        if self.passes(&chunk) {
            return Some(chunk);
        }
        self.go_on(chunk);
        None
    }

    /// The source is at its end: settles what is held and ends the invocation. The outcome is `Failed` if the provider reported an error
    /// inside the stream; else `Finished` if every choice that said anything has a finish; else `Truncated`.
    pub fn finish(&mut self) {
        self.note_source_end(|| SourceEnd::Finished);
        self.settle_all();
        let outcome = self.account.outcome(&self.lanes);
        self.end(outcome);
    }

    /// The source failed: settles what is held and ends the invocation as `Failed`.
    ///
    /// Returns whether this error is the outcome. An observer may have ended the invocation first, or the provider may have reported an
    /// error inside the stream.
    pub fn fail(&mut self, error: ErrorInfo) -> bool {
        self.note_source_end(|| SourceEnd::Failed(error.clone()));
        self.settle_all();
        if self.is_ended() {
            return false;
        }
        let reported = self.account.error.is_some();
        let outcome = if reported { self.account.outcome(&self.lanes) } else { Outcome::Failed { error } };
        self.end(outcome);
        !reported
    }

    /// The caller gives up: what is held is withheld, and the invocation ends as `Aborted`. Does nothing once the outcome is decided.
    pub fn abort(&mut self, reason: Option<Text>) {
        self.end_with(Outcome::Aborted { reason, cancel_requested: false });
    }

    /// Ends the invocation with an outcome that an engine has decided, for example a cancel request or an interrupt. Like
    /// [`abort`](Stack::abort), what is held is withheld.
    pub fn end_with(&mut self, outcome: Outcome) {
        self.note_source_end(|| SourceEnd::Ended(outcome.clone()));
        self.end(outcome);
    }

    /// Takes the next chunk for the consumer. The last one is the `end`; with it the invocation is over.
    pub fn pop(&mut self) -> Option<Chunk> {
        let passed = self.out.pop_front()?;
        self.deliver(passed.index, &passed.chunk);
        if self.out.is_empty() && self.is_ended() {
            self.close();
        }
        Some(passed.chunk)
    }

    /// Whether there is something to pop.
    #[inline]
    pub(crate) fn waits(&self) -> bool {
        !self.out.is_empty()
    }

    /// Takes the next chunk that is not the `end`, without delivering it: that is said by [`deliver`](Stack::deliver).
    pub(crate) fn take(&mut self) -> Option<Passed> {
        self.out.pop_front_if(|passed| !matches!(passed.chunk.body(), Body::End(_)))
    }

    /// The consumer takes a chunk. The one place where deliveries are known.
    #[inline]
    pub(crate) fn deliver(&mut self, index: u64, chunk: &Chunk) {
        if self.outlet.is_recording() {
            self.outlet.output(index, chunk);
        }
    }

    /// Puts a chunk back that was taken and is not delivered.
    pub(crate) fn give_back(&mut self, passed: Passed) {
        self.out.push_front(passed);
    }

    /// Withholds a chunk that was taken and that the consumer's type cannot say.
    pub(crate) fn refuse(&mut self, chunk: &Chunk) {
        self.account.chunks_out = self.account.chunks_out.saturating_sub(1);
        if let Some(lane) = account::text_lane(chunk) {
            let len = account::text_len(chunk);
            if account::is_answer(lane) {
                self.position.delivered = self.position.delivered.saturating_sub(len);
            }
            if let Some(state) = self.lanes.open(lane) {
                state.delivered = state.delivered.saturating_sub(len);
            }
        }
        self.withhold(chunk);
        if let Some(observer) = chunk.provenance().positions().last().and_then(|i| self.call.observers.get(i)) {
            let fault = Fault::NotRun("the client's items cannot say what the observer released");
            self.outlet.failed(observer, Hook::OnChunk, fault);
        }
    }

    /// Something that was delivered has no place in the consumer's format. Reported once.
    #[cfg(feature = "wire")]
    pub(crate) fn has_no_place(&mut self) {
        if !std::mem::replace(&mut self.told_no_place, true) {
            let fault = Fault::NotRun("the format has no place for what was delivered");
            self.outlet.failed(&id!("passthrough"), Hook::OnChunk, fault);
        }
    }

    /// From here on only texts may be amended: the consumer's type can show nothing else.
    pub(crate) fn fix_all_but_text(&mut self) {
        self.is_text_only = true;
    }

    /// Whether the outcome is decided. The source is then of no more use and should be dropped; chunks may still be there to pop.
    #[inline]
    pub fn is_ended(&self) -> bool {
        self.outcome.is_some()
    }

    /// The outcome, once it is decided.
    pub fn outcome(&self) -> Option<&Arc<Outcome>> {
        self.outcome.as_ref()
    }

    /// The observers, in order: the names behind the positions of a chunk's provenance.
    pub fn observers(&self) -> &Arc<[Id]> {
        &self.call.observers
    }

    /// Tokens as the provider has stated them so far, delivered or not.
    pub fn usage(&self) -> Option<&Usage> {
        self.account.usage.as_ref()
    }

    /// Bytes that observers hold now.
    pub fn held_len(&self) -> usize {
        self.held
    }
}

impl fmt::Debug for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stack")
            .field("observers", &self.call.observers)
            .field("chunks_in", &self.account.chunks_in)
            .field("waiting", &self.out.len())
            .field("held_len", &self.held)
            .field("outcome", &self.outcome.as_ref().map(|outcome| outcome.code()))
            .finish_non_exhaustive()
    }
}

/// Chunks that an observer releases at once.
type Released = SmallVec<[Chunk; 1]>;

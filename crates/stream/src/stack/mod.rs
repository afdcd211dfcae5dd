//! The state machine: chunks in, verdicts applied, chunks out.

mod account;
mod build;
mod failure;
mod fingerprint;
mod hold;
mod lanes;
mod outlet;
mod snapshot;
mod verdict;

use std::{
    collections::VecDeque,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use smallvec::SmallVec;
#[cfg(feature = "wire")]
use streamkeeper_contract::id;
use streamkeeper_contract::{Body, Chunk, EndToken, ErrorInfo, Hook, Id, Outcome, Text, Usage, Verdict};

pub use self::build::StackBuilder;
use self::{
    account::Account,
    hold::{Slot, State},
    lanes::{LaneState, Lanes},
    outlet::{Fault, discard},
    verdict::Deed,
};
pub(crate) use self::{build::recorded_observers, outlet::Outlet};
use crate::{
    Action, InvocationResult, Limits, ObserverContext, Rule, SourceEnd,
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
        if let Some(passed) = self.pass(chunk) {
            self.out.push_back(passed);
        }
    }

    /// [`push`](Stack::push), and the same chunk back if it passes everyone as it is and nothing waits before it.
    ///
    /// That is then a delivery, as if it had been popped. `None` says nothing about the chunk: go on with [`pop`](Stack::pop).
    #[inline]
    pub fn transit(&mut self, chunk: Chunk) -> Option<Chunk> {
        let passed = self.pass(chunk)?;
        self.deliver(passed.index, &passed.chunk);
        Some(passed.chunk)
    }

    /// [`transit`](Stack::transit) without the delivery.
    #[inline]
    pub(crate) fn pass(&mut self, chunk: Chunk) -> Option<Passed> {
        if self.is_ended() {
            return None;
        }
        self.position.chunk_index = self.account.chunks_in;
        self.position.at = chunk.offset();
        self.account.chunks_in += 1;
        if self.outlet.is_recording() {
            self.outlet.chunk_index = self.position.chunk_index;
            self.outlet.input(&chunk);
        }
        let Body::Delta { lane, text } = chunk.body() else {
            self.push_rare(chunk);
            return None;
        };
        if let Some(state) = self.lanes.open(*lane) {
            state.entered += text.len() as u64;
            if self.is_tracking {
                state.enter(text);
            }
        }
        match self.ask_quiet(&chunk, 0) {
            (i, None) if i == self.slots.len() && self.out.is_empty() => {
                self.count(&chunk);
                Some(Passed { index: self.position.chunk_index, chunk })
            }
            (i, asked) => {
                self.go_on(chunk, i, asked);
                None
            }
        }
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

    /// A chunk that is no delta: none of them is frequent.
    #[cold]
    #[inline(never)]
    fn push_rare(&mut self, chunk: Chunk) {
        self.account.enter(&chunk);
        if let Some(state) = account::text_lane(&chunk).and_then(|lane| self.lanes.open(lane)) {
            LaneState::add(&mut state.entered, &chunk);
            if let Body::Snapshot(snapshot) = chunk.body()
                && self.is_tracking
                && state.enter_whole(&snapshot.text)
            {
                self.account.differing_snapshots += 1;
            }
        }
        if let Body::End(end) = chunk.body() {
            // A stream that is observed already: its end is ours.
            let outcome = Outcome::clone(end.outcome());
            self.settle_all();
            let outcome = if self.is_tracking { self.account.in_delivered_words(outcome) } else { outcome };
            return self.end(outcome);
        }
        self.start(Item::Chunk(chunk), 0);
    }

    fn note_source_end(&mut self, end: impl FnOnce() -> SourceEnd) {
        if !self.is_ended() && self.outlet.is_recording() {
            self.outlet.source_end(end());
        }
    }

    fn move_to_end(&mut self) {
        self.position.chunk_index = self.account.chunks_in;
        self.outlet.chunk_index = self.account.chunks_in;
    }

    fn settle_all(&mut self) {
        if !self.is_ended() {
            self.move_to_end();
            self.start(Item::End, 0);
        }
    }

    /// Goes on the long way where the short way ended.
    #[cold]
    #[inline(never)]
    fn go_on(&mut self, chunk: Chunk, i: usize, asked: Option<Result<Verdict, Fault>>) {
        self.pieces_left = self.limits.pieces_per_chunk;
        match asked {
            Some(answer) => {
                if let Some(chunk) = self.apply(i, chunk, (answer, false)) {
                    self.todo.push((Item::Chunk(chunk), i + 1));
                }
            }
            None => self.todo.push((Item::Chunk(chunk), i)),
        }
        self.run();
    }

    fn start(&mut self, item: Item, i: usize) {
        self.pieces_left = self.limits.pieces_per_chunk;
        self.todo.push((item, i));
        self.run();
    }

    /// Takes everything that is on its way to where it goes. A stack of work, not recursion: what an observer releases meets all later
    /// observers before anything behind it moves.
    fn run(&mut self) {
        while let Some((item, i)) = self.todo.pop() {
            if self.is_ended() {
                if let Item::Chunk(chunk) | Item::Again(chunk) = item {
                    self.withhold(&chunk);
                }
                continue;
            }
            if i == self.slots.len() {
                if let Item::Chunk(chunk) | Item::Again(chunk) = item {
                    self.enqueue(chunk);
                }
                continue;
            }
            // Before, not after, the interest is asked: a holder is settled whatever it declared.
            if let Some(at) = self.barrier_at(&item, i) {
                self.todo.push((item, i));
                self.settle(i, at);
                continue;
            }
            let passed = match item {
                Item::End => {
                    self.todo.push((Item::End, i + 1));
                    continue;
                }
                Item::Chunk(chunk) => self.meet(i, chunk),
                // Only an observer that has failed is met again: it is masked or passed by.
                Item::Again(chunk) => self.mask(i, chunk),
            };
            if let Some(chunk) = passed {
                self.todo.push((Item::Chunk(chunk), i + 1));
            }
        }
    }

    /// The first hold of an observer that may not stay behind.
    fn barrier_at(&self, item: &Item, i: usize) -> Option<usize> {
        let holds = &self.slots[i].holds;
        match item {
            Item::Chunk(chunk) | Item::Again(chunk) => holds.iter().position(|hold| chunk.is_barrier_for(hold.lane)),
            Item::End if holds.is_empty() => None,
            Item::End => Some(0),
        }
    }

    /// The short way: asks one observer after another while they hold nothing and let everything pass. Returns where that ended, and the
    /// answer that ended it.
    ///
    /// One `catch_unwind` for all of them: the position says whose panic it was.
    #[inline]
    fn ask_quiet(&mut self, chunk: &Chunk, from: usize) -> (usize, Option<Result<Verdict, Fault>>) {
        let mut i = from;
        if i == self.slots.len() {
            return (i, None);
        }
        let kind = chunk.kind();
        let mut ctx = ObserverContext {
            call: &self.call,
            position: self.position,
            lane: chunk.lane(),
            pending: chunk.text().unwrap_or_default(),
            held: 0,
            observer: i,
            outlet: &mut self.outlet,
        };
        let slots = &mut self.slots;
        let mut state = chunk.lane().and_then(|lane| self.lanes.open(lane)).filter(|state| state.is_apart());
        let asked = catch_unwind(AssertUnwindSafe(|| {
            while let Some(slot) = slots.get_mut(i).filter(|slot| slot.is_quiet()) {
                if let Some(seen) = state.as_mut().and_then(|state| state.seen_by(i)) {
                    seen.append(ctx.pending());
                }
                if slot.interest.contains(kind)
                    && let Some(observer) = &mut slot.observer
                {
                    ctx.observer = i;
                    match observer.on_chunk(chunk, &mut ctx) {
                        Verdict::Continue => {}
                        verdict => return Some(verdict),
                    }
                }
                i += 1;
            }
            None
        }));
        match asked {
            Ok(verdict) => (i, verdict.map(Ok)),
            Err(payload) => (i, Some(Err(Fault::Panic(payload)))),
        }
    }

    /// The long way, for one observer that has nothing to settle: shows it the chunk, or does in its place what has to be done.
    fn meet(&mut self, i: usize, chunk: Chunk) -> Option<Chunk> {
        match chunk.body() {
            Body::Delta { lane, text } => self.lanes.arrive(i, *lane, text),
            Body::Snapshot(_) if self.is_tracking => return self.meet_snapshot(i, chunk),
            _ => {}
        }
        match self.slots[i].state {
            State::Active if self.slots[i].interest.covers(&chunk) => self.ask(i, chunk),
            State::Active | State::Off => Some(chunk),
            State::Masking(_) => self.mask(i, chunk),
        }
    }

    fn ask(&mut self, i: usize, chunk: Chunk) -> Option<Chunk> {
        let slot = &mut self.slots[i];
        let mut held = 0;
        let mut joined = false;
        let mut pending = chunk.text().unwrap_or_default();
        if let Body::Delta { lane, text } = chunk.body()
            && let Some(at) = slot.hold_of(*lane)
        {
            let hold = &mut slot.holds[at];
            held = hold.text.len();
            hold.append(text, chunk.meta());
            self.held += text.len();
            pending = &hold.text;
            joined = true;
        }
        let Some(observer) = &mut slot.observer else { return Some(chunk) };
        let mut ctx = ObserverContext {
            call: &self.call,
            position: self.position,
            lane: chunk.lane(),
            pending,
            held,
            observer: i,
            outlet: &mut self.outlet,
        };
        let answer = catch_unwind(AssertUnwindSafe(|| observer.on_chunk(&chunk, &mut ctx))).map_err(Fault::Panic);
        self.apply(i, chunk, (answer, joined))
    }

    /// Puts a chunk that has passed everyone before the consumer.
    fn enqueue(&mut self, chunk: Chunk) {
        if self.is_void(&chunk) {
            self.account.opaque_withheld += u64::from(matches!(chunk.body(), Body::Opaque(_)));
            let deed = Deed::of_stack(Action::Withhold, Rule::ChangedPart);
            self.log(None, Hook::OnChunk, chunk.lane(), Some(deed));
            return;
        }
        self.count(&chunk);
        self.account.deliver(&chunk);
        self.out.push_back(Passed { index: self.position.chunk_index, chunk });
    }

    /// Whether a chunk is about text that is not delivered as it came: a signature over its part, or its tokens.
    fn is_void(&self, chunk: &Chunk) -> bool {
        match chunk.body() {
            Body::Opaque(opaque) => self.lanes.is_changed(opaque.lane.choice, opaque.lane.part),
            Body::Annotation(note) if note.is_logprobs() && self.is_tracking => {
                self.lanes.differs(note.lane) || self.slots.iter().any(|slot| slot.hold_of(note.lane).is_some())
            }
            _ => false,
        }
    }

    /// Counts a chunk as delivered; [`close`](Stack::close) takes back what was never popped.
    #[inline]
    fn count(&mut self, chunk: &Chunk) {
        self.account.chunks_out += 1;
        let Some(lane) = account::text_lane(chunk) else { return };
        match self.lanes.open(lane) {
            Some(state) => {
                let before = state.delivered;
                LaneState::add(&mut state.delivered, chunk);
                if account::is_answer(lane) {
                    self.position.delivered += state.delivered - before;
                }
            }
            None if account::is_answer(lane) => self.position.delivered += account::text_len(chunk),
            None => {}
        }
    }

    fn withhold(&mut self, chunk: &Chunk) {
        let Some(text) = chunk.text() else { return };
        match account::text_lane(chunk).and_then(|lane| self.lanes.open(lane)) {
            Some(state) => {
                state.changed = true;
                match chunk.body() {
                    Body::Snapshot(_) => {
                        let rest = (text.len() as u64).saturating_sub(state.delivered);
                        state.withheld = state.withheld.max(rest);
                    }
                    _ => state.withheld += text.len() as u64,
                }
            }
            None => self.account.withheld_elsewhere += text.len() as u64,
        }
        self.outlet.withheld(chunk.lane(), text);
    }

    /// Decides the outcome, if nobody has. The one place that makes a terminal.
    fn end(&mut self, outcome: Outcome) {
        let Some(token) = self.token.take() else { return };
        self.withhold_holds();
        let outcome = Arc::new(outcome);
        self.outcome = Some(outcome.clone());
        self.account.chunks_out += 1;
        self.out.push_back(Passed { index: self.position.chunk_index, chunk: Chunk::end(token, outcome) });
    }

    fn withhold_holds(&mut self) {
        for i in 0..self.slots.len() {
            for hold in std::mem::take(&mut self.slots[i].holds) {
                self.withhold(&hold.into_chunk(i));
            }
        }
        self.held = 0;
    }

    /// Tells the observers, once.
    fn close(&mut self) {
        if std::mem::replace(&mut self.is_closed, true) {
            return;
        }
        self.withhold_holds();
        let result = self.result();
        self.move_to_end();
        for i in 0..self.slots.len() {
            let slot = &mut self.slots[i];
            let Some(mut observer) = slot.observer.take() else { continue };
            if matches!(slot.state, State::Active) {
                let mut ctx = ObserverContext {
                    call: &self.call,
                    position: self.position,
                    lane: None,
                    pending: "",
                    held: 0,
                    observer: i,
                    outlet: &mut self.outlet,
                };
                let told = catch_unwind(AssertUnwindSafe(|| observer.on_end_invocation(&result, &mut ctx)));
                if let Err(payload) = told {
                    self.outlet.failed(&slot.id, Hook::OnEndInvocation, Fault::Panic(payload));
                }
            }
            discard(observer);
        }
        self.outlet.outcome(&result);
    }

    fn result(&mut self) -> InvocationResult {
        // What still waits was counted when it was put there, and nobody took it.
        let mut texts = self.lanes.texts();
        let mut delivered = self.position.delivered;
        let mut waiting = 0;
        for Passed { chunk, .. } in &self.out {
            let Some(lane) = account::text_lane(chunk) else { continue };
            let len = account::text_len(chunk);
            waiting += len;
            if account::is_answer(lane) {
                delivered = delivered.saturating_sub(len);
            }
            if let Some(text) = texts.iter_mut().find(|text| text.lane == lane) {
                text.delivered_len = text.delivered_len.saturating_sub(len);
            }
        }
        InvocationResult {
            outcome: self.outcome.clone().unwrap_or_else(|| Arc::new(Outcome::Dropped)),
            call_class: self.call.class.clone(),
            ordinal: self.call.ordinal,
            observers: self.call.observers.clone(),
            usage: self.account.usage.clone(),
            provider_finish: self.account.provider_finish().cloned(),
            provider_error: self.account.error.clone(),
            chunks_in: self.account.chunks_in,
            chunks_out: self.account.chunks_out - self.out.len() as u64,
            lanes: texts,
            delivered_len: delivered,
            withheld_len: self.lanes.withheld() + self.account.withheld_elsewhere + waiting,
            opaque_withheld: self.account.opaque_withheld,
            differing_snapshots: self.account.differing_snapshots,
            duration: self.position.at.duration(),
        }
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // A finish that the consumer never took did not happen.
        if !self.is_closed && self.outcome.as_ref().is_some_and(|outcome| outcome.is_finished()) {
            self.outcome = None;
        }
        if !self.is_closed {
            self.outlet.source_end(SourceEnd::Dropped);
        }
        self.close();
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

//! The way of a chunk through the observers: the short one for a delta that passes as it is, and the long one for everything else.

use std::panic::{AssertUnwindSafe, catch_unwind};

use streamkeeper_contract::{Body, Chunk, Hook, Lane, Outcome, Verdict};

use super::{Item, Passed, Stack, account, hold::State, lanes::LaneState, outlet::Fault, verdict::Deed};
use crate::{Action, ObserverContext, Rule};

impl Stack {
    /// Takes a chunk the short way: asks one observer after another while they hold nothing and let everything pass. If that is all of
    /// them, the chunk is delivered as it is. If not, [`go_on`](Stack::go_on) has to be called with the same chunk next.
    ///
    /// Most chunks pass, so this way does not move the chunk and has one `catch_unwind` for all observers: the position says whose
    /// panic it was.
    #[inline]
    pub(crate) fn passes(&mut self, chunk: &Chunk) -> bool {
        let Body::Delta { lane, text } = chunk.body() else { return false };
        if self.is_ended() || !self.out.is_empty() || self.outlet.is_recording() {
            return false;
        }
        self.begin(chunk);
        let is_counted = self.enter_delta(*lane, text);
        if !self.slots.is_empty() && !self.ask_all(chunk, *lane, text, is_counted) {
            return false;
        }
        self.account.chunks_out += 1;
        let len = text.len() as u64;
        if account::is_answer(*lane) {
            self.position.delivered += len;
        }
        if is_counted && let Some(state) = self.lanes.opened_last() {
            state.delivered += len;
        }
        true
    }

    /// The chunk that entered last, as one that has passed.
    pub(crate) fn passed(&self, chunk: Chunk) -> Passed {
        Passed { index: self.position.chunk_index, chunk }
    }

    /// Takes a chunk the long way, from where the short way ended. What passes is then to be popped.
    #[cold]
    #[inline(never)]
    pub(crate) fn go_on(&mut self, chunk: Chunk) {
        let met = self.met.take();
        if self.is_ended() {
            return;
        }
        self.pieces_left = self.limits.pieces_per_chunk;
        match met {
            Some((i, Some(answer))) => {
                if let Some(chunk) = self.apply(i, chunk, (answer, false)) {
                    self.todo.push((Item::Chunk(chunk), i + 1));
                }
            }
            Some((i, None)) => self.todo.push((Item::Chunk(chunk), i)),
            None => {
                self.begin(&chunk);
                if self.outlet.is_recording() {
                    self.outlet.chunk_index = self.position.chunk_index;
                    self.outlet.input(&chunk);
                }
                if let Body::End(end) = chunk.body() {
                    return self.enter_end(Outcome::clone(end.outcome()));
                }
                self.enter(&chunk);
                self.todo.push((Item::Chunk(chunk), 0));
            }
        }
        self.run();
    }

    #[inline]
    fn begin(&mut self, chunk: &Chunk) {
        self.position.chunk_index = self.account.chunks_in;
        self.position.at = chunk.offset();
        self.account.chunks_in += 1;
    }

    /// Returns whether the lane is counted.
    #[inline]
    fn enter_delta(&mut self, lane: Lane, text: &str) -> bool {
        let Some(state) = self.lanes.open(lane) else { return false };
        state.entered += text.len() as u64;
        if self.is_tracking {
            state.enter(text);
        }
        true
    }

    fn enter(&mut self, chunk: &Chunk) {
        if let Body::Delta { lane, text } = chunk.body() {
            self.enter_delta(*lane, text);
            return;
        }
        self.account.enter(chunk);
        if let Some(state) = account::text_lane(chunk).and_then(|lane| self.lanes.open(lane)) {
            LaneState::add(&mut state.entered, chunk);
            if let Body::Snapshot(snapshot) = chunk.body()
                && self.is_tracking
                && state.enter_whole(&snapshot.text)
            {
                self.account.differing_snapshots += 1;
            }
        }
    }

    /// A stream that is observed already: its end is ours.
    fn enter_end(&mut self, outcome: Outcome) {
        self.settle_all();
        let outcome = if self.is_tracking { self.account.in_delivered_words(outcome) } else { outcome };
        self.end(outcome);
    }

    /// Asks all observers about a delta. If one of them holds text, is masked, or answers with anything but `Continue`, that ends it, and
    /// [`met`](Stack) says where.
    #[inline]
    fn ask_all(&mut self, chunk: &Chunk, lane: Lane, text: &str, is_counted: bool) -> bool {
        let kind = lane.delta_kind();
        let mut ctx = ObserverContext {
            call: &self.call,
            position: self.position,
            lane: Some(lane),
            pending: text,
            held: 0,
            observer: 0,
            outlet: &mut self.outlet,
        };
        let mut state = self.lanes.opened_last().filter(|state| is_counted && state.is_apart());
        let slots = &mut self.slots;
        let met = &mut self.met;
        let mut at = 0;
        let asked = catch_unwind(AssertUnwindSafe(|| {
            for (i, slot) in slots.iter_mut().enumerate() {
                at = i;
                if !slot.holds.is_empty() {
                    *met = Some((i, None));
                    return false;
                }
                let observer = match &mut slot.state {
                    State::Active(observer) => Some(observer),
                    State::Off => None,
                    State::Masking(_) => {
                        *met = Some((i, None));
                        return false;
                    }
                };
                if let Some(seen) = state.as_mut().and_then(|state| state.seen_by(i)) {
                    seen.append(text);
                }
                if slot.interest.contains(kind)
                    && let Some(observer) = observer
                {
                    ctx.observer = i;
                    let verdict = observer.on_chunk(chunk, &mut ctx);
                    if !matches!(verdict, Verdict::Continue) {
                        *met = Some((i, Some(Ok(verdict))));
                        return false;
                    }
                    // There is nothing in it to drop, and looking for it costs as much as the call.
                    std::mem::forget(verdict);
                }
            }
            true
        }));
        asked.unwrap_or_else(|payload| {
            self.met = Some((at, Some(Err(Fault::Panic(payload)))));
            false
        })
    }

    pub(super) fn start(&mut self, item: Item, i: usize) {
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

    /// The long way, for one observer that has nothing to settle: shows it the chunk, or does in its place what has to be done.
    fn meet(&mut self, i: usize, chunk: Chunk) -> Option<Chunk> {
        match chunk.body() {
            Body::Delta { lane, text } => self.lanes.arrive(i, *lane, text),
            Body::Snapshot(_) if self.is_tracking => return self.meet_snapshot(i, chunk),
            _ => {}
        }
        match self.slots[i].state {
            State::Active(_) if self.slots[i].interest.covers(&chunk) => self.ask(i, chunk),
            State::Active(_) | State::Off => Some(chunk),
            State::Masking(_) => self.mask(i, chunk),
        }
    }

    pub(super) fn ask(&mut self, i: usize, chunk: Chunk) -> Option<Chunk> {
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
        let State::Active(observer) = &mut slot.state else { return Some(chunk) };
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

    pub(super) fn withhold(&mut self, chunk: &Chunk) {
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
}

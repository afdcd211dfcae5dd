//! The end of an invocation: decided once, told once.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use streamkeeper_contract::{Chunk, Hook, Outcome};

use super::{
    Item, Passed, Stack, account,
    hold::State,
    outlet::{Fault, discard},
};
use crate::{InvocationResult, ObserverContext, SourceEnd};

impl Stack {
    pub(super) fn note_source_end(&mut self, end: impl FnOnce() -> SourceEnd) {
        if !self.is_ended() && self.outlet.is_recording() {
            self.outlet.source_end(end());
        }
    }

    pub(super) fn move_to_end(&mut self) {
        self.position.chunk_index = self.account.chunks_in;
        self.outlet.chunk_index = self.account.chunks_in;
    }

    pub(super) fn settle_all(&mut self) {
        if !self.is_ended() {
            self.move_to_end();
            self.start(Item::End, 0);
        }
    }

    /// Decides the outcome, if nobody has. The one place that makes a terminal.
    pub(super) fn end(&mut self, outcome: Outcome) {
        let Some(token) = self.token.take() else { return };
        self.withhold_holds();
        let outcome = Arc::new(outcome);
        self.outcome = Some(outcome.clone());
        self.account.chunks_out += 1;
        self.out.push_back(Passed { index: self.position.chunk_index, chunk: Chunk::end(token, outcome) });
    }

    pub(super) fn withhold_holds(&mut self) {
        for i in 0..self.slots.len() {
            for hold in std::mem::take(&mut self.slots[i].holds) {
                self.withhold(&hold.into_chunk(i));
            }
        }
        self.held = 0;
    }

    /// Tells the observers, once.
    pub(super) fn close(&mut self) {
        if std::mem::replace(&mut self.is_closed, true) {
            return;
        }
        self.withhold_holds();
        let result = self.result();
        self.move_to_end();
        for i in 0..self.slots.len() {
            let slot = &mut self.slots[i];
            let State::Active(mut observer) = std::mem::replace(&mut slot.state, State::Off) else { continue };
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
                self.outlet.failed(&slot.who.id, Hook::OnEndInvocation, Fault::Panic(payload));
            }
            discard(observer);
        }
        self.outlet.outcome(&result);
    }

    pub(super) fn result(&mut self) -> InvocationResult {
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

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use streamkeeper_contract::{FailureDetail, FailureKind, FailureReport, FailureSink, Hook, Id, SideEvent};

use crate::EventSink;

/// All that leaves a stack sideways: events and failures.
pub(crate) struct Outlet {
    pub(super) events: Option<Arc<dyn EventSink>>,
    pub(super) failures: Arc<dyn FailureSink>,
}

/// Why an observer has failed.
#[derive(Debug)]
pub(super) enum Fault {
    Panic(Box<dyn Any + Send>),
    /// Which rule was broken, in our own words.
    Contract(&'static str),
    /// Which limit was met.
    Overflow(&'static str),
    /// What could not be done.
    NotRun(&'static str),
}

impl Fault {
    pub(super) fn kind(&self) -> FailureKind {
        match self {
            Self::Panic(_) => FailureKind::Panic,
            Self::Contract(_) => FailureKind::Contract,
            Self::Overflow(_) => FailureKind::Overflow,
            Self::NotRun(_) => FailureKind::NotRun,
        }
    }
}

impl Outlet {
    /// Hands an event to the sink. A sink that panics is let go of: neither the observer nor the stream is to blame.
    pub(crate) fn emit(&mut self, observer: usize, chunk_index: u64, event: SideEvent) {
        let _ = (observer, chunk_index);
        let Some(sink) = &self.events else { return };
        let channel = event.channel.clone();
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| sink.emit(event))) {
            self.events = None;
            self.failed(&channel, Hook::EventSink, Fault::Panic(payload));
        }
    }

    /// Reports a failure, once for each call of this.
    pub(super) fn failed(&mut self, component: &Id, hook: Hook, fault: Fault) {
        let report = FailureReport { component: component.clone(), hook, kind: fault.kind() };
        let failures = &self.failures;
        let reported = catch_unwind(AssertUnwindSafe(|| {
            failures.report(&report);
            if failures.wants_detail() {
                let detail = match &fault {
                    Fault::Panic(payload) => FailureDetail::Panic(panic_message(payload.as_ref())),
                    Fault::Contract(rule) | Fault::Overflow(rule) | Fault::NotRun(rule) => FailureDetail::Rule(rule),
                };
                failures.detail(&report, &detail);
            }
        }));
        if let Err(payload) = reported {
            discard(payload);
        }
        if let Fault::Panic(payload) = fault {
            discard(payload);
        }
    }
}

fn panic_message(payload: &(dyn Any + Send)) -> &str {
    payload
        .downcast_ref::<&'static str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or_default()
}

/// Drops a value of a user's type, whose `drop` may panic in turn.
pub(super) fn discard<T>(value: T) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
        // The payload of that second panic is leaked rather than dropped: it may do the same again.
        std::mem::forget(payload);
    }
}

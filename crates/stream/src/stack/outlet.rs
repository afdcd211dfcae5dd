use std::{
    any::Any,
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use streamkeeper_contract::{
    Chunk, FailureDetail, FailureKind, FailureReport, FailureSink, Hook, Id, Lane, Outcome, SideEvent, Text, id,
};

use crate::{Entry, EventSink, Header, InvocationResult, Recorder, SourceEnd, Summary, VerdictEntry};

/// All that leaves a stack sideways: events, failures, and what is recorded.
pub(crate) struct Outlet {
    pub(super) observers: Arc<[Id]>,
    pub(super) events: Option<Arc<dyn EventSink>>,
    pub(super) failures: Arc<dyn FailureSink>,
    pub(super) recorder: Option<Recorder>,
    /// Which chunk entered last.
    pub(super) chunk_index: u64,
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
    /// An error was returned.
    Error(io::Error),
}

impl Fault {
    pub(super) fn kind(&self) -> FailureKind {
        match self {
            Self::Panic(_) => FailureKind::Panic,
            Self::Contract(_) => FailureKind::Contract,
            Self::Overflow(_) => FailureKind::Overflow,
            Self::NotRun(_) => FailureKind::NotRun,
            Self::Error(_) => FailureKind::Error,
        }
    }
}

impl Outlet {
    /// Hands an event to the sink. A sink that panics is let go of: neither the observer nor the stream is to blame.
    pub(crate) fn emit(&mut self, observer: usize, event: SideEvent) {
        if self.is_recording() {
            let observer = self.observers.get(observer).cloned();
            self.record(Entry::Event { index: self.chunk_index, observer, event: event.clone() });
        }
        let Some(sink) = &self.events else { return };
        let channel = event.channel.clone();
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| sink.emit(event))) {
            self.events = None;
            self.failed(&channel, Hook::EventSink, Fault::Panic(payload));
        }
    }

    /// Reports a failure.
    pub(super) fn failed(&mut self, component: &Id, hook: Hook, fault: Fault) {
        let report = FailureReport { component: component.clone(), hook, kind: fault.kind() };
        let failures = &self.failures;
        let reported = catch_unwind(AssertUnwindSafe(|| {
            failures.report(&report);
            if failures.wants_detail() {
                let detail = match &fault {
                    Fault::Panic(payload) => FailureDetail::Panic(panic_message(payload.as_ref())),
                    Fault::Error(error) => FailureDetail::Error(error),
                    Fault::Contract(rule) | Fault::Overflow(rule) | Fault::NotRun(rule) => FailureDetail::Rule(rule),
                };
                failures.detail(&report, &detail);
            }
        }));
        if let Err(payload) = reported {
            discard(payload);
        }
        discard(fault);
        if self.is_recording() {
            self.record(Entry::Failure { index: self.chunk_index, failure: report });
        }
    }

    #[inline]
    pub(super) fn is_recording(&self) -> bool {
        self.recorder.is_some()
    }

    fn is_raw(&self) -> bool {
        self.recorder.as_ref().is_some_and(Recorder::is_raw)
    }

    pub(super) fn header(&mut self, header: impl FnOnce(&Recorder) -> Header) {
        if let Some(recorder) = &mut self.recorder {
            let header = header(recorder);
            let written = recorder.header(header);
            self.check(written);
        }
    }

    #[cold]
    pub(super) fn input(&mut self, chunk: &Chunk) {
        if self.is_raw() {
            self.record(Entry::Input { index: self.chunk_index, chunk: chunk.clone() });
        }
    }

    pub(super) fn source_end(&mut self, end: SourceEnd) {
        if self.is_raw() {
            self.record(Entry::SourceEnd { end });
        }
    }

    pub(super) fn verdict(&mut self, mut entry: VerdictEntry) {
        if !self.is_raw() {
            entry.verdict = None;
        }
        self.record(Entry::Verdict(Box::new(entry)));
    }

    pub(super) fn withheld(&mut self, lane: Option<Lane>, text: &str) {
        if self.is_recording() {
            let shown = self.is_raw().then(|| Text::from(text));
            self.record(Entry::Withheld { index: self.chunk_index, lane, len: text.len() as u64, text: shown });
        }
    }

    #[cold]
    pub(super) fn output(&mut self, index: u64, chunk: &Chunk) {
        self.record(Entry::Output { index, chunk: chunk.clone() });
    }

    pub(super) fn outcome(&mut self, result: &InvocationResult) {
        if self.is_recording() {
            let summary = Summary {
                chunks_in: result.chunks_in,
                chunks_out: result.chunks_out,
                delivered_len: result.delivered_len,
                withheld_len: result.withheld_len,
                duration: u64::try_from(result.duration.as_micros()).unwrap_or(u64::MAX),
            };
            self.record(Entry::Outcome { outcome: Outcome::clone(&result.outcome), summary });
        }
    }

    fn record(&mut self, entry: Entry) {
        if let Some(recorder) = &mut self.recorder {
            let written = recorder.entry(entry);
            self.check(written);
        }
    }

    /// A recorder that fails is let go of.
    fn check(&mut self, written: std::thread::Result<io::Result<()>>) {
        let fault = match written {
            Ok(Ok(())) => return,
            Ok(Err(error)) => Fault::Error(error),
            Err(payload) => Fault::Panic(payload),
        };
        if let Some(recorder) = self.recorder.take() {
            discard(recorder);
        }
        self.failed(&id!("recorder"), Hook::Record, fault);
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

//! Observers that do what a test says, and a run that shows what came of it.

use std::sync::{Arc, Mutex};

use streamkeeper_contract::{
    Body, Channel, Chunk, FailureDetail, FailureReport, FailureSink, FinishReason, Id, Json, Lane, SideEvent, Verdict,
};
use streamkeeper_stream::{
    EventQueue, Interest, InvocationResult, ObserverContext, ObserverFactoryContext, Observers, Registration, Stack,
    StreamObserver, StreamWatcher, from_fn,
};

pub(crate) const TEXT: Lane = Lane::TEXT;
pub(crate) const REASONING: Lane = Lane::new(Channel::Reasoning);
pub(crate) const ARGUMENTS: Lane = Lane::TEXT.in_part(1).arguments(1);

pub(crate) type OnChunk = fn(&Chunk, &mut ObserverContext<'_>) -> Verdict;
pub(crate) type End = fn(&mut Stack);
pub(crate) type OnBarrier = fn(&mut ObserverContext<'_>) -> Verdict;

/// An observer made of functions.
#[derive(Clone, Copy)]
pub(crate) struct On {
    interest: Interest,
    chunk: OnChunk,
    barrier: OnBarrier,
    end: fn(&InvocationResult, &mut ObserverContext<'_>),
}

impl On {
    pub(crate) fn chunk(chunk: OnChunk) -> Self {
        Self { interest: Interest::ALL, chunk, barrier: |_| Verdict::Continue, end: |_, _| {} }
    }

    /// Asked about deltas only, whatever the interest.
    pub(crate) fn delta(chunk: OnChunk) -> Self {
        Self::chunk(chunk).interest(Interest::channels(Channel::ALL))
    }

    pub(crate) fn interest(self, interest: Interest) -> Self {
        Self { interest, ..self }
    }

    pub(crate) fn barrier(self, barrier: OnBarrier) -> Self {
        Self { barrier, ..self }
    }

    pub(crate) fn end(self, end: fn(&InvocationResult, &mut ObserverContext<'_>)) -> Self {
        Self { end, ..self }
    }
}

impl StreamObserver for On {
    fn interest(&self) -> Interest {
        self.interest
    }

    fn on_chunk(&mut self, chunk: &Chunk, ctx: &mut ObserverContext<'_>) -> Verdict {
        (self.chunk)(chunk, ctx)
    }

    fn on_barrier(&mut self, ctx: &mut ObserverContext<'_>) -> Verdict {
        (self.barrier)(ctx)
    }

    fn on_end_invocation(&mut self, result: &InvocationResult, ctx: &mut ObserverContext<'_>) {
        (self.end)(result, ctx);
    }
}

/// Writes down what it sees.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn push(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn watcher(&self, id: Id) -> Registration {
        let log = self.clone();
        Registration::watcher(id, from_fn(move |_| Watch(log.clone())))
    }
}

struct Watch(Log);

impl StreamWatcher for Watch {
    fn on_chunk(&mut self, chunk: &Chunk, _: &mut ObserverContext<'_>) {
        self.0.push(show(chunk));
    }

    fn on_end_invocation(&mut self, result: &InvocationResult, _: &mut ObserverContext<'_>) {
        self.0.push(format!("over:{}", result.outcome.code()));
    }
}

#[derive(Default)]
pub(crate) struct Failures {
    reports: Mutex<Vec<String>>,
    details: Mutex<Vec<String>>,
    wants_detail: bool,
}

impl Failures {
    pub(crate) fn with_detail(wants_detail: bool) -> Self {
        Self { wants_detail, ..Self::default() }
    }

    pub(crate) fn reports(&self) -> Vec<String> {
        self.reports.lock().unwrap().clone()
    }

    pub(crate) fn details(&self) -> Vec<String> {
        self.details.lock().unwrap().clone()
    }
}

impl FailureSink for Failures {
    fn report(&self, failure: &FailureReport) {
        let line = format!("{} {} {}", failure.component, failure.hook, failure.kind);
        self.reports.lock().unwrap().push(line);
    }

    fn wants_detail(&self) -> bool {
        self.wants_detail
    }

    fn detail(&self, _: &FailureReport, detail: &FailureDetail<'_>) {
        let line = match detail {
            FailureDetail::Panic(message) => format!("panic: {message}"),
            FailureDetail::Rule(rule) => format!("rule: {rule}"),
            _ => "other".to_owned(),
        };
        self.details.lock().unwrap().push(line);
    }
}

/// What came of an invocation.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) chunks: Vec<Chunk>,
    pub(crate) out: Vec<String>,
    pub(crate) failures: Vec<String>,
    pub(crate) events: Vec<String>,
    pub(crate) result: InvocationResult,
}

impl Ran {
    /// What the consumer got, in one line.
    pub(crate) fn line(&self) -> String {
        self.out.join(" ")
    }
}

/// Takes the results of invocations.
#[derive(Clone, Default)]
pub(crate) struct Results(Arc<Mutex<Vec<InvocationResult>>>);

impl Results {
    pub(crate) fn take(&self) -> Vec<InvocationResult> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    pub(crate) fn watcher(&self) -> Registration {
        let results = self.clone();
        let id = Id::new("results").unwrap();
        Registration::watcher(id, from_fn(move |_| TakesResult(results.clone())))
    }
}

struct TakesResult(Results);

impl StreamWatcher for TakesResult {
    fn interest(&self) -> Interest {
        Interest::NONE
    }

    fn on_chunk(&mut self, _: &Chunk, _: &mut ObserverContext<'_>) {}

    fn on_end_invocation(&mut self, result: &InvocationResult, _: &mut ObserverContext<'_>) {
        self.0.0.lock().unwrap().push(result.clone());
    }
}

pub(crate) fn list(registrations: impl IntoIterator<Item = Registration>) -> Observers {
    let mut observers = Observers::new();
    observers.extend(registrations).unwrap();
    observers
}

/// Takes chunks through observers to the end of the source.
pub(crate) fn run(
    registrations: impl IntoIterator<Item = Registration>,
    chunks: impl IntoIterator<Item = Chunk>,
) -> Ran {
    run_with(list(registrations), chunks, Stack::finish)
}

/// The same with another end.
pub(crate) fn run_with(
    mut observers: Observers,
    chunks: impl IntoIterator<Item = Chunk>,
    end: impl FnOnce(&mut Stack),
) -> Ran {
    let (failures, events, results) =
        (Arc::new(Failures::default()), Arc::new(EventQueue::bounded(1000)), Results::default());
    observers.register(results.watcher()).unwrap();
    let observers = observers.failures(failures.clone()).events(events.clone());
    let mut stack = observers.stack(&ObserverFactoryContext::default());
    let mut out = Vec::new();
    for chunk in chunks {
        stack.push(chunk);
        out.extend(std::iter::from_fn(|| stack.pop()));
    }
    end(&mut stack);
    out.extend(std::iter::from_fn(|| stack.pop()));
    drop(stack);
    let mut results = results.take();
    assert_eq!(results.len(), 1, "the end is told once");
    Ran {
        out: out.iter().map(show).collect(),
        chunks: out,
        failures: failures.reports(),
        events: events.drain().iter().map(|event| format!("{}/{}", event.channel, event.name)).collect(),
        result: results.remove(0),
    }
}

/// A chunk in a word.
pub(crate) fn show(chunk: &Chunk) -> String {
    let lane = |lane: Lane| {
        let choice = if lane.choice == 0 { String::new() } else { format!("{}.", lane.choice) };
        format!("{choice}{}", lane.channel)
    };
    match chunk.body() {
        Body::Delta { lane: at, text } => format!("{}:{text}", lane(*at)),
        Body::Snapshot(snapshot) => format!("whole-{}:{}", lane(snapshot.lane), snapshot.text),
        Body::ToolCall(call) => format!("call:{}({})", call.name, call.arguments),
        Body::ToolCallStart(call) => format!("start:{}", call.name),
        Body::Finish(finish) => format!("finish:{}", finish.reason.as_str()),
        Body::End(end) => format!("end:{}", end.outcome().code()),
        Body::Error(error) => format!("error:{}:{}", error.code, error.message.as_deref().unwrap_or_default()),
        _ => chunk.kind().to_string(),
    }
}

pub(crate) fn text(text: &str) -> Chunk {
    Chunk::delta(TEXT, text)
}

pub(crate) fn reasoning(text: &str) -> Chunk {
    Chunk::delta(REASONING, text)
}

pub(crate) fn arguments(text: &str) -> Chunk {
    Chunk::delta(ARGUMENTS, text)
}

pub(crate) fn finish() -> Chunk {
    Chunk::finish(0, FinishReason::Stop)
}

pub(crate) fn event(name: &'static str) -> SideEvent {
    SideEvent { channel: Id::new("test").unwrap(), name: Id::new(name).unwrap(), payload: Json::string("payload") }
}

/// Panics without printing: the default hook would fill the test's output.
pub(crate) fn blow_up() -> ! {
    std::panic::resume_unwind(Box::new("blown up"))
}

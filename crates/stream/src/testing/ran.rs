use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use streamkeeper_contract::{Body, Chunk, FailureReport, FailureSink, Lane, Outcome, SideEvent, Stop};

use super::Script;
use crate::{
    Entry, EventSink, Observers, RawRecording, Recorder, Recording, SourceEnd, Stack, Summary, Tape, VerdictEntry,
};

/// What came of a [`Script`] that was taken through observers by a consumer who takes everything at once.
///
/// ```
/// use streamkeeper_contract::{Chunk, Lane, Verdict, id};
/// use streamkeeper_stream::{ObserverContext, Observers, Registration, StreamObserver, testing::Script};
///
/// #[derive(Clone)]
/// struct NoShouting;
///
/// impl StreamObserver for NoShouting {
///     fn on_chunk(&mut self, _: &Chunk, ctx: &mut ObserverContext<'_>) -> Verdict {
///         match ctx.pending().contains('!') {
///             true => Verdict::stop("shouting", "an exclamation mark"),
///             false => Verdict::Continue,
///         }
///     }
/// }
///
/// let observers = Observers::from(Registration::guard(id!("no-shouting"), NoShouting));
/// let ran = Script::new().text("Calm").text("ly!").finish().run(&observers);
/// assert_eq!(ran.answer(), "Calm");
/// assert_eq!(ran.stop().unwrap().chunk_index, 1);
/// assert_eq!(ran.verdicts().count(), 1);
/// assert!(ran.failures().is_empty() && ran.events().is_empty());
/// ```
#[derive(Debug)]
pub struct Ran {
    delivered: Vec<Chunk>,
    events: Vec<SideEvent>,
    failures: Vec<FailureReport>,
    raw: RawRecording,
    outcome: Outcome,
    summary: Summary,
}

impl Ran {
    pub(super) fn of(observers: &Observers, script: &Script) -> Self {
        let taken = Taken::of(observers, script, Recorder::raw_sensitive);
        // A header and an outcome are written for every invocation.
        let recording = taken.tape.recording().expect("a stack writes what can be read");
        let (outcome, summary) = outcome(&recording).expect("every invocation has an outcome");
        Self {
            delivered: taken.delivered,
            events: taken.events,
            failures: taken.failures,
            raw: recording.into_raw().expect("it was recorded raw"),
            outcome,
            summary,
        }
    }

    /// What the consumer got, in order, the end included.
    pub fn delivered(&self) -> &[Chunk] {
        &self.delivered
    }

    /// The delivered deltas of a lane, joined.
    pub fn text(&self, lane: Lane) -> String {
        let text = |chunk: &Chunk| match chunk.body() {
            Body::Delta { lane: at, text } if *at == lane => Some(text.as_str().to_owned()),
            _ => None,
        };
        self.delivered.iter().filter_map(text).collect()
    }

    /// The delivered answer of choice 0, all parts joined.
    pub fn answer(&self) -> String {
        let text = |chunk: &Chunk| match chunk.body() {
            Body::Delta { lane, text } if lane.in_part(0) == Lane::TEXT => Some(text.as_str().to_owned()),
            _ => None,
        };
        self.delivered.iter().filter_map(text).collect()
    }

    /// How it ended.
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    /// The stop, if an observer stopped it.
    pub fn stop(&self) -> Option<&Stop> {
        self.outcome.stop()
    }

    /// Side events, in order.
    pub fn events(&self) -> &[SideEvent] {
        &self.events
    }

    /// Failures, in order.
    pub fn failures(&self) -> &[FailureReport] {
        &self.failures
    }

    /// What the stack carried out, in order; a `Continue` with nothing held is not among them.
    pub fn verdicts(&self) -> impl Iterator<Item = &VerdictEntry> {
        self.raw.recording().entries().iter().filter_map(|entry| match entry {
            Entry::Verdict(verdict) => Some(&**verdict),
            _ => None,
        })
    }

    /// Bytes of text that were withheld.
    pub fn withheld_len(&self) -> u64 {
        self.summary.withheld_len
    }

    /// From the start to the last chunk, by the chunks' own offsets.
    pub fn duration(&self) -> Duration {
        Duration::from_micros(self.summary.duration)
    }

    /// The recording of everything, to replay. Holds what the guards withheld.
    pub fn recording(&self) -> &RawRecording {
        &self.raw
    }
}

pub(super) fn outcome(recording: &Recording) -> Option<(Outcome, Summary)> {
    recording.entries().iter().rev().find_map(|entry| match entry {
        Entry::Outcome { outcome, summary } => Some((outcome.clone(), *summary)),
        _ => None,
    })
}

/// One run, and what there is to read of it.
pub(super) struct Taken {
    pub(super) delivered: Vec<Chunk>,
    pub(super) events: Vec<SideEvent>,
    pub(super) failures: Vec<FailureReport>,
    pub(super) tape: Tape,
    /// The stack's `Debug` after each chunk.
    pub(super) debug: String,
}

impl Taken {
    pub(super) fn of(observers: &Observers, script: &Script, recorder: fn(Tape) -> Recorder) -> Self {
        let (told, tape) = (Arc::new(Told::default()), Tape::new());
        let builder = observers.builder(&script.ctx).events(told.clone()).failures(told.clone());
        let mut stack = builder.recorder(recorder(tape.clone())).build();
        let (mut delivered, mut debug) = (Vec::new(), String::new());
        for chunk in &script.chunks {
            if stack.is_ended() {
                break;
            }
            stack.push(chunk.clone());
            debug.push_str(&format!("{stack:?}\n"));
            delivered.extend(std::iter::from_fn(|| stack.pop()));
        }
        end(&mut stack, &script.end);
        if script.end != SourceEnd::Dropped {
            delivered.extend(std::iter::from_fn(|| stack.pop()));
        }
        drop(stack);
        let events = std::mem::take(&mut *told.events.lock().unwrap_or_else(PoisonError::into_inner));
        let failures = std::mem::take(&mut *told.failures.lock().unwrap_or_else(PoisonError::into_inner));
        Self { delivered, events, failures, tape, debug }
    }
}

fn end(stack: &mut Stack, end: &SourceEnd) {
    match end {
        SourceEnd::Finished => stack.finish(),
        SourceEnd::Failed(error) => _ = stack.fail(error.clone()),
        SourceEnd::Ended(outcome) => stack.end_with(outcome.clone()),
        SourceEnd::Dropped => {}
    }
}

/// Keeps what a stack tells the outside world.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) events: Mutex<Vec<SideEvent>>,
    pub(super) failures: Mutex<Vec<FailureReport>>,
}

impl EventSink for Told {
    fn emit(&self, event: SideEvent) {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).push(event);
    }
}

impl FailureSink for Told {
    fn report(&self, failure: &FailureReport) {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).push(failure.clone());
    }
}

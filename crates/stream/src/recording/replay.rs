use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use streamkeeper_contract::{Chunk, FailureReport, FailureSink, Offset};

use super::{Entry, Header, RawRecording, Recorder, Recording, SourceEnd, View, line};
use crate::{ObserverFactoryContext, Observers, Stack, stack::recorded_observers};

/// A raw recording on its way through a stack again.
///
/// At once with [`run`](Replay::run), or in recorded time: wait until [`next_offset`](Replay::next_offset), then take the next step. How
/// to wait is the caller's business.
///
/// ```
/// use streamkeeper_contract::{Chunk, FinishReason, Lane, Offset};
/// use streamkeeper_stream::{Observers, Recorder, Tape};
///
/// let tape = Tape::new();
/// let ctx = Default::default();
/// let mut stack = Observers::new().builder(&ctx).recorder(Recorder::raw_sensitive(tape.clone())).build();
/// stack.push(Chunk::delta(Lane::TEXT, "Hello").at(Offset(1_500)));
/// stack.push(Chunk::finish(0, FinishReason::Stop).at(Offset(2_000)));
/// stack.finish();
/// while stack.pop().is_some() {}
///
/// let recording = tape.recording()?.into_raw()?;
/// let mut replay = recording.replay(&Observers::new());
/// assert_eq!(replay.next_offset(), Some(Offset(1_500)));
/// assert_eq!(replay.next().unwrap().chunks[0].text(), Some("Hello"));
/// assert_eq!(replay.run().difference, None);
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub struct Replay<'a> {
    recorded: &'a Recording,
    header: Header,
    stack: Option<Stack>,
    entries: Arc<Mutex<Vec<Entry>>>,
    /// Where in the recorded entries the next step begins.
    next: usize,
    /// How many chunks the consumer still takes: as many as were taken, if it let go before the end.
    takes: usize,
    at: Offset,
}

/// What came out for one recorded input.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Step {
    /// When the input had arrived. The end of the source is at the offset of the last chunk.
    pub at: Offset,
    /// What the consumer gets.
    pub chunks: Vec<Chunk>,
}

/// A replay that has been run to its end.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Replayed {
    /// The replay, recorded.
    pub recording: RawRecording,
    /// The first difference from what was recorded.
    pub difference: Option<Difference>,
}

/// Where a replay first differs from its recording.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// At which entering chunk.
    pub index: u64,
    /// In what.
    pub track: Track,
    /// The recorded line. `None` if there is more in the replay.
    pub expected: Option<String>,
    /// The line of the replay. `None` if there is less in it.
    pub got: Option<String>,
}

/// What is compared, each in its own order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Track {
    /// The verdict log.
    Verdict,
    /// Emitted events.
    Event,
    /// What the consumer got.
    Output,
    /// Failures.
    Failure,
    /// Text that was withheld.
    Withheld,
    /// The outcome.
    Outcome,
}

impl RawRecording {
    /// Begins a replay through observers, for a call of which the header tells all that is known. Their event and failure sinks get
    /// nothing: events and failures are part of the replay's own recording.
    pub fn replay(&self, observers: &Observers) -> Replay<'_> {
        self.replay_in(observers, &self.context())
    }

    /// The same with a context of the caller's, for observers that need more than the header tells, such as the system prompt.
    pub fn replay_in(&self, observers: &Observers, ctx: &ObserverFactoryContext) -> Replay<'_> {
        let entries = Arc::<Mutex<Vec<Entry>>>::default();
        let stack =
            observers.builder(ctx).sealed(Arc::new(Silent)).recorder(Recorder::entries(entries.clone())).build();
        let header = Header::new(View::Raw, ctx, recorded_observers(observers, ctx));
        let lets_go = |entry: &Entry| matches!(entry, Entry::SourceEnd { end: SourceEnd::Dropped });
        let took_all = self.0.outcome().is_some() && !self.0.entries().iter().any(lets_go);
        let takes = if took_all { usize::MAX } else { self.0.output().count() };
        Replay { recorded: &self.0, header, stack: Some(stack), entries, next: 0, takes, at: Offset::default() }
    }

    /// What the header tells of the call.
    pub fn context(&self) -> ObserverFactoryContext {
        let header = self.0.header();
        let mut ctx = ObserverFactoryContext::new(header.call_class.clone());
        ctx.ordinal = header.ordinal;
        ctx.provider.clone_from(&header.provider);
        ctx.model.clone_from(&header.model);
        ctx.policy_id.clone_from(&header.policy_id);
        ctx.policy_hash.clone_from(&header.policy_hash);
        ctx
    }
}

struct Silent;

impl FailureSink for Silent {
    fn report(&self, _: &FailureReport) {}
}

impl Replay<'_> {
    /// When the next input arrived, counted from the start of the invocation. `None` after the last one.
    pub fn next_offset(&self) -> Option<Offset> {
        let (_, entry) = self.next_input()?;
        Some(match entry {
            Entry::Input { chunk, .. } => chunk.offset(),
            _ => self.at,
        })
    }

    /// Runs what is left at once, and compares.
    pub fn run(mut self) -> Replayed {
        while self.next().is_some() {}
        // Without a recorded end the consumer is taken to have let go.
        self.stack = None;
        let got = std::mem::take(&mut *self.entries.lock().unwrap_or_else(PoisonError::into_inner));
        let difference = first_difference(self.recorded.entries(), &got);
        Replayed { recording: RawRecording(Recording::new(self.header, got)), difference }
    }

    fn next_input(&self) -> Option<(usize, &Entry)> {
        let rest = self.recorded.entries().iter().enumerate().skip(self.next);
        rest.into_iter().find(|(_, entry)| matches!(entry, Entry::Input { .. } | Entry::SourceEnd { .. }))
    }
}

impl Iterator for Replay<'_> {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        let (at, entry) = self.next_input()?;
        let mut entry = entry.clone();
        self.next = at + 1;
        let stack = self.stack.as_mut()?;
        match &mut entry {
            Entry::Input { chunk, .. } => {
                self.at = chunk.offset();
                stack.push(chunk.clone());
            }
            Entry::SourceEnd { end: SourceEnd::Finished } => stack.finish(),
            Entry::SourceEnd { end: SourceEnd::Failed(error) } => {
                stack.fail(error.clone());
            }
            Entry::SourceEnd { end: SourceEnd::Ended(outcome) } => stack.end_with(outcome.clone()),
            _ => {
                self.stack = None;
                return Some(Step { at: self.at, chunks: Vec::new() });
            }
        }
        let chunks: Vec<_> = std::iter::from_fn(|| stack.pop()).take(self.takes).collect();
        self.takes = self.takes.saturating_sub(chunks.len());
        Some(Step { at: self.at, chunks })
    }
}

impl fmt::Debug for Replay<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replay").field("stack", &self.stack).field("at", &self.at).finish_non_exhaustive()
    }
}

fn track(entry: &Entry) -> Option<Track> {
    Some(match entry {
        Entry::Verdict(_) => Track::Verdict,
        Entry::Event { .. } => Track::Event,
        Entry::Output { .. } => Track::Output,
        Entry::Failure { .. } => Track::Failure,
        Entry::Withheld { .. } => Track::Withheld,
        Entry::Outcome { .. } => Track::Outcome,
        Entry::Input { .. } | Entry::SourceEnd { .. } => return None,
    })
}

/// In the order in which the stack made them: a consumer of a client's items may get some of one item in another order.
fn entries_of(wanted: Track, entries: &[Entry]) -> Vec<&Entry> {
    let mut entries: Vec<_> = entries.iter().filter(|entry| track(entry) == Some(wanted)).collect();
    entries.sort_by_key(|entry| entry.index());
    entries
}

/// Compares line by line, each track by itself, and takes the difference at the earliest chunk.
fn first_difference(expected: &[Entry], got: &[Entry]) -> Option<Difference> {
    let tracks = [Track::Verdict, Track::Event, Track::Output, Track::Failure, Track::Withheld, Track::Outcome];
    let differences = tracks.into_iter().filter_map(|wanted| {
        let (expected, got) = (entries_of(wanted, expected), entries_of(wanted, got));
        let (mut expected, mut got) = (expected.into_iter(), got.into_iter());
        loop {
            let (expected, got) = (expected.next(), got.next());
            if expected.is_none() && got.is_none() {
                return None;
            }
            let text = |entry: Option<&Entry>| entry.and_then(|entry| line::write(entry).ok());
            let (expected_text, got_text) = (text(expected), text(got));
            if expected_text != got_text {
                let index = |entry: Option<&Entry>| entry.and_then(Entry::index).unwrap_or(u64::MAX);
                let index = index(expected).min(index(got));
                return Some(Difference { index, track: wanted, expected: expected_text, got: got_text });
            }
        }
    });
    differences.min_by_key(|difference| (difference.index, difference.track)).map(|mut difference| {
        if difference.index == u64::MAX {
            difference.index = got.iter().chain(expected).filter_map(Entry::index).max().unwrap_or_default();
        }
        difference
    })
}

impl fmt::Display for Difference {
    /// Shows the lines: a replay is of a raw recording.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |line: &Option<String>| line.clone().unwrap_or_else(|| "nothing".to_owned());
        write!(f, "at chunk {}: expected {}, got {}", self.index, line(&self.expected), line(&self.got))
    }
}

impl fmt::Debug for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Difference").field("index", &self.index).field("track", &self.track).finish_non_exhaustive()
    }
}

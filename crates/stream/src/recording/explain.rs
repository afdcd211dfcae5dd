use std::fmt;

use streamkeeper_contract::{FailureReport, Hook, Id, Lane, Outcome, Text};

use super::{Action, Entry, Recording, Rule};

/// Why a recorded stream was stopped or changed; made by [`explain`]. Holds no text of the stream.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Explanation {
    /// How it ended. `None` if the recording was cut off.
    pub outcome: Option<Outcome>,
    /// What was done to it, in order.
    pub findings: Vec<Finding>,
}

/// One thing that an observer, or the stack in its place, did to a stream.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Finding {
    /// Something was changed, withheld or stopped.
    Did {
        /// At which entering chunk.
        index: u64,
        /// By which observer. `None` where the stack acted for all of them.
        observer: Option<Id>,
        /// What.
        action: Action,
        /// Why.
        rule: Rule,
        /// In which call.
        hook: Hook,
        /// In which lane.
        lane: Option<Lane>,
        /// The code of a stop.
        code: Option<Text>,
    },
    /// An observer failed.
    Failed {
        /// At which entering chunk.
        index: u64,
        /// Who and how.
        failure: FailureReport,
    },
}

/// Tells why a stream was stopped or changed: chunk, observer, verdict, rule. Works for both views.
///
/// ```
/// use streamkeeper_contract::{Chunk, Lane, Verdict, id};
/// use streamkeeper_stream::{ObserverContext, Observers, Recorder, Registration, StreamObserver, Tape, explain};
///
/// #[derive(Clone)]
/// struct NoDigits;
///
/// impl StreamObserver for NoDigits {
///     fn on_chunk(&mut self, chunk: &Chunk, _: &mut ObserverContext<'_>) -> Verdict {
///         match chunk.text() {
///             Some(text) if text.contains(char::is_numeric) => Verdict::stop("digit", "a digit came"),
///             _ => Verdict::Continue,
///         }
///     }
/// }
///
/// let tape = Tape::new();
/// let ctx = Default::default();
/// let observers = Observers::from(Registration::guard(id!("no-digits"), NoDigits));
/// let mut stack = observers.builder(&ctx).recorder(Recorder::delivered(tape.clone())).build();
/// stack.push(Chunk::delta(Lane::TEXT, "one "));
/// stack.push(Chunk::delta(Lane::TEXT, "2"));
/// while stack.pop().is_some() {}
///
/// assert_eq!(explain(&tape.recording()?).to_string(), "\
/// stopped by `no-digits` (digit) at chunk 1 after 4 bytes of text: a digit came
/// chunk 1, text: `no-digits` stop (digit), rule verdict");
/// # Ok::<_, streamkeeper_stream::RecordingError>(())
/// ```
pub fn explain(recording: &Recording) -> Explanation {
    let outcome = recording.outcome().cloned();
    let stop_code = match &outcome {
        Some(Outcome::Stopped(stop)) => Some(stop.code.clone()),
        _ => None,
    };
    let findings = recording.entries().iter().filter_map(|entry| match entry {
        Entry::Verdict(entry) if entry.changes => Some(Finding::Did {
            index: entry.index,
            observer: entry.observer.clone(),
            action: entry.action,
            rule: entry.rule,
            hook: entry.hook,
            lane: entry.lane,
            code: stop_code.clone().filter(|_| entry.action == Action::Stop),
        }),
        Entry::Failure { index, failure } => Some(Finding::Failed { index: *index, failure: failure.clone() }),
        _ => None,
    });
    Explanation { findings: findings.collect(), outcome }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.outcome {
            Some(outcome) => write!(f, "{outcome}")?,
            None => f.write_str("the recording was cut off")?,
        }
        if self.findings.is_empty() {
            f.write_str("\nnothing was changed")?;
        }
        self.findings.iter().try_for_each(|finding| write!(f, "\n{finding}"))
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Did { index, observer, action, rule, lane, code, .. } => {
                write!(f, "chunk {index}")?;
                if let Some(lane) = lane {
                    write!(f, ", {}", lane.channel.as_str())?;
                }
                match observer {
                    Some(observer) => write!(f, ": `{observer}` {action}")?,
                    None => write!(f, ": {action}")?,
                }
                if let Some(code) = code {
                    write!(f, " ({code})")?;
                }
                write!(f, ", rule {rule}")
            }
            Self::Failed { index, failure } => write!(f, "chunk {index}: {failure}"),
        }
    }
}

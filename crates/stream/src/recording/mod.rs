//! What an invocation was, as JSON lines: to keep, to run again, to explain.

mod entry;
mod explain;
mod line;
mod read;
mod recorder;
mod replay;

pub use entry::{Action, Entry, Header, RecordedObserver, Rule, SourceEnd, Summary, VerdictEntry, View};
pub use explain::{Explanation, Finding, explain};
pub use read::{NotRaw, RawRecording, Recording, RecordingError};
pub use recorder::{Recorder, Tape};
pub use replay::{Difference, Replay, Replayed, Step, Track};

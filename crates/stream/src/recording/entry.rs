use std::fmt;

use serde::{Deserialize, Serialize};
use streamkeeper_contract::{
    CallClass, Chunk, ErrorInfo, FailureReport, Hook, Id, Lane, Outcome, SideEvent, Text, Verdict,
};

use crate::ObserverFactoryContext;

/// What a recording shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum View {
    /// What the consumer got: output, events, outcome; and who changed something, without the text. Safe to keep where the output is.
    Delivered,
    /// Also what came in and each verdict: holds everything that the guards withheld. Can be replayed.
    Raw,
}

impl View {
    /// The name: `delivered`, `raw`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Raw => "raw",
        }
    }
}

/// The first line of a recording.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Header {
    /// What the recording shows.
    pub view: View,
    /// The version of this format: 1.
    pub version: u32,
    /// What the call was for.
    pub call_class: CallClass,
    /// Which invocation of its run it was, from 0.
    #[serde(default)]
    pub ordinal: u64,
    /// The provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<Text>,
    /// The model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Text>,
    /// The observers, in order.
    pub observers: Vec<RecordedObserver>,
    /// The policy they came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_id: Option<Id>,
    /// A hash of that policy's text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_hash: Option<Text>,
}

impl Header {
    /// The version of the format that is written here.
    pub const VERSION: u32 = 1;

    pub(crate) fn new(view: View, ctx: &ObserverFactoryContext, observers: Vec<RecordedObserver>) -> Self {
        Self {
            view,
            version: Self::VERSION,
            call_class: ctx.call_class.clone(),
            ordinal: ctx.ordinal,
            provider: ctx.provider.clone(),
            model: ctx.model.clone(),
            observers,
            policy_id: ctx.policy_id.clone(),
            policy_hash: ctx.policy_hash.clone(),
        }
    }
}

/// An observer of a recorded stack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RecordedObserver {
    /// Its id.
    pub id: Id,
    /// Its version, if the registration states one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Text>,
    /// `guard`, `transform` or `watcher`.
    pub role: Text,
}

/// Anything but the header, in the order in which it happened. `index` is that of the chunk that had entered last, so that
/// it does not depend on when the consumer takes what it gets.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub enum Entry {
    /// A chunk entered. Raw view.
    Input {
        /// Which one, from 0.
        index: u64,
        /// The chunk.
        chunk: Chunk,
    },
    /// The source ended, or the consumer did. Raw view.
    SourceEnd {
        /// How.
        end: SourceEnd,
    },
    /// The stack carried out a verdict, or did something in an observer's place. A `Continue` with nothing held is not recorded.
    Verdict(Box<VerdictEntry>),
    /// An observer sent an event.
    Event {
        /// For which chunk.
        index: u64,
        /// The observer.
        observer: Option<Id>,
        /// The event.
        event: SideEvent,
    },
    /// An observer, a sink or the recorder failed.
    Failure {
        /// At which chunk.
        index: u64,
        /// The report.
        failure: FailureReport,
    },
    /// Text did not and will not reach the consumer.
    Withheld {
        /// At which chunk.
        index: u64,
        /// The lane, if it belongs to one.
        lane: Option<Lane>,
        /// How many bytes.
        len: u64,
        /// The text. Raw view.
        text: Option<Text>,
    },
    /// The consumer took a chunk.
    Output {
        /// Which entering chunk made it pass.
        index: u64,
        /// The chunk.
        chunk: Chunk,
    },
    /// The invocation is over. The last entry.
    Outcome {
        /// How it ended.
        outcome: Outcome,
        /// What it came to.
        summary: Summary,
    },
}

/// How the source of an invocation ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SourceEnd {
    /// It was at its end.
    Finished,
    /// It failed.
    Failed(ErrorInfo),
    /// The caller ended the invocation with this outcome.
    Ended(Outcome),
    /// The consumer let go of the stream.
    Dropped,
}

/// What the stack did with a chunk or a hold on behalf of one observer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct VerdictEntry {
    /// For which entering chunk.
    pub index: u64,
    /// The observer. `None` where the stack acts for all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observer: Option<Id>,
    /// The call that gave the verdict.
    pub hook: Hook,
    /// The lane it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<Lane>,
    /// What was done.
    pub action: Action,
    /// Whether the consumer gets something else than what came in.
    #[serde(default, skip_serializing_if = "is_false")]
    pub changes: bool,
    /// Why.
    pub rule: Rule,
    /// The verdict itself. Raw view.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !*value
}

macro_rules! words {
    ($(#[$meta:meta])* $type:ident { $($(#[doc = $doc:literal])* $variant:ident = $name:literal,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        #[non_exhaustive]
        pub enum $type {
            $($(#[doc = $doc])* $variant,)*
        }

        impl $type {
            /// The stable name: snake case.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}

words! {
    /// What was done with a chunk or a hold.
    Action {
        /// Held text passed as it is.
        Continue = "continue",
        /// Another chunk passed instead.
        Amend = "amend",
        /// Events went out.
        Emit = "emit",
        /// The invocation was ended.
        Stop = "stop",
        /// Text is held.
        Buffer = "buffer",
        /// Pending text was replaced, or went out in part.
        Release = "release",
        /// A placeholder stands for the text.
        Placeholder = "placeholder",
        /// The chunk was left out.
        Withhold = "withhold",
    }
}

words! {
    /// Why the stack did it.
    Rule {
        /// The observer said so about a chunk.
        Verdict = "verdict",
        /// The observer settled held text, because a chunk may not overtake it.
        Barrier = "barrier",
        /// The observer has failed, and this is its registration's `on_failure`.
        OnFailure = "on_failure",
        /// A snapshot repeats a text and gets the edits that the text got.
        Snapshot = "snapshot",
        /// A snapshot repeats an edited text differently, and the observer that edited it does not look at snapshots.
        DifferingSnapshot = "differing_snapshot",
        /// A signature covers text that was changed.
        ChangedPart = "changed_part",
    }
}

/// What an invocation came to, in numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Summary {
    /// Chunks that entered.
    pub chunks_in: u64,
    /// Chunks that the consumer took, the end included.
    pub chunks_out: u64,
    /// Bytes of answer text that the consumer got.
    pub delivered_len: u64,
    /// Bytes of text that were withheld.
    pub withheld_len: u64,
    /// Microseconds from the start to the last chunk.
    pub duration: u64,
}

impl Entry {
    /// Which chunk had entered last, where the entry says so.
    pub fn index(&self) -> Option<u64> {
        match self {
            Self::Input { index, .. }
            | Self::Event { index, .. }
            | Self::Failure { index, .. }
            | Self::Withheld { index, .. }
            | Self::Output { index, .. } => Some(*index),
            Self::Verdict(entry) => Some(entry.index),
            Self::SourceEnd { .. } | Self::Outcome { .. } => None,
        }
    }

    /// The name of its kind: what stands in the line as `record`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Input { .. } => "input",
            Self::SourceEnd { .. } => "source_end",
            Self::Verdict(_) => "verdict",
            Self::Event { .. } => "event",
            Self::Failure { .. } => "failure",
            Self::Withheld { .. } => "withheld",
            Self::Output { .. } => "output",
            Self::Outcome { .. } => "outcome",
        }
    }
}

impl fmt::Debug for Entry {
    /// The kind and the place: entries of a raw recording hold text that was withheld.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry").field("record", &self.name()).field("index", &self.index()).finish_non_exhaustive()
    }
}

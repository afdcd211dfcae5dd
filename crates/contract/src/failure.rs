use std::error::Error;

use crate::Id;

/// A component failed. Carries no text that came from outside, by type.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FailureReport {
    /// Who.
    pub component: Id,
    /// In which call.
    pub hook: Hook,
    /// How.
    pub kind: FailureKind,
}

impl std::fmt::Display for FailureReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}` failed in {}: {}", self.component, self.hook.as_str(), self.kind.as_str())
    }
}

/// The call that failed. An enum, not a string: it survives a round trip and cannot smuggle text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Hook {
    /// Making the component.
    Factory,
    /// Asking a stream observer for its interest.
    Interest,
    /// A chunk.
    OnChunk,
    /// Settling held text.
    OnBarrier,
    /// The end of an invocation.
    OnEndInvocation,
    /// Taking a side event.
    EventSink,
    /// Taking a report.
    Collect,
}

impl Hook {
    /// The name: snake case.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Factory => "factory",
            Self::Interest => "interest",
            Self::OnChunk => "on_chunk",
            Self::OnBarrier => "on_barrier",
            Self::OnEndInvocation => "on_end_invocation",
            Self::EventSink => "event_sink",
            Self::Collect => "collect",
        }
    }

    /// The hook with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [
            Self::Factory,
            Self::Interest,
            Self::OnChunk,
            Self::OnBarrier,
            Self::OnEndInvocation,
            Self::EventSink,
            Self::Collect,
        ]
        .into_iter()
        .find(|hook| hook.as_str() == name)
    }
}

/// How it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FailureKind {
    /// It returned an error.
    Error,
    /// It panicked.
    Panic,
    /// It missed its deadline.
    Timeout,
    /// It went over a limit, for example of held text.
    Overflow,
    /// It broke a rule of its trait.
    Contract,
    /// It could not be called.
    NotRun,
}

impl FailureKind {
    /// The name: snake case.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Panic => "panic",
            Self::Timeout => "timeout",
            Self::Overflow => "overflow",
            Self::Contract => "contract",
            Self::NotRun => "not_run",
        }
    }
}

/// What caused a failure: may hold text from outside, so it goes only to a sink that asks for it.
#[derive(Debug)]
#[non_exhaustive]
pub enum FailureDetail<'a> {
    /// The error that was returned.
    Error(&'a (dyn Error + 'static)),
    /// The message of a panic, if it has one.
    Panic(&'a str),
    /// Which rule was broken, in our own words.
    Rule(&'static str),
}

/// Where failures go. Called in line with the stream, so it must be quick and must not block. It may be called from any thread.
pub trait FailureSink: Send + Sync {
    /// Takes one report. A panic in here is caught and dropped.
    fn report(&self, failure: &FailureReport);

    /// Whether [`detail`](FailureSink::detail) wants the causes of failures of stream observers too. Off by default: a cause may
    /// hold text of the stream.
    fn wants_detail(&self) -> bool {
        false
    }

    /// Takes the cause of the failure that was just reported. Called only if [`wants_detail`](FailureSink::wants_detail) says so.
    fn detail(&self, failure: &FailureReport, detail: &FailureDetail<'_>) {
        let _ = (failure, detail);
    }
}

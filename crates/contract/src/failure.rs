use std::error::Error;

use crate::{Id, names::names};

/// A component failed. Carries no text that came from outside, by type. The JSON form is an object with these members.
///
/// ```
/// use streamkeeper_contract::{FailureKind, FailureReport, Hook, id};
///
/// let report = FailureReport { component: id!("secrets"), hook: Hook::OnChunk, kind: FailureKind::Panic };
/// assert_eq!(report.to_string(), "`secrets` failed in on_chunk: panic");
/// assert_eq!(serde_json::to_string(&report)?, r#"{"component":"secrets","hook":"on_chunk","kind":"panic"}"#);
/// # Ok::<_, serde_json::Error>(())
/// ```
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

names! {
    /// The call that failed. An enum, not a string: it survives a round trip and cannot smuggle text.
    Hook {
        /// Making the component.
        Factory = "factory",
        /// Asking a stream observer for its interest.
        Interest = "interest",
        /// A chunk.
        OnChunk = "on_chunk",
        /// Settling held text.
        OnBarrier = "on_barrier",
        /// The end of an invocation.
        OnEndInvocation = "on_end_invocation",
        /// Taking a side event.
        EventSink = "event_sink",
        /// Taking a report.
        Collect = "collect",
        /// Taking an entry of a recording.
        Record = "record",
    }
}

names! {
    /// How it failed.
    FailureKind {
        /// It returned an error.
        Error = "error",
        /// It panicked.
        Panic = "panic",
        /// It missed its deadline.
        Timeout = "timeout",
        /// It went over a limit, for example of held text.
        Overflow = "overflow",
        /// It broke a rule of its trait.
        Contract = "contract",
        /// It could not be called.
        NotRun = "not_run",
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
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use streamkeeper_contract::{FailureReport, FailureSink};
///
/// #[derive(Default)]
/// struct Count(AtomicU64);
///
/// impl FailureSink for Count {
///     fn report(&self, _: &FailureReport) {
///         self.0.fetch_add(1, Ordering::Relaxed);
///     }
/// }
/// ```
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

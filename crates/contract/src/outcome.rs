use crate::{Id, Json, Text};

/// Why a model says it is done. The JSON form is the name.
///
/// ```
/// use streamkeeper_contract::FinishReason;
///
/// assert_eq!(FinishReason::from_name("tool_calls"), FinishReason::ToolCalls);
/// assert_eq!(FinishReason::from_name("RECITATION").as_str(), "RECITATION");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FinishReason {
    /// It had said all, or met a stop sequence.
    Stop,
    /// It met a limit of tokens.
    Length,
    /// It wants tools to be run.
    ToolCalls,
    /// A filter of the provider cut it off.
    ContentFilter,
    /// It refused.
    Refusal,
    /// It paused and can be resumed.
    Pause,
    /// The body ended cleanly in a dialect that states no reason.
    Unstated,
    /// A reason that only this provider knows, in its own word.
    Other(Text),
}

impl FinishReason {
    /// The names of all reasons but [`Other`](FinishReason::Other).
    pub const NAMES: &[&str] = &["stop", "length", "tool_calls", "content_filter", "refusal", "pause", "unstated"];

    /// The name: `stop`, `length`, `tool_calls`, `content_filter`, `refusal`, `pause`, `unstated` or the provider's word.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::ToolCalls => "tool_calls",
            Self::ContentFilter => "content_filter",
            Self::Refusal => "refusal",
            Self::Pause => "pause",
            Self::Unstated => "unstated",
            Self::Other(word) => word,
        }
    }

    /// The reason with this name; any other word is [`Other`](FinishReason::Other).
    pub fn from_name(name: &str) -> Self {
        match name {
            "stop" => Self::Stop,
            "length" => Self::Length,
            "tool_calls" => Self::ToolCalls,
            "content_filter" => Self::ContentFilter,
            "refusal" => Self::Refusal,
            "pause" => Self::Pause,
            "unstated" => Self::Unstated,
            word => Self::Other(word.into()),
        }
    }
}

/// How an invocation or a run ended. Made once, then shared by everyone who is told.
///
/// The JSON form is an object whose `kind` is the [code](Outcome::code).
///
/// ```
/// use streamkeeper_contract::{FinishReason, Outcome};
///
/// let outcome = Outcome::Finished { reason: FinishReason::Length };
/// assert_eq!(outcome.finish_reason(), Some(&FinishReason::Length));
/// assert_eq!(outcome.to_string(), "finished (length)");
/// assert_eq!(serde_json::to_string(&outcome)?, r#"{"kind":"finished","reason":"length"}"#);
/// # Ok::<_, serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Outcome {
    /// The provider said so, and the consumer was told.
    Finished {
        /// The reason of the first choice.
        reason: FinishReason,
    },
    /// An observer ended it.
    Stopped(Stop),
    /// The source ended without an end.
    Truncated,
    /// The source, a guard or the engine failed.
    Failed {
        /// What failed.
        error: ErrorInfo,
    },
    /// The caller ended it.
    Aborted {
        /// The caller's words.
        reason: Option<Text>,
        /// Whether it came as a cancel request through a store.
        cancel_requested: bool,
    },
    /// It waits for answers from outside.
    Suspended {
        /// What it waits for, one entry an interrupt.
        interrupts: Vec<Json>,
    },
    /// The consumer let go of the stream.
    Dropped,
}

impl Outcome {
    /// The codes of all outcomes.
    pub const CODES: &[&str] = &["finished", "stopped", "truncated", "failed", "aborted", "suspended", "dropped"];

    /// The stable machine code of the kind: `finished`, `stopped`, `truncated`, `failed`, `aborted`, `suspended`, `dropped`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Finished { .. } => "finished",
            Self::Stopped(_) => "stopped",
            Self::Truncated => "truncated",
            Self::Failed { .. } => "failed",
            Self::Aborted { .. } => "aborted",
            Self::Suspended { .. } => "suspended",
            Self::Dropped => "dropped",
        }
    }

    /// Whether the provider finished and the consumer was told.
    pub fn is_finished(&self) -> bool {
        matches!(self, Self::Finished { .. })
    }

    /// Why the model said it was done, if it finished.
    pub fn finish_reason(&self) -> Option<&FinishReason> {
        match self {
            Self::Finished { reason } => Some(reason),
            _ => None,
        }
    }

    /// Who stopped it and where, if an observer did.
    pub fn stop(&self) -> Option<&Stop> {
        match self {
            Self::Stopped(stop) => Some(stop),
            _ => None,
        }
    }

    /// What failed, if something did.
    pub fn error(&self) -> Option<&ErrorInfo> {
        match self {
            Self::Failed { error } => Some(error),
            _ => None,
        }
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Finished { reason } => write!(f, "finished ({})", reason.as_str()),
            Self::Stopped(stop) => write!(
                f,
                "stopped by `{}` ({}) at chunk {} after {} bytes of text: {}",
                stop.observer, stop.code, stop.chunk_index, stop.accumulated_content_length, stop.reason
            ),
            Self::Truncated => f.write_str("truncated: the source ended without an end"),
            Self::Failed { error } => write!(f, "failed: {error}"),
            Self::Aborted { reason: Some(reason), .. } => write!(f, "aborted: {reason}"),
            Self::Aborted { .. } => f.write_str("aborted"),
            Self::Suspended { interrupts } => {
                let s = if interrupts.len() == 1 { "" } else { "s" };
                write!(f, "suspended, waiting for {} answer{s}", interrupts.len())
            }
            Self::Dropped => f.write_str("dropped by the consumer"),
        }
    }
}

/// Who stopped an invocation, why, and where: enough to go on from there. The observer says why; the stack fills in the rest.
///
/// The JSON form is an object with these members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stop {
    /// The observer that said so.
    pub observer: Id,
    /// A stable machine code.
    pub code: Text,
    /// For people; holds no matched text unless the observer was told to quote it.
    pub reason: Text,
    /// Which entering chunk it was, from 0.
    pub chunk_index: u64,
    /// Bytes of answer text delivered before, all choices, whole invocation.
    pub accumulated_content_length: u64,
}

/// An error as data: one that a provider reports inside the stream, or the one that an invocation failed with.
///
/// The JSON form is an object with these members; what is `None` is left out.
///
/// ```
/// use streamkeeper_contract::ErrorInfo;
///
/// let error = ErrorInfo::new("overloaded_error").with_message("try again later");
/// assert_eq!(error.to_string(), "overloaded_error: try again later");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorInfo {
    /// A stable machine code: the provider's own, or one of [ours](crate::codes).
    pub code: Text,
    /// The provider's message. Text from outside: a guard may withhold it.
    pub message: Option<Text>,
    /// The observer or middleware that failed, if one did.
    pub component: Option<Id>,
}

impl ErrorInfo {
    /// An error with a code and nothing else.
    pub fn new(code: impl Into<Text>) -> Self {
        Self { code: code.into(), message: None, component: None }
    }

    /// With the provider's message.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<Text>) -> Self {
        self.message = Some(message.into());
        self
    }

    /// With the component that failed.
    #[must_use]
    pub fn with_component(mut self, component: Id) -> Self {
        self.component = Some(component);
        self
    }
}

impl std::fmt::Display for ErrorInfo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.code)?;
        if let Some(component) = &self.component {
            write!(f, " (`{component}`)")?;
        }
        match &self.message {
            Some(message) => write!(f, ": {message}"),
            None => Ok(()),
        }
    }
}

/// The right to end one invocation or run.
///
/// Not `Clone`, and the only way to make an `end` chunk: whoever has spent it cannot write a second terminal. Stacks and run engines
/// open one for each invocation or run and spend it at one place.
///
/// ```compile_fail
/// use streamkeeper_contract::{Chunk, EndToken, Outcome};
/// let token = EndToken::open();
/// let _ = Chunk::end(token, Outcome::Dropped.into());
/// let _ = Chunk::end(token, Outcome::Dropped.into()); // use of moved value
/// ```
#[derive(Debug)]
pub struct EndToken(());

impl EndToken {
    /// Opens an invocation or run that has to end once.
    pub fn open() -> Self {
        Self(())
    }

    /// Gives up the right.
    pub fn spend(self) {}
}

//! Observers that come with Streamkeeper.
//!
//! | observer | what it does | role |
//! |---|---|---|
//! | [`HaltOnPattern`] | stops a stream whose text matches a pattern | guard |
//! | [`TokenCeiling`], [`CostCeiling`], [`LengthCeiling`] | stop a stream that says or costs too much | guard |
//! | [`Stall`] | stops a stream in which nothing is said for too long | guard |
//! | [`Repetition`] | stops a model that has fallen into a loop | guard |
//! | [`PromptLeak`] | stops a model that recites its system prompt | guard |
//! | [`OffTopic`] | stops a model that talks about something else | guard |
//! | [`Redact`] | takes secrets and personal data out of texts and arguments | guard |
//! | [`TextObserver`] | looks for patterns, and replaces, stops, emits or tags where they match | guard |
//! | [`NormalizeDialects`] | makes tool calls and thoughts of what a model wrote into its answer | transform |
//! | [`Metrics`] | counts and times | watcher |
//!
//! They are registered like observers of your own; a value converts into a
//! [`Registration`](streamkeeper_stream::Registration) or, alone, into [`Observers`](streamkeeper_stream::Observers).
//!
//! Depend on this crate, or on the facade `streamkeeper`, to use them. To write observers, `streamkeeper-stream` is enough.
#![forbid(unsafe_code)]

mod ceiling;
mod dialect;
mod halt;
mod halting;
mod metrics;
mod off_topic;
mod prompt_leak;
mod redact;
mod repetition;
mod stall;
mod text_observer;

pub use ceiling::{CostCeiling, LengthCeiling, TokenCeiling, TokenPrices};
pub use dialect::{Dialect, NormalizeDialects, SPECIAL_TOKENS};
pub use halt::{HaltOnPattern, MAX_PATTERN_BYTES, PatternError, PatternSet, RefusalSet};
pub use halting::HALTS;
pub use metrics::Metrics;
pub use off_topic::OffTopic;
pub use prompt_leak::PromptLeak;
#[cfg(feature = "keyed-hash")]
pub use redact::HashKey;
pub use redact::{Redact, Redacted, RedactionSet, Redactor, Replacement, RestoreTokens, Vault};
pub use repetition::Repetition;
pub use stall::Stall;
pub use text_observer::{ArgumentsCheck, MAX_UNDECIDED, Match, OnArguments, OnMatch, TextObserver, validators};

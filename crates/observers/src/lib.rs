//! Observers that come with Streamkeeper.
//!
//! | observer | what it does | role |
//! |---|---|---|
//! | [`HaltOnPattern`] | stops a stream whose text matches a pattern | guard |
//! | [`NormalizeDialects`] | makes tool calls and thoughts of what a model wrote into its answer | transform |
//! | [`Metrics`] | counts and times | watcher |
//!
//! They are registered like observers of your own; a value converts into a
//! [`Registration`](streamkeeper_stream::Registration) or, alone, into [`Observers`](streamkeeper_stream::Observers).
//!
//! Depend on this crate, or on the facade `streamkeeper`, to use them. To write observers, `streamkeeper-stream` is enough.
#![forbid(unsafe_code)]

mod dialect;
mod halt;
mod metrics;

pub use dialect::{Dialect, NormalizeDialects, SPECIAL_TOKENS};
pub use halt::{HaltOnPattern, MAX_PATTERN_BYTES, PatternError, RefusalSet};
pub use metrics::Metrics;

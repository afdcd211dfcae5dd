//! Observers that come with Streamkeeper: [`HaltOnPattern`] stops a stream whose text matches, [`Metrics`] counts and times it.
//!
//! Both are registered like observers of your own; a value converts into a
//! [`Registration`](streamkeeper_stream::Registration) or, alone, into [`Observers`](streamkeeper_stream::Observers).
//!
//! Depend on this crate, or on the facade `streamkeeper`, to use them. To write observers, `streamkeeper-stream` is enough.
#![forbid(unsafe_code)]

mod halt;
mod metrics;

pub use halt::{HaltOnPattern, MAX_PATTERN_BYTES, PatternError, RefusalSet};
pub use metrics::Metrics;

//! Synchronous observers between a model's stream and its consumer.
#![forbid(unsafe_code)]

//! What the benches measure, and what they compare it with.
#![forbid(unsafe_code)]

pub mod decode;
pub mod passthrough;
pub mod stack;

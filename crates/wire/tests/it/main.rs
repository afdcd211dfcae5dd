//! What the crate promises as a whole, on streams of many providers.

mod passthrough;
mod streams;

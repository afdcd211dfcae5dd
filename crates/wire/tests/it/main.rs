//! What the crate promises as a whole, on streams of many providers.

mod canonical;
mod endings;
mod passthrough;
mod streams;

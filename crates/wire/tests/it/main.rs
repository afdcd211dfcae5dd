//! What the crate promises as a whole, on streams of many providers.

mod bug_reports;
mod canonical;
mod decoder;
mod disorder;
mod encode;
mod endings;
mod frames;
mod framing;
mod passthrough;
mod said;
mod sse_body;
mod sseer;
mod streams;
mod truth;
mod wrong_types;

//! The data that every layer of Streamkeeper speaks: chunks, verdicts, usage, outcomes, ids and failures.
//!
//! Pure data: nothing here spawns, waits, reads a clock, does I/O or knows a provider. This crate changes very rarely. Depend on it to
//! write an observer, a decoder or a store; depend on the facade `streamkeeper` to use them.
#![forbid(unsafe_code)]

mod body;
mod call_class;
mod chunk;
pub mod codes;
mod failure;
mod form;
mod id;
mod json;
mod kind;
mod lane;
mod meta;
mod names;
mod outcome;
mod text;
mod usage;
mod verdict;

pub use body::{
    Annotation, Body, Custom, End, Finish, Media, MediaData, MessageInfo, Opaque, ProviderToolOutput, Raw, RunInfo,
    Snapshot, ToolCall, ToolCallStart, ToolResult,
};
pub use call_class::CallClass;
pub use chunk::Chunk;
pub use failure::{FailureDetail, FailureKind, FailureReport, FailureSink, Hook};
pub use id::{Id, InvalidId};
pub use json::Json;
pub use kind::ChunkKind;
pub use lane::{Channel, Lane};
pub use meta::{Extra, Meta, Offset, Origin, Provenance};
pub use outcome::{EndToken, ErrorInfo, FinishReason, Outcome, Stop};
pub use text::Text;
pub use usage::{Money, Stated, Usage};
pub use verdict::{Piece, Release, SideEvent, Verdict};

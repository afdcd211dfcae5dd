//! The data that every layer of Streamkeeper speaks: chunks, verdicts, usage, outcomes, ids and failures.
//!
//! Pure data: nothing here spawns, waits, reads a clock, does I/O or knows a provider. This crate changes very rarely. Depend on it to
//! write an observer, a decoder or a store; depend on the facade `streamkeeper` to use them.
#![forbid(unsafe_code)]

mod call_class;
mod chunk;
mod failure;
mod form;
mod id;
mod json;
mod lane;
mod outcome;
mod text;
mod usage;
mod verdict;

pub use call_class::CallClass;
pub use chunk::{
    Annotation, Body, Chunk, ChunkKind, Custom, End, Extra, Finish, Media, MediaData, MessageInfo, Meta, Offset,
    Opaque, Origin, Provenance, ProviderToolOutput, Raw, RunInfo, Snapshot, ToolCall, ToolCallStart, ToolResult,
};
pub use failure::{FailureDetail, FailureKind, FailureReport, FailureSink, Hook};
pub use id::{Id, InvalidId};
pub use json::Json;
pub use lane::{Channel, Lane};
pub use outcome::{EndToken, ErrorInfo, FinishReason, Outcome, Stop};
pub use text::Text;
pub use usage::{Money, Stated, Usage};
pub use verdict::{Piece, Release, SideEvent, Verdict};

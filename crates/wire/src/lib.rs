//! Provider bytes to chunks and back, without I/O.
//!
//! Bytes go in with any split, chunks come out; [`Decoder::finish`] tells the end of the body. Nothing here waits or knows a client, and
//! only [`Decoded`], the adapter for streams of bytes, reads a clock. Depend on this crate to read recorded or live model streams without the rest of Streamkeeper.
#![forbid(unsafe_code)]

pub mod ag_ui_request;
mod base64;
mod decoded;
mod decoder;
mod detect;
mod dialect;
pub mod encode;
mod ending;
mod error;
mod format;
pub mod frame;
mod inspect;
mod json;
mod output;
mod passthrough;
mod sse_body;

pub use decoded::{DecodeError, DecodeExt, Decoded};
pub use decoder::{Decoder, Limits, Stats};
pub use error::WireError;
pub use format::{Format, Framing, UnknownFormat};
pub use inspect::{InspectedCall, InspectedChoice, InspectedUsage, Inspection};
pub use output::is_made_up;
pub use passthrough::{Passthrough, PassthroughError};
pub use sse_body::{NoTicks, SseBody, SseBodyExt};

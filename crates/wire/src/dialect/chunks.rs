//! Chunks that several formats make.

use serde_json::value::RawValue;
use streamkeeper_contract::{Annotation, Body, Chunk, Finish, FinishReason, Lane, Opaque, Text};

/// A note about a lane's text.
pub(super) fn annotation(lane: Lane, form: &'static str, value: &RawValue) -> Chunk {
    Body::Annotation(Box::new(Annotation { lane, form: Text::from_static(form), value: value.into() })).into()
}

/// What only the provider understands.
pub(super) fn opaque(lane: Lane, form: &'static str, data: &str) -> Chunk {
    Body::Opaque(Box::new(Opaque { lane, form: Text::from_static(form), data: data.into() })).into()
}

/// A named value.
pub(super) fn custom(name: &str, value: &RawValue) -> Chunk {
    Chunk::custom(name, value.into())
}

/// The end of a choice, with the provider's word for it.
pub(super) fn finish(choice: u16, reason: FinishReason, stated: Option<Text>) -> Chunk {
    Body::Finish(Box::new(Finish { choice, reason, stated })).into()
}

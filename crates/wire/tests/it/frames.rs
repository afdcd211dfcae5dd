//! Helpers: frames that own their bytes, bodies cut into reads, binary messages.

use std::ops::Range;

use proptest::prelude::*;
use streamkeeper_wire::{Framing, WireError, frame::Framer};

/// A frame that owns what it holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Owned {
    pub(crate) raw: Vec<u8>,
    pub(crate) name: Option<String>,
    pub(crate) data: Option<String>,
    pub(crate) data_at: Option<usize>,
    pub(crate) outside: bool,
    pub(crate) unterminated: bool,
    pub(crate) id: String,
}

/// All frames of a body that comes in these reads, and the error that ended it.
pub(crate) fn frames<'a>(framer: Framer, reads: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Owned>, Option<WireError>) {
    let mut framer = framer;
    let mut frames = Vec::new();
    for read in reads {
        framer.push(read);
        if let Err(error) = drain(&mut framer, &mut frames) {
            return (frames, Some(error));
        }
    }
    framer.finish();
    let error = drain(&mut framer, &mut frames).err();
    (frames, error)
}

fn drain(framer: &mut Framer, frames: &mut Vec<Owned>) -> Result<(), WireError> {
    while let Some(frame) = framer.next_frame()? {
        let mut owned = Owned {
            raw: frame.raw.to_vec(),
            name: frame.name.map(str::to_owned),
            data: frame.data.map(str::to_owned),
            data_at: frame.data_at,
            outside: frame.outside,
            unterminated: frame.unterminated,
            id: String::new(),
        };
        framer.last_id().clone_into(&mut owned.id);
        frames.push(owned);
    }
    Ok(())
}

/// The frames of a body that comes at once.
pub(crate) fn whole(framing: Framing, body: &[u8]) -> Vec<Owned> {
    let (frames, error) = frames(Framer::new(framing), [body]);
    assert_eq!(error, None);
    frames
}

/// A body cut at these places.
pub(crate) fn cut<'a>(body: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(body.len() + 1)).collect();
    at.extend([0, body.len()]);
    at.sort_unstable();
    at.windows(2).map(|ends| &body[ends[0]..ends[1]]).collect()
}

/// A body of tokens, made to hit what a framing tells apart.
pub(crate) fn body(tokens: &'static [&'static [u8]], length: Range<usize>) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(tokens), length).prop_map(|tokens| tokens.concat())
}

/// A message of the AWS event stream with string headers.
pub(crate) fn message(headers: &[(&str, &str)], payload: &[u8]) -> Vec<u8> {
    let mut encoded = Vec::new();
    for (name, value) in headers {
        encoded.push(u8::try_from(name.len()).expect("a short name"));
        encoded.extend_from_slice(name.as_bytes());
        encoded.push(7);
        encoded.extend_from_slice(&u16::try_from(value.len()).expect("a short value").to_be_bytes());
        encoded.extend_from_slice(value.as_bytes());
    }
    message_with(&encoded, payload)
}

/// The same with headers that are encoded already.
pub(crate) fn message_with(headers: &[u8], payload: &[u8]) -> Vec<u8> {
    let length = |bytes: usize| u32::try_from(bytes).expect("a short message").to_be_bytes();
    let mut message = [length(16 + headers.len() + payload.len()), length(headers.len())].concat();
    message.extend_from_slice(&crc32fast::hash(&message).to_be_bytes());
    message.extend_from_slice(headers);
    message.extend_from_slice(payload);
    message.extend_from_slice(&crc32fast::hash(&message).to_be_bytes());
    message
}

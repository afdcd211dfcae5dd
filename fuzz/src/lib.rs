//! What every fuzz target checks: nothing panics, and it does not matter how the bytes are cut.
//!
//! A target is one line in `fuzz_targets/`. Run all of them with `fuzz/run SECONDS`, or some with `fuzz/run SECONDS TARGET…`.

use streamkeeper_wire::{Decoder, Format, Framing, Limits, WireError, frame::Framer};

/// Small, so that inputs of a few kilobytes meet the limit.
const EVENT_BYTES: usize = 2048;

/// A target that decodes a format.
#[macro_export]
macro_rules! fuzz_format {
    ($format:ident) => {
        libfuzzer_sys::fuzz_target!(|data: &[u8]| $crate::decode(Some(streamkeeper_wire::Format::$format), data));
    };
}

/// A target that splits bytes into frames.
#[macro_export]
macro_rules! fuzz_framing {
    ($framing:ident) => {
        libfuzzer_sys::fuzz_target!(|data: &[u8]| $crate::frame(streamkeeper_wire::Framing::$framing, data));
    };
}

/// Decodes a body at once and three bytes at a time.
pub fn decode(format: Option<Format>, body: &[u8]) {
    compare_chunks(format, body);
    if matches!(format, Some(Format::BedrockConverse | Format::BedrockInvoke)) {
        compare_chunks(format, &with_checksums(body));
    }
}

/// Frames a body at once and three bytes at a time.
pub fn frame(framing: Framing, body: &[u8]) {
    compare_frames(framing, body);
    if framing == Framing::AwsEventStream {
        compare_frames(framing, &with_checksums(body));
    }
}

fn compare_chunks(format: Option<Format>, body: &[u8]) {
    let read = |size: usize| {
        let mut limits = Limits::default();
        limits.event_bytes = EVENT_BYTES;
        let mut decoder = format.map_or_else(Decoder::detect, Decoder::new).limits(limits);
        let mut chunks = Vec::new();
        let mut error = None;
        for bytes in body.chunks(size) {
            error = decoder.push(bytes).err();
            chunks.extend(std::iter::from_fn(|| decoder.next_chunk()));
            if error.is_some() {
                break;
            }
        }
        if error.is_none() {
            error = decoder.finish().err();
            chunks.extend(std::iter::from_fn(|| decoder.next_chunk()));
        }
        (chunks, error, decoder.format(), decoder.framing())
    };
    assert_eq!(read(3), read(body.len().max(1)));
}

type Frames = (Vec<(Vec<u8>, Option<String>, Option<String>, Option<usize>, bool, bool)>, Option<WireError>);

fn compare_frames(framing: Framing, body: &[u8]) {
    let read = |size: usize| {
        let mut framer = Framer::new(framing).limit(EVENT_BYTES);
        let mut frames = Vec::new();
        for bytes in body.chunks(size) {
            framer.push(bytes);
            if let Err(error) = drain(&mut framer, &mut frames) {
                return (frames, Some(error));
            }
        }
        framer.finish();
        let error = drain(&mut framer, &mut frames).err();
        (frames, error)
    };
    let (frames, error): Frames = read(3);
    let joined: Vec<u8> = frames.iter().flat_map(|frame| frame.0.iter().copied()).collect();
    assert!(if error.is_none() { joined == body } else { body.starts_with(&joined) }, "the frames are not the bytes");
    assert_eq!((frames, error), read(body.len().max(1)));
}

fn drain(
    framer: &mut Framer,
    frames: &mut Vec<(Vec<u8>, Option<String>, Option<String>, Option<usize>, bool, bool)>,
) -> Result<(), WireError> {
    while let Some(frame) = framer.next_frame()? {
        frames.push((
            frame.raw.to_vec(),
            frame.name.map(str::to_owned),
            frame.data.map(str::to_owned),
            frame.data_at,
            frame.outside,
            frame.unterminated,
        ));
    }
    Ok(())
}

/// The same bytes as messages of the AWS event stream whose lengths fit and whose checksums are right: no fuzzer finds those.
fn with_checksums(body: &[u8]) -> Vec<u8> {
    const OVERHEAD: usize = 16;
    let mut body = body.to_vec();
    let mut from = 0;
    while body.len() - from >= OVERHEAD {
        let message = &mut body[from..];
        let stated = |at: usize| usize::from(u16::from_be_bytes([message[at], message[at + 1]]));
        let total = stated(2).clamp(OVERHEAD, message.len());
        let headers = stated(6).min(total - OVERHEAD);
        let message = &mut message[..total];
        message[..4].copy_from_slice(&(total as u32).to_be_bytes());
        message[4..8].copy_from_slice(&(headers as u32).to_be_bytes());
        let checksum = crc32fast::hash(&message[..8]);
        message[8..12].copy_from_slice(&checksum.to_be_bytes());
        let checksum = crc32fast::hash(&message[..total - 4]);
        message[total - 4..].copy_from_slice(&checksum.to_be_bytes());
        from += total;
    }
    body
}

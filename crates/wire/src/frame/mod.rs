//! Bytes to events, for every split: server-sent events, JSON lines, JSON arrays, AWS event streams.
//!
//! A framer knows no provider and no JSON beyond where a value ends.

mod array;
mod aws;
mod json_end;
mod lines;
mod sse;

use std::ops::Range;

use crate::{Framing, WireError};

/// One event with the bytes it came in.
///
/// The `raw` parts of all frames of a stream, joined, are the bytes of the stream: comments, blank lines and a byte order mark belong to
/// some frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// All bytes since the frame before.
    pub raw: &'a [u8],
    /// The event's name in its framing, if it states one.
    pub name: Option<&'a str>,
    /// The payload, or `None` for a frame of comments only.
    pub data: Option<&'a str>,
    /// Where the payload stands in `raw`, if it stands there in one piece and as it is.
    pub data_at: Option<usize>,
    /// The payload stood outside of any event: a bare JSON body between events.
    pub outside: bool,
    /// The body ended before the event was closed.
    pub unterminated: bool,
}

/// Splits a body into frames.
#[derive(Debug)]
pub struct Framer {
    kind: Kind,
    buffer: Buffer,
    current: Option<Found>,
}

#[derive(Debug)]
enum Kind {
    Sse(sse::Sse),
    Lines(lines::Lines),
    Array(array::Array),
    Aws(aws::Aws),
}

/// The bytes that are not in a finished frame yet.
#[derive(Debug)]
struct Buffer {
    bytes: Vec<u8>,
    /// Where the frame being read begins.
    start: usize,
    limit: usize,
    /// The body is over.
    closed: bool,
}

impl Buffer {
    fn unread(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}

/// A frame, as places in the buffer relative to its beginning.
#[derive(Debug, Clone, Default)]
struct Found {
    raw: Range<usize>,
    name: Data,
    data: Data,
    outside: bool,
    unterminated: bool,
}

#[derive(Debug, Clone, Default)]
enum Data {
    #[default]
    None,
    /// As it stands in the buffer, relative to `raw`.
    At(Range<usize>),
    /// Joined from several lines, or with U+FFFD in the place of what is not UTF-8.
    Own(String, u64),
}

impl Data {
    fn resolve<'a>(&'a self, raw: &'a [u8]) -> (Option<&'a str>, Option<usize>) {
        match self {
            Data::None => (None, None),
            Data::At(range) => {
                (raw.get(range.clone()).and_then(|bytes| std::str::from_utf8(bytes).ok()), Some(range.start))
            }
            Data::Own(text, _) => (Some(text), None),
        }
    }
}

impl Framer {
    /// At the beginning of a body. `limit` is the most bytes one frame may have.
    pub fn new(framing: Framing, limit: usize) -> Self {
        let kind = match framing {
            Framing::JsonLines => Kind::Lines(lines::Lines::default()),
            Framing::JsonArray => Kind::Array(array::Array::default()),
            Framing::AwsEventStream => Kind::Aws(aws::Aws::default()),
            Framing::Sse => Kind::Sse(sse::Sse::default()),
        };
        Self { kind, buffer: Buffer { bytes: Vec::new(), start: 0, limit, closed: false }, current: None }
    }

    /// Takes the next bytes of the body.
    pub fn push(&mut self, bytes: &[u8]) {
        self.release();
        if self.buffer.start > 0 {
            self.buffer.bytes.drain(..self.buffer.start);
            self.buffer.start = 0;
        }
        self.buffer.bytes.extend_from_slice(bytes);
    }

    /// The body is over: what is left is the last frame.
    pub fn finish(&mut self) {
        self.buffer.closed = true;
    }

    /// Finds the next frame.
    ///
    /// # Errors
    /// If a frame is larger than the limit.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, WireError> {
        if self.advance()? { Ok(self.frame()) } else { Ok(None) }
    }

    /// Finds the next frame and says whether there is one; [`frame`](Framer::frame) shows it.
    pub(crate) fn advance(&mut self) -> Result<bool, WireError> {
        self.release();
        let found = match &mut self.kind {
            Kind::Sse(sse) => sse.find(&self.buffer),
            Kind::Lines(lines) => lines.find(&self.buffer),
            Kind::Array(array) => array.find(&self.buffer),
            Kind::Aws(aws) => aws.find(&self.buffer)?,
        };
        let length = found.as_ref().map_or(self.buffer.unread().len(), |found| found.raw.len());
        if length > self.buffer.limit {
            return Err(WireError::EventTooLarge { limit: self.buffer.limit });
        }
        self.current = found;
        Ok(self.current.is_some())
    }

    /// The frame found last.
    pub(crate) fn frame(&self) -> Option<Frame<'_>> {
        let found = self.current.as_ref()?;
        let raw = self.buffer.unread().get(found.raw.clone())?;
        let (data, data_at) = found.data.resolve(raw);
        let (name, _) = found.name.resolve(raw);
        Some(Frame { raw, name, data, data_at, outside: found.outside, unterminated: found.unterminated })
    }

    /// How often U+FFFD was put into the payload of the frame found last.
    pub(crate) fn invalid_utf8(&self) -> u64 {
        match self.current.as_ref().map(|found| &found.data) {
            Some(Data::Own(_, invalid)) => *invalid,
            _ => 0,
        }
    }

    fn release(&mut self) {
        if let Some(found) = self.current.take() {
            self.buffer.start += found.raw.len();
        }
    }
}

/// Text of a payload: in place if it is UTF-8, else with U+FFFD put in.
fn text_at(unread: &[u8], range: Range<usize>) -> Data {
    match std::str::from_utf8(&unread[range.clone()]) {
        Ok(_) => Data::At(range),
        Err(_) => own_text(&unread[range]),
    }
}

/// Text that stands nowhere in one piece.
fn own_text(bytes: &[u8]) -> Data {
    let invalid = bytes.utf8_chunks().filter(|chunk| !chunk.invalid().is_empty()).count() as u64;
    Data::Own(String::from_utf8_lossy(bytes).into_owned(), invalid)
}

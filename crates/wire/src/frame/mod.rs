//! Bytes to events, for every split: server-sent events, JSON lines, JSON arrays, AWS event streams.
//!
//! A [`Framer`] knows no provider, and of JSON only where a value ends.

mod array;
mod aws;
mod json_end;
mod lines;
mod sse;

use std::ops::Range;

use crate::{Framing, WireError};

pub(crate) use aws::is_prelude as is_aws_prelude;

/// The most bytes one event may have, unless told otherwise: 8 MiB.
pub(crate) const EVENT_BYTES: usize = 8 * 1024 * 1024;

/// One event with the bytes it came in.
///
/// The `raw` parts of all frames of a stream, joined, are the bytes of the stream: comments, blank lines, separators and a byte order
/// mark belong to some frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// All bytes since the frame before.
    pub raw: &'a [u8],
    /// The event's name in its framing, if it states one: the `event` field; the `:event-type` of an AWS message, or its
    /// `:exception-type` or `:error-code`.
    pub name: Option<&'a str>,
    /// The payload. `None` for a frame of comments only, a blank line, a closing bracket and the like. What was not UTF-8 is U+FFFD here.
    pub data: Option<&'a str>,
    /// Where the payload stands in `raw`, if it stands there in one piece and as it is.
    pub data_at: Option<usize>,
    /// The payload stood outside of any event: a bare JSON body between events, the value of an `error` field, a value behind the end of
    /// a JSON array.
    pub outside: bool,
    /// The body ended before the event was closed. The payload may be a part of what it was meant to be.
    pub unterminated: bool,
}

/// Splits a body into frames.
///
/// Bytes go in with [`push`](Framer::push), frames come out of [`next_frame`](Framer::next_frame) until it gives `None`. Every split of
/// the same bytes gives the same frames.
///
/// - **SSE** by the WHATWG rules (HTML, 9.2.6). Each blank line closes a frame, so a keep-alive comment passes as soon as it is whole. A
///   stream whose lines end in a lone CR is one byte late: a line feed may follow. Beyond the rules, since silent loss is worse, the
///   last event is given without its blank line ([`unterminated`](Frame::unterminated)), and so is what stands
///   [`outside`](Frame::outside) of any event.
/// - **JSON lines**: each line is a frame, blank ones without payload.
/// - **JSON array**: each element is a frame, with the separators before it.
/// - **AWS event stream**: each message is a frame. Lengths, headers and both checksums are checked.
///
/// Costs a copy of the bytes and one or two passes over them. Does not allocate per event, unless it is larger than 2 KiB. Keeps the bytes of the event being read, at
/// most the limit and one push more.
///
/// ```
/// use streamkeeper_wire::{Framing, frame::Framer};
///
/// let mut framer = Framer::new(Framing::Sse);
/// framer.push(b": hi\n\nevent: delta\r");
/// framer.push(b"\ndata: {}\r\n\r\nid: 7\r\nda");
///
/// let comment = framer.next_frame()?.unwrap();
/// assert_eq!((comment.raw, comment.data), (&b": hi\n\n"[..], None));
/// let event = framer.next_frame()?.unwrap();
/// assert_eq!((event.name, event.data, event.data_at), (Some("delta"), Some("{}"), Some(20)));
/// assert_eq!(framer.next_frame()?, None);
///
/// framer.push(b"ta: [1]");
/// framer.finish();
/// let last = framer.next_frame()?.unwrap();
/// assert_eq!((last.data, last.unterminated), (Some("[1]"), true));
/// assert_eq!(framer.last_id(), "7");
/// # Ok::<_, streamkeeper_wire::WireError>(())
/// ```
#[derive(Debug)]
pub struct Framer {
    kind: Kind,
    buffer: Buffer,
    current: Option<Found>,
    /// Names and payloads that do not stand in the buffer as they are.
    own_name: Vec<u8>,
    own_data: Vec<u8>,
    /// The first bytes are no beginning of a byte order mark, or it was skipped.
    begun: bool,
    invalid_utf8: u64,
    error: Option<WireError>,
}

#[derive(Debug)]
enum Kind {
    Sse(sse::Sse),
    Lines(lines::Lines),
    Array(array::Array),
    Aws(aws::Aws),
}

pub(crate) const BOM: &[u8] = b"\xEF\xBB\xBF";

impl Framer {
    /// At the beginning of a body, with a limit of 8 MiB for an event.
    pub fn new(framing: Framing) -> Self {
        let kind = match framing {
            Framing::JsonLines => Kind::Lines(lines::Lines::default()),
            Framing::JsonArray => Kind::Array(array::Array::default()),
            Framing::AwsEventStream => Kind::Aws(aws::Aws::default()),
            Framing::Sse => Kind::Sse(sse::Sse::default()),
        };
        Self {
            kind,
            buffer: Buffer { bytes: Vec::new(), start: 0, limit: EVENT_BYTES, closed: false },
            current: None,
            own_name: Vec::new(),
            own_data: Vec::new(),
            begun: framing == Framing::AwsEventStream,
            invalid_utf8: 0,
            error: None,
        }
    }

    /// With another limit: the most bytes one frame may have, comments and separators included.
    #[must_use]
    pub fn limit(mut self, bytes: usize) -> Self {
        self.buffer.limit = bytes;
        self
    }

    /// Takes the next bytes of the body. Take all frames before the next push: what is not taken is kept. After an error or
    /// [`finish`](Framer::finish) bytes are ignored.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.error.is_none() && !self.buffer.closed {
            self.release();
            self.buffer.push(bytes);
        }
    }

    /// The body is over: what is left is the last frame.
    pub fn finish(&mut self) {
        self.buffer.closed = true;
    }

    /// Finds the next frame; `None` if there is none before more bytes are pushed.
    ///
    /// # Errors
    /// [`WireError::EventTooLarge`] as soon as the frame being read has more bytes than the limit, [`WireError::BrokenMessage`] if a
    /// binary message contradicts itself. There is no way on after an error: it stays, and the buffer is dropped.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, WireError> {
        if self.advance()? { Ok(self.frame()) } else { Ok(None) }
    }

    /// The id that the stream gave last ([`id` field](https://html.spec.whatwg.org/multipage/server-sent-events.html) of SSE), empty if
    /// none: where a client may resume.
    pub fn last_id(&self) -> &str {
        match &self.kind {
            Kind::Sse(sse) => sse.last_id(),
            _ => "",
        }
    }

    /// How often U+FFFD was put into a name or payload, since the bytes were not UTF-8.
    pub fn invalid_utf8(&self) -> u64 {
        self.invalid_utf8
    }

    /// Whether something was seen that belongs to this framing and to no other text, be it no event: a comment, a field, a bracket.
    pub(crate) fn is_framed(&self) -> bool {
        match &self.kind {
            Kind::Sse(sse) => sse.is_framed(),
            Kind::Array(array) => array.is_framed(),
            Kind::Lines(_) | Kind::Aws(_) => false,
        }
    }

    /// Finds the next frame and says whether there is one; [`frame`](Framer::frame) shows it.
    pub(crate) fn advance(&mut self) -> Result<bool, WireError> {
        if let Some(error) = &self.error {
            return Err(error.clone());
        }
        self.release();
        if !self.begin() {
            return Ok(false);
        }
        match self.find() {
            Ok(found) => {
                self.current = found;
                Ok(self.current.is_some())
            }
            Err(error) => {
                self.buffer.bytes = Vec::new();
                self.buffer.start = 0;
                self.error = Some(error.clone());
                Err(error)
            }
        }
    }

    /// The frame found last.
    pub(crate) fn frame(&self) -> Option<Frame<'_>> {
        let found = self.current.as_ref()?;
        let raw = self.buffer.unread().get(..found.len)?;
        Some(Frame {
            raw,
            name: found.name.text(raw, &self.own_name),
            data: found.data.text(raw, &self.own_data),
            data_at: found.data.place(),
            outside: found.outside,
            unterminated: found.unterminated,
        })
    }

    /// Skips a byte order mark; `false` if more bytes are needed for that.
    fn begin(&mut self) -> bool {
        if self.begun {
            return true;
        }
        let unread = self.buffer.unread();
        if unread.len() < BOM.len() && BOM.starts_with(unread) && !self.buffer.closed {
            return false;
        }
        if unread.starts_with(BOM) {
            match &mut self.kind {
                Kind::Sse(sse) => sse.skip(BOM.len()),
                Kind::Lines(lines) => lines.skip(BOM.len()),
                Kind::Array(array) => array.skip(BOM.len()),
                Kind::Aws(_) => {}
            }
        }
        self.begun = true;
        true
    }

    fn find(&mut self) -> Result<Option<Found>, WireError> {
        let found = match &mut self.kind {
            Kind::Sse(sse) => sse.find(&self.buffer, &mut self.own_data),
            Kind::Lines(lines) => lines.find(&self.buffer),
            Kind::Array(array) => array.find(&self.buffer),
            Kind::Aws(aws) => aws.find(&self.buffer, &mut self.own_data)?,
        };
        let length = match (&found, &self.kind) {
            (Some(found), _) => found.len,
            (None, Kind::Sse(sse)) => sse.certain(self.buffer.unread().len()),
            (None, _) => self.buffer.unread().len(),
        };
        if length > self.buffer.limit {
            return Err(WireError::EventTooLarge { limit: self.buffer.limit });
        }
        let Some(mut found) = found else { return Ok(None) };
        let raw = &self.buffer.unread()[..found.len];
        self.invalid_utf8 += found.name.make_utf8(raw, &mut self.own_name);
        self.invalid_utf8 += found.data.make_utf8(raw, &mut self.own_data);
        Ok(Some(found))
    }

    /// Lets go of the frame found last.
    fn release(&mut self) {
        if let Some(found) = self.current.take() {
            self.buffer.release(found.len);
            if self.own_data.capacity() > KEPT {
                self.own_data = Vec::new();
            }
        }
    }
}

/// An empty buffer keeps no more than this, so that open streams are cheap.
const KEPT: usize = 4096;

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

    fn push(&mut self, bytes: &[u8]) {
        // What is moved is never more than what was read since the last move.
        if self.start >= self.bytes.len() - self.start {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
        let needed = self.bytes.len() + bytes.len();
        if needed > self.bytes.capacity() {
            // Twice as much as before, but not more than the limit allows to be used.
            let most = self.limit.saturating_add(bytes.len()).saturating_add(self.start);
            let doubled = self.bytes.capacity().saturating_mul(2);
            let capacity = if doubled > most && needed <= most { most } else { doubled.max(needed) };
            self.bytes.reserve_exact(capacity - self.bytes.len());
        }
        self.bytes.extend_from_slice(bytes);
    }

    fn release(&mut self, length: usize) {
        self.start += length;
        if self.start == self.bytes.len() {
            self.bytes.clear();
            self.start = 0;
            if self.bytes.capacity() > KEPT {
                self.bytes.shrink_to(KEPT);
            }
        }
    }
}

/// A frame, as places in the buffer relative to its beginning.
#[derive(Debug, Default)]
struct Found {
    len: usize,
    name: Place,
    data: Place,
    outside: bool,
    unterminated: bool,
}

/// Where a name or a payload stands.
#[derive(Debug, Default)]
enum Place {
    #[default]
    Nowhere,
    /// In the frame's bytes, as it is.
    At(Range<usize>),
    /// In a buffer of its own: joined, or with U+FFFD.
    Own,
}

impl Place {
    fn bytes<'a>(&self, raw: &'a [u8], own: &'a [u8]) -> Option<&'a [u8]> {
        match self {
            Place::Nowhere => None,
            Place::At(range) => raw.get(range.clone()),
            Place::Own => Some(own),
        }
    }

    fn text<'a>(&self, raw: &'a [u8], own: &'a [u8]) -> Option<&'a str> {
        self.bytes(raw, own).and_then(|bytes| std::str::from_utf8(bytes).ok())
    }

    fn place(&self) -> Option<usize> {
        match self {
            Place::At(range) => Some(range.start),
            Place::Nowhere | Place::Own => None,
        }
    }

    /// Puts U+FFFD in the place of what is not UTF-8 and says how often.
    fn make_utf8(&mut self, raw: &[u8], own: &mut Vec<u8>) -> u64 {
        let Some(bytes) = self.bytes(raw, own) else { return 0 };
        if std::str::from_utf8(bytes).is_ok() {
            return 0;
        }
        let invalid = bytes.utf8_chunks().filter(|chunk| !chunk.invalid().is_empty()).count();
        *own = String::from_utf8_lossy(bytes).into_owned().into_bytes();
        *self = Place::Own;
        invalid as u64
    }
}

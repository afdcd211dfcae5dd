//! Bytes to events, for every split: server-sent events, JSON lines, JSON arrays, AWS event streams.
//!
//! A framer knows no provider and no JSON beyond where a value ends.

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

use streamkeeper_contract::{Chunk, Offset};

use crate::{Format, Framing, WireError};

/// Limits of a [`Decoder`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The most bytes one event may have. Default: 8 MiB.
    pub event_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { event_bytes: 8 * 1024 * 1024 }
    }
}

/// What a [`Decoder`] has seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Bytes of the body.
    pub bytes: u64,
    /// Events: SSE blocks with a data line, JSON lines, array elements, binary messages.
    pub events: u64,
    /// Events that no rule of the format fits; each became a `raw` chunk.
    pub unknown: u64,
    /// Places where the bytes were not UTF-8 and U+FFFD was put in.
    pub invalid_utf8: u64,
    /// The last event had no end and was delivered since its payload was whole.
    pub unterminated: bool,
    /// The body ended inside an event, which is lost.
    pub cut_off: bool,
    /// The format's own end was seen. `None` where this framing cannot show it.
    pub end_mark: Option<bool>,
}

/// Bytes in, chunks out.
#[derive(Debug)]
pub struct Decoder {}

impl Decoder {
    /// A decoder of a named format. The framing is told from the first bytes.
    pub fn new(format: Format) -> Self {
        let _ = format;
        Self {}
    }

    /// A decoder that tells the format from the first event. It holds back chunks until then (at most 64 KiB of input).
    pub fn detect() -> Self {
        Self {}
    }

    /// With other limits.
    #[must_use]
    pub fn limits(self, limits: Limits) -> Self {
        let _ = limits;
        self
    }

    /// Stamps the chunks of the bytes pushed from here on.
    pub fn set_offset(&mut self, at: Offset) {
        let _ = at;
    }

    /// Takes the next bytes of the body.
    ///
    /// # Errors
    /// See [`WireError`]. After an error the decoder takes no more bytes; chunks decoded before are still there.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        let _ = bytes;
        Ok(())
    }

    /// The body is over.
    ///
    /// # Errors
    /// If it was empty or fits no format.
    pub fn finish(&mut self) -> Result<(), WireError> {
        Ok(())
    }

    /// Takes the oldest decoded chunk.
    pub fn next_chunk(&mut self) -> Option<Chunk> {
        None
    }

    /// The format, once it is known.
    pub fn format(&self) -> Option<Format> {
        None
    }

    /// The framing, once it is known.
    pub fn framing(&self) -> Option<Framing> {
        None
    }

    /// What was seen so far.
    pub fn stats(&self) -> Stats {
        Stats::default()
    }
}

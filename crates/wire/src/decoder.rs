use streamkeeper_contract::{Chunk, Offset, Text};

use crate::{
    Format, Framing, WireError, detect,
    dialect::{Dialect, Event, reader},
    frame::{Frame, Framer},
    output::{Leaf, Output},
};

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
    /// How a failed stream says that it ended, in the provider's own word: `failed`, `RUN_ERROR`. A stream that did not fail states
    /// that in its finish.
    pub stated_end: Option<Text>,
}

/// Bytes in, chunks out.
#[derive(Debug)]
pub struct Decoder {
    limits: Limits,
    format: Option<Format>,
    framing: Option<Framing>,
    framer: Option<Framer>,
    dialect: Option<Box<dyn Dialect>>,
    out: Output,
    stats: Stats,
    /// Bytes that came before the framing was known.
    head: Vec<u8>,
    error: Option<WireError>,
    /// Events that are an end mark of no format in particular.
    end_marks: u64,
    /// What the first event looks like.
    looks_like: Option<Format>,
    /// Something other than events was seen: comments, a bare error.
    other: bool,
}

impl Decoder {
    /// A decoder of a named format. The framing is told from the first bytes.
    pub fn new(format: Format) -> Self {
        Self { dialect: Some(reader(format)), format: Some(format), ..Self::detect() }
    }

    /// A decoder that tells the format from the first event. It holds back chunks until then (at most 64 KiB of input).
    pub fn detect() -> Self {
        Self {
            limits: Limits::default(),
            format: None,
            framing: None,
            framer: None,
            dialect: None,
            out: Output::default(),
            stats: Stats::default(),
            head: Vec::new(),
            error: None,
            end_marks: 0,
            looks_like: None,
            other: false,
        }
    }

    /// With other limits.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Stamps the chunks of the bytes pushed from here on.
    pub fn set_offset(&mut self, at: Offset) {
        self.out.set_offset(at);
    }

    /// Takes the next bytes of the body.
    ///
    /// # Errors
    /// See [`WireError`]. After an error the decoder takes no more bytes; chunks decoded before are still there.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        self.feed(bytes)?;
        while self.step()? {}
        Ok(())
    }

    /// The body is over.
    ///
    /// # Errors
    /// If it was empty or fits no format.
    pub fn finish(&mut self) -> Result<(), WireError> {
        self.close()?;
        while self.step()? {}
        self.end()
    }

    /// After the last frame of a closed body: lets the dialect say what a clean end means.
    pub(crate) fn end(&mut self) -> Result<(), WireError> {
        if !self.stats.cut_off
            && let Some(dialect) = &mut self.dialect
        {
            dialect.finish(&mut self.out);
        }
        // An end mark is the same in many formats: beside events that are not understood it says nothing.
        let events = if self.out.unknown == 0 { self.stats.events } else { self.stats.events - self.end_marks };
        let understood = events > self.out.unknown || self.out.failed || (self.stats.cut_off && self.format.is_some());
        match self.format {
            _ if understood || (self.other && self.stats.events == 0) => Ok(()),
            Some(Format::Raw) if self.stats.events > 0 => Ok(()),
            Some(expected) => {
                let looks_like = self.looks_like.filter(|format| *format != expected && *format != Format::Raw);
                Err(WireError::WrongFormat { expected, looks_like })
            }
            None => Err(WireError::Undetected),
        }
    }

    /// Takes bytes without decoding them: [`step`](Decoder::step) does that, frame by frame.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        if let Some(error) = &self.error {
            return Err(error.clone());
        }
        self.stats.bytes += bytes.len() as u64;
        if let Some(framer) = &mut self.framer {
            framer.push(bytes);
            return Ok(());
        }
        self.head.extend_from_slice(bytes);
        if let Some(framing) = detect::framing(self.format, &self.head, false) {
            self.open(framing);
        }
        Ok(())
    }

    /// The body is over; [`step`](Decoder::step) gives what is left.
    pub(crate) fn close(&mut self) -> Result<(), WireError> {
        if let Some(error) = &self.error {
            return Err(error.clone());
        }
        if self.framer.is_none() {
            if self.head.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&self.head).trim_ascii().is_empty() {
                return Err(self.fail(WireError::Empty));
            }
            let framing = detect::framing(self.format, &self.head, true).ok_or(WireError::Undetected)?;
            self.open(framing);
        }
        if let Some(framer) = &mut self.framer {
            framer.finish();
        }
        Ok(())
    }

    fn fail(&mut self, error: WireError) -> WireError {
        self.error = Some(error.clone());
        error
    }

    fn open(&mut self, framing: Framing) {
        let mut framer = Framer::new(framing, self.limits.event_bytes);
        framer.push(&std::mem::take(&mut self.head));
        self.framing = Some(framing);
        self.framer = Some(framer);
    }

    /// Decodes one frame and says whether there was one. Its bytes are in [`frame`](Decoder::frame) until the next step; its chunks are
    /// taken with [`pop`](Decoder::pop).
    pub(crate) fn step(&mut self) -> Result<bool, WireError> {
        let Some(framer) = &mut self.framer else { return Ok(false) };
        match framer.advance() {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            Err(error) => return Err(self.fail(error)),
        }
        self.out.next_frame();
        let Some(frame) = framer.frame() else { return Ok(true) };
        self.stats.invalid_utf8 += framer.invalid_utf8();
        let Some(data) = frame.data else {
            self.other |= !frame.raw.trim_ascii().is_empty() && frame.raw.trim_ascii()[0] == b':';
            return Ok(true);
        };
        if frame.outside {
            self.other = true;
            self.out.outside(data);
            return Ok(true);
        }
        if frame.unterminated {
            if serde_json::from_str::<serde::de::IgnoredAny>(data).is_err() {
                self.stats.cut_off = true;
                return Ok(true);
            }
            self.stats.unterminated = true;
        }
        self.stats.events += 1;
        self.end_marks += u64::from(data == "[DONE]");
        let event = Event { name: frame.name, data };
        if self.stats.events == 1 {
            self.looks_like = self.framing.and_then(|framing| detect::format(framing, &event));
        }
        if self.dialect.is_none() {
            let Some(format) = self.looks_like else { return Err(self.fail(WireError::Undetected)) };
            self.format = Some(format);
            self.dialect = Some(reader(format));
        }
        if let Some(dialect) = &mut self.dialect {
            dialect.event(&event, &mut self.out);
        }
        Ok(true)
    }

    /// Whether an end mark would have been kept: that of chat completions stands beside the payloads, and recorders of payloads drop it.
    fn shows_its_end(&self) -> bool {
        let beside = matches!(self.format, Some(Format::OpenAiChat | Format::OpenAiCompletions));
        !beside || self.framing == Some(Framing::Sse)
    }

    /// The frame decoded last.
    pub(crate) fn frame(&self) -> Option<Frame<'_>> {
        self.framer.as_ref()?.frame()
    }

    /// Takes the oldest chunk with the place of its text.
    pub(crate) fn pop(&mut self) -> Option<(Chunk, Leaf)> {
        self.out.pop()
    }

    /// Takes the oldest decoded chunk.
    pub fn next_chunk(&mut self) -> Option<Chunk> {
        self.out.pop().map(|(chunk, _)| chunk)
    }

    /// The format, once it is known.
    pub fn format(&self) -> Option<Format> {
        self.format
    }

    /// The framing, once it is known.
    pub fn framing(&self) -> Option<Framing> {
        self.framing
    }

    /// What was seen so far.
    pub fn stats(&self) -> Stats {
        Stats {
            unknown: self.out.unknown,
            end_mark: (self.out.ended || self.shows_its_end()).then_some(self.out.ended),
            stated_end: self.out.stated_end.clone(),
            ..self.stats.clone()
        }
    }
}

use serde::de::IgnoredAny;
use streamkeeper_contract::{Chunk, Offset, Text};

use crate::{
    Format, Framing, WireError, detect,
    dialect::{Dialect, Event, error_event, error_of, reader},
    frame::{BOM, EVENT_BYTES, Frame, Framer},
    json::mend,
    output::{Leaf, Output},
};

/// Limits of a [`Decoder`].
///
/// ```
/// use streamkeeper_wire::{Decoder, Format, Limits};
///
/// let mut limits = Limits::default();
/// limits.event_bytes = 1024 * 1024;
/// let decoder = Decoder::new(Format::OpenAiChat).limits(limits);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The most bytes one event may have, in its framing and with the comments before it. Default: 8 MiB. Past it decoding ends with
    /// [`WireError::EventTooLarge`].
    pub event_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { event_bytes: EVENT_BYTES }
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
    /// Places where a name or payload was not UTF-8 and U+FFFD was put in.
    pub invalid_utf8: u64,
    /// The last event had no end and was delivered since its payload was whole. A last JSON line needs no line end.
    pub unterminated: bool,
    /// The body ended inside an event, which is lost.
    pub cut_off: bool,
    /// The format's own end was seen. `None` where this framing cannot show it.
    pub end_mark: Option<bool>,
    /// How a failed stream says that it ended, in the provider's own word: `failed`, `RUN_ERROR`. A stream that did not fail states
    /// that in its finish.
    pub stated_end: Option<Text>,
    /// The bare body that reported the error of the stream, if it stood outside of any event.
    pub error_outside_events: Option<Text>,
}

/// Bytes in, chunks out.
///
/// [`push`](Decoder::push) decodes all that is whole so far; take the chunks with [`next_chunk`](Decoder::next_chunk) after each push.
/// [`finish`](Decoder::finish) tells the end of the body and may add chunks. Every split of the same bytes gives the same chunks.
///
/// No input makes it panic. An event that the format does not know becomes a `raw` chunk and the stream goes on. An error that the
/// provider reports, as an event or as a bare JSON body between events, becomes one `error` chunk, however often it is repeated. What
/// the end of the stream means is for whoever reads the chunks to say: a `finish` chunk and [`Stats::end_mark`] are the provider's own
/// statements, [`Stats::cut_off`] tells a body that ended inside an event. No `end` chunk is made here.
///
/// Keeps the bytes of the event being read (see [`Limits`]), the chunks not taken, and what the format needs to tell lanes and tool
/// calls apart. Costs no allocation per event beyond what the chunks own.
///
/// ```
/// use streamkeeper_wire::{Decoder, Format};
///
/// let mut decoder = Decoder::new(Format::OpenAiChat);
/// let mut text = String::new();
/// for read in [&b"data: {\"choices\":[{\"index\":0,\"delta\":{\"con"[..], b"tent\":\"Hi\"}}]}\n\ndata: [DONE]\n\n"] {
///     decoder.push(read)?;
///     while let Some(chunk) = decoder.next_chunk() {
///         text.push_str(chunk.text().unwrap_or_default());
///     }
/// }
/// decoder.finish()?;
/// assert_eq!(text, "Hi");
/// assert_eq!(decoder.stats().end_mark, Some(true));
/// # Ok::<_, streamkeeper_wire::WireError>(())
/// ```
#[derive(Debug)]
pub struct Decoder {
    limits: Limits,
    format: Option<Format>,
    /// The format was named, or told from an event.
    decided: bool,
    framing: Option<Framing>,
    framer: Option<Framer>,
    dialect: Option<Box<dyn Dialect>>,
    out: Output,
    stats: Stats,
    /// Bytes that came before the framing was known.
    head: Vec<u8>,
    error: Option<WireError>,
    /// Events that were understood and are the end mark of many formats.
    end_marks: u64,
    /// What the first event looks like.
    looks_like: Option<Format>,
    /// Nothing but white space was seen.
    blank: bool,
    /// The dialect was told the end.
    over: bool,
}

impl Decoder {
    /// A decoder of a named format. The framing is told from the first bytes: recorders often keep the payloads of an SSE stream as JSON
    /// lines.
    pub fn new(format: Format) -> Self {
        Self { dialect: Some(reader(format)), format: Some(format), decided: true, ..Self::detect() }
    }

    /// A decoder that tells the format from the first events. Those that tell nothing, at most eight, become `raw` chunks.
    ///
    /// ```
    /// use streamkeeper_wire::{Decoder, Format};
    ///
    /// let mut decoder = Decoder::detect();
    /// decoder.push(b"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{}}\n\n")?;
    /// assert_eq!(decoder.format(), Some(Format::AnthropicMessages));
    /// # Ok::<_, streamkeeper_wire::WireError>(())
    /// ```
    pub fn detect() -> Self {
        Self {
            limits: Limits::default(),
            format: None,
            decided: false,
            framing: None,
            framer: None,
            dialect: None,
            out: Output::default(),
            stats: Stats::default(),
            head: Vec::new(),
            error: None,
            end_marks: 0,
            looks_like: None,
            blank: true,
            over: false,
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
    /// [`WireError::EventTooLarge`], [`WireError::TooManyLanes`], [`WireError::BrokenMessage`] or [`WireError::Undetected`]. After an
    /// error no more bytes are taken and every call gives it again; chunks decoded before are still there.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        // Small pieces keep the buffer small, however large the reads are.
        const PIECE: usize = 2048;
        for piece in bytes.chunks(PIECE) {
            self.feed(piece)?;
            while self.step()? {}
        }
        Ok(())
    }

    /// The body is over; this may add chunks. No more bytes are taken, and a second call adds nothing.
    ///
    /// # Errors
    /// [`WireError::Empty`] if there was nothing but white space, [`WireError::Undetected`] or [`WireError::WrongFormat`] if not one
    /// event was understood, or if most were not and the first looks like another format; else as [`push`](Decoder::push).
    pub fn finish(&mut self) -> Result<(), WireError> {
        self.close()?;
        while self.step()? {}
        self.end()
    }

    /// Takes bytes without decoding them: [`step`](Decoder::step) does that, frame by frame.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        if let Some(error) = &self.error {
            return Err(error.clone());
        }
        if self.over {
            return Ok(());
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
            let framing = detect::framing(self.format, &self.head, true).unwrap_or(Framing::Sse);
            self.open(framing);
        }
        if let Some(framer) = &mut self.framer {
            framer.finish();
        }
        Ok(())
    }

    /// After the last frame of a closed body: lets the dialect say what a clean end means, and tells a body that was no such stream.
    pub(crate) fn end(&mut self) -> Result<(), WireError> {
        if let Some(error) = &self.error {
            return Err(error.clone());
        }
        if std::mem::replace(&mut self.over, true) {
            return Ok(());
        }
        if !self.stats.cut_off
            && let Some(dialect) = &mut self.dialect
        {
            dialect.finish(&mut self.out);
        }
        let framed = self.framer.as_ref().is_some_and(Framer::is_framed);
        let cut_off = self.stats.cut_off && self.format.is_some();
        let read = framed || self.stats.events > 0 || cut_off || self.out.failed;
        let looks_like = self.looks_like.filter(|format| Some(*format) != self.format && *format != Format::Raw);
        // An end mark is the same in many formats, and so are errors and usage: beside events of another format they say nothing.
        let known = self.out.known - self.end_marks;
        let mostly = self.out.unknown > 0 && self.out.unknown >= known;
        let is_other = mostly && (looks_like.is_some() || known == 0 && !self.out.failed);
        match self.format {
            _ if self.blank => Err(self.fail(WireError::Empty)),
            None if !read => Err(self.fail(WireError::Undetected)),
            Some(expected) if !read || is_other => Err(self.fail(WireError::WrongFormat { expected, looks_like })),
            _ => Ok(()),
        }
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
        self.blank &= frame.raw.strip_prefix(BOM).unwrap_or(frame.raw).trim_ascii().is_empty();
        let Some(data) = frame.data else {
            self.stats.cut_off |= frame.unterminated;
            return Ok(true);
        };
        if frame.unterminated {
            if !is_whole(data) {
                self.stats.cut_off = true;
                return Ok(true);
            }
            self.stats.unterminated = self.framing == Some(Framing::Sse);
        }
        if frame.outside {
            if let Some(error) = error_of(data).or_else(|| error_event(frame.name, data)) {
                if !self.out.failed {
                    self.stats.error_outside_events = Some(data.into());
                }
                self.out.error(error);
                return Ok(true);
            }
        } else {
            self.stats.events += 1;
        }
        let mended = mend(data);
        let data = &*mended;
        let event = Event { name: frame.name, data };
        if self.looks_like.is_none() || !self.decided {
            const UNDECIDED: u64 = 8;
            let told = self.framing.and_then(|framing| detect::format(framing, &event));
            self.looks_like = self.looks_like.or(told);
            if !self.decided {
                let Some(told) = told.or(self.format) else { return Err(self.fail(WireError::Undetected)) };
                self.decided = told != Format::Raw || self.stats.events >= UNDECIDED;
                if self.format != Some(told) {
                    self.format = Some(told);
                    self.dialect = Some(reader(told));
                }
            }
        }
        if let Some(dialect) = &mut self.dialect {
            let known = self.out.known;
            dialect.event(&event, &mut self.out);
            self.end_marks += u64::from(data == "[DONE]" && self.out.known > known);
        }
        if let Some((what, limit)) = self.out.too_many {
            self.out.forget_frame();
            return Err(self.fail(WireError::TooManyLanes { what, limit }));
        }
        Ok(true)
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
        self.pop().map(|(chunk, _)| chunk)
    }

    /// Whether no decoded chunk is left.
    pub(crate) fn is_drained(&self) -> bool {
        self.out.is_empty()
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
            invalid_utf8: self.framer.as_ref().map_or(0, Framer::invalid_utf8),
            end_mark: (self.out.ended || self.shows_its_end()).then_some(self.out.ended),
            stated_end: self.out.stated_end.clone(),
            ..self.stats.clone()
        }
    }

    /// Whether an end mark would have been kept: that of chat completions stands beside the payloads, and recorders of payloads drop it.
    fn shows_its_end(&self) -> bool {
        let beside = matches!(self.format, Some(Format::OpenAiChat | Format::OpenAiCompletions));
        !beside || self.framing == Some(Framing::Sse)
    }

    fn open(&mut self, framing: Framing) {
        let mut framer = Framer::new(framing).limit(self.limits.event_bytes);
        framer.push(&std::mem::take(&mut self.head));
        self.framing = Some(framing);
        self.framer = Some(framer);
    }

    fn fail(&mut self, error: WireError) -> WireError {
        self.error = Some(error.clone());
        error
    }
}

/// Whether a payload whose end did not come is complete.
fn is_whole(data: &str) -> bool {
    data == "[DONE]" || serde_json::from_str::<IgnoredAny>(data).is_ok()
}

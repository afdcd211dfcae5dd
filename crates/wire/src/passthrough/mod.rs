//! The provider's bytes back, changed only where an observer changed them.

mod envelope;
mod payload;
mod shape;
mod splice;
mod template;

use std::borrow::Cow;

use streamkeeper_contract::{Body, Channel, Chunk, ChunkKind, Lane, Origin, Outcome, ToolCall};

use crate::{
    Decoder, Format, WireError,
    ending::Ending,
    json::{Edits, find},
    output::Leaf,
};

use envelope::Envelope;
use shape::{Before, Event, Shape, shape};
use splice::{Value, splice};
use template::Template;

/// Reads a provider's stream and writes it again, as far as it was delivered.
///
/// Bytes go in with [`push`](Passthrough::push). [`next_frame`](Passthrough::next_frame) gives the chunks of one event (an SSE event, a
/// JSON line, a binary message); what comes out of the observers while these are fed goes to [`write`](Passthrough::write), which
/// writes that event:
///
/// - untouched, byte for byte as it came, if all its chunks were delivered as they were and nothing before it changed the numbers of
///   later events. Comments, pings and events without chunks too;
/// - with other text, if text was amended: the new text stands in the bytes of the old one, all other bytes stay;
/// - with empty text, if its text is held or withheld. The event itself never vanishes for that;
/// - not at all, if it says nothing but what was withheld.
///
/// Text that is released when its event is gone goes into an event of its own, made from an earlier event of its lane, so that ids,
/// indices and model are right. A tool call that an observer made out of text gets the events that the format has for one, and the
/// `index`, `output_index` and `sequence_number` of later events are counted on. What a format has no place for is told as a
/// [`PassthroughError`]; nothing withheld ever leaves for it.
///
/// When the stream is over for whatever reason, [`end`](Passthrough::end) writes what a valid ending needs. The bytes of an event that
/// the source broke off never leave: nobody has seen what they say.
///
/// Costs a copy of the bytes and a few comparisons an event while nothing is changed; JSON is looked at only where it is. Keeps about
/// 300 bytes for each of the last 256 lanes.
///
/// ```
/// use streamkeeper_wire::{Decoder, Format, Passthrough};
///
/// let body = b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"my key is k1\"}}]}\n\n";
/// let mut pass = Passthrough::new(Decoder::new(Format::OpenAiChat));
/// let (mut chunks, mut out) = (Vec::new(), Vec::new());
/// pass.push(body)?;
/// while pass.next_frame(&mut chunks)? {
///     // Here the chunks go through the observers.
///     pass.write(&chunks, &mut out).ok();
/// }
/// assert_eq!(out, body);
/// # Ok::<_, streamkeeper_wire::WireError>(())
/// ```
#[derive(Debug)]
pub struct Passthrough {
    decoder: Decoder,
    shape: Option<Box<dyn Shape>>,
    envelope: Option<Envelope>,
    state: State,
    closed: bool,
    /// The chunks of the current frame.
    parts: Vec<Part>,
    /// The current frame has chunks that are no deltas, none at all, or the first delta of a lane.
    notable: bool,
    lanes: Vec<(Lane, Template)>,
    /// An error of the provider was written: its streams end with one.
    failed: bool,
    /// Calls of which the beginning was withheld: what follows of them is withheld with its event.
    withheld_calls: Vec<Lane>,
}

/// Where the current frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// There is none, or it was written.
    Idle,
    /// Its chunks were given out.
    Open,
    /// Chunks without bytes were given out: what a dialect makes of the end of the body.
    Tail,
    /// Nothing comes any more.
    Done,
}

/// A chunk as it left the decoder.
#[derive(Debug, Clone, Copy)]
struct Part {
    origin: Origin,
    kind: ChunkKind,
    lane: Option<Lane>,
    len: usize,
    leaf: Leaf,
}

impl Part {
    fn of(chunk: &Chunk, leaf: Leaf) -> Self {
        let len = chunk.text().map_or(0, str::len);
        Self { origin: chunk.origin(), kind: chunk.kind(), lane: chunk.lane(), len, leaf }
    }

    /// Whether this is the chunk as it was. Text without provenance is a join of what the provider sent, so its length tells.
    fn is(&self, chunk: &Chunk) -> bool {
        self.origin == chunk.origin()
            && chunk.provenance().is_empty()
            && self.kind == chunk.kind()
            && self.len == chunk.text().map_or(0, str::len)
    }

    fn is_delta(&self) -> bool {
        self.lane.is_some_and(|lane| lane.delta_kind() == self.kind)
    }
}

/// Something was delivered that the format has no place for. All else was written, and nothing that was withheld.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PassthroughError {
    /// This kind of chunk, changed or made by an observer, cannot be written in this format.
    #[error("a chunk of kind {} was delivered that has no place in {}", .kind.as_str(), .format.map_or("this stream", Format::name))]
    NoPlace {
        /// The kind of the chunk.
        kind: ChunkKind,
        /// The format, if it is known.
        format: Option<Format>,
    },
}

impl PassthroughError {
    /// The stable machine code: snake case of the variant.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoPlace { .. } => "no_place",
        }
    }
}

const MAX_LANES: usize = 256;

impl Passthrough {
    /// Around a decoder that has seen no bytes yet.
    pub fn new(decoder: Decoder) -> Self {
        Self {
            decoder,
            shape: None,
            envelope: None,
            state: State::Idle,
            closed: false,
            parts: Vec::new(),
            notable: false,
            lanes: Vec::new(),
            failed: false,
            withheld_calls: Vec::new(),
        }
    }

    /// The decoder: to stamp offsets, and for its format and stats.
    pub fn decoder(&self) -> &Decoder {
        &self.decoder
    }

    /// Stamps the chunks of the bytes pushed from here on.
    pub fn set_offset(&mut self, at: streamkeeper_contract::Offset) {
        self.decoder.set_offset(at);
    }

    /// Takes the next bytes of the body. A frame that was given out and not written by now is never written.
    ///
    /// # Errors
    /// See [`WireError`]. After an error no more bytes are taken.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        self.state = self.state.max_idle();
        self.decoder.feed(bytes)
    }

    /// The body is over. Frames may still come.
    ///
    /// # Errors
    /// If it was empty or fits no format.
    pub fn finish(&mut self) -> Result<(), WireError> {
        self.closed = true;
        self.decoder.close()
    }

    /// Puts the chunks of the next frame into `chunks`, which is cleared before, and says whether there was one. It has to be
    /// [written](Passthrough::write) before the next call, even if it has no chunks; else it is left out.
    ///
    /// # Errors
    /// If the bytes cannot be read on, see [`WireError`].
    pub fn next_frame(&mut self, chunks: &mut Vec<Chunk>) -> Result<bool, WireError> {
        chunks.clear();
        self.parts.clear();
        if self.state == State::Done {
            return Ok(false);
        }
        if self.decoder.step()? {
            self.state = State::Open;
            self.read(chunks);
            return Ok(true);
        }
        self.state = State::Idle;
        if self.closed {
            self.state = State::Done;
            self.decoder.end()?;
            self.read(chunks);
            if !self.parts.is_empty() {
                self.state = State::Tail;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Takes the chunks of one step from the decoder.
    fn read(&mut self, chunks: &mut Vec<Chunk>) {
        let mut new_lane = false;
        while let Some((chunk, leaf)) = self.decoder.pop() {
            let part = Part::of(&chunk, leaf);
            if let Some(lane) = part.lane.filter(|_| part.is_delta()) {
                new_lane |= self.meet(lane, leaf);
            }
            self.parts.push(part);
            chunks.push(chunk);
        }
        self.notable = new_lane || self.parts.is_empty() || self.parts.iter().any(|part| !part.is_delta());
        let Some(data) = self.decoder.frame().and_then(|frame| frame.data).filter(|_| self.state == State::Open) else {
            return;
        };
        let json = payload::unwrap(self.decoder.format(), data);
        if let Some(shape) = shape_of(&mut self.shape, &self.decoder, &json) {
            shape.came(&json);
            if self.notable {
                shape.seen(&json);
            }
        }
    }

    /// Keeps a template for a lane that is new, and says whether it is.
    fn meet(&mut self, lane: Lane, leaf: Leaf) -> bool {
        if self.lanes.iter().rev().any(|(known, _)| *known == lane) {
            return false;
        }
        let Some(frame) = self.decoder.frame() else { return false };
        let Some(data) = frame.data else { return false };
        let json = payload::unwrap(self.decoder.format(), data);
        let Some(shape) = shape_of(&mut self.shape, &self.decoder, &json) else { return false };
        if let Some(template) = Template::new(frame.name, &json, leaf, shape.identity()) {
            if self.lanes.len() == MAX_LANES {
                self.lanes.remove(0);
            }
            self.lanes.push((lane, template));
        }
        true
    }

    /// Writes the current frame, given what was delivered while its chunks were fed, in order: its own chunks, amended or not, and
    /// chunks of earlier frames that were released. `end` chunks of the observers are not written here but by
    /// [`end`](Passthrough::end).
    ///
    /// # Errors
    /// [`PassthroughError`] if something delivered has no place. The stream can go on.
    pub fn write(&mut self, delivered: &[Chunk], out: &mut Vec<u8>) -> Result<(), PassthroughError> {
        let written = self.state.written();
        if std::mem::replace(&mut self.state, written) != State::Open {
            return self.release(delivered, out);
        }
        let done = self.write_frame(delivered, out);
        self.parts.clear();
        done
    }

    fn write_frame(&mut self, delivered: &[Chunk], out: &mut Vec<u8>) -> Result<(), PassthroughError> {
        let Some(frame) = self.decoder.frame() else { return Ok(()) };
        let envelope = envelope_of(&mut self.envelope, &self.decoder);
        if frame.unterminated && self.decoder.stats().cut_off {
            envelope.leave_out(&frame);
            return Ok(());
        }
        let renumbers = self.shape.as_ref().is_some_and(|shape| shape.renumbers());
        let untouched = self.parts.len() == delivered.len()
            && self.parts.iter().zip(delivered).all(|(part, chunk)| part.is(chunk))
            && !(renumbers && frame.data.is_some());
        if !untouched {
            return self.rewrite(delivered, out);
        }
        envelope.pass(&frame, out);
        if self.notable
            && let (Some(data), Some(shape)) = (frame.data, &mut self.shape)
        {
            let json = payload::unwrap(self.decoder.format(), data);
            shape.written(frame.name, &json, &mut delivered.iter());
            self.failed |= delivered.iter().any(|chunk| chunk.kind() == ChunkKind::Error);
        }
        Ok(())
    }

    /// Writes chunks that were delivered with no frame: what the end of the stream released.
    ///
    /// # Errors
    /// [`PassthroughError`] if something delivered has no place.
    pub fn release(&mut self, delivered: &[Chunk], out: &mut Vec<u8>) -> Result<(), PassthroughError> {
        let mut lost = None;
        for chunk in delivered {
            // What a dialect says about the end of a body has no bytes of its own.
            if !self.parts.iter().any(|part| part.is(chunk)) {
                self.put_in(chunk, None, true, out).unwrap_or_else(|error| lost = Some(error));
            }
        }
        lost.map_or(Ok(()), Err)
    }

    /// Writes what a stream needs that did not end by itself: an end that says so, in the format's own terms. Nothing for
    /// [`Outcome::Finished`], nor after an error that the provider sent itself, nor after the format's own end.
    ///
    /// | format | a stop or a failed guard | everything else |
    /// |---|---|---|
    /// | Chat Completions, completions | open choices finish with `content_filter`, `[DONE]` | the same with an `error` event before `[DONE]` |
    /// | Anthropic Messages | blocks are closed, `message_delta` with `refusal`, `message_stop` | the same with an `error` event before the last |
    /// | Responses | `response.incomplete`, reason `content_filter` | `response.failed` |
    /// | Gemini | open candidates finish with `SAFETY` | with `OTHER` |
    /// | Cohere | parts are closed, `message-end` with `ERROR`, `[DONE]` | the same |
    /// | Bedrock Converse | blocks are closed, `messageStop` with `guardrail_intervened` | the same with an exception |
    /// | Ollama | a line that is `done`, reason `content_filter` | an `error` line |
    /// | AG-UI | what is open is closed, `RUN_ERROR` with the code | the same; `RUN_FINISHED` with its interrupts if suspended |
    /// | Claude Code | blocks and message are closed, a `result` that is an error | the same |
    /// | canonical JSON lines | the `end` chunk | the same |
    ///
    /// In formats of another kind the stream just ends. Codes and reasons are those of the outcome; messages of providers are left out.
    pub fn end(&mut self, outcome: &Outcome, out: &mut Vec<u8>) {
        self.state = State::Done;
        let Some(ending) = Ending::of(outcome).filter(|ending| ending.is_stop || !self.failed) else { return };
        if self.decoder.framing().is_none() {
            return;
        }
        let Some(shape) = shape_of(&mut self.shape, &self.decoder, "") else { return };
        for event in shape.ending(&ending) {
            self.put_event(event, true, out);
        }
        envelope_of(&mut self.envelope, &self.decoder).end(out);
    }

    /// Writes the current frame with what of it was delivered, and before it what was released.
    fn rewrite(&mut self, delivered: &[Chunk], out: &mut Vec<u8>) -> Result<(), PassthroughError> {
        let mut plan = Plan::new(&self.parts, delivered, &self.withheld_calls);
        let format = self.decoder.format();
        let frame = self.decoder.frame();
        let name = frame.and_then(|frame| frame.name).map(str::to_owned);
        let json = frame.and_then(|frame| frame.data).map(|data| payload::unwrap(format, data).into_owned());
        let mut edits = Edits::default();
        if let Some(json) = json.as_deref().filter(|_| !plan.leave_out) {
            let changes: Vec<(Leaf, Value<'_>)> = plan.changes.iter().map(|(leaf, new)| (*leaf, new.value())).collect();
            if !splice(json, &changes, &mut edits).is_empty() {
                plan.give_up(&self.parts);
            }
            if let Some(shape) = self.shape.as_ref().filter(|_| !edits.is_empty()) {
                for echo in shape.echoes().iter().flat_map(|member| find(json, member)) {
                    edits.replace(echo, "null");
                }
            }
        }
        for lane in &plan.withheld_calls {
            if self.withheld_calls.len() < MAX_LANES {
                self.withheld_calls.push(*lane);
            }
        }
        let mut lost = plan.lost.map(|kind| PassthroughError::NoPlace { kind, format });
        for (chunk, lane) in &plan.before {
            self.put_in(chunk, *lane, false, out).unwrap_or_else(|error| lost = Some(error));
        }
        if plan.leave_out || !self.write_changed(name.as_deref(), json.as_deref(), edits, out) {
            let Some(frame) = self.decoder.frame() else { return Ok(()) };
            envelope_of(&mut self.envelope, &self.decoder).leave_out(&frame);
            if let (Some(json), Some(shape)) = (&json, &mut self.shape) {
                shape.left_out(name.as_deref(), json);
            }
        } else {
            if let (Some(json), Some(shape)) = (&json, &mut self.shape) {
                let own = |chunk: &&Chunk| self.parts.iter().any(|part| part.origin == chunk.origin());
                shape.written(name.as_deref(), json, &mut delivered.iter().filter(own));
            }
            self.failed |= delivered.iter().any(|chunk| chunk.kind() == ChunkKind::Error);
        }
        lost.map_or(Ok(()), Err)
    }

    /// Writes the current frame with these changes. `false` if it must not be written.
    fn write_changed(&mut self, name: Option<&str>, json: Option<&str>, mut edits: Edits, out: &mut Vec<u8>) -> bool {
        if let (Some(json), Some(shape)) = (json, &mut self.shape) {
            match shape.before(name, json) {
                Before::Write => {}
                Before::Insert(event) => self.put_event(event, false, out),
                Before::LeaveOut => return false,
            }
        }
        if let (Some(json), Some(shape)) = (json, &mut self.shape) {
            shape.renumber(json, &mut edits);
        }
        let Some(frame) = self.decoder.frame() else { return false };
        let envelope = envelope_of(&mut self.envelope, &self.decoder);
        match (json, frame.data) {
            (Some(json), Some(data)) if !edits.is_empty() => {
                let changed = edits.apply(json);
                envelope.rewrite(&frame, &payload::wrap(self.decoder.format(), data, &changed), out);
            }
            _ => envelope.pass(&frame, out),
        }
        true
    }

    /// Writes a chunk that has no event of its own.
    fn put_in(
        &mut self,
        chunk: &Chunk,
        source: Option<Lane>,
        after: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), PassthroughError> {
        let no_place = PassthroughError::NoPlace { kind: chunk.kind(), format: self.decoder.format() };
        let shape = shape_of(&mut self.shape, &self.decoder, "").ok_or(no_place)?;
        match chunk.body() {
            Body::End(_) => {}
            Body::Delta { text, .. } if text.is_empty() => {}
            Body::Delta { lane, text } => {
                if let Some((_, template)) = self.lanes.iter().rev().find(|(known, _)| known == lane) {
                    let event = Event {
                        name: template.name.clone().map(|name| Cow::Owned(name.into())),
                        json: template.with(text),
                    };
                    self.put_numbered(event, after, out);
                } else {
                    let event = shape.chunk(chunk).ok_or(no_place)?;
                    self.put_event(event, after, out);
                }
            }
            Body::ToolCall(call) => {
                let lane = source.unwrap_or(call.lane.in_channel(Channel::Text));
                let template = template_for(&self.lanes, lane);
                let arguments = if call.arguments.is_empty() { "{}".into() } else { call.arguments.clone() };
                let whole = ToolCall { arguments, ..ToolCall::clone(call) };
                let events = match shape.tool_call(&whole, lane, template) {
                    Some(events) => events,
                    None => vec![shape.chunk(chunk).ok_or(no_place)?],
                };
                events.into_iter().for_each(|event| self.put_event(event, after, out));
            }
            _ => {
                let event = shape.chunk(chunk).ok_or(no_place)?;
                self.put_event(event, after, out);
            }
        }
        Ok(())
    }

    /// Writes an event that is numbered like the provider's.
    fn put_numbered(&mut self, mut event: Event, after: bool, out: &mut Vec<u8>) {
        let Some(shape) = &mut self.shape else { return };
        match shape.before(event.name.as_deref(), &event.json) {
            Before::Write => {}
            Before::Insert(first) => self.put_event(first, after, out),
            Before::LeaveOut => return,
        }
        if let Some(shape) = &mut self.shape {
            let mut edits = Edits::default();
            shape.renumber(&event.json, &mut edits);
            event.json = edits.apply(&event.json);
        }
        self.put_event(event, after, out);
    }

    /// Writes an event that is numbered as it is to stand.
    fn put_event(&mut self, mut event: Event, after: bool, out: &mut Vec<u8>) {
        if let Some(shape) = &mut self.shape {
            event.json = shape.insert(event.json, after);
        }
        let envelope = envelope_of(&mut self.envelope, &self.decoder);
        if self.decoder.format() == Some(Format::BedrockInvoke) {
            event = Event { name: Some("chunk".into()), json: payload::make(&event.json, envelope.has_names()) };
        }
        envelope.event(&event, out);
    }
}

impl State {
    fn max_idle(self) -> Self {
        if self == Self::Done { Self::Done } else { Self::Idle }
    }

    fn written(self) -> Self {
        match self {
            Self::Tail | Self::Done => Self::Done,
            Self::Open | Self::Idle => Self::Idle,
        }
    }
}

/// The shape of the stream, told from its format and, where that wraps others, from the first event.
fn shape_of<'a>(
    known: &'a mut Option<Box<dyn Shape>>,
    decoder: &Decoder,
    json: &str,
) -> Option<&'a mut Box<dyn Shape>> {
    if known.is_none() {
        *known = decoder.format().map(|format| shape(format, json));
    }
    known.as_mut()
}

fn envelope_of<'a>(envelope: &'a mut Option<Envelope>, decoder: &Decoder) -> &'a mut Envelope {
    envelope.get_or_insert_with(|| Envelope::new(decoder.framing().unwrap_or(crate::Framing::Sse)))
}

/// The template of a lane, or of one that stands close: of the same part, then of the same choice.
fn template_for(lanes: &[(Lane, Template)], lane: Lane) -> Option<&Template> {
    let of = |same: &dyn Fn(Lane) -> bool| lanes.iter().rev().find(|(known, _)| same(*known));
    of(&|known| known == lane)
        .or_else(|| of(&|known| known.choice == lane.choice && known.part == lane.part))
        .or_else(|| of(&|known| known.choice == lane.choice && known.channel == Channel::Text))
        .map(|(_, template)| template)
}

/// What becomes of the current frame.
#[derive(Debug, Default)]
struct Plan<'a> {
    /// What is written before it, with the lane it was made of.
    before: Vec<(Cow<'a, Chunk>, Option<Lane>)>,
    /// New values for its leaves.
    changes: Vec<(Leaf, New<'a>)>,
    /// What was delivered of each of its parts.
    own: Vec<Vec<&'a Chunk>>,
    leave_out: bool,
    /// Something delivered has no place.
    lost: Option<ChunkKind>,
    /// Calls of which the beginning was withheld here.
    withheld_calls: Vec<Lane>,
}

#[derive(Debug)]
enum New<'a> {
    Text(Cow<'a, str>),
    Json(&'a str),
    Null,
}

impl New<'_> {
    fn value(&self) -> Value<'_> {
        match self {
            New::Text(text) => Value::Text(text),
            New::Json(json) => Value::Json(json),
            New::Null => Value::Null,
        }
    }
}

impl<'a> Plan<'a> {
    fn new(parts: &[Part], delivered: &'a [Chunk], withheld_calls: &[Lane]) -> Self {
        let mut plan = Plan { own: vec![Vec::new(); parts.len()], ..Plan::default() };
        for chunk in delivered {
            match parts.iter().position(|part| part.origin == chunk.origin()) {
                Some(at) => plan.own[at].push(chunk),
                None => plan.before.push((Cow::Borrowed(chunk), None)),
            }
        }
        plan.move_calls(parts);
        plan.move_other_lanes(parts);
        for (part, own) in parts.iter().zip(&plan.own) {
            if own.is_empty() && matches!(part.kind, ChunkKind::ToolCallStart | ChunkKind::ProviderToolStart) {
                plan.withheld_calls.extend(part.lane);
            }
        }
        let of_withheld_call = |part: &Part| {
            part.lane.is_some_and(|lane| withheld_calls.contains(&lane) || plan.withheld_calls.contains(&lane))
        };
        let nothing = plan.own.iter().all(Vec::is_empty) && plan.before.iter().all(|(_, lane)| lane.is_none());
        if nothing && parts.iter().any(|part| !part.is_delta() || of_withheld_call(part)) {
            plan.leave_out = true;
            return plan;
        }
        let mut placed = true;
        let mut changes = Vec::new();
        for (part, own) in parts.iter().zip(&plan.own) {
            match change(part, own) {
                Ok(None) => {}
                Ok(Some(new)) if !part.leaf.path.is_empty() && !of_withheld_call(part) => {
                    changes.push((part.leaf, new));
                }
                Ok(Some(_)) | Err(()) => placed = false,
            }
        }
        plan.changes = changes;
        if !placed {
            plan.give_up(parts);
        }
        plan
    }

    /// Tool calls that were made out of text stand before this event, and so does the text of their lane before them.
    fn move_calls(&mut self, parts: &[Part]) {
        for at in 0..parts.len() {
            let Some(lane) = parts[at].lane.filter(|_| parts[at].is_delta()) else { continue };
            let Some(last) = self.own[at].iter().rposition(|chunk| chunk.kind() == ChunkKind::ToolCall) else {
                continue;
            };
            let rest = self.own[at].split_off(last + 1);
            for (part, own) in parts.iter().zip(&mut self.own).take(at + 1) {
                if part.lane == Some(lane) && part.is_delta() {
                    self.before.extend(own.drain(..).map(|chunk| (Cow::Borrowed(chunk), Some(lane))));
                }
            }
            self.own[at] = rest;
        }
    }

    /// Text that was put into another lane stands before this event.
    fn move_other_lanes(&mut self, parts: &[Part]) {
        for (part, own) in parts.iter().zip(&mut self.own).filter(|(part, _)| part.is_delta()) {
            own.retain(|chunk| {
                let stays = !chunk.is_delta() || chunk.lane() == part.lane;
                if !stays {
                    self.before.push((Cow::Borrowed(*chunk), part.lane));
                }
                stays
            });
        }
    }

    /// The event cannot be written with what was delivered of it and without the rest. Its text goes out in events of their own.
    fn give_up(&mut self, parts: &[Part]) {
        self.leave_out = true;
        self.changes.clear();
        for (part, own) in parts.iter().zip(&mut self.own) {
            for chunk in own.drain(..) {
                if part.is_delta() {
                    self.before.push((Cow::Borrowed(chunk), part.lane));
                } else if says_something(part.kind) {
                    self.lost = Some(part.kind);
                }
            }
        }
    }
}

/// Whether a reader misses a chunk of this kind. Boundaries of what was left out are not missed, nor are notes about it.
fn says_something(kind: ChunkKind) -> bool {
    !matches!(
        kind,
        ChunkKind::RunStart
            | ChunkKind::RunEnd
            | ChunkKind::MessageStart
            | ChunkKind::MessageEnd
            | ChunkKind::StepStart
            | ChunkKind::StepEnd
            | ChunkKind::PartStart
            | ChunkKind::PartEnd
            | ChunkKind::ToolCallEnd
            | ChunkKind::ProviderToolEnd
            | ChunkKind::Usage
            | ChunkKind::Annotation
            | ChunkKind::Heartbeat
    )
}

/// The new value of a part, or `None` if it stays. An error if there is no way to write it.
fn change<'a>(part: &Part, own: &[&'a Chunk]) -> Result<Option<New<'a>>, ()> {
    match own {
        [chunk] if part.is(chunk) => Ok(None),
        own if part.is_delta() => Ok(Some(New::Text(joined(own)))),
        [] => match part.kind {
            ChunkKind::Snapshot | ChunkKind::ToolResult => Ok(Some(New::Text("".into()))),
            ChunkKind::Annotation
            | ChunkKind::Opaque
            | ChunkKind::Usage
            | ChunkKind::Finish
            | ChunkKind::Error
            | ChunkKind::Custom
            | ChunkKind::Raw
            | ChunkKind::ProviderToolOutput
            | ChunkKind::StateSnapshot
            | ChunkKind::StateDelta
            | ChunkKind::MessagesSnapshot => Ok(Some(New::Null)),
            _ => Err(()),
        },
        [chunk] => match chunk.body() {
            Body::Snapshot(_) | Body::ToolCall(_) | Body::ToolResult(_) | Body::Error(_) => {
                Ok(Some(New::Text(chunk.text().unwrap_or_default().into())))
            }
            Body::Annotation(_)
            | Body::Custom(_)
            | Body::ProviderToolOutput(_)
            | Body::StateSnapshot(_)
            | Body::StateDelta(_)
            | Body::MessagesSnapshot(_) => Ok(Some(New::Json(chunk.text().unwrap_or_default()))),
            _ => Err(()),
        },
        _ => Err(()),
    }
}

fn joined<'a>(chunks: &[&'a Chunk]) -> Cow<'a, str> {
    match chunks {
        [] => Cow::Borrowed(""),
        [chunk] => Cow::Borrowed(chunk.text().unwrap_or_default()),
        chunks => Cow::Owned(chunks.iter().filter_map(|chunk| chunk.text()).collect()),
    }
}

//! Chunks to whole streams of another format.

mod ag_ui;
mod anthropic;
mod chat;

use std::{collections::BTreeSet, fmt, str::FromStr};

use streamkeeper_contract::{Body, Chunk, EndToken, ErrorInfo, FinishReason, Lane, Outcome, Text, Usage};

use crate::Format;

/// The formats that streams can be written in.
///
/// ```
/// use streamkeeper_wire::encode::Target;
///
/// assert_eq!("ag-ui".parse(), Ok(Target::AgUi));
/// let error = "gemini".parse::<Target>().unwrap_err();
/// assert!(error.to_string().contains("openai-chat, anthropic-messages, ag-ui, jsonl"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Target {
    /// OpenAI Chat Completions.
    OpenAiChat,
    /// Anthropic Messages.
    AnthropicMessages,
    /// AG-UI events.
    AgUi,
    /// Canonical chunks, one a line.
    Jsonl,
}

impl Target {
    /// Every target, in a fixed order.
    pub const ALL: &[Target] = &[Target::OpenAiChat, Target::AnthropicMessages, Target::AgUi, Target::Jsonl];

    /// The format that is written.
    pub const fn format(self) -> Format {
        match self {
            Self::OpenAiChat => Format::OpenAiChat,
            Self::AnthropicMessages => Format::AnthropicMessages,
            Self::AgUi => Format::AgUi,
            Self::Jsonl => Format::Jsonl,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.format().fmt(f)
    }
}

/// The name is not that of a [`Target`]. The message lists the names there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownTarget {
    known: Option<Format>,
}

impl fmt::Display for UnknownTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.known {
            Some(format) => write!(f, "streams cannot be written as {format}; they can be as ")?,
            None => f.write_str("unknown format; streams can be written as ")?,
        }
        for (i, target) in Target::ALL.iter().enumerate() {
            write!(f, "{}{target}", if i == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

impl std::error::Error for UnknownTarget {}

impl FromStr for Target {
    type Err = UnknownTarget;

    fn from_str(name: &str) -> Result<Self, UnknownTarget> {
        match name.parse::<Format>() {
            Ok(format) => format.try_into(),
            Err(_) => Err(UnknownTarget { known: None }),
        }
    }
}

impl TryFrom<Format> for Target {
    type Error = UnknownTarget;

    fn try_from(format: Format) -> Result<Self, UnknownTarget> {
        let target = Self::ALL.iter().copied().find(|target| target.format() == format);
        target.ok_or(UnknownTarget { known: Some(format) })
    }
}

/// Writes a whole stream of chunks in one format.
///
/// The chunks may come from any provider, or from a program. Text, reasoning, refusals, tool calls (several at a time), usage and the
/// end are written in every format; what else a chunk says is written where the format has a place for it:
///
/// | | Chat Completions | Anthropic Messages | AG-UI | canonical JSON lines |
/// |---|---|---|---|---|
/// | several choices | yes | the first one | as messages | yes |
/// | reasoning | `reasoning_content` | `thinking` blocks | `REASONING_*` | yes |
/// | refusals | `refusal` | text | text messages | yes |
/// | signatures, encrypted reasoning | left out | yes | `REASONING_ENCRYPTED_VALUE` | yes |
/// | tool results, steps, state, custom events | left out | left out | yes | yes |
/// | media, annotations, transcripts, provider's tools | left out | left out | left out | yes |
/// | usage | its own event before `[DONE]` | `message_delta` | `RUN_FINISHED` | yes |
/// | finish | of each choice | `stop_reason` | left out | yes |
///
/// A [snapshot](Body::Snapshot) is written where no delta of its lane came before; a [`Discard`](Body::Discard) has a place in canonical JSON
/// lines alone. Every outcome has a valid ending, the same one that [`Passthrough::end`](crate::Passthrough::end) writes. Where a
/// format wants blocks one after the other, what comes between the pieces of a tool call waits for its end, up to 1 MiB; past that blocks
/// overlap.
///
/// Ids, model and time come from the chunks; a stream that states none gets those of [`id`](Encoder::id), [`model`](Encoder::model)
/// and [`created`](Encoder::created). No clock is read and nothing is random, so the same chunks give the same bytes.
///
/// ```
/// use streamkeeper_contract::{Chunk, FinishReason, Lane};
/// use streamkeeper_wire::encode::{Encoder, Target};
///
/// let mut encoder = Encoder::new(Target::OpenAiChat).id("chatcmpl-1").model("m");
/// let mut out = Vec::new();
/// encoder.push(&Chunk::delta(Lane::TEXT, "Hello"), &mut out);
/// encoder.push(&Chunk::finish(0, FinishReason::Stop), &mut out);
/// encoder.finish(&mut out);
/// let out = String::from_utf8(out).unwrap();
/// assert!(out.contains(r#""content":"Hello""#) && out.ends_with("data: [DONE]\n\n"));
/// ```
#[derive(Debug)]
pub struct Encoder {
    target: Target,
    writer: Writer,
    head: Head,
    seen: Seen,
    state: State,
}

#[derive(Debug)]
enum State {
    Chat(chat::Chat),
    Anthropic(anthropic::Anthropic),
    AgUi(ag_ui::AgUi),
    Jsonl,
}

impl Encoder {
    /// At the beginning of a stream. Events are server-sent, but for [`Target::Jsonl`], which has lines.
    pub fn new(target: Target) -> Self {
        let state = match target {
            Target::OpenAiChat => State::Chat(chat::Chat::default()),
            Target::AnthropicMessages => State::Anthropic(anthropic::Anthropic::default()),
            Target::AgUi => State::AgUi(ag_ui::AgUi::default()),
            Target::Jsonl => State::Jsonl,
        };
        let writer = Writer { is_sse: target != Target::Jsonl };
        Self { target, writer, head: Head::default(), seen: Seen::default(), state }
    }

    /// Server-sent events for every target.
    #[must_use]
    pub fn server_sent(mut self) -> Self {
        self.writer.is_sse = true;
        self
    }

    /// The id of the message, or of the run in AG-UI, if the chunks state none. Default: `stream`.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.head.id = Some(id.into());
        self
    }

    /// The model, if the chunks state none. Default: empty.
    #[must_use]
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.head.model = Some(model.into());
        self
    }

    /// When the message was created, in seconds since 1970. Default: 0.
    #[must_use]
    pub fn created(mut self, seconds: u64) -> Self {
        self.head.created = seconds;
        self
    }

    /// What is written.
    pub fn target(&self) -> Target {
        self.target
    }

    /// Whether the end was written.
    pub fn has_ended(&self) -> bool {
        self.seen.over
    }

    /// Writes what a chunk says. Chunks after an [`End`](Body::End) are not written.
    pub fn push(&mut self, chunk: &Chunk, out: &mut Vec<u8>) {
        if self.seen.over {
            return;
        }
        self.head.note(chunk);
        self.seen.note(chunk);
        match &mut self.state {
            State::Chat(chat) => chat.push(chunk, &self.head, &self.seen, &mut self.writer.to(out)),
            State::Anthropic(anthropic) => anthropic.push(chunk, &self.head, &self.seen, &mut self.writer.to(out)),
            State::AgUi(ag_ui) => ag_ui.push(chunk, &self.head, &self.seen, &mut self.writer.to(out)),
            State::Jsonl => {
                if let Ok(line) = serde_json::to_string(chunk) {
                    self.writer.to(out).event(None, &line);
                }
            }
        }
    }

    /// Ends a stream that no [`End`](Body::End) ended: with the reason of its first finish, else as truncated. Does nothing otherwise.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        let outcome = match (&self.seen.failed, &self.seen.finish) {
            (Some(error), _) => Outcome::Failed { error: error.clone() },
            (None, Some(reason)) => Outcome::Finished { reason: reason.clone() },
            (None, None) => Outcome::Truncated,
        };
        self.end(outcome, out);
    }

    /// Ends a stream with an outcome, unless it has ended.
    pub fn end(&mut self, outcome: Outcome, out: &mut Vec<u8>) {
        self.push(&Chunk::end(EndToken::open(), outcome.into()), out);
    }
}

/// What a stream says about itself.
#[derive(Debug, Default)]
struct Head {
    id: Option<String>,
    model: Option<String>,
    created: u64,
    stated_id: Option<String>,
    stated_model: Option<String>,
}

impl Head {
    fn note(&mut self, chunk: &Chunk) {
        if let Body::MessageStart(message) = chunk.body() {
            let filled = |text: &Option<Text>| text.as_deref().filter(|text| !text.is_empty()).map(str::to_owned);
            self.stated_id = self.stated_id.take().or_else(|| filled(&message.id));
            self.stated_model = self.stated_model.take().or_else(|| filled(&message.model));
        }
    }

    fn id(&self) -> &str {
        self.stated_id.as_deref().or(self.id.as_deref()).unwrap_or("stream")
    }

    fn model(&self) -> &str {
        self.stated_model.as_deref().or(self.model.as_deref()).unwrap_or_default()
    }
}

/// The most lanes whose snapshots are told from new text.
const MAX_LANES: usize = 64 * 1024;

/// What was said so far.
#[derive(Debug, Default)]
struct Seen {
    /// Lanes that had a delta.
    lanes: BTreeSet<Lane>,
    /// The current chunk is a snapshot of text that was not written before.
    new_text: bool,
    usage: Option<Usage>,
    finish: Option<FinishReason>,
    failed: Option<ErrorInfo>,
    over: bool,
}

impl Seen {
    fn note(&mut self, chunk: &Chunk) {
        self.new_text = false;
        match chunk.body() {
            Body::Delta { lane, .. } => {
                self.meet(*lane);
            }
            Body::Snapshot(snapshot) => self.new_text = self.meet(snapshot.lane),
            Body::Usage(usage) => self.usage.get_or_insert_default().update(usage),
            Body::Finish(finish) => {
                self.finish.get_or_insert_with(|| finish.reason.clone());
            }
            Body::Error(error) => self.failed = Some(ErrorInfo::clone(error)),
            Body::End(_) => self.over = true,
            _ => {}
        }
    }

    /// Whether a lane is new. Past the limit none is, so that nothing is written twice.
    fn meet(&mut self, lane: Lane) -> bool {
        self.lanes.len() < MAX_LANES && self.lanes.insert(lane)
    }

    /// The text that a chunk adds to its lane.
    fn text<'a>(&self, chunk: &'a Chunk) -> Option<(Lane, &'a str)> {
        let (lane, text) = match chunk.body() {
            Body::Delta { lane, text } => (*lane, text.as_str()),
            Body::Snapshot(snapshot) if self.new_text => (snapshot.lane, snapshot.text.as_str()),
            _ => return None,
        };
        (!text.is_empty()).then_some((lane, text))
    }
}

/// How events are put into bytes.
#[derive(Debug)]
struct Writer {
    is_sse: bool,
}

impl Writer {
    fn to<'a>(&self, out: &'a mut Vec<u8>) -> Out<'a> {
        Out { is_sse: self.is_sse, out }
    }
}

/// Where events go.
struct Out<'a> {
    is_sse: bool,
    out: &'a mut Vec<u8>,
}

impl Out<'_> {
    /// Writes an event, its JSON on one line. Line ends stand in JSON only between its words.
    fn event(&mut self, name: Option<&str>, payload: &str) {
        if payload.contains(['\n', '\r']) {
            return self.event(name, &payload.replace(['\n', '\r'], " "));
        }
        if !self.is_sse {
            self.out.extend_from_slice(payload.as_bytes());
            return self.out.push(b'\n');
        }
        if let Some(name) = name {
            self.out.extend_from_slice(b"event: ");
            self.out.extend_from_slice(name.as_bytes());
            self.out.push(b'\n');
        }
        self.out.extend_from_slice(b"data: ");
        self.out.extend_from_slice(payload.as_bytes());
        self.out.extend_from_slice(b"\n\n");
    }
}

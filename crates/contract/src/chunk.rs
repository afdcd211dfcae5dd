use std::sync::Arc;

use crate::{Channel, EndToken, ErrorInfo, FinishReason, Json, Lane, Outcome, Text, Usage};

/// One event of a model's stream in canonical form.
///
/// Read it with [`kind`](Chunk::kind), [`lane`](Chunk::lane) and [`text`](Chunk::text), or match on [`body`](Chunk::body). A chunk is
/// never changed in place by an observer: it returns another one. What travels beside the body (arrival offset, origin, provenance,
/// unknown fields) is filled by the decoder and the stack.
///
/// At most 64 bytes, checked at compile time; deltas of up to 24 bytes own no heap memory.
///
/// ```
/// use streamkeeper_contract::{Chunk, ChunkKind, Lane};
///
/// let chunk = Chunk::delta(Lane::TEXT, "Hello");
/// assert_eq!(chunk.kind(), ChunkKind::ContentDelta);
/// assert_eq!(chunk.text(), Some("Hello"));
/// assert_eq!(chunk.lane(), Some(Lane::TEXT));
/// ```
///
/// # JSON form
///
/// One flat object: `kind`, what travels beside the body (`at`, `origin`, `amended_by`), the `lane`, and the fields of the body. What has
/// its default is left out: offset 0, no origin, no provenance, and the zeros of a lane or a whole lane of zeros. A lane states its
/// `channel` only where the kind does not tell it. Fields may be read in any order; it is quickest if `kind` is the first.
///
/// Kinds and fields that this version does not know survive as they were written ([`Body::Unknown`], [`Meta::extra`]). A field that is
/// missing, doubled or of a wrong type is an error that names it.
///
/// ```
/// # use streamkeeper_contract::{Chunk, Lane};
/// let chunk: Chunk = serde_json::from_str(r#"{"kind":"content_delta","lane":{"choice":1},"text":"Hello"}"#)?;
/// assert_eq!(chunk, Chunk::delta(Lane::TEXT.in_choice(1), "Hello"));
///
/// let later = r#"{"kind":"content_delta","text":"Hello","confidence":0.990}"#;
/// let chunk: Chunk = serde_json::from_str(later)?;
/// assert_eq!(serde_json::to_string(&chunk)?, later);
/// # Ok::<_, serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Chunk {
    body: Body,
    meta: Meta,
}

// A chunk is moved a few times per observer list; one cache line keeps that cheap.
const _: () = assert!(size_of::<Chunk>() <= 64);

/// What travels with a chunk and is filled by the decoder and the stack, never by an observer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Meta {
    /// When it arrived.
    pub at: Offset,
    /// Where in the provider's bytes it comes from.
    pub origin: Origin,
    /// Which observers amended or released it.
    pub provenance: Provenance,
    /// Fields of the source that this version does not know, as raw text in their order.
    pub extra: Option<Box<Extra>>,
}

/// What a chunk says. Everything but a delta is rare and boxed, so that a chunk stays small.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Body {
    /// A run of an agent begins (formats that speak of runs: AG-UI, Claude Code).
    RunStart(Box<RunInfo>),
    /// A run of an agent ends. Not the end of the invocation: that is [`End`](Body::End).
    RunEnd(Box<RunInfo>),
    /// A message of one choice begins.
    MessageStart(Box<MessageInfo>),
    /// The message of this choice is complete.
    MessageEnd {
        /// The choice.
        choice: u16,
    },
    /// A named step begins.
    StepStart(Box<Text>),
    /// A named step ends.
    StepEnd(Box<Text>),
    /// A content block begins.
    PartStart(Lane),
    /// Nothing more comes for this part, in any channel.
    PartEnd {
        /// The choice.
        choice: u16,
        /// The part of that choice.
        part: u16,
    },
    /// A piece of a lane's text. One variant for answer, reasoning, refusal and arguments: the lane's channel says which, so that kind
    /// and lane cannot contradict each other.
    Delta {
        /// Which text it continues.
        lane: Lane,
        /// The piece.
        text: Text,
    },
    /// The provider repeats the whole text of a lane.
    Snapshot(Box<Snapshot>),
    /// A tool call begins; its arguments follow as deltas of the lane.
    ToolCallStart(Box<ToolCallStart>),
    /// The arguments of a call are complete.
    ToolCallEnd(Lane),
    /// A whole tool call in one chunk: start, arguments and end.
    ToolCall(Box<ToolCall>),
    /// What a tool gave back.
    ToolResult(Box<ToolResult>),
    /// A tool that the provider runs itself begins; its input follows as deltas of the lane.
    ProviderToolStart(Box<ToolCallStart>),
    /// The input of a provider's tool is complete.
    ProviderToolEnd(Lane),
    /// What a provider's tool gave back.
    ProviderToolOutput(Box<ProviderToolOutput>),
    /// A signature, or redacted or encrypted reasoning. Passes unchanged or not at all.
    Opaque(Box<Opaque>),
    /// A note about a lane's text: a citation, grounding, log probabilities, safety ratings.
    Annotation(Box<Annotation>),
    /// An image, audio or file, or a piece of one.
    Media(Box<Media>),
    /// Tokens, as far as stated yet.
    Usage(Box<Usage>),
    /// One choice is done.
    Finish(Box<Finish>),
    /// The invocation is over: once, last, made by the stack or engine. Also the marker of a stop.
    End(End),
    /// The provider reports an error inside the stream.
    Error(Box<ErrorInfo>),
    /// Forget this partial message: it is sent again from its beginning.
    Discard(Box<Text>),
    /// The whole state of an agent.
    StateSnapshot(Box<Json>),
    /// A change of an agent's state (JSON Patch).
    StateDelta(Box<Json>),
    /// All messages of a conversation.
    MessagesSnapshot(Box<Json>),
    /// A provider's or user's own named event.
    Custom(Box<Custom>),
    /// Nothing happened, and time passed.
    Heartbeat,
    /// An event that this version does not understand, as it came.
    Raw(Box<Raw>),
    /// A chunk of a kind that this version does not know, read from its JSON form. Its fields are in [`Meta::extra`].
    Unknown(Box<Text>),
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal,)*) => {
        /// [`Body`] without its data: what an observer's interest is made of. Deltas have one kind per channel.
        ///
        /// ```
        /// use streamkeeper_contract::ChunkKind;
        ///
        /// assert_eq!(ChunkKind::ContentDelta.as_str(), "content_delta");
        /// assert_eq!(ChunkKind::from_name("tool_call"), Some(ChunkKind::ToolCall));
        /// ```
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        #[repr(u8)]
        pub enum ChunkKind {
            $($(#[$doc])* $kind,)*
        }

        impl ChunkKind {
            /// Every kind, in a fixed order.
            pub const ALL: &[ChunkKind] = &[$(ChunkKind::$kind),*];

            /// The name in JSON: snake case.
            pub const fn as_str(self) -> &'static str {
                match self { $(ChunkKind::$kind => $name,)* }
            }

            /// The kind with this name in JSON.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($name => Some(ChunkKind::$kind),)* _ => None }
            }
        }
    };
}

kinds! {
    /// A piece of answer text.
    ContentDelta = "content_delta",
    /// A piece of reasoning.
    ReasoningDelta = "reasoning_delta",
    /// A piece of a refusal.
    RefusalDelta = "refusal_delta",
    /// A piece of a tool call's arguments.
    ToolCallDelta = "tool_call_delta",
    /// A piece of a tool's result.
    ToolResultDelta = "tool_result_delta",
    /// A piece of the input of a provider's tool.
    ProviderToolDelta = "provider_tool_delta",
    /// A piece of a transcript.
    TranscriptDelta = "transcript_delta",
    /// See [`Body::RunStart`].
    RunStart = "run_start",
    /// See [`Body::RunEnd`].
    RunEnd = "run_end",
    /// See [`Body::MessageStart`].
    MessageStart = "message_start",
    /// See [`Body::MessageEnd`].
    MessageEnd = "message_end",
    /// See [`Body::StepStart`].
    StepStart = "step_start",
    /// See [`Body::StepEnd`].
    StepEnd = "step_end",
    /// See [`Body::PartStart`].
    PartStart = "part_start",
    /// See [`Body::PartEnd`].
    PartEnd = "part_end",
    /// See [`Body::Snapshot`].
    Snapshot = "snapshot",
    /// See [`Body::ToolCallStart`].
    ToolCallStart = "tool_call_start",
    /// See [`Body::ToolCallEnd`].
    ToolCallEnd = "tool_call_end",
    /// See [`Body::ToolCall`].
    ToolCall = "tool_call",
    /// See [`Body::ToolResult`].
    ToolResult = "tool_result",
    /// See [`Body::ProviderToolStart`].
    ProviderToolStart = "provider_tool_start",
    /// See [`Body::ProviderToolEnd`].
    ProviderToolEnd = "provider_tool_end",
    /// See [`Body::ProviderToolOutput`].
    ProviderToolOutput = "provider_tool_output",
    /// See [`Body::Opaque`].
    Opaque = "opaque",
    /// See [`Body::Annotation`].
    Annotation = "annotation",
    /// See [`Body::Media`].
    Media = "media",
    /// See [`Body::Usage`].
    Usage = "usage",
    /// See [`Body::Finish`].
    Finish = "finish",
    /// See [`Body::End`].
    End = "end",
    /// See [`Body::Error`].
    Error = "error",
    /// See [`Body::Discard`].
    Discard = "discard",
    /// See [`Body::StateSnapshot`].
    StateSnapshot = "state_snapshot",
    /// See [`Body::StateDelta`].
    StateDelta = "state_delta",
    /// See [`Body::MessagesSnapshot`].
    MessagesSnapshot = "messages_snapshot",
    /// See [`Body::Custom`].
    Custom = "custom",
    /// See [`Body::Heartbeat`].
    Heartbeat = "heartbeat",
    /// See [`Body::Raw`].
    Raw = "raw",
    /// See [`Body::Unknown`].
    Unknown = "unknown",
}

impl ChunkKind {
    /// The channel of the lanes of this kind, where the kind tells it: that of a delta, arguments for tool calls, and so on.
    ///
    /// ```
    /// use streamkeeper_contract::{Channel, ChunkKind};
    ///
    /// assert_eq!(ChunkKind::ReasoningDelta.channel(), Some(Channel::Reasoning));
    /// assert_eq!(ChunkKind::ToolCallStart.channel(), Some(Channel::Arguments));
    /// assert_eq!(ChunkKind::Snapshot.channel(), None);
    /// ```
    pub const fn channel(self) -> Option<Channel> {
        Some(match self {
            Self::ContentDelta => Channel::Text,
            Self::ReasoningDelta => Channel::Reasoning,
            Self::RefusalDelta => Channel::Refusal,
            Self::ToolCallDelta | Self::ToolCallStart | Self::ToolCallEnd | Self::ToolCall => Channel::Arguments,
            Self::ToolResultDelta | Self::ToolResult => Channel::ToolResult,
            Self::ProviderToolDelta | Self::ProviderToolStart | Self::ProviderToolEnd | Self::ProviderToolOutput => {
                Channel::ProviderTool
            }
            Self::TranscriptDelta => Channel::Transcript,
            _ => return None,
        })
    }
}

// An interest is a set of kinds in 64 bits.
const _: () = assert!(ChunkKind::ALL.len() <= 64);

/// The ids of a run, as the provider or agent states them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunInfo {
    /// The run.
    pub run: Option<Text>,
    /// The conversation.
    pub thread: Option<Text>,
    /// The run this one belongs to.
    pub parent: Option<Text>,
}

/// What is known of a message when it begins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MessageInfo {
    /// The choice it answers for.
    pub choice: u16,
    /// The provider's id.
    pub id: Option<Text>,
    /// The role, usually `assistant`.
    pub role: Option<Text>,
    /// The model, as the provider names it.
    pub model: Option<Text>,
}

/// The whole text of a lane, repeated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Which text.
    pub lane: Lane,
    /// All of it.
    pub text: Text,
}

/// The beginning of a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCallStart {
    /// The lane of its arguments or input.
    pub lane: Lane,
    /// The provider's id, or one made up where it gives none.
    pub id: Text,
    /// The tool.
    pub name: Text,
}

/// A whole tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// The lane of its arguments.
    pub lane: Lane,
    /// The provider's id, or one made up where it gives none.
    pub id: Text,
    /// The tool.
    pub name: Text,
    /// JSON text; empty means `{}`.
    pub arguments: Text,
}

/// What a tool gave back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    /// Its lane, of channel [`Channel::ToolResult`].
    pub lane: Lane,
    /// The id of the call it answers.
    pub id: Text,
    /// The content as text; structured content as JSON text.
    pub content: Text,
    /// Whether the tool reports an error.
    pub is_error: bool,
}

/// What a provider's tool gave back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderToolOutput {
    /// The lane of the tool's input.
    pub lane: Lane,
    /// The id of the call it answers.
    pub id: Text,
    /// The provider's name for this kind of result.
    pub name: Text,
    /// The result as the provider wrote it.
    pub output: Json,
}

/// Bytes that only the provider understands, bound to a lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opaque {
    /// The lane it belongs to.
    pub lane: Lane,
    /// What it is: `signature`, `redacted` or `encrypted`.
    pub form: Text,
    /// The provider's text for it.
    pub data: Box<str>,
}

/// A note about a lane's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Annotation {
    /// The lane it is about.
    pub lane: Lane,
    /// What it is: `citation`, `grounding`, `logprobs`, `safety`, or the provider's word.
    pub form: Text,
    /// The note as the provider wrote it.
    pub value: Json,
}

/// An image, audio or file, or a piece of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Media {
    /// The part it belongs to.
    pub lane: Lane,
    /// What it is: `image`, `audio`, `file`, `video`.
    pub form: Text,
    /// The MIME type, if stated.
    pub mime: Option<Text>,
    /// The content.
    pub data: MediaData,
}

/// The content of a media part.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum MediaData {
    /// Base64 text, whole or a piece.
    Base64(Box<str>),
    /// An address.
    Url(Box<str>),
    /// The provider's id of a stored file.
    Id(Box<str>),
}

/// The end of one choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finish {
    /// The choice.
    pub choice: u16,
    /// Why, in the words all providers share.
    pub reason: FinishReason,
    /// Why, in the provider's own word.
    pub stated: Option<Text>,
}

/// A named event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Custom {
    /// Its name.
    pub name: Text,
    /// Its content.
    pub value: Json,
}

/// An event that no decoder rule fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raw {
    /// The event's name in its framing, if it has one.
    pub event: Option<Text>,
    /// Its data, as it came.
    pub data: Text,
}

/// The outcome of an invocation in a chunk. Only [`Chunk::end`] makes one, from an [`EndToken`]; reading a chunk from JSON repeats one
/// that was made.
#[derive(Debug, Clone, PartialEq)]
pub struct End(Arc<Outcome>);

impl End {
    pub(crate) fn read(outcome: Outcome) -> Self {
        Self(Arc::new(outcome))
    }

    /// How it ended.
    pub fn outcome(&self) -> &Arc<Outcome> {
        &self.0
    }
}

/// Microseconds from the start of the invocation to the arrival of a chunk. Data, not a clock: a replay sees the same.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Offset(pub u64);

impl Offset {
    /// As a duration.
    pub const fn duration(self) -> std::time::Duration {
        std::time::Duration::from_micros(self.0)
    }
}

impl From<std::time::Duration> for Offset {
    fn from(duration: std::time::Duration) -> Self {
        Self(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX))
    }
}

/// Where in the provider's bytes a chunk comes from. Frames count from 1, so that the default means "from no frame".
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    /// The frame: an SSE event, a JSON line, a binary message. From 1; 0 for a chunk that was not decoded.
    pub frame: u32,
    /// Which chunk of that frame, from 0.
    pub part: u16,
}

/// The observers that amended or released a chunk, as a set of positions in the stack. Positions past 63 share the last bit.
///
/// ```
/// use streamkeeper_contract::Provenance;
///
/// let mut provenance = Provenance::default();
/// provenance.add(2);
/// assert!(provenance.contains(2) && !provenance.contains(0));
/// assert_eq!(provenance.positions().collect::<Vec<_>>(), [2]);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Provenance(u64);

impl Provenance {
    /// Adds the observer at this position.
    pub fn add(&mut self, position: usize) {
        self.0 |= 1 << position.min(63);
    }

    /// Adds all of another set.
    pub fn merge(&mut self, other: Provenance) {
        self.0 |= other.0;
    }

    /// Whether the observer at this position had a hand in it.
    pub fn contains(self, position: usize) -> bool {
        self.0 & (1 << position.min(63)) != 0
    }

    /// No observer had.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The positions, in order.
    pub fn positions(self) -> impl Iterator<Item = usize> {
        (0..64).filter(move |&position| self.contains(position))
    }
}

/// Fields of the source that this version does not know, as raw text in their order.
///
/// Unknown fields of an object inside a chunk stand under the name of that object: `("lane", {"floor":7.0})`. In the chunk's JSON form
/// they follow the known fields; one that has the name of a known field of its kind is left out there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Extra(pub Vec<(Text, Json)>);

impl From<Body> for Chunk {
    fn from(body: Body) -> Self {
        Self { body, meta: Meta::default() }
    }
}

impl Chunk {
    /// A piece of a lane's text.
    pub fn delta(lane: Lane, text: impl Into<Text>) -> Self {
        Body::Delta { lane, text: text.into() }.into()
    }

    /// The whole text of a lane, repeated by the provider.
    pub fn snapshot(lane: Lane, text: impl Into<Text>) -> Self {
        Body::Snapshot(Box::new(Snapshot { lane, text: text.into() })).into()
    }

    /// The end of a choice.
    pub fn finish(choice: u16, reason: FinishReason) -> Self {
        Body::Finish(Box::new(Finish { choice, reason, stated: None })).into()
    }

    /// The beginning of a tool call.
    pub fn tool_call_start(lane: Lane, id: impl Into<Text>, name: impl Into<Text>) -> Self {
        Body::ToolCallStart(Box::new(ToolCallStart { lane, id: id.into(), name: name.into() })).into()
    }

    /// A whole tool call.
    pub fn tool_call(lane: Lane, id: impl Into<Text>, name: impl Into<Text>, arguments: impl Into<Text>) -> Self {
        let call = ToolCall { lane, id: id.into(), name: name.into(), arguments: arguments.into() };
        Body::ToolCall(Box::new(call)).into()
    }

    /// Tokens.
    pub fn usage(usage: Usage) -> Self {
        Body::Usage(Box::new(usage)).into()
    }

    /// An error that the provider reports inside the stream.
    pub fn error(error: ErrorInfo) -> Self {
        Body::Error(Box::new(error)).into()
    }

    /// A named event.
    pub fn custom(name: impl Into<Text>, value: Json) -> Self {
        Body::Custom(Box::new(Custom { name: name.into(), value })).into()
    }

    /// Silence up to this offset.
    pub fn heartbeat(at: Offset) -> Self {
        Self::from(Body::Heartbeat).at(at)
    }

    /// The end of an invocation; spends the right to make another.
    pub fn end(token: EndToken, outcome: Arc<Outcome>) -> Self {
        token.spend();
        Body::End(End(outcome)).into()
    }

    /// The same chunk with another text, or `None` if it has none that can be replaced.
    ///
    /// ```
    /// # use streamkeeper_contract::{Chunk, Lane};
    /// let chunk = Chunk::delta(Lane::TEXT, "secret").with_text("[redacted]").unwrap();
    /// assert_eq!(chunk.text(), Some("[redacted]"));
    /// ```
    pub fn with_text(&self, text: impl Into<Text>) -> Option<Self> {
        let text = text.into();
        let body = match &self.body {
            Body::Delta { lane, .. } => Body::Delta { lane: *lane, text },
            Body::Snapshot(snapshot) => Body::Snapshot(Box::new(Snapshot { lane: snapshot.lane, text })),
            Body::ToolCall(call) => {
                let call = ToolCall { arguments: text, ..ToolCall::clone(call) };
                Body::ToolCall(Box::new(call))
            }
            Body::ToolResult(result) => {
                let result = ToolResult { content: text, ..ToolResult::clone(result) };
                Body::ToolResult(Box::new(result))
            }
            _ => return None,
        };
        Some(Self { body, meta: self.meta.clone() })
    }

    /// Stamps the arrival offset. The source does it, once.
    #[must_use]
    pub fn at(mut self, at: Offset) -> Self {
        self.meta.at = at;
        self
    }

    /// Replaces everything but the body: for decoders and stacks.
    #[must_use]
    pub fn with_meta(mut self, meta: Meta) -> Self {
        self.meta = meta;
        self
    }

    /// What it says.
    pub fn body(&self) -> &Body {
        &self.body
    }

    /// What it says, by value.
    pub fn into_body(self) -> Body {
        self.body
    }

    /// What travels with it.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// What travels with it, to be filled by a decoder or a stack.
    pub fn meta_mut(&mut self) -> &mut Meta {
        &mut self.meta
    }

    /// Which kind it is.
    pub fn kind(&self) -> ChunkKind {
        match &self.body {
            Body::Delta { lane, .. } => lane.delta_kind(),
            Body::RunStart(_) => ChunkKind::RunStart,
            Body::RunEnd(_) => ChunkKind::RunEnd,
            Body::MessageStart(_) => ChunkKind::MessageStart,
            Body::MessageEnd { .. } => ChunkKind::MessageEnd,
            Body::StepStart(_) => ChunkKind::StepStart,
            Body::StepEnd(_) => ChunkKind::StepEnd,
            Body::PartStart(_) => ChunkKind::PartStart,
            Body::PartEnd { .. } => ChunkKind::PartEnd,
            Body::Snapshot(_) => ChunkKind::Snapshot,
            Body::ToolCallStart(_) => ChunkKind::ToolCallStart,
            Body::ToolCallEnd(_) => ChunkKind::ToolCallEnd,
            Body::ToolCall(_) => ChunkKind::ToolCall,
            Body::ToolResult(_) => ChunkKind::ToolResult,
            Body::ProviderToolStart(_) => ChunkKind::ProviderToolStart,
            Body::ProviderToolEnd(_) => ChunkKind::ProviderToolEnd,
            Body::ProviderToolOutput(_) => ChunkKind::ProviderToolOutput,
            Body::Opaque(_) => ChunkKind::Opaque,
            Body::Annotation(_) => ChunkKind::Annotation,
            Body::Media(_) => ChunkKind::Media,
            Body::Usage(_) => ChunkKind::Usage,
            Body::Finish(_) => ChunkKind::Finish,
            Body::End(_) => ChunkKind::End,
            Body::Error(_) => ChunkKind::Error,
            Body::Discard(_) => ChunkKind::Discard,
            Body::StateSnapshot(_) => ChunkKind::StateSnapshot,
            Body::StateDelta(_) => ChunkKind::StateDelta,
            Body::MessagesSnapshot(_) => ChunkKind::MessagesSnapshot,
            Body::Custom(_) => ChunkKind::Custom,
            Body::Heartbeat => ChunkKind::Heartbeat,
            Body::Raw(_) => ChunkKind::Raw,
            Body::Unknown(_) => ChunkKind::Unknown,
        }
    }

    /// The lane it belongs to, if it belongs to one.
    pub fn lane(&self) -> Option<Lane> {
        match &self.body {
            Body::Delta { lane, .. }
            | Body::ToolCallEnd(lane)
            | Body::ProviderToolEnd(lane)
            | Body::PartStart(lane) => Some(*lane),
            Body::Snapshot(snapshot) => Some(snapshot.lane),
            Body::ToolCallStart(call) | Body::ProviderToolStart(call) => Some(call.lane),
            Body::ToolCall(call) => Some(call.lane),
            Body::ToolResult(result) => Some(result.lane),
            Body::ProviderToolOutput(output) => Some(output.lane),
            Body::Opaque(opaque) => Some(opaque.lane),
            Body::Annotation(annotation) => Some(annotation.lane),
            Body::Media(media) => Some(media.lane),
            _ => None,
        }
    }

    /// The text a guard has to look at, if it carries any: a delta, a snapshot, whole arguments or a result, an error's message, or the
    /// JSON text of a structured chunk.
    pub fn text(&self) -> Option<&str> {
        match &self.body {
            Body::Delta { text, .. } => Some(text),
            Body::Snapshot(snapshot) => Some(&snapshot.text),
            Body::ToolCall(call) => Some(&call.arguments),
            Body::ToolResult(result) => Some(&result.content),
            Body::ProviderToolOutput(output) => Some(output.output.as_str()),
            Body::Annotation(annotation) => Some(annotation.value.as_str()),
            Body::Error(error) => error.message.as_deref(),
            Body::StateSnapshot(json) | Body::StateDelta(json) | Body::MessagesSnapshot(json) => Some(json.as_str()),
            Body::Custom(custom) => Some(custom.value.as_str()),
            Body::Raw(raw) => Some(&raw.data),
            _ => None,
        }
    }

    /// Whether it is a piece of a lane's text: the only kind that can be held.
    pub fn is_delta(&self) -> bool {
        matches!(self.body, Body::Delta { .. })
    }

    /// When it arrived.
    pub fn offset(&self) -> Offset {
        self.meta.at
    }

    /// Where it came from.
    pub fn origin(&self) -> Origin {
        self.meta.origin
    }

    /// Who amended or released it.
    pub fn provenance(&self) -> Provenance {
        self.meta.provenance
    }

    /// Whether text of `held` may not stay behind when this chunk goes (spec 3.7).
    ///
    /// A barrier of a lane is the end of its part; any chunk of the lane that is no delta; for text, the start of a tool call of the
    /// same choice; for arguments, the end of that call; the finish of its choice; an error; the end.
    pub fn is_barrier_for(&self, held: Lane) -> bool {
        match &self.body {
            Body::Delta { .. } => false,
            Body::PartEnd { choice, part } => held.choice == *choice && held.part == *part,
            Body::MessageEnd { choice } => held.choice == *choice,
            Body::ToolCallStart(_) | Body::ToolCall(_) => self
                .lane()
                .is_some_and(|lane| lane == held || (lane.choice == held.choice && held.channel != Channel::Arguments)),
            Body::Finish(finish) => held.choice == finish.choice,
            Body::Error(_) | Body::End(_) => true,
            _ => self.lane() == Some(held),
        }
    }
}

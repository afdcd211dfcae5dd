use std::sync::Arc;

use crate::{
    Body, Channel, ChunkKind, Custom, End, EndToken, ErrorInfo, Finish, FinishReason, Json, Lane, Meta, Offset, Origin,
    Outcome, Provenance, Snapshot, Text, ToolCall, ToolCallStart, ToolResult, Usage,
};

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
        Body::End(End::new(outcome)).into()
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
            Body::Error(error) if error.message.is_some() => {
                Body::Error(Box::new(ErrorInfo::clone(error).with_message(text)))
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
    #[inline]
    pub fn kind(&self) -> ChunkKind {
        // Nearly all chunks are deltas.
        if let Body::Delta { lane, .. } = &self.body {
            return lane.delta_kind();
        }
        self.kind_of_rare()
    }

    fn kind_of_rare(&self) -> ChunkKind {
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
    #[inline]
    pub fn lane(&self) -> Option<Lane> {
        // Nearly all chunks are deltas.
        if let Body::Delta { lane, .. } = &self.body {
            return Some(*lane);
        }
        self.lane_of_rare()
    }

    fn lane_of_rare(&self) -> Option<Lane> {
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
    #[inline]
    pub fn text(&self) -> Option<&str> {
        // Nearly all chunks are deltas.
        if let Body::Delta { text, .. } = &self.body {
            return Some(text);
        }
        self.text_of_rare()
    }

    fn text_of_rare(&self) -> Option<&str> {
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
    /// same choice; for arguments, the end of that call; the finish of its choice; an error; the end; a `discard`,
    /// after which the text comes again from its beginning. Log probabilities are none: providers send them with every piece of text, so
    /// that no text could be held.
    pub fn is_barrier_for(&self, held: Lane) -> bool {
        match &self.body {
            Body::Delta { .. } => false,
            Body::PartEnd { choice, part } => held.choice == *choice && held.part == *part,
            Body::MessageEnd { choice } => held.choice == *choice,
            Body::ToolCallStart(_) | Body::ToolCall(_) => self
                .lane()
                .is_some_and(|lane| lane == held || (lane.choice == held.choice && held.channel != Channel::Arguments)),
            Body::Finish(finish) => held.choice == finish.choice,
            Body::Error(_) | Body::End(_) | Body::Discard(_) => true,
            Body::Annotation(note) if note.is_logprobs() => false,
            _ => self.lane() == Some(held),
        }
    }
}

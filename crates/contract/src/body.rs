use std::sync::Arc;

use crate::{ErrorInfo, FinishReason, Json, Lane, Outcome, Text, Usage};

/// What a chunk says. Everything but a delta is rare and boxed, so that a chunk stays small.
///
/// The page `stream-events` of the guides says of each kind when it comes and how it looks in JSON.
///
/// ```
/// use streamkeeper_contract::{Body, Chunk, Lane};
///
/// let chunk = Chunk::tool_call_start(Lane::TEXT.arguments(1), "call_1", "weather");
/// let Body::ToolCallStart(call) = chunk.body() else { unreachable!() };
/// assert_eq!((call.id.as_str(), call.name.as_str()), ("call_1", "weather"));
/// ```
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
    /// A chunk of a kind that this version does not know, read from its JSON form. Its fields are in [`Meta::extra`](crate::Meta::extra).
    Unknown(Box<Text>),
}

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
    /// Its lane, of channel [`Channel::ToolResult`](crate::Channel::ToolResult).
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

impl Annotation {
    /// Whether it has the tokens of the text, with their probabilities.
    ///
    /// ```
    /// use streamkeeper_contract::{Annotation, Json, Lane};
    ///
    /// let value = Json::from_text(r#"[{"token":"Hi","logprob":-0.1}]"#)?;
    /// assert!(Annotation { lane: Lane::TEXT, form: "logprobs".into(), value }.is_logprobs());
    /// # Ok::<_, serde_json::Error>(())
    /// ```
    pub fn is_logprobs(&self) -> bool {
        self.form.as_str() == "logprobs"
    }
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

/// The outcome of an invocation in a chunk. Only [`Chunk::end`](crate::Chunk::end) makes one, from an [`EndToken`](crate::EndToken); reading a chunk from JSON repeats one
/// that was made.
#[derive(Debug, Clone, PartialEq)]
pub struct End(Arc<Outcome>);

impl End {
    /// Called where a token was spent, or where an end that was made is read again.
    pub(crate) fn new(outcome: Arc<Outcome>) -> Self {
        Self(outcome)
    }

    /// How it ended.
    pub fn outcome(&self) -> &Arc<Outcome> {
        &self.0
    }
}

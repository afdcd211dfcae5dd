use crate::{ChunkKind, names::names};

/// One text of an invocation: choice × part × channel × tool call.
///
/// All four are ordinals in order of appearance. The decoder knows which provider ids they stand for, so that observers see nothing
/// that differs between two runs of the same stream. Order is kept within a lane and only there.
///
/// ```
/// use streamkeeper_contract::{Channel, Lane};
///
/// let lane = Lane::TEXT.in_choice(1);
/// assert_eq!((lane.choice, lane.channel), (1, Channel::Text));
/// assert_eq!(Lane::TEXT.arguments(2).call, 2);
/// ```
///
/// The JSON form is an object without the zeros: `{"choice":1,"channel":"text"}`. In a chunk the channel is left out where the kind tells
/// it ([`ChunkKind::channel`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lane {
    /// The choice or candidate (`n > 1`), from 0.
    pub choice: u16,
    /// The content block or message, from 0.
    pub part: u16,
    /// The tool call, from 1; 0 outside of tool calls.
    pub call: u16,
    /// What kind of text.
    pub channel: Channel,
}

names! {
    /// What kind of text a lane carries.
    ///
    /// ```
    /// use streamkeeper_contract::Channel;
    ///
    /// assert_eq!(Channel::ToolResult.as_str(), "tool_result");
    /// assert_eq!(Channel::from_name("text"), Some(Channel::Text));
    /// ```
    Channel {
        /// The answer.
        Text = "text",
        /// The model's thinking or a summary of it, where a provider shows it.
        Reasoning = "reasoning",
        /// The text of a structured refusal.
        Refusal = "refusal",
        /// JSON text of the arguments of a tool call that the client runs.
        Arguments = "arguments",
        /// What a tool gave back.
        ToolResult = "tool_result",
        /// Input of a tool that the provider runs.
        ProviderTool = "provider_tool",
        /// Text of audio in or out.
        Transcript = "transcript",
    }
}

impl Lane {
    /// The answer text of the first part of the first choice.
    pub const TEXT: Lane = Lane::new(Channel::Text);

    /// The first lane of a channel.
    pub const fn new(channel: Channel) -> Self {
        Self { choice: 0, part: 0, call: 0, channel }
    }

    /// The same text of another choice.
    #[must_use]
    pub const fn in_choice(self, choice: u16) -> Self {
        Self { choice, ..self }
    }

    /// The same text in another part.
    #[must_use]
    pub const fn in_part(self, part: u16) -> Self {
        Self { part, ..self }
    }

    /// The same choice, part and call in another channel.
    #[must_use]
    pub const fn in_channel(self, channel: Channel) -> Self {
        Self { channel, ..self }
    }

    /// The arguments of a call in the same choice and part.
    #[must_use]
    pub const fn arguments(self, call: u16) -> Self {
        Self { call, channel: Channel::Arguments, ..self }
    }

    /// The kind of a delta in this lane.
    #[inline]
    pub const fn delta_kind(self) -> ChunkKind {
        match self.channel {
            Channel::Text => ChunkKind::ContentDelta,
            Channel::Reasoning => ChunkKind::ReasoningDelta,
            Channel::Refusal => ChunkKind::RefusalDelta,
            Channel::Arguments => ChunkKind::ToolCallDelta,
            Channel::ToolResult => ChunkKind::ToolResultDelta,
            Channel::ProviderTool => ChunkKind::ProviderToolDelta,
            Channel::Transcript => ChunkKind::TranscriptDelta,
        }
    }
}

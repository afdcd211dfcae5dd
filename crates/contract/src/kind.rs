use crate::{Channel, names::names};

names! {
    /// [`Body`](crate::Body) without its data: what an observer's interest is made of. Deltas have one kind per channel.
    ///
    /// ```
    /// use streamkeeper_contract::ChunkKind;
    ///
    /// assert_eq!(ChunkKind::ContentDelta.as_str(), "content_delta");
    /// assert_eq!(ChunkKind::from_name("tool_call"), Some(ChunkKind::ToolCall));
    /// ```
    ChunkKind {
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
        /// See [`Body::RunStart`](crate::Body::RunStart).
        RunStart = "run_start",
        /// See [`Body::RunEnd`](crate::Body::RunEnd).
        RunEnd = "run_end",
        /// See [`Body::MessageStart`](crate::Body::MessageStart).
        MessageStart = "message_start",
        /// See [`Body::MessageEnd`](crate::Body::MessageEnd).
        MessageEnd = "message_end",
        /// See [`Body::StepStart`](crate::Body::StepStart).
        StepStart = "step_start",
        /// See [`Body::StepEnd`](crate::Body::StepEnd).
        StepEnd = "step_end",
        /// See [`Body::PartStart`](crate::Body::PartStart).
        PartStart = "part_start",
        /// See [`Body::PartEnd`](crate::Body::PartEnd).
        PartEnd = "part_end",
        /// See [`Body::Snapshot`](crate::Body::Snapshot).
        Snapshot = "snapshot",
        /// See [`Body::ToolCallStart`](crate::Body::ToolCallStart).
        ToolCallStart = "tool_call_start",
        /// See [`Body::ToolCallEnd`](crate::Body::ToolCallEnd).
        ToolCallEnd = "tool_call_end",
        /// See [`Body::ToolCall`](crate::Body::ToolCall).
        ToolCall = "tool_call",
        /// See [`Body::ToolResult`](crate::Body::ToolResult).
        ToolResult = "tool_result",
        /// See [`Body::ProviderToolStart`](crate::Body::ProviderToolStart).
        ProviderToolStart = "provider_tool_start",
        /// See [`Body::ProviderToolEnd`](crate::Body::ProviderToolEnd).
        ProviderToolEnd = "provider_tool_end",
        /// See [`Body::ProviderToolOutput`](crate::Body::ProviderToolOutput).
        ProviderToolOutput = "provider_tool_output",
        /// See [`Body::Opaque`](crate::Body::Opaque).
        Opaque = "opaque",
        /// See [`Body::Annotation`](crate::Body::Annotation).
        Annotation = "annotation",
        /// See [`Body::Media`](crate::Body::Media).
        Media = "media",
        /// See [`Body::Usage`](crate::Body::Usage).
        Usage = "usage",
        /// See [`Body::Finish`](crate::Body::Finish).
        Finish = "finish",
        /// See [`Body::End`](crate::Body::End).
        End = "end",
        /// See [`Body::Error`](crate::Body::Error).
        Error = "error",
        /// See [`Body::Discard`](crate::Body::Discard).
        Discard = "discard",
        /// See [`Body::StateSnapshot`](crate::Body::StateSnapshot).
        StateSnapshot = "state_snapshot",
        /// See [`Body::StateDelta`](crate::Body::StateDelta).
        StateDelta = "state_delta",
        /// See [`Body::MessagesSnapshot`](crate::Body::MessagesSnapshot).
        MessagesSnapshot = "messages_snapshot",
        /// See [`Body::Custom`](crate::Body::Custom).
        Custom = "custom",
        /// See [`Body::Heartbeat`](crate::Body::Heartbeat).
        Heartbeat = "heartbeat",
        /// See [`Body::Raw`](crate::Body::Raw).
        Raw = "raw",
        /// See [`Body::Unknown`](crate::Body::Unknown).
        Unknown = "unknown",
    }
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

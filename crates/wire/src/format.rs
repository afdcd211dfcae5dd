use std::fmt;

macro_rules! formats {
    ($($(#[$doc:meta])* $format:ident = $name:literal,)*) => {
        /// A provider's stream format.
        ///
        /// ```
        /// use streamkeeper_wire::Format;
        ///
        /// assert_eq!("openai-chat".parse(), Ok(Format::OpenAiChat));
        /// assert_eq!(Format::AnthropicMessages.to_string(), "anthropic-messages");
        /// assert!("gpt".parse::<Format>().unwrap_err().to_string().contains("openai-chat"));
        /// ```
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Format {
            $($(#[$doc])* $format,)*
        }

        impl Format {
            /// Every format, in a fixed order.
            pub const ALL: &[Format] = &[$(Format::$format),*];

            /// The name, as the command and policy files write it.
            pub const fn name(self) -> &'static str {
                match self { $(Format::$format => $name,)* }
            }
        }
    };
}

formats! {
    /// OpenAI Chat Completions and its dialects: Azure, DeepSeek, Groq, Mistral, OpenRouter, Perplexity, xAI, vLLM and others.
    OpenAiChat = "openai-chat",
    /// OpenAI's legacy completions.
    OpenAiCompletions = "openai-completions",
    /// OpenAI Responses.
    OpenAiResponses = "openai-responses",
    /// Anthropic Messages.
    AnthropicMessages = "anthropic-messages",
    /// Gemini `streamGenerateContent`, as SSE or as a JSON array.
    Gemini = "gemini",
    /// Ollama `/api/chat` and `/api/generate`.
    Ollama = "ollama",
    /// Cohere v2 chat.
    CohereV2 = "cohere-v2",
    /// Bedrock `ConverseStream` (AWS event stream).
    BedrockConverse = "bedrock-converse",
    /// Bedrock `InvokeModelWithResponseStream` (AWS event stream around a model's own format).
    BedrockInvoke = "bedrock-invoke",
    /// AG-UI events.
    AgUi = "ag-ui",
    /// Claude Code `--output-format stream-json`.
    ClaudeCode = "claude-code",
    /// Canonical chunks as JSON lines: the documented JSON form of [`Chunk`](streamkeeper_contract::Chunk).
    Jsonl = "jsonl",
    /// No known format: each event becomes one `raw` chunk. Ends at a clean end of the body.
    Raw = "raw",
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The name is not that of a [`Format`]. The message lists the names there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownFormat;

impl fmt::Display for UnknownFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown format; the formats are ")?;
        for (i, format) in Format::ALL.iter().enumerate() {
            write!(f, "{}{format}", if i == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

impl std::error::Error for UnknownFormat {}

impl std::str::FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        Self::ALL.iter().copied().find(|format| format.name() == name).ok_or(UnknownFormat)
    }
}

/// How events are packed into bytes. Independent of the [`Format`]: recorders often keep the payloads of an SSE stream as JSON lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Framing {
    /// Server-sent events (WHATWG HTML, 9.2).
    Sse,
    /// One JSON value a line.
    JsonLines,
    /// One JSON array, an event an element.
    JsonArray,
    /// AWS `application/vnd.amazon.eventstream` binary messages with CRCs.
    AwsEventStream,
}

impl Framing {
    /// The name: `sse`, `jsonl`, `array`, `aws`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sse => "sse",
            Self::JsonLines => "jsonl",
            Self::JsonArray => "array",
            Self::AwsEventStream => "aws",
        }
    }
}

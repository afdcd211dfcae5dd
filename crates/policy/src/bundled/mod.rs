//! The bundled observers as kinds of a policy.

mod halts;
mod redact;

use schemars::JsonSchema;
use serde::Deserialize;
use streamkeeper_contract::Channel;
use streamkeeper_observers::{Dialect, HaltOnPattern, Metrics, NormalizeDialects};
use streamkeeper_stream::Registration;

use crate::{OptionError, PolicyRegistry};

pub(crate) fn add(registry: PolicyRegistry) -> PolicyRegistry {
    halts::add(registry)
        .with("halt-on-pattern", Halt::registration)
        .with("normalize-dialects", Normalize::registration)
        .with("redact", redact::RedactOptions::registration)
        .with("metrics", MetricsOptions::registration)
}

/// A channel of text.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ChannelName {
    Text,
    Reasoning,
    Refusal,
    Arguments,
    ToolResult,
    ProviderTool,
    Transcript,
}

impl From<ChannelName> for Channel {
    fn from(name: ChannelName) -> Self {
        match name {
            ChannelName::Text => Self::Text,
            ChannelName::Reasoning => Self::Reasoning,
            ChannelName::Refusal => Self::Refusal,
            ChannelName::Arguments => Self::Arguments,
            ChannelName::ToolResult => Self::ToolResult,
            ChannelName::ProviderTool => Self::ProviderTool,
            ChannelName::Transcript => Self::Transcript,
        }
    }
}

/// The channels that an option names, if it is there.
fn channels(names: Option<Vec<ChannelName>>) -> Result<Option<Vec<Channel>>, OptionError> {
    match names {
        Some(names) if names.is_empty() => Err(OptionError::at("channels", "without a channel it would judge nothing")),
        names => Ok(names.map(|names| names.into_iter().map(Channel::from).collect())),
    }
}

/// Stops the stream when its text matches a pattern. A guard.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Halt {
    /// A regular expression in the syntax of the `regex` crate. Default: the bundled set of generic refusals.
    #[serde(default)]
    pattern: Option<String>,
    /// The channels whose text is judged. Default: `text` alone.
    #[serde(default)]
    channels: Option<Vec<ChannelName>>,
    /// Bytes of each lane that are kept for a match that began in earlier chunks. Default: 16384.
    #[serde(default)]
    window: Option<u32>,
    /// Whether the reason of the stop quotes the match, at most 256 bytes of it. Default: no.
    #[serde(default)]
    quote_match: bool,
}

impl Halt {
    fn registration(self) -> Result<Registration, OptionError> {
        let mut halt = match &self.pattern {
            Some(pattern) => HaltOnPattern::pattern(pattern).map_err(|error| OptionError::at("pattern", error))?,
            None => HaltOnPattern::refusals(),
        };
        if let Some(channels) = channels(self.channels)? {
            halt = halt.channels(channels);
        }
        if let Some(window) = self.window {
            halt = halt.window(window as usize);
        }
        Ok(halt.quote_match(self.quote_match).registration())
    }
}

/// One of the ways in which models write into an answer what is none.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum DialectName {
    /// `<tool name="…">{…}</tool>`
    ToolTag,
    /// `{0:"…",1:{…}}`
    Tuple,
    /// `<tool_call>{"name":"…","arguments":{…}}</tool_call>`
    ToolCallTag,
    /// The object of a call in a fenced block.
    FencedJson,
    /// `<think>…</think>`
    Think,
    /// Control tokens of chat templates.
    SpecialTokens,
}

impl From<DialectName> for Dialect {
    fn from(name: DialectName) -> Self {
        match name {
            DialectName::ToolTag => Self::ToolTag,
            DialectName::Tuple => Self::Tuple,
            DialectName::ToolCallTag => Self::ToolCallTag,
            DialectName::FencedJson => Self::FencedJson,
            DialectName::Think => Self::Think,
            DialectName::SpecialTokens => Self::SpecialTokens,
        }
    }
}

/// Turns tool calls, thoughts and control tokens that a model wrote into its answer into what they mean. A transform.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Normalize {
    /// Only these dialects. Default: all.
    #[serde(default)]
    dialects: Option<Vec<DialectName>>,
    /// These control tokens instead of the bundled ones.
    #[serde(default)]
    special_tokens: Option<Vec<String>>,
    /// The most bytes that a call may have. Default: 65536.
    #[serde(default)]
    max_call: Option<u32>,
    /// Whether an answer begins in a thought, for models whose template writes `<think>` itself. Default: no.
    #[serde(default)]
    begins_thinking: bool,
}

impl Normalize {
    #[expect(clippy::unnecessary_wraps, reason = "the shape of every kind")]
    fn registration(self) -> Result<Registration, OptionError> {
        let mut normalize = NormalizeDialects::new().begins_thinking(self.begins_thinking);
        if let Some(dialects) = self.dialects {
            normalize = normalize.only(dialects.into_iter().map(Dialect::from));
        }
        if let Some(tokens) = self.special_tokens {
            normalize = normalize.special_tokens(tokens);
        }
        if let Some(bytes) = self.max_call {
            normalize = normalize.max_call(bytes as usize);
        }
        Ok(normalize.registration())
    }
}

/// Counts and times the stream, and says so on the channel `metrics`. A watcher.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MetricsOptions {
    /// Also says how things stand each so many chunks. Default: at the end alone.
    #[serde(default)]
    every: Option<u32>,
}

impl MetricsOptions {
    fn registration(self) -> Result<Registration, OptionError> {
        match self.every {
            Some(0) => Err(OptionError::at("every", "it has to be at least 1")),
            Some(chunks) => Ok(Metrics::new().every(chunks.into()).registration()),
            None => Ok(Metrics::new().registration()),
        }
    }
}

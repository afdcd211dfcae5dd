//! The guards that end a stream.

use std::{borrow::Cow, time::Duration};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de::Error};
use streamkeeper_contract::Money;
use streamkeeper_observers::{CostCeiling, LengthCeiling, PromptLeak, Repetition, Stall, TokenCeiling, TokenPrices};
use streamkeeper_stream::Registration;

use super::{ChannelName, channels};
use crate::{OptionError, PolicyRegistry};

pub(super) fn add(registry: PolicyRegistry) -> PolicyRegistry {
    registry
        .with("token-ceiling", Tokens::registration)
        .with("cost-ceiling", Cost::registration)
        .with("length-ceiling", Length::registration)
        .with("stall", StallOptions::registration)
        .with("repetition", RepetitionOptions::registration)
        .with("prompt-leak", Leak::registration)
}

/// Sets the options that all of these guards have.
macro_rules! with_common {
    ($guard:expr, $options:expr) => {{
        let mut guard = $guard;
        if let Some(chosen) = channels($options.channels)? {
            guard = guard.channels(chosen);
        }
        if $options.report_only {
            guard = guard.report_only();
        }
        Ok(guard.registration())
    }};
}

/// Stops a stream that has more output tokens than it may. A guard.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Tokens {
    /// The most output tokens; four bytes count as one until the provider states how many there are.
    max: u64,
    /// The channels whose text counts. Default: all that the model writes.
    #[serde(default)]
    channels: Option<Vec<ChannelName>>,
    /// Does not stop: sends an event on the channel `halts` where it would have. Default: no.
    #[serde(default)]
    report_only: bool,
}

impl Tokens {
    fn registration(self) -> Result<Registration, OptionError> {
        with_common!(TokenCeiling::new(self.max), self)
    }
}

/// Stops a stream whose cost passes an amount. A guard.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Cost {
    /// The most that it may cost.
    max: Dollars,
    /// The price of a million tokens of input.
    input: Dollars,
    /// The price of a million tokens of output.
    output: Dollars,
    /// The price of a million tokens of input served from a cache. Default: that of input.
    #[serde(default)]
    cache_read: Option<Dollars>,
    /// The price of a million tokens of input written to a cache. Default: that of input.
    #[serde(default)]
    cache_write: Option<Dollars>,
    /// The price of a million tokens of reasoning. Default: that of output.
    #[serde(default)]
    reasoning: Option<Dollars>,
    /// The channels whose text counts. Default: all that the model writes.
    #[serde(default)]
    channels: Option<Vec<ChannelName>>,
    /// Does not stop: sends an event on the channel `halts` where it would have. Default: no.
    #[serde(default)]
    report_only: bool,
}

impl Cost {
    fn registration(self) -> Result<Registration, OptionError> {
        let mut prices = TokenPrices::per_million(self.input.0, self.output.0);
        for (price, stated) in [
            (&mut prices.cache_read, self.cache_read),
            (&mut prices.cache_write, self.cache_write),
            (&mut prices.reasoning, self.reasoning),
        ] {
            *price = stated.map_or(*price, |dollars| dollars.0);
        }
        with_common!(CostCeiling::new(self.max.0, prices), self)
    }
}

/// Stops a stream whose text is longer than it may be. A guard.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Length {
    /// The most bytes of UTF-8. Either this or `chars`.
    #[serde(default)]
    bytes: Option<u64>,
    /// The most characters (Unicode scalar values). Either this or `bytes`.
    #[serde(default)]
    chars: Option<u64>,
    /// The channels whose text counts. Default: `text` alone.
    #[serde(default)]
    channels: Option<Vec<ChannelName>>,
    /// Does not stop: sends an event on the channel `halts` where it would have. Default: no.
    #[serde(default)]
    report_only: bool,
}

impl Length {
    fn registration(self) -> Result<Registration, OptionError> {
        let ceiling = match (self.bytes, self.chars) {
            (Some(bytes), None) => LengthCeiling::bytes(bytes),
            (None, Some(chars)) => LengthCeiling::chars(chars),
            (None, None) => return Err(OptionError::new("it needs `bytes` or `chars`")),
            (Some(_), Some(_)) => {
                return Err(OptionError::at("chars", "only one of `bytes` and `chars` can be the limit"));
            }
        };
        with_common!(ceiling, self)
    }
}

/// Stops a stream in which nothing is said for too long. A guard.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StallOptions {
    /// The most milliseconds between two texts.
    gap_ms: u64,
    /// The most milliseconds before the first text. Default: `gap_ms`.
    #[serde(default)]
    first_ms: Option<u64>,
    /// The most milliseconds after a complete tool call, while the tool runs. Default: as long as it takes.
    #[serde(default)]
    tools_ms: Option<u64>,
    /// The channels whose text counts.
    #[serde(default)]
    channels: Option<Vec<ChannelName>>,
    /// Does not stop: sends an event on the channel `halts` where it would have. Default: no.
    #[serde(default)]
    report_only: bool,
}

impl StallOptions {
    fn registration(self) -> Result<Registration, OptionError> {
        if self.gap_ms == 0 {
            return Err(OptionError::at("gap_ms", "it has to be at least 1"));
        }
        let mut stall = Stall::new(Duration::from_millis(self.gap_ms));
        if let Some(first) = self.first_ms {
            stall = stall.first(Duration::from_millis(first));
        }
        if let Some(tools) = self.tools_ms {
            stall = stall.tools(Duration::from_millis(tools));
        }
        with_common!(stall, self)
    }
}

/// Stops a model that has fallen into a loop. A guard.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RepetitionOptions {
    /// How many bytes have to repeat. Default: 1024; at least 64.
    #[serde(default)]
    #[schemars(range(min = 64))]
    min_bytes: Option<u32>,
    /// How often the same has to come. Default: 6; from 2 to 64.
    #[serde(default)]
    #[schemars(range(min = 2, max = 64))]
    copies: Option<u32>,
    /// The most bytes that are one copy. Default: 1024; from 1 to 16384.
    #[serde(default)]
    #[schemars(range(min = 1, max = 16384))]
    max_period: Option<u32>,
    /// The channels whose text counts.
    #[serde(default)]
    channels: Option<Vec<ChannelName>>,
    /// Does not stop: sends an event on the channel `halts` where it would have. Default: no.
    #[serde(default)]
    report_only: bool,
}

impl RepetitionOptions {
    fn registration(self) -> Result<Registration, OptionError> {
        let mut repetition = Repetition::new();
        if let Some(bytes) = within("min_bytes", self.min_bytes, 64, u32::MAX)? {
            repetition = repetition.min_bytes(bytes as usize);
        }
        if let Some(copies) = within("copies", self.copies, 2, 64)? {
            repetition = repetition.copies(copies as usize);
        }
        if let Some(bytes) = within("max_period", self.max_period, 1, 16 * 1024)? {
            repetition = repetition.max_period(bytes as usize);
        }
        with_common!(repetition, self)
    }
}

/// Stops a model that recites its system prompt. A guard.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Leak {
    /// Texts in the prompt that nobody has a reason to say.
    #[serde(default)]
    canaries: Vec<String>,
    /// Environment variables that hold such texts, for those that are not to stand in the policy. One that is not set is a mistake.
    #[serde(default)]
    canaries_env: Vec<String>,
    /// The prompt. Default: that of the invocation.
    #[serde(default)]
    prompt: Option<String>,
    /// Parts of the prompt that may be said.
    #[serde(default)]
    allow: Vec<String>,
    /// How many words in the window make a leak. Default: 25; at least 5.
    #[serde(default)]
    #[schemars(range(min = 5))]
    words: Option<u32>,
    /// How many words of a text are looked at together. Default: 40; at most 128.
    #[serde(default)]
    #[schemars(range(min = 5, max = 128))]
    window: Option<u32>,
    /// The channels whose text is looked at. Default: answers, reasoning, refusals and arguments.
    #[serde(default)]
    channels: Option<Vec<ChannelName>>,
    /// Does not stop: sends an event on the channel `halts` where it would have. Default: no.
    #[serde(default)]
    report_only: bool,
}

impl Leak {
    fn registration(self) -> Result<Registration, OptionError> {
        let mut leak = PromptLeak::new();
        for canary in self.canaries {
            leak = leak.canary(canary);
        }
        for name in &self.canaries_env {
            leak = leak.canary(env("canaries_env", name)?);
        }
        if let Some(prompt) = self.prompt {
            leak = leak.prompt(prompt);
        }
        for text in self.allow {
            leak = leak.allow(text);
        }
        if let Some(words) = within("words", self.words, 5, 128)? {
            leak = leak.words(words);
        }
        if let Some(words) = within("window", self.window, 5, 128)? {
            leak = leak.window(words);
        }
        with_common!(leak, self)
    }
}

fn within(key: &str, number: Option<u32>, least: u32, most: u32) -> Result<Option<u32>, OptionError> {
    match number {
        Some(number) if number < least => Err(OptionError::at(key, format_args!("it has to be at least {least}"))),
        Some(number) if number > most => Err(OptionError::at(key, format_args!("it may be at most {most}"))),
        number => Ok(number),
    }
}

/// What an environment variable holds. An error names the variable alone.
fn env(key: &str, name: &str) -> Result<String, OptionError> {
    match std::env::var(name) {
        Ok(value) if !value.is_empty() => Ok(value),
        _ => Err(OptionError::at(key, format_args!("the environment variable `{name}` is not set"))),
    }
}

/// An amount of money, as text so that it is exact.
#[derive(Debug, Clone, Copy)]
struct Dollars(Money);

const PICO_DIGITS: usize = 12;

impl Dollars {
    fn parse(text: &str) -> Option<Self> {
        let (whole, part) = text.split_once('.').unwrap_or((text, ""));
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !digits(whole) || !digits(part) || part.len() > PICO_DIGITS || text.ends_with('.') {
            return None;
        }
        format!("{whole}{part:0<PICO_DIGITS$}").parse().ok().map(|pico| Self(Money::from_pico(pico)))
    }
}

impl<'de> Deserialize<'de> for Dollars {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let expected = "expected US dollars as a text such as \"0.05\", with at most 12 decimals";
        Self::parse(&text).ok_or_else(|| D::Error::custom(expected))
    }
}

impl JsonSchema for Dollars {
    fn schema_name() -> Cow<'static, str> {
        "Dollars".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "US dollars, as a text: \"0.05\".",
            "pattern": "^[0-9]+(\\.[0-9]{1,12})?$"
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dollars_are_exact() {
        for (text, pico) in [
            ("0", Some(0)),
            ("3", Some(3_000_000_000_000)),
            ("0.05", Some(50_000_000_000)),
            ("0.000000000001", Some(1)),
            ("0.0000000000001", None),
            ("99999999999", None),
            ("", None),
            (".5", None),
            ("5.", None),
            ("-1", None),
            ("1e3", None),
            ("$1", None),
        ] {
            assert_eq!(Dollars::parse(text).map(|dollars| dollars.0.pico()), pico, "{text}");
        }
    }
}

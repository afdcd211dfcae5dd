//! The guard that takes secrets and personal data out.

use schemars::JsonSchema;
use serde::Deserialize;
use streamkeeper_contract::id;
use streamkeeper_observers::{OnArguments, Redact, RedactionSet, Replacement, Vault};
use streamkeeper_stream::Registration;
use streamkeeper_text::Pattern;

use super::{ChannelName, channels};
use crate::OptionError;

/// Replaces secrets and personal data in the texts of a stream and in tool arguments. A guard.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RedactOptions {
    /// The bundled sets to look for. Default: both, if there are no `patterns`.
    #[serde(default)]
    sets: Option<Vec<SetName>>,
    /// Patterns of your own.
    #[serde(default)]
    patterns: Vec<NamedPattern>,
    /// Texts that stay though a pattern matches them, letter for letter.
    #[serde(default)]
    allow: Vec<String>,
    /// What takes the place of a match. Default: `label`.
    #[serde(default)]
    replacement: ReplacementName,
    /// The environment variable with the key of `hash`.
    #[serde(default)]
    key_env: Option<String>,
    /// What a match in the arguments of a tool call means. Default: `deny`.
    #[serde(default)]
    arguments: ArgumentsName,
    /// Only these channels, and nothing beside them. Default: everything that carries text.
    #[serde(default)]
    channels: Option<Vec<ChannelName>>,
    /// Sends an event on the channel `redactions` for each match, with the pattern's name and the place. Default: no.
    #[serde(default)]
    report: bool,
}

/// A bundled set.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum SetName {
    /// Keys, tokens and credentials.
    Secrets,
    /// E-mail addresses, phone numbers, IBANs, cards, social security numbers, IP addresses.
    Pii,
}

/// A pattern and its label.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NamedPattern {
    /// What it finds; in capitals, its label.
    name: String,
    /// A regular expression in the syntax of the `regex` crate, with ASCII classes and without look-around.
    regex: String,
}

/// What takes the place of a match.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ReplacementName {
    /// `***`
    Mask,
    /// `[EMAIL]`
    #[default]
    Label,
    /// `[EMAIL:1f0c…]`, keyed by the environment variable that `key_env` names.
    Hash,
    /// `[EMAIL_1]`, numbered within each load of the policy.
    Token,
}

/// What a match in tool arguments means.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ArgumentsName {
    /// The invocation stops.
    #[default]
    Deny,
    /// It is replaced inside of its JSON string.
    Mask,
}

impl RedactOptions {
    pub(super) fn registration(self) -> Result<Registration, OptionError> {
        let mut redact = Redact::new();
        let none_named = self.sets.is_none() && self.patterns.is_empty();
        let sets =
            self.sets.unwrap_or_else(|| if none_named { vec![SetName::Secrets, SetName::Pii] } else { Vec::new() });
        if sets.is_empty() && self.patterns.is_empty() {
            return Err(OptionError::at("sets", "without a set or a pattern it would look for nothing"));
        }
        for set in sets {
            redact = redact.set(match set {
                SetName::Secrets => RedactionSet::Secrets,
                SetName::Pii => RedactionSet::Pii,
            });
        }
        for NamedPattern { name, regex } in &self.patterns {
            let added = Pattern::regex(name, regex).and_then(|pattern| redact.pattern(pattern));
            redact = added.map_err(|error| OptionError::at("patterns", error))?;
        }
        let replacement = match (self.replacement, self.key_env) {
            (ReplacementName::Hash, Some(name)) => match std::env::var(&name) {
                Ok(key) if !key.is_empty() => Replacement::hash(key),
                _ => return Err(OptionError::at("key_env", format!("the environment variable `{name}` is not set"))),
            },
            (ReplacementName::Hash, None) => {
                return Err(OptionError::at("key_env", "`hash` needs the environment variable that has its key"));
            }
            (_, Some(_)) => return Err(OptionError::at("key_env", "only `hash` has a key")),
            (ReplacementName::Mask, None) => Replacement::Mask,
            (ReplacementName::Label, None) => Replacement::Label,
            (ReplacementName::Token, None) => Replacement::Token(Vault::new()),
        };
        redact = redact.allow(self.allow).replacement(replacement).arguments(match self.arguments {
            ArgumentsName::Deny => OnArguments::Deny,
            ArgumentsName::Mask => OnArguments::Mask,
        });
        if let Some(channels) = channels(self.channels)? {
            redact = redact.channels(channels);
        }
        if self.report {
            redact = redact.report(id!("redactions"));
        }
        Ok(redact.registration())
    }
}

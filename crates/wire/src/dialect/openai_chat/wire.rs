//! What an event of Chat Completions may hold, over all dialects.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;
use streamkeeper_contract::{Stated, Usage};

use super::super::read::{Num, Str, Word, parse};

#[derive(Debug, Default, Deserialize)]
pub(super) struct Wire<'a> {
    #[serde(borrow)]
    pub(super) id: Word<'a>,
    #[serde(borrow)]
    pub(super) object: Word<'a>,
    #[serde(borrow)]
    pub(super) model: Word<'a>,
    #[serde(borrow)]
    pub(super) choices: Option<Vec<Choice<'a>>>,
    #[serde(borrow)]
    pub(super) usage: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) citations: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) prompt_filter_results: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) x_groq: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Choice<'a> {
    pub(super) index: Num,
    #[serde(borrow)]
    pub(super) delta: Option<Delta<'a>>,
    #[serde(borrow)]
    pub(super) text: Str<'a>,
    #[serde(borrow)]
    pub(super) finish_reason: Word<'a>,
    #[serde(borrow)]
    pub(super) logprobs: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) message: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) usage: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) content_filter_results: Option<&'a RawValue>,
}

/// A delta, or a whole message.
#[derive(Debug, Default)]
pub(super) struct Delta<'a> {
    pub(super) role: Word<'a>,
    pub(super) content: Content<'a>,
    pub(super) refusal: Str<'a>,
    pub(super) reasoning_content: Str<'a>,
    pub(super) reasoning: Str<'a>,
    /// Everything else that is not null: rare, or not known here.
    pub(super) rest: Vec<(Str<'a>, &'a RawValue)>,
}

impl<'a> Delta<'a> {
    /// The value of a rare field.
    pub(super) fn field(&self, name: &str) -> Option<&'a RawValue> {
        self.rest.iter().find(|(key, _)| key.as_str() == name).map(|(_, value)| *value)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Delta<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct DeltaVisitor;
        impl<'de> Visitor<'de> for DeltaVisitor {
            type Value = Delta<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Delta<'de>, A::Error> {
                let mut delta = Delta::default();
                while let Some(key) = map.next_key::<Str<'_>>()? {
                    match key.as_str() {
                        "content" => delta.content = map.next_value()?,
                        "role" => delta.role = map.next_value()?,
                        "reasoning_content" => delta.reasoning_content = map.next_value()?,
                        "reasoning" => delta.reasoning = map.next_value()?,
                        "refusal" => delta.refusal = map.next_value()?,
                        _ => {
                            if let Some(value) = map.next_value::<Option<&RawValue>>()? {
                                delta.rest.push((key, value));
                            }
                        }
                    }
                }
                Ok(delta)
            }
        }
        deserializer.deserialize_map(DeltaVisitor)
    }
}

/// Content: a string, or a list of parts.
#[derive(Debug)]
pub(super) enum Content<'a> {
    Text(Str<'a>),
    Parts(Vec<&'a RawValue>),
}

impl Default for Content<'_> {
    fn default() -> Self {
        Self::Text(Str::Unstated)
    }
}

impl Content<'_> {
    /// The string, if it is one that is not empty.
    pub(super) fn filled(&self) -> Option<&str> {
        match self {
            Content::Text(text) => text.filled(),
            Content::Parts(_) => None,
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ContentVisitor;
        impl<'de> Visitor<'de> for ContentVisitor {
            type Value = Content<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string, a list or null")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Content<'de>, E> {
                Ok(Content::Text(Str::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Content<'de>, E> {
                Ok(Content::Text(Str::Owned(text.into())))
            }
            fn visit_none<E>(self) -> Result<Content<'de>, E> {
                Ok(Content::default())
            }
            fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Content<'de>, D::Error> {
                deserializer.deserialize_any(self)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Content<'de>, A::Error> {
                let mut parts = Vec::new();
                while let Some(part) = seq.next_element()? {
                    parts.push(part);
                }
                Ok(Content::Parts(parts))
            }
        }
        deserializer.deserialize_option(ContentVisitor)
    }
}

/// A part of content: `text`, `thinking` (a string or a list of parts), or another kind.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Part<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Str<'a>,
    #[serde(borrow)]
    pub(super) text: Str<'a>,
    #[serde(borrow)]
    pub(super) thinking: Content<'a>,
    #[serde(borrow)]
    pub(super) image_url: Option<&'a RawValue>,
}

/// A piece of a tool call, or all of it.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Call<'a> {
    pub(super) index: Num,
    #[serde(borrow)]
    pub(super) id: Word<'a>,
    #[serde(borrow)]
    pub(super) function: Option<Function<'a>>,
    #[serde(borrow)]
    pub(super) custom: Option<Function<'a>>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Function<'a> {
    #[serde(borrow)]
    pub(super) name: Word<'a>,
    #[serde(borrow)]
    pub(super) arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) input: Option<&'a RawValue>,
}

/// An entry of `reasoning_details`.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Detail<'a> {
    #[serde(borrow)]
    pub(super) text: Str<'a>,
    #[serde(borrow)]
    pub(super) summary: Str<'a>,
    #[serde(borrow)]
    pub(super) signature: Str<'a>,
    #[serde(borrow)]
    pub(super) data: Str<'a>,
}

impl Detail<'_> {
    /// Its text or, if it has none, its summary.
    pub(super) fn words(&self) -> &str {
        self.text.filled().unwrap_or(self.summary.as_str())
    }

    pub(super) fn is_text(&self) -> bool {
        self.text.filled().is_some()
    }

    /// The place of its words.
    pub(super) fn path(&self) -> &'static str {
        if self.is_text() {
            "choices/*/delta/reasoning_details/*/text"
        } else {
            "choices/*/delta/reasoning_details/*/summary"
        }
    }
}

impl Call<'_> {
    /// The place of its arguments.
    pub(super) fn path(&self) -> &'static str {
        match &self.function {
            Some(_) => "choices/*/delta/tool_calls/*/function/arguments",
            None => "choices/*/delta/tool_calls/*/custom/input",
        }
    }
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct XGroq<'a> {
    #[serde(borrow)]
    pub(super) usage: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Audio<'a> {
    #[serde(borrow)]
    pub(super) data: Str<'a>,
    #[serde(borrow)]
    pub(super) transcript: Str<'a>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct ImageUrl<'a> {
    #[serde(borrow)]
    pub(super) url: Str<'a>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Logprobs<'a> {
    #[serde(borrow)]
    pub(super) content: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) refusal: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) tokens: Option<&'a RawValue>,
}

/// Reads a usage object. Cached input is part of the prompt everywhere. Reasoning is part of the completion, but where the stated total
/// shows that it was counted beside it.
pub(super) fn usage_of(raw: &RawValue) -> Option<Usage> {
    #[derive(Default, Deserialize)]
    struct Wire<'a> {
        prompt_tokens: Num,
        completion_tokens: Num,
        total_tokens: Num,
        cached_tokens: Num,
        prompt_cache_hit_tokens: Num,
        #[serde(borrow)]
        prompt_tokens_details: Option<&'a RawValue>,
        #[serde(borrow)]
        completion_tokens_details: Option<&'a RawValue>,
    }
    #[derive(Default, Deserialize)]
    struct Details {
        cached_tokens: Num,
        cache_write_tokens: Num,
        reasoning_tokens: Num,
    }
    let wire: Wire<'_> = parse(raw)?;
    let details = |raw: Option<&RawValue>| raw.and_then(parse::<Details>).unwrap_or_default();
    let prompt = details(wire.prompt_tokens_details);
    let completion = details(wire.completion_tokens_details);
    let stated = Stated {
        input: wire.prompt_tokens.0,
        output: wire.completion_tokens.0,
        cached: prompt.cached_tokens.0.or(wire.prompt_cache_hit_tokens.0).or(wire.cached_tokens.0),
        cache_write: prompt.cache_write_tokens.0,
        reasoning: completion.reasoning_tokens.0,
        total: wire.total_tokens.0,
        raw: Some(raw.into()),
    };
    let cached = stated.cached.unwrap_or(0).saturating_add(stated.cache_write.unwrap_or(0));
    let (output, reasoning) = match (stated.output, stated.reasoning) {
        (Some(output), Some(reasoning)) if !counted_beside(&stated, output, reasoning) => {
            (Some(output.saturating_sub(reasoning)), Some(reasoning.min(output)))
        }
        stated => stated,
    };
    Some(Usage {
        uncached_input: stated.input.map(|input| input.saturating_sub(cached)),
        cache_read: stated.cached,
        cache_write: stated.cache_write,
        output,
        reasoning,
        stated,
        ..Usage::default()
    })
}

fn counted_beside(stated: &Stated, output: u64, reasoning: u64) -> bool {
    let with_reasoning = stated.input.unwrap_or(0).saturating_add(output).saturating_add(reasoning);
    reasoning > 0 && stated.total == Some(with_reasoning)
}

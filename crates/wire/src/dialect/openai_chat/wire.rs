//! What an event of Chat Completions may hold, over all dialects.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;
use streamkeeper_contract::{Stated, Usage};

use super::super::{
    object::{Few, Fill, Slot, objects},
    read::{Num, Str, Word, parse},
};

objects! {
    pub(super) struct Wire<'a> {
        "id" => pub(super) id: Word<'a>,
        "model" => pub(super) model: Word<'a>,
        "choices" => pub(super) choices: Option<Few<Choice<'a>>>,
        "usage" => pub(super) usage: Option<&'a RawValue>,
        "error" => pub(super) error: Option<&'a RawValue>,
        "citations" => pub(super) citations: Option<&'a RawValue>,
        "prompt_filter_results" => pub(super) prompt_filter_results: Option<&'a RawValue>,
        "x_groq" => pub(super) x_groq: Option<&'a RawValue>,
    }

    pub(super) struct Choice<'a> {
        "index" => pub(super) index: Num,
        "delta" => pub(super) delta: Option<Delta<'a>>,
        "text" => pub(super) text: Str<'a>,
        "finish_reason" => pub(super) finish_reason: Word<'a>,
        "logprobs" => pub(super) logprobs: Option<&'a RawValue>,
        "message" => pub(super) message: Option<&'a RawValue>,
        "usage" => pub(super) usage: Option<&'a RawValue>,
        "error" => pub(super) error: Option<&'a RawValue>,
        "content_filter_results" => pub(super) content_filter_results: Option<&'a RawValue>,
    }

    /// A part of content: `text`, `thinking` (a string or a list of parts), or another kind.
    pub(super) struct Part<'a> {
        "type" => pub(super) kind: Str<'a>,
        "text" => pub(super) text: Str<'a>,
        "thinking" => pub(super) thinking: Content<'a>,
        "image_url" => pub(super) image_url: Option<&'a RawValue>,
    }

    /// A piece of a tool call, or all of it.
    pub(super) struct Call<'a> {
        "index" => pub(super) index: Num,
        "id" => pub(super) id: Word<'a>,
        "function" => pub(super) function: Option<Function<'a>>,
        "custom" => pub(super) custom: Option<Function<'a>>,
    }

    pub(super) struct Function<'a> {
        "name" => pub(super) name: Word<'a>,
        "arguments" => pub(super) arguments: Option<&'a RawValue>,
        "input" => pub(super) input: Option<&'a RawValue>,
    }

    /// An entry of `reasoning_details`.
    pub(super) struct Detail<'a> {
        "text" => pub(super) text: Str<'a>,
        "summary" => pub(super) summary: Str<'a>,
        "signature" => pub(super) signature: Str<'a>,
        "data" => pub(super) data: Str<'a>,
    }

    pub(super) struct XGroq<'a> {
        "usage" => pub(super) usage: Option<&'a RawValue>,
    }

    pub(super) struct Audio<'a> {
        "data" => pub(super) data: Str<'a>,
        "transcript" => pub(super) transcript: Str<'a>,
    }

    pub(super) struct ImageUrl<'a> {
        "url" => pub(super) url: Str<'a>,
    }

    pub(super) struct Logprobs<'a> {
        "content" => pub(super) content: Option<&'a RawValue>,
        "refusal" => pub(super) refusal: Option<&'a RawValue>,
        "tokens" => pub(super) tokens: Option<&'a RawValue>,
    }
}

impl<'a> Wire<'a> {
    pub(super) fn choices(&self) -> impl Iterator<Item = &Choice<'a>> {
        self.choices.iter().flat_map(Few::iter)
    }

    /// Whether this event, whose text this is, says that it is an error.
    pub(super) fn is_error(&self, data: &str) -> bool {
        #[derive(Deserialize)]
        struct Kind<'a> {
            #[serde(borrow)]
            object: Word<'a>,
        }
        let kind = || serde_json::from_str::<Kind<'_>>(data).is_ok_and(|kind| kind.object.as_str() == "error");
        self.error.is_some() || (self.choices.is_none() && kind())
    }
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

impl<'de: 'a, 'a> Fill<'de> for Delta<'a> {
    fn fill<D: Deserializer<'de>>(&mut self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(Slot(self))
    }
}

impl<'de: 'a, 'a> Visitor<'de> for Slot<'_, Delta<'a>> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let delta = self.0;
        while let Some(key) = map.next_key::<Str<'de>>()? {
            match key.as_str() {
                "content" => map.next_value_seed(Slot(&mut delta.content))?,
                "role" => map.next_value_seed(Slot(&mut delta.role))?,
                "reasoning_content" => map.next_value_seed(Slot(&mut delta.reasoning_content))?,
                "reasoning" => map.next_value_seed(Slot(&mut delta.reasoning))?,
                "refusal" => map.next_value_seed(Slot(&mut delta.refusal))?,
                _ => {
                    if let Some(value) = map.next_value::<Option<&RawValue>>()? {
                        delta.rest.push((key, value));
                    }
                }
            }
        }
        Ok(())
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

impl<'de: 'a, 'a> Fill<'de> for Content<'a> {
    fn fill<D: Deserializer<'de>>(&mut self, deserializer: D) -> Result<(), D::Error> {
        *self = Deserialize::deserialize(deserializer)?;
        Ok(())
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

//! What the events of a response look like, and where text stands in them.

use serde::Deserialize;
use serde_json::value::RawValue;
use streamkeeper_contract::{Channel, Stated, Text, Usage};

use crate::{
    dialect::{
        pull::Pull,
        read::{List, Num, Str, leaf, parse},
    },
    output::Leaf,
};

#[derive(Debug, Default, Deserialize)]
pub(super) struct Wire<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Str<'a>,
    #[serde(borrow)]
    pub(super) delta: Str<'a>,
    pub(super) output_index: Num,
    pub(super) content_index: Num,
    pub(super) summary_index: Num,
    #[serde(borrow)]
    pub(super) logprobs: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) text: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) refusal: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) input: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) code: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) part: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) item: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) annotation: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) partial_image_b64: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) response: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct ItemWire<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Str<'a>,
    #[serde(borrow)]
    pub(super) id: Str<'a>,
    #[serde(borrow)]
    pub(super) call_id: Str<'a>,
    #[serde(borrow)]
    pub(super) name: Str<'a>,
    #[serde(borrow)]
    pub(super) arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) input: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) code: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) action: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) operation: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) encrypted_content: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) result: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) output_format: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) content: Option<List<'a>>,
    #[serde(borrow)]
    pub(super) summary: Option<List<'a>>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct PartWire<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Str<'a>,
    #[serde(borrow)]
    pub(super) text: Str<'a>,
    #[serde(borrow)]
    pub(super) refusal: Str<'a>,
    #[serde(borrow)]
    pub(super) transcript: Str<'a>,
    #[serde(borrow)]
    pub(super) annotations: Option<List<'a>>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct ResponseWire<'a> {
    #[serde(borrow)]
    pub(super) id: Str<'a>,
    #[serde(borrow)]
    pub(super) model: Str<'a>,
    #[serde(borrow)]
    pub(super) status: Str<'a>,
    #[serde(borrow)]
    pub(super) output: Option<List<'a>>,
    #[serde(borrow)]
    pub(super) incomplete_details: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) usage: Option<&'a RawValue>,
}

impl PartWire<'_> {
    /// The channel, the text and its place.
    pub(super) fn content(&self) -> (Channel, &str, Field) {
        const TEXT: Field = Field {
            part: "part/text",
            content: ["item/content/*/text", "response/output/*/content/*/text"],
            summary: ["item/summary/*/text", "response/output/*/summary/*/text"],
        };
        const REFUSAL: Field = Field {
            part: "part/refusal",
            content: ["item/content/*/refusal", "response/output/*/content/*/refusal"],
            summary: ["", ""],
        };
        const TRANSCRIPT: Field = Field {
            part: "part/transcript",
            content: ["item/content/*/transcript", "response/output/*/content/*/transcript"],
            summary: ["", ""],
        };
        match self.kind.as_str() {
            "reasoning_text" | "summary_text" => (Channel::Reasoning, self.text.as_str(), TEXT),
            "refusal" => (Channel::Refusal, self.refusal.as_str(), REFUSAL),
            "output_audio" => (Channel::Transcript, self.transcript.as_str(), TRANSCRIPT),
            _ => (Channel::Text, self.text.as_str(), TEXT),
        }
    }
}

/// Where a text stands in a part, in the content of an item and in the summary of one.
pub(super) struct Field {
    pub(super) part: &'static str,
    pub(super) content: [&'static str; 2],
    pub(super) summary: [&'static str; 2],
}

/// What has a part of its own: a content or summary part of an item, or the item itself.
pub(super) type Slot = (u64, Kind, u64);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Content,
    Summary,
    Item,
}

/// The event in which an item stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum At {
    Added,
    Done,
    /// This element of the output of the event that ends the response.
    End(usize),
}

impl At {
    /// The place of a field of the item, given its path in `item` and in `response`.
    pub(super) fn leaf(self, item: &'static str, response: &'static str, elements: &[usize]) -> Leaf {
        match (self, elements) {
            (At::Added | At::Done, elements) => leaf(item, elements),
            (At::End(at), []) => leaf(response, &[at]),
            (At::End(at), [one]) => leaf(response, &[at, *one]),
            (At::End(at), [one, two, ..]) => leaf(response, &[at, *one, *two]),
        }
    }
}

/// What a delta is a piece of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Grows {
    Part(Kind, Channel),
    Call(Channel),
}

impl Grows {
    pub(super) fn of(kind: &str) -> Option<Self> {
        Some(match kind {
            "response.output_text.delta" => Self::Part(Kind::Content, Channel::Text),
            "response.reasoning_text.delta" => Self::Part(Kind::Content, Channel::Reasoning),
            "response.reasoning_summary_text.delta" => Self::Part(Kind::Summary, Channel::Reasoning),
            "response.refusal.delta" => Self::Part(Kind::Content, Channel::Refusal),
            "response.audio.transcript.delta" => Self::Part(Kind::Content, Channel::Transcript),
            "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" => {
                Self::Call(Channel::Arguments)
            }
            "response.mcp_call_arguments.delta" | "response.code_interpreter_call_code.delta" => {
                Self::Call(Channel::ProviderTool)
            }
            _ => return None,
        })
    }

    /// The part, of the indices of the output, its content and its summary.
    pub(super) fn slot(self, [output, content, summary]: [u64; 3]) -> Slot {
        match self {
            Self::Part(Kind::Summary, _) => (output, Kind::Summary, summary),
            _ => (output, Kind::Content, content),
        }
    }
}

/// Reads a delta that has nothing but its text, without the general way.
pub(super) fn growth_of(data: &str) -> Option<(Grows, [u64; 3], Str<'_>)> {
    let mut json = Pull::object(data)?;
    let (mut grows, mut text, mut at) = (None, None, [0; 3]);
    let mut first = true;
    while let Some(key) = json.key(&mut first)? {
        match key {
            "type" => grows = Some(Grows::of(json.word()?)?),
            "delta" if text.is_none() => text = Some(json.string()?),
            "output_index" => at[0] = json.count()?,
            "content_index" => at[1] = json.count()?,
            "summary_index" => at[2] = json.count()?,
            "logprobs" => {
                json.open(b'[')?;
                json.at_end(&mut true, b']')?;
            }
            "item_id" | "sequence_number" | "obfuscation" => json.skip()?,
            _ => return None,
        }
    }
    json.end()?;
    Some((grows?, at, text?))
}

/// Whether an event only says that a provider's tool is at work.
pub(super) fn is_progress(kind: &str) -> bool {
    let Some((tool, state)) = kind.strip_prefix("response.").and_then(|kind| kind.rsplit_once('.')) else {
        return false;
    };
    (tool.ends_with("_call") || tool == "mcp_list_tools")
        && matches!(state, "in_progress" | "searching" | "generating" | "interpreting" | "completed" | "failed")
}

pub(super) fn incomplete_reason(details: Option<&RawValue>) -> Option<Text> {
    #[derive(Default, Deserialize)]
    struct Wire<'a> {
        #[serde(borrow)]
        reason: Str<'a>,
    }
    parse::<Wire<'_>>(details?)?.reason.filled().map(Text::from)
}

/// The provider's numbers. Input includes what a cache served and stored, output includes reasoning.
pub(super) fn usage_of(raw: &RawValue) -> Option<Usage> {
    #[derive(Default, Deserialize)]
    struct Wire<'a> {
        input_tokens: Num,
        output_tokens: Num,
        total_tokens: Num,
        #[serde(borrow)]
        input_tokens_details: Option<&'a RawValue>,
        #[serde(borrow)]
        output_tokens_details: Option<&'a RawValue>,
    }
    #[derive(Default, Deserialize)]
    struct Details {
        cached_tokens: Num,
        cache_write_tokens: Num,
        reasoning_tokens: Num,
    }
    let wire: Wire<'_> = parse(raw)?;
    let input: Details = wire.input_tokens_details.and_then(parse).unwrap_or_default();
    let output: Details = wire.output_tokens_details.and_then(parse).unwrap_or_default();
    let less = |all: Num, parts: &[Num]| {
        all.0.map(|all| parts.iter().fold(all, |rest, part| rest.saturating_sub(part.or_zero())))
    };
    Some(Usage {
        uncached_input: less(wire.input_tokens, &[input.cached_tokens, input.cache_write_tokens]),
        cache_read: input.cached_tokens.0,
        cache_write: input.cache_write_tokens.0,
        output: less(wire.output_tokens, &[output.reasoning_tokens]),
        reasoning: output.reasoning_tokens.0,
        stated: Stated {
            input: wire.input_tokens.0,
            output: wire.output_tokens.0,
            cached: input.cached_tokens.0,
            cache_write: input.cache_write_tokens.0,
            reasoning: output.reasoning_tokens.0,
            total: wire.total_tokens.0,
            raw: Some(raw.into()),
        },
        ..Usage::default()
    })
}

//! What a stream is in, told from its first bytes and its first event.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use streamkeeper_contract::ChunkKind;

use crate::{Format, Framing, dialect::Event, frame::is_aws_prelude};

/// How many bytes may be looked at before the framing has to be told.
const HEAD: usize = 4096;

/// The framing, or `None` if more bytes are needed.
pub(crate) fn framing(format: Option<Format>, head: &[u8], closed: bool) -> Option<Framing> {
    const BOM: &[u8] = b"\xEF\xBB\xBF";
    let more = !closed && head.len() < HEAD;
    if more && BOM.starts_with(head) {
        return None;
    }
    let text = head.strip_prefix(BOM).unwrap_or(head).trim_ascii_start();
    let framing = match text {
        [] | [b'{'] | [0, ..] if more && text.len() < 12 => return None,
        [b'{', rest @ ..] => match rest.iter().find(|byte| !matches!(byte, b' ' | b'\t')) {
            // One value over several lines is no line of JSON lines: most likely an error body.
            Some(b'\n' | b'\r') => Framing::Sse,
            None if more => return None,
            _ => Framing::JsonLines,
        },
        [b'[', ..] => Framing::JsonArray,
        // A message of less than 16 MiB begins with a zero byte; its prelude has a checksum.
        [0, ..] if is_aws_prelude(head) => Framing::AwsEventStream,
        [first, ..] if is_bedrock(format) && !first.is_ascii_graphic() => Framing::AwsEventStream,
        _ => Framing::Sse,
    };
    Some(framing)
}

fn is_bedrock(format: Option<Format>) -> bool {
    matches!(format, Some(Format::BedrockConverse | Format::BedrockInvoke))
}

/// The format of which this is the first event; `None` if it is nothing that can be read as events.
pub(crate) fn format(framing: Framing, event: &Event<'_>) -> Option<Format> {
    if framing == Framing::AwsEventStream {
        let invoke = event.name == Some("chunk");
        return Some(if invoke { Format::BedrockInvoke } else { Format::BedrockConverse });
    }
    match serde_json::from_str::<Head<'_>>(event.data) {
        // Serde would read an array field by field.
        Ok(_) if !event.data.trim_ascii_start().starts_with('{') => Some(Format::Raw),
        Ok(head) => Some(head.format()),
        Err(_) if event.data.trim() == "[DONE]" => Some(Format::OpenAiChat),
        // Plain text as payload, or JSON that is no object.
        Err(error) if framing == Framing::Sse || error.is_data() => Some(Format::Raw),
        Err(_) => None,
    }
}

/// The keys by which the first events of the formats differ.
#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "kind")]
    canonical: Option<&'a RawValue>,
    #[serde(borrow, default)]
    object: Option<&'a RawValue>,
    #[serde(borrow, default)]
    choices: Option<&'a RawValue>,
    #[serde(borrow, default)]
    candidates: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "promptFeedback")]
    prompt_feedback: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "usageMetadata")]
    usage_metadata: Option<&'a RawValue>,
    #[serde(borrow, default)]
    done: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

impl Head<'_> {
    fn format(&self) -> Format {
        let kind = word(self.kind);
        if let Some(format) = kind.as_deref().and_then(by_type) {
            return format;
        }
        if word(self.canonical).is_some_and(|kind| ChunkKind::from_name(&kind).is_some()) {
            return Format::Jsonl;
        }
        if let Some(choices) = self.choices {
            let legacy = word(self.object).as_deref() == Some("text_completion");
            return if legacy || is_legacy(choices) { Format::OpenAiCompletions } else { Format::OpenAiChat };
        }
        if self.candidates.is_some() || self.prompt_feedback.is_some() || self.usage_metadata.is_some() {
            return Format::Gemini;
        }
        if self.done.is_some() {
            return Format::Ollama;
        }
        match self.error {
            Some(_) if kind.as_deref() == Some("error") => Format::AnthropicMessages,
            Some(error) if error.get().contains("\"status\"") => Format::Gemini,
            Some(_) => Format::OpenAiChat,
            None => Format::Raw,
        }
    }
}

fn by_type(kind: &str) -> Option<Format> {
    Some(match kind {
        kind if kind.starts_with("response.") => Format::OpenAiResponses,
        "message_start"
        | "message_delta"
        | "message_stop"
        | "content_block_start"
        | "content_block_delta"
        | "content_block_stop"
        | "ping" => Format::AnthropicMessages,
        "message-start" | "message-end" | "content-start" | "content-delta" | "content-end" | "tool-plan-delta"
        | "tool-call-start" | "tool-call-delta" | "tool-call-end" | "citation-start" | "citation-end" => {
            Format::CohereV2
        }
        "system" | "assistant" | "user" | "result" | "stream_event" => Format::ClaudeCode,
        kind if kind.len() > 2 && kind.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_') => Format::AgUi,
        _ => return None,
    })
}

/// Whether the choices are of the legacy completions: a text and no delta.
fn is_legacy(choices: &RawValue) -> bool {
    #[derive(Deserialize)]
    struct Choice<'a> {
        #[serde(borrow, default)]
        text: Option<&'a RawValue>,
        #[serde(borrow, default)]
        delta: Option<&'a RawValue>,
    }
    let choices: Option<Vec<Choice<'_>>> = serde_json::from_str(choices.get()).ok();
    choices.is_some_and(|choices| choices.first().is_some_and(|choice| choice.text.is_some() && choice.delta.is_none()))
}

fn word(raw: Option<&RawValue>) -> Option<Cow<'_, str>> {
    serde_json::from_str(raw?.get()).ok()
}

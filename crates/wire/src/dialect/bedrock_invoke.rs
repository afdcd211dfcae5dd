//! Bedrock `InvokeModelWithResponseStream`: base64 around a model's own format, which the first payload tells.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use streamkeeper_contract::{Body, Chunk, ErrorInfo, FinishReason, Lane, Stated, Text, Usage};

use crate::{
    Format, base64,
    json::mend,
    output::{Leaf, Output},
};

use super::{
    Dialect, Event,
    bedrock_converse::{is_event, is_exception},
    chunks::finish,
    pull::Pull,
    read::{Lanes, Num, Str, filled, parse, plain},
    reader,
};

/// Reads a stream of wrapped payloads.
#[derive(Debug, Default)]
pub(super) struct BedrockInvoke {
    inner: Option<Box<dyn Dialect>>,
    /// The payload that was unwrapped last.
    payload: Vec<u8>,
}

#[derive(Debug, Default, Deserialize)]
struct Wire<'a> {
    #[serde(borrow)]
    bytes: Str<'a>,
    #[serde(borrow)]
    chunk: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
}

impl Dialect for BedrockInvoke {
    fn event(&mut self, event: &Event<'_>, out: &mut Output) {
        if self.read(event, out).is_none() {
            out.raw(event.name, event.data);
        }
    }

    fn finish(&mut self, out: &mut Output) {
        if let Some(inner) = &mut self.inner {
            inner.finish(out);
        }
    }
}

impl BedrockInvoke {
    fn read(&mut self, event: &Event<'_>, out: &mut Output) -> Option<()> {
        if let Some(bytes) = bytes_of(event.data) {
            return self.unwrap(bytes, out);
        }
        let wire: Wire<'_> = serde_json::from_str(event.data).ok()?;
        if let Some(name) = event.name.filter(|name| is_exception(name)) {
            let error = ErrorInfo::new(name);
            let error = match wire.message.filter(|message| message.get() != "null") {
                Some(message) => error.with_message(plain(message)),
                None => error,
            };
            out.error_at(error, Leaf::new("message", [0; 4]));
            out.known += 1;
            return Some(());
        }
        // Recorders that keep no headers put the payload under the event's type.
        let wrapped = wire.chunk.and_then(parse::<Wire<'_>>);
        self.unwrap(wrapped.as_ref().unwrap_or(&wire).bytes.filled()?, out)
    }

    fn unwrap(&mut self, bytes: &str, out: &mut Output) -> Option<()> {
        base64::decode(bytes, &mut self.payload)?;
        let payload = std::str::from_utf8(&self.payload).ok()?;
        let inner = match &mut self.inner {
            Some(inner) => inner,
            None => self.inner.insert(inner_reader(payload)?),
        };
        inner.event(&Event { name: None, data: &mend(payload) }, out);
        if let Some(usage) = metrics_of(payload) {
            out.push(Body::Usage(Box::new(usage)));
        }
        Some(())
    }
}

/// Reads an event that has nothing but its payload, without the general way.
fn bytes_of(data: &str) -> Option<&str> {
    let mut json = Pull::object(data)?;
    let mut bytes = None;
    let mut first = true;
    while let Some(key) = json.key(&mut first)? {
        match key {
            "bytes" if bytes.is_none() => bytes = Some(json.word()?),
            "p" => json.skip()?,
            _ => return None,
        }
    }
    json.end()?;
    bytes
}

/// The reader of the format that this payload is in.
fn inner_reader(payload: &str) -> Option<Box<dyn Dialect>> {
    let keys: BTreeMap<String, &RawValue> = serde_json::from_str(payload).ok()?;
    let has = |key: &str| keys.contains_key(key);
    Some(if keys.keys().any(|key| is_event(key)) {
        reader(Format::BedrockConverse)
    } else if has("type") {
        reader(Format::AnthropicMessages)
    } else if has("choices") {
        let chat = keys.get("choices").is_some_and(|choices| choices.get().contains("\"delta\""));
        reader(if chat { Format::OpenAiChat } else { Format::OpenAiCompletions })
    } else {
        Box::<PlainText>::default()
    })
}

/// The formats of models that stream nothing but text: Llama, Mistral, Titan, Cohere Command.
#[derive(Debug, Default)]
struct PlainText {
    lanes: Lanes,
    open: Option<Lane>,
    finished: bool,
}

#[derive(Debug, Default, Deserialize)]
struct PlainWire<'a> {
    /// Llama.
    #[serde(borrow)]
    generation: Str<'a>,
    /// Titan.
    #[serde(borrow, rename = "outputText")]
    output_text: Str<'a>,
    /// Cohere Command.
    #[serde(borrow)]
    text: Str<'a>,
    /// Mistral.
    #[serde(borrow)]
    outputs: Option<Vec<PlainOutput<'a>>>,
    #[serde(borrow)]
    stop_reason: Option<&'a RawValue>,
    #[serde(borrow, rename = "completionReason")]
    completion_reason: Option<&'a RawValue>,
    #[serde(borrow)]
    finish_reason: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
struct PlainOutput<'a> {
    #[serde(borrow)]
    text: Str<'a>,
    #[serde(borrow)]
    stop_reason: Option<&'a RawValue>,
}

impl Dialect for PlainText {
    fn event(&mut self, event: &Event<'_>, out: &mut Output) {
        let Ok(wire) = serde_json::from_str::<PlainWire<'_>>(event.data) else {
            return out.raw(event.name, event.data);
        };
        let output = wire.outputs.as_deref().and_then(<[_]>::first);
        let texts = [&wire.generation, &wire.output_text, &wire.text];
        let text = texts.into_iter().chain(output.map(|output| &output.text)).find(|text| text.get().is_some());
        let reasons = [wire.stop_reason, wire.completion_reason, wire.finish_reason];
        let stated = reasons.into_iter().chain(output.map(|output| output.stop_reason)).find_map(filled);
        if text.is_none() && stated.is_none() && metrics_of(event.data).is_none() {
            return out.raw(event.name, event.data);
        }
        out.known += 1;
        if let Some(text) = text.filter(|text| text.filled().is_some()) {
            let lane = *self.open.get_or_insert_with(|| Lane::TEXT.in_part(self.lanes.part(out)));
            out.delta(lane, text.clone(), Leaf::NONE);
        }
        if let Some(stated) = stated.filter(|_| !self.finished && !out.failed) {
            self.finished = true;
            out.ended = true;
            if let Some(lane) = self.open.take() {
                out.push(Body::PartEnd { choice: 0, part: lane.part });
            }
            out.push(end_of_text(stated));
        }
    }
}

fn end_of_text(stated: Text) -> Chunk {
    let reason = match stated.to_ascii_lowercase().as_str() {
        "stop" | "finish" | "finished" | "complete" | "stop_criteria_met" | "end_turn" => FinishReason::Stop,
        "length" | "max_tokens" => FinishReason::Length,
        "content_filtered" | "error_toxic" => FinishReason::ContentFilter,
        _ => FinishReason::Other(stated.clone()),
    };
    finish(0, reason, Some(stated))
}

/// What Bedrock itself counted, in the last payload of a model that states no usage of its own.
fn metrics_of(payload: &str) -> Option<Usage> {
    #[derive(Default, Deserialize)]
    struct Wire<'a> {
        #[serde(borrow, rename = "amazon-bedrock-invocationMetrics")]
        metrics: Option<&'a RawValue>,
    }
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metrics {
        input_token_count: Num,
        output_token_count: Num,
        cache_read_input_token_count: Num,
        cache_write_input_token_count: Num,
    }
    if !payload.contains("amazon-bedrock-invocationMetrics") {
        return None;
    }
    let raw = serde_json::from_str::<Wire<'_>>(payload).ok()?.metrics?;
    let metrics: Metrics = parse(raw)?;
    Some(Usage {
        uncached_input: metrics.input_token_count.0,
        cache_read: metrics.cache_read_input_token_count.0,
        cache_write: metrics.cache_write_input_token_count.0,
        output: metrics.output_token_count.0,
        stated: Stated {
            input: metrics.input_token_count.0,
            output: metrics.output_token_count.0,
            cached: metrics.cache_read_input_token_count.0,
            cache_write: metrics.cache_write_input_token_count.0,
            ..Stated::default()
        },
        ..Usage::default()
    })
}

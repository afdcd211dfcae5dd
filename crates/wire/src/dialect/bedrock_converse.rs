//! Bedrock `ConverseStream`: one event type a message, named in its header.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use streamkeeper_contract::{
    Body, Channel, Chunk, ErrorInfo, FinishReason, Json, Lane, MessageInfo, ProviderToolOutput, Stated, Text,
    ToolCallStart, Usage,
};

use crate::output::{Leaf, Output};

use super::{
    Dialect, Event,
    blocks::{Blocks, Tool},
    chunks::{annotation, custom, finish, opaque},
    pull::Pull,
    read::{Lanes, Num, Str, is_filled, parse, plain},
};

/// Reads one message.
#[derive(Debug, Default)]
pub(super) struct BedrockConverse {
    lanes: Lanes,
    blocks: Blocks,
    /// The call whose output the current block is.
    result_of: Text,
    begun: bool,
    finished: bool,
    usage: Usage,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wire<'a> {
    content_block_index: Num,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    #[serde(borrow)]
    start: Option<&'a RawValue>,
    #[serde(borrow)]
    role: Str<'a>,
    #[serde(borrow)]
    stop_reason: Str<'a>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    trace: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Delta<'a> {
    #[serde(borrow)]
    text: Str<'a>,
    #[serde(borrow)]
    reasoning_content: Option<Reasoning<'a>>,
    #[serde(borrow)]
    tool_use: Option<ToolUse<'a>>,
    #[serde(borrow)]
    citation: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_result: Option<&'a RawValue>,
    #[serde(borrow)]
    image: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Reasoning<'a> {
    #[serde(borrow)]
    text: Str<'a>,
    #[serde(borrow)]
    signature: Str<'a>,
    #[serde(borrow)]
    redacted_content: Str<'a>,
}

#[derive(Debug, Default, Deserialize)]
struct ToolUse<'a> {
    #[serde(borrow)]
    input: Str<'a>,
}

/// The event types, which are also the keys under which recorders that keep no headers put the payload.
const NAMES: [(&str, &str); 6] = [
    ("contentBlockDelta", "contentBlockDelta/"),
    ("contentBlockStart", "contentBlockStart/"),
    ("contentBlockStop", "contentBlockStop/"),
    ("messageStart", "messageStart/"),
    ("messageStop", "messageStop/"),
    ("metadata", "metadata/"),
];

impl Dialect for BedrockConverse {
    fn event(&mut self, event: &Event<'_>, out: &mut Output) {
        let read = match event.name {
            Some(name) => self.read(name, event.data, out),
            None => self.unwrap(event.data, out),
        };
        match read {
            Some(()) => out.known += 1,
            None => out.raw(event.name, event.data),
        }
    }
}

impl BedrockConverse {
    /// An event whose type is the key around its payload.
    fn unwrap(&mut self, data: &str, out: &mut Output) -> Option<()> {
        let wrapped: BTreeMap<String, &RawValue> = serde_json::from_str(data).ok()?;
        let (name, payload) = wrapped.iter().find(|(name, _)| is_event(name) || is_exception(name))?;
        let known = NAMES.iter().find(|(known, _)| known == name);
        let before = std::mem::replace(&mut out.prefix, known.map_or("", |(_, prefix)| prefix));
        let read = self.read(name, payload.get(), out);
        out.prefix = before;
        read
    }

    fn read(&mut self, name: &str, data: &str, out: &mut Output) -> Option<()> {
        if name == "contentBlockDelta"
            && let Some((index, path, text)) = growth_of(data)
        {
            return self.grow(index, path, text, out);
        }
        let wire: Wire<'_> = serde_json::from_str(data).ok()?;
        let index = wire.content_block_index.or_zero();
        match name {
            "contentBlockDelta" => self.delta(index, wire.delta.as_ref()?, out)?,
            "contentBlockStart" => self.begin_block(index, wire.start, out)?,
            "contentBlockStop" => self.blocks.end(index, out),
            "messageStart" => {
                if !std::mem::replace(&mut self.begun, true) {
                    let role = wire.role.text();
                    out.push(Body::MessageStart(Box::new(MessageInfo { choice: 0, id: None, role, model: None })));
                }
            }
            "messageStop" => {
                self.blocks.end_all(out);
                out.ended = true;
                if let Some(stated) = wire.stop_reason.get()
                    && !self.finished
                    && !out.failed
                {
                    self.finished = true;
                    out.push(end_of_turn(stated));
                }
            }
            "metadata" => {
                if let Some(usage) = wire.usage.and_then(usage_of) {
                    self.usage.update(&usage);
                    out.push(Body::Usage(Box::new(self.usage.clone())));
                }
                if let Some(trace) = wire.trace.filter(|trace| is_filled(Some(trace))) {
                    out.chunk(annotation(Lane::TEXT, "trace", trace), Leaf::new("trace", [0; 4]));
                }
            }
            name if is_exception(name) => {
                let error = ErrorInfo::new(name);
                let error = match wire.message.filter(|message| message.get() != "null") {
                    Some(message) => error.with_message(plain(message)),
                    None => error,
                };
                out.error_at(error, Leaf::new("message", [0; 4]));
            }
            _ => return None,
        }
        Some(())
    }

    fn begin_block(&mut self, index: u64, start: Option<&RawValue>, out: &mut Output) -> Option<()> {
        #[derive(Default, Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Start<'a> {
            #[serde(borrow)]
            tool_use: Option<ToolStart<'a>>,
            #[serde(borrow)]
            tool_result: Option<ToolStart<'a>>,
        }
        #[derive(Default, Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct ToolStart<'a> {
            #[serde(borrow)]
            tool_use_id: Str<'a>,
            #[serde(borrow)]
            name: Str<'a>,
            #[serde(borrow, rename = "type")]
            kind: Str<'a>,
        }
        let wire: Start<'_> = match start {
            Some(start) => parse(start)?,
            None => Start::default(),
        };
        let part = self.blocks.begin(index, &mut self.lanes, out);
        if let Some(tool) = wire.tool_use {
            let channel = match tool.kind.as_str() {
                "server_tool_use" => Channel::ProviderTool,
                _ => Channel::Arguments,
            };
            let lane = self.lanes.call(part, channel, out);
            let id = tool.tool_use_id.filled().map_or_else(|| Output::made_up_id(lane), Text::from);
            self.lanes.name(&id, lane);
            let start = Box::new(ToolCallStart { lane, id, name: tool.name.text().unwrap_or_default() });
            out.push(match channel {
                Channel::ProviderTool => Body::ProviderToolStart(start),
                _ => Body::ToolCallStart(start),
            });
            self.blocks.set_tool(index, Tool { lane, whole: false });
        } else if let Some(result) = wire.tool_result {
            // Its content follows as deltas.
            let id = result.tool_use_id.text().unwrap_or_default();
            let lane = self.lanes.named(&id).unwrap_or_else(|| self.lanes.call(part, Channel::ProviderTool, out));
            self.lanes.name(&id, lane);
            self.result_of = id;
            self.blocks.set_tool(index, Tool { lane, whole: true });
        } else if let Some(start) = start.filter(|start| is_filled(Some(start))) {
            out.chunk(custom("contentBlockStart", start), Leaf::new("start", [0; 4]));
        }
        Some(())
    }

    /// A block grows by the text at this path.
    fn grow(&mut self, index: u64, path: &'static str, text: Str<'_>, out: &mut Output) -> Option<()> {
        let lane = match path {
            TEXT => self.blocks.lane(index, Channel::Text, &mut self.lanes, out),
            REASONING => self.blocks.lane(index, Channel::Reasoning, &mut self.lanes, out),
            _ => self.blocks.tool(index)?.lane,
        };
        out.delta(lane, text, Leaf::new(path, [0; 4]));
        Some(())
    }

    fn delta(&mut self, index: u64, delta: &Delta<'_>, out: &mut Output) -> Option<()> {
        if delta.text.get().is_some() {
            self.grow(index, TEXT, delta.text.clone(), out)?;
        } else if let Some(reasoning) = &delta.reasoning_content {
            self.grow(index, REASONING, reasoning.text.clone(), out)?;
            let lane = self.blocks.lane(index, Channel::Reasoning, &mut self.lanes, out);
            for (form, data, path) in [
                ("signature", &reasoning.signature, "delta/reasoningContent/signature"),
                ("redacted", &reasoning.redacted_content, "delta/reasoningContent/redactedContent"),
            ] {
                if let Some(data) = data.filled() {
                    out.chunk(opaque(lane, form, data), Leaf::new(path, [0; 4]));
                }
            }
        } else if let Some(tool) = &delta.tool_use {
            self.grow(index, INPUT, tool.input.clone(), out)?;
        } else if let Some(citation) = delta.citation {
            let lane = self.blocks.lane(index, Channel::Text, &mut self.lanes, out);
            out.chunk(annotation(lane, "citation", citation), Leaf::new("delta/citation", [0; 4]));
        } else if let Some(result) = delta.tool_result {
            let Tool { lane, .. } = self.blocks.tool(index)?;
            let output = ProviderToolOutput {
                lane,
                id: self.result_of.clone(),
                name: "toolResult".into(),
                output: Json::from(result),
            };
            out.chunk(Body::ProviderToolOutput(Box::new(output)).into(), Leaf::new("delta/toolResult", [0; 4]));
        } else {
            out.chunk(custom("image", delta.image?), Leaf::new("delta/image", [0; 4]));
        }
        Some(())
    }
}

const TEXT: &str = "delta/text";
const REASONING: &str = "delta/reasoningContent/text";
const INPUT: &str = "delta/toolUse/input";

/// Reads a delta that has nothing but its text, without the general way.
fn growth_of(data: &str) -> Option<(u64, &'static str, Str<'_>)> {
    let mut json = Pull::object(data)?;
    let (mut index, mut grown) = (None, None);
    let mut first = true;
    while let Some(key) = json.key(&mut first)? {
        match key {
            "contentBlockIndex" => index = Some(json.count()?),
            "delta" if grown.is_none() => {
                json.open(b'{')?;
                let mut first = true;
                let key = json.key(&mut first)??;
                if key == "text" {
                    grown = Some((TEXT, json.string()?));
                } else {
                    json.open(b'{')?;
                    let mut first = true;
                    let path = match (key, json.key(&mut first)??) {
                        ("reasoningContent", "text") => REASONING,
                        ("toolUse", "input") => INPUT,
                        _ => return None,
                    };
                    grown = Some((path, json.string()?));
                    json.at_end(&mut first, b'}')?;
                }
                json.at_end(&mut first, b'}')?;
            }
            "p" => json.skip()?,
            _ => return None,
        }
    }
    json.end()?;
    let (path, text) = grown?;
    Some((index?, path, text))
}

/// Whether this is the name of an event type.
pub(super) fn is_event(name: &str) -> bool {
    NAMES.iter().any(|(known, _)| *known == name)
}

/// Whether the name of an event is that of an error: `throttlingException`, `modelStreamErrorException`.
pub(super) fn is_exception(name: &str) -> bool {
    name.ends_with("Exception") || name.ends_with("Error")
}

fn end_of_turn(stated: &str) -> Chunk {
    let reason = match stated {
        "end_turn" | "stop_sequence" => FinishReason::Stop,
        "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
        "tool_use" => FinishReason::ToolCalls,
        "guardrail_intervened" | "content_filtered" => FinishReason::ContentFilter,
        word => FinishReason::Other(word.into()),
    };
    finish(0, reason, Some(stated.into()))
}

/// The provider's numbers. Input counts neither what a cache served nor what it stored; reasoning is part of the output.
fn usage_of(raw: &RawValue) -> Option<Usage> {
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Wire {
        input_tokens: Num,
        output_tokens: Num,
        total_tokens: Num,
        cache_read_input_tokens: Num,
        cache_write_input_tokens: Num,
    }
    let wire: Wire = parse(raw)?;
    Some(Usage {
        uncached_input: wire.input_tokens.0,
        cache_read: wire.cache_read_input_tokens.0,
        cache_write: wire.cache_write_input_tokens.0,
        output: wire.output_tokens.0,
        stated: Stated {
            input: wire.input_tokens.0,
            output: wire.output_tokens.0,
            cached: wire.cache_read_input_tokens.0,
            cache_write: wire.cache_write_input_tokens.0,
            total: wire.total_tokens.0,
            raw: Some(raw.into()),
            ..Stated::default()
        },
        ..Usage::default()
    })
}

//! Anthropic Messages: blocks that begin, grow and end inside one message.

#[cfg(test)]
mod tests;

use serde::Deserialize;
use serde_json::value::RawValue;
use streamkeeper_contract::{
    Body, Channel, Chunk, ErrorInfo, FinishReason, Lane, MessageInfo, ProviderToolOutput, Stated, Text, ToolCall,
    ToolCallStart, Usage, codes,
};

use crate::output::{Leaf, Output};

use super::{
    Dialect, Event,
    blocks::{Blocks, Tool, end},
    chunks::{annotation, custom, finish, opaque},
    pull::Pull,
    read::{Lanes, List, Num, Str, error_info, is_filled, leaf, parse},
};

/// Reads one message.
#[derive(Debug, Default)]
pub(super) struct Anthropic {
    lanes: Lanes,
    message: Message,
    usage: Usage,
    finished: bool,
}

impl Dialect for Anthropic {
    fn event(&mut self, event: &Event<'_>, out: &mut Output) {
        match self.read(event, out) {
            Some(()) => out.known += 1,
            None => out.raw(event.name, event.data),
        }
    }
}

impl Anthropic {
    fn read(&mut self, event: &Event<'_>, out: &mut Output) -> Option<()> {
        if event.data == "[DONE]" {
            return Some(());
        }
        if let Some(growth) = Growth::of_event(event.data) {
            return self.message.grow(growth, &mut self.lanes, out);
        }
        let wire: Wire<'_> = serde_json::from_str(event.data).ok()?;
        let kind = wire.kind.get().or(event.name).unwrap_or_default();
        match self.message.event(kind, &wire, &mut self.lanes, out)? {
            Said::Nothing => {}
            Said::Begun { usage } => self.count(usage, out),
            Said::Done { reason, usage } => {
                self.count(usage, out);
                if let Some(stated) = reason
                    && !self.finished
                    && !out.failed
                {
                    self.finished = true;
                    self.message.blocks.end_all(out);
                    out.push(end_of_turn(stated));
                }
            }
            Said::Over => out.ended = true,
            Said::Failed(error) => out.error_at(error, ERROR),
        }
        Some(())
    }

    fn count(&mut self, usage: Option<&RawValue>, out: &mut Output) {
        if let Some(usage) = usage.and_then(usage_of) {
            self.usage.update(&usage);
            out.push(Body::Usage(Box::new(self.usage.clone())));
        }
    }
}

/// One message that is being streamed, and the lanes of its blocks.
#[derive(Debug, Default)]
pub(super) struct Message {
    pub(super) blocks: Blocks,
    pub(super) begun: bool,
    pub(super) id: Option<Text>,
    /// The call that the message is part of: it is the work of another agent, so its text is no answer but a tool's.
    pub(super) inside: u16,
    /// The lane of the last text.
    pub(super) last_text: Option<Lane>,
    /// Blocks of it came one by one.
    pub(super) streamed: bool,
}

/// What an event says about the message as a whole.
pub(super) enum Said<'a> {
    Nothing,
    Begun { usage: Option<&'a RawValue> },
    Done { reason: Option<&'a str>, usage: Option<&'a RawValue> },
    Over,
    Failed(ErrorInfo),
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Wire<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Str<'a>,
    index: Num,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    #[serde(borrow)]
    content_block: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
struct Delta<'a> {
    #[serde(borrow, rename = "type")]
    kind: Str<'a>,
    #[serde(borrow)]
    text: Str<'a>,
    #[serde(borrow)]
    thinking: Str<'a>,
    #[serde(borrow)]
    partial_json: Str<'a>,
    #[serde(borrow)]
    signature: Str<'a>,
    #[serde(borrow)]
    citation: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    stop_reason: Str<'a>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct MessageWire<'a> {
    #[serde(borrow)]
    pub(super) id: Str<'a>,
    #[serde(borrow)]
    pub(super) role: Str<'a>,
    #[serde(borrow)]
    pub(super) model: Str<'a>,
    #[serde(borrow)]
    pub(super) content: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) usage: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct BlockWire<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Str<'a>,
    #[serde(borrow)]
    text: Str<'a>,
    #[serde(borrow)]
    thinking: Str<'a>,
    #[serde(borrow)]
    signature: Str<'a>,
    #[serde(borrow)]
    data: Str<'a>,
    #[serde(borrow)]
    id: Str<'a>,
    #[serde(borrow)]
    name: Str<'a>,
    #[serde(borrow)]
    pub(super) tool_use_id: Str<'a>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) content: Option<&'a RawValue>,
    #[serde(borrow)]
    citations: Option<List<'a>>,
}

/// A block grows by a piece of text: what nearly every event says.
#[derive(Debug)]
pub(super) struct Growth<'a> {
    index: u64,
    of: Grows,
    text: Str<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Grows {
    Text,
    Thinking,
    Input,
}

impl<'a> Growth<'a> {
    fn of_event(data: &'a str) -> Option<Self> {
        let mut json = Pull::object(data)?;
        let growth = Self::read(&mut json)?;
        json.end()?;
        Some(growth)
    }

    /// Reads the members of an event's object, and its end. `None` if it says anything else.
    pub(super) fn read(json: &mut Pull<'a>) -> Option<Self> {
        let (mut index, mut delta) = (None, None);
        let mut first = true;
        while let Some(key) = json.key(&mut first)? {
            match key {
                "type" if json.word()? == "content_block_delta" => {}
                "index" if index.is_none() => index = Some(json.count()?),
                "delta" if delta.is_none() => delta = Some(Self::read_delta(json)?),
                _ => return None,
            }
        }
        let (of, text) = delta?;
        Some(Self { index: index?, of, text })
    }

    fn read_delta(json: &mut Pull<'a>) -> Option<(Grows, Str<'a>)> {
        let (mut kind, mut text) = (None, None);
        json.open(b'{')?;
        let mut first = true;
        while let Some(key) = json.key(&mut first)? {
            match key {
                "type" => kind = Some(json.word()?),
                "text" | "thinking" | "partial_json" if text.is_none() => text = Some((key, json.string()?)),
                _ => return None,
            }
        }
        let of = match (kind?, text.as_ref()?.0) {
            ("text_delta", "text") => Grows::Text,
            ("thinking_delta", "thinking") => Grows::Thinking,
            ("input_json_delta", "partial_json") => Grows::Input,
            _ => return None,
        };
        Some((of, text?.1))
    }
}

impl Message {
    /// Takes an event. `None` if no rule fits it; nothing was written then.
    pub(super) fn event<'a>(
        &mut self,
        kind: &str,
        wire: &'a Wire<'_>,
        lanes: &mut Lanes,
        out: &mut Output,
    ) -> Option<Said<'a>> {
        match kind {
            "content_block_delta" => self.delta(wire.index.or_zero(), wire.delta.as_ref()?, lanes, out)?,
            "content_block_start" => self.begin_block(wire.index.or_zero(), wire.content_block?, lanes, out)?,
            "content_block_stop" => self.blocks.end(wire.index.or_zero(), out),
            "message_start" => {
                let message: MessageWire<'_> = parse(wire.message?)?;
                if self.begin(&message, out) {
                    // Recorders that keep one object for the message show text here that is streamed later: it belongs to no lane.
                    if let Some(content) = message.content.filter(|content| says_something(content)) {
                        out.chunk(custom("message_start.content", content), Leaf::new("message/content", [0; 4]));
                    }
                    return Some(Said::Begun { usage: message.usage });
                }
            }
            "message_delta" => {
                let reason = wire.delta.as_ref().and_then(|delta| delta.stop_reason.get());
                return Some(Said::Done { reason, usage: wire.usage });
            }
            "message_stop" => {
                self.blocks.end_all(out);
                return Some(Said::Over);
            }
            "ping" => {}
            "error" => {
                let error = wire.error.map_or_else(|| ErrorInfo::new(codes::ERROR), error_info);
                return Some(Said::Failed(error));
            }
            _ => return None,
        }
        Some(Said::Nothing)
    }

    /// Begins the message. `false` if it had begun already: gateways send the event twice.
    pub(super) fn begin(&mut self, message: &MessageWire<'_>, out: &mut Output) -> bool {
        let id = message.id.text();
        if self.begun && (id.is_none() || id == self.id) {
            return false;
        }
        self.blocks.end_all(out);
        self.blocks = Blocks::default();
        (self.begun, self.streamed) = (true, false);
        self.id.clone_from(&id);
        if self.inside == 0 {
            let (role, model) = (message.role.text(), message.model.text());
            out.push(Body::MessageStart(Box::new(MessageInfo { choice: 0, id, role, model })));
        }
        true
    }

    fn begin_block(&mut self, index: u64, raw: &RawValue, lanes: &mut Lanes, out: &mut Output) -> Option<()> {
        let block: BlockWire<'_> = parse(raw)?;
        let part = self.blocks.begin(index, lanes, out);
        match block.kind.as_str() {
            "text" => self.blocks.expect_repeat(Channel::Text, part),
            "thinking" => self.blocks.expect_repeat(Channel::Reasoning, part),
            _ => {}
        }
        if let Some(tool) = self.new_block(&block, raw, Place::Start, part, lanes, out) {
            self.blocks.set_tool(index, tool);
        }
        self.streamed = true;
        Some(())
    }

    /// A block of a message that comes whole, at this place of its content. What was streamed before is repeated in its lane.
    pub(super) fn whole_block(&mut self, at: usize, raw: &RawValue, lanes: &mut Lanes, out: &mut Output) -> Option<()> {
        let block: BlockWire<'_> = parse(raw)?;
        let place = Place::Content(at);
        let kind = block.kind.as_str();
        let repeated = match kind {
            "text" => self.blocks.repeated(Channel::Text).map(|part| (self.text_lane(part), block.text.text(), TEXT)),
            "thinking" => {
                let part = self.blocks.repeated(Channel::Reasoning);
                part.map(|part| (Lane::new(Channel::Reasoning).in_part(part), block.thinking.text(), THINKING))
            }
            "tool_use" | "server_tool_use" | "mcp_tool_use" => {
                let lane = lanes.named(block.id.as_str());
                lane.map(|lane| (lane, block.input.map(|input| input.get().into()), INPUT))
            }
            _ => None,
        };
        if let Some((lane, text, field)) = repeated {
            out.snapshot(lane, text.unwrap_or_default(), place.leaf(field));
        } else if !self.streamed || matches!(kind, "text" | "tool_use") {
            let part = lanes.part(out);
            let tool = self.new_block(&block, raw, place, part, lanes, out);
            end(part, tool, out);
        }
        Some(())
    }

    /// Writes a block that begins, with what its beginning holds. Returns the call that it is.
    fn new_block(
        &mut self,
        block: &BlockWire<'_>,
        raw: &RawValue,
        place: Place,
        part: u16,
        lanes: &mut Lanes,
        out: &mut Output,
    ) -> Option<Tool> {
        let text = self.text_lane(part);
        let thinking = Lane::new(Channel::Reasoning).in_part(part);
        match block.kind.as_str() {
            "text" => {
                self.last_text = Some(text);
                out.push(Body::PartStart(text));
                for (i, citation) in block.citations.iter().flat_map(|list| &list.0).enumerate() {
                    out.chunk(annotation(text, "citation", citation), place.leaf_in(CITATIONS, i));
                }
                out.delta(text, block.text.clone(), place.leaf(TEXT));
            }
            "thinking" => {
                out.push(Body::PartStart(thinking));
                out.delta(thinking, block.thinking.clone(), place.leaf(THINKING));
                if let Some(signature) = block.signature.filled() {
                    out.chunk(opaque(thinking, "signature", signature), place.leaf(SIGNATURE));
                }
            }
            "redacted_thinking" => {
                out.push(Body::PartStart(thinking));
                out.chunk(opaque(thinking, "redacted", block.data.as_str()), place.leaf(DATA));
            }
            "tool_use" => {
                let lane = lanes.call(part, Channel::Arguments, out);
                return Some(new_tool(block, lane, place, lanes, out));
            }
            "server_tool_use" | "mcp_tool_use" => {
                let lane = lanes.call(part, Channel::ProviderTool, out);
                return Some(new_tool(block, lane, place, lanes, out));
            }
            kind if kind.ends_with("_tool_result") => {
                let id = block.tool_use_id.text().unwrap_or_default();
                let lane = lanes.named(&id).unwrap_or_else(|| lanes.call(part, Channel::ProviderTool, out));
                let output = ProviderToolOutput { lane, id, name: kind.into(), output: raw.into() };
                out.chunk(Body::ProviderToolOutput(Box::new(output)).into(), place.leaf(BLOCK));
            }
            "compaction" => {
                out.push(Body::PartStart(text));
                if let Some(content) = block.content.filter(|content| is_filled(Some(content))) {
                    out.chunk(annotation(text, "compaction", content), place.leaf(CONTENT));
                }
            }
            kind => out.chunk(custom(kind, raw), place.leaf(BLOCK)),
        }
        None
    }

    fn delta(&mut self, index: u64, delta: &Delta<'_>, lanes: &mut Lanes, out: &mut Output) -> Option<()> {
        match delta.kind.as_str() {
            "text_delta" => self.grow(Growth { index, of: Grows::Text, text: delta.text.clone() }, lanes, out)?,
            "thinking_delta" => {
                self.grow(Growth { index, of: Grows::Thinking, text: delta.thinking.clone() }, lanes, out)?;
            }
            "input_json_delta" => {
                self.grow(Growth { index, of: Grows::Input, text: delta.partial_json.clone() }, lanes, out)?;
            }
            "signature_delta" => {
                let lane = self.blocks.lane(index, Channel::Reasoning, lanes, out);
                if let Some(signature) = delta.signature.filled() {
                    out.chunk(opaque(lane, "signature", signature), Leaf::new("delta/signature", [0; 4]));
                }
            }
            "citations_delta" => {
                let part = self.blocks.lane(index, Channel::Text, lanes, out).part;
                let citation = annotation(self.text_lane(part), "citation", delta.citation?);
                out.chunk(citation, Leaf::new("delta/citation", [0; 4]));
            }
            "compaction_delta" => {
                let part = self.blocks.lane(index, Channel::Text, lanes, out).part;
                if let Some(content) = delta.content {
                    let compaction = annotation(self.text_lane(part), "compaction", content);
                    out.chunk(compaction, Leaf::new("delta/content", [0; 4]));
                }
            }
            _ => return None,
        }
        self.streamed = true;
        Some(())
    }

    /// A block grows. `None` if no rule fits that; nothing was written then.
    pub(super) fn grow(&mut self, growth: Growth<'_>, lanes: &mut Lanes, out: &mut Output) -> Option<()> {
        let Growth { index, of, text } = growth;
        match of {
            Grows::Text => {
                let part = self.blocks.lane(index, Channel::Text, lanes, out).part;
                let lane = self.text_lane(part);
                self.last_text = Some(lane);
                out.delta(lane, text, Leaf::new("delta/text", [0; 4]));
            }
            Grows::Thinking => {
                let lane = self.blocks.lane(index, Channel::Reasoning, lanes, out);
                out.delta(lane, text, Leaf::new("delta/thinking", [0; 4]));
            }
            Grows::Input => match self.blocks.tool(index) {
                Some(Tool { lane, whole: false }) => {
                    out.delta(lane, text, Leaf::new("delta/partial_json", [0; 4]));
                }
                // Fragments without a call, or after a whole input: they belong to no text, so they are shown as they are.
                _ if text.filled().is_some() => return None,
                _ => {}
            },
        }
        self.streamed = true;
        Some(())
    }

    /// The lane of answer text, or of the text of the tool that this message is the work of.
    fn text_lane(&self, part: u16) -> Lane {
        match self.inside {
            0 => Lane::TEXT.in_part(part),
            call => Lane { choice: 0, part, call, channel: Channel::ToolResult },
        }
    }
}

/// Where the message of an error stands.
const ERROR: Leaf = Leaf::new("error/message", [0; 4]);

/// Where a block stands in its event.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// It is the block that begins.
    Start,
    /// It is this element of a message's content.
    Content(usize),
}

/// A field of a block: its path when the block begins, and when it stands in a message.
type Field = (&'static str, &'static str);
const TEXT: Field = ("content_block/text", "message/content/*/text");
const THINKING: Field = ("content_block/thinking", "message/content/*/thinking");
const INPUT: Field = ("content_block/input", "message/content/*/input");
const SIGNATURE: Field = ("content_block/signature", "message/content/*/signature");
const DATA: Field = ("content_block/data", "message/content/*/data");
const CONTENT: Field = ("content_block/content", "message/content/*/content");
const CITATIONS: Field = ("content_block/citations/*", "message/content/*/citations/*");
const BLOCK: Field = ("content_block", "message/content/*");

impl Place {
    fn leaf(self, (start, content): Field) -> Leaf {
        match self {
            Place::Start => Leaf::new(start, [0; 4]),
            Place::Content(at) => leaf(content, &[at]),
        }
    }

    /// The place of an element of a list in the block.
    fn leaf_in(self, (start, content): Field, element: usize) -> Leaf {
        match self {
            Place::Start => leaf(start, &[element]),
            Place::Content(at) => leaf(content, &[at, element]),
        }
    }
}

/// A call. Its input is whole if the beginning of its block holds one that is not empty.
fn new_tool(block: &BlockWire<'_>, lane: Lane, place: Place, lanes: &mut Lanes, out: &mut Output) -> Tool {
    let id = block.id.filled().map_or_else(|| Output::made_up_id(lane), Text::from);
    lanes.name(&id, lane);
    let name = block.name.text().unwrap_or_default();
    let input = block.input.filter(|input| is_filled(Some(input)));
    match (lane.channel, input) {
        (Channel::Arguments, Some(input)) => {
            let call = ToolCall { lane, id, name, arguments: input.get().into() };
            out.chunk(Body::ToolCall(Box::new(call)).into(), place.leaf(INPUT));
        }
        (Channel::Arguments, None) => {
            out.push(Body::ToolCallStart(Box::new(ToolCallStart { lane, id, name })));
        }
        (_, input) => {
            out.push(Body::ProviderToolStart(Box::new(ToolCallStart { lane, id, name })));
            if let Some(input) = input {
                out.delta(lane, input.get(), place.leaf(INPUT));
                out.push(Body::ProviderToolEnd(lane));
            }
        }
    }
    Tool { lane, whole: input.is_some() }
}

/// Whether a message's content holds more than empty text.
fn says_something(content: &RawValue) -> bool {
    parse::<List<'_>>(content).is_some_and(|blocks| {
        blocks.0.iter().any(|block| match parse::<BlockWire<'_>>(block) {
            Some(block) if block.kind.as_str() == "text" => block.text.filled().is_some(),
            _ => true,
        })
    })
}

/// The provider's numbers. Input counts neither what a cache served nor what it stored; thinking is part of the output.
pub(super) fn usage_of(raw: &RawValue) -> Option<Usage> {
    #[derive(Default, Deserialize)]
    struct Wire {
        input_tokens: Num,
        output_tokens: Num,
        cache_read_input_tokens: Num,
        cache_creation_input_tokens: Num,
    }
    let wire: Wire = parse(raw)?;
    Some(Usage {
        uncached_input: wire.input_tokens.0,
        cache_read: wire.cache_read_input_tokens.0,
        cache_write: wire.cache_creation_input_tokens.0,
        output: wire.output_tokens.0,
        stated: Stated {
            input: wire.input_tokens.0,
            output: wire.output_tokens.0,
            cached: wire.cache_read_input_tokens.0,
            cache_write: wire.cache_creation_input_tokens.0,
            raw: Some(raw.into()),
            ..Stated::default()
        },
        ..Usage::default()
    })
}

fn end_of_turn(stated: &str) -> Chunk {
    let reason = match stated {
        "end_turn" | "stop_sequence" => FinishReason::Stop,
        "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
        "tool_use" => FinishReason::ToolCalls,
        "pause_turn" => FinishReason::Pause,
        "refusal" => FinishReason::Refusal,
        word => FinishReason::Other(word.into()),
    };
    finish(0, reason, Some(stated.into()))
}

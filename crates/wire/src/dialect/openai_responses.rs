//! OpenAI Responses: items with parts, streamed as deltas and then repeated whole, up to three times.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use streamkeeper_contract::{
    Annotation, Body, Channel, Chunk, Custom, ErrorInfo, Finish, FinishReason, Json, Lane, Media, MediaData,
    MessageInfo, Opaque, ProviderToolOutput, Stated, Text, ToolCall, ToolCallStart, Usage, codes,
};

use crate::output::{Leaf, Output};

use super::{
    Dialect, Event,
    pull::Pull,
    read::{Lanes, List, Num, Str, error_info, filled, is_filled, leaf, parse, plain},
};

/// Reads one response.
#[derive(Debug, Default)]
pub(super) struct OpenAiResponses {
    lanes: Lanes,
    parts: BTreeMap<Slot, Part>,
    /// Parts that have not ended.
    open: BTreeMap<Slot, u16>,
    items: BTreeMap<u64, Item>,
    /// The text that grew last: it usually is the one that grows next.
    last: Option<(Slot, u16)>,
    begun: bool,
    /// The client has tools to run.
    calls: bool,
    finished: bool,
}

/// What has a part of its own: a content or summary part of an item, or the item itself.
type Slot = (u64, Kind, u64);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Content,
    Summary,
    Item,
}

#[derive(Debug, Clone, Copy, Default)]
struct Part {
    ordinal: u16,
    /// Its text was said, so that what comes whole is a repeat.
    said: bool,
    /// Its annotations came.
    annotated: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Item {
    call: Option<Call>,
    /// Its opaque or structured content came.
    shown: bool,
}

#[derive(Debug, Clone, Copy)]
struct Call {
    lane: Lane,
    begun: bool,
    said: bool,
    ended: bool,
}

/// The event in which an item stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Added,
    Done,
    /// This element of the output of the event that ends the response.
    End(usize),
}

impl At {
    /// The place of a field of the item, given its path in `item` and in `response`.
    fn leaf(self, item: &'static str, response: &'static str, element: usize) -> Leaf {
        match self {
            At::Added | At::Done => leaf(item, &[element]),
            At::End(at) => leaf(response, &[at, element]),
        }
    }
}

#[derive(Debug, Default, Deserialize)]
struct Wire<'a> {
    #[serde(borrow, rename = "type")]
    kind: Str<'a>,
    #[serde(borrow)]
    delta: Str<'a>,
    output_index: Num,
    content_index: Num,
    summary_index: Num,
    #[serde(borrow)]
    logprobs: Option<&'a RawValue>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    refusal: Option<&'a RawValue>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    code: Option<&'a RawValue>,
    #[serde(borrow)]
    part: Option<&'a RawValue>,
    #[serde(borrow)]
    item: Option<&'a RawValue>,
    #[serde(borrow)]
    annotation: Option<&'a RawValue>,
    #[serde(borrow)]
    partial_image_b64: Option<&'a RawValue>,
    #[serde(borrow)]
    response: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
struct ItemWire<'a> {
    #[serde(borrow, rename = "type")]
    kind: Str<'a>,
    #[serde(borrow)]
    id: Str<'a>,
    #[serde(borrow)]
    call_id: Str<'a>,
    #[serde(borrow)]
    name: Str<'a>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    code: Option<&'a RawValue>,
    #[serde(borrow)]
    action: Option<&'a RawValue>,
    #[serde(borrow)]
    operation: Option<&'a RawValue>,
    #[serde(borrow)]
    encrypted_content: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    output_format: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<List<'a>>,
    #[serde(borrow)]
    summary: Option<List<'a>>,
}

#[derive(Debug, Default, Deserialize)]
struct PartWire<'a> {
    #[serde(borrow, rename = "type")]
    kind: Str<'a>,
    #[serde(borrow)]
    text: Str<'a>,
    #[serde(borrow)]
    refusal: Str<'a>,
    #[serde(borrow)]
    transcript: Str<'a>,
    #[serde(borrow)]
    annotations: Option<List<'a>>,
}

#[derive(Debug, Default, Deserialize)]
struct ResponseWire<'a> {
    #[serde(borrow)]
    id: Str<'a>,
    #[serde(borrow)]
    model: Str<'a>,
    #[serde(borrow)]
    status: Str<'a>,
    #[serde(borrow)]
    output: Option<List<'a>>,
    #[serde(borrow)]
    incomplete_details: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
}

impl Dialect for OpenAiResponses {
    fn event(&mut self, event: &Event<'_>, out: &mut Output) {
        match self.read(event, out) {
            Some(()) => out.known += 1,
            None => out.raw(event.name, event.data),
        }
    }
}

impl OpenAiResponses {
    /// At most so many parts and items are tracked. Those past it share the last part, and what they repeat counts as said once more.
    const MOST: usize = u16::MAX as usize;

    fn read(&mut self, event: &Event<'_>, out: &mut Output) -> Option<()> {
        if event.data == "[DONE]" {
            out.ended = true;
            return Some(());
        }
        if let Some((grows, at, text)) = growth_of(event.data) {
            self.take(grows, at, text, out);
            return Some(());
        }
        let wire: Wire<'_> = serde_json::from_str(event.data).ok()?;
        let kind = wire.kind.get().or(event.name).unwrap_or_default();
        let output = wire.output_index.or_zero();
        let at = [output, wire.content_index.or_zero(), wire.summary_index.or_zero()];
        let content = (output, Kind::Content, at[1]);
        let summary = (output, Kind::Summary, at[2]);
        if let Some(grows) = Grows::of(kind) {
            self.take(grows, at, wire.delta, out);
            if let (Grows::Part(_, channel), Some(logprobs)) =
                (grows, wire.logprobs.filter(|list| is_filled(Some(list))))
            {
                let ordinal = self.part(grows.slot(at), |_| {});
                out.push(annotation(Lane::new(channel).in_part(ordinal), "logprobs", logprobs));
            }
            return Some(());
        }
        match kind {
            "response.output_text.done" => self.whole(content, Channel::Text, wire.text?, "text", out),
            "response.reasoning_text.done" => self.whole(content, Channel::Reasoning, wire.text?, "text", out),
            "response.reasoning_summary_text.done" => self.whole(summary, Channel::Reasoning, wire.text?, "text", out),
            "response.refusal.done" => self.whole(content, Channel::Refusal, wire.refusal?, "refusal", out),
            "response.audio.transcript.done" => {}
            "response.function_call_arguments.done" => {
                self.whole_call(output, Channel::Arguments, wire.arguments?, Leaf::new("arguments", [0; 4]), out);
            }
            "response.custom_tool_call_input.done" => {
                self.whole_call(output, Channel::Arguments, wire.input?, Leaf::new("input", [0; 4]), out);
            }
            "response.mcp_call_arguments.done" => {
                self.whole_call(output, Channel::ProviderTool, wire.arguments?, Leaf::new("arguments", [0; 4]), out);
            }
            "response.code_interpreter_call_code.done" => {
                self.whole_call(output, Channel::ProviderTool, wire.code?, Leaf::new("code", [0; 4]), out);
            }

            "response.content_part.added" | "response.reasoning_part.added" => {
                self.begin_part(content, wire.part?, out)?;
            }
            "response.reasoning_summary_part.added" => self.begin_part(summary, wire.part?, out)?,
            "response.content_part.done" | "response.reasoning_part.done" => self.end_part(content, wire.part?, out)?,
            "response.reasoning_summary_part.done" => self.end_part(summary, wire.part?, out)?,
            "response.output_text.annotation.added" => {
                let ordinal = self.part(content, |part| part.annotated = true);
                out.push(annotation(Lane::TEXT.in_part(ordinal), "citation", wire.annotation?));
            }

            "response.output_item.added" => self.item(output, wire.item?, At::Added, out)?,
            "response.output_item.done" => self.item(output, wire.item?, At::Done, out)?,
            "response.image_generation_call.partial_image" => {
                let lane = Lane::TEXT.in_part(self.part((output, Kind::Item, 0), |_| {}));
                out.push(image(lane, &filled(wire.partial_image_b64)?, None));
            }
            "response.audio.delta" => {
                let lane = Lane::new(Channel::Transcript).in_part(self.part(content, |_| {}));
                let data = MediaData::Base64(wire.delta.as_str().into());
                out.push(Body::Media(Box::new(Media { lane, form: "audio".into(), mime: None, data })));
            }

            "response.created" | "response.queued" | "response.in_progress" => self.begin(wire.response?, out)?,
            "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled" => {
                self.end(kind, wire.response?, out)?;
            }
            "error" => {
                out.error(match wire.error.filter(|error| error.get() != "null") {
                    Some(error) => error_info(error),
                    None => error_info(serde_json::from_str(event.data).ok()?),
                });
            }
            "keepalive" | "response.audio.done" => {}
            kind if is_progress(kind) => {}
            _ => out.error(error_info(wire.error?)),
        }
        Some(())
    }

    fn begin(&mut self, response: &RawValue, out: &mut Output) -> Option<()> {
        let response: ResponseWire<'_> = parse(response)?;
        if !self.begun {
            self.begun = true;
            let (id, model) = (response.id.text(), response.model.text());
            out.push(Body::MessageStart(Box::new(MessageInfo {
                choice: 0,
                id,
                role: Some("assistant".into()),
                model,
            })));
        }
        Some(())
    }

    /// A text grows.
    fn take(&mut self, grows: Grows, at: [u64; 3], text: Str<'_>, out: &mut Output) {
        match grows {
            Grows::Part(_, channel) => {
                let slot = grows.slot(at);
                let ordinal = match self.last {
                    Some((last, ordinal)) if last == slot => ordinal,
                    _ => {
                        let ordinal = self.part(slot, |part| part.said = true);
                        self.last = Some((slot, ordinal));
                        ordinal
                    }
                };
                out.delta(Lane::new(channel).in_part(ordinal), text, DELTA);
            }
            Grows::Call(channel) => {
                let mut call = self.call(at[0], channel);
                if !call.said && text.filled().is_some() {
                    call.said = true;
                    self.set_call(at[0], call);
                }
                out.delta(call.lane, text, DELTA);
            }
        }
    }

    /// The text of a part, whole: a repeat if it was said before.
    fn whole(&mut self, slot: Slot, channel: Channel, text: &RawValue, path: &'static str, out: &mut Output) {
        self.say(slot, channel, plain(text), Leaf::new(path, [0; 4]), out);
    }

    fn say(&mut self, slot: Slot, channel: Channel, text: Text, leaf: Leaf, out: &mut Output) {
        let said = self.parts.get(&slot).is_some_and(|part| part.said);
        if said {
            let ordinal = self.part(slot, |_| {});
            out.snapshot(Lane::new(channel).in_part(ordinal), text, leaf);
        } else if !text.is_empty() {
            let ordinal = self.part(slot, |part| part.said = true);
            out.delta(Lane::new(channel).in_part(ordinal), text, leaf);
        }
    }

    fn begin_part(&mut self, slot: Slot, part: &RawValue, out: &mut Output) -> Option<()> {
        let part: PartWire<'_> = parse(part)?;
        let (channel, text, field) = part.content();
        let ordinal = self.part(slot, |_| {});
        out.push(Body::PartStart(Lane::new(channel).in_part(ordinal)));
        if !text.is_empty() {
            self.say(slot, channel, text.into(), Leaf::new(field.part, [0; 4]), out);
        }
        Some(())
    }

    fn end_part(&mut self, slot: Slot, part: &RawValue, out: &mut Output) -> Option<()> {
        let part: PartWire<'_> = parse(part)?;
        let (channel, text, field) = part.content();
        self.say(slot, channel, text.into(), Leaf::new(field.part, [0; 4]), out);
        self.annotate(slot, &part, out);
        if let Some(ordinal) = self.open.remove(&slot) {
            out.push(Body::PartEnd { choice: 0, part: ordinal });
        }
        Some(())
    }

    /// The annotations of a part that comes whole, unless they came one by one.
    fn annotate(&mut self, slot: Slot, part: &PartWire<'_>, out: &mut Output) {
        let Some(List(annotations)) = part.annotations.as_ref().filter(|list| !list.0.is_empty()) else { return };
        let mut annotated = false;
        let ordinal = self.part(slot, |part| annotated = std::mem::replace(&mut part.annotated, true));
        if !annotated {
            for value in annotations {
                out.push(annotation(Lane::TEXT.in_part(ordinal), "citation", value));
            }
        }
    }

    fn item(&mut self, output: u64, raw: &RawValue, at: At, out: &mut Output) -> Option<()> {
        let item: ItemWire<'_> = parse(raw)?;
        match item.kind.as_str() {
            "message" => self.contents(output, Kind::Content, item.content.as_ref(), at, out),
            "reasoning" => {
                self.contents(output, Kind::Summary, item.summary.as_ref(), at, out);
                self.contents(output, Kind::Content, item.content.as_ref(), at, out);
                self.encrypted(output, &item, at, out);
            }
            "compaction" => self.encrypted(output, &item, at, out),
            "function_call" => {
                const ARGUMENTS: [&str; 2] = ["item/arguments", "response/output/*/arguments"];
                self.client_call(output, &item, item.name.as_str(), item.arguments, ARGUMENTS, at, out);
            }
            "custom_tool_call" => {
                const INPUT: [&str; 2] = ["item/input", "response/output/*/input"];
                self.client_call(output, &item, item.name.as_str(), item.input, INPUT, at, out);
            }
            kind @ ("computer_call" | "local_shell_call" | "shell_call") if at != At::Added => {
                const ACTION: [&str; 2] = ["item/action", "response/output/*/action"];
                self.client_call(output, &item, kind, item.action, ACTION, at, out);
            }
            kind @ "apply_patch_call" if at != At::Added => {
                const OPERATION: [&str; 2] = ["item/operation", "response/output/*/operation"];
                self.client_call(output, &item, kind, item.operation, OPERATION, at, out);
            }
            "computer_call" | "local_shell_call" | "shell_call" | "apply_patch_call" => {}
            kind if kind.ends_with("_call") => self.provider_call(output, &item, raw, at, out),
            kind if at != At::Added && self.show(output) => {
                out.push(Body::Custom(Box::new(Custom { name: kind.into(), value: Json::from(raw) })));
            }
            _ => {}
        }
        if at != At::Added {
            self.end_parts(output, out);
        }
        Some(())
    }

    /// The parts of an item that comes whole. Their places count from 0; the index that their deltas had may not.
    fn contents(&mut self, output: u64, kind: Kind, list: Option<&List<'_>>, at: At, out: &mut Output) {
        let Some(List(list)) = list else { return };
        let known: Vec<Slot> = self
            .parts
            .range((output, kind, 0)..=(output, kind, u64::MAX))
            .take(list.len())
            .map(|(slot, _)| *slot)
            .collect();
        let next = known.last().map_or(0, |slot| slot.2.saturating_add(1));
        for (i, raw) in list.iter().enumerate() {
            let Some(part) = parse::<PartWire<'_>>(raw) else { continue };
            let new = next.saturating_add(i.saturating_sub(known.len()) as u64);
            let slot = known.get(i).copied().unwrap_or((output, kind, new));
            let (channel, text, field) = part.content();
            let paths = if kind == Kind::Summary { field.summary } else { field.content };
            if at != At::Added || !text.is_empty() {
                self.say(slot, channel, text.into(), at.leaf(paths[0], paths[1], i), out);
                self.annotate(slot, &part, out);
            }
        }
    }

    /// Encrypted reasoning. It changes from event to event until the item is done; one statement of it is enough.
    fn encrypted(&mut self, output: u64, item: &ItemWire<'_>, at: At, out: &mut Output) {
        let Some(data) = filled(item.encrypted_content).filter(|_| at != At::Added && self.show(output)) else {
            return;
        };
        let first =
            self.parts.range((output, Kind::Content, 0)..=(output, Kind::Item, 0)).next().map(|(slot, _)| *slot);
        let ordinal = self.part(first.unwrap_or((output, Kind::Item, 0)), |_| {});
        let lane = Lane::new(Channel::Reasoning).in_part(ordinal);
        out.push(Body::Opaque(Box::new(Opaque { lane, form: "encrypted".into(), data: data.as_str().into() })));
    }

    /// A call that the client has to run. What it gets may come in pieces, whole, or both.
    #[allow(
        clippy::too_many_arguments,
        reason = "one row of a table: an item, its tool, its input and where that stands"
    )]
    fn client_call(
        &mut self,
        output: u64,
        item: &ItemWire<'_>,
        name: &str,
        input: Option<&RawValue>,
        paths: [&'static str; 2],
        at: At,
        out: &mut Output,
    ) {
        self.calls = true;
        let text = input.filter(|input| input.get() != "null").map(plain).unwrap_or_default();
        let leaf = at.leaf(paths[0], paths[1], 0);
        let mut call = self.call(output, Channel::Arguments);
        let (id, name) = (call_id(item, call.lane), Text::from(name));
        match (at, call.begun) {
            (At::Added, false) => {
                call.begun = true;
                out.push(Body::ToolCallStart(Box::new(ToolCallStart { lane: call.lane, id, name })));
                if !text.is_empty() {
                    call.said = true;
                    out.delta(call.lane, text, leaf);
                }
            }
            (At::Added, true) => {}
            (_, false) => {
                // The beginning was not seen: this is all of it.
                (call.begun, call.said, call.ended) = (true, true, true);
                let whole = ToolCall { lane: call.lane, id, name, arguments: text };
                out.chunk(Chunk::from(Body::ToolCall(Box::new(whole))), leaf);
            }
            (_, true) => call.whole(text, leaf, out),
        }
        self.set_call(output, call);
    }

    /// A call that the provider runs: its input, then the item with all that it gave back.
    fn provider_call(&mut self, output: u64, item: &ItemWire<'_>, raw: &RawValue, at: At, out: &mut Output) {
        let mut call = self.call(output, Channel::ProviderTool);
        let id = item.id.filled().map_or_else(|| call_id(item, call.lane), Text::from);
        let name = item.name.filled().unwrap_or(item.kind.as_str());
        if !call.begun {
            call.begun = true;
            let start = ToolCallStart { lane: call.lane, id: id.clone(), name: name.into() };
            out.push(Body::ProviderToolStart(Box::new(start)));
        }
        if at != At::Added {
            if let Some(code) = filled(item.code) {
                call.whole(code, at.leaf("item/code", "response/output/*/code", 0), out);
            } else if let Some(arguments) = filled(item.arguments) {
                call.whole(arguments, at.leaf("item/arguments", "response/output/*/arguments", 0), out);
            }
            call.end(out);
        }
        self.set_call(output, call);
        if at != At::Added && self.show(output) {
            match filled(item.result).filter(|_| item.kind.as_str() == "image_generation_call") {
                Some(data) => {
                    let lane = Lane::TEXT.in_part(call.lane.part);
                    out.push(image(lane, &data, filled(item.output_format)));
                }
                None => {
                    let (name, lane) = (Text::from(item.kind.as_str()), call.lane);
                    let output = ProviderToolOutput { lane, id, name, output: Json::from(raw) };
                    out.push(Body::ProviderToolOutput(Box::new(output)));
                }
            }
        }
    }

    fn whole_call(&mut self, output: u64, channel: Channel, text: &RawValue, leaf: Leaf, out: &mut Output) {
        let mut call = self.call(output, channel);
        call.whole(plain(text), leaf, out);
        self.set_call(output, call);
    }

    fn end(&mut self, kind: &str, raw: &RawValue, out: &mut Output) -> Option<()> {
        let response: ResponseWire<'_> = parse(raw)?;
        out.ended = true;
        for (i, item) in response.output.iter().flat_map(|list| &list.0).enumerate() {
            self.item(i as u64, item, At::End(i), out);
        }
        for output in self.open.keys().map(|slot| slot.0).collect::<Vec<_>>() {
            self.end_parts(output, out);
        }
        if let Some(usage) = response.usage.and_then(usage_of) {
            out.push(Body::Usage(Box::new(usage)));
        }
        let status = response.status.filled().unwrap_or(kind.trim_start_matches("response."));
        if kind == "response.failed" || status == "failed" {
            let error = response.error.filter(|error| error.get() != "null");
            out.error(error.map_or_else(|| ErrorInfo::new(codes::ERROR), error_info));
        }
        if out.failed {
            out.stated_end = Some(status.into());
        } else if !self.finished {
            self.finished = true;
            out.push(self.finish_of(status, response.incomplete_details));
        }
        Some(())
    }

    fn finish_of(&self, status: &str, incomplete: Option<&RawValue>) -> Body {
        let stated = match status {
            "incomplete" => incomplete_reason(incomplete).unwrap_or_else(|| status.into()),
            status => status.into(),
        };
        let reason = match stated.as_str() {
            "completed" if self.calls => FinishReason::ToolCalls,
            "completed" => FinishReason::Stop,
            "max_output_tokens" => FinishReason::Length,
            "content_filter" => FinishReason::ContentFilter,
            _ => FinishReason::Other(stated.clone()),
        };
        Body::Finish(Box::new(Finish { choice: 0, reason, stated: Some(stated) }))
    }

    /// The ordinal of a part, which is begun if it is new.
    fn part(&mut self, slot: Slot, change: impl FnOnce(&mut Part)) -> u16 {
        if let Some(part) = self.parts.get_mut(&slot) {
            change(part);
            return part.ordinal;
        }
        let mut part = Part { ordinal: self.lanes.part(), ..Part::default() };
        change(&mut part);
        if self.parts.len() < Self::MOST {
            self.parts.insert(slot, part);
            self.open.insert(slot, part.ordinal);
        }
        part.ordinal
    }

    fn call(&mut self, output: u64, channel: Channel) -> Call {
        if let Some(call) = self.items.get(&output).and_then(|item| item.call) {
            return call;
        }
        let part = self.part((output, Kind::Item, 0), |_| {});
        let call = Call { lane: self.lanes.call(part, channel), begun: false, said: false, ended: false };
        self.set_call(output, call);
        call
    }

    fn set_call(&mut self, output: u64, call: Call) {
        if let Some(item) = self.item_mut(output) {
            item.call = Some(call);
        }
    }

    /// Whether the content of an item that comes once has still to be shown; it counts as shown from here on.
    fn show(&mut self, output: u64) -> bool {
        self.item_mut(output).is_none_or(|item| !std::mem::replace(&mut item.shown, true))
    }

    fn item_mut(&mut self, output: u64) -> Option<&mut Item> {
        let room = self.items.len() < Self::MOST || self.items.contains_key(&output);
        room.then(|| self.items.entry(output).or_default())
    }

    /// Ends the call and the parts of an item.
    fn end_parts(&mut self, output: u64, out: &mut Output) {
        if let Some(call) = self.items.get_mut(&output).and_then(|item| item.call.as_mut()) {
            call.end(out);
        }
        let of_item = (output, Kind::Content, 0)..=(output, Kind::Item, u64::MAX);
        while let Some((slot, part)) = self.open.range(of_item.clone()).next().map(|(slot, part)| (*slot, *part)) {
            self.open.remove(&slot);
            out.push(Body::PartEnd { choice: 0, part });
        }
    }
}

impl Call {
    /// The whole input: a repeat if it was said before.
    fn whole(&mut self, text: Text, leaf: Leaf, out: &mut Output) {
        if self.said {
            out.snapshot(self.lane, text, leaf);
        } else if !text.is_empty() {
            self.said = true;
            out.delta(self.lane, text, leaf);
        }
        self.end(out);
    }

    fn end(&mut self, out: &mut Output) {
        if self.begun && !self.ended {
            self.ended = true;
            out.push(match self.lane.channel {
                Channel::ProviderTool => Body::ProviderToolEnd(self.lane),
                _ => Body::ToolCallEnd(self.lane),
            });
        }
    }
}

const DELTA: Leaf = Leaf::new("delta", [0; 4]);

/// What a delta is a piece of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Grows {
    Part(Kind, Channel),
    Call(Channel),
}

impl Grows {
    fn of(kind: &str) -> Option<Self> {
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
    fn slot(self, [output, content, summary]: [u64; 3]) -> Slot {
        match self {
            Self::Part(Kind::Summary, _) => (output, Kind::Summary, summary),
            _ => (output, Kind::Content, content),
        }
    }
}

/// Reads a delta that has nothing but its text, without the general way.
fn growth_of(data: &str) -> Option<(Grows, [u64; 3], Str<'_>)> {
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

/// Where a text stands in a part, in the content of an item and in the summary of one.
struct Field {
    part: &'static str,
    content: [&'static str; 2],
    summary: [&'static str; 2],
}

impl PartWire<'_> {
    /// The channel, the text and its place.
    fn content(&self) -> (Channel, &str, Field) {
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

fn call_id(item: &ItemWire<'_>, lane: Lane) -> Text {
    item.call_id.filled().or(item.id.filled()).map_or_else(|| Output::made_up_id(lane), Text::from)
}

/// Whether an event only says that a provider's tool is at work.
fn is_progress(kind: &str) -> bool {
    let Some((tool, state)) = kind.strip_prefix("response.").and_then(|kind| kind.rsplit_once('.')) else {
        return false;
    };
    (tool.ends_with("_call") || tool == "mcp_list_tools")
        && matches!(state, "in_progress" | "searching" | "generating" | "interpreting" | "completed" | "failed")
}

fn incomplete_reason(details: Option<&RawValue>) -> Option<Text> {
    #[derive(Default, Deserialize)]
    struct Wire<'a> {
        #[serde(borrow)]
        reason: Str<'a>,
    }
    parse::<Wire<'_>>(details?)?.reason.filled().map(Text::from)
}

/// The provider's numbers. Input includes what a cache served and stored, output includes reasoning.
fn usage_of(raw: &RawValue) -> Option<Usage> {
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

fn image(lane: Lane, data: &str, format: Option<Text>) -> Body {
    let mime = format.map(|format| format!("image/{format}").into());
    Body::Media(Box::new(Media { lane, form: "image".into(), mime, data: MediaData::Base64(data.into()) }))
}

fn annotation(lane: Lane, form: &'static str, value: &RawValue) -> Body {
    Body::Annotation(Box::new(Annotation { lane, form: Text::from_static(form), value: Json::from(value) }))
}

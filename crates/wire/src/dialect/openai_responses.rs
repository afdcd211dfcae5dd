//! OpenAI Responses: items with parts, streamed as deltas and then repeated whole, up to three times.

#[cfg(test)]
mod tests;
mod wire;

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use streamkeeper_contract::{
    Body, Channel, Chunk, ErrorInfo, FinishReason, Json, Lane, Media, MediaData, MessageInfo, ProviderToolOutput, Text,
    ToolCall, ToolCallStart, codes,
};

use crate::output::{Leaf, Output};

use super::{
    Dialect, Event,
    chunks::{annotation, custom, finish, opaque},
    read::{Lanes, List, Str, error_info, filled, is_filled, parse, plain},
};
use wire::{
    At, Grows, ItemWire, Kind, PartWire, ResponseWire, Slot, Wire, growth_of, incomplete_reason, is_progress, usage_of,
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

impl Dialect for OpenAiResponses {
    fn event(&mut self, event: &Event<'_>, out: &mut Output) {
        match self.read(event, out) {
            Some(()) => out.known += 1,
            None => out.raw(event.name, event.data),
        }
    }
}

impl OpenAiResponses {
    /// At most so many items are tracked. What those past it repeat counts as said once more.
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
                let ordinal = self.part(grows.slot(at), out, |_| {});
                let note = annotation(Lane::new(channel).in_part(ordinal), "logprobs", logprobs);
                out.chunk(note, Leaf::new("logprobs", [0; 4]));
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
            "response.content_part.done" | "response.reasoning_part.done" => {
                self.whole_part(content, wire.part?, out)?;
            }
            "response.reasoning_summary_part.done" => self.whole_part(summary, wire.part?, out)?,
            "response.output_text.annotation.added" => {
                let ordinal = self.part(content, out, |part| part.annotated = true);
                let note = annotation(Lane::TEXT.in_part(ordinal), "citation", wire.annotation?);
                out.chunk(note, Leaf::new("annotation", [0; 4]));
            }

            "response.output_item.added" => self.item(output, wire.item?, At::Added, out)?,
            "response.output_item.done" => self.item(output, wire.item?, At::Done, out)?,
            "response.image_generation_call.partial_image" => {
                let lane = Lane::TEXT.in_part(self.part((output, Kind::Item, 0), out, |_| {}));
                out.push(image(lane, &filled(wire.partial_image_b64)?, None));
            }
            "response.audio.delta" => {
                let lane = Lane::new(Channel::Transcript).in_part(self.part(content, out, |_| {}));
                let data = MediaData::Base64(wire.delta.as_str().into());
                out.push(Body::Media(Box::new(Media { lane, form: "audio".into(), mime: None, data })));
            }

            "response.created" | "response.queued" | "response.in_progress" => self.begin(wire.response?, out)?,
            "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled" => {
                self.end(kind, wire.response?, out)?;
            }
            "error" => {
                let error = match wire.error.filter(|error| error.get() != "null") {
                    Some(error) => error_info(error),
                    None => error_info(serde_json::from_str(event.data).ok()?),
                };
                out.error_at(error, Leaf::new("error/message|message", [0; 4]));
            }
            "keepalive" | "response.audio.done" => {}
            kind if is_progress(kind) => {}
            _ => return None,
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
                        let ordinal = self.growing_part(slot, out, |part| part.said = true);
                        self.last = Some((slot, ordinal));
                        ordinal
                    }
                };
                out.delta(Lane::new(channel).in_part(ordinal), text, DELTA);
            }
            Grows::Call(channel) => {
                if self.items.get(&at[0]).and_then(|item| item.call).is_some_and(|call| call.ended) {
                    self.items.remove(&at[0]);
                }
                let mut call = self.call(at[0], channel, out);
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
            let ordinal = self.part(slot, out, |_| {});
            out.snapshot(Lane::new(channel).in_part(ordinal), text, leaf);
        } else if !text.is_empty() {
            let ordinal = self.growing_part(slot, out, |part| part.said = true);
            out.delta(Lane::new(channel).in_part(ordinal), text, leaf);
        }
    }

    fn begin_part(&mut self, slot: Slot, part: &RawValue, out: &mut Output) -> Option<()> {
        let part: PartWire<'_> = parse(part)?;
        let (channel, text, field) = part.content();
        let ordinal = self.part(slot, out, |_| {});
        out.push(Body::PartStart(Lane::new(channel).in_part(ordinal)));
        if !text.is_empty() {
            self.say(slot, channel, text.into(), Leaf::new(field.part, [0; 4]), out);
        }
        Some(())
    }

    fn whole_part(&mut self, slot: Slot, part: &RawValue, out: &mut Output) -> Option<()> {
        let part: PartWire<'_> = parse(part)?;
        let (channel, text, field) = part.content();
        self.say(slot, channel, text.into(), Leaf::new(field.part, [0; 4]), out);
        self.annotate(slot, &part, |i| super::read::leaf("part/annotations/*", &[i]), out);
        Some(())
    }

    /// The annotations of a part that comes whole, unless they came one by one.
    fn annotate(&mut self, slot: Slot, part: &PartWire<'_>, place: impl Fn(usize) -> Leaf, out: &mut Output) {
        let Some(List(annotations)) = part.annotations.as_ref().filter(|list| !list.0.is_empty()) else { return };
        let mut annotated = false;
        let ordinal = self.part(slot, out, |part| annotated = std::mem::replace(&mut part.annotated, true));
        if !annotated {
            for (i, value) in annotations.iter().enumerate() {
                out.chunk(annotation(Lane::TEXT.in_part(ordinal), "citation", value), place(i));
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
                out.chunk(custom(kind, raw), at.leaf(ITEM[0], ITEM[1], &[]));
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
                self.say(slot, channel, text.into(), at.leaf(paths[0], paths[1], &[i]), out);
                let place = |note| at.leaf(ANNOTATIONS[0], ANNOTATIONS[1], &[i, note]);
                self.annotate(slot, &part, place, out);
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
        let ordinal = self.part(first.unwrap_or((output, Kind::Item, 0)), out, |_| {});
        let lane = Lane::new(Channel::Reasoning).in_part(ordinal);
        let place = at.leaf("item/encrypted_content", "response/output/*/encrypted_content", &[]);
        out.chunk(opaque(lane, "encrypted", &data), place);
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
        let leaf = at.leaf(paths[0], paths[1], &[]);
        let mut call = self.call(output, Channel::Arguments, out);
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
        let mut call = self.call(output, Channel::ProviderTool, out);
        let id = item.id.filled().map_or_else(|| call_id(item, call.lane), Text::from);
        let name = item.name.filled().unwrap_or(item.kind.as_str());
        if !call.begun {
            call.begun = true;
            let start = ToolCallStart { lane: call.lane, id: id.clone(), name: name.into() };
            out.push(Body::ProviderToolStart(Box::new(start)));
        }
        if at != At::Added {
            if let Some(code) = filled(item.code) {
                call.whole(code, at.leaf("item/code", "response/output/*/code", &[]), out);
            } else if let Some(arguments) = filled(item.arguments) {
                call.whole(arguments, at.leaf("item/arguments", "response/output/*/arguments", &[]), out);
            }
            call.end(out);
        }
        self.set_call(output, call);
        if at == At::Added {
            return;
        }
        match filled(item.result).filter(|_| item.kind.as_str() == "image_generation_call") {
            Some(data) if self.show(output) => {
                let lane = Lane::TEXT.in_part(call.lane.part);
                out.push(image(lane, &data, filled(item.output_format)));
            }
            Some(_) => {}
            // Shown as often as it is written, so that nothing passes that was changed before.
            None => {
                let (name, lane) = (Text::from(item.kind.as_str()), call.lane);
                let output = ProviderToolOutput { lane, id, name, output: Json::from(raw) };
                out.chunk(Body::ProviderToolOutput(Box::new(output)).into(), at.leaf(ITEM[0], ITEM[1], &[]));
            }
        }
    }

    fn whole_call(&mut self, output: u64, channel: Channel, text: &RawValue, leaf: Leaf, out: &mut Output) {
        let mut call = self.call(output, channel, out);
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
            let error = error.map_or_else(|| ErrorInfo::new(codes::ERROR), error_info);
            out.error_at(error, Leaf::new("response/error/message", [0; 4]));
        }
        if out.failed {
            out.stated_end = Some(status.into());
        } else if !self.finished {
            self.finished = true;
            out.push(self.finish_of(status, response.incomplete_details));
        }
        Some(())
    }

    fn finish_of(&self, status: &str, incomplete: Option<&RawValue>) -> Chunk {
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
        finish(0, reason, Some(stated))
    }

    /// The ordinal of a part, which is begun if it is new.
    fn part(&mut self, slot: Slot, out: &mut Output, change: impl FnOnce(&mut Part)) -> u16 {
        if let Some(part) = self.parts.get_mut(&slot) {
            change(part);
            return part.ordinal;
        }
        let mut part = Part { ordinal: self.lanes.part(out), ..Part::default() };
        change(&mut part);
        self.parts.insert(slot, part);
        self.open.insert(slot, part.ordinal);
        part.ordinal
    }

    /// The same for a part that gets text: what grows after its end is another part.
    fn growing_part(&mut self, slot: Slot, out: &mut Output, change: impl FnOnce(&mut Part)) -> u16 {
        if !self.open.contains_key(&slot) {
            self.parts.remove(&slot);
        }
        self.part(slot, out, change)
    }

    fn call(&mut self, output: u64, channel: Channel, out: &mut Output) -> Call {
        if let Some(call) = self.items.get(&output).and_then(|item| item.call) {
            return call;
        }
        let part = self.growing_part((output, Kind::Item, 0), out, |_| {});
        let call = Call { lane: self.lanes.call(part, channel, out), begun: false, said: false, ended: false };
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
        self.last = None;
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
        let is_new = !self.said && !text.is_empty();
        self.said |= is_new;
        match is_new {
            true if !self.ended => out.delta(self.lane, text, leaf),
            false if !self.said => {}
            _ => out.snapshot(self.lane, text, leaf),
        }
        self.end(out);
    }

    fn end(&mut self, out: &mut Output) {
        if !std::mem::replace(&mut self.ended, true) && self.begun {
            out.push(match self.lane.channel {
                Channel::ProviderTool => Body::ProviderToolEnd(self.lane),
                _ => Body::ToolCallEnd(self.lane),
            });
        }
    }
}

const ITEM: [&str; 2] = ["item", "response/output/*"];
const ANNOTATIONS: [&str; 2] = ["item/content/*/annotations/*", "response/output/*/content/*/annotations/*"];
const DELTA: Leaf = Leaf::new("delta", [0; 4]);

fn call_id(item: &ItemWire<'_>, lane: Lane) -> Text {
    item.call_id.filled().or(item.id.filled()).map_or_else(|| Output::made_up_id(lane), Text::from)
}

fn image(lane: Lane, data: &str, format: Option<Text>) -> Body {
    let mime = format.map(|format| format!("image/{format}").into());
    Body::Media(Box::new(Media { lane, form: "image".into(), mime, data: MediaData::Base64(data.into()) }))
}

//! Anthropic Messages: one message of blocks, one block after the other.

use std::{collections::VecDeque, fmt::Write as _};

use streamkeeper_contract::{Body, Channel, Chunk, FinishReason, Lane, Opaque, Outcome, Usage};

use crate::{ending::Ending, json::Quoted};

use super::{Head, Out, Seen};

/// The most text that waits for the end of a call.
const MAX_WAITING: usize = 1024 * 1024;

/// One message.
#[derive(Debug, Default)]
pub(super) struct Anthropic {
    begun: bool,
    error: bool,
    /// The blocks that are open.
    open: Vec<Block>,
    next: u32,
    reason: Option<FinishReason>,
    /// Chunks that wait for the end of the open call, and their size.
    waiting: VecDeque<(Chunk, bool)>,
    waiting_len: usize,
}

#[derive(Debug)]
struct Block {
    lane: Lane,
    index: u32,
    is_call: bool,
}

impl Anthropic {
    pub(super) fn push(&mut self, chunk: &Chunk, head: &Head, seen: &Seen, out: &mut Out<'_>) {
        match chunk.body() {
            Body::Finish(finish) if finish.choice == 0 => {
                self.settle(head, seen, out);
                self.reason.get_or_insert_with(|| finish.reason.clone());
            }
            Body::Error(error) => {
                self.settle(head, seen, out);
                self.begin(head, seen, out);
                self.close_all(out);
                self.error = true;
                let message = error.message.as_deref().unwrap_or(&error.code);
                let (code, message) = (Quoted(&error.code), Quoted(message));
                out.event(
                    Some("error"),
                    &format!(r#"{{"type":"error","error":{{"type":{code},"message":{message}}}}}"#),
                );
            }
            Body::End(end) => {
                self.settle(head, seen, out);
                self.end(end.outcome(), head, seen, out);
            }
            _ => self.content(chunk, seen.new_text, head, seen, out),
        }
    }

    /// Takes a chunk of content, or lets it wait for the end of the call that is open.
    fn content(&mut self, chunk: &Chunk, new_text: bool, head: &Head, seen: &Seen, out: &mut Out<'_>) {
        let Some(lane) = chunk.lane().filter(|lane| lane.choice == 0) else {
            if let Body::PartEnd { choice: 0, part } = chunk.body() {
                self.close(|block| block.lane.part == *part && !block.is_call, out);
            }
            return;
        };
        if self.has_to_wait(chunk, lane) {
            self.waiting_len += size_of_waiting(chunk);
            return self.waiting.push_back((chunk.clone(), new_text));
        }
        self.write(chunk, lane, new_text, head, seen, out);
        if let Body::ToolCallEnd(_) = chunk.body() {
            self.go_on(head, seen, out);
        }
    }

    fn has_to_wait(&self, chunk: &Chunk, lane: Lane) -> bool {
        let call = self.open.iter().find(|block| block.is_call);
        call.is_some_and(|call| call.lane != lane) && self.waiting_len + size_of_waiting(chunk) <= MAX_WAITING
    }

    /// Writes what waited, as far as no other call makes it wait again.
    fn go_on(&mut self, head: &Head, seen: &Seen, out: &mut Out<'_>) {
        let mut work = std::mem::take(&mut self.waiting);
        self.waiting_len = 0;
        while let Some((chunk, new_text)) = work.pop_front() {
            let Some(lane) = chunk.lane() else { continue };
            if self.has_to_wait(&chunk, lane) {
                self.waiting_len += size_of_waiting(&chunk);
                self.waiting.push_back((chunk, new_text));
                continue;
            }
            self.write(&chunk, lane, new_text, head, seen, out);
            if let Body::ToolCallEnd(_) = chunk.body() {
                self.waiting_len = 0;
                self.waiting.drain(..).rev().for_each(|waiting| work.push_front(waiting));
            }
        }
    }

    /// Ends calls that have no end, and writes what waited for it.
    fn settle(&mut self, head: &Head, seen: &Seen, out: &mut Out<'_>) {
        loop {
            self.close(|block| block.is_call, out);
            if self.waiting.is_empty() {
                return;
            }
            self.go_on(head, seen, out);
        }
    }

    fn write(&mut self, chunk: &Chunk, lane: Lane, new_text: bool, head: &Head, seen: &Seen, out: &mut Out<'_>) {
        match chunk.body() {
            Body::Delta { text, .. } => self.text(lane, text, head, seen, out),
            Body::Snapshot(snapshot) if new_text => self.text(lane, &snapshot.text, head, seen, out),
            Body::ToolCallStart(call) => self.call(lane, &call.id, &call.name, head, seen, out),
            Body::ToolCall(call) => {
                self.call(lane, &call.id, &call.name, head, seen, out);
                self.text(lane, &call.arguments, head, seen, out);
                self.close(|block| block.lane == lane, out);
            }
            Body::ToolCallEnd(_) => self.close(|block| block.lane == lane, out),
            Body::Opaque(opaque) => self.opaque(opaque, head, seen, out),
            _ => {}
        }
    }

    fn text(&mut self, lane: Lane, text: &str, head: &Head, seen: &Seen, out: &mut Out<'_>) {
        let (kind, member) = match lane.channel {
            _ if text.is_empty() => return,
            Channel::Text | Channel::Refusal => ("text_delta", "text"),
            Channel::Reasoning => ("thinking_delta", "thinking"),
            Channel::Arguments => ("input_json_delta", "partial_json"),
            _ => return,
        };
        let index = match self.open.iter().find(|block| block.lane == lane) {
            Some(block) => block.index,
            // Arguments of a call that never began have nobody to belong to.
            None if lane.channel == Channel::Arguments => return,
            None => self.open(lane, head, seen, out),
        };
        let text = Quoted(text);
        out.event(
            Some("content_block_delta"),
            &format!(
                r#"{{"type":"content_block_delta","index":{index},"delta":{{"type":"{kind}","{member}":{text}}}}}"#
            ),
        );
    }

    /// Opens a block of text or thinking.
    fn open(&mut self, lane: Lane, head: &Head, seen: &Seen, out: &mut Out<'_>) -> u32 {
        let block = match lane.channel {
            Channel::Reasoning => r#"{"type":"thinking","thinking":"","signature":""}"#,
            _ => r#"{"type":"text","text":""}"#,
        };
        self.start(lane, block, false, head, seen, out)
    }

    fn call(&mut self, lane: Lane, id: &str, name: &str, head: &Head, seen: &Seen, out: &mut Out<'_>) {
        let (id, name) = (Quoted(id), Quoted(name));
        let block = format!(r#"{{"type":"tool_use","id":{id},"name":{name},"input":{{}}}}"#);
        self.start(lane, &block, true, head, seen, out);
    }

    fn start(&mut self, lane: Lane, block: &str, is_call: bool, head: &Head, seen: &Seen, out: &mut Out<'_>) -> u32 {
        self.begin(head, seen, out);
        self.close(|block| !block.is_call, out);
        let index = self.next;
        self.next += 1;
        self.open.push(Block { lane, index, is_call });
        out.event(
            Some("content_block_start"),
            &format!(r#"{{"type":"content_block_start","index":{index},"content_block":{block}}}"#),
        );
        index
    }

    fn opaque(&mut self, opaque: &Opaque, head: &Head, seen: &Seen, out: &mut Out<'_>) {
        let data = Quoted(&opaque.data);
        if opaque.form == "signature" {
            let open = self.open.iter().find(|block| block.lane == opaque.lane).map(|block| block.index);
            let index = open.unwrap_or_else(|| self.open(opaque.lane.in_channel(Channel::Reasoning), head, seen, out));
            out.event(
                Some("content_block_delta"),
                &format!(
                    r#"{{"type":"content_block_delta","index":{index},"delta":{{"type":"signature_delta","signature":{data}}}}}"#
                ),
            );
        } else {
            let block = format!(r#"{{"type":"redacted_thinking","data":{data}}}"#);
            self.start(opaque.lane, &block, false, head, seen, out);
            self.close(|block| block.lane == opaque.lane, out);
        }
    }

    fn close(&mut self, which: impl Fn(&Block) -> bool, out: &mut Out<'_>) {
        self.open.retain(|block| {
            let closes = which(block);
            if closes {
                let index = block.index;
                out.event(Some("content_block_stop"), &format!(r#"{{"type":"content_block_stop","index":{index}}}"#));
            }
            !closes
        });
    }

    fn close_all(&mut self, out: &mut Out<'_>) {
        self.close(|_| true, out);
    }

    fn begin(&mut self, head: &Head, seen: &Seen, out: &mut Out<'_>) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        let (id, model) = (Quoted(head.id()), Quoted(head.model()));
        let usage = usage_of(seen.usage.as_ref(), true);
        out.event(
            Some("message_start"),
            &format!(
                r#"{{"type":"message_start","message":{{"id":{id},"type":"message","role":"assistant","model":{model},"content":[],"stop_reason":null,"stop_sequence":null,"usage":{usage}}}}}"#
            ),
        );
    }

    fn end(&mut self, outcome: &Outcome, head: &Head, seen: &Seen, out: &mut Out<'_>) {
        if self.error {
            return;
        }
        self.begin(head, seen, out);
        self.close_all(out);
        let ending = Ending::of(outcome);
        let reason = match (&ending, &self.reason, outcome) {
            (Some(_), None, _) => "refusal",
            (_, Some(reason), _) | (None, None, Outcome::Finished { reason }) => stop_reason(reason),
            _ => "end_turn",
        };
        let (reason, usage) = (Quoted(reason), usage_of(seen.usage.as_ref(), false));
        out.event(
            Some("message_delta"),
            &format!(
                r#"{{"type":"message_delta","delta":{{"stop_reason":{reason},"stop_sequence":null}},"usage":{usage}}}"#
            ),
        );
        if let Some(ending) = ending.filter(|ending| !ending.is_stop) {
            out.event(Some("error"), &format!(r#"{{"type":"error",{}}}"#, ending.anthropic_error()));
        }
        out.event(Some("message_stop"), r#"{"type":"message_stop"}"#);
    }
}

fn size_of_waiting(chunk: &Chunk) -> usize {
    chunk.text().map_or(0, str::len) + size_of::<Chunk>()
}

fn stop_reason(reason: &FinishReason) -> &str {
    match reason {
        FinishReason::Stop | FinishReason::Unstated => "end_turn",
        FinishReason::Length => "max_tokens",
        FinishReason::ToolCalls => "tool_use",
        FinishReason::ContentFilter | FinishReason::Refusal => "refusal",
        FinishReason::Pause => "pause_turn",
        reason => reason.as_str(),
    }
}

/// Usage in Anthropic's buckets. At the beginning of a message all numbers have to be there.
fn usage_of(usage: Option<&Usage>, begins: bool) -> String {
    let unknown = Usage::default();
    let usage = usage.unwrap_or(&unknown);
    let output = usage.output_total().or(usage.stated.output).unwrap_or(0);
    let input = usage.uncached_input.or_else(|| usage.stated.input.filter(|_| usage.input().is_none()));
    let mut json = format!(r#"{{"output_tokens":{output}"#);
    for (member, count) in [
        ("input_tokens", input.or(begins.then_some(0))),
        ("cache_read_input_tokens", usage.cache_read),
        ("cache_creation_input_tokens", usage.cache_write),
    ] {
        if let Some(count) = count {
            let _ = write!(json, r#","{member}":{count}"#);
        }
    }
    json.push('}');
    json
}

//! Decoding one text event of each format, and three other ways to read it.

use std::{hint::black_box, pin::pin};

use bytes::Bytes;
use eventsource_stream::Eventsource as _;
use futures_util::{FutureExt as _, Stream, StreamExt as _, stream};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::Value;
use streamkeeper_contract::ChunkKind;
use streamkeeper_wire::{Decoder, Format, Framing, frame::Framer};

/// A stream of many text events in one format.
#[derive(Debug)]
pub struct Input {
    /// The format.
    pub format: Format,
    /// What makes the decoder ready for text: whatever this format sends first.
    opening: &'static str,
    event: &'static str,
}

/// As providers send them: with all the fields that come along, and a few characters of text.
pub const INPUTS: &[Input] = &[
    Input {
        format: Format::OpenAiChat,
        opening: "",
        event: "data: {\"id\":\"chatcmpl-CbJ0aVb1M9yQ2Xk7d4WnE5tRz8uPo\",\"object\":\"chat.completion.chunk\",\"created\":1767225600,\"model\":\"gpt-5-mini-2025-08-07\",\"service_tier\":\"default\",\"system_fingerprint\":\"fp_a3f1c2e9b7\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" orders\"},\"logprobs\":null,\"finish_reason\":null}],\"usage\":null,\"obfuscation\":\"kT9wQz\"}\n\n",
    },
    Input {
        format: Format::OpenAiCompletions,
        opening: "",
        event: "data: {\"id\":\"cmpl-CbJ0aVb1M9yQ2Xk7d4WnE5tRz8uPo\",\"object\":\"text_completion\",\"created\":1767225600,\"choices\":[{\"text\":\" orders\",\"index\":0,\"logprobs\":null,\"finish_reason\":null}],\"model\":\"gpt-3.5-turbo-instruct:20230824-v2\"}\n\n",
    },
    Input {
        format: Format::OpenAiResponses,
        opening: "event: response.output_item.added\ndata: {\"type\":\"response.output_item.added\",\"sequence_number\":2,\"output_index\":0,\"item\":{\"id\":\"msg_68af4030592c81938ec0a5fbab4a3e9f05438e46b5f69a3b\",\"type\":\"message\",\"status\":\"in_progress\",\"content\":[],\"role\":\"assistant\"}}\n\n",
        event: "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"sequence_number\":4,\"item_id\":\"msg_68af4030592c81938ec0a5fbab4a3e9f05438e46b5f69a3b\",\"output_index\":0,\"content_index\":0,\"delta\":\" orders\",\"logprobs\":[],\"obfuscation\":\"lq8Yw2bXz\"}\n\n",
    },
    Input {
        format: Format::AnthropicMessages,
        opening: "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_01XFDUDYJgAACzvnptvVoYEL\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"claude-sonnet-4-5-20250929\",\"content\":[],\"stop_reason\":null,\"stop_sequence\":null,\"usage\":{\"input_tokens\":25,\"output_tokens\":1}}}\n\nevent: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
        event: "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\" orders\"}    }\n\n",
    },
    Input {
        format: Format::Gemini,
        opening: "",
        event: "data: {\"candidates\": [{\"content\": {\"parts\": [{\"text\": \" orders\"}],\"role\": \"model\"},\"index\": 0}],\"usageMetadata\": {\"promptTokenCount\": 96,\"candidatesTokenCount\": 8,\"totalTokenCount\": 121,\"promptTokensDetails\": [{\"modality\": \"TEXT\",\"tokenCount\": 96}],\"thoughtsTokenCount\": 17},\"modelVersion\": \"gemini-2.5-flash\",\"responseId\": \"aK1ZafKkHJqP1dkP4Zq1wQc\"}\r\n\r\n",
    },
    Input {
        format: Format::CohereV2,
        opening: "event: message-start\ndata: {\"type\":\"message-start\",\"id\":\"29f14a5a-11de-4cae-9800-25e4747408ea\",\"delta\":{\"message\":{\"role\":\"assistant\",\"content\":[],\"tool_plan\":\"\",\"tool_calls\":[],\"citations\":[]}}}\n\nevent: content-start\ndata: {\"type\":\"content-start\",\"index\":0,\"delta\":{\"message\":{\"content\":{\"type\":\"text\",\"text\":\"\"}}}}\n\n",
        event: "event: content-delta\ndata: {\"type\":\"content-delta\",\"index\":0,\"delta\":{\"message\":{\"content\":{\"text\":\" orders\"}}}}\n\n",
    },
    Input {
        format: Format::AgUi,
        opening: "data: {\"type\":\"RUN_STARTED\",\"threadId\":\"thread-1\",\"runId\":\"run-1\"}\n\ndata: {\"type\":\"TEXT_MESSAGE_START\",\"messageId\":\"0b1c9f6e-5f0e-4f51-9d0c-5a5f0f5a7a11\",\"role\":\"assistant\"}\n\n",
        event: "data: {\"type\":\"TEXT_MESSAGE_CONTENT\",\"timestamp\":1767225600123,\"messageId\":\"0b1c9f6e-5f0e-4f51-9d0c-5a5f0f5a7a11\",\"delta\":\" orders\"}\n\n",
    },
    Input {
        format: Format::Ollama,
        opening: "",
        event: "{\"model\":\"llama3.2\",\"created_at\":\"2026-01-01T09:00:00.123456789Z\",\"message\":{\"role\":\"assistant\",\"content\":\" orders\"},\"done\":false}\n",
    },
    Input {
        format: Format::ClaudeCode,
        opening: "{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"5f0e4f51-9d0c-4a5f-8f5a-7a110b1c9f6e\",\"tools\":[],\"mcp_servers\":[],\"model\":\"claude-sonnet-4-5\"}\n{\"type\":\"stream_event\",\"event\":{\"type\":\"message_start\",\"message\":{\"id\":\"msg_01\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"claude-sonnet-4-5\",\"content\":[],\"stop_reason\":null,\"stop_sequence\":null,\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}},\"session_id\":\"5f0e4f51-9d0c-4a5f-8f5a-7a110b1c9f6e\",\"parent_tool_use_id\":null,\"uuid\":\"7a110b1c-9f6e-4f51-9d0c-5a5f0f5a7a11\"}\n{\"type\":\"stream_event\",\"event\":{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}},\"session_id\":\"5f0e4f51-9d0c-4a5f-8f5a-7a110b1c9f6e\",\"parent_tool_use_id\":null,\"uuid\":\"7a110b1c-9f6e-4f51-9d0c-5a5f0f5a7a12\"}\n",
        event: "{\"type\":\"stream_event\",\"event\":{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\" orders\"}},\"session_id\":\"5f0e4f51-9d0c-4a5f-8f5a-7a110b1c9f6e\",\"parent_tool_use_id\":null,\"uuid\":\"7a110b1c-9f6e-4f51-9d0c-5a5f0f5a7a13\"}\n",
    },
];

/// How many bytes a read gives: a TLS record holds up to sixteen times as much, a busy provider sends less.
const READ: usize = 1024;

impl Input {
    /// A body of so many text events.
    pub fn body(&self, events: usize) -> Vec<u8> {
        [self.opening, &self.event.repeat(events)].concat().into_bytes()
    }

    fn framing(&self) -> Framing {
        if self.event.starts_with('{') { Framing::JsonLines } else { Framing::Sse }
    }

    /// Whether the other ways can read it: they know server-sent events only.
    pub fn is_sse(&self) -> bool {
        self.framing() == Framing::Sse
    }

    /// Ours: bytes to chunks. Returns how many text chunks there were.
    pub fn decode(&self, body: &[u8]) -> usize {
        let mut decoder = Decoder::new(self.format);
        let mut texts = 0;
        for read in body.chunks(READ) {
            decoder.push(black_box(read)).expect("the body is well formed");
            while let Some(chunk) = decoder.next_chunk() {
                texts += usize::from(black_box(&chunk).kind() == ChunkKind::ContentDelta);
            }
        }
        texts
    }

    /// The baseline: our framing, and the payload's JSON skipped by serde. Returns how many events there were.
    pub fn skip(&self, body: &[u8]) -> usize {
        let mut framer = Framer::new(self.framing());
        let mut events = 0;
        for read in body.chunks(READ) {
            framer.push(black_box(read));
            while let Some(frame) = framer.next_frame().expect("no event is too large") {
                let Some(data) = frame.data else { continue };
                black_box(serde_json::from_str::<IgnoredAny>(data).expect("the payload is JSON"));
                events += 1;
            }
        }
        events
    }

    /// Our framing alone. Returns how many events there were.
    pub fn frame(&self, body: &[u8]) -> usize {
        let mut framer = Framer::new(self.framing());
        let mut events = 0;
        for read in body.chunks(READ) {
            framer.push(black_box(read));
            while let Some(frame) = framer.next_frame().expect("no event is too large") {
                events += usize::from(black_box(frame.data).is_some());
            }
        }
        events
    }
}

/// The body as a client's stream of reads.
fn reads(body: &[u8]) -> impl Stream<Item = Result<Bytes, std::io::Error>> + use<> {
    let body = Bytes::copy_from_slice(body);
    stream::iter((0..body.len()).step_by(READ).map(move |at| Ok(body.slice(at..body.len().min(at + READ)))))
}

fn count(events: impl Stream<Item = bool>) -> usize {
    let counted = pin!(events.fold(0, |count, is_event| std::future::ready(count + usize::from(is_event))));
    counted.now_or_never().expect("the reads are all there")
}

/// `eventsource-stream`, then serde_json into `T`.
pub fn eventsource_stream<T: for<'a> Deserialize<'a>>(body: &[u8]) -> usize {
    count(reads(body).eventsource().map(|event| {
        let event = event.expect("the body is well formed");
        black_box(serde_json::from_str::<T>(&event.data)).is_ok()
    }))
}

/// `sseer`, then serde_json into `T`.
pub fn sseer<T: for<'a> Deserialize<'a>>(body: &[u8]) -> usize {
    count(sseer::EventStream::new(reads(body)).map(|event| {
        let event = event.expect("the body is well formed");
        black_box(serde_json::from_str::<T>(&event.data)).is_ok()
    }))
}

/// Any JSON.
pub type Untyped = Value;

/// An OpenAI chat event with the fields that a client reads, as a client would write it down.
#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "decoded to be measured")]
pub struct ChatEvent {
    id: String,
    created: u64,
    model: String,
    choices: Vec<Choice>,
    usage: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "decoded to be measured")]
struct Choice {
    index: u32,
    delta: Delta,
    finish_reason: Option<String>,
}

#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "decoded to be measured")]
struct Delta {
    role: Option<String>,
    content: Option<String>,
    refusal: Option<String>,
    tool_calls: Option<Vec<Value>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_reads_every_event() {
        for input in INPUTS {
            let body = input.body(100);
            let openings = input.skip(&input.body(0));
            assert_eq!(input.decode(&body), 100, "{}", input.format);
            assert_eq!(input.skip(&body), 100 + openings, "{}", input.format);
            assert_eq!(input.frame(&body), 100 + openings, "{}", input.format);
            if input.is_sse() {
                assert_eq!(eventsource_stream::<Untyped>(&body), 100 + openings);
                assert_eq!(sseer::<Untyped>(&body), 100 + openings);
            }
        }
        let chat = &INPUTS[0];
        assert_eq!(eventsource_stream::<ChatEvent>(&chat.body(100)), 100);
        assert_eq!(sseer::<ChatEvent>(&chat.body(100)), 100);
    }
}

//! Faults that users of such decoders reported, each with its right outcome.

use streamkeeper_contract::{Body, Chunk, FinishReason};
use streamkeeper_wire::{Decoder, Format, Framing, Inspection, Limits, WireError, frame::Framer};

use crate::frames::frames;

/// All chunks of a body that comes in these reads.
fn decode(decoder: &mut Decoder, reads: &[&[u8]]) -> Result<Vec<Chunk>, WireError> {
    let mut chunks = Vec::new();
    for read in reads {
        decoder.push(read)?;
        chunks.extend(std::iter::from_fn(|| decoder.next_chunk()));
    }
    decoder.finish()?;
    chunks.extend(std::iter::from_fn(|| decoder.next_chunk()));
    Ok(chunks)
}

fn text(chunks: &[Chunk]) -> String {
    chunks.iter().filter(|chunk| matches!(chunk.body(), Body::Delta { .. })).filter_map(Chunk::text).collect()
}

fn finishes(chunks: &[Chunk]) -> Vec<FinishReason> {
    let reason = |chunk: &Chunk| match chunk.body() {
        Body::Finish(finish) => Some(finish.reason.clone()),
        _ => None,
    };
    chunks.iter().filter_map(reason).collect()
}

fn errors(chunks: &[Chunk]) -> usize {
    chunks.iter().filter(|chunk| matches!(chunk.body(), Body::Error(_))).count()
}

fn inspect(format: Format, reads: &[&[u8]]) -> Inspection {
    let mut decoder = Decoder::new(format);
    for read in reads {
        decoder.push(read).unwrap();
    }
    decoder.finish().unwrap();
    Inspection::of(&mut decoder)
}

// spec 2.2
#[test]
fn a_crlf_cut_in_two_is_one_line_end() {
    let reads: [&[u8]; 4] = [b"event: delta\r\ndata: X\r", b"\ndata: Y\r\n\r", b"\n", b"data: Z\r\n\r\n"];
    let body = reads.concat();
    let cuts = (0..=body.len()).map(|at| vec![&body[..at], &body[at..]]);
    for reads in cuts.chain([reads.to_vec()]) {
        let (frames, error) = frames(Framer::new(Framing::Sse), reads.iter().copied());
        assert_eq!(error, None);
        let events: Vec<_> = frames.iter().map(|frame| (frame.name.as_deref(), frame.data.as_deref())).collect();
        assert_eq!(events, [(Some("delta"), Some("X\nY")), (None, Some("Z"))]);
    }
}

// spec 2.2
#[test]
fn characters_cut_in_two_are_joined() {
    let body = concat!(
        "data: {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\"choices\":[{\"index\":0,",
        "\"delta\":{\"content\":\"价格 5€ 🙂\"},\"finish_reason\":null}]}\n\n",
        "data: {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\"choices\":[{\"index\":0,",
        "\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
    )
    .as_bytes();
    for at in 0..=body.len() {
        let mut decoder = Decoder::new(Format::OpenAiChat);
        let chunks = decode(&mut decoder, &[&body[..at], &body[at..]]).unwrap();
        assert_eq!(text(&chunks), "价格 5€ 🙂");
        assert_eq!(finishes(&chunks), [FinishReason::Stop]);
        assert_eq!((errors(&chunks), decoder.stats().invalid_utf8, decoder.stats().end_mark), (0, 0, Some(true)));
    }
}

// spec 2.2
#[test]
fn a_comment_makes_no_event() {
    let mut decoder = Decoder::new(Format::OpenAiChat);
    let chunks = decode(
        &mut decoder,
        &[
            b": processing\n\n: processing\n\n",
            b"id: 7\ndata: {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":null}]}\n\n",
            b": ping\n\n",
            b"data: {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
        ],
    )
    .unwrap();
    assert_eq!((text(&chunks).as_str(), finishes(&chunks)), ("Hi", vec![FinishReason::Stop]));
    // Two of JSON and the end mark.
    assert_eq!((decoder.stats().events, decoder.stats().unknown, errors(&chunks)), (3, 0, 0));
}

const DELTA: &[u8] = b"event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"item_id\":\"m1\",\"output_index\":0,\"content_index\":0,\"delta\":\"Hi\"}\n\n";

// spec 2.2, 2.4
#[test]
fn a_last_event_without_its_blank_line_is_delivered_if_it_is_whole() {
    let last = b"event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"r1\",\"status\":\"completed\",\"usage\":{\"input_tokens\":11,\"output_tokens\":2,\"total_tokens\":13}}}";
    let mut decoder = Decoder::new(Format::OpenAiResponses);
    let chunks = decode(&mut decoder, &[DELTA, last]).unwrap();
    assert_eq!((text(&chunks).as_str(), finishes(&chunks)), ("Hi", vec![FinishReason::Stop]));
    let stats = decoder.stats();
    assert_eq!((stats.unterminated, stats.cut_off, stats.end_mark), (true, false, Some(true)));
    let usage = inspect(Format::OpenAiResponses, &[DELTA, last]).usage;
    assert_eq!((usage.input, usage.output), (Some(11), Some(2)));
}

// spec 2.2, 2.4
#[test]
fn a_last_event_that_is_cut_is_no_finish() {
    let cut = b"event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"r1\",\"status\":\"completed\",\"usage\":{\"input_tokens\":1";
    let mut decoder = Decoder::new(Format::OpenAiResponses);
    let chunks = decode(&mut decoder, &[DELTA, cut]).unwrap();
    assert_eq!((text(&chunks).as_str(), finishes(&chunks)), ("Hi", vec![]));
    let stats = decoder.stats();
    assert_eq!((stats.unterminated, stats.cut_off, stats.end_mark), (false, true, Some(false)));
}

// spec 2.3
#[test]
fn an_event_that_never_ends_is_an_error_at_the_limit() {
    let mut limits = Limits::default();
    limits.event_bytes = 1024 * 1024;
    let mut decoder = Decoder::new(Format::OpenAiResponses).limits(limits);
    decoder.push(DELTA).unwrap();
    decoder.push(b"data: ").unwrap();
    let mut pushed = 0;
    let error = loop {
        match decoder.push(&[b'x'; 4096]) {
            Ok(()) => pushed += 4096,
            Err(error) => break error,
        }
        assert!(pushed <= 1024 * 1024, "{pushed} bytes of one event were taken");
    };
    assert_eq!((error.code(), error), ("event_too_large", WireError::EventTooLarge { limit: 1024 * 1024 }));
    assert_eq!(decoder.push(b"\n\n"), Err(WireError::EventTooLarge { limit: 1024 * 1024 }));
    let chunks: Vec<Chunk> = std::iter::from_fn(|| decoder.next_chunk()).collect();
    assert_eq!((text(&chunks).as_str(), finishes(&chunks)), ("Hi", vec![]));
}

// spec 2.6
#[test]
fn usage_behind_the_finish_is_read() {
    let reads: [&[u8]; 6] = [
        b"data: {\"id\":\"\",\"object\":\"\",\"model\":\"\",\"choices\":[],\"prompt_filter_results\":[{\"prompt_index\":0}]}\n\n",
        b"data: {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"Hi\"},\"finish_reason\":null}],\"usage\":null}\n\n",
        b"data: {\"id\":\"\",\"object\":\"\",\"model\":\"\",\"choices\":[{\"index\":0,\"finish_reason\":null,\"content_filter_offsets\":{\"check_offset\":2}}],\"usage\":null}\n\n",
        b"data: {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":null}\n\n",
        b"data: {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\"choices\":[],\"usage\":{\"prompt_tokens\":31,\"completion_tokens\":4,\"total_tokens\":35}}\n\n",
        b"data: [DONE]\n\n",
    ];
    let mut decoder = Decoder::new(Format::OpenAiChat);
    let chunks = decode(&mut decoder, &reads).unwrap();
    assert_eq!((text(&chunks).as_str(), finishes(&chunks), errors(&chunks)), ("Hi", vec![FinishReason::Stop], 0));
    let usage = inspect(Format::OpenAiChat, &reads).usage;
    assert_eq!((usage.input, usage.output), (Some(31), Some(4)));
}

// spec 2.7
#[test]
fn text_in_the_event_of_the_finish_comes_before_the_finish() {
    let mut decoder = Decoder::new(Format::OpenAiChat);
    let chunks = decode(
        &mut decoder,
        &[
            b"data: {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"4\"},\"finish_reason\":null}]}\n\n",
            b"data: {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"2.\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
        ],
    )
    .unwrap();
    let order: Vec<String> = chunks
        .iter()
        .filter_map(|chunk| match chunk.body() {
            Body::Delta { text, .. } => Some(format!("text:{text}")),
            Body::Finish(finish) => Some(format!("finish:{}", finish.reason.as_str())),
            _ => None,
        })
        .collect();
    assert_eq!(order, ["text:4", "text:2.", "finish:stop"]);
}

// spec 2.5
#[test]
fn interleaved_fragments_reach_their_own_call() {
    let event = |delta: &str, finish: &str| {
        format!(
            "data: {{\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":{finish}}}]}}\n\n"
        )
    };
    let call = |fields: &str| event(&format!("{{\"tool_calls\":[{{{fields}}}]}}"), "null");
    let body = [
        call(r#""index":0,"id":"call_a","type":"function","function":{"name":"alpha","arguments":""}"#),
        call(r#""index":1,"id":"call_b","type":"function","function":{"name":"beta","arguments":""}"#),
        call(r#""index":1,"function":{"arguments":"{\"x\":"}"#),
        call(r#""index":0,"function":{"arguments":"{\"a\":1"}"#),
        call(r#""index":1,"function":{"arguments":"2}"}"#),
        call(r#""index":0,"function":{"arguments":",\"b\":2}"}"#),
        event("{}", "\"tool_calls\""),
        "data: [DONE]\n\n".to_owned(),
    ];
    let inspection = inspect(Format::OpenAiChat, &body.each_ref().map(|read| read.as_bytes()));
    let calls = inspection.tool_calls.iter().map(|call| (call.id.as_deref(), &*call.name, call.arguments.as_deref()));
    assert_eq!(
        calls.collect::<Vec<_>>(),
        [(Some("call_a"), "alpha", Some(r#"{"a":1,"b":2}"#)), (Some("call_b"), "beta", Some(r#"{"x":2}"#)),]
    );
    assert_eq!((inspection.finish.as_deref(), inspection.error), (Some("tool_calls"), false));
}

// spec 2.4
#[test]
fn a_stream_that_just_stops_is_no_finish() {
    let mut decoder = Decoder::new(Format::AgUi);
    let chunks = decode(
        &mut decoder,
        &[
            b"data: {\"type\":\"RUN_STARTED\",\"threadId\":\"t\",\"runId\":\"r\"}\n\n",
            b"data: {\"type\":\"TEXT_MESSAGE_START\",\"messageId\":\"m1\",\"role\":\"assistant\"}\n\n",
            b"data: {\"type\":\"TEXT_MESSAGE_CONTENT\",\"messageId\":\"m1\",\"delta\":\"Half\"}\n\n",
        ],
    )
    .unwrap();
    assert_eq!((text(&chunks).as_str(), finishes(&chunks), decoder.stats().end_mark), ("Half", vec![], Some(false)));
    // The message is not complete.
    assert!(chunks.iter().all(|chunk| !matches!(chunk.body(), Body::PartEnd { .. } | Body::RunEnd(_))));
}

// spec 2.5
#[test]
fn a_call_without_fragments_has_the_input_it_began_with() {
    let reads: [&[u8]; 8] = [
        b"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"content\":[],\"model\":\"m\",\"stop_reason\":null,\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}}\n\n",
        b"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"tu_1\",\"name\":\"now\",\"input\":{}}}\n\n",
        b"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"\"}}\n\n",
        b"event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
        b"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"tool_use\",\"id\":\"tu_2\",\"name\":\"weather\",\"input\":{\"city\":\"Oslo\"}}}\n\n",
        b"event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":1}\n\n",
        b"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"},\"usage\":{\"output_tokens\":14}}\n\n",
        b"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
    ];
    let inspection = inspect(Format::AnthropicMessages, &reads);
    let calls: Vec<_> = inspection
        .tool_calls
        .iter()
        .map(|call| (call.id.as_deref(), call.name.as_str(), call.arguments.as_deref()))
        .collect();
    // No arguments at all mean `{}`.
    let expected = [(Some("tu_1"), "now", Some("")), (Some("tu_2"), "weather", Some("{\"city\":\"Oslo\"}"))];
    assert_eq!(calls, expected);
    assert_eq!((inspection.usage.input, inspection.usage.output), (Some(9), Some(14)));
    let chunks = decode(&mut Decoder::new(Format::AnthropicMessages), &reads).unwrap();
    assert_eq!((finishes(&chunks), errors(&chunks)), (vec![FinishReason::ToolCalls], 0));
}

const CREATED: &[u8] = b"event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":\"r1\",\"status\":\"in_progress\"}}\n\n";
const PART: &[u8] = b"event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"item_id\":\"m1\",\"output_index\":0,\"content_index\":0,\"delta\":\"Par\"}\n\n";

// spec 2.4
#[test]
fn an_incomplete_answer_is_a_finish_by_length() {
    let incomplete = b"event: response.incomplete\ndata: {\"type\":\"response.incomplete\",\"response\":{\"id\":\"r1\",\"status\":\"incomplete\",\"incomplete_details\":{\"reason\":\"max_output_tokens\"},\"usage\":{\"input_tokens\":9,\"output_tokens\":5,\"total_tokens\":14}}}\n\n";
    let reads = [CREATED, PART, incomplete];
    let chunks = decode(&mut Decoder::new(Format::OpenAiResponses), &reads).unwrap();
    assert_eq!((text(&chunks).as_str(), finishes(&chunks), errors(&chunks)), ("Par", vec![FinishReason::Length], 0));
    let inspection = inspect(Format::OpenAiResponses, &reads);
    assert_eq!((inspection.usage.input, inspection.usage.output), (Some(9), Some(5)));
    assert_eq!((inspection.outcome, inspection.finish.as_deref()), ("finished", Some("max_output_tokens")));
}

// spec 2.4
#[test]
fn a_failed_answer_is_an_error_that_keeps_text_and_usage() {
    let failed = b"event: response.failed\ndata: {\"type\":\"response.failed\",\"response\":{\"id\":\"r1\",\"status\":\"failed\",\"error\":{\"code\":\"server_error\",\"message\":\"boom\"},\"usage\":{\"input_tokens\":9,\"output_tokens\":1,\"total_tokens\":10}}}\n\n";
    let reads = [CREATED, PART, failed];
    let chunks = decode(&mut Decoder::new(Format::OpenAiResponses), &reads).unwrap();
    assert_eq!((text(&chunks).as_str(), finishes(&chunks), errors(&chunks)), ("Par", vec![], 1));
    let error = chunks.iter().find_map(|chunk| match chunk.body() {
        Body::Error(error) => Some((error.code.as_str(), error.message.as_deref())),
        _ => None,
    });
    assert_eq!(error, Some(("server_error", Some("boom"))));
    let inspection = inspect(Format::OpenAiResponses, &reads);
    assert_eq!((inspection.usage.input, inspection.usage.output), (Some(9), Some(1)));
    assert_eq!(inspection.outcome, "failed");
}

// spec 2.4
#[test]
fn an_error_event_in_a_stream_that_began_well_is_an_error() {
    let reads: [&[u8]; 5] = [
        b"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"content\":[],\"model\":\"m\",\"stop_reason\":null,\"usage\":{\"input_tokens\":12,\"output_tokens\":1}}}\n\n",
        b"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
        b"event: ping\ndata: {\"type\":\"ping\"}\n\n",
        b"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hal\"}}\n\n",
        b"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n",
    ];
    let mut decoder = Decoder::new(Format::AnthropicMessages);
    let chunks = decode(&mut decoder, &reads).unwrap();
    assert_eq!((text(&chunks).as_str(), finishes(&chunks), errors(&chunks)), ("Hal", vec![], 1));
    assert_eq!((decoder.stats().unknown, decoder.stats().end_mark), (0, Some(false)));
    let Some(Body::Error(error)) = chunks.last().map(Chunk::body) else { panic!("the error is the last chunk") };
    assert_eq!((error.code.as_str(), error.message.as_deref()), ("overloaded_error", Some("Overloaded")));
    let usage = inspect(Format::AnthropicMessages, &reads).usage;
    assert_eq!((usage.input, usage.output), (Some(12), Some(1)));
}

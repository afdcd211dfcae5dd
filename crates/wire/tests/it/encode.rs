//! Whole streams written from chunks: spec 2.9.

use proptest::prelude::*;
use serde_json::Value;
use streamkeeper_contract::{Body, Channel, Chunk, ErrorInfo, FinishReason, Lane, Outcome, Stop, Usage, id};
use streamkeeper_wire::encode::{Encoder, Target};

use crate::{
    said::{Said, decode, said},
    streams,
};

fn encode(target: Target, chunks: &[Chunk], outcome: Option<Outcome>) -> Vec<u8> {
    let mut encoder = Encoder::new(target).id("stream-1").model("model-1");
    let mut out = Vec::new();
    chunks.iter().for_each(|chunk| encoder.push(chunk, &mut out));
    match outcome {
        Some(outcome) => encoder.end(outcome, &mut out),
        None => encoder.finish(&mut out),
    }
    let whole = out.len();
    encoder.push(&Chunk::delta(Lane::TEXT, "after the end"), &mut out);
    encoder.finish(&mut out);
    assert_eq!(out.len(), whole, "nothing comes after the end");
    out
}

/// What the target can say of it.
fn in_terms_of(target: Target, said: Said) -> Said {
    let mut said = Said { raw: 0, ..said };
    if target == Target::Jsonl {
        return said;
    }
    let known = [Channel::Text, Channel::Reasoning, Channel::Refusal];
    said.texts.retain(|(choice, channel, _)| {
        known.contains(channel) && (*choice == 0 || target != Target::AnthropicMessages)
    });
    for (choice, channel, _) in &mut said.texts {
        if target != Target::OpenAiChat && *channel == Channel::Refusal {
            *channel = Channel::Text;
        }
        if target == Target::AgUi {
            *choice = 0;
        }
    }
    let mut joined: Vec<(u16, Channel, String)> = Vec::new();
    for (choice, channel, text) in said.texts {
        match joined.iter_mut().find(|known| (known.0, known.1) == (choice, channel)) {
            Some(known) => known.2.push_str(&text),
            None => joined.push((choice, channel, text)),
        }
    }
    said.texts = joined;
    for (_, _, arguments) in &mut said.calls {
        if arguments.is_empty() {
            *arguments = "{}".into();
        }
    }
    said.calls.sort();
    said
}

/// What the wire says, with what formats say in their own way made equal.
fn written(target: Target, body: &[u8]) -> Said {
    in_terms_of(target, said(&decode(target.format(), body)))
}

fn payloads(body: &[u8]) -> Vec<Value> {
    let body = std::str::from_utf8(body).expect("UTF-8");
    body.lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .filter(|data| *data != "[DONE]")
        .map(|data| serde_json::from_str(data).expect("every payload is JSON"))
        .collect()
}

/// Holds an AG-UI stream to the rules of the protocol: what begins ends, nothing is said of what is not open, one end, last.
#[track_caller]
fn check_ag_ui(body: &[u8]) {
    let events = payloads(body);
    let mut open: Vec<(String, String)> = Vec::new();
    for (at, event) in events.iter().enumerate() {
        let kind = event["type"].as_str().expect("a type");
        let id =
            ["messageId", "toolCallId", "stepName"].iter().find_map(|name| event[*name].as_str()).unwrap_or_default();
        assert_eq!(kind == "RUN_STARTED", at == 0, "{kind} at {at}");
        assert_eq!(kind == "RUN_FINISHED" || kind == "RUN_ERROR", at + 1 == events.len(), "{kind} at {at}");
        let Some((family, what)) = kind.rsplit_once('_').filter(|(family, _)| *family != "RUN") else { continue };
        let entry = (family.to_owned(), id.to_owned());
        match what {
            "START" | "STARTED" => {
                assert!(!open.contains(&entry), "{entry:?} begins twice");
                open.push(entry);
            }
            "CONTENT" | "ARGS" => assert!(open.contains(&entry), "{entry:?} is not open"),
            "END" | "FINISHED" => {
                assert!(open.contains(&entry), "{entry:?} is not open");
                open.retain(|known| *known != entry);
            }
            _ => {}
        }
    }
    assert_eq!(open, [], "all that begins ends");
}

/// Holds a message to the order of Anthropic's streams: blocks one after the other, then the delta and the end of the message.
#[track_caller]
fn check_anthropic(body: &[u8]) {
    let mut open: Option<u64> = None;
    let mut next = 0;
    let kinds: Vec<String> =
        payloads(body).iter().map(|event| event["type"].as_str().unwrap_or_default().into()).collect();
    assert_eq!(kinds.first().map(String::as_str), Some("message_start"));
    for event in payloads(body) {
        let index = event["index"].as_u64();
        match event["type"].as_str().expect("a type") {
            "content_block_start" => {
                assert_eq!((open, index), (None, Some(next)), "blocks come one after the other");
                (open, next) = (index, next + 1);
            }
            "content_block_delta" => assert_eq!(index, open),
            "content_block_stop" => {
                assert_eq!(index, open);
                open = None;
            }
            _ => assert_eq!(open, None),
        }
    }
}

#[track_caller]
fn check_grammar(target: Target, body: &[u8]) {
    match target {
        Target::AgUi => check_ag_ui(body),
        Target::AnthropicMessages => check_anthropic(body),
        Target::OpenAiChat => {
            assert!(body.ends_with(b"data: [DONE]\n\n"));
            payloads(body);
        }
        _ => {}
    }
}

// spec 2.9
#[test]
fn every_stream_is_written_in_every_target_and_says_the_same() {
    for stream in streams::all() {
        let chunks = decode(stream.format, &stream.body);
        for target in Target::ALL.iter().copied() {
            let out = encode(target, &chunks, None);
            check_grammar(target, &out);
            let (mut expected, mut found) = (in_terms_of(target, said(&chunks)), written(target, &out));
            // Of its own calls and texts only; the ends have tests of their own.
            for said in [&mut expected, &mut found] {
                said.finishes.clear();
                said.errors = 0;
            }
            let provider_tools = chunks.iter().any(|chunk| matches!(chunk.body(), Body::ProviderToolStart(_)));
            if provider_tools && target != Target::Jsonl {
                expected.calls.clear();
                found.calls.clear();
            }
            assert_eq!(found, expected, "{} as {target}\n{}", stream.path, String::from_utf8_lossy(&out));
        }
    }
}

/// Steps of a stream: what happens to which lane.
fn chunks_of(steps: &[(u8, u8, String)], reason: FinishReason) -> Vec<Chunk> {
    let mut chunks = Vec::new();
    let mut calls: Vec<(Lane, bool)> = Vec::new();
    for (what, which, text) in steps {
        let part = u16::from(which % 3);
        match what % 8 {
            0..3 => chunks.push(Chunk::delta(Lane::TEXT.in_part(part), text.clone())),
            3 => chunks.push(Chunk::delta(Lane::new(Channel::Reasoning).in_part(part), text.clone())),
            4 => {
                let call = u16::try_from(calls.len() + 1).expect("few calls");
                let lane = Lane::TEXT.in_part(10 + call).arguments(call);
                calls.push((lane, true));
                chunks.push(Chunk::tool_call_start(lane, format!("call-{call}"), "tool"));
            }
            5 | 6 => {
                let open: Vec<Lane> = calls.iter().filter(|(_, open)| *open).map(|(lane, _)| *lane).collect();
                if let Some(lane) = open.get(usize::from(*which) % open.len().max(1)) {
                    chunks.push(Chunk::delta(*lane, text.clone()));
                }
            }
            _ => {
                if let Some((lane, open)) = calls.iter_mut().find(|(_, open)| *open) {
                    *open = false;
                    chunks.push(Body::ToolCallEnd(*lane).into());
                }
            }
        }
    }
    chunks.push(Chunk::finish(0, reason));
    chunks.push(Chunk::usage(Usage {
        uncached_input: Some(3),
        cache_read: Some(4),
        output: Some(5),
        ..Usage::default()
    }));
    chunks
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    // spec 2.9
    #[test]
    fn interleaved_calls_and_texts_say_the_same_in_every_target(
        steps in prop::collection::vec((any::<u8>(), any::<u8>(), ".{0,6}"), 0..40),
        reason in prop::sample::select(vec![FinishReason::Stop, FinishReason::Length, FinishReason::ToolCalls]),
    ) {
        let chunks = chunks_of(&steps, reason);
        for target in Target::ALL.iter().copied() {
            let out = encode(target, &chunks, None);
            check_grammar(target, &out);
            let (mut expected, mut found) = (in_terms_of(target, said(&chunks)), written(target, &out));
            if target == Target::AgUi {
                expected.finishes.clear();
                found.finishes.clear();
            }
            // Parts that come back after another one are parts of their own there: the order of their texts is that of the stream.
            if target != Target::Jsonl {
                for said in [&mut expected, &mut found] {
                    said.texts.iter_mut().for_each(|(.., text)| *text = sorted(text));
                }
            }
            prop_assert_eq!(found, expected, "{}", target);
        }
    }
}

fn sorted(text: &str) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    chars.sort_unstable();
    chars.into_iter().collect()
}

// spec 2.9
#[test]
fn every_outcome_has_one_valid_end_in_every_target() {
    let stop = Stop {
        observer: id!("guard"),
        code: "pattern_matched".into(),
        reason: "a refusal".into(),
        chunk_index: 1,
        accumulated_content_length: 5,
    };
    let outcomes = [
        (Outcome::Finished { reason: FinishReason::Stop }, 0),
        (Outcome::Stopped(stop), 0),
        (Outcome::Failed { error: ErrorInfo::new("guard_failed").with_component(id!("guard")) }, 0),
        (Outcome::Failed { error: ErrorInfo::new("reset").with_message("from outside") }, 1),
        (Outcome::Truncated, 1),
        (Outcome::Aborted { reason: Some("enough".into()), cancel_requested: false }, 1),
        (Outcome::Suspended { interrupts: Vec::new() }, 1),
        (Outcome::Dropped, 1),
    ];
    let lane = Lane::TEXT.in_part(1).arguments(1);
    let open =
        [Chunk::delta(Lane::TEXT, "Hello"), Chunk::tool_call_start(lane, "call-1", "tool"), Chunk::delta(lane, "{")];
    for chunks in [&open[..0], &open[..1], &open[..]] {
        for (outcome, errors) in &outcomes {
            for target in [Target::OpenAiChat, Target::AnthropicMessages, Target::AgUi] {
                let out = encode(target, chunks, Some(outcome.clone()));
                check_grammar(target, &out);
                let said = said(&decode(target.format(), &out));
                // AG-UI has an error for all but a success.
                let errors = if target == Target::AgUi { usize::from(!outcome.is_finished()) } else { *errors };
                let place = format!("{} as {target}: {}", outcome.code(), String::from_utf8_lossy(&out));
                assert_eq!(said.errors, errors, "{place}");
                assert!(said.errors > 0 || said.finishes.len() == 1, "{place}");
                assert!(!place.contains("from outside"), "a provider's words are not handed on: {place}");
            }
        }
    }
}

// spec 2.9
#[test]
fn usage_is_written_in_the_words_of_each_target() {
    let usage = Usage {
        uncached_input: Some(10),
        cache_read: Some(90),
        output: Some(7),
        reasoning: Some(20),
        ..Usage::default()
    };
    let chunks = [Chunk::delta(Lane::TEXT, "Hi"), Chunk::finish(0, FinishReason::Stop), Chunk::usage(usage)];
    for target in [Target::OpenAiChat, Target::AnthropicMessages] {
        let out = encode(target, &chunks, None);
        let mut found = Usage::default();
        for chunk in decode(target.format(), &out) {
            if let Body::Usage(stated) = chunk.body() {
                found.update(stated);
            }
        }
        assert_eq!((found.input(), found.cache_read), (Some(100), Some(90)), "{target}");
        assert_eq!(found.output_total(), Some(27), "{target}");
    }
}

#[test]
fn canonical_lines_are_the_chunks_themselves() {
    for stream in streams::own() {
        let chunks = decode(stream.format, &stream.body);
        let out = encode(Target::Jsonl, &chunks, None);
        let lines = String::from_utf8(out).expect("UTF-8");
        let mut lines = lines.lines();
        for chunk in chunks {
            let json = serde_json::to_string(&chunk).expect("a chunk has a form");
            assert_eq!(lines.next(), Some(&*json.replace('\n', " ")), "{}", stream.path);
        }
        assert!(lines.next().is_some_and(|end| end.starts_with(r#"{"kind":"end""#)));
        assert_eq!(lines.next(), None);
    }
}

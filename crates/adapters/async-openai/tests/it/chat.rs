//! Observers around async-openai's chat stream (spec 3.11).

use async_openai::types::chat::CreateChatCompletionStreamResponse as Item;
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use streamkeeper_async_openai as _;
use streamkeeper_contract::{Body, Chunk, Lane, Outcome, Piece, Release, Verdict, id};
use streamkeeper_stream::{
    ObserveExt, ObservedError, ObserverContext, Observers, Registration, StreamObserver, from_fn,
};

use crate::common::{Hide, Watched, now, watch};

fn item(choices: impl Into<Value>) -> Item {
    let choices = choices.into();
    serde_json::from_value(json!({
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "demo", "choices": choices, "usage": null
    }))
    .unwrap()
}

fn says(delta: impl Into<Value>) -> Item {
    let delta = delta.into();
    item(json!([{"index": 0, "delta": delta, "finish_reason": null}]))
}

fn text(text: &str) -> Item {
    says(json!({ "content": text }))
}

fn finish() -> Item {
    item(json!([{"index": 0, "delta": {}, "finish_reason": "stop"}]))
}

fn source(items: Vec<Item>) -> impl futures_util::Stream<Item = Result<Item, String>> {
    stream::iter(items.into_iter().map(Ok))
}

/// What the consumer gets.
fn observe(observers: impl Into<Observers>, items: Vec<Item>) -> Vec<Result<Item, ObservedError<String>>> {
    now(source(items).observed(observers).collect())
}

fn texts(items: &[Result<Item, ObservedError<String>>]) -> Vec<String> {
    let content = |item: &Item| item.choices.iter().filter_map(|choice| choice.delta.content.clone()).collect();
    items.iter().flatten().map(content).collect()
}

#[test]
fn what_nobody_touches_comes_out_as_it_was() {
    let items = vec![
        says(json!({"role": "assistant", "content": ""})),
        text("Hi"),
        says(json!({"refusal": "no"})),
        says(
            json!({"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": {"name": "f", "arguments": ""}}]}),
        ),
        item(json!([])),
        finish(),
    ];
    let (watcher, _) = watch();
    let out: Vec<_> = observe(watcher, items.clone()).into_iter().map(Result::unwrap).collect();
    assert_eq!(out, items);
}

#[test]
fn observers_see_each_part_of_an_item() {
    for (item, expected) in [
        (text("Hi"), &["message_start", "content_delta 0/0 Hi"][..]),
        (says(json!({"refusal": "no"})), &["message_start", "refusal_delta 0/0 no"]),
        (
            item(json!([{"index": 1, "delta": {"content": "B"}}, {"index": 0, "delta": {"content": "A"}}])),
            &["message_start", "content_delta 1/0 B", "message_start", "content_delta 0/0 A"],
        ),
        (
            says(json!({"tool_calls": [
                {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{"}},
                {"index": 1, "id": "b", "function": {"name": "g", "arguments": "["}},
            ]})),
            &[
                "message_start",
                "tool_call_start 0/1 a f",
                "tool_call_delta 0/1 {",
                "tool_call_start 0/2 b g",
                "tool_call_delta 0/2 [",
            ],
        ),
        (
            says(json!({"function_call": {"name": "f", "arguments": "{}"}})),
            &["message_start", "tool_call_start 0/1 call_0_1 f", "tool_call_delta 0/1 {}"],
        ),
        (
            says(json!({"audio": {"id": "x", "transcript": "Hi", "data": "AAAA"}})),
            &["message_start", "transcript_delta 0/0 Hi", "media"],
        ),
        (
            item(json!([{"index": 0, "delta": {}, "finish_reason": "function_call"}])),
            &["message_start", "finish tool_calls (function_call)"],
        ),
    ] {
        let (watcher, seen) = watch();
        drop(observe(watcher, vec![item]));
        assert_eq!(seen.lines(), expected);
    }
}

/// The usage comes last, in an item without choices.
#[test]
fn usage_beside_empty_choices_is_read() {
    let usage = json!({
        "prompt_tokens": 20, "completion_tokens": 9, "total_tokens": 29,
        "prompt_tokens_details": {"cached_tokens": 8}, "completion_tokens_details": {"reasoning_tokens": 5}
    });
    let last = Item { usage: serde_json::from_value(usage).unwrap(), ..item(json!([])) };
    let (watcher, seen) = watch();
    drop(observe(watcher, vec![text("Hi"), finish(), last]));
    let usage = seen.result().usage.unwrap();
    let buckets = (usage.uncached_input, usage.cache_read, usage.output, usage.reasoning);
    assert_eq!(buckets, (Some(12), Some(8), Some(4), Some(5)));
    assert_eq!((usage.stated.total, usage.total()), (Some(29), Some(29)));
}

/// spec 2.5: some servers give every call the index 0.
#[test]
fn a_new_id_opens_a_new_call() {
    let call = |id: Value, name: Value, arguments: &str| {
        says(json!({"tool_calls": [{"index": 0, "id": id, "function": {"name": name, "arguments": arguments}}]}))
    };
    let (watcher, seen) = watch();
    let items = vec![
        call(json!("a"), json!("f"), "{"),
        call(json!(null), json!(null), "}"),
        call(json!("b"), json!("g"), "["),
        call(json!(null), json!(null), "]"),
        call(json!("a"), json!(null), " "),
        item(json!([{"index": 0, "delta": {}, "finish_reason": "tool_calls"}])),
    ];
    drop(observe(watcher, items));
    let expected = [
        "message_start",
        "tool_call_start 0/1 a f",
        "tool_call_delta 0/1 {",
        "tool_call_delta 0/1 }",
        "tool_call_start 0/2 b g",
        "tool_call_delta 0/2 [",
        "tool_call_delta 0/2 ]",
        "tool_call_delta 0/1  ",
        "tool_call_end 0/1",
        "tool_call_end 0/2",
        "finish tool_calls (tool_calls)",
    ];
    assert_eq!(seen.lines(), expected);
}

/// Held text leaves its item empty and goes out in a later item of its lane.
#[test]
fn a_secret_cut_in_three_is_replaced_in_the_items() {
    let out = observe(Hide("sk-123").guard(), vec![text("key s"), text("k-1"), text("23, ok"), finish()]);
    assert_eq!(texts(&out), ["key ", "", "[hidden], ok", ""]);
    assert!(out[3].is_ok());
}

#[test]
fn what_is_held_at_the_end_goes_out_in_an_item_of_its_own_before_the_finish() {
    let out = observe(Hide("sk-123").guard(), vec![text("it is s"), finish()]);
    assert_eq!(texts(&out), ["it is ", "s", ""]);
    let made = out[1].as_ref().unwrap();
    assert_eq!((made.id.as_str(), made.model.as_str(), made.choices[0].finish_reason), ("chatcmpl-1", "demo", None));
}

#[test]
fn held_text_of_every_lane_finds_its_way() {
    let call = json!({"tool_calls": [{"index": 7, "id": "a", "function": {"name": "f", "arguments": "{\"k\":\"s"}}]});
    for (delta, pointer) in [
        (json!({"content": "s"}), "/choices/0/delta/content"),
        (json!({"refusal": "s"}), "/choices/0/delta/refusal"),
        (json!({"audio": {"transcript": "s"}}), "/choices/0/delta/audio/transcript"),
        (call, "/choices/0/delta/tool_calls/0/function/arguments"),
        (json!({"function_call": {"name": "f", "arguments": "s"}}), "/choices/0/delta/function_call/arguments"),
    ] {
        let items = vec![
            item(json!([{"index": 3, "delta": delta}])),
            item(json!([{"index": 3, "delta": {}, "finish_reason": "stop"}])),
        ];
        let out = observe(Hide("sk-123").guard(), items);
        let made = serde_json::to_value(out[1].as_ref().unwrap()).unwrap();
        assert_eq!(made.pointer(pointer), Some(&json!("s")), "{made}");
        assert_eq!(made.pointer("/choices/0/index"), Some(&json!(3)));
        if pointer.contains("tool_calls") {
            assert_eq!(made.pointer("/choices/0/delta/tool_calls/0/index"), Some(&json!(7)));
        }
        assert_eq!(out.len(), 3);
    }
}

/// Log probabilities name the tokens, so they go with a text that was changed and stay with one that was not.
#[test]
fn log_probabilities_go_with_the_text() {
    let logprobs =
        json!({"content": [{"token": "sk-123", "logprob": -0.1, "bytes": null, "top_logprobs": []}], "refusal": null});
    let with = |text: &str| item(json!([{"index": 0, "delta": {"content": text}, "logprobs": logprobs}]));
    let out = observe(Hide("sk-123").guard(), vec![with("a sk-123 b"), with("plain"), finish()]);
    let kept: Vec<_> = out.iter().flatten().map(|item| item.choices[0].logprobs.is_some()).collect();
    assert_eq!(kept, [false, true, false]);
}

/// A stop ends the stream with an error of ours; quiet ends it plainly. Either way the source is gone at once.
#[test]
fn a_stop_is_noticed_and_drops_the_source() {
    #[derive(Clone)]
    struct Halt;
    impl StreamObserver for Halt {
        fn on_chunk(&mut self, chunk: &Chunk, _: &mut ObserverContext<'_>) -> Verdict {
            if chunk.text() == Some("stop") { Verdict::stop("told", "it said so") } else { Verdict::Continue }
        }
    }
    let items = || vec![text("go"), text("stop"), text("never"), finish()];
    let out = observe(Registration::guard(id!("halt"), Halt), items());
    assert_eq!(texts(&out), ["go"]);
    let Some(Err(ObservedError::Ended(outcome))) = out.last() else { panic!("it did not stop") };
    let Outcome::Stopped(stop) = &**outcome else { panic!("{outcome}") };
    assert_eq!((stop.chunk_index, stop.accumulated_content_length), (2, 2));

    let guard = Registration::guard(id!("halt"), Halt);
    let watched = Watched::new(source(items()));
    let polled = watched.polled();
    let out: Vec<Result<Item, String>> = now(watched.observed(guard).quiet().collect());
    assert_eq!((out.len(), out[0].is_ok(), polled.get()), (1, true, 2));
}

#[test]
fn the_clients_own_error_stays_its_own() {
    let failing = stream::iter([Ok(text("Hi")), Err("lost".to_owned())]);
    let (watcher, _) = watch();
    let out: Vec<_> = now(failing.observed(watcher).collect());
    assert_eq!(out[1], Err(ObservedError::Source("lost".to_owned())));
}

/// A tool call that an observer made out of text becomes an item with an index that no other call has.
#[test]
fn a_tool_call_made_of_text_is_an_item() {
    struct Dialect;
    impl StreamObserver for Dialect {
        fn on_chunk(&mut self, chunk: &Chunk, _: &mut ObserverContext<'_>) -> Verdict {
            match (chunk.body(), chunk.text()) {
                (Body::Delta { lane, .. }, Some("<search>")) if *lane == Lane::TEXT => {
                    Release::pieces([Piece::ToolCall { name: "search".into(), arguments: "{}".into() }]).into()
                }
                _ => Verdict::Continue,
            }
        }
    }
    let first = says(json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}]}));
    let guard = Registration::transform(id!("dialect"), from_fn(|_| Dialect));
    let out = observe(guard, vec![first, text("a"), text("<search>"), text("b"), finish()]);
    let calls: Vec<_> = out
        .iter()
        .flatten()
        .flat_map(|item| &item.choices)
        .flat_map(|choice| choice.delta.tool_calls.iter().flatten())
        .map(|call| (call.index, call.function.as_ref().unwrap().name.clone().unwrap()))
        .collect();
    assert_eq!(calls, [(0, "f".to_owned()), (1, "search".to_owned())]);
    assert_eq!(texts(&out).concat(), "ab");
}

/// The same stream, read by the client's types and by our decoder, shows observers the same.
#[test]
fn observers_see_what_the_decoder_shows() {
    for name in ["support-chat.openai.sse", "tool-calls.openai.sse", "refusal.openai.sse", "leaked-key.openai.sse"] {
        let body = crate::common::fixture(name);
        let items = body
            .lines()
            .filter_map(|line| line.strip_prefix("data: ").filter(|data| *data != "[DONE]"))
            .map(|data| serde_json::from_str(data).unwrap())
            .collect();
        let (watcher, seen) = watch();
        drop(observe(watcher, items));
        assert_eq!(seen.lines(), crate::common::decoded(streamkeeper_wire::Format::OpenAiChat, &body), "{name}");
    }
}

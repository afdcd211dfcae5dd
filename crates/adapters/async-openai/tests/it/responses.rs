//! Observers around async-openai's Responses stream (spec 3.11).

use async_openai::types::responses::ResponseStreamEvent as Event;
use futures_util::{StreamExt, stream};
use streamkeeper_async_openai as _;
use streamkeeper_stream::{ObserveExt, ObservedError, Observers};

use crate::common::{Hide, now, watch};

fn events() -> Vec<Event> {
    crate::common::fixture("support-chat.openai-responses.sse")
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|data| serde_json::from_str(data).unwrap_or_else(|error| panic!("{error}: {data}")))
        .collect()
}

fn observe(observers: impl Into<Observers>, events: Vec<Event>) -> Vec<Result<Event, ObservedError<String>>> {
    now(stream::iter(events.into_iter().map(Ok::<_, String>)).observed(observers).collect())
}

fn answer(events: &[Result<Event, ObservedError<String>>]) -> String {
    let delta = |event: &Event| match event {
        Event::ResponseOutputTextDelta(event) => Some(event.delta.clone()),
        _ => None,
    };
    events.iter().flatten().filter_map(delta).collect()
}

#[test]
fn what_nobody_touches_comes_out_as_it_was() {
    let (watcher, seen) = watch();
    let out: Vec<_> = observe(watcher, events()).into_iter().map(Result::unwrap).collect();
    assert_eq!(out, events());
    let seen = seen.lines();
    assert!(seen.iter().any(|line| line.starts_with("content_delta 0/0 I am")), "{seen:#?}");
    assert!(seen.iter().any(|line| line.starts_with("reasoning_delta 0/0 The customer")), "{seen:#?}");
    assert!(seen.iter().any(|line| line.starts_with("tool_call_start 0/1 call_reset_1 ")), "{seen:#?}");
    assert!(seen.iter().any(|line| line == "finish tool_calls (completed)"), "{seen:#?}");
}

/// The provider repeats each text up to three times; what was hidden in the deltas is hidden in the repeats (spec 1.3).
#[test]
fn a_secret_is_hidden_in_deltas_and_repeats_alike() {
    let out = observe(Hide("new password").guard(), events());
    assert!(out.iter().all(Result::is_ok), "{out:#?}");
    let all = out.iter().flatten().map(|event| serde_json::to_string(event).unwrap()).collect::<String>();
    assert!(!all.contains("new password"), "{all}");
    assert_eq!(answer(&out), "I am sending you a link to set a [hidden]. It is valid for 30 minutes.");
}

/// Made events keep the sequence: their number is that of the event before.
#[test]
fn sequence_numbers_do_not_go_back() {
    let out = observe(Hide("minutes, and more").guard(), events());
    let numbers: Vec<u64> = out
        .iter()
        .flatten()
        .map(|event| serde_json::to_value(event).unwrap()["sequence_number"].as_u64().unwrap())
        .collect();
    assert!(numbers.is_sorted(), "{numbers:?}");
    assert_eq!(answer(&out), "I am sending you a link to set a new password. It is valid for 30 minutes.");
}

//! [`Metrics`] in a stack.

mod common;

use streamkeeper_contract::{Body, Channel, Chunk, FinishReason, Lane, Offset, Usage, id};
use streamkeeper_observers::{HaltOnPattern, Metrics};
use streamkeeper_stream::Observers;

use self::common::run;

/// An answer with reasoning, two tool calls and silence, stamped as it arrived.
fn answer() -> Vec<Chunk> {
    let args = Lane::TEXT.arguments(1);
    [
        (400_000, Chunk::delta(Lane::new(Channel::Reasoning), "Order 48213.")),
        (400_000, Chunk::delta(Lane::TEXT, "")),
        (900_000, Chunk::delta(Lane::TEXT, "It left ")),
        (2_000_000, Chunk::heartbeat(Offset(2_000_000))),
        (2_500_000, Chunk::delta(Lane::TEXT, "yesterday, 4,90 €.")),
        (2_520_000, Chunk::tool_call_start(args, "call_1", "track")),
        (2_520_000, Chunk::delta(args, "{\"order\":")),
        (2_540_000, Chunk::delta(args, "48213}")),
        (2_540_000, Body::ToolCallEnd(args).into()),
        (2_560_000, Chunk::tool_call(Lane::TEXT.arguments(2), "call_2", "refund", "{}")),
        (2_580_000, Chunk::finish(0, FinishReason::ToolCalls)),
        (2_600_000, Chunk::usage(Usage::default())),
    ]
    .map(|(at, chunk)| chunk.at(Offset(at)))
    .to_vec()
}

/// spec 6.4: the payload, field by field. A change here is a change of the documented schema.
#[test]
fn the_event_at_the_end_has_the_documented_payload() {
    let ran = run(Metrics::new(), answer());
    assert_eq!(ran.events.len(), 1);
    assert_eq!((&ran.events[0].channel, &ran.events[0].name), (&id!("metrics"), &id!("invocation")));
    insta::assert_snapshot!(ran.events[0].payload.as_str(), @r#"{"schema":1,"outcome":"finished","chunks":11,"kinds":{"content_delta":3,"reasoning_delta":1,"tool_call_delta":2,"tool_call_start":1,"tool_call_end":1,"tool_call":1,"usage":1,"finish":1},"bytes":{"text":28,"reasoning":12,"arguments":17},"tool_calls":2,"first_chunk_us":400000,"first_text_us":900000,"gaps":{"count":7,"max_us":1600000,"p50_us":20479,"p95_us":1600000,"p99_us":1600000},"duration_us":2600000,"delivered_bytes":28,"withheld_bytes":0}"#);
}

/// spec 3.10: only recorded time counts, so a second run says the same.
#[test]
fn two_runs_say_the_same() {
    let events = || run(Metrics::new().every(3), answer()).events;
    assert_eq!(events(), events());
}

#[test]
fn progress_comes_every_so_many_chunks_and_heartbeats_are_none() {
    for (every, expected) in [(0, 0), (1, 11), (3, 3), (11, 1), (12, 0)] {
        let events = run(Metrics::new().every(every), answer()).events;
        let progress = events.iter().filter(|event| event.name == id!("progress")).count();
        assert_eq!((progress, events.len()), (expected, expected + 1), "every {every}");
    }
}

#[test]
fn progress_says_what_is_known_so_far() {
    let events = run(Metrics::new().every(4), answer()).events;
    insta::assert_snapshot!(events[0].payload.as_str(), @r#"{"schema":1,"outcome":null,"chunks":4,"kinds":{"content_delta":3,"reasoning_delta":1},"bytes":{"text":28,"reasoning":12},"tool_calls":0,"first_chunk_us":400000,"first_text_us":900000,"gaps":{"count":2,"max_us":1600000,"p50_us":524287,"p95_us":1600000,"p99_us":1600000},"duration_us":2500000,"delivered_bytes":8,"withheld_bytes":null}"#);
}

#[test]
fn a_stream_without_chunks_has_metrics_too() {
    let ran = run(Metrics::new(), []);
    insta::assert_snapshot!(ran.events[0].payload.as_str(), @r#"{"schema":1,"outcome":"truncated","chunks":0,"kinds":{},"bytes":{},"tool_calls":0,"first_chunk_us":null,"first_text_us":null,"gaps":{"count":0,"max_us":null,"p50_us":null,"p95_us":null,"p99_us":null},"duration_us":0,"delivered_bytes":0,"withheld_bytes":0}"#);
}

/// A watcher counts what reached it: what a guard before it stopped did not, what a guard behind it stops did.
#[test]
fn its_place_in_the_list_decides_what_it_counts() {
    let bytes = |observers: Observers| {
        let chunks = ["I cannot", " help", " you"].map(|piece| Chunk::delta(Lane::TEXT, piece));
        let payload = run(observers, chunks).events[0].payload.as_str().to_owned();
        let (_, rest) = payload.split_once(r#""bytes":{"text":"#).unwrap();
        rest.split_once('}').unwrap().0.parse::<u64>().unwrap()
    };
    let mut behind = Observers::new();
    behind.register(HaltOnPattern::refusals()).unwrap().register(Metrics::new()).unwrap();
    let mut before = Observers::new();
    before.register(Metrics::new()).unwrap().register(HaltOnPattern::refusals()).unwrap();
    assert_eq!((bytes(behind), bytes(before)), (13, 17));
}

//! Counts and times a stream, and reads the numbers from the channel `metrics`.
//!
//! cargo run -p streamkeeper-examples --example metrics

use std::{error::Error, fs, sync::Arc};

use serde::Deserialize;
use streamkeeper::{contract::Offset, observers::Metrics, prelude::*, wire::Decoder};

/// The fields of the payload that this program is interested in. `Metrics` documents them all.
#[derive(Debug, Deserialize)]
struct Payload {
    chunks: u64,
    tool_calls: u64,
    first_text_us: Option<u64>,
    duration_us: u64,
    gaps: Gaps,
}

#[derive(Debug, Deserialize)]
struct Gaps {
    count: u64,
    p50_us: Option<u64>,
    max_us: Option<u64>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let events = Arc::new(EventQueue::bounded(64));
    let observers = Observers::from(Metrics::new().every(20)).events(events.clone());
    let mut stack = observers.stack(&ObserverFactoryContext::default());

    // A recording has no times, so this one is played as if 200 bytes came every 5 milliseconds. A live program stamps what it reads with
    // the time since the request. Observers never read a clock: so a replay gives the same numbers.
    let body = fs::read(streamkeeper_examples::stream("support-chat.anthropic.sse"))?;
    let mut decoder = Decoder::detect();
    for (read, bytes) in body.chunks(200).enumerate() {
        decoder.set_offset(Offset(5_000 * (read as u64 + 1)));
        decoder.push(bytes)?;
        while let Some(chunk) = decoder.next_chunk() {
            stack.push(chunk);
            while stack.pop().is_some() {}
        }
    }
    decoder.finish()?;
    while let Some(chunk) = decoder.next_chunk() {
        stack.push(chunk);
    }
    stack.finish();
    while stack.pop().is_some() {}
    drop(stack); // the end of the call: now the watcher sums up

    let mut last = None;
    for event in events.drain() {
        println!("{} {}", event.name, event.payload.as_str());
        last = Some(event);
    }

    let last = last.ok_or("there is one event at least")?;
    assert_eq!(last.name, id!("invocation"));
    let payload: Payload = last.payload.parse()?;
    println!(
        "{} chunks, {} tool call; first text after {} ms, {} gaps of {} ms (longest {} ms), over after {} ms",
        payload.chunks,
        payload.tool_calls,
        payload.first_text_us.unwrap_or_default() / 1000,
        payload.gaps.count,
        payload.gaps.p50_us.unwrap_or_default() / 1000,
        payload.gaps.max_us.unwrap_or_default() / 1000,
        payload.duration_us / 1000,
    );
    assert_eq!(payload.tool_calls, 1);
    assert!(payload.first_text_us < Some(payload.duration_us));
    Ok(())
}

#[cfg(test)]
#[test]
fn it_runs() {
    main().unwrap();
}

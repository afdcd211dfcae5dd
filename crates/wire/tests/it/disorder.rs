//! Whatever order the events of a stream come in, its chunks keep the promises that observers build on.

use std::collections::BTreeSet;

use proptest::{prelude::*, sample::Index, test_runner::TestRunner};
use streamkeeper_contract::{Body, Chunk};
use streamkeeper_wire::{Decoder, Format, Framing, frame::Framer};

use crate::{frames::frames, streams};

/// The bytes of each event of our own streams, and of the smaller recorded ones, by format.
fn events() -> Vec<(Format, Framing, Vec<Vec<u8>>)> {
    let mut formats: Vec<(Format, Framing, Vec<Vec<u8>>)> = Vec::new();
    // Canonical chunks say what they say: no reader makes them keep a promise.
    for stream in streams::all().into_iter().filter(|stream| stream.format != Format::Jsonl) {
        let mut decoder = Decoder::new(stream.format);
        let decoded = decoder.push(&stream.body).and_then(|()| decoder.finish());
        let Some(framing) = decoder.framing().filter(|framing| decoded.is_ok() && *framing != Framing::JsonArray)
        else {
            continue;
        };
        let (frames, _) = frames(Framer::new(framing), [&stream.body[..]]);
        let frames = frames.into_iter().filter(|frame| frame.raw.len() < 4096 && !frame.unterminated).take(40);
        let frames: Vec<Vec<u8>> = frames.map(|frame| frame.raw).collect();
        match formats.iter_mut().find(|known| (known.0, known.1) == (stream.format, framing)) {
            Some(known) => known.2.extend(frames),
            None => formats.push((stream.format, framing, frames)),
        }
    }
    formats
}

/// The promises that chunks keep whatever the provider sends.
pub(crate) fn check(format: Format, chunks: &[Chunk]) -> Result<(), TestCaseError> {
    let (mut errors, mut finished, mut ended, mut calls) = (0, BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for chunk in chunks {
        let again = |what: &str| format!("{format}: {what}: {chunk:?}");
        match chunk.body() {
            Body::Error(_) => errors += 1,
            Body::Finish(finish) => {
                prop_assert!(finished.insert(finish.choice), "{}", again("a choice finishes twice"));
                prop_assert_eq!(errors, 0, "{}", again("a finish after an error"));
            }
            // Canonical chunks are in the order of whoever wrote them.
            _ if format == Format::Jsonl => {}
            Body::PartEnd { choice, part } => {
                prop_assert!(ended.insert((*choice, *part)), "{}", again("a part ends twice"));
            }
            Body::Delta { lane, .. } => {
                prop_assert!(!ended.contains(&(lane.choice, lane.part)), "{}", again("text after the end of its part"));
            }
            Body::ToolCallStart(call) => {
                prop_assert!(calls.insert(call.lane), "{}", again("a call begins twice"));
            }
            Body::ToolCall(call) => {
                prop_assert!(calls.insert(call.lane), "{}", again("a call begins twice"));
            }
            _ => {}
        }
    }
    prop_assert!(errors <= 1, "{} errors", errors);
    Ok(())
}

/// Decodes these events and checks the chunks.
fn decode<'a>(format: Format, events: impl Iterator<Item = impl AsRef<[u8]> + 'a>) -> Result<(), TestCaseError> {
    let mut decoder = Decoder::new(format);
    for event in events {
        if decoder.push(event.as_ref()).is_err() {
            break;
        }
    }
    decoder.finish().ok();
    let chunks: Vec<Chunk> = std::iter::from_fn(|| decoder.next_chunk()).collect();
    check(format, &chunks)
}

fn runner() -> TestRunner {
    TestRunner::new(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })
}

// spec 2.4, 2.10, 3.7
#[test]
fn events_in_any_order_break_no_promise() {
    for (format, framing, events) in events() {
        let order = prop::collection::vec(any::<Index>(), 1..60);
        let result =
            runner().run(&order, |order| decode(format, order.iter().map(|index| &events[index.index(events.len())])));
        if let Err(error) = result {
            panic!("{format} as {}: {error}", framing.name());
        }
    }
}

// spec 2.10
#[test]
fn broken_events_break_no_promise() {
    const BYTES: &[u8] = b"\"\\{}[]:,0-9.enul\0\xff ";
    for (format, framing, events) in events().into_iter().filter(|(_, framing, _)| *framing != Framing::AwsEventStream)
    {
        let hits = prop::collection::vec((any::<Index>(), prop::sample::select(BYTES)), 1..40);
        let order = prop::collection::vec(any::<Index>(), 1..40);
        let result = runner().run(&(order, hits), |(order, hits)| {
            let mut events: Vec<Vec<u8>> =
                order.iter().map(|index| events[index.index(events.len())].clone()).collect();
            for (event, (place, byte)) in events.iter_mut().zip(&hits) {
                // The line ends stay, so that one broken event breaks no other.
                let place = place.index(event.len());
                if !matches!(event[place], b'\n' | b'\r') {
                    event[place] = *byte;
                }
            }
            decode(format, events.iter())
        });
        if let Err(error) = result {
            panic!("{format} as {}: {error}", framing.name());
        }
    }
}

//! The SSE framer agrees with `sseer`, an implementation that is not ours: spec 2.2.

use std::convert::Infallible;

use futures_util::{StreamExt, stream};
use sseer::EventStream;
use streamkeeper_wire::{Framing, frame::Framer};

use crate::frames::frames;

const INPUTS: usize = 100_000;

const TOKENS: &[&str] = &[
    "\n", "\n", "\n", "\n\n", "\r", "\r", "\r\n", "\r\n", ":", ":", " ", "data", "data", "data:", "data: ", "data: x",
    "event:", "event: y", "event: ", "id", "id: ", "id:7", "retry", "retry: 3", "error", "x", "é", "€", "🙂", "\0",
    "\u{FEFF}", ": ping",
];

/// An event as the standard dispatches it: its name, payload, last id.
type Event = (String, String, String);

fn theirs(reads: &[&[u8]]) -> Vec<Event> {
    let reads: Vec<Result<Vec<u8>, Infallible>> = reads.iter().map(|read| Ok(read.to_vec())).collect();
    let events = EventStream::new(stream::iter(reads)).map(|event| {
        let event = event.expect("it is UTF-8");
        (event.event.to_string(), event.data.to_string(), event.id.to_string())
    });
    futures_executor::block_on(events.collect())
}

/// Without what goes beyond the standard: the last event without its blank line, and what stands outside of events.
fn ours(reads: &[&[u8]]) -> Vec<Event> {
    let (frames, error) = frames(Framer::new(Framing::Sse), reads.iter().copied());
    assert_eq!(error, None);
    let events = frames.into_iter().filter(|frame| !frame.unterminated && !frame.outside);
    events.filter_map(|frame| Some((frame.name.unwrap_or("message".into()), frame.data?, frame.id))).collect()
}

/// A sequence that is the same in every run (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) as usize % limit
    }

    fn body(&mut self) -> String {
        let length = self.below(24);
        (0..length).map(|_| TOKENS[self.below(TOKENS.len())]).collect()
    }

    fn cut<'a>(&mut self, mut body: &'a [u8]) -> Vec<&'a [u8]> {
        let mut reads = Vec::new();
        let most = 1 + self.below(12);
        while !body.is_empty() {
            let (read, rest) = body.split_at((1 + self.below(most)).min(body.len()));
            reads.push(read);
            body = rest;
        }
        reads
    }
}

/// There `sseer` keeps the name that was given before, where the standard forgets it.
fn has_a_bare_event_line(body: &str) -> bool {
    body.split(['\n', '\r']).any(|line| line.trim_start_matches('\u{FEFF}') == "event")
}

// spec 2.2
#[test]
fn the_framer_agrees_with_another_implementation_on_random_inputs() {
    let mut random = Random(1);
    let mut compared = 0;
    let mut events = 0;
    while compared < INPUTS {
        let body = random.body();
        if has_a_bare_event_line(&body) {
            continue;
        }
        let reads = random.cut(body.as_bytes());
        let expected = theirs(&reads);
        assert_eq!(
            ours(&reads),
            expected,
            "{body:?} in reads of {:?}",
            reads.iter().map(|read| read.len()).collect::<Vec<_>>()
        );
        compared += 1;
        events += expected.len();
    }
    assert!(events > INPUTS / 10, "only {events} events: the inputs say little");
}

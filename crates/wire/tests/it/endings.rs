//! Endings of streams that did not end by themselves: spec 2.8.

use streamkeeper_contract::{Body, Chunk, ErrorInfo, Outcome, Stop, id};
use streamkeeper_wire::{Decoder, Format, Passthrough};

use crate::streams::{self, Stream};

fn stopped() -> Outcome {
    Outcome::Stopped(Stop {
        observer: id!("guard"),
        code: "pattern_matched".into(),
        reason: "a \"refusal\"".into(),
        chunk_index: 3,
        accumulated_content_length: 9,
    })
}

fn guard_failed() -> Outcome {
    Outcome::Failed { error: ErrorInfo::new("guard_failed").with_component(id!("guard")) }
}

fn source_failed() -> Outcome {
    Outcome::Failed { error: ErrorInfo::new("connection_reset").with_message("from outside") }
}

fn outcomes() -> [Outcome; 6] {
    let aborted = Outcome::Aborted { reason: None, cancel_requested: false };
    [stopped(), guard_failed(), source_failed(), Outcome::Truncated, aborted, Outcome::Dropped]
}

/// The first `frames` frames of a stream, and then an end. `None` if it has no more frames or has ended by then.
fn cut(stream: &Stream, frames: usize, outcome: &Outcome) -> Option<(Vec<Chunk>, Vec<u8>)> {
    let mut pass = Passthrough::new(Decoder::new(stream.format));
    pass.push(&stream.body).expect("the stream can be read");
    let (mut chunks, mut delivered, mut out) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..frames {
        if !pass.next_frame(&mut chunks).expect("the stream can be read") {
            return None;
        }
        pass.write(&chunks, &mut out).expect("nothing was changed");
        delivered.append(&mut chunks);
    }
    pass.end(outcome, &mut out);
    Some((delivered, out))
}

fn decode(format: Format, body: &[u8]) -> Vec<Chunk> {
    let mut decoder = Decoder::new(format);
    decoder.push(body).and_then(|()| decoder.finish()).expect("what is written can be read");
    assert!(!decoder.stats().cut_off && !decoder.stats().unterminated, "the last event is whole");
    std::iter::from_fn(|| decoder.next_chunk()).collect()
}

fn text(chunks: &[Chunk]) -> String {
    chunks.iter().filter(|chunk| chunk.is_delta()).filter_map(Chunk::text).collect()
}

/// The choices that finished, and how often an error was told.
fn ends(chunks: &[Chunk]) -> (Vec<u16>, usize) {
    let finish = |chunk: &Chunk| match chunk.body() {
        Body::Finish(finish) => Some(finish.choice),
        _ => None,
    };
    let errors = chunks.iter().filter(|chunk| matches!(chunk.body(), Body::Error(_))).count();
    (chunks.iter().filter_map(finish).collect(), errors)
}

// spec 2.8
#[test]
fn a_stream_that_is_cut_anywhere_gets_a_valid_end_for_every_outcome() {
    let own = streams::own().len();
    for (at, stream) in streams::all().iter().enumerate().filter(|(_, stream)| stream.format != Format::Raw) {
        // Every place and outcome for our own streams; for the recorded ones, which are long, a choice.
        let (outcomes, step) = if at < own { (&outcomes()[..], 1) } else { (&[stopped(), Outcome::Truncated][..], 13) };
        for outcome in outcomes {
            for frames in (1..12).chain((12..).step_by(step)) {
                let Some((delivered, out)) = cut(stream, frames, outcome) else { break };
                let written = decode(stream.format, &out);
                let place = format!(
                    "{}, {frames} frames, {}: {}",
                    stream.path,
                    outcome.code(),
                    String::from_utf8_lossy(&out[out.len().saturating_sub(900)..])
                );
                // Arguments that only the decoder puts together are closed by it when the stream ends.
                assert!(text(&written).starts_with(&text(&delivered)), "{place}");
                let grows = stream.path.contains("streamed_function_args");
                assert!(grows || text(&written).len() == text(&delivered).len(), "{place}");
                let raw = |chunks: &[Chunk]| chunks.iter().filter(|chunk| matches!(chunk.body(), Body::Raw(_))).count();
                assert_eq!(raw(&written), raw(&delivered), "{place}");
                let ((before, _), (after, errors)) = (ends(&delivered), ends(&written));
                // A canonical end that is neither is read as a mark.
                let marked = stream.format == Format::Jsonl && place.contains(r#""kind":"end""#);
                assert!(marked || after.len() + errors > 0, "there is an end: {place}");
                assert!(errors <= 1, "an error is told once: {place}");
                assert!(after.starts_with(&before), "what was said stays: {place}");
                let again = after[before.len()..].iter().any(|choice| before.contains(choice));
                assert!(!again, "a choice finishes once: {place}");
            }
        }
    }
}

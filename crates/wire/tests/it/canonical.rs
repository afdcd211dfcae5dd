//! spec 1.1, 2.1: whatever a provider says can be written as canonical JSON lines and read again.

use streamkeeper_contract::Chunk;
use streamkeeper_wire::{Decoder, Format};

use crate::streams;

/// All chunks, and what the decoder says of it. A stream that is broken at its end still has the chunks before.
fn decode(format: Format, body: &[u8]) -> Vec<Chunk> {
    let mut decoder = Decoder::new(format);
    let _ = decoder.push(body).and_then(|()| decoder.finish());
    std::iter::from_fn(|| decoder.next_chunk()).collect()
}

#[test]
fn every_chunk_of_every_stream_survives_as_one_line_of_json() {
    for stream in streams::all() {
        let chunks = decode(stream.format, &stream.body);
        let mut lines = String::new();
        for chunk in &chunks {
            let line = serde_json::to_string(chunk).unwrap();
            assert!(!line.contains(['\n', '\r']), "{}: {line}", stream.path);
            assert_eq!(serde_json::from_str::<Chunk>(&line).unwrap(), *chunk, "{}", stream.path);
            lines.push_str(&line);
            lines.push('\n');
        }
        assert!(!chunks.is_empty(), "{}", stream.path);

        let again = decode(Format::Jsonl, lines.as_bytes());
        let bodies = |chunks: &[Chunk]| chunks.iter().map(|chunk| chunk.body().clone()).collect::<Vec<_>>();
        assert_eq!(bodies(&again), bodies(&chunks), "{}", stream.path);
    }
}

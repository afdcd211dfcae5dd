//! Every recorded stream is told from its first event.
#![allow(clippy::print_stderr, reason = "a test that was skipped has to say so")]

use std::path::PathBuf;

use streamkeeper_wire::{Decoder, Format};

fn streams() -> Option<PathBuf> {
    let folder = std::env::var_os("STREAMKEEPER_STREAMS")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/streams"), PathBuf::from);
    if !folder.is_dir() {
        eprintln!("SKIPPED: the recorded streams are not found at {}", folder.display());
        return None;
    }
    Some(folder)
}

// spec 2.1
#[test]
fn every_recorded_stream_is_detected_whole_and_byte_by_byte() {
    let Some(folder) = streams() else { return };
    let truth = std::fs::read_to_string(folder.join("TRUTH.jsonl")).unwrap();
    let mut wrong = Vec::new();
    for line in truth.lines() {
        let truth: serde_json::Value = serde_json::from_str(line).unwrap();
        let (path, wire) = (truth["path"].as_str().unwrap(), truth["wire"].as_str().unwrap());
        let expected = if wire == "sse-other" { Format::Raw } else { wire.parse().unwrap() };
        let body = std::fs::read(folder.join(path)).unwrap();
        for size in [1, 7, usize::MAX] {
            let mut decoder = Decoder::detect();
            for bytes in body.chunks(size.min(body.len())) {
                decoder.push(bytes).unwrap();
            }
            decoder.finish().unwrap();
            let events = decoder.stats().events;
            let lenient = truth["lenient"]["n_events"].as_u64();
            if decoder.format() != Some(expected) || Some(events) != lenient.or(truth["n_events"].as_u64()) {
                wrong.push(format!("{path} by {size}: {:?}, {events} events", decoder.format()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

// spec 2.10
#[test]
fn what_is_no_stream_is_refused_with_a_reason() {
    let noise: Vec<u8> = (0..4096_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    for (format, body, code) in [
        (None, &b""[..], "empty"),
        (None, b"\xEF\xBB\xBF \r\n", "empty"),
        (None, &noise, "undetected"),
        (None, b"hello world\n", "undetected"),
        (None, b"{{{{", "undetected"),
        (Some(Format::AnthropicMessages), b"data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n", "wrong_format"),
        (Some(Format::BedrockConverse), b"data: {\"choices\":[]}\n\n", "wrong_format"),
        (Some(Format::BedrockConverse), &noise, "broken_message"),
    ] {
        let mut decoder = format.map_or_else(Decoder::detect, Decoder::new);
        let error = decoder.push(body).and_then(|()| decoder.finish()).unwrap_err();
        assert_eq!(error.code(), code, "{:?} {error}", String::from_utf8_lossy(&body[..body.len().min(20)]));
    }
}

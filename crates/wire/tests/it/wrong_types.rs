//! Values of types that no provider documents, at every place of every event.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use streamkeeper_contract::Chunk;
use streamkeeper_wire::{Decoder, Format, Framing, frame::Framer};

use crate::{disorder, frames::frames, streams};

/// The value with another one at each of its places in turn.
fn variants(value: &Value, other: &Value) -> Vec<Value> {
    let mut all = vec![other.clone()];
    match value {
        Value::Object(members) => {
            for (key, inner) in members {
                all.extend(variants(inner, other).into_iter().map(|inner| {
                    let mut changed = members.clone();
                    changed.insert(key.clone(), inner);
                    Value::Object(changed)
                }));
            }
        }
        Value::Array(elements) => {
            for (at, inner) in elements.iter().enumerate() {
                all.extend(variants(inner, other).into_iter().map(|inner| {
                    let mut changed = elements.clone();
                    changed[at] = inner;
                    Value::Array(changed)
                }));
            }
        }
        _ => {}
    }
    all
}

/// The same for events that differ in their text only.
fn shape(value: &Value) -> String {
    match value {
        Value::Object(members) => members.iter().map(|(key, value)| format!("{key}({})", shape(value))).collect(),
        Value::Array(elements) => format!("[{}]", elements.iter().map(shape).collect::<String>()),
        Value::String(text) if text.contains('_') || text.contains('.') => text.clone(),
        Value::String(_) => "text".to_owned(),
        value => value.to_string(),
    }
}

fn event(name: Option<&str>, data: &str) -> String {
    let name = name.map(|name| format!("event: {name}\n")).unwrap_or_default();
    format!("{name}data: {}\n\n", data.replace('\n', "\ndata: "))
}

// spec 2.4, 2.10
#[test]
fn a_wrong_type_anywhere_breaks_no_promise() {
    let others =
        [json!(null), json!(7), json!(-1.5), json!("x"), json!([]), json!([{}, 7]), json!({}), json!({"a": "b"})];
    for stream in streams::own() {
        let mut decoder = Decoder::new(stream.format);
        let (Ok(()), Some(framing)) = (decoder.push(&stream.body), decoder.framing()) else { continue };
        if framing == Framing::AwsEventStream || stream.format == Format::Raw {
            continue;
        }
        let (frames, _) = frames(Framer::new(framing), [&stream.body[..]]);
        let events: Vec<(Option<String>, String)> =
            frames.into_iter().filter_map(|frame| Some((frame.name, frame.data?))).collect();
        let written: Vec<String> = events.iter().map(|(name, data)| event(name.as_deref(), data)).collect();
        let mut shapes = BTreeSet::new();
        for (at, (name, data)) in events.iter().enumerate() {
            let Ok(value) = serde_json::from_str::<Value>(data) else { continue };
            if !shapes.insert(shape(&value)) {
                continue;
            }
            for variant in others.iter().flat_map(|other| variants(&value, other)) {
                let mut changed = written.clone();
                changed[at] = event(name.as_deref(), &variant.to_string());
                let mut decoder = Decoder::new(stream.format);
                let result = decoder.push(changed.concat().as_bytes()).and_then(|()| decoder.finish());
                assert!(result.is_ok(), "{}: {result:?} with {}", stream.path, changed[at]);
                let chunks: Vec<Chunk> = std::iter::from_fn(|| decoder.next_chunk()).collect();
                if let Err(error) = disorder::check(stream.format, &chunks) {
                    panic!("{}: {error} with {}", stream.path, changed[at]);
                }
            }
        }
    }
}

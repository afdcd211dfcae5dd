//! Every recorded stream says what parsers that are not ours found in it, however it is cut.

use serde_json::{Value, json};
use streamkeeper_wire::{Decoder, Format, Inspection, WireError};

use crate::streams::{self, Stream};

/// How the bodies are fed: whole, then so many bytes at a time.
const SPLITS: [usize; 6] = [usize::MAX, 1, 2, 3, 7, 64];

// spec 2.1, 2.2, 2.4, 2.5, 2.6, 2.7
#[test]
fn every_recorded_stream_says_what_is_in_it() {
    let streams = streams::recorded();
    let truths = streams::truths();
    let mut wrong = Vec::new();
    for stream in &streams {
        match truths.iter().find(|truth| truth["path"] == stream.path.as_str()) {
            Some(truth) => wrong.extend(check(stream, truth)),
            None => wrong.push(format!("{} is not described", stream.path)),
        }
    }
    assert_eq!(streams.len(), truths.len(), "every stream that is described is there");
    assert!(wrong.is_empty(), "{} differences\n{}", wrong.len(), wrong.join("\n"));
}

/// The differences of one stream, in every split, with its format named and detected.
fn check(stream: &Stream, truth: &Value) -> Vec<String> {
    let Stream { path, format, body } = stream;
    let expected = expected(truth, *format);
    let mut wrong: Vec<String> = Vec::new();
    for split in SPLITS {
        for named in [true, false] {
            let decoder = if named { Decoder::new(*format) } else { Decoder::detect() };
            let way = format!("{} by {split}", if named { "named" } else { "detected" });
            match inspect(decoder, body, split) {
                Ok(inspection) => {
                    let found = serde_json::to_value(&inspection).unwrap();
                    for difference in differences(&expected, &found) {
                        let difference = format!("{path}: {difference}");
                        // The same difference in another split is no news.
                        if !wrong.iter().any(|known| known.starts_with(&difference)) {
                            wrong.push(format!("{difference} ({way})"));
                        }
                    }
                }
                Err(error) => wrong.push(format!("{path}: {error} ({way})")),
            }
        }
    }
    wrong
}

fn inspect(mut decoder: Decoder, body: &[u8], split: usize) -> Result<Inspection, WireError> {
    for bytes in body.chunks(split.min(body.len())) {
        decoder.push(bytes)?;
    }
    decoder.finish()?;
    Ok(Inspection::of(&mut decoder))
}

/// What has to be found. A last event without its blank line is delivered (spec 2.2), so the lenient reading counts where there is one. An
/// error body outside of events is an error too. A format that is unknown here says nothing but how many events there are.
fn expected(truth: &Value, format: Format) -> Value {
    let mut truth = truth.clone();
    if let Some(lenient) = truth["lenient"].as_object().cloned() {
        for (field, value) in lenient {
            truth[field] = value;
        }
    }
    let error = truth["error"].as_bool().unwrap() || !truth["error_outside_events"].is_null();
    let mut expected = json!({
        "format": format.name(), "n_events": truth["n_events"], "error": error, "terminal": truth["terminal"],
        "error_outside_events": truth["error_outside_events"],
    });
    if format != Format::Raw {
        for field in ["text", "reasoning", "refusal", "finish", "model", "choices"] {
            expected[field] = truth[field].clone();
        }
        for field in ["input", "output", "cached", "reasoning", "cache_write"] {
            expected["usage"][field] = truth["usage"][field].clone();
        }
        for field in ["tool_calls", "server_tool_calls"] {
            let calls = truth[field].as_array().unwrap().iter();
            let call = |call: &Value| json!({"id": call["id"], "name": call["name"], "arguments": call["arguments"]});
            expected[field] = calls.map(call).collect();
        }
    }
    expected
}

fn differences(expected: &Value, found: &Value) -> Vec<String> {
    let expected = expected.as_object().unwrap();
    let wrong = expected.iter().filter(|(field, value)| match field.as_str() {
        "tool_calls" | "server_tool_calls" => !same_calls(value, &found[field]),
        _ => *value != &found[field],
    });
    wrong.map(|(field, value)| format!("{field} is {} instead of {}", short(&found[field]), short(value))).collect()
}

fn same_calls(expected: &Value, found: &Value) -> bool {
    let (expected, found) = (expected.as_array().unwrap(), found.as_array().unwrap());
    expected.len() == found.len()
        && expected.iter().zip(found).all(|(expected, found)| {
            expected["id"] == found["id"]
                && expected["name"] == found["name"]
                && same_arguments(&expected["arguments"], &found["arguments"])
        })
}

/// Arguments are the same text, or the same JSON where the wire carries an object.
fn same_arguments(expected: &Value, found: &Value) -> bool {
    let json = |text: &Value| serde_json::from_str::<Value>(text.as_str()?).ok();
    expected == found || json(expected).is_some_and(|expected| Some(expected) == json(found))
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= 200 {
        return text;
    }
    let head: String = text.chars().take(100).collect();
    let tail: String = text.chars().rev().take(60).collect::<Vec<_>>().into_iter().rev().collect();
    format!("{head} … {tail} ({} bytes)", text.len())
}

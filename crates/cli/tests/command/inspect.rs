use serde_json::{Value, json};

use crate::{recorded, run, streams};

const FIELDS: [&str; 7] = ["n_events", "text", "reasoning", "refusal", "finish", "error", "model"];
const USAGE: [&str; 5] = ["input", "output", "cached", "reasoning", "cache_write"];

fn inspect(path: &str, more: &[&str]) -> Value {
    let ran = run(&[&["inspect", "--json"], more, &[path]].concat());
    serde_json::from_str(ran.out()).unwrap_or_else(|error| panic!("{path}: {error}: {}{}", ran.out(), ran.stderr))
}

/// Calls with arguments as JSON values, ids only where the truth has one.
fn calls(calls: &Value, truth: &Value) -> Vec<Value> {
    let read = |call: &Value| {
        let arguments = call["arguments"].as_str().unwrap_or_default();
        serde_json::from_str(arguments).unwrap_or_else(|_| json!(arguments))
    };
    let empty = Vec::new();
    let truth = truth.as_array().unwrap_or(&empty);
    let pairs = calls.as_array().unwrap_or(&empty).iter().enumerate();
    pairs
        .map(|(i, call)| {
            let id = if truth.get(i).is_some_and(|truth| truth["id"].is_null()) { &Value::Null } else { &call["id"] };
            json!([id, call["name"], read(call)])
        })
        .collect()
}

fn differences(path: &str, found: &Value, truth: &Value) -> Vec<String> {
    let mut truth = truth.clone();
    // We read a whole last event without its blank line, and a bare error body, where strict parsers drop them (spec 2.2).
    for (field, value) in truth["lenient"].as_object().cloned().unwrap_or_default() {
        truth[field] = value;
    }
    if truth["error_outside_events"].is_string() {
        truth["error"] = true.into();
    }
    let mut differences = Vec::new();
    let mut compare = |field: &str, found: &Value, truth: &Value| {
        if found != truth {
            differences.push(format!("{path}: {field} is {found}, not {truth}"));
        }
    };
    for field in FIELDS {
        compare(field, &found[field], &truth[field]);
    }
    if !truth["terminal"].is_null() {
        compare("terminal", &found["terminal"], &truth["terminal"]);
    }
    for bucket in USAGE {
        compare(&format!("usage.{bucket}"), &found["usage"][bucket], &truth["usage"][bucket]);
    }
    compare("choices", &found["choices"], &truth["choices"]);
    for field in ["tool_calls", "server_tool_calls"] {
        let (found, truth) = (calls(&found[field], &truth[field]), calls(&truth[field], &truth[field]));
        compare(field, &json!(found), &json!(truth));
    }
    differences
}

/// spec 2.1, 2.6
#[test]
fn every_fixture_holds_what_its_authors_wrote() {
    let expected = std::fs::read_to_string(streams().join("expected.jsonl")).unwrap();
    let mut differing = Vec::new();
    for truth in expected.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        let path = truth["path"].as_str().unwrap();
        let format = truth["format"].as_str().unwrap();
        for more in [&[][..], &["--format", format], &["--chunk-bytes", "1"], &["--chunk-bytes", "7"]] {
            let found = inspect(path, more);
            differing.extend(differences(path, &found, &truth));
            assert_eq!((&found["format"], &found["outcome"]), (&truth["format"], &truth["outcome"]), "{path} {more:?}");
        }
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}

/// spec 2.1, 2.6
#[test]
fn every_recorded_stream_holds_what_independent_parsers_say() {
    let Some(folder) = recorded() else { return };
    let truth = std::fs::read_to_string(folder.join("TRUTH.jsonl")).unwrap();
    let mut differing = Vec::new();
    let mut count = 0;
    for truth in truth.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        if truth["wire"] == "sse-other" {
            continue;
        }
        let path = folder.join(truth["path"].as_str().unwrap());
        let path = path.to_str().unwrap();
        let whole = inspect(path, &[]);
        differing.extend(differences(path, &whole, &truth));
        for n in ["1", "7"] {
            assert_eq!(inspect(path, &["--chunk-bytes", n]), whole, "{path}, {n} bytes at a time");
        }
        count += 1;
    }
    assert!(differing.is_empty(), "{} of {count} streams:\n{}", differing.len(), differing.join("\n"));
}

#[test]
fn without_json_it_prints_a_table_for_people() {
    let ran = run(&["inspect", "support-chat.anthropic.sse"]).expect(0);
    for part in ["anthropic-messages", "track_parcel", "tool_use", "1024", "finished"] {
        assert!(ran.out().contains(part), "{part} is not in {}", ran.out());
    }
}

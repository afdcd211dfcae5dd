use std::{
    io::{Read, Write},
    process::Stdio,
};

use crate::{command, feed, fixture, folder, json_lines, recorded, run, streams};

const README: &str = "Hi Maya, thanks for your patience! I have looked up order 48213: it left our warehouse in Rotterdam on \
    Tuesday and should reach you tomorrow before noon.\n\nThe shipping fee of 4,90 € goes back to your card today – you do not have \
    to do anything. Is there anything else I can help with? 🙂";

#[test]
fn the_text_comes_first_and_then_a_summary() {
    let ran = run(&["observe", "support-chat.openai.sse"]).expect(0);
    assert!(ran.out().starts_with(&format!("{README}\n")), "{}", ran.out());
    let summary = &ran.out()[README.len()..];
    for part in ["outcome", "finished (stop)", "usage", "412", "61", "metrics", "openai-chat"] {
        assert!(summary.contains(part), "{part} is not in {summary}");
    }
    assert_eq!(ran.stderr, "");
}

/// spec 3.11
#[test]
fn text_is_printed_before_the_input_ends() {
    let stream = std::fs::read(fixture("support-chat.openai.sse")).unwrap();
    let cut = stream.len() / 2;
    let mut child = command()
        .args(["observe", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    stdin.write_all(&stream[..cut]).unwrap();
    stdin.flush().unwrap();
    // The pipe stays open: whatever arrives now arrived before the end.
    let mut start = [0; 40];
    stdout.read_exact(&mut start).unwrap();
    assert_eq!(&start[..], &README.as_bytes()[..40]);
    stdin.write_all(&stream[cut..]).unwrap();
    drop(stdin);
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    assert!(rest.starts_with(&README[40..]), "{rest}");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// spec 3.5
#[test]
fn a_halt_stops_the_stream_before_what_it_matches() {
    let ran = run(&["observe", "--halt", "Rotter", "support-chat.openai.sse"]).expect(3);
    let text = ran.out().split('\n').next().unwrap();
    assert!(README.starts_with(text) && !text.contains("Rotter"), "{text}");
    assert!(ran.out().contains("stopped"), "{}", ran.out());
}

/// spec 3.3
#[test]
fn a_halt_finds_what_is_split_over_chunks() {
    let ran = run(&["observe", "--halt", "sk-demo-[0-9A-Za-z]{8}", "leaked-key.openai.sse"]).expect(3);
    assert!(!ran.out().contains("4f9A2c77"), "{}", ran.out());
}

#[test]
fn the_exit_code_says_how_the_stream_ended() {
    for (stream, code, outcome) in [
        ("support-chat.openai.sse", 0, "finished (stop)"),
        ("tool-calls.openai.sse", 0, "finished (tool_calls)"),
        ("cut-off.anthropic.sse", 2, "truncated"),
        ("overloaded.anthropic.sse", 2, "overloaded_error"),
    ] {
        let ran = run(&["observe", stream]).expect(code);
        assert!(ran.out().contains(outcome), "{stream}: {}", ran.out());
    }
}

#[test]
fn chunks_are_json_lines_and_the_summary_is_apart() {
    let ran = run(&["observe", "--emit", "chunks", "support-chat.openai.sse"]).expect(0);
    let chunks = json_lines(ran.out());
    let text: String =
        chunks.iter().filter(|c| c["kind"] == "content_delta").filter_map(|c| c["text"].as_str()).collect();
    assert_eq!(text, README);
    assert_eq!(chunks.last().unwrap()["kind"], "end");
    assert!(ran.stderr.contains("finished (stop)"), "{}", ran.stderr);
    // What it prints is a stream of its own format.
    let again = feed(&["observe", "--format", "jsonl", "-"], &ran.stdout).expect(0);
    assert!(again.out().starts_with(README), "{}", again.out());
}

/// spec 2.8
#[test]
fn watchers_alone_leave_every_byte_as_it_is() {
    let mut paths: Vec<_> = std::fs::read_dir(streams()).unwrap().map(|entry| entry.unwrap().path()).collect();
    if let Some(recorded) = recorded() {
        for folder in
            std::fs::read_dir(recorded).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir())
        {
            paths.extend(std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
    let is_stream = |path: &&std::path::PathBuf| !path.ends_with("README.md") && !path.ends_with("expected.jsonl");
    let mut count = 0;
    // A body that breaks off inside an event gets an end: see the next test.
    for path in paths.iter().filter(is_stream).filter(|path| !path.ends_with("cut-off.anthropic.sse")) {
        let ran = run(&["observe", "--emit", "wire", path.to_str().unwrap()]);
        assert!(ran.stdout == std::fs::read(path).unwrap(), "{} changed: {}", path.display(), ran.stderr);
        count += 1;
    }
    assert!(count >= 18, "only {count} streams were there");
}

/// spec 2.4, 2.8
#[test]
fn a_body_that_breaks_off_is_ended_as_truncated() {
    let ran = run(&["observe", "--emit", "wire", "cut-off.anthropic.sse"]).expect(2);
    let original = std::fs::read_to_string(fixture("cut-off.anthropic.sse")).unwrap();
    let (whole, broken) = original.rsplit_once("\n\n").unwrap();
    let end = ran.out().strip_prefix(whole).unwrap_or_else(|| panic!("{}", ran.out()));
    assert!(!end.contains(broken) && end.contains("\"truncated\""), "{end}");
    let again = feed(&["inspect", "--json", "-"], &ran.stdout).expect(2);
    assert!(again.out().contains("\"outcome\":\"failed\""), "{}", again.out());
}

/// spec 2.8
#[test]
fn a_stopped_wire_stream_ends_as_its_format_wants() {
    let ran = run(&["observe", "--emit", "wire", "--halt", "Rotter", "support-chat.openai.sse"]).expect(3);
    assert!(ran.out().ends_with("data: [DONE]\n\n"), "{}", ran.out());
    assert!(ran.out().contains("content_filter") && !ran.out().contains("Rotter"), "{}", ran.out());
    assert!(ran.stderr.contains("stopped"), "{}", ran.stderr);
    let again = feed(&["inspect", "--json", "-"], &ran.stdout).expect(0);
    assert!(again.out().contains("\"finish\":\"content_filter\""), "{}", again.out());
}

#[test]
fn every_fixture_can_be_observed_and_converted() {
    for entry in std::fs::read_dir(streams()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if ["README.md", "expected.jsonl", "cut-off.anthropic.sse", "overloaded.anthropic.sse"].contains(&name) {
            continue;
        }
        let observed = run(&["observe", name]).expect(0);
        for format in ["openai-chat", "anthropic-messages", "ag-ui", "jsonl"] {
            let converted = run(&["convert", "--to", format, name]).expect(0);
            let inspected = feed(&["inspect", "--format", format, "--json", "-"], &converted.stdout).expect(0);
            let inspected: serde_json::Value = serde_json::from_str(inspected.out()).unwrap();
            let text = inspected["text"].as_str().unwrap();
            assert!(observed.out().starts_with(text), "{name} as {format}: {text:?}");
            assert_eq!(inspected["outcome"], "finished", "{name} as {format}");
        }
    }
}

#[test]
fn a_recording_file_is_made_before_the_stream_is_read() {
    let folder = folder("record-first");
    let ran = run(&["observe", "--record", folder.to_str().unwrap(), "support-chat.openai.sse"]).expect(1);
    assert_eq!(ran.out(), "");
}

use std::{
    io::Write,
    process::Stdio,
    time::{Duration, Instant},
};

use crate::{command, fixture, folder, json_lines, run};

/// spec 3.14
#[test]
fn a_raw_recording_replays_without_a_difference() {
    let folder = folder("replay");
    let recording = folder.join("run.jsonl");
    let recording = recording.to_str().unwrap();
    for args in [&["support-chat.openai.sse"][..], &["--halt", "Rotterdam", "support-chat.openai.sse"]] {
        run(&[&["observe", "--record", recording, "--raw"], args].concat());
        let replay = run(&[&["replay"], &args[..args.len() - 1], &[recording]].concat()).expect(0);
        assert!(replay.out().contains("no difference"), "{}", replay.out());
    }
}

/// spec 3.10, 3.14
#[test]
fn a_changed_observer_is_found_at_the_first_differing_chunk() {
    let folder = folder("replay-changed");
    let recording = folder.join("run.jsonl");
    let recording = recording.to_str().unwrap();
    run(&["observe", "--record", recording, "--raw", "support-chat.openai.sse"]).expect(0);
    let replay = run(&["replay", "--halt", "warehouse", recording]).expect(4);
    assert!(replay.out().contains("chunk"), "{}", replay.out());
}

/// spec 3.14
#[test]
fn a_delivered_recording_holds_nothing_that_was_withheld() {
    let folder = folder("delivered");
    let path = folder.join("run.jsonl");
    let recording = path.to_str().unwrap();
    run(&["observe", "--halt", "sk-demo-[0-9A-Za-z]{8}", "--record", recording, "leaked-key.openai.sse"]).expect(3);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(!json_lines(&text).is_empty());
    assert!(!text.contains("77Qm"), "{text}");
    let replay = run(&["replay", recording]).expect(1);
    assert!(replay.stderr.contains("raw"), "{}", replay.stderr);
    let explained = run(&["explain", recording]).expect(0);
    assert!(explained.out().contains("stopped") && explained.out().contains("halt"), "{}", explained.out());
}

/// spec 3.10, 3.14
#[test]
fn a_replay_in_real_time_takes_as_long_as_the_recording() {
    let folder = folder("real-time");
    let recording = folder.join("run.jsonl");
    let stream = std::fs::read(fixture("support-chat.openai.sse")).unwrap();
    let pause = Duration::from_millis(700);
    let mut observe = command()
        .args(["observe", "--raw", "--record", recording.to_str().unwrap(), "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = observe.stdin.take().unwrap();
    stdin.write_all(&stream[..1000]).unwrap();
    std::thread::sleep(pause);
    stdin.write_all(&stream[1000..]).unwrap();
    drop(stdin);
    assert!(observe.wait().unwrap().success());

    let replay = |more: &[&str]| {
        let start = Instant::now();
        run(&[&["replay", recording.to_str().unwrap()], more].concat()).expect(0);
        start.elapsed()
    };
    // Recorded time is data: it does not depend on how fast this machine is now.
    assert!(replay(&["--real-time"]) >= pause - Duration::from_millis(100));
    let at_once = (0..3).map(|_| replay(&[])).min();
    assert!(at_once < Some(pause), "{at_once:?}");
}

/// Nothing is lost: a recording does not take the place of the stream that is read.
#[test]
fn a_recording_does_not_overwrite_its_stream() {
    let path = folder("record-self").join("stream.jsonl");
    let stream = "{\"kind\":\"content_delta\",\"text\":\"Hello\"}\n";
    std::fs::write(&path, stream).unwrap();
    let name = path.display().to_string();
    let ran = run(&["observe", "--record", &name, &name]).expect(1);
    assert!(ran.stderr.contains("is the stream itself"), "{}", ran.stderr);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), stream);
}

use std::{
    io::{Read, Write},
    process::Stdio,
};

use crate::{command, feed, fixture, folder, run};

#[test]
fn a_wrong_argument_or_file_is_exit_code_1() {
    let folder = folder("no-stream");
    for (args, message) in [
        (&["observe"][..], "Usage:"),
        (&["observe", "--format", "gpt", "support-chat.openai.sse"], "openai-chat"),
        (&["observe", "--halt", "(", "support-chat.openai.sse"], "--halt"),
        (&["observe", "--call-class", "Not Valid", "support-chat.openai.sse"], "--call-class"),
        (&["observe", "--raw", "support-chat.openai.sse"], "--record"),
        (&["observe", "--record", "no/such/folder/x.jsonl", "support-chat.openai.sse"], "no/such/folder/x.jsonl"),
        (&["observe", "no-such-file.sse"], "no-such-file.sse"),
        (&["observe", folder.to_str().unwrap()], "folder"),
        (&["inspect", "--chunk-bytes", "0", "support-chat.openai.sse"], "--chunk-bytes"),
        (&["convert", "--to", "gemini", "support-chat.openai.sse"], "openai-chat"),
        (&["replay", "support-chat.openai.sse"], "recording"),
        (&["explain", "support-chat.openai.sse"], "recording"),
        (&["replay", "no-such-file.jsonl"], "no-such-file.jsonl"),
        (&["frobnicate"], "frobnicate"),
    ] {
        let ran = run(args);
        assert_eq!(ran.code, 1, "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(message), "{args:?}: {}", ran.stderr);
    }
}

/// spec 2.4, 2.10
#[test]
fn bytes_that_are_no_stream_are_exit_code_2_with_a_clear_message() {
    let noise: Vec<u8> = (0..10_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let cut_off = std::fs::read(fixture("cut-off.anthropic.sse")).unwrap();
    let openai = std::fs::read(fixture("support-chat.openai.sse")).unwrap();
    let bin = std::fs::read(fixture("support-chat.bedrock-converse.bin")).unwrap();
    let mut damaged = bin.clone();
    damaged[40] ^= 1;
    for (args, bytes, message) in [
        (&["observe", "-"][..], &b""[..], "empty"),
        (&["observe", "--format", "gemini", "-"], b"", "empty"),
        (&["observe", "-"], &noise, "format"),
        (&["observe", "--format", "openai-chat", "-"], &noise, "openai-chat"),
        (&["observe", "-"], b"hello, world\n", "format"),
        (&["observe", "-"], b"<html><body>502 Bad Gateway</body></html>", "format"),
        (&["observe", "--format", "anthropic-messages", "-"], &openai, "openai-chat"),
        (&["observe", "-"], &cut_off, "truncated"),
        (&["observe", "-"], &bin[..bin.len() / 2], "truncated"),
        (&["observe", "--format", "bedrock-converse", "-"], &damaged, "broken"),
        (&["observe", "-"], b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\xff\"}}]}\n\n", "truncated"),
    ] {
        let ran = feed(args, bytes);
        assert_eq!(
            ran.code,
            2,
            "{args:?} {:?}: {}",
            String::from_utf8_lossy(&bytes[..bytes.len().min(40)]),
            ran.stderr
        );
        let said = format!("{}{}", ran.out(), ran.stderr);
        assert!(said.contains(message), "{args:?}: expected {message:?} in {said}");
    }
}

/// spec 2.3
#[test]
fn an_event_of_100_megabytes_ends_at_the_limit_in_bounded_memory() {
    // 256 MiB of address space: far less than an event of 100 MB and its copies would need.
    let limited =
        format!("ulimit -v 262144; exec '{}' observe --format openai-chat -", env!("CARGO_BIN_EXE_streamkeeper"));
    let mut child = std::process::Command::new("sh")
        .args(["-c", &limited])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut taken = 0_usize;
    stdin.write_all(b"data: {\"choices\":[{\"delta\":{\"content\":\"").unwrap();
    while taken < 100 << 20 && stdin.write_all(&[b'x'; 1 << 16]).is_ok() {
        taken += 1 << 16;
    }
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("event_too_large") || said.contains("larger than the limit"), "{said}");
    assert!(taken < 20 << 20, "it should let go of its source at the limit, and took {taken} bytes");
}

#[test]
fn a_reader_that_goes_away_is_no_fault() {
    let mut child = command()
        .args(["observe", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().unwrap();
    let stream = std::fs::read(fixture("support-chat.openai.sse")).unwrap();
    let _ = stdin.write_all(&stream);
    drop(stdin);
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!((child.wait().unwrap().code(), said.as_str()), (Some(0), ""));
}

use std::path::PathBuf;

use crate::{feed, folder, json_lines, run};

fn example() -> String {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/streamkeeper.toml").display().to_string()
}

fn write(folder_name: &str, text: &str) -> String {
    let path = folder(folder_name).join("streamkeeper.toml");
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// spec 6.8
#[test]
fn check_says_what_a_policy_registers() {
    let ran = run(&["policy", "check", &example()]).expect(0);
    let lines: Vec<Vec<&str>> = ran.out().lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["policy", "support-chat"]);
    assert!(lines[1][1].starts_with("sha256:") && lines[1][1].len() == 71, "{}", ran.out());
    assert_eq!(lines[2][..6], ["observers", "normalize-dialects", "normalize-dialects", "transform", "all", "calls"]);
    assert_eq!(lines[3][..5], ["redact", "redact", "guard", "all", "calls"]);
    assert_eq!(lines[4][..5], ["refusals", "halt-on-pattern", "guard", "synthesize", "calls"]);
    assert!(ran.out().contains("text becomes \"[withheld]\""), "{}", ran.out());
    assert_eq!(lines.len(), 13);
}

#[test]
fn check_says_where_a_policy_is_wrong() {
    let path = write("policy-wrong", "version = 1\n[[observers]]\nkind = 'metrics'\nevrey = 1\n");
    for args in [&["policy", "check", &path][..], &["observe", "--policy", &path, "support-chat.openai.sse"]] {
        let ran = run(args).expect(1);
        let expected = format!("streamkeeper: {path}:4:1: unknown key `evrey`");
        assert!(ran.stderr.starts_with(&expected) && ran.stderr.ends_with("did you mean `every`?\n"), "{}", ran.stderr);
        assert_eq!(ran.out(), "");
    }
    let ran = run(&["policy", "check", "no-such.toml"]).expect(1);
    assert!(ran.stderr.starts_with("streamkeeper: cannot read no-such.toml: "), "{}", ran.stderr);
}

#[test]
fn the_schema_is_the_published_one() {
    let published = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/policy.schema.json");
    assert_eq!(run(&["policy", "schema"]).expect(0).out(), std::fs::read_to_string(published).unwrap());
}

/// spec 3.14
#[test]
fn a_policy_guards_a_stream_and_stands_in_its_recording() {
    let path =
        write("policy-guards", "version = 1\nid = 'p'\n[[observers]]\nkind = 'halt-on-pattern'\npattern = 'Rotter'\n");
    let record = folder("policy-recording").join("out.jsonl").display().to_string();
    let args = ["observe", "--policy", &path, "--record", &record, "--raw", "support-chat.openai.sse"];
    let ran = run(&args).expect(3);
    assert!(ran.out().contains("halt-on-pattern: stop × 1"), "{}", ran.out());
    let header = json_lines(&std::fs::read_to_string(&record).unwrap()).remove(0);
    assert_eq!(header["policy_id"], "p");
    let hash = header["policy_hash"].as_str().unwrap().to_owned();
    assert!(run(&["policy", "check", &path]).expect(0).out().contains(&hash));
    run(&["replay", "--policy", &path, &record]).expect(0);
    run(&["replay", &record]).expect(4);
}

/// spec 6.3
#[test]
fn normalise_makes_calls_of_what_was_written_as_text() {
    let stream = r#"{"kind":"content_delta","text":"Wait. <to"}
{"kind":"content_delta","text":"ol name=\"f\">{}</tool>"}
{"kind":"finish","reason":"stop"}
"#;
    for flag in ["--normalise", "--normalize"] {
        let ran = feed(&["observe", flag, "--emit", "chunks", "--format", "jsonl", "-"], stream.as_bytes()).expect(0);
        let kinds: Vec<_> =
            json_lines(ran.out()).iter().map(|line| line["kind"].as_str().unwrap().to_owned()).collect();
        assert_eq!(kinds, ["content_delta", "tool_call", "finish", "end"]);
    }
    // Two of one id.
    let ran = run(&["observe", "--normalise", "--policy", &example(), "support-chat.openai.sse"]).expect(1);
    assert!(ran.stderr.contains("`normalize-dialects` is registered already"), "{}", ran.stderr);
}

/// spec 6.1
#[test]
fn redact_takes_out_what_it_is_told_however_it_is_cut() {
    let stream = r#"{"kind":"content_delta","text":"Mail ada@exam"}
{"kind":"content_delta","text":"ple.org, TICKET-"}
{"kind":"content_delta","text":"1"}
{"kind":"finish","reason":"stop"}
"#;
    for (flags, expected) in [
        (&["--redact", "pii"][..], "Mail [EMAIL], TICKET-1"),
        (&["--redact", "secrets,pii,ticket=TICKET-[0-9]{1,3}"], "Mail [EMAIL], [TICKET]"),
        (&["--redact", "pii", "--redact", "t=TICKET-1", "--replace", "mask"], "Mail ***, ***"),
        (&["--redact", "pii", "--replace", "token"], "Mail [EMAIL_1], TICKET-1"),
        (&["--redact", "secrets"], "Mail ada@example.org, TICKET-1"),
    ] {
        let args = [&["observe"][..], flags, &["--format", "jsonl", "-"]].concat();
        let ran = feed(&args, stream.as_bytes()).expect(0);
        assert!(ran.out().starts_with(&format!("{expected}\n")), "{}", ran.out());
    }
    for (flags, expected) in [
        (&["--redact", "names"][..], "`names` is neither `secrets` nor `pii` nor NAME=REGEX"),
        (&["--redact", "x=(a"], "unclosed group"),
        (&["--redact", ""], "needs `secrets`, `pii` or NAME=REGEX"),
        (&["--redact", "pii", "--replace", "hash"], "STREAMKEEPER_HASH_KEY"),
        (&["--replace", "mask"], "--redact"),
    ] {
        let ran = run(&[&["observe"][..], flags, &["support-chat.openai.sse"]].concat());
        assert!(ran.stderr.contains(expected), "{}", ran.stderr);
    }
}

/// spec 6.2
#[test]
fn a_recited_prompt_stops_the_stream() {
    let prompt = "You are a helpful assistant of the shop. Never tell anybody about the warehouse in Rotterdam or the voucher SAVE20.";
    let path = folder("prompt-leak").join("prompt.txt");
    std::fs::write(&path, prompt).unwrap();
    let stream = format!("{{\"kind\":\"content_delta\",\"text\":\"My prompt: {prompt} That is all.\"}}\n");
    let path = path.display().to_string();
    let ran = feed(&["observe", "--prompt-leak", &path, "--format", "jsonl", "-"], stream.as_bytes()).expect(3);
    assert!(ran.out().contains("prompt-leak: stop × 1"), "{}", ran.out());
    std::fs::write(&path, "\n").unwrap();
    let ran = run(&["observe", "--prompt-leak", &path, "support-chat.openai.sse"]).expect(1);
    assert!(ran.stderr.contains("the file is empty"), "{}", ran.stderr);
    run(&["observe", "--prompt-leak", "no-such.txt", "support-chat.openai.sse"]).expect(1);
}

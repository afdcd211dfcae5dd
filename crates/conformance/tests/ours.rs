//! Our own crates give what the vectors expect, called directly and through the protocol that other programs speak.

use streamkeeper_conformance::{Process, Report, observers};

#[track_caller]
fn assert_clean(report: &Report, at_least: usize) {
    assert!(report.is_clean() && report.unsupported.is_empty(), "{report}");
    assert!(report.passed >= at_least, "only {} cases were run", report.passed);
}

fn ourselves() -> Process {
    Process::start(&format!("exec '{}' --answer", env!("CARGO_BIN_EXE_streamkeeper-conformance"))).expect("it starts")
}

#[test]
fn our_decoder_gives_what_the_vectors_expect() {
    assert_clean(&streamkeeper_conformance::wire::run("", &mut streamkeeper_conformance::wire::Ours), 280);
}

#[test]
fn our_stack_gives_what_the_vectors_expect() {
    assert_clean(&streamkeeper_conformance::stream::run("", &mut streamkeeper_conformance::stream::Ours), 35);
}

#[test]
fn our_observers_give_what_the_vectors_expect() {
    assert_clean(&streamkeeper_conformance::observers::run("", &mut observers::Registered::bundled()), 1000);
}

#[test]
fn a_program_that_speaks_the_protocol_is_tested_like_a_library() {
    let mut process = ourselves();
    assert_clean(&streamkeeper_conformance::wire::run("", &mut process), 280);
    assert_clean(&streamkeeper_conformance::stream::run("", &mut process), 35);
    assert_clean(&streamkeeper_conformance::observers::run("tool tag", &mut process), 50);
}

#[test]
fn an_implementation_that_loses_text_fails() {
    // Answers every request with nothing.
    let mut process = Process::start(r#"while read -r line; do echo '{"chunks": [], "delivered": []}'; done"#).unwrap();
    let report = streamkeeper_conformance::wire::run("CRLF pair", &mut process);
    assert_eq!((report.passed, report.is_clean()), (0, false), "{report}");
    assert!(report.to_string().contains("raw: expected 2 elements, got 0"), "{report}");
}

#[test]
fn a_program_that_ends_or_talks_nonsense_fails_and_hangs_nothing() {
    for (command, why) in [("true", "the program has ended"), ("while read -r l; do echo hello; done", "it is no JSON")]
    {
        let report = streamkeeper_conformance::wire::run("CRLF pair", &mut Process::start(command).unwrap());
        assert_eq!(report.passed, 0, "{report}");
        let said = report.to_string();
        assert!(said.contains(why) || said.contains("takes no requests"), "{said}");
    }
}

#[test]
fn what_a_program_does_not_support_is_listed_apart() {
    let mut process = Process::start(r#"while read -r l; do echo '{"unsupported": "no SSE here"}'; done"#).unwrap();
    let report = streamkeeper_conformance::wire::run("CRLF pair", &mut process);
    assert!((report.passed, report.failed.len()) == (0, 0) && !report.unsupported.is_empty(), "{report}");
    assert!(!report.is_clean());
}

/// Every file of vectors is built in: a new one cannot be forgotten.
#[test]
fn every_file_of_vectors_is_run() {
    for layer in ["wire", "stream", "observers"] {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors").join(layer);
        let source = std::fs::read_to_string(format!("{}/src/{layer}.rs", env!("CARGO_MANIFEST_DIR"))).unwrap();
        for entry in std::fs::read_dir(folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            assert!(source.contains(&format!("vectors/{layer}/{name}")), "{name} is not in FILES of src/{layer}.rs");
        }
    }
}

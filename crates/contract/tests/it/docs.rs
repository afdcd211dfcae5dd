//! The pages in `docs` say what is true. spec 1.1, 1.2, 1.13

use std::collections::BTreeSet;

use streamkeeper_contract::{Channel, Chunk, ChunkKind, FailureKind, FinishReason, Hook, Outcome, Verdict, codes};

const STREAM_EVENTS: &str = include_str!("../../../../docs/stream-events.md");
const CODES: &str = include_str!("../../../../docs/codes.md");

/// The lines of all blocks of JSON.
fn json_lines(page: &str) -> impl Iterator<Item = &str> {
    let blocks = page.split("```json\n").skip(1).filter_map(|rest| rest.split("```").next());
    blocks.flat_map(str::lines)
}

#[test]
fn every_kind_stands_on_the_page_in_the_form_it_is_written_in() {
    let mut kinds = BTreeSet::new();
    for line in json_lines(STREAM_EVENTS) {
        let chunk: Chunk = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}\n{line}"));
        assert_eq!(serde_json::to_string(&chunk).unwrap(), line);
        kinds.insert(chunk.kind());
    }
    let missing: Vec<_> = ChunkKind::ALL.iter().filter(|kind| !kinds.contains(kind)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn every_outcome_and_channel_stands_on_the_page() {
    for code in Outcome::CODES {
        assert!(STREAM_EVENTS.contains(&format!(r#"{{"kind":"end","outcome":{{"kind":"{code}""#)), "{code}");
    }
    for channel in Channel::ALL {
        assert!(STREAM_EVENTS.contains(&format!("`{channel}`")), "{channel}");
    }
}

/// The first column of the table under a heading.
fn listed(heading: &str) -> Vec<&'static str> {
    let section = CODES.split("\n## ").find_map(|section| section.strip_prefix(heading)?.strip_prefix('\n'));
    let rows = section.unwrap_or_else(|| panic!("no section {heading}")).lines();
    rows.filter_map(|row| row.strip_prefix("| `")?.split('`').next()).collect()
}

#[test]
fn the_page_of_codes_lists_what_the_code_has() {
    let kinds: Vec<_> = FailureKind::ALL.iter().map(|kind| kind.as_str()).collect();
    let hooks: Vec<_> = Hook::ALL.iter().map(|hook| hook.as_str()).collect();
    for (heading, codes) in [
        ("Outcomes", Outcome::CODES),
        ("Finish reasons", FinishReason::NAMES),
        ("Errors", codes::ALL),
        ("Failures", &kinds),
        ("Hooks", &hooks),
        ("Verdicts", Verdict::NAMES),
    ] {
        assert_eq!(listed(heading), codes, "{heading}");
    }
}

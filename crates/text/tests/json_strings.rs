//! JSON text in pieces is searched as what its strings mean.

use proptest::prelude::*;
use streamkeeper_text::{CutKind, JsonScanner, Pattern, Patterns};

fn patterns() -> &'static Patterns {
    static PATTERNS: std::sync::LazyLock<Patterns> = std::sync::LazyLock::new(|| {
        Patterns::new([
            Pattern::regex("ab", "a+b").unwrap(),
            Pattern::literal("smile", "x😀").unwrap(),
            Pattern::regex("nl", r"\nb*").unwrap(),
            Pattern::regex("digits", "1[12]{2,}").unwrap(),
        ])
        .unwrap()
    });
    &PATTERNS
}

/// Replaces by the place of the pattern, in angle brackets, or in square ones outside of strings.
fn run<'a>(pieces: impl IntoIterator<Item = &'a str>) -> String {
    let mut scanner = JsonScanner::new(patterns());
    let (mut pending, mut out) = (String::new(), String::new());
    let mut take = |pending: &str, cuts: Vec<streamkeeper_text::JsonCut>| {
        let mut at = 0;
        for cut in cuts {
            assert_eq!(cut.range.start, at, "cuts have no gaps");
            at = cut.range.end;
            match cut.kind {
                CutKind::Text => out.push_str(&pending[cut.range]),
                CutKind::Match { pattern, begins: true } if cut.in_string => out.push_str(&format!("<{pattern}>")),
                CutKind::Match { pattern, begins: true } => out.push_str(&format!("({pattern})")),
                CutKind::Match { .. } => {}
            }
        }
    };
    for piece in pieces {
        pending.push_str(piece);
        let scan = scanner.push(&pending);
        take(&pending, scan.cuts);
        pending.drain(..pending.len() - scan.keep);
    }
    let scan = scanner.finish(&pending);
    assert_eq!(scan.keep, 0);
    take(&pending, scan.cuts);
    out
}

// spec 6.1a
#[test]
fn strings_are_searched_decoded_and_everything_else_as_it_is() {
    for (text, expected) in [
        (r#"{"k":"xaab"}"#, r#"{"k":"x<0>"}"#),
        (r#"{"\u0061b":1}"#, r#"{"<0>":1}"#),
        (r#"["a","b"]"#, r#"["a","b"]"#),
        (r#"["x\ud83d\ude00!"]"#, r#"["<1>!"]"#),
        (r#"["x😀","x\ud83d"]"#, r#"["<1>","x\ud83d"]"#),
        (r#"["\nbb\\nb"]"#, r#"["<2>\\nb"]"#),
        (r#"{"n":1122}"#, r#"{"n":(3)}"#),
        (r#"["a\"b a\/ab"]"#, r#"["a\"b a\/<0>"]"#),
        ("not json: aab, 112", "not json: (0), (3)"),
        (r#"["\q\u00"#, r#"["\q\u00"#),
    ] {
        assert_eq!(run([text]), expected, "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    // spec 6.1a
    #[test]
    fn every_split_gives_what_one_piece_gives(
        parts in proptest::collection::vec(prop_oneof![
            Just("\""), Just("a"), Just("b"), Just("\\u0061"), Just("\\ud83d"), Just("\\ude00"), Just("x"), Just("😀"), Just("\\n"),
            Just("\\"), Just("\\\""), Just("12"), Just("é"), Just("\\q"), Just("{"), Just(":"),
        ], 0..16),
        cuts in proptest::collection::vec(any::<bool>(), 64),
    ) {
        let text = parts.concat();
        let mut pieces = vec![String::new()];
        for (i, c) in text.chars().enumerate() {
            if cuts[i % 64] {
                pieces.push(String::new());
            }
            pieces.last_mut().unwrap().push(c);
        }
        prop_assert_eq!(run(pieces.iter().map(String::as_str)), run([text.as_str()]), "{:?}", pieces);
    }
}

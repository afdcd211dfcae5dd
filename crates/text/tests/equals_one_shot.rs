//! What the scanner says of a text in pieces is what a search of the whole text says, and nothing waits longer than it must.

use proptest::prelude::*;
use regex::Regex;
use streamkeeper_text::{CutKind, Pattern, Patterns, Scanner, redact_pieces};

/// A pattern and its validator.
type Rule = (Pattern, fn(&str) -> bool);

/// The reference: each pattern's matches on the whole text, the union of them merged, each replaced once.
fn one_shot(patterns: &[Rule], text: &str) -> String {
    let mut spans = Vec::new();
    for (index, (pattern, accepts)) in patterns.iter().enumerate() {
        let regex = Regex::new(pattern.expression()).unwrap();
        let mut from = 0;
        while let Some(found) = regex.find_at(text, from) {
            if accepts(found.as_str()) {
                spans.push((found.start(), index, found.end()));
                from = found.end();
            } else {
                from = found.start() + text[found.start()..].chars().next().map_or(1, char::len_utf8);
            }
            if from > text.len() {
                break;
            }
        }
    }
    spans.sort_unstable();
    let (mut out, mut at, mut covered) = (String::new(), 0, None);
    for (start, index, end) in spans {
        if covered.is_none_or(|covered| start > covered) {
            out.push_str(&text[at..start]);
            out.push_str(&label(patterns[index].0.name()));
        }
        if covered.is_none_or(|covered| end > covered) {
            covered = Some(end);
            at = end;
        }
    }
    out.push_str(&text[at..]);
    out
}

fn label(name: &str) -> String {
    format!("<{name}>")
}

fn all(_: &str) -> bool {
    true
}

fn even_digits(text: &str) -> bool {
    text.bytes().filter(u8::is_ascii_digit).map(|digit| u32::from(digit - b'0')).sum::<u32>().is_multiple_of(3)
}

fn sets() -> Vec<Vec<Rule>> {
    let plain = |name: &str, source: &str| (Pattern::regex(name, source).unwrap(), all as fn(&str) -> bool);
    let digits = |source: &str| {
        (Pattern::regex("digits", source).unwrap().with_validator(even_digits), even_digits as fn(&str) -> bool)
    };
    let literals = |name: &str, texts: &[&str]| (Pattern::literals(name, texts).unwrap(), all as fn(&str) -> bool);
    let even_literals = (
        Pattern::literals("even", ["12", "1", "21a"]).unwrap().with_validator(even_digits),
        even_digits as fn(&str) -> bool,
    );
    vec![
        vec![literals("words", &["aab", "ab", "abab1", "é", "b@a"])],
        vec![literals("first", &["a", "ab"]), literals("long", &["abaa", "ab", "aba"]), plain("mail", "[ab]+@[ab]+")],
        vec![even_literals, literals("none", &[]), plain("ones", r"\b1+a")],
        vec![plain("abab", "abab")],
        vec![plain("lazy", "a+?b|a"), plain("greedy", "ab*")],
        vec![plain("word", r"\bab+\b"), plain("end", r"ba$"), plain("start", "^a")],
        vec![plain("mail", r"[ab.]+@[ab]+\.[ab]+"), plain("b", "b@")],
        vec![digits(r"\b[12]{2,4}\b"), plain("a1", "a1+")],
        vec![digits("[12]{2}"), digits("[123]+a?")],
        vec![plain("first", "a|ab"), plain("opt", "a(b*1)?"), plain("uni", "[^a]é")],
        vec![plain("aa", "aa"), plain("long", "aab(ab)*1"), plain("x", "(?i)é+a")],
        vec![plain("many", "a{2,3}|aaaab"), plain("key", "1-[ab12]{3,}")],
    ]
}

fn build(set: &[Rule]) -> Patterns {
    Patterns::new(set.iter().map(|(pattern, _)| pattern.clone())).unwrap()
}

fn cut(text: &str, cuts: &[bool]) -> Vec<String> {
    let mut pieces = vec![String::new()];
    for (i, c) in text.chars().enumerate() {
        if cuts.get(i).copied().unwrap_or(false) {
            pieces.push(String::new());
        }
        pieces.last_mut().unwrap().push(c);
    }
    pieces
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    // spec 6.1
    #[test]
    fn every_split_gives_what_one_shot_gives(
        text in "[ab12@. é-]{0,24}", cuts in proptest::collection::vec(any::<bool>(), 24),
    ) {
        for set in sets() {
            let patterns = build(&set);
            let pieces = cut(&text, &cuts);
            let out = redact_pieces(&patterns, pieces.iter().map(String::as_str), label).concat();
            prop_assert_eq!(&out, &one_shot(&set, &text), "{:?} {:?}", pieces, set.iter().map(|p| p.0.expression()).collect::<Vec<_>>());
        }
    }

    // spec 6.1
    #[test]
    fn a_byte_is_held_only_while_a_continuation_can_change_what_it_is(text in "[ab1@.]{0,7}") {
        // What a validator will say of a candidate, no automaton knows: a candidate waits until it is whole.
        for set in sets().into_iter().filter(|set| set.iter().all(|(_, accepts)| accepts("1"))) {
            let patterns = build(&set);
            let mut scanner = Scanner::new(&patterns);
            let keep = scanner.push(&text).keep;
            if keep == 0 {
                continue;
            }
            // What the first held byte is differs from continuation to continuation.
            let at = text.len() - keep;
            let mut seen: Option<What> = None;
            let undecided = tails().iter().any(|tail| {
                let what = what_is(&set, &format!("{text}{tail}"), at);
                *seen.get_or_insert(what) != what
            });
            prop_assert!(undecided, "{text:?} holds {keep}, {seen:?}, {:?}", set.iter().map(|p| p.0.expression()).collect::<Vec<_>>());
        }
    }
}

/// Continuations up to four characters.
fn tails() -> Vec<String> {
    let mut all = vec![String::new()];
    let mut from = 0;
    for _ in 0..4 {
        let to = all.len();
        for i in from..to {
            for c in ['a', 'b', '-', '1', '2', '@', '.', ' ', 'é'] {
                all.push(format!("{}{c}", all[i]));
            }
        }
        from = to;
    }
    all
}

/// In which match a byte is, if in one.
type What = Option<usize>;

fn what_is(set: &[Rule], whole: &str, at: usize) -> What {
    let patterns = build_cached(set);
    let scan = Scanner::new(&patterns).finish(whole);
    scan.cuts.iter().find(|cut| cut.range.contains(&at)).and_then(|cut| match cut.kind {
        CutKind::Match { pattern, .. } => Some(pattern),
        CutKind::Text => None,
    })
}

fn build_cached(set: &[Rule]) -> Patterns {
    thread_local!(static CACHE: std::cell::RefCell<Vec<(String, Patterns)>> = const { std::cell::RefCell::new(Vec::new()) });
    let key: String = set.iter().map(|(pattern, _)| format!("{}\n", pattern.expression())).collect();
    CACHE.with_borrow_mut(|cache| match cache.iter().find(|(known, _)| *known == key) {
        Some((_, patterns)) => patterns.clone(),
        None => {
            let patterns = build(set);
            cache.push((key, patterns.clone()));
            patterns
        }
    })
}

// spec 6.1
#[test]
fn a_certain_match_is_swallowed_and_not_held() {
    let patterns = Patterns::new([Pattern::regex("key", "sk-[a-z]{4,}").unwrap()]).unwrap();
    let mut scanner = Scanner::new(&patterns);
    let scan = scanner.push("x sk-abcdefgh");
    assert_eq!(scan.keep, 0);
    for _ in 0..1000 {
        let scan = scanner.push("abcdefghijklmnop");
        assert_eq!((scan.keep, scan.cuts.len()), (0, 1));
        assert!(matches!(scan.cuts[0].kind, CutKind::Match { begins: false, .. }));
    }
    assert_eq!(scanner.push(" y").cuts.len(), 1);
}

// spec 6.1
#[test]
fn the_worst_hold_is_known_when_a_pattern_is_built() {
    for (source, expected) in
        [("abc", Some(2)), ("sk-[a-z]{4,}", Some(6)), ("a+b", None), ("a(b*c)?", None), (r"[ab]{2,5}x", Some(5))]
    {
        let patterns = Patterns::new([Pattern::regex("p", source).unwrap()]).unwrap();
        assert_eq!(patterns.costs().next().unwrap().worst_hold, expected, "{source}");
    }
}

// spec 6.1
#[test]
fn five_thousand_literals_are_one_pattern_and_five_thousand_patterns_find_the_same() {
    let words: Vec<String> = (0..5_000).map(|i| format!("word-{}-{i}", i % 7)).collect();
    let one = Patterns::new([Pattern::literals("word", &words).unwrap()]).unwrap();
    let each = Patterns::new(words.iter().map(|word| Pattern::literal("word", word).unwrap())).unwrap();
    let text = "a word-3-4994 and word-3-4993, wo word-0-7word-1-1 end wor";
    // 4993 is 2 modulo 7: `word-3-4993` is not in the list.
    let expected = "a <word> and word-3-4993, wo <word> end wor";
    for patterns in [&one, &each] {
        let whole = redact_pieces(patterns, [text], label).concat();
        let bytes: Vec<&str> = (0..text.len()).map(|i| &text[i..=i]).collect();
        assert_eq!(redact_pieces(patterns, bytes, label).concat(), whole);
        assert_eq!(whole, expected);
    }
}

// spec 6.1
#[test]
fn literals_that_are_refused_are_refused_by_a_typed_error() {
    use streamkeeper_text::PatternError;
    assert!(matches!(Pattern::literals("p", ["a", ""]), Err(PatternError::MatchesEmpty { .. })));
    let long = "x".repeat(Pattern::MAX_LITERALS);
    assert!(Pattern::literals("p", [&long]).is_ok());
    assert!(matches!(Pattern::literals("p", [&long, "y"]), Err(PatternError::TooManyLiterals { .. })));
}

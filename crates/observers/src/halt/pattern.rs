//! One regular expression over a text that arrives in pieces.
//!
//! Two machines share the work. A dense DFA carries its state from piece to piece and says, at one table look-up a byte, whether a match
//! may have ended; it never looks back. Only when it says so does the full engine search the kept end of the text, which decides. So the
//! common piece costs its own bytes and no more.

use std::ops::Range;

use regex_automata::{
    Anchored, Input, MatchKind,
    dfa::{Automaton, StartKind, dense},
    meta,
    nfa::thompson,
    util::{primitives::StateID, start},
};
use regex_syntax::hir::{self, Hir, HirKind, Look};
use streamkeeper_contract::Text;

/// A pattern was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatternError {
    /// It is no regular expression in the syntax of the `regex` crate. Holds the parser's explanation, which quotes the pattern.
    #[error("the pattern is not valid: {0}")]
    Syntax(Text),
    /// It matches the empty text, so it would match before a model has said anything.
    #[error("the pattern matches empty text")]
    MatchesEmpty,
    /// Its text is longer than [`MAX_PATTERN_BYTES`](crate::MAX_PATTERN_BYTES), or its compiled form is larger than 4 MiB.
    #[error("the pattern is too large")]
    TooLarge,
}

/// The most bytes a pattern may have: 64 KiB.
pub const MAX_PATTERN_BYTES: usize = 64 * 1024;

const MAX_COMPILED_BYTES: usize = 4 * 1024 * 1024;
/// What the scout may take. A pattern that needs more is searched without it.
const MAX_SCOUT_BYTES: usize = 1024 * 1024;
/// One of each class of characters that a look-around can tell apart: word, word outside of ASCII, neither, and the line ends.
const NEXT: [char; 5] = ['a', 'é', ' ', '\n', '\r'];
/// Kept before the window, so that a look-behind at its start sees a whole character.
const CONTEXT_BYTES: usize = 4;

/// A compiled pattern, shared by all lanes and invocations.
#[derive(Debug)]
pub(crate) struct Pattern {
    regex: meta::Regex,
    scout: Option<dense::DFA<Vec<u32>>>,
    longest: Option<usize>,
    looks_around: bool,
}

/// The end of one text and what the scout knows of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tail {
    text: String,
    state: Option<StateID>,
}

/// What a text says about a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Judgement {
    /// No match ends here or before.
    None,
    /// There is a match if the text ends here, and perhaps none if it goes on.
    Undecided,
    /// There is a match, whatever follows. Where it is in [`Tail::text`].
    Match(Range<usize>),
}

impl Tail {
    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

impl Pattern {
    pub(crate) fn new(pattern: &str) -> Result<Self, PatternError> {
        if pattern.len() > MAX_PATTERN_BYTES {
            return Err(PatternError::TooLarge);
        }
        let hir = regex_syntax::parse(pattern).map_err(|error| PatternError::Syntax(error.to_string().into()))?;
        if hir.properties().minimum_len() == Some(0) {
            return Err(PatternError::MatchesEmpty);
        }
        let config = meta::Config::new().nfa_size_limit(Some(MAX_COMPILED_BYTES));
        let regex = meta::Builder::new().configure(config).build_from_hir(&hir).map_err(|_| PatternError::TooLarge)?;
        Ok(Self {
            scout: scout(&hir),
            longest: hir.properties().maximum_len(),
            looks_around: !hir.properties().look_set().is_empty(),
            regex,
        })
    }

    /// Adds a piece to a text and judges it. `window` is how many bytes before the piece a match may begin.
    pub(crate) fn push(&self, tail: &mut Tail, piece: &str, window: usize) -> Judgement {
        let window = self.longest.map_or(window, |longest| longest.min(window));
        let from = start_of_last(&tail.text, window);
        tail.text.push_str(piece);
        let mut judgement = Judgement::None;
        if self.may_match(tail, piece) {
            judgement = self.judge(&mut tail.text, from);
            match judgement {
                Judgement::Match(_) => return judgement,
                Judgement::Undecided => {}
                // What the scout saw began before the window or was none: it has to forget it.
                Judgement::None => self.restart_scout(tail, window),
            }
        }
        // A quarter more than needed, so that the text moves once in a while and not for every piece.
        if tail.text.len() > window + window / 4 + 64 {
            let cut = start_of_last(&tail.text, window + CONTEXT_BYTES);
            tail.text.drain(..cut);
        }
        judgement
    }

    /// Where a match is in a text that goes no further.
    pub(crate) fn find(&self, text: &str) -> Option<Range<usize>> {
        self.regex.find(text).map(|found| found.range())
    }

    /// Where a match is in a text that may go on, if what follows cannot undo it.
    pub(crate) fn find_before_more(&self, text: &str) -> Option<Range<usize>> {
        match self.push(&mut Tail::default(), text, 0) {
            Judgement::Match(range) => Some(range),
            Judgement::None | Judgement::Undecided => None,
        }
    }

    /// Where the match is in which a text ends that goes no further and was undecided until now.
    pub(crate) fn find_at_end(&self, tail: &Tail, window: usize) -> Option<Range<usize>> {
        let from = start_of_last(&tail.text, window);
        self.regex.find(Input::new(&tail.text).range(from..)).map(|found| found.range())
    }

    fn judge(&self, text: &mut String, from: usize) -> Judgement {
        let end = text.len();
        let Some(found) = self.regex.find(Input::new(&*text).range(from..)) else { return Judgement::None };
        let holds_before = |next: char| {
            text.push(next);
            let holds = self.regex.is_match(Input::new(&*text).range(from..end));
            text.truncate(end);
            holds
        };
        if self.looks_around && !NEXT.into_iter().all(holds_before) {
            return Judgement::Undecided;
        }
        Judgement::Match(found.range())
    }

    /// Takes the scout over the piece. `false` if no match has ended since it last said so, and none ends here.
    fn may_match(&self, tail: &mut Tail, piece: &str) -> bool {
        let Some(scout) = &self.scout else { return true };
        let mut seen = false;
        let Some(mut state) = tail.state.or_else(|| start_state(scout, None)) else { return true };
        for &byte in piece.as_bytes() {
            state = scout.next_state(state, byte);
            seen |= scout.is_match_state(state) || scout.is_quit_state(state);
        }
        tail.state = Some(state);
        seen || scout.is_match_state(scout.next_eoi_state(state))
    }

    fn restart_scout(&self, tail: &mut Tail, window: usize) {
        let Some(scout) = &self.scout else { return };
        let (before, kept) = tail.text.as_bytes().split_at(start_of_last(&tail.text, window));
        tail.state = start_state(scout, before.last().copied())
            .map(|state| kept.iter().fold(state, |state, &byte| scout.next_state(state, byte)));
    }
}

/// A DFA that finds where matches may end. It may say so too often, never too rarely: look-arounds that a DFA cannot check count as met.
fn scout(hir: &Hir) -> Option<dense::DFA<Vec<u32>>> {
    let config =
        thompson::Config::new().which_captures(thompson::WhichCaptures::None).nfa_size_limit(Some(MAX_SCOUT_BYTES));
    let nfa = thompson::Compiler::new().configure(config).build_from_hir(&without_unicode_words(hir)).ok()?;
    let config = dense::Config::new()
        .match_kind(MatchKind::All)
        .start_kind(StartKind::Unanchored)
        .dfa_size_limit(Some(MAX_SCOUT_BYTES))
        .determinize_size_limit(Some(MAX_SCOUT_BYTES));
    dense::Builder::new().configure(config).build_from_nfa(&nfa).ok()
}

fn start_state(scout: &dense::DFA<Vec<u32>>, before: Option<u8>) -> Option<StateID> {
    scout.start_state(&start::Config::new().anchored(Anchored::No).look_behind(before)).ok()
}

fn without_unicode_words(hir: &Hir) -> Hir {
    match hir.kind() {
        HirKind::Look(
            Look::WordUnicode
            | Look::WordUnicodeNegate
            | Look::WordStartUnicode
            | Look::WordEndUnicode
            | Look::WordStartHalfUnicode
            | Look::WordEndHalfUnicode,
        ) => Hir::empty(),
        HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) | HirKind::Look(_) => hir.clone(),
        HirKind::Repetition(repetition) => {
            let sub = Box::new(without_unicode_words(&repetition.sub));
            Hir::repetition(hir::Repetition { sub, ..repetition.clone() })
        }
        HirKind::Capture(capture) => without_unicode_words(&capture.sub),
        HirKind::Concat(parts) => Hir::concat(parts.iter().map(without_unicode_words).collect()),
        HirKind::Alternation(parts) => Hir::alternation(parts.iter().map(without_unicode_words).collect()),
    }
}

fn start_of_last(text: &str, bytes: usize) -> usize {
    text.floor_char_boundary(text.len().saturating_sub(bytes))
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, LazyLock};

    use proptest::prelude::*;

    use super::*;

    /// After how many bytes a text, pushed in these pieces, is known to match. `None` if it never is.
    fn decided_at(pattern: &Pattern, pieces: &[&str], window: usize) -> Option<usize> {
        let mut tail = Tail::default();
        let mut bytes = 0;
        pieces.iter().find_map(|piece| {
            bytes += piece.len();
            matches!(pattern.push(&mut tail, piece, window), Judgement::Match(_)).then_some(bytes)
        })
    }

    #[test]
    fn a_match_is_known_as_soon_as_nothing_can_undo_it() {
        for (pattern, pieces, expected) in [
            ("secret", &["my sec", "ret", "s"][..], Some(9)),
            ("secret", &["my sec", "re", "d"], None),
            (r"\bhelp\b", &["I can help", "ful"], None),
            (r"\bhelp\b", &["I can help", " you"], Some(14)),
            (r"\bhelp", &["I can help", "ful"], Some(10)),
            (r"help\B", &["I can help", "ful"], Some(13)),
            (r"(?-u:\b)help(?-u:\b)", &["I can help", "é"], Some(12)),
            (r"\bhelp\b", &["I can help", "é"], None),
            (r"end$", &["the end", " of"], None),
            (r"(?m)end$", &["the end", "\nof"], Some(10) /* 7 + 3 */),
            (r"\Aend", &["the ", "end"], None),
            (r"\Aend", &["e", "n", "d"], Some(3)),
            (r"a.*b", &["a", "xx", "b", "y"], Some(4)),
            (r"a.*", &["a", "b"], Some(1)),
        ] {
            assert_eq!(decided_at(&Pattern::new(pattern).unwrap(), pieces, 100), expected, "{pattern} over {pieces:?}");
        }
    }

    #[test]
    fn text_before_the_window_is_forgotten() {
        for (pattern, window, between, expected) in [
            ("a.*b", 10, 8, true),
            ("a.*b", 10, 9, true),
            ("a.*b", 10, 10, false),
            // The window is longer than any match can be, so it is cut down to that.
            ("a.b", 1000, 1, true),
        ] {
            let pattern = Pattern::new(pattern).unwrap();
            let text = format!("a{}b", "x".repeat(between));
            let pieces: Vec<_> = text.split_inclusive(|_| true).collect();
            assert_eq!(decided_at(&pattern, &pieces, window).is_some(), expected, "{between} bytes between");
        }
    }

    #[test]
    fn what_was_forgotten_does_not_come_back() {
        // The begin of each match is always out of the window, so the scout is wrong every time; then a whole match comes.
        let pattern = Pattern::new("a[^b]*b").unwrap();
        let far = format!("a{}b", "x".repeat(30));
        let text = format!("{far}{far}{far}axb");
        let pieces: Vec<_> = text.split_inclusive(|_| true).collect();
        assert_eq!(decided_at(&pattern, &pieces, 8), Some(text.len()));
    }

    #[test]
    fn the_window_is_cut_at_a_character() {
        let pattern = Pattern::new("é+x").unwrap();
        for window in 0..12 {
            let pieces: Vec<_> = std::iter::repeat_n("é", 50).chain(["x"]).collect();
            // An odd window reaches into the middle of a character, which then counts whole.
            assert_eq!(decided_at(&pattern, &pieces, window).is_some(), window > 0, "window of {window}");
        }
    }

    #[test]
    fn memory_stays_near_the_window() {
        let pattern = Pattern::new("never.*ever").unwrap();
        let mut tail = Tail::default();
        for _ in 0..10_000 {
            pattern.push(&mut tail, "token ", 1000);
            assert!(tail.text.len() <= 1000 + 1000 / 4 + 64 + "token ".len());
        }
    }

    #[test]
    fn bad_patterns_are_refused() {
        assert!(matches!(Pattern::new("a("), Err(PatternError::Syntax(_))));
        assert!(matches!(Pattern::new(r"a(?=b)"), Err(PatternError::Syntax(_))));
        for pattern in ["a*", "", r"\b", "(a|)"] {
            assert_eq!(Pattern::new(pattern).unwrap_err(), PatternError::MatchesEmpty);
        }
        for pattern in [&"a".repeat(MAX_PATTERN_BYTES + 1), r"\w{1000}{1000}"] {
            assert_eq!(Pattern::new(pattern).unwrap_err(), PatternError::TooLarge);
        }
    }

    #[test]
    fn a_pattern_too_large_for_the_scout_still_works() {
        let pattern = Pattern::new(r"\w{40,80} stop").unwrap();
        assert!(pattern.scout.is_none());
        assert_eq!(decided_at(&pattern, &[&"ä".repeat(50), " st", "op"], 1000), Some(105));
    }

    fn split<'t>(text: &'t str, cuts: &[prop::sample::Index]) -> Vec<&'t str> {
        let mut at: Vec<_> = cuts.iter().map(|cut| text.floor_char_boundary(cut.index(text.len() + 1))).collect();
        at.extend([0, text.len()]);
        at.sort_unstable();
        at.windows(2).map(|pair| &text[pair[0]..pair[1]]).filter(|piece| !piece.is_empty()).collect()
    }

    static PATTERNS: LazyLock<Vec<(&str, Arc<Pattern>)>> = LazyLock::new(|| {
        let patterns = [
            "ab",
            "a.*b",
            r"\bab\b",
            r"(?-u:\b)a(?-u:\b)",
            "a[^b]{2,4}b",
            r"(?m)^a",
            r"(?m)b$",
            r"b$",
            r"\Aé",
            r"a\B",
            "(?i)AB a",
            r"\b(?:aa|b\s+a)\b",
            "éé|ba",
            r"\b{start}é",
            r"a\b{end-half}",
        ];
        patterns.into_iter().map(|pattern| (pattern, Arc::new(Pattern::new(pattern).unwrap()))).collect()
    });

    /// The same by trying every text that may follow. Slow and plain.
    fn reference(regex: &meta::Regex, pieces: &[&str]) -> Option<usize> {
        let mut text = String::new();
        pieces.iter().find_map(|piece| {
            text.push_str(piece);
            let sure = ["", "a", "é", " ", "\n", "\r\n", "\r", "b"].iter().all(|next| {
                let whole = format!("{text}{next}");
                regex.is_match(Input::new(&whole).range(..text.len()))
            });
            sure.then_some(text.len())
        })
    }

    proptest! {
        /// spec 3.10: the same for every split of the same text, but for where its pieces end.
        #[test]
        fn every_split_agrees_with_the_whole_text(
            text in "[abé \n]{0,40}",
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
            pattern in prop::sample::select(&*PATTERNS),
        ) {
            let pieces = split(&text, &cuts);
            prop_assert_eq!(decided_at(&pattern.1, &pieces, 1000), reference(&pattern.1.regex, &pieces), "{}", pattern.0);
        }
    }
}

use std::{fmt, ops::Range, sync::Arc};

use streamkeeper_contract::{Json, Text};
use streamkeeper_text::{CutKind, JsonScanner, Patterns, Scanner};

/// Redacts whole texts as [`Redact`](crate::Redact) does streams: messages, system prompts and tool results before they reach a model, or
/// a line of a log. Cheap to clone.
///
/// ```
/// use streamkeeper_observers::{Redact, Replacement, Vault};
///
/// let vault = Vault::new();
/// let redactor = Redact::pii().replacement(Replacement::Token(vault.clone())).redactor();
/// let redacted = redactor.redact("Book for ada@example.org and ada@example.org.");
/// assert_eq!(redacted.text, "Book for [EMAIL_1] and [EMAIL_1].");
/// assert_eq!(redacted.found, ["email", "email"]);
///
/// let answer = "Booked for [EMAIL_1]."; // the model's
/// assert_eq!(vault.restore(answer), "Booked for ada@example.org.");
/// ```
#[derive(Clone)]
pub struct Redactor {
    patterns: Patterns,
    /// Makes of the pattern's name and the match what takes its place.
    replacement: Make,
}

type Make = Arc<dyn Fn(&str, &str) -> Text + Send + Sync>;

/// A text without its matches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Redacted {
    /// The text.
    pub text: String,
    /// The names of the patterns that matched, one for each match, in the order of the text.
    pub found: Vec<Text>,
}

impl Redactor {
    pub(super) fn new(patterns: Patterns, replacement: impl Fn(&str, &str) -> Text + Send + Sync + 'static) -> Self {
        Self { patterns, replacement: Arc::new(replacement) }
    }

    /// What it looks for.
    pub fn patterns(&self) -> &Patterns {
        &self.patterns
    }

    /// Replaces all matches in a text.
    pub fn redact(&self, text: &str) -> Redacted {
        let scan = Scanner::new(&self.patterns).finish(text);
        self.replace(text, scan.cuts.into_iter().map(|cut| (cut.range, cut.kind, Place::Plain)))
    }

    /// Replaces all matches in the strings of a JSON text, keys and values, with escapes decoded. A number, or whatever else stands outside
    /// of strings, is replaced by a JSON string, as a whole if a part of it is matched. Text that is no JSON is searched all the same, cut at its quotes.
    pub fn redact_json(&self, json: &str) -> Redacted {
        let scan = JsonScanner::new(&self.patterns).finish(json);
        let place = |in_string| if in_string { Place::InString } else { Place::Structure };
        self.replace(json, scan.cuts.into_iter().map(|cut| (cut.range, cut.kind, place(cut.in_string))))
    }

    fn replace(&self, text: &str, cuts: impl Iterator<Item = (Range<usize>, CutKind, Place)>) -> Redacted {
        let mut out = Redacted::default();
        let mut open: Option<(usize, Range<usize>, Place)> = None;
        // The rest of a number of which a part was replaced.
        let mut rest_goes = false;
        for (range, kind, place) in cuts {
            match (kind, &mut open) {
                (CutKind::Match { begins: false, .. }, Some((_, all, _))) => all.end = range.end,
                (CutKind::Match { pattern, .. }, _) => {
                    rest_goes |= self.close(text, &mut open, &mut out);
                    if rest_goes && matches!(place, Place::Structure) && is_scalar(&text[range.clone()]) {
                        // Of the same number as the match before it.
                        out.found.push(self.name(pattern).into());
                        continue;
                    }
                    rest_goes = false;
                    open = Some((pattern, range, place));
                }
                (CutKind::Text, _) => {
                    rest_goes |= self.close(text, &mut open, &mut out);
                    let passed = &text[range];
                    let left = if rest_goes { passed.trim_start_matches(of_scalar) } else { passed };
                    rest_goes &= left.is_empty();
                    out.text.push_str(left);
                }
            }
        }
        self.close(text, &mut open, &mut out);
        out
    }

    fn name(&self, pattern: usize) -> &str {
        self.patterns.get(pattern).map_or("", |pattern| pattern.name())
    }

    /// Writes what takes the place of a match that is over. Says whether the rest of what it stands in goes with it.
    fn close(&self, text: &str, open: &mut Option<(usize, Range<usize>, Place)>, out: &mut Redacted) -> bool {
        let Some((pattern, range, place)) = open.take() else { return false };
        let name = self.name(pattern);
        let matched = &text[range];
        match place {
            Place::Plain => out.text.push_str(&(self.replacement)(name, matched)),
            Place::InString => {
                let meant: Option<String> = serde_json::from_str(&format!("\"{matched}\"")).ok();
                let replacement = (self.replacement)(name, meant.as_deref().unwrap_or(matched));
                let json = Json::string(&replacement);
                out.text.push_str(&json.as_str()[1..json.as_str().len() - 1]);
            }
            Place::Structure => {
                let kept = out.text.trim_end_matches(of_scalar).len();
                out.text.truncate(kept);
                out.text.push_str(Json::string(&(self.replacement)(name, matched)).as_str());
            }
        }
        out.found.push(name.into());
        matches!(place, Place::Structure)
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor").field("patterns", &self.patterns.len()).finish_non_exhaustive()
    }
}

/// Whether a character can be of a number, `true`, `false` or `null`.
fn of_scalar(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.')
}

fn is_scalar(text: &str) -> bool {
    text.chars().all(of_scalar)
}

#[derive(Debug, Clone, Copy)]
enum Place {
    Plain,
    InString,
    Structure,
}

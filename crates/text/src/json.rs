use std::ops::Range;

use crate::{CutKind, Patterns, Scanner};

/// Looks at JSON text that comes in pieces, for example the arguments of a tool call, and sees what its strings mean.
///
/// The text is read as segments: the content of each string, key or value, with its escapes decoded; and what stands between strings, as
/// it is. Each segment is a text of its own: no match reaches across a quote. Text that is no JSON is searched all the same, cut at its
/// quotes.
///
/// An escape is one piece: it is in a match whole or not at all, and a part of one waits for the rest. Surrogates wait for their
/// partner; a lone one counts as U+FFFD. An escape that JSON does not know stands for itself.
///
/// ```
/// use streamkeeper_text::{JsonScanner, Pattern, Patterns};
///
/// let patterns = Patterns::new([Pattern::literal("name", "Zoë")?])?;
/// let mut scanner = JsonScanner::new(&patterns);
/// let scan = scanner.finish(r#"{"to":"Zo\u00eb!"}"#);
/// assert!(scan.cuts.iter().any(|cut| cut.range == (7..15)));
/// # Ok::<_, streamkeeper_text::PatternError>(())
/// ```
#[derive(Debug, Clone)]
pub struct JsonScanner {
    scanner: Scanner,
    in_string: bool,
    decoded: Decoded,
}

/// What is certain after a piece of JSON text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JsonScan {
    /// The decided part of the pending text, in order, without gaps, from its beginning.
    pub cuts: Vec<JsonCut>,
    /// How many bytes at the end are undecided. Show them again, at the beginning of the next pending text.
    pub keep: usize,
}

/// A decided part of the pending JSON text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonCut {
    /// Which bytes of the text as it is written.
    pub range: Range<usize>,
    /// What they are.
    pub kind: CutKind,
    /// They are content of a string: a replacement has to be escaped. Otherwise they are structure, numbers and words, which no
    /// replacement fits.
    pub in_string: bool,
}

/// The decoded part of a segment, and where each byte of it is written.
#[derive(Debug, Clone, Default)]
struct Decoded {
    text: String,
    /// Where the character that a byte belongs to begins in the text as written.
    at: Vec<usize>,
    /// Where what comes next is written.
    end: usize,
}

impl Decoded {
    fn push(&mut self, c: char, from: usize, to: usize) {
        self.text.push(c);
        self.at.resize(self.text.len(), from);
        self.end = to;
    }

    /// Where the decoded byte at this place is written.
    fn written(&self, place: usize) -> usize {
        self.at.get(place).copied().unwrap_or(self.end)
    }
}

impl JsonScanner {
    /// At the beginning of a text, outside of any string.
    pub fn new(patterns: &Patterns) -> Self {
        Self { scanner: Scanner::new(patterns), in_string: false, decoded: Decoded::default() }
    }

    /// Reads on. `pending` is what was kept the last time, followed by the new piece.
    pub fn push(&mut self, pending: &str) -> JsonScan {
        self.read(pending, false)
    }

    /// The text is over. Nothing is kept, and the scanner is at the beginning of a text again.
    pub fn finish(&mut self, pending: &str) -> JsonScan {
        let scan = self.read(pending, true);
        self.in_string = false;
        scan
    }

    fn read(&mut self, pending: &str, is_last: bool) -> JsonScan {
        let mut cuts: Vec<JsonCut> = Vec::new();
        let mut from = 0;
        loop {
            let quote = self.decode(pending, from, is_last);
            let decoded = &self.decoded;
            let scan = match quote.is_some() || is_last {
                true => self.scanner.finish(&decoded.text),
                false => self.scanner.push(&decoded.text),
            };
            for cut in scan.cuts {
                let range = decoded.written(cut.range.start)..decoded.written(cut.range.end);
                cuts.push(JsonCut { range, kind: cut.kind, in_string: self.in_string });
            }
            match quote {
                Some(quote) => {
                    cuts.push(JsonCut { range: quote..quote + 1, kind: CutKind::Text, in_string: false });
                    self.in_string = !self.in_string;
                    from = quote + 1;
                }
                None => {
                    let keep = pending.len() - decoded.written(decoded.text.len() - scan.keep);
                    self.decoded.text.clear();
                    return JsonScan { cuts, keep };
                }
            }
        }
    }

    /// Decodes the segment that goes on at `from`, up to the quote that ends it or the end of what is there. Returns the place of the
    /// quote.
    fn decode(&mut self, pending: &str, from: usize, is_last: bool) -> Option<usize> {
        let decoded = &mut self.decoded;
        decoded.text.clear();
        decoded.at.clear();
        decoded.end = from;
        let mut rest = &pending[from..];
        while let Some(c) = rest.chars().next() {
            let at = pending.len() - rest.len();
            if c == '"' {
                return Some(at);
            }
            let (c, length) = match c {
                '\\' if self.in_string => match escape(rest) {
                    Escape::Char(c, length) => (c, length),
                    Escape::Cut if !is_last => return None,
                    Escape::Cut | Escape::Unknown => ('\\', 1),
                },
                c => (c, c.len_utf8()),
            };
            decoded.push(c, at, at + length);
            rest = &rest[length..];
        }
        None
    }
}

enum Escape {
    /// A character, and how many bytes are its escape.
    Char(char, usize),
    /// It may go on in the next piece.
    Cut,
    Unknown,
}

/// Reads the escape at the beginning of a text.
fn escape(text: &str) -> Escape {
    let c = match text.as_bytes().get(1) {
        None => return Escape::Cut,
        Some(b'u') => return unicode_escape(text),
        Some(b'n') => '\n',
        Some(b't') => '\t',
        Some(b'r') => '\r',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(&byte @ (b'"' | b'\\' | b'/')) => byte.into(),
        Some(_) => return Escape::Unknown,
    };
    Escape::Char(c, 2)
}

fn unicode_escape(text: &str) -> Escape {
    match unit(text) {
        Unit::Cut => Escape::Cut,
        Unit::None => Escape::Unknown,
        Unit::Some(high @ 0xD800..0xDC00) => match unit(&text[6..]) {
            Unit::Cut => Escape::Cut,
            Unit::Some(low @ 0xDC00..0xE000) => {
                let c = 0x10000 + ((u32::from(high) - 0xD800) << 10) + (u32::from(low) - 0xDC00);
                Escape::Char(char::from_u32(c).unwrap_or(char::REPLACEMENT_CHARACTER), 12)
            }
            _ => Escape::Char(char::REPLACEMENT_CHARACTER, 6),
        },
        Unit::Some(unit) => Escape::Char(char::from_u32(unit.into()).unwrap_or(char::REPLACEMENT_CHARACTER), 6),
    }
}

enum Unit {
    Some(u16),
    Cut,
    None,
}

/// Reads `\uXXXX`.
fn unit(text: &str) -> Unit {
    let bytes = text.as_bytes();
    let head = &bytes[..bytes.len().min(6)];
    let is_begun = head.iter().enumerate().all(|(i, byte)| match i {
        0 => *byte == b'\\',
        1 => *byte == b'u',
        _ => byte.is_ascii_hexdigit(),
    });
    match (is_begun, head.len()) {
        (true, 6) => u16::from_str_radix(&text[2..6], 16).map_or(Unit::None, Unit::Some),
        (true, _) => Unit::Cut,
        (false, _) => Unit::None,
    }
}

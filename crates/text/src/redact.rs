use crate::{CutKind, Patterns, Scanner};

/// Replaces every match in a whole text: what any way of cutting it gives too.
pub fn redact_once(patterns: &Patterns, text: &str, label: impl FnMut(&str) -> String) -> String {
    redact_pieces(patterns, [text], label).concat()
}

/// Replaces every match in a text that comes in pieces. Gives one text a piece, what is certain after it, and one for the end.
pub fn redact_pieces<'a>(
    patterns: &Patterns,
    pieces: impl IntoIterator<Item = &'a str>,
    mut label: impl FnMut(&str) -> String,
) -> Vec<String> {
    let mut scanner = Scanner::new(patterns);
    let mut pending = String::new();
    let mut out = Vec::new();
    let mut take = |pending: &str, scan: &crate::Scan| {
        let mut text = String::new();
        for cut in &scan.cuts {
            match cut.kind {
                CutKind::Text => text.push_str(&pending[cut.range.clone()]),
                CutKind::Match { pattern, begins: true } => {
                    text.push_str(&label(patterns.get(pattern).map_or("", |pattern| pattern.name())));
                }
                CutKind::Match { begins: false, .. } => {}
            }
        }
        out.push(text);
    };
    for piece in pieces {
        pending.push_str(piece);
        let scan = scanner.push(&pending);
        take(&pending, &scan);
        pending.drain(..pending.len() - scan.keep);
    }
    let scan = scanner.finish(&pending);
    take(&pending, &scan);
    out
}

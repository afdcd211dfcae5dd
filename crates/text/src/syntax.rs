//! The pattern language: `regex` syntax with ASCII classes.

use regex_syntax::ast::{self, Ast, ClassPerlKind, ClassSet, ClassSetItem, Flag, FlagsItemKind, parse::Parser};

use crate::PatternError;

/// Rewrites a pattern so that `\w`, `\d`, `\s` and `\b` mean ASCII, except where `(?u)` is asked for. Everything else stays: `.` and
/// negated classes still match whole characters.
pub(crate) fn with_ascii_classes(name: &str, pattern: &str) -> Result<String, PatternError> {
    let tree = Parser::new().parse(pattern).map_err(|error| {
        if matches!(error.kind(), ast::ErrorKind::UnsupportedLookAround) {
            PatternError::LookAround { name: name.into() }
        } else if matches!(error.kind(), ast::ErrorKind::UnsupportedBackreference) {
            PatternError::Backreference { name: name.into() }
        } else {
            PatternError::Syntax { name: name.into(), message: error.to_string() }
        }
    })?;
    let mut rewrite = Rewrite { name, edits: Vec::new() };
    rewrite.node(&tree, &mut Mode { unicode: false })?;
    rewrite.edits.sort_by_key(|edit| edit.0.start.offset);
    let (mut out, mut from) = (String::with_capacity(pattern.len() + 16), 0);
    for (span, text) in rewrite.edits {
        out.push_str(&pattern[from..span.start.offset]);
        out.push_str(text);
        from = span.end.offset;
    }
    out.push_str(&pattern[from..]);
    Ok(out)
}

/// Whether `(?u)` is in force.
#[derive(Clone, Copy)]
struct Mode {
    unicode: bool,
}

struct Rewrite<'a> {
    name: &'a str,
    edits: Vec<(ast::Span, &'static str)>,
}

impl Rewrite<'_> {
    fn node(&mut self, node: &Ast, mode: &mut Mode) -> Result<(), PatternError> {
        match node {
            Ast::Empty(_) | Ast::Literal(_) | Ast::Dot(_) | Ast::ClassUnicode(_) => {}
            Ast::Flags(set) => apply(&set.flags, mode),
            Ast::Assertion(assertion) => return self.assertion(assertion, *mode),
            Ast::ClassPerl(class) => self.perl(class, *mode, false),
            Ast::ClassBracketed(class) => self.set(&class.kind, *mode),
            Ast::Repetition(repetition) => return self.node(&repetition.ast, mode),
            Ast::Group(group) => {
                // Flags set in a group end with it.
                let mut inner = *mode;
                if let ast::GroupKind::NonCapturing(flags) = &group.kind {
                    apply(flags, &mut inner);
                }
                return self.node(&group.ast, &mut inner);
            }
            Ast::Alternation(alternation) => {
                for node in &alternation.asts {
                    self.node(node, mode)?;
                }
            }
            Ast::Concat(concat) => {
                for node in &concat.asts {
                    self.node(node, mode)?;
                }
            }
        }
        Ok(())
    }

    fn assertion(&mut self, assertion: &ast::Assertion, mode: Mode) -> Result<(), PatternError> {
        use ast::AssertionKind as Kind;
        let ascii = match assertion.kind {
            Kind::WordBoundary => r"(?-u:\b)",
            Kind::NotWordBoundary => r"(?-u:\B)",
            Kind::WordBoundaryStart | Kind::WordBoundaryStartAngle => r"(?-u:\b{start})",
            Kind::WordBoundaryEnd | Kind::WordBoundaryEndAngle => r"(?-u:\b{end})",
            Kind::WordBoundaryStartHalf => r"(?-u:\b{start-half})",
            Kind::WordBoundaryEndHalf => r"(?-u:\b{end-half})",
            _ => return Ok(()),
        };
        // An automaton that reads bytes cannot tell whether the character before was a word character of Unicode.
        if mode.unicode || assertion.kind == Kind::NotWordBoundary {
            return Err(PatternError::UnicodeBoundary { name: self.name.into() });
        }
        self.edits.push((assertion.span, ascii));
        Ok(())
    }

    fn perl(&mut self, class: &ast::ClassPerl, mode: Mode, in_brackets: bool) {
        if mode.unicode {
            return;
        }
        let text = match (&class.kind, class.negated, in_brackets) {
            (ClassPerlKind::Digit, false, false) => "[0-9]",
            (ClassPerlKind::Digit, false, true) => "0-9",
            (ClassPerlKind::Digit, true, _) => "[^0-9]",
            (ClassPerlKind::Space, false, false) => r"[\t\n\v\f\r ]",
            (ClassPerlKind::Space, false, true) => r"\t\n\v\f\r\x20",
            (ClassPerlKind::Space, true, _) => r"[^\t\n\v\f\r ]",
            (ClassPerlKind::Word, false, false) => "[0-9A-Za-z_]",
            (ClassPerlKind::Word, false, true) => "0-9A-Za-z_",
            (ClassPerlKind::Word, true, _) => "[^0-9A-Za-z_]",
        };
        self.edits.push((class.span, text));
    }

    fn set(&mut self, set: &ClassSet, mode: Mode) {
        match set {
            ClassSet::Item(item) => self.item(item, mode),
            ClassSet::BinaryOp(op) => {
                self.set(&op.lhs, mode);
                self.set(&op.rhs, mode);
            }
        }
    }

    fn item(&mut self, item: &ClassSetItem, mode: Mode) {
        match item {
            ClassSetItem::Perl(class) => self.perl(class, mode, true),
            ClassSetItem::Bracketed(class) => self.set(&class.kind, mode),
            ClassSetItem::Union(union) => union.items.iter().for_each(|item| self.item(item, mode)),
            _ => {}
        }
    }
}

fn apply(flags: &ast::Flags, mode: &mut Mode) {
    let mut on = true;
    for item in &flags.items {
        match item.kind {
            FlagsItemKind::Negation => on = false,
            FlagsItemKind::Flag(Flag::Unicode) => mode.unicode = on,
            FlagsItemKind::Flag(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec 6.1
    #[test]
    fn classes_and_boundaries_are_ascii_unless_unicode_is_asked_for() {
        for (pattern, expected) in [
            (r"\bsk-\w+", r"(?-u:\b)sk-[0-9A-Za-z_]+"),
            (r"[\w.-]+@[\d\s]", r"[0-9A-Za-z_.-]+@[0-9\t\n\v\f\r\x20]"),
            (r"[^\W]\D", r"[^[^0-9A-Za-z_]][^0-9]"),
            (r"(?u:\w)\w", r"(?u:\w)[0-9A-Za-z_]"),
            (r"(?u)\w", r"(?u)\w"),
            (r"((?u)\w)\w", r"((?u)\w)[0-9A-Za-z_]"),
            (r"é.[^x]", r"é.[^x]"),
        ] {
            assert_eq!(with_ascii_classes("p", pattern).as_deref(), Ok(expected), "{pattern}");
        }
    }

    // spec 6.1
    #[test]
    fn what_cannot_be_streamed_is_refused_with_a_hint() {
        for (pattern, hint) in
            [(r"(?u)\bx", "(?u)"), (r"x(?=y)", "look-around"), (r"(a)\1", "backreference"), (r"a(", "p")]
        {
            let message = with_ascii_classes("p", pattern).unwrap_err().to_string();
            assert!(message.contains(hint), "{pattern}: {message}");
        }
    }
}

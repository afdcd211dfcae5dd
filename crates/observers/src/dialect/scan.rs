//! One text, read piece by piece.

use streamkeeper_contract::{Piece, Release, Verdict};

use super::{
    Rules,
    marker::{self, Marker, OpenCall, Place, Step},
};

/// Where the reading of a text is. What is undecided is held by the stack: pending text begins with it.
#[derive(Debug)]
pub(super) struct Reading {
    is_answer: bool,
    in_thought: bool,
    starts_line: bool,
    open: Option<OpenCall>,
    structures: usize,
}

/// Calls and thoughts of one text. Each makes two pieces, and a release has 64.
pub(super) const MAX_STRUCTURES: usize = 31;

impl Reading {
    pub(super) fn new(is_answer: bool, in_thought: bool) -> Self {
        Self { is_answer, in_thought, starts_line: true, open: None, structures: 0 }
    }

    /// What becomes of pending text.
    pub(super) fn read(&mut self, pending: &str, more_may_come: bool, rules: &Rules) -> Verdict {
        let bytes = pending.as_bytes();
        let mut out = Pieces::default();
        let mut changes = self.in_thought;
        // Before `from` everything is in `out`, before `at` everything is decided.
        let (mut from, mut at) = (0, 0);
        let mut keep = 0;
        while let Some(found) = bytes[at..].iter().position(|&byte| marker::may_begin_with(byte, rules)) {
            let here = at + found;
            let place = Place {
                in_thought: self.in_thought,
                starts_line: self.starts_line_at(pending, here, from),
                is_answer: self.is_answer,
                more_may_come,
            };
            match marker::read(&pending[here..], place, &mut self.open, rules) {
                Step::Marker(len, marker) if self.allows(&marker) => {
                    self.open = None;
                    out.text(self.in_thought, &pending[from..here]);
                    self.apply(marker, &mut out);
                    changes = true;
                    from = here + len;
                    at = from;
                }
                Step::More => {
                    keep = bytes.len() - here;
                    break;
                }
                Step::Marker(..) | Step::Nothing => {
                    self.open = None;
                    at = here + 1;
                }
            }
        }
        let settled = bytes.len() - keep;
        self.starts_line = self.starts_line_at(pending, settled, from);
        if changes {
            out.text(self.in_thought, &pending[from..settled]);
            return Release::pieces(out.done()).keep(keep).into();
        }
        match keep {
            0 => Verdict::Continue,
            keep => Release::unchanged().keep(keep).into(),
        }
    }

    /// A line begins at the beginning, after a line end, and after what was taken out.
    fn starts_line_at(&self, pending: &str, at: usize, from: usize) -> bool {
        match at {
            0 => self.starts_line,
            at => at == from || pending.as_bytes()[at - 1] == b'\n',
        }
    }

    fn allows(&mut self, marker: &Marker) -> bool {
        if matches!(marker, Marker::Call { .. } | Marker::ThoughtStart) {
            self.structures += 1;
        }
        self.structures <= MAX_STRUCTURES || !matches!(marker, Marker::Call { .. } | Marker::ThoughtStart)
    }

    fn apply(&mut self, marker: Marker, out: &mut Pieces) {
        match marker {
            Marker::Token => {}
            Marker::ThoughtStart => self.in_thought = true,
            Marker::ThoughtEnd => self.in_thought = false,
            Marker::Call { name, arguments } => out.call(Piece::ToolCall { name, arguments }),
        }
    }
}

/// The pieces of a release, neighbours of one kind joined.
#[derive(Default)]
struct Pieces {
    done: Vec<Piece>,
    text: String,
    is_thought: bool,
}

impl Pieces {
    fn text(&mut self, is_thought: bool, text: &str) {
        if text.is_empty() {
            return;
        }
        if is_thought != self.is_thought {
            self.flush();
            self.is_thought = is_thought;
        }
        self.text.push_str(text);
    }

    fn call(&mut self, call: Piece) {
        self.flush();
        self.done.push(call);
    }

    fn flush(&mut self) {
        if !self.text.is_empty() {
            let text = std::mem::take(&mut self.text).into();
            self.done.push(if self.is_thought { Piece::Reasoning(text) } else { Piece::Text(text) });
        }
    }

    fn done(mut self) -> Vec<Piece> {
        self.flush();
        self.done
    }
}

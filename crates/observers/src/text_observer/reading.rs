//! One text, read piece by piece.

use std::ops::Range;

use streamkeeper_contract::{Channel, Json, Lane, SideEvent, Text, Verdict};
use streamkeeper_text::{Cut, CutKind, JsonCut, JsonScanner, Scanner};

use super::{
    Rules, denied_by_check,
    on_match::{Kind, Match},
};

/// The most bytes of a lane that may be undecided: 4 KiB. Also what a replacement sees of a match.
pub const MAX_UNDECIDED: usize = 4 * 1024;
/// The most bytes of arguments that are kept for a check.
const MAX_CHECKED: usize = 64 * 1024;

pub(super) struct Reading {
    pub(super) lane: Lane,
    /// The tool whose arguments these are, where somebody wants to know.
    pub(super) tool: Option<Text>,
    has_lane: bool,
    is_plain: bool,
    search: Search,
    /// Where the pending text begins in the text.
    at: u64,
    /// The match that the text so far ends in.
    open: Option<Open>,
    /// Bytes at the beginning of the pending text that the search has decided.
    decided: usize,
    /// And the undecided ones behind them that it has seen.
    undecided: usize,
    /// Whether a match was replaced, and what left, for the check.
    is_changed: bool,
    left: String,
}

enum Search {
    /// Only white space so far: it may be JSON.
    None,
    Plain(Scanner),
    Json(JsonScanner),
}

/// A match that may go on.
struct Open {
    pattern: usize,
    in_string: bool,
    /// What takes its place is written.
    is_written: bool,
    /// Which bytes of the pending text are held for it.
    range: Range<usize>,
}

/// What becomes of the pending text.
pub(super) enum Answer {
    Stop(Verdict),
    /// `None`: as it is, up to what is kept.
    Goes {
        text: Option<String>,
        keep: usize,
    },
}

/// What leaves. Nothing is copied before something differs.
struct Out<'p> {
    pending: &'p str,
    same: usize,
    text: Option<String>,
}

impl Out<'_> {
    fn pass(&mut self, range: Range<usize>) {
        match &mut self.text {
            None if range.start == self.same => self.same = range.end,
            _ => self.put(range),
        }
    }

    fn put(&mut self, range: Range<usize>) {
        let pending = self.pending;
        self.write(&pending[range]);
    }

    fn write(&mut self, text: &str) {
        self.text.get_or_insert_with(|| self.pending[..self.same].to_owned()).push_str(text);
    }
}

impl Reading {
    pub(super) fn new(rules: &Rules, lane: Lane) -> Self {
        let is_plain = !matches!(lane.channel, Channel::Arguments | Channel::ToolResult | Channel::ProviderTool);
        Self {
            lane,
            tool: None,
            has_lane: true,
            is_plain,
            search: if is_plain { Search::Plain(Scanner::new(&rules.patterns)) } else { Search::None },
            at: 0,
            open: None,
            decided: 0,
            undecided: 0,
            is_changed: false,
            left: String::new(),
        }
    }

    /// Of a text that comes in one piece.
    pub(super) fn of_whole(rules: &Rules, lane: Option<Lane>, is_plain: bool) -> Self {
        match lane {
            Some(lane) => Self::new(rules, lane),
            None => {
                let lane = Lane::new(if is_plain { Channel::Text } else { Channel::ToolResult });
                Self { has_lane: false, ..Self::new(rules, lane) }
            }
        }
    }

    /// The text is over; another may begin. What left of arguments so far is still to be checked.
    pub(super) fn reset(&mut self, rules: &Rules) {
        match &mut self.search {
            Search::Plain(scanner) if self.is_plain => {
                scanner.finish("");
            }
            _ => {
                let (tool, left) = (self.tool.take(), std::mem::take(&mut self.left));
                *self = Self { tool, left, is_changed: self.is_changed, at: self.at, ..Self::new(rules, self.lane) };
            }
        }
        (self.open, self.decided, self.undecided) = (None, 0, 0);
    }

    /// Whether the arguments, which are over, may go to their tool.
    pub(super) fn check(&self, rules: &Rules) -> Verdict {
        match &rules.check {
            Some(check) if self.is_changed && !check(self.tool.as_deref().unwrap_or_default(), &self.left) => {
                denied_by_check()
            }
            _ => Verdict::Continue,
        }
    }

    /// Reads on. `pending` is what was kept, then the new piece.
    pub(super) fn read(
        &mut self,
        rules: &Rules,
        pending: &str,
        is_last: bool,
        emit: &mut dyn FnMut(SideEvent),
    ) -> Answer {
        let mut out = Out { pending, same: 0, text: None };
        if matches!(self.search, Search::None) {
            match self.choose(rules, pending, is_last) {
                Search::None if pending.len() > MAX_UNDECIDED => return too_long(),
                Search::None => return Answer::Goes { text: None, keep: pending.len() },
                search => self.search = search,
            }
        }
        if let Some(open) = &mut self.open {
            open.range = 0..self.decided;
        }
        // In steps, so that the limit is met at the same byte however the text is cut.
        let (mut from, mut to) = (self.decided, self.decided + self.undecided);
        loop {
            to = pending.ceil_char_boundary((from + MAX_UNDECIDED + 1).max(to).min(pending.len()));
            let is_end = to == pending.len();
            let taken = self.step(rules, &mut out, from..to, is_last && is_end, emit);
            from = match taken {
                Ok(from) => from,
                Err(verdict) => return Answer::Stop(verdict),
            };
            if to - from > MAX_UNDECIDED {
                return too_long();
            }
            if is_end {
                break;
            }
        }
        self.undecided = pending.len() - from;
        let held = self.hold(rules, &mut out, is_last);
        self.decided = from - held;
        self.at += held as u64;
        let keep = pending.len() - held;
        match self.keep_for_check(rules, out.text.as_deref().unwrap_or(&pending[..held])) {
            Verdict::Continue => Answer::Goes { text: out.text, keep },
            stop => Answer::Stop(stop),
        }
    }

    /// Plain text or JSON, by the first character that is no white space.
    fn choose(&self, rules: &Rules, pending: &str, is_last: bool) -> Search {
        let is_arguments = self.has_lane && self.lane.channel == Channel::Arguments;
        match pending.trim_ascii_start().bytes().next() {
            None if !is_last => Search::None,
            Some(b'{' | b'[' | b'"') => Search::Json(JsonScanner::new(&rules.patterns)),
            Some(b'-' | b'0'..=b'9') if is_arguments => Search::Json(JsonScanner::new(&rules.patterns)),
            _ => Search::Plain(Scanner::new(&rules.patterns)),
        }
    }

    /// Searches a part of the pending text and takes what is decided. Returns where the undecided part begins.
    fn step(
        &mut self,
        rules: &Rules,
        out: &mut Out<'_>,
        range: Range<usize>,
        is_last: bool,
        emit: &mut dyn FnMut(SideEvent),
    ) -> Result<usize, Verdict> {
        let text = &out.pending[range.clone()];
        let at = |cut: Range<usize>| range.start + cut.start..range.start + cut.end;
        match &mut self.search {
            Search::Plain(scanner) => {
                let scan = if is_last { scanner.finish(text) } else { scanner.push(text) };
                for Cut { range, kind } in scan.cuts {
                    self.take(rules, out, at(range), kind, None, emit)?;
                }
                Ok(range.end - scan.keep)
            }
            Search::Json(scanner) => {
                let scan = if is_last { scanner.finish(text) } else { scanner.push(text) };
                for JsonCut { range, kind, in_string } in scan.cuts {
                    self.take(rules, out, at(range), kind, Some(in_string), emit)?;
                }
                Ok(range.end - scan.keep)
            }
            Search::None => Ok(range.start),
        }
    }

    /// Takes a decided part. `in_string` is known in JSON.
    fn take(
        &mut self,
        rules: &Rules,
        out: &mut Out<'_>,
        range: Range<usize>,
        kind: CutKind,
        in_string: Option<bool>,
        emit: &mut dyn FnMut(SideEvent),
    ) -> Result<(), Verdict> {
        match kind {
            CutKind::Text => {
                self.close(rules, out);
                out.pass(range);
            }
            CutKind::Match { pattern, begins: true } => {
                self.close(rules, out);
                let lane = self.has_lane.then_some(self.lane);
                let is_structure = self.lane.channel == Channel::Arguments && in_string == Some(false);
                let cannot_be = rules.denies(self.lane) || (is_structure && rules.on_match.changes_text());
                if cannot_be || matches!(rules.on_match.0, Kind::Stop { .. }) {
                    return Err(rules.stop(lane, pattern, &out.pending[range]));
                }
                if let Some(event) = rules.event(pattern, lane, self.at + range.start as u64) {
                    emit(event);
                }
                self.begin(rules, out, Open { pattern, in_string: in_string == Some(true), is_written: false, range });
            }
            CutKind::Match { begins: false, .. } => self.extend(rules, out, range),
        }
        Ok(())
    }

    fn begin(&mut self, rules: &Rules, out: &mut Out<'_>, mut open: Open) {
        let name = rules.patterns.get(open.pattern).map_or("", |pattern| pattern.name());
        self.is_changed |= rules.on_match.changes_text();
        match &rules.on_match.0 {
            Kind::Label(label) => {
                out.write(&open.escaped(&label(name)));
                open.is_written = true;
            }
            Kind::Tag => {
                out.write(&open.escaped(&format!("<{name}>")));
                // All but the last character leaves; that one is held, so that the end of the text is told to us.
                let range = open.range.clone();
                open.range.end = range.start;
                self.open = Some(open);
                return self.extend(rules, out, range);
            }
            Kind::Replace(_) => {}
            Kind::Stop { .. } | Kind::Emit { .. } => {
                out.pass(open.range);
                return;
            }
        }
        self.open = Some(open);
    }

    fn extend(&mut self, rules: &Rules, out: &mut Out<'_>, more: Range<usize>) {
        let Some(open) = &mut self.open else { return out.pass(more) };
        open.range.end = more.end;
        match rules.on_match.0 {
            Kind::Tag => {
                let last = out.pending[open.range.clone()].chars().next_back().map_or(0, char::len_utf8);
                let cut = open.range.end - last;
                out.put(open.range.start..cut);
                open.range.start = cut;
            }
            Kind::Replace(_) if !open.is_written && open.range.len() > MAX_UNDECIDED => open.replace(rules, out),
            // Swallowed: what leaves is no longer what is pending.
            _ if open.is_written => out.write(""),
            _ => {}
        }
    }

    /// The match is over, if one is open.
    fn close(&mut self, rules: &Rules, out: &mut Out<'_>) {
        let Some(mut open) = self.open.take() else { return };
        match rules.on_match.0 {
            Kind::Replace(_) if !open.is_written => open.replace(rules, out),
            Kind::Tag => {
                out.put(open.range.clone());
                let name = rules.patterns.get(open.pattern).map_or("", |pattern| pattern.name());
                out.write(&open.escaped(&format!("</{name}>")));
            }
            _ => {}
        }
    }

    /// Where what is held begins: the undecided text, and before it the match that is open.
    fn hold(&mut self, rules: &Rules, out: &mut Out<'_>, is_last: bool) -> usize {
        if is_last {
            self.close(rules, out);
        }
        let undecided = out.pending.len() - self.undecided;
        match &self.open {
            Some(open) if !open.is_written => open.range.start,
            _ => undecided,
        }
    }

    fn keep_for_check(&mut self, rules: &Rules, text: &str) -> Verdict {
        if rules.check.is_none() || self.lane.channel != Channel::Arguments {
            return Verdict::Continue;
        }
        if self.left.len() + text.len() > MAX_CHECKED {
            return denied_by_check();
        }
        self.left.push_str(text);
        Verdict::Continue
    }
}

impl Open {
    fn replace(&mut self, rules: &Rules, out: &mut Out<'_>) {
        self.is_written = true;
        let Kind::Replace(replacement) = &rules.on_match.0 else { return };
        let is_cut = self.range.len() > MAX_UNDECIDED;
        let written = &out.pending[self.range.clone()];
        let written = &written[..written.floor_char_boundary(MAX_UNDECIDED)];
        let meant = self.in_string.then(|| serde_json::from_str::<String>(&format!("\"{written}\"")).ok()).flatten();
        let text = meant.as_deref().unwrap_or(written);
        let pattern = rules.patterns.get(self.pattern).map_or("", |pattern| pattern.name());
        let replacement = replacement(&Match { pattern, text, is_cut });
        out.write(&self.escaped(&replacement));
    }

    /// A text as it is written in the place of the match.
    fn escaped(&self, text: &str) -> String {
        match self.in_string {
            true => {
                let quoted = Json::string(text);
                quoted.as_str()[1..quoted.as_str().len() - 1].to_owned()
            }
            false => text.to_owned(),
        }
    }
}

fn too_long() -> Answer {
    Answer::Stop(Verdict::stop("undecided_too_long", "more than 4 KiB may belong to a match that is not decided"))
}

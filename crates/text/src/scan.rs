use std::ops::Range;

use smallvec::SmallVec;

use crate::{Patterns, common::STARTS, machine::Machine, pattern::Compiled, table::DEAD};

/// Looks at one text that comes in pieces.
///
/// Positions and states only: at most twice as many threads a pattern as its automaton has states. While nothing has matched, a byte costs
/// one look-up in a table of the most common sets of threads, of at most 256 KiB for a set of patterns; otherwise one look-up for each
/// thread. A rejected candidate is read again from its second byte.
///
/// How much may wait is for the caller to limit: [`Scan::keep`] tells how much it is.
///
/// ```
/// use streamkeeper_text::{CutKind, Pattern, Patterns, Scanner};
///
/// let patterns = Patterns::new([Pattern::literal("word", "secret")?])?;
/// let mut scanner = Scanner::new(&patterns);
///
/// let scan = scanner.push("a sec");
/// assert_eq!((scan.cuts[0].range.clone(), scan.keep), (0..2, 3));
/// let scan = scanner.push("secret!"); // what was kept, and `ret!`
/// assert_eq!(scan.cuts[0].kind, CutKind::Match { pattern: 0, begins: true });
/// assert_eq!((scan.cuts[1].range.clone(), scan.keep), (6..7, 0));
/// # Ok::<_, streamkeeper_text::PatternError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Scanner {
    patterns: Patterns,
    tracks: Vec<Track>,
    /// The patterns that have threads.
    active: Vec<u16>,
    /// The state of all patterns together, while nothing has matched; then no pattern has threads of its own.
    common: Option<u32>,
    /// Where the threads of that state began, the earliest first.
    starts: [u64; STARTS],
    /// Where the pending text begins.
    base: u64,
    /// How far the text is read.
    read: u64,
    /// The byte before `read`.
    before: Option<u8>,
    /// Matches that are certain and not handed out to their end.
    certain: Vec<Span>,
    /// Where the last match that was handed out ended.
    covered: Option<u64>,
}

/// What is certain after a piece.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scan {
    /// The decided part of the pending text, in order, without gaps, from its beginning.
    pub cuts: SmallVec<[Cut; 2]>,
    /// How many bytes at the end are undecided. Show them again, at the beginning of the next pending text.
    pub keep: usize,
}

/// A decided part of the pending text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// Which bytes.
    pub range: Range<usize>,
    /// What they are.
    pub kind: CutKind,
}

/// What a part of the text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CutKind {
    /// In no match.
    Text,
    /// In a match. Overlapping and touching matches are one.
    Match {
        /// The place of the pattern in the set: of the match that begins first, and of the first pattern among those.
        pattern: usize,
        /// It begins here; otherwise it continues the match handed out before.
        begins: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Span {
    start: u64,
    pattern: u16,
    end: u64,
}

/// The threads of one pattern, by their start.
#[derive(Debug, Clone, Default)]
struct Track {
    threads: SmallVec<[Thread; 2]>,
}

/// A place where a match may have begun.
#[derive(Debug, Clone, Copy)]
struct Thread {
    start: u64,
    state: u32,
    /// Where the best match from here ends so far.
    end: Option<u64>,
    /// It can still change.
    open: bool,
}

impl Scanner {
    /// At the beginning of a text.
    pub fn new(patterns: &Patterns) -> Self {
        Self {
            patterns: patterns.clone(),
            tracks: vec![Track::default(); patterns.len()],
            active: Vec::new(),
            common: Some(patterns.set().rest(None)),
            starts: [0; STARTS],
            base: 0,
            read: 0,
            before: None,
            certain: Vec::new(),
            covered: None,
        }
    }

    /// The patterns it looks for.
    pub fn patterns(&self) -> &Patterns {
        &self.patterns
    }

    /// Reads on. `pending` is what was kept the last time, followed by the new piece.
    pub fn push(&mut self, pending: &str) -> Scan {
        let mut scan = Scan::default();
        self.push_into(pending, &mut scan);
        scan
    }

    /// Like [`push`](Scanner::push), into a scan that is used again and again: once its buffer has its size, nothing is allocated.
    ///
    /// ```
    /// # use streamkeeper_text::{Pattern, Patterns, Scan, Scanner};
    /// # let patterns = Patterns::new([Pattern::literal("word", "secret")?])?;
    /// let (mut scanner, mut scan) = (Scanner::new(&patterns), Scan::default());
    /// scanner.push_into("a sec", &mut scan);
    /// assert_eq!((scan.cuts.len(), scan.keep), (1, 3));
    /// # Ok::<_, streamkeeper_text::PatternError>(())
    /// ```
    pub fn push_into(&mut self, pending: &str, scan: &mut Scan) {
        self.read(pending);
        let undecided = self.undecided();
        self.hand_out(undecided, pending, scan);
    }

    /// The text is over, or a barrier is: nothing follows. `pending` is as in [`push`](Scanner::push). Nothing is kept, and the scanner
    /// is at the beginning of a text again.
    pub fn finish(&mut self, pending: &str) -> Scan {
        self.read(pending);
        self.follow_each();
        let patterns = self.patterns.clone();
        let text = Text { bytes: pending, base: self.base };
        for index in std::mem::take(&mut self.active) {
            let compiled = &patterns.set().compiled[usize::from(index)];
            let track = &mut self.tracks[usize::from(index)];
            loop {
                track.end(&compiled.machine, self.read);
                match track.settle(compiled, index, &text, &mut self.certain) {
                    None => break,
                    Some(from) => track.run(compiled, index, &text, from..self.read, &mut self.certain),
                }
            }
            track.threads.clear();
        }
        let mut scan = Scan::default();
        self.hand_out(self.read, pending, &mut scan);
        self.common = Some(patterns.set().rest(None));
        (self.base, self.read, self.before, self.covered) = (0, 0, None, None);
        self.certain.clear();
        scan
    }

    fn read(&mut self, pending: &str) {
        let known = usize::try_from(self.read - self.base).unwrap_or(usize::MAX);
        let Some(mut fresh) = pending.as_bytes().get(known..) else { return };
        while !fresh.is_empty() {
            if let Some(state) = &mut self.common {
                let read = self.patterns.set().common.read(state, &mut self.starts, fresh, self.read);
                if read > 0 {
                    self.before = Some(fresh[read - 1]);
                    self.read += read as u64;
                    fresh = &fresh[read..];
                }
                if fresh.is_empty() {
                    return;
                }
                self.follow_each();
            }
            let read = self.read_each(fresh, pending);
            fresh = &fresh[read..];
        }
    }

    /// From here on each pattern has its own threads.
    fn follow_each(&mut self) {
        let Some(state) = self.common.take() else { return };
        for &(group, index, state) in self.patterns.set().common.threads(state) {
            let track = &mut self.tracks[usize::from(index)];
            if track.threads.is_empty() {
                self.active.push(index);
            }
            track.threads.push(Thread { start: self.starts[usize::from(group)], state, end: None, open: true });
        }
    }

    /// Reads on with threads for each pattern, until there are none. Returns how many bytes were read.
    fn read_each(&mut self, fresh: &[u8], pending: &str) -> usize {
        let Self { patterns, tracks, active, common, base, read, before, certain, .. } = self;
        let set = patterns.set();
        let text = Text { bytes: pending, base: *base };
        for (i, &byte) in fresh.iter().enumerate() {
            let at = *read;
            let beginning = set.beginning(*before, byte);
            for &index in active.iter() {
                tracks[usize::from(index)].step(&set.compiled[usize::from(index)].machine, byte, at);
            }
            for &index in beginning {
                let track = &mut tracks[usize::from(index)];
                if track.threads.is_empty() {
                    active.push(index);
                }
                track.begin(&set.compiled[usize::from(index)].machine, *before, byte, at);
            }
            let mut place = 0;
            while let Some(&index) = active.get(place) {
                let compiled = &set.compiled[usize::from(index)];
                let track = &mut tracks[usize::from(index)];
                if let Some(from) = track.settle(compiled, index, &text, certain) {
                    track.run(compiled, index, &text, from..at + 1, certain);
                }
                if track.threads.is_empty() {
                    active.swap_remove(place);
                } else {
                    place += 1;
                }
            }
            *before = Some(byte);
            *read += 1;
            if active.is_empty() {
                *common = Some(set.rest(*before));
                return i + 1;
            }
        }
        fresh.len()
    }

    /// The first position that is undecided.
    fn undecided(&self) -> u64 {
        if let Some(state) = self.common {
            // What is certain ended before these began.
            return if self.patterns.set().common.starts(state) == 0 { self.read } else { self.starts[0] };
        }
        let mut to = self.active.iter().map(|&index| self.undecided_by(index)).fold(self.read, u64::min).max(self.base);
        if to == self.read {
            return to;
        }
        // What one pattern has not decided may be in a match of another that is certain.
        let spans = self.spans();
        while let Some(end) =
            spans.iter().filter(|span| span.end > to && self.is_settled(span, to, &spans)).map(|span| span.end).max()
        {
            // A validator has to see its candidate whole.
            let candidate = self.active.iter().filter(|&&index| self.is_validated(index));
            let end = candidate.map(|&index| self.undecided_by(index)).fold(end, u64::min);
            if end <= to {
                break;
            }
            to = self.active.iter().map(|&index| self.undecided_by(index).max(end)).fold(self.read, u64::min);
        }
        to
    }

    /// The first position that a pattern has not decided.
    fn undecided_by(&self, index: u16) -> u64 {
        let Some(first) = self.tracks[usize::from(index)].threads.first() else { return self.read };
        first.end.filter(|_| !self.is_validated(index)).unwrap_or(first.start)
    }

    fn is_validated(&self, index: u16) -> bool {
        self.patterns.set().compiled[usize::from(index)].pattern.has_validator()
    }

    /// Whether a certain match that reaches to `to` or begins there has its label for certain.
    fn is_settled(&self, span: &Span, to: u64, spans: &[Span]) -> bool {
        let begins_there = |index: &u16| {
            *index < span.pattern
                && self.tracks[usize::from(*index)].threads.first().is_some_and(|first| first.start == to)
        };
        // It only goes on with the one that it touches.
        let touches = || self.covered == Some(to) || spans.iter().any(|other| other.start < to && other.end == to);
        span.start < to || (span.start == to && (touches() || !self.active.iter().any(begins_there)))
    }

    /// The matches that are certain, and those that may still grow, as far as they have grown.
    fn spans(&self) -> SmallVec<[Span; 4]> {
        let mut spans: SmallVec<[Span; 4]> = self.certain.iter().copied().collect();
        for &index in self.active.iter().filter(|&&index| !self.is_validated(index)) {
            if let Some(Thread { start, end: Some(end), .. }) = self.tracks[usize::from(index)].threads.first() {
                spans.push(Span { start: *start, pattern: index, end: *end });
            }
        }
        spans.sort_unstable();
        spans
    }

    /// Hands out the pending text up to a position before which everything is certain.
    fn hand_out(&mut self, to: u64, pending: &str, scan: &mut Scan) {
        let keep = usize::try_from(self.read - to).unwrap_or(usize::MAX);
        scan.cuts.clear();
        scan.keep = keep;
        let base = self.base;
        let range = |from: u64, to: u64| (from - base) as usize..(to - base) as usize;
        let mut at = base;
        if !self.certain.is_empty() || !self.active.is_empty() {
            for span in self.spans() {
                if span.start >= to {
                    break;
                }
                let (start, end) = (span.start.max(at), span.end.min(to));
                if end <= start {
                    continue;
                }
                if start > at {
                    scan.cuts.push(Cut { range: range(at, start), kind: CutKind::Text });
                }
                let begins = self.covered.is_none_or(|covered| covered < start);
                let continues = matches!(scan.cuts.last(), Some(Cut { kind: CutKind::Match { .. }, .. }));
                match scan.cuts.last_mut() {
                    Some(cut) if continues && !begins => cut.range.end = range(start, end).end,
                    _ => scan.cuts.push(Cut {
                        range: range(start, end),
                        kind: CutKind::Match { pattern: span.pattern.into(), begins },
                    }),
                }
                self.covered = Some(end);
                at = end;
            }
            self.certain.retain(|span| span.end > to);
        }
        if at < to {
            scan.cuts.push(Cut { range: range(at, to), kind: CutKind::Text });
        }
        debug_assert_eq!(
            range(base, to).end + keep,
            pending.len(),
            "the pending text is what was kept and the new piece"
        );
        self.base = to;
    }
}

/// The pending text, by position.
struct Text<'a> {
    bytes: &'a str,
    base: u64,
}

impl Text<'_> {
    fn byte(&self, at: u64) -> Option<u8> {
        self.bytes.as_bytes().get(usize::try_from(at.checked_sub(self.base)?).ok()?).copied()
    }

    fn range(&self, from: u64, to: u64) -> &str {
        let (from, to) = (from.saturating_sub(self.base) as usize, to.saturating_sub(self.base) as usize);
        self.bytes.get(from..to).unwrap_or_default()
    }
}

impl Track {
    /// Moves all threads over a byte.
    #[inline]
    fn step(&mut self, table: &Machine, byte: u8, at: u64) {
        for thread in self.threads.iter_mut().filter(|thread| thread.open) {
            thread.move_to(table, table.step(thread.state, byte), at);
        }
    }

    /// Begins a thread at a byte, if a match can.
    #[inline]
    fn begin(&mut self, table: &Machine, before: Option<u8>, byte: u8, at: u64) {
        let start = table.start(before);
        let state = if start == DEAD { DEAD } else { table.step(start, byte) };
        if state == DEAD {
            return;
        }
        let mut thread = Thread { start: at, state, end: None, open: true };
        thread.move_to(table, state, at);
        thread.end = thread.end.filter(|&end| end > at);
        self.threads.push(thread);
    }

    /// The text ends here.
    fn end(&mut self, table: &Machine, at: u64) {
        for thread in self.threads.iter_mut().filter(|thread| thread.open) {
            if table.flags(thread.state).at_end() {
                thread.end = Some(at);
            }
            thread.open = false;
        }
    }

    /// Runs over text again, after a rejection.
    fn run(&mut self, compiled: &Compiled, index: u16, text: &Text<'_>, range: Range<u64>, certain: &mut Vec<Span>) {
        self.threads.clear();
        let mut at = range.start;
        while at < range.end {
            let Some(byte) = text.byte(at) else { return };
            self.step(&compiled.machine, byte, at);
            // A candidate was rejected here, so there is text before.
            self.begin(&compiled.machine, text.byte(at.wrapping_sub(1)), byte, at);
            match self.settle(compiled, index, text, certain) {
                Some(from) => {
                    self.threads.clear();
                    at = from;
                }
                None => at += 1,
            }
        }
    }

    /// Drops threads that cannot matter and decides the first ones. Returns where to begin anew if a candidate was rejected.
    #[inline]
    fn settle(&mut self, compiled: &Compiled, index: u16, text: &Text<'_>, certain: &mut Vec<Span>) -> Option<u64> {
        match self.threads.as_slice() {
            [thread] if thread.open => return None,
            [thread] if thread.end.is_none() => {
                self.threads.clear();
                return None;
            }
            _ => {}
        }
        self.prune();
        while let Some(&first) = self.threads.first()
            && !first.open
        {
            // Threads that ended without a match are pruned.
            let end = first.end.unwrap_or(first.start);
            if !compiled.pattern.accepts(text.range(first.start, end)) {
                return Some(first.start + 1);
            }
            certain.push(Span { start: first.start, pattern: index, end });
            self.threads.retain(|thread| thread.start >= end);
        }
        None
    }

    fn prune(&mut self) {
        let mut i = 0;
        while i < self.threads.len() {
            let thread = self.threads[i];
            let earlier = &self.threads[..i];
            let useless = (!thread.open && thread.end.is_none())
                // An earlier match covers its start, or will cover more.
                || earlier.iter().any(|other| other.end.is_some_and(|end| thread.start < end))
                // The same future as an earlier one, which goes first.
                || (thread.open && thread.end.is_none() && earlier.iter().any(|other| other.open && other.state == thread.state));
            if useless {
                self.threads.remove(i);
            } else {
                i += 1;
            }
        }
    }
}

impl Thread {
    #[inline]
    fn move_to(&mut self, table: &Machine, state: u32, at: u64) {
        let flags = table.flags(state);
        if flags.before() {
            self.end = Some(at);
        }
        if flags.certain() {
            self.end = Some(at + 1);
        }
        self.state = state;
        self.open = flags.open();
    }
}

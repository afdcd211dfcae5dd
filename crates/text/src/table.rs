//! A pattern as a byte table that says what is certain.

use std::collections::HashMap;

use regex_automata::{
    Anchored, MatchKind,
    dfa::{Automaton, StartKind, dense},
    util::{primitives::StateID, start},
};

use crate::PatternError;

/// No match can come any more.
pub(crate) const DEAD: u32 = 0;

/// What is known of the text read so far by a thread in this state, at position `n`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Flags(u8);

impl Flags {
    /// A match ends one byte before: at the position before the byte that led here.
    const BEFORE: u8 = 1;
    /// A match ends at `n`, whatever follows.
    const CERTAIN: u8 = 2;
    /// A match ends at `n` if the text ends there.
    const AT_END: u8 = 4;
    /// Some continuation makes a match that ends at `n` or later and is not certain yet.
    const OPEN: u8 = 8;

    /// At a place in a literal, where one ends, or can go on.
    pub(crate) fn literal(ends: bool, goes_on: bool) -> Self {
        Self(if ends { Self::CERTAIN | Self::AT_END } else { 0 } | if goes_on { Self::OPEN } else { 0 })
    }

    pub(crate) fn before(self) -> bool {
        self.0 & Self::BEFORE != 0
    }

    pub(crate) fn certain(self) -> bool {
        self.0 & Self::CERTAIN != 0
    }

    pub(crate) fn at_end(self) -> bool {
        self.0 & Self::AT_END != 0
    }

    pub(crate) fn open(self) -> bool {
        self.0 & Self::OPEN != 0
    }
}

/// One pattern, anchored at its beginning, as a table of states and byte classes. Leftmost-first, like the `regex` crate.
#[derive(Debug)]
pub(crate) struct Table {
    classes: Box<[u8; 256]>,
    stride: usize,
    next: Vec<u32>,
    flags: Vec<Flags>,
    /// The state to begin in, by the byte before; the last one is for the beginning of the text.
    starts: Box<[u32; 257]>,
    /// The most bytes a thread can read before its match is certain or impossible, or `None` if there is no such number.
    pub(crate) worst_hold: Option<usize>,
}

impl Table {
    pub(crate) fn build(name: &str, pattern: &str, size_limit: usize) -> Result<Self, PatternError> {
        let dfa = dense::Builder::new()
            .configure(
                dense::Config::new()
                    .start_kind(StartKind::Anchored)
                    .match_kind(MatchKind::LeftmostFirst)
                    .accelerate(false)
                    .dfa_size_limit(Some(size_limit))
                    .determinize_size_limit(Some(size_limit)),
            )
            .build(pattern)
            .map_err(|error| match error.is_size_limit_exceeded() {
                true => PatternError::TooLarge { name: name.into(), limit: size_limit },
                false => PatternError::Syntax { name: name.into(), message: error.to_string() },
            })?;
        let table = Builder::read(&dfa);
        Ok(table.finish())
    }

    #[inline]
    pub(crate) fn step(&self, state: u32, byte: u8) -> u32 {
        self.next[state as usize * self.stride + usize::from(self.classes[usize::from(byte)])]
    }

    #[inline]
    pub(crate) fn start(&self, before: Option<u8>) -> u32 {
        self.starts[before.map_or(256, usize::from)]
    }

    #[inline]
    pub(crate) fn flags(&self, state: u32) -> Flags {
        self.flags[state as usize]
    }

    pub(crate) fn class(&self, byte: u8) -> u8 {
        self.classes[usize::from(byte)]
    }

    /// How many states there are.
    pub(crate) fn states(&self) -> usize {
        self.flags.len()
    }
}

/// The states of an automaton that can be reached, numbered from 1; 0 is dead.
struct Builder {
    classes: Box<[u8; 256]>,
    stride: usize,
    next: Vec<u32>,
    is_match: Vec<bool>,
    at_end: Vec<bool>,
    starts: Box<[u32; 257]>,
}

impl Builder {
    fn read(dfa: &dense::DFA<Vec<u32>>) -> Self {
        let mut classes = Box::new([0_u8; 256]);
        let mut representatives: Vec<u8> = Vec::new();
        let byte_classes = dfa.byte_classes();
        for byte in 0..=255_u8 {
            let class = byte_classes.get(byte);
            classes[usize::from(byte)] = class;
            if usize::from(class) == representatives.len() {
                representatives.push(byte);
            }
        }
        let stride = representatives.len();
        let mut ids: HashMap<StateID, u32> = HashMap::new();
        let mut queue: Vec<StateID> = Vec::new();
        let mut number = |state: StateID, queue: &mut Vec<StateID>| -> u32 {
            if dfa.is_dead_state(state) || dfa.is_quit_state(state) {
                return DEAD;
            }
            *ids.entry(state).or_insert_with(|| {
                queue.push(state);
                u32::try_from(queue.len()).unwrap_or(u32::MAX)
            })
        };
        let mut starts = Box::new([DEAD; 257]);
        for (i, start) in starts.iter_mut().enumerate() {
            let before = u8::try_from(i).ok();
            let config = start::Config::new().anchored(Anchored::Yes).look_behind(before);
            if let Ok(state) = dfa.start_state(&config) {
                *start = number(state, &mut queue);
            }
        }
        let (mut next, mut is_match, mut at_end) = (vec![DEAD; stride], vec![false], vec![false]);
        let mut i = 0;
        while i < queue.len() {
            let state = queue[i];
            for &byte in &representatives {
                let to = dfa.next_state(state, byte);
                next.push(number(to, &mut queue));
            }
            is_match.push(dfa.is_match_state(state));
            at_end.push(dfa.is_match_state(dfa.next_eoi_state(state)));
            i += 1;
        }
        Self { classes, stride, next, is_match, at_end, starts }
    }

    fn row(&self, state: usize) -> &[u32] {
        &self.next[state * self.stride..][..self.stride]
    }

    fn finish(mut self) -> Table {
        let count = self.is_match.len();
        // `later[s]`: some continuation has a match that ends after the next byte.
        let mut later = vec![false; count];
        loop {
            let mut changed = false;
            for state in (1..count).rev() {
                if !later[state]
                    && self.row(state).iter().any(|&to| {
                        let to = to as usize;
                        to != 0
                            && (later[to] || self.at_end[to] || self.row(to).iter().any(|&t| self.is_match[t as usize]))
                    })
                {
                    later[state] = true;
                    changed = true;
                }
            }
            if !changed {
                break;
            }
        }
        let mut flags = vec![Flags::default(); count];
        for state in 1..count {
            let ends_here = |to: &u32| self.is_match[*to as usize];
            let some = self.at_end[state] || self.row(state).iter().any(ends_here);
            let certain = self.at_end[state] && self.row(state).iter().all(ends_here);
            let mut bits = 0;
            bits |= if self.is_match[state] { Flags::BEFORE } else { 0 };
            bits |= if certain { Flags::CERTAIN } else { 0 };
            bits |= if self.at_end[state] { Flags::AT_END } else { 0 };
            bits |= if later[state] || (some && !certain) { Flags::OPEN } else { 0 };
            flags[state] = Flags(bits);
        }
        // A state that is not open and tells nothing of the byte before is as good as dead.
        for to in &mut self.next {
            let f = flags[*to as usize];
            if !f.open() && !f.certain() && !f.before() {
                *to = DEAD;
            }
        }
        let worst_hold = longest_wait(&self, &flags);
        Table { classes: self.classes, stride: self.stride, next: self.next, flags, starts: self.starts, worst_hold }
    }
}

/// The longest way through states in which nothing new is certain; `None` if it can go in circles.
fn longest_wait(builder: &Builder, flags: &[Flags]) -> Option<usize> {
    let waits = |state: usize| {
        let f = flags[state];
        state != DEAD as usize && f.open() && !f.certain() && !f.before()
    };
    let is_start = |state: usize| builder.starts.contains(&(state as u32));
    let count = flags.len();
    let mut entries = vec![0_usize; count];
    for state in (1..count).filter(|&state| waits(state)) {
        for &to in builder.row(state) {
            entries[to as usize] += usize::from(waits(to as usize));
        }
    }
    // In topological order; what is left over stands in a circle.
    let mut ready: Vec<usize> = (1..count).filter(|&state| waits(state) && entries[state] == 0).collect();
    let mut left = (1..count).filter(|&state| waits(state)).count();
    let mut length: Vec<usize> = (0..count).map(|state| usize::from(!is_start(state))).collect();
    let mut longest = 0;
    while let Some(state) = ready.pop() {
        left -= 1;
        longest = longest.max(length[state]);
        for &to in builder.row(state) {
            let to = to as usize;
            if waits(to) {
                length[to] = length[to].max(length[state] + 1);
                entries[to] -= 1;
                if entries[to] == 0 {
                    ready.push(to);
                }
            }
        }
    }
    (left == 0).then_some(longest)
}

//! What is met in most text, followed with one look-up a byte: all patterns at once, as long as nothing has matched.

use std::collections::HashMap;

use crate::{pattern::Compiled, table::DEAD};

/// A thread: in which group of threads with the same start, of which pattern, in which state.
pub(crate) type Followed = (u8, u16, u32);

/// The most starts that are followed at once.
pub(crate) const STARTS: usize = 3;

/// A table over sets of threads of which none has a match yet. It is built up to a limit, those first that take the fewest bytes to
/// reach; where it ends, threads are followed one by one.
#[derive(Debug)]
pub(crate) struct Common {
    classes: Box<[u8; 256]>,
    stride: usize,
    next: Vec<Step>,
    states: Vec<State>,
}

#[derive(Debug)]
struct State {
    threads: Box<[Followed]>,
    starts: u8,
}

/// The next state, and what becomes of the starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Step(u32);

impl Step {
    /// A match, or a set of threads that is not in the table.
    const LEAVE: Self = Self(u32::MAX);
    const STATE: u32 = (1 << 24) - 1;
    const BEGINS: u32 = 1 << 27;
    const CHANGES: u32 = 1 << 28;

    fn new(state: usize, survive: u32, begins: bool, before: u8) -> Self {
        let same = !begins && survive == (1 << before) - 1;
        let flags = if begins { Self::BEGINS } else { 0 } | if same { 0 } else { Self::CHANGES };
        Self(state as u32 | survive << 24 | flags)
    }
}

impl Common {
    /// The largest table, in steps of four bytes.
    const MAX_STEPS: usize = 64 * 1024;
    /// The most threads that are moved while it is built.
    const MAX_WORK: usize = 1024 * 1024;

    /// `starts`: the start state of each pattern, for each kind of byte before; `before`: that kind.
    pub(crate) fn build(
        compiled: &[Compiled],
        starts: &[Vec<u32>],
        before: &[u8; 257],
        beginning: &[Box<[u16]>],
    ) -> Self {
        let (classes, bytes) = classes(compiled, before);
        let stride = bytes.len();
        let most = Self::MAX_STEPS / stride;
        let mut work = 0;
        // Nothing is followed after each kind of byte.
        let mut keys: Vec<(u8, Box<[Followed]>)> = (0..starts.len()).map(|kind| (kind as u8, Box::default())).collect();
        let mut known: HashMap<_, _> = keys.iter().cloned().zip(0..).collect();
        let mut next = Vec::new();
        let mut at = 0;
        while let Some((kind, threads)) = keys.get(at).cloned() {
            let count = threads.last().map_or(0, |last| last.0 + 1);
            for &byte in &bytes {
                let begin = &beginning[usize::from(kind) * 256 + usize::from(byte)];
                work += threads.len() + begin.len() + 1;
                let moved =
                    (work < Self::MAX_WORK).then(|| moved(compiled, &starts[usize::from(kind)], &threads, begin, byte));
                let step = moved.flatten().and_then(|Moved { threads, survive, begins }| {
                    let key = (before[usize::from(byte)], threads);
                    let state = match known.get(&key) {
                        Some(&state) => state,
                        None if keys.len() < most => {
                            keys.push(key.clone());
                            known.insert(key, keys.len() - 1);
                            keys.len() - 1
                        }
                        None => return None,
                    };
                    Some(Step::new(state, survive, begins, count))
                });
                next.push(step.unwrap_or(Step::LEAVE));
            }
            at += 1;
        }
        let states =
            keys.into_iter().map(|(_, threads)| State { starts: threads.last().map_or(0, |last| last.0 + 1), threads });
        Self { classes, stride, next, states: states.collect() }
    }

    /// Reads on as far as the table reaches. Returns how many bytes were read.
    #[inline]
    pub(crate) fn read(&self, state: &mut u32, starts: &mut [u64; STARTS], bytes: &[u8], at: u64) -> usize {
        for (i, &byte) in bytes.iter().enumerate() {
            let step = self.next[*state as usize * self.stride + usize::from(self.classes[usize::from(byte)])];
            if step.0 >= Step::CHANGES {
                if step == Step::LEAVE {
                    return i;
                }
                let mut count = 0;
                for group in 0..STARTS {
                    if step.0 >> (24 + group) & 1 != 0 {
                        starts[count] = starts[group];
                        count += 1;
                    }
                }
                if step.0 & Step::BEGINS != 0 {
                    starts[count] = at + i as u64;
                }
            }
            *state = step.0 & Step::STATE;
        }
        bytes.len()
    }

    /// What is followed in a state.
    pub(crate) fn threads(&self, state: u32) -> &[Followed] {
        &self.states[state as usize].threads
    }

    /// How many starts are followed in a state.
    #[inline]
    pub(crate) fn starts(&self, state: u32) -> u8 {
        self.states[state as usize].starts
    }
}

struct Moved {
    threads: Box<[Followed]>,
    /// Which groups go on, as bits.
    survive: u32,
    begins: bool,
}

/// Moves threads over a byte and begins those that can; `None` if one matches, or there are too many starts.
fn moved(compiled: &[Compiled], starts: &[u32], threads: &[Followed], begin: &[u16], byte: u8) -> Option<Moved> {
    let mut to: Vec<Followed> = Vec::with_capacity(threads.len() + begin.len());
    let follow = |group: u8, pattern: u16, state: u32, to: &mut Vec<Followed>| {
        let machine = &compiled[usize::from(pattern)].machine;
        let state = machine.step(state, byte);
        let flags = machine.flags(state);
        if flags.before() || flags.certain() {
            return None;
        }
        // The same future as one that began earlier.
        let is_covered = |other: &Followed| (other.1, other.2) == (pattern, state);
        if state != DEAD && flags.open() && !to.iter().any(is_covered) {
            to.push((group, pattern, state));
        }
        Some(())
    };
    for &(group, pattern, state) in threads {
        follow(group, pattern, state, &mut to)?;
    }
    let count = threads.last().map_or(0, |last| last.0 + 1);
    for &pattern in begin {
        follow(count, pattern, starts[usize::from(pattern)], &mut to)?;
    }
    let (mut survive, mut groups) = (0_u32, 0_u8);
    for group in 0..=count {
        let mut is_there = false;
        for thread in to.iter_mut().filter(|thread| thread.0 == group) {
            (thread.0, is_there) = (groups, true);
        }
        groups += u8::from(is_there);
        if is_there && group < count {
            survive |= 1 << group;
        }
    }
    let begins = u32::from(groups) > survive.count_ones();
    (usize::from(groups) <= STARTS).then(|| Moved { threads: to.into(), survive, begins })
}

/// Classes of bytes that no pattern tells apart, and one byte of each.
fn classes(compiled: &[Compiled], before: &[u8; 257]) -> (Box<[u8; 256]>, Vec<u8>) {
    let mut classes = [0_usize; 256];
    let mut split = |class: &dyn Fn(u8) -> u16| {
        let mut known = HashMap::new();
        for byte in 0..=255_u8 {
            let next = known.len();
            classes[usize::from(byte)] = *known.entry((classes[usize::from(byte)], class(byte))).or_insert(next);
        }
    };
    split(&|byte| before[usize::from(byte)].into());
    for compiled in compiled {
        split(&|byte| compiled.machine.class(byte));
    }
    let mut bytes = Vec::new();
    for byte in 0..=255_u8 {
        if classes[usize::from(byte)] == bytes.len() {
            bytes.push(byte);
        }
    }
    (Box::new(classes.map(|class| class as u8)), bytes)
}

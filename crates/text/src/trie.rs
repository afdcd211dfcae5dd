//! Literals by the thousand, as a trie: six bytes for each byte of them that no other shares.

use crate::table::{DEAD, Flags};

/// Leftmost-first, like an alternation of the literals: of those that begin at one place, the first in the list matches.
///
/// Nodes are numbered level by level, so that the children of a node follow one another.
#[derive(Debug)]
pub(crate) struct Trie {
    /// The byte that leads to a node.
    labels: Vec<u8>,
    flags: Vec<Flags>,
    /// Where the children of a node begin; they end where those of the next node begin.
    children: Vec<u32>,
    /// The child of the root for each byte.
    first: Box<[u32; 256]>,
    /// Which bytes there are in the literals.
    used: Box<[bool; 256]>,
    /// The most bytes of a literal that are read before it is certain.
    pub(crate) worst_hold: usize,
}

impl Trie {
    pub(crate) const ROOT: u32 = 1;

    pub(crate) fn build<T: AsRef<[u8]>>(literals: &[T]) -> Self {
        let mut sorted: Vec<(&[u8], usize)> = literals.iter().map(AsRef::as_ref).zip(0..).collect();
        sorted.sort_unstable();
        let mut used = Box::new([false; 256]);
        for &byte in sorted.iter().flat_map(|(literal, _)| *literal) {
            used[usize::from(byte)] = true;
        }
        // Nodes 0 and 1 are the dead one and the root.
        let mut trie = Self {
            labels: vec![0; 2],
            flags: vec![Flags::default(), Flags::literal(false, !sorted.is_empty())],
            children: vec![2, 2],
            first: Box::new([DEAD; 256]),
            used,
            worst_hold: 0,
        };
        // The literals below each node of a level, as a range of the sorted ones, with the best place in the list on the way there and
        // how many bytes wait.
        let mut level = vec![(0..sorted.len(), usize::MAX, 0)];
        let mut depth = 0;
        while !level.is_empty() {
            let mut next = Vec::new();
            for (range, best, waits) in level {
                let mut from = range.start;
                while from < range.end {
                    // The literal that ends here sorts first and has no child.
                    let Some(&byte) = sorted[from].0.get(depth) else {
                        from += 1;
                        continue;
                    };
                    let to = from + sorted[from..range.end].partition_point(|(l, _)| l.get(depth) == Some(&byte));
                    let below = &sorted[from..to];
                    let ends = below.iter().filter(|(l, place)| l.len() == depth + 1 && *place < best);
                    let ends = ends.map(|(_, place)| *place).min();
                    let reached = ends.unwrap_or(best);
                    // What comes later in the list than a literal it begins with never matches.
                    let goes_on = below.iter().any(|(l, place)| l.len() > depth + 1 && *place < reached);
                    if ends.is_some() || below.iter().any(|(_, place)| *place < best) {
                        let node = trie.labels.len() as u32;
                        trie.labels.push(byte);
                        trie.flags.push(Flags::literal(ends.is_some(), goes_on));
                        if depth == 0 {
                            trie.first[usize::from(byte)] = node;
                        }
                        let waits = if ends.is_some() { 0 } else { waits + 1 };
                        trie.worst_hold = trie.worst_hold.max(if goes_on { waits } else { 0 });
                        let range = if goes_on { from..to } else { 0..0 };
                        next.push((range, reached, waits));
                    }
                    from = to;
                }
                trie.children.push(trie.labels.len() as u32);
            }
            level = next;
            depth += 1;
        }
        trie
    }

    #[inline]
    pub(crate) fn step(&self, state: u32, byte: u8) -> u32 {
        if state == Self::ROOT {
            return self.first[usize::from(byte)];
        }
        let state = state as usize;
        let (from, to) = (self.children[state] as usize, self.children[state + 1] as usize);
        self.labels[from..to].binary_search(&byte).map_or(DEAD, |at| (from + at) as u32)
    }

    #[inline]
    pub(crate) fn flags(&self, state: u32) -> Flags {
        self.flags[state as usize]
    }

    pub(crate) fn class(&self, byte: u8) -> u16 {
        if self.used[usize::from(byte)] { byte.into() } else { 256 }
    }

    pub(crate) fn states(&self) -> usize {
        self.labels.len()
    }
}

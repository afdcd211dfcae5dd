//! What follows one pattern over bytes: a table of a regular expression, or a trie of literals.

use crate::{
    table::{DEAD, Flags, Table},
    trie::Trie,
};

#[derive(Debug)]
pub(crate) enum Machine {
    Table(Table),
    Trie(Trie),
}

impl Machine {
    #[inline]
    pub(crate) fn step(&self, state: u32, byte: u8) -> u32 {
        match self {
            Self::Table(table) => table.step(state, byte),
            Self::Trie(trie) => trie.step(state, byte),
        }
    }

    /// The state to begin in after this byte, or at the beginning of the text.
    #[inline]
    pub(crate) fn start(&self, before: Option<u8>) -> u32 {
        match self {
            Self::Table(table) => table.start(before),
            Self::Trie(_) => Trie::ROOT,
        }
    }

    #[inline]
    pub(crate) fn flags(&self, state: u32) -> Flags {
        match self {
            Self::Table(table) => table.flags(state),
            Self::Trie(trie) => trie.flags(state),
        }
    }

    /// Whether a match from this start state can begin with this byte.
    pub(crate) fn can_begin(&self, start: u32, byte: u8) -> bool {
        start != DEAD && self.step(start, byte) != DEAD
    }

    /// Bytes of the same class lead from every state to the same state.
    pub(crate) fn class(&self, byte: u8) -> u16 {
        match self {
            Self::Table(table) => table.class(byte).into(),
            Self::Trie(trie) => trie.class(byte),
        }
    }

    pub(crate) fn states(&self) -> usize {
        match self {
            Self::Table(table) => table.states(),
            Self::Trie(trie) => trie.states(),
        }
    }

    pub(crate) fn worst_hold(&self) -> Option<usize> {
        match self {
            Self::Table(table) => table.worst_hold,
            Self::Trie(trie) => Some(trie.worst_hold),
        }
    }
}

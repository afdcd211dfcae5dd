use streamkeeper_contract::{Chunk, Id, Lane, Meta, Text};

use crate::{Interest, OnFailure, Role, StreamObserver};

/// One observer of an invocation, with what it holds.
pub(super) struct Slot {
    pub(super) interest: Interest,
    pub(super) state: State,
    pub(super) holds: Vec<Hold>,
    /// What is rarely asked for, so that the slots of a stack lie close together.
    pub(super) who: Box<Who>,
}

pub(super) struct Who {
    pub(super) id: Id,
    pub(super) role: Role,
    pub(super) on_failure: OnFailure,
}

pub(super) enum State {
    Active(Box<dyn StreamObserver>),
    /// Failed, and the stream goes on without it.
    Off,
    /// Failed, and what it would have seen is masked.
    Masking(Box<Mask>),
}

/// What a failed observer's placeholder has done so far.
pub(super) struct Mask {
    pub(super) placeholder: Text,
    /// Lanes that have their placeholder.
    pub(super) replaced: Vec<Lane>,
    /// Lanes of tool calls whose beginning was withheld, so that the rest must not appear either.
    pub(super) swallowed: Vec<Lane>,
}

/// Text of one lane that one observer has not settled. One string, not the chunks: observers match on text, and `keep` counts bytes.
pub(super) struct Hold {
    pub(super) lane: Lane,
    pub(super) text: String,
    /// Of the last chunk in it.
    pub(super) meta: Meta,
}

impl Slot {
    pub(super) fn is_active(&self) -> bool {
        matches!(self.state, State::Active(_))
    }

    pub(super) fn hold_of(&self, lane: Lane) -> Option<usize> {
        self.holds.iter().position(|hold| hold.lane == lane)
    }
}

impl Hold {
    pub(super) fn open(lane: Lane, text: &str, meta: Meta) -> Self {
        Self { lane, text: text.to_owned(), meta }
    }

    pub(super) fn append(&mut self, text: &str, meta: &Meta) {
        self.text.push_str(text);
        let earlier = std::mem::replace(&mut self.meta, meta.clone());
        self.meta.provenance.merge(earlier.provenance);
    }

    /// All of it as one delta, released by this position.
    pub(super) fn into_chunk(self, position: usize) -> Chunk {
        let mut meta = self.meta;
        meta.provenance.add(position);
        Chunk::delta(self.lane, self.text).with_meta(meta)
    }
}

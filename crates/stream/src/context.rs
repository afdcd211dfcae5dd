use std::{fmt, sync::Arc, time::Duration};

use streamkeeper_contract::{CallClass, FinishReason, Id, Lane, Offset, Outcome, SideEvent, Text, Usage};

use crate::stack::Outlet;

/// What an observer may know and do while it is called.
///
/// Nothing in here differs between two runs over the same input: no clock, no random id, no address.
pub struct ObserverContext<'a> {
    pub(crate) call: &'a Call,
    pub(crate) position: Position,
    pub(crate) lane: Option<Lane>,
    pub(crate) pending: &'a str,
    pub(crate) held: usize,
    pub(crate) observer: usize,
    pub(crate) outlet: &'a mut Outlet,
}

/// What does not change during an invocation.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) class: CallClass,
    pub(crate) ordinal: u64,
    pub(crate) observers: Arc<[Id]>,
}

/// How far an invocation is.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Position {
    pub(crate) chunk_index: u64,
    pub(crate) at: Offset,
    pub(crate) delivered: u64,
}

impl<'a> ObserverContext<'a> {
    /// What the model call is for.
    pub fn call_class(&self) -> &'a CallClass {
        &self.call.class
    }

    /// Which invocation of its run this is, from 0.
    pub fn invocation(&self) -> u64 {
        self.call.ordinal
    }

    /// Which entering chunk this is about, from 0. At a barrier: the chunk that makes the barrier; at the end: how many entered.
    pub fn chunk_index(&self) -> u64 {
        self.position.chunk_index
    }

    /// When that chunk arrived, from the start of the invocation.
    pub fn offset(&self) -> Offset {
        self.position.at
    }

    /// Bytes of answer text (channel `text`, all choices) that have passed all observers so far.
    pub fn delivered_len(&self) -> u64 {
        self.position.delivered
    }

    /// The lane of the chunk, or the lane to settle.
    pub fn lane(&self) -> Option<Lane> {
        self.lane
    }

    /// The text that a verdict speaks about. For a delta: what this observer holds of the lane, then the chunk's text, in one piece, so
    /// that a match across chunks is an ordinary match. At a barrier: the held text. Otherwise the chunk's
    /// [`text`](streamkeeper_contract::Chunk::text), empty if it has none.
    pub fn pending(&self) -> &'a str {
        self.pending
    }

    /// The part of [`pending`](Self::pending) that was held before this chunk.
    pub fn held(&self) -> &'a str {
        &self.pending[..self.held]
    }

    /// Sends an event on its channel at once: before the chunk is handed on, and before the events of an `Emit` verdict. Goes with any
    /// verdict. Without a reader the event is dropped.
    pub fn emit(&mut self, event: SideEvent) {
        self.outlet.emit(self.observer, event);
    }
}

impl fmt::Debug for ObserverContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObserverContext")
            .field("call_class", &self.call.class)
            .field("chunk_index", &self.position.chunk_index)
            .field("lane", &self.lane)
            .field("held_len", &self.held)
            .field("pending_len", &self.pending.len())
            .finish_non_exhaustive()
    }
}

/// How an invocation went.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct InvocationResult {
    /// How it ended.
    pub outcome: Arc<Outcome>,
    /// What it was for.
    pub call_class: CallClass,
    /// Which invocation of its run it was, from 0.
    pub ordinal: u64,
    /// The observers of the stack, in order: the names behind the positions of a chunk's provenance.
    pub observers: Arc<[Id]>,
    /// Tokens as the provider stated them, delivered or not.
    pub usage: Option<Usage>,
    /// The provider's reason to end, of the first choice, delivered or not.
    pub provider_finish: Option<FinishReason>,
    /// The code of the first error that the provider reported inside the stream, delivered or not.
    pub provider_error: Option<Text>,
    /// Chunks that entered.
    pub chunks_in: u64,
    /// Chunks that the consumer took, the end included.
    pub chunks_out: u64,
    /// What the consumer got of each lane, in order of appearance.
    pub lanes: Vec<LaneText>,
    /// Bytes of answer text (channel `text`, all choices) that the consumer got.
    pub delivered_len: u64,
    /// Bytes of text that the stack withheld: held or on their way at the end, in the chunk that was stopped, masked after a failure.
    pub withheld_len: u64,
    /// Opaque chunks withheld because text of their part was changed: a signature over it is worthless.
    pub opaque_withheld: u64,
    /// Snapshots whose text differed from the deltas before it.
    pub differing_snapshots: u64,
    /// From the start to the last chunk, by the chunks' own offsets.
    pub duration: Duration,
}

impl InvocationResult {
    /// Bytes of a lane that the consumer got.
    pub fn delivered_in(&self, lane: Lane) -> u64 {
        self.lanes.iter().find(|text| text.lane == lane).map_or(0, |text| text.delivered_len)
    }
}

/// What came and went of one lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct LaneText {
    /// The lane.
    pub lane: Lane,
    /// Bytes of text that entered.
    pub entered_len: u64,
    /// Bytes of text that the consumer got.
    pub delivered_len: u64,
}

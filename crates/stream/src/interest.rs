use std::{fmt, ops::BitOr};

use streamkeeper_contract::{Channel, Chunk, ChunkKind, Lane};

/// The chunk kinds that an observer wants to see.
///
/// ```
/// use streamkeeper_contract::ChunkKind;
/// use streamkeeper_stream::Interest;
///
/// let interest = Interest::only(&[ChunkKind::ContentDelta]) | Interest::only(&[ChunkKind::Finish]);
/// assert!(interest.contains(ChunkKind::Finish));
/// assert!(!interest.contains(ChunkKind::Usage));
/// assert_eq!(format!("{interest:?}"), "{content_delta, finish}");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Interest(u64);

impl Interest {
    /// Every kind.
    pub const ALL: Interest = Interest(u64::MAX);

    /// No kind: the observer is asked nothing, and told of the end alone.
    pub const NONE: Interest = Interest(0);

    /// Deltas of every channel, and whatever else repeats or completes their text: snapshots, whole tool calls and tool results.
    pub const TEXT: Interest = Interest::only(&[
        ChunkKind::ContentDelta,
        ChunkKind::ReasoningDelta,
        ChunkKind::RefusalDelta,
        ChunkKind::ToolCallDelta,
        ChunkKind::ToolResultDelta,
        ChunkKind::ProviderToolDelta,
        ChunkKind::TranscriptDelta,
        ChunkKind::Snapshot,
        ChunkKind::ToolCall,
        ChunkKind::ToolResult,
    ]);

    /// Only these kinds.
    pub const fn only(kinds: &[ChunkKind]) -> Self {
        let (mut mask, mut i) = (0, 0);
        while i < kinds.len() {
            mask |= 1 << kinds[i] as u8;
            i += 1;
        }
        Self(mask)
    }

    /// Only deltas of these channels.
    pub fn channels(channels: &[Channel]) -> Self {
        channels.iter().fold(Self::NONE, |all, &channel| all | Self::only(&[Lane::new(channel).delta_kind()]))
    }

    /// Whether the set has a kind.
    pub const fn contains(self, kind: ChunkKind) -> bool {
        self.0 & (1 << kind as u8) != 0
    }

    /// Whether the set has the chunk's kind.
    pub fn covers(self, chunk: &Chunk) -> bool {
        self.contains(chunk.kind())
    }
}

impl BitOr for Interest {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl fmt::Debug for Interest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::ALL {
            return f.write_str("ALL");
        }
        let kinds = ChunkKind::ALL.iter().filter(|kind| self.contains(**kind));
        f.debug_set().entries(kinds.map(|kind| Bare(kind.as_str()))).finish()
    }
}

/// A name whose `Debug` has no quotes.
struct Bare(&'static str);

impl fmt::Debug for Bare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

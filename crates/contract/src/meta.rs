use crate::{Json, Text};

/// What travels with a chunk and is filled by the decoder and the stack, never by an observer.
///
/// ```
/// use streamkeeper_contract::{Chunk, Lane, Meta, Offset, Origin};
///
/// let meta = Meta { at: Offset(1_500), origin: Origin { frame: 3, part: 0 }, ..Meta::default() };
/// let chunk = Chunk::delta(Lane::TEXT, "Hello").with_meta(meta);
/// assert_eq!(chunk.offset(), Offset(1_500));
/// assert!(chunk.provenance().is_empty());
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Meta {
    /// When it arrived.
    pub at: Offset,
    /// Where in the provider's bytes it comes from.
    pub origin: Origin,
    /// Which observers amended or released it.
    pub provenance: Provenance,
    /// Fields of the source that this version does not know, as raw text in their order.
    pub extra: Option<Box<Extra>>,
}

/// Microseconds from the start of the invocation to the arrival of a chunk. Data, not a clock: a replay sees the same.
///
/// A duration that is too long becomes the longest offset. The JSON form is the number.
///
/// ```
/// use std::time::Duration;
/// use streamkeeper_contract::Offset;
///
/// assert_eq!(Offset::from(Duration::from_millis(2)), Offset(2_000));
/// assert_eq!(Offset(2_000).duration(), Duration::from_millis(2));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Offset(pub u64);

impl Offset {
    /// As a duration.
    pub const fn duration(self) -> std::time::Duration {
        std::time::Duration::from_micros(self.0)
    }
}

impl From<std::time::Duration> for Offset {
    fn from(duration: std::time::Duration) -> Self {
        Self(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX))
    }
}

/// Where in the provider's bytes a chunk comes from. Frames count from 1, so that the default means "from no frame".
///
/// The JSON form is `{"frame":3,"part":1}`; a `part` of 0 is left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    /// The frame: an SSE event, a JSON line, a binary message. From 1; 0 for a chunk that was not decoded.
    pub frame: u32,
    /// Which chunk of that frame, from 0.
    pub part: u16,
}

/// The observers that amended or released a chunk, as a set of positions in the stack. Positions past 63 share the last bit.
///
/// The result of the invocation has the ids of the observers, in the order of their positions. The JSON form is the list of positions.
/// No format of a provider carries it.
///
/// ```
/// use streamkeeper_contract::Provenance;
///
/// let mut provenance = Provenance::default();
/// provenance.add(2);
/// assert!(provenance.contains(2) && !provenance.contains(0));
/// assert_eq!(provenance.positions().collect::<Vec<_>>(), [2]);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Provenance(u64);

impl Provenance {
    /// Adds the observer at this position.
    pub fn add(&mut self, position: usize) {
        self.0 |= 1 << position.min(63);
    }

    /// Adds all of another set.
    pub fn merge(&mut self, other: Provenance) {
        self.0 |= other.0;
    }

    /// Whether the observer at this position had a hand in it.
    pub fn contains(self, position: usize) -> bool {
        self.0 & (1 << position.min(63)) != 0
    }

    /// No observer had.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The positions, in order.
    pub fn positions(self) -> impl Iterator<Item = usize> {
        (0..64).filter(move |&position| self.contains(position))
    }
}

/// Fields of the source that this version does not know, as raw text in their order.
///
/// Unknown fields of an object inside a chunk stand under the name of that object: `("lane", {"floor":7.0})`. In the chunk's JSON form
/// they follow the known fields; one that has the name of a known field of its kind is left out there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Extra(pub Vec<(Text, Json)>);

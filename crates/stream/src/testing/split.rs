use std::fmt;

use streamkeeper_contract::{Body, Chunk, Lane, Meta, Offset};

/// How a text, a body of bytes or the deltas of a stream are cut into pieces.
///
/// Most ways of cutting give one list of pieces. [`EveryBorder`](Self::EveryBorder) gives one for each border. Text is cut between
/// characters alone.
///
/// ```
/// use streamkeeper_stream::testing::Split;
///
/// assert_eq!(Split::EveryByte.text("né!"), [["n", "é", "!"]]);
/// assert_eq!(Split::EveryBorder.text("abc"), [["a", "bc"], ["ab", "c"]]);
/// assert_eq!(Split::EveryByte.bytes("é".as_bytes()).concat().len(), 2);
/// assert_eq!(Split::Random { seed: 7 }.text("once more"), Split::Random { seed: 7 }.text("once more"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Split {
    /// In one piece.
    Whole,
    /// Each byte alone; of text, each character.
    EveryByte,
    /// So many bytes a piece, at least one; of text, more where a character would be cut.
    Bytes(usize),
    /// In two, once for each border.
    EveryBorder,
    /// Pieces of 1 to 16 bytes, the same for the same seed.
    Random {
        /// Where the lengths come from.
        seed: u64,
    },
}

impl Split {
    /// One of each, and a few of those that have a number.
    pub const ALL: [Self; 10] = [
        Self::Whole,
        Self::EveryByte,
        Self::Bytes(2),
        Self::Bytes(3),
        Self::Bytes(7),
        Self::Bytes(64),
        Self::Random { seed: 1 },
        Self::Random { seed: 2 },
        Self::Random { seed: 3 },
        Self::EveryBorder,
    ];

    /// The ways to cut a text: each a list of pieces that make up the text, without empty ones.
    pub fn text(self, text: &str) -> Vec<Vec<&str>> {
        let ways = (0..self.ways(text.len())).map(|way| self.pieces(text, way));
        ways.filter(|pieces| self.is_way(pieces.len())).collect()
    }

    /// The ways to cut bytes, wherever they fall.
    pub fn bytes(self, bytes: &[u8]) -> Vec<Vec<&[u8]>> {
        let cut = |way| {
            let cuts = self.cuts(bytes.len(), way);
            windows(&cuts, bytes.len()).map(|(from, to)| &bytes[from..to]).collect()
        };
        (0..self.ways(bytes.len())).map(cut).collect()
    }

    /// How many ways there are for a text of so many bytes. At least one.
    fn ways(self, len: usize) -> usize {
        if self == Self::EveryBorder { len.saturating_sub(1).max(1) } else { 1 }
    }

    /// A border inside of a character makes no way of its own.
    fn is_way(self, pieces: usize) -> bool {
        self != Self::EveryBorder || pieces != 1
    }

    fn pieces(self, text: &str, way: usize) -> Vec<&str> {
        let mut cuts: Vec<_> = match self {
            Self::EveryBorder => {
                self.cuts(text.len(), way).into_iter().filter(|&at| text.is_char_boundary(at)).collect()
            }
            _ => self.cuts(text.len(), way).into_iter().map(|at| text.ceil_char_boundary(at)).collect(),
        };
        cuts.dedup();
        windows(&cuts, text.len()).map(|(from, to)| &text[from..to]).collect()
    }

    /// Where to cut so many bytes, ascending.
    fn cuts(self, len: usize, way: usize) -> Vec<usize> {
        match self {
            Self::Whole => Vec::new(),
            Self::EveryByte => (1..len).collect(),
            Self::Bytes(n) => (1..len).filter(|at| at % n.max(1) == 0).collect(),
            Self::EveryBorder => (way + 1 < len).then_some(way + 1).into_iter().collect(),
            Self::Random { seed } => {
                let mut random = Random::new(seed);
                let (mut cuts, mut at) = (Vec::new(), 0);
                while at < len {
                    at += 1 + random.below(16);
                    cuts.push(at.min(len));
                }
                cuts
            }
        }
    }
}

impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole => f.write_str("left whole"),
            Self::EveryByte => f.write_str("cut into single characters"),
            Self::Bytes(n) => write!(f, "cut each {n} bytes"),
            Self::EveryBorder => f.write_str("cut in two"),
            Self::Random { seed } => write!(f, "cut at random (seed {seed})"),
        }
    }
}

fn windows(cuts: &[usize], len: usize) -> impl Iterator<Item = (usize, usize)> {
    let starts = std::iter::once(0).chain(cuts.iter().copied());
    let ends = cuts.iter().copied().chain(std::iter::once(len));
    starts.zip(ends).filter(|(from, to)| from < to)
}

/// How the pieces of several lanes take turns.
///
/// ```
/// use streamkeeper_stream::testing::Interleave;
///
/// let lanes = || vec![vec!["a1", "a2", "a3"], vec!["b1"]];
/// assert_eq!(Interleave::Sequential.lanes(lanes()), ["a1", "a2", "a3", "b1"]);
/// assert_eq!(Interleave::RoundRobin.lanes(lanes()), ["a1", "b1", "a2", "a3"]);
/// assert_eq!(Interleave::Random { seed: 1 }.lanes(lanes()).len(), 4);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Interleave {
    /// One lane after the other.
    Sequential,
    /// One piece of each lane in turn.
    RoundRobin,
    /// At random, the same for the same seed.
    Random {
        /// Where the order comes from.
        seed: u64,
    },
}

impl Interleave {
    /// One of each, and two that are random.
    pub const ALL: [Self; 4] = [Self::Sequential, Self::RoundRobin, Self::Random { seed: 1 }, Self::Random { seed: 2 }];

    /// Makes one list of several, each in its own order.
    pub fn lanes<T>(self, lanes: Vec<Vec<T>>) -> Vec<T> {
        let mut lanes: Vec<_> = lanes.into_iter().map(Vec::into_iter).filter(|lane| lane.len() > 0).collect();
        let mut random = match self {
            Self::Random { seed } => Random::new(seed),
            _ => Random::new(0),
        };
        let (mut all, mut at) = (Vec::new(), 0);
        while !lanes.is_empty() {
            at = match self {
                Self::Sequential => 0,
                Self::RoundRobin => at % lanes.len(),
                Self::Random { .. } => random.below(lanes.len()),
            };
            all.extend(lanes[at].next());
            if lanes[at].len() == 0 {
                lanes.remove(at);
            } else {
                at += 1;
            }
        }
        all
    }
}

impl fmt::Display for Interleave {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sequential => f.write_str("one lane after the other"),
            Self::RoundRobin => f.write_str("lanes in turn"),
            Self::Random { seed } => write!(f, "lanes at random (seed {seed})"),
        }
    }
}

/// The same stream in other chunks: one list for each way of the split.
///
/// Deltas that follow each other, whatever their lanes, are put together lane by lane, cut anew, and put in another order of lanes.
/// Everything else stays in its place between them, so that no text moves past a chunk that may be a barrier. A piece has the offset of
/// the delta that its first byte was in, or a later one where the order asks for it.
///
/// ```
/// use streamkeeper_contract::{Chunk, FinishReason, Lane};
/// use streamkeeper_stream::testing::{Interleave, Split, rearrange};
///
/// let chunks = [Chunk::delta(Lane::TEXT, "He"), Chunk::delta(Lane::TEXT, "llo"), Chunk::finish(0, FinishReason::Stop)];
/// let whole = rearrange(&chunks, Split::Whole, Interleave::Sequential);
/// assert_eq!(whole, [[Chunk::delta(Lane::TEXT, "Hello"), Chunk::finish(0, FinishReason::Stop)]]);
/// assert_eq!(rearrange(&chunks, Split::EveryBorder, Interleave::Sequential).len(), 4);
/// ```
pub fn rearrange(chunks: &[Chunk], split: Split, interleave: Interleave) -> Vec<Vec<Chunk>> {
    let runs = runs(chunks);
    let texts = || runs.iter().filter_map(|run| if let Run::Texts(texts) = run { Some(texts) } else { None }).flatten();
    let ways = texts().map(|text| split.ways(text.text.len())).max().unwrap_or(1);
    let rearranged = |way: usize| {
        let mut all = Vec::new();
        let mut is_way = split != Split::EveryBorder || ways == 1;
        for run in &runs {
            match run {
                Run::Other(chunk) => all.push(Chunk::clone(chunk)),
                Run::Texts(texts) => {
                    let cut: Vec<_> = texts.iter().map(|text| text.cut(split, way)).collect();
                    is_way |= cut.iter().any(|pieces| pieces.len() > 1);
                    all.extend(in_time(interleave.lanes(cut)));
                }
            }
        }
        is_way.then_some(all)
    };
    (0..ways).filter_map(rearranged).collect()
}

/// Offsets never go back.
fn in_time(mut pieces: Vec<Chunk>) -> Vec<Chunk> {
    let mut at = Offset::default();
    for piece in &mut pieces {
        at = at.max(piece.offset());
        piece.meta_mut().at = at;
    }
    pieces
}

enum Run<'c> {
    Texts(Vec<LaneText>),
    Other(&'c Chunk),
}

/// What the deltas of one lane add up to, and from which byte on it came with which offset and other meta data.
struct LaneText {
    lane: Lane,
    text: String,
    metas: Vec<(usize, Meta)>,
}

impl LaneText {
    fn cut(&self, split: Split, way: usize) -> Vec<Chunk> {
        let mut at = 0;
        let piece = |piece: &str| {
            let meta = self.metas.iter().rev().find(|(from, _)| *from <= at).map(|(_, meta)| meta.clone());
            at += piece.len();
            Chunk::delta(self.lane, piece).with_meta(meta.unwrap_or_default())
        };
        split.pieces(&self.text, way).into_iter().map(piece).collect()
    }
}

fn runs(chunks: &[Chunk]) -> Vec<Run<'_>> {
    let mut runs: Vec<Run<'_>> = Vec::new();
    for chunk in chunks {
        let Body::Delta { lane, text } = chunk.body() else {
            runs.push(Run::Other(chunk));
            continue;
        };
        if !matches!(runs.last(), Some(Run::Texts(_))) {
            runs.push(Run::Texts(Vec::new()));
        }
        let Some(Run::Texts(texts)) = runs.last_mut() else { continue };
        let at = texts.iter().position(|known| known.lane == *lane).unwrap_or_else(|| {
            texts.push(LaneText { lane: *lane, text: String::new(), metas: Vec::new() });
            texts.len() - 1
        });
        let known = &mut texts[at];
        known.metas.push((known.text.len(), chunk.meta().clone()));
        known.text.push_str(text);
    }
    runs
}

/// Numbers that follow from a seed: splitmix64.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((word ^ (word >> 31)) % limit.max(1) as u64) as usize
    }
}

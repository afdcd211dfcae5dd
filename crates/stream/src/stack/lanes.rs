//! The lanes of an invocation: what came and went, and what has to be remembered for snapshots.

use streamkeeper_contract::{Body, Chunk, Lane};

use super::{account::text_len, fingerprint::Fingerprint};
use crate::LaneText;

/// The lanes, in order of appearance.
pub(super) struct Lanes {
    list: Vec<LaneState>,
    /// Where the last delta was: the next one is most often there.
    last: usize,
    last_key: u64,
    limit: usize,
    /// How many positions there are.
    positions: usize,
    /// Bytes of edits that may still be remembered.
    edit_bytes_left: usize,
}

pub(super) struct LaneState {
    pub(super) lane: Lane,
    pub(super) entered: u64,
    pub(super) delivered: u64,
    pub(super) withheld: u64,
    /// What was delivered differs from what entered.
    pub(super) changed: bool,
    /// The text that entered, and the same without the last chunk.
    pub(super) text: Fingerprint,
    pub(super) earlier: Fingerprint,
    apart: Option<Box<Apart>>,
}

/// The positions of a lane do not all see the same text at the same time: somebody has held or changed it. Before that, every position
/// has seen what entered, and nothing is remembered but that.
struct Apart {
    /// Positions before this one still see what enters.
    from: usize,
    /// What each position from there on has seen.
    seen: Vec<Fingerprint>,
    /// What positions changed, each in its own order.
    edits: Vec<Edit>,
    /// Positions whose edits are not remembered: there were too many.
    forgot: Vec<usize>,
}

/// One position has put another text for a range of what it saw.
struct Edit {
    position: usize,
    start: u64,
    end: u64,
    text: String,
}

/// How a snapshot compares with what a position has seen of the lane.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Repeats {
    /// It has seen nothing yet.
    Nothing,
    /// It has seen this text, and changed nothing.
    Unedited,
    /// It has seen this text, and made of it what is here.
    Edited(String),
    /// It has seen another text, or its edits are forgotten.
    Differs {
        /// And had changed something.
        was_edited: bool,
    },
}

impl Lanes {
    pub(super) fn new(limit: usize, positions: usize, edit_bytes: usize) -> Self {
        Self { list: Vec::new(), last: 0, last_key: NO_LANE, limit, positions, edit_bytes_left: edit_bytes }
    }

    /// The lane, if it is counted. Opened by the first chunk that speaks of it.
    #[inline]
    pub(super) fn open(&mut self, lane: Lane) -> Option<&mut LaneState> {
        if self.last_key != key(lane) {
            self.last = self.find(lane)?;
            self.last_key = key(lane);
        }
        self.list.get_mut(self.last)
    }

    /// The lane that was opened last, after [`open`](Lanes::open) gave one.
    #[inline]
    pub(super) fn opened_last(&mut self) -> Option<&mut LaneState> {
        self.list.get_mut(self.last)
    }

    #[cold]
    fn find(&mut self, lane: Lane) -> Option<usize> {
        let known = self.list.iter().position(|state| state.lane == lane);
        if known.is_none() && self.list.len() < self.limit {
            self.list.push(LaneState::new(lane));
            return Some(self.list.len() - 1);
        }
        known
    }

    /// The choices that said anything.
    pub(super) fn choices(&self) -> impl Iterator<Item = u16> {
        self.list.iter().map(|state| state.lane.choice)
    }

    /// Whether text of this part was changed.
    pub(super) fn is_changed(&self, choice: u16, part: u16) -> bool {
        self.list.iter().any(|state| state.changed && state.lane.choice == choice && state.lane.part == part)
    }

    /// Whether the text of this lane was changed, or is not known to be as it came.
    pub(super) fn differs(&self, lane: Lane) -> bool {
        self.list.iter().find(|state| state.lane == lane).map_or(self.list.len() >= self.limit, |state| state.changed)
    }

    pub(super) fn withheld(&self) -> u64 {
        self.list.iter().map(|state| state.withheld).sum()
    }

    pub(super) fn texts(&self) -> Vec<LaneText> {
        let text = |state: &LaneState| LaneText {
            lane: state.lane,
            entered_len: state.entered,
            delivered_len: state.delivered,
        };
        self.list.iter().map(text).collect()
    }

    /// Text of a lane comes to a position.
    pub(super) fn arrive(&mut self, position: usize, lane: Lane, text: &str) {
        if let Some(seen) = self.open(lane).and_then(|state| state.seen_by(position)) {
            seen.append(text);
        }
    }

    /// A position holds back or changes text that has come to it: from here on the later ones see something else.
    pub(super) fn part(&mut self, position: usize, lane: Lane) {
        let positions = self.positions;
        let Some(state) = self.open(lane) else { return };
        let (text, earlier) = (state.text, state.earlier);
        let apart = state.apart.get_or_insert_with(|| {
            Box::new(Apart { from: positions, seen: vec![earlier; positions], edits: Vec::new(), forgot: Vec::new() })
        });
        if position < apart.from {
            // Those between have seen everything but the chunk that this one stands before.
            apart.seen[position + 1..apart.from].fill(earlier);
            apart.seen[position] = text;
            apart.from = position;
        }
    }

    /// A position puts `new` for `old`, where `after` bytes of what it has seen follow.
    pub(super) fn edit(&mut self, position: usize, lane: Lane, old: &str, new: &str, after: usize) {
        if old == new {
            return;
        }
        self.part(position, lane);
        let left = self.edit_bytes_left;
        let Some(state) = self.open(lane) else { return };
        state.changed = true;
        let Some(apart) = &mut state.apart else { return };
        let Some(end) = apart.seen[position].len().checked_sub(after as u64) else { return };
        let (prefix, suffix) = common(old, new);
        let edit = Edit {
            position,
            start: end.saturating_sub((old.len() - prefix) as u64),
            end: end.saturating_sub(suffix as u64),
            text: new[prefix..new.len() - suffix].to_owned(),
        };
        let cost = edit.text.len() + size_of::<Edit>();
        if apart.forgot.contains(&position) {
            return;
        }
        let Some(left) = left.checked_sub(cost) else {
            apart.edits.retain(|edit| edit.position != position);
            apart.forgot.push(position);
            return;
        };
        match apart.edits.iter_mut().rev().find(|edit| edit.position == position) {
            Some(last) if last.end == edit.start => {
                last.end = edit.end;
                last.text.push_str(&edit.text);
            }
            _ => apart.edits.push(edit),
        }
        self.edit_bytes_left = left;
    }

    /// A snapshot comes to a position. It is what the position has seen from here on.
    pub(super) fn compare(&mut self, position: usize, lane: Lane, text: &str) -> Repeats {
        let Some(state) = self.open(lane) else { return Repeats::Differs { was_edited: true } };
        let earlier = state.earlier;
        let now = Fingerprint::of(text);
        // Where the positions are not apart, it sees what enters.
        let before = state.seen_by(position).map_or(earlier, |seen| std::mem::replace(seen, now));
        let has_edits = |apart: &Apart| apart.edits.iter().any(|edit| edit.position == position);
        let apart = state.apart.as_deref();
        let forgot = apart.is_some_and(|apart| apart.forgot.contains(&position));
        if before.is_empty() {
            Repeats::Nothing
        } else if before != now || forgot {
            Repeats::Differs { was_edited: forgot || apart.is_some_and(has_edits) }
        } else {
            match apart.filter(|apart| has_edits(apart)) {
                None => Repeats::Unedited,
                Some(apart) => match apart.replay(position, text) {
                    Some(edited) => Repeats::Edited(edited),
                    None => Repeats::Differs { was_edited: true },
                },
            }
        }
    }

    /// A position was shown a whole text and has judged it: what it did before is void, and it puts `new` for it now.
    pub(super) fn judge(&mut self, position: usize, lane: Lane, old: &str, new: &str) {
        if let Some(apart) = self.open(lane).and_then(|state| state.apart.as_mut()) {
            apart.edits.retain(|edit| edit.position != position);
            apart.forgot.retain(|forgot| *forgot != position);
        }
        self.edit(position, lane, old, new, 0);
    }
}

/// A lane in one word, which is compared at once.
#[inline]
fn key(lane: Lane) -> u64 {
    u64::from(lane.choice) | u64::from(lane.part) << 16 | u64::from(lane.call) << 32 | (lane.channel as u64) << 48
}

const NO_LANE: u64 = u64::MAX;

impl LaneState {
    fn new(lane: Lane) -> Self {
        Self {
            lane,
            entered: 0,
            delivered: 0,
            withheld: 0,
            changed: false,
            text: Fingerprint::default(),
            earlier: Fingerprint::default(),
            apart: None,
        }
    }

    /// What a position has seen, if that is not simply what entered.
    #[inline]
    pub(super) fn seen_by(&mut self, position: usize) -> Option<&mut Fingerprint> {
        let apart = self.apart.as_mut()?;
        if position < apart.from { None } else { apart.seen.get_mut(position) }
    }

    /// Text enters.
    #[inline]
    pub(super) fn enter(&mut self, text: &str) {
        self.earlier = self.text;
        self.text.append(text);
    }

    /// A snapshot enters: it is the text from here on. Returns whether it differs from the text before.
    pub(super) fn enter_whole(&mut self, text: &str) -> bool {
        self.earlier = std::mem::replace(&mut self.text, Fingerprint::of(text));
        !self.earlier.is_empty() && self.earlier != self.text
    }

    pub(super) fn is_apart(&self) -> bool {
        self.apart.is_some()
    }

    /// Counts a chunk's text into one of the counters. A snapshot repeats: only what goes beyond the text so far is new.
    pub(super) fn add(counter: &mut u64, chunk: &Chunk) {
        match chunk.body() {
            Body::Snapshot(snapshot) => *counter = (*counter).max(snapshot.text.len() as u64),
            _ => *counter += text_len(chunk),
        }
    }
}

impl Apart {
    /// What a position made of this text when it came in pieces.
    fn replay(&self, position: usize, text: &str) -> Option<String> {
        let mut out = String::with_capacity(text.len());
        let mut at = 0;
        for edit in self.edits.iter().filter(|edit| edit.position == position) {
            let (start, end) = (usize::try_from(edit.start).ok()?, usize::try_from(edit.end).ok()?);
            out.push_str(text.get(at..start)?);
            out.push_str(&edit.text);
            text.get(start..end)?;
            at = end;
        }
        out.push_str(text.get(at..)?);
        Some(out)
    }
}

/// Bytes that two texts have in common at the beginning, and at the end of the rest; whole characters.
fn common(old: &str, new: &str) -> (usize, usize) {
    let same = |(a, b): &(char, char)| a == b;
    let len = |pairs: &mut dyn Iterator<Item = (char, char)>| pairs.map(|(a, _)| a.len_utf8()).sum();
    let prefix: usize = len(&mut old.chars().zip(new.chars()).take_while(same));
    let (old, new) = (&old[prefix..], &new[prefix..]);
    let suffix = len(&mut old.chars().rev().zip(new.chars().rev()).take_while(same));
    (prefix, suffix)
}

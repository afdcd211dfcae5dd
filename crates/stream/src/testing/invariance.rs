use std::{collections::BTreeMap, fmt};

use streamkeeper_contract::{Body, Chunk, Lane, Outcome, SideEvent};

use super::{Interleave, Ran, Script, Split, rearrange};
use crate::Observers;

/// A stream came out otherwise when it was cut otherwise. Its `Display` says in which run, where, and what was expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SplitDifference {
    split: Split,
    interleave: Interleave,
    /// Which of the ways of the split.
    way: usize,
    /// What is other.
    what: String,
}

impl SplitDifference {
    /// How the deltas were cut.
    pub fn split(&self) -> Split {
        self.split
    }

    /// How the lanes took turns.
    pub fn interleave(&self) -> Interleave {
        self.interleave
    }
}

impl fmt::Display for SplitDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.split.fmt(f)?;
        if self.split == Split::EveryBorder {
            write!(f, " at byte {}", self.way + 1)?;
        }
        write!(f, ", {}: {}", self.interleave, self.what)
    }
}

impl std::error::Error for SplitDifference {}

/// Panics unless observers give the same however a stream is cut and its lanes are interleaved: [`check_split_invariant`].
///
/// # Panics
/// With the first [`SplitDifference`].
#[track_caller]
pub fn assert_split_invariant(observers: &Observers, script: impl Into<Script>) {
    check_split_invariant(observers, script).unwrap_or_else(|difference| panic!("{difference}"));
}

/// The same with cuts and orders of your choice.
///
/// # Panics
/// With the first [`SplitDifference`].
#[track_caller]
pub fn assert_split_invariant_by(
    observers: &Observers,
    script: impl Into<Script>,
    splits: &[Split],
    interleaves: &[Interleave],
) {
    check_split_invariant_by(observers, script, splits, interleaves)
        .unwrap_or_else(|difference| panic!("{difference}"));
}

/// Whether observers give the same however a stream is cut and its lanes are interleaved.
///
/// The stream is run as [`rearrange`](super::rearrange) makes it for each of [`Split::ALL`] and [`Interleave::ALL`], and each run is
/// compared with the one that has all text whole, one lane after the other:
///
/// - the delivered text of each lane, joined, is the same, and, with the lanes one after the other, so are the chunks between the texts
///   and their places;
/// - the events are the same; with the lanes in another order, their order may differ;
/// - the outcome is the same, and no observer fails;
/// - a second run of the same chunks delivers the same chunks and events.
///
/// A stop without a hold delivers what came in chunks before the one that was stopped at, so that what is delivered depends on the cuts. For those the
/// stop has to be the same one, and, with the lanes one after the other, at the same character: in the chunk that has the character at
/// which it stops when each comes alone.
///
/// Leave out observers that count chunks, such as metrics: their events differ for a reason.
///
/// Costs some dozens of runs, and one for each border of the longest text. Keep texts below some hundred bytes, or choose by
/// [`check_split_invariant_by`].
///
/// # Errors
/// With the first difference.
pub fn check_split_invariant(observers: &Observers, script: impl Into<Script>) -> Result<(), SplitDifference> {
    check_split_invariant_by(observers, script, &Split::ALL, &Interleave::ALL)
}

/// The same with cuts and orders of your choice.
///
/// ```
/// use streamkeeper_contract::{Chunk, Lane};
/// use streamkeeper_stream::{Observers, testing::{Interleave, Split, check_split_invariant_by}};
///
/// let long = [Chunk::delta(Lane::TEXT, "x".repeat(100_000))];
/// check_split_invariant_by(&Observers::new(), long, &[Split::Bytes(4096)], &[Interleave::Sequential])?;
/// # Ok::<_, streamkeeper_stream::testing::SplitDifference>(())
/// ```
///
/// # Errors
/// With the first difference.
pub fn check_split_invariant_by(
    observers: &Observers,
    script: impl Into<Script>,
    splits: &[Split],
    interleaves: &[Interleave],
) -> Result<(), SplitDifference> {
    let script = script.into();
    let run = |split, interleave| {
        let ways = rearrange(&script.chunks, split, interleave).into_iter();
        ways.map(|chunks| script.with_chunks(chunks)).collect::<Vec<_>>()
    };
    let Some(whole) = run(Split::Whole, Interleave::Sequential).pop() else { return Ok(()) };
    let whole = Said::of(whole.run(observers));
    if let Some(failure) = whole.ran.failures().first() {
        let what = format!("an observer fails however it is cut, which shows nothing: {failure}");
        return Err(SplitDifference { split: Split::Whole, interleave: Interleave::Sequential, way: 0, what });
    }
    let single = run(Split::EveryByte, Interleave::Sequential).pop().map(|script| Said::of(script.run(observers)));
    for &split in splits {
        for &interleave in interleaves {
            for (way, script) in run(split, interleave).into_iter().enumerate() {
                let difference = |what| SplitDifference { split, interleave, way, what };
                let said = Said::of(script.run(observers));
                let is_ordered = interleave == Interleave::Sequential;
                said.differs_from(&whole, is_ordered).map_err(difference)?;
                if let (true, Some(single)) = (is_ordered, &single) {
                    said.stops_where(single, &script).map_err(difference)?;
                }
                if split != Split::EveryBorder {
                    said.repeats(&Said::of(script.run(observers))).map_err(difference)?;
                }
            }
        }
    }
    Ok(())
}

/// What a run says, whatever its chunks.
struct Said {
    ran: Ran,
    texts: BTreeMap<Lane, String>,
    /// Texts and what stands between them, in order.
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq)]
enum Piece {
    Text(Lane, String),
    Other(Body),
}

impl Said {
    fn of(ran: Ran) -> Self {
        let mut texts = BTreeMap::<Lane, String>::new();
        let mut pieces = Vec::new();
        for chunk in ran.delivered() {
            match chunk.body() {
                Body::Delta { lane, text } => {
                    texts.entry(*lane).or_default().push_str(text);
                    match pieces.last_mut() {
                        Some(Piece::Text(last, joined)) if last == lane => joined.push_str(text),
                        _ => pieces.push(Piece::Text(*lane, text.as_str().to_owned())),
                    }
                }
                // The outcome is compared by itself: a stop says at which chunk.
                Body::End(_) => {}
                body => pieces.push(Piece::Other(body.clone())),
            }
        }
        Self { ran, texts, pieces }
    }

    fn differs_from(&self, whole: &Self, is_ordered: bool) -> Result<(), String> {
        same("the outcome", &outcome(whole.ran.outcome()), &outcome(self.ran.outcome()))?;
        same("the failures", &names(whole.ran.failures()), &names(self.ran.failures()))?;
        if self.ran.stop().is_some() {
            return Ok(());
        }
        for lane in whole.texts.keys().chain(self.texts.keys()) {
            let text = |said: &Self| said.texts.get(lane).cloned().unwrap_or_default();
            self.same_text(*lane, &text(whole), &text(self))?;
        }
        let shown = |said: &Self| said.ran.events().iter().map(show_event).collect::<Vec<_>>();
        let (mut expected, mut got) = (shown(whole), shown(self));
        if !is_ordered {
            expected.sort_unstable();
            got.sort_unstable();
            return same_list("event", &expected, &got);
        }
        same_list("event", &expected, &got)?;
        let shown = |said: &Self| said.pieces.iter().map(Piece::show).collect::<Vec<_>>();
        same_list("piece", &shown(whole), &shown(self))
    }

    fn same_text(&self, lane: Lane, expected: &str, got: &str) -> Result<(), String> {
        if expected == got {
            return Ok(());
        }
        let at = expected.bytes().zip(got.bytes()).take_while(|(a, b)| a == b).count();
        let at = expected.floor_char_boundary(at.min(expected.len()));
        Err(format!(
            "the text of {} differs at byte {at}{}: expected {:?}, got {:?}",
            show_lane(lane),
            self.chunk_at(lane, at),
            excerpt(expected, at),
            excerpt(got, at)
        ))
    }

    /// Which delivered chunk has a byte of a lane.
    fn chunk_at(&self, lane: Lane, byte: usize) -> String {
        let mut seen = 0;
        for (i, chunk) in self.ran.delivered().iter().enumerate() {
            if let Body::Delta { lane: at, text } = chunk.body()
                && *at == lane
            {
                seen += text.len();
                if seen > byte {
                    return format!(", in delivered chunk {i}");
                }
            }
        }
        String::from(", after its last chunk")
    }

    /// A stop without a hold comes with the chunk that has the character at which it comes when each character comes alone.
    fn stops_where(&self, single: &Self, script: &Script) -> Result<(), String> {
        let (Some(here), Some(there)) = (self.ran.stop(), single.ran.stop()) else { return Ok(()) };
        for (lane, expected) in &single.texts {
            let got = self.texts.get(lane).map_or("", String::as_str);
            if !expected.starts_with(got) {
                return self.same_text(*lane, expected, got);
            }
        }
        let entered = |chunks: &[Chunk], index: u64| {
            let index = usize::try_from(index).unwrap_or(usize::MAX).min(chunks.len());
            chunks[..index].iter().filter(|chunk| chunk.is_delta()).filter_map(Chunk::text).map(str::len).sum::<usize>()
        };
        let known_at =
            entered(single.ran.recording().input().cloned().collect::<Vec<_>>().as_slice(), there.chunk_index + 1);
        let (before, after) =
            (entered(script.chunks(), here.chunk_index), entered(script.chunks(), here.chunk_index + 1));
        if before < known_at && known_at <= after || before == known_at && after == before {
            return Ok(());
        }
        Err(format!(
            "it stops at chunk {}, after bytes {before} to {after}; when each character comes alone, with byte {known_at}",
            here.chunk_index
        ))
    }

    fn repeats(&self, again: &Self) -> Result<(), String> {
        if let Some(i) = first_other(self.ran.delivered(), again.ran.delivered()) {
            return Err(format!("a second run of the same chunks delivers another chunk {i}"));
        }
        if let Some(i) = first_other(self.ran.events(), again.ran.events()) {
            return Err(format!("a second run of the same chunks emits another event {i}"));
        }
        Ok(())
    }
}

impl Piece {
    fn show(&self) -> String {
        match self {
            Self::Text(lane, text) => format!("{} {text:?}", show_lane(*lane)),
            Self::Other(body) => {
                let chunk = Chunk::from(body.clone());
                serde_json::to_string(&chunk).unwrap_or_else(|_| chunk.kind().as_str().to_owned())
            }
        }
    }
}

fn show_lane(lane: Lane) -> String {
    let Lane { choice, part, call, channel } = lane;
    let at = |name: &str, number: u16| if number == 0 { String::new() } else { format!(", {name} {number}") };
    format!("`{channel}`{}{}{}", at("choice", choice), at("part", part), at("call", call))
}

fn show_event(event: &SideEvent) -> String {
    format!("{}/{} {}", event.channel, event.name, event.payload.as_str())
}

/// An outcome without the places that depend on the cuts.
fn outcome(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Stopped(stop) => format!("stopped by `{}` with code `{}`: {}", stop.observer, stop.code, stop.reason),
        other => other.to_string(),
    }
}

fn names(failures: &[streamkeeper_contract::FailureReport]) -> String {
    if failures.is_empty() {
        return "none".to_owned();
    }
    failures.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn same(what: &str, expected: &str, got: &str) -> Result<(), String> {
    if expected == got { Ok(()) } else { Err(format!("{what}: expected {expected}, got {got}")) }
}

fn same_list(what: &str, expected: &[String], got: &[String]) -> Result<(), String> {
    let none = || "none".to_owned();
    match first_other(expected, got) {
        None => Ok(()),
        Some(i) => Err(format!(
            "{what} {i}: expected {}, got {}",
            expected.get(i).cloned().unwrap_or_else(none),
            got.get(i).cloned().unwrap_or_else(none)
        )),
    }
}

fn first_other<T: PartialEq>(one: &[T], other: &[T]) -> Option<usize> {
    (0..one.len().max(other.len())).find(|&i| one.get(i) != other.get(i))
}

/// Some characters around a place.
fn excerpt(text: &str, at: usize) -> String {
    let from = text.floor_char_boundary(at.saturating_sub(12).min(text.len()));
    let to = text.floor_char_boundary((at + 24).min(text.len()));
    let dots = |cut: bool| if cut { "…" } else { "" };
    format!("{}{}{}", dots(from > 0), &text[from..to], dots(to < text.len()))
}

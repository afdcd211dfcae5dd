use std::{collections::VecDeque, fmt, time::Instant};

use smallvec::SmallVec;
use streamkeeper_contract::{Body, Chunk, ErrorInfo, Lane, Meta, Offset, Origin, ToolCall};

use crate::{
    Stack,
    observed::engine::{Engine, Next},
    stack::Passed,
};

/// An item of a client's own stream that observers can look into and change in place.
///
/// Implement it for the item type of a client crate, and `stream.observed(..)` works for its streams: the items that come out are the
/// client's own. Only the texts shown as [`Part::Delta`] and [`Part::Snapshot`] can be changed. What an observer holds leaves an item with
/// empty text; it goes out in the text of the next item of that lane, or in a synthesised item before the one that made the barrier.
///
/// ```
/// use streamkeeper_contract::{Chunk, FinishReason, Lane};
/// use streamkeeper_stream::{Part, StreamItem};
///
/// #[derive(Default)]
/// struct Piece {
///     text: Option<String>,
///     done: bool,
/// }
///
/// impl StreamItem for Piece {
///     fn visit(&mut self, _: &mut (), f: &mut dyn FnMut(Part<'_>)) {
///         if let Some(text) = &mut self.text {
///             f(Part::Delta(Lane::TEXT, text));
///         }
///         if self.done {
///             f(Part::Fixed(Chunk::finish(0, FinishReason::Stop)));
///         }
///     }
///
///     fn synth(_: &mut (), _: Option<&Self>, lane: Lane, text: &str) -> Option<Self> {
///         (lane == Lane::TEXT).then(|| Piece { text: Some(text.to_owned()), done: false })
///     }
/// }
/// ```
///
/// # State, and adapters
/// `S` is what has to be remembered from item to item, for example which lane an index of the client stands for. Each observed stream
/// starts with `S::default()`. A type that needs none leaves it out.
///
/// It is also what lets a crate of its own adapt a client: neither this trait nor the client's type is theirs, but with a state type of
/// theirs they may implement `StreamItem<Theirs> for ClientType`. There should be one implementation for a client's type: with two,
/// `observed` cannot tell which is meant.
#[diagnostic::on_unimplemented(
    message = "a stream of `{Self}` cannot be observed",
    note = "implement `StreamItem` for `{Self}`, or use the adapter crate of this client"
)]
pub trait StreamItem<S: Default = ()>: Sized {
    /// Shows each part of the item, in the order in which a reader would meet them. Called once for each item, and once more if a text
    /// has to be changed. Both times it shows the same texts in the same order; the second time other parts are ignored.
    fn visit(&mut self, state: &mut S, f: &mut dyn FnMut(Part<'_>));

    /// Makes an item that says `text` in `lane` and nothing else. `like` is an item of the same stream, if one is at hand.
    ///
    /// `None` means that this lane cannot be written. The text is then withheld, counted and reported.
    fn synth(state: &mut S, like: Option<&Self>, lane: Lane, text: &str) -> Option<Self>;

    /// Makes an item with a whole tool call that an observer has made. Default: `None`, it cannot be written.
    fn synth_tool_call(state: &mut S, like: Option<&Self>, call: &ToolCall) -> Option<Self> {
        let _ = (state, like, call);
        None
    }

    /// A copy to make items like, kept for the time when the source has ended and no item is at hand. Asked of items until one gives
    /// it. Default: `None`, which is right where [`synth`](Self::synth) needs no `like`.
    fn like(&self) -> Option<Self> {
        None
    }
}

/// A part of a [`StreamItem`].
#[derive(Debug)]
#[non_exhaustive]
pub enum Part<'a> {
    /// A piece of a lane's text.
    Delta(Lane, &'a mut String),
    /// The whole text of a lane, repeated.
    Snapshot(Lane, &'a mut String),
    /// Anything else, as a chunk: a tool call's start, usage, finish, an error. It can be seen, not changed; amending it is a contract
    /// failure.
    Fixed(Chunk),
}

/// A [`Stack`] behind a client's items.
#[doc(hidden)]
pub struct Items<T, S> {
    stack: Stack,
    state: S,
    started: Instant,
    frame: u32,
    like: Option<T>,
    /// What waits for the consumer, with the chunks that are delivered by it.
    queue: VecDeque<(T, Chunks)>,
    parts: Vec<Seen>,
}

type Chunks = SmallVec<[Passed; 1]>;

/// What came out of the stack for one part of an item.
struct Seen {
    kind: PartKind,
    /// The part's own chunk as it was, and nothing else.
    is_same: bool,
    chunks: Chunks,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PartKind {
    Delta(Lane),
    Snapshot,
    Fixed,
}

/// What has to be said by an item that does not exist yet.
enum Made {
    Text(Lane, String),
    ToolCall(Box<ToolCall>),
}

impl<T: StreamItem<S>, S: Default> Engine for Items<T, S> {
    type Item = T;

    fn new(mut stack: Stack) -> Self {
        stack.fix_all_but_text();
        let state = S::default();
        Self { stack, state, started: Instant::now(), frame: 0, like: None, queue: VecDeque::new(), parts: Vec::new() }
    }

    fn waits(&self) -> bool {
        !self.queue.is_empty() || self.stack.waits()
    }

    fn passes(&mut self, item: &mut T) -> bool {
        if self.like.is_none() {
            self.like = item.like();
        }
        let at = Offset::from(self.started.elapsed());
        self.frame = self.frame.saturating_add(1);
        let mut origin = Origin { frame: self.frame, part: 0 };
        let (stack, parts) = (&mut self.stack, &mut self.parts);
        item.visit(&mut self.state, &mut |part| {
            let (chunk, kind) = match part {
                Part::Delta(lane, text) => (Chunk::delta(lane, text.as_str()), PartKind::Delta(lane)),
                Part::Snapshot(lane, text) => (Chunk::snapshot(lane, text.as_str()), PartKind::Snapshot),
                Part::Fixed(chunk) => (chunk, PartKind::Fixed),
            };
            let meta = Meta { at, origin, ..Meta::default() };
            let chunk = chunk.with_meta(meta);
            let chunks: Chunks = if stack.passes(&chunk) {
                SmallVec::from_buf([stack.passed(chunk)])
            } else {
                stack.go_on(chunk);
                std::iter::from_fn(|| stack.take()).collect()
            };
            let is_same = chunks.len() == 1 && chunks.iter().all(|passed| is_own(&passed.chunk, origin));
            parts.push(Seen { kind, is_same, chunks });
            origin.part = origin.part.saturating_add(1);
        });
        if parts.iter().all(|part| part.is_same) {
            parts.drain(..).flat_map(|part| part.chunks).for_each(|passed| stack.deliver(passed.index, &passed.chunk));
            return true;
        }
        false
    }

    fn go_on(&mut self, item: T) {
        self.rebuild(item);
    }

    fn next(&mut self) -> Option<Next<T>> {
        if let Some((item, chunks)) = self.queue.pop_front() {
            chunks.iter().for_each(|passed| self.stack.deliver(passed.index, &passed.chunk));
            return Some(Next::Item(item));
        }
        match self.stack.pop()?.body() {
            Body::End(end) => Some(Next::End(end.outcome().clone(), None)),
            _ => None,
        }
    }

    fn finish(&mut self) {
        self.stack.finish();
        self.synthesise_rest();
    }

    fn fail(&mut self, error: ErrorInfo) -> bool {
        let first = self.stack.fail(error);
        self.synthesise_rest();
        first
    }

    fn stack(&self) -> &Stack {
        &self.stack
    }

    fn stack_mut(&mut self) -> &mut Stack {
        &mut self.stack
    }
}

impl<T: StreamItem<S>, S: Default> Items<T, S> {
    /// Writes what came out of the stack for an item into the item, and what has no place in it into items before it.
    ///
    /// Text goes to the last delta of its lane up to the part for which it came out, so that no lane changes its order. An item that has
    /// a fixed part which was withheld, or that was stopped and says nothing, is left out.
    fn rebuild(&mut self, mut item: T) {
        let mut parts = std::mem::take(&mut self.parts);
        let kinds: Vec<PartKind> = parts.iter().map(|part| part.kind).collect();
        let mut before: Vec<(Made, Chunks)> = Vec::new();
        let mut placed: Vec<Chunks> = kinds.iter().map(|_| Chunks::new()).collect();
        let mut is_whole = true;
        for (p, part) in parts.iter_mut().enumerate() {
            let origin = Origin { frame: self.frame, part: u16::try_from(p).unwrap_or(u16::MAX) };
            let mut is_there = part.kind != PartKind::Fixed;
            for passed in std::mem::take(&mut part.chunks) {
                let chunk = &passed.chunk;
                match chunk.body() {
                    Body::Delta { lane, text } => {
                        match kinds[..=p].iter().rposition(|kind| *kind == PartKind::Delta(*lane)) {
                            Some(home) => placed[home].push(passed),
                            None => {
                                let made = Made::Text(*lane, text.to_string());
                                before.push((made, SmallVec::from_buf([passed])));
                            }
                        }
                    }
                    Body::Snapshot(_) if part.kind == PartKind::Snapshot => placed[p].push(passed),
                    Body::ToolCall(call) if !chunk.provenance().is_empty() => {
                        // It stands between texts: those before it leave the item.
                        before.extend(move_out(&kinds, &mut placed));
                        let made = Made::ToolCall(call.clone());
                        before.push((made, SmallVec::from_buf([passed])));
                    }
                    _ if is_own(chunk, origin) => {
                        is_there = true;
                        placed[p].push(passed);
                    }
                    _ => self.stack.refuse(chunk),
                }
            }
            is_whole &= is_there;
        }
        let says_nothing = placed.iter().all(SmallVec::is_empty);
        let is_left_out = !is_whole || (self.stack.is_ended() && says_nothing);
        if is_left_out {
            before.extend(move_out(&kinds, &mut placed));
            placed.iter().flatten().for_each(|passed| self.stack.refuse(&passed.chunk));
        }
        for (made, chunks) in before {
            self.synthesise(Some(&item), &made, chunks);
        }
        if is_left_out {
            return;
        }
        let mut texts = parts.iter().zip(&placed).filter(|(part, _)| part.kind != PartKind::Fixed);
        item.visit(&mut self.state, &mut |part| {
            let (Part::Delta(_, text) | Part::Snapshot(_, text)) = part else { return };
            let Some((seen, chunks)) = texts.next() else { return };
            if seen.is_same && chunks.len() == 1 {
                return;
            }
            text.clear();
            chunks.iter().filter_map(|passed| passed.chunk.text()).for_each(|piece| text.push_str(piece));
        });
        self.queue.push_back((item, placed.into_iter().flatten().collect()));
    }

    /// What the end of the source released.
    fn synthesise_rest(&mut self) {
        while let Some(passed) = self.stack.take() {
            let made = match passed.chunk.body() {
                Body::Delta { lane, text } => Made::Text(*lane, text.to_string()),
                Body::ToolCall(call) => Made::ToolCall(call.clone()),
                _ => {
                    self.stack.refuse(&passed.chunk);
                    continue;
                }
            };
            self.synthesise(None, &made, SmallVec::from_buf([passed]));
        }
    }

    fn synthesise(&mut self, item: Option<&T>, made: &Made, chunks: Chunks) {
        let like = self.like.as_ref().or(item);
        let item = match made {
            Made::Text(lane, text) => T::synth(&mut self.state, like, *lane, text),
            Made::ToolCall(call) => T::synth_tool_call(&mut self.state, like, call),
        };
        match item {
            Some(item) => self.queue.push_back((item, chunks)),
            None => chunks.iter().for_each(|passed| self.stack.refuse(&passed.chunk)),
        }
    }
}

/// Takes the texts out of the places they had in an item, in order.
fn move_out(kinds: &[PartKind], placed: &mut [Chunks]) -> Vec<(Made, Chunks)> {
    let mut moved = Vec::new();
    for (kind, chunks) in kinds.iter().zip(placed) {
        let PartKind::Delta(lane) = *kind else { continue };
        let chunks = std::mem::take(chunks);
        if !chunks.is_empty() {
            let text = chunks.iter().filter_map(|passed| passed.chunk.text()).collect();
            moved.push((Made::Text(lane, text), chunks));
        }
    }
    moved
}

/// Whether a chunk came out as the one that was made from a part.
fn is_own(chunk: &Chunk, origin: Origin) -> bool {
    chunk.origin() == origin && chunk.provenance().is_empty()
}

impl<T, S> Drop for Items<T, S> {
    fn drop(&mut self) {
        // What waits was not delivered.
        for (_, chunks) in self.queue.drain(..).rev() {
            chunks.into_iter().rev().for_each(|passed| self.stack.give_back(passed));
        }
    }
}

impl<T, S> fmt::Debug for Items<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Items").field("stack", &self.stack).field("waiting", &self.queue.len()).finish_non_exhaustive()
    }
}

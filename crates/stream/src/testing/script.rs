use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use futures_core::Stream;
use streamkeeper_contract::{Chunk, ErrorInfo, FinishReason, Lane, Offset, Outcome, Text};

use super::Ran;
use crate::{ObserverFactoryContext, Observers, SourceEnd};

/// What enters a stack in a test, when, and how the source ends.
///
/// Time is data: [`wait`](Self::wait) lets what follows arrive later, and nobody waits.
///
/// ```
/// use std::time::Duration;
/// use streamkeeper_stream::{Observers, testing::Script};
///
/// let ran = Script::new()
///     .text("Hello")
///     .wait(Duration::from_secs(600))
///     .text(", world")
///     .finish()
///     .run(&Observers::new());
/// assert_eq!(ran.answer(), "Hello, world");
/// assert_eq!(ran.outcome().code(), "finished");
/// assert_eq!(ran.duration(), Duration::from_secs(600));
///
/// let ran = Script::new().text("Hel").run(&Observers::new());
/// assert_eq!(ran.outcome().code(), "truncated", "the source ended without a finish");
/// ```
#[derive(Debug, Clone)]
#[must_use = "it does nothing until it is run"]
pub struct Script {
    pub(super) chunks: Vec<Chunk>,
    pub(super) end: SourceEnd,
    pub(super) ctx: ObserverFactoryContext,
    now: Offset,
}

impl Default for Script {
    fn default() -> Self {
        Self::new()
    }
}

impl Script {
    /// A source that ends at once.
    pub fn new() -> Self {
        Self {
            chunks: Vec::new(),
            end: SourceEnd::Finished,
            ctx: ObserverFactoryContext::default(),
            now: Offset::default(),
        }
    }

    /// A piece of the answer, of choice 0.
    pub fn text(self, text: impl Into<Text>) -> Self {
        self.delta(Lane::TEXT, text)
    }

    /// A piece of any lane.
    pub fn delta(self, lane: Lane, text: impl Into<Text>) -> Self {
        self.chunk(Chunk::delta(lane, text))
    }

    /// Any chunk. It arrives now; an offset of its own counts if it is later, and time goes on from there.
    pub fn chunk(mut self, chunk: Chunk) -> Self {
        self.now = self.now.max(chunk.offset());
        self.chunks.push(chunk.at(self.now));
        self
    }

    /// The finish of choice 0.
    pub fn finish(self) -> Self {
        self.chunk(Chunk::finish(0, FinishReason::Stop))
    }

    /// Time passes; what follows arrives later.
    pub fn wait(mut self, time: Duration) -> Self {
        self.now = (self.now.duration() + time).into();
        self
    }

    /// Time passes, and the host says so: a heartbeat.
    pub fn silence(self, time: Duration) -> Self {
        let script = self.wait(time);
        let heartbeat = Chunk::heartbeat(script.now);
        script.chunk(heartbeat)
    }

    /// The source fails with this code.
    pub fn fails(mut self, code: impl Into<Text>) -> Self {
        self.end = SourceEnd::Failed(ErrorInfo::new(code));
        self
    }

    /// The caller gives up.
    pub fn aborted(mut self) -> Self {
        self.end = SourceEnd::Ended(Outcome::Aborted { reason: None, cancel_requested: false });
        self
    }

    /// The consumer lets go of the stream. Everything that was there by then was taken.
    pub fn dropped(mut self) -> Self {
        self.end = SourceEnd::Dropped;
        self
    }

    /// What the factories are told. Default: an invocation of which nothing is known.
    pub fn context(mut self, ctx: ObserverFactoryContext) -> Self {
        self.ctx = ctx;
        self
    }

    /// What enters.
    pub fn chunks(&self) -> &[Chunk] {
        &self.chunks
    }

    /// The same end and context with other chunks.
    pub fn with_chunks(&self, chunks: Vec<Chunk>) -> Self {
        Self { chunks, ..self.clone() }
    }

    /// Takes it through observers; see [`Ran`].
    pub fn run(&self, observers: &Observers) -> Ran {
        Ran::of(observers, self)
    }

    /// The source as a stream, always ready, for what wraps streams: [`ObserveExt`](crate::ObserveExt), an engine of your own. A source
    /// that [`fails`](Self::fails) yields an error last; every other one just ends.
    ///
    /// ```
    /// use futures_util::StreamExt;
    /// use streamkeeper_stream::{ObserveExt, Observers, testing::Script};
    ///
    /// # futures_executor::block_on(async {
    /// let source = Script::new().text("Hello").fails("connection_lost").stream();
    /// let items: Vec<_> = source.observed(Observers::new()).collect().await;
    /// assert_eq!(items.len(), 2);
    /// assert!(items[1].is_err());
    /// # });
    /// ```
    pub fn stream(&self) -> ScriptStream {
        let error = match &self.end {
            SourceEnd::Failed(error) => Some(SourceFailed(error.code.clone())),
            _ => None,
        };
        ScriptStream { chunks: self.chunks.clone().into_iter(), error }
    }
}

impl FromIterator<Chunk> for Script {
    fn from_iter<I: IntoIterator<Item = Chunk>>(chunks: I) -> Self {
        chunks.into_iter().fold(Self::new(), Self::chunk)
    }
}

impl From<Vec<Chunk>> for Script {
    fn from(chunks: Vec<Chunk>) -> Self {
        chunks.into_iter().collect()
    }
}

impl From<&[Chunk]> for Script {
    fn from(chunks: &[Chunk]) -> Self {
        chunks.iter().cloned().collect()
    }
}

impl<const N: usize> From<[Chunk; N]> for Script {
    fn from(chunks: [Chunk; N]) -> Self {
        chunks.into_iter().collect()
    }
}

impl From<&Script> for Script {
    fn from(script: &Script) -> Self {
        script.clone()
    }
}

/// The source of a [`Script`] as a stream.
#[derive(Debug)]
pub struct ScriptStream {
    chunks: std::vec::IntoIter<Chunk>,
    error: Option<SourceFailed>,
}

/// A scripted source failed, as it was told; holds the code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the source failed: {0}")]
pub struct SourceFailed(pub Text);

impl Stream for ScriptStream {
    type Item = Result<Chunk, SourceFailed>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.chunks.next().map(Ok).or_else(|| self.error.take().map(Err)))
    }
}

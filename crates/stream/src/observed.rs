use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use futures_core::{FusedStream, Stream};
use pin_project_lite::pin_project;
use streamkeeper_contract::{Body, Chunk, ErrorInfo, Outcome, Text};

use crate::{ObserverFactoryContext, Observers, Stack};

/// Puts observers around a stream of chunks.
///
/// ```
/// use futures_util::{StreamExt, TryStreamExt, stream};
/// use streamkeeper_contract::{Chunk, FinishReason, Lane, id};
/// use streamkeeper_stream::{ObserveExt, ObserverContext, Registration, StreamWatcher};
///
/// #[derive(Clone)]
/// struct Idle;
///
/// impl StreamWatcher for Idle {
///     fn on_chunk(&mut self, _: &Chunk, _: &mut ObserverContext<'_>) {}
/// }
///
/// let chunks = [Chunk::delta(Lane::TEXT, "Hello"), Chunk::finish(0, FinishReason::Stop)];
/// let source = stream::iter(chunks.map(Ok::<_, std::io::Error>));
///
/// # futures_executor::block_on(async {
/// let seen: Vec<Chunk> = source.observed(Registration::watcher(id!("idle"), Idle)).try_collect().await?;
/// assert_eq!(seen.len(), 3);
/// assert_eq!(seen[2].kind().as_str(), "end");
/// # Ok::<_, streamkeeper_stream::ObservedError<std::io::Error>>(())
/// # }).unwrap();
/// ```
pub trait ObserveExt<E>: Stream<Item = Result<Chunk, E>> + Sized {
    /// The observed stream. The observers are made now, for a call of which nothing is known; nothing is spawned or locked.
    ///
    /// It yields exactly one terminal item, last: an `end` chunk if the invocation finished, an [`ObservedError`] otherwise.
    fn observed(self, observers: impl Into<Observers>) -> Observed<Self, E> {
        self.with_stack(observers.into().stack(&ObserverFactoryContext::default()))
    }

    /// The same with a stack that is built already, for example from an [`ObserverFactoryContext`] that tells the call's class.
    fn with_stack(self, stack: Stack) -> Observed<Self, E> {
        // A guard that could not be made has ended the invocation already: the source must not be asked.
        Observed { source: (!stack.is_ended()).then_some(self), stack, error: None, is_over: false }
    }
}

impl<S: Stream<Item = Result<Chunk, E>>, E> ObserveExt<E> for S {}

/// How an observed stream ended, if it did not finish.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ObservedError<E> {
    /// The source's own error. It was shown to no observer: what it says is the client's word.
    #[error("the source failed")]
    Source(#[source] E),
    /// The invocation ended otherwise: stopped, truncated, failed or aborted.
    #[error("{0}")]
    Ended(Arc<Outcome>),
}

impl<E> ObservedError<E> {
    /// The outcome, unless the source failed.
    pub fn outcome(&self) -> Option<&Outcome> {
        match self {
            Self::Source(_) => None,
            Self::Ended(outcome) => Some(outcome),
        }
    }
}

pin_project! {
    /// See [`ObserveExt::observed`].
    ///
    /// Dropping it ends the invocation as `Dropped`, unless something else was decided. The source is dropped first, then the observers
    /// are told.
    #[must_use = "streams do nothing unless polled"]
    pub struct Observed<S, E> {
        #[pin]
        source: Option<S>,
        stack: Stack,
        error: Option<E>,
        is_over: bool,
    }
}

impl<S, E> Observed<S, E> {
    /// Ends every outcome with an `end` chunk, the source's own error included.
    pub fn quiet(self) -> Quiet<S, E> {
        Quiet { observed: self, error: None }
    }

    /// Gives up: the source is let go of at the next poll without being asked again, held text is withheld, and the outcome is
    /// `Aborted` if nothing else was decided.
    pub fn abort(self: Pin<&mut Self>, reason: Option<Text>) {
        let mut this = self.project();
        this.stack.abort(reason);
        this.source.set(None);
    }

    /// The stack inside.
    pub fn stack(&self) -> &Stack {
        &self.stack
    }
}

impl<S: Stream<Item = Result<Chunk, E>>, E> Observed<S, E> {
    /// The next chunk. With the `end` comes the source's own error, if that was it.
    fn poll_chunk(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<(Chunk, Option<E>)>> {
        let mut this = self.project();
        loop {
            if let Some(chunk) = this.stack.pop() {
                let is_end = matches!(chunk.body(), Body::End(_));
                *this.is_over |= is_end;
                let error = if is_end { this.error.take() } else { None };
                return Poll::Ready(Some((chunk, error)));
            }
            let Some(source) = this.source.as_mut().as_pin_mut() else { return Poll::Ready(None) };
            match ready!(source.poll_next(cx)) {
                Some(Ok(chunk)) => {
                    if let Some(chunk) = this.stack.transit(chunk) {
                        return Poll::Ready(Some((chunk, None)));
                    }
                }
                Some(Err(error)) => {
                    // The error is the terminal item, so it waits behind the text that its barrier releases.
                    *this.error = this.stack.fail(ErrorInfo::new("source_error")).then_some(error);
                }
                None => this.stack.finish(),
            }
            if this.stack.is_ended() {
                this.source.set(None);
            }
        }
    }
}

impl<S: Stream<Item = Result<Chunk, E>>, E> Stream for Observed<S, E> {
    type Item = Result<Chunk, ObservedError<E>>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(ready!(self.poll_chunk(cx)).map(|(chunk, error)| match (chunk.body(), error) {
            (_, Some(error)) => Err(ObservedError::Source(error)),
            (Body::End(end), None) if !end.outcome().is_finished() => Err(ObservedError::Ended(end.outcome().clone())),
            _ => Ok(chunk),
        }))
    }
}

impl<S: Stream<Item = Result<Chunk, E>>, E> FusedStream for Observed<S, E> {
    fn is_terminated(&self) -> bool {
        self.is_over
    }
}

impl<S, E> std::fmt::Debug for Observed<S, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Observed").field("stack", &self.stack).finish_non_exhaustive()
    }
}

pin_project! {
    /// An observed stream that cannot fail: see [`Observed::quiet`].
    #[must_use = "streams do nothing unless polled"]
    pub struct Quiet<S, E> {
        #[pin]
        observed: Observed<S, E>,
        error: Option<E>,
    }
}

impl<S, E> Quiet<S, E> {
    /// The source's own error, if that was the end.
    pub fn source_error(&self) -> Option<&E> {
        self.error.as_ref()
    }
}

impl<S: Stream<Item = Result<Chunk, E>>, E> Stream for Quiet<S, E> {
    type Item = Chunk;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Chunk>> {
        let this = self.project();
        Poll::Ready(ready!(this.observed.poll_chunk(cx)).map(|(chunk, error)| {
            if error.is_some() {
                *this.error = error;
            }
            chunk
        }))
    }
}

impl<S: Stream<Item = Result<Chunk, E>>, E> FusedStream for Quiet<S, E> {
    fn is_terminated(&self) -> bool {
        self.observed.is_over
    }
}

impl<S, E> std::fmt::Debug for Quiet<S, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Quiet").field("stack", &self.observed.stack).finish_non_exhaustive()
    }
}

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use futures_core::{FusedStream, Stream};
use pin_project_lite::pin_project;
use streamkeeper_contract::{Body, Chunk, ErrorInfo, Outcome, Text, codes};

use self::engine::{Engine, Next};
use crate::{ObserverFactoryContext, Observers, Stack, StreamItem, item::Items};

/// Puts observers around a stream, in one line and without changing its items.
///
/// Works for streams of [`Chunk`]s and of a client's own items, see [`StreamItem`]. The observed stream yields exactly one terminal item,
/// last:
///
/// | outcome | chunks | a client's items |
/// |---|---|---|
/// | `Finished` | an `end` chunk | the plain end of the stream |
/// | the source's own error | `Err(ObservedError::Source)` | the same |
/// | any other | `Err(ObservedError::Ended)` | the same |
///
/// so that `?` notices a stop or a failed guard. [`Observed::quiet`] gives an end without an error instead. The client's error values are
/// not shown to the observers.
///
/// ```
/// use futures_util::{TryStreamExt, stream};
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
pub trait ObserveExt: Stream + Sized {
    /// The observed stream. The observers are made now, for a call of which nothing is known; nothing is spawned or locked.
    fn observed<T, E, A>(self, observers: impl Into<Observers>) -> Observed<Self, T, E, A>
    where
        Self: Stream<Item = Result<T, E>>,
        T: Observable<A>,
    {
        self.with_stack(observers.into().stack(&ObserverFactoryContext::default()))
    }

    /// The same with a stack that is built already, for example from an [`ObserverFactoryContext`] that tells the call's class.
    fn with_stack<T, E, A>(self, stack: Stack) -> Observed<Self, T, E, A>
    where
        Self: Stream<Item = Result<T, E>>,
        T: Observable<A>,
    {
        // A guard that could not be made has ended the invocation already: the source must not be asked.
        Observed {
            source: (!stack.is_ended()).then_some(self),
            engine: T::Engine::new(stack),
            error: None,
            is_over: false,
        }
    }
}

impl<S: Stream> ObserveExt for S {}

/// What can be observed: [`Chunk`] and every [`StreamItem`]. `A` is the state of that [`StreamItem`]; there is nothing to implement here.
#[diagnostic::on_unimplemented(
    message = "a stream of `{Self}` cannot be observed",
    note = "implement `StreamItem` for `{Self}`, or use the adapter crate of this client"
)]
pub trait Observable<A = ()>: Sized {
    #[doc(hidden)]
    type Engine: Engine<Item = Self>;
    /// What a stream without errors yields: see [`Observed::quiet`].
    type Quiet<E>;

    #[doc(hidden)]
    fn quiet_item<E>(self) -> Self::Quiet<E>;
    /// The end, with the item that stands for it and the source's own error; an error that the type has no place for is kept.
    #[doc(hidden)]
    fn quiet_end<E>(item: Option<Self>, error: Option<E>, kept: &mut Option<E>) -> Option<Self::Quiet<E>>;
}

impl Observable for Chunk {
    type Engine = Stack;
    type Quiet<E> = Chunk;

    fn quiet_item<E>(self) -> Chunk {
        self
    }

    fn quiet_end<E>(item: Option<Chunk>, error: Option<E>, kept: &mut Option<E>) -> Option<Chunk> {
        *kept = error;
        item
    }
}

impl<T: StreamItem<A>, A: Default> Observable<A> for T {
    type Engine = Items<T, A>;
    type Quiet<E> = Result<T, E>;

    fn quiet_item<E>(self) -> Result<T, E> {
        Ok(self)
    }

    fn quiet_end<E>(_: Option<T>, error: Option<E>, _: &mut Option<E>) -> Option<Result<T, E>> {
        error.map(Err)
    }
}

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
    /// An observed stream; see [`ObserveExt`].
    ///
    /// Dropping it ends the invocation as `Dropped`, unless something else was decided. The source is dropped first, then the observers
    /// are told.
    #[must_use = "streams do nothing unless polled"]
    pub struct Observed<S, T: Observable<A>, E, A = ()> {
        #[pin]
        source: Option<S>,
        engine: T::Engine,
        error: Option<E>,
        is_over: bool,
    }
}

impl<S, T: Observable<A>, E, A> Observed<S, T, E, A> {
    /// The same without errors of ours: a stream of chunks ends every outcome with an `end` chunk, the source's own error included; a
    /// stream of a client's items just ends, and yields nothing but the client's own errors.
    pub fn quiet(self) -> Quiet<S, T, E, A> {
        Quiet { observed: self, error: None }
    }

    /// Gives up: the source is dropped, held text is withheld, and the outcome is `Aborted` if nothing else was decided. What had passed
    /// all observers can still be polled, then the end.
    pub fn abort(self: Pin<&mut Self>, reason: Option<Text>) {
        let mut this = self.project();
        this.engine.stack_mut().abort(reason);
        this.source.set(None);
    }

    /// The stack inside.
    pub fn stack(&self) -> &Stack {
        self.engine.stack()
    }
}

impl<S: Stream<Item = Result<T, E>>, T: Observable<A>, E, A> Observed<S, T, E, A> {
    /// What comes next: an item, or the end with the source's own error, if that was it.
    #[inline]
    fn poll<R>(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        item: impl Fn(T) -> R,
        end: impl FnOnce(Arc<Outcome>, Option<T>, Option<E>) -> Option<R>,
    ) -> Poll<Option<R>> {
        let mut this = self.project();
        loop {
            if this.engine.waits() {
                match this.engine.next() {
                    Some(Next::Item(next)) => return Poll::Ready(Some(item(next))),
                    Some(Next::End(outcome, last)) => {
                        *this.is_over = true;
                        return Poll::Ready(end(outcome, last, this.error.take()));
                    }
                    None => {}
                }
            }
            let Some(source) = this.source.as_mut().as_pin_mut() else { return Poll::Ready(None) };
            // An item is looked at where it lies, so that one that passes is moved once.
            let mut polled = source.poll_next(cx);
            let passes = match &mut polled {
                Poll::Ready(Some(Ok(next))) => this.engine.passes(next),
                _ => false,
            };
            match ready!(polled) {
                Some(Ok(next)) if passes => return Poll::Ready(Some(item(next))),
                Some(Ok(next)) => this.engine.go_on(next),
                Some(Err(error)) => {
                    // The error is the terminal item, so it waits behind the text that its barrier releases.
                    *this.error = this.engine.fail(ErrorInfo::new(codes::SOURCE_ERROR)).then_some(error);
                }
                None => this.engine.finish(),
            }
            if this.engine.stack().is_ended() {
                this.source.set(None);
            }
        }
    }
}

impl<S: Stream<Item = Result<T, E>>, T: Observable<A>, E, A> Stream for Observed<S, T, E, A> {
    type Item = Result<T, ObservedError<E>>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll(cx, Ok, |outcome, item, error| match error {
            Some(error) => Some(Err(ObservedError::Source(error))),
            None if outcome.is_finished() => item.map(Ok),
            None => Some(Err(ObservedError::Ended(outcome))),
        })
    }
}

impl<S: Stream<Item = Result<T, E>>, T: Observable<A>, E, A> FusedStream for Observed<S, T, E, A> {
    fn is_terminated(&self) -> bool {
        self.is_over
    }
}

impl<S, T: Observable<A>, E, A> fmt::Debug for Observed<S, T, E, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observed").field("stack", self.stack()).finish_non_exhaustive()
    }
}

pin_project! {
    /// An observed stream without errors of ours; see [`Observed::quiet`].
    #[must_use = "streams do nothing unless polled"]
    pub struct Quiet<S, T: Observable<A>, E, A = ()> {
        #[pin]
        observed: Observed<S, T, E, A>,
        error: Option<E>,
    }
}

impl<S, T: Observable<A>, E, A> Quiet<S, T, E, A> {
    /// The source's own error, if that was the end of a stream of chunks.
    pub fn source_error(&self) -> Option<&E> {
        self.error.as_ref()
    }

    /// The outcome, once it is decided.
    pub fn outcome(&self) -> Option<&Arc<Outcome>> {
        self.observed.stack().outcome()
    }
}

impl<S: Stream<Item = Result<T, E>>, T: Observable<A>, E, A> Stream for Quiet<S, T, E, A> {
    type Item = T::Quiet<E>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.project();
        let kept = this.error;
        this.observed.poll(cx, T::quiet_item::<E>, |_, item, error| T::quiet_end(item, error, kept))
    }
}

impl<S: Stream<Item = Result<T, E>>, T: Observable<A>, E, A> FusedStream for Quiet<S, T, E, A> {
    fn is_terminated(&self) -> bool {
        self.observed.is_over
    }
}

impl<S, T: Observable<A>, E, A> fmt::Debug for Quiet<S, T, E, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Quiet").field("stack", self.observed.stack()).finish_non_exhaustive()
    }
}

impl Engine for Stack {
    type Item = Chunk;

    fn new(stack: Stack) -> Self {
        stack
    }

    #[inline]
    fn waits(&self) -> bool {
        Stack::waits(self)
    }

    #[inline]
    fn passes(&mut self, chunk: &mut Chunk) -> bool {
        Stack::passes(self, chunk)
    }

    fn go_on(&mut self, chunk: Chunk) {
        Stack::go_on(self, chunk);
    }

    #[inline]
    fn next(&mut self) -> Option<Next<Chunk>> {
        let chunk = self.pop()?;
        Some(match chunk.body() {
            Body::End(end) => Next::End(end.outcome().clone(), Some(chunk)),
            _ => Next::Item(chunk),
        })
    }

    fn finish(&mut self) {
        Stack::finish(self);
    }

    fn fail(&mut self, error: ErrorInfo) -> bool {
        Stack::fail(self, error)
    }

    fn stack(&self) -> &Stack {
        self
    }

    fn stack_mut(&mut self) -> &mut Stack {
        self
    }
}

pub(crate) mod engine {
    use super::{Arc, ErrorInfo, Outcome, Stack};

    /// A stack behind items of some type.
    pub trait Engine {
        type Item;

        fn new(stack: Stack) -> Self;
        /// Whether there is something for the consumer before the source is asked again.
        fn waits(&self) -> bool;
        /// Takes an item. If it does not pass as it is, it is given to `go_on` next.
        fn passes(&mut self, item: &mut Self::Item) -> bool;
        fn go_on(&mut self, item: Self::Item);
        fn next(&mut self) -> Option<Next<Self::Item>>;
        fn finish(&mut self);
        fn fail(&mut self, error: ErrorInfo) -> bool;
        fn stack(&self) -> &Stack;
        fn stack_mut(&mut self) -> &mut Stack;
    }

    /// What an engine has for the consumer.
    #[derive(Debug)]
    pub enum Next<T> {
        Item(T),
        /// The end, and the item that stands for it, if the type has one.
        End(Arc<Outcome>, Option<T>),
    }
}

use streamkeeper_contract::{Chunk, Verdict};

use crate::{Interest, InvocationResult, ObserverContext};

/// Looks at each chunk of one invocation and decides what happens to it.
///
/// One instance serves one invocation; its [`Registration`](crate::Registration) makes it. For each chunk the observers are called in
/// registration order, each with what the one before let through:
///
/// 1. If the observer holds text that the chunk may not overtake, [`on_barrier`](Self::on_barrier) settles it first.
/// 2. If [`interest`](Self::interest) has the chunk's kind, [`on_chunk`](Self::on_chunk) is asked; otherwise the chunk passes.
/// 3. The verdict is applied before the next observer is called and before the consumer gets anything.
///
/// When the invocation is over, [`on_end_invocation`](Self::on_end_invocation) is called once, however it ended.
///
/// A panic in any of these is caught. It disables the observer for this invocation and is reported once; what happens to the stream is
/// decided by the registration's [`OnFailure`](crate::OnFailure). With `panic = "abort"` nothing can be caught. The default panic hook
/// prints the panic's message: do not format text of the stream into it.
///
/// The methods are synchronous by type: a verdict that waits could not be replayed and would stall the consumer. Work that has to wait
/// goes through [`ObserverContext::emit`].
///
/// ```compile_fail
/// use streamkeeper_contract::{Chunk, Verdict};
/// use streamkeeper_stream::{ObserverContext, StreamObserver};
///
/// struct Slow;
///
/// impl StreamObserver for Slow {
///     async fn on_chunk(&mut self, _: &Chunk, _: &mut ObserverContext<'_>) -> Verdict {
///         Verdict::Continue
///     }
/// }
/// ```
///
/// ```
/// use streamkeeper_contract::{Chunk, Verdict};
/// use streamkeeper_stream::{ObserverContext, StreamObserver};
///
/// struct Quick;
///
/// impl StreamObserver for Quick {
///     fn on_chunk(&mut self, _: &Chunk, _: &mut ObserverContext<'_>) -> Verdict {
///         Verdict::Continue
///     }
/// }
/// ```
pub trait StreamObserver: Send {
    /// Which kinds it wants to see. Asked once, before the first chunk. Default: all.
    fn interest(&self) -> Interest {
        Interest::ALL
    }

    /// Called for each chunk of interest that the observers before this one let through.
    ///
    /// On a delta the verdict speaks about all of [`ctx.pending()`](ObserverContext::pending): what this observer holds of the lane,
    /// then the chunk's text. On anything else it speaks about the chunk.
    ///
    /// | verdict | what happens |
    /// |---|---|
    /// | `Continue` | everything pending passes |
    /// | `Amend(chunk)` | that chunk passes instead: same kind and lane, or one whole tool call in place of a text delta; only while nothing is held, never for an opaque chunk |
    /// | `Emit(events)` | the events go out, then everything pending passes |
    /// | `Stop` | the invocation ends; this chunk and all held text are withheld |
    /// | `Buffer` | everything pending stays held; deltas only |
    /// | `Release` | pending text is replaced or partly kept; deltas only |
    ///
    /// Anything else breaks the contract: the observer has failed with `FailureKind::Contract`. A full hold or an oversized release
    /// fails with `FailureKind::Overflow`, see [`Limits`](crate::Limits).
    fn on_chunk(&mut self, chunk: &Chunk, ctx: &mut ObserverContext<'_>) -> Verdict;

    /// Called when a lane that it holds has to be settled, because what comes next may not overtake the held text: the end of the part,
    /// a chunk of the lane that is no delta, for text the start of a tool call, the finish of the choice, an error, the end.
    ///
    /// [`ctx.pending()`](ObserverContext::pending) is the held text, [`ctx.lane()`](ObserverContext::lane) its lane. `Continue`, `Emit`
    /// and a `Release` that keeps nothing settle it; `Stop` ends the invocation. Every other verdict breaks the contract. So does the
    /// default, which stays undecided: a guard that forgot this method leaks nothing.
    fn on_barrier(&mut self, ctx: &mut ObserverContext<'_>) -> Verdict {
        let _ = ctx;
        Verdict::Buffer
    }

    /// Called once when the invocation is over, in registration order, unless the observer has failed before. Over means: the last item
    /// was taken by the consumer, or the stream was dropped, even before it was first polled.
    fn on_end_invocation(&mut self, result: &InvocationResult, ctx: &mut ObserverContext<'_>) {
        let _ = (result, ctx);
    }
}

/// Looks at each chunk and cannot change, hold or stop anything, by type.
///
/// Called like a [`StreamObserver`], in the same order. If it fails it is switched off and reported; the stream never notices.
///
/// ```compile_fail
/// use streamkeeper_contract::{Chunk, Verdict};
/// use streamkeeper_stream::{ObserverContext, StreamWatcher};
///
/// struct Sly;
///
/// impl StreamWatcher for Sly {
///     fn on_chunk(&mut self, _: &Chunk, _: &mut ObserverContext<'_>) -> Verdict {
///         Verdict::Buffer
///     }
/// }
/// ```
///
/// ```
/// use streamkeeper_contract::Chunk;
/// use streamkeeper_stream::{ObserverContext, StreamWatcher};
///
/// struct Count(u64);
///
/// impl StreamWatcher for Count {
///     fn on_chunk(&mut self, _: &Chunk, _: &mut ObserverContext<'_>) {
///         self.0 += 1;
///     }
/// }
/// ```
pub trait StreamWatcher: Send {
    /// Which kinds it wants to see. Asked once, before the first chunk. Default: all.
    fn interest(&self) -> Interest {
        Interest::ALL
    }

    /// Called for each chunk of interest that the observers before this one let through.
    fn on_chunk(&mut self, chunk: &Chunk, ctx: &mut ObserverContext<'_>);

    /// Called once when the invocation is over, unless the watcher has failed before.
    fn on_end_invocation(&mut self, result: &InvocationResult, ctx: &mut ObserverContext<'_>) {
        let _ = (result, ctx);
    }
}

impl<O: StreamObserver + ?Sized> StreamObserver for Box<O> {
    fn interest(&self) -> Interest {
        (**self).interest()
    }

    fn on_chunk(&mut self, chunk: &Chunk, ctx: &mut ObserverContext<'_>) -> Verdict {
        (**self).on_chunk(chunk, ctx)
    }

    fn on_barrier(&mut self, ctx: &mut ObserverContext<'_>) -> Verdict {
        (**self).on_barrier(ctx)
    }

    fn on_end_invocation(&mut self, result: &InvocationResult, ctx: &mut ObserverContext<'_>) {
        (**self).on_end_invocation(result, ctx);
    }
}

impl<W: StreamWatcher + ?Sized> StreamWatcher for Box<W> {
    fn interest(&self) -> Interest {
        (**self).interest()
    }

    fn on_chunk(&mut self, chunk: &Chunk, ctx: &mut ObserverContext<'_>) {
        (**self).on_chunk(chunk, ctx);
    }

    fn on_end_invocation(&mut self, result: &InvocationResult, ctx: &mut ObserverContext<'_>) {
        (**self).on_end_invocation(result, ctx);
    }
}

/// A watcher in the list of observers.
pub(crate) struct Watching<W>(pub(crate) W);

impl<W: StreamWatcher> StreamObserver for Watching<W> {
    fn interest(&self) -> Interest {
        self.0.interest()
    }

    fn on_chunk(&mut self, chunk: &Chunk, ctx: &mut ObserverContext<'_>) -> Verdict {
        self.0.on_chunk(chunk, ctx);
        Verdict::Continue
    }

    fn on_end_invocation(&mut self, result: &InvocationResult, ctx: &mut ObserverContext<'_>) {
        self.0.on_end_invocation(result, ctx);
    }
}

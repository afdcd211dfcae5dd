use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use streamkeeper_contract::{Chunk, ChunkKind, Hook, Id, Lane, Verdict};

use crate::{
    Interest, InvocationResult, ObserverContext, ObserverFactoryContext, Registration, StreamObserver, StreamWatcher,
    from_fn,
};

/// An observer that expects to be asked certain things in a certain order, gives the verdicts it was told to, and says afterwards what
/// went otherwise.
///
/// Expectations are met one by one, in order. What comes unexpectedly is noted and passes. [`verify`](Self::verify) panics unless all
/// was as expected: never inside the stream, where a panic would count as a failure of the observer.
///
/// Clones share what they note. It is for one invocation: a second one finds its expectations used up.
///
/// ```
/// use streamkeeper_contract::{ChunkKind, Release, Verdict, id};
/// use streamkeeper_stream::{Observers, testing::{Mock, Script}};
///
/// let mock = Mock::new()
///     .expect_text("Hel", Verdict::Buffer)
///     .expect_text("Hello", Release::text("Bye").into())
///     .expect(ChunkKind::Finish, Verdict::Continue)
///     .expect_end();
/// let observers = Observers::from(mock.guard(id!("mock")));
/// let ran = Script::new().text("Hel").text("lo").finish().run(&observers);
/// assert_eq!(ran.answer(), "Bye");
/// mock.verify();
/// ```
#[derive(Clone)]
pub struct Mock {
    interest: Interest,
    is_lenient: bool,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    expected: Vec<Expected>,
    calls: Vec<Call>,
    met: usize,
    unmet: Vec<String>,
}

struct Expected {
    hook: Hook,
    kind: Option<ChunkKind>,
    pending: Option<String>,
    verdict: Verdict,
}

/// One call of a [`Mock`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Call {
    /// Which method.
    pub hook: Hook,
    /// For which entering chunk, from 0.
    pub chunk_index: u64,
    /// The kind of the chunk, for `on_chunk`.
    pub kind: Option<ChunkKind>,
    /// The lane of the chunk, or the lane to settle.
    pub lane: Option<Lane>,
    /// What a verdict would speak about.
    pub pending: String,
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.hook.as_str())?;
        if let Some(kind) = self.kind {
            write!(f, " {kind}")?;
        }
        if !self.pending.is_empty() {
            write!(f, " with {:?} pending", self.pending)?;
        }
        write!(f, " at chunk {}", self.chunk_index)
    }
}

/// A [`Mock`] was not asked what it expected. One line for each difference, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmet(Vec<String>);

impl fmt::Display for Unmet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

impl std::error::Error for Unmet {}

impl Default for Mock {
    fn default() -> Self {
        Self::new()
    }
}

impl Mock {
    /// It expects nothing, and is interested in everything.
    pub fn new() -> Self {
        Self { interest: Interest::ALL, is_lenient: false, state: Arc::default() }
    }

    /// The kinds of chunks it is asked about.
    #[must_use]
    pub fn interest(mut self, interest: Interest) -> Self {
        self.interest = interest;
        self
    }

    /// Whatever comes between what it expects is no fault. Useful with [`calls`](Self::calls).
    #[must_use]
    pub fn lenient(mut self) -> Self {
        self.is_lenient = true;
        self
    }

    /// Next it is asked about a chunk of this kind, and answers so.
    #[must_use]
    pub fn expect(self, kind: ChunkKind, verdict: Verdict) -> Self {
        self.add(Hook::OnChunk, Some(kind), None, verdict)
    }

    /// Next it is asked about a chunk with this text pending: what it holds of the lane, then the chunk's own.
    #[must_use]
    pub fn expect_text(self, pending: impl Into<String>, verdict: Verdict) -> Self {
        self.add(Hook::OnChunk, None, Some(pending.into()), verdict)
    }

    /// Next it has to settle this held text.
    #[must_use]
    pub fn expect_barrier(self, pending: impl Into<String>, verdict: Verdict) -> Self {
        self.add(Hook::OnBarrier, None, Some(pending.into()), verdict)
    }

    /// Next it is told of the end.
    #[must_use]
    pub fn expect_end(self) -> Self {
        self.add(Hook::OnEndInvocation, None, None, Verdict::Continue)
    }

    fn add(self, hook: Hook, kind: Option<ChunkKind>, pending: Option<String>, verdict: Verdict) -> Self {
        self.state().expected.push(Expected { hook, kind, pending, verdict });
        self
    }

    /// A registration of it as a guard.
    pub fn guard(&self, id: Id) -> Registration {
        let mock = self.clone();
        Registration::guard(id, from_fn(move |_: &ObserverFactoryContext| mock.clone()))
    }

    /// A registration of it as a transform.
    pub fn transform(&self, id: Id) -> Registration {
        let mock = self.clone();
        Registration::transform(id, from_fn(move |_: &ObserverFactoryContext| mock.clone()))
    }

    /// A registration of it as a watcher: its verdicts are of no use.
    pub fn watcher(&self, id: Id) -> Registration {
        let mock = self.clone();
        Registration::watcher(id, from_fn(move |_: &ObserverFactoryContext| mock.clone()))
    }

    /// What it was asked so far, in order.
    pub fn calls(&self) -> Vec<Call> {
        self.state().calls.clone()
    }

    /// Whether it was asked what it expected.
    ///
    /// # Errors
    /// If something was missing, came in another order, or came unexpectedly.
    pub fn met(&self) -> Result<(), Unmet> {
        let state = self.state();
        let mut unmet = state.unmet.clone();
        unmet.extend(state.expected[state.met..].iter().map(|expected| format!("never came: {expected}")));
        if unmet.is_empty() { Ok(()) } else { Err(Unmet(unmet)) }
    }

    /// Panics unless it was asked what it expected.
    ///
    /// # Panics
    /// With what was [`Unmet`].
    #[track_caller]
    pub fn verify(&self) {
        self.met().unwrap_or_else(|unmet| panic!("the mock was not asked what it expected\n{unmet}"));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn asked(&self, hook: Hook, kind: Option<ChunkKind>, ctx: &ObserverContext<'_>) -> Verdict {
        let (chunk_index, lane, pending) = (ctx.chunk_index(), ctx.lane(), ctx.pending().to_owned());
        let call = Call { hook, chunk_index, kind, lane, pending };
        let mut state = self.state();
        let verdict = match state.expected.get(state.met) {
            Some(expected) if expected.is(&call) => {
                let verdict = expected.verdict.clone();
                state.met += 1;
                verdict
            }
            // An end that nobody mentions is no surprise.
            _ if self.is_lenient || hook == Hook::OnEndInvocation => Verdict::Continue,
            expected => {
                let expected = expected.map_or_else(|| "nothing more".to_owned(), ToString::to_string);
                let line = format!("call {}: expected {expected}, got {call}", state.calls.len());
                state.unmet.push(line);
                Verdict::Continue
            }
        };
        state.calls.push(call);
        verdict
    }
}

impl fmt::Debug for Mock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("Mock")
            .field("expected", &state.expected.len())
            .field("met", &state.met)
            .field("calls", &state.calls.len())
            .finish_non_exhaustive()
    }
}

impl Expected {
    fn is(&self, call: &Call) -> bool {
        self.hook == call.hook
            && self.kind.is_none_or(|kind| Some(kind) == call.kind)
            && self.pending.as_ref().is_none_or(|pending| *pending == call.pending)
    }
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.hook.as_str())?;
        if let Some(kind) = self.kind {
            write!(f, " {kind}")?;
        }
        self.pending.as_ref().map_or(Ok(()), |pending| write!(f, " with {pending:?} pending"))
    }
}

#[diagnostic::do_not_recommend]
impl StreamObserver for Mock {
    fn interest(&self) -> Interest {
        self.interest
    }

    fn on_chunk(&mut self, chunk: &Chunk, ctx: &mut ObserverContext<'_>) -> Verdict {
        self.asked(Hook::OnChunk, Some(chunk.kind()), ctx)
    }

    fn on_barrier(&mut self, ctx: &mut ObserverContext<'_>) -> Verdict {
        self.asked(Hook::OnBarrier, None, ctx)
    }

    fn on_end_invocation(&mut self, _: &InvocationResult, ctx: &mut ObserverContext<'_>) {
        let _ = self.asked(Hook::OnEndInvocation, None, ctx);
    }
}

#[diagnostic::do_not_recommend]
impl StreamWatcher for Mock {
    fn interest(&self) -> Interest {
        self.interest
    }

    fn on_chunk(&mut self, chunk: &Chunk, ctx: &mut ObserverContext<'_>) {
        let _ = self.asked(Hook::OnChunk, Some(chunk.kind()), ctx);
    }

    fn on_end_invocation(&mut self, _: &InvocationResult, ctx: &mut ObserverContext<'_>) {
        let _ = self.asked(Hook::OnEndInvocation, None, ctx);
    }
}

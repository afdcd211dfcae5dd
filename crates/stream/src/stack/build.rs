use std::{
    collections::VecDeque,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use streamkeeper_contract::{EndToken, FailureSink, Hook, Id};

use super::{
    Outlet, Stack,
    account::Account,
    hold::{Slot, State, Who},
    lanes::Lanes,
    outlet::Fault,
};
use crate::{
    EventSink, Header, Interest, Limits, ObserverFactoryContext, Observers, RecordedObserver, Recorder, Registration,
    Role, TracingSink,
    context::{Call, Position},
};

/// What one stack is made from, where it differs from its list of observers.
///
/// ```
/// use std::sync::Arc;
/// use streamkeeper_stream::{EventQueue, ObserverFactoryContext, Observers};
///
/// let observers = Observers::new();
/// let ctx = ObserverFactoryContext::default();
/// let queue = Arc::new(EventQueue::bounded(256));
/// let stack = observers.builder(&ctx).events(queue.clone()).build();
/// assert!(!stack.is_ended());
/// ```
#[must_use]
pub struct StackBuilder<'a> {
    observers: &'a Observers,
    ctx: &'a ObserverFactoryContext,
    events: Option<Arc<dyn EventSink>>,
    failures: Option<Arc<dyn FailureSink>>,
    limits: Limits,
    recorder: Option<Recorder>,
}

impl<'a> StackBuilder<'a> {
    pub(crate) fn new(observers: &'a Observers, ctx: &'a ObserverFactoryContext) -> Self {
        Self {
            observers,
            ctx,
            events: observers.events.clone(),
            failures: observers.failures.clone(),
            limits: observers.limits,
            recorder: None,
        }
    }

    /// Where side events go.
    pub fn events(mut self, sink: Arc<dyn EventSink>) -> Self {
        self.events = Some(sink);
        self
    }

    /// Where failures go, those of factories included.
    pub fn failures(mut self, sink: Arc<dyn FailureSink>) -> Self {
        self.failures = Some(sink);
        self
    }

    /// The limits.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Records the invocation.
    pub fn recorder(mut self, recorder: Recorder) -> Self {
        self.recorder = Some(recorder);
        self
    }

    /// No event leaves the stack, and failures go to this sink.
    pub(crate) fn sealed(mut self, failures: Arc<dyn FailureSink>) -> Self {
        self.events = None;
        self.failures = Some(failures);
        self
    }

    /// Calls the factories and makes the stack.
    pub fn build(self) -> Stack {
        let Self { observers, ctx, events, failures, limits, recorder } = self;
        let ctx = &*observers.context(ctx);
        let matching = || observers.matching(&ctx.call_class);
        let ids: Arc<[Id]> = matching().map(|registration| registration.id.clone()).collect();
        let call = Call { class: ctx.call_class.clone(), ordinal: ctx.ordinal, observers: ids.clone() };
        let mut outlet = Outlet {
            observers: ids,
            events,
            failures: failures.unwrap_or_else(|| Arc::new(TracingSink::new())),
            recorder,
            chunk_index: 0,
        };
        outlet.header(|recorder| Header::new(recorder.view(), ctx, recorded_observers(observers, ctx)));
        let mut stack = Stack {
            slots: Vec::with_capacity(call.observers.len()),
            lanes: Lanes::new(limits.lanes, call.observers.len(), limits.edit_bytes),
            call,
            limits,
            out: VecDeque::with_capacity(4),
            met: None,
            todo: Vec::new(),
            position: Position::default(),
            account: Account::default(),
            held: 0,
            pieces_left: 0,
            derived: 0,
            token: Some(EndToken::open()),
            outcome: None,
            is_closed: false,
            is_text_only: false,
            is_tracking: matching().any(|registration| registration.role != Role::Watcher),
            #[cfg(feature = "wire")]
            told_no_place: false,
            outlet,
        };
        for registration in matching() {
            stack.add(registration, ctx);
        }
        stack
    }
}

/// The observers that a stack of this call has, for its recording.
pub(crate) fn recorded_observers(observers: &Observers, ctx: &ObserverFactoryContext) -> Vec<RecordedObserver> {
    let recorded = |registration: &Registration| RecordedObserver {
        id: registration.id.clone(),
        version: registration.version.clone(),
        role: registration.role.as_str().into(),
    };
    observers.matching(&ctx.call_class).map(recorded).collect()
}

impl Stack {
    fn add(&mut self, registration: &Registration, ctx: &ObserverFactoryContext) {
        let who =
            Who { id: registration.id.clone(), role: registration.role, on_failure: registration.on_failure.clone() };
        let mut slot = Slot { interest: Interest::ALL, state: State::Off, holds: Vec::new(), who: Box::new(who) };
        let made = catch_unwind(AssertUnwindSafe(|| (registration.factory)(ctx)))
            .map_err(|payload| (Hook::Factory, Fault::Panic(payload)))
            .and_then(|observer| {
                let interest = catch_unwind(AssertUnwindSafe(|| observer.interest()))
                    .map_err(|payload| (Hook::Interest, Fault::Panic(payload)))?;
                Ok((observer, interest))
            });
        let i = self.slots.len();
        match made {
            Ok((observer, interest)) => {
                slot.state = State::Active(observer);
                slot.interest = interest;
                self.slots.push(slot);
            }
            Err((hook, fault)) => {
                self.slots.push(slot);
                self.disable(i, hook, fault);
            }
        }
    }
}

impl fmt::Debug for StackBuilder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StackBuilder").field("observers", self.observers).field("ctx", self.ctx).finish_non_exhaustive()
    }
}

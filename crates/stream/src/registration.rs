use std::{borrow::Cow, fmt, sync::Arc};

use streamkeeper_contract::{CallClass, FailureSink, Id, Text};

use crate::{EventSink, Factory, IntoFactory, IntoWatcherFactory, Limits, ObserverFactoryContext, Stack, StackBuilder};

/// What an observer is there for. Decides what its failure means unless the registration says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Role {
    /// Protects: fails closed.
    Guard,
    /// Normalises: its failure lets text through.
    Transform,
    /// Only looks.
    Watcher,
}

impl Role {
    /// The name: `guard`, `transform`, `watcher`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Guard => "guard",
            Self::Transform => "transform",
            Self::Watcher => "watcher",
        }
    }
}

/// What happens to the stream after an observer has failed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnFailure {
    /// The invocation ends as `Failed` with code `guard_failed` and the observer. Nothing that it held goes out.
    Fail,
    /// From here on each lane that it would have seen gets this text once, and the rest of that lane is withheld. What cannot be
    /// replaced by a text, for example a tool call or a raw event, is withheld.
    Placeholder(Text),
    /// The stream goes on as if the observer were not there; what it held goes out.
    PassThrough,
}

/// Which invocations an observer is made for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum When {
    /// All.
    #[default]
    Any,
    /// Those of one class.
    Class(CallClass),
}

impl When {
    fn matches(&self, class: &CallClass) -> bool {
        match self {
            Self::Any => true,
            Self::Class(wanted) => wanted == class,
        }
    }
}

/// An observer to be made: its id, its factory, for which calls, and what its failure means.
///
/// The id is here and not on the observer, since a duplicate has to be refused before any observer exists.
///
/// ```
/// use streamkeeper_contract::{CallClass, Chunk, Verdict, id};
/// use streamkeeper_stream::{ObserverContext, OnFailure, Registration, StreamObserver};
///
/// #[derive(Clone)]
/// struct Polite;
///
/// impl StreamObserver for Polite {
///     fn on_chunk(&mut self, _: &Chunk, _: &mut ObserverContext<'_>) -> Verdict {
///         Verdict::Continue
///     }
/// }
///
/// let registration = Registration::guard(id!("polite"), Polite)
///     .when(CallClass::Synthesize)
///     .on_failure(OnFailure::Placeholder("[withheld]".into()));
/// assert_eq!(registration.id().as_str(), "polite");
/// ```
#[derive(Clone)]
pub struct Registration {
    pub(crate) id: Id,
    pub(crate) version: Option<Text>,
    pub(crate) role: Role,
    pub(crate) when: When,
    pub(crate) on_failure: OnFailure,
    pub(crate) factory: Factory,
}

impl Registration {
    /// An observer that protects. If it fails, the invocation fails.
    pub fn guard(id: Id, factory: impl IntoFactory) -> Self {
        Self::new(id, Role::Guard, OnFailure::Fail, factory.into_factory())
    }

    /// An observer that normalises. If it fails, the stream goes on without it.
    pub fn transform(id: Id, factory: impl IntoFactory) -> Self {
        Self::new(id, Role::Transform, OnFailure::PassThrough, factory.into_factory())
    }

    /// An observer that only looks. If it fails, the stream goes on without it.
    pub fn watcher(id: Id, factory: impl IntoWatcherFactory) -> Self {
        Self::new(id, Role::Watcher, OnFailure::PassThrough, factory.into_watcher_factory())
    }

    fn new(id: Id, role: Role, on_failure: OnFailure, factory: Factory) -> Self {
        Self { id, version: None, role, when: When::Any, on_failure, factory }
    }

    /// Only for calls of this class. Default: all calls.
    #[must_use]
    pub fn when(mut self, class: CallClass) -> Self {
        self.when = When::Class(class);
        self
    }

    /// Another consequence of failure. Has no effect on a watcher, which cannot hurt the stream.
    #[must_use]
    pub fn on_failure(mut self, on_failure: OnFailure) -> Self {
        if self.role != Role::Watcher {
            self.on_failure = on_failure;
        }
        self
    }

    /// The version of the observer or of the plugin it comes from, for recordings.
    #[must_use]
    pub fn version(mut self, version: impl Into<Text>) -> Self {
        self.version = Some(version.into());
        self
    }

    /// The same observer under another id.
    #[must_use]
    pub fn with_id(mut self, id: Id) -> Self {
        self.id = id;
        self
    }

    /// The id.
    pub fn id(&self) -> &Id {
        &self.id
    }

    /// Which invocations it is made for.
    pub fn condition(&self) -> &When {
        &self.when
    }

    /// What its failure means.
    pub fn failure_policy(&self) -> &OnFailure {
        &self.on_failure
    }

    /// The version, if one is stated.
    pub fn stated_version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    /// What it is there for.
    pub fn role(&self) -> Role {
        self.role
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration")
            .field("id", &self.id)
            .field("role", &self.role)
            .field("when", &self.when)
            .field("on_failure", &self.on_failure)
            .finish_non_exhaustive()
    }
}

/// A registration was refused; the list is as before.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// The id is taken.
    #[error("an observer `{0}` is registered already")]
    DuplicateId(Id),
}

/// An ordered list of registrations, from which each invocation gets a [`Stack`] of its own. Order decides: each observer sees what the
/// ones before it let through.
///
/// ```
/// use streamkeeper_contract::{Chunk, id};
/// use streamkeeper_stream::{ObserverContext, Observers, RegisterError, Registration, StreamWatcher};
///
/// #[derive(Clone)]
/// struct Idle;
///
/// impl StreamWatcher for Idle {
///     fn on_chunk(&mut self, _: &Chunk, _: &mut ObserverContext<'_>) {}
/// }
///
/// let mut observers = Observers::new();
/// observers.register(Registration::watcher(id!("idle"), Idle))?;
/// let refused = observers.register(Registration::watcher(id!("idle"), Idle));
/// assert_eq!(refused.unwrap_err(), RegisterError::DuplicateId(id!("idle")));
/// assert_eq!(observers.ids().count(), 1);
/// # Ok::<_, RegisterError>(())
/// ```
#[derive(Clone, Default)]
pub struct Observers {
    pub(crate) list: Vec<Registration>,
    pub(crate) events: Option<Arc<dyn EventSink>>,
    pub(crate) failures: Option<Arc<dyn FailureSink>>,
    pub(crate) limits: Limits,
    pub(crate) policy: Option<(Option<Id>, Text)>,
}

impl Observers {
    /// An empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a registration at the end.
    ///
    /// # Errors
    /// If its id is taken.
    pub fn register(&mut self, registration: impl Into<Registration>) -> Result<&mut Self, RegisterError> {
        self.extend([registration.into()])
    }

    /// Adds several at the end, or none of them.
    ///
    /// # Errors
    /// If an id is taken, or is there twice.
    pub fn extend(
        &mut self,
        registrations: impl IntoIterator<Item = Registration>,
    ) -> Result<&mut Self, RegisterError> {
        let before = self.list.len();
        for registration in registrations {
            if self.list.iter().any(|known| known.id == registration.id) {
                self.list.truncate(before);
                return Err(RegisterError::DuplicateId(registration.id));
            }
            self.list.push(registration);
        }
        Ok(self)
    }

    /// Where side events of all stacks go. Default: nowhere.
    #[must_use]
    pub fn events(mut self, sink: Arc<dyn EventSink>) -> Self {
        self.events = Some(sink);
        self
    }

    /// Where failures of all stacks go. Default: a [`TracingSink`](crate::TracingSink) for each stack.
    #[must_use]
    pub fn failures(mut self, sink: Arc<dyn FailureSink>) -> Self {
        self.failures = Some(sink);
        self
    }

    /// The limits of all stacks.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// The policy that the list was made from: its id, if it has one, and its hash. Factories are told, and recordings say so, unless the
    /// [`ObserverFactoryContext`] names another.
    #[must_use]
    pub fn policy(mut self, id: Option<Id>, hash: impl Into<Text>) -> Self {
        self.policy = Some((id, hash.into()));
        self
    }

    /// The ids, in order.
    pub fn ids(&self) -> impl Iterator<Item = &Id> {
        self.list.iter().map(|registration| &registration.id)
    }

    /// The registrations, in order: to put another list together.
    pub fn iter(&self) -> impl Iterator<Item = &Registration> {
        self.list.iter()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Makes the observers of one invocation: calls the factory of each registration that matches the call class, once, in order.
    ///
    /// A factory that panics has failed, and its `on_failure` decides; a guard's ends the invocation here, before anything is read.
    pub fn stack(&self, ctx: &ObserverFactoryContext) -> Stack {
        self.builder(ctx).build()
    }

    /// Like [`stack`](Self::stack), with sinks, limits or a recorder for this invocation alone.
    pub fn builder<'a>(&'a self, ctx: &'a ObserverFactoryContext) -> StackBuilder<'a> {
        StackBuilder::new(self, ctx)
    }

    /// What the factories and the recording are told: the context, and the policy if it names none.
    pub(crate) fn context<'a>(&self, ctx: &'a ObserverFactoryContext) -> Cow<'a, ObserverFactoryContext> {
        match &self.policy {
            Some((id, hash)) if ctx.policy_hash.is_none() => {
                let mut ctx = ctx.clone();
                (ctx.policy_id, ctx.policy_hash) = (id.clone(), Some(hash.clone()));
                Cow::Owned(ctx)
            }
            _ => Cow::Borrowed(ctx),
        }
    }

    pub(crate) fn matching<'a>(&'a self, class: &'a CallClass) -> impl Iterator<Item = &'a Registration> {
        self.list.iter().filter(move |registration| registration.when.matches(class))
    }
}

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.list).finish()
    }
}

impl From<Registration> for Observers {
    fn from(registration: Registration) -> Self {
        Self { list: vec![registration], ..Self::default() }
    }
}

impl From<&Observers> for Observers {
    fn from(observers: &Observers) -> Self {
        observers.clone()
    }
}

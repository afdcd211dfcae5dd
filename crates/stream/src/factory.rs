use std::{
    any::{Any, TypeId},
    fmt,
    sync::Arc,
};

use streamkeeper_contract::{CallClass, Id, Text};

use crate::{StreamObserver, StreamWatcher, observer::Watching};

/// What a factory may know about the invocation it builds for.
///
/// ```
/// use streamkeeper_contract::CallClass;
/// use streamkeeper_stream::ObserverFactoryContext;
///
/// let mut ctx = ObserverFactoryContext::new(CallClass::Converse);
/// ctx.model = Some("some-model".into());
/// ctx.extensions.insert(42_u32);
/// assert_eq!(ctx.extensions.get::<u32>(), Some(&42));
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ObserverFactoryContext {
    /// What the model call is for.
    pub call_class: CallClass,
    /// Which invocation of its run it is, from 0.
    pub ordinal: u64,
    /// The provider.
    pub provider: Option<Text>,
    /// The model.
    pub model: Option<Text>,
    /// The system prompts, which a prompt-leak guard compares with.
    pub system_prompt: Option<Arc<str>>,
    /// The tools the model may call.
    pub tool_names: Arc<[Text]>,
    /// The policy that the observers come from.
    pub policy_id: Option<Id>,
    /// A hash of that policy's text, for recordings.
    pub policy_hash: Option<Text>,
    /// Values of the user's own, one of each type.
    pub extensions: Extensions,
}

impl ObserverFactoryContext {
    /// An invocation of this class of which nothing else is known.
    pub fn new(call_class: CallClass) -> Self {
        Self { call_class, ..Self::default() }
    }
}

/// Values of any types, one of each type. Cheap to clone: values are shared.
#[derive(Clone, Default)]
pub struct Extensions(Vec<(TypeId, Arc<dyn Any + Send + Sync>)>);

impl Extensions {
    /// Adds a value; replaces an earlier one of the same type.
    pub fn insert<T: Any + Send + Sync>(&mut self, value: T) {
        let id = TypeId::of::<T>();
        self.0.retain(|(known, _)| *known != id);
        self.0.push((id, Arc::new(value)));
    }

    /// The value of this type.
    pub fn get<T: Any + Send + Sync>(&self) -> Option<&T> {
        let id = TypeId::of::<T>();
        self.0.iter().find(|(known, _)| *known == id).and_then(|(_, value)| value.downcast_ref())
    }
}

impl fmt::Debug for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Extensions({})", self.0.len())
    }
}

/// Makes one observer per invocation.
pub type Factory = Arc<dyn Fn(&ObserverFactoryContext) -> Box<dyn StreamObserver> + Send + Sync>;

/// What can make observers: a `Clone` value, or a closure in [`from_fn`].
pub trait IntoFactory {
    /// The factory.
    fn into_factory(self) -> Factory;
}

/// [`IntoFactory`] for watchers. A trait of its own, so that one type may be both and the registration says which is meant.
pub trait IntoWatcherFactory {
    /// The factory.
    fn into_watcher_factory(self) -> Factory;
}

/// A closure that makes observers; see [`from_fn`].
#[derive(Clone, Copy)]
pub struct FromFn<F>(F);

/// Makes each observer with a closure, for those that need the [`ObserverFactoryContext`] or are not `Clone`.
///
/// The closure is shared by all invocations and cannot change what it captures, so they share nothing by accident. State that is put
/// behind an `Arc` and a lock in there is shared, and then what one invocation does depends on the others.
///
/// ```
/// use streamkeeper_contract::{Chunk, Text, id};
/// use streamkeeper_stream::{ObserverContext, Registration, StreamWatcher, from_fn};
///
/// struct Named(Option<Text>);
///
/// impl StreamWatcher for Named {
///     fn on_chunk(&mut self, _: &Chunk, _: &mut ObserverContext<'_>) {}
/// }
///
/// Registration::watcher(id!("named"), from_fn(|ctx| Named(ctx.model.clone())));
/// ```
pub fn from_fn<F, O>(make: F) -> FromFn<F>
where
    F: Fn(&ObserverFactoryContext) -> O + Send + Sync + 'static,
{
    FromFn(make)
}

impl<F> fmt::Debug for FromFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FromFn")
    }
}

impl<O: StreamObserver + Clone + Sync + 'static> IntoFactory for O {
    fn into_factory(self) -> Factory {
        Arc::new(move |_| Box::new(self.clone()))
    }
}

impl<F, O> IntoFactory for FromFn<F>
where
    F: Fn(&ObserverFactoryContext) -> O + Send + Sync + 'static,
    O: StreamObserver + 'static,
{
    fn into_factory(self) -> Factory {
        Arc::new(move |ctx| Box::new(self.0(ctx)))
    }
}

impl<W: StreamWatcher + Clone + Sync + 'static> IntoWatcherFactory for W {
    fn into_watcher_factory(self) -> Factory {
        Arc::new(move |_| Box::new(Watching(self.clone())))
    }
}

impl<F, W> IntoWatcherFactory for FromFn<F>
where
    F: Fn(&ObserverFactoryContext) -> W + Send + Sync + 'static,
    W: StreamWatcher + 'static,
{
    fn into_watcher_factory(self) -> Factory {
        Arc::new(move |ctx| Box::new(Watching(self.0(ctx))))
    }
}

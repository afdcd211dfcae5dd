use streamkeeper_contract::{Id, Text};
use streamkeeper_stream::{Observers, RegisterError, Registration};

/// A named, versioned set of observers that is installed as one.
///
/// Its version becomes the version of its observers, where they state none themselves, and so part of recordings.
///
/// Every method but the name and the version has a default, so a plugin says only what it contributes. Methods for further layers are
/// added with defaults too.
///
/// A plugin has no state of its own during a call: each call makes its observers anew from the registrations. Do not count in the plugin
/// and expect the count of one call:
///
/// ```
/// use streamkeeper::prelude::*;
///
/// /// Right: the count is part of the observer, and each call gets a copy that starts at 0.
/// #[derive(Clone, Default)]
/// struct CountChunks(u64);
///
/// impl StreamWatcher for CountChunks {
///     fn on_chunk(&mut self, _: &Chunk, _: &mut ObserverContext<'_>) {
///         self.0 += 1;
///     }
/// }
///
/// struct Counting;
///
/// impl Plugin for Counting {
///     fn name(&self) -> Id {
///         id!("counting")
///     }
///     fn version(&self) -> Text {
///         "1.0.0".into()
///     }
///     fn stream_observers(&self) -> Vec<Registration> {
///         vec![Registration::watcher(id!("count-chunks"), CountChunks::default())]
///     }
/// }
///
/// # fn main() -> Result<(), streamkeeper::PluginError> {
/// let mut plugins = Plugins::new();
/// plugins.add(&Counting)?;
/// let observers = plugins.observers();
/// assert_eq!(observers.ids().map(|id| id.as_str()).collect::<Vec<_>>(), ["count-chunks"]);
/// # Ok(())
/// # }
/// ```
///
/// Wrong is a counter beside the observers, in an `Arc<AtomicU64>` that the factory captures: all calls at the same time add to one number.
pub trait Plugin {
    /// Its name. Two plugins of one name are refused.
    fn name(&self) -> Id;

    /// Its version, for people and recordings: `1.0.0`.
    fn version(&self) -> Text;

    /// The stream observers it contributes, in order. Called once, when the plugin is added. Default: none.
    fn stream_observers(&self) -> Vec<Registration> {
        Vec::new()
    }
}

/// Plugins in the order in which they were added. Their observers run in that order, those of one plugin in the order of its list.
///
/// See [`Plugin`] for an example.
#[derive(Debug, Clone, Default)]
pub struct Plugins {
    added: Vec<(Id, Text)>,
    observers: Observers,
}

/// A plugin was refused; everything is as before.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PluginError {
    /// A plugin of this name was added before.
    #[error("a plugin `{0}` is added already")]
    Duplicate(Id),
    /// One of its observers was refused.
    #[error("the plugin `{plugin}` cannot be added: {error}")]
    Observer {
        /// The plugin.
        plugin: Id,
        /// Why.
        #[source]
        error: RegisterError,
    },
}

impl Plugins {
    /// No plugins.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a plugin at the end.
    ///
    /// # Errors
    /// If its name or the id of one of its observers is taken. Then nothing of it is added.
    pub fn add(&mut self, plugin: &dyn Plugin) -> Result<&mut Self, PluginError> {
        let name = plugin.name();
        if self.added.iter().any(|(known, _)| *known == name) {
            return Err(PluginError::Duplicate(name));
        }
        let version = plugin.version();
        let registrations = plugin.stream_observers().into_iter().map(|registration| {
            // The observer's own version, if it states one, says more than the plugin's.
            if registration.stated_version().is_some() { registration } else { registration.version(version.clone()) }
        });
        if let Err(error) = self.observers.extend(registrations) {
            return Err(PluginError::Observer { plugin: name, error });
        }
        self.added.push((name, version));
        Ok(self)
    }

    /// Name and version of each, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&Id, &Text)> {
        self.added.iter().map(|(name, version)| (name, version))
    }

    /// The stream observers of all of them, in order.
    pub fn observers(&self) -> Observers {
        self.observers.clone()
    }
}

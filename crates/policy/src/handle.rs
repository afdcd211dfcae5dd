use std::{
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
};

use streamkeeper_stream::Observers;

use crate::{Policy, PolicyError, PolicyRegistry};

/// The policy of a file, to be read again between invocations.
///
/// [`reload`](Self::reload) replaces the policy as a whole or not at all: a file with a mistake leaves the one in force. An invocation
/// that runs keeps the observers that it was made with. Nothing is watched: call it on a signal, a timer, or a request. Threads may share
/// a handle; a lock is held to copy or swap a pointer, never while the file is read.
///
/// ```
/// use streamkeeper_policy::PolicyHandle;
///
/// # let path = std::env::temp_dir().join(format!("policy-{}.toml", std::process::id()));
/// std::fs::write(&path, "version = 1\n[[observers]]\nkind = 'metrics'\n")?;
/// let handle = PolicyHandle::load(&path)?;
/// let before = handle.policy();
///
/// std::fs::write(&path, "version = 1\n[[observers]]\nkind = 'metric'\n")?;
/// let error = handle.reload().unwrap_err();
/// assert!(error.to_string().ends_with(":3:8: there is no kind of observer `metric`; did you mean `metrics`?"));
/// assert_eq!(handle.policy().hash(), before.hash(), "the old one holds");
///
/// std::fs::write(&path, "version = 1\n[[observers]]\nkind = 'halt-on-pattern'\n")?;
/// handle.reload()?;
/// assert_ne!(handle.policy().hash(), before.hash());
/// # std::fs::remove_file(path)?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct PolicyHandle {
    path: PathBuf,
    registry: PolicyRegistry,
    current: RwLock<Arc<Policy>>,
}

impl PolicyHandle {
    /// Reads a file, with the bundled kinds of observers.
    ///
    /// # Errors
    /// If it cannot be read, or is no policy.
    pub fn load(path: impl Into<PathBuf>) -> Result<Self, PolicyError> {
        Self::load_with(path, PolicyRegistry::bundled())
    }

    /// Reads a file, with these kinds of observers.
    ///
    /// # Errors
    /// If it cannot be read, or is no policy.
    pub fn load_with(path: impl Into<PathBuf>, registry: PolicyRegistry) -> Result<Self, PolicyError> {
        let path = path.into();
        let current = RwLock::new(Arc::new(registry.load(&path)?));
        Ok(Self { path, registry, current })
    }

    /// Reads the file again. Returns the policy that is in force from here on.
    ///
    /// # Errors
    /// If the file cannot be read, or is no policy. Then the one before stays in force.
    pub fn reload(&self) -> Result<Arc<Policy>, PolicyError> {
        let policy = Arc::new(self.registry.load(&self.path)?);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = policy.clone();
        Ok(policy)
    }

    /// The policy in force.
    pub fn policy(&self) -> Arc<Policy> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The observers in force, for the next invocation.
    pub fn observers(&self) -> Observers {
        self.policy().observers().clone()
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

use std::path::Path;

use streamkeeper_contract::{Id, Text};
use streamkeeper_stream::{Observers, OnFailure, Registration, Role, When};

use crate::{PolicyError, PolicyRegistry};

/// A policy, read: a list of observers with a hash. See the [crate](crate) for an example.
#[derive(Debug, Clone)]
pub struct Policy {
    pub(crate) id: Option<Id>,
    pub(crate) hash: Text,
    pub(crate) observers: Observers,
    pub(crate) registered: Vec<Registered>,
}

impl Policy {
    /// Reads a file, with the bundled kinds of observers: JSON if its name ends in `.json`, else TOML.
    ///
    /// # Errors
    /// If it cannot be read, or is no policy.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, PolicyError> {
        PolicyRegistry::bundled().load(path)
    }

    /// Reads a text in TOML, with the bundled kinds of observers.
    ///
    /// # Errors
    /// If it is no policy.
    pub fn from_toml(text: &str) -> Result<Self, PolicyError> {
        PolicyRegistry::bundled().read_toml(text)
    }

    /// Reads a text in JSON, with the bundled kinds of observers.
    ///
    /// ```
    /// use streamkeeper_policy::Policy;
    ///
    /// let policy = Policy::from_json(r#"{"version": 1, "observers": [{"kind": "metrics", "every": 100}]}"#)?;
    /// let same = Policy::from_toml("version = 1\nobservers = [{ every = 100, kind = 'metrics' }] # TOML")?;
    /// assert_eq!(policy.hash(), same.hash());
    /// # Ok::<_, streamkeeper_policy::PolicyError>(())
    /// ```
    ///
    /// # Errors
    /// If it is no policy.
    pub fn from_json(text: &str) -> Result<Self, PolicyError> {
        PolicyRegistry::bundled().read_json(text)
    }

    /// The observers, in the order of the file. Stacks made from them write the policy's id and hash into their recordings.
    pub fn observers(&self) -> &Observers {
        &self.observers
    }

    /// The policy's id, if it states one.
    pub fn id(&self) -> Option<&Id> {
        self.id.as_ref()
    }

    /// `sha256:` and 64 hexadecimal digits: the hash of what the policy says. Comments, white space, the order of keys, and whether it is
    /// TOML or JSON make no difference. Not a secret, and no signature.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// What is registered, in order, for people.
    pub fn registered(&self) -> &[Registered] {
        &self.registered
    }
}

/// An observer of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Registered {
    /// Its kind.
    pub kind: String,
    /// Its id.
    pub id: Id,
    /// What it is there for.
    pub role: Role,
    /// Which invocations it is made for.
    pub when: When,
    /// What its failure means.
    pub on_failure: OnFailure,
}

impl Registered {
    pub(crate) fn new(kind: String, registration: &Registration) -> Self {
        Self {
            kind,
            id: registration.id().clone(),
            role: registration.role(),
            when: registration.condition().clone(),
            on_failure: registration.failure_policy().clone(),
        }
    }
}

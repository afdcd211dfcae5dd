//! Stream observers as data: a file in TOML, or JSON of the same shape, becomes a list of observers.
//!
//! ```
//! use streamkeeper_policy::Policy;
//! use streamkeeper_stream::testing::Script;
//!
//! let policy = Policy::from_toml(r#"
//! version = 1
//! id = "support-chat"
//!
//! [[observers]]
//! kind = "normalize-dialects"
//!
//! [[observers]]
//! kind = "halt-on-pattern"
//! pattern = '(?i)\binternal use only\b'
//! when = "synthesize"
//!
//! [[observers]]
//! kind = "metrics"
//! "#)?;
//!
//! let ran = Script::new().text("It is for internal use on").text("ly. ").finish().run(policy.observers());
//! assert_eq!(ran.stop().unwrap().observer.as_str(), "halt-on-pattern");
//! assert_eq!(ran.recording().recording().header().policy_hash.as_deref(), Some(policy.hash()));
//! # Ok::<_, streamkeeper_policy::PolicyError>(())
//! ```
//!
//! - [`Policy`] is what was read: observers, id, hash.
//! - [`PolicyHandle`] reads a file again between invocations.
//! - [`PolicyRegistry`] knows the kinds of observers, and takes those of your own.
//!
//! A mistake says where it is, and what may have been meant:
//!
//! ```
//! use streamkeeper_policy::Policy;
//!
//! let error = Policy::from_toml("version = 1\n\n[[observers]]\nkind = \"halt-on-patern\"\n").unwrap_err();
//! assert_eq!(
//!     error.to_string(),
//!     "policy:4:8: there is no kind of observer `halt-on-patern`; did you mean `halt-on-pattern`?"
//! );
//! ```
//!
//! The page `policy` of the guides has the whole format, and `docs/policy.schema.json` its schema. Depend on this crate, or on the facade
//! `streamkeeper` with its feature `policy`, to configure observers by files; observers do not need it.
#![forbid(unsafe_code)]

mod bundled;
mod error;
mod handle;
mod policy;
mod registry;
mod tree;

pub use error::{Mistake, OptionError, PolicyError};
pub use handle::PolicyHandle;
pub use policy::{Policy, Registered};
pub use registry::PolicyRegistry;
// Options of kinds of one's own derive its trait.
pub use schemars;

/// The most bytes that a policy may have: 1 MiB.
pub const MAX_POLICY_BYTES: usize = 1024 * 1024;

/// The most observers that a policy may have.
pub const MAX_OBSERVERS: usize = 256;

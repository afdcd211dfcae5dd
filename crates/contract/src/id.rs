use std::fmt;

use crate::Text;

/// The name of an observer, middleware, plugin or side channel.
///
/// 1 to 64 characters of `[a-z0-9]([a-z0-9._-]*[a-z0-9])?`. Literals are checked at compile time by [`id!`](crate::id). The JSON form is the
/// name.
///
/// ```
/// use streamkeeper_contract::{Id, id};
///
/// const SECRETS: Id = id!("secrets");
/// assert_eq!(SECRETS.as_str(), "secrets");
/// assert!(Id::new("Not valid").is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(Text);

/// The text is not a valid [`Id`].
///
/// The text is not repeated here: ids may come from configuration that holds secrets by mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an id is 1 to 64 characters of [a-z0-9._-] and starts and ends with a letter or digit")]
pub struct InvalidId;

/// Makes an [`Id`] from a literal and refuses an invalid one at compile time.
///
/// ```
/// let id = streamkeeper_contract::id!("prompt-leak.v2");
/// assert_eq!(id.as_str(), "prompt-leak.v2");
/// ```
///
/// ```compile_fail
/// let id = streamkeeper_contract::id!("Prompt Leak");
/// ```
#[macro_export]
macro_rules! id {
    ($name:literal) => {{
        // An item, so that `cargo check` evaluates it too.
        const ID: $crate::Id = $crate::Id::from_static($name);
        ID
    }};
}

impl Id {
    /// The most bytes an id may have.
    pub const MAX_LEN: usize = 64;

    /// Checks a name that is known at run time only.
    ///
    /// # Errors
    /// If the name is empty, longer than 64 bytes, or has a character or an end that is not allowed.
    pub fn new(name: &str) -> Result<Self, InvalidId> {
        if is_valid(name.as_bytes()) { Ok(Self(Text::from(name))) } else { Err(InvalidId) }
    }

    /// Checks a literal; prefer [`id!`](crate::id), which always does so at compile time.
    ///
    /// # Panics
    /// If the name is not valid.
    pub const fn from_static(name: &'static str) -> Self {
        assert!(is_valid(name.as_bytes()), "an id is 1 to 64 characters of [a-z0-9]([a-z0-9._-]*[a-z0-9])?");
        Self(Text::from_static(name))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl std::str::FromStr for Id {
    type Err = InvalidId;
    fn from_str(name: &str) -> Result<Self, InvalidId> {
        Self::new(name)
    }
}

impl serde::Serialize for Id {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> serde::Deserialize<'de> for Id {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = Text::deserialize(deserializer)?;
        Self::new(&name).map_err(serde::de::Error::custom)
    }
}

const fn is_valid(name: &[u8]) -> bool {
    const fn alphanumeric(byte: u8) -> bool {
        byte.is_ascii_lowercase() || byte.is_ascii_digit()
    }
    if name.is_empty() || name.len() > Id::MAX_LEN || !alphanumeric(name[0]) || !alphanumeric(name[name.len() - 1]) {
        return false;
    }
    let mut i = 0;
    while i < name.len() {
        if !(alphanumeric(name[i]) || matches!(name[i], b'.' | b'_' | b'-')) {
            return false;
        }
        i += 1;
    }
    true
}

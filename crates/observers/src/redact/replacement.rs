use std::fmt;

#[cfg(feature = "keyed-hash")]
use hmac::{Hmac, KeyInit, Mac};
#[cfg(feature = "keyed-hash")]
use sha2::Sha256;
use streamkeeper_contract::Text;

use super::Vault;

/// What takes the place of a match.
///
/// ```
/// use streamkeeper_observers::{Redact, Replacement, Vault};
///
/// let vault = Vault::new();
/// for (replacement, expected) in [
///     (Replacement::Mask, "to ***"),
///     (Replacement::Label, "to [EMAIL]"),
///     (Replacement::Token(vault.clone()), "to [EMAIL_1]"),
/// ] {
///     let redactor = Redact::pii().replacement(replacement).redactor();
///     assert_eq!(redactor.redact("to ada@example.org").text, expected);
/// }
/// assert_eq!(vault.restore("to [EMAIL_1]"), "to ada@example.org");
///
/// # #[cfg(feature = "keyed-hash")] {
/// let redactor = Redact::pii().replacement(Replacement::hash("key")).redactor();
/// assert_eq!(redactor.redact("to ada@example.org").text, "to [EMAIL:e7e8f78d42b4]");
/// # }
/// ```
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum Replacement {
    /// `***`
    Mask,
    /// The pattern's name in capitals: `[EMAIL]`.
    #[default]
    Label,
    /// The name and 12 hexadecimal digits of an HMAC-SHA-256 of the match: `[EMAIL:1f0c…]`. Equal texts have equal hashes, so that
    /// logs can be joined; who has the key can try candidates. Make it with [`hash`](Self::hash). Needs the
    /// feature `keyed-hash`.
    #[cfg(feature = "keyed-hash")]
    Hash(HashKey),
    /// The name and a number, `[EMAIL_1]`, which the [`Vault`] can turn back. A vault that is full gives labels.
    Token(Vault),
}

/// The key of [`Replacement::Hash`].
#[cfg(feature = "keyed-hash")]
#[derive(Clone)]
pub struct HashKey(Hmac<Sha256>);

impl Replacement {
    /// [`Replacement::Hash`] with this key.
    #[cfg(feature = "keyed-hash")]
    pub fn hash(key: impl AsRef<[u8]>) -> Self {
        Self::Hash(HashKey(Hmac::new_from_slice(key.as_ref()).expect("a key may have any length")))
    }

    /// Whether it depends on the pattern alone.
    pub(super) fn is_constant(&self) -> bool {
        matches!(self, Self::Mask | Self::Label)
    }

    pub(super) fn of(&self, pattern: &str, matched: &str) -> Text {
        let name = pattern.to_uppercase();
        match self {
            Self::Mask => Text::from_static("***"),
            Self::Label => format!("[{name}]").into(),
            #[cfg(feature = "keyed-hash")]
            Self::Hash(HashKey(mac)) => {
                let mut mac = mac.clone();
                mac.update(matched.as_bytes());
                let hex: String = mac.finalize().into_bytes()[..6].iter().map(|byte| format!("{byte:02x}")).collect();
                format!("[{name}:{hex}]").into()
            }
            Self::Token(vault) => vault.token(&name, matched).unwrap_or_else(|| format!("[{name}]").into()),
        }
    }
}

impl fmt::Debug for Replacement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mask => "Mask",
            Self::Label => "Label",
            #[cfg(feature = "keyed-hash")]
            Self::Hash(_) => "Hash",
            Self::Token(_) => "Token",
        })
    }
}

#[cfg(feature = "keyed-hash")]
impl fmt::Debug for HashKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HashKey")
    }
}

use std::{borrow::Borrow, fmt, ops::Deref};

use compact_str::CompactString;

/// Immutable UTF-8 text, inline up to 24 bytes.
///
/// Most deltas of a model are shorter than that, so a chunk owns its text without touching the heap. Longer text is one allocation.
/// Literals can be wrapped without a copy. The string type inside is private, so that its version is no part of this API. The JSON form is
/// a string.
///
/// ```
/// use streamkeeper_contract::Text;
///
/// const STOP: Text = Text::from_static("stop");
/// let text = Text::from("Hello");
/// assert_eq!(text, "Hello");
/// assert_eq!(text.len(), 5);
/// assert_ne!(text, STOP);
/// ```
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text(CompactString);

impl Text {
    /// Wraps a literal without copying it.
    pub const fn from_static(text: &'static str) -> Self {
        Self(CompactString::const_new(text))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text as a `String`; copies if it was stored inline.
    pub fn into_string(self) -> String {
        self.0.into_string()
    }
}

impl Deref for Text {
    type Target = str;

    #[inline]
    fn deref(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Text {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Text {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(CompactString::new(text))
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self(CompactString::from(text))
    }
}

impl From<std::borrow::Cow<'_, str>> for Text {
    fn from(text: std::borrow::Cow<'_, str>) -> Self {
        match text {
            std::borrow::Cow::Borrowed(text) => text.into(),
            std::borrow::Cow::Owned(text) => text.into(),
        }
    }
}

impl From<Text> for String {
    fn from(text: Text) -> Self {
        text.into_string()
    }
}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self)
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl serde::Serialize for Text {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Text {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Text;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_str<E>(self, text: &str) -> Result<Text, E> {
                Ok(text.into())
            }
            fn visit_string<E>(self, text: String) -> Result<Text, E> {
                Ok(text.into())
            }
        }
        deserializer.deserialize_str(Visitor)
    }
}

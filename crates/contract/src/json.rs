use std::fmt;

use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;

/// JSON as written: valid, and kept as text, because parsing into a value changes numbers and may change key order.
///
/// It is always one line, so that it fits into JSON lines: a line break between two tokens becomes a space. Nothing else is changed.
///
/// ```
/// use streamkeeper_contract::Json;
///
/// let json = Json::from_text(r#"{"b": 1.10, "a": 12345678901234567890123}"#)?;
/// assert_eq!(json.as_str(), r#"{"b": 1.10, "a": 12345678901234567890123}"#);
/// # Ok::<_, serde_json::Error>(())
/// ```
#[derive(Clone)]
pub struct Json(Box<RawValue>);

impl Json {
    /// Writes a value.
    ///
    /// # Errors
    /// If the value cannot be written as JSON, for example a map with keys that are no strings.
    pub fn new(value: &impl Serialize) -> Result<Self, serde_json::Error> {
        serde_json::value::to_raw_value(value).map(Self::from)
    }

    /// Checks a text and keeps it as it is, without the white space around it.
    ///
    /// # Errors
    /// If the text is not one JSON value.
    pub fn from_text(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str::<Box<RawValue>>(text).map(Self::from)
    }

    /// A JSON string.
    pub fn string(text: &str) -> Self {
        Self(serde_json::value::to_raw_value(text).expect("a string is valid JSON"))
    }

    /// Reads it as a type.
    ///
    /// # Errors
    /// If the JSON has another shape.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.0.get())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Json {}

impl From<Box<RawValue>> for Json {
    fn from(raw: Box<RawValue>) -> Self {
        // Inside of strings a line break is always escaped.
        if !raw.get().contains(['\n', '\r']) {
            return Self(raw);
        }
        let line = raw.get().replace(['\n', '\r'], " ");
        Self(RawValue::from_string(line).unwrap_or(raw))
    }
}

impl From<&RawValue> for Json {
    fn from(raw: &RawValue) -> Self {
        raw.to_owned().into()
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Json {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> serde::Deserialize<'de> for Json {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Self::from)
    }
}

//! Reading JSON that may hold less, or other things, than its format says.

use std::{collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;
use streamkeeper_contract::{Channel, ErrorInfo, Lane, Text, codes};

use crate::output::{Leaf, Output};

/// A string that may be absent or null. Borrowed from the event where it has no escapes, else in a [`Text`], which holds short pieces
/// without an allocation.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) enum Str<'a> {
    #[default]
    Unstated,
    Borrowed(&'a str),
    Owned(Text),
}

impl Str<'_> {
    /// The string, if it was stated.
    pub(super) fn get(&self) -> Option<&str> {
        match self {
            Str::Unstated => None,
            Str::Borrowed(text) => Some(text),
            Str::Owned(text) => Some(text),
        }
    }

    /// The string, or an empty one.
    pub(super) fn as_str(&self) -> &str {
        self.get().unwrap_or_default()
    }

    /// The string, if it was stated and is not empty.
    pub(super) fn filled(&self) -> Option<&str> {
        self.get().filter(|text| !text.is_empty())
    }

    /// The string as owned text, if it was stated.
    pub(super) fn text(&self) -> Option<Text> {
        self.get().map(Text::from)
    }
}

impl From<Str<'_>> for Text {
    fn from(text: Str<'_>) -> Self {
        match text {
            Str::Unstated => Text::default(),
            Str::Borrowed(text) => text.into(),
            Str::Owned(text) => text,
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Str<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct StrVisitor;
        impl<'de> Visitor<'de> for StrVisitor {
            type Value = Str<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or null")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Str<'de>, E> {
                Ok(Str::Borrowed(text))
            }
            fn visit_str<E>(self, text: &str) -> Result<Str<'de>, E> {
                Ok(Str::Owned(text.into()))
            }
            fn visit_none<E>(self) -> Result<Str<'de>, E> {
                Ok(Str::Unstated)
            }
            fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Str<'de>, D::Error> {
                deserializer.deserialize_str(self)
            }
        }
        // As an option, so that a field that is missing is unstated too.
        deserializer.deserialize_option(StrVisitor)
    }
}

/// A string that is not worth an event: where anything else stands, it is unstated.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Word<'a>(Str<'a>);

impl<'a> std::ops::Deref for Word<'a> {
    type Target = Str<'a>;
    fn deref(&self) -> &Str<'a> {
        &self.0
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Word<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct WordVisitor;
        impl<'de> Visitor<'de> for WordVisitor {
            type Value = Word<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("anything")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Word<'de>, E> {
                Ok(Word(Str::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Word<'de>, E> {
                Ok(Word(Str::Owned(text.into())))
            }
            fn visit_bool<E>(self, _: bool) -> Result<Word<'de>, E> {
                Ok(Word::default())
            }
            fn visit_u64<E>(self, _: u64) -> Result<Word<'de>, E> {
                Ok(Word::default())
            }
            fn visit_i64<E>(self, _: i64) -> Result<Word<'de>, E> {
                Ok(Word::default())
            }
            fn visit_f64<E>(self, _: f64) -> Result<Word<'de>, E> {
                Ok(Word::default())
            }
            fn visit_none<E>(self) -> Result<Word<'de>, E> {
                Ok(Word::default())
            }
            fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Word<'de>, D::Error> {
                deserializer.deserialize_any(self)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Word<'de>, A::Error> {
                IgnoredAny.visit_seq(seq)?;
                Ok(Word::default())
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Word<'de>, A::Error> {
                IgnoredAny.visit_map(map)?;
                Ok(Word::default())
            }
        }
        deserializer.deserialize_option(WordVisitor)
    }
}

/// A count that may be absent, null or no count at all: it is never a reason to lose the rest of an event.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Num(pub(super) Option<u64>);

impl Num {
    /// The count, or 0.
    pub(super) fn or_zero(self) -> u64 {
        self.0.unwrap_or_default()
    }
}

impl<'de> Deserialize<'de> for Num {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NumVisitor;
        impl<'de> Visitor<'de> for NumVisitor {
            type Value = Num;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("anything")
            }
            fn visit_u64<E>(self, count: u64) -> Result<Num, E> {
                Ok(Num(Some(count)))
            }
            fn visit_i64<E>(self, count: i64) -> Result<Num, E> {
                Ok(Num(u64::try_from(count).ok()))
            }
            fn visit_f64<E>(self, count: f64) -> Result<Num, E> {
                // The cast saturates; a fraction of a token is no token.
                Ok(Num((count >= 0.0 && count.is_finite()).then_some(count as u64)))
            }
            fn visit_bool<E>(self, _: bool) -> Result<Num, E> {
                Ok(Num(None))
            }
            fn visit_str<E>(self, text: &str) -> Result<Num, E> {
                Ok(Num(text.parse().ok()))
            }
            fn visit_none<E>(self) -> Result<Num, E> {
                Ok(Num(None))
            }
            fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Num, D::Error> {
                deserializer.deserialize_any(self)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Num, A::Error> {
                IgnoredAny.visit_seq(seq)?;
                Ok(Num(None))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Num, A::Error> {
                IgnoredAny.visit_map(map)?;
                Ok(Num(None))
            }
        }
        deserializer.deserialize_option(NumVisitor)
    }
}

/// Whether something is true; anything else is false.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Flag(pub(super) bool);

impl<'de> Deserialize<'de> for Flag {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Option::<&RawValue>::deserialize(deserializer)?;
        Ok(Flag(raw.is_some_and(|raw| raw.get() == "true")))
    }
}

/// A list of JSON values; anything else is an empty list.
#[derive(Debug, Default)]
pub(super) struct List<'a>(pub(super) Vec<&'a RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for List<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Option::<&'a RawValue>::deserialize(deserializer)?;
        Ok(List(raw.and_then(parse).unwrap_or_default()))
    }
}

/// Reads a value as a type, if it has that shape.
pub(super) fn parse<'a, T: Deserialize<'a>>(raw: &'a RawValue) -> Option<T> {
    serde_json::from_str(raw.get()).ok()
}

/// A JSON string decoded, any other value as JSON text.
pub(super) fn plain(raw: &RawValue) -> Text {
    match parse::<Str<'_>>(raw) {
        Some(Str::Borrowed(text)) => text.into(),
        Some(Str::Owned(text)) => text,
        _ => raw.get().into(),
    }
}

/// A JSON string that is not empty, decoded.
pub(super) fn filled(raw: Option<&RawValue>) -> Option<Text> {
    let text = Text::from(parse::<Str<'_>>(raw?)?);
    (!text.is_empty()).then_some(text)
}

/// Whether a value is stated and neither null nor an empty object, list or string.
pub(super) fn is_filled(raw: Option<&RawValue>) -> bool {
    raw.is_some_and(|raw| {
        let inside = raw.get().trim_start_matches(['{', '[', '"']).trim_end_matches(['}', ']', '"']);
        raw.get() != "null" && !inside.trim().is_empty()
    })
}

/// The place of a text at these elements of the path's arrays. An element past the range of a [`Leaf`] has no place.
pub(super) fn leaf(path: &'static str, elements: &[usize]) -> Leaf {
    let mut index = [0; 4];
    for (slot, element) in index.iter_mut().zip(elements) {
        match u16::try_from(*element) {
            Ok(element) => *slot = element,
            Err(_) => return Leaf::NONE,
        }
    }
    Leaf::new(path, index)
}

/// An error object, string or other value of a provider, or a body around one. The code is the first of `code`, `type` and `status` that
/// is a word.
pub(crate) fn error_info(raw: &RawValue) -> ErrorInfo {
    #[derive(Default, Deserialize)]
    struct Wire<'a> {
        #[serde(borrow)]
        code: Option<&'a RawValue>,
        #[serde(borrow, rename = "type")]
        kind: Option<&'a RawValue>,
        #[serde(borrow)]
        status: Option<&'a RawValue>,
        #[serde(borrow)]
        message: Option<&'a RawValue>,
        #[serde(borrow)]
        error: Option<&'a RawValue>,
    }
    let Some(mut wire) = parse::<Wire<'_>>(raw) else {
        return ErrorInfo::new(codes::ERROR).with_message(plain(raw));
    };
    if let Some(inner) = wire.error {
        match parse::<Wire<'_>>(inner) {
            Some(inner) => wire = inner,
            None => wire.message = wire.message.or(wire.error),
        }
    }
    let word = filled(wire.code).or_else(|| filled(wire.kind)).or_else(|| filled(wire.status));
    let code = match (word, wire.code) {
        (Some(word), _) => word,
        (None, Some(number)) if number.get() != "null" => number.get().into(),
        _ => codes::ERROR.into(),
    };
    let info = ErrorInfo::new(code);
    match wire.message {
        Some(message) if message.get() != "null" => info.with_message(plain(message)),
        _ => info,
    }
}

/// Hands out the ordinals of parts and tool calls of one invocation, and remembers which call has which id.
///
/// When they run out, the stream has too many lanes. Ids longer than 256 bytes are not remembered.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    parts: u16,
    calls: u16,
    tools: BTreeMap<Text, Lane>,
}

impl Lanes {
    pub(super) const LONGEST_ID: usize = 256;

    /// The next part.
    pub(super) fn part(&mut self, out: &mut Output) -> u16 {
        let part = self.parts;
        self.parts = next(part, "parts", out);
        part
    }

    /// The lane of a new call in this part. Calls count from 1.
    pub(super) fn call(&mut self, part: u16, channel: Channel, out: &mut Output) -> Lane {
        self.calls = next(self.calls, "calls", out);
        Lane { choice: 0, part, call: self.calls, channel }
    }

    /// Remembers a call by its id. Of two calls with one id the later one is meant from here on.
    pub(super) fn name(&mut self, id: &str, lane: Lane) {
        if !id.is_empty() && id.len() <= Self::LONGEST_ID && self.tools.len() < usize::from(u16::MAX) {
            self.tools.insert(id.into(), lane);
        }
    }

    /// The call with this id.
    pub(super) fn named(&self, id: &str) -> Option<Lane> {
        self.tools.get(id).copied()
    }
}

fn next(ordinal: u16, what: &'static str, out: &mut Output) -> u16 {
    ordinal.checked_add(1).unwrap_or_else(|| {
        out.too_many(what, usize::from(u16::MAX));
        ordinal
    })
}

/// The ordinal of a choice: the provider's own number.
pub(super) fn choice(number: u64, out: &mut Output) -> u16 {
    u16::try_from(number).unwrap_or_else(|_| {
        out.too_many("choices", usize::from(u16::MAX) + 1);
        u16::MAX
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> &RawValue {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn a_string_without_escapes_is_borrowed() {
        assert_eq!(serde_json::from_str::<Str<'_>>(r#""plain""#).unwrap(), Str::Borrowed("plain"));
        assert_eq!(serde_json::from_str::<Str<'_>>(r#""a\nb""#).unwrap().as_str(), "a\nb");
        assert_eq!(serde_json::from_str::<Str<'_>>("null").unwrap().get(), None);
        assert!(serde_json::from_str::<Str<'_>>("1").is_err());
    }

    #[test]
    fn a_count_of_any_type_is_read_or_unknown() {
        for (json, count) in [
            ("7", Some(7)),
            ("7.0", Some(7)),
            ("\"7\"", Some(7)),
            ("-1", None),
            ("1e400", None),
            ("null", None),
            ("true", None),
            ("[1]", None),
            ("{\"a\":1}", None),
            ("\"many\"", None),
        ] {
            match serde_json::from_str::<Num>(json) {
                Ok(num) => assert_eq!(num.0, count, "{json}"),
                Err(_) => assert_eq!(json, "1e400"),
            }
        }
    }

    #[test]
    fn an_error_of_any_shape_has_a_code() {
        for (json, code, message) in [
            (r#"{"type":"overloaded_error","message":"Overloaded"}"#, "overloaded_error", Some("Overloaded")),
            (r#"{"code":"insufficient_quota","type":"x","message":null}"#, "insufficient_quota", None),
            (r#"{"code":499,"status":"CANCELLED","message":"off"}"#, "CANCELLED", Some("off")),
            (r#"{"code":499}"#, "499", None),
            (r#"{}"#, "error", None),
            (r#""boom""#, "error", Some("boom")),
            (r#"{"message":{"a":1}}"#, "error", Some(r#"{"a":1}"#)),
            (r#"{"error":{"type":"overloaded_error","message":"busy"}}"#, "overloaded_error", Some("busy")),
            (r#"{"error":"boom"}"#, "error", Some("boom")),
            (r#"{"error":"boom","message":"try later","code":503}"#, "503", Some("try later")),
        ] {
            let info = error_info(raw(json));
            assert_eq!((info.code.as_str(), info.message.as_deref()), (code, message), "{json}");
        }
    }

    #[test]
    fn a_value_is_filled_if_it_says_something() {
        for (json, expected) in [
            ("null", false),
            ("{}", false),
            ("{ }", false),
            ("[]", false),
            ("\"\"", false),
            ("0", true),
            ("{\"a\":1}", true),
            ("[[]]", false),
        ] {
            assert_eq!(is_filled(Some(raw(json))), expected, "{json}");
        }
        assert!(!is_filled(None));
    }

    // spec 2.3
    #[test]
    fn ordinals_run_out_and_long_ids_are_not_remembered() {
        let mut out = Output::default();
        let mut lanes = Lanes { parts: u16::MAX - 1, calls: u16::MAX - 1, ..Lanes::default() };
        assert_eq!((lanes.part(&mut out), out.too_many), (u16::MAX - 1, None));
        lanes.part(&mut out);
        assert_eq!(out.too_many.take(), Some(("parts", 65_535)));
        let lane = lanes.call(0, Channel::Arguments, &mut out);
        assert_eq!((lane.call, out.too_many), (u16::MAX, None));
        lanes.call(0, Channel::Arguments, &mut out);
        assert_eq!(out.too_many.take(), Some(("calls", 65_535)));
        assert_eq!((choice(65_535, &mut out), out.too_many), (65_535, None));
        choice(65_536, &mut out);
        assert_eq!(out.too_many, Some(("choices", 65_536)));
        lanes.name("a", lane);
        lanes.name(&"x".repeat(257), lane);
        assert_eq!((lanes.named("a"), lanes.named(&"x".repeat(257))), (Some(lane), None));
    }
}

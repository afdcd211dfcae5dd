//! New values at the place of old ones; every other byte of an event stays.

use std::ops::Range;

use crate::{
    json::{Edits, Quoted, beside, locate},
    output::Leaf,
};

/// The new value of a leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value<'a> {
    /// Text. Where the provider writes an object, it is the JSON text of one.
    Text(&'a str),
    /// JSON, whatever stands there now.
    Json(&'a str),
    /// Nothing: the value was withheld.
    Null,
}

/// Members beside a text that repeat it as tokens: they go where it is changed.
const TOKENS: &[&str] = &["logprobs", "logprobsResult", "token_ids"];

/// Adds the changes that put these values at their leaves. Returns the positions of the leaves that are not there.
pub(super) fn splice(json: &str, changes: &[(Leaf, Value<'_>)], edits: &mut Edits) -> Vec<usize> {
    let leaves: Vec<Leaf> = changes.iter().map(|(leaf, _)| *leaf).collect();
    let mut missing: Vec<usize> = (0..changes.len()).collect();
    for (id, range) in locate(json, &leaves) {
        missing.retain(|missing| *missing != id);
        let (leaf, value) = &changes[id];
        if replace(json, range, *value, edits) && matches!(value, Value::Text(_)) {
            beside(json, leaf, TOKENS).into_iter().for_each(|mirror| void(json, mirror, edits));
        }
    }
    missing
}

/// Leaves nothing of a value but its kind, where that can be told to a reader.
fn void(json: &str, range: Range<usize>, edits: &mut Edits) {
    match json.as_bytes().get(range.start) {
        Some(b'[') => edits.replace(range, "[]"),
        Some(b'"' | b'{') => edits.replace(range, "null"),
        _ => {}
    }
}

/// Returns whether that changes anything.
fn replace(json: &str, range: Range<usize>, value: Value<'_>, edits: &mut Edits) -> bool {
    let old = json.get(range.clone()).unwrap_or_default();
    match (value, old.as_bytes().first()) {
        // An alternative that holds no text: the text stands at another one.
        (_, None) => return false,
        (_, Some(b'n')) => return false,
        (Value::Null, _) => edits.replace(range, "null"),
        (Value::Json(json), _) => edits.replace(range, json),
        (Value::Text(text), Some(b'"')) => {
            // Whoever amends a text to what it was gets the bytes as they were.
            if serde_json::from_str::<std::borrow::Cow<'_, str>>(old).is_ok_and(|old| old == text) {
                return false;
            }
            edits.replace(range, Quoted(text));
        }
        (Value::Text(text), Some(b'{')) => edits.replace(range, object(text)),
        (Value::Text(text), _) => edits.replace(range, Quoted(text)),
    }
    true
}

/// Text as the object that a provider wants: as it is, or, if it is no object, as the one member `text`. No text is an empty object.
pub(super) fn object(text: &str) -> String {
    let is_object = text.trim_start().starts_with('{') && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    match text {
        "" => "{}".into(),
        text if is_object => text.into(),
        text => format!(r#"{{"text":{}}}"#, Quoted(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, path: &'static str, value: Value<'_>, expected: &str) {
        let mut edits = Edits::default();
        let missing = splice(json, &[(Leaf::new(path, [0; 4]), value)], &mut edits);
        assert_eq!(missing, [0; 0]);
        assert_eq!(edits.apply(json), expected);
    }

    // spec 2.8
    #[test]
    fn a_new_text_stands_where_the_old_one_stood() {
        check(r#"{"a": "\u00e4" , "b":1.0}"#, "a", Value::Text("x\"\n"), r#"{"a": "x\"\n" , "b":1.0}"#);
        check(r#"{"a": "\u00e4"}"#, "a", Value::Text("ä"), r#"{"a": "\u00e4"}"#);
        check(r#"{"a":"x","b":"x","c":null}"#, "a|b|c", Value::Text(""), r#"{"a":"","b":"","c":null}"#);
        check(r#"{"a":{"x":1}}"#, "a", Value::Text(r#"{"x":2}"#), r#"{"a":{"x":2}}"#);
        check(r#"{"a":{"x":1}}"#, "a", Value::Text("masked"), r#"{"a":{"text":"masked"}}"#);
        check(r#"{"a":{"x":1}}"#, "a", Value::Text(""), r#"{"a":{}}"#);
        check(r#"{"a":[{"x":1}]}"#, "a", Value::Text("masked"), r#"{"a":"masked"}"#);
        check(r#"{"a":"x"}"#, "a", Value::Json("[1]"), r#"{"a":[1]}"#);
        check(r#"{"a":{"logprob":-1}}"#, "a", Value::Null, r#"{"a":null}"#);
    }

    // spec 2.8
    #[test]
    fn what_repeats_a_text_goes_with_it() {
        let chat = r#"{"choices":[{"delta":{"t":"a"},"logprobs":{"content":[{"token":"a"}]},"token_ids":[7]}]}"#;
        let text = Leaf::new("choices/*/delta/t", [0; 4]);
        for (value, expected) in [
            (Value::Text("b"), r#"{"choices":[{"delta":{"t":"b"},"logprobs":null,"token_ids":[]}]}"#),
            (Value::Text("a"), chat),
        ] {
            let mut edits = Edits::default();
            splice(chat, &[(text, value)], &mut edits);
            assert_eq!(edits.apply(chat), expected);
        }
        check(r#"{"delta":"a","logprobs":[{"token":"a"}]}"#, "delta", Value::Text(""), r#"{"delta":"","logprobs":[]}"#);
        check(r#"{"a":{"x":1},"logprobs":[1]}"#, "a", Value::Null, r#"{"a":null,"logprobs":[1]}"#);
    }

    #[test]
    fn a_leaf_that_is_not_there_is_told() {
        let changes = [(Leaf::new("a", [0; 4]), Value::Null), (Leaf::new("b", [0; 4]), Value::Null)];
        assert_eq!(splice(r#"{"b":1}"#, &changes, &mut Edits::default()), [0]);
    }
}

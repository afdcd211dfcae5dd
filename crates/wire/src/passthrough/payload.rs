//! Where the JSON of a format stands in a payload: it is the payload, but for Bedrock's events in base64.

use std::borrow::Cow;

use crate::{
    Format, base64,
    json::{Edits, Quoted, find, string_at},
};

/// The places of the base64 text: in a message, and as recorders write it who keep no headers.
const PLACES: [&str; 2] = ["bytes", "chunk/bytes"];

/// The JSON in a payload. The payload itself if nothing is wrapped.
pub(super) fn unwrap(format: Option<Format>, payload: &str) -> Cow<'_, str> {
    let wrapped = || {
        let text = PLACES.iter().find_map(|place| string_at(payload, place))?;
        let mut bytes = Vec::new();
        base64::decode(&text, &mut bytes)?;
        String::from_utf8(bytes).ok()
    };
    match format {
        Some(Format::BedrockInvoke) => wrapped().map_or(Cow::Borrowed(payload), Cow::Owned),
        _ => Cow::Borrowed(payload),
    }
}

/// The payload with other JSON in it.
pub(super) fn wrap<'a>(format: Option<Format>, payload: &str, json: &'a str) -> Cow<'a, str> {
    if format != Some(Format::BedrockInvoke) {
        return Cow::Borrowed(json);
    }
    let Some(place) = PLACES.iter().find_map(|place| find(payload, place).pop()) else { return Cow::Borrowed(json) };
    let mut edits = Edits::default();
    edits.replace(place, Quoted(&base64::encode(json.as_bytes())));
    Cow::Owned(edits.apply(payload))
}

/// A payload of our own, and the name of its event. `names` tells whether events have names.
pub(super) fn make(json: &str, names: bool) -> String {
    let bytes = base64::encode(json.as_bytes());
    if names { format!(r#"{{"bytes":"{bytes}"}}"#) } else { format!(r#"{{"chunk":{{"bytes":"{bytes}"}}}}"#) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INVOKE: Option<Format> = Some(Format::BedrockInvoke);

    #[test]
    fn what_is_wrapped_is_changed_inside() {
        let payload = format!(r#"{{"bytes":"{}","p":"abc"}}"#, base64::encode(br#"{"text":"old"}"#));
        assert_eq!(unwrap(INVOKE, &payload), r#"{"text":"old"}"#);
        let changed = wrap(INVOKE, &payload, r#"{"text":"new"}"#);
        assert_eq!(unwrap(INVOKE, &changed), r#"{"text":"new"}"#);
        assert!(changed.ends_with(r#","p":"abc"}"#));
    }

    #[test]
    fn what_is_not_wrapped_stays() {
        assert_eq!(unwrap(Some(Format::OpenAiChat), r#"{"bytes":"Zg=="}"#), r#"{"bytes":"Zg=="}"#);
        assert_eq!(unwrap(INVOKE, r#"{"message":"x"}"#), r#"{"message":"x"}"#);
        assert_eq!(unwrap(INVOKE, &make("{}", true)), "{}");
        assert_eq!(unwrap(INVOKE, &make("{}", false)), "{}");
    }
}

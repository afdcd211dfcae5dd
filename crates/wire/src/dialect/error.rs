//! Errors of any provider, where they stand for themselves.

use serde::Deserialize;
use serde_json::value::RawValue;
use streamkeeper_contract::{ErrorInfo, Text, codes};

use super::read::{error_info, filled, is_filled, parse, plain};

#[derive(Default, Deserialize)]
#[serde(default)]
struct Wire<'a> {
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    detail: Option<&'a RawValue>,
    #[serde(borrow)]
    code: Option<&'a RawValue>,
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow)]
    status: Option<&'a RawValue>,
    /// AWS.
    #[serde(borrow, rename = "__type")]
    aws: Option<&'a RawValue>,
}

/// The error that an event states under the key `error`, beside whatever else: `{"error":{"code":…,"message":…}}`,
/// `{"error":"overloaded"}`, `[{"error":…}]`.
fn error_in(data: &str) -> Option<ErrorInfo> {
    if !data.contains("\"error\"") {
        return None;
    }
    let raw: &RawValue = serde_json::from_str(data).ok()?;
    in_value(raw).or_else(|| in_value(parse::<Vec<&RawValue>>(raw)?.first()?))
}

/// The error that an event is: one that states it under the key `error`, or is named `error`, whatever it says.
pub(crate) fn error_event(name: Option<&str>, data: &str) -> Option<ErrorInfo> {
    match name {
        Some("error") => Some(error_of(data).unwrap_or_else(|| whole(data))),
        _ => error_in(data),
    }
}

/// The error that the first event of a stream is, where it fits no rule: a whole body, as [`error_of`] reads it. A type alone counts only
/// if it is a word for an error, since events of any kind have one.
pub(crate) fn error_first(data: &str) -> Option<ErrorInfo> {
    let raw: &RawValue = serde_json::from_str(data).ok()?;
    let wire = object(raw)?;
    let is_error = |word: Text| ["error", "exception"].iter().any(|end| word.to_ascii_lowercase().contains(end));
    let stated = is_filled(wire.code) || is_filled(wire.status) || filled(wire.aws).is_some();
    (stated || wire.message.is_none() || filled(wire.kind).is_some_and(is_error)).then(|| error_of(data))?
}

/// The error that a whole body is: what [`error_in`] reads, and `{"message":…}` with a `code`, `type` or
/// `status`, `{"detail":…}`, `{"message":…,"__type":…}`. `None` if it is JSON of another kind, or none.
pub(crate) fn error_of(data: &str) -> Option<ErrorInfo> {
    error_in(data).or_else(|| {
        let raw: &RawValue = serde_json::from_str(data).ok()?;
        let wire = object(raw)?;
        let stated = [wire.code, wire.kind, wire.status].into_iter().any(|word| is_filled(word));
        match (wire.message, wire.detail, filled(wire.aws)) {
            (Some(message), _, Some(name)) => Some(ErrorInfo::new(name).with_message(plain(message))),
            (Some(_), ..) if stated => Some(error_info(raw)),
            (None, Some(detail), _) if is_filled(Some(detail)) => {
                Some(ErrorInfo::new(codes::ERROR).with_message(plain(detail)))
            }
            _ => None,
        }
    })
}

/// An array is none, although serde would read one field by field.
fn object(raw: &RawValue) -> Option<Wire<'_>> {
    raw.get().starts_with('{').then(|| parse(raw))?
}

fn whole(data: &str) -> ErrorInfo {
    match serde_json::from_str(data) {
        Ok(raw) => error_info(raw),
        Err(_) => ErrorInfo::new(codes::ERROR).with_message(data),
    }
}

fn in_value(raw: &RawValue) -> Option<ErrorInfo> {
    let wire = object(raw)?;
    let error = wire.error.filter(|error| is_filled(Some(error)))?;
    matches!(error.get().as_bytes().first(), Some(b'{' | b'"')).then(|| error_info(raw))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(info: Option<ErrorInfo>) -> Option<(String, String)> {
        info.map(|info| (info.code.to_string(), info.message.as_deref().unwrap_or("-").to_owned()))
    }

    // spec 2.2, 2.4
    #[test]
    fn an_error_is_read_from_any_shape() {
        for (data, code, message) in [
            (r#"{"error":{"code":"rate_limited","message":"slow down"}}"#, "rate_limited", "slow down"),
            (r#"{"error":{"code":499,"status":"CANCELLED","message":"off"}}"#, "CANCELLED", "off"),
            (
                r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
                "overloaded_error",
                "Overloaded",
            ),
            (r#"{"error":"model not found"}"#, "error", "model not found"),
            (r#"{"error":"not_found","message":"no such model"}"#, "error", "no such model"),
            (r#"{"error":"boom","code":"E1"}"#, "E1", "boom"),
            (r#"[{"error":{"code":503,"message":"overloaded"}}]"#, "503", "overloaded"),
            (r#"{"id":"c1","choices":[],"error":{"message":"mid"}}"#, "error", "mid"),
        ] {
            let expected = Some((code.to_owned(), message.to_owned()));
            assert_eq!(read(error_in(data)), expected, "{data}");
            assert_eq!(read(error_of(data)), expected, "{data}");
        }
    }

    // spec 2.2
    #[test]
    fn a_whole_body_says_it_in_more_ways() {
        for (data, code, message) in [
            (
                r#"{"object":"error","message":"bad","type":"invalid_request_error","code":400}"#,
                "invalid_request_error",
                "bad",
            ),
            (r#"{"code":"rate_limited","message":"slow down"}"#, "rate_limited", "slow down"),
            (r#"{"message":"denied","__type":"AccessDeniedException"}"#, "AccessDeniedException", "denied"),
            (r#"{"detail":"Not Found"}"#, "error", "Not Found"),
        ] {
            assert_eq!(read(error_in(data)), None, "{data}");
            assert_eq!(read(error_of(data)), Some((code.to_owned(), message.to_owned())), "{data}");
        }
    }

    // spec 2.4
    #[test]
    fn a_first_event_is_an_error_if_it_says_so() {
        for (data, is_error) in [
            (r#"{"detail":"Not Found"}"#, true),
            (r#"{"detail":[{"loc":["body"],"msg":"field required"}]}"#, true),
            (r#"{"object":"error","message":"bad","type":"NotFoundError","code":404}"#, true),
            (r#"{"message":"bad","type":"invalid_request_error"}"#, true),
            (r#"{"message":"denied","__type":"AccessDeniedException"}"#, true),
            (r#"{"message":"slow down","status":429}"#, true),
            (r#"{"message":"hello","type":"greeting"}"#, false),
            (r#"{"message":"hello"}"#, false),
            ("[DONE]", false),
        ] {
            assert_eq!(error_first(data).is_some(), is_error, "{data}");
        }
    }

    // spec 2.10
    #[test]
    fn what_states_no_error_is_none() {
        for data in [
            "",
            "[DONE]",
            "null",
            "\"error\"",
            "[]",
            r#"{"error":null}"#,
            r#"{"error":{}}"#,
            r#"{"error":""}"#,
            r#"{"error":0.25}"#,
            r#"{"error":{"message":"cut"#,
            r#"{"message":"hello"}"#,
            r#"{"type":"text","text":"error"}"#,
            r#"{"text":"an \"error\" in words"}"#,
        ] {
            assert_eq!(read(error_of(data)), None, "{data}");
        }
    }
}

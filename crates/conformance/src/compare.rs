use serde_json::Value;

/// Says where an answer is not what a vector expects.
///
/// An expectation is partial: an object names the fields that matter, and `null` stands for `null` or absent. Arrays are compared
/// element by element and must have the same length. Where an object, array or number is expected and the answer has a string, the
/// string is read as JSON: tool arguments arrive as text.
pub(crate) fn differences(expected: &Value, actual: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare("", expected, actual, &mut found);
    found
}

fn compare(at: &str, expected: &Value, actual: &Value, found: &mut Vec<String>) {
    if let Value::String(text) = actual
        && !matches!(expected, Value::String(_) | Value::Null)
        && let Ok(parsed) = serde_json::from_str::<Value>(text)
    {
        return compare(at, expected, &parsed, found);
    }
    match (expected, actual) {
        (Value::Object(expected), Value::Object(actual)) => {
            for (key, expected) in expected {
                let at = if at.is_empty() { key.clone() } else { format!("{at}.{key}") };
                compare(&at, expected, actual.get(key).unwrap_or(&Value::Null), found);
            }
        }
        (Value::Array(expected), Value::Array(actual)) => {
            for (i, (expected, actual)) in expected.iter().zip(actual).enumerate() {
                compare(&format!("{at}[{i}]"), expected, actual, found);
            }
            if expected.len() != actual.len() {
                found.push(format!(
                    "{at}: expected {} elements, got {}: {}",
                    expected.len(),
                    actual.len(),
                    short(actual)
                ));
            }
        }
        (expected, actual) if expected == actual => {}
        (expected, actual) => found.push(format!("{at}: expected {}, got {}", short(expected), short(actual))),
    }
}

/// JSON for a message: the whole of it unless it is long.
fn short(value: &(impl serde::Serialize + ?Sized)) -> String {
    const MOST: usize = 400;
    let text = serde_json::to_string(value).unwrap_or_default();
    match text.char_indices().nth(MOST) {
        Some((cut, _)) => format!("{}… ({} bytes)", &text[..cut], text.len()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_expectation_names_the_fields_that_matter() {
        for (expected, actual, count) in [
            (json!({"a": 1}), json!({"a": 1, "b": 2}), 0),
            (json!({"a": 1}), json!({"b": 2}), 1),
            (json!({"a": null}), json!({}), 0),
            (json!({"a": null}), json!({"a": 0}), 1),
            (json!([1, 2]), json!([1, 2]), 0),
            (json!([1, 2]), json!([1, 2, 3]), 1),
            (json!([]), json!([1]), 1),
            (json!({"arguments": {"x": 2}}), json!({"arguments": "{ \"x\": 2 }"}), 0),
            (json!({"arguments": {"x": 2}}), json!({"arguments": "{\"x\": 3}"}), 1),
            (json!("2"), json!("2"), 0),
            (json!("2"), json!(2), 1),
        ] {
            assert_eq!(differences(&expected, &actual).len(), count, "{expected} {actual}");
        }
    }

    #[test]
    fn a_difference_says_where_it_is() {
        let found = differences(&json!({"calls": [{"id": "a"}]}), &json!({"calls": [{"id": "b"}]}));
        assert_eq!(found, ["calls[0].id: expected \"a\", got \"b\""]);
    }
}

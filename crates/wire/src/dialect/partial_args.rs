//! Arguments that come as values at JSON paths, written as JSON text as they come.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::read::{Flag, Str, parse};

/// Writes one JSON object from values at paths (`$.recipe.steps[0]`) that come in the order of the document.
///
/// What cannot be appended any more gets the nearest thing that can, so that the text stays JSON: a value in an object or list that
/// was closed opens another one of the same key, and an element out of its order is appended.
#[derive(Debug, Default)]
pub(super) struct PartialArgs {
    /// The path of the last value. Every step of it stands in an open object or list.
    at: Vec<Step>,
    /// The last value is a string that is not closed.
    in_string: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Key(String),
    Element(u64),
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wire<'a> {
    #[serde(borrow)]
    json_path: Str<'a>,
    #[serde(borrow)]
    string_value: Str<'a>,
    #[serde(borrow)]
    number_value: Option<&'a RawValue>,
    #[serde(borrow)]
    bool_value: Option<&'a RawValue>,
    will_continue: Flag,
}

impl PartialArgs {
    const DEEPEST: usize = 64;

    /// Appends what this value adds to the text. `None` if it is none that can be written; nothing was appended then.
    pub(super) fn add(&mut self, raw: &RawValue, text: &mut String) -> Option<()> {
        let wire: Wire<'_> = parse(raw)?;
        let path = steps(wire.json_path.as_str())?;
        if self.in_string && path == self.at {
            text.push_str(&escaped(wire.string_value.as_str()));
        } else {
            self.go_to(path, text)?;
            match (wire.string_value.get(), wire.number_value.or(wire.bool_value)) {
                (Some(string), _) => {
                    text.push('"');
                    text.push_str(&escaped(string));
                    self.in_string = true;
                }
                (None, Some(value)) => text.push_str(value.get()),
                (None, None) => text.push_str("null"),
            }
        }
        if !wire.will_continue.0 {
            self.close_string(text);
        }
        Some(())
    }

    /// Appends what closes the object. Nothing if nothing was added.
    pub(super) fn end(&mut self, text: &mut String) {
        self.close_string(text);
        for step in self.at.drain(..).rev() {
            text.push(step.close());
        }
    }

    fn close_string(&mut self, text: &mut String) {
        if std::mem::take(&mut self.in_string) {
            text.push('"');
        }
    }

    /// Closes what the path leaves and opens what it enters.
    fn go_to(&mut self, path: Vec<Step>, text: &mut String) -> Option<()> {
        if !self.at.is_empty() {
            let most = self.at.len().min(path.len()) - 1;
            let mut shared = self.at.iter().zip(&path).take_while(|(old, new)| old == new).count().min(most);
            // The same place cannot be an object and a list.
            while self.at[shared].close() != path[shared].close() {
                shared = shared.checked_sub(1)?;
            }
            self.close_string(text);
            for step in self.at.drain(shared + 1..).rev() {
                text.push(step.close());
            }
            text.push(',');
            path[shared].write(text);
            for step in &path[shared + 1..] {
                step.open(text);
            }
        } else {
            for step in &path {
                step.open(text);
            }
        }
        self.at = path;
        Some(())
    }
}

impl Step {
    fn open(&self, text: &mut String) {
        text.push(if matches!(self, Step::Key(_)) { '{' } else { '[' });
        self.write(text);
    }

    fn write(&self, text: &mut String) {
        if let Step::Key(key) = self {
            text.push('"');
            text.push_str(&escaped(key));
            text.push_str("\":");
        }
    }

    fn close(&self) -> char {
        if matches!(self, Step::Key(_)) { '}' } else { ']' }
    }
}

/// The text of a JSON string without its quotes.
fn escaped(text: &str) -> String {
    let json = serde_json::to_string(text).unwrap_or_default();
    json.get(1..json.len().saturating_sub(1)).unwrap_or_default().to_owned()
}

/// The steps of a path: `.key`, `[0]`, `['key']`, `["key"]` after `$`. `None` if it has none, or too many, or is no such path.
fn steps(path: &str) -> Option<Vec<Step>> {
    let mut rest = path.strip_prefix('$')?;
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if steps.len() == PartialArgs::DEEPEST {
            return None;
        }
        if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[']).unwrap_or(after.len());
            steps.push(Step::Key(after[..end].to_owned()));
            rest = &after[end..];
        } else if let Some(quote) =
            rest.strip_prefix('[').and_then(|rest| rest.chars().next()).filter(|c| "'\"".contains(*c))
        {
            let mut key = String::new();
            let mut chars = rest[2..].char_indices();
            let end = loop {
                match chars.next()? {
                    (_, '\\') => key.push(chars.next()?.1),
                    (at, c) if c == quote => break at,
                    (_, c) => key.push(c),
                }
            };
            rest = rest[2 + end + 1..].strip_prefix(']')?;
            steps.push(Step::Key(key));
        } else {
            let (element, after) = rest.strip_prefix('[')?.split_once(']')?;
            steps.push(Step::Element(element.parse().ok()?));
            rest = after;
        }
    }
    // Arguments are an object.
    matches!(steps.first(), Some(Step::Key(_))).then_some(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(values: &[&str]) -> String {
        let mut args = PartialArgs::default();
        let mut text = String::new();
        for value in values {
            args.add(serde_json::from_str(value).unwrap(), &mut text).unwrap();
        }
        args.end(&mut text);
        let _: serde::de::IgnoredAny = serde_json::from_str(&text).unwrap();
        text
    }

    #[test]
    fn values_at_paths_become_one_object() {
        let cases: &[(&[&str], &str)] = &[
            (&[r#"{"jsonPath":"$.a","numberValue":1.50}"#], r#"{"a":1.50}"#),
            (
                &[
                    r#"{"jsonPath":"$.r.i[0].n","stringValue":"x\"","willContinue":true}"#,
                    r#"{"jsonPath":"$.r.i[0].n","stringValue":"\ny"}"#,
                    r#"{"jsonPath":"$.r.i[0].m","boolValue":true}"#,
                    r#"{"jsonPath":"$.r.i[1].n","nullValue":"NULL_VALUE"}"#,
                    r#"{"jsonPath":"$.r.t","stringValue":"z"}"#,
                    r#"{"jsonPath":"$.s[0]","numberValue":1}"#,
                    r#"{"jsonPath":"$.s[1]","numberValue":2}"#,
                ],
                r#"{"r":{"i":[{"n":"x\"\ny","m":true},{"n":null}],"t":"z"},"s":[1,2]}"#,
            ),
            // A string that is never closed.
            (&[r#"{"jsonPath":"$.a","stringValue":"x","willContinue":true}"#], r#"{"a":"x"}"#),
            (
                &[
                    r#"{"jsonPath":"$.a","stringValue":"x","willContinue":true}"#,
                    r#"{"jsonPath":"$.b[0][1]","stringValue":"y"}"#,
                ],
                r#"{"a":"x","b":[["y"]]}"#,
            ),
            (&[r#"{"jsonPath":"$['k.1'][\"l\\\"\"]","numberValue":1}"#], r#"{"k.1":{"l\"":1}}"#),
            (&[], ""),
        ];
        for (values, expected) in cases {
            let text = if values.is_empty() { String::new() } else { written(values) };
            assert_eq!(&text, expected);
        }
    }

    #[test]
    fn values_out_of_order_still_give_json() {
        for paths in [
            &["$.a.b", "$.c", "$.a.d"][..],
            &["$.a.b", "$.a"],
            &["$.a", "$.a.b"],
            &["$.a", "$.a"],
            &["$.a.b", "$.a[0]"],
            &["$.a[1]", "$.a[0]", "$.a.b.c[3]", "$.a[0][0]"],
        ] {
            let values: Vec<String> =
                paths.iter().map(|path| format!(r#"{{"jsonPath":"{path}","numberValue":1}}"#)).collect();
            written(&values.iter().map(String::as_str).collect::<Vec<_>>());
        }
    }

    #[test]
    fn what_is_no_path_of_an_object_is_refused() {
        let deep = format!("${}", ".a".repeat(65));
        for path in ["", "$", "a", "$[0]", "$.a[", "$.a[x]", "$.a['b", "$.a['b'", &deep] {
            assert_eq!(steps(path), None, "{path}");
        }
    }
}

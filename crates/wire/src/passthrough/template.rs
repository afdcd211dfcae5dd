//! Events made from events that went by: an event of a lane, cut down to what says which lane it is.

use crate::{
    json::{Edits, Entries, locate},
    output::Leaf,
};

use super::splice::{Value, splice};

/// An event of one lane without its text and without everything that is said only once: what text is written into when no event of its
/// own is there for it.
#[derive(Debug, Clone)]
pub(super) struct Template {
    /// The name of the event in its framing.
    pub(super) name: Option<Box<str>>,
    /// The event with empty text.
    pub(super) json: Box<str>,
    leaf: Leaf,
}

impl Template {
    /// Cuts down an event that has text at this leaf. Besides the text stays what `identity` lists: paths with `*` for the element of
    /// an array in which the text stands. `None` if there is no text at the leaf.
    pub(super) fn new(name: Option<&str>, json: &str, leaf: Leaf, identity: &[&str]) -> Option<Self> {
        let (_, place) = locate(json, &[leaf]).into_iter().next()?;
        let text = if json.get(place)?.starts_with('{') { "{}" } else { "\"\"" };
        let leaves: Vec<Vec<&str>> =
            leaf.path.split('|').map(|path| keys(leaf.prefix).chain(keys(path)).collect()).collect();
        let cut = Cut { json, index: &leaf.index, text };
        let json = cut.down(&leaves, identity);
        let leaf = Leaf { index: [0; 4], ..leaf };
        (!locate(&json, &[leaf]).is_empty()).then(|| Self { name: name.map(Into::into), json: json.into(), leaf })
    }

    /// The event with this text.
    pub(super) fn with(&self, text: &str) -> String {
        let mut edits = Edits::default();
        splice(&self.json, &[(self.leaf, Value::Text(text))], &mut edits);
        edits.apply(&self.json)
    }
}

/// Only what `identity` lists of an event.
pub(super) fn identity_of(json: &str, identity: &[&str]) -> String {
    Cut { json, index: &[], text: "" }.down(&[], identity)
}

fn keys(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|key| !key.is_empty())
}

struct Cut<'a> {
    json: &'a str,
    index: &'a [u16],
    text: &'static str,
}

impl Cut<'_> {
    fn down(&self, leaves: &[Vec<&str>], identity: &[&str]) -> String {
        let identity: Vec<Vec<&str>> = identity.iter().map(|path| keys(path).collect()).collect();
        let mut out = String::with_capacity(256);
        self.value(0, &slices(leaves), &slices(&identity), 0, &mut out);
        out
    }

    /// Writes what stays of the value at `at`; on the way there were `stars` arrays.
    fn value(&self, at: usize, leaves: &[&[&str]], identity: &[&[&str]], stars: usize, out: &mut String) {
        if leaves.iter().any(|path| path.is_empty()) {
            return out.push_str(self.text);
        }
        let entries = Entries::of(self.json, at);
        let is_object = entries.is_object();
        let (open, close) = if is_object { ('{', '}') } else { ('[', ']') };
        out.push(open);
        let mut first = true;
        for entry in entries {
            if !is_object && self.index.get(stars).is_some_and(|index| usize::from(*index) != entry.nth) {
                continue;
            }
            let here = |path: &&&[&str]| {
                path.first().is_some_and(|key| if is_object { entry.has_key(key) } else { *key == "*" })
            };
            let text: Vec<&[&str]> = leaves.iter().filter(here).map(|path| &path[1..]).collect();
            let kept: Vec<&[&str]> = identity.iter().filter(here).map(|path| &path[1..]).collect();
            if text.is_empty() && kept.is_empty() {
                continue;
            }
            if !std::mem::take(&mut first) {
                out.push(',');
            }
            if is_object {
                out.push('"');
                out.push_str(entry.key());
                out.push_str("\":");
            }
            if text.is_empty() && kept.iter().any(|path| path.is_empty()) {
                out.push_str(self.json.get(entry.value).unwrap_or("null"));
            } else {
                self.value(entry.value.start, &text, &kept, stars + usize::from(!is_object), out);
            }
        }
        out.push(close);
    }
}

fn slices<'a, 'b>(paths: &'a [Vec<&'b str>]) -> Vec<&'a [&'b str]> {
    paths.iter().map(Vec::as_slice).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, leaf: Leaf, identity: &[&str], expected: &str) {
        let template = Template::new(None, json, leaf, identity).expect("the text is there");
        assert_eq!(template.with("new"), expected);
    }

    // spec 2.8
    #[test]
    fn a_template_keeps_the_ids_and_drops_what_is_said_once() {
        check(
            r#"{"id":"c1","model":"m","choices":[{"index":0},{"index":1,"delta":{"role":"assistant","content":"old"},"logprobs":{"x":1}}],"usage":{"a":1}}"#,
            Leaf::new("choices/*/delta/content", [1, 0, 0, 0]),
            &["id", "model", "choices/*/index"],
            r#"{"id":"c1","model":"m","choices":[{"index":1,"delta":{"content":"new"}}]}"#,
        );
        check(
            r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":2,"id":"call","function":{"name":"f","arguments":"{"}}]}}]}"#,
            Leaf::new("choices/*/delta/tool_calls/*/function/arguments", [0; 4]),
            &["id", "choices/*/index", "choices/*/delta/tool_calls/*/index"],
            r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":2,"function":{"arguments":"new"}}]}}]}"#,
        );
    }

    #[test]
    fn all_places_of_a_text_are_in_its_template() {
        check(
            r#"{"choices":[{"index":0,"text":"a","delta":{"content":"a","token_id":7}}]}"#,
            Leaf::new("choices/*/delta/content|choices/*/text", [0; 4]),
            &["choices/*/index"],
            r#"{"choices":[{"index":0,"text":"new","delta":{"content":"new"}}]}"#,
        );
    }

    #[test]
    fn an_event_without_text_gives_no_template_but_an_identity() {
        let json = r#"{"id":"c1","choices":[{"index":0,"delta":{}}],"x":{"y":1,"z":2}}"#;
        assert!(Template::new(None, json, Leaf::new("choices/*/delta/content", [0; 4]), &["id"]).is_none());
        assert_eq!(identity_of(json, &["id", "x/z"]), r#"{"id":"c1","x":{"z":2}}"#);
        assert_eq!(identity_of("[DONE]", &["id"]), "[]");
    }
}

//! JSON as text: strings written, values found and changed where they stand, everything else left as it is.
//!
//! Nothing here builds a value. Input that is no JSON gives `None` or finds nothing; it never panics and never recurses deeper than the
//! path that is followed.

use std::{borrow::Cow, fmt, ops::Range};

use crate::output::Leaf;

/// A text as a JSON string, with quotes.
pub(crate) struct Quoted<'a>(pub(crate) &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"")?;
        let mut rest = self.0;
        while let Some(at) = rest.bytes().position(|byte| byte < 0x20 || byte == b'"' || byte == b'\\') {
            f.write_str(&rest[..at])?;
            match rest.as_bytes()[at] {
                b'"' => f.write_str("\\\"")?,
                b'\\' => f.write_str("\\\\")?,
                b'\n' => f.write_str("\\n")?,
                b'\r' => f.write_str("\\r")?,
                b'\t' => f.write_str("\\t")?,
                control => write!(f, "\\u{control:04x}")?,
            }
            rest = &rest[at + 1..];
        }
        f.write_str(rest)?;
        f.write_str("\"")
    }
}

/// The same JSON with `\\ufffd` for each half of a surrogate pair that stands alone: JavaScript reads those, and Rust has no text for them.
/// Every byte keeps its place.
pub(crate) fn mend(json: &str) -> Cow<'_, str> {
    let unit = |at: usize| {
        let escape = json.as_bytes().get(at..at + 6)?.strip_prefix(b"\\u")?;
        u16::from_str_radix(std::str::from_utf8(escape).ok()?, 16).ok()
    };
    let mut mended = Cow::Borrowed(json);
    let mut at = 0;
    while let Some(next) = json.as_bytes().get(at..).and_then(|rest| memchr::memchr(b'\\', rest)) {
        at += next;
        at += match (unit(at), unit(at + 6)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => {
                mended.to_mut().replace_range(at + 2..at + 6, "fffd");
                6
            }
            (Some(_), _) => 6,
            (None, _) => 2,
        };
    }
    mended
}

/// Where the white space that starts at `at` ends.
fn skip_space(json: &[u8], mut at: usize) -> usize {
    while matches!(json.get(at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
        at += 1;
    }
    at
}

/// Where the string that starts at `at` ends, past its last quote.
fn skip_string(json: &[u8], at: usize) -> Option<usize> {
    if json.get(at) != Some(&b'"') {
        return None;
    }
    let mut at = at + 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', json.get(at..)?)?;
        if json[at] == b'"' {
            return Some(at + 1);
        }
        at += 2;
    }
}

/// Where the value that starts at `at` ends.
fn skip_value(json: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    loop {
        match json.get(at)? {
            b'"' => at = skip_string(json, at)?,
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' => {
                depth = depth.checked_sub(1)?;
                at += 1;
            }
            _ if depth > 0 => at += 1,
            b',' | b':' => return None,
            _ => {
                let end = json[at..]
                    .iter()
                    .position(|byte| matches!(byte, b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t'));
                return Some(end.map_or(json.len(), |len| at + len));
            }
        }
        if depth == 0 {
            return Some(at);
        }
    }
}

/// A member of an object or an element of an array.
pub(crate) struct Entry<'a> {
    /// The key between its quotes, or empty in an array.
    key: &'a str,
    /// Which one it is, from 0.
    pub(crate) nth: usize,
    /// Where its value stands.
    pub(crate) value: Range<usize>,
}

impl Entry<'_> {
    /// Whether the key is this one, however it is escaped.
    pub(crate) fn has_key(&self, key: &str) -> bool {
        if !self.key.contains('\\') {
            return self.key == key;
        }
        serde_json::from_str::<String>(&format!("\"{}\"", self.key)).is_ok_and(|unescaped| unescaped == key)
    }

    /// The key as it is written, without its quotes.
    pub(crate) fn key(&self) -> &str {
        self.key
    }
}

/// Walks the entries of the object or array that starts at `at`. Ends early where the text is broken.
pub(crate) struct Entries<'a> {
    json: &'a str,
    at: usize,
    nth: usize,
    is_object: bool,
}

impl<'a> Entries<'a> {
    pub(crate) fn of(json: &'a str, at: usize) -> Self {
        let at = skip_space(json.as_bytes(), at);
        let (is_object, at) = match json.as_bytes().get(at) {
            Some(b'{') => (true, at + 1),
            Some(b'[') => (false, at + 1),
            _ => (false, json.len()),
        };
        Self { json, at, nth: 0, is_object }
    }

    pub(crate) fn is_object(&self) -> bool {
        self.is_object
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        let json = self.json.as_bytes();
        let mut at = skip_space(json, self.at);
        self.at = json.len();
        if self.nth > 0 {
            if json.get(at) != Some(&b',') {
                return None;
            }
            at = skip_space(json, at + 1);
        }
        let mut key = "";
        if self.is_object {
            let end = skip_string(json, at)?;
            key = self.json.get(at + 1..end - 1)?;
            at = skip_space(json, end);
            if json.get(at) != Some(&b':') {
                return None;
            }
            at = skip_space(json, at + 1);
        }
        let end = skip_value(json, at)?;
        self.at = end;
        let entry = Entry { key, nth: self.nth, value: at..end };
        self.nth += 1;
        Some(entry)
    }
}

/// A place that is looked for: the rest of its path, and which element each `*` of it means.
#[derive(Debug, Clone)]
struct Target<'a> {
    path: Vec<&'a str>,
    index: &'a [u16],
    id: usize,
}

/// Where the values stand that these leaves name, with the position of the leaf in the list. A leaf with alternatives can be found more
/// than once, and so can a key that an object has twice. In the order of the text.
///
/// One walk over the text, whatever the number of leaves.
pub(crate) fn locate(json: &str, leaves: &[Leaf]) -> Vec<(usize, Range<usize>)> {
    let targets = leaves.iter().enumerate().filter(|(_, leaf)| !leaf.path.is_empty()).flat_map(|(id, leaf)| {
        let prefix = leaf.prefix.split('/').filter(|key| !key.is_empty());
        leaf.path.split('|').map(move |path| Target {
            path: prefix.clone().chain(path.split('/')).collect(),
            index: &leaf.index,
            id,
        })
    });
    let mut found = Vec::new();
    follow(json, skip_space(json.as_bytes(), 0), &targets.collect::<Vec<_>>(), 0, &mut found);
    found
}

fn follow(json: &str, at: usize, targets: &[Target<'_>], depth: usize, found: &mut Vec<(usize, Range<usize>)>) {
    let (here, mut deeper): (Vec<_>, Vec<_>) = targets.iter().cloned().partition(|target| target.path.len() == depth);
    if !here.is_empty()
        && let Some(end) = skip_value(json.as_bytes(), at)
    {
        found.extend(here.into_iter().map(|target| (target.id, at..end)));
    }
    if deeper.is_empty() {
        return;
    }
    let entries = Entries::of(json, at);
    if entries.is_object() {
        for entry in entries {
            let matching: Vec<_> = deeper.iter().filter(|target| entry.has_key(target.path[depth])).cloned().collect();
            if !matching.is_empty() {
                follow(json, entry.value.start, &matching, depth + 1, found);
            }
        }
    } else {
        deeper.retain(|target| target.path[depth] == "*" && !target.index.is_empty());
        deeper.sort_by_key(|target| target.index[0]);
        let mut rest = &deeper[..];
        for entry in entries {
            let until = rest.partition_point(|target| usize::from(target.index[0]) <= entry.nth);
            let (matching, later) = rest.split_at(until);
            if !matching.is_empty() {
                let matching: Vec<_> =
                    matching.iter().map(|target| Target { index: &target.index[1..], ..target.clone() }).collect();
                follow(json, entry.value.start, &matching, depth + 1, found);
            }
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
    }
}

/// Where members of these names stand in the objects around the value that this leaf names.
pub(crate) fn beside(json: &str, leaf: &Leaf, names: &[&str]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for path in leaf.path.split('|') {
        let keys: Vec<&str> = leaf.prefix.split('/').chain(path.split('/')).filter(|key| !key.is_empty()).collect();
        let mut around = vec![(whole(json).start, &leaf.index[..])];
        for key in keys {
            let mut deeper = Vec::new();
            for (at, index) in around {
                let entries = Entries::of(json, at);
                let is_object = entries.is_object();
                for entry in entries {
                    if is_object && entry.has_key(key) {
                        deeper.push((entry.value.start, index));
                    } else if is_object && names.iter().any(|name| entry.has_key(name)) {
                        found.push(entry.value);
                    } else if !is_object
                        && key == "*"
                        && index.first().is_some_and(|nth| usize::from(*nth) == entry.nth)
                    {
                        deeper.push((entry.value.start, &index[1..]));
                    }
                }
            }
            around = deeper;
        }
    }
    found
}

/// Where the value of this path of keys stands. `#` is every element of an array; of a key that stands twice, both are found.
pub(crate) fn find(json: &str, path: &str) -> Vec<Range<usize>> {
    let mut found = vec![whole(json)];
    for key in path.split('/').filter(|key| !key.is_empty()) {
        found = found
            .into_iter()
            .flat_map(|range| {
                let entries = Entries::of(json, range.start);
                let is_object = entries.is_object();
                entries.filter(move |entry| if is_object { entry.has_key(key) } else { key == "#" })
            })
            .map(|entry| entry.value)
            .collect();
    }
    found
}

/// The string that stands at this path.
pub(crate) fn string_at(json: &str, path: &str) -> Option<String> {
    let range = find(json, path).pop()?;
    serde_json::from_str(json.get(range)?).ok()
}

/// The number that stands at this path.
pub(crate) fn number_at(json: &str, path: &str) -> Option<u64> {
    let range = find(json, path).pop()?;
    json.get(range)?.parse().ok()
}

fn whole(json: &str) -> Range<usize> {
    let start = skip_space(json.as_bytes(), 0);
    start..json.trim_end().len().max(start)
}

/// Changes of a text, to be made all at once.
#[derive(Debug, Default)]
pub(crate) struct Edits(Vec<(Range<usize>, String)>);

impl Edits {
    /// Writes this in place of the range. Of two changes that overlap the first one counts.
    pub(crate) fn replace(&mut self, range: Range<usize>, with: impl fmt::Display) {
        self.0.push((range, with.to_string()));
    }

    /// Takes over the changes of a part of the text that begins at `at`.
    pub(crate) fn extend_from(&mut self, part: Edits, at: usize) {
        self.0.extend(part.0.into_iter().map(|(range, with)| (range.start + at..range.end + at, with)));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text with the changes.
    pub(crate) fn apply(mut self, text: &str) -> String {
        self.0.sort_by_key(|(range, _)| range.start);
        let mut out = String::with_capacity(text.len() + self.0.iter().map(|(_, with)| with.len()).sum::<usize>());
        let mut at = 0;
        for (range, with) in self.0 {
            if range.start < at {
                continue;
            }
            out.push_str(text.get(at..range.start).unwrap_or_default());
            out.push_str(&with);
            at = range.end;
        }
        out.push_str(text.get(at..).unwrap_or_default());
        out
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(json: &str, path: &'static str, index: [u16; 4], expected: &[&str]) {
        let found: Vec<_> =
            locate(json, &[Leaf::new(path, index)]).into_iter().map(|(_, range)| &json[range]).collect();
        assert_eq!(found, expected, "{path} in {json}");
    }

    // spec 2.10
    #[test]
    fn half_a_surrogate_pair_is_mended_in_its_place() {
        for (json, expected) in [
            (r#"{"a":"x"}"#, r#"{"a":"x"}"#),
            (r#""\ud83d\ude00 \u00e4 \n""#, r#""\ud83d\ude00 \u00e4 \n""#),
            (r#""a\ud83d""#, r#""a\ufffd""#),
            (r#""\uDE00b""#, r#""\ufffdb""#),
            (r#""\ud800\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#),
            (r#""\ud83d\n""#, r#""\ufffd\n""#),
            // The backslash is the text, or the escape is none.
            (r#""\\ud83d""#, r#""\\ud83d""#),
            (r#""\ud8+1""#, r#""\ud8+1""#),
            (r#""\ud83""#, r#""\ud83""#),
            ("\"\\ud8\u{20ac}\"", "\"\\ud8\u{20ac}\""),
            ("\\", "\\"),
        ] {
            assert_eq!(mend(json), expected);
        }
    }

    #[test]
    fn what_stands_beside_a_leaf_is_found_in_every_object_around_it() {
        let check = |json: &str, leaf: Leaf, expected: &[&str]| {
            let found: Vec<_> = beside(json, &leaf, &["x", "y"]).into_iter().map(|range| &json[range]).collect();
            assert_eq!(found, expected, "{json}");
        };
        let chat = r#"{"x":1,"c":[{"x":2},{"d":{"t":"a","\u0079":[3]},"x":4}],"z":{"x":5}}"#;
        check(chat, Leaf::new("c/*/d/t", [1, 0, 0, 0]), &["1", "4", "[3]"]);
        check(chat, Leaf::new("c/*/d/t", [7, 0, 0, 0]), &["1"]);
        check(r#"{"x":{"t":1},"y":2}"#, Leaf::new("x/t", [0; 4]), &["2"]);
        check(r#"{"d":{"x":1,"t":"#, Leaf::new("d/t", [0; 4]), &[]);
        check("[", Leaf::new("d/t", [0; 4]), &[]);
    }

    #[test]
    fn a_leaf_is_found_by_its_path() {
        let chat = r#" {"id":"x","choices": [{"a":"]}"}, {"delta":{"content" : "h\"i" }}]}"#;
        check(chat, "id", [0; 4], &[r#""x""#]);
        check(chat, "choices/*/delta/content", [1, 0, 0, 0], &[r#""h\"i""#]);
        check(chat, "choices/*/delta/content", [0; 4], &[]);
        check(chat, "choices/*/delta/content", [7, 0, 0, 0], &[]);
        check(chat, "nothing|id", [0; 4], &[r#""x""#]);
        check(chat, "", [0; 4], &[]);
        check(r#"[[1,2],[3,[4, {"a":{}}]]]"#, "*/*/*/a", [1, 1, 1, 0], &["{}"]);
        check(r#"{"a":-1.5e3 ,"b":true}"#, "a|b", [0; 4], &["-1.5e3", "true"]);
    }

    #[test]
    fn a_key_that_stands_twice_or_is_escaped_is_found() {
        check(r#"{"text":"a","text":"b"}"#, "text", [0; 4], &[r#""a""#, r#""b""#]);
        check(r#"{"te\u0078t":"a"}"#, "text", [0; 4], &[r#""a""#]);
    }

    #[test]
    fn many_leaves_are_found_in_one_walk() {
        let json = r#"{"output":[{"content":[{"text":"a"},{"text":"b"}]},{"content":[{"text":"c"}]}]}"#;
        let leaves = [[0, 1], [1, 0], [0, 0]].map(|[a, b]| Leaf::new("output/*/content/*/text", [a, b, 0, 0]));
        let found: Vec<_> = locate(json, &leaves).into_iter().map(|(id, range)| (id, &json[range])).collect();
        assert_eq!(found, [(2, "\"a\""), (0, "\"b\""), (1, "\"c\"")]);
    }

    #[test]
    fn a_prefix_stands_before_every_alternative() {
        let leaf = Leaf { prefix: "event/", ..Leaf::new("a|b", [0; 4]) };
        let json = r#"{"a":1,"event":{"b":2,"a":3}}"#;
        let found: Vec<_> = locate(json, &[leaf]).into_iter().map(|(_, range)| &json[range]).collect();
        assert_eq!(found, ["2", "3"]);
    }

    #[test]
    fn every_element_is_found_by_a_number_sign() {
        let json = r#"{"choices":[{"index":3},{"index":4}]}"#;
        let found: Vec<_> = find(json, "choices/#/index").into_iter().map(|range| &json[range]).collect();
        assert_eq!(found, ["3", "4"]);
        assert_eq!(number_at(json, "choices/#/index"), Some(4));
        assert_eq!(string_at(r#"{"a":{"b":"\u0041"}}"#, "a/b").as_deref(), Some("A"));
    }

    #[test]
    fn changes_leave_all_other_bytes() {
        let mut edits = Edits::default();
        edits.replace(5..6, "two");
        edits.replace(1..2, Quoted("a\"\n\u{1}é"));
        edits.replace(1..3, "overlaps");
        assert_eq!(edits.apply("[1 , 2]"), r#"["a\"\n\u0001é" , two]"#);
    }

    proptest! {
        #[test]
        fn a_quoted_text_is_read_back(text in any::<String>()) {
            prop_assert_eq!(serde_json::from_str::<String>(&Quoted(&text).to_string()).unwrap(), text);
        }

        #[test]
        fn no_text_makes_the_walk_panic(json in "[\\[\\]{}\":,\\\\a1 é]{0,40}", path in "(a|1|\\*)(/(a|1|\\*)){0,3}") {
            let path: &'static str = Box::leak(path.into_boxed_str());
            for (_, range) in locate(&json, &[Leaf::new(path, [0; 4])]) {
                prop_assert!(json.get(range).is_some());
            }
            for range in find(&json, path) {
                prop_assert!(json.get(range).is_some());
            }
        }
    }
}

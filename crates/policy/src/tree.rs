//! A file as a tree of values that knows where each of them stands, whatever the format.

use std::{fmt, ops::Range};

use serde::{
    Deserializer as _,
    de::{Error as _, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Value, value::RawValue};
use toml::de::{DeTable, DeValue};

/// How deep JSON may be nested. The TOML parser has a limit of its own, 80.
const MAX_DEPTH: usize = 64;

/// A value and its place in the text, in bytes.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) span: Range<usize>,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Leaf(Value),
    List(Vec<Node>),
    Table(Vec<Member>),
}

#[derive(Debug)]
struct Member {
    key: String,
    key_span: Range<usize>,
    value: Node,
}

/// A text that is not in its format, and where it is not.
#[derive(Debug)]
pub(crate) struct Malformed {
    pub(crate) at: usize,
    pub(crate) message: String,
}

impl Node {
    pub(crate) fn from_toml(text: &str) -> Result<Self, Malformed> {
        let table = DeTable::parse(text).map_err(|error| Malformed {
            at: error.span().map_or(0, |span| span.start),
            message: error.message().to_owned(),
        })?;
        let span = table.span();
        Ok(Self { span, content: toml_table(table.get_ref()) })
    }

    pub(crate) fn from_json(text: &str) -> Result<Self, Malformed> {
        let raw: &RawValue = serde_json::from_str(text).map_err(|error| malformed(text, 0, &error))?;
        json(text, raw, MAX_DEPTH)
    }

    /// The value without places. Tables are ordered by key, whatever features of `serde_json` are on.
    pub(crate) fn value(&self) -> Value {
        match &self.content {
            Content::Leaf(value) => value.clone(),
            Content::List(nodes) => nodes.iter().map(Self::value).collect(),
            Content::Table(members) => {
                let mut members: Vec<_> = members.iter().collect();
                members.sort_unstable_by(|one, other| one.key.cmp(&other.key));
                members.into_iter().map(|member| (member.key.clone(), member.value.value())).collect()
            }
        }
    }

    /// The values of a list; none if it is no list.
    pub(crate) fn list(&self) -> &[Node] {
        if let Content::List(nodes) = &self.content { nodes } else { &[] }
    }

    pub(crate) fn is_table(&self) -> bool {
        matches!(self.content, Content::Table(_))
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.member(key).map(|member| &member.value)
    }

    /// Where a key of this table stands, or a value of this list.
    pub(crate) fn key_span(&self, key: &str) -> Option<Range<usize>> {
        self.member(key).map(|member| member.key_span.clone())
    }

    fn member(&self, key: &str) -> Option<&Member> {
        let Content::Table(members) = &self.content else { return None };
        members.iter().find(|member| member.key == key)
    }
}

fn toml_table(table: &DeTable<'_>) -> Content {
    let member = |(key, value): (&toml::Spanned<toml::de::DeString<'_>>, &toml::Spanned<DeValue<'_>>)| Member {
        key: key.get_ref().to_string(),
        key_span: key.span(),
        value: Node { span: value.span(), content: toml_value(value.get_ref()) },
    };
    Content::Table(table.iter().map(member).collect())
}

fn toml_value(value: &DeValue<'_>) -> Content {
    match value {
        DeValue::String(text) => Content::Leaf(text.as_ref().into()),
        // A number that is too large stays a text, which no option takes.
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => Content::Leaf(number.into()),
            Err(_) => Content::Leaf(number.as_str().into()),
        },
        DeValue::Float(number) => Content::Leaf(number.as_str().parse::<f64>().map_or(Value::Null, Value::from)),
        DeValue::Boolean(value) => Content::Leaf((*value).into()),
        DeValue::Datetime(time) => Content::Leaf(time.to_string().into()),
        DeValue::Array(values) => {
            let node =
                |value: &toml::Spanned<DeValue<'_>>| Node { span: value.span(), content: toml_value(value.get_ref()) };
            Content::List(values.iter().map(node).collect())
        }
        DeValue::Table(table) => toml_table(table),
    }
}

/// Where a part of a text begins in it.
fn place(text: &str, part: &str) -> usize {
    (part.as_ptr() as usize).saturating_sub(text.as_ptr() as usize).min(text.len())
}

fn malformed(text: &str, from: usize, error: &serde_json::Error) -> Malformed {
    let before = text[from..].split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum::<usize>();
    let message = error.to_string();
    let message = message.rsplit_once(" at line ").map_or(message.as_str(), |(message, _)| message).to_owned();
    Malformed { at: (from + before + error.column().saturating_sub(1)).min(text.len()), message }
}

fn json(text: &str, raw: &RawValue, depth: usize) -> Result<Node, Malformed> {
    let from = place(text, raw.get());
    let Some(depth) = depth.checked_sub(1) else {
        return Err(Malformed { at: from, message: format!("values are nested deeper than {MAX_DEPTH}") });
    };
    let span = from..from + raw.get().len();
    let mut parser = serde_json::Deserializer::from_str(raw.get());
    let content = match raw.get().as_bytes().first() {
        Some(b'{') => {
            let members = parser.deserialize_map(Members).map_err(|error| malformed(text, from, &error))?;
            let mut nodes = Vec::with_capacity(members.len());
            for (key, raw) in members {
                let value = json(text, raw, depth)?;
                // The key stands right before its value.
                let written = Value::from(key.as_str()).to_string();
                let start = text[from..value.span.start].rfind(&written).map_or(value.span.start, |at| from + at);
                nodes.push(Member { key, key_span: start..start + written.len(), value });
            }
            Content::Table(nodes)
        }
        Some(b'[') => {
            let values = parser.deserialize_seq(Elements).map_err(|error| malformed(text, from, &error))?;
            Content::List(values.into_iter().map(|raw| json(text, raw, depth)).collect::<Result<_, _>>()?)
        }
        _ => Content::Leaf(serde_json::from_str(raw.get()).map_err(|error| malformed(text, from, &error))?),
    };
    Ok(Node { span, content })
}

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Vec<(String, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Self::Value::new();
        while let Some(key) = map.next_key::<String>()? {
            if members.iter().any(|(known, _)| *known == key) {
                return Err(A::Error::custom(format_args!("duplicate key `{key}`")));
            }
            members.push((key, map.next_value()?));
        }
        Ok(members)
    }
}

struct Elements;

impl<'de> Visitor<'de> for Elements {
    type Value = Vec<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = seq.next_element()? {
            values.push(value);
        }
        Ok(values)
    }
}

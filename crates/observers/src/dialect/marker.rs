//! What stands at one place of a text: a tool call in one of its dialects, a tag around thoughts, a control token, or nothing of these.

use std::borrow::Cow;

use serde::{Deserialize, de::IgnoredAny};
use serde_json::value::RawValue;
use streamkeeper_contract::Text;

use super::{
    Dialect, Rules,
    object::{Found, ObjectScan},
};

/// What begins at a place.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing, whatever follows.
    Nothing,
    /// It depends on what follows.
    More,
    /// This, in so many bytes.
    Marker(usize, Marker),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Marker {
    Token,
    ThoughtStart,
    ThoughtEnd,
    Call { name: Text, arguments: Text },
}

/// Where a place is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) in_thought: bool,
    pub(super) starts_line: bool,
    /// Text that is no answer has no calls and no tags.
    pub(super) is_answer: bool,
    pub(super) more_may_come: bool,
}

/// A call whose beginning was read, and that is in its object.
#[derive(Debug, Clone)]
pub(super) struct OpenCall {
    form: Form,
    /// Stated before the object, or in it.
    name: Option<Text>,
    /// Where the object begins.
    body: usize,
    scan: ObjectScan,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// `<tool name="…">{…}</tool>`
    Named,
    /// `{0:"…",1:{…}}`
    Tuple,
    /// `<tool_call>{"name":…,"arguments":{…}}</tool_call>`
    Tagged,
    /// The same between fences.
    Fenced,
}

impl Form {
    const ALL: [Self; 4] = [Self::Named, Self::Tuple, Self::Tagged, Self::Fenced];

    fn dialect(self) -> Dialect {
        match self {
            Self::Named => Dialect::ToolTag,
            Self::Tuple => Dialect::Tuple,
            Self::Tagged => Dialect::ToolCallTag,
            Self::Fenced => Dialect::FencedJson,
        }
    }

    fn end(self) -> &'static str {
        match self {
            Self::Named => "</tool>",
            Self::Tuple => "}",
            Self::Tagged => "</tool_call>",
            Self::Fenced => "```",
        }
    }
}

const THOUGHT_STARTS: [&str; 2] = ["<think>", "<thinking>"];
const THOUGHT_ENDS: [&str; 2] = ["</think>", "</thinking>"];
/// What a fence may be labelled.
const LABELS: [&str; 6] = ["", "json", "tool", "tool_call", "tool_code", "tool_use"];
/// What the object of a call may begin with; an object that begins otherwise is no call, and is not held.
const MEMBERS: [&str; 11] =
    ["name", "tool", "tool_name", "function", "arguments", "parameters", "args", "input", "id", "type", "call_id"];
const MAX_NAME: usize = 128;
const MAX_SPACE: usize = 64;
const MAX_LABEL: usize = 32;

/// Bytes that something may begin with.
pub(super) fn may_begin_with(byte: u8, rules: &Rules) -> bool {
    matches!(byte, b'<' | b'{' | b'`') || rules.tokens.may_begin_with(byte)
}

/// Reads what stands at the beginning of a text. A call that is begun here is left in `open`, and the next time only what is new is read.
pub(super) fn read(text: &str, place: Place, open: &mut Option<OpenCall>, rules: &Rules) -> Step {
    let step = match open {
        Some(call) => go_on(text, call, rules),
        None => begin(text, place, open, rules),
    };
    match step {
        Step::More if place.more_may_come => Step::More,
        Step::Marker(..) => step,
        Step::More | Step::Nothing => {
            *open = None;
            Step::Nothing
        }
    }
}

fn begin(text: &str, place: Place, open: &mut Option<OpenCall>, rules: &Rules) -> Step {
    let mut more = false;
    match rules.tokens.at_start(text, place.more_may_come) {
        Ok(Some(len)) => return Step::Marker(len, Marker::Token),
        Ok(None) => {}
        Err(_) => more = true,
    }
    if !place.is_answer {
        return if more { Step::More } else { Step::Nothing };
    }
    if rules.has(Dialect::Think) {
        let (tags, marker) =
            if place.in_thought { (THOUGHT_ENDS, Marker::ThoughtEnd) } else { (THOUGHT_STARTS, Marker::ThoughtStart) };
        for tag in tags {
            match Cursor::new(text).literal(tag) {
                Ok(()) => return Step::Marker(tag.len(), marker),
                Err(Stop::More) => more = true,
                Err(Stop::Nothing) => {}
            }
        }
    }
    if !place.in_thought {
        for form in Form::ALL.into_iter().filter(|form| rules.has(form.dialect())) {
            match head(text, form, place.starts_line, rules) {
                Ok(Head { name: Some(name), body: Err(len) }) => {
                    return Step::Marker(len, Marker::Call { name, arguments: "{}".into() });
                }
                Ok(Head { name, body }) => {
                    let (Ok(body) | Err(body)) = body;
                    let call = open.insert(OpenCall { form, name, body, scan: ObjectScan::new() });
                    return go_on(text, call, rules);
                }
                Err(Stop::More) => more = true,
                Err(Stop::Nothing) => {}
            }
        }
    }
    if more { Step::More } else { Step::Nothing }
}

/// Reads on in the object of a call, and what closes it.
fn go_on(text: &str, call: &mut OpenCall, rules: &Rules) -> Step {
    let more = if text.len() > rules.max_call { Step::Nothing } else { Step::More };
    let end = match call.scan.read(&text[call.body..]) {
        Found::More => return more,
        Found::None => return Step::Nothing,
        Found::Whole(len) => call.body + len,
    };
    let mut rest = Cursor { text, at: end };
    if let Err(stop) = rest.space().and_then(|()| rest.literal(call.form.end())) {
        return if stop == Stop::More { more } else { Step::Nothing };
    }
    let object = &text[call.body..end];
    let made = match &call.name {
        Some(name) => serde_json::from_str::<IgnoredAny>(object).is_ok().then(|| (name.clone(), object.into())),
        None => read_call(object, call.form == Form::Fenced).filter(|(name, _)| rules.knows(name)),
    };
    match made {
        Some((name, arguments)) if rest.at <= rules.max_call => Step::Marker(rest.at, Marker::Call { name, arguments }),
        _ => Step::Nothing,
    }
}

/// What stands before the object of a call.
struct Head {
    name: Option<Text>,
    /// Where the object begins, or where a call without one ends.
    body: Result<usize, usize>,
}

fn head(text: &str, form: Form, starts_line: bool, rules: &Rules) -> Result<Head, Stop> {
    let mut at = Cursor::new(text);
    let mut name = None;
    match form {
        Form::Named => {
            at.literal("<tool")?;
            at.some_space()?;
            at.literal("name")?;
            at.spaced("=")?;
            name = Some(at.quoted()?);
            at.spaced(">")?;
            if at.peek()? == b'<' {
                at.literal("</tool>")?;
                let name = name.filter(|name| rules.knows(name)).map(Text::from).ok_or(Stop::Nothing)?;
                return Ok(Head { name: Some(name), body: Err(at.at) });
            }
        }
        Form::Tuple => {
            at.literal("{")?;
            at.space()?;
            at.key(b'0')?;
            at.spaced(":")?;
            name = Some(at.quoted()?);
            at.spaced(",")?;
            at.key(b'1')?;
            at.spaced(":")?;
        }
        Form::Tagged => {
            at.literal("<tool_call>")?;
            at.space()?;
        }
        Form::Fenced => {
            if !starts_line {
                return Err(Stop::Nothing);
            }
            at.literal("```")?;
            let label = at.line()?;
            if !LABELS.iter().any(|known| known.eq_ignore_ascii_case(label)) {
                return Err(Stop::Nothing);
            }
            at.space()?;
        }
    }
    let body = at.at;
    at.literal("{")?;
    if form == Form::Fenced {
        at.space()?;
        if at.peek()? != b'"' {
            return Err(Stop::Nothing);
        }
        if !MEMBERS.contains(&at.quoted()?) {
            return Err(Stop::Nothing);
        }
    }
    match name {
        Some(name) if !rules.knows(name) => Err(Stop::Nothing),
        name => Ok(Head { name: name.map(Text::from), body: Ok(body) }),
    }
}

/// The object of a call that states its name. Members that a call does not have make it something else.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallObject<'a> {
    #[serde(borrow, default, alias = "tool", alias = "tool_name")]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, default, alias = "parameters", alias = "args", alias = "input")]
    arguments: Option<&'a RawValue>,
    /// The name, or an object with name and arguments.
    #[serde(borrow, default)]
    function: Option<&'a RawValue>,
    #[serde(default, rename = "type")]
    _kind: IgnoredAny,
    #[serde(default, rename = "id", alias = "call_id")]
    _id: IgnoredAny,
}

fn read_call(object: &str, needs_arguments: bool) -> Option<(Text, Text)> {
    let mut call: CallObject<'_> = serde_json::from_str(object).ok()?;
    if let Some(function) = call.function {
        if call.name.is_some() {
            return None;
        }
        if function.get().starts_with('{') {
            if call.arguments.is_some() {
                return None;
            }
            call = serde_json::from_str(function.get()).ok()?;
            if call.function.is_some() {
                return None;
            }
        } else {
            call.name = Some(serde_json::from_str(function.get()).ok()?);
        }
    }
    let name = call.name.filter(|name| (1..=MAX_NAME).contains(&name.len()))?;
    let arguments = match call.arguments.map(RawValue::get) {
        None if needs_arguments => return None,
        None => Text::from_static("{}"),
        Some(object) if object.starts_with('{') => object.into(),
        // Some models write the arguments as a text in which they are JSON.
        Some(text) => {
            let text: String = serde_json::from_str(text).ok()?;
            let is_object = text.trim_start().starts_with('{') && serde_json::from_str::<IgnoredAny>(&text).is_ok();
            is_object.then(|| Text::from(text.trim()))?
        }
    };
    Some((name.into_owned().into(), arguments))
}

/// Why a cursor goes no further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    Nothing,
    /// The text ends here, and all was well so far.
    More,
}

/// A place in a text of which the rest may not have come yet.
struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    fn rest(&self) -> &'a [u8] {
        &self.text.as_bytes()[self.at..]
    }

    fn peek(&self) -> Result<u8, Stop> {
        self.rest().first().copied().ok_or(Stop::More)
    }

    fn literal(&mut self, literal: &str) -> Result<(), Stop> {
        let (rest, literal) = (self.rest(), literal.as_bytes());
        if rest.starts_with(literal) {
            self.at += literal.len();
            Ok(())
        } else if literal.starts_with(rest) {
            Err(Stop::More)
        } else {
            Err(Stop::Nothing)
        }
    }

    /// White space, if there is any.
    fn space(&mut self) -> Result<(), Stop> {
        let len = self.rest().iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        self.at += len;
        if len > MAX_SPACE { Err(Stop::Nothing) } else { Ok(()) }
    }

    fn some_space(&mut self) -> Result<(), Stop> {
        if !self.peek()?.is_ascii_whitespace() {
            return Err(Stop::Nothing);
        }
        self.space()
    }

    /// With white space around it.
    fn spaced(&mut self, literal: &str) -> Result<(), Stop> {
        self.space()?;
        self.literal(literal)?;
        self.space()
    }

    /// A number as key, quoted or not.
    fn key(&mut self, digit: u8) -> Result<(), Stop> {
        let quote = Some(self.peek()?).filter(|byte| matches!(byte, b'"' | b'\''));
        for expected in quote.into_iter().chain([digit]).chain(quote) {
            if self.peek()? != expected {
                return Err(Stop::Nothing);
            }
            self.at += 1;
        }
        Ok(())
    }

    /// A name in quotes of either kind, without escapes.
    fn quoted(&mut self) -> Result<&'a str, Stop> {
        let quote = self.peek()?;
        if !matches!(quote, b'"' | b'\'') {
            return Err(Stop::Nothing);
        }
        let rest = &self.rest()[1..];
        let len = rest.iter().position(|&byte| byte == quote || byte == b'\\' || byte < b' ').unwrap_or(rest.len());
        if len > MAX_NAME {
            return Err(Stop::Nothing);
        }
        match rest.get(len) {
            None => Err(Stop::More),
            Some(&end) if end == quote && len > 0 => {
                let name = &self.text[self.at + 1..self.at + 1 + len];
                self.at += len + 2;
                Ok(name)
            }
            Some(_) => Err(Stop::Nothing),
        }
    }

    /// The rest of the line, without white space around it.
    fn line(&mut self) -> Result<&'a str, Stop> {
        let rest = self.rest();
        let len = rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
        if len > MAX_LABEL {
            return Err(Stop::Nothing);
        }
        let line = self.text[self.at..self.at + len].trim();
        // A label that is none already need not be waited for.
        if !LABELS.iter().any(|known| known.len() >= line.len() && known[..line.len()].eq_ignore_ascii_case(line)) {
            return Err(Stop::Nothing);
        }
        if len == rest.len() {
            return Err(Stop::More);
        }
        self.at += len + 1;
        Ok(line)
    }
}

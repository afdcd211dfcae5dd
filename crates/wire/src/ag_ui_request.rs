//! Requests to run an AG-UI agent: `RunAgentInput`, read with a reason for each thing that is wrong.
//!
//! Names of fields are those of the protocol; servers and clients written by hand that spell them in snake case are understood too.
//! What this version does not know is kept as it was written.
//!
//! ```
//! use streamkeeper_wire::ag_ui_request::{Content, MessageBody, RunAgentInput};
//!
//! let body = br#"{"threadId":"t","runId":"r","messages":[{"id":"m","role":"user","content":"Hi"}],"tools":[],"context":[]}"#;
//! let input = RunAgentInput::from_slice(body)?;
//! assert_eq!(input.messages[0].body, MessageBody::User { content: Content::Text("Hi".into()) });
//!
//! let error = RunAgentInput::from_slice(br#"{"threadId":"t","runId":"r","messages":[{"role":"user"}]}"#).unwrap_err();
//! assert_eq!(error.to_string(), "messages[0].id: the field is missing");
//! # Ok::<_, streamkeeper_wire::ag_ui_request::RequestError>(())
//! ```

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;
use streamkeeper_contract::{Extra, Json, Text};

/// A request to run an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct RunAgentInput {
    /// The conversation.
    pub thread_id: Text,
    /// The run that is asked for.
    pub run_id: Text,
    /// The run that this one belongs to.
    pub parent_run_id: Option<Text>,
    /// The state of the agent.
    pub state: Option<Json>,
    /// The conversation so far.
    pub messages: Vec<Message>,
    /// The tools of the client.
    pub tools: Vec<Tool>,
    /// What the agent should know beside the conversation.
    pub context: Vec<ContextItem>,
    /// What the client hands on to the agent's own code.
    pub forwarded_props: Option<Json>,
    /// Answers to the interrupts of an earlier run.
    pub resume: Vec<ResumeEntry>,
    /// Fields that this version does not know.
    pub extra: Extra,
}

/// A message of the conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Its id.
    pub id: Text,
    /// Who is named as its author, beside the role.
    pub name: Option<Text>,
    /// What it says, by role.
    pub body: MessageBody,
    /// Fields that this version does not know.
    pub extra: Extra,
}

/// What a message says.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum MessageBody {
    /// Instructions of the application's developer.
    Developer {
        /// The text.
        content: Text,
    },
    /// Instructions of the system.
    System {
        /// The text.
        content: Text,
    },
    /// What the person says.
    User {
        /// Text, or text and media.
        content: Content,
    },
    /// What the agent said.
    Assistant {
        /// The text, if it said any.
        content: Option<Text>,
        /// The calls it made.
        tool_calls: Vec<ToolCall>,
    },
    /// What a tool gave back.
    Tool {
        /// The call it answers.
        tool_call_id: Text,
        /// The result.
        content: Content,
        /// What went wrong, if something did.
        error: Option<Text>,
    },
    /// Progress that is no conversation.
    Activity {
        /// The kind of progress.
        activity_type: Text,
        /// An object.
        content: Json,
    },
    /// What the agent thought.
    Reasoning {
        /// The text.
        content: Text,
        /// What only the provider can read of it.
        encrypted_value: Option<Text>,
    },
}

/// Text, or text and media.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// Text alone.
    Text(Text),
    /// Parts in order.
    Parts(Vec<InputPart>),
}

/// A part of a message's content.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum InputPart {
    /// Text.
    Text(Text),
    /// An image, audio, video or document.
    Media {
        /// Which of them.
        kind: MediaKind,
        /// Where its bytes come from.
        source: MediaSource,
        /// What the client says about it.
        metadata: Option<Json>,
    },
    /// A file in the older form: at least one of id, address and data is there.
    Binary {
        /// The MIME type.
        mime_type: Text,
        /// The id of a stored file.
        id: Option<Text>,
        /// An address.
        url: Option<Text>,
        /// Base64.
        data: Option<Text>,
        /// Its name.
        filename: Option<Text>,
    },
}

/// The kinds of media parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MediaKind {
    /// A picture.
    Image,
    /// Sound.
    Audio,
    /// Moving pictures.
    Video,
    /// A file to be read.
    Document,
}

/// Where the bytes of a media part come from.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum MediaSource {
    /// Base64 in the request.
    Data {
        /// The base64 text.
        value: Text,
        /// The MIME type.
        mime_type: Text,
    },
    /// An address to fetch them from.
    Url {
        /// The address.
        value: Text,
        /// The MIME type, if it is stated.
        mime_type: Option<Text>,
    },
}

/// A call that the agent made earlier.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// Its id.
    pub id: Text,
    /// The tool.
    pub name: Text,
    /// JSON text, as the model wrote it; not checked.
    pub arguments: Text,
    /// Fields that this version does not know.
    pub extra: Extra,
}

/// A tool of the client.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// Its name.
    pub name: Text,
    /// What it does; empty if not stated.
    pub description: Text,
    /// The JSON Schema of its parameters.
    pub parameters: Option<Json>,
    /// Fields that this version does not know.
    pub extra: Extra,
}

/// A named piece of information for the agent.
#[derive(Debug, Clone, PartialEq)]
pub struct ContextItem {
    /// What it is.
    pub description: Text,
    /// The information.
    pub value: Text,
    /// Fields that this version does not know.
    pub extra: Extra,
}

/// The answer to one interrupt.
#[derive(Debug, Clone, PartialEq)]
pub struct ResumeEntry {
    /// The interrupt.
    pub interrupt_id: Text,
    /// Whether it was resolved; cancelled if not.
    pub is_resolved: bool,
    /// The answer.
    pub payload: Option<Json>,
    /// Fields that this version does not know.
    pub extra: Extra,
}

/// How much a request may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestLimits {
    /// Bytes of the whole. Default: 16 MiB.
    pub bytes: usize,
    /// Messages. Default: 10 000.
    pub messages: usize,
    /// Elements of any other list: tools, context, resume, parts of a message, calls of a message. Default: 1 000.
    pub elements: usize,
}

impl Default for RequestLimits {
    fn default() -> Self {
        Self { bytes: 16 * 1024 * 1024, messages: 10_000, elements: 1_000 }
    }
}

/// What is wrong with a request, and where. Holds no content of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{reason}", Place(.path))]
pub struct RequestError {
    /// The field, for example `messages[2].toolCalls[0].function.name`; empty for the whole.
    pub path: String,
    /// What is wrong.
    pub reason: RequestFault,
}

struct Place<'a>(&'a str);

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, "{}: ", self.0) }
    }
}

/// What can be wrong with a field of a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestFault {
    /// The body is no JSON.
    #[error("it is no JSON (line {line}, column {column})")]
    NotJson {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
    },
    /// A field that has to be there is not.
    #[error("the field is missing")]
    Missing,
    /// The field has a value of another type.
    #[error("it has to be {expected}")]
    WrongType {
        /// What it has to be.
        expected: &'static str,
    },
    /// The field has a word that the protocol does not know there.
    #[error("it has to be one of: {expected}")]
    UnknownWord {
        /// The words that are known.
        expected: &'static str,
    },
    /// The object has the field twice.
    #[error("the field is there twice")]
    Doubled,
    /// The body is larger than its limit.
    #[error("it is larger than the limit of {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
    /// The list is longer than its limit.
    #[error("it has more elements than the limit of {limit}")]
    TooMany {
        /// The limit.
        limit: usize,
    },
}

impl RequestFault {
    /// The stable machine code: snake case of the variant.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotJson { .. } => "not_json",
            Self::Missing => "missing",
            Self::WrongType { .. } => "wrong_type",
            Self::UnknownWord { .. } => "unknown_word",
            Self::Doubled => "doubled",
            Self::TooLarge { .. } => "too_large",
            Self::TooMany { .. } => "too_many",
        }
    }
}

impl RunAgentInput {
    /// Reads the body of a request, within the default limits.
    ///
    /// # Errors
    /// [`RequestError`] with the first thing that is wrong.
    pub fn from_slice(body: &[u8]) -> Result<Self, RequestError> {
        Self::from_slice_within(body, &RequestLimits::default())
    }

    /// Reads the body of a request, within these limits.
    ///
    /// # Errors
    /// [`RequestError`] with the first thing that is wrong.
    pub fn from_slice_within(body: &[u8], limits: &RequestLimits) -> Result<Self, RequestError> {
        let root = Path::Root;
        if body.len() > limits.bytes {
            return Err(root.fault(RequestFault::TooLarge { limit: limits.bytes }));
        }
        let raw: &RawValue = serde_json::from_slice(body)
            .map_err(|error| root.fault(RequestFault::NotJson { line: error.line(), column: error.column() }))?;
        let mut fields = Fields::of(raw, &root)?;
        Ok(Self {
            thread_id: fields.text("threadId")?,
            run_id: fields.text("runId")?,
            parent_run_id: fields.optional_text("parentRunId")?,
            state: fields.json("state")?,
            messages: fields.list("messages", limits.messages, true, &mut |raw, path| message(raw, path, limits))?,
            tools: fields.list("tools", limits.elements, false, &mut tool)?,
            context: fields.list("context", limits.elements, false, &mut context_item)?,
            forwarded_props: fields.json("forwardedProps")?,
            resume: fields.list("resume", limits.elements, false, &mut resume_entry)?,
            extra: fields.rest(),
        })
    }
}

fn message(raw: &RawValue, path: &Path<'_>, limits: &RequestLimits) -> Result<Message, RequestError> {
    const ROLES: &str = "developer, system, user, assistant, tool, activity, reasoning";
    let mut fields = Fields::of(raw, path)?;
    let (id, name) = (fields.text("id")?, fields.optional_text("name")?);
    let role = fields.text("role")?;
    let body = match role.as_str() {
        "developer" => MessageBody::Developer { content: fields.text("content")? },
        "system" => MessageBody::System { content: fields.text("content")? },
        "user" => MessageBody::User { content: content(&mut fields, limits)? },
        "assistant" => MessageBody::Assistant {
            content: fields.optional_text("content")?,
            tool_calls: fields.list("toolCalls", limits.elements, false, &mut tool_call)?,
        },
        "tool" => MessageBody::Tool {
            tool_call_id: fields.text("toolCallId")?,
            content: content(&mut fields, limits)?,
            error: fields.optional_text("error")?,
        },
        "activity" => {
            MessageBody::Activity { activity_type: fields.text("activityType")?, content: fields.object("content")? }
        }
        "reasoning" => MessageBody::Reasoning {
            content: fields.text("content")?,
            encrypted_value: fields.optional_text("encryptedValue")?,
        },
        _ => return Err(path.field("role").fault(RequestFault::UnknownWord { expected: ROLES })),
    };
    Ok(Message { id, name, body, extra: fields.rest() })
}

fn content(fields: &mut Fields<'_, '_>, limits: &RequestLimits) -> Result<Content, RequestError> {
    if fields.peek("content").is_some_and(|raw| raw.get().starts_with('[')) {
        return Ok(Content::Parts(fields.list("content", limits.elements, true, &mut part)?));
    }
    match fields.text("content") {
        Ok(text) => Ok(Content::Text(text)),
        Err(RequestError { path, reason: RequestFault::WrongType { .. } }) => {
            Err(RequestError { path, reason: RequestFault::WrongType { expected: "a string or an array of parts" } })
        }
        Err(error) => Err(error),
    }
}

fn part(raw: &RawValue, path: &Path<'_>) -> Result<InputPart, RequestError> {
    const KINDS: &str = "text, image, audio, video, document, binary";
    let mut fields = Fields::of(raw, path)?;
    let kind = match fields.text("type")?.as_str() {
        "text" => return fields.text("text").map(InputPart::Text),
        "binary" => {
            let binary = InputPart::Binary {
                mime_type: fields.text("mimeType")?,
                id: fields.optional_text("id")?,
                url: fields.optional_text("url")?,
                data: fields.optional_text("data")?,
                filename: fields.optional_text("filename")?,
            };
            let InputPart::Binary { id: None, url: None, data: None, .. } = binary else { return Ok(binary) };
            return Err(path.field("data").fault(RequestFault::Missing));
        }
        "image" => MediaKind::Image,
        "audio" => MediaKind::Audio,
        "video" => MediaKind::Video,
        "document" => MediaKind::Document,
        _ => return Err(path.field("type").fault(RequestFault::UnknownWord { expected: KINDS })),
    };
    let place = path.field("source");
    let source = fields.take("source").ok_or_else(|| place.fault(RequestFault::Missing))?;
    let mut of_source = Fields::of(source, &place)?;
    let source = match of_source.text("type")?.as_str() {
        "data" => MediaSource::Data { value: of_source.text("value")?, mime_type: of_source.text("mimeType")? },
        "url" => MediaSource::Url { value: of_source.text("value")?, mime_type: of_source.optional_text("mimeType")? },
        _ => return Err(place.field("type").fault(RequestFault::UnknownWord { expected: "data, url" })),
    };
    Ok(InputPart::Media { kind, source, metadata: fields.json("metadata")? })
}

fn tool_call(raw: &RawValue, path: &Path<'_>) -> Result<ToolCall, RequestError> {
    let mut fields = Fields::of(raw, path)?;
    let id = fields.text("id")?;
    if let Some(kind) = fields.optional_text("type")?
        && kind != "function"
    {
        return Err(path.field("type").fault(RequestFault::UnknownWord { expected: "function" }));
    }
    let place = path.field("function");
    let function = fields.take("function").ok_or_else(|| place.fault(RequestFault::Missing))?;
    let mut of_function = Fields::of(function, &place)?;
    let (name, arguments) = (of_function.text("name")?, of_function.text("arguments")?);
    Ok(ToolCall { id, name, arguments, extra: fields.rest() })
}

fn tool(raw: &RawValue, path: &Path<'_>) -> Result<Tool, RequestError> {
    let mut fields = Fields::of(raw, path)?;
    Ok(Tool {
        name: fields.text("name")?,
        description: fields.optional_text("description")?.unwrap_or_default(),
        parameters: fields.json("parameters")?,
        extra: fields.rest(),
    })
}

fn context_item(raw: &RawValue, path: &Path<'_>) -> Result<ContextItem, RequestError> {
    let mut fields = Fields::of(raw, path)?;
    Ok(ContextItem { description: fields.text("description")?, value: fields.text("value")?, extra: fields.rest() })
}

fn resume_entry(raw: &RawValue, path: &Path<'_>) -> Result<ResumeEntry, RequestError> {
    let mut fields = Fields::of(raw, path)?;
    let interrupt_id = fields.text("interruptId")?;
    let is_resolved = match fields.text("status")?.as_str() {
        "resolved" => true,
        "cancelled" => false,
        _ => return Err(path.field("status").fault(RequestFault::UnknownWord { expected: "resolved, cancelled" })),
    };
    Ok(ResumeEntry { interrupt_id, is_resolved, payload: fields.json("payload")?, extra: fields.rest() })
}

/// Where a value stands, as a chain to the root: written out only for an error.
#[derive(Debug, Clone, Copy)]
enum Path<'a> {
    Root,
    Field(&'a Path<'a>, &'a str),
    Element(&'a Path<'a>, usize),
}

impl Path<'_> {
    fn field<'a>(&'a self, name: &'a str) -> Path<'a> {
        Path::Field(self, name)
    }

    fn fault(&self, reason: RequestFault) -> RequestError {
        RequestError { path: self.to_string(), reason }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Path::Root => Ok(()),
            Path::Field(Path::Root, name) => f.write_str(name),
            Path::Field(parent, name) => write!(f, "{parent}.{name}"),
            Path::Element(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

/// The fields of an object that were not taken yet, in their order.
struct Fields<'a, 'p> {
    path: &'p Path<'p>,
    fields: Vec<(Cow<'a, str>, &'a RawValue)>,
}

impl<'a, 'p> Fields<'a, 'p> {
    fn of(raw: &'a RawValue, path: &'p Path<'p>) -> Result<Self, RequestError> {
        let fields = raw
            .get()
            .starts_with('{')
            .then(|| serde_json::from_str::<Object<'a>>(raw.get()).ok())
            .flatten()
            .ok_or_else(|| path.fault(RequestFault::WrongType { expected: "an object" }))?
            .0;
        Ok(Self { path, fields })
    }

    fn position(&self, name: &str) -> Option<usize> {
        let is = |key: &str| key == name || key.contains('_') && is_snake_case_of(key, name);
        self.fields.iter().position(|(key, _)| is(key))
    }

    fn peek(&self, name: &str) -> Option<&'a RawValue> {
        self.position(name).map(|at| self.fields[at].1)
    }

    /// The value of a field; `null` is none.
    fn take(&mut self, name: &str) -> Option<&'a RawValue> {
        let at = self.position(name)?;
        Some(self.fields.remove(at).1).filter(|raw| raw.get() != "null")
    }

    /// The same, and an error if the field is there twice.
    fn take_once(&mut self, name: &str) -> Result<Option<&'a RawValue>, RequestError> {
        let value = self.take(name);
        match self.position(name) {
            Some(_) => Err(self.path.field(name).fault(RequestFault::Doubled)),
            None => Ok(value),
        }
    }

    fn text(&mut self, name: &str) -> Result<Text, RequestError> {
        self.optional_text(name)?.ok_or_else(|| self.path.field(name).fault(RequestFault::Missing))
    }

    fn optional_text(&mut self, name: &str) -> Result<Option<Text>, RequestError> {
        let Some(raw) = self.take_once(name)? else { return Ok(None) };
        let text = serde_json::from_str(raw.get());
        text.map(Some).map_err(|_| self.path.field(name).fault(RequestFault::WrongType { expected: "a string" }))
    }

    fn json(&mut self, name: &str) -> Result<Option<Json>, RequestError> {
        Ok(self.take_once(name)?.map(Json::from))
    }

    fn object(&mut self, name: &str) -> Result<Json, RequestError> {
        let place = self.path.field(name);
        let raw = self.take_once(name)?.ok_or_else(|| place.fault(RequestFault::Missing))?;
        if raw.get().starts_with('{') {
            Ok(raw.into())
        } else {
            Err(place.fault(RequestFault::WrongType { expected: "an object" }))
        }
    }

    fn list<T>(
        &mut self,
        name: &str,
        limit: usize,
        has_to_be: bool,
        read: &mut dyn FnMut(&'a RawValue, &Path<'_>) -> Result<T, RequestError>,
    ) -> Result<Vec<T>, RequestError> {
        let place = self.path.field(name);
        let Some(raw) = self.take_once(name)? else {
            return if has_to_be { Err(place.fault(RequestFault::Missing)) } else { Ok(Vec::new()) };
        };
        let elements: Vec<&'a RawValue> = serde_json::from_str(raw.get())
            .map_err(|_| place.fault(RequestFault::WrongType { expected: "an array" }))?;
        if elements.len() > limit {
            return Err(place.fault(RequestFault::TooMany { limit }));
        }
        elements.into_iter().enumerate().map(|(index, raw)| read(raw, &Path::Element(&place, index))).collect()
    }

    fn rest(self) -> Extra {
        Extra(self.fields.into_iter().map(|(key, raw)| (Text::from(key), raw.into())).collect())
    }
}

fn is_snake_case_of(key: &str, name: &str) -> bool {
    let mut snake = String::with_capacity(name.len() + 4);
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
    }
    key == snake
}

/// The members of an object in their order.
struct Object<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de> Deserialize<'de> for Object<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Object<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some((key, value)) = map.next_entry::<Key<'de>, &'de RawValue>()? {
                    members.push((key.0, value));
                }
                Ok(Object(members))
            }
        }
        deserializer.deserialize_map(Members)
    }
}

/// A key, borrowed where it has no escapes.
#[derive(Deserialize)]
#[serde(transparent)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;

    const REQUEST: &str = r#"{
        "threadId": "thread-1", "runId": "run-1", "parentRunId": "run-0", "protocolVersion": "1.0",
        "state": {"step": 1.0},
        "messages": [
            {"id": "1", "role": "developer", "content": "Be brief."},
            {"id": "2", "role": "system", "content": "You help.", "name": "ops"},
            {"id": "3", "role": "user", "content": [
                {"type": "text", "text": "What is this?"},
                {"type": "image", "source": {"type": "url", "value": "https://example.org/a.png"}, "metadata": {"w": 1}},
                {"type": "audio", "source": {"type": "data", "value": "AA==", "mimeType": "audio/wav"}},
                {"type": "binary", "mimeType": "application/pdf", "id": "file-1"}
            ]},
            {"id": "4", "role": "assistant", "toolCalls": [
                {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{\"a\":1}"}, "encryptedValue": "x"}
            ]},
            {"id": "5", "role": "tool", "toolCallId": "c1", "content": "a cat", "error": "blurred"},
            {"id": "6", "role": "activity", "activityType": "plan", "content": {"done": 0.50}},
            {"id": "7", "role": "reasoning", "content": "Hm.", "encryptedValue": "y"},
            {"id": "8", "role": "user", "content": "And now?", "mood": "calm"}
        ],
        "tools": [{"name": "look", "description": "Looks.", "parameters": {"type": "object"}}, {"name": "bare"}],
        "context": [{"description": "zone", "value": "Europe/Brussels"}],
        "forwardedProps": {"trace": true},
        "resume": [{"interruptId": "i1", "status": "resolved", "payload": {"ok": true}}, {"interruptId": "i2", "status": "cancelled"}]
    }"#;

    // spec 2.9
    #[test]
    fn a_request_is_read_whole() {
        let input = RunAgentInput::from_slice(REQUEST.as_bytes()).unwrap();
        assert_eq!((&*input.thread_id, &*input.run_id), ("thread-1", "run-1"));
        assert_eq!(input.parent_run_id.as_deref(), Some("run-0"));
        assert_eq!(input.state.as_ref().map(Json::as_str), Some(r#"{"step": 1.0}"#), "numbers stay as written");
        assert_eq!(input.extra.0, [(Text::from("protocolVersion"), Json::string("1.0"))]);
        let roles: Vec<_> = input.messages.iter().map(|message| &message.body).collect();
        assert_eq!(roles[0], &MessageBody::Developer { content: "Be brief.".into() });
        assert_eq!(input.messages[1].name.as_deref(), Some("ops"));
        let MessageBody::User { content: Content::Parts(parts) } = roles[2] else { panic!("{:?}", roles[2]) };
        assert_eq!(parts[0], InputPart::Text("What is this?".into()));
        let image = MediaSource::Url { value: "https://example.org/a.png".into(), mime_type: None };
        let metadata = Some(Json::from_text(r#"{"w": 1}"#).unwrap());
        assert_eq!(parts[1], InputPart::Media { kind: MediaKind::Image, source: image, metadata });
        let audio = MediaSource::Data { value: "AA==".into(), mime_type: "audio/wav".into() };
        assert_eq!(parts[2], InputPart::Media { kind: MediaKind::Audio, source: audio, metadata: None });
        assert!(matches!(&parts[3], InputPart::Binary { id: Some(id), .. } if *id == "file-1"));
        let MessageBody::Assistant { content: None, tool_calls } = roles[3] else { panic!("{:?}", roles[3]) };
        assert_eq!((&*tool_calls[0].name, &*tool_calls[0].arguments), ("look", r#"{"a":1}"#));
        assert_eq!(tool_calls[0].extra.0.len(), 1);
        let result = Content::Text("a cat".into());
        let tool = MessageBody::Tool { tool_call_id: "c1".into(), content: result, error: Some("blurred".into()) };
        assert_eq!(roles[4], &tool);
        let plan = Json::from_text(r#"{"done": 0.50}"#).unwrap();
        assert_eq!(roles[5], &MessageBody::Activity { activity_type: "plan".into(), content: plan });
        assert_eq!(roles[6], &MessageBody::Reasoning { content: "Hm.".into(), encrypted_value: Some("y".into()) });
        assert_eq!(input.messages[7].extra.0, [(Text::from("mood"), Json::string("calm"))]);
        assert_eq!((&*input.tools[0].description, &*input.tools[1].description), ("Looks.", ""));
        assert_eq!(&*input.context[0].value, "Europe/Brussels");
        assert_eq!(input.forwarded_props.as_ref().map(Json::as_str), Some(r#"{"trace": true}"#));
        assert_eq!((input.resume[0].is_resolved, input.resume[1].is_resolved), (true, false));
    }

    #[test]
    fn names_in_snake_case_are_understood() {
        let body =
            br#"{"thread_id":"t","run_id":"r","messages":[{"id":"1","role":"tool","tool_call_id":"c","content":""}]}"#;
        let input = RunAgentInput::from_slice(body).unwrap();
        assert_eq!(&*input.thread_id, "t");
        assert!(matches!(&input.messages[0].body, MessageBody::Tool { tool_call_id, .. } if *tool_call_id == "c"));
    }

    // spec 2.9
    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        let with = |messages: &str| format!(r#"{{"threadId":"t","runId":"r","messages":{messages}}}"#);
        for (body, expected) in [
            (String::new(), "it is no JSON (line 1, column 0)"),
            ("[]".into(), "it has to be an object"),
            (r#"{"runId":"r"}"#.into(), "threadId: the field is missing"),
            (r#"{"threadId":7}"#.into(), "threadId: it has to be a string"),
            (r#"{"threadId":"a","threadId":"b"}"#.into(), "threadId: the field is there twice"),
            (r#"{"threadId":"t","runId":"r"}"#.into(), "messages: the field is missing"),
            (with("{}"), "messages: it has to be an array"),
            (with(r#"[{"id":"1","role":"user","content":"a"},7]"#), "messages[1]: it has to be an object"),
            (with(r#"[{"id":"1"}]"#), "messages[0].role: the field is missing"),
            (
                with(r#"[{"id":"1","role":"wizard"}]"#),
                "messages[0].role: it has to be one of: developer, system, user, assistant, tool, activity, reasoning",
            ),
            (
                with(r#"[{"id":"1","role":"user","content":7}]"#),
                "messages[0].content: it has to be a string or an array of parts",
            ),
            (with(r#"[{"id":"1","role":"user","content":null}]"#), "messages[0].content: the field is missing"),
            (
                with(r#"[{"id":"1","role":"user","content":[{"type":"smell"}]}]"#),
                "messages[0].content[0].type: it has to be one of: text, image, audio, video, document, binary",
            ),
            (
                with(r#"[{"id":"1","role":"user","content":[{"type":"binary","mimeType":"a/b"}]}]"#),
                "messages[0].content[0].data: the field is missing",
            ),
            (
                with(r#"[{"id":"1","role":"user","content":[{"type":"image","source":{"type":"data","value":"A"}}]}]"#),
                "messages[0].content[0].source.mimeType: the field is missing",
            ),
            (
                with(r#"[{"id":"1","role":"assistant","toolCalls":[{"id":"c","function":{"name":"f"}}]}]"#),
                "messages[0].toolCalls[0].function.arguments: the field is missing",
            ),
            (
                with(r#"[{"id":"1","role":"activity","activityType":"a","content":[]}]"#),
                "messages[0].content: it has to be an object",
            ),
            (
                r#"{"threadId":"t","runId":"r","messages":[],"resume":[{"interruptId":"i","status":"maybe"}]}"#.into(),
                "resume[0].status: it has to be one of: resolved, cancelled",
            ),
        ] {
            let error = RunAgentInput::from_slice(body.as_bytes()).unwrap_err();
            assert_eq!(error.to_string(), expected, "{body}");
        }
    }

    #[test]
    fn limits_hold_at_their_edge() {
        let body = |messages: usize| {
            let message = r#"{"id":"1","role":"system","content":"a"}"#;
            format!(r#"{{"threadId":"t","runId":"r","messages":[{}]}}"#, vec![message; messages].join(","))
        };
        let limits = RequestLimits { messages: 2, ..RequestLimits::default() };
        assert_eq!(RunAgentInput::from_slice_within(body(2).as_bytes(), &limits).unwrap().messages.len(), 2);
        let error = RunAgentInput::from_slice_within(body(3).as_bytes(), &limits).unwrap_err();
        assert_eq!((&*error.path, error.reason.code()), ("messages", "too_many"));
        let limits = RequestLimits { bytes: body(1).len(), ..limits };
        assert!(RunAgentInput::from_slice_within(body(1).as_bytes(), &limits).is_ok());
        let error = RunAgentInput::from_slice_within(body(2).as_bytes(), &limits).unwrap_err();
        assert_eq!((&*error.path, error.reason.code()), ("", "too_large"));
    }
}

//! The wire: bytes in, chunks out.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use streamkeeper_contract::{Body, Channel, Chunk, Usage};
use streamkeeper_wire::{Decoder, Format, Limits};

use crate::{
    NoAnswer, Process, Report,
    bytes::{Bytes, from_hex, to_hex},
    compare::differences,
    vector::{self, Vector},
};

const FILES: &[(&str, &str)] = &[
    ("bug-reports.json", include_str!("../vectors/wire/bug-reports.json")),
    ("formats.json", include_str!("../vectors/wire/formats.json")),
    ("framing.json", include_str!("../vectors/wire/framing.json")),
];

/// How a body is cut besides the way a vector gives it: so many bytes at a time.
const SPLITS: [usize; 5] = [1, 2, 3, 7, 64];

/// Something that decodes bytes into canonical chunks.
pub trait WireImplementation {
    /// Decodes a body that arrives in pieces.
    ///
    /// # Errors
    /// If it has no answer.
    fn decode(&mut self, case: &WireCase) -> Result<WireAnswer, NoAnswer>;
}

/// A body to decode.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WireCase {
    /// The vector and the split.
    pub name: String,
    /// The format, or `None` to tell it from the bytes.
    pub format: Option<Format>,
    /// The most bytes one event may have.
    pub event_bytes: usize,
    /// The body as it arrives.
    pub reads: Vec<Vec<u8>>,
}

/// What a body was decoded to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WireAnswer {
    /// The chunks, in order. No `end`: that is made behind the decoder.
    pub chunks: Vec<Chunk>,
    /// The code of the error that ended decoding, if one did.
    #[serde(default)]
    pub error: Option<String>,
    /// The last event was delivered although its end was missing.
    #[serde(default)]
    pub unterminated: bool,
}

/// Our own decoder.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ours;

impl WireImplementation for Ours {
    fn decode(&mut self, case: &WireCase) -> Result<WireAnswer, NoAnswer> {
        let mut limits = Limits::default();
        limits.event_bytes = case.event_bytes;
        let mut decoder = case.format.map_or_else(Decoder::detect, Decoder::new).limits(limits);
        let mut answer = WireAnswer::default();
        let mut read = case.reads.iter();
        let result = loop {
            let result = read.next().map(|bytes| decoder.push(bytes));
            let ended = result.is_none();
            let result = result.unwrap_or_else(|| decoder.finish());
            answer.chunks.extend(std::iter::from_fn(|| decoder.next_chunk()));
            if ended || result.is_err() {
                break result;
            }
        };
        answer.error = result.err().map(|error| error.code().to_owned());
        answer.unterminated = decoder.stats().unterminated;
        Ok(answer)
    }
}

impl WireImplementation for Process {
    fn decode(&mut self, case: &WireCase) -> Result<WireAnswer, NoAnswer> {
        self.ask(&Request::from(case))
    }
}

/// A [`WireCase`] as the protocol writes it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Request {
    layer: Layer,
    name: String,
    format: Option<String>,
    event_bytes: usize,
    /// In hex.
    reads: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Layer {
    Wire,
}

impl From<&WireCase> for Request {
    fn from(case: &WireCase) -> Self {
        Self {
            layer: Layer::Wire,
            name: case.name.clone(),
            format: case.format.map(|format| format.name().to_owned()),
            event_bytes: case.event_bytes,
            reads: case.reads.iter().map(|bytes| to_hex(bytes)).collect(),
        }
    }
}

impl TryFrom<Request> for WireCase {
    type Error = NoAnswer;

    fn try_from(request: Request) -> Result<Self, NoAnswer> {
        let format = request.format.map(|name| name.parse()).transpose();
        let reads = request.reads.iter().map(|hex| from_hex(hex)).collect::<Option<_>>();
        Ok(Self {
            name: request.name,
            format: format.map_err(|error| NoAnswer::Unsupported(format!("{error}")))?,
            event_bytes: request.event_bytes,
            reads: reads.ok_or_else(|| NoAnswer::Broken("a read is no hex".to_owned()))?,
        })
    }
}

/// What a vector of this layer has beside its name and rules.
#[derive(Debug, Deserialize)]
struct Given {
    format: String,
    reads: Vec<Bytes>,
    event_bytes: Option<usize>,
    /// Cut the body in other ways too: the answer must be the same. For bodies that are not too long.
    #[serde(default = "yes")]
    every_split: bool,
    /// Decode it without a named format too.
    #[serde(default)]
    detect: bool,
}

fn yes() -> bool {
    true
}

/// Runs every vector whose name or rules contain the filter.
///
/// # Panics
/// If a vector of this crate cannot be read.
pub fn run(filter: &str, implementation: &mut dyn WireImplementation) -> Report {
    let mut report = Report::default();
    for vector in vector::read::<Given>(FILES).iter().filter(|vector| vector::is_wanted(vector, filter)) {
        for case in cases(vector) {
            let result = implementation.decode(&case).map(|answer| differences(&vector.expect, &summary(&answer)));
            report.add(&case.name, &vector.spec, result);
        }
    }
    report
}

fn cases(vector: &Vector<Given>) -> Vec<WireCase> {
    let given = &vector.case;
    let format = given.format.parse().unwrap_or_else(|error| panic!("{}: {error}", vector.name));
    let case = |suffix: &str, format, reads| WireCase {
        name: format!("{}{suffix}", vector.name),
        format,
        event_bytes: given.event_bytes.unwrap_or(Limits::default().event_bytes),
        reads,
    };
    let reads: Vec<Vec<u8>> = given.reads.iter().map(Bytes::bytes).collect();
    let body = reads.concat();
    let mut cases = vec![case("", Some(format), reads)];
    if given.detect {
        cases.push(case(" (format not named)", None, vec![body.clone()]));
    }
    if given.every_split {
        cases.push(case(" (at once)", Some(format), vec![body.clone()]));
        for n in SPLITS {
            let reads = body.chunks(n).map(<[u8]>::to_vec).collect();
            cases.push(case(&format!(" ({n} bytes at a time)"), Some(format), reads));
        }
    }
    cases
}

/// What a vector can speak about: the chunks themselves, and what they add up to.
fn summary(answer: &WireAnswer) -> Value {
    let mut text = [const { String::new() }; 3];
    let mut calls = Calls::default();
    let mut provider_calls = Calls::default();
    let (mut order, mut usage, mut finish, mut stated, mut error) = (Vec::new(), None::<Usage>, None, None, None);
    let (mut errors, mut raw) = (0, Vec::new());
    for chunk in &answer.chunks {
        match chunk.body() {
            Body::Delta { lane, text: piece } => {
                if lane.choice == 0 {
                    match lane.channel {
                        Channel::Text => text[0].push_str(piece),
                        Channel::Reasoning => text[1].push_str(piece),
                        Channel::Refusal => text[2].push_str(piece),
                        _ => {}
                    }
                }
                match lane.channel {
                    Channel::Arguments => calls.append(lane.choice, lane.call, piece),
                    Channel::ProviderTool => provider_calls.append(lane.choice, lane.call, piece),
                    _ => {}
                }
                if lane.channel == Channel::Text {
                    order.push(format!("text:{piece}"));
                }
            }
            Body::ToolCallStart(start) => calls.open(start.lane.choice, start.lane.call, &start.id, &start.name, ""),
            Body::ProviderToolStart(start) => {
                provider_calls.open(start.lane.choice, start.lane.call, &start.id, &start.name, "");
            }
            Body::ToolCall(call) => {
                calls.open(call.lane.choice, call.lane.call, &call.id, &call.name, &call.arguments);
            }
            Body::Usage(later) => usage.get_or_insert_default().update(later),
            Body::Finish(chunk) => {
                order.push(format!("finish:{}", chunk.reason.as_str()));
                if chunk.choice == 0 {
                    finish = finish.or_else(|| Some(chunk.reason.as_str().to_owned()));
                    stated = stated.or_else(|| chunk.stated.as_ref().map(ToString::to_string));
                }
            }
            Body::Error(info) => {
                errors += 1;
                error = error.or_else(|| Some(json!({"code": info.code, "message": info.message})));
            }
            Body::Raw(event) => raw.push(json!({"event": event.event, "data": event.data})),
            _ => {}
        }
    }
    let outcome = match (&answer.error, &error, &finish) {
        (Some(_), ..) | (_, Some(_), _) => "failed",
        (_, _, Some(_)) => "finished",
        _ => "truncated",
    };
    if let Some(code) = &answer.error {
        error = Some(json!({"code": code}));
    }
    let [text, reasoning, refusal] = text;
    json!({
        "text": text, "reasoning": reasoning, "refusal": refusal,
        "tool_calls": calls.0.iter().map(Call::json).collect::<Vec<_>>(),
        "server_tool_calls": provider_calls.0.iter().map(Call::json).collect::<Vec<_>>(),
        "finish": finish, "provider_finish": stated,
        "usage": usage.as_ref().map(buckets),
        "error": error, "errors": errors,
        "outcome": outcome, "order": order, "raw": raw, "unterminated": answer.unterminated,
        "chunks": answer.chunks,
    })
}

fn buckets(usage: &Usage) -> Value {
    json!({
        "input": usage.input(), "output": usage.output_total(), "total": usage.total(),
        "uncached_input": usage.uncached_input, "cache_read": usage.cache_read, "cache_write": usage.cache_write,
        "output_visible": usage.output, "reasoning": usage.reasoning,
    })
}

#[derive(Default)]
struct Calls(Vec<Call>);

struct Call {
    key: (u16, u16),
    id: String,
    name: String,
    arguments: String,
}

impl Calls {
    fn open(&mut self, choice: u16, call: u16, id: &str, name: &str, arguments: &str) {
        let (id, name, arguments) = (id.to_owned(), name.to_owned(), arguments.to_owned());
        self.0.push(Call { key: (choice, call), id, name, arguments });
    }

    fn append(&mut self, choice: u16, call: u16, piece: &str) {
        if let Some(call) = self.0.iter_mut().find(|open| open.key == (choice, call)) {
            call.arguments.push_str(piece);
        }
    }
}

impl Call {
    /// Empty arguments mean `{}` (spec 2.5).
    fn json(&self) -> Value {
        let arguments = if self.arguments.is_empty() { "{}" } else { &self.arguments };
        json!({"id": self.id, "name": self.name, "arguments": arguments})
    }
}

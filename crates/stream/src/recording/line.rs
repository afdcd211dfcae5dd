//! The JSON form: one object a line, whose first member `record` says what it is.

use serde::{Deserialize, Serialize};
use streamkeeper_contract::{Chunk, FailureReport, Id, Lane, Outcome, SideEvent, Text};

use super::{Entry, Header, SourceEnd, Summary, VerdictEntry};

/// One line, read.
#[derive(Debug)]
pub(super) enum Line {
    Header(Header),
    Entry(Entry),
    /// Of a kind that this version does not know.
    Unknown,
}

#[derive(Deserialize)]
struct Kind {
    record: Text,
}

#[derive(Serialize, Deserialize)]
struct InputForm<C> {
    index: u64,
    chunk: C,
}

#[derive(Serialize, Deserialize)]
struct SourceEndForm<E> {
    end: E,
}

#[derive(Serialize, Deserialize)]
struct EventForm<E> {
    index: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    observer: Option<Id>,
    event: E,
}

#[derive(Serialize, Deserialize)]
struct FailureForm<F> {
    index: u64,
    failure: F,
}

#[derive(Serialize, Deserialize)]
struct WithheldForm {
    index: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lane: Option<Lane>,
    len: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<Text>,
}

#[derive(Serialize, Deserialize)]
struct OutcomeForm<O> {
    outcome: O,
    #[serde(default)]
    summary: Summary,
}

pub(super) fn write_header(header: &Header) -> Result<String, serde_json::Error> {
    tagged("header", header)
}

pub(super) fn write(entry: &Entry) -> Result<String, serde_json::Error> {
    let name = entry.name();
    match entry {
        Entry::Input { index, chunk } | Entry::Output { index, chunk } => {
            tagged(name, &InputForm { index: *index, chunk })
        }
        Entry::SourceEnd { end } => tagged(name, &SourceEndForm { end }),
        Entry::Verdict(entry) => tagged(name, &**entry),
        Entry::Event { index, observer, event } => {
            tagged(name, &EventForm { index: *index, observer: observer.clone(), event })
        }
        Entry::Failure { index, failure } => tagged(name, &FailureForm { index: *index, failure }),
        Entry::Withheld { index, lane, len, text } => {
            tagged(name, &WithheldForm { index: *index, lane: *lane, len: *len, text: text.clone() })
        }
        Entry::Outcome { outcome, summary } => tagged(name, &OutcomeForm { outcome, summary: *summary }),
    }
}

/// Not by serde's tagged enums: they read through values that raw JSON does not survive.
fn tagged(record: &str, form: &impl Serialize) -> Result<String, serde_json::Error> {
    let object = serde_json::to_string(form)?;
    let members = object.strip_prefix('{').unwrap_or(&object);
    Ok(format!(r#"{{"record":"{record}",{members}"#))
}

pub(super) fn read(line: &str) -> Result<Line, serde_json::Error> {
    fn form<'a, T: Deserialize<'a>>(line: &'a str) -> Result<T, serde_json::Error> {
        serde_json::from_str(line)
    }
    let entry = match &*form::<Kind>(line)?.record {
        "header" => return form(line).map(Line::Header),
        "input" => {
            let InputForm { index, chunk } = form::<InputForm<Chunk>>(line)?;
            Entry::Input { index, chunk }
        }
        "output" => {
            let InputForm { index, chunk } = form::<InputForm<Chunk>>(line)?;
            Entry::Output { index, chunk }
        }
        "source_end" => Entry::SourceEnd { end: form::<SourceEndForm<SourceEnd>>(line)?.end },
        "verdict" => Entry::Verdict(Box::new(form::<VerdictEntry>(line)?)),
        "event" => {
            let EventForm { index, observer, event } = form::<EventForm<SideEvent>>(line)?;
            Entry::Event { index, observer, event }
        }
        "failure" => {
            let FailureForm { index, failure } = form::<FailureForm<FailureReport>>(line)?;
            Entry::Failure { index, failure }
        }
        "withheld" => {
            let WithheldForm { index, lane, len, text } = form(line)?;
            Entry::Withheld { index, lane, len, text }
        }
        "outcome" => {
            let OutcomeForm { outcome, summary } = form::<OutcomeForm<Outcome>>(line)?;
            Entry::Outcome { outcome, summary }
        }
        _ => return Ok(Line::Unknown),
    };
    Ok(Line::Entry(entry))
}

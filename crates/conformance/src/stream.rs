//! Stream observers: chunks and scripted observers in, delivered chunks, verdicts and the outcome out.

mod answer;
mod behaviour;
mod kit;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use streamkeeper_contract::{Body, CallClass, Channel, Chunk, Id};

use crate::{
    NoAnswer, Process, Report,
    compare::differences,
    vector::{self, Vector},
};

pub use answer::Ours;
pub use behaviour::Does;
pub use kit::check_observer;

const FILES: &[(&str, &str)] = &[
    ("bug-reports.json", include_str!("../vectors/stream/bug-reports.json")),
    ("failures.json", include_str!("../vectors/stream/failures.json")),
    ("verdicts.json", include_str!("../vectors/stream/verdicts.json")),
];

/// Something that takes chunks through observers.
pub trait StreamImplementation {
    /// Takes the chunks of one invocation through the observers of the case.
    ///
    /// # Errors
    /// If it has no answer.
    fn observe(&mut self, case: &StreamCase) -> Result<StreamAnswer, NoAnswer>;
}

/// One invocation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StreamCase {
    /// The vector.
    #[serde(default)]
    pub name: String,
    /// What the model call is for.
    #[serde(default)]
    pub call_class: CallClass,
    /// The observers, in order of registration.
    pub observers: Vec<Registered>,
    /// What enters.
    pub chunks: Vec<Chunk>,
    /// What follows.
    #[serde(default)]
    pub then: Then,
}

/// An observer of a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Registered {
    /// Its id.
    pub id: Id,
    /// What it is there for.
    pub role: RoleName,
    /// For which invocations: a call class, or `*` for all.
    #[serde(default = "any")]
    pub when: String,
    /// The kinds of chunks it wants to see; absent for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interest: Option<Vec<String>>,
    /// What its failure means; absent for the default of its role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<OnFailureName>,
    /// What it does.
    pub does: Does,
}

fn any() -> String {
    "*".to_owned()
}

/// What an observer is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RoleName {
    /// Protects.
    Guard,
    /// Normalises.
    Transform,
    /// Only looks.
    Watcher,
}

/// What the failure of an observer means.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnFailureName {
    /// The invocation fails.
    Fail,
    /// The stream goes on without it.
    PassThrough,
    /// Text it would have seen is replaced.
    Placeholder(String),
}

/// What follows the last chunk.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Then {
    /// The source is over.
    #[default]
    End,
    /// The consumer lets go; everything delivered so far was taken.
    Drop,
    /// The source fails with this code.
    Fail(String),
}

/// What came out of an invocation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StreamAnswer {
    /// What the consumer was given, an `end` chunk included.
    pub delivered: Vec<Chunk>,
    /// The outcome in its JSON form.
    pub outcome: Value,
    /// Every answer of an observer but `continue`, in order.
    pub verdicts: Vec<Value>,
    /// Failures of observers, in order.
    pub failures: Vec<Value>,
    /// Side events, in order.
    pub events: Vec<Value>,
    /// What each observer was asked about: the text of a delta, the kind of any other chunk.
    pub saw: BTreeMap<String, Vec<String>>,
    /// How often each observer was told of the end.
    pub ended: BTreeMap<String, u64>,
}

impl StreamImplementation for Process {
    fn observe(&mut self, case: &StreamCase) -> Result<StreamAnswer, NoAnswer> {
        let mut request = serde_json::to_value(case).map_err(|error| NoAnswer::Broken(error.to_string()))?;
        request["layer"] = "stream".into();
        self.ask(&request)
    }
}

/// Runs every vector whose name or rules contain the filter.
///
/// # Panics
/// If a vector of this crate cannot be read.
pub fn run(filter: &str, implementation: &mut dyn StreamImplementation) -> Report {
    let mut report = Report::default();
    for vector in vector::read::<StreamCase>(FILES) {
        if vector::is_wanted(&vector, filter) {
            let Vector { name, spec, case, expect, .. } = vector;
            let case = StreamCase { name, ..case };
            let result = implementation.observe(&case).map(|answer| differences(&expect, &summary(&answer)));
            report.add(&case.name, &spec, result);
        }
    }
    report
}

/// What a vector can speak about: the answer, and what its deltas add up to.
fn summary(answer: &StreamAnswer) -> Value {
    let mut summary = serde_json::to_value(answer).unwrap_or_default();
    let deltas = || {
        answer.delivered.iter().filter_map(|chunk| match chunk.body() {
            Body::Delta { lane, text } => Some((lane, text.as_str())),
            _ => None,
        })
    };
    let text: String = deltas().filter(|(lane, _)| lane.channel == Channel::Text).map(|(_, text)| text).collect();
    summary["text"] = text.into();
    summary["out"] = json!(deltas().map(|(_, text)| text).collect::<Vec<_>>());
    summary["kinds"] = json!(answer.delivered.iter().map(|chunk| chunk.kind().as_str()).collect::<Vec<_>>());
    summary
}

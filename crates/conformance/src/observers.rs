//! Bundled observers: chunks and observers with their options in, delivered chunks and the outcome out.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use streamkeeper_contract::{Body, CallClass, Channel, Chunk, FailureReport, SideEvent, Text};
use streamkeeper_policy::PolicyRegistry;
use streamkeeper_stream::{
    ObserverFactoryContext,
    testing::{Interleave, Script, Split, rearrange},
};

use crate::{
    NoAnswer, Process, Report,
    compare::differences,
    vector::{self, Vector},
};

const FILES: &[(&str, &str)] = &[
    ("dialects.json", include_str!("../vectors/observers/dialects.json")),
    ("halts.json", include_str!("../vectors/observers/halts.json")),
    ("redaction.json", include_str!("../vectors/observers/redaction.json")),
    ("metrics.json", include_str!("../vectors/observers/metrics.json")),
];

/// Something that takes chunks through bundled observers, or through its own of the same kinds.
pub trait ObserversImplementation {
    /// Takes the chunks of one invocation through the observers of the case.
    ///
    /// # Errors
    /// If it has no answer.
    fn observe(&mut self, case: &ObserversCase) -> Result<ObserversAnswer, NoAnswer>;
}

/// One invocation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ObserversCase {
    /// The vector, and how it is cut.
    #[serde(default)]
    pub name: String,
    /// What the model call is for.
    #[serde(default)]
    pub call_class: CallClass,
    /// The tools that the model may call; none if they are not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Text>,
    /// The system prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// The observers, in order, each as in a policy: `kind`, options, and what all of them have.
    pub observers: Vec<Value>,
    /// What enters. After it the source is at its end.
    pub chunks: Vec<Chunk>,
}

/// What came out of an invocation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ObserversAnswer {
    /// What the consumer was given, an `end` chunk included.
    pub delivered: Vec<Chunk>,
    /// The outcome in its JSON form.
    pub outcome: Value,
    /// Failures of observers, in order.
    pub failures: Vec<Value>,
    /// Side events, in order.
    pub events: Vec<Value>,
}

/// Observers in Rust: those of a registry.
///
/// To test an observer of your own against the vectors of a bundled one, register it in the place of that kind:
///
/// ```
/// use streamkeeper_conformance::observers::{self, Registered};
/// use streamkeeper_contract::id;
/// use streamkeeper_policy::PolicyRegistry;
/// use streamkeeper_stream::{Registration, testing::Faulty};
///
/// let ours = observers::run("tool tag", &mut Registered::bundled());
/// assert!(ours.is_clean(), "{ours}");
///
/// // One that holds everything and forgets it.
/// let theirs = PolicyRegistry::bundled().with("normalize-dialects", |_: serde_json::Value| {
///     Ok(Registration::guard(id!("theirs"), Faulty::forgets_barriers()))
/// });
/// assert_eq!(observers::run("tool tag", &mut Registered(theirs)).passed, 0);
/// ```
#[derive(Debug, Clone)]
pub struct Registered(pub PolicyRegistry);

impl Registered {
    /// Our own.
    pub fn bundled() -> Self {
        Self(PolicyRegistry::bundled())
    }
}

impl ObserversImplementation for Registered {
    fn observe(&mut self, case: &ObserversCase) -> Result<ObserversAnswer, NoAnswer> {
        let policy = json!({"version": PolicyRegistry::VERSION, "observers": case.observers}).to_string();
        let policy = self.0.read_json(&policy).map_err(|error| NoAnswer::Unsupported(error.to_string()))?;
        let mut ctx = ObserverFactoryContext::new(case.call_class.clone());
        ctx.tool_names = case.tools.iter().cloned().collect();
        ctx.system_prompt = case.system_prompt.as_deref().map(Arc::from);
        let ran = Script::from(case.chunks.as_slice()).context(ctx).run(policy.observers());
        let values = |failures: &[FailureReport]| failures.iter().map(value).collect();
        Ok(ObserversAnswer {
            delivered: ran.delivered().to_vec(),
            outcome: value(ran.outcome()),
            failures: values(ran.failures()),
            events: ran.events().iter().map(|event: &SideEvent| value(event)).collect(),
        })
    }
}

fn value(it: &impl Serialize) -> Value {
    serde_json::to_value(it).unwrap_or_default()
}

impl ObserversImplementation for Process {
    fn observe(&mut self, case: &ObserversCase) -> Result<ObserversAnswer, NoAnswer> {
        let mut request = serde_json::to_value(case).map_err(|error| NoAnswer::Broken(error.to_string()))?;
        request["layer"] = "observers".into();
        self.ask(&request)
    }
}

/// What a vector of this layer has beside its name and rules.
#[derive(Debug, Deserialize)]
struct Given {
    #[serde(flatten)]
    case: ObserversCase,
    #[serde(default)]
    split: Cuts,
}

/// In which ways the deltas are cut anew. The answer must be the same for all.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Cuts {
    /// In every way of the kit.
    #[default]
    Every,
    /// One character each: for what is delivered before a stop, which depends on the cuts.
    Characters,
    /// As the vector has them.
    AsWritten,
}

/// Runs every vector whose name or rules contain the filter.
///
/// # Panics
/// If a vector of this crate cannot be read.
pub fn run(filter: &str, implementation: &mut dyn ObserversImplementation) -> Report {
    let mut report = Report::default();
    for vector in vector::read::<Given>(FILES).iter().filter(|vector| vector::is_wanted(vector, filter)) {
        for case in cases(vector) {
            let result = implementation.observe(&case).map(|answer| differences(&vector.expect, &summary(&answer)));
            report.add(&case.name, &vector.spec, result);
        }
    }
    report
}

fn cases(vector: &Vector<Given>) -> Vec<ObserversCase> {
    let Given { case, split } = &vector.case;
    let named = |how: String, chunks| ObserversCase { name: format!("{}{how}", vector.name), chunks, ..case.clone() };
    let splits = match split {
        Cuts::AsWritten => return vec![named(String::new(), case.chunks.clone())],
        Cuts::Characters => &[Split::EveryByte][..],
        Cuts::Every => &Split::ALL[..],
    };
    let cut = |split: &Split| {
        let ways = rearrange(&case.chunks, *split, Interleave::Sequential).into_iter().enumerate();
        ways.map(|(way, chunks)| named(format!(" ({split}, {way})"), chunks)).collect::<Vec<_>>()
    };
    splits.iter().flat_map(cut).collect()
}

/// What a vector can speak about: the answer, and what it adds up to.
fn summary(answer: &ObserversAnswer) -> Value {
    let mut summary = value(answer);
    let mut texts = [(Channel::Text, String::new()), (Channel::Reasoning, String::new())];
    let (mut calls, mut order) = (Vec::new(), Vec::<(&str, String)>::new());
    for chunk in &answer.delivered {
        match chunk.body() {
            Body::Delta { lane, text } => {
                for (channel, joined) in &mut texts {
                    if lane.channel == *channel {
                        joined.push_str(text);
                    }
                }
                match order.last_mut() {
                    Some((last, joined)) if *last == lane.channel.as_str() => joined.push_str(text),
                    _ => order.push((lane.channel.as_str(), text.as_str().to_owned())),
                }
            }
            Body::ToolCall(call) => {
                calls.push(json!({"name": call.name, "arguments": call.arguments}));
                order.push(("call", call.name.as_str().to_owned()));
            }
            _ => {}
        }
    }
    for (channel, text) in texts {
        summary[channel.as_str()] = text.into();
    }
    summary["calls"] = calls.into();
    summary["order"] = order.into_iter().map(|(what, text)| format!("{what}:{text}")).collect();
    summary
}

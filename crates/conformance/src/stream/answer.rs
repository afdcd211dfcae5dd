use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use streamkeeper_contract::{Body, Chunk, ChunkKind, ErrorInfo, FailureReport, FailureSink, Outcome, SideEvent};
use streamkeeper_stream::{
    EventSink, Interest, ObserverFactoryContext, Observers, OnFailure, Registration, Stack, from_fn,
};

use super::{
    OnFailureName, Registered, RoleName, StreamAnswer, StreamCase, StreamImplementation, Then,
    behaviour::{Log, Scripted},
};
use crate::NoAnswer;

/// Our own stack.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ours;

/// Keeps what a stack tells the outside world.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) events: Mutex<Vec<SideEvent>>,
    pub(super) failures: Mutex<Vec<FailureReport>>,
}

impl EventSink for Told {
    fn emit(&self, event: SideEvent) {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).push(event);
    }
}

impl FailureSink for Told {
    fn report(&self, failure: &FailureReport) {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).push(failure.clone());
    }
}

impl StreamImplementation for Ours {
    fn observe(&mut self, case: &StreamCase) -> Result<StreamAnswer, NoAnswer> {
        let log = Arc::new(Mutex::new(Log::default()));
        let mut observers = Observers::new();
        for registered in &case.observers {
            let registration = registration(registered, &log)?;
            observers.register(registration).map_err(|error| NoAnswer::Broken(error.to_string()))?;
        }
        let told = Arc::new(Told::default());
        let (delivered, ended) = drive(&observers, case, &told);
        Ok(answer(delivered, ended, &log, &told))
    }
}

fn registration(registered: &Registered, log: &Arc<Mutex<Log>>) -> Result<Registration, NoAnswer> {
    let (id, does, interest) = (registered.id.clone(), registered.does.clone(), interest(registered)?);
    let scripted = Scripted { id, does, interest, log: log.clone() };
    let factory = from_fn(move |_: &ObserverFactoryContext| scripted.clone());
    let id = registered.id.clone();
    let mut registration = match registered.role {
        RoleName::Guard => Registration::guard(id, factory),
        RoleName::Transform => Registration::transform(id, factory),
        RoleName::Watcher => Registration::watcher(id, factory),
    };
    if registered.when != "*" {
        let class =
            registered.when.parse().map_err(|_| NoAnswer::Broken(format!("no call class: {}", registered.when)))?;
        registration = registration.when(class);
    }
    Ok(match &registered.on_failure {
        None => registration,
        Some(OnFailureName::Fail) => registration.on_failure(OnFailure::Fail),
        Some(OnFailureName::PassThrough) => registration.on_failure(OnFailure::PassThrough),
        Some(OnFailureName::Placeholder(text)) => registration.on_failure(OnFailure::Placeholder(text.as_str().into())),
    })
}

fn interest(registered: &Registered) -> Result<Interest, NoAnswer> {
    let Some(names) = &registered.interest else { return Ok(Interest::ALL) };
    let kind = |name: &String| ChunkKind::from_name(name).ok_or_else(|| NoAnswer::Broken(format!("no kind: {name}")));
    Ok(Interest::only(&names.iter().map(kind).collect::<Result<Vec<_>, _>>()?))
}

/// Takes what the consumer takes until the stack has no more.
pub(super) fn take(stack: &mut Stack, delivered: &mut Vec<Chunk>) {
    delivered.extend(std::iter::from_fn(|| stack.pop()));
}

fn drive(observers: &Observers, case: &StreamCase, told: &Arc<Told>) -> (Vec<Chunk>, Option<Outcome>) {
    let ctx = ObserverFactoryContext::new(case.call_class.clone());
    let mut stack = observers.builder(&ctx).events(told.clone()).failures(told.clone()).build();
    let mut delivered = Vec::new();
    for chunk in &case.chunks {
        if stack.is_ended() {
            break;
        }
        stack.push(chunk.clone());
        take(&mut stack, &mut delivered);
    }
    let mut ended = None;
    match &case.then {
        Then::End => stack.finish(),
        Then::Fail(code) => {
            let error = ErrorInfo::new(code.as_str());
            if stack.fail(error.clone()) {
                ended = Some(Outcome::Failed { error });
            }
        }
        Then::Drop => ended = (!stack.is_ended()).then_some(Outcome::Dropped),
    }
    if case.then != Then::Drop {
        take(&mut stack, &mut delivered);
    }
    (delivered, ended)
}

fn answer(delivered: Vec<Chunk>, ended: Option<Outcome>, log: &Mutex<Log>, told: &Told) -> StreamAnswer {
    let log = log.lock().unwrap_or_else(PoisonError::into_inner);
    let end = delivered.iter().find_map(|chunk| match chunk.body() {
        Body::End(end) => Some(Outcome::clone(end.outcome())),
        _ => None,
    });
    let outcome = log.result.as_ref().map(|result| Outcome::clone(&result.outcome)).or(end).or(ended);
    let mut answer = StreamAnswer {
        outcome: outcome.as_ref().map(json).unwrap_or_default(),
        verdicts: log.verdicts.clone(),
        delivered,
        ..StreamAnswer::default()
    };
    answer.events.extend(told.events.lock().unwrap_or_else(PoisonError::into_inner).iter().map(json));
    answer.failures.extend(told.failures.lock().unwrap_or_else(PoisonError::into_inner).iter().map(json));
    for (id, shown) in &log.saw {
        answer.saw.entry(id.to_string()).or_default().push(shown.clone());
    }
    for id in &log.ended {
        *answer.ended.entry(id.to_string()).or_default() += 1;
    }
    answer
}

fn json(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use streamkeeper_contract::{FailureReport, FailureSink, Id, SideEvent};
use streamkeeper_observers::Metrics;
use streamkeeper_stream::EventSink;

/// Keeps what a stack tells the outside world, for the summary: counts, not contents, so that it stays small however long the stream is.
#[derive(Debug, Default)]
pub(crate) struct Told(Mutex<State>);

#[derive(Debug, Default)]
pub(crate) struct State {
    /// How often an event came, by channel and name.
    pub(crate) events: BTreeMap<(Id, Id), u64>,
    /// The payload of the last event on the metrics channel.
    pub(crate) metrics: Option<serde_json::Value>,
    /// The first failures, and how many there were.
    pub(crate) failures: Vec<FailureReport>,
    pub(crate) failure_count: u64,
}

/// Failures that are shown one by one.
const SHOWN: usize = 16;

impl Told {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a component is among the first failures.
    pub(crate) fn has_failed(&self, component: &str) -> bool {
        self.state().failures.iter().any(|failure| failure.component.as_str() == component)
    }
}

impl EventSink for Told {
    fn emit(&self, event: SideEvent) {
        let mut state = self.state();
        if event.channel == Metrics::CHANNEL {
            state.metrics = event.payload.parse().ok();
        }
        *state.events.entry((event.channel, event.name)).or_default() += 1;
    }
}

impl FailureSink for Told {
    fn report(&self, failure: &FailureReport) {
        let mut state = self.state();
        state.failure_count += 1;
        if state.failures.len() < SHOWN {
            state.failures.push(failure.clone());
        }
    }
}

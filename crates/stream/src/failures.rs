use std::sync::{Mutex, PoisonError};

use streamkeeper_contract::{FailureReport, FailureSink};

/// Distinct failures that are counted one by one.
const MAX_DISTINCT: usize = 256;

/// The default [`FailureSink`]: `tracing::warn!` for the first failure of each kind, then a count.
///
/// Two failures are of one kind if component, hook and kind agree. A stack that is given no sink makes one of these for itself; an
/// engine gives all stacks of a run the same one. Counts at most 256 kinds; others are logged each time.
///
/// ```
/// use streamkeeper_contract::{FailureKind, FailureReport, FailureSink, Hook, id};
/// use streamkeeper_stream::TracingSink;
///
/// let sink = TracingSink::new();
/// let failure = FailureReport { component: id!("pii"), hook: Hook::OnChunk, kind: FailureKind::Panic };
/// sink.report(&failure);
/// sink.report(&failure);
/// assert_eq!(sink.counts(), [(failure, 2)]);
/// ```
#[derive(Debug, Default)]
pub struct TracingSink {
    seen: Mutex<Vec<(FailureReport, u64)>>,
}

impl TracingSink {
    /// A sink that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Each kind of failure with how often it came, in order of first appearance.
    pub fn counts(&self) -> Vec<(FailureReport, u64)> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl FailureSink for TracingSink {
    fn report(&self, failure: &FailureReport) {
        {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((_, count)) = seen.iter_mut().find(|(known, _)| known == failure) {
                *count = count.saturating_add(1);
                return;
            }
            if seen.len() < MAX_DISTINCT {
                seen.push((failure.clone(), 1));
            }
        }
        tracing::warn!(
            component = failure.component.as_str(),
            hook = failure.hook.as_str(),
            kind = failure.kind.as_str(),
            "component failed"
        );
    }
}

use streamkeeper_contract::{Body, Channel, Chunk, ErrorInfo, FinishReason, Lane, Outcome, Text, Usage};

use super::lanes::Lanes;

/// What the provider says of tokens and ends, read as it enters, whether or not it is delivered; and what went where.
#[derive(Default)]
pub(super) struct Account {
    pub(super) chunks_in: u64,
    pub(super) chunks_out: u64,
    pub(super) usage: Option<Usage>,
    /// By choice, in order of appearance.
    finishes: Vec<(u16, FinishReason)>,
    /// The same as delivered: an observer may have amended it.
    delivered_finishes: Vec<(u16, FinishReason)>,
    pub(super) error: Option<Text>,
    delivered_error: Option<ErrorInfo>,
    pub(super) opaque_withheld: u64,
    pub(super) differing_snapshots: u64,
    /// Text that belongs to no counted lane.
    pub(super) withheld_elsewhere: u64,
}

impl Account {
    /// Reads a chunk that enters.
    pub(super) fn enter(&mut self, chunk: &Chunk) {
        match chunk.body() {
            Body::Usage(usage) => self.usage.get_or_insert_default().update(usage),
            Body::Finish(finish) => note_finish(&mut self.finishes, finish.choice, &finish.reason),
            Body::Error(error) => {
                self.error.get_or_insert_with(|| error.code.clone());
            }
            _ => {}
        }
    }

    /// Reads a chunk that has passed all observers.
    pub(super) fn deliver(&mut self, chunk: &Chunk) {
        match chunk.body() {
            Body::Finish(finish) => note_finish(&mut self.delivered_finishes, finish.choice, &finish.reason),
            Body::Error(error) => {
                self.delivered_error.get_or_insert_with(|| ErrorInfo::clone(error));
            }
            _ => {}
        }
    }

    /// The provider's reason for the first choice.
    pub(super) fn provider_finish(&self) -> Option<&FinishReason> {
        first(&self.finishes)
    }

    /// What the end of the source means. An error that the provider reported wins; then each choice that said anything has to be
    /// finished. The words of the error are those that the consumer was given.
    pub(super) fn outcome(&self, lanes: &Lanes) -> Outcome {
        if let Some(code) = &self.error {
            let error = self.delivered_error.clone().unwrap_or_else(|| ErrorInfo::new(code.clone()));
            return Outcome::Failed { error };
        }
        let is_finished = |choice| self.finishes.iter().any(|(finished, _)| *finished == choice);
        match first(&self.delivered_finishes).or_else(|| first(&self.finishes)) {
            Some(reason) if lanes.choices().all(is_finished) => Outcome::Finished { reason: reason.clone() },
            _ => Outcome::Truncated,
        }
    }

    /// An outcome that came in, with the words of its error as the consumer was given them: those of nobody but an error chunk were
    /// shown to the observers.
    pub(super) fn in_delivered_words(&self, outcome: Outcome) -> Outcome {
        let Outcome::Failed { error } = outcome else { return outcome };
        let message = self.delivered_error.as_ref().and_then(|delivered| delivered.message.clone());
        Outcome::Failed { error: ErrorInfo { message, ..error } }
    }
}

fn note_finish(finishes: &mut Vec<(u16, FinishReason)>, choice: u16, reason: &FinishReason) {
    if !finishes.iter().any(|(known, _)| *known == choice) {
        finishes.push((choice, reason.clone()));
    }
}

fn first(finishes: &[(u16, FinishReason)]) -> Option<&FinishReason> {
    finishes.iter().min_by_key(|(choice, _)| *choice).map(|(_, reason)| reason)
}

/// Bytes of text that a chunk adds to its lane.
pub(super) fn text_len(chunk: &Chunk) -> u64 {
    match chunk.body() {
        Body::Delta { text, .. } => text.len() as u64,
        Body::ToolCall(call) => call.arguments.len() as u64,
        Body::ToolResult(result) => result.content.len() as u64,
        _ => 0,
    }
}

/// Whether a chunk carries text of a lane.
pub(super) fn text_lane(chunk: &Chunk) -> Option<Lane> {
    match chunk.body() {
        Body::Delta { lane, .. } => Some(*lane),
        Body::Snapshot(snapshot) => Some(snapshot.lane),
        Body::ToolCall(call) => Some(call.lane),
        Body::ToolResult(result) => Some(result.lane),
        _ => None,
    }
}

pub(super) fn is_answer(lane: Lane) -> bool {
    lane.channel == Channel::Text
}

use streamkeeper_contract::{Body, Channel, Chunk, ErrorInfo, FinishReason, Lane, Outcome, Text, Usage};

use crate::LaneText;

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
}

fn note_finish(finishes: &mut Vec<(u16, FinishReason)>, choice: u16, reason: &FinishReason) {
    if !finishes.iter().any(|(known, _)| *known == choice) {
        finishes.push((choice, reason.clone()));
    }
}

fn first(finishes: &[(u16, FinishReason)]) -> Option<&FinishReason> {
    finishes.iter().min_by_key(|(choice, _)| *choice).map(|(_, reason)| reason)
}

/// The lanes of an invocation, in order of appearance.
#[derive(Default)]
pub(super) struct Lanes {
    list: Vec<LaneState>,
    /// Where the last delta was: the next one is most often there.
    last: usize,
    limit: usize,
}

pub(super) struct LaneState {
    pub(super) lane: Lane,
    pub(super) entered: u64,
    pub(super) delivered: u64,
    pub(super) withheld: u64,
    /// What was delivered differs from what entered.
    pub(super) changed: bool,
}

impl Lanes {
    pub(super) fn with_limit(limit: usize) -> Self {
        Self { limit, ..Self::default() }
    }

    /// The lane, if it is counted. Opened by the first chunk that speaks of it.
    #[inline]
    pub(super) fn open(&mut self, lane: Lane) -> Option<&mut LaneState> {
        if self.list.get(self.last).is_none_or(|state| state.lane != lane) {
            self.last = match self.list.iter().position(|state| state.lane == lane) {
                Some(at) => at,
                None if self.list.len() < self.limit => {
                    self.list.push(LaneState { lane, entered: 0, delivered: 0, withheld: 0, changed: false });
                    self.list.len() - 1
                }
                None => return None,
            };
        }
        self.list.get_mut(self.last)
    }

    /// The choices that said anything.
    fn choices(&self) -> impl Iterator<Item = u16> {
        self.list.iter().map(|state| state.lane.choice)
    }

    /// Whether text of this part was changed.
    pub(super) fn is_changed(&self, choice: u16, part: u16) -> bool {
        self.list.iter().any(|state| state.changed && state.lane.choice == choice && state.lane.part == part)
    }

    pub(super) fn withheld(&self) -> u64 {
        self.list.iter().map(|state| state.withheld).sum()
    }

    pub(super) fn texts(&self) -> Vec<LaneText> {
        let text = |state: &LaneState| LaneText {
            lane: state.lane,
            entered_len: state.entered,
            delivered_len: state.delivered,
        };
        self.list.iter().map(text).collect()
    }
}

impl LaneState {
    /// Counts a chunk's text into one of the counters. A snapshot repeats: only what goes beyond the text so far is new.
    pub(super) fn add(counter: &mut u64, chunk: &Chunk) {
        match chunk.body() {
            Body::Snapshot(snapshot) => *counter = (*counter).max(snapshot.text.len() as u64),
            _ => *counter += text_len(chunk),
        }
    }
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

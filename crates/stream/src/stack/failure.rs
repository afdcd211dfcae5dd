//! What happens when an observer fails.

use streamkeeper_contract::{Body, Chunk, ErrorInfo, Hook, Lane, Outcome, codes};

use super::{
    Item, Stack, account,
    hold::{Mask, State},
    outlet::{Fault, discard},
    verdict::Deed,
};
use crate::{Action, Interest, OnFailure, Rule};

impl Stack {
    /// An observer failed while it was asked about a chunk. Returns what the next observer sees in the chunk's place.
    pub(super) fn failed_on_chunk(&mut self, i: usize, fault: Fault, chunk: Chunk, joined: bool) -> Option<Chunk> {
        if !joined {
            self.todo.push((Item::Again(chunk), i));
        }
        self.failed(i, Hook::OnChunk, fault);
        None
    }

    /// An observer failed. Its policy applies to what it holds, then to all that comes.
    pub(super) fn failed(&mut self, i: usize, hook: Hook, fault: Fault) {
        self.disable(i, hook, fault);
        // If that was the end, the holds have been withheld and the rest of the way is cleared.
        let holds = std::mem::take(&mut self.slots[i].holds);
        for hold in holds.into_iter().rev() {
            self.held -= hold.text.len();
            self.todo.push((Item::Again(hold.into_chunk(i)), i));
        }
    }

    pub(super) fn disable(&mut self, i: usize, hook: Hook, fault: Fault) {
        let slot = &mut self.slots[i];
        self.outlet.failed(&slot.who.id, hook, fault);
        let state = match &slot.who.on_failure {
            OnFailure::Placeholder(text) => State::Masking(Box::new(Mask {
                placeholder: text.clone(),
                replaced: Vec::new(),
                swallowed: Vec::new(),
            })),
            OnFailure::PassThrough | OnFailure::Fail => State::Off,
        };
        discard(std::mem::replace(&mut slot.state, state));
        if slot.who.on_failure == OnFailure::Fail {
            let error = ErrorInfo::new(codes::GUARD_FAILED).with_component(slot.who.id.clone());
            self.end(Outcome::Failed { error });
        }
    }

    /// Stands in for an observer that has failed: what it would have seen is replaced by one placeholder a lane, or withheld.
    ///
    /// Chunks without content (boundaries, finish, usage, heartbeat) pass. An error passes without the provider's words.
    pub(super) fn mask(&mut self, i: usize, chunk: Chunk) -> Option<Chunk> {
        let limit = self.limits.lanes;
        let slot = &mut self.slots[i];
        let State::Masking(mask) = &mut slot.state else { return Some(chunk) };
        let lane = chunk.lane();
        let is_swallowed = lane.is_some_and(|lane| mask.swallowed.contains(&lane));
        if !is_swallowed && !judges(slot.interest, &chunk) {
            return Some(chunk);
        }
        let replaced = match chunk.body() {
            _ if is_swallowed => None,
            Body::Delta { lane, .. } => mask.replace(*lane, limit, &chunk),
            Body::Snapshot(snapshot) => mask.replace(snapshot.lane, limit, &chunk),
            Body::ToolResult(result) => mask.replace(result.lane, limit, &chunk),
            Body::Error(error) if error.message.is_some() => {
                let error = ErrorInfo { message: None, ..ErrorInfo::clone(error) };
                Some(Chunk::error(error))
            }
            Body::ToolCallStart(call) | Body::ProviderToolStart(call) => {
                if mask.swallowed.len() < limit {
                    mask.swallowed.push(call.lane);
                }
                None
            }
            Body::ToolCall(_)
            | Body::ProviderToolOutput(_)
            | Body::Opaque(_)
            | Body::Annotation(_)
            | Body::Media(_)
            | Body::StateSnapshot(_)
            | Body::StateDelta(_)
            | Body::MessagesSnapshot(_)
            | Body::Custom(_)
            | Body::Raw(_)
            | Body::Unknown(_) => None,
            _ => return Some(chunk),
        };
        if let Some(lane) = account::text_lane(&chunk) {
            self.lanes.part(i, lane);
        }
        self.withhold(&chunk);
        let action = if replaced.is_some() { Action::Placeholder } else { Action::Withhold };
        self.log(Some(i), Hook::OnChunk, lane, Some(Deed::of_stack(action, Rule::OnFailure)));
        let mut meta = chunk.meta().clone();
        meta.provenance.add(i);
        replaced.map(|chunk| chunk.with_meta(meta))
    }
}

/// Whether an observer of this interest has a say in what the chunk says: it sees the kind, or it sees the deltas of a text that the
/// chunk repeats, completes or is a note about.
fn judges(interest: Interest, chunk: &Chunk) -> bool {
    let repeats =
        matches!(chunk.body(), Body::Snapshot(_) | Body::ToolCall(_) | Body::ToolResult(_) | Body::Annotation(_));
    interest.covers(chunk) || (repeats && chunk.lane().is_some_and(|lane| interest.contains(lane.delta_kind())))
}

impl Mask {
    /// The chunk with the placeholder for its text, once a lane. `None` for the rest of the lane, and for lanes past the limit.
    fn replace(&mut self, lane: Lane, limit: usize, chunk: &Chunk) -> Option<Chunk> {
        if self.replaced.contains(&lane) || self.replaced.len() >= limit {
            return None;
        }
        self.replaced.push(lane);
        chunk.with_text(self.placeholder.clone())
    }
}

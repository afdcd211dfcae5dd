//! Snapshots: a provider repeats a text that may have been changed on its way (spec 1.3).

use streamkeeper_contract::{Body, Chunk, Hook};

use super::{Stack, hold::State, lanes::Repeats, verdict::Deed};
use crate::{Action, Role, Rule};

impl Stack {
    /// A snapshot comes to an observer.
    ///
    /// One that repeats what the observer has seen as deltas gets the same edits, without a question: it has judged that text. A watcher
    /// is shown it all the same, and so is an observer that does not look at the deltas. One that nothing came before, or that differs,
    /// is shown whole. Where an observer has changed the text and does not look at snapshots, one that differs is withheld.
    pub(super) fn meet_snapshot(&mut self, i: usize, chunk: Chunk) -> Option<Chunk> {
        let Body::Snapshot(snapshot) = chunk.body() else { return Some(chunk) };
        let lane = snapshot.lane;
        let repeats = self.lanes.compare(i, lane, &snapshot.text);
        let slot = &self.slots[i];
        if matches!(slot.state, State::Masking(_)) {
            return self.mask(i, chunk);
        }
        let looks = slot.is_active() && slot.interest.covers(&chunk);
        let has_judged = slot.who.role != Role::Watcher && slot.interest.contains(lane.delta_kind());
        match repeats {
            Repeats::Edited(text) => {
                let mut meta = chunk.meta().clone();
                meta.provenance.add(i);
                let deed = Deed::of_stack(Action::Amend, Rule::Snapshot);
                self.log(Some(i), Hook::OnChunk, Some(lane), Some(deed));
                Some(Chunk::snapshot(lane, text).with_meta(meta))
            }
            Repeats::Unedited if has_judged => Some(chunk),
            Repeats::Differs { was_edited: true } if !looks && has_judged => {
                let deed = Deed::of_stack(Action::Withhold, Rule::DifferingSnapshot);
                self.log(Some(i), Hook::OnChunk, Some(lane), Some(deed));
                self.withhold(&chunk);
                None
            }
            _ if looks => {
                if has_judged {
                    self.lanes.judge(i, lane, &snapshot.text, &snapshot.text);
                }
                self.ask(i, chunk)
            }
            _ => Some(chunk),
        }
    }
}

//! What each verdict does.

use std::panic::{AssertUnwindSafe, catch_unwind};

use smallvec::SmallVec;
use streamkeeper_contract::{
    Body, Channel, Chunk, Hook, Lane, Outcome, Piece, Release, SideEvent, Stop, Text, ToolCall, Verdict,
};

use super::{
    Answer, Item, Released, Stack,
    hold::{Hold, State},
    outlet::Fault,
};
use crate::{Action, ObserverContext, Rule, VerdictEntry};

/// Calls made by observers are numbered from here, so that they cannot meet a provider's.
const DERIVED_CALLS: u16 = 0x8000;

impl Stack {
    /// Carries out the answer to a chunk. Returns what the next observer sees in its place, if something does at once.
    pub(super) fn apply(&mut self, i: usize, chunk: Chunk, (answer, joined): Answer) -> Option<Chunk> {
        let verdict = match answer {
            Ok(verdict) => verdict,
            Err(fault) => return self.failed_on_chunk(i, fault, chunk, joined),
        };
        let lane = chunk.lane();
        let mut deed = self.outlet.is_recording().then(|| Deed::new(&verdict, Rule::Verdict));
        let fault = match verdict {
            Verdict::Continue => {
                if joined {
                    self.log(Some(i), Hook::OnChunk, lane, deed);
                }
                return Some(self.let_pass(i, chunk, joined));
            }
            Verdict::Emit(events) => {
                self.log(Some(i), Hook::OnChunk, lane, deed);
                self.emit_all(i, events);
                return Some(self.let_pass(i, chunk, joined));
            }
            Verdict::Stop { code, reason } => {
                self.log(Some(i), Hook::OnChunk, lane, deed.map(Deed::changes));
                if !joined {
                    self.withhold(&chunk);
                }
                self.stop(i, code, reason);
                return None;
            }
            Verdict::Amend(_) if joined => Fault::Contract("amend while text is held"),
            Verdict::Amend(amended) => match self.amend(i, &chunk, amended) {
                Ok(amended) => {
                    self.log(Some(i), Hook::OnChunk, lane, deed.map(Deed::changes));
                    return Some(amended);
                }
                Err(fault) => fault,
            },
            Verdict::Buffer if chunk.is_delta() => {
                let at = self.hold(i, &chunk, joined);
                if let Err(fault) = self.check_holds(i, at, usize::MAX) {
                    return self.failed_on_chunk(i, fault, chunk, true);
                }
                self.log(Some(i), Hook::OnChunk, lane, deed);
                return None;
            }
            Verdict::Release(release) if chunk.is_delta() => {
                if !joined && release.as_pieces().is_none() && release.kept() == 0 {
                    return Some(chunk);
                }
                let at = self.hold(i, &chunk, joined);
                let kept = release.kept();
                let fits = if kept == 0 { Ok(()) } else { self.check_holds(i, at, kept) };
                let released = fits.and_then(|()| self.release(i, at, release));
                return match released {
                    Ok((chunks, changes)) => {
                        deed = if changes { deed.map(Deed::changes) } else { deed };
                        self.log(Some(i), Hook::OnChunk, lane, deed);
                        self.hand_on(i, chunks);
                        None
                    }
                    Err(fault) => self.failed_on_chunk(i, fault, chunk, true),
                };
            }
            Verdict::Buffer | Verdict::Release(_) => Fault::Contract("only deltas can be held or released"),
            _ => Fault::Contract("unknown verdict"),
        };
        self.failed_on_chunk(i, fault, chunk, joined)
    }

    /// Settles one hold of an observer.
    pub(super) fn settle(&mut self, i: usize, at: usize) {
        let slot = &mut self.slots[i];
        let hold = &slot.holds[at];
        let lane = hold.lane;
        let State::Active(observer) = &mut slot.state else { return };
        let mut ctx = ObserverContext {
            call: &self.call,
            position: self.position,
            lane: Some(lane),
            pending: &hold.text,
            held: hold.text.len(),
            observer: i,
            outlet: &mut self.outlet,
        };
        let verdict = match catch_unwind(AssertUnwindSafe(|| observer.on_barrier(&mut ctx))) {
            Ok(verdict) => verdict,
            Err(payload) => return self.failed(i, Hook::OnBarrier, Fault::Panic(payload)),
        };
        let mut deed = self.outlet.is_recording().then(|| Deed::new(&verdict, Rule::Barrier));
        let released = match verdict {
            Verdict::Continue => Ok((self.take_hold(i, at), false)),
            Verdict::Emit(events) => {
                self.emit_all(i, events);
                Ok((self.take_hold(i, at), false))
            }
            Verdict::Stop { code, reason } => {
                self.log(Some(i), Hook::OnBarrier, Some(lane), deed.map(Deed::changes));
                return self.stop(i, code, reason);
            }
            Verdict::Release(release) if release.kept() == 0 => self.release(i, at, release),
            Verdict::Release(_) => Err(Fault::Contract("a release at a barrier keeps text")),
            Verdict::Buffer => Err(Fault::Contract("undecided at a barrier")),
            _ => Err(Fault::Contract("there is no chunk to amend at a barrier")),
        };
        match released {
            Ok((chunks, changes)) => {
                deed = if changes { deed.map(Deed::changes) } else { deed };
                self.log(Some(i), Hook::OnBarrier, Some(lane), deed);
                self.hand_on(i, chunks);
            }
            Err(fault) => self.failed(i, Hook::OnBarrier, fault),
        }
    }

    /// Puts what was done into the recording.
    pub(super) fn log(&mut self, i: Option<usize>, hook: Hook, lane: Option<Lane>, deed: Option<Deed>) {
        let Some(Deed { action, rule, changes, verdict }) = deed else { return };
        self.outlet.verdict(VerdictEntry {
            index: self.position.chunk_index,
            observer: i.and_then(|i| self.call.observers.get(i)).cloned(),
            hook,
            lane,
            action,
            changes,
            rule,
            verdict,
        });
    }

    /// Puts released chunks on their way to the later observers, the first on top.
    pub(super) fn hand_on(&mut self, i: usize, chunks: Released) {
        self.todo.extend(chunks.into_iter().rev().map(|chunk| (Item::Chunk(chunk), i + 1)));
    }

    /// Everything pending passes.
    fn let_pass(&mut self, i: usize, chunk: Chunk, joined: bool) -> Chunk {
        let at = chunk.lane().filter(|_| joined).and_then(|lane| self.slots[i].hold_of(lane));
        let Some(at) = at else { return chunk };
        let hold = self.slots[i].holds.swap_remove(at);
        self.held -= hold.text.len();
        hold.into_chunk(i)
    }

    fn take_hold(&mut self, i: usize, at: usize) -> Released {
        let hold = self.slots[i].holds.remove(at);
        self.held -= hold.text.len();
        SmallVec::from_buf([hold.into_chunk(i)])
    }

    fn emit_all(&mut self, i: usize, events: Vec<SideEvent>) {
        for event in events {
            self.outlet.emit(i, event);
        }
    }

    fn stop(&mut self, i: usize, code: Text, reason: Text) {
        let stop = Stop {
            observer: self.slots[i].who.id.clone(),
            code,
            reason,
            chunk_index: self.position.chunk_index,
            accumulated_content_length: self.position.delivered,
        };
        self.end(Outcome::Stopped(stop));
    }

    /// One for one, in place: same kind and lane, or one whole tool call in the place of answer text.
    fn amend(&mut self, i: usize, chunk: &Chunk, amended: Chunk) -> Result<Chunk, Fault> {
        let (old, new) = (chunk.text().unwrap_or_default(), amended.text().unwrap_or_default());
        if chunk.is_delta() && new.len() > old.len().saturating_add(self.limits.growth_bytes) {
            return Err(Fault::Overflow("an amended delta grows beyond the limit"));
        }
        let mut meta = chunk.meta().clone();
        meta.provenance.add(i);
        if let (Body::Delta { lane, .. }, Body::ToolCall(call)) = (chunk.body(), amended.body()) {
            if lane.channel != Channel::Text {
                return Err(Fault::Contract("only answer text can be amended to a tool call"));
            }
            let piece = Piece::ToolCall { name: call.name.clone(), arguments: call.arguments.clone() };
            let call = self.piece(i, *lane, piece)?;
            self.lanes.edit(i, *lane, old, "", 0);
            return Ok(call.with_meta(meta));
        }
        if matches!(chunk.body(), Body::Opaque(_)) {
            return Err(Fault::Contract("an opaque chunk passes unchanged or not at all"));
        }
        if chunk.kind() != amended.kind() || chunk.lane() != amended.lane() || place(chunk) != place(&amended) {
            return Err(Fault::Contract("an amended chunk has another kind, lane or choice"));
        }
        if self.is_text_only && !matches!(chunk.body(), Body::Delta { .. } | Body::Snapshot(_)) {
            return Err(Fault::Contract("only the texts of a client's item can be amended"));
        }
        match chunk.body() {
            Body::Delta { lane, .. } => self.lanes.edit(i, *lane, old, new, 0),
            Body::Snapshot(snapshot) => self.lanes.judge(i, snapshot.lane, old, new),
            _ => {
                if let Some(state) = chunk.lane().filter(|_| old != new).and_then(|lane| self.lanes.open(lane)) {
                    state.changed = true;
                }
            }
        }
        Ok(amended.with_meta(meta))
    }

    /// The hold that contains this delta, opened if there is none.
    fn hold(&mut self, i: usize, chunk: &Chunk, joined: bool) -> usize {
        let slot = &mut self.slots[i];
        let Body::Delta { lane, text } = chunk.body() else { return 0 };
        if joined && let Some(at) = slot.hold_of(*lane) {
            return at;
        }
        self.held += text.len();
        self.lanes.part(i, *lane);
        slot.holds.push(Hold::open(*lane, text, chunk.meta().clone()));
        slot.holds.len() - 1
    }

    /// Whether a hold may stay, if this much of it is kept.
    fn check_holds(&self, i: usize, at: usize, kept: usize) -> Result<(), Fault> {
        let slot = &self.slots[i];
        let len = slot.holds[at].text.len();
        let kept = kept.min(len);
        if kept > self.limits.held_lane_bytes {
            Err(Fault::Overflow("the hold of a lane is full"))
        } else if slot.holds.len() > self.limits.held_lanes {
            Err(Fault::Overflow("too many lanes are held"))
        } else if self.held - (len - kept) > self.limits.held_bytes {
            Err(Fault::Overflow("the holds of the stack are full"))
        } else {
            Ok(())
        }
    }

    /// Takes a release out of a hold, which goes if nothing is kept. Tells whether the text is another. On an error the hold is as
    /// before.
    fn release(&mut self, i: usize, at: usize, release: Release) -> Result<(Released, bool), Fault> {
        let hold = &self.slots[i].holds[at];
        let (lane, kept) = (hold.lane, release.kept());
        let cut = hold.text.len().checked_sub(kept).filter(|cut| hold.text.is_char_boundary(*cut));
        let cut = cut.ok_or(Fault::Contract("a release keeps more than is pending, or a part of a character"))?;
        let mut pieces = match release.into_pieces() {
            Some(pieces) if pieces.len() > self.limits.pieces => {
                return Err(Fault::Overflow("a release has too many pieces"));
            }
            Some(pieces) => pieces,
            None => SmallVec::from_buf([Piece::Text(hold.text[..cut].into())]),
        };
        let size = pieces.iter().map(Piece::len).fold(0, usize::saturating_add);
        if size > hold.text.len().saturating_add(self.limits.growth_bytes) {
            return Err(Fault::Overflow("a release grows beyond the limit"));
        }
        pieces.retain(|piece| !piece.is_empty());
        let pieces_left = self.pieces_left.checked_sub(pieces.len());
        let pieces_left = pieces_left.ok_or(Fault::Overflow("too many pieces are released for one chunk"))?;
        let mut meta = hold.meta.clone();
        meta.provenance.add(i);
        let mut text = String::new();
        for piece in &pieces {
            if let Piece::Text(piece) = piece {
                text.push_str(piece);
            }
        }
        let changes = text != hold.text[..cut] || pieces.iter().any(|piece| !matches!(piece, Piece::Text(_)));
        let mut chunks = Released::new();
        for piece in pieces {
            chunks.push(self.piece(i, lane, piece)?.with_meta(meta.clone()));
        }
        let holds = &mut self.slots[i].holds;
        self.lanes.edit(i, lane, &holds[at].text[..cut], &text, kept);
        if kept == 0 {
            holds.remove(at);
        } else {
            holds[at].text.drain(..cut);
        }
        self.held -= cut;
        self.pieces_left = pieces_left;
        Ok((chunks, changes))
    }

    /// A piece as a chunk of a lane's choice.
    fn piece(&mut self, i: usize, lane: Lane, piece: Piece) -> Result<Chunk, Fault> {
        match piece {
            Piece::Text(text) => Ok(Chunk::delta(lane, text)),
            Piece::Reasoning(text) if lane.channel == Channel::Text => {
                let lane = lane.in_channel(Channel::Reasoning);
                self.lanes.part(i, lane);
                Ok(Chunk::delta(lane, text))
            }
            Piece::Reasoning(_) => Err(Fault::Contract("only answer text can be released as reasoning")),
            Piece::ToolCall { name, arguments } => {
                let call = DERIVED_CALLS
                    .checked_add(self.derived)
                    .ok_or(Fault::Overflow("too many tool calls are made by observers"))?;
                let id = Text::from(format!("derived_{}", self.derived));
                self.derived += 1;
                Ok(Body::ToolCall(Box::new(ToolCall { lane: lane.arguments(call), id, name, arguments })).into())
            }
            _ => Err(Fault::Contract("unknown piece")),
        }
    }
}

/// What is recorded of a verdict, or of what the stack does in an observer's place.
pub(super) struct Deed {
    action: Action,
    rule: Rule,
    changes: bool,
    verdict: Option<Verdict>,
}

impl Deed {
    fn new(verdict: &Verdict, rule: Rule) -> Self {
        let action = match verdict {
            Verdict::Amend(_) => Action::Amend,
            Verdict::Emit(_) => Action::Emit,
            Verdict::Stop { .. } => Action::Stop,
            Verdict::Buffer => Action::Buffer,
            Verdict::Release(_) => Action::Release,
            _ => Action::Continue,
        };
        Self { action, rule, changes: false, verdict: Some(verdict.clone()) }
    }

    /// The stack changes something on its own.
    pub(super) fn of_stack(action: Action, rule: Rule) -> Self {
        Self { action, rule, changes: true, verdict: None }
    }

    fn changes(self) -> Self {
        Self { changes: true, ..self }
    }
}

/// The choice and part that a chunk without a lane speaks about.
fn place(chunk: &Chunk) -> Option<(u16, u16)> {
    match chunk.body() {
        Body::Finish(finish) => Some((finish.choice, 0)),
        Body::MessageStart(message) => Some((message.choice, 0)),
        Body::MessageEnd { choice } => Some((*choice, 0)),
        Body::PartEnd { choice, part } => Some((*choice, *part)),
        _ => None,
    }
}

//! What each verdict does.

use std::panic::{AssertUnwindSafe, catch_unwind};

use smallvec::SmallVec;
use streamkeeper_contract::{
    Body, Channel, Chunk, Hook, Lane, Meta, Outcome, Piece, Release, SideEvent, Stop, Text, ToolCall, Verdict,
};

use super::{Answer, Item, Released, Stack, hold::Hold, outlet::Fault};
use crate::ObserverContext;

/// Calls made by observers are numbered from here, so that they cannot meet a provider's.
const DERIVED_CALLS: u16 = 0x8000;

impl Stack {
    /// Carries out the answer to a chunk. Returns what the next observer sees in its place, if something does at once.
    pub(super) fn apply(&mut self, i: usize, chunk: Chunk, (answer, joined): Answer) -> Option<Chunk> {
        let verdict = match answer {
            Ok(verdict) => verdict,
            Err(fault) => return self.failed_on_chunk(i, fault, chunk, joined),
        };
        let fault = match verdict {
            Verdict::Continue => return Some(self.let_pass(i, chunk, joined)),
            Verdict::Emit(events) => {
                self.emit_all(i, events);
                return Some(self.let_pass(i, chunk, joined));
            }
            Verdict::Stop { code, reason } => {
                if !joined {
                    self.withhold(&chunk);
                }
                self.stop(i, code, reason);
                return None;
            }
            Verdict::Amend(_) if joined => Fault::Contract("amend while text is held"),
            Verdict::Amend(amended) => match self.amend(i, &chunk, amended) {
                Ok(amended) => return Some(amended),
                Err(fault) => fault,
            },
            Verdict::Buffer if chunk.is_delta() => match self.buffer(i, &chunk, joined) {
                Ok(()) => return None,
                Err(fault) => return self.failed_on_chunk(i, fault, chunk, true),
            },
            Verdict::Release(release) if chunk.is_delta() => {
                if !joined && release.as_pieces().is_none() && release.kept() == 0 {
                    return Some(chunk);
                }
                return match self.release_pending(i, &chunk, joined, release) {
                    Ok(()) => None,
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
        let Some(observer) = &mut slot.observer else { return };
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
        let released = match verdict {
            Verdict::Continue => Ok(self.take_hold(i, at)),
            Verdict::Emit(events) => {
                self.emit_all(i, events);
                Ok(self.take_hold(i, at))
            }
            Verdict::Stop { code, reason } => return self.stop(i, code, reason),
            Verdict::Release(release) if release.kept() == 0 => self.release(i, at, release),
            Verdict::Release(_) => Err(Fault::Contract("a release at a barrier keeps text")),
            Verdict::Buffer => Err(Fault::Contract("undecided at a barrier")),
            _ => Err(Fault::Contract("only deltas and whole chunks can be amended")),
        };
        match released {
            Ok(chunks) => self.hand_on(i, chunks),
            Err(fault) => self.failed(i, Hook::OnBarrier, fault),
        }
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
            self.outlet.emit(i, self.position.chunk_index, event);
        }
    }

    fn stop(&mut self, i: usize, code: Text, reason: Text) {
        let stop = Stop {
            observer: self.slots[i].id.clone(),
            code,
            reason,
            chunk_index: self.position.chunk_index,
            accumulated_content_length: self.position.delivered,
        };
        self.end(Outcome::Stopped(stop));
    }

    /// One for one, in place: same kind and lane, or one whole tool call in the place of answer text.
    fn amend(&mut self, i: usize, chunk: &Chunk, amended: Chunk) -> Result<Chunk, Fault> {
        let size = |chunk: &Chunk| chunk.text().map_or(0, str::len);
        if size(&amended) > size(chunk).saturating_add(self.limits.growth_bytes) && chunk.is_delta() {
            return Err(Fault::Overflow("an amended delta grows beyond the limit"));
        }
        let mut meta = chunk.meta().clone();
        meta.provenance.add(i);
        if let (Body::Delta { lane, .. }, Body::ToolCall(call)) = (chunk.body(), amended.body()) {
            if lane.channel != Channel::Text {
                return Err(Fault::Contract("only answer text can be amended to a tool call"));
            }
            let piece = Piece::ToolCall { name: call.name.clone(), arguments: call.arguments.clone() };
            let call = self.piece(*lane, piece)?;
            self.note_edit(i, *lane, size(chunk), 0);
            return Ok(call.with_meta(meta));
        }
        if matches!(chunk.body(), Body::Opaque(_)) {
            return Err(Fault::Contract("an opaque chunk passes unchanged or not at all"));
        }
        if chunk.kind() != amended.kind() || chunk.lane() != amended.lane() || choice(chunk) != choice(&amended) {
            return Err(Fault::Contract("an amended chunk has another kind or lane"));
        }
        if self.is_text_only && !matches!(chunk.body(), Body::Delta { .. } | Body::Snapshot(_)) {
            return Err(Fault::Contract("only the texts of a client's item can be amended"));
        }
        if let Body::Delta { lane, .. } = chunk.body() {
            self.note_edit(i, *lane, size(chunk), size(&amended));
        }
        Ok(amended.with_meta(meta))
    }

    /// Everything pending stays held.
    fn buffer(&mut self, i: usize, chunk: &Chunk, joined: bool) -> Result<(), Fault> {
        let at = self.hold(i, chunk, joined);
        self.check_holds(i, at)
    }

    fn release_pending(&mut self, i: usize, chunk: &Chunk, joined: bool, release: Release) -> Result<(), Fault> {
        let at = self.hold(i, chunk, joined);
        let keeps = release.kept() > 0;
        let chunks = self.release(i, at, release)?;
        if keeps {
            self.check_holds(i, at)?;
        }
        self.hand_on(i, chunks);
        Ok(())
    }

    /// The hold that contains this delta, opened if there is none.
    fn hold(&mut self, i: usize, chunk: &Chunk, joined: bool) -> usize {
        let slot = &mut self.slots[i];
        let Body::Delta { lane, text } = chunk.body() else { return 0 };
        if joined && let Some(at) = slot.hold_of(*lane) {
            return at;
        }
        self.held += text.len();
        slot.holds.push(Hold::open(*lane, text, chunk.meta().clone()));
        slot.holds.len() - 1
    }

    fn check_holds(&self, i: usize, at: usize) -> Result<(), Fault> {
        let slot = &self.slots[i];
        if slot.holds[at].text.len() > self.limits.held_lane_bytes {
            Err(Fault::Overflow("the hold of a lane is full"))
        } else if slot.holds.len() > self.limits.held_lanes {
            Err(Fault::Overflow("too many lanes are held"))
        } else if self.held > self.limits.held_bytes {
            Err(Fault::Overflow("the holds of the stack are full"))
        } else {
            Ok(())
        }
    }

    /// Takes a release out of a hold, which goes if nothing is kept. On an error the hold is as before.
    fn release(&mut self, i: usize, at: usize, release: Release) -> Result<Released, Fault> {
        let hold = &self.slots[i].holds[at];
        let (lane, kept) = (hold.lane, release.kept());
        let cut = hold.text.len().checked_sub(kept).filter(|cut| hold.text.is_char_boundary(*cut));
        let cut = cut.ok_or(Fault::Contract("a release keeps more than is pending, or a part of a character"))?;
        let size_limit = hold.text.len().saturating_add(self.limits.growth_bytes);
        let is_edit = release.as_pieces().is_some();
        let mut pieces =
            release.into_pieces().unwrap_or_else(|| SmallVec::from_buf([Piece::Text(hold.text[..cut].into())]));
        if pieces.len() > self.limits.pieces {
            return Err(Fault::Overflow("a release has too many pieces"));
        }
        pieces.retain(|piece| !piece.is_empty());
        if pieces.iter().map(Piece::len).fold(0, usize::saturating_add) > size_limit {
            return Err(Fault::Overflow("a release grows beyond the limit"));
        }
        self.pieces_left = self
            .pieces_left
            .checked_sub(pieces.len())
            .ok_or(Fault::Overflow("too many pieces are released for one chunk"))?;
        let text_len = |piece: &Piece| if matches!(piece, Piece::Text(_)) { piece.len() } else { 0 };
        let made = pieces.iter().map(text_len).sum();
        let mut meta: Meta = hold.meta.clone();
        meta.provenance.add(i);
        let mut chunks = Released::new();
        for piece in pieces {
            chunks.push(self.piece(lane, piece)?.with_meta(meta.clone()));
        }
        if is_edit {
            self.note_edit(i, lane, cut, made);
        }
        let holds = &mut self.slots[i].holds;
        if kept == 0 {
            holds.remove(at);
        } else {
            holds[at].text.drain(..cut);
        }
        self.held -= cut;
        Ok(chunks)
    }

    /// A piece as a chunk of a lane's choice.
    fn piece(&mut self, lane: Lane, piece: Piece) -> Result<Chunk, Fault> {
        match piece {
            Piece::Text(text) => Ok(Chunk::delta(lane, text)),
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

    fn note_edit(&mut self, i: usize, lane: Lane, from: usize, to: usize) {
        let _ = (i, from, to);
        if let Some(state) = self.lanes.open(lane) {
            state.changed = true;
        }
    }
}

/// The choice that a chunk without a lane speaks about.
fn choice(chunk: &Chunk) -> Option<(u16, u16)> {
    match chunk.body() {
        Body::Finish(finish) => Some((finish.choice, 0)),
        Body::MessageStart(message) => Some((message.choice, 0)),
        Body::MessageEnd { choice } => Some((*choice, 0)),
        Body::PartEnd { choice, part } => Some((*choice, *part)),
        _ => None,
    }
}

use streamkeeper_contract::{Body, Chunk, ChunkKind, Lane, Verdict};
use streamkeeper_stream::Interest;

/// What is known of each text that is open.
#[derive(Debug)]
pub(crate) struct Texts<S>(Vec<(Lane, S)>);

const MAX_TEXTS: usize = 256;

/// The chunks that end texts.
pub(crate) const ENDS: Interest = Interest::only(&[
    ChunkKind::ToolCallEnd,
    ChunkKind::ProviderToolEnd,
    ChunkKind::PartEnd,
    ChunkKind::MessageEnd,
    ChunkKind::Finish,
    ChunkKind::Discard,
]);

impl<S> Default for Texts<S> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<S: Default> Texts<S> {
    /// What is known of a text. An error, which is the verdict, if more than 256 are open at once.
    pub(crate) fn open(&mut self, lane: Lane) -> Result<&mut S, Verdict> {
        let at = match self.0.iter().rposition(|(known, _)| *known == lane) {
            Some(at) => at,
            None if self.0.len() < MAX_TEXTS => {
                self.0.push((lane, S::default()));
                self.0.len() - 1
            }
            None => return Err(Verdict::stop("too_many_lanes", "more than 256 texts are open at once")),
        };
        Ok(&mut self.0[at].1)
    }

    /// Forgets the texts that the chunk ends, each after a last look.
    pub(crate) fn close(&mut self, end: &Chunk, mut look: impl FnMut(Lane, &mut S)) {
        self.0.retain_mut(|(lane, state)| {
            let is_over = ends(end, *lane);
            if is_over {
                look(*lane, state);
            }
            !is_over
        });
    }
}

/// Whether nothing more comes of a text after this chunk.
fn ends(chunk: &Chunk, lane: Lane) -> bool {
    match chunk.body() {
        Body::PartEnd { choice, part } => lane.choice == *choice && lane.part == *part,
        Body::MessageEnd { choice } => lane.choice == *choice,
        Body::Finish(finish) => lane.choice == finish.choice,
        Body::ToolCallEnd(ended) | Body::ProviderToolEnd(ended) => lane == *ended,
        Body::Discard(_) => true,
        _ => false,
    }
}

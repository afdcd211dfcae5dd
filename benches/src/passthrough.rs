//! Provider bytes through observers and out again.

use std::hint::black_box;

use streamkeeper_contract::{Chunk, ChunkKind, Verdict, id};
use streamkeeper_stream::{
    Interest, ObservedBytes, ObserverContext, ObserverFactoryContext, Observers, Registration, StreamObserver,
};
use streamkeeper_wire::Decoder;

use crate::decode::Input;

/// Writes every text anew: what a guard costs that changes everything.
#[derive(Debug, Clone)]
struct Rewrite;

impl StreamObserver for Rewrite {
    fn interest(&self) -> Interest {
        Interest::only(&[ChunkKind::ContentDelta])
    }

    fn on_chunk(&mut self, chunk: &Chunk, _: &mut ObserverContext<'_>) -> Verdict {
        chunk.with_text("wares").map_or(Verdict::Continue, Verdict::Amend)
    }
}

/// An observer that amends each text.
pub fn rewrite() -> Observers {
    Registration::transform(id!("rewrite"), Rewrite).into()
}

/// Takes a body through observers and returns how many bytes came out.
pub fn through(input: &Input, body: &[u8], observers: &Observers) -> usize {
    let stack = observers.stack(&ObserverFactoryContext::default());
    let mut observed = ObservedBytes::new(Decoder::new(input.format), stack);
    let mut bytes = 0;
    for read in body.chunks(1024) {
        observed.push(black_box(read));
        bytes += black_box(observed.take()).len();
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{decode::INPUTS, stack::pass_through};

    #[test]
    fn watched_bytes_come_out_and_rewritten_ones_differ() {
        for input in INPUTS.iter().filter(|input| input.is_sse()) {
            let body = input.body(100);
            assert_eq!(through(input, &body, &pass_through(1)), body.len(), "{}", input.format);
            assert!(through(input, &body, &rewrite()) < body.len(), "{}", input.format);
        }
    }
}

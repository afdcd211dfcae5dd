use streamkeeper_contract::{Chunk, Verdict};
use streamkeeper_stream::{InvocationResult, ObserverContext, StreamObserver};

struct Slow;

impl StreamObserver for Slow {
    async fn on_chunk(&mut self, _: &Chunk, _: &mut ObserverContext<'_>) -> Verdict {
        Verdict::Continue
    }

    async fn on_barrier(&mut self, _: &mut ObserverContext<'_>) -> Verdict {
        Verdict::Continue
    }

    async fn on_end_invocation(&mut self, _: &InvocationResult, _: &mut ObserverContext<'_>) {}
}

fn main() {}

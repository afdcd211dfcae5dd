use streamkeeper_contract::{Chunk, Verdict};
use streamkeeper_stream::{ObserverContext, StreamObserver};

struct Keeps<'a>(Vec<&'a str>);

impl<'a> StreamObserver for Keeps<'a> {
    fn on_chunk(&mut self, _: &Chunk, ctx: &mut ObserverContext<'_>) -> Verdict {
        self.0.push(ctx.pending());
        Verdict::Continue
    }
}

fn main() {}

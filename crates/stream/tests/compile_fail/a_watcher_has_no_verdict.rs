use streamkeeper_contract::{Chunk, Verdict};
use streamkeeper_stream::{ObserverContext, StreamWatcher};

struct Sly;

impl StreamWatcher for Sly {
    fn on_chunk(&mut self, _: &Chunk, _: &mut ObserverContext<'_>) -> Verdict {
        Verdict::Buffer
    }
}

fn main() {}

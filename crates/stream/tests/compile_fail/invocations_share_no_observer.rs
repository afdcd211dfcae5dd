use streamkeeper_contract::{Chunk, Verdict, id};
use streamkeeper_stream::{ObserverContext, Registration, StreamObserver};

struct Counter(u64);

impl StreamObserver for Counter {
    fn on_chunk(&mut self, _: &Chunk, _: &mut ObserverContext<'_>) -> Verdict {
        self.0 += 1;
        Verdict::Continue
    }
}

fn main() {
    Registration::guard(id!("one"), Counter(0));
}

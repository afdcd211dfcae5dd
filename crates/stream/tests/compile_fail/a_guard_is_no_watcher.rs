use streamkeeper_contract::{Chunk, Verdict, id};
use streamkeeper_stream::{ObserverContext, Registration, StreamObserver};

#[derive(Clone)]
struct Guard;

impl StreamObserver for Guard {
    fn on_chunk(&mut self, _: &Chunk, _: &mut ObserverContext<'_>) -> Verdict {
        Verdict::Continue
    }
}

fn main() {
    Registration::watcher(id!("guard"), Guard);
}

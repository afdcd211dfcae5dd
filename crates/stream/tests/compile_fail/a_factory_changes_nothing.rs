use streamkeeper_contract::{Chunk, Verdict, id};
use streamkeeper_stream::{ObserverContext, Registration, StreamObserver, from_fn};

struct Counter(u64);

impl StreamObserver for Counter {
    fn on_chunk(&mut self, _: &Chunk, _: &mut ObserverContext<'_>) -> Verdict {
        self.0 += 1;
        Verdict::Continue
    }
}

fn main() {
    let mut made = 0;
    Registration::guard(
        id!("two"),
        from_fn(move |_| {
            made += 1;
            Counter(made)
        }),
    );
}

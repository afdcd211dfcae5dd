//! A first look at the whole stack.
use streamkeeper_contract::{Chunk, FinishReason, Lane, Outcome, Release, Verdict, id};
use streamkeeper_stream::{ObserverContext, Observers, Registration, Stack, StreamObserver};

#[derive(Clone)]
struct HoldTwo;

impl StreamObserver for HoldTwo {
    fn on_chunk(&mut self, chunk: &Chunk, ctx: &mut ObserverContext<'_>) -> Verdict {
        if !chunk.is_delta() {
            return Verdict::Continue;
        }
        Release::unchanged().keep(ctx.pending().len().min(2)).into()
    }

    fn on_barrier(&mut self, _: &mut ObserverContext<'_>) -> Verdict {
        Verdict::Continue
    }
}

fn run(mut stack: Stack, chunks: impl IntoIterator<Item = Chunk>) -> Vec<Chunk> {
    for chunk in chunks {
        stack.push(chunk);
    }
    stack.finish();
    std::iter::from_fn(|| stack.pop()).collect()
}

#[test]
fn a_tail_is_held_and_goes_out_before_the_finish() {
    let stack = Observers::from(Registration::guard(id!("hold"), HoldTwo)).stack(&Default::default());
    let out = run(
        stack,
        [Chunk::delta(Lane::TEXT, "Hello "), Chunk::delta(Lane::TEXT, "World"), Chunk::finish(0, FinishReason::Stop)],
    );
    let texts: Vec<_> = out.iter().filter_map(Chunk::text).collect();
    assert_eq!(texts, ["Hell", "o Wor", "ld"]);
    assert_eq!(out.len(), 5);
    let streamkeeper_contract::Body::End(end) = out[4].body() else { panic!() };
    assert_eq!(**end.outcome(), Outcome::Finished { reason: FinishReason::Stop });
}

//! Feeds a stack by hand: no runtime, no stream, no threads. This is how to observe a model from a plain loop, from another language's
//! binding, or from a test.
//!
//! cargo run -p streamkeeper-examples --example stack_without_a_runtime

use streamkeeper::prelude::*;

/// Writes answers in capitals.
#[derive(Clone)]
struct Shout;

impl StreamObserver for Shout {
    fn interest(&self) -> Interest {
        Interest::only(&[ChunkKind::ContentDelta])
    }

    fn on_chunk(&mut self, chunk: &Chunk, _: &mut ObserverContext<'_>) -> Verdict {
        match chunk.with_text(chunk.text().unwrap_or_default().to_uppercase()) {
            Some(louder) => Verdict::Amend(louder),
            None => Verdict::Continue,
        }
    }
}

fn main() {
    // A list of registrations is made once; each model call gets a stack of its own from it.
    let observers = Observers::from(Registration::transform(id!("shout"), Shout));
    let mut stack = observers.stack(&ObserverFactoryContext::default());

    let mut answer = String::new();
    let mut outcome = None;
    let source = [
        Chunk::delta(Lane::TEXT, "order 48213 "),
        Chunk::delta(Lane::TEXT, "is on its way"),
        Chunk::finish(0, FinishReason::Stop),
    ];
    for chunk in source {
        stack.push(chunk); // what the model sent
        while let Some(chunk) = stack.pop() {
            // what the reader gets
            answer.push_str(chunk.text().unwrap_or_default());
        }
    }
    stack.finish(); // the model's stream is over
    while let Some(chunk) = stack.pop() {
        if let Body::End(end) = chunk.body() {
            outcome = Some(end.outcome().code());
        }
    }

    println!("{answer}");
    println!("outcome: {}", outcome.unwrap_or("none"));
    assert_eq!(answer, "ORDER 48213 IS ON ITS WAY");
    assert_eq!(outcome, Some("finished"));
}

#[cfg(test)]
#[test]
fn it_runs() {
    main();
}

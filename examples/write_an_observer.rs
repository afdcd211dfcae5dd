//! Two observers from scratch: a guard that hides long numbers, however the stream cuts them, and a watcher that counts words.
//!
//! cargo run -p streamkeeper-examples --example write_an_observer

use std::sync::Arc;

use streamkeeper::prelude::*;

/// Replaces each number of six or more digits by `######`.
///
/// A number may be cut anywhere between two chunks. So digits at the end of what is pending are kept until it is known what follows.
#[derive(Clone)]
struct HideNumbers;

impl HideNumbers {
    fn hide(text: &str) -> String {
        let mut hidden = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
            let number = &rest[start..];
            let end = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
            hidden.push_str(&rest[..start]);
            hidden.push_str(if end >= 6 { "######" } else { &number[..end] });
            rest = &number[end..];
        }
        hidden + rest
    }

    fn trailing_digits(text: &str) -> usize {
        text.len() - text.trim_end_matches(|c: char| c.is_ascii_digit()).len()
    }
}

impl StreamObserver for HideNumbers {
    // Only these kinds are shown to it; the stack does not even call it for others.
    fn interest(&self) -> Interest {
        Interest::only(&[ChunkKind::ContentDelta])
    }

    // `pending` is what this observer holds of the lane, then the chunk's text, in one piece.
    fn on_chunk(&mut self, _: &Chunk, ctx: &mut ObserverContext<'_>) -> Verdict {
        let pending = ctx.pending();
        let undecided = Self::trailing_digits(pending);
        let decided = &pending[..pending.len() - undecided];
        Release::text(Self::hide(decided)).keep(undecided).into()
    }

    // Something comes that may not overtake the held text: a tool call, the end of the answer. Nothing may stay behind.
    fn on_barrier(&mut self, ctx: &mut ObserverContext<'_>) -> Verdict {
        Release::text(Self::hide(ctx.pending())).into()
    }
}

/// Counts words, and says how many when the call is over. A watcher cannot hold, change or stop anything, by type.
#[derive(Clone, Default)]
struct CountWords {
    words: usize,
    inside: bool,
}

impl StreamWatcher for CountWords {
    fn interest(&self) -> Interest {
        Interest::only(&[ChunkKind::ContentDelta])
    }

    fn on_chunk(&mut self, chunk: &Chunk, _: &mut ObserverContext<'_>) {
        for c in chunk.text().unwrap_or_default().chars() {
            self.words += usize::from(!self.inside && !c.is_whitespace());
            self.inside = !c.is_whitespace();
        }
    }

    fn on_end_invocation(&mut self, result: &InvocationResult, ctx: &mut ObserverContext<'_>) {
        // The way out to asynchronous work: an event on a named channel. No waiting here.
        if let Ok(payload) = Json::new(&self.words) {
            ctx.emit(SideEvent { channel: id!("statistics"), name: id!("words"), payload });
        }
        println!("the call ended as: {}", result.outcome);
    }
}

fn main() -> Result<(), RegisterError> {
    // The `Clone` values are factories: each call gets a fresh copy, so that two calls share no count and no held text.
    let mut observers = Observers::new();
    observers.register(Registration::guard(id!("hide-numbers"), HideNumbers))?;
    observers.register(Registration::watcher(id!("count-words"), CountWords::default()))?;

    let events = Arc::new(EventQueue::bounded(16));
    let observers = observers.events(events.clone());
    let mut stack = observers.stack(&ObserverFactoryContext::default());

    let mut answer = String::new();
    for text in ["Your account 48", "2131", "77 was opened in 20", "19."] {
        stack.push(Chunk::delta(Lane::TEXT, text));
        while let Some(chunk) = stack.pop() {
            println!("after {text:?} the reader gets {:?}", chunk.text().unwrap_or_default());
            answer.push_str(chunk.text().unwrap_or_default());
        }
    }
    stack.push(Chunk::finish(0, FinishReason::Stop));
    stack.finish();
    while let Some(chunk) = stack.pop() {
        answer.push_str(chunk.text().unwrap_or_default());
    }
    drop(stack);

    println!("{answer}");
    assert_eq!(answer, "Your account ###### was opened in 2019.");
    let words = events.pop().expect("the watcher said how many");
    println!("{} on channel `{}`: {}", words.name, words.channel, words.payload.as_str());
    assert_eq!(words.payload.as_str(), "7");
    Ok(())
}

#[cfg(test)]
#[test]
fn it_runs() {
    main().unwrap();
}

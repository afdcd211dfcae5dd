//! Order is a choice, and the place where observers are registered shows it: a metrics watcher behind a redactor measures what the reader
//! gets, before it what the model wrote. Both are legal.
//!
//! cargo run -p streamkeeper-examples --example order_matters

use std::sync::Arc;

use streamkeeper::{observers::Metrics, prelude::*};

/// Replaces the customer's name. The name never spans two chunks here; see `write_an_observer` for text that does.
#[derive(Clone)]
struct HideName;

impl StreamObserver for HideName {
    fn interest(&self) -> Interest {
        Interest::only(&[ChunkKind::ContentDelta])
    }

    fn on_chunk(&mut self, chunk: &Chunk, _: &mut ObserverContext<'_>) -> Verdict {
        match chunk.text().filter(|text| text.contains("Maya Lindqvist")) {
            Some(text) => {
                chunk.with_text(text.replace("Maya Lindqvist", "[name]")).map_or(Verdict::Continue, Verdict::Amend)
            }
            None => Verdict::Continue,
        }
    }
}

/// Runs one answer through these observers. Returns the bytes of text that `metrics` saw.
fn measured(observers: [Registration; 2]) -> Result<u64, RegisterError> {
    let mut list = Observers::new();
    for registration in observers {
        list.register(registration)?;
    }
    let events = Arc::new(EventQueue::bounded(4));
    let list = list.events(events.clone());
    let mut stack = list.stack(&ObserverFactoryContext::default());
    for text in ["Dear ", "Maya Lindqvist", ", your order is on its way."] {
        stack.push(Chunk::delta(Lane::TEXT, text));
    }
    stack.push(Chunk::finish(0, FinishReason::Stop));
    stack.finish();
    while stack.pop().is_some() {}
    drop(stack);

    #[derive(serde::Deserialize)]
    struct Payload {
        bytes: Bytes,
    }
    #[derive(serde::Deserialize)]
    struct Bytes {
        text: u64,
    }
    let event = events.pop().expect("one event at the end");
    Ok(event.payload.parse::<Payload>().expect("the payload is documented").bytes.text)
}

fn main() -> Result<(), RegisterError> {
    let redact = || Registration::transform(id!("hide-name"), HideName);
    let measure = || Metrics::new().registration();

    let behind = measured([redact(), measure()])?;
    let before = measured([measure(), redact()])?;

    println!("redact, then measure: {behind} bytes, as the reader got them");
    println!("measure, then redact: {before} bytes, as the model wrote them");
    assert_eq!((behind, before), (38, 46));
    Ok(())
}

#[cfg(test)]
#[test]
fn it_runs() {
    main().unwrap();
}

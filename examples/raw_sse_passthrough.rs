//! A proxy in small: provider bytes in, the same bytes out, changed only where an observer changed them.
//!
//! cargo run -p streamkeeper-examples --example raw_sse_passthrough

use std::{error::Error, fs};

use streamkeeper::{observers::Metrics, prelude::*, stream::ObservedBytes, wire::Decoder};

/// Replaces an order number. A number may be cut between two events, so digits at the end wait until it is known what follows.
#[derive(Clone)]
struct HideOrder;

impl HideOrder {
    fn release(text: &str, keep: usize) -> Verdict {
        Release::text(text[..text.len() - keep].replace("48213", "#####")).keep(keep).into()
    }
}

impl StreamObserver for HideOrder {
    fn interest(&self) -> Interest {
        Interest::only(&[ChunkKind::ContentDelta])
    }

    fn on_chunk(&mut self, _: &Chunk, ctx: &mut ObserverContext<'_>) -> Verdict {
        let text = ctx.pending();
        let digits = text.len() - text.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        match (digits, text.contains("48213")) {
            (0, false) => Verdict::Continue, // untouched: the event leaves byte for byte as it came
            _ => Self::release(text, digits),
        }
    }

    fn on_barrier(&mut self, ctx: &mut ObserverContext<'_>) -> Verdict {
        Self::release(ctx.pending(), 0)
    }
}

/// Takes a body through observers as a proxy would, read by read.
fn proxy(body: &[u8], observers: &Observers) -> (Vec<u8>, String) {
    let stack = observers.stack(&ObserverFactoryContext::default());
    let mut observed = ObservedBytes::new(Decoder::detect(), stack);
    let mut sent = Vec::new();
    for read in body.chunks(100) {
        observed.push(read);
        sent.extend(observed.take()); // what the reader may have now
    }
    observed.finish();
    sent.extend(observed.take());
    let outcome = observed.outcome().map_or_else(String::new, |outcome| outcome.to_string());
    (sent, outcome)
}

fn main() -> Result<(), Box<dyn Error>> {
    for name in ["support-chat.openai.sse", "support-chat.anthropic.sse", "support-chat.gemini.sse"] {
        let body = fs::read(streamkeeper_examples::stream(name))?;

        let (sent, outcome) = proxy(&body, &Observers::from(Metrics::new()));
        println!("{name}, watched: {} of {} bytes are the same; {outcome}", same(&sent, &body), body.len());
        assert_eq!(sent, body);

        let (sent, outcome) = proxy(&body, &Registration::guard(id!("hide-order"), HideOrder).into());
        let (theirs, ours) = (String::from_utf8(body)?, String::from_utf8(sent)?);
        let changed: Vec<_> =
            theirs.split("\n\n").zip(ours.split("\n\n")).filter(|(theirs, ours)| theirs != ours).collect();
        println!("{name}, guarded: {} events changed; {outcome}", changed.len());
        for (theirs, ours) in &changed {
            println!("  - {}\n  + {}", around(theirs), around(ours));
        }
        assert_eq!(theirs.split("\n\n").count(), ours.split("\n\n").count());
    }
    Ok(())
}

fn same(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).filter(|(a, b)| a == b).count()
}

/// The end of an event's first data line, where its text stands.
fn around(event: &str) -> &str {
    let line = event.lines().find(|line| line.starts_with("data:")).unwrap_or(event);
    &line[line.ceil_char_boundary(line.len().saturating_sub(90))..]
}

#[cfg(test)]
#[test]
fn it_runs() {
    main().unwrap();
}

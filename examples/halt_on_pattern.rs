//! Stops a model as soon as it refuses, and asks another one. Nobody pays for the rest of a refusal.
//!
//! cargo run -p streamkeeper-examples --example halt_on_pattern

use std::{error::Error, fs};

use streamkeeper::{observers::HaltOnPattern, prelude::*, wire::Decoder};

/// Reads a recorded stream through observers. Returns what was delivered, and how it ended.
fn ask(recording: &str, observers: &Observers) -> Result<(String, Outcome), Box<dyn Error>> {
    let body = fs::read(streamkeeper_examples::stream(recording))?;
    let mut stack = observers.stack(&ObserverFactoryContext::default());
    let mut decoder = Decoder::detect();
    let mut answer = String::new();
    let mut deliver = |chunk: Chunk| {
        if chunk.kind() == ChunkKind::ContentDelta {
            answer.push_str(chunk.text().unwrap_or_default());
        }
    };

    // A read of the network gives a few hundred bytes; nothing is read after a stop.
    for read in body.chunks(300) {
        if stack.is_ended() {
            break;
        }
        decoder.push(read)?;
        while let Some(chunk) = decoder.next_chunk() {
            stack.push(chunk);
        }
        std::iter::from_fn(|| stack.pop()).for_each(&mut deliver);
    }
    if !stack.is_ended() {
        decoder.finish()?;
        std::iter::from_fn(|| decoder.next_chunk()).for_each(|chunk| stack.push(chunk));
        stack.finish();
    }
    std::iter::from_fn(|| stack.pop()).for_each(deliver);
    let outcome = stack.outcome().map(|outcome| Outcome::clone(outcome));
    Ok((answer, outcome.ok_or("a stack that has ended has an outcome")?))
}

fn main() -> Result<(), Box<dyn Error>> {
    let observers = Observers::from(HaltOnPattern::refusals());

    let (answer, outcome) = ask("refusal.openai.sse", &observers)?;
    println!("first model:  {answer:?}");
    println!("              {outcome}");
    assert_eq!(answer, "I'm sorry, but I cannot help");
    let Outcome::Stopped(stop) = outcome else { return Err("the refusal was not noticed".into()) };
    assert_eq!(stop.code, "pattern_matched");
    assert_eq!(stop.accumulated_content_length, answer.len() as u64);

    let (answer, outcome) = ask("support-chat.anthropic.sse", &observers)?;
    println!("second model: {answer:?}");
    println!("              {outcome}");
    assert!(outcome.is_finished());

    // Any other pattern does as well. This one is allowed to tell what it matched.
    let no_keys = HaltOnPattern::pattern("sk-[a-z]+-")?.id(id!("no-keys")).quote_match(true);
    let (_, outcome) = ask("leaked-key.openai.sse", &no_keys.into())?;
    println!("third model:  {outcome}");
    let Outcome::Stopped(stop) = outcome else { return Err("the key was not noticed".into()) };
    assert!(stop.reason.ends_with(r#""sk-demo-""#));
    Ok(())
}

#[cfg(test)]
#[test]
fn it_runs() {
    main().unwrap();
}

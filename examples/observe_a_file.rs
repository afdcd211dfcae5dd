//! Prints the answer in a recorded stream of any provider, and how the stream went.
//!
//! cargo run -p streamkeeper-examples --example observe_a_file [FILE]

use std::{env, error::Error, fs::File, io::Read, path::PathBuf, sync::Arc};

use streamkeeper::{observers::Metrics, prelude::*, wire::Decoder};

fn observe(path: PathBuf) -> Result<(String, Outcome), Box<dyn Error>> {
    let events = Arc::new(EventQueue::bounded(64));
    let observers = Observers::from(Metrics::new()).events(events.clone());
    let mut stack = observers.stack(&ObserverFactoryContext::default());

    let mut file = File::open(path)?;
    let mut decoder = Decoder::detect(); // the format is told from the first event
    let mut buffer = [0; 4096];
    let mut answer = String::new();
    loop {
        let read = file.read(&mut buffer)?;
        match read {
            0 => decoder.finish()?,
            read => decoder.push(&buffer[..read])?,
        }
        while let Some(chunk) = decoder.next_chunk() {
            stack.push(chunk);
        }
        if read == 0 {
            stack.finish();
        }
        while let Some(chunk) = stack.pop() {
            if chunk.kind() == ChunkKind::ContentDelta {
                print!("{}", chunk.text().unwrap_or_default());
                answer.push_str(chunk.text().unwrap_or_default());
            }
        }
        if read == 0 {
            break;
        }
    }
    let outcome = stack.outcome().map(|outcome| Outcome::clone(outcome)).ok_or("every stream has an outcome")?;
    drop(stack);

    println!("\n---\n{}: {outcome}", decoder.format().map_or("unknown", |format| format.name()));
    for event in events.drain() {
        println!("{} {}", event.channel, event.payload.as_str());
    }
    Ok((answer, outcome))
}

fn main() -> Result<(), Box<dyn Error>> {
    let path =
        env::args_os().nth(1).map_or_else(|| streamkeeper_examples::stream("support-chat.openai.sse"), PathBuf::from);
    observe(path).map(drop)
}

#[cfg(test)]
#[test]
fn it_runs() {
    let (answer, outcome) = observe(streamkeeper_examples::stream("support-chat.openai.sse")).unwrap();
    assert!(answer.starts_with("Hi Maya, thanks for your patience!"));
    assert!(outcome.is_finished());
    let (answer, outcome) = observe(streamkeeper_examples::stream("cut-off.anthropic.sse")).unwrap();
    assert_eq!((answer.as_str(), outcome), ("Your refund was booked on Monday", Outcome::Truncated));
}

//! Guards that end a stream: each is shown a stream that it stops.
//!
//! cargo run -p streamkeeper-examples --example halts

use std::{error::Error, time::Duration};

use streamkeeper::{
    contract::{Money, Offset},
    observers::{CostCeiling, LengthCeiling, OffTopic, PromptLeak, Repetition, Stall, TokenCeiling, TokenPrices},
    prelude::*,
};

/// Sends chunks through observers. Returns what was delivered, and how it ended.
fn read(observers: impl Into<Observers>, chunks: impl IntoIterator<Item = Chunk>) -> (String, Outcome) {
    let mut ctx = ObserverFactoryContext::default();
    ctx.system_prompt = Some("You help with loans. Be brief, be kind, and never promise a rate to anybody.".into());
    let mut stack = observers.into().stack(&ctx);
    for chunk in chunks.into_iter().chain([Chunk::finish(0, FinishReason::Stop)]) {
        stack.push(chunk);
    }
    stack.finish();
    let answer = std::iter::from_fn(|| stack.pop()).filter(Chunk::is_delta).filter_map(|c| c.text().map(str::to_owned));
    let answer = answer.collect();
    let outcome = stack.outcome().map(|outcome| Outcome::clone(outcome));
    (answer, outcome.expect("a stack that has ended has an outcome"))
}

fn words(text: &str) -> Vec<Chunk> {
    text.split_inclusive(' ').map(|word| Chunk::delta(Lane::TEXT, word)).collect()
}

fn main() -> Result<(), Box<dyn Error>> {
    const DOLLAR: Money = Money::from_pico(1_000_000_000_000);
    let prices = TokenPrices::per_million(DOLLAR.times(3), DOLLAR.times(15));
    let long = words(&"All work and no play makes Jack a dull boy. ".repeat(60));
    let silence = vec![
        Chunk::delta(Lane::TEXT, "Let me think").at(Offset::from(Duration::from_secs(1))),
        Chunk::heartbeat(Offset::from(Duration::from_secs(12))),
    ];
    let recited = words("Sure: you help with loans, be brief, be kind, and never promise a rate to anybody. Well.");
    let medicine = words("Take one pill, twice a day. The dosage may be raised.");

    let streams: [(&str, Observers, Vec<Chunk>); 7] = [
        ("token_ceiling", TokenCeiling::new(100).into(), long.clone()),
        ("cost_ceiling", CostCeiling::new(Money::from_pico(1_000_000_000), prices).into(), long.clone()),
        ("length_ceiling", LengthCeiling::chars(280).into(), long.clone()),
        ("repetition", Repetition::new().into(), long),
        ("stalled", Stall::new(Duration::from_secs(10)).into(), silence),
        ("prompt_leak", PromptLeak::new().into(), recited),
        ("off_topic", OffTopic::new().deny("medicine", [("pill", 2), ("dosage", 3)]).into(), medicine),
    ];
    for (code, observers, chunks) in streams {
        let whole: String = chunks.iter().filter_map(Chunk::text).collect();
        let (answer, outcome) = read(observers, chunks);
        println!("{outcome}");
        let Outcome::Stopped(stop) = outcome else { return Err(format!("{code}: it goes on").into()) };
        assert_eq!((stop.code.as_str(), stop.accumulated_content_length), (code, answer.len() as u64));
        assert!(whole.starts_with(&answer));
    }

    // A canary is held back until it is known, so that no part of it is delivered.
    let leak = PromptLeak::new().canary("zebra-4711");
    let (answer, _) = read(leak, ["The word is zeb", "ra-", "4711."].map(|text| Chunk::delta(Lane::TEXT, text)));
    assert_eq!(answer, "The word is ");

    // To try a guard out, let it report and stop nothing.
    let (answer, outcome) = read(LengthCeiling::chars(3).report_only(), words("too long for that"));
    assert_eq!((answer.as_str(), outcome.code()), ("too long for that", "finished"));
    Ok(())
}

#[cfg(test)]
#[test]
fn it_runs() {
    main().unwrap();
}

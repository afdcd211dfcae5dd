//! Redaction wrong and right: a filter that looks at each chunk alone, and `Redact`.
//!
//! The address is cut by chunk borders, as it would be by any model. A filter for each delta never sees it whole; `Redact` holds what may
//! become a match, and no more, so the reader still gets a stream.
//!
//!     cargo run -p streamkeeper-examples --example redact

use streamkeeper::{
    observers::{OnArguments, Redact, RedactionSet, Replacement, Vault},
    prelude::*,
};

const PIECES: [&str; 5] = ["Ask ada.love", "lace@exam", "ple.org, she", " knows. Call +1 415", "-555-2671."];

/// Wrong: each delta alone.
#[derive(Clone)]
struct PerDelta;

impl StreamObserver for PerDelta {
    fn on_chunk(&mut self, chunk: &Chunk, _: &mut ObserverContext<'_>) -> Verdict {
        let Some(text) = chunk.text().filter(|text| text.contains('@') && text.contains(".org")) else {
            return Verdict::Continue;
        };
        chunk.with_text(text.replace("example.org", "[EMAIL]")).map_or(Verdict::Continue, Verdict::Amend)
    }
}

fn main() {
    let wrong = observe(&Observers::from(Registration::guard(id!("per-delta"), PerDelta)));
    println!("a filter for each delta: {wrong:?}");
    assert_eq!(wrong.concat(), PIECES.concat(), "the address is out");

    let right = observe(&Observers::from(Redact::pii()));
    println!("Redact:                  {right:?}");
    assert_eq!(right.concat(), "Ask [EMAIL], she knows. Call [PHONE].");

    // What goes to the model has tokens; who may see the texts gets them back.
    let vault = Vault::new();
    let redact = Redact::secrets().set(RedactionSet::Pii).replacement(Replacement::Token(vault.clone()));
    let prompt = redact.redactor().redact("Write to ada@example.org");
    println!("to the model:            {:?}", prompt.text);
    let call = r#"{"to":"[EMAIL_1]"}"#; // the model's
    println!("to the tool:             {}", vault.restore_json(call));
    assert_eq!(vault.restore_json(call), r#"{"to":"ada@example.org"}"#);

    // Arguments with a match deny the call, unless they are to be masked.
    let lane = Lane::TEXT.arguments(1);
    for (arguments, outcome) in [(OnArguments::Deny, "stopped"), (OnArguments::Mask, "finished")] {
        let mut stack = Observers::from(Redact::pii().arguments(arguments)).stack(&ObserverFactoryContext::default());
        stack.push(Chunk::tool_call_start(lane, "call_1", "send"));
        stack.push(Chunk::delta(lane, r#"{"to":"ada@example.org"}"#));
        stack.push(Chunk::finish(0, FinishReason::ToolCalls));
        stack.finish();
        while let Some(chunk) = stack.pop() {
            if let (true, Some(text)) = (chunk.is_delta(), chunk.text()) {
                println!("{arguments:?}: {text}");
            }
        }
        let ended = stack.outcome().expect("it is over");
        println!("{arguments:?}: {}", ended.code());
        assert_eq!(ended.code() == "finished", outcome == "finished");
    }
}

fn observe(observers: &Observers) -> Vec<String> {
    let mut stack = observers.stack(&ObserverFactoryContext::default());
    for piece in PIECES {
        stack.push(Chunk::delta(Lane::TEXT, piece));
    }
    stack.push(Chunk::finish(0, FinishReason::Stop));
    stack.finish();
    std::iter::from_fn(|| stack.pop()).filter_map(|chunk| chunk.text().map(str::to_owned)).collect()
}

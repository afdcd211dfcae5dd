//! Models that write tool calls, thoughts and control tokens into their answers, and a reader that sees calls and thoughts as such.
//!
//! cargo run -p streamkeeper-examples --example normalize_dialects

use std::error::Error;

use streamkeeper::{observers::NormalizeDialects, prelude::*};

/// What a reader gets of an answer that comes in these pieces.
fn read(pieces: &[&str]) -> Vec<String> {
    let observers = Observers::from(NormalizeDialects::new());
    let mut stack = observers.stack(&ObserverFactoryContext::default());
    for piece in pieces {
        stack.push(Chunk::delta(Lane::TEXT, *piece));
    }
    stack.push(Chunk::finish(0, FinishReason::Stop));
    stack.finish();
    std::iter::from_fn(|| stack.pop())
        .filter_map(|chunk| match chunk.body() {
            Body::Delta { lane, text } => Some(format!("{}: {text}", lane.channel)),
            Body::ToolCall(call) => Some(format!("call: {} {}", call.name, call.arguments)),
            _ => None,
        })
        .collect()
}

fn main() -> Result<(), Box<dyn Error>> {
    // The same call, as three models write it. It may be cut anywhere, and what stands around it stays.
    for pieces in [
        &["Let me see. <tool na", r#"me="search">{"query":{"city"#, r#"":"Oslo"}}</to"#, "ol> Done."][..],
        &[r#"Let me see. {0:"sea"#, r#"rch", 1:{"query":{"city":"Oslo"}"#, "}} Done."],
        &[
            "Let me see. <tool_call>",
            r#"{"name":"search","arguments":{"query":{"city":"Oslo"}}}"#,
            "</tool_call> Done.",
        ],
    ] {
        let got = read(pieces);
        println!("{got:#?}");
        assert_eq!(got, ["text: Let me see. ", r#"call: search {"query":{"city":"Oslo"}}"#, "text:  Done."]);
    }

    let got = read(&["<thi", "nk>Short is best.</thi", "nk>Yes.<|im_", "end|>"]);
    println!("{got:#?}");
    assert_eq!(got, ["reasoning: Short is best.", "text: Yes."]);

    // What only looks like a beginning is held until that is known, and not lost.
    assert_eq!(read(&["if n ", "<"]), ["text: if n ", "text: <"]);
    Ok(())
}

#[cfg(test)]
#[test]
fn it_runs() {
    main().unwrap();
}

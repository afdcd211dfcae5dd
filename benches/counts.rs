//! Instructions, counted by callgrind: the same numbers on a busy machine.
#![allow(missing_docs, reason = "the macros make public modules")]

use gungraun::{library_benchmark, library_benchmark_group, main};
use streamkeeper_benches::{
    decode::{INPUTS, Input},
    stack::{Source, bare, bundled, disinterested, observed, pass_through, push_prose, redaction},
};
use streamkeeper_stream::Observers;

/// Both sides of a ratio are measured over so many events or chunks, which makes what happens once vanish.
const EVENTS: usize = 500;
const CHUNKS: u32 = 2_000;

fn body(format: &str) -> (&'static Input, Vec<u8>) {
    let input = INPUTS.iter().find(|input| input.format.name() == format).expect("a format with an input");
    (input, input.body(EVENTS))
}

#[library_benchmark(setup = body)]
#[bench::openai_chat("openai-chat")]
#[bench::openai_completions("openai-completions")]
#[bench::openai_responses("openai-responses")]
#[bench::anthropic_messages("anthropic-messages")]
#[bench::gemini("gemini")]
#[bench::cohere_v2("cohere-v2")]
#[bench::ag_ui("ag-ui")]
#[bench::ollama("ollama")]
#[bench::claude_code("claude-code")]
fn skip((input, body): (&Input, Vec<u8>)) -> usize {
    input.skip(&body)
}

#[library_benchmark(setup = body)]
#[bench::openai_chat("openai-chat")]
#[bench::openai_completions("openai-completions")]
#[bench::openai_responses("openai-responses")]
#[bench::anthropic_messages("anthropic-messages")]
#[bench::gemini("gemini")]
#[bench::cohere_v2("cohere-v2")]
#[bench::ag_ui("ag-ui")]
#[bench::ollama("ollama")]
#[bench::claude_code("claude-code")]
fn decode((input, body): (&Input, Vec<u8>)) -> usize {
    input.decode(&body)
}

#[library_benchmark]
fn bare_source() -> usize {
    bare(Source(CHUNKS))
}

#[library_benchmark]
#[bench::none(pass_through(0))]
#[bench::one(pass_through(1))]
#[bench::eight(pass_through(8))]
#[bench::eight_disinterested(disinterested(8))]
#[bench::bundled(bundled())]
fn through_observers(observers: Observers) -> usize {
    observed(Source(CHUNKS), &observers)
}

/// What it costs to let go of compiled patterns is no part of the run.
fn kept(observers: Observers) -> &'static Observers {
    Box::leak(Box::new(observers))
}

#[library_benchmark]
#[bench::none(kept(pass_through(0)))]
#[bench::redact(kept(redaction()))]
fn prose_through(observers: &Observers) -> usize {
    push_prose(CHUNKS, observers)
}

library_benchmark_group!(name = decoding, benchmarks = [skip, decode]);
library_benchmark_group!(name = observing, benchmarks = [bare_source, through_observers, prose_through]);
main!(library_benchmark_groups = [decoding, observing]);

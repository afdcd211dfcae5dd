//! What repeats a text does not say what the text may not say (spec 1.3, 1.4, 3.7, 3.8).

use std::sync::Arc;

use streamkeeper_contract::{
    Annotation, Body, Channel, Chunk, EndToken, ErrorInfo, FinishReason, Json, Lane, Outcome, Release, Verdict, id,
};
use streamkeeper_stream::{Interest, ObserverContext, Observers, OnFailure, Registration, StreamObserver};

/// Asks a function for each delta of text, and lets go of what it holds with `[]`.
#[derive(Clone)]
struct Does {
    interest: Interest,
    does: fn(&str) -> Verdict,
}

impl StreamObserver for Does {
    fn interest(&self) -> Interest {
        self.interest
    }

    fn on_chunk(&mut self, chunk: &Chunk, ctx: &mut ObserverContext<'_>) -> Verdict {
        if chunk.is_delta() { (self.does)(ctx.pending()) } else { Verdict::Continue }
    }

    fn on_barrier(&mut self, ctx: &mut ObserverContext<'_>) -> Verdict {
        Release::text(format!("[{}]", ctx.pending())).into()
    }
}

fn guard(interest: Interest, does: fn(&str) -> Verdict) -> Registration {
    Registration::guard(id!("guard"), Does { interest, does })
}

fn run(observers: impl Into<Observers>, chunks: impl IntoIterator<Item = Chunk>) -> Vec<Chunk> {
    let mut stack = observers.into().stack(&Default::default());
    chunks.into_iter().for_each(|chunk| stack.push(chunk));
    stack.finish();
    std::iter::from_fn(|| stack.pop()).collect()
}

fn say(chunks: &[Chunk]) -> String {
    let one = |chunk: &Chunk| format!("{}:{}", chunk.kind().as_str(), chunk.text().unwrap_or_default());
    chunks.iter().map(one).collect::<Vec<_>>().join(" ")
}

fn note(form: &'static str, json: &str) -> Chunk {
    let value = Json::from_text(json).unwrap();
    Body::Annotation(Box::new(Annotation { lane: Lane::TEXT, form: form.into(), value })).into()
}

fn tokens(token: &str) -> Chunk {
    note("logprobs", &format!("[\"{token}\"]"))
}

fn text(text: &'static str) -> Chunk {
    Chunk::delta(Lane::TEXT, text)
}

#[test]
fn a_placeholder_stands_for_repeats_too_though_the_observer_sees_deltas_alone() {
    // spec 3.8
    let interest = Interest::channels(&[Channel::Text, Channel::Arguments]);
    let arguments = Lane::TEXT.arguments(1);
    for (chunk, expected) in [
        (Chunk::snapshot(Lane::TEXT, "secret"), ""),
        (Chunk::snapshot(Lane::TEXT.in_part(1), "secret"), "snapshot:[gone] "),
        (Chunk::snapshot(arguments, "secret"), "snapshot:[gone] "),
        (Chunk::tool_call(arguments, "c", "look", "secret"), ""),
        (tokens("secret"), ""),
        (note("citation", "\"secret\""), ""),
        // It has no say in another text.
        (Chunk::snapshot(Lane::new(Channel::Reasoning), "why"), "snapshot:why "),
        (Chunk::custom("x", Json::from_text("1").unwrap()), "custom:1 "),
    ] {
        let fails = guard(interest, |_| Release::unchanged().keep(99).into());
        let fails = fails.on_failure(OnFailure::Placeholder("[gone]".into()));
        let out = run(fails, [text("secret"), chunk, Chunk::finish(0, FinishReason::Stop)]);
        assert_eq!(say(&out), format!("content_delta:[gone] {expected}finish: end:"));
    }
}

#[test]
fn log_probabilities_go_where_their_text_is_held_or_was_changed() {
    // spec 1.4, 3.7
    let chunks = || [text("a"), tokens("a"), text("b"), tokens("b"), Chunk::finish(0, FinishReason::Stop)];
    for (does, expected) in [
        (
            (|_| Verdict::Continue) as fn(&str) -> Verdict,
            "content_delta:a annotation:[\"a\"] content_delta:b annotation:[\"b\"] finish: end:",
        ),
        // They are no barrier: a hold goes on over them.
        (|_| Verdict::Buffer, "content_delta:[ab] finish: end:"),
        (
            |pending| if pending == "a" { Verdict::Buffer } else { Verdict::Continue },
            "content_delta:ab annotation:[\"b\"] finish: end:",
        ),
        (
            |pending| match pending {
                "a" => Verdict::Amend(text("x")),
                _ => Verdict::Continue,
            },
            "content_delta:x content_delta:b finish: end:",
        ),
    ] {
        assert_eq!(say(&run(guard(Interest::TEXT, does), chunks())), expected);
    }
}

#[test]
fn the_words_of_an_error_that_no_chunk_said_are_not_in_the_outcome() {
    // spec 3.11: the end of a stream that was observed already is taken over.
    let end = |message: &'static str| {
        let error = ErrorInfo::new("overloaded").with_message(message);
        Chunk::end(EndToken::open(), Arc::new(Outcome::Failed { error }))
    };
    let said = |chunks: Vec<Chunk>| match chunks.last().map(Chunk::body) {
        Some(Body::End(end)) => match &**end.outcome() {
            Outcome::Failed { error } => (error.code.to_string(), error.message.as_ref().map(ToString::to_string)),
            other => panic!("{}", other.code()),
        },
        _ => panic!("no end"),
    };
    let error = || Chunk::error(ErrorInfo::new("overloaded").with_message("try later"));
    let guarded = || guard(Interest::ALL, |_| Verdict::Continue);
    let code = || "overloaded".to_owned();
    assert_eq!(said(run(guarded(), [end("secret")])), (code(), None));
    assert_eq!(said(run(guarded(), [error(), end("secret")])), (code(), Some("try later".into())));
    assert_eq!(said(run(Observers::new(), [end("no secret")])), (code(), Some("no secret".into())));
}

#[cfg(feature = "wire")]
mod wire {
    use streamkeeper_stream::ObservedBytes;
    use streamkeeper_wire::{Decoder, Format};

    use super::*;

    /// Nothing of a text that a guard takes away is left in the bytes of its events.
    #[test]
    fn what_repeats_a_text_in_its_event_goes_with_it() {
        // spec 2.8
        for (format, event) in [
            (
                Format::OpenAiChat,
                r#"data: {"choices":[{"index":0,"delta":{"content":"secret"},"logprobs":{"content":[{"token":"secret"}]},"token_ids":[1,2]}]}"#,
            ),
            (
                Format::OpenAiCompletions,
                r#"data: {"object":"text_completion","choices":[{"index":0,"text":"secret","logprobs":{"tokens":["secret"]}}]}"#,
            ),
            (
                Format::OpenAiResponses,
                r#"data: {"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"secret","logprobs":[{"token":"secret"}]}"#,
            ),
            (
                Format::OpenAiResponses,
                r#"data: {"type":"response.output_item.done","output_index":0,"item":{"type":"message","content":[{"type":"output_text","text":"secret","logprobs":[{"token":"secret"}]}]}}"#,
            ),
            (
                Format::Gemini,
                r#"data: {"candidates":[{"content":{"parts":[{"text":"secret"}]},"logprobsResult":{"chosenCandidates":[{"token":"secret"}]}}]}"#,
            ),
            (
                Format::Ollama,
                r#"{"model":"m","message":{"role":"assistant","content":"secret"},"logprobs":[{"token":"secret"}],"done":false}"#,
            ),
            (
                Format::AgUi,
                r#"data: {"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"secret","rawEvent":{"chunk":"secret"}}"#,
            ),
            (
                Format::ClaudeCode,
                r#"{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"secret"}]},"tool_use_result":"secret"}"#,
            ),
        ] {
            for does in [(|_| Verdict::Buffer) as fn(&str) -> Verdict, |_| Release::text("").into()] {
                #[derive(Clone)]
                struct Blank(Does);
                impl StreamObserver for Blank {
                    fn interest(&self) -> Interest {
                        Interest::TEXT
                    }
                    fn on_chunk(&mut self, chunk: &Chunk, ctx: &mut ObserverContext<'_>) -> Verdict {
                        if chunk.is_delta() {
                            return self.0.on_chunk(chunk, ctx);
                        }
                        chunk.with_text("").map_or(Verdict::Continue, Verdict::Amend)
                    }
                    fn on_barrier(&mut self, _: &mut ObserverContext<'_>) -> Verdict {
                        Release::text("").into()
                    }
                }
                let observers: Observers =
                    Registration::guard(id!("guard"), Blank(Does { interest: Interest::TEXT, does })).into();
                let mut observed = ObservedBytes::new(Decoder::new(format), observers.stack(&Default::default()));
                observed.push(event.as_bytes());
                observed.push(b"\n\n");
                let mut out = String::from_utf8(observed.take()).unwrap();
                observed.finish();
                out.push_str(&String::from_utf8(observed.take()).unwrap());
                assert!(!out.contains("secret"), "{}: {out}", format.name());
            }
        }
    }
}

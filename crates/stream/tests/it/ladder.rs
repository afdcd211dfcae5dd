//! The verdicts: spec 3.1, 3.3, 3.4, 3.5, 3.12.

use streamkeeper_contract::{
    Body, Channel, Chunk, ChunkKind, EndToken, ErrorInfo, FinishReason, Lane, Offset, Opaque, Outcome, Piece, Release,
    ToolCall, Usage, Verdict, id,
};
use streamkeeper_stream::{Interest, Registration};

use crate::support::*;

fn guard(on: On) -> Registration {
    Registration::guard(id!("guard"), on)
}

fn opaque() -> Chunk {
    Body::Opaque(Box::new(Opaque { lane: REASONING, form: "signature".into(), data: "sig".into() })).into()
}

#[test]
fn each_verdict_on_a_delta_does_what_it_says() {
    // spec 3.3
    let cases: [(&str, OnChunk, &str); 10] = [
        ("continue", |_, _| Verdict::Continue, "text:a text:b finish:stop end:finished"),
        (
            "amend",
            |chunk, ctx| Verdict::Amend(chunk.with_text(ctx.pending().to_uppercase()).unwrap()),
            "text:A text:B finish:stop end:finished",
        ),
        ("emit", |_, _| Verdict::Emit(vec![event("seen")]), "text:a text:b finish:stop end:finished"),
        ("stop", |_, _| Verdict::stop("no", "not this"), "end:stopped"),
        ("buffer", |_, _| Verdict::Buffer, "text:ab finish:stop end:finished"),
        ("release", |_, _| Release::text("x").into(), "text:x text:x finish:stop end:finished"),
        ("release nothing", |_, _| Release::text("").into(), "finish:stop end:finished"),
        (
            "keep a tail",
            |_, ctx| Release::unchanged().keep(ctx.pending().len().min(1)).into(),
            "text:a text:b finish:stop end:finished",
        ),
        (
            "a call out of text",
            |_, _| {
                let call = Piece::ToolCall { name: "look".into(), arguments: "{}".into() };
                Release::pieces([Piece::Text("<".into()), call, Piece::Text(">".into())]).into()
            },
            "text:< call:look({}) text:> text:< call:look({}) text:> finish:stop end:finished",
        ),
        (
            "reasoning out of text",
            |_, ctx| {
                let thought = Piece::Reasoning(ctx.pending().into());
                Release::pieces([Piece::Text("<".into()), thought, Piece::Text(">".into())]).into()
            },
            "text:< reasoning:a text:> text:< reasoning:b text:> finish:stop end:finished",
        ),
    ];
    for (name, verdict, expected) in cases {
        let ran = run([guard(On::delta(verdict))], [text("a"), text("b"), finish()]);
        assert_eq!(ran.line(), expected, "{name}");
        assert_eq!(ran.failures, [""; 0], "{name}");
    }
}

#[test]
fn only_answer_text_can_be_released_as_reasoning() {
    // spec 3.6
    for chunk in [reasoning("a"), arguments("a")] {
        let thought = On::delta(|_, _| Release::pieces([Piece::Reasoning("b".into())]).into());
        let ran = run([guard(thought)], [chunk]);
        assert_eq!(ran.failures, ["guard on_chunk contract"]);
        assert_eq!(ran.line(), "end:failed");
    }
}

#[test]
fn an_amended_chunk_is_of_the_same_kind_and_lane_or_one_tool_call_for_text() {
    // spec 3.3, 1.4, 1.7
    let call = || ToolCall { lane: ARGUMENTS, id: "mine".into(), name: "look".into(), arguments: "{}".into() };
    let whole_call = || Chunk::from(Body::ToolCall(Box::new(call())));
    let end = || Chunk::end(EndToken::open(), Outcome::Dropped.into());
    let mut cases = vec![
        ("another text", text("a"), text("b"), true),
        ("no text", text("a"), text(""), true),
        ("a tool call for text", text("a"), whole_call(), true),
        ("a tool call for reasoning", reasoning("a"), whole_call(), false),
        ("another lane", text("a"), reasoning("a"), false),
        ("another choice", text("a"), Chunk::delta(TEXT.in_choice(1), "a"), false),
        ("another part", text("a"), Chunk::delta(TEXT.in_part(1), "a"), false),
        ("another kind", text("a"), finish(), false),
        ("a delta for a tool call", whole_call(), arguments("{}"), false),
        ("other arguments", whole_call(), Chunk::tool_call(ARGUMENTS, "mine", "look", "{\"a\":1}"), true),
        ("another reason", finish(), Chunk::finish(0, FinishReason::Length), true),
        ("the finish of another choice", finish(), Chunk::finish(1, FinishReason::Stop), false),
        ("other numbers", Chunk::usage(Usage::default()), Chunk::usage(Usage::default()), true),
        ("an opaque chunk, even as it is", opaque(), opaque(), false),
        ("an end", text("a"), end(), false),
        ("an end for a finish", finish(), end(), false),
        ("a text within the limit", text("a"), text(&"b".repeat(1 + 4096)), true),
        ("a text beyond the limit", text("a"), text(&"b".repeat(2 + 4096)), false),
    ];
    cases.extend(Channel::ALL.iter().map(|&channel| {
        let lane = Lane::new(channel);
        ("deltas of every channel", Chunk::delta(lane, "a"), Chunk::delta(lane, "b"), true)
    }));
    for (name, chunk, amended, is_allowed) in cases {
        let kind = chunk.kind();
        let registration = Registration::guard(
            id!("guard"),
            streamkeeper_stream::from_fn({
                let amended = amended.clone();
                move |_| Amends(amended.clone(), kind)
            }),
        );
        let ran = run([registration], [chunk]);
        let expected: &[&str] = if is_allowed {
            &[]
        } else if name.ends_with("beyond the limit") {
            &["guard on_chunk overflow"]
        } else {
            &["guard on_chunk contract"]
        };
        assert_eq!(ran.failures, expected, "{name}");
        if is_allowed {
            assert_eq!(ran.chunks[0].kind(), amended.kind(), "{name}");
            assert!(ran.chunks[0].provenance().contains(0), "{name}");
        } else {
            assert_eq!(ran.line(), "end:failed", "{name}");
        }
    }
}

#[derive(Clone)]
struct Amends(Chunk, ChunkKind);

impl streamkeeper_stream::StreamObserver for Amends {
    fn on_chunk(&mut self, chunk: &Chunk, _: &mut streamkeeper_stream::ObserverContext<'_>) -> Verdict {
        if chunk.kind() == self.1 { Verdict::Amend(self.0.clone()) } else { Verdict::Continue }
    }
}

#[test]
fn what_travels_beside_an_amended_chunk_is_the_stacks() {
    // spec 3.6, 1.12
    let amends = On::delta(|_, _| {
        let call = ToolCall { lane: ARGUMENTS, id: "mine".into(), name: "look".into(), arguments: "{}".into() };
        Verdict::Amend(Chunk::from(Body::ToolCall(Box::new(call))).at(Offset(99)))
    });
    let ran = run([guard(amends)], [text("a").at(Offset(5)), Chunk::delta(TEXT.in_choice(1), "b")]);
    let calls: Vec<_> = ran
        .chunks
        .iter()
        .filter_map(|chunk| match chunk.body() {
            Body::ToolCall(call) => Some((call.lane.choice, call.id.as_str().to_owned(), chunk.offset())),
            _ => None,
        })
        .collect();
    let expected = [(0, "derived_0".to_owned(), Offset(5)), (1, "derived_1".to_owned(), Offset(0))];
    assert_eq!(calls, expected, "its own lane and id, the chunk's offset, no two alike");
}

#[test]
fn an_amend_while_text_is_held_is_a_contract_failure() {
    // spec 3.3
    let holds_then_amends = On::delta(|chunk, ctx| match ctx.held() {
        "" => Verdict::Buffer,
        _ => Verdict::Amend(chunk.clone()),
    });
    let ran = run([guard(holds_then_amends)], [text("a"), reasoning("r"), text("b")]);
    assert_eq!(ran.failures, ["guard on_chunk contract"]);
    assert_eq!(ran.line(), "end:failed");
    assert_eq!(ran.result.withheld_len, 3);
}

#[test]
fn only_deltas_can_be_held_or_released() {
    // spec 3.6
    let verdicts: [OnChunk; 3] =
        [|_, _| Verdict::Buffer, |_, _| Release::unchanged().into(), |_, _| Release::text("fresh").into()];
    for verdict in verdicts {
        for chunk in [finish(), Chunk::snapshot(TEXT, "a"), Chunk::tool_call(ARGUMENTS, "id", "look", "{}"), opaque()] {
            let ran = run([guard(On::chunk(verdict))], [chunk]);
            assert_eq!(ran.failures, ["guard on_chunk contract"]);
            assert_eq!(ran.line(), "end:failed");
        }
    }
}

#[test]
fn observers_run_in_order_and_each_sees_what_the_one_before_let_through() {
    // spec 3.4
    let upper = On::delta(|chunk, ctx| Verdict::Amend(chunk.with_text(ctx.pending().to_uppercase()).unwrap()));
    let redact = On::delta(|chunk, ctx| Verdict::Amend(chunk.with_text(ctx.pending().replace("key", "***")).unwrap()));
    let (first, last) = (Log::default(), Log::default());
    let ran = run(
        [
            first.watcher(id!("first")),
            Registration::transform(id!("redact"), redact),
            Registration::transform(id!("upper"), upper),
            last.watcher(id!("last")),
        ],
        [text("a key"), finish()],
    );
    assert_eq!(first.lines(), ["text:a key", "finish:stop", "over:finished"]);
    assert_eq!(last.lines(), ["text:A ***", "finish:stop", "over:finished"]);
    assert_eq!(ran.chunks[0].provenance().positions().collect::<Vec<_>>(), [1, 2]);
    assert_eq!(ran.result.observers[2], id!("upper"), "positions have names");
}

#[test]
fn redact_then_measure_and_measure_then_redact_both_keep_their_order() {
    // spec 3.4
    let redact = || {
        let redact =
            On::delta(|chunk, ctx| Verdict::Amend(chunk.with_text(ctx.pending().replace("secret", "")).unwrap()));
        Registration::transform(id!("redact"), redact)
    };
    let measured = |first: bool| {
        let log = Log::default();
        let measure = log.watcher(id!("measure"));
        run(if first { [measure, redact()] } else { [redact(), measure] }, [text("my secret")]);
        log.lines()[0].clone()
    };
    assert_eq!(measured(true), "text:my secret");
    assert_eq!(measured(false), "text:my ");
}

#[test]
fn released_chunks_pass_the_later_observers_and_not_the_one_that_released_them() {
    // spec 3.4
    let log = Log::default();
    let splits =
        On::delta(|_, ctx| Release::pieces(ctx.pending().chars().map(|c| Piece::Text(c.to_string().into()))).into());
    let ran = run([Registration::transform(id!("split"), splits), log.watcher(id!("log"))], [text("abc"), finish()]);
    assert_eq!(log.lines()[..3], ["text:a", "text:b", "text:c"]);
    assert_eq!(ran.line(), "text:a text:b text:c finish:stop end:finished");
}

#[test]
fn events_go_out_before_their_chunk_and_with_any_verdict() {
    // spec 3.3, 3.1
    let all: [OnChunk; 5] = [
        |_, _| Verdict::Continue,
        |chunk, _| Verdict::Amend(chunk.clone()),
        |_, _| Verdict::stop("x", "x"),
        |_, _| Verdict::Buffer,
        |_, _| Release::text("x").into(),
    ];
    for verdict in all {
        let registration = Registration::guard(id!("guard"), streamkeeper_stream::from_fn(move |_| EmitsThen(verdict)));
        let ran = run([registration], [text("a")]);
        assert_eq!(ran.events, ["test/chunk", "test/end"]);
    }
    let both = On::delta(|_, ctx| {
        ctx.emit(event("first"));
        Verdict::Emit(vec![event("second"), event("third")])
    });
    assert_eq!(run([guard(both)], [text("a")]).events, ["test/first", "test/second", "test/third"]);
    let at_barrier = On::delta(|_, _| Verdict::Buffer).barrier(|ctx| {
        ctx.emit(event("first"));
        Verdict::Emit(vec![event("second")])
    });
    let ran = run([guard(at_barrier)], [text("a")]);
    assert_eq!(
        (ran.events, ran.out),
        (vec!["test/first".into(), "test/second".into()], vec!["text:a".into(), "end:truncated".into()])
    );
}

struct EmitsThen(OnChunk);

impl streamkeeper_stream::StreamObserver for EmitsThen {
    fn on_chunk(&mut self, chunk: &Chunk, ctx: &mut streamkeeper_stream::ObserverContext<'_>) -> Verdict {
        ctx.emit(event("chunk"));
        (self.0)(chunk, ctx)
    }

    fn on_barrier(&mut self, _: &mut streamkeeper_stream::ObserverContext<'_>) -> Verdict {
        Verdict::Continue
    }

    fn on_end_invocation(
        &mut self,
        _: &streamkeeper_stream::InvocationResult,
        ctx: &mut streamkeeper_stream::ObserverContext<'_>,
    ) {
        ctx.emit(event("end"));
    }
}

#[test]
fn a_stop_withholds_its_chunk_and_names_who_and_where() {
    // spec 3.5, 1.8
    let stops = On::delta(|_, ctx| match ctx.pending() {
        text if text.contains("stop") => Verdict::stop("word", "a word came"),
        _ => Verdict::Continue,
    });
    let later = Log::default();
    let holds = On::delta(|_, ctx| if ctx.pending() == "held" { Verdict::Buffer } else { Verdict::Continue })
        .interest(Interest::only(&[ChunkKind::ReasoningDelta]));
    let ran = run(
        [Registration::transform(id!("holds"), holds), guard(stops), later.watcher(id!("later"))],
        [
            Chunk::heartbeat(Offset(1)),
            text("äb"),
            Chunk::delta(TEXT.in_choice(1), "cd"),
            reasoning("held"),
            reasoning("not counted"),
            text("stop"),
            text("never"),
        ],
    );
    assert_eq!(ran.out[1..], ["text:äb", "1.text:cd", "reasoning:heldnot counted", "end:stopped"]);
    assert_eq!(later.lines().last().unwrap(), "over:stopped");
    assert!(
        !later.lines().iter().any(|line| line.contains("stop") && !line.starts_with("over")),
        "never called for it"
    );
    let Outcome::Stopped(stop) = &*ran.result.outcome else { panic!("it is stopped") };
    assert_eq!((stop.observer.as_str(), stop.code.as_str(), stop.reason.as_str()), ("guard", "word", "a word came"));
    assert_eq!(stop.chunk_index, 5, "over all chunks that entered, from 0");
    assert_eq!(stop.accumulated_content_length, 5, "bytes of answer text of all choices");
    assert_eq!(ran.result.withheld_len, 4);
    assert_eq!(ran.result.chunks_in, 6, "the source was not asked again");
}

#[test]
fn what_is_held_anywhere_at_a_stop_is_withheld() {
    // spec 3.5
    let holds = || On::delta(|_, _| Verdict::Buffer).interest(Interest::channels(&[Channel::Text]));
    let stops = On::chunk(|chunk, _| match chunk.kind() {
        ChunkKind::ReasoningDelta => Verdict::stop("x", "x"),
        _ => Verdict::Buffer,
    });
    let ran = run([Registration::guard(id!("holds"), holds()), guard(stops)], [text("abc"), reasoning("de")]);
    assert_eq!((ran.line().as_str(), ran.result.withheld_len), ("end:stopped", 5));
}

#[test]
fn a_stop_at_a_barrier_withholds_the_chunk_behind_it() {
    // spec 3.5, 3.7
    let stops = On::delta(|_, _| Verdict::Buffer).barrier(|_| Verdict::stop("late", "found at the end"));
    for chunk in [finish(), Chunk::error(ErrorInfo::new("overloaded")), Chunk::tool_call_start(ARGUMENTS, "id", "look")]
    {
        let ran = run([guard(stops)], [text("abc"), chunk]);
        assert_eq!((ran.line().as_str(), ran.result.withheld_len), ("end:stopped", 3));
    }
}

#[test]
fn an_observer_is_not_asked_about_what_it_did_not_ask_for() {
    // spec 3.12
    let only = On::chunk(|_, _| Verdict::stop("x", "x")).interest(Interest::only(&[ChunkKind::Usage]));
    let ran = run([guard(only)], [text("a"), finish(), Chunk::usage(Usage::default())]);
    assert_eq!(ran.line(), "text:a finish:stop end:stopped");
    let none = On::chunk(|_, _| Verdict::stop("x", "x")).interest(Interest::NONE);
    assert_eq!(run([guard(none)], [text("a"), finish()]).line(), "text:a finish:stop end:finished");
}

#[test]
fn the_context_tells_where_the_observer_is() {
    // spec 3.1
    let tells = On::chunk(|chunk, ctx| {
        let line = format!(
            "{} {} {} {:?} {:?}|{:?} {}",
            ctx.call_class(),
            ctx.chunk_index(),
            ctx.offset().0,
            ctx.lane().map(|lane| lane.channel.as_str()),
            ctx.held(),
            ctx.pending(),
            ctx.delivered_len(),
        );
        ctx.emit(streamkeeper_contract::SideEvent {
            channel: id!("told"),
            name: id!("x"),
            payload: streamkeeper_contract::Json::string(&line),
        });
        if chunk.is_delta() && ctx.pending().len() < 2 { Verdict::Buffer } else { Verdict::Continue }
    });
    let queue = std::sync::Arc::new(streamkeeper_stream::EventQueue::bounded(9));
    let observers = list([guard(tells)]).events(queue.clone());
    let mut stack = observers.stack(&Default::default());
    stack.push(text("a").at(Offset(7)));
    stack.push(text("b").at(Offset(8)));
    stack.push(finish().at(Offset(9)));
    let told: Vec<String> = queue.drain().iter().map(|event| event.payload.parse().unwrap()).collect();
    assert_eq!(
        told,
        [
            r#"synthesize 0 7 Some("text") ""|"a" 0"#,
            r#"synthesize 1 8 Some("text") "a"|"ab" 0"#,
            r#"synthesize 2 9 None ""|"" 2"#,
        ]
    );
}

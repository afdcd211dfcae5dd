//! Exactly one end, and who is told: spec 1.7, 3.9, 3.11; bug reports G12 and G13.

use std::{pin::Pin, sync::Arc, task::Poll};

use futures_executor::block_on;
use futures_util::{StreamExt, stream, stream::FusedStream};
use streamkeeper_contract::{
    Body, Chunk, EndToken, ErrorInfo, FinishReason, Lane, Offset, Outcome, Usage, Verdict, id,
};
use streamkeeper_stream::{ObserveExt, ObservedError, Observers, Registration, Stack};

use crate::support::*;

fn usage(output: u64) -> Chunk {
    Chunk::usage(Usage { output: Some(output), ..Usage::default() })
}

fn error(code: &'static str) -> Chunk {
    Chunk::error(ErrorInfo::new(code).with_message("words of the provider"))
}

#[test]
fn the_outcome_follows_from_what_the_provider_said() {
    // spec 2.4, 3.11
    let other = |text: &str| Chunk::delta(Lane::TEXT.in_choice(1), text);
    let cases: [(&str, Vec<Chunk>, &str); 10] = [
        ("a finish", vec![text("a"), finish()], "finished (stop)"),
        ("a finish and nothing else", vec![finish()], "finished (stop)"),
        ("no finish", vec![text("a")], "truncated: the source ended without an end"),
        ("nothing", vec![], "truncated: the source ended without an end"),
        (
            "two choices, both finished",
            vec![text("a"), other("b"), Chunk::finish(1, FinishReason::Length), finish()],
            "finished (stop)",
        ),
        (
            "two choices, one finished",
            vec![text("a"), other("b"), finish()],
            "truncated: the source ended without an end",
        ),
        ("an error", vec![text("a"), error("overloaded")], "failed: overloaded: words of the provider"),
        (
            "an error, repeated, then what follows an error",
            vec![text("a"), error("first"), error("second"), usage(3), finish()],
            "failed: first: words of the provider",
        ),
        ("a finish, then an error", vec![text("a"), finish(), error("late")], "failed: late: words of the provider"),
        (
            "a call without deltas in a choice without a finish",
            vec![Chunk::tool_call(ARGUMENTS.in_choice(1), "id", "look", "{}"), finish()],
            "truncated: the source ended without an end",
        ),
    ];
    for (name, chunks, expected) in cases {
        let ran = run([], chunks);
        assert_eq!(ran.result.outcome.to_string(), expected, "{name}");
        assert_eq!(ran.out.iter().filter(|line| line.starts_with("end:")).count(), 1, "{name}");
        assert!(ran.out.last().unwrap().starts_with("end:"), "{name}");
    }
}

#[test]
fn the_words_of_an_error_are_those_that_were_delivered() {
    // spec 3.11: the class of an error is read as it came, its words are the consumer's
    let hides = On::chunk(|chunk, _| match chunk.body() {
        Body::Error(_) => Verdict::Amend(Chunk::error(ErrorInfo::new("overloaded").with_message("[hidden]"))),
        _ => Verdict::Continue,
    });
    let ran = run([Registration::guard(id!("hides"), hides)], [error("overloaded")]);
    assert_eq!(ran.result.outcome.to_string(), "failed: overloaded: [hidden]");
    assert_eq!(ran.result.provider_error.as_deref(), Some("overloaded"));
}

#[test]
fn usage_and_finish_are_read_from_the_source_even_after_a_finish_or_error() {
    // spec 2.6, and the principle that accounting is read from the raw stream
    let ran = run([], [text("a"), usage(1), finish(), usage(7)]);
    assert_eq!(ran.result.usage.unwrap().output, Some(7));
    let ran = run([], [text("a"), error("overloaded"), usage(5)]);
    assert_eq!(ran.result.usage.unwrap().output, Some(5));
    let changes = On::chunk(|chunk, _| match chunk.body() {
        Body::Usage(_) => Verdict::Amend(Chunk::usage(Usage::default())),
        Body::Finish(_) => Verdict::Amend(Chunk::finish(0, FinishReason::ContentFilter)),
        _ => Verdict::Continue,
    });
    let ran = run([Registration::guard(id!("changes"), changes)], [usage(3), finish()]);
    assert_eq!(ran.result.usage.unwrap().output, Some(3));
    assert_eq!(ran.result.provider_finish, Some(FinishReason::Stop));
    assert_eq!(ran.result.outcome.to_string(), "finished (content_filter)", "what was delivered");
}

#[test]
fn the_first_decision_wins() {
    // spec 3.11
    let stops = || list([Registration::guard(id!("stops"), On::delta(|_, _| Verdict::stop("x", "x")))]);
    let ends: [(&str, End); 4] = [
        ("finish", Stack::finish),
        ("fail", |stack| assert!(!stack.fail(ErrorInfo::new("late")))),
        ("abort", |stack| stack.abort(None)),
        ("push", |stack| {
            stack.push(finish());
            stack.finish();
        }),
    ];
    for (name, end) in ends {
        let ran = run_with(stops(), [text("a")], end);
        assert_eq!(ran.line(), "end:stopped", "{name}");
    }
    let several = |stack: &mut Stack| {
        assert!(stack.fail(ErrorInfo::new("source_error")));
        stack.finish();
        stack.abort(None);
        assert!(!stack.fail(ErrorInfo::new("again")));
    };
    let ran = run_with(Observers::new(), [text("a"), finish()], several);
    assert_eq!(ran.line(), "text:a finish:stop end:failed");
    assert_eq!(ran.result.outcome.to_string(), "failed: source_error");
}

#[test]
fn a_source_that_fails_after_an_error_of_the_provider_fails_with_that() {
    // spec 2.4: an error is Failed once, however often it is repeated
    let ran = run_with(Observers::new(), [error("overloaded")], |stack| {
        assert!(!stack.fail(ErrorInfo::new("source_error")));
    });
    assert_eq!(ran.result.outcome.to_string(), "failed: overloaded: words of the provider");
}

#[test]
fn an_observed_stream_can_be_observed_again() {
    // spec 1.7: the inner end is the outer one's
    let ran = run([], [text("a"), Chunk::end(EndToken::open(), Outcome::Truncated.into()), text("never")]);
    assert_eq!(ran.line(), "text:a end:truncated");
}

#[test]
fn the_end_waits_behind_what_its_barrier_releases() {
    // spec 3.11
    let holds = || list([Registration::guard(id!("holds"), On::delta(|_, _| Verdict::Buffer))]);
    assert_eq!(run_with(holds(), [text("a")], Stack::finish).line(), "text:a end:truncated");
    let fails = |stack: &mut Stack| assert!(stack.fail(ErrorInfo::new("source_error")));
    assert_eq!(run_with(holds(), [text("a")], fails).line(), "text:a end:failed");
}

#[test]
fn an_abort_is_one_terminal_with_what_was_made_so_far() {
    // spec 3.11, bug report G12 as far as one invocation goes
    let record = Log::default();
    let observers = list([record.watcher(id!("record"))]);
    let ran = run_with(observers, [text("x")], |stack| {
        stack.abort(Some("changed my mind".into()));
        stack.push(text("y"));
        stack.push(finish());
        stack.finish();
    });
    assert_eq!(ran.line(), "text:x end:aborted");
    assert_eq!(ran.result.outcome.to_string(), "aborted: changed my mind");
    assert_eq!(ran.result.delivered_len, 1);
    assert_eq!(record.lines(), ["text:x", "over:aborted"]);
}

#[test]
fn an_engine_ends_an_invocation_with_an_outcome_of_its_own() {
    // spec 1.7
    for outcome in
        [Outcome::Aborted { reason: None, cancel_requested: true }, Outcome::Suspended { interrupts: Vec::new() }]
    {
        let ran = run_with(Observers::new(), [text("a")], |stack| stack.end_with(outcome.clone()));
        assert_eq!(*ran.result.outcome, outcome);
    }
}

type Item = Result<Chunk, std::io::Error>;

fn source() -> Vec<Item> {
    vec![Ok(text("one")), Ok(text("two")), Ok(text("three")), Ok(finish())]
}

#[test]
fn however_the_consumer_stops_the_end_is_told_once_with_what_was_delivered() {
    // spec 3.9, bug report G13
    type Consume =
        fn(Pin<&mut streamkeeper_stream::Observed<stream::Iter<std::vec::IntoIter<Item>>, Chunk, std::io::Error>>);
    let cases: [(&str, Consume, &str, u64); 7] = [
        ("read all", |observed| block_on(observed.for_each(|_| std::future::ready(()))), "finished", 11),
        ("drop at 0", |_| {}, "dropped", 0),
        (
            "drop at 1",
            |mut observed| {
                block_on(observed.next());
            },
            "dropped",
            3,
        ),
        (
            "all but the end",
            |mut observed| {
                for _ in 0..4 {
                    block_on(observed.next());
                }
            },
            "dropped",
            11,
        ),
        (
            "close at 1, then drop",
            |mut observed| {
                block_on(observed.next());
                observed.as_mut().abort(None);
            },
            "aborted",
            3,
        ),
        (
            "close twice at 1, read on",
            |mut observed| {
                block_on(observed.next());
                observed.as_mut().abort(None);
                observed.as_mut().abort(None);
                let rest: Vec<_> = block_on(observed.collect());
                assert!(matches!(&rest[..], [Err(ObservedError::Ended(outcome))] if outcome.code() == "aborted"));
            },
            "aborted",
            3,
        ),
        (
            "abort before the first read",
            |observed| {
                let mut observed = observed;
                observed.as_mut().abort(None);
            },
            "aborted",
            0,
        ),
    ];
    for (name, consume, outcome, delivered) in cases {
        let results = Results::default();
        let mut observed = Box::pin(stream::iter(source()).observed(results.watcher()));
        consume(observed.as_mut());
        drop(observed);
        let results = results.take();
        assert_eq!(results.len(), 1, "{name}");
        assert_eq!((results[0].outcome.code(), results[0].delivered_len), (outcome, delivered), "{name}");
    }
}

#[test]
fn a_thousand_dropped_streams_leave_nothing() {
    // spec 3.9, bug report G13
    let alive = Arc::new(());
    let held = alive.clone();
    let factory = streamkeeper_stream::from_fn(move |_| Holds(held.clone()));
    struct Holds(#[expect(dead_code, reason = "counted")] Arc<()>);
    impl streamkeeper_stream::StreamWatcher for Holds {
        fn on_chunk(&mut self, _: &Chunk, _: &mut streamkeeper_stream::ObserverContext<'_>) {}
    }
    let observers = list([Registration::watcher(id!("holds"), factory)]);
    for i in 0..1000 {
        let mut observed = stream::iter(source()).observed(&observers);
        for _ in 0..i % 6 {
            block_on(observed.next());
        }
    }
    assert_eq!(Arc::strong_count(&alive), 2, "this one and the factory's");
}

#[test]
fn a_decided_stop_or_failure_stays_though_nobody_took_it() {
    // spec 3.9
    let verdicts: [(OnChunk, &str); 2] = [(|_, _| Verdict::stop("x", "x"), "stopped"), (|_, _| blow_up(), "failed")];
    for (verdict, code) in verdicts {
        let results = Results::default();
        let observers = list([Registration::guard(id!("guard"), On::delta(verdict)), results.watcher()]);
        let mut stack = observers.failures(Arc::new(Failures::default())).stack(&Default::default());
        stack.push(text("a"));
        drop(stack);
        assert_eq!(results.take()[0].outcome.code(), code);
    }
}

#[test]
fn observers_are_told_of_the_end_in_order_before_the_consumer_has_it() {
    // spec 3.9
    let log = Log::default();
    let ends = |name: &'static str| {
        let log = log.clone();
        Registration::watcher(
            streamkeeper_contract::Id::new(name).unwrap(),
            streamkeeper_stream::from_fn(move |_| Ends(name, log.clone())),
        )
    };
    struct Ends(&'static str, Log);
    impl streamkeeper_stream::StreamWatcher for Ends {
        fn on_chunk(&mut self, _: &Chunk, _: &mut streamkeeper_stream::ObserverContext<'_>) {}
        fn on_end_invocation(
            &mut self,
            _: &streamkeeper_stream::InvocationResult,
            _: &mut streamkeeper_stream::ObserverContext<'_>,
        ) {
            self.1.push(self.0);
        }
    }
    let mut stack = list([ends("a"), ends("b"), ends("c")]).stack(&Default::default());
    stack.push(finish());
    stack.finish();
    stack.pop();
    assert_eq!(log.lines(), [""; 0], "not before the last item is taken");
    stack.pop();
    assert_eq!(log.lines(), ["a", "b", "c"]);
    drop(stack);
    assert_eq!(log.lines().len(), 3);
}

#[test]
fn the_result_adds_up() {
    // spec 3.1
    let drops_x = On::delta(|_, ctx| streamkeeper_contract::Release::text(ctx.pending().replace('x', "")).into());
    let ran = run(
        [Registration::transform(id!("drops"), drops_x)],
        [
            text("axb").at(Offset(10)),
            reasoning("cd").at(Offset(20)),
            arguments("{x}").at(Offset(5_000)),
            finish().at(Offset(5_000)),
        ],
    );
    assert_eq!((ran.result.chunks_in, ran.result.chunks_out), (4, 5));
    assert_eq!(ran.result.delivered_len, 2);
    let lanes: Vec<_> = ran.result.lanes.iter().map(|text| (text.lane, text.entered_len, text.delivered_len)).collect();
    assert_eq!(lanes, [(TEXT, 3, 2), (REASONING, 2, 2), (ARGUMENTS, 3, 2)]);
    assert_eq!(ran.result.delivered_in(REASONING), 2);
    assert_eq!(ran.result.duration, std::time::Duration::from_millis(5));
    assert_eq!(ran.result.withheld_len, 0, "changed is not withheld");
}

#[test]
fn text_that_only_a_snapshot_says_counts_as_delivered_and_a_repeat_does_not() {
    // spec 1.3, 1.8
    let ran = run([], [text("ab"), Chunk::snapshot(TEXT, "ab"), Chunk::snapshot(TEXT.in_part(1), "cde")]);
    assert_eq!(ran.result.delivered_len, 5);
}

#[test]
fn a_stream_yields_one_terminal_then_nothing() {
    // spec 3.11
    let stops = || {
        Registration::guard(
            id!("stops"),
            On::delta(|_, ctx| match ctx.pending() {
                "two" => Verdict::stop("x", "x"),
                _ => Verdict::Continue,
            }),
        )
    };
    let mut observed = stream::iter(source()).observed(stops());
    let mut items = Vec::new();
    for _ in 0..6 {
        items.push(match block_on(observed.next()) {
            Some(Ok(chunk)) => show(&chunk),
            Some(Err(ObservedError::Ended(outcome))) => outcome.code().to_owned(),
            Some(Err(error)) => error.to_string(),
            None => "none".to_owned(),
        });
    }
    assert_eq!(items, ["text:one", "stopped", "none", "none", "none", "none"]);
    assert!(observed.is_terminated());
}

#[test]
fn the_source_is_not_asked_after_the_end_nor_before_a_guard_exists() {
    // spec 3.2, 3.5
    for (registration, polls) in [
        (Registration::guard(id!("stops"), On::delta(|_, _| Verdict::stop("x", "x"))), 1),
        (Registration::guard(id!("broken"), streamkeeper_stream::from_fn(|_| -> On { blow_up() })), 0),
    ] {
        let mut asked = 0;
        let source = stream::poll_fn(|_| {
            asked += 1;
            Poll::Ready(Some(Ok::<_, std::io::Error>(text("a"))))
        });
        let observers = Observers::from(registration).failures(Arc::new(Failures::default()));
        let items: Vec<_> = block_on(source.observed(observers).collect());
        assert!(matches!(&items[..], [Err(ObservedError::Ended(_))]));
        assert_eq!(asked, polls);
    }
}

#[test]
fn the_sources_error_comes_last_and_quiet_turns_every_end_into_a_chunk() {
    // spec 3.11
    let failing = || stream::iter([Ok(text("a")), Err(std::io::Error::other("reset")), Ok(text("never"))]);
    let holds = || Registration::guard(id!("holds"), On::delta(|_, _| Verdict::Buffer));
    let items: Vec<_> = block_on(failing().observed(holds()).collect());
    assert!(matches!(&items[..], [Ok(_), Err(ObservedError::Source(error))] if error.to_string() == "reset"));

    let mut quiet = failing().observed(holds()).quiet();
    let chunks: Vec<_> = block_on(quiet.by_ref().collect());
    assert_eq!(chunks.iter().map(show).collect::<Vec<_>>(), ["text:a", "end:failed"]);
    assert_eq!(quiet.source_error().unwrap().to_string(), "reset");
    assert_eq!(quiet.outcome().unwrap().to_string(), "failed: source_error", "without the client's words");

    let quiet = stream::iter(source()).observed(Observers::new()).quiet();
    assert_eq!(block_on(quiet.map(|chunk| show(&chunk)).collect::<Vec<_>>()).last().unwrap(), "end:finished");
}

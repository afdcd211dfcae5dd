//! What a failing observer does to a stream: spec 3.2, 3.8, 1.11, and bug report G14.

use std::sync::Arc;

use streamkeeper_contract::{
    Body, Chunk, ChunkKind, Custom, ErrorInfo, FailureReport, FailureSink, Json, Lane, Opaque, Outcome, Raw, Verdict,
    id,
};
use streamkeeper_stream::{
    EventSink, Interest, InvocationResult, ObserverContext, ObserverFactoryContext, OnFailure, Registration, Stack,
    StreamObserver, StreamWatcher, from_fn,
};

use crate::support::*;

/// Panics at the second delta.
#[derive(Clone, Default)]
struct FailsAtTwo(u32);

impl StreamObserver for FailsAtTwo {
    fn on_chunk(&mut self, _: &Chunk, _: &mut ObserverContext<'_>) -> Verdict {
        self.0 += 1;
        if self.0 == 2 { blow_up() } else { Verdict::Continue }
    }
}

impl StreamWatcher for FailsAtTwo {
    fn on_chunk(&mut self, _: &Chunk, _: &mut ObserverContext<'_>) {
        self.0 += 1;
        if self.0 == 2 {
            blow_up()
        }
    }
}

fn upper() -> Registration {
    let upper = On::delta(|chunk, ctx| Verdict::Amend(chunk.with_text(ctx.pending().to_uppercase()).unwrap()));
    Registration::transform(id!("upper"), upper)
}

#[test]
fn one_faulty_watcher_hurts_nobody() {
    // spec 3.8, bug report G14 variant 1
    let record = Log::default();
    let ran = run(
        [record.watcher(id!("record")), Registration::watcher(id!("faulty"), FailsAtTwo::default()), upper()],
        [text("a"), text("b"), text("c"), finish()],
    );
    assert_eq!(ran.line(), "text:A text:B text:C finish:stop end:finished");
    assert_eq!(ran.failures, ["faulty on_chunk panic"], "told once");
    assert_eq!(record.lines(), ["text:a", "text:b", "text:c", "finish:stop", "over:finished"]);
}

#[test]
fn one_faulty_guard_ends_the_invocation() {
    // spec 3.8, bug report G14 variant 2
    let record = Log::default();
    let ran = run(
        [record.watcher(id!("record")), Registration::guard(id!("faulty"), FailsAtTwo::default()), upper()],
        [text("a"), text("b"), text("c"), finish()],
    );
    assert_eq!(ran.line(), "text:A end:failed");
    let Outcome::Failed { error } = &*ran.result.outcome else { panic!("it failed") };
    assert_eq!((error.code.as_str(), error.component.clone()), ("guard_failed", Some(id!("faulty"))));
    assert_eq!(ran.failures, ["faulty on_chunk panic"]);
    assert_eq!(ran.result.withheld_len, 1);
}

/// Fails at the first chunk that says so, in the way that it says.
fn fails() -> On {
    On::chunk(|chunk, ctx| match ctx.pending() {
        pending if pending.ends_with("panic") => blow_up(),
        pending if pending.ends_with("contract") => Release::too_much(),
        _ if chunk.is_delta() => Verdict::Buffer,
        _ => Verdict::Continue,
    })
}

struct Release;

impl Release {
    fn too_much() -> Verdict {
        streamkeeper_contract::Release::unchanged().keep(usize::MAX).into()
    }
}

#[test]
fn each_policy_does_with_the_held_text_what_it_says() {
    // spec 3.2, 3.8
    let placeholder = || OnFailure::Placeholder("[gone]".into());
    for fault in ["panic", "contract"] {
        for (policy, out, withheld) in [
            (OnFailure::Fail, "end:failed".to_owned(), 5 + fault.len()),
            (OnFailure::PassThrough, format!("text:held{fault} reasoning:r text:after finish:stop end:finished"), 0),
            (
                placeholder(),
                "text:[gone] reasoning:[gone] finish:stop end:finished".to_owned(),
                5 + fault.len() + "after".len(),
            ),
        ] {
            let registration = Registration::guard(id!("guard"), fails()).on_failure(policy.clone());
            let chunks = [text("held"), reasoning("r"), text(fault), text("after"), finish()];
            let ran = run([registration], chunks);
            assert_eq!(ran.line(), out, "{policy:?}");
            assert_eq!(ran.result.withheld_len, withheld as u64, "{policy:?}");
            assert_eq!(ran.failures, [format!("guard on_chunk {fault}")]);
        }
    }
}

#[test]
fn a_failed_flush_follows_the_policy_too() {
    // spec 3.7
    for (policy, out) in [
        (OnFailure::Fail, "end:failed"),
        (OnFailure::PassThrough, "text:ab finish:stop end:finished"),
        (OnFailure::Placeholder("[gone]".into()), "text:[gone] finish:stop end:finished"),
    ] {
        let barriers: [OnBarrier; 2] = [|_| blow_up(), |_| Verdict::Buffer];
        for barrier in barriers {
            let holds = On::delta(|_, _| Verdict::Buffer).barrier(barrier);
            let ran = run(
                [Registration::guard(id!("guard"), holds).on_failure(policy.clone())],
                [text("a"), text("b"), finish()],
            );
            assert_eq!(ran.line(), out, "{policy:?}");
            assert_eq!(ran.failures.len(), 1);
        }
    }
}

#[test]
fn what_a_placeholder_cannot_replace_is_withheld() {
    // spec 3.8
    let json = || Json::from_text("{}").unwrap();
    let masked = |interest| {
        let fails = On::chunk(|_, _| blow_up()).interest(interest);
        Registration::guard(id!("guard"), fails).on_failure(OnFailure::Placeholder("[gone]".into()))
    };
    let lane = Lane::TEXT.in_part(1).arguments(1);
    let cases: Vec<(Chunk, &str)> = vec![
        (text("a"), "text:[gone]"),
        (Chunk::snapshot(TEXT, "a"), "whole-text:[gone]"),
        (arguments("{\"a\":1}"), "arguments:[gone]"),
        (Chunk::tool_call(lane, "id", "look", "{}"), ""),
        (Chunk::tool_call_start(lane, "id", "look"), ""),
        (Body::Opaque(Box::new(Opaque { lane: REASONING, form: "signature".into(), data: "s".into() })).into(), ""),
        (Chunk::custom("x", json()), ""),
        (Body::Custom(Box::new(Custom { name: "x".into(), value: json() })).into(), ""),
        (Body::Raw(Box::new(Raw { event: None, data: "secret".into() })).into(), ""),
        (Body::StateSnapshot(Box::new(json())).into(), ""),
        (Body::MessagesSnapshot(Box::new(json())).into(), ""),
        (Body::Unknown(Box::new("new_kind".into())).into(), ""),
        (Chunk::error(ErrorInfo::new("overloaded").with_message("secret")), "error:overloaded:"),
        (Chunk::error(ErrorInfo::new("overloaded")), "error:overloaded:"),
        (finish(), "finish:stop"),
        (Body::PartStart(TEXT).into(), "part_start"),
        (Body::PartEnd { choice: 0, part: 0 }.into(), "part_end"),
        (Body::Heartbeat.into(), "heartbeat"),
        (Chunk::usage(streamkeeper_contract::Usage::default()), "usage"),
    ];
    for (chunk, expected) in cases {
        let name = show(&chunk);
        let ran = run([masked(Interest::ALL)], [chunk.clone()]);
        assert_eq!(ran.out[..ran.out.len() - 1].join(" "), expected, "{name}");
        let other = if chunk.kind() == ChunkKind::Usage { ChunkKind::Finish } else { ChunkKind::Usage };
        let ran = run(
            [masked(Interest::only(&[other]))],
            [Chunk::usage(streamkeeper_contract::Usage::default()), finish(), chunk.clone()],
        );
        assert!(ran.out.contains(&name), "{name} passes where the guard would not have seen it: {:?}", ran.out);
    }
}

#[test]
fn a_tool_call_whose_beginning_was_withheld_does_not_appear_at_all() {
    // spec 3.8
    let fails =
        On::chunk(|_, _| blow_up()).interest(Interest::only(&[ChunkKind::ContentDelta, ChunkKind::ToolCallStart]));
    let ran = run(
        [Registration::guard(id!("guard"), fails).on_failure(OnFailure::Placeholder("[gone]".into()))],
        [
            text("a"),
            Chunk::tool_call_start(ARGUMENTS, "id", "look"),
            arguments("{}"),
            Body::ToolCallEnd(ARGUMENTS).into(),
            text("b"),
            finish(),
        ],
    );
    assert_eq!(ran.line(), "text:[gone] finish:stop end:finished");
    assert_eq!(ran.result.withheld_len, 4);
}

#[test]
fn a_factory_that_panics_follows_the_policy_before_anything_is_read() {
    // spec 3.2
    #[derive(Clone)]
    struct Coy;
    impl StreamObserver for Coy {
        fn interest(&self) -> Interest {
            blow_up()
        }
        fn on_chunk(&mut self, _: &Chunk, _: &mut ObserverContext<'_>) -> Verdict {
            Verdict::stop("never", "never asked")
        }
    }
    let factory = || from_fn(|_| -> On { blow_up() });
    for (policy, out) in [
        (OnFailure::Fail, "end:failed"),
        (OnFailure::PassThrough, "text:a finish:stop end:finished"),
        (OnFailure::Placeholder("[gone]".into()), "text:[gone] finish:stop end:finished"),
    ] {
        for (registration, failure) in [
            (Registration::guard(id!("guard"), factory()), "guard factory panic"),
            (Registration::guard(id!("guard"), Coy), "guard interest panic"),
        ] {
            let ran = run([registration.on_failure(policy.clone())], [text("a"), finish()]);
            assert_eq!(ran.line(), out);
            assert_eq!(ran.failures, [failure]);
        }
    }
    let stack = list([Registration::guard(id!("guard"), factory())]).failures(Arc::new(Failures::default()));
    assert!(stack.stack(&ObserverFactoryContext::default()).is_ended(), "there is nothing to ask the source for");
    let watcher = Registration::watcher(id!("watcher"), from_fn(|_| -> FailsAtTwo { blow_up() }));
    assert_eq!(run([watcher], [text("a")]).line(), "text:a end:truncated");
}

#[test]
fn a_disabled_observer_is_not_called_again() {
    // spec 3.8, 3.9
    let calls = Log::default();
    struct Counts(Log);
    impl StreamObserver for Counts {
        fn on_chunk(&mut self, _: &Chunk, _: &mut ObserverContext<'_>) -> Verdict {
            self.0.push("chunk");
            blow_up()
        }
        fn on_end_invocation(&mut self, _: &InvocationResult, _: &mut ObserverContext<'_>) {
            self.0.push("end");
        }
    }
    let seen = calls.clone();
    run([Registration::transform(id!("counts"), from_fn(move |_| Counts(seen.clone())))], [text("a"), text("b")]);
    assert_eq!(calls.lines(), ["chunk"]);
}

#[test]
fn a_panic_at_the_end_is_reported_and_changes_nothing() {
    // spec 3.8, 3.9
    let ends = On::chunk(|_, _| Verdict::Continue).end(|_, _| blow_up());
    let after = Log::default();
    let ran = run([Registration::guard(id!("guard"), ends), after.watcher(id!("after"))], [text("a"), finish()]);
    assert_eq!(ran.line(), "text:a finish:stop end:finished");
    assert_eq!(ran.failures, ["guard on_end_invocation panic"]);
    assert_eq!(after.lines().last().unwrap(), "over:finished");
}

#[test]
fn a_sink_that_panics_hurts_neither_observer_nor_stream() {
    // spec 3.8, 3.13
    struct Bomb;
    impl EventSink for Bomb {
        fn emit(&self, _: streamkeeper_contract::SideEvent) {
            blow_up()
        }
    }
    impl FailureSink for Bomb {
        fn report(&self, _: &FailureReport) {
            blow_up()
        }
    }
    let emits = || Registration::guard(id!("guard"), On::delta(|_, _| Verdict::Emit(vec![event("a"), event("b")])));
    let failures = Arc::new(Failures::default());
    let observers = list([emits()]).events(Arc::new(Bomb)).failures(failures.clone());
    let mut stack = observers.stack(&Default::default());
    stack.push(text("a"));
    assert_eq!(stack.pop().unwrap().text(), Some("a"));
    assert_eq!(failures.reports(), ["test event_sink panic"], "once: it gets no more events");

    let faulty = Registration::watcher(id!("faulty"), from_fn(|_| FailsAtTwo(1)));
    let mut stack = list([faulty]).failures(Arc::new(Bomb)).stack(&Default::default());
    stack.push(text("a"));
    assert_eq!(stack.pop().unwrap().text(), Some("a"));
}

#[test]
fn a_value_whose_drop_panics_is_contained() {
    // spec 3.8
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            blow_up()
        }
    }
    struct Holds(Bomb);
    impl StreamObserver for Holds {
        fn on_chunk(&mut self, _: &Chunk, _: &mut ObserverContext<'_>) -> Verdict {
            std::panic::resume_unwind(Box::new(Bomb))
        }
    }
    let ran = run([Registration::transform(id!("holds"), from_fn(|_| Holds(Bomb)))], [text("a"), finish()]);
    assert_eq!(ran.line(), "text:a finish:stop end:finished");
}

#[test]
fn the_cause_of_a_failure_goes_only_to_a_sink_that_asks() {
    // spec 1.11
    for wants_detail in [false, true] {
        let failures = Arc::new(Failures::with_detail(wants_detail));
        let observers = list([
            Registration::transform(id!("panics"), On::delta(|_, _| blow_up())),
            Registration::transform(id!("breaks"), On::delta(|_, _| Release::too_much())),
        ]);
        let mut stack = observers.failures(failures.clone()).stack(&Default::default());
        stack.push(text("a"));
        drop(stack);
        assert_eq!(failures.reports().len(), 2);
        let details: &[&str] = if wants_detail {
            &["panic: blown up", "rule: a release keeps more than is pending, or a part of a character"]
        } else {
            &[]
        };
        assert_eq!(failures.details(), details);
    }
}

#[test]
fn a_failure_after_the_end_is_decided_changes_no_outcome() {
    // spec 3.11
    let stops = Registration::guard(id!("stops"), On::delta(|_, _| Verdict::stop("x", "x")).end(|_, _| blow_up()));
    let ran = run_with(list([stops]), [text("a")], Stack::finish);
    assert_eq!(ran.line(), "end:stopped");
    assert_eq!(ran.result.outcome.code(), "stopped");
}

//! Holds, releases and barriers: spec 3.6, 3.7.

use streamkeeper_contract::{
    Body, Channel, Chunk, ErrorInfo, FinishReason, Lane, Opaque, Piece, Release, Text, Verdict, id,
};
use streamkeeper_stream::{Limits, Registration};

use crate::support::*;

fn guard(on: On) -> Registration {
    Registration::guard(id!("guard"), on)
}

fn holds_all() -> On {
    On::delta(|_, _| Verdict::Buffer)
}

#[test]
fn other_lanes_pass_while_one_is_held_and_each_keeps_its_order() {
    // spec 3.7
    let holds_text = On::delta(|_, ctx| match ctx.lane().map(|lane| lane.channel) {
        Some(Channel::Text) => Verdict::Buffer,
        _ => Verdict::Continue,
    });
    let ran = run([guard(holds_text)], [text("a"), reasoning("r"), text("b"), reasoning("s"), finish()]);
    assert_eq!(ran.line(), "reasoning:r reasoning:s text:ab finish:stop end:finished");
}

#[test]
fn held_text_goes_before_what_it_may_not_stay_behind() {
    // spec 3.7
    let part_end = |part| Chunk::from(Body::PartEnd { choice: 0, part });
    let opaque =
        |lane| Chunk::from(Body::Opaque(Box::new(Opaque { lane, form: "signature".into(), data: "s".into() })));
    let tool_end = Chunk::from(Body::ToolCallEnd(ARGUMENTS));
    let discard = Chunk::from(Body::Discard(Box::new(Text::from("msg"))));
    let cases = [
        (text("a"), part_end(0), true),
        (text("a"), part_end(1), false),
        (text("a"), Chunk::snapshot(TEXT, "a"), true),
        (text("a"), opaque(TEXT), true),
        (text("a"), opaque(REASONING), false),
        (text("a"), Chunk::tool_call_start(ARGUMENTS, "id", "look"), true),
        (text("a"), Chunk::tool_call_start(ARGUMENTS.in_choice(1), "id", "look"), false),
        (text("a"), tool_end.clone(), false),
        (arguments("{}"), tool_end, true),
        (arguments("{}"), Chunk::tool_call_start(ARGUMENTS.in_part(2).arguments(2), "id", "look"), false),
        (text("a"), finish(), true),
        (text("a"), Chunk::finish(1, FinishReason::Stop), false),
        (text("a"), Chunk::error(ErrorInfo::new("overloaded")), true),
        (text("a"), discard, true),
        (text("a"), Chunk::from(Body::Heartbeat), false),
    ];
    for (held, chunk, is_barrier) in cases {
        let (held, name) = (held, show(&chunk));
        let ran = run([guard(holds_all())], [held.clone(), chunk]);
        let expected = if is_barrier { [show(&held), name.clone()] } else { [name.clone(), show(&held)] };
        assert_eq!(ran.out[..2], expected, "{name}");
        assert_eq!(ran.failures, [""; 0], "{name}");
    }
}

#[test]
fn a_barrier_is_what_the_observer_sees_of_the_chunk_and_releases_pass_the_later_ones_first() {
    // spec 3.7
    let log = Log::default();
    let ran = run(
        [
            Registration::guard(id!("a"), holds_all()),
            Registration::guard(id!("b"), holds_all()),
            log.watcher(id!("log")),
        ],
        [text("x"), reasoning("r"), text("y"), finish()],
    );
    assert_eq!(ran.line(), "text:xy reasoning:r finish:stop end:finished");
    assert_eq!(log.lines(), ["text:xy", "reasoning:r", "finish:stop", "over:finished"]);
    assert_eq!(ran.chunks[0].provenance().positions().collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn a_holder_is_settled_whatever_its_interest() {
    // spec 3.7, 3.12
    let ran = run([guard(holds_all())], [text("a"), finish()]);
    assert_eq!(ran.line(), "text:a finish:stop end:finished", "it did not ask for finishes");
}

#[test]
fn a_settled_lane_leaves_nothing_behind() {
    // spec 3.1, 3.7
    let cases: [(&str, OnBarrier, &[&str], &str); 7] = [
        ("continue", |_| Verdict::Continue, &[], "text:ab finish:stop end:finished"),
        ("replace", |_| Release::text("x").into(), &[], "text:x finish:stop end:finished"),
        ("drop", |_| Release::text("").into(), &[], "finish:stop end:finished"),
        ("as it is", |_| Release::unchanged().into(), &[], "text:ab finish:stop end:finished"),
        ("keep", |_| Release::unchanged().keep(1).into(), &["guard on_barrier contract"], "end:failed"),
        ("undecided", |_| Verdict::Buffer, &["guard on_barrier contract"], "end:failed"),
        ("amend", |_| Verdict::Amend(text("x")), &["guard on_barrier contract"], "end:failed"),
    ];
    for (name, barrier, failures, out) in cases {
        let ran = run([guard(holds_all().barrier(barrier))], [text("a"), text("b"), finish()]);
        assert_eq!(ran.failures, failures, "{name}");
        assert_eq!(ran.line(), out, "{name}");
        let withheld = if failures.is_empty() { 0 } else { 2 };
        assert_eq!(ran.result.withheld_len, withheld, "{name}");
    }
}

#[test]
fn a_guard_that_forgets_barriers_leaks_nothing() {
    // spec 3.1
    #[derive(Clone)]
    struct Forgetful;
    impl streamkeeper_stream::StreamObserver for Forgetful {
        fn on_chunk(&mut self, chunk: &Chunk, _: &mut streamkeeper_stream::ObserverContext<'_>) -> Verdict {
            if chunk.is_delta() { Verdict::Buffer } else { Verdict::Continue }
        }
    }
    let ran = run([Registration::guard(id!("forgetful"), Forgetful)], [text("secret"), finish()]);
    assert_eq!(ran.line(), "end:failed");
    assert_eq!(ran.failures, ["forgetful on_barrier contract"]);
}

#[test]
fn a_release_stays_within_what_is_pending() {
    // spec 3.6
    let many = |n: usize| Release::pieces((0..n).map(|_| Piece::Text("x".into())));
    let cases: [(&str, &str, Release, Result<&str, &str>); 12] = [
        ("keep all", "ab", Release::unchanged().keep(2), Ok("text:ab")),
        ("keep too much", "ab", Release::unchanged().keep(3), Err("contract")),
        ("keep half a character", "aä", Release::unchanged().keep(1), Err("contract")),
        ("keep a whole character", "aä", Release::unchanged().keep(2), Ok("text:a text:ä")),
        ("replace the head", "abc", Release::text("X").keep(1), Ok("text:X text:c")),
        (
            "empty pieces make no chunk",
            "a",
            Release::pieces([Piece::Text("".into()), Piece::Text("b".into())]),
            Ok("text:b"),
        ),
        ("no pieces", "a", Release::pieces([]), Ok("")),
        ("64 pieces", "a", many(64), Ok("")),
        ("65 pieces", "a", many(65), Err("overflow")),
        ("4 KiB more", "a", Release::text("b".repeat(4097)), Ok("")),
        ("4 KiB and a byte more", "a", Release::text("b".repeat(4098)), Err("overflow")),
        (
            "a call counts too",
            "a",
            Release::pieces([Piece::ToolCall { name: "look".into(), arguments: "b".repeat(4098).into() }]),
            Err("overflow"),
        ),
    ];
    for (name, delta, release, expected) in cases {
        let registration =
            Registration::guard(id!("guard"), streamkeeper_stream::from_fn(move |_| Releases(release.clone())));
        let ran = run([registration], [text(delta)]);
        match expected {
            Ok(out) => {
                assert_eq!(ran.failures, [""; 0], "{name}");
                if !out.is_empty() {
                    assert_eq!(ran.line(), format!("{out} end:truncated"), "{name}");
                }
            }
            Err(kind) => {
                assert_eq!(ran.failures, [format!("guard on_chunk {kind}")], "{name}");
                assert_eq!(ran.line(), "end:failed", "{name}");
            }
        }
    }
}

struct Releases(Release);

impl streamkeeper_stream::StreamObserver for Releases {
    fn on_chunk(&mut self, _: &Chunk, _: &mut streamkeeper_stream::ObserverContext<'_>) -> Verdict {
        self.0.clone().into()
    }

    fn on_barrier(&mut self, _: &mut streamkeeper_stream::ObserverContext<'_>) -> Verdict {
        Verdict::Continue
    }
}

#[test]
fn holds_are_limited_by_lane_by_number_and_in_all() {
    // spec 3.6, 8.1
    let mut limits = Limits::default();
    (limits.held_lane_bytes, limits.held_lanes, limits.held_bytes) = (4, 3, 9);
    let lane = |part| Lane::TEXT.in_part(part);
    let cases: [(&str, Vec<Chunk>, &[&str]); 6] = [
        ("a full lane", vec![text("ab"), text("cd")], &[]),
        ("a byte too much in a lane", vec![text("ab"), text("cde")], &["guard on_chunk overflow"]),
        ("one delta too large", vec![text("abcde")], &["guard on_chunk overflow"]),
        ("arguments count too", vec![arguments("{\"a\":1}")], &["guard on_chunk overflow"]),
        ("a lane too much", (0..4).map(|part| Chunk::delta(lane(part), "a")).collect(), &["guard on_chunk overflow"]),
        (
            "too much in all",
            (0..3).map(|part| Chunk::delta(lane(part), "abcd")).collect(),
            &["guard on_chunk overflow"],
        ),
    ];
    for (name, chunks, failures) in cases {
        let len: usize = chunks.iter().filter_map(Chunk::text).map(str::len).sum();
        let ran = run_with(list([guard(holds_all())]).limits(limits), chunks, streamkeeper_stream::Stack::finish);
        assert_eq!(ran.failures, failures, "{name}");
        if !failures.is_empty() {
            assert_eq!((ran.line().as_str(), ran.result.withheld_len), ("end:failed", len as u64), "{name}");
        }
    }
    assert_eq!(Limits::default().held_lane_bytes, 64 * 1024);
}

#[test]
fn pieces_of_pieces_are_limited() {
    // spec 8.1
    let splits = || {
        On::delta(|_, ctx| {
            let half = ctx.pending().len() / 2;
            let (a, b) = ctx.pending().split_at(half);
            Release::pieces([Piece::Text(a.into()), Piece::Text(b.into())]).into()
        })
    };
    let ids = ["a", "b", "c", "d"].map(|name| streamkeeper_contract::Id::new(name).unwrap());
    let splitters = ids.map(|id| Registration::guard(id, splits()));
    let mut limits = Limits::default();
    limits.pieces_per_chunk = 29;
    let ran = run_with(
        list(splitters.clone()).limits(limits),
        [text("abcdefghijklmnop")],
        streamkeeper_stream::Stack::finish,
    );
    assert_eq!(ran.failures, ["d on_chunk overflow"]);
    limits.pieces_per_chunk = 30;
    let ran = run_with(list(splitters).limits(limits), [text("abcdefghijklmnop")], streamkeeper_stream::Stack::finish);
    assert_eq!(ran.failures, [""; 0]);
    assert_eq!(ran.out.len(), 17);
}

#[test]
fn what_is_held_at_a_cancel_is_withheld_and_counted() {
    // spec 3.7
    let ran = run_with(list([guard(holds_all())]), [text("held"), reasoning("too")], |stack| stack.abort(None));
    assert_eq!((ran.line().as_str(), ran.result.withheld_len), ("end:aborted", 7));
}

#[test]
fn a_hold_gives_back_what_it_took_from_the_limit() {
    // spec 3.6
    let observers = list([guard(holds_all())]);
    let mut stack = observers.stack(&Default::default());
    stack.push(text("abc"));
    stack.push(reasoning("de"));
    assert_eq!(stack.held_len(), 5);
    stack.push(finish());
    assert_eq!(stack.held_len(), 0);
}

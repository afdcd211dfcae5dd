//! Snapshots and opaque chunks: spec 1.3, 1.4.

use streamkeeper_contract::{Body, Chunk, ChunkKind, Id, Lane, Opaque, Piece, Release, Verdict, id};
use streamkeeper_stream::{Interest, Limits, OnFailure, Registration, Stack};

use crate::support::*;

fn snapshot(text: &str) -> Chunk {
    Chunk::snapshot(TEXT, text)
}

fn transform(id: &str, on: On) -> Registration {
    Registration::transform(Id::new(id).unwrap(), on)
}

/// Replaces `key` by `***`, holding back a `k` or `ke` at the end; counts nothing, so it does the same whatever it is asked about.
fn masks_keys() -> On {
    On::chunk(|chunk, ctx| {
        let pending = ctx.pending();
        match chunk.kind() {
            ChunkKind::Snapshot => Verdict::Amend(chunk.with_text(pending.replace("key", "***")).unwrap()),
            _ if !chunk.is_delta() => Verdict::Continue,
            _ => {
                let keep = ["ke", "k"].iter().find(|tail| pending.ends_with(**tail)).map_or(0, |tail| tail.len());
                let text = pending[..pending.len() - keep].replace("key", "***");
                Release::text(text).keep(keep).into()
            }
        }
    })
}

/// The same, without looking at snapshots.
fn masks_keys_in_deltas() -> On {
    masks_keys().interest(Interest::only(&[ChunkKind::ContentDelta]))
}

#[test]
fn a_snapshot_gets_the_edits_that_its_text_got() {
    // spec 1.3
    let cases: [(&[&str], &str); 6] = [
        (&["a key", " b"], "a *** b"),
        (&["a k", "e", "y b k", "eykey"], "a *** b ******"),
        (&["nothing"], "nothing"),
        (&["äkeyö", "k"], "ä***ök"),
        (&["key"], "***"),
        (&["ke", "ke", "y"], "ke***"),
    ];
    for (deltas, expected) in cases {
        for on in [masks_keys(), masks_keys_in_deltas()] {
            let whole = deltas.concat();
            let mut chunks: Vec<_> = deltas.iter().map(|delta| text(delta)).collect();
            // Providers repeat a text several times.
            chunks.extend([snapshot(&whole), snapshot(&whole), finish()]);
            let ran = run([transform("mask", on)], chunks);
            let said: String = ran.chunks.iter().filter(|chunk| chunk.is_delta()).filter_map(Chunk::text).collect();
            assert_eq!(said, expected);
            let repeated = format!("whole-text:{expected}");
            assert_eq!(ran.out.iter().filter(|line| **line == repeated).count(), 2, "{:?}", ran.out);
            assert_eq!(ran.result.differing_snapshots, 0);
        }
    }
}

#[test]
fn edits_of_several_observers_are_repeated_in_order() {
    // spec 1.3
    let upper = On::delta(|chunk, ctx| Verdict::Amend(chunk.with_text(ctx.pending().to_uppercase()).unwrap()));
    let stars = On::delta(|_, ctx| Release::text(ctx.pending().replace('*', "-*")).into());
    let last = Log::default();
    let ran = run(
        [
            transform("first", On::delta(|_, _| Verdict::Continue)),
            transform("mask", masks_keys_in_deltas()),
            transform("upper", upper),
            transform("stars", stars),
            last.watcher(id!("last")),
        ],
        [text("a k"), text("ey"), text(" é"), snapshot("a key é"), finish()],
    );
    let said: String = ran.chunks.iter().filter(|chunk| chunk.is_delta()).filter_map(Chunk::text).collect();
    assert_eq!(said, "A -*-*-* É");
    assert!(last.lines().contains(&"whole-text:A -*-*-* É".to_owned()), "{:?}", last.lines());
}

#[test]
fn a_snapshot_with_no_delta_before_it_is_new_text() {
    // spec 1.3
    let ran = run([transform("mask", masks_keys())], [snapshot("a key"), snapshot("a key"), finish()]);
    assert_eq!(ran.line(), "whole-text:a *** whole-text:a *** finish:stop end:finished");
    assert_eq!((ran.result.differing_snapshots, ran.result.delivered_len), (0, 5));
}

#[test]
fn a_snapshot_that_differs_is_shown_whole_and_noted() {
    // spec 1.3
    let ran = run(
        [transform("mask", masks_keys())],
        [text("a key"), snapshot("another key, and a key"), snapshot("another key, and a key"), finish()],
    );
    let expected = "whole-text:another ***, and a ***";
    assert_eq!(ran.out[1..3], [expected, expected]);
    assert_eq!(ran.result.differing_snapshots, 1, "the second repeats the first");
}

#[test]
fn a_snapshot_that_differs_is_withheld_where_nobody_can_judge_it() {
    // spec 1.3: an observer has changed the text, and does not look at snapshots
    let ran = run([transform("mask", masks_keys_in_deltas())], [text("a key"), snapshot("the key is k1"), finish()]);
    assert_eq!(ran.line(), "text:a *** finish:stop end:finished");
    let ran = run([transform("mask", masks_keys_in_deltas())], [text("a"), snapshot("b"), finish()]);
    assert_eq!(ran.line(), "text:a whole-text:b finish:stop end:finished", "where it changed nothing, it passes");
}

#[test]
fn who_has_judged_the_deltas_is_not_asked_again_and_watchers_see_every_repeat() {
    // spec 1.3
    let judge = On::chunk(|chunk, ctx| {
        ctx.emit(event(if chunk.is_delta() { "delta" } else { "whole" }));
        Verdict::Continue
    })
    .interest(Interest::TEXT);
    let only_snapshots = judge.interest(Interest::only(&[ChunkKind::Snapshot]));
    let watcher = Log::default();
    let chunks = || [text("a"), text("b"), snapshot("ab"), finish()];
    let ran = run([transform("judge", judge), watcher.watcher(id!("watcher"))], chunks());
    assert_eq!(ran.events, ["test/delta", "test/delta"]);
    assert_eq!(watcher.lines()[..3], ["text:a", "text:b", "whole-text:ab"]);
    let ran = run([transform("judge", only_snapshots)], chunks());
    assert_eq!(ran.events, ["test/whole"], "it has not seen the deltas");
}

#[test]
fn held_text_is_settled_before_its_snapshot() {
    // spec 1.3, 3.7
    let ran = run([transform("mask", masks_keys())], [text("a k"), snapshot("a k"), text("ey"), snapshot("a key")]);
    assert_eq!(ran.line(), "text:a  text:k whole-text:a k text:ey whole-text:a key end:truncated");
}

#[test]
fn a_snapshot_that_was_amended_is_what_the_later_ones_compare_with() {
    // spec 1.3
    let amends_snapshots = On::chunk(|chunk, _| match chunk.kind() {
        ChunkKind::Snapshot => Verdict::Amend(Chunk::snapshot(TEXT, "other")),
        _ => Verdict::Continue,
    })
    .interest(Interest::only(&[ChunkKind::Snapshot]));
    let asked = On::chunk(|chunk, ctx| {
        if chunk.kind() == ChunkKind::Snapshot {
            ctx.emit(event("asked"));
        }
        Verdict::Continue
    });
    let ran = run([transform("amends", amends_snapshots), transform("asked", asked)], [text("a"), snapshot("a")]);
    assert_eq!(ran.events, ["test/asked"], "for this one it differs from the deltas");
    assert_eq!(ran.result.differing_snapshots, 0, "it did not when it entered");
}

#[test]
fn after_a_snapshot_the_text_goes_on_from_it() {
    // spec 1.3
    let ran = run(
        [transform("mask", masks_keys_in_deltas())],
        [text("a key"), snapshot("a key"), text(" b key"), snapshot("a key b key"), finish()],
    );
    assert_eq!(ran.line(), "text:a *** whole-text:a *** text: b *** whole-text:a *** b *** finish:stop end:finished");
}

#[test]
fn lanes_have_snapshots_of_their_own() {
    // spec 1.3
    let other = |text: &str| Chunk::delta(TEXT.in_part(1), text);
    let ran = run(
        [transform("mask", masks_keys_in_deltas())],
        [text("a key"), other("key b"), Chunk::snapshot(TEXT.in_part(1), "key b"), snapshot("a key"), finish()],
    );
    assert_eq!(ran.line(), "text:a *** text:*** b whole-text:*** b whole-text:a *** finish:stop end:finished");
}

#[test]
fn edits_past_the_limit_are_forgotten_and_the_snapshot_is_judged_whole() {
    // spec 8.1
    let mut limits = Limits::default();
    limits.edit_bytes = 200;
    let upper = On::chunk(|chunk, ctx| match chunk.with_text(ctx.pending().to_uppercase()) {
        Some(amended) => Verdict::Amend(amended),
        None => Verdict::Continue,
    });
    for (deltas, in_deltas_only, expected) in [
        (3, false, "whole-text:AAA"),
        (300, false, &*format!("whole-text:{}", "A".repeat(300))),
        (3, true, "whole-text:AAA"),
        (300, true, "finish:stop"),
    ] {
        let on = if in_deltas_only { upper.interest(Interest::only(&[ChunkKind::ContentDelta])) } else { upper };
        let mut chunks: Vec<_> = (0..deltas).map(|_| text("a")).collect();
        chunks.extend([snapshot(&"a".repeat(deltas)), finish()]);
        let ran = run_with(list([transform("upper", on)]).limits(limits), chunks, Stack::finish);
        assert_eq!(ran.out[deltas], expected);
    }
}

#[test]
fn snapshots_of_lanes_past_the_limit_are_judged_whole() {
    // spec 8.1
    let mut limits = Limits::default();
    limits.lanes = 2;
    let lane = |part| Lane::TEXT.in_part(part);
    let chunks = || {
        let deltas = (0..3).map(|part| Chunk::delta(lane(part), "a key"));
        deltas.chain((0..3).map(|part| Chunk::snapshot(lane(part), "a key"))).collect::<Vec<_>>()
    };
    let ran = run_with(list([transform("mask", masks_keys())]).limits(limits), chunks(), Stack::finish);
    assert_eq!(ran.out[3..6], ["whole-text:a ***"; 3]);
    assert_eq!(ran.result.lanes.len(), 2);
    assert_eq!(ran.result.delivered_len, 15);
    let ran = run_with(list([transform("mask", masks_keys_in_deltas())]).limits(limits), chunks(), Stack::finish);
    assert_eq!(
        ran.out[3..],
        ["whole-text:a ***", "whole-text:a ***", "end:truncated"],
        "and withheld where nobody can"
    );
}

#[test]
fn an_observer_that_fails_over_a_snapshot_follows_its_policy() {
    // spec 3.8
    let fails = On::chunk(|chunk, _| if chunk.kind() == ChunkKind::Snapshot { blow_up() } else { Verdict::Continue });
    for (policy, out) in [
        (OnFailure::Fail, "end:failed"),
        (OnFailure::PassThrough, "whole-text:a end:truncated"),
        (OnFailure::Placeholder("[gone]".into()), "whole-text:[gone] end:truncated"),
    ] {
        let ran = run([Registration::guard(id!("guard"), fails).on_failure(policy)], [snapshot("a")]);
        assert_eq!(ran.line(), out);
    }
}

#[test]
fn a_snapshot_of_masked_text_is_masked() {
    // spec 3.8
    let fails = On::delta(|_, _| blow_up()).interest(Interest::TEXT);
    let guard = || Registration::guard(id!("guard"), fails).on_failure(OnFailure::Placeholder("[gone]".into()));
    let ran = run([guard()], [text("secret"), snapshot("secret"), finish()]);
    assert_eq!(ran.line(), "text:[gone] finish:stop end:finished");
}

fn signature(lane: Lane) -> Chunk {
    Body::Opaque(Box::new(Opaque { lane, form: "signature".into(), data: "sig".into() })).into()
}

#[test]
fn a_signature_over_changed_text_is_left_out_and_counted() {
    // spec 1.4
    let changes = |on: On| transform("changes", on);
    let thinking = |text: &str| Chunk::delta(REASONING, text);
    let drop_x = On::delta(|_, ctx| Release::text(ctx.pending().replace('x', "")).into());
    let holds = On::delta(|_, _| Verdict::Buffer);
    let calls = On::delta(|chunk, ctx| match ctx.pending() {
        "call" => Release::pieces([Piece::ToolCall { name: "look".into(), arguments: "{}".into() }]).into(),
        _ => Verdict::Amend(chunk.clone()),
    });
    let cases = [
        ("unchanged", drop_x, thinking("abc"), REASONING, false),
        ("changed", drop_x, thinking("axc"), REASONING, true),
        ("another part changed", drop_x, text("axc"), REASONING.in_part(1), false),
        ("another text of the same part", drop_x, text("axc"), REASONING, true),
        ("held and let go", holds, thinking("abc"), REASONING, false),
        ("amended to the same", calls, thinking("abc"), REASONING, false),
        ("made a call", calls, thinking("call"), REASONING, true),
    ];
    for (name, on, delta, lane, is_left_out) in cases {
        let ran = run([changes(on)], [delta, signature(lane), finish()]);
        assert_eq!(!ran.out.contains(&"opaque".to_owned()), is_left_out, "{name}: {:?}", ran.out);
        assert_eq!(ran.result.opaque_withheld, u64::from(is_left_out), "{name}");
    }
}

#[test]
fn a_signature_over_masked_text_is_left_out() {
    // spec 1.4, 3.8
    let fails = On::delta(|_, _| blow_up());
    let guard = Registration::guard(id!("guard"), fails).on_failure(OnFailure::Placeholder("[gone]".into()));
    let ran = run([guard], [reasoning("secret"), signature(REASONING)]);
    assert_eq!((ran.line().as_str(), ran.result.opaque_withheld), ("reasoning:[gone] end:truncated", 1));
}

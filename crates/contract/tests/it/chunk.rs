//! spec 1.2, 1.5, 1.12 and the barriers of spec 3.7.

use std::collections::BTreeSet;

use proptest::prelude::*;
use streamkeeper_contract::{
    Annotation, Body, Channel, Chunk, ChunkKind, EndToken, ErrorInfo, FinishReason, Json, Lane, MediaData, Offset,
    Origin, Outcome, Provenance, Text, Usage, id,
};

use crate::samples::{any_chunk, one_of_each};

#[test]
fn every_kind_has_a_name_a_lane_if_any_and_the_text_it_carries() {
    // spec 1.2
    let mut lines = Vec::new();
    for (chunk, kind) in one_of_each().iter().zip(ChunkKind::ALL) {
        assert_eq!(chunk.kind(), *kind);
        assert_eq!(ChunkKind::from_name(kind.as_str()), Some(*kind));
        assert_eq!(kind.to_string(), kind.as_str());
        let lane = chunk.lane().map_or_else(
            || "-".to_owned(),
            |lane| format!("{}/{}/{}/{}", lane.choice, lane.part, lane.channel, lane.call),
        );
        lines.push(format!("{kind:22} {lane:20} {}", chunk.text().unwrap_or("-")));
    }
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn the_kind_of_a_delta_follows_from_its_channel() {
    // spec 1.2
    let kinds: Vec<_> = Channel::ALL.iter().map(|channel| Chunk::delta(Lane::new(*channel), "").kind()).collect();
    for (channel, kind) in Channel::ALL.iter().zip(&kinds) {
        assert_eq!(kind.channel(), Some(*channel), "{kind}");
    }
    assert_eq!(kinds.iter().collect::<BTreeSet<_>>().len(), Channel::ALL.len(), "one kind per channel");
}

#[test]
fn the_channel_of_a_kind_is_that_of_its_lane() {
    // spec 1.2
    for chunk in one_of_each() {
        if let Some(channel) = chunk.kind().channel() {
            assert_eq!(chunk.lane().map(|lane| lane.channel), Some(channel), "{}", chunk.kind());
        }
    }
}

#[test]
fn only_a_delta_can_be_held() {
    // spec 3.6
    for chunk in one_of_each() {
        assert_eq!(chunk.is_delta(), chunk.kind().as_str().ends_with("_delta") && chunk.lane().is_some());
    }
}

#[test]
fn another_text_leaves_the_rest_as_it_is() {
    // spec 1.2: what `text` gives can be replaced where it is prose; JSON that a provider wrote cannot.
    let replaceable = [
        "content_delta",
        "reasoning_delta",
        "refusal_delta",
        "tool_call_delta",
        "tool_result_delta",
        "provider_tool_delta",
        "transcript_delta",
        "snapshot",
        "tool_call",
        "tool_result",
        "error",
    ];
    for mut chunk in one_of_each() {
        chunk.meta_mut().origin = Origin { frame: 4, part: 1 };
        let amended = chunk.with_text("[redacted]");
        assert_eq!(amended.is_some(), replaceable.contains(&chunk.kind().as_str()), "{}", chunk.kind());
        let Some(amended) = amended else { continue };
        assert_eq!(amended.text(), Some("[redacted]"));
        assert_eq!((amended.kind(), amended.lane(), amended.meta()), (chunk.kind(), chunk.lane(), chunk.meta()));
        assert_eq!(amended.with_text(chunk.text().unwrap()), Some(chunk), "only the text differs");
    }
}

#[test]
fn a_chunk_fits_a_cache_line() {
    // spec 1.5
    assert!(size_of::<Chunk>() <= 64);
    assert!(size_of::<Option<Chunk>>() <= 64);
    assert_eq!(size_of::<Text>(), 24);
    assert!(size_of::<Lane>() <= 8);
}

#[test]
fn chunks_can_go_to_another_thread() {
    fn check<T: Send + Sync + 'static>() {}
    check::<Chunk>();
    check::<Outcome>();
    check::<Usage>();
    check::<EndToken>();
    check::<Json>();
}

#[test]
fn held_text_may_not_stay_behind_a_barrier() {
    // spec 3.7
    let text = Lane::TEXT;
    let arguments = Lane::TEXT.in_part(1).arguments(1);
    let reasoning = Lane::new(Channel::Reasoning);
    let one = |kind| one_of_each().into_iter().find(|chunk| chunk.kind() == kind).unwrap();
    let part_end = |choice, part| Chunk::from(Body::PartEnd { choice, part });
    let message_end = |choice| Chunk::from(Body::MessageEnd { choice });
    let start = |lane| Chunk::tool_call_start(lane, "call-1", "weather");
    let whole = |lane| Chunk::tool_call(lane, "call-1", "weather", "{}");
    let logprobs = |lane| {
        let value = Json::from_text(r#"[{"token":"a"}]"#).unwrap();
        Chunk::from(Body::Annotation(Box::new(Annotation { lane, form: "logprobs".into(), value })))
    };
    for (chunk, held, expected) in [
        // A delta is none, not even one of the lane: it joins what is held.
        (Chunk::delta(text, "a"), text, false),
        (Chunk::delta(reasoning, "a"), text, false),
        // The end of the part, in all its channels, and no other part or choice.
        (part_end(0, 0), text, true),
        (part_end(0, 0), reasoning, true),
        (part_end(0, 1), text, false),
        (part_end(1, 0), text, false),
        (part_end(0, 1), arguments, true),
        (message_end(0), text, true),
        (message_end(1), text, false),
        // Any non-delta of the lane.
        (Chunk::snapshot(text, "a"), text, true),
        (Chunk::snapshot(text, "a"), text.in_part(1), false),
        (Chunk::snapshot(reasoning, "a"), text, false),
        (Chunk::from(Body::PartStart(text)), text, true),
        (one(ChunkKind::Opaque), reasoning, true),
        (one(ChunkKind::Opaque), text, false),
        (one(ChunkKind::Annotation), text, true),
        // But for what comes with every piece.
        (logprobs(text), text, false),
        (one(ChunkKind::Media), text, false),
        (one(ChunkKind::ToolResult), arguments, false),
        (one(ChunkKind::ToolResult), arguments.in_channel(Channel::ToolResult), true),
        // For text the start of a tool call of the same choice, in whatever part.
        (start(arguments), text, true),
        (whole(arguments), text, true),
        (start(arguments), reasoning, true),
        (start(arguments.in_choice(1)), text, false),
        (whole(arguments.in_choice(1)), text, false),
        // For arguments the end of that call; another call passes by.
        (one(ChunkKind::ToolCallEnd), arguments, true),
        (one(ChunkKind::ToolCallEnd), text, false),
        (start(arguments), arguments, true),
        (start(Lane::TEXT.in_part(2).arguments(2)), arguments, false),
        (whole(Lane::TEXT.in_part(2).arguments(2)), arguments, false),
        // The finish of the choice.
        (Chunk::finish(0, FinishReason::Stop), text, true),
        (Chunk::finish(0, FinishReason::Stop), arguments, true),
        (Chunk::finish(1, FinishReason::Stop), text, false),
        // An error and the end, for every lane.
        (Chunk::error(ErrorInfo::new("overloaded")), text.in_choice(7), true),
        (Chunk::end(EndToken::open(), Outcome::Truncated.into()), arguments.in_choice(7), true),
        // What is sent again from its beginning may not begin with what is held.
        (one(ChunkKind::Discard), text.in_choice(7), true),
        // What belongs to no lane passes.
        (Chunk::usage(Usage::default()), text, false),
        (Chunk::heartbeat(Offset(5)), text, false),
        (Chunk::custom("progress", Json::string("x")), text, false),
        (one(ChunkKind::Raw), text, false),
        (one(ChunkKind::RunStart), text, false),
        (one(ChunkKind::StepEnd), text, false),
        (one(ChunkKind::Unknown), text, false),
    ] {
        assert_eq!(chunk.is_barrier_for(held), expected, "{chunk:?} for {held:?}");
    }
}

#[test]
fn provenance_is_a_set_of_positions() {
    // spec 1.12
    let mut set = Provenance::default();
    assert!(set.is_empty());
    for position in [5, 0, 5, 62] {
        set.add(position);
    }
    assert_eq!(set.positions().collect::<Vec<_>>(), [0, 5, 62]);
    assert!(set.contains(5) && !set.contains(4) && !set.contains(63));

    let mut other = Provenance::default();
    other.add(1);
    other.merge(set);
    assert_eq!(other.positions().collect::<Vec<_>>(), [0, 1, 5, 62]);

    let mut late = Provenance::default();
    late.add(64);
    late.add(usize::MAX);
    assert_eq!(late.positions().collect::<Vec<_>>(), [63], "positions past the last share it");
    assert!(late.contains(63) && late.contains(1000));
}

#[test]
fn offsets_are_microseconds() {
    for (micros, duration) in [
        (0, std::time::Duration::ZERO),
        (1_500_000, std::time::Duration::from_millis(1500)),
        (u64::MAX, std::time::Duration::from_micros(u64::MAX)),
    ] {
        assert_eq!(Offset(micros).duration(), duration);
        assert_eq!(Offset::from(duration), Offset(micros));
    }
    assert_eq!(Offset::from(std::time::Duration::from_nanos(1999)), Offset(1), "what is less than one is cut off");
    assert_eq!(Offset::from(std::time::Duration::MAX), Offset(u64::MAX), "what is too long is as long as can be");
}

#[test]
fn media_is_inline_or_elsewhere() {
    for (data, expected) in [
        (MediaData::Base64("aGk=".into()), r#""base64":"aGk=""#),
        (MediaData::Url("https://example.org/a.png".into()), r#""url":"https://example.org/a.png""#),
        (MediaData::Id("file-1".into()), r#""file":"file-1""#),
    ] {
        let media = streamkeeper_contract::Media { lane: Lane::TEXT, form: "image".into(), mime: None, data };
        let text = serde_json::to_string(&Chunk::from(Body::Media(Box::new(media)))).unwrap();
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn an_end_is_shared_and_not_copied() {
    // spec 1.7
    let outcome = std::sync::Arc::new(Outcome::Finished { reason: FinishReason::Stop });
    let chunk = Chunk::end(EndToken::open(), outcome.clone());
    let Body::End(end) = chunk.body() else { panic!("{chunk:?}") };
    assert!(std::sync::Arc::ptr_eq(end.outcome(), &outcome));
    EndToken::open().spend();
    let _ = id!("an-invocation-may-end-without-an-end-chunk");
}

proptest! {
    #[test]
    fn a_barrier_concerns_the_chunks_own_choice_unless_it_ends_everything(chunk in any_chunk(), other in 0_u16..4) {
        // spec 3.7
        let own = match chunk.body() {
            Body::PartEnd { choice, .. } | Body::MessageEnd { choice } => Some(*choice),
            Body::Finish(finish) => Some(finish.choice),
            _ => chunk.lane().map(|lane| lane.choice),
        };
        let ends_everything = matches!(chunk.kind(), ChunkKind::Error | ChunkKind::End | ChunkKind::Discard);
        for channel in Channel::ALL {
            let held = Lane::new(*channel).in_choice(other);
            if own != Some(other) {
                prop_assert_eq!(chunk.is_barrier_for(held), ends_everything);
            }
        }
    }
}

//! spec 1.1: every type has a JSON form, and what this version does not know survives a round trip.

use proptest::prelude::*;
use serde::{Serialize, de::DeserializeOwned};
use streamkeeper_contract::{
    CallClass, Channel, Chunk, ChunkKind, ErrorInfo, Extra, FailureKind, FailureReport, FinishReason, Hook, Json, Lane,
    Meta, Money, Offset, Origin, Outcome, Piece, Provenance, Release, SideEvent, Stated, Stop, Text, Usage, Verdict,
    id,
};

use crate::samples::{self, any_chunk, any_extra, any_json, any_lane, any_outcome, any_usage};

fn write<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap()
}

fn read<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// The form of a value, which reads back as the same value.
fn form<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(value: &T) -> String {
    let text = write(value);
    assert_eq!(read::<T>(&text).as_ref(), Ok(value), "{text}");
    text
}

#[test]
fn every_kind_of_chunk_has_a_form() {
    // spec 1.1, 1.2
    let lines: Vec<_> = samples::one_of_each().iter().map(form).collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn every_other_type_has_a_form() {
    // spec 1.1, 1.7, 1.11
    let mut provenance = Provenance::default();
    [2, 0, 63].into_iter().for_each(|position| provenance.add(position));
    let mut beside = Chunk::delta(Lane::TEXT.in_choice(1).in_part(2), "Hi");
    *beside.meta_mut() = Meta {
        at: Offset(1500),
        origin: Origin { frame: 3, part: 1 },
        provenance,
        extra: Some(Box::new(Extra(vec![("trace".into(), Json::from_text("1.0").unwrap())]))),
    };
    let event = SideEvent { channel: id!("metrics"), name: id!("progress"), payload: Json::from_text("{}").unwrap() };
    let call = Piece::ToolCall { name: "search".into(), arguments: "{}".into() };
    let failure = FailureReport { component: id!("secrets"), hook: Hook::OnChunk, kind: FailureKind::NotRun };
    let lines = [
        form(&beside),
        form(&Text::from("text")),
        form(&id!("prompt-leak.v2")),
        form(&CallClass::Converse),
        form(&CallClass::Custom(id!("rerank"))),
        form(&Channel::ToolResult),
        form(&Lane::TEXT),
        form(&Lane { choice: 1, part: 2, call: 3, channel: Channel::Arguments }),
        form(&Offset(1500)),
        form(&Origin { frame: 3, part: 0 }),
        form(&Origin { frame: 3, part: 1 }),
        form(&provenance),
        form(&Extra(vec![("b".into(), Json::from_text("1.0").unwrap()), ("a".into(), Json::string("x"))])),
        form(&Money::from_pico(250_000)),
        form(&samples::usage()),
        form(&Usage::default()),
        form(&Stated::default()),
        form(&FinishReason::ContentFilter),
        form(&FinishReason::Other("RECITATION".into())),
        form(&samples::error()),
        form(&ErrorInfo::new("guard_failed")),
        form(&samples::stop()),
        form(&Outcome::Finished { reason: FinishReason::Stop }),
        form(&Outcome::Stopped(samples::stop())),
        form(&Outcome::Truncated),
        form(&Outcome::Failed { error: samples::error() }),
        form(&Outcome::Aborted { reason: None, cancel_requested: false }),
        form(&Outcome::Aborted { reason: Some("user left".into()), cancel_requested: true }),
        form(&Outcome::Suspended { interrupts: vec![Json::from_text(r#"{"id": "call-1"}"#).unwrap()] }),
        form(&Outcome::Dropped),
        form(&Verdict::Continue),
        form(&Verdict::Amend(Chunk::delta(Lane::TEXT, "[redacted]"))),
        form(&Verdict::Emit(vec![event.clone()])),
        form(&Verdict::stop("pattern_matched", "a refusal")),
        form(&Verdict::Buffer),
        form(&Verdict::from(Release::unchanged().keep(3))),
        form(&Verdict::from(Release::pieces([Piece::Text("a ".into()), call]))),
        form(&Verdict::from(Release::pieces([Piece::Reasoning("hm".into())]))),
        form(&Verdict::from(Release::pieces([]))),
        form(&event),
        form(&failure),
    ];
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn what_is_left_out_has_its_default() {
    for (short, long) in [
        (
            r#"{"kind":"content_delta","text":"a"}"#,
            r#"{"kind":"content_delta","at":0,"origin":{"frame":0,"part":0},"amended_by":[],"lane":{"choice":0,"part":0,"call":0,"channel":"text"},"text":"a"}"#,
        ),
        (r#"{"kind":"content_delta","text":"a"}"#, r#"{"text":"a","lane":{},"kind":"content_delta"}"#),
        (r#"{"kind":"message_end"}"#, r#"{"kind":"message_end","choice":0}"#),
        (r#"{"kind":"part_end"}"#, r#"{"kind":"part_end","part":0,"choice":0}"#),
        (r#"{"kind":"run_start"}"#, r#"{"kind":"run_start","run":null,"thread":null,"parent":null}"#),
        (
            r#"{"kind":"usage","output":1}"#,
            r#"{"kind":"usage","uncached_input":null,"output":1,"estimated":false,"stated":{}}"#,
        ),
        (
            r#"{"kind":"tool_result","id":"a","content":""}"#,
            r#"{"kind":"tool_result","lane":{"channel":"tool_result"},"id":"a","content":"","is_error":false}"#,
        ),
    ] {
        let chunk: Chunk = read(short).unwrap();
        assert_eq!(read::<Chunk>(long), Ok(chunk.clone()), "{long}");
        assert_eq!(write(&chunk), short);
    }
}

#[test]
fn what_is_unknown_stays_as_it_was_written() {
    // spec 1.1
    for text in [
        r#"{"kind":"hologram","beams":1.10,"big":12345678901234567890123,"text":{"b": 1,  "a": [ ]}}"#,
        r#"{"kind":"hologram","at":12,"origin":{"frame":3},"amended_by":[1],"lane":{"choice":0}}"#,
        r#"{"kind":"content_delta","text":"a","z":1e400,"a":-0,"z":"\u0041\ud800"}"#,
        r#"{"kind":"content_delta","lane":{"choice":2,"floor":7.0},"text":"a"}"#,
        r#"{"kind":"content_delta","lane":{"floor":7.0},"text":"a","x":null}"#,
        r#"{"kind":"usage","output":1,"stated":{"pages":2.50},"images":1}"#,
        r#"{"kind":"end","outcome":{"kind":"failed","error":{"code":"x","hint":{"a": 1.0}},"retry":3.0}}"#,
        r#"{"kind":"end","outcome":{"kind":"truncated","bytes":1.0}}"#,
        r#"{"kind":"heartbeat","at":1,"lane":{"choice":1},"text":"not a member of a heartbeat"}"#,
    ] {
        assert_eq!(write(&read::<Chunk>(text).unwrap()), text);
    }
}

#[test]
fn a_chunk_is_always_one_line() {
    // What a provider wrote over several lines has to fit into JSON lines.
    let pretty = "{\n  \"kind\": \"custom\",\r\n  \"name\": \"a\\nb\",\n  \"value\": {\n    \"x\": [1.10,\n 2]\n  },\n  \"later\": [\n]\n}";
    let chunk: Chunk = read(pretty).unwrap();
    assert_eq!(write(&chunk), r#"{"kind":"custom","name":"a\nb","value":{     "x": [1.10,  2]   },"later":[ ]}"#);
    assert_eq!(read(&write(&chunk)), Ok(chunk));
}

#[test]
fn the_order_of_members_does_not_matter() {
    for text in [
        r#"{"text":"a","x":1.0,"lane":{"part":1,"y":2.0},"at":5,"kind":"content_delta"}"#,
        r#"{"x":1.0,"text":"a","kind":"content_delta","at":5,"lane":{"y":2.0,"part":1}}"#,
    ] {
        let chunk: Chunk = read(text).unwrap();
        let canonical = r#"{"kind":"content_delta","at":5,"lane":{"part":1,"y":2.0},"text":"a","#;
        assert!(write(&chunk).starts_with(canonical), "{}", write(&chunk));
        assert!(write(&chunk).ends_with(r#""x":1.0}"#), "{}", write(&chunk));
    }
}

#[test]
fn an_unknown_member_cannot_take_the_place_of_a_known_one() {
    // A decoder that keeps a provider's field of this name must not change what the chunk says.
    let extra = |name: &str| {
        let mut chunk = Chunk::error(ErrorInfo::new("x"));
        chunk.meta_mut().extra = Some(Box::new(Extra(vec![(name.into(), Json::string("smuggled"))])));
        write(&chunk)
    };
    for name in ["kind", "code", "message", "component", "at", "origin", "amended_by"] {
        assert_eq!(extra(name), r#"{"kind":"error","code":"x"}"#, "{name}");
    }
    assert_eq!(extra("lane"), r#"{"kind":"error","code":"x","lane":"smuggled"}"#);
}

#[test]
fn unknown_members_of_other_types_are_ignored() {
    assert_eq!(read(r#"{"channel":"text","x":{"y":[1]}}"#), Ok(Lane::TEXT));
    assert_eq!(read(r#"{"x":1e999,"stated":{"y":1}}"#), Ok(Usage::default()));
    assert_eq!(read::<Outcome>(r#"{"kind":"truncated","x":1}"#), Ok(Outcome::Truncated));
    assert_eq!(read::<Outcome>(r#"{"x":[1],"kind":"dropped"}"#), Ok(Outcome::Dropped));
    assert_eq!(read::<Verdict>(r#"{"x":1,"kind":"buffer","y":2}"#), Ok(Verdict::Buffer));
    assert_eq!(read::<ErrorInfo>(r#"{"code":"a","http":500}"#), Ok(ErrorInfo::new("a")));
    let stop = write(&samples::stop());
    assert_eq!(read::<Stop>(&stop.replace("{\"", "{\"x\":1,\"")), Ok(samples::stop()));
}

#[test]
fn a_wrong_form_is_an_error_that_names_the_field() {
    fn check<T: DeserializeOwned + std::fmt::Debug>(text: &str, expected: &[&str]) {
        let error = read::<T>(text).unwrap_err();
        for expected in expected {
            assert!(error.contains(expected), "{text}\n{error}\nlacks {expected}");
        }
    }
    for (text, expected) in [
        ("{}", &["missing field `kind`"][..]),
        ("7", &["a chunk: an object with a `kind`", "integer `7`"]),
        (r#"{"kind":7}"#, &["field `kind`", "a string"]),
        (r#"{"kind":"custom","kind":"custom","name":"a","value":1}"#, &["duplicate field `kind`"]),
        (r#"{"kind":"content_delta"}"#, &["missing field `text`"]),
        (r#"{"kind":"content_delta","text":5}"#, &["field `text`", "integer `5`", "a string", "line 1 column 32"]),
        (r#"{"text":5,"kind":"content_delta"}"#, &["field `text`", "integer `5`", "a string"]),
        (r#"{"kind":"content_delta","text":null}"#, &["field `text`", "null"]),
        (r#"{"kind":"content_delta","text":"a","text":"b"}"#, &["duplicate field `text`"]),
        (r#"{"text":"a","kind":"content_delta","text":"b"}"#, &["duplicate field `text`"]),
        (r#"{"kind":"content_delta","text":"\ud800"}"#, &["field `text`", "hex escape"]),
        (r#"{"kind":"content_delta","text":"a","at":-1}"#, &["field `at`", "-1"]),
        (r#"{"kind":"content_delta","text":"a","at":1.5}"#, &["field `at`", "1.5"]),
        (r#"{"kind":"content_delta","text":"a","at":1,"at":1}"#, &["duplicate field `at`"]),
        (r#"{"kind":"content_delta","text":"a","origin":3}"#, &["field `origin`", "an origin"]),
        (r#"{"kind":"content_delta","text":"a","origin":{}}"#, &["field `origin`", "missing field `frame`"]),
        (r#"{"kind":"content_delta","text":"a","amended_by":["x"]}"#, &["field `amended_by`", "\"x\""]),
        (r#"{"kind":"content_delta","text":"a","lane":[]}"#, &["field `lane`", "a lane: an object"]),
        (r#"{"kind":"content_delta","text":"a","lane":{"choice":70000}}"#, &["field `lane`: field `choice`", "70000"]),
        (r#"{"lane":{"choice":"0"},"kind":"content_delta","text":"a"}"#, &["field `lane`: field `choice`", "\"0\""]),
        (r#"{"kind":"content_delta","text":"a","lane":{"part":1,"part":1}}"#, &["duplicate field `part`"]),
        (
            r#"{"kind":"content_delta","text":"a","lane":{"channel":"refusal"}}"#,
            &["field `lane`", "content_delta has no channel `refusal`"],
        ),
        (r#"{"kind":"snapshot","text":"a"}"#, &["field `lane`", "missing field `channel`"]),
        (r#"{"kind":"snapshot","lane":{"channel":"smell"},"text":"a"}"#, &["field `channel`", "`smell`", "`text`"]),
        (r#"{"kind":"tool_call","id":"1","name":"a"}"#, &["missing field `arguments`"]),
        (r#"{"kind":"tool_call","id":"1","name":"a","arguments":{}}"#, &["field `arguments`", "a string"]),
        (r#"{"kind":"media","form":"image"}"#, &["`base64`", "`url`", "`file`"]),
        (r#"{"kind":"media","form":"image","url":"a","file":"b"}"#, &["exactly one"]),
        (r#"{"kind":"usage","output":1.5}"#, &["field `output`", "1.5"]),
        (r#"{"kind":"usage","stated":{"total":"9"}}"#, &["field `stated`: field `total`"]),
        (r#"{"kind":"usage","output":18446744073709551616}"#, &["field `output`"]),
        (r#"{"kind":"finish"}"#, &["missing field `reason`"]),
        (r#"{"kind":"end"}"#, &["missing field `outcome`"]),
        (r#"{"kind":"end","outcome":{"kind":"done"}}"#, &["field `outcome`", "`done`", "`finished`"]),
        (r#"{"kind":"end","outcome":{"reason":"stop"}}"#, &["field `outcome`", "missing field `kind`"]),
        (r#"{"kind":"error","code":"x","component":"Not An Id"}"#, &["field `component`", "1 to 64"]),
        (r#"{"kind":"custom","name":"a"}"#, &["missing field `value`"]),
        (r#"{"kind":"custom","name":"a","value":}"#, &["field `value`", "expected value"]),
        (r#"{"kind":"content_delta","text":"a"#, &["field `text`", "EOF"]),
        (r#"{"kind":"content_delta","text":"a""#, &["EOF"]),
        (r#"{"kind":"content_delta","text":"a"} x"#, &["trailing characters"]),
    ] {
        check::<Chunk>(text, expected);
    }
    check::<Lane>("{}", &["missing field `channel`"]);
    check::<Verdict>(r#"{"kind":"panic"}"#, &["`panic`", "`continue`"]);
    check::<Verdict>(r#"{"kind":"amend","chunk":{}}"#, &["field `chunk`", "missing field `kind`"]);
    check::<Verdict>(r#"{"kind":"release","keep":-1}"#, &["field `keep`"]);
    check::<Piece>(r#"{"kind":"opaque"}"#, &["`opaque`", "`text`"]);
    check::<SideEvent>(r#"{"channel":"m","name":"n"}"#, &["missing field `payload`"]);
    check::<FailureReport>(r#"{"component":"a","hook":"on_dusk","kind":"panic"}"#, &["field `hook`", "on_dusk"]);
    check::<FailureReport>(r#"{"component":"a","hook":"on_chunk","kind":"sulk"}"#, &["field `kind`", "sulk"]);
    check::<Stop>("{}", &["missing field `observer`"]);
}

#[test]
fn a_chunk_that_is_cut_off_is_an_error() {
    for chunk in samples::one_of_each() {
        let text = write(&chunk);
        for end in 0..text.len() {
            if let Some(cut) = text.get(..end) {
                assert!(read::<Chunk>(cut).is_err(), "{cut}");
            }
        }
    }
}

proptest! {
    #[test]
    fn any_chunk_survives_a_round_trip_byte_for_byte(chunk in any_chunk()) {
        // spec 1.1
        let text = write(&chunk);
        let back: Chunk = read(&text).unwrap();
        prop_assert_eq!(&back, &chunk);
        prop_assert_eq!(write(&back), text);
    }

    #[test]
    fn members_of_a_later_version_survive_byte_for_byte(chunk in any_chunk(), later in any_extra()) {
        // spec 1.1
        let mut text = write(&chunk);
        text.pop();
        for (name, value) in &later.0 {
            text.push_str(&format!(",{}:{}", write(name), value.as_str()));
        }
        text.push('}');
        let back: Chunk = read(&text).unwrap();
        prop_assert_eq!(back.body(), chunk.body());
        prop_assert_eq!(write(&back), text);
    }

    #[test]
    fn a_kind_of_a_later_version_survives_byte_for_byte(
        kind in "[a-z_]{1,30}".prop_filter("known", |kind| ChunkKind::from_name(kind).is_none()),
        members in any_extra(),
        value in any_json(),
    ) {
        // spec 1.1
        let mut text = format!("{{\"kind\":\"{kind}\"");
        for (name, value) in &members.0 {
            text.push_str(&format!(",{}:{}", write(name), value.as_str()));
        }
        text.push_str(&format!(",\"text\":{}}}", value.as_str()));
        let chunk: Chunk = read(&text).unwrap();
        prop_assert_eq!(chunk.kind(), ChunkKind::Unknown);
        prop_assert_eq!(write(&chunk), text);
    }

    #[test]
    fn members_may_stand_in_any_order(chunk in any_chunk(), turn in 0_usize..20) {
        let text = write(&chunk);
        let mut members = read::<Extra>(&text).unwrap().0;
        let turn = turn % members.len();
        members.rotate_left(turn);
        let back: Chunk = read(&write(&Extra(members))).unwrap();
        prop_assert_eq!(back.body(), chunk.body());
        prop_assert_eq!(back.offset(), chunk.offset());
        prop_assert_eq!(back.origin(), chunk.origin());
        prop_assert_eq!(back.provenance(), chunk.provenance());
    }

    #[test]
    fn nothing_panics_on_broken_text(chunk in any_chunk(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut bytes = write(&chunk).into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(chunk) = serde_json::from_slice::<Chunk>(&bytes) {
            prop_assert_eq!(read::<Chunk>(&write(&chunk)), Ok(chunk));
        }
        let _ = serde_json::from_slice::<Chunk>(&bytes[at..]);
    }

    #[test]
    fn a_reader_gives_what_a_slice_gives(chunk in any_chunk()) {
        let text = write(&chunk);
        let back: Chunk = serde_json::from_reader(text.as_bytes()).unwrap();
        prop_assert_eq!(&back, &chunk);
    }

    #[test]
    fn lanes_outcomes_and_usage_survive_a_round_trip(lane in any_lane(), outcome in any_outcome(), usage in any_usage()) {
        prop_assert_eq!(read(&write(&lane)), Ok(lane));
        prop_assert_eq!(read(&write(&outcome)), Ok(outcome));
        prop_assert_eq!(read(&write(&usage)), Ok(usage));
    }
}

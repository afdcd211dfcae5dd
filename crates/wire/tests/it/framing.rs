//! Framing: spec 2.2, 2.3.

use proptest::prelude::*;
use streamkeeper_wire::{Framing, WireError, frame::Framer};

use crate::frames::{Owned, body, cut, frames, message, message_with, whole};

/// A frame in short: its raw bytes, and after `→` its name and payload, with `*` if it stood outside and `…` if it has no end.
fn short(frame: &Owned) -> String {
    let raw = String::from_utf8_lossy(&frame.raw).into_owned();
    let name = frame.name.as_deref().map(|name| format!("{name}=")).unwrap_or_default();
    let data = frame.data.as_deref().map_or_else(|| format!("{name}-"), |data| format!("{name}[{data}]"));
    let outside = if frame.outside { "*" } else { "" };
    let unterminated = if frame.unterminated { "…" } else { "" };
    format!("{raw:?} → {data}{outside}{unterminated}")
}

#[track_caller]
fn check(framing: Framing, body: &str, expected: &[&str]) {
    for size in [usize::MAX, 1, 2, 3, 5] {
        let (frames, error) = frames(Framer::new(framing), body.as_bytes().chunks(size.min(body.len())));
        assert_eq!(error, None);
        assert_eq!(frames.iter().map(short).collect::<Vec<_>>(), expected, "{body:?}, {size} bytes at a time");
    }
}

// spec 2.2
#[test]
fn an_event_ends_at_a_blank_line_of_any_kind() {
    for (body, expected) in [
        ("data: a\n\ndata: b\n\n", [r#""data: a\n\n" → [a]"#, r#""data: b\n\n" → [b]"#]),
        ("data: a\r\rdata: b\r\r", [r#""data: a\r\r" → [a]"#, r#""data: b\r\r" → [b]"#]),
        ("data: a\r\n\r\ndata: b\r\n\r\n", [r#""data: a\r\n\r\n" → [a]"#, r#""data: b\r\n\r\n" → [b]"#]),
        ("data: a\n\r\ndata: b\r\n\n", [r#""data: a\n\r\n" → [a]"#, r#""data: b\r\n\n" → [b]"#]),
        ("data: a\n\rdata: b\r\n\r", [r#""data: a\n\r" → [a]"#, r#""data: b\r\n\r" → [b]"#]),
    ] {
        check(Framing::Sse, body, &expected);
    }
}

// spec 2.2
#[test]
fn fields_are_read_by_the_standard() {
    for (body, expected) in [
        ("data:a\n\n", r#""data:a\n\n" → [a]"#),
        ("data:  a \n\n", r#""data:  a \n\n" → [ a ]"#),
        ("data\n\n", r#""data\n\n" → []"#),
        ("data:\n\n", r#""data:\n\n" → []"#),
        ("data\ndata\n\n", r#""data\ndata\n\n" → [\n]"#),
        ("data: a\n: no\nx: y\ndata: b\n\n", r#""data: a\n: no\nx: y\ndata: b\n\n" → [a\nb]"#),
        ("data: a\rdata: b\r\ndata: c\n\n", r#""data: a\rdata: b\r\ndata: c\n\n" → [a\nb\nc]"#),
        ("event: x\ndata: a\n\n", r#""event: x\ndata: a\n\n" → x=[a]"#),
        ("event: x\nevent: y\ndata: a\n\n", r#""event: x\nevent: y\ndata: a\n\n" → y=[a]"#),
        ("event: x\nevent\ndata: a\n\n", r#""event: x\nevent\ndata: a\n\n" → [a]"#),
        ("event: x\nid: 1\n\n", r#""event: x\nid: 1\n\n" → x=-"#),
        (" data: a\n\n", r#"" data: a\n\n" → -"#),
        ("Data: a\n\n", r#""Data: a\n\n" → -"#),
        ("data : a\n\n", r#""data : a\n\n" → -"#),
        (": hi\n\n", r#"": hi\n\n" → -"#),
        (":\n\n", r#"":\n\n" → -"#),
        ("\n", r#""\n" → -"#),
        ("retry: 10\n\n", r#""retry: 10\n\n" → -"#),
    ] {
        check(
            Framing::Sse,
            body,
            &[&expected.replace(r"[\n]", "[\n]").replace(r"a\nb\nc]", "a\nb\nc]").replace(r"[a\nb]", "[a\nb]")],
        );
    }
}

// spec 2.2
#[test]
fn a_byte_order_mark_is_skipped_once() {
    let bom = "\u{FEFF}";
    check(Framing::Sse, &format!("{bom}data: a\n\n"), &[&format!("{:?} → [a]", format!("{bom}data: a\n\n"))]);
    check(Framing::Sse, &format!("{bom}{bom}data: a\n\n"), &[&format!("{:?} → -", format!("{bom}{bom}data: a\n\n"))]);
    check(Framing::JsonLines, &format!("{bom}1\n"), &[&format!("{:?} → [1]", format!("{bom}1\n"))]);
    check(Framing::JsonArray, &format!("{bom}[1]"), &[&format!("{:?} → [1]", format!("{bom}[1")), r#""]" → -"#]);
    check(Framing::Sse, bom, &[&format!("{bom:?} → -")]);
}

// spec 2.2
#[test]
fn the_last_event_is_given_without_its_blank_line() {
    for (rest, expected) in [
        ("data: [1]", r#""data: [1]" → [[1]]…"#),
        ("data: [1]\n", r#""data: [1]\n" → [[1]]…"#),
        ("data: [1]\r", r#""data: [1]\r" → [[1]]…"#),
        ("data: [1", r#""data: [1" → [[1]…"#),
        ("event: x", r#""event: x" → x=-…"#),
        ("event: x\ndat", r#""event: x\ndat" → x=-…"#),
        ("da", r#""da" → -…"#),
        (": comment", r#"": comment" → -"#),
        ("nothing known", r#""nothing known" → -"#),
    ] {
        check(Framing::Sse, &format!("data: a\n\n{rest}"), &[r#""data: a\n\n" → [a]"#, expected]);
    }
}

// spec 2.2
#[test]
fn what_stands_outside_of_events_is_given() {
    for (body, expected) in [
        ("{\n  \"error\": {\"m\": \"}\\\"\"}\n}\n", vec![r#"{\n  "error": {"m": "}\""}\n}*"#, "-"]),
        ("{\"error\": 1}\n\ndata: a\n\n", vec![r#"{"error": 1}*"#, "-", "-", "a"]),
        ("[{\"error\": 1}]", vec![r#"[{"error": 1}]*"#]),
        (": hi\n{\"a\": 1}", vec![r#"{"a": 1}*"#]),
        ("{\"a\": ", vec![r#"{"a": *…"#]),
        ("error: boom\n\n", vec!["error=boom*"]),
        ("event: e\nerror: boom\n\n", vec!["e=boom*"]),
        ("error: boom", vec!["error=boom*…"]),
        // A data line makes it an event.
        ("error: boom\ndata: a\n\n", vec!["a"]),
        ("data: a\n{\"b\": 1}\n\n", vec!["a"]),
        // No JSON, so a line like any other.
        ("[DONE]\n\ndata: a\n\n", vec!["-", "a"]),
        ("{not json}\n\ndata: a\n\n", vec!["-", "a"]),
        ("{\n\n\nx\n\n", vec!["-", "-", "-"]),
        ("{", vec!["-"]),
        // An event begins before the body ended.
        ("{\"error\": \"cut\ndata: a\n\n", vec!["{\"error\": \"cut\n*", "a"]),
        ("{\"error\": {\r\nevent: x\r\ndata: a\r\n\r\n", vec!["{\"error\": {\r\n*", "x=a"]),
    ] {
        let plain = |frame: &Owned| {
            let name = frame.name.as_deref().map(|name| format!("{name}=")).unwrap_or_default();
            let data = frame.data.as_deref().unwrap_or("-");
            let outside = if frame.outside { "*" } else { "" };
            let unterminated = if frame.unterminated { "…" } else { "" };
            format!("{name}{data}{outside}{unterminated}")
        };
        let expected: Vec<String> = expected.iter().map(|text| text.replace(r"\n", "\n")).collect();
        for size in [usize::MAX, 1, 2, 3, 5] {
            let (frames, _) = frames(Framer::new(Framing::Sse), body.as_bytes().chunks(size.min(body.len())));
            assert_eq!(frames.iter().map(plain).collect::<Vec<_>>(), expected, "{body:?}, {size} bytes at a time");
        }
    }
}

// spec 2.2
#[test]
fn a_keep_alive_passes_as_soon_as_it_is_whole() {
    let mut framer = Framer::new(Framing::Sse);
    for keep_alive in ["\n", ": ping\n\n", "event: ping\n\n"] {
        framer.push(keep_alive.as_bytes());
        let frame = framer.next_frame().unwrap().unwrap();
        assert_eq!((frame.raw, frame.data), (keep_alive.as_bytes(), None));
        assert_eq!(framer.next_frame(), Ok(None));
    }
}

// spec 2.2
#[test]
fn the_last_id_stays_until_another_comes() {
    let body = b"data: a\n\nid: 1\ndata: b\n\ndata: c\n\nid: \0\ndata: d\n\nid: 2\n\ndata: e\n\nid\ndata: f\n\n";
    let ids: Vec<String> = whole(Framing::Sse, body).into_iter().map(|frame| frame.id).collect();
    assert_eq!(ids, ["", "1", "1", "1", "2", "2", ""]);
}

// spec 2.2
#[test]
fn bytes_that_are_no_utf8_become_replacement_characters_in_the_payload_alone() {
    for (data, expected, invalid) in [
        (&b"a\xFFb"[..], "a\u{FFFD}b", 1),
        (b"\xE4\xBB", "\u{FFFD}", 1),
        (b"\xE4\xBB\ndata: \xB7", "\u{FFFD}\n\u{FFFD}", 2),
        (b"\xC0\x80\xF5", "\u{FFFD}\u{FFFD}\u{FFFD}", 3),
        ("价".as_bytes(), "价", 0),
    ] {
        let body = [b"event: \xE2\x82\xACx\n: \xFF\ndata: ", data, b"\n\n"].concat();
        for size in [1, 2, 3, body.len()] {
            let mut framer = Framer::new(Framing::Sse);
            for read in body.chunks(size) {
                framer.push(read);
                if let Some(frame) = framer.next_frame().unwrap() {
                    assert_eq!((frame.raw, frame.data, frame.name), (&body[..], Some(expected), Some("€x")));
                    assert_eq!(frame.data_at.is_some(), invalid == 0);
                }
            }
            assert_eq!(framer.invalid_utf8(), invalid, "{expected:?}");
        }
    }
}

// spec 2.1
#[test]
fn a_json_line_is_a_line_that_is_not_blank() {
    check(
        Framing::JsonLines,
        "{\"a\": 1}\n\r\n  {\"b\": 2} \r\n \n3",
        &[
            r#""{\"a\": 1}\n" → [{"a": 1}]"#,
            r#""\r\n" → -"#,
            r#""  {\"b\": 2} \r\n" → [{"b": 2}]"#,
            r#"" \n" → -"#,
            r#""3" → [3]…"#,
        ],
    );
}

// spec 2.1
#[test]
fn an_array_is_cut_into_its_elements() {
    check(
        Framing::JsonArray,
        "\n[ {\"a\": [1, \"]}\\\"\"]}\n,[2],\"s\",3 , 4]\n",
        &[
            r#""\n[ {\"a\": [1, \"]}\\\"\"]}" → [{"a": [1, "]}\""]}]"#,
            r#""\n,[2]" → [[2]]"#,
            r#"",\"s\"" → ["s"]"#,
            r#"",3" → [3]"#,
            r#"" , 4" → [4]"#,
            r#""]" → -"#,
            r#""\n" → -"#,
        ],
    );
    check(Framing::JsonArray, "[{\"a\": ", &[r#""[{\"a\": " → [{"a": ]…"#]);
    check(Framing::JsonArray, "[]{\"error\": 1}", &[r#""[]" → -"#, r#""{\"error\": 1}" → [{"error": 1}]*"#]);
    check(Framing::JsonArray, "[1][2]", &[r#""[1" → [1]"#, r#""]" → -"#, r#""[2" → [2]"#, r#""]" → -"#]);
    check(Framing::JsonArray, "]}", &[r#""]" → []]"#, r#""}" → [}]"#]);
}

// spec 2.1
#[test]
fn a_binary_message_is_named_by_its_type() {
    for (headers, payload, name, data) in [
        (vec![(":event-type", "chunk"), (":message-type", "event")], "{}", Some("chunk"), "{}"),
        (
            vec![(":message-type", "exception"), (":exception-type", "throttlingException")],
            "{\"message\":\"slow\"}",
            Some("throttlingException"),
            "{\"message\":\"slow\"}",
        ),
        (
            vec![(":error-code", "InternalError"), (":error-message", "say \"no\"")],
            "",
            Some("InternalError"),
            r#"{"message":"say \"no\""}"#,
        ),
        (vec![(":error-code", "InternalError"), (":error-message", "no")], "{}", Some("InternalError"), "{}"),
        (vec![], "", None, ""),
    ] {
        let body = message(&headers, payload.as_bytes());
        for size in [1, 3, body.len()] {
            let (frames, error) = frames(Framer::new(Framing::AwsEventStream), body.chunks(size));
            assert_eq!(error, None);
            assert_eq!(frames.len(), 1);
            assert_eq!((frames[0].name.as_deref(), frames[0].data.as_deref()), (name, Some(data)));
            assert_eq!(frames[0].raw, body);
        }
    }
}

// spec 2.1
#[test]
fn headers_of_every_type_are_skipped() {
    let sizes: [(u8, &[u8]); 10] = [
        (0, b""),
        (1, b""),
        (2, b"1"),
        (3, b"22"),
        (4, b"4444"),
        (5, b"88888888"),
        (6, b"\x00\x03abc"),
        (7, b"\x00\x02no"),
        (8, b"88888888"),
        (9, b"1616161616161616"),
    ];
    let mut headers = Vec::new();
    for (kind, value) in sizes {
        headers.extend_from_slice(b"\x01x");
        headers.push(kind);
        headers.extend_from_slice(value);
    }
    headers.extend_from_slice(b"\x0b:event-type\x07\x00\x04last");
    let frames = whole(Framing::AwsEventStream, &message_with(&headers, b"1"));
    assert_eq!((frames[0].name.as_deref(), frames[0].data.as_deref()), (Some("last"), Some("1")));
}

// spec 2.1, 2.10
#[test]
fn a_broken_message_is_an_error_that_says_which() {
    let good = message(&[(":event-type", "chunk")], b"{\"a\":1}");
    for at in 0..good.len() {
        let mut bad = [&good[..], &good[..]].concat();
        bad[good.len() + at] ^= 0x20;
        let (frames, error) = frames(Framer::new(Framing::AwsEventStream), [&bad[..]]);
        assert_eq!(frames.len(), 1);
        assert!(matches!(error, Some(WireError::BrokenMessage { message: 1, .. })), "byte {at}: {error:?}");
    }
    let prelude = |total: u32, headers: u32| {
        let lengths = [total.to_be_bytes(), headers.to_be_bytes()].concat();
        [&lengths[..], &crc32fast::hash(&lengths).to_be_bytes()].concat()
    };
    for (body, what) in [
        (prelude(15, 0), "its lengths do not fit"),
        (prelude(20, 5), "its lengths do not fit"),
        (message_with(b"\x05ab", b""), "its headers are not readable"),
        (message_with(b"\x01a\x0a", b""), "its headers are not readable"),
        (message_with(b"\x01a\x07\x00\x09b", b""), "its headers are not readable"),
        (message_with(b"\x01a\x07\x00", b""), "its headers are not readable"),
    ] {
        let (_, error) = frames(Framer::new(Framing::AwsEventStream), [&body[..]]);
        assert_eq!(error, Some(WireError::BrokenMessage { message: 0, what }));
    }
    let (frames, error) = frames(Framer::new(Framing::AwsEventStream), [&good[..], &good[..20]]);
    assert_eq!((frames.len(), error), (2, None));
    assert_eq!((frames[1].unterminated, frames[1].data.as_deref(), &frames[1].raw[..]), (true, None, &good[..20]));
}

// spec 2.3
#[test]
fn an_event_past_the_limit_is_an_error_and_what_came_before_is_given() {
    let long = "x".repeat(101);
    for (framing, first, second) in [
        (Framing::Sse, "data: 1\n\n", format!("data: {long}\n\n")),
        (Framing::Sse, "data: 1\n\n", format!(": {long}\n\n")),
        (Framing::Sse, "data: 1\n\n", long.clone()),
        (Framing::Sse, "data: 1\n\n", format!("{{\"error\": \"{long}\"}}")),
        (Framing::Sse, "data: 1\n\n", ": a\n".repeat(30)),
        (Framing::Sse, "data: 1\n\n", format!("{{{}", " ".repeat(100))),
        (Framing::JsonLines, "1\n", format!("\"{long}\"\n")),
        (Framing::JsonLines, "1\n", " ".repeat(101)),
        (Framing::JsonArray, "[1", format!(",\"{long}\"]")),
        (Framing::JsonArray, "[1", ", ".repeat(51)),
    ] {
        let body = [first, &second].concat();
        for size in [1, 7, body.len()] {
            let (frames, error) = frames(Framer::new(framing).limit(100), body.as_bytes().chunks(size));
            assert_eq!(frames.len(), 1, "{body:?}");
            assert_eq!(error, Some(WireError::EventTooLarge { limit: 100 }), "{body:?}");
        }
    }
    let good = message(&[], b"1");
    let long = message(&[], long.as_bytes());
    let (frames, error) = frames(Framer::new(Framing::AwsEventStream).limit(100), [&good[..], &long[..12]]);
    assert_eq!((frames.len(), error), (1, Some(WireError::EventTooLarge { limit: 100 })));
}

// spec 2.3
#[test]
fn an_event_of_just_the_limit_is_given() {
    for (framing, body) in [
        (Framing::Sse, format!("data: {}\r\n\r\n", "x".repeat(90))),
        (Framing::JsonLines, format!("\"{}\"\n", "x".repeat(97))),
        (Framing::JsonArray, format!("[\"{}\"]", "x".repeat(97))),
    ] {
        for size in [1, body.len()] {
            assert_eq!(frames(Framer::new(framing).limit(100), body.as_bytes().chunks(size)).1, None, "{body:?}");
            let error = frames(Framer::new(framing).limit(99), body.as_bytes().chunks(size)).1;
            assert_eq!(error, Some(WireError::EventTooLarge { limit: 99 }), "{body:?}");
        }
    }
}

#[test]
fn an_error_stays_and_bytes_behind_the_end_are_ignored() {
    let mut framer = Framer::new(Framing::Sse).limit(4);
    framer.push(b"data: a\n\n");
    let error = Err(WireError::EventTooLarge { limit: 4 });
    assert_eq!(framer.next_frame(), error);
    framer.push(b"\n");
    assert_eq!(framer.next_frame(), error);

    let mut framer = Framer::new(Framing::Sse);
    framer.finish();
    framer.push(b"data: a\n\n");
    assert_eq!(framer.next_frame(), Ok(None));
}

const SSE: &[&[u8]] = &[
    b"\n",
    b"\n",
    b"\r",
    b"\r\n",
    b":",
    b" ",
    b"data",
    b"data:",
    b"data: ",
    b"event: ",
    b"id: ",
    b"retry: 1",
    b"error: ",
    b"error",
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"",
    b"\\",
    b"x",
    b"\xEF\xBB\xBF",
    b"\xEF",
    b"\xE4\xBB\xB7",
    b"\xE4\xBB",
    b"\xF0\x9F\x99\x82",
    b"\xFF",
    b"\0",
    b"{\"a\":1}",
    b"[DONE]",
];
const JSON: &[&[u8]] = &[
    b"\n",
    b"\r\n",
    b" ",
    b",",
    b"[",
    b"]",
    b"{",
    b"}",
    b"\"",
    b"\\",
    b"1",
    b"null",
    b"\xEF\xBB\xBF",
    b"\xE4\xBB\xB7",
    b"\xFF",
    b"{\"a\":[1]}",
];

fn any_body() -> impl Strategy<Value = (Framing, Vec<u8>)> {
    let messages = prop::collection::vec(
        (".{0,20}", "[a-z{}\"]{0,20}", prop::option::weighted(0.1, any::<prop::sample::Index>())),
        0..6,
    );
    let messages = messages.prop_map(|messages| {
        let mut body = Vec::new();
        for (name, payload, broken) in messages {
            let mut message = message(&[(":event-type", name.as_str()), ("x", "y")], payload.as_bytes());
            if let Some(at) = broken {
                let at = at.index(message.len());
                message[at] ^= 1;
            }
            body.extend_from_slice(&message);
        }
        body
    });
    prop_oneof![
        4 => body(SSE, 0..40).prop_map(|body| (Framing::Sse, body)),
        2 => body(JSON, 0..40).prop_map(|body| (Framing::JsonArray, body)),
        1 => body(JSON, 0..40).prop_map(|body| (Framing::JsonLines, body)),
        1 => messages.prop_map(|body| (Framing::AwsEventStream, body)),
        1 => (prop::sample::select(&[Framing::Sse, Framing::JsonArray, Framing::JsonLines, Framing::AwsEventStream][..]), prop::collection::vec(any::<u8>(), 0..60)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    // spec 2.2
    #[test]
    fn every_split_gives_the_same_frames_and_they_are_all_the_bytes(
        (framing, body) in any_body(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        limit in prop_oneof![3 => Just(1000_usize), 1 => 1..40_usize],
    ) {
        let (together, error) = frames(Framer::new(framing).limit(limit), [&body[..]]);
        let (split, split_error) = frames(Framer::new(framing).limit(limit), cut(&body, &cuts));
        prop_assert_eq!(&together, &split);
        prop_assert_eq!(&error, &split_error);
        let (bytewise, bytewise_error) = frames(Framer::new(framing).limit(limit), body.chunks(1));
        prop_assert_eq!(&together, &bytewise);
        prop_assert_eq!(&error, &bytewise_error);

        let joined: Vec<u8> = together.iter().flat_map(|frame| frame.raw.iter().copied()).collect();
        if error.is_none() {
            prop_assert_eq!(&joined, &body);
        } else {
            prop_assert!(body.starts_with(&joined));
        }
        for frame in &together {
            prop_assert!(!frame.raw.is_empty());
            if let Some(at) = frame.data_at {
                let data = frame.data.as_deref().unwrap();
                prop_assert_eq!(&frame.raw[at..at + data.len()], data.as_bytes());
            }
        }
    }
}

use super::super::testing::{lines, named, read};
use crate::Format;

const CHAT: Format = Format::OpenAiChat;

/// An event with this choice.
fn choice(fields: &str) -> String {
    format!(r#"{{"id":"c","model":"m","choices":[{{{fields}}}]}}"#)
}

/// An event with this delta of choice 0.
fn delta(fields: &str) -> String {
    choice(&format!(r#""index":0,"delta":{{{fields}}}"#))
}

/// The lines of these events, after the start of the message.
#[track_caller]
fn check(events: &[String], expected: &[&str]) {
    let lines = lines(CHAT, &events.iter().map(String::as_str).collect::<Vec<_>>());
    let (start, rest) = lines.split_first().expect("a message start");
    assert!(start.starts_with("message_start"), "{start}");
    assert_eq!(rest, expected, "{events:#?}");
}

// spec 2.6, 2.7
#[test]
fn text_comes_before_the_finish_and_usage_after_it_is_read() {
    assert_eq!(
        lines(
            CHAT,
            &[
                r#"{"id":"","model":"","choices":[],"prompt_filter_results":[{"content_filter_results":{"hate":{"filtered":false}}}]}"#,
                r#"{"id":"","model":"","choices":[{"index":0,"finish_reason":null,"content_filter_offsets":{"check_offset":2}}]}"#,
                r#"{"id":"c","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""}}],"usage":null}"#,
                r#"{"id":"c","model":"m","choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":"stop"}]}"#,
                r#"{"id":"c","model":"m","choices":[{"index":0,"delta":{"content":""},"finish_reason":"stop"}]}"#,
                r#"{"id":"c","model":"m","choices":[],"usage":{"prompt_tokens":31,"completion_tokens":4,"total_tokens":35}}"#,
                "[DONE]",
            ],
        ),
        [
            "message_start c assistant m",
            "content_delta 0.0/text \"Hi\" @choices/0/delta/content",
            "finish 0 stop (stop)",
            "usage in 31 out 4 | in 31 out 4 total 35",
        ]
    );
}

// spec 2.4
#[test]
fn the_end_mark_finishes_what_stated_no_finish() {
    check(
        &[delta(r#""content":"a""#), "[DONE]".into()],
        &["content_delta 0.0/text \"a\" @choices/0/delta/content", "finish 0 unstated (-)"],
    );
    assert_eq!(lines(CHAT, &["[DONE]"]), ["finish 0 unstated (-)"]);
    let (_, out) = read(CHAT, &[&delta(r#""content":"a""#)]);
    assert!(!out.ended);
    let (_, out) = read(CHAT, &[&delta(r#""content":"a""#), " [DONE] "]);
    assert!(out.ended);
}

// spec 2.4
#[test]
fn an_error_in_the_stream_is_told_once_and_no_finish_follows() {
    for (event, error) in [
        (
            ("error", r#"{"error":{"message":"no","code":"tool_use_failed","type":"x"}}"#),
            "error tool_use_failed no @error/message",
        ),
        (("error", r#"{"message":"no","type":"server_error"}"#), "error server_error no @message"),
        (("error", "no"), "error error no"),
        (
            ("", r#"{"error":{"code":400,"message":"no"},"choices":[{"index":0,"delta":{"content":""}}]}"#),
            "error 400 no @error/message",
        ),
        (("", r#"{"error":"no"}"#), "error error no @error"),
        (("", r#"{"object":"error","message":"no","code":40303}"#), "error 40303 no @message"),
        (
            ("", r#"{"choices":[{"index":0,"delta":{},"finish_reason":"error","error":{"code":502,"message":"no"}}]}"#),
            "error 502 no @choices/0/error/message",
        ),
    ] {
        let text = delta(r#""content":"a""#);
        let (lines, out) = named(CHAT, &[("", &text), event, event, ("", "[DONE]")]);
        let errors: Vec<_> = lines.iter().filter(|line| line.starts_with("error")).collect();
        assert_eq!(errors, [error], "{event:?}");
        assert!(lines.last().is_some_and(|last| last == error), "{lines:?}");
        assert!(out.failed && out.ended && out.unknown == 0);
    }
}

// spec 2.4
#[test]
fn usage_beside_an_error_comes_before_it() {
    check(
        &[
            choice(r#""index":0,"delta":{"content":"a"},"finish_reason":"length""#),
            r#"{"error":{"code":400},"usage":{"prompt_tokens":1},"choices":[]}"#.into(),
        ],
        &[
            "content_delta 0.0/text \"a\" @choices/0/delta/content",
            "finish 0 length (length)",
            "usage in 1 | in 1",
            "error 400 - @error/message",
        ],
    );
}

#[test]
fn the_places_that_repeat_a_text_are_one_delta() {
    for (event, expected) in [
        (
            choice(r#""index":0,"text":"a","delta":{"content":"a"}"#),
            vec!["content_delta 0.0/text \"a\" @choices/0/delta/content|choices/0/text"],
        ),
        (choice(r#""index":0,"text":"a""#), vec!["content_delta 0.0/text \"a\" @choices/0/text"]),
        (
            choice(r#""index":0,"text":"b","delta":{"content":"a"}"#),
            vec!["content_delta 0.0/text \"a\" @choices/0/delta/content", "custom text \"b\""],
        ),
        (
            delta(r#""reasoning_content":"a","content":null"#),
            vec!["reasoning_delta 0.0/reasoning \"a\" @choices/0/delta/reasoning_content"],
        ),
        (
            delta(r#""reasoning_content":"a","reasoning":"a""#),
            vec!["reasoning_delta 0.0/reasoning \"a\" @choices/0/delta/reasoning_content|choices/0/delta/reasoning"],
        ),
        (
            delta(r#""reasoning":"a","reasoning_details":[{"type":"reasoning.text","text":"a","index":0}]"#),
            vec![
                "reasoning_delta 0.0/reasoning \"a\" @choices/0/delta/reasoning|choices/0/delta/reasoning_details/0/text",
            ],
        ),
        (
            delta(r#""reasoning":"a","reasoning_details":[{"type":"reasoning.encrypted","data":"x"},{"summary":"a"}]"#),
            vec![
                "reasoning_delta 0.0/reasoning \"a\" @choices/0/delta/reasoning|choices/0/delta/reasoning_details/1/summary",
                "opaque 0.0/reasoning encrypted x",
            ],
        ),
        (
            delta(r#""reasoning":null,"reasoning_details":[{"text":"a"},{"text":"","signature":"s"},{"text":"b"}]"#),
            vec![
                "reasoning_delta 0.0/reasoning \"a\" @choices/0/delta/reasoning_details/0/text",
                "reasoning_delta 0.0/reasoning \"b\" @choices/0/delta/reasoning_details/2/text",
                "opaque 0.0/reasoning signature s",
            ],
        ),
        (
            delta(r#""reasoning":"ab","reasoning_details":[{"text":"a"},{"text":"b"}]"#),
            vec![
                "reasoning_delta 0.0/reasoning \"ab\" @choices/0/delta/reasoning",
                r#"custom delta.reasoning_details [{"text":"a"},{"text":"b"}]"#,
            ],
        ),
    ] {
        check(&[event], &expected);
    }
}

#[test]
fn content_may_be_a_list_of_parts_and_then_a_string() {
    check(
        &[
            delta(
                r#""content":[{"type":"thinking","thinking":[{"type":"text","text":"4."}],"closed":true},{"type":"text","text":"1"}]"#,
            ),
            delta(
                r#""content":[{"type":"thinking","thinking":"so"},{"type":"reference","reference_ids":["x"]},"bare"]"#,
            ),
            delta(r#""content":"44""#),
        ],
        &[
            "reasoning_delta 0.0/reasoning \"4.\" @choices/0/delta/content/0/thinking/0/text",
            "content_delta 0.0/text \"1\" @choices/0/delta/content/1/text",
            "reasoning_delta 0.0/reasoning \"so\" @choices/0/delta/content/0/thinking",
            r#"custom delta.content {"type":"reference","reference_ids":["x"]}"#,
            r#"custom delta.content "bare""#,
            "content_delta 0.0/text \"44\" @choices/0/delta/content",
        ],
    );
}

// spec 2.7
#[test]
fn a_message_repeated_whole_is_a_snapshot() {
    check(
        &[
            choice(r#""index":0,"delta":{"content":"a"},"message":{"role":"assistant","content":"a"}"#),
            choice(
                r#""index":0,"delta":{"content":""},"message":{"role":"assistant","content":"ab","reasoning_content":"r"},"finish_reason":"stop""#,
            ),
        ],
        &[
            "content_delta 0.0/text \"a\" @choices/0/delta/content",
            "snapshot 0.0/text \"a\" @choices/0/message/content",
            "snapshot 0.0/reasoning \"r\" @choices/0/message/reasoning_content",
            "snapshot 0.0/text \"ab\" @choices/0/message/content",
            "finish 0 stop (stop)",
        ],
    );
}

#[test]
fn a_whole_completion_in_one_event_is_read_too() {
    check(
        &[choice(
            r#""index":0,"message":{"content":null,"refusal":"no","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}],"audio":{"id":"x"}},"finish_reason":"tool_calls""#,
        )],
        &[
            "snapshot 0.0/refusal \"no\" @choices/0/message/refusal",
            "tool_call_start 0.0#1/arguments a f",
            "tool_call_delta 0.0#1/arguments \"{}\" @choices/0/message/tool_calls/0/function/arguments",
            r#"custom message.audio {"id":"x"}"#,
            "tool_call_end 0.0#1/arguments",
            "finish 0 tool_calls (tool_calls)",
        ],
    );
}

/// The calls of these `tool_calls` lists, an event each: id, name, arguments.
fn calls(fragments: &[&str]) -> Vec<(String, String, String)> {
    let events: Vec<String> = fragments.iter().map(|list| delta(&format!(r#""tool_calls":[{list}]"#))).collect();
    let mut events: Vec<&str> = events.iter().map(String::as_str).collect();
    let end = choice(r#""index":0,"delta":{},"finish_reason":"tool_calls""#);
    events.push(&end);
    let mut calls: Vec<(String, String, String)> = Vec::new();
    for line in lines(CHAT, &events) {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        match words[..] {
            ["tool_call_start", lane, id, name] => {
                assert_eq!(lane, format!("0.0#{}/arguments", calls.len() + 1));
                calls.push((id.into(), name.into(), String::new()));
            }
            ["tool_call_delta", lane, ..] => {
                let number: usize = lane.trim_matches(|c: char| !c.is_ascii_digit())[4..].parse().unwrap();
                let text = line.split_once(" \"").unwrap().1.rsplit_once("\" @").unwrap().0;
                calls[number - 1].2.push_str(&text.replace("\\\"", "\""));
            }
            _ => {}
        }
    }
    calls
}

// spec 2.5
#[test]
fn fragments_reach_their_own_call() {
    type Call<'a> = (&'a str, &'a str, &'a str);
    let cases: &[(&str, &[&str], &[Call<'_>])] = &[
        (
            "interleaved by index",
            &[
                r#"{"index":0,"id":"a","function":{"name":"f","arguments":""}}"#,
                r#"{"index":1,"id":"b","function":{"name":"g","arguments":"{"}}"#,
                r#"{"index":0,"function":{"arguments":"[1"}},{"index":1,"function":{"arguments":"}"}}"#,
                r#"{"index":0,"function":{"arguments":"]"}}"#,
            ],
            &[("a", "f", "[1]"), ("b", "g", "{}")],
        ),
        (
            "a new id opens a new call at the same index",
            &[
                r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}"#,
                r#"{"index":0,"id":"b","function":{"name":"f","arguments":"{}"}}"#,
                r#"{"index":0,"id":"a","function":{"arguments":" "}}"#,
            ],
            &[("a", "f", "{} "), ("b", "f", "{}")],
        ),
        (
            "one id for calls at several indices",
            &[
                r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{\"a\":"}}"#,
                r#"{"index":1,"id":"a","function":{"name":"g","arguments":"{\"b\":"}}"#,
                r#"{"index":0,"id":"a","function":{"arguments":"1}"}},{"index":1,"id":"a","function":{"arguments":"2}"}}"#,
            ],
            &[("a", "f", r#"{"a":1}"#), ("a", "g", r#"{"b":2}"#)],
        ),
        (
            "one id for whole calls",
            &[
                r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{\"a\":1}"}}"#,
                r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{\"b\":2}"}}"#,
                r#"{"id":"a","function":{"name":"f","arguments":"{}"}}"#,
            ],
            &[("a", "f", r#"{"a":1}"#), ("a", "f", r#"{"b":2}"#), ("a", "f", "{}")],
        ),
        (
            "id and name in every fragment",
            &[
                r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{\"a\":"}}"#,
                r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{}}"}}"#,
                r#"{"index":0,"id":"a","function":{"name":"f","arguments":""}}"#,
            ],
            &[("a", "f", r#"{"a":{}}"#)],
        ),
        (
            "an id drawn anew for each fragment opens none",
            &[
                r#"{"index":0,"id":"a","function":{"name":"f"}}"#,
                r#"{"index":0,"id":"x","function":{"arguments":"{"}}"#,
                r#"{"index":0,"id":"y","function":{"name":"","arguments":"}"}}"#,
            ],
            &[("a", "f", "{}")],
        ),
        (
            "no index and no type",
            &[
                r#"{"id":"a","function":{"name":"f","arguments":"{}"}},{"id":"b","function":{"name":"g","arguments":"[]"}}"#,
            ],
            &[("a", "f", "{}"), ("b", "g", "[]")],
        ),
        (
            "no index in later fragments",
            &[r#"{"id":"a","function":{"name":"f","arguments":"{"}}"#, r#"{"function":{"arguments":"}"}}"#],
            &[("a", "f", "{}")],
        ),
        (
            "whole calls without id at one index",
            &[
                r#"{"index":0,"id":"","function":{"name":"f","arguments":"{\"a\":\"}\"}"}}"#,
                r#"{"index":0,"id":"","function":{"name":"f","arguments":"{}"}}"#,
                r#"{"index":0,"id":"","function":{"name":"g","arguments":"{}"}}"#,
            ],
            &[
                ("unnamed_call_0_1", "f", r#"{"a":"}"}"#),
                ("unnamed_call_0_2", "f", "{}"),
                ("unnamed_call_0_3", "g", "{}"),
            ],
        ),
        (
            "a name repeated in every fragment",
            &[
                r#"{"index":0,"function":{"name":"f","arguments":"{\"a\":"}}"#,
                r#"{"index":0,"function":{"name":"f","arguments":"1}"}}"#,
            ],
            &[("unnamed_call_0_1", "f", r#"{"a":1}"#)],
        ),
        (
            "an id before the name, arguments as an object",
            &[
                r#"{"index":0,"id":"a","type":"function"}"#,
                r#"{"index":0,"function":{"name":"f","arguments":{"a":1}}}"#,
            ],
            &[("a", "f", r#"{"a":1}"#)],
        ),
        (
            "a custom tool",
            &[r#"{"index":0,"id":"a","type":"custom","custom":{"name":"f","input":"ls"}}"#],
            &[("a", "f", "ls")],
        ),
        ("nothing but an id", &[r#"{"index":7,"id":"a"}"#], &[("a", "", "")]),
        (
            "null for everything",
            &[r#"{"index":null,"id":null,"function":{"name":null,"arguments":null}}"#],
            &[("unnamed_call_0_1", "", "")],
        ),
    ];
    for (what, fragments, expected) in cases {
        let found = calls(fragments);
        let found: Vec<_> = found.iter().map(|(id, name, text)| (id.as_str(), name.as_str(), text.as_str())).collect();
        assert_eq!(&found, expected, "{what}");
    }
}

// spec 2.5
#[test]
fn open_calls_end_before_the_finish_of_their_choice() {
    let call = |i: u8| {
        choice(&format!(
            r#""index":{i},"delta":{{"tool_calls":[{{"index":0,"id":"c{i}","function":{{"name":"f","arguments":"{{}}"}}}}]}}"#
        ))
    };
    check(
        &[call(0), call(1), choice(r#""index":1,"delta":{},"finish_reason":"tool_calls""#)],
        &[
            "tool_call_start 0.0#1/arguments c0 f",
            "tool_call_delta 0.0#1/arguments \"{}\" @choices/0/delta/tool_calls/0/function/arguments",
            "message_start choice 1 c - m",
            "tool_call_start 1.0#1/arguments c1 f",
            "tool_call_delta 1.0#1/arguments \"{}\" @choices/0/delta/tool_calls/0/function/arguments",
            "tool_call_end 1.0#1/arguments",
            "finish 1 tool_calls (tool_calls)",
        ],
    );
}

#[test]
fn a_legacy_function_call_is_one_call() {
    check(
        &[
            delta(r#""function_call":{"name":"f","arguments":""}"#),
            delta(r#""function_call":{"arguments":"{}"}"#),
            choice(r#""index":0,"delta":{},"finish_reason":"function_call""#),
        ],
        &[
            "tool_call_start 0.0#1/arguments unnamed_call_0_1 f",
            "tool_call_delta 0.0#1/arguments \"{}\" @choices/0/delta/function_call/arguments",
            "tool_call_end 0.0#1/arguments",
            "finish 0 tool_calls (function_call)",
        ],
    );
}

#[test]
fn what_stands_beside_the_text_is_shown() {
    check(
        &[
            choice(r#""index":0,"delta":{"content":"a"},"logprobs":{"content":[],"refusal":null}"#),
            choice(r#""index":0,"delta":{},"logprobs":{"content":[{"token":"a"}],"refusal":null}"#),
            choice(r#""index":0,"delta":{},"content_filter_results":{"hate":{"filtered":true}}"#),
            delta(r#""refusal":"no""#),
            delta(r#""annotations":[{"type":"url_citation"}]"#),
            delta(r#""audio":{"id":"x","data":"UklG","transcript":"hi"}"#),
            delta(r#""images":[{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBO"}}]"#),
            delta(r#""token_id":7,"reasoning_steps":[{"thought":"hm"}],"empty":[""]"#),
        ],
        &[
            "content_delta 0.0/text \"a\" @choices/0/delta/content",
            r#"annotation 0.0/text logprobs {"content":[{"token":"a"}],"refusal":null} @choices/0/logprobs"#,
            r#"annotation 0.0/text safety {"hate":{"filtered":true}}"#,
            "refusal_delta 0.0/refusal \"no\" @choices/0/delta/refusal",
            r#"annotation 0.0/text citation {"type":"url_citation"}"#,
            "transcript_delta 0.0/transcript \"hi\" @choices/0/delta/audio/transcript",
            "media 0.0/text audio - UklG",
            "media 0.0/text image image/png iVBO",
            r#"custom delta.reasoning_steps [{"thought":"hm"}]"#,
        ],
    );
    let listed = r#"{"citations":["https://a"],"choices":[{"index":0,"delta":{"content":"a"}}]}"#;
    assert_eq!(lines(CHAT, &[listed, listed]).iter().filter(|line| line.contains("citation")).count(), 1);
}

// spec 1.6, 2.6
#[test]
fn usage_fills_buckets_that_do_not_overlap() {
    for (usage, expected) in [
        (
            r#"{"prompt_tokens":1000,"prompt_tokens_details":{"cached_tokens":900},"completion_tokens":50,"total_tokens":1050}"#,
            "usage in 100 read 900 out 50 | in 1000 out 50 cached 900 total 1050",
        ),
        (
            r#"{"prompt_tokens":6,"completion_tokens":212,"completion_tokens_details":{"reasoning_tokens":198},"total_tokens":218}"#,
            "usage in 6 out 14 reasoning 198 | in 6 out 212 reasoning 198 total 218",
        ),
        (
            r#"{"prompt_tokens":307,"completion_tokens":26,"total_tokens":560,"completion_tokens_details":{"reasoning_tokens":227}}"#,
            "usage in 307 out 26 reasoning 227 | in 307 out 26 reasoning 227 total 560",
        ),
        (
            r#"{"prompt_tokens":43,"completion_tokens":10,"total_tokens":53,"completion_tokens_details":{"reasoning_tokens":11}}"#,
            "usage in 43 out 0 reasoning 10 | in 43 out 10 reasoning 11 total 53",
        ),
        (
            r#"{"prompt_tokens":20,"prompt_tokens_details":{"cached_tokens":3,"cache_write_tokens":5}}"#,
            "usage in 12 read 3 write 5 | in 20 cached 3 write 5",
        ),
        (r#"{"prompt_tokens":5,"prompt_cache_hit_tokens":2}"#, "usage in 3 read 2 | in 5 cached 2"),
        (r#"{"prompt_tokens":5,"cached_tokens":2}"#, "usage in 3 read 2 | in 5 cached 2"),
        (r#"{"prompt_tokens":null,"completion_tokens":"x","prompt_tokens_details":3}"#, "usage  | "),
    ] {
        let places = [
            format!(r#"{{"choices":[],"usage":{usage}}}"#),
            format!(r#"{{"choices":[],"x_groq":{{"id":"r","usage":{usage}}}}}"#),
            format!(r#"{{"choices":[{{"index":0,"usage":{usage}}}]}}"#),
        ];
        for event in places {
            // Said twice, it is told once.
            assert_eq!(lines(CHAT, &[&event, &event]), [expected], "{event}");
        }
    }
}

// spec 2.10
#[test]
fn what_fits_no_rule_becomes_raw_and_the_stream_goes_on() {
    for data in [
        "",
        "hello",
        "[]",
        "null",
        "{}",
        r#"{"type":"ping"}"#,
        r#"{"choices":5}"#,
        r#"{"choices":[{"delta":"text"}]}"#,
        r#"{"choices":[{"delta":{"content":7}}]}"#,
        r#"{"choices":[{"delta":{"content":{"a":"b"}}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":"cut"#,
    ] {
        let good = delta(r#""content":"a""#);
        let (lines, out) = read(CHAT, &[data, &good]);
        assert_eq!((out.unknown, out.known), (1, 1), "{data}");
        assert_eq!(lines[0], format!("raw - {data}"));
        assert_eq!(lines[1..].len(), 2, "{data}");
    }
}

// spec 2.10
#[test]
fn wrong_types_in_what_is_not_text_lose_no_text() {
    let odd = r#"{"error":{},"id":7,"object":[],"model":{"x":1},"choices":[{"index":"0","delta":{"role":1,"content":"a","tool_calls":{},"annotations":7,"audio":"x","images":null},"finish_reason":false,"logprobs":"x","error":false}],"usage":7}"#;
    assert_eq!(
        lines(CHAT, &[odd]),
        ["message_start - - -", "content_delta 0.0/text \"a\" @choices/0/delta/content", "custom delta.audio \"x\"",]
    );
}

// spec 2.1
#[test]
fn legacy_completions_are_read() {
    assert_eq!(
        lines(
            Format::OpenAiCompletions,
            &[
                r#"{"id":"c","object":"text_completion","choices":[{"text":" or","index":0,"logprobs":null,"finish_reason":null}],"model":"d"}"#,
                r#"{"id":"c","object":"text_completion","choices":[{"text":"\n","index":0,"finish_reason":"length","logprobs":{"tokens":["\n"]}}],"model":"d"}"#,
                "[DONE]",
            ],
        ),
        [
            "message_start c - d",
            "content_delta 0.0/text \" or\" @choices/0/text",
            "content_delta 0.0/text \"\\n\" @choices/0/text",
            r#"annotation 0.0/text logprobs {"tokens":["\n"]} @choices/0/logprobs"#,
            "finish 0 length (length)",
        ]
    );
}

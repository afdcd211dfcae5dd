use crate::{Format::ClaudeCode, dialect::testing::read};

// spec 2.7
#[test]
fn what_was_streamed_is_repeated_and_not_said_again() {
    let (lines, out) = read(
        ClaudeCode,
        &[
            r#"{"type":"system","subtype":"init","session_id":"s","uuid":"u","model":"claude"}"#,
            r#"{"type":"stream_event","event":{"type":"message_start","message":{"id":"m1","role":"assistant","model":"claude","content":[{"type":"text","text":""}],"usage":{"input_tokens":3,"output_tokens":1}}},"session_id":"s","parent_tool_use_id":null}"#,
            r#"{"type":"stream_event","event":{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}},"parent_tool_use_id":null}"#,
            r#"{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}},"session_id":"s","parent_tool_use_id":null,"uuid":"u"}"#,
            r#"{"type":"assistant","message":{"id":"m1","role":"assistant","content":[{"type":"text","text":"Hi"}],"usage":{"input_tokens":3,"output_tokens":1}},"parent_tool_use_id":null}"#,
            r#"{"type":"stream_event","event":{"type":"content_block_stop","index":0},"parent_tool_use_id":null}"#,
            r#"{"type":"stream_event","event":{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t1","name":"Bash","input":{}}}}"#,
            r#"{"type":"stream_event","event":{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\": 1}"}}}"#,
            r#"{"type":"assistant","message":{"id":"m1","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"a":1}}]}}"#,
            r#"{"type":"stream_event","event":{"type":"content_block_stop","index":1}}"#,
            r#"{"type":"stream_event","event":{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":9}}}"#,
            r#"{"type":"stream_event","event":{"type":"message_stop"}}"#,
            r#"{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"42","is_error":true}]}}"#,
            r#"{"type":"stream_event","event":{"type":"message_start","message":{"id":"m2","role":"assistant","model":"claude","content":[],"usage":{"input_tokens":5,"output_tokens":1}}}}"#,
            r#"{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"42"}}}"#,
            r#"{"type":"result","subtype":"success","is_error":false,"result":"42","usage":{"input_tokens":8,"output_tokens":20}}"#,
        ],
    );
    assert_eq!(
        lines,
        [
            "run_start u s",
            r#"custom system/init {"type":"system","subtype":"init","session_id":"s","uuid":"u","model":"claude"}"#,
            "message_start m1 assistant claude",
            "usage in 3 out 1 | in 3 out 1",
            "part_start 0.0/text",
            r#"content_delta 0.0/text "Hi" @event/delta/text"#,
            r#"snapshot 0.0/text "Hi" @message/content/0/text"#,
            "part_end 0.0",
            "tool_call_start 0.1#1/arguments t1 Bash",
            r#"tool_call_delta 0.1#1/arguments "{\"a\": 1}" @event/delta/partial_json"#,
            r#"snapshot 0.1#1/arguments "{\"a\":1}" @message/content/0/input"#,
            "tool_call_end 0.1#1/arguments",
            "part_end 0.1",
            "usage in 3 out 9 | in 3 out 9",
            "message_end",
            r#"tool_result 0.2#1/tool_result t1 error "42" @message/content/0/content"#,
            "part_end 0.2",
            "message_start m2 assistant claude",
            "usage in 8 out 10 | in 8 out 10",
            r#"content_delta 0.3/text "42" @event/delta/text"#,
            "part_end 0.3",
            r#"snapshot 0.3/text "42" @result"#,
            "usage in 8 out 20 | in 8 out 20",
            "finish 0 stop (success)",
            "run_end u s",
        ]
    );
    assert_eq!((out.ended, out.known, out.unknown, out.stated_end.as_deref()), (true, 16, 0, None));
}

// spec 1.3
#[test]
fn messages_that_come_whole_are_said_once() {
    let (lines, out) = read(
        ClaudeCode,
        &[
            r#"{"type":"assistant","message":{"id":"m1","role":"assistant","model":"claude","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"a"}],"usage":{"input_tokens":3,"output_tokens":1}}}"#,
            r#"{"type":"assistant","message":{"id":"m1","content":[{"type":"tool_use","id":"t1","name":"f","input":{}},{"type":"server_tool_use","id":"s1","name":"web","input":{"q":1}},{"type":"web_search_tool_result","tool_use_id":"s1","content":[]}],"usage":{"input_tokens":3,"output_tokens":6}}}"#,
            r#"{"type":"assistant","message":{"id":"m2","content":[{"type":"text","text":"b"}],"usage":{"input_tokens":4,"output_tokens":2}}}"#,
            r#"{"type":"result","subtype":"error_max_turns","is_error":false,"result":"b"}"#,
        ],
    );
    assert_eq!(
        lines,
        [
            "message_start m1 assistant claude",
            "part_start 0.0/reasoning",
            r#"reasoning_delta 0.0/reasoning "hm" @message/content/0/thinking"#,
            "opaque 0.0/reasoning signature s @message/content/0/signature",
            "part_end 0.0",
            "part_start 0.1/text",
            r#"content_delta 0.1/text "a" @message/content/1/text"#,
            "part_end 0.1",
            "usage in 3 out 1 | in 3 out 1",
            "tool_call_start 0.2#1/arguments t1 f",
            "tool_call_end 0.2#1/arguments",
            "part_end 0.2",
            "provider_tool_start 0.3#2/provider_tool s1 web",
            r#"provider_tool_delta 0.3#2/provider_tool "{\"q\":1}" @message/content/1/input"#,
            "provider_tool_end 0.3#2/provider_tool",
            "part_end 0.3",
            r#"provider_tool_output 0.3#2/provider_tool s1 web_search_tool_result {"type":"web_search_tool_result","tool_use_id":"s1","content":[]} @message/content/2"#,
            "part_end 0.4",
            "usage in 3 out 6 | in 3 out 6",
            "message_start m2 - -",
            "part_start 0.5/text",
            r#"content_delta 0.5/text "b" @message/content/0/text"#,
            "part_end 0.5",
            "usage in 7 out 8 | in 7 out 8",
            r#"snapshot 0.5/text "b" @result"#,
            "finish 0 error_max_turns (error_max_turns)",
            "run_end - -",
        ]
    );
    assert_eq!((out.ended, out.known, out.unknown, out.stated_end.as_deref()), (true, 4, 0, None));
}

// spec 2.4
#[test]
fn a_result_that_is_an_error_is_an_error() {
    let (lines, out) = read(
        ClaudeCode,
        &[
            r#"{"type":"result","subtype":"success","is_error":true,"result":"API Error: 529"}"#,
            r#"{"type":"result","subtype":"error_during_execution","is_error":true,"errors":["boom"]}"#,
        ],
    );
    assert_eq!(lines, ["error error API Error: 529 @result", "run_end - -", "run_end - -",]);
    assert_eq!(
        (out.ended, out.known, out.unknown, out.stated_end.as_deref()),
        (true, 2, 0, Some("error_during_execution"))
    );
}

// spec 1.3
#[test]
fn a_result_can_be_all_there_is() {
    let (lines, out) = read(
        ClaudeCode,
        &[
            r#"{"type":"result","subtype":"success","result":"All of it","structured_output":{"a":1},"usage":{"input_tokens":1}}"#,
        ],
    );
    assert_eq!(
        lines,
        [
            r#"content_delta 0.0/text "All of it" @result"#,
            "part_end 0.0",
            r#"custom structured_output {"a":1} @structured_output"#,
            "usage in 1 | in 1",
            "finish 0 stop (success)",
            "run_end - -",
        ]
    );
    assert_eq!((out.ended, out.known, out.unknown, out.stated_end.as_deref()), (true, 1, 0, None));
}

// spec 1.8
#[test]
fn agents_inside_a_call_do_not_answer() {
    let (lines, out) = read(
        ClaudeCode,
        &[
            r#"{"type":"assistant","message":{"id":"m1","content":[{"type":"tool_use","id":"t1","name":"Task","input":{"p":1}}]},"parent_tool_use_id":null}"#,
            r#"{"type":"stream_event","event":{"type":"message_start","message":{"id":"x1","role":"assistant","content":[],"usage":{"input_tokens":99}}},"parent_tool_use_id":"t1"}"#,
            r#"{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"inner"}},"parent_tool_use_id":"t1"}"#,
            r#"{"type":"assistant","message":{"id":"x1","content":[{"type":"text","text":"inner"}]},"parent_tool_use_id":"t1"}"#,
            r#"{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"done"}]}]}}"#,
            r#"{"type":"assistant","message":{"id":"m2","content":[{"type":"text","text":"outer"}]}}"#,
        ],
    );
    assert_eq!(
        lines,
        [
            "message_start m1 - -",
            r#"tool_call 0.0#1/arguments t1 Task {"p":1} @message/content/0/input"#,
            "part_end 0.0",
            r#"tool_result_delta 0.1#1/tool_result "inner" @event/delta/text"#,
            r#"snapshot 0.1#1/tool_result "inner" @message/content/0/text"#,
            r#"tool_result 0.2#1/tool_result t1 "[{\"type\":\"text\",\"text\":\"done\"}]" @message/content/0/content"#,
            "part_end 0.2",
            "message_start m2 - -",
            "part_start 0.3/text",
            r#"content_delta 0.3/text "outer" @message/content/0/text"#,
            "part_end 0.3",
        ]
    );
    assert_eq!((out.ended, out.known, out.unknown, out.stated_end.as_deref()), (false, 6, 0, None));
}

// spec 2.10
#[test]
fn what_no_rule_fits_is_raw_and_the_stream_goes_on() {
    let (lines, out) = read(
        ClaudeCode,
        &[
            r#"{"type":"brand_new"}"#,
            r#"{"type":"stream_event"}"#,
            r#"{"type":"stream_event","event":{"type":"brand_new"}}"#,
            r#"{"type":"assistant"}"#,
            r#"{"type":"keep_alive"}"#,
            r#"{"type":"user","message":{"content":"typed"}}"#,
            r#"{"type":"rate_limit_event","x":1}"#,
            r#"{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}}"#,
        ],
    );
    assert_eq!(
        lines,
        [
            r#"raw - {"type":"brand_new"}"#,
            r#"raw - {"type":"stream_event"}"#,
            r#"raw - {"type":"stream_event","event":{"type":"brand_new"}}"#,
            r#"raw - {"type":"assistant"}"#,
            r#"custom user "typed" @message/content"#,
            r#"custom rate_limit_event {"type":"rate_limit_event","x":1}"#,
            r#"content_delta 0.0/text "Hi" @event/delta/text"#,
        ]
    );
    assert_eq!((out.ended, out.known, out.unknown, out.stated_end.as_deref()), (false, 4, 4, None));
}

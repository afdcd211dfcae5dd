use crate::{
    Format::AnthropicMessages,
    dialect::testing::{lines, read},
};

// spec 1.2, 2.6
#[test]
fn a_message_becomes_its_blocks_in_order() {
    let (lines, out) = read(
        AnthropicMessages,
        &[
            r#"{"type":"message_start","message":{"id":"m1","role":"assistant","model":"claude","content":[],"usage":{"input_tokens":10,"cache_read_input_tokens":90,"cache_creation_input_tokens":5,"output_tokens":1}}}"#,
            r#"{"type":"message_start","message":{"id":"m1","role":"assistant","model":"claude","content":[],"usage":{"input_tokens":10,"output_tokens":1}}}"#,
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm\n"}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}"#,
            r#"{"type":"content_block_stop","index":0}"#,
            r#"{"type":"ping"}"#,
            r#"{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"eHg="}}"#,
            r#"{"type":"content_block_stop","index":1}"#,
            r#"{"type":"content_block_start","index":2,"content_block":{"type":"text","text":"","citations":[]}}"#,
            r#"{"type":"content_block_delta","index":2,"delta":{"type":"citations_delta","citation":{"cited_text":"c"}}}"#,
            r#"{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"Hi"}}   "#,
            r#"{"type":"content_block_stop","index":2}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":7}}"#,
            r#"{"type":"message_stop"}"#,
        ],
    );
    assert_eq!(
        lines,
        [
            "message_start m1 assistant claude",
            "usage in 10 read 90 write 5 out 1 | in 10 out 1 cached 90 write 5",
            "part_start 0.0/reasoning",
            r#"reasoning_delta 0.0/reasoning "Hm\n" @delta/thinking"#,
            "opaque 0.0/reasoning signature c2ln @delta/signature",
            "part_end 0.0",
            "part_start 0.1/reasoning",
            "opaque 0.1/reasoning redacted eHg= @content_block/data",
            "part_end 0.1",
            "part_start 0.2/text",
            r#"annotation 0.2/text citation {"cited_text":"c"} @delta/citation"#,
            r#"content_delta 0.2/text "Hi" @delta/text"#,
            "part_end 0.2",
            "usage in 10 read 90 write 5 out 7 | in 10 out 7 cached 90 write 5",
            "finish 0 stop (end_turn)",
        ]
    );
    assert_eq!((out.ended, out.known, out.unknown, out.stated_end.as_deref()), (true, 15, 0, None));
}

// spec 1.2
#[test]
fn tools_of_the_provider_are_not_calls_of_the_client() {
    let (lines, out) = read(
        AnthropicMessages,
        &[
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"q\":1}"}}"#,
            r#"{"type":"content_block_stop","index":0}"#,
            r#"{"type":"content_block_start","index":1,"content_block":{"type":"web_search_tool_result","tool_use_id":"s1","content":[1]}}"#,
            r#"{"type":"content_block_stop","index":1}"#,
            r#"{"type":"content_block_start","index":2,"content_block":{"type":"mcp_tool_use","id":"s2","name":"ask","input":{"a":2}}}"#,
            r#"{"type":"content_block_stop","index":2}"#,
            r#"{"type":"content_block_start","index":3,"content_block":{"type":"mcp_tool_result","tool_use_id":"unknown","content":[]}}"#,
            r#"{"type":"content_block_stop","index":3}"#,
        ],
    );
    assert_eq!(
        lines,
        [
            "provider_tool_start 0.0#1/provider_tool s1 web_search",
            r#"provider_tool_delta 0.0#1/provider_tool "{\"q\":1}" @delta/partial_json"#,
            "provider_tool_end 0.0#1/provider_tool",
            "part_end 0.0",
            r#"provider_tool_output 0.0#1/provider_tool s1 web_search_tool_result {"type":"web_search_tool_result","tool_use_id":"s1","content":[1]} @content_block"#,
            "part_end 0.1",
            "provider_tool_start 0.2#2/provider_tool s2 ask",
            r#"provider_tool_delta 0.2#2/provider_tool "{\"a\":2}" @content_block/input"#,
            "provider_tool_end 0.2#2/provider_tool",
            "part_end 0.2",
            r#"provider_tool_output 0.3#3/provider_tool unknown mcp_tool_result {"type":"mcp_tool_result","tool_use_id":"unknown","content":[]} @content_block"#,
            "part_end 0.3",
        ]
    );
    assert_eq!((out.ended, out.known, out.unknown, out.stated_end.as_deref()), (false, 9, 0, None));
}

// spec 2.10
#[test]
fn text_that_is_no_answer_is_kept_beside_it() {
    let (lines, out) = read(
        AnthropicMessages,
        &[
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"compaction","content":null}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"compaction_delta","content":"summary"}}"#,
            r#"{"type":"content_block_stop","index":0}"#,
            r#"{"type":"content_block_start","index":1,"content_block":{"type":"fallback","model":"other"}}"#,
            r#"{"type":"content_block_stop","index":1}"#,
        ],
    );
    assert_eq!(
        lines,
        [
            "part_start 0.0/text",
            r#"annotation 0.0/text compaction "summary" @delta/content"#,
            "part_end 0.0",
            r#"custom fallback {"type":"fallback","model":"other"} @content_block"#,
            "part_end 0.1",
        ]
    );
    assert_eq!((out.ended, out.known, out.unknown, out.stated_end.as_deref()), (false, 5, 0, None));
}

// spec 3.7
#[test]
fn blocks_that_nobody_began_or_ended_begin_and_end() {
    let (lines, out) = read(
        AnthropicMessages,
        &[
            r#"{"type":"content_block_delta","index":4,"delta":{"type":"text_delta","text":"a"}}"#,
            r#"{"type":"content_block_start","index":4,"content_block":{"type":"text","text":"b"}}"#,
            r#"{"type":"content_block_start","index":5,"content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}"#,
            r#"{"type":"content_block_stop","index":9}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"}}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"}}"#,
        ],
    );
    assert_eq!(
        lines,
        [
            r#"content_delta 0.0/text "a" @delta/text"#,
            "part_end 0.0",
            "part_start 0.1/text",
            r#"content_delta 0.1/text "b" @content_block/text"#,
            "tool_call_start 0.2#1/arguments t f",
            "part_end 0.1",
            "tool_call_end 0.2#1/arguments",
            "part_end 0.2",
            "finish 0 tool_calls (tool_use)",
        ]
    );
    assert_eq!((out.ended, out.known, out.unknown, out.stated_end.as_deref()), (false, 6, 0, None));
}

// spec 2.10
#[test]
fn what_no_rule_fits_is_raw_and_the_stream_goes_on() {
    let (lines, out) = read(
        AnthropicMessages,
        &[
            "no json",
            "[]",
            r#"{"type":"brand_new"}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":7}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"new_delta","x":1}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{}"}}"#,
            r#"{"type":"content_block_delta"}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":null},"usage":"many"}"#,
            r#"{"type":"content_block_delta","index":"0","delta":{"type":"text_delta","text":"Hi","text2":null},"extra":[{}]}"#,
        ],
    );
    assert_eq!(
        lines,
        [
            "raw - no json",
            "raw - []",
            r#"raw - {"type":"brand_new"}"#,
            r#"raw - {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":7}}"#,
            r#"raw - {"type":"content_block_delta","index":0,"delta":{"type":"new_delta","x":1}}"#,
            r#"raw - {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{}"}}"#,
            r#"raw - {"type":"content_block_delta"}"#,
            r#"content_delta 0.0/text "Hi" @delta/text"#,
        ]
    );
    assert_eq!((out.ended, out.known, out.unknown, out.stated_end.as_deref()), (false, 2, 7, None));
}

fn block(start: &str, deltas: &[&str]) -> Vec<String> {
    let mut events = vec![format!(r#"{{"type":"content_block_start","index":0,"content_block":{start}}}"#)];
    events.extend(deltas.iter().map(|delta| format!(r#"{{"type":"content_block_delta","index":0,"delta":{delta}}}"#)));
    events.push(r#"{"type":"content_block_stop","index":0}"#.to_owned());
    lines(AnthropicMessages, &events.iter().map(String::as_str).collect::<Vec<_>>())
}

// spec 2.5
#[test]
fn the_input_of_a_call_is_its_fragments_or_the_one_it_began_with() {
    assert_eq!(
        block(
            r#"{"type":"tool_use","id":"t","name":"now","input":{}}"#,
            &[r#"{"type":"input_json_delta","partial_json":""}"#],
        ),
        ["tool_call_start 0.0#1/arguments t now", "tool_call_end 0.0#1/arguments", "part_end 0.0"]
    );
    assert_eq!(
        block(
            r#"{"type":"tool_use","id":"t","name":"now","input":{}}"#,
            &[
                r#"{"type":"input_json_delta","partial_json":""}"#,
                r#"{"type":"input_json_delta","partial_json":"{\"a\""}"#,
                r#"{"type":"input_json_delta","partial_json":":1}"}"#,
            ],
        ),
        [
            "tool_call_start 0.0#1/arguments t now",
            r#"tool_call_delta 0.0#1/arguments "{\"a\"" @delta/partial_json"#,
            r#"tool_call_delta 0.0#1/arguments ":1}" @delta/partial_json"#,
            "tool_call_end 0.0#1/arguments",
            "part_end 0.0",
        ]
    );
    assert_eq!(
        block(
            r#"{"type":"tool_use","name":"now","input":{"a":1.0}}"#,
            &[r#"{"type":"input_json_delta","partial_json":"{}"}"#],
        ),
        [
            r#"tool_call 0.0#1/arguments unnamed_call_0_1 now {"a":1.0} @content_block/input"#,
            r#"raw - {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{}"}}"#,
            "part_end 0.0",
        ]
    );
}

// spec 2.4
#[test]
fn an_error_comes_once_and_no_finish_after_it() {
    let error = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    let (lines, out) = read(
        AnthropicMessages,
        &[
            r#"{"type":"ping"}"#,
            error,
            error,
            r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}"#,
        ],
    );
    assert_eq!(lines, ["error overloaded_error Overloaded @error/message", "usage out 2 | out 2"]);
    assert!(!out.ended);
}

use crate::{
    Format::BedrockConverse,
    dialect::testing::{named, read},
};

// spec 1.2, 2.6
#[test]
fn a_message_becomes_its_blocks_in_order() {
    let (lines, out) = named(
        BedrockConverse,
        &[
            ("messageStart", r#"{"role":"assistant","p":"abc"}"#),
            ("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"Hm"}},"p":"a"}"#),
            ("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"reasoningContent":{"signature":"c2ln"}}}"#),
            ("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"reasoningContent":{"redactedContent":"eA=="}}}"#),
            ("contentBlockStop", r#"{"contentBlockIndex":0}"#),
            ("contentBlockDelta", r#"{"contentBlockIndex":1,"delta":{"text":""},"p":"a"}"#),
            ("contentBlockDelta", r#"{"contentBlockIndex":1,"delta":{"text":"Hi\t"},"p":"a"}"#),
            ("contentBlockDelta", r#"{"contentBlockIndex":1,"delta":{"citation":{"title":"t"}}}"#),
            ("contentBlockStop", r#"{"contentBlockIndex":1}"#),
            ("contentBlockStart", r#"{"contentBlockIndex":2,"start":{"toolUse":{"name":"f","toolUseId":"t1"}}}"#),
            ("contentBlockDelta", r#"{"contentBlockIndex":2,"delta":{"toolUse":{"input":"{}"}}}"#),
            ("contentBlockStop", r#"{"contentBlockIndex":2}"#),
            (
                "contentBlockStart",
                r#"{"contentBlockIndex":3,"start":{"toolUse":{"name":"web","toolUseId":"t2","type":"server_tool_use"}}}"#,
            ),
            ("contentBlockDelta", r#"{"contentBlockIndex":3,"delta":{"toolUse":{"input":"{}"}}}"#),
            ("contentBlockStop", r#"{"contentBlockIndex":3}"#),
            ("contentBlockStart", r#"{"contentBlockIndex":4,"start":{"toolResult":{"toolUseId":"t2"}}}"#),
            ("contentBlockDelta", r#"{"contentBlockIndex":4,"delta":{"toolResult":[{"text":"r"}]}}"#),
            ("messageStop", r#"{"stopReason":"tool_use"}"#),
            (
                "metadata",
                r#"{"usage":{"inputTokens":9,"outputTokens":4,"totalTokens":20,"cacheReadInputTokens":7},"metrics":{"latencyMs":1},"trace":{"guardrail":1}}"#,
            ),
        ],
    );
    assert_eq!(
        lines,
        [
            "message_start - assistant -",
            r#"reasoning_delta 0.0/reasoning "Hm" @delta/reasoningContent/text"#,
            "opaque 0.0/reasoning signature c2ln @delta/reasoningContent/signature",
            "opaque 0.0/reasoning redacted eA== @delta/reasoningContent/redactedContent",
            "part_end 0.0",
            r#"content_delta 0.1/text "Hi\t" @delta/text"#,
            r#"annotation 0.1/text citation {"title":"t"} @delta/citation"#,
            "part_end 0.1",
            "tool_call_start 0.2#1/arguments t1 f",
            r#"tool_call_delta 0.2#1/arguments "{}" @delta/toolUse/input"#,
            "tool_call_end 0.2#1/arguments",
            "part_end 0.2",
            "provider_tool_start 0.3#2/provider_tool t2 web",
            r#"provider_tool_delta 0.3#2/provider_tool "{}" @delta/toolUse/input"#,
            "provider_tool_end 0.3#2/provider_tool",
            "part_end 0.3",
            r#"provider_tool_output 0.3#2/provider_tool t2 toolResult [{"text":"r"}] @delta/toolResult"#,
            "part_end 0.4",
            "finish 0 tool_calls (tool_use)",
            "usage in 9 read 7 out 4 | in 9 out 4 cached 7 total 20",
            r#"annotation 0.0/text trace {"guardrail":1} @trace"#,
        ]
    );
    assert_eq!((out.ended, out.known, out.unknown, out.stated_end.as_deref()), (true, 19, 0, None));
}

// spec 2.4
#[test]
fn an_exception_is_an_error() {
    let (lines, out) = named(
        BedrockConverse,
        &[
            ("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"text":"Hal"}}"#),
            ("throttlingException", r#"{"message":"slow down"}"#),
            ("messageStop", r#"{"stopReason":"end_turn"}"#),
        ],
    );
    assert_eq!(
        lines,
        [r#"content_delta 0.0/text "Hal" @delta/text"#, "error throttlingException slow down @message", "part_end 0.0",]
    );
    assert_eq!((out.ended, out.known, out.unknown, out.stated_end.as_deref()), (true, 3, 0, None));
}

// spec 2.1
#[test]
fn events_without_a_header_are_told_by_their_key() {
    let (lines, out) = read(
        BedrockConverse,
        &[
            r#"{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"text":"Hi"}}}"#,
            r#"{"messageStop":{"stopReason":"guardrail_intervened"}}"#,
            r#"{"internalServerException":{"message":"m"}}"#,
            r#"{"other":{}}"#,
        ],
    );
    assert_eq!(
        lines,
        [
            r#"content_delta 0.0/text "Hi" @contentBlockDelta/delta/text"#,
            "part_end 0.0",
            "finish 0 content_filter (guardrail_intervened)",
            "error internalServerException m @message",
            r#"raw - {"other":{}}"#,
        ]
    );
    assert_eq!((out.ended, out.known, out.unknown, out.stated_end.as_deref()), (true, 3, 1, None));
}

// spec 2.10
#[test]
fn what_no_rule_fits_is_raw_and_the_stream_goes_on() {
    let (lines, out) = named(
        BedrockConverse,
        &[
            ("brandNew", "{}"),
            ("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{}}"#),
            ("contentBlockDelta", "nope"),
            ("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"toolUse":{"input":"x"}}}"#),
        ],
    );
    assert_eq!(
        lines,
        [
            "raw brandNew {}",
            r#"raw contentBlockDelta {"contentBlockIndex":0,"delta":{}}"#,
            "raw contentBlockDelta nope",
            r#"raw contentBlockDelta {"contentBlockIndex":0,"delta":{"toolUse":{"input":"x"}}}"#,
        ]
    );
    assert_eq!((out.ended, out.known, out.unknown, out.stated_end.as_deref()), (false, 0, 4, None));
}

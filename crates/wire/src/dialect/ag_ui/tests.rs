use crate::{Format::AgUi, dialect::testing::read};

// spec 2.5
#[test]
fn messages_and_calls_that_interleave_reach_their_own_lane() {
    let (lines, out) = read(
        AgUi,
        &[
            r#"{"type":"RUN_STARTED","threadId":"t","runId":"r","parentRunId":"p"}"#,
            r#"{"type":"STEP_STARTED","stepName":"s"}"#,
            r#"{"type":"TEXT_MESSAGE_START","messageId":"m1","role":"assistant"}"#,
            r#"{"type":"TOOL_CALL_START","toolCallId":"c1","toolCallName":"f","parentMessageId":"m1"}"#,
            r#"{"type":"TOOL_CALL_START","toolCallId":"c2","toolCallName":"g"}"#,
            r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m1","delta":"Hi"}"#,
            r#"{"type":"TOOL_CALL_ARGS","toolCallId":"c2","delta":"{}"}"#,
            r#"{"type":"TOOL_CALL_ARGS","toolCallId":"c1","delta":"[]"}"#,
            r#"{"type":"TEXT_MESSAGE_START","messageId":"m2"}"#,
            r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m2","delta":"A","timestamp":1,"rawEvent":{"x":[1]}}"#,
            r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m1","delta":"\n"}"#,
            r#"{"type":"TEXT_MESSAGE_END","messageId":"m1"}"#,
            r#"{"type":"TOOL_CALL_END","toolCallId":"c1"}"#,
            r#"{"type":"TOOL_CALL_RESULT","messageId":"m3","toolCallId":"c1","content":"ok","role":"tool"}"#,
            r#"{"type":"STEP_FINISHED","stepName":"s"}"#,
            r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r","result":{"a":1}}"#,
        ],
    );
    assert_eq!(
        lines,
        [
            "run_start r t",
            "step_start s",
            "message_start m1 assistant -",
            "part_start 0.0/text",
            "tool_call_start 0.1#1/arguments c1 f",
            "tool_call_start 0.2#2/arguments c2 g",
            r#"content_delta 0.0/text "Hi" @delta"#,
            r#"tool_call_delta 0.2#2/arguments "{}" @delta"#,
            r#"tool_call_delta 0.1#1/arguments "[]" @delta"#,
            "message_start m2 - -",
            "part_start 0.3/text",
            r#"content_delta 0.3/text "A" @delta"#,
            r#"content_delta 0.0/text "\n" @delta"#,
            "part_end 0.0",
            "tool_call_end 0.1#1/arguments",
            "part_end 0.1",
            r#"tool_result 0.4#1/tool_result c1 "ok" @content|result"#,
            "part_end 0.4",
            "step_end s",
            "tool_call_end 0.2#2/arguments",
            "part_end 0.2",
            "part_end 0.3",
            r#"custom result {"a":1} @result"#,
            "finish 0 stop (RUN_FINISHED)",
            "run_end r t",
        ]
    );
    assert_eq!((out.ended, out.known, out.unknown, out.stated_end.as_deref()), (true, 16, 0, None));
}

// spec 3.7
#[test]
fn chunks_open_and_close_what_they_continue() {
    let (lines, out) = read(
        AgUi,
        &[
            r#"{"type":"TEXT_MESSAGE_CHUNK","messageId":"m1","role":"assistant","delta":"a"}"#,
            r#"{"type":"TEXT_MESSAGE_CHUNK","delta":"b"}"#,
            r#"{"type":"RAW","event":{"x":1}}"#,
            r#"{"type":"TEXT_MESSAGE_CHUNK","messageId":"m1","delta":"c"}"#,
            r#"{"type":"TOOL_CALL_CHUNK","toolCallId":"c1","toolCallName":"f","delta":"{"}"#,
            r#"{"type":"TOOL_CALL_CHUNK","delta":"}"}"#,
            r#"{"type":"TOOL_CALL_CHUNK","toolCallId":"c2","toolCallName":"g","delta":"{}"}"#,
            r#"{"type":"STATE_SNAPSHOT","snapshot":{}}"#,
            r#"{"type":"REASONING_MESSAGE_CHUNK","messageId":"q","delta":"hm"}"#,
        ],
    );
    assert_eq!(
        lines,
        [
            "message_start m1 assistant -",
            "part_start 0.0/text",
            r#"content_delta 0.0/text "a" @delta"#,
            r#"content_delta 0.0/text "b" @delta"#,
            r#"raw RAW {"x":1} @event"#,
            r#"content_delta 0.0/text "c" @delta"#,
            "part_end 0.0",
            "tool_call_start 0.1#1/arguments c1 f",
            r#"tool_call_delta 0.1#1/arguments "{" @delta"#,
            r#"tool_call_delta 0.1#1/arguments "}" @delta"#,
            "tool_call_end 0.1#1/arguments",
            "part_end 0.1",
            "tool_call_start 0.2#2/arguments c2 g",
            r#"tool_call_delta 0.2#2/arguments "{}" @delta"#,
            "tool_call_end 0.2#2/arguments",
            "part_end 0.2",
            r#"state_snapshot "{}" @snapshot"#,
            "part_start 0.3/reasoning",
            r#"reasoning_delta 0.3/reasoning "hm" @delta"#,
        ]
    );
    assert_eq!((out.ended, out.known, out.unknown, out.stated_end.as_deref()), (false, 9, 0, None));
}

// spec 1.2
#[test]
fn thinking_is_reasoning_with_or_without_ids() {
    let (lines, out) = read(
        AgUi,
        &[
            r#"{"type":"THINKING_START"}"#,
            r#"{"type":"THINKING_TEXT_MESSAGE_START"}"#,
            r#"{"type":"THINKING_TEXT_MESSAGE_CONTENT","delta":"a"}"#,
            r#"{"type":"THINKING_TEXT_MESSAGE_END"}"#,
            r#"{"type":"THINKING_TEXT_MESSAGE_START"}"#,
            r#"{"type":"THINKING_TEXT_MESSAGE_CONTENT","delta":"b"}"#,
            r#"{"type":"THINKING_END"}"#,
            r#"{"type":"REASONING_MESSAGE_START","messageId":"q","role":"reasoning"}"#,
            r#"{"type":"REASONING_MESSAGE_CONTENT","messageId":"q","delta":"c"}"#,
            r#"{"type":"REASONING_ENCRYPTED_VALUE","subtype":"message","entityId":"q","encryptedValue":"xx"}"#,
            r#"{"type":"REASONING_MESSAGE_END","messageId":"q"}"#,
        ],
    );
    assert_eq!(
        lines,
        [
            "part_start 0.0/reasoning",
            r#"reasoning_delta 0.0/reasoning "a" @delta"#,
            "part_end 0.0",
            "part_start 0.1/reasoning",
            r#"reasoning_delta 0.1/reasoning "b" @delta"#,
            "part_start 0.2/reasoning",
            r#"reasoning_delta 0.2/reasoning "c" @delta"#,
            "opaque 0.2/reasoning encrypted xx @encryptedValue|encrypted_value",
            "part_end 0.2",
        ]
    );
    assert_eq!((out.ended, out.known, out.unknown, out.stated_end.as_deref()), (false, 11, 0, None));
}

// spec 2.4
#[test]
fn an_error_is_an_error_however_the_run_goes_on() {
    let (lines, out) = read(
        AgUi,
        &[
            r#"{"type":"RUN_STARTED","thread_id":"t","run_id":"r"}"#,
            r#"{"type":"TOOL_CALL_START","tool_call_id":"c","tool_call_name":"f"}"#,
            r#"{"type":"TOOL_CALL_RESULT","tool_call_id":"c","result":{"a":1}}"#,
            r#"{"type":"TEXT_MESSAGE_CONTENT","message_id":"m","delta":"Half"}"#,
            r#"{"type":"RUN_ERROR","error":"boom"}"#,
            r#"{"type":"RUN_ERROR","message":"again","code":"E"}"#,
            r#"{"type":"RUN_FINISHED","thread_id":"t","run_id":"r"}"#,
        ],
    );
    assert_eq!(
        lines,
        [
            "run_start r t",
            "tool_call_start 0.0#1/arguments c f",
            r#"tool_result 0.1#1/tool_result c "{\"a\":1}" @content|result"#,
            "part_end 0.1",
            "message_start m - -",
            "part_start 0.2/text",
            r#"content_delta 0.2/text "Half" @delta"#,
            "error RUN_ERROR boom @message|error",
            "tool_call_end 0.0#1/arguments",
            "part_end 0.0",
            "part_end 0.2",
            "run_end r t",
        ]
    );
    assert_eq!((out.ended, out.known, out.unknown, out.stated_end.as_deref()), (true, 7, 0, Some("RUN_FINISHED")));
}

// spec 1.3
#[test]
fn a_conversation_that_repeats_text_of_the_run_names_it() {
    let (lines, out) = read(
        AgUi,
        &[
            r#"{"type":"TEXT_MESSAGE_START","messageId":"m1"}"#,
            r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m1","delta":"Hi"}"#,
            r#"{"type":"TEXT_MESSAGE_END","messageId":"m1"}"#,
            r#"{"type":"TOOL_CALL_START","toolCallId":"c1","toolCallName":"f"}"#,
            r#"{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"u","role":"user","content":"old"},{"id":"m1","role":"assistant","content":"Hi","toolCalls":[{"id":"c1","function":{"name":"f","arguments":"{}"}}]}]}"#,
        ],
    );
    assert_eq!(
        lines,
        [
            "message_start m1 - -",
            "part_start 0.0/text",
            r#"content_delta 0.0/text "Hi" @delta"#,
            "part_end 0.0",
            "tool_call_start 0.1#1/arguments c1 f",
            r#"snapshot 0.0/text "Hi" @messages/1/content"#,
            r#"snapshot 0.1#1/arguments "{}" @messages/1/toolCalls/0/function/arguments|messages/1/tool_calls/0/function/arguments"#,
            r#"messages_snapshot "[{\"id\":\"u\",\"role\":\"user\",\"content\":\"old\"},{\"id\":\"m1\",\"role\":\"assistant\",\"content\":\"Hi\",\"toolCalls\":[{\"id\":\"c1\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}]" @messages"#,
        ]
    );
    assert_eq!((out.ended, out.known, out.unknown, out.stated_end.as_deref()), (false, 5, 0, None));
}

// spec 1.2
#[test]
fn state_and_named_events_are_kept_as_written() {
    let (lines, out) = read(
        AgUi,
        &[
            r#"{"type":"STATE_SNAPSHOT","snapshot":{"a":1.0}}"#,
            r#"{"type":"STATE_DELTA","delta":[{"op":"add"}]}"#,
            r#"{"type":"CUSTOM","name":"n","value":[1]}"#,
            r#"{"type":"CUSTOM","name":"n"}"#,
            r#"{"type":"ACTIVITY_DELTA","messageId":"a","patch":[]}"#,
            r#"{"type":"RUN_FINISHED","outcome":{"type":"interrupt","interrupts":[1]}}"#,
        ],
    );
    assert_eq!(
        lines,
        [
            r#"state_snapshot "{\"a\":1.0}" @snapshot"#,
            r#"state_delta "[{\"op\":\"add\"}]" @delta"#,
            "custom n [1] @value",
            "custom n null @value",
            r#"custom ACTIVITY_DELTA {"type":"ACTIVITY_DELTA","messageId":"a","patch":[]}"#,
            r#"custom outcome {"type":"interrupt","interrupts":[1]} @outcome"#,
            "finish 0 pause (RUN_FINISHED)",
            "run_end - -",
        ]
    );
    assert_eq!((out.ended, out.known, out.unknown, out.stated_end.as_deref()), (true, 6, 0, None));
}

// spec 2.10
#[test]
fn what_no_rule_fits_is_raw_and_the_stream_goes_on() {
    let (lines, out) = read(
        AgUi,
        &[
            r#"{"type":"BRAND_NEW"}"#,
            r#"{"type":"TOOL_CALL_ARGS","toolCallId":"unknown","delta":"x"}"#,
            r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":7,"delta":"x"}"#,
            r#"{"type":"STATE_SNAPSHOT"}"#,
            r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":null}"#,
            r#"{"type":"TEXT_MESSAGE_CONTENT","delta":"Hi"}"#,
        ],
    );
    assert_eq!(
        lines,
        [
            r#"raw - {"type":"BRAND_NEW"}"#,
            r#"raw - {"type":"TOOL_CALL_ARGS","toolCallId":"unknown","delta":"x"}"#,
            r#"raw - {"type":"TEXT_MESSAGE_CONTENT","messageId":7,"delta":"x"}"#,
            r#"raw - {"type":"STATE_SNAPSHOT"}"#,
            "message_start m - -",
            "part_start 0.0/text",
            "message_start - - -",
            "part_start 0.1/text",
            r#"content_delta 0.1/text "Hi" @delta"#,
        ]
    );
    assert_eq!((out.ended, out.known, out.unknown, out.stated_end.as_deref()), (false, 2, 4, None));
}

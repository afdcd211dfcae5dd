use crate::{Format::OpenAiResponses, dialect::testing::read};

// spec 1.3, 2.7
#[test]
fn text_is_said_once_and_then_repeated() {
    let (lines, out) = read(
        OpenAiResponses,
        &[
            r#"{"type":"response.created","response":{"id":"r1","model":"gpt","status":"in_progress"}}"#,
            r#"{"type":"response.in_progress","response":{"id":"r1","model":"gpt","status":"in_progress"}}"#,
            r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"i","type":"message","status":"in_progress","content":[],"role":"assistant"}}"#,
            r#"{"type":"response.content_part.added","item_id":"i","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}}"#,
            r#"{"type":"response.output_text.delta","item_id":"i","output_index":0,"content_index":0,"delta":"He\n","logprobs":[],"obfuscation":"xyz"}"#,
            r#"{"type":"response.output_text.delta","item_id":"i","output_index":0,"content_index":0,"delta":"llo","logprobs":[{"token":"llo"}]}"#,
            r#"{"type":"response.output_text.annotation.added","output_index":0,"content_index":0,"annotation":{"type":"url_citation"}}"#,
            r#"{"type":"response.output_text.done","output_index":0,"content_index":0,"text":"He\nllo"}"#,
            r#"{"type":"response.content_part.done","output_index":0,"content_index":0,"part":{"type":"output_text","text":"He\nllo","annotations":[{"type":"url_citation"}]}}"#,
            r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"message","content":[{"type":"output_text","text":"He\nllo"}]}}"#,
            r#"{"type":"response.completed","response":{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"He\nllo"}]}],"usage":{"input_tokens":20,"input_tokens_details":{"cached_tokens":5,"cache_write_tokens":3},"output_tokens":9,"output_tokens_details":{"reasoning_tokens":4},"total_tokens":29}}}"#,
            "[DONE]",
        ],
    );
    assert_eq!(
        lines,
        [
            "message_start r1 assistant gpt",
            "part_start 0.0/text",
            r#"content_delta 0.0/text "He\n" @delta"#,
            r#"content_delta 0.0/text "llo" @delta"#,
            r#"annotation 0.0/text logprobs [{"token":"llo"}] @logprobs"#,
            r#"annotation 0.0/text citation {"type":"url_citation"} @annotation"#,
            r#"snapshot 0.0/text "He\nllo" @text"#,
            r#"snapshot 0.0/text "He\nllo" @part/text"#,
            r#"snapshot 0.0/text "He\nllo" @item/content/0/text"#,
            "part_end 0.0",
            r#"snapshot 0.0/text "He\nllo" @response/output/0/content/0/text"#,
            "usage in 12 read 5 write 3 out 5 reasoning 4 | in 20 out 9 cached 5 write 3 reasoning 4 total 29",
            "finish 0 stop (completed)",
        ]
    );
    assert_eq!((out.ended, out.known, out.unknown, out.stated_end.as_deref()), (true, 12, 0, None));
}

// spec 1.3
#[test]
fn a_text_that_comes_whole_only_is_said_once() {
    let (lines, out) = read(
        OpenAiResponses,
        &[
            r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"message","content":[{"type":"refusal","refusal":"No."},{"type":"output_text","text":"But","annotations":[{"a":1}]}]}}"#,
            r#"{"type":"response.completed","response":{"status":"completed","output":[{"type":"message","content":[{"type":"refusal","refusal":"No."},{"type":"output_text","text":"But"}]}]}}"#,
        ],
    );
    assert_eq!(
        lines,
        [
            r#"refusal_delta 0.0/refusal "No." @item/content/0/refusal"#,
            r#"content_delta 0.1/text "But" @item/content/1/text"#,
            r#"annotation 0.1/text citation {"a":1} @item/content/1/annotations/0"#,
            "part_end 0.0",
            "part_end 0.1",
            r#"snapshot 0.0/refusal "No." @response/output/0/content/0/refusal"#,
            r#"snapshot 0.1/text "But" @response/output/0/content/1/text"#,
            "finish 0 stop (completed)",
        ]
    );
    assert_eq!((out.ended, out.known, out.unknown, out.stated_end.as_deref()), (true, 2, 0, None));
}

// spec 1.3
#[test]
fn parts_are_matched_by_their_order_where_indices_differ() {
    let (lines, out) = read(
        OpenAiResponses,
        &[
            r#"{"type":"response.reasoning_text.delta","output_index":0,"content_index":0,"delta":"think"}"#,
            r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"think"}]}}"#,
            r#"{"content_index":1,"delta":"Hi","output_index":1,"type":"response.output_text.delta"}"#,
            r#"{"item":{"type":"message","content":[{"type":"output_text","text":"Hi"}]},"output_index":1,"type":"response.output_item.done"}"#,
        ],
    );
    assert_eq!(
        lines,
        [
            r#"reasoning_delta 0.0/reasoning "think" @delta"#,
            r#"snapshot 0.0/reasoning "think" @item/content/0/text"#,
            "part_end 0.0",
            r#"content_delta 0.1/text "Hi" @delta"#,
            r#"snapshot 0.1/text "Hi" @item/content/0/text"#,
            "part_end 0.1",
        ]
    );
    assert_eq!((out.ended, out.known, out.unknown, out.stated_end.as_deref()), (false, 4, 0, None));
}

// spec 1.2
#[test]
fn reasoning_has_a_summary_and_what_only_the_provider_reads() {
    let (lines, out) = read(
        OpenAiResponses,
        &[
            r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"rs","type":"reasoning","encrypted_content":"first","summary":[]}}"#,
            r#"{"type":"response.reasoning_summary_part.added","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":""}}"#,
            r#"{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0,"delta":"one"}"#,
            r#"{"type":"response.reasoning_summary_text.done","output_index":0,"summary_index":0,"text":"one"}"#,
            r#"{"type":"response.reasoning_summary_part.done","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":"one"}}"#,
            r#"{"type":"response.output_item.done","output_index":0,"item":{"id":"rs","type":"reasoning","encrypted_content":"last","summary":[{"type":"summary_text","text":"one"}]}}"#,
        ],
    );
    assert_eq!(
        lines,
        [
            "part_start 0.0/reasoning",
            r#"reasoning_delta 0.0/reasoning "one" @delta"#,
            r#"snapshot 0.0/reasoning "one" @text"#,
            r#"snapshot 0.0/reasoning "one" @part/text"#,
            r#"snapshot 0.0/reasoning "one" @item/summary/0/text"#,
            "opaque 0.0/reasoning encrypted last @item/encrypted_content",
            "part_end 0.0",
        ]
    );
    assert_eq!((out.ended, out.known, out.unknown, out.stated_end.as_deref()), (false, 6, 0, None));
}

// spec 2.5, 2.7
#[test]
fn arguments_are_said_once_and_belong_to_their_call() {
    let (lines, out) = read(
        OpenAiResponses,
        &[
            r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"fc","type":"function_call","call_id":"c1","name":"f","arguments":""}}"#,
            r#"{"type":"response.function_call_arguments.delta","output_index":0,"item_id":"fc","delta":"{}"}"#,
            r#"{"type":"response.function_call_arguments.done","output_index":0,"arguments":"{}"}"#,
            r#"{"type":"response.output_item.done","output_index":0,"item":{"id":"fc","type":"function_call","call_id":"c1","name":"f","arguments":"{}"}}"#,
            r#"{"type":"response.output_item.added","output_index":1,"item":{"id":"fc2","type":"function_call","call_id":"c2","name":"g"}}"#,
            r#"{"type":"response.function_call_arguments.done","output_index":1,"arguments":"{\"a\":1}"}"#,
            r#"{"type":"response.output_item.added","output_index":2,"item":{"id":"ct","type":"custom_tool_call","name":"h","input":""}}"#,
            r#"{"type":"response.custom_tool_call_input.delta","output_index":2,"delta":"free text"}"#,
            r#"{"type":"response.completed","response":{"status":"completed","output":[{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"},{"type":"function_call","call_id":"c2","name":"g","arguments":"{\"a\":1}"},{"type":"custom_tool_call","id":"ct","name":"h","input":"free text"},{"type":"function_call","call_id":"c4","name":"late","arguments":""}]}}"#,
        ],
    );
    assert_eq!(
        lines,
        [
            "tool_call_start 0.0#1/arguments c1 f",
            r#"tool_call_delta 0.0#1/arguments "{}" @delta"#,
            r#"snapshot 0.0#1/arguments "{}" @arguments"#,
            "tool_call_end 0.0#1/arguments",
            r#"snapshot 0.0#1/arguments "{}" @item/arguments"#,
            "part_end 0.0",
            "tool_call_start 0.1#2/arguments c2 g",
            r#"tool_call_delta 0.1#2/arguments "{\"a\":1}" @arguments"#,
            "tool_call_end 0.1#2/arguments",
            "tool_call_start 0.2#3/arguments ct h",
            r#"tool_call_delta 0.2#3/arguments "free text" @delta"#,
            r#"snapshot 0.0#1/arguments "{}" @response/output/0/arguments"#,
            r#"snapshot 0.1#2/arguments "{\"a\":1}" @response/output/1/arguments"#,
            "part_end 0.1",
            r#"snapshot 0.2#3/arguments "free text" @response/output/2/input"#,
            "tool_call_end 0.2#3/arguments",
            "part_end 0.2",
            "tool_call 0.3#4/arguments c4 late  @response/output/3/arguments",
            "part_end 0.3",
            "finish 0 tool_calls (completed)",
        ]
    );
    assert_eq!((out.ended, out.known, out.unknown, out.stated_end.as_deref()), (true, 9, 0, None));
}

// spec 2.5
#[test]
fn calls_of_other_kinds_are_whole_when_their_item_is() {
    let (lines, out) = read(
        OpenAiResponses,
        &[
            r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"x","type":"computer_call","call_id":"c1","action":{"type":"click"}}}"#,
            r#"{"type":"response.output_item.done","output_index":0,"item":{"id":"x","type":"computer_call","call_id":"c1","action":{"type":"click"}}}"#,
            r#"{"type":"response.output_item.done","output_index":1,"item":{"id":"y","type":"apply_patch_call","call_id":"c2","operation":{"diff":"+"}}}"#,
            r#"{"type":"response.function_call_arguments.delta","output_index":2,"delta":"rest of arguments"}"#,
            r#"{"type":"response.output_item.done","output_index":2,"item":{"type":"function_call","call_id":"c3","name":"f","arguments":"all"}}"#,
        ],
    );
    assert_eq!(
        lines,
        [
            r#"tool_call 0.0#1/arguments c1 computer_call {"type":"click"} @item/action"#,
            "part_end 0.0",
            r#"tool_call 0.1#2/arguments c2 apply_patch_call {"diff":"+"} @item/operation"#,
            "part_end 0.1",
            r#"tool_call_delta 0.2#3/arguments "rest of arguments" @delta"#,
            "tool_call 0.2#3/arguments c3 f all @item/arguments",
            "part_end 0.2",
        ]
    );
    assert_eq!((out.ended, out.known, out.unknown, out.stated_end.as_deref()), (false, 5, 0, None));
}

// spec 1.2
#[test]
fn tools_of_the_provider_show_input_and_output() {
    let (lines, out) = read(
        OpenAiResponses,
        &[
            r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"ci","type":"code_interpreter_call","code":""}}"#,
            r#"{"type":"response.code_interpreter_call.in_progress","output_index":0,"item_id":"ci"}"#,
            r#"{"type":"response.code_interpreter_call_code.delta","output_index":0,"delta":"1+1"}"#,
            r#"{"type":"response.code_interpreter_call_code.done","output_index":0,"code":"1+1"}"#,
            r#"{"type":"response.output_item.done","output_index":0,"item":{"id":"ci","type":"code_interpreter_call","code":"1+1","outputs":[2]}}"#,
            r#"{"type":"response.output_item.added","output_index":1,"item":{"id":"ws","type":"web_search_call"}}"#,
            r#"{"type":"response.web_search_call.searching","output_index":1}"#,
            r#"{"type":"response.output_item.done","output_index":1,"item":{"id":"ws","type":"web_search_call","action":{"query":"q"}}}"#,
            r#"{"type":"response.output_item.done","output_index":2,"item":{"id":"m","type":"mcp_call","name":"ask","arguments":"{}","output":"o"}}"#,
            r#"{"type":"response.image_generation_call.partial_image","output_index":3,"partial_image_b64":"AA=="}"#,
            r#"{"type":"response.output_item.done","output_index":3,"item":{"id":"ig","type":"image_generation_call","result":"AAAA","output_format":"png"}}"#,
            r#"{"type":"response.output_item.done","output_index":4,"item":{"id":"l","type":"mcp_list_tools","tools":[]}}"#,
        ],
    );
    assert_eq!(
        lines,
        [
            "provider_tool_start 0.0#1/provider_tool ci code_interpreter_call",
            r#"provider_tool_delta 0.0#1/provider_tool "1+1" @delta"#,
            r#"snapshot 0.0#1/provider_tool "1+1" @code"#,
            "provider_tool_end 0.0#1/provider_tool",
            r#"snapshot 0.0#1/provider_tool "1+1" @item/code"#,
            r#"provider_tool_output 0.0#1/provider_tool ci code_interpreter_call {"id":"ci","type":"code_interpreter_call","code":"1+1","outputs":[2]} @item"#,
            "part_end 0.0",
            "provider_tool_start 0.1#2/provider_tool ws web_search_call",
            "provider_tool_end 0.1#2/provider_tool",
            r#"provider_tool_output 0.1#2/provider_tool ws web_search_call {"id":"ws","type":"web_search_call","action":{"query":"q"}} @item"#,
            "part_end 0.1",
            "provider_tool_start 0.2#3/provider_tool m ask",
            r#"provider_tool_delta 0.2#3/provider_tool "{}" @item/arguments"#,
            "provider_tool_end 0.2#3/provider_tool",
            r#"provider_tool_output 0.2#3/provider_tool m mcp_call {"id":"m","type":"mcp_call","name":"ask","arguments":"{}","output":"o"} @item"#,
            "part_end 0.2",
            "media 0.3/text image - AA==",
            "provider_tool_start 0.3#4/provider_tool ig image_generation_call",
            "provider_tool_end 0.3#4/provider_tool",
            "media 0.3/text image image/png AAAA",
            "part_end 0.3",
            r#"custom mcp_list_tools {"id":"l","type":"mcp_list_tools","tools":[]} @item"#,
        ]
    );
    assert_eq!((out.ended, out.known, out.unknown, out.stated_end.as_deref()), (false, 12, 0, None));
}

// spec 2.4
#[test]
fn an_incomplete_response_says_why() {
    let (lines, out) = read(
        OpenAiResponses,
        &[
            r#"{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"Par"}"#,
            r#"{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"usage":{"input_tokens":9,"output_tokens":5,"total_tokens":14}}}"#,
        ],
    );
    assert_eq!(
        lines,
        [
            r#"content_delta 0.0/text "Par" @delta"#,
            "part_end 0.0",
            "usage in 9 out 5 | in 9 out 5 total 14",
            "finish 0 length (max_output_tokens)",
        ]
    );
    assert_eq!((out.ended, out.known, out.unknown, out.stated_end.as_deref()), (true, 2, 0, None));
}

// spec 2.4
#[test]
fn a_failure_is_one_error_and_no_finish() {
    let (lines, out) = read(
        OpenAiResponses,
        &[
            r#"{"type":"error","sequence_number":2,"error":{"type":"t","code":"insufficient_quota","message":"m"}}"#,
            r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"insufficient_quota","message":"m"},"usage":null}}"#,
        ],
    );
    assert_eq!(lines, ["error insufficient_quota m @error/message|message",]);
    assert_eq!((out.ended, out.known, out.unknown, out.stated_end.as_deref()), (true, 2, 0, Some("failed")));
}

// spec 2.10
#[test]
fn what_no_rule_fits_is_raw_and_the_stream_goes_on() {
    let (lines, out) = read(
        OpenAiResponses,
        &[
            r#"{"type":"response.brand_new"}"#,
            r#"{"type":"response.output_text.delta","delta":{"a":1}}"#,
            "7",
            r#"{"type":"keepalive"}"#,
            r#"{"type":"response.output_text.delta","delta":"Hi"}"#,
        ],
    );
    assert_eq!(
        lines,
        [
            r#"raw - {"type":"response.brand_new"}"#,
            r#"raw - {"type":"response.output_text.delta","delta":{"a":1}}"#,
            "raw - 7",
            r#"content_delta 0.0/text "Hi" @delta"#,
        ]
    );
    assert_eq!((out.ended, out.known, out.unknown, out.stated_end.as_deref()), (false, 2, 3, None));
}

use crate::{Format::Gemini, dialect::testing::read};

// spec 1.2, 3.7
#[test]
fn parts_without_an_index_are_told_apart_by_their_kind() {
    let (lines, out) = read(
        Gemini,
        &[
            r#"{"candidates":[{"content":{"parts":[{"text":"Hm","thought":true}],"role":"model"},"index":0}],"modelVersion":"gem","responseId":"r"}"#,
            r#"{"candidates":[{"content":{"parts":[{"text":"m","thought":true}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":9,"totalTokenCount":9},"modelVersion":"gem"}"#,
            r#"{"candidates":[{"content":{"parts":[{"text":"Hi"},{"text":" you"}],"role":"model"},"index":0,"safetyRatings":[1]}],"usageMetadata":{"promptTokenCount":9,"totalTokenCount":9}}"#,
            r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"a":1.0}},"thoughtSignature":"c2ln"}]},"safetyRatings":[1]}]}"#,
            r#"{"candidates":[{"content":{"parts":[{"functionCall":{"id":"own","name":"g"}},{"text":"","thoughtSignature":"end"}]},"finishReason":"STOP","groundingMetadata":{"g":1},"citationMetadata":{}}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":4,"cachedContentTokenCount":3,"thoughtsTokenCount":2,"toolUsePromptTokenCount":7,"totalTokenCount":22}}"#,
        ],
    );
    assert_eq!(
        lines,
        [
            "message_start r assistant gem",
            r#"reasoning_delta 0.0/reasoning "Hm" @candidates/0/content/parts/0/text"#,
            r#"reasoning_delta 0.0/reasoning "m" @candidates/0/content/parts/0/text"#,
            "usage in 9 | in 9 total 9",
            "part_end 0.0",
            r#"content_delta 0.1/text "Hi" @candidates/0/content/parts/0/text"#,
            r#"content_delta 0.1/text " you" @candidates/0/content/parts/1/text"#,
            "annotation 0.1/text safety [1] @candidates/0/safetyRatings",
            "part_end 0.1",
            r#"tool_call 0.2#1/arguments unnamed_call_0_1 f {"a":1.0} @candidates/0/content/parts/0/functionCall/args"#,
            "opaque 0.2#1/arguments signature c2ln @candidates/0/content/parts/0/thoughtSignature",
            "part_end 0.2",
            "tool_call 0.3#2/arguments own g  @candidates/0/content/parts/0/functionCall/args",
            "part_end 0.3",
            "opaque 0.4/text signature end @candidates/0/content/parts/1/thoughtSignature",
            r#"annotation 0.4/text grounding {"g":1} @candidates/0/groundingMetadata"#,
            "usage in 13 read 3 out 4 reasoning 2 | in 9 out 4 cached 3 reasoning 2 total 22",
            "part_end 0.4",
            "finish 0 tool_calls (STOP)",
        ]
    );
    assert_eq!((out.ended, out.known, out.unknown, out.stated_end.as_deref()), (true, 5, 0, None));
}

// spec 2.7
#[test]
fn a_finish_in_every_event_is_one_finish_after_all_text() {
    let (lines, out) = read(
        Gemini,
        &[
            r#"{"candidates":[{"content":{"parts":[{"text":"First "}]},"finishReason":"STOP","index":0}]}"#,
            r#"{"candidates":[{"content":{"parts":[{"text":"Second"}]},"finishReason":"MAX_TOKENS","index":0}]}"#,
        ],
    );
    assert_eq!(
        lines,
        [
            "message_start - assistant -",
            r#"content_delta 0.0/text "First " @candidates/0/content/parts/0/text"#,
            r#"content_delta 0.0/text "Second" @candidates/0/content/parts/0/text"#,
            "part_end 0.0",
            "finish 0 length (MAX_TOKENS)",
        ]
    );
    assert_eq!((out.ended, out.known, out.unknown, out.stated_end.as_deref()), (true, 2, 0, None));
}

// spec 1.2
#[test]
fn candidates_are_choices() {
    let (lines, out) = read(
        Gemini,
        &[
            r#"{"candidates":[{"content":{"parts":[{"text":"a"}]},"index":0},{"content":{"parts":[{"text":"b"}]},"index":1}]}"#,
            r#"{"candidates":[{"content":{"parts":[{"text":"c"}]},"index":1}]}"#,
            r#"{"candidates":[{"finishReason":"SAFETY","index":1},{"finishReason":"STOP","index":0}]}"#,
        ],
    );
    assert_eq!(
        lines,
        [
            "message_start - assistant -",
            r#"content_delta 0.0/text "a" @candidates/0/content/parts/0/text"#,
            "message_start choice 1 - assistant -",
            r#"content_delta 1.0/text "b" @candidates/1/content/parts/0/text"#,
            r#"content_delta 1.0/text "c" @candidates/0/content/parts/0/text"#,
            "part_end 0.0",
            "finish 0 stop (STOP)",
            "part_end 1.0",
            "finish 1 content_filter (SAFETY)",
        ]
    );
    assert_eq!((out.ended, out.known, out.unknown, out.stated_end.as_deref()), (true, 3, 0, None));
}

// spec 2.4
#[test]
fn a_blocked_prompt_is_a_finish_by_the_filter() {
    let (lines, out) = read(Gemini, &[r#"{"promptFeedback":{"blockReason":"SAFETY"}}"#]);
    assert_eq!(
        lines,
        [
            "message_start - assistant -",
            r#"annotation 0.0/text safety {"blockReason":"SAFETY"} @promptFeedback"#,
            "finish 0 content_filter (-)",
        ]
    );
    assert_eq!((out.ended, out.known, out.unknown, out.stated_end.as_deref()), (true, 1, 0, None));
}

// spec 2.4
#[test]
fn an_error_after_a_finish_is_an_error() {
    let (lines, out) = read(
        Gemini,
        &[
            r#"{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}]}"#,
            r#"{"error":{"code":499,"message":"off","status":"CANCELLED"}}"#,
        ],
    );
    assert_eq!(
        lines,
        [
            "message_start - assistant -",
            r#"content_delta 0.0/text "a" @candidates/0/content/parts/0/text"#,
            "error CANCELLED off @error/message",
            "part_end 0.0",
        ]
    );
    assert_eq!((out.ended, out.known, out.unknown, out.stated_end.as_deref()), (true, 2, 0, Some("STOP")));
}

// spec 2.5
#[test]
fn arguments_that_come_at_paths_become_json() {
    let (lines, out) = read(
        Gemini,
        &[
            r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","willContinue":true},"thoughtSignature":"s"}]}}]}"#,
            r#"{"candidates":[{"content":{"parts":[{"functionCall":{"partialArgs":[{"jsonPath":"$.a[0].b","stringValue":"x","willContinue":true}],"willContinue":true}}]}}]}"#,
            r#"{"candidates":[{"content":{"parts":[{"functionCall":{"partialArgs":[{"jsonPath":"$.a[0].b","stringValue":"\""}],"willContinue":true}}]}}]}"#,
            r#"{"candidates":[{"content":{"parts":[{"functionCall":{"willContinue":true}}]}}]}"#,
            r#"{"candidates":[{"content":{"parts":[{"functionCall":{"partialArgs":[{"jsonPath":"broken"},{"jsonPath":"$.c","numberValue":2}],"willContinue":true}}]}}]}"#,
            r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"g","willContinue":true}}]}}]}"#,
            r#"{"candidates":[{"content":{"parts":[{"functionCall":{}}]},"finishReason":"STOP"}]}"#,
        ],
    );
    assert_eq!(
        lines,
        [
            "message_start - assistant -",
            "tool_call_start 0.0#1/arguments unnamed_call_0_1 f",
            "opaque 0.0#1/arguments signature s @candidates/0/content/parts/0/thoughtSignature",
            r#"tool_call_delta 0.0#1/arguments "{\"a\":[{\"b\":\"x""#,
            r#"tool_call_delta 0.0#1/arguments "\\\"\"""#,
            r#"custom partialArgs {"jsonPath":"broken"} @candidates/0/content/parts/0/functionCall/partialArgs/0"#,
            r#"tool_call_delta 0.0#1/arguments "}],\"c\":2""#,
            r#"tool_call_delta 0.0#1/arguments "}""#,
            "tool_call_end 0.0#1/arguments",
            "part_end 0.0",
            "tool_call_start 0.1#2/arguments unnamed_call_0_2 g",
            "tool_call_end 0.1#2/arguments",
            "part_end 0.1",
            "finish 0 tool_calls (STOP)",
        ]
    );
    assert_eq!((out.ended, out.known, out.unknown, out.stated_end.as_deref()), (true, 7, 0, None));
}

// spec 1.2
#[test]
fn what_the_provider_runs_and_shows_is_kept() {
    let (lines, out) = read(
        Gemini,
        &[
            r#"{"candidates":[{"content":{"parts":[{"executableCode":{"language":"PYTHON","code":"1+1","id":"x"},"thoughtSignature":"s"},{"text":""}]}}]}"#,
            r#"{"candidates":[{"content":{"parts":[{"codeExecutionResult":{"output":"2","id":"x"}}]}}]}"#,
            r#"{"candidates":[{"content":{"parts":[{"toolCall":{"toolType":"FILE_SEARCH","id":"y"}},{"toolResponse":{"id":"y"}}]}}]}"#,
            r#"{"candidates":[{"content":{"parts":[{"inlineData":{"mimeType":"image/png","data":"AA=="}},{"fileData":{"mimeType":"application/pdf","fileUri":"gs://x"}},{"brandNew":1}]}}]}"#,
        ],
    );
    assert_eq!(
        lines,
        [
            "message_start - assistant -",
            r#"provider_tool_delta 0.0#1/provider_tool "1+1" @candidates/0/content/parts/0/executableCode/code"#,
            "provider_tool_end 0.0#1/provider_tool",
            "opaque 0.0#1/provider_tool signature s @candidates/0/content/parts/0/thoughtSignature",
            "part_end 0.0",
            r#"provider_tool_output 0.0#1/provider_tool x codeExecutionResult {"output":"2","id":"x"} @candidates/0/content/parts/0/codeExecutionResult"#,
            r#"custom toolCall {"toolType":"FILE_SEARCH","id":"y"} @candidates/0/content/parts/0/toolCall"#,
            "part_end 0.1",
            r#"provider_tool_output 0.1#2/provider_tool y toolResponse {"id":"y"} @candidates/0/content/parts/1/toolResponse"#,
            "media 0.2/text image image/png AA==",
            "part_end 0.2",
            "media 0.3/text file application/pdf gs://x",
            "part_end 0.3",
            r#"custom part {"brandNew":1} @candidates/0/content/parts/2"#,
        ]
    );
    assert_eq!((out.ended, out.known, out.unknown, out.stated_end.as_deref()), (false, 4, 0, None));
}

// spec 2.10
#[test]
fn what_no_rule_fits_is_raw_and_the_stream_goes_on() {
    let (lines, out) = read(
        Gemini,
        &[
            r#"{"choices":[]}"#,
            r#"{"candidates":7}"#,
            r#"{"candidates":[{"content":{"parts":[{"text":"Hi"}]}}],"usageMetadata":[]}"#,
        ],
    );
    assert_eq!(
        lines,
        [
            r#"raw - {"choices":[]}"#,
            r#"raw - {"candidates":7}"#,
            "message_start - assistant -",
            r#"content_delta 0.0/text "Hi" @candidates/0/content/parts/0/text"#,
        ]
    );
    assert_eq!((out.ended, out.known, out.unknown, out.stated_end.as_deref()), (false, 1, 2, None));
}

// spec 2.10
#[test]
fn one_malformed_piece_leaves_the_others_readable() {
    let (lines, _) = read(
        Gemini,
        &[
            r#"{"candidates":[{"content":{"parts":[{"text":"a"},{"text":7},{"thoughtSignature":{}},{"inlineData":{"data":1}},{"text":"b"}]}}]}"#,
            r#"{"candidates":[{"content":7},{"index":0,"content":{"parts":[{"text":"c"}]},"finishReason":"STOP"}]}"#,
        ],
    );
    assert_eq!(
        lines,
        [
            "message_start - assistant -",
            "content_delta 0.0/text \"a\" @candidates/0/content/parts/0/text",
            r#"custom part {"text":7} @candidates/0/content/parts/1"#,
            r#"custom part {"thoughtSignature":{}} @candidates/0/content/parts/2"#,
            r#"custom media {"data":1} @candidates/0/content/parts/3/inlineData|candidates/0/content/parts/3/fileData"#,
            "content_delta 0.0/text \"b\" @candidates/0/content/parts/4/text",
            r#"custom candidate {"content":7} @candidates/0"#,
            "content_delta 0.0/text \"c\" @candidates/1/content/parts/0/text",
            "part_end 0.0",
            "finish 0 stop (STOP)",
        ],
    );
}

use crate::{Format::BedrockInvoke, dialect::testing::named};

// spec 2.1
#[test]
fn the_first_payload_tells_the_model_s_format() {
    let (lines, out) = named(
        BedrockInvoke,
        &[
            (
                "chunk",
                r#"{"bytes":"eyJ0eXBlIjoiY29udGVudF9ibG9ja19kZWx0YSIsImluZGV4IjowLCJkZWx0YSI6eyJ0eXBlIjoidGV4dF9kZWx0YSIsInRleHQiOiJIaSJ9fQ==","p":"abc"}"#,
            ),
            (
                "chunk",
                r#"{"bytes":"eyJ0eXBlIjoibWVzc2FnZV9kZWx0YSIsImRlbHRhIjp7InN0b3BfcmVhc29uIjoiZW5kX3R1cm4ifSwidXNhZ2UiOnsib3V0cHV0X3Rva2VucyI6Mn19","p":"abc"}"#,
            ),
            (
                "chunk",
                r#"{"bytes":"eyJ0eXBlIjoibWVzc2FnZV9zdG9wIiwiYW1hem9uLWJlZHJvY2staW52b2NhdGlvbk1ldHJpY3MiOnsiaW5wdXRUb2tlbkNvdW50Ijo1LCJvdXRwdXRUb2tlbkNvdW50IjoyfX0=","p":"abc"}"#,
            ),
        ],
    );
    assert_eq!(
        lines,
        [
            r#"content_delta 0.0/text "Hi" @delta/text"#,
            "usage out 2 | out 2",
            "part_end 0.0",
            "finish 0 stop (end_turn)",
            "usage in 5 out 2 | in 5 out 2",
        ]
    );
    assert_eq!((out.ended, out.known, out.unknown, out.stated_end.as_deref()), (true, 3, 0, None));
}

// spec 2.1
#[test]
fn models_that_stream_text_only_are_read() {
    let (lines, out) = named(
        BedrockInvoke,
        &[
            (
                "chunk",
                r#"{"bytes":"eyJnZW5lcmF0aW9uIjoiSGkiLCJwcm9tcHRfdG9rZW5fY291bnQiOjUsImdlbmVyYXRpb25fdG9rZW5fY291bnQiOjEsInN0b3BfcmVhc29uIjpudWxsfQ==","p":"abc"}"#,
            ),
            (
                "chunk",
                r#"{"bytes":"eyJnZW5lcmF0aW9uIjoiIiwicHJvbXB0X3Rva2VuX2NvdW50IjpudWxsLCJnZW5lcmF0aW9uX3Rva2VuX2NvdW50IjoyLCJzdG9wX3JlYXNvbiI6InN0b3AiLCJhbWF6b24tYmVkcm9jay1pbnZvY2F0aW9uTWV0cmljcyI6eyJpbnB1dFRva2VuQ291bnQiOjUsIm91dHB1dFRva2VuQ291bnQiOjJ9fQ==","p":"abc"}"#,
            ),
            ("chunk", r#"{"bytes":"eyJvdXRwdXRzIjpbeyJ0ZXh0IjoiYSIsInN0b3BfcmVhc29uIjoibGVuZ3RoIn1dfQ==","p":"abc"}"#),
            ("chunk", r#"{"bytes":"eyJvdXRwdXRUZXh0IjoiYiIsImNvbXBsZXRpb25SZWFzb24iOm51bGx9","p":"abc"}"#),
            ("chunk", r#"{"bytes":"eyJ0ZXh0IjoiYyIsImlzX2ZpbmlzaGVkIjpmYWxzZX0=","p":"abc"}"#),
            ("chunk", r#"{"bytes":"eyJicmFuZCI6Im5ldyJ9","p":"abc"}"#),
        ],
    );
    assert_eq!(
        lines,
        [
            r#"content_delta 0.0/text "Hi""#,
            "part_end 0.0",
            "finish 0 stop (stop)",
            "usage in 5 out 2 | in 5 out 2",
            r#"content_delta 0.1/text "a""#,
            r#"content_delta 0.1/text "b""#,
            r#"content_delta 0.1/text "c""#,
            r#"raw - {"brand":"new"}"#,
        ]
    );
    assert_eq!((out.ended, out.known, out.unknown, out.stated_end.as_deref()), (true, 5, 1, None));
}

// spec 2.4
#[test]
fn an_exception_is_an_error() {
    let (lines, out) = named(
        BedrockInvoke,
        &[
            (
                "chunk",
                r#"{"bytes":"eyJ0eXBlIjoiY29udGVudF9ibG9ja19kZWx0YSIsImluZGV4IjowLCJkZWx0YSI6eyJ0eXBlIjoidGV4dF9kZWx0YSIsInRleHQiOiJIYWwifX0=","p":"abc"}"#,
            ),
            ("modelStreamErrorException", r#"{"message":"boom","originalStatusCode":500}"#),
        ],
    );
    assert_eq!(
        lines,
        [r#"content_delta 0.0/text "Hal" @delta/text"#, "error modelStreamErrorException boom @message",]
    );
    assert_eq!((out.ended, out.known, out.unknown, out.stated_end.as_deref()), (false, 2, 0, None));
}

// spec 2.10
#[test]
fn what_cannot_be_unwrapped_is_raw() {
    let (lines, out) = named(
        BedrockInvoke,
        &[
            ("chunk", r#"{"bytes":"?"}"#),
            ("chunk", r#"{"bytes":"/w=="}"#),
            ("chunk", "{}"),
            ("chunk", "nope"),
            ("chunk", r#"{"bytes":"bm9wZQ==","p":"abc"}"#),
            (
                "",
                r#"{"chunk":{"bytes":"eyJjb250ZW50QmxvY2tEZWx0YSI6eyJjb250ZW50QmxvY2tJbmRleCI6MCwiZGVsdGEiOnsidGV4dCI6IkhpIn19fQ=="}}"#,
            ),
        ],
    );
    assert_eq!(
        lines,
        [
            r#"raw chunk {"bytes":"?"}"#,
            r#"raw chunk {"bytes":"/w=="}"#,
            "raw chunk {}",
            "raw chunk nope",
            r#"raw chunk {"bytes":"bm9wZQ==","p":"abc"}"#,
            r#"content_delta 0.0/text "Hi" @contentBlockDelta/delta/text"#,
        ]
    );
    assert_eq!((out.ended, out.known, out.unknown, out.stated_end.as_deref()), (false, 1, 5, None));
}

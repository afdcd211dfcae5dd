//! The binary fixtures of examples/streams: Bedrock's event streams cannot be written by hand, so they are made here.

use std::path::PathBuf;

use crate::run::{Result, root};

/// Converse: a sentence before a tool call, then the call.
const CONVERSE: &[(&str, &str)] = &[
    ("messageStart", r#"{"p":"abcdefgh","role":"assistant"}"#),
    ("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"text":"Of course, Jonas."},"p":"abcdefghijk"}"#),
    ("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"text":" Let me look up"},"p":"abcdefghijklmno"}"#),
    ("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"text":" that invoice – one moment."},"p":"abc"}"#),
    ("contentBlockStop", r#"{"contentBlockIndex":0,"p":"abcdefghijklmnopq"}"#),
    (
        "contentBlockStart",
        r#"{"contentBlockIndex":1,"p":"abcd","start":{"toolUse":{"name":"find_invoice","toolUseId":"tooluse_support_0001"}}}"#,
    ),
    ("contentBlockDelta", r#"{"contentBlockIndex":1,"delta":{"toolUse":{"input":""}},"p":"abcdefghij"}"#),
    ("contentBlockDelta", r#"{"contentBlockIndex":1,"delta":{"toolUse":{"input":"{\"customer\":"}},"p":"abcde"}"#),
    ("contentBlockDelta", r#"{"contentBlockIndex":1,"delta":{"toolUse":{"input":" \"C-2207\", "}},"p":"ab"}"#),
    ("contentBlockDelta", r#"{"contentBlockIndex":1,"delta":{"toolUse":{"input":"\"month\": 11}"}},"p":"abcdefg"}"#),
    ("contentBlockStop", r#"{"contentBlockIndex":1,"p":"abcdefghijklm"}"#),
    ("messageStop", r#"{"p":"abcdefghijklmnopqrst","stopReason":"tool_use"}"#),
    (
        "metadata",
        r#"{"metrics":{"latencyMs":812},"p":"abcdef","usage":{"inputTokens":412,"outputTokens":57,"totalTokens":469}}"#,
    ),
];

/// InvokeModel: a model's own events, each in base64.
const INVOKE: &[&str] = &[
    r#"{"type":"message_start","message":{"id":"msg_bdrk_support_0001","type":"message","role":"assistant","model":"claude-support-demo","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":38,"output_tokens":2}}}"#,
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"You can change"}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" the delivery address"}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" until the parcel leaves"}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" our warehouse. 📦"}}"#,
    r#"{"type":"content_block_stop","index":0}"#,
    r#"{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":21}}"#,
    r#"{"type":"message_stop","amazon-bedrock-invocationMetrics":{"inputTokenCount":38,"outputTokenCount":21,"invocationLatency":640,"firstByteLatency":212}}"#,
];

pub(crate) fn write() -> Result {
    for (path, bytes) in all() {
        std::fs::write(&path, bytes).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        println!("wrote {}", path.display());
    }
    Ok(())
}

pub(crate) fn check() -> Result {
    for (path, bytes) in all() {
        if std::fs::read(&path).ok().as_deref() != Some(&bytes[..]) {
            return Err(format!("{} is not what its generator makes; run `cargo xtask fixtures`", path.display()));
        }
    }
    println!("ok   the binary fixtures are what their generator makes");
    Ok(())
}

fn all() -> [(PathBuf, Vec<u8>); 2] {
    let converse = CONVERSE.iter().flat_map(|(kind, payload)| message(kind, payload)).collect();
    let invoke = INVOKE.iter().zip(1..).flat_map(|(event, n)| {
        // The service pads its messages so that their size tells nothing about the text.
        let padding = &"abcdefghijklmnopqrstuvwxyz"[..(n * 7) % 26];
        message("chunk", &format!(r#"{{"bytes":"{}","p":"{padding}"}}"#, base64(event.as_bytes())))
    });
    let folder = root().join("examples/streams");
    [
        (folder.join("support-chat.bedrock-converse.bin"), converse),
        (folder.join("support-chat.bedrock-invoke.bin"), invoke.collect()),
    ]
}

/// One message of `application/vnd.amazon.eventstream`: lengths, their checksum, headers, payload, checksum of all.
fn message(event_type: &str, payload: &str) -> Vec<u8> {
    let mut headers = Vec::new();
    for (name, value) in
        [(":event-type", event_type), (":content-type", "application/json"), (":message-type", "event")]
    {
        headers.push(u8::try_from(name.len()).expect("our header names are short"));
        headers.extend(name.as_bytes());
        headers.push(7); // a string
        headers.extend(u16::try_from(value.len()).expect("our header values are short").to_be_bytes());
        headers.extend(value.as_bytes());
    }
    let length = |n: usize| u32::try_from(n).expect("our messages are short").to_be_bytes();
    let mut message = Vec::new();
    message.extend(length(16 + headers.len() + payload.len()));
    message.extend(length(headers.len()));
    message.extend(crc32(&message).to_be_bytes());
    message.extend(&headers);
    message.extend(payload.as_bytes());
    message.extend(crc32(&message).to_be_bytes());
    message
}

/// CRC-32 as in IEEE 802.3, bit by bit: slow, and small enough to check by eye.
fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for &byte in bytes {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0xEDB8_8320 } else { crc >> 1 };
        }
    }
    !crc
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let word = (0..3).fold(0, |word, i| word << 8 | u32::from(group.get(i).copied().unwrap_or(0)));
        for i in 0..4 {
            let digit = ALPHABET[(word >> (18 - 6 * i)) as usize & 63];
            text.push(if i <= group.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_of_the_standard_test_input_is_right() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
    }

    #[test]
    fn base64_pads_to_four_digits() {
        for (bytes, expected) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")] {
            assert_eq!(base64(bytes.as_bytes()), expected, "{bytes}");
        }
    }

    #[test]
    fn a_message_says_its_own_length() {
        let message = message("messageStart", "{}");
        assert_eq!(message[..4], u32::try_from(message.len()).unwrap().to_be_bytes());
        assert_eq!(message[message.len() - 6..message.len() - 4], *b"{}");
    }
}

//! A pull reader of JSON, for the events that come by the thousand.
//!
//! One pass, no values built, nothing copied but text with escapes. Every step gives `None` where the JSON is not what was asked for, or
//! no JSON: the caller then reads the event the general way. So what is accepted here must be JSON; what is refused may still be.

use super::read::Str;

/// Reads one JSON text from its beginning.
#[derive(Debug)]
pub(super) struct Pull<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Pull<'a> {
    /// Deeper values are refused.
    const DEEPEST: u32 = 64;

    /// Begins at the text's first object.
    pub(super) fn object(text: &'a str) -> Option<Self> {
        let mut pull = Self { text, at: 0 };
        pull.open(b'{')?;
        Some(pull)
    }

    /// Enters the object or list that is the next value.
    pub(super) fn open(&mut self, bracket: u8) -> Option<()> {
        self.space();
        self.take(bracket)
    }

    /// The next key of the object, or `Some(None)` at its end, which is passed. `first` says that nothing of it was read yet.
    #[inline]
    pub(super) fn key(&mut self, first: &mut bool) -> Option<Option<&'a str>> {
        if !self.more(first, b'}')? {
            return Some(None);
        }
        let key = self.word()?;
        self.space();
        self.take(b':')?;
        Some(Some(key))
    }

    /// Whether the object or list that ends with this bracket goes on. Passes the comma, or the bracket.
    #[inline]
    pub(super) fn more(&mut self, first: &mut bool, bracket: u8) -> Option<bool> {
        self.space();
        if self.peek()? == bracket {
            self.at += 1;
            return Some(false);
        }
        if !std::mem::take(first) {
            self.take(b',')?;
            self.space();
        }
        Some(true)
    }

    /// The object or list that ends with this bracket holds nothing more.
    pub(super) fn at_end(&mut self, first: &mut bool, bracket: u8) -> Option<()> {
        (!self.more(first, bracket)?).then_some(())
    }

    /// The text holds nothing more.
    pub(super) fn end(&mut self) -> Option<()> {
        self.space();
        (self.at == self.text.len()).then_some(())
    }

    /// A string without escapes: keys, types, ids.
    #[inline]
    pub(super) fn word(&mut self) -> Option<&'a str> {
        self.space();
        self.take(b'"')?;
        let start = self.at;
        self.at += plain_len(self.text.as_bytes().get(start..)?);
        self.take(b'"')?;
        self.text.get(start..self.at - 1)
    }

    /// A string without escapes, or null.
    pub(super) fn word_or_null(&mut self) -> Option<Option<&'a str>> {
        self.space();
        match self.peek()? {
            b'n' => self.literal("null").map(|()| None),
            _ => self.word().map(Some),
        }
    }

    /// A string.
    pub(super) fn string(&mut self) -> Option<Str<'a>> {
        self.space();
        let start = self.at;
        if let Some(word) = self.word() {
            return Some(Str::Borrowed(word));
        }
        self.at = start;
        self.take(b'"')?;
        self.pass_string()?;
        serde_json::from_str(self.text.get(start..self.at)?).ok()
    }

    /// A string, or null.
    pub(super) fn string_or_null(&mut self) -> Option<Str<'a>> {
        self.null().map(|()| Str::Unstated).or_else(|| self.string())
    }

    /// Null.
    pub(super) fn null(&mut self) -> Option<()> {
        self.space();
        self.literal("null")
    }

    /// A value of any kind, as its JSON.
    pub(super) fn raw(&mut self) -> Option<&'a str> {
        self.space();
        let start = self.at;
        self.skip()?;
        self.text.get(start..self.at)
    }

    /// True or false.
    pub(super) fn flag(&mut self) -> Option<bool> {
        self.space();
        self.literal("true").map(|()| true).or_else(|| self.literal("false").map(|()| false))
    }

    /// A count.
    pub(super) fn count(&mut self) -> Option<u64> {
        self.space();
        let start = self.at;
        let mut count = 0_u64;
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            count = count.checked_mul(10)?.checked_add(u64::from(digit - b'0'))?;
            self.at += 1;
        }
        let is_count = self.at == start + 1 || (self.at > start && self.text.as_bytes()[start] != b'0');
        (is_count && !matches!(self.peek(), Some(b'.' | b'e' | b'E'))).then_some(count)
    }

    /// Passes a value of any kind.
    pub(super) fn skip(&mut self) -> Option<()> {
        // One bit for each bracket that is open: whether it is that of an object.
        let mut objects = 0_u64;
        let mut depth = 0_u32;
        loop {
            self.space();
            let mut first = false;
            match self.peek()? {
                b'"' => {
                    self.at += 1;
                    self.pass_string()?;
                }
                bracket @ (b'{' | b'[') => {
                    if depth == Self::DEEPEST {
                        return None;
                    }
                    self.at += 1;
                    depth += 1;
                    objects = objects << 1 | u64::from(bracket == b'{');
                    first = true;
                }
                b't' => self.literal("true")?,
                b'f' => self.literal("false")?,
                b'n' => self.literal("null")?,
                _ => self.number()?,
            }
            // Closes what ends here, and goes to the next value.
            loop {
                if depth == 0 {
                    return Some(());
                }
                let in_object = objects & 1 == 1;
                if self.more(&mut first, if in_object { b'}' } else { b']' })? {
                    if in_object {
                        self.take(b'"')?;
                        self.pass_string()?;
                        self.space();
                        self.take(b':')?;
                    }
                    break;
                }
                objects >>= 1;
                depth -= 1;
            }
        }
    }

    #[inline]
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    #[inline]
    fn take(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    #[inline]
    fn space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn literal(&mut self, word: &str) -> Option<()> {
        self.text.as_bytes().get(self.at..)?.starts_with(word.as_bytes()).then(|| self.at += word.len())
    }

    fn number(&mut self) -> Option<()> {
        let _ = self.take(b'-');
        match self.peek()? {
            b'0' => self.at += 1,
            _ => self.digits()?,
        }
        if self.take(b'.').is_some() {
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        Some(())
    }

    fn digits(&mut self) -> Option<()> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        (self.at > start).then_some(())
    }

    /// Passes the rest of a string and its last quote.
    fn pass_string(&mut self) -> Option<()> {
        loop {
            self.at += plain_len(self.text.as_bytes().get(self.at..)?);
            match self.peek()? {
                b'"' => {
                    self.at += 1;
                    return Some(());
                }
                b'\\' => {
                    self.at += 1;
                    match self.peek()? {
                        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => self.at += 1,
                        b'u' => {
                            let digits = self.text.as_bytes().get(self.at + 1..self.at + 5)?;
                            if !digits.iter().all(u8::is_ascii_hexdigit) {
                                return None;
                            }
                            self.at += 5;
                        }
                        _ => return None,
                    }
                }
                _ => return None,
            }
        }
    }
}

/// How many bytes come before the first quote, backslash or control character. Eight at a time.
#[inline]
fn plain_len(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES * 0x80;
    let (words, _) = bytes.as_chunks::<8>();
    let mut len = 0;
    for word in words {
        let word = u64::from_le_bytes(*word);
        // A byte gets its high bit where it is zero in the first two, and below 0x20 in the third. A borrow can only set bits above the
        // first hit, which is the one that counts.
        let zero = |word: u64| word.wrapping_sub(ONES) & !word;
        let quote = zero(word ^ (ONES * u64::from(b'"')));
        let backslash = zero(word ^ (ONES * u64::from(b'\\')));
        let control = word.wrapping_sub(ONES * 0x20) & !word;
        let hits = (quote | backslash | control) & HIGH;
        if hits != 0 {
            return len + hits.trailing_zeros() as usize / 8;
        }
        len += 8;
    }
    let rest = bytes[len..].iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20));
    len + rest.unwrap_or(bytes.len() - len)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::de::IgnoredAny;

    use super::*;
    use crate::{Format, dialect::testing::named};

    /// Events that are read in one pass are read the same in the general way, which an escape in a key leads to.
    #[test]
    fn both_ways_of_reading_an_event_agree() {
        use Format::*;
        let cases: &[(Format, &str, &str, &[&str])] = &[
            (
                OpenAiChat,
                "",
                "delta",
                &[
                    r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""}},{"index":1,"delta":{"role":"assistant"}}],"id":"c","model":"m"}"#,
                    r#"{"id":"c","model":"m","choices":[{"index":0,"delta":{"content":"a\n","refusal":null,"token_id":7},"logprobs":null,"finish_reason":null}],"usage":null}"#,
                    r#"{"choices":[{"index":1,"delta":{"content":"b","reasoning":"r","reasoning_content":"r","reasoning_details":[],"tool_calls":null},"content_filter_results":{"hate":{"filtered":false}}}]}"#,
                    r#"{"choices":[{"index":0,"text":"c","delta":{"role":"assistant","content":"c"},"seed":1}]}"#,
                    r#"{"choices":[{"index":0,"delta":{"refusal":"no"}}],"obfuscation":"x"}"#,
                    r#"{"choices":[{"index":0,"delta":{"content":"d","tool_calls":[{"index":0,"id":"i","function":{"name":"f"}}]}}]}"#,
                    r#"{"choices":[{"index":0,"delta":{"content":"e","annotations":[{"x":1}]},"logprobs":{"content":[{"token":"e"}]}}]}"#,
                    r#"{"choices":[{"index":0,"delta":{"content":"f"},"content_filter_results":{"hate":{"filtered":true}}}]}"#,
                    r#"{"choices":[{"index":0,"delta":{"content":"g"},"message":{"content":"abc"}}],"citations":["u"]}"#,
                    r#"{"choices":[{"index":0,"delta":{"content":"h"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1}}"#,
                    r#"{"choices":[{"index":0,"delta":{"content":"i"}},{"index":1,"delta":{"content":"j"}}]}"#,
                    r#"{"choices":[{"index":2,"delta":{"content":"new"}}]}"#,
                    r#"{"choices":[{"index":0,"delta":{"content":"k"},"error":{"code":"x"}}]}"#,
                ],
            ),
            (
                OpenAiCompletions,
                "",
                "text",
                &[
                    r#"{"choices":[{"text":"a","index":0}]}"#,
                    r#"{"choices":[{"text":"b","index":0,"logprobs":null,"finish_reason":null}],"model":"m"}"#,
                    r#"{"choices":[{"text":"c","index":0,"logprobs":{"tokens":["c"]},"finish_reason":"length"}]}"#,
                ],
            ),
            (
                CohereV2,
                "",
                "delta",
                &[
                    r#"{"type":"content-start","index":3,"delta":{"message":{"content":{"type":"thinking","thinking":""}}}}"#,
                    r#"{"type":"content-delta","index":3,"delta":{"message":{"content":{"thinking":"hm"}}}}"#,
                    r#"{"index":4,"delta":{"message":{"content":{"text":"a\"b"}}},"type":"content-delta"}"#,
                    r#"{"type":"content-delta","index":4,"delta":{"message":{"content":{"text":"c"}}},"logprobs":{}}"#,
                    r#"{"type":"tool-plan-delta","delta":{"message":{"tool_plan":"p"}}}"#,
                ],
            ),
            (
                Ollama,
                "",
                "done",
                &[
                    r#"{"model":"m","message":{"role":"assistant","content":"a"},"done":false}"#,
                    r#"{"model":"m","created_at":"t","message":{"role":"assistant","content":"b\n"},"done":false}"#,
                    r#"{"message":{"content":"","thinking":"hm"},"done":false}"#,
                    r#"{"message":{"content":"c","thinking":"d"},"done":false}"#,
                    r#"{"response":"e","done":false}"#,
                    r#"{"response":"","thinking":"f","done":false}"#,
                    r#"{"response":"g","done":false,"logprobs":[{"token":"g"}]}"#,
                    r#"{"message":{"content":"h"},"done":true,"done_reason":"stop","eval_count":1}"#,
                ],
            ),
            (
                AnthropicMessages,
                "",
                "delta",
                &[
                    r#"{"type":"content_block_start","index":7,"content_block":{"type":"tool_use","id":"t","name":"f"}}"#,
                    r#"{"type":"content_block_delta","index":7,"delta":{"type":"input_json_delta","partial_json":"{\"a"}}"#,
                    r#"{"type":"content_block_delta","index":7,"delta":{"type":"input_json_delta","partial_json":""}}"#,
                    r#"{"type":"content_block_delta","index":1,"delta":{"text":"a\nb","type":"text_delta"} } "#,
                    r#"{"type":"content_block_delta","index":2,"delta":{"type":"thinking_delta","thinking":"hm"}}"#,
                    r#"{"type":"content_block_delta","index":9,"delta":{"type":"input_json_delta","partial_json":"no call"}}"#,
                ],
            ),
            (
                ClaudeCode,
                "",
                "event",
                &[
                    r#"{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}},"parent_tool_use_id":null,"uuid":"u"}"#,
                    r#"{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"b"}},"parent_tool_use_id":"t"}"#,
                ],
            ),
            (
                OpenAiResponses,
                "",
                "delta",
                &[
                    r#"{"type":"response.output_text.delta","output_index":1,"content_index":2,"delta":"a\u00e9","logprobs":[],"item_id":"i"}"#,
                    r#"{"delta":"b","output_index":1,"summary_index":1,"type":"response.reasoning_summary_text.delta"}"#,
                    r#"{"type":"response.function_call_arguments.delta","output_index":3,"delta":"{}"}"#,
                    r#"{"type":"response.refusal.delta","delta":""}"#,
                ],
            ),
            (
                Gemini,
                "",
                "text",
                &[
                    r#"{"candidates":[{"content":{"parts":[{"text":"a"}],"role":"model"}}],"modelVersion":"m"}"#,
                    r#"{"candidates":[{"content":{"parts":[{"text":"b\t","thought":false}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":2,"totalTokenCount":3,"details":[{}]}}"#,
                    r#"{"candidates":[{"content":{"parts":[{"thought":true,"text":"c"}]}}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":2,"totalTokenCount":3}}"#,
                    r#"{"candidates":[{"content":{"parts":[{"text":""}]}}],"usageMetadata":{"thoughtsTokenCount":4,"toolUsePromptTokenCount":5,"cachedContentTokenCount":6}}"#,
                    r#"{"candidates":[{"content":{"parts":[{"text":"d"}]},"index":3}]}"#,
                ],
            ),
            (
                BedrockConverse,
                "contentBlockDelta",
                "delta",
                &[
                    r#"{"contentBlockIndex":0,"delta":{"text":"a\n"},"p":"ab"}"#,
                    r#"{"contentBlockIndex":1,"delta":{"reasoningContent":{"text":"b"}}}"#,
                    r#"{"contentBlockIndex":2,"delta":{"toolUse":{"input":"no call"}}}"#,
                ],
            ),
            (
                AgUi,
                "",
                "delta",
                &[
                    r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"a\"","rawEvent":{"x":[1,"\u0041"]}}"#,
                    r#"{"message_id":"r","delta":"b","type":"REASONING_MESSAGE_CONTENT","timestamp":1.5}"#,
                    r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"c"}"#,
                ],
            ),
        ];
        for (format, name, key, events) in cases {
            let disguised: Vec<String> = events
                .iter()
                .map(|event| {
                    event.replace(&format!("\"{key}\":"), &format!("\"\\u{:04x}{}\":", key.as_bytes()[0], &key[1..]))
                })
                .collect();
            let plain: Vec<(&str, &str)> = events.iter().map(|event| (*name, *event)).collect();
            let general: Vec<(&str, &str)> = disguised.iter().map(|event| (*name, event.as_str())).collect();
            let disguised = plain.iter().zip(&general).filter(|(one, other)| one != other).count();
            assert!(disguised + 1 >= events.len(), "{format}");
            let (lines, out) = named(*format, &plain);
            let (general_lines, general_out) = named(*format, &general);
            let without_raw =
                |lines: &[String]| lines.iter().filter(|line| !line.starts_with("raw")).cloned().collect::<Vec<_>>();
            assert_eq!(without_raw(&lines), without_raw(&general_lines), "{format}");
            assert_eq!((out.known, out.unknown), (general_out.known, general_out.unknown), "{format}");
        }
    }

    fn skips(text: &str) -> bool {
        let mut pull = Pull { text, at: 0 };
        pull.skip().and_then(|()| pull.end()).is_some()
    }

    #[test]
    fn an_object_is_read_member_by_member() {
        let mut pull = Pull::object(r#" { "a" : 12 , "b":{"c":"x\ny","d":[1, 2]} , "e":"" } "#).unwrap();
        let mut seen = Vec::new();
        let mut first = true;
        while let Some(key) = pull.key(&mut first).unwrap() {
            seen.push(match key {
                "a" => pull.count().unwrap().to_string(),
                "b" => {
                    pull.open(b'{').unwrap();
                    let mut first = true;
                    assert_eq!(pull.key(&mut first), Some(Some("c")));
                    let text = pull.string().unwrap();
                    assert_eq!(pull.key(&mut first), Some(Some("d")));
                    pull.skip().unwrap();
                    assert_eq!(pull.key(&mut first), Some(None));
                    text.as_str().to_owned()
                }
                _ => pull.word().unwrap().to_owned(),
            });
        }
        pull.end().unwrap();
        assert_eq!(seen, ["12", "x\ny", ""]);
    }

    #[test]
    fn what_is_no_json_is_refused() {
        for text in [
            "",
            "{",
            "}",
            "[1,]",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,}",
            "{,}",
            "01",
            "1.",
            "-",
            "1e",
            "tru",
            "\"",
            "\"\\x\"",
            "\"\\u12g4\"",
            "\"a\nb\"",
            "[1 2]",
            "1 2",
            "{a:1}",
            "[}",
        ] {
            assert!(!skips(text), "{text}");
            assert!(serde_json::from_str::<IgnoredAny>(text).is_err(), "{text}");
        }
        for text in ["012", "-1", "1.0", "1e2", "18446744073709551616", "x", ""] {
            assert_eq!(Pull { text, at: 0 }.count(), None, "{text}");
        }
    }

    #[test]
    fn values_that_are_too_deep_are_refused() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(skips(&nested(64)));
        assert!(!skips(&nested(65)));
    }

    #[test]
    fn text_ends_at_the_first_special_byte_wherever_it_stands() {
        for special in ['"', '\\', '\u{1f}', '\0', '\n'] {
            for before in 0..20 {
                let text = format!(
                    "{}{special}{}",
                    "ü\u{7f}!#[]".chars().cycle().take(before).collect::<String>(),
                    "\"\\\0x".repeat(5)
                );
                assert_eq!(plain_len(text.as_bytes()), text.find(special).unwrap(), "{text:?}");
            }
        }
        assert_eq!(plain_len("no end at all".as_bytes()), 13);
    }

    fn json_like() -> impl Strategy<Value = String> {
        const PIECES: &[&str] = &[
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            "\"a\"",
            "\"\\n\"",
            "\"",
            "\\",
            "1",
            "-0.5e+1",
            "0",
            "true",
            "false",
            "null",
            " ",
            "é",
            "\"\\ud83d\"",
        ];
        prop_oneof![
            prop::collection::vec(prop::sample::select(PIECES), 0..12).prop_map(|pieces| pieces.concat()),
            any::<String>(),
        ]
    }

    proptest! {
        #[test]
        fn what_is_accepted_is_json(text in json_like()) {
            // Lone surrogates are skipped by both, and refused by both where they are read.
            prop_assert_eq!(skips(&text), serde_json::from_str::<IgnoredAny>(&text).is_ok());
        }

        #[test]
        fn strings_are_read_as_serde_json_reads_them(text in any::<String>()) {
            let json = serde_json::to_string(&text).unwrap();
            let mut pull = Pull { text: &json, at: 0 };
            let read = pull.string().unwrap();
            prop_assert_eq!(read.as_str(), text.as_str());
        }
    }
}

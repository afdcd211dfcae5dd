//! One JSON object in text that arrives in pieces: where it ends, or that it is none.

/// How far an object is read. Each byte is looked at once.
#[derive(Debug, Clone)]
pub(super) struct ObjectScan {
    /// What is open, `true` for an object and `false` for an array.
    open: Vec<bool>,
    next: Next,
    /// Bytes read.
    read: usize,
}

/// What may come next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// The object itself.
    Start,
    Value,
    ValueOrEnd,
    Key,
    KeyOrEnd,
    Colon,
    CommaOrEnd,
    /// The rest of a string; whether it is a key.
    String {
        key: bool,
    },
    Escape {
        key: bool,
    },
    /// A number or a word, of which only its bytes are checked here.
    Scalar,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// It may go on.
    More,
    /// It is whole, and has so many bytes.
    Whole(usize),
    /// It is no object of JSON.
    None,
}

/// As deep as the reader of the arguments goes.
const MAX_DEPTH: usize = 100;

impl ObjectScan {
    pub(super) fn new() -> Self {
        Self { open: Vec::new(), next: Next::Start, read: 0 }
    }

    /// Reads on in a text whose beginning was read before.
    pub(super) fn read(&mut self, text: &str) -> Found {
        let is_whole = |scan: &Self| scan.read > 0 && scan.open.is_empty();
        while let Some(&byte) = text.as_bytes().get(self.read).filter(|_| !is_whole(self)) {
            if !self.step(byte) {
                return Found::None;
            }
            self.read += 1;
        }
        if is_whole(self) { Found::Whole(self.read) } else { Found::More }
    }

    /// Takes a byte. `false` if it cannot stand here.
    fn step(&mut self, byte: u8) -> bool {
        match self.next {
            Next::String { key } => match byte {
                b'"' => self.next = if key { Next::Colon } else { Next::CommaOrEnd },
                b'\\' => self.next = Next::Escape { key },
                _ => return byte >= b' ',
            },
            Next::Escape { key } => {
                self.next = Next::String { key };
                return matches!(byte, b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' | b'u');
            }
            Next::Scalar if matches!(byte, b'+' | b'-' | b'.' | b'0'..=b'9' | b'a'..=b'z' | b'E') => {}
            Next::Scalar => {
                self.next = Next::CommaOrEnd;
                return self.step(byte);
            }
            _ if matches!(byte, b' ' | b'\t' | b'\n' | b'\r') && self.next != Next::Start => {}
            Next::Start => return byte == b'{' && self.open(true),
            Next::Value | Next::ValueOrEnd => match byte {
                b'{' | b'[' => return self.open(byte == b'{'),
                b']' if self.next == Next::ValueOrEnd => return self.close(false),
                b'"' => self.next = Next::String { key: false },
                b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => self.next = Next::Scalar,
                _ => return false,
            },
            Next::Key | Next::KeyOrEnd => match byte {
                b'"' => self.next = Next::String { key: true },
                b'}' if self.next == Next::KeyOrEnd => return self.close(true),
                _ => return false,
            },
            Next::Colon => {
                self.next = Next::Value;
                return byte == b':';
            }
            Next::CommaOrEnd => match byte {
                b',' => self.next = if self.open.last() == Some(&true) { Next::Key } else { Next::Value },
                b'}' | b']' => return self.close(byte == b'}'),
                _ => return false,
            },
        }
        true
    }

    fn open(&mut self, object: bool) -> bool {
        self.open.push(object);
        self.next = if object { Next::KeyOrEnd } else { Next::ValueOrEnd };
        self.open.len() <= MAX_DEPTH
    }

    fn close(&mut self, object: bool) -> bool {
        self.next = Next::CommaOrEnd;
        self.open.pop() == Some(object)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn scan(text: &str) -> Found {
        ObjectScan::new().read(text)
    }

    #[test]
    fn an_object_ends_at_its_own_brace() {
        for text in [
            "{}",
            r#"{"a":1}"#,
            r#"{ "a" : { "b" : [ { } , [ ] , -1.5e+3 , true , null ] } }"#,
            r#"{"}":"}{\"}","\\":"\\"}"#,
            r#"{"é":"é\u00e9"}"#,
        ] {
            assert_eq!(scan(&format!("{text} and more }}")), Found::Whole(text.len()), "{text}");
            assert_eq!(scan(&text[..text.len() - 1]), Found::More, "{text}");
        }
    }

    #[test]
    fn what_is_no_object_is_known_at_once() {
        for text in [
            "[",
            " {",
            "{a",
            "{'a'",
            "{\"a\"=",
            "{\"a\":}",
            "{\"a\":1,}",
            "{\"a\":[1,]",
            "{]",
            "{\"a\":[}",
            "{\"a\nb",
            "{\"\\x",
            "{1",
        ] {
            assert_eq!(scan(text), Found::None, "{text}");
        }
        assert_eq!(scan(&"{\"a\":".repeat(MAX_DEPTH)), Found::More);
        assert_eq!(scan(&"{\"a\":".repeat(MAX_DEPTH + 1)), Found::None);
    }

    proptest! {
        /// Never sees an end elsewhere than serde does, and every object it does not see is none for serde either.
        #[test]
        fn it_agrees_with_serde(text in r#"\{[\[\]{}",:\\1a ]{0,12}\}"#) {
            let whole = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
            let first = serde_json::Deserializer::from_str(&text).into_iter::<serde::de::IgnoredAny>().next();
            match scan(&text) {
                Found::None | Found::More => prop_assert!(!whole),
                Found::Whole(end) => prop_assert!(first.is_some_and(|first| first.is_err()) || serde_json::from_str::<serde::de::IgnoredAny>(&text[..end]).is_ok()),
            }
        }

        #[test]
        fn every_split_is_the_same(text in r#"\{[\[\]{}",:\\1a ]{0,20}"#, cut in 0_usize..20) {
            let cut = cut.min(text.len());
            let mut scan = ObjectScan::new();
            if scan.read(&text[..cut]) != Found::None {
                prop_assert_eq!(scan.read(&text), self::scan(&text));
            } else {
                prop_assert_eq!(self::scan(&text), Found::None);
            }
        }
    }
}

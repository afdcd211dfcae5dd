use serde::Deserialize;

/// Bytes as a vector writes them.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum Bytes {
    /// UTF-8 text.
    Text(String),
    /// Anything.
    Hex { hex: String },
    /// The same text over and over, for limits.
    Repeat { repeat: String, times: usize },
}

impl Bytes {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Text(text) => text.clone().into_bytes(),
            Self::Hex { hex } => from_hex(hex).expect("a vector's hex is valid"),
            Self::Repeat { repeat, times } => repeat.repeat(*times).into_bytes(),
        }
    }
}

pub(crate) fn to_hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

pub(crate) fn from_hex(hex: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    if hex.len() % 2 == 1 {
        return None;
    }
    hex.as_bytes().chunks_exact(2).map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_goes_there_and_back() {
        for bytes in [&b""[..], b"a", b"\0\xff\x10", "🙂".as_bytes()] {
            assert_eq!(from_hex(&to_hex(bytes)).as_deref(), Some(bytes));
        }
        for wrong in ["a", "0g", "é"] {
            assert_eq!(from_hex(wrong), None, "{wrong}");
        }
    }
}

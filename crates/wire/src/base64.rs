//! Base64, as Bedrock wraps events in it.

/// Standard base64 with padding.
pub(crate) fn encode(bytes: &[u8]) -> String {
    const SYMBOLS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits = group.iter().fold(0, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        for place in 0..4 {
            let symbol = SYMBOLS[(bits >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= group.len() { symbol.into() } else { '=' });
        }
    }
    text
}

/// Replaces the bytes with what the text says in standard base64, with or without its padding. `None` if it is none.
pub(crate) fn decode(text: &str, bytes: &mut Vec<u8>) -> Option<()> {
    const NONE: u8 = 64;
    const VALUES: [u8; 256] = {
        let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut values = [NONE; 256];
        let mut value = 0;
        while value < alphabet.len() {
            values[alphabet[value] as usize] = value as u8;
            value += 1;
        }
        values
    };
    let text = text.trim_end_matches('=').as_bytes();
    let value = |symbol: u8| u32::from(VALUES[usize::from(symbol)]);
    bytes.clear();
    let (groups, rest) = text.as_chunks::<4>();
    let mut seen = 0;
    for [a, b, c, d] in groups.iter().copied() {
        let [a, b, c, d] = [value(a), value(b), value(c), value(d)];
        seen |= a | b | c | d;
        let [_, decoded @ ..] = (a << 18 | b << 12 | c << 6 | d).to_be_bytes();
        bytes.extend_from_slice(&decoded);
    }
    match *rest {
        [] => {}
        [a, b] => {
            seen |= value(a) | value(b);
            bytes.push((value(a) << 2 | value(b) >> 4) as u8);
        }
        [a, b, c] => {
            seen |= value(a) | value(b) | value(c);
            let [.., first, second] = (value(a) << 10 | value(b) << 4 | value(c) >> 2).to_be_bytes();
            bytes.extend_from_slice(&[first, second]);
        }
        _ => return None,
    }
    (seen & u32::from(NONE) == 0).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_decoded_or_refused() {
        for (text, expected) in [
            ("", Some(&b""[..])),
            ("Zg==", Some(b"f")),
            ("Zg", Some(b"f")),
            ("Zm8=", Some(b"fo")),
            ("Zm9v", Some(b"foo")),
            ("Zm9vYg==", Some(b"foob")),
            ("+/+/", Some(b"\xfb\xff\xbf")),
            ("Z", None),
            ("Zm9vY", None),
            ("Zm 9", None),
            ("Zm9=v", None),
        ] {
            let mut bytes = vec![1, 2, 3];
            let decoded = decode(text, &mut bytes).map(|()| &bytes[..]);
            assert_eq!(decoded, expected, "{text}");
        }
    }

    #[test]
    fn what_is_encoded_is_decoded() {
        for length in 0..9 {
            let bytes = &b"\x00\xffstream\x80"[..length];
            let mut decoded = Vec::new();
            assert_eq!(decode(&encode(bytes), &mut decoded).map(|()| &decoded[..]), Some(bytes));
        }
        assert_eq!(encode(b"foob"), "Zm9vYg==");
    }
}

/// The length and a hash of a text that comes in pieces. Where it was cut makes no difference.
///
/// Tells whether a provider repeats the same text; it is no defence against one that searches for collisions. The hash is the same in
/// every process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Fingerprint {
    len: u64,
    hash: u64,
    /// The last `len % 8` bytes.
    rest: u64,
}

const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;
const SEED: u64 = 0xA076_1D64_78BD_642F;

impl Fingerprint {
    pub(super) fn of(text: &str) -> Self {
        let mut all = Self::default();
        all.append(text);
        all
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    pub(super) fn append(&mut self, text: &str) {
        let mut bytes = text.as_bytes();
        while let Some((eight, rest)) = bytes.split_first_chunk() {
            self.add(u64::from_le_bytes(*eight), 8);
            bytes = rest;
        }
        self.add(few(bytes), bytes.len() as u64);
    }

    /// Adds the lowest bytes of a word, whose others are 0.
    #[inline]
    fn add(&mut self, word: u64, len: u64) {
        let shift = (self.len % 8) * 8;
        self.len += len;
        self.rest |= word << shift;
        if shift + len * 8 >= 64 {
            self.hash = fold(self.hash ^ self.rest ^ SEED);
            // A shift by 64 leaves nothing.
            self.rest = word.checked_shr(64 - shift as u32).unwrap_or(0);
        }
    }
}

/// Up to seven bytes as a word.
#[inline]
fn few(bytes: &[u8]) -> u64 {
    if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        // The two overlap where there are fewer than eight.
        let last = u64::from(u32::from_le_bytes(*last)) << ((bytes.len() - 4) * 8);
        return u64::from(u32::from_le_bytes(*first)) | last;
    }
    bytes.iter().rev().fold(0, |word, byte| (word << 8) | u64::from(*byte))
}

/// Both halves of the product, so that every bit of the input moves every bit of the output.
#[inline]
fn fold(word: u64) -> u64 {
    let product = u128::from(word) * u128::from(MULTIPLIER);
    (product as u64) ^ ((product >> 64) as u64) ^ word.rotate_left(32)
}

#[cfg(test)]
mod tests {
    use super::Fingerprint;

    #[test]
    fn where_a_text_is_cut_makes_no_difference() {
        // spec 1.3
        let text = "The quick brown fox jumps über den lazy dog.";
        let whole = Fingerprint::of(text);
        for cut in (0..=text.len()).filter(|cut| text.is_char_boundary(*cut)) {
            let mut pieces = Fingerprint::of(&text[..cut]);
            pieces.append(&text[cut..]);
            assert_eq!(pieces, whole, "cut at {cut}");
        }
        for len in 1..12 {
            let mut pieces = Fingerprint::default();
            let mut rest = text;
            while !rest.is_empty() {
                let cut = (len..=rest.len()).find(|cut| rest.is_char_boundary(*cut)).unwrap_or(rest.len());
                pieces.append(&rest[..cut]);
                rest = &rest[cut..];
            }
            assert_eq!(pieces, whole, "in pieces of {len}");
        }
    }

    #[test]
    fn another_text_has_another_fingerprint() {
        // spec 1.3
        let text = "0123456789abcdef0123456789abcdef";
        let mut seen = vec![Fingerprint::of(text)];
        for at in 0..text.len() {
            let mut other = text.to_owned();
            other.replace_range(at..=at, "x");
            seen.push(Fingerprint::of(&other));
            seen.push(Fingerprint::of(&text[..at]));
        }
        for (i, one) in seen.iter().enumerate() {
            assert!(!seen[..i].contains(one), "{i}");
        }
    }
}

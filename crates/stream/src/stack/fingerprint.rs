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
        let mut shift = (self.len % 8) * 8;
        self.len += text.len() as u64;
        let (mut rest, mut hash) = (self.rest, self.hash);
        for &byte in text.as_bytes() {
            rest |= u64::from(byte) << shift;
            shift += 8;
            if shift == 64 {
                hash = fold(hash ^ rest ^ SEED);
                (rest, shift) = (0, 0);
            }
        }
        (self.rest, self.hash) = (rest, hash);
    }
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
        for cut in (0..text.len()).filter(|cut| text.is_char_boundary(*cut)) {
            let mut pieces = Fingerprint::of(&text[..cut]);
            pieces.append(&text[cut..]);
            assert_eq!(pieces, whole, "cut at {cut}");
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

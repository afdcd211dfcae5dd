//! Checks for [`Pattern::with_validator`](streamkeeper_text::Pattern::with_validator): what a regular expression cannot say.
//!
//! ```
//! use streamkeeper_observers::validators;
//! use streamkeeper_text::Pattern;
//!
//! let card = Pattern::regex("card", r"\b\d(?:[ -]?\d){12,18}\b")?.with_validator(validators::luhn);
//! assert!(validators::luhn("4111 1111 1111 1111"));
//! # Ok::<_, streamkeeper_text::PatternError>(())
//! ```

/// Whether the digits of a text have a Luhn checksum, as card numbers do. What is no digit is ignored; not all digits may be zero.
///
/// ```
/// # use streamkeeper_observers::validators::luhn;
/// assert!(luhn("4111-1111-1111-1111"));
/// assert!(!luhn("4111-1111-1111-1112"));
/// assert!(!luhn("0000 0000 0000 0000"));
/// ```
pub fn luhn(text: &str) -> bool {
    let digits = text.chars().rev().filter_map(|c| c.to_digit(10));
    let (mut sum, mut any) = (0, false);
    for (i, digit) in digits.enumerate() {
        any |= digit != 0;
        let twice = digit * 2;
        sum += match (i % 2, twice > 9) {
            (0, _) => digit,
            (_, true) => twice - 9,
            (_, false) => twice,
        };
    }
    any && sum % 10 == 0
}

/// Whether a text is an IBAN by its checksum (ISO 13616, mod 97). Blanks and hyphens are ignored.
///
/// ```
/// # use streamkeeper_observers::validators::mod97;
/// assert!(mod97("DE89 3704 0044 0532 0130 00"));
/// assert!(!mod97("DE88 3704 0044 0532 0130 00"));
/// ```
pub fn mod97(text: &str) -> bool {
    let chars: Vec<char> = text.chars().filter(|c| !matches!(c, ' ' | '-')).collect();
    if chars.len() < 15 || chars.len() > 34 {
        return false;
    }
    let mut rest = 0;
    for c in chars[4..].iter().chain(&chars[..4]) {
        let Some(value) = c.to_digit(36) else { return false };
        rest = (rest * if value > 9 { 100 } else { 10 } + value) % 97;
    }
    rest == 1
}

/// Says whether a text has at least so many bits of Shannon entropy for each character: random keys have 3.5 and more, words less.
///
/// ```
/// # use streamkeeper_observers::validators::entropy;
/// assert!(entropy(3.0)("kJ8s0Qz1pX7vR3mT"));
/// assert!(!entropy(3.0)("aaaaaaaaaaaaaaaa"));
/// ```
pub fn entropy(bits: f64) -> impl Fn(&str) -> bool + Send + Sync + 'static {
    move |text| bits_per_char(text) >= bits
}

fn bits_per_char(text: &str) -> f64 {
    let mut chars: Vec<char> = text.chars().collect();
    chars.sort_unstable();
    let len = chars.len() as f64;
    chars
        .chunk_by(|a, b| a == b)
        .map(|same| {
            let share = same.len() as f64 / len;
            -share * share.log2()
        })
        .sum()
}

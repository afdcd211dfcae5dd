//! Words of a text that arrives in pieces, without regard to case, punctuation and apostrophes.

/// A word: a hash that differs if the word does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Word(pub(crate) u64);

const SEED: u64 = 0xcbf2_9ce4_8422_2325;

impl Word {
    const EMPTY: Self = Self(SEED);

    /// FNV, with a last mix so that sums of words spread.
    fn then(self, char: char) -> Self {
        Self((self.0 ^ u64::from(char)).wrapping_mul(0x0100_0000_01b3))
    }

    /// A hash of words in their order.
    pub(crate) fn phrase(words: impl IntoIterator<Item = Word>) -> u64 {
        words.into_iter().fold(SEED, |hash, word| {
            let mixed = (hash.rotate_left(23) ^ word.0).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            mixed ^ (mixed >> 29)
        })
    }
}

/// The word that is being read.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Words(Option<Word>);

impl Words {
    /// Reads on. A word is known at the first character behind it.
    pub(crate) fn read(&mut self, text: &str, mut known: impl FnMut(Word)) {
        for char in text.chars() {
            match kind(char) {
                Kind::Letter => {
                    let word = self.0.unwrap_or(Word::EMPTY);
                    self.0 = Some(if char.is_ascii() {
                        word.then(char.to_ascii_lowercase())
                    } else {
                        char.to_lowercase().fold(word, Word::then)
                    });
                }
                Kind::Ignored => {}
                kind => {
                    if let Some(word) = self.0.take() {
                        known(word);
                    }
                    if kind == Kind::Alone {
                        known(Word::EMPTY.then(char));
                    }
                }
            }
        }
    }

    /// The last word, if the text does not end behind one.
    pub(crate) fn end(&mut self) -> Option<Word> {
        self.0.take()
    }
}

/// The words of a whole text.
pub(crate) fn words(text: &str) -> Vec<Word> {
    let mut out = Vec::new();
    let mut words = Words::default();
    words.read(text, |word| out.push(word));
    out.extend(words.end());
    out
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Letter,
    /// A word by itself, in scripts that put nothing between words.
    Alone,
    /// An apostrophe inside of a word, or an accent that follows its letter.
    Ignored,
    Between,
}

fn kind(char: char) -> Kind {
    match char {
        'a'..='z' | 'A'..='Z' | '0'..='9' => Kind::Letter,
        '\'' | '\u{2019}' | '\u{300}'..='\u{36f}' => Kind::Ignored,
        // Thai to Burmese, kana, Han.
        '\u{e00}'..='\u{eff}'
        | '\u{1000}'..='\u{109f}'
        | '\u{3041}'..='\u{30ff}'
        | '\u{3400}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}' => Kind::Alone,
        char if char.is_alphanumeric() => Kind::Letter,
        _ => Kind::Between,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_the_same_in_any_case_and_punctuation() {
        for (a, b) in [
            ("You must NOT say, that.", "you must not—say: THAT"),
            ("don't", "Don’t"),
            ("Größe ÄÖÜ", "größe äöü"),
            ("a  b\nc", "a b c"),
            ("秘密です", "秘 密 で す"),
        ] {
            assert_eq!(words(a), words(b), "{a}");
        }
        assert_ne!(words("ab c"), words("a bc"));
        assert_eq!((words("秘密です").len(), words("one two, three").len(), words(" .,").len()), (4, 3, 0));
    }
}

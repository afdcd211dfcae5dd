use std::sync::LazyLock;

use serde::Deserialize;

/// Patterns for [`HaltOnPattern::sets`](crate::HaltOnPattern::sets), as data with a version.
///
/// The version changes when a text that did not match before does now, or the other way round. The sets that come with this crate:
///
/// | set | what |
/// |---|---|
/// | `jailbreak` | a model says that it plays without its rules |
/// | `refusals.de`, `.es`, `.fr`, `.it`, `.ja`, `.ko`, `.nl`, `.pt`, `.zh` | generic refusals in these languages |
///
/// English refusals are [`RefusalSet`](crate::RefusalSet).
///
/// ```
/// use streamkeeper_observers::{HaltOnPattern, PatternSet};
///
/// let german = PatternSet::refusals("de").unwrap();
/// assert_eq!((german.id.as_str(), german.version), ("refusals.de", 1));
///
/// let own = PatternSet::new("competitors", 3, ["acme", "initech"]);
/// let halt = HaltOnPattern::sets([german, &own])?;
/// # Ok::<_, streamkeeper_observers::PatternError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct PatternSet {
    /// Its name.
    pub id: String,
    /// Counts up with every change of what matches.
    pub version: u32,
    /// What is in it.
    #[serde(default)]
    pub description: String,
    /// Where it comes from.
    #[serde(default)]
    pub provenance: String,
    /// Whether each pattern begins at the beginning of a word.
    #[serde(default)]
    pub words: bool,
    /// Regular expressions, of which one has to match. Case is ignored, and a space stands for any white space.
    pub patterns: Vec<String>,
    /// Texts that it has to find; tests check them.
    #[serde(default)]
    pub matches: Vec<String>,
    /// Texts that look alike and that it must not find; tests check them.
    #[serde(default)]
    pub near_misses: Vec<String>,
}

static BUNDLED: LazyLock<Vec<PatternSet>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../data/pattern_sets.json")).expect("the bundled sets are checked by tests")
});

impl PatternSet {
    /// A set of your own.
    pub fn new<P: Into<String>>(id: impl Into<String>, version: u32, patterns: impl IntoIterator<Item = P>) -> Self {
        Self {
            id: id.into(),
            version,
            description: String::new(),
            provenance: String::new(),
            words: false,
            patterns: patterns.into_iter().map(Into::into).collect(),
            matches: Vec::new(),
            near_misses: Vec::new(),
        }
    }

    /// All sets that come with this crate.
    pub fn bundled() -> &'static [Self] {
        &BUNDLED
    }

    /// The generic refusals of a language, by its code of two letters (ISO 639-1).
    pub fn refusals(language: &str) -> Option<&'static Self> {
        BUNDLED.iter().find(|set| set.id.strip_prefix("refusals.") == Some(language))
    }

    /// What a model says that was talked out of its rules.
    pub fn jailbreak() -> &'static Self {
        let set = BUNDLED.iter().find(|set| set.id == "jailbreak");
        set.expect("the bundled sets are checked by tests")
    }

    /// The whole set as one regular expression.
    pub fn pattern(&self) -> String {
        let boundary = if self.words { r"\b" } else { "" };
        format!("(?i){boundary}(?:{})", self.patterns.join("|").replace(' ', r"(?:\s+)"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::halt::Pattern;

    /// spec 6.2
    #[test]
    fn each_bundled_set_finds_its_matches_and_not_its_near_misses() {
        for set in PatternSet::bundled() {
            let pattern = Pattern::new(&set.pattern()).unwrap();
            assert!(set.matches.len() >= 4 && set.near_misses.len() >= 4, "{}", set.id);
            for text in &set.matches {
                for text in [text.clone(), format!("Hm. {text}"), text.replace(' ', "\n "), text.to_uppercase()] {
                    assert!(pattern.find(&text).is_some(), "{}: {text}", set.id);
                }
            }
            for text in set.near_misses.iter().cloned().chain(set.near_misses.iter().map(|text| text.to_lowercase())) {
                assert!(pattern.find(&text).is_none(), "{}: {text}", set.id);
            }
        }
    }

    /// A language does not take another one's answers for refusals.
    #[test]
    fn near_misses_of_one_set_are_none_of_any_other() {
        for set in PatternSet::bundled() {
            let pattern = Pattern::new(&set.pattern()).unwrap();
            for other in PatternSet::bundled() {
                assert!(other.near_misses.iter().all(|text| pattern.find(text).is_none()), "{} {}", set.id, other.id);
            }
        }
    }

    #[test]
    fn every_pattern_of_a_set_is_used() {
        for set in PatternSet::bundled() {
            for pattern in &set.patterns {
                let one = PatternSet::new("one", 1, [pattern.clone()]);
                let pattern = Pattern::new(&one.pattern()).unwrap();
                assert!(set.matches.iter().any(|text| pattern.find(text).is_some()), "{}: {}", set.id, one.patterns[0]);
            }
        }
    }
}

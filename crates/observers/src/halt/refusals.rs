use std::sync::LazyLock;

use serde::Deserialize;

/// The refusals that [`HaltOnPattern::refusals`](crate::HaltOnPattern::refusals) looks for, as data with a version.
///
/// The version changes when a text that did not match before does now, or the other way round.
///
/// ```
/// let set = streamkeeper_observers::RefusalSet::bundled();
/// assert_eq!((set.id.as_str(), set.version), ("refusals", 1));
/// assert_eq!((set.openings.len(), set.verbs.len()), (5, 4));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct RefusalSet {
    /// Its name: `refusals`.
    pub id: String,
    /// Counts up with every change of what matches.
    pub version: u32,
    /// What is in it.
    pub description: String,
    /// Where it comes from.
    pub provenance: String,
    /// How a refusal begins, as regular expressions.
    pub openings: Vec<String>,
    /// What is refused. One follows the opening, after white space.
    pub verbs: Vec<String>,
}

static BUNDLED: LazyLock<RefusalSet> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../data/refusals.json")).expect("the bundled set is checked by tests")
});

impl RefusalSet {
    /// The set that comes with this crate.
    pub fn bundled() -> &'static Self {
        &BUNDLED
    }

    /// The whole set as one regular expression: a word boundary, an opening, white space, a verb, a word boundary; case is ignored.
    /// Boundaries are ASCII ones, so that the pattern costs one table look-up a byte.
    pub fn pattern(&self) -> String {
        format!(r"(?i)(?-u:\b)(?:{})\s+(?:{})(?-u:\b)", self.openings.join("|"), self.verbs.join("|"))
    }
}

#[cfg(test)]
mod tests {
    use crate::halt::REFUSALS;

    fn matches(text: &str) -> bool {
        REFUSALS.find(text).is_some()
    }

    /// spec 6.2: five openings, four verbs, any case, both apostrophes.
    #[test]
    fn every_opening_with_every_verb_is_a_refusal() {
        let openings = [
            "I cannot",
            "I'm not able to",
            "I am unable to",
            "Sorry, I can't",
            "Sorry, I cant",
            "I won't be able to",
            "I wont be able to",
        ];
        for opening in openings {
            for verb in ["help", "assist", "comply", "provide"] {
                let text = format!("{opening} {verb}");
                for text in [
                    text.clone(),
                    text.to_uppercase(),
                    text.to_lowercase(),
                    text.replace('\'', "’"),
                    format!("{opening} \t\n{verb}"),
                    format!("Well. {text}, with that."),
                    format!("“{text}”"),
                ] {
                    assert!(matches(&text), "{text}");
                }
            }
        }
    }

    #[test]
    fn near_misses_are_no_refusals() {
        for text in [
            "I can help",
            "I cannot recommend this enough",
            "I cannot yet help",
            "I cannothelp",
            "I cannot be helped",
            "I cannot helping",
            "I cannot provided",
            "I cannot, help",
            "I'm able to help",
            "I'm not able to say",
            "I am unable to determine whether they provide it",
            "Sorry, I can help",
            "Sorry I can't help",
            "can't help",
            "I would be able to help",
            "I won`t be able to help",
            "I won''t be able to help",
            "WiFi cannot help",
            "You cannot help",
            "Hi cannot help",
        ] {
            assert!(!matches(text), "{text}");
        }
    }
}

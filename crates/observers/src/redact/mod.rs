//! Taking secrets and personal data out of streams, and out of what goes to a model.

mod redactor;
mod replacement;
mod sets;
mod vault;

use streamkeeper_contract::{Channel, Id, id};
use streamkeeper_stream::{Observers, Registration};
use streamkeeper_text::{CutKind, Pattern, PatternError, Patterns, Scanner};

#[cfg(feature = "keyed-hash")]
pub use self::replacement::HashKey;
pub use self::{
    redactor::{Redacted, Redactor},
    replacement::Replacement,
    sets::RedactionSet,
    vault::{RestoreTokens, Vault},
};
use crate::{OnArguments, OnMatch, TextObserver};

/// Replaces secrets and personal data in the texts of a stream and in tool arguments. A guard.
///
/// However a text is cut into chunks and lanes are mixed, what leaves is what a search of the whole text would leave, and no part of a
/// match is ever out. All channels are looked at, tool arguments, tool results, snapshots and error messages too. A match in an event that
/// cannot be rewritten (a citation, a custom or raw event, a snapshot of state) stops the stream with `unreplaceable`. **Not looked at**
/// are ids, names, codes, addresses of media, usage as stated, opaque data, and fields that this version does not know.
///
/// # Patterns
/// | set | what it finds |
/// |---|---|
/// | [`RedactionSet::Secrets`] | keys of model providers, clouds, code hosts and services; private keys; JWTs; bearer tokens; credentials in URLs |
/// | [`RedactionSet::Pii`] | e-mail addresses, phone numbers, IBANs, card numbers, US social security numbers, IP addresses |
///
/// and [patterns](Self::pattern) of your own. [`RedactionSet::patterns`] names them all. Sets are found by form and checksum: what has no
/// form (names, passwords) needs patterns of your own.
///
/// In [raw bytes](streamkeeper_stream::ObserveBytesExt) bytes that are no event pass unseen: comments, lines around the events, and a
/// body that is no stream at all, such as an error page.
///
/// # In place of a match
/// [`Replacement`]: a label with the pattern's name by default, `[EMAIL]`.
///
/// # Tool arguments
/// A match [denies](OnArguments::Deny) the call by default; [`arguments`](Self::arguments) can mask instead.
///
/// # What it holds, costs and limits
/// As [`TextObserver`], on which it stands: bytes that may still become a match, and no others. A word may be the beginning of an
/// address, so with `Pii` the last word of each chunk waits for the next one. A match over 4 KiB gets a label where a hash or a token was
/// asked for.
///
/// ```
/// use streamkeeper_contract::{Chunk, Lane};
/// use streamkeeper_observers::Redact;
/// use streamkeeper_stream::{ObserverFactoryContext, Observers};
///
/// let observers = Observers::from(Redact::pii());
/// let mut stack = observers.stack(&ObserverFactoryContext::default());
/// for text in ["Write to ada.love", "lace@exam", "ple.org today"] {
///     stack.push(Chunk::delta(Lane::TEXT, text));
/// }
/// stack.finish();
/// let texts: Vec<_> = std::iter::from_fn(|| stack.pop()).filter_map(|chunk| chunk.text().map(str::to_owned)).collect();
/// assert_eq!(texts.concat(), "Write to [EMAIL] today");
/// ```
#[derive(Debug, Clone)]
#[must_use = "it does nothing until it is registered"]
pub struct Redact {
    id: Id,
    sets: Vec<RedactionSet>,
    patterns: Vec<Pattern>,
    allowed: Vec<String>,
    replacement: Replacement,
    arguments: OnArguments,
    channels: Option<Vec<Channel>>,
    report: Option<Id>,
    fail_open: bool,
}

impl Redact {
    /// Nothing yet: add sets and patterns.
    pub fn new() -> Self {
        Self {
            id: id!("redact"),
            sets: Vec::new(),
            patterns: Vec::new(),
            allowed: Vec::new(),
            replacement: Replacement::default(),
            arguments: OnArguments::default(),
            channels: None,
            report: None,
            fail_open: false,
        }
    }

    /// Keys, tokens and credentials: [`RedactionSet::Secrets`].
    pub fn secrets() -> Self {
        Self::new().set(RedactionSet::Secrets)
    }

    /// Personal data: [`RedactionSet::Pii`].
    pub fn pii() -> Self {
        Self::new().set(RedactionSet::Pii)
    }

    /// The most patterns of your own. Thousands of texts are [one pattern](Pattern::literals).
    pub const MAX_PATTERNS: usize = 10_000;

    /// This set too, once.
    pub fn set(mut self, set: RedactionSet) -> Self {
        if !self.sets.contains(&set) {
            self.sets.push(set);
            self.patterns.extend(set.patterns().iter().cloned());
        }
        self
    }

    /// This pattern too. Its name is its label.
    ///
    /// # Errors
    /// If it cannot be compiled, or there are more than [`MAX_PATTERNS`](Self::MAX_PATTERNS).
    pub fn pattern(mut self, pattern: Pattern) -> Result<Self, PatternError> {
        Patterns::new([pattern.clone()])?;
        if self.patterns.len() >= Self::MAX_PATTERNS {
            return Err(PatternError::TooMany { limit: Self::MAX_PATTERNS });
        }
        self.patterns.push(pattern);
        Ok(self)
    }

    /// Texts that stay though a pattern matches them, letter for letter: an address of your own support, say. A match that one of these
    /// may be is held until it is whole.
    pub fn allow<T: Into<String>>(mut self, texts: impl IntoIterator<Item = T>) -> Self {
        self.allowed.extend(texts.into_iter().map(Into::into));
        self
    }

    /// What takes the place of a match. Default: [`Replacement::Label`].
    pub fn replacement(mut self, replacement: Replacement) -> Self {
        self.replacement = replacement;
        self
    }

    /// What a match in tool arguments means. Default: [`OnArguments::Deny`].
    pub fn arguments(mut self, arguments: OnArguments) -> Self {
        self.arguments = arguments;
        self
    }

    /// Only these channels, and nothing beside lanes. Default: everything that carries text.
    pub fn channels(mut self, channels: impl IntoIterator<Item = Channel>) -> Self {
        self.channels = Some(channels.into_iter().collect());
        self
    }

    /// Sends an event for each match, see [`TextObserver::report`].
    pub fn report(mut self, channel: Id) -> Self {
        self.report = Some(channel);
        self
    }

    /// The id it is registered with. Default: `redact`.
    pub fn id(mut self, id: Id) -> Self {
        self.id = id;
        self
    }

    /// Lets the stream go on unredacted if it fails. Without this the invocation fails with it.
    pub fn fail_open(mut self) -> Self {
        self.fail_open = true;
        self
    }

    /// The same patterns and replacements for whole texts, for what goes to a model and for logs.
    pub fn redactor(&self) -> Redactor {
        let replacement = self.replacement.clone();
        Redactor::new(self.compiled(), move |name, matched| replacement.of(name, matched))
    }

    /// The registration of this guard, for all call classes. `Registration::from(redact)` is the same. Compiles the patterns: keep it
    /// and its clones rather than making it for each stream.
    pub fn registration(self) -> Registration {
        let on_match = match self.replacement.is_constant() {
            true => OnMatch::label({
                let replacement = self.replacement.clone();
                move |name| replacement.of(name, "")
            }),
            false => OnMatch::replace({
                let replacement = self.replacement.clone();
                move |found| match found.is_cut {
                    // Its beginning alone stands for other texts too.
                    true => Replacement::Label.of(found.pattern, ""),
                    false => replacement.of(found.pattern, found.text),
                }
            }),
        };
        let mut observer = TextObserver::new(self.id.clone(), self.compiled(), on_match).arguments(self.arguments);
        if let Some(channels) = self.channels {
            observer = observer.channels(channels);
        }
        if let Some(report) = self.report {
            observer = observer.report(report);
        }
        if self.fail_open {
            observer = observer.fail_open();
        }
        observer.registration()
    }

    /// The allowed texts that the pattern matches from their beginning to their end.
    fn exempt_from(&self, pattern: &Pattern) -> Vec<String> {
        if self.allowed.is_empty() {
            return Vec::new();
        }
        let patterns = Patterns::new([pattern.clone()]).expect("it was compiled when it was added");
        let is_match = |text: &&String| {
            let scan = Scanner::new(&patterns).finish(text);
            !text.is_empty() && scan.cuts.iter().all(|cut| matches!(cut.kind, CutKind::Match { .. }))
        };
        self.allowed.iter().filter(is_match).cloned().collect()
    }

    fn compiled(&self) -> Patterns {
        let patterns = self.patterns.iter().map(|pattern| {
            let exempt = self.exempt_from(pattern);
            match exempt.is_empty() {
                true => pattern.clone(),
                false => {
                    let strict = pattern.clone();
                    let expression = strict.clone();
                    expression
                        .with_validator(move |text| strict.accepts(text) && !exempt.iter().any(|known| known == text))
                }
            }
        });
        Patterns::new(patterns).expect("each was compiled when it was added")
    }
}

impl Default for Redact {
    /// Secrets and personal data.
    fn default() -> Self {
        Self::secrets().set(RedactionSet::Pii)
    }
}

impl From<Redact> for Registration {
    fn from(redact: Redact) -> Self {
        redact.registration()
    }
}

impl From<Redact> for Observers {
    fn from(redact: Redact) -> Self {
        redact.registration().into()
    }
}

use std::{fmt, sync::Arc};

use crate::{common::Common, machine::Machine, syntax, table::Table, trie::Trie};

/// Says whether a match is one: a checksum, an entropy, a list. Must give the same answer for the same text.
pub type Validator = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// What to look for.
///
/// `regex` syntax. Classes (`\w`, `\d`, `\s`, `\b`) are ASCII unless `(?u)` is set; `.` and negated classes match whole characters.
///
/// ```
/// use streamkeeper_text::{Pattern, Patterns, redact_once};
///
/// let even = Pattern::regex("even", r"\b\d+\b")?.with_validator(|text| text.ends_with(['0', '2', '4', '6', '8']));
/// let patterns = Patterns::new([even])?;
/// assert_eq!(redact_once(&patterns, "1 12 123 1234", |_| "-".into()), "1 - 123 -");
/// assert!(Pattern::regex("every", "a*").is_err()); // matches the empty text
/// # Ok::<_, streamkeeper_text::PatternError>(())
/// ```
#[derive(Clone)]
pub struct Pattern {
    name: Arc<str>,
    source: String,
    /// Literals; what else there is is a regular expression.
    literals: Option<Arc<[Box<str>]>>,
    validator: Option<Validator>,
}

/// A pattern was refused, or a set of them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatternError {
    /// It is not a regular expression.
    #[error("pattern `{name}`: {message}")]
    Syntax {
        /// The pattern's name.
        name: Arc<str>,
        /// What is wrong and where.
        message: String,
    },
    /// It looks around, which an automaton cannot.
    #[error("pattern `{name}`: look-around is not supported; match the surroundings and check them with a validator")]
    LookAround {
        /// The pattern's name.
        name: Arc<str>,
    },
    /// It refers back, which an automaton cannot.
    #[error("pattern `{name}`: backreferences are not supported; check the repetition with a validator")]
    Backreference {
        /// The pattern's name.
        name: Arc<str>,
    },
    /// It has a word boundary of Unicode, or `\B`.
    #[error("pattern `{name}`: `\\b` is ASCII only and cannot stand under (?u), and `\\B` is not supported")]
    UnicodeBoundary {
        /// The pattern's name.
        name: Arc<str>,
    },
    /// It matches the empty text, that is, everywhere.
    #[error("pattern `{name}` matches the empty text; write `+` for `*`, or make a part of it required")]
    MatchesEmpty {
        /// The pattern's name.
        name: Arc<str>,
    },
    /// Its automaton is too large. Bounded repeats of large classes are the usual cause.
    #[error("pattern `{name}`: its automaton is larger than {limit} bytes; use `+` in the place of large `{{n,m}}`")]
    TooLarge {
        /// The pattern's name.
        name: Arc<str>,
        /// The limit in bytes.
        limit: usize,
    },
    /// Its literals are too long together.
    #[error("pattern `{name}`: its literals have more than {limit} bytes; make several patterns of them")]
    TooManyLiterals {
        /// The pattern's name.
        name: Arc<str>,
        /// The limit in bytes.
        limit: usize,
    },
    /// More patterns than a set can have.
    #[error("a set has at most {limit} patterns")]
    TooMany {
        /// The limit.
        limit: usize,
    },
}

impl Pattern {
    /// A regular expression.
    ///
    /// # Errors
    /// If it is not one, or one that cannot be searched in a stream: see [`PatternError`].
    pub fn regex(name: &str, pattern: &str) -> Result<Self, PatternError> {
        let source = syntax::with_ascii_classes(name, pattern)?;
        let hir = regex_syntax::parse(&source)
            .map_err(|error| PatternError::Syntax { name: name.into(), message: error.to_string() })?;
        if hir.properties().minimum_len() == Some(0) {
            return Err(PatternError::MatchesEmpty { name: name.into() });
        }
        Ok(Self { name: name.into(), source, literals: None, validator: None })
    }

    /// The most bytes that the literals of one pattern can have together.
    pub const MAX_LITERALS: usize = 8 * 1024 * 1024;

    /// A text, as it is.
    ///
    /// # Errors
    /// If it is empty.
    pub fn literal(name: &str, text: &str) -> Result<Self, PatternError> {
        Self::literals(name, [text])
    }

    /// Many texts, as they are, under one name: thousands are fine.
    ///
    /// They match like an alternation: of those that begin at one place the first in the list. They take memory in proportion to their
    /// bytes, and a byte of the stream costs one step for each place where one of them may have begun, however many there
    /// are. An empty list matches nothing.
    ///
    /// ```
    /// use streamkeeper_text::{Pattern, Patterns, redact_once};
    ///
    /// let patterns = Patterns::new([Pattern::literals("name", ["Ada Lovelace", "Ada", "Grace"])?])?;
    /// assert_eq!(redact_once(&patterns, "Ada Lovelace and Ada", |_| "-".into()), "- and -");
    /// # Ok::<_, streamkeeper_text::PatternError>(())
    /// ```
    ///
    /// # Errors
    /// If one is empty, or they have more than [`MAX_LITERALS`](Self::MAX_LITERALS) bytes together.
    pub fn literals(name: &str, texts: impl IntoIterator<Item = impl AsRef<str>>) -> Result<Self, PatternError> {
        let (mut literals, mut bytes, mut source) = (Vec::new(), 0, String::new());
        for text in texts {
            let text = text.as_ref();
            if text.is_empty() {
                return Err(PatternError::MatchesEmpty { name: name.into() });
            }
            bytes += text.len();
            if bytes > Self::MAX_LITERALS {
                return Err(PatternError::TooManyLiterals { name: name.into(), limit: Self::MAX_LITERALS });
            }
            if !literals.is_empty() {
                source.push('|');
            }
            regex_syntax::escape_into(text, &mut source);
            literals.push(text.into());
        }
        if literals.is_empty() {
            source.push_str(r"[a&&b]");
        }
        Ok(Self { name: name.into(), source, literals: Some(literals.into()), validator: None })
    }

    /// Only what the validator says yes to is a match. A candidate that it rejects does not hide one that begins later.
    #[must_use]
    pub fn with_validator(mut self, validator: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        self.validator = Some(Arc::new(validator));
        self
    }

    /// Its name, which is also its label.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The expression with the meaning of its classes written out: what the `regex` crate has to be given to find the same matches.
    pub fn expression(&self) -> &str {
        &self.source
    }

    /// Whether its validator, if it has one, says yes to a text that the expression matches.
    pub fn accepts(&self, candidate: &str) -> bool {
        self.validator.as_ref().is_none_or(|validator| validator(candidate))
    }

    pub(crate) fn has_validator(&self) -> bool {
        self.validator.is_some()
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pattern")
            .field("name", &self.name)
            .field("validated", &self.has_validator())
            .finish_non_exhaustive()
    }
}

/// What a pattern can cost, known when it is built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cost {
    /// The pattern's name.
    pub name: Arc<str>,
    /// The most bytes that can wait for a decision about this pattern; `None`: as many as the cap allows.
    pub worst_hold: Option<usize>,
    /// States of its automaton. A byte costs at most one step for each place where a match may have begun: no more than twice as many
    /// as there are states, and for literals no more than the longest has bytes.
    pub states: usize,
}

/// A compiled, ordered set of patterns. Cheap to clone; build it once.
///
/// ```
/// use streamkeeper_text::{Pattern, Patterns};
///
/// let patterns = Patterns::new([Pattern::regex("key", r"sk-[a-z0-9]{6,}")?, Pattern::regex("mail", r"\w+@\w+\.\w+")?])?;
/// let holds: Vec<_> = patterns.costs().map(|cost| cost.worst_hold).collect();
/// assert_eq!(holds, [Some(8), None]); // any word can be the beginning of an address
/// # Ok::<_, streamkeeper_text::PatternError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Patterns(Arc<Set>);

#[derive(Debug)]
pub(crate) struct Set {
    pub(crate) compiled: Vec<Compiled>,
    /// Bytes before that are the same to every pattern's beginning share a class; the last entry is for the beginning of the text.
    before: Box<[u8; 257]>,
    /// The patterns that can begin with a byte, by class of the byte before and byte.
    beginning: Vec<Box<[u16]>>,
    /// What is met in most text.
    pub(crate) common: Common,
}

impl Set {
    fn new(compiled: Vec<Compiled>) -> Self {
        let mut kinds: Vec<Vec<u32>> = Vec::new();
        let mut before = Box::new([0; 257]);
        for (at, class) in before.iter_mut().enumerate() {
            let byte = u8::try_from(at).ok();
            let starts: Vec<u32> = compiled.iter().map(|c| c.machine.start(byte)).collect();
            let known = kinds.iter().position(|kind| *kind == starts).unwrap_or_else(|| {
                kinds.push(starts);
                kinds.len() - 1
            });
            // At most six: the look-behind that an automaton tells apart.
            *class = known as u8;
        }
        let mut beginning = Vec::with_capacity(kinds.len() * 256);
        for starts in &kinds {
            for byte in 0..=255 {
                let begins = |i: &usize| compiled[*i].machine.can_begin(starts[*i], byte);
                beginning.push((0..compiled.len()).filter(begins).map(|i| i as u16).collect());
            }
        }
        let common = Common::build(&compiled, &kinds, &before, &beginning);
        Self { compiled, before, beginning, common }
    }

    /// The state of [`Common`] in which nothing is followed, after this byte.
    #[inline]
    pub(crate) fn rest(&self, before: Option<u8>) -> u32 {
        self.before[before.map_or(256, usize::from)].into()
    }

    /// The patterns of which a match can begin with this byte after that one.
    #[inline]
    pub(crate) fn beginning(&self, before: Option<u8>, byte: u8) -> &[u16] {
        let class = self.before[before.map_or(256, usize::from)];
        &self.beginning[usize::from(class) * 256 + usize::from(byte)]
    }
}

#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) pattern: Pattern,
    pub(crate) machine: Machine,
}

impl Patterns {
    /// The most patterns a set can have.
    pub const MAX: usize = u16::MAX as usize;
    /// The largest automaton of one pattern, in bytes.
    pub const MAX_TABLE: usize = 4 * 1024 * 1024;

    /// Compiles a set. The order decides which label a match gets that several patterns share.
    ///
    /// # Errors
    /// If a pattern's automaton is too large, or there are too many patterns.
    pub fn new(patterns: impl IntoIterator<Item = Pattern>) -> Result<Self, PatternError> {
        let compiled = patterns
            .into_iter()
            .map(|pattern| {
                let machine = match &pattern.literals {
                    Some(literals) => {
                        let literals: Vec<_> = literals.iter().map(|text| text.as_bytes()).collect();
                        Machine::Trie(Trie::build(&literals))
                    }
                    None => Machine::Table(Table::build(&pattern.name, &pattern.source, Self::MAX_TABLE)?),
                };
                Ok(Compiled { pattern, machine })
            })
            .collect::<Result<Vec<_>, PatternError>>()?;
        if compiled.len() > Self::MAX {
            return Err(PatternError::TooMany { limit: Self::MAX });
        }
        Ok(Self(Arc::new(Set::new(compiled))))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.compiled.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.compiled.is_empty()
    }

    /// The pattern at this place.
    pub fn get(&self, index: usize) -> Option<&Pattern> {
        self.0.compiled.get(index).map(|compiled| &compiled.pattern)
    }

    /// The patterns, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Pattern> {
        self.0.compiled.iter().map(|compiled| &compiled.pattern)
    }

    /// What each pattern can cost, in order.
    pub fn costs(&self) -> impl Iterator<Item = Cost> {
        self.0.compiled.iter().map(|compiled| Cost {
            name: Arc::clone(&compiled.pattern.name),
            worst_hold: if compiled.pattern.has_validator() && compiled.machine.worst_hold().is_some() {
                // A candidate waits until it is whole.
                None
            } else {
                compiled.machine.worst_hold()
            },
            states: compiled.machine.states(),
        })
    }

    pub(crate) fn set(&self) -> &Set {
        &self.0
    }
}

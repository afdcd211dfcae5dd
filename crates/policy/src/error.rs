use std::{fmt, io, ops::Range, path::PathBuf, sync::Arc};

use serde::de::DeserializeOwned;
use serde_path_to_error::Segment;

use crate::tree::{Malformed, Node};

/// A policy was refused; whatever was in force before still is.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: Arc<io::Error>,
    },
    /// The file has more bytes than a policy may have: [`MAX_POLICY_BYTES`](crate::MAX_POLICY_BYTES).
    #[error("{file}: a policy may have {} bytes", crate::MAX_POLICY_BYTES)]
    TooLarge {
        /// The file.
        file: String,
    },
    /// It is not in its format, has a key or value that is not known, or an observer refused its options.
    #[error(transparent)]
    Invalid(Box<Mistake>),
}

/// What is wrong in a policy, and where. Its `Display` is `file:line:column: what is wrong; did you mean …?`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub struct Mistake {
    /// The file, or `policy` for a text.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// What may have been meant.
    pub suggestion: Option<String>,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.file, self.line, self.column, self.message)?;
        self.suggestion.as_ref().map_or(Ok(()), |meant| write!(f, "; did you mean `{meant}`?"))
    }
}

/// An observer refuses its options: which one, and why. Made by the factories of a [`PolicyRegistry`](crate::PolicyRegistry).
///
/// ```
/// use streamkeeper_policy::OptionError;
///
/// let error = OptionError::at("limit", "it has to be at least 1");
/// assert_eq!(error.to_string(), "`limit`: it has to be at least 1");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionError {
    key: Option<String>,
    message: String,
}

impl OptionError {
    /// The option of this name is wrong.
    pub fn at(key: impl Into<String>, why: impl fmt::Display) -> Self {
        Self { key: Some(key.into()), message: why.to_string() }
    }

    /// The options do not go together.
    pub fn new(why: impl fmt::Display) -> Self {
        Self { key: None, message: why.to_string() }
    }
}

impl fmt::Display for OptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.key.as_ref().map_or(Ok(()), |key| write!(f, "`{key}`: "))?;
        f.write_str(&self.message)
    }
}

impl std::error::Error for OptionError {}

/// A policy's text with the name that errors call it by.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) file: &'a str,
    pub(crate) text: &'a str,
}

impl Source<'_> {
    pub(crate) fn mistake(&self, at: usize, message: impl Into<String>) -> PolicyError {
        self.suggesting(at, message, None)
    }

    fn suggesting(&self, at: usize, message: impl Into<String>, suggestion: Option<String>) -> PolicyError {
        let before = &self.text[..self.text.floor_char_boundary(at.min(self.text.len()))];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        PolicyError::Invalid(Box::new(Mistake {
            file: self.file.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            message: message.into(),
            suggestion,
        }))
    }

    pub(crate) fn malformed(&self, malformed: Malformed) -> PolicyError {
        self.mistake(malformed.at, malformed.message)
    }

    /// A word that is none of those known.
    pub(crate) fn unknown<'w>(
        &self,
        at: usize,
        message: impl Into<String>,
        wrong: &str,
        known: impl IntoIterator<Item = &'w str>,
    ) -> PolicyError {
        self.suggesting(at, message, nearest(wrong, known))
    }

    /// An observer's own words about its options.
    pub(crate) fn option(&self, node: &Node, kind: &str, error: &OptionError) -> PolicyError {
        let span = error.key.as_ref().and_then(|key| node.key_span(key)).unwrap_or(node.span.clone());
        self.mistake(span.start, format!("`{kind}`: {error}"))
    }

    /// Reads a value as a type; `node` is where the value comes from, and may have members that were taken out of it.
    pub(crate) fn read<T: DeserializeOwned>(&self, node: &Node, value: serde_json::Value) -> Result<T, PolicyError> {
        self.read_beside(node, value, &[])
    }

    /// The same, where the value may stand beside members of these names.
    pub(crate) fn read_beside<T: DeserializeOwned>(
        &self,
        node: &Node,
        value: serde_json::Value,
        beside: &[&str],
    ) -> Result<T, PolicyError> {
        serde_path_to_error::deserialize(value).map_err(|error| {
            let span = locate(node, error.path());
            self.misread(node, span, &error.inner().to_string(), beside)
        })
    }

    /// Serde's words for something that is not known: it names that first, then what is.
    fn misread(&self, node: &Node, span: Range<usize>, message: &str, beside: &[&str]) -> PolicyError {
        let is_unknown = message.starts_with("unknown field") || message.starts_with("unknown variant");
        let mut words = message.split('`').skip(1).step_by(2);
        match words.next().filter(|_| is_unknown) {
            Some(wrong) => {
                let what = if message.starts_with("unknown field") { "key" } else { "value" };
                let span = node.key_span(wrong).filter(|_| what == "key").unwrap_or(span);
                let beside = if what == "key" { beside } else { &[] };
                let known: Vec<_> = words.chain(beside.iter().copied()).collect();
                let listed = known.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
                let message = match known.len() {
                    0 => format!("unknown {what} `{wrong}`; there are none here"),
                    _ => format!("unknown {what} `{wrong}`, expected one of {listed}"),
                };
                self.unknown(span.start, message, wrong, known)
            }
            None => self.mistake(span.start, message),
        }
    }
}

/// Where a value stands that a path leads to; as far as it leads.
fn locate(node: &Node, path: &serde_path_to_error::Path) -> Range<usize> {
    let (mut node, mut span) = (node, node.span.clone());
    for segment in path {
        let next = match segment {
            Segment::Seq { index } => node.list().get(*index),
            Segment::Map { key } | Segment::Enum { variant: key } => {
                span = node.key_span(key).unwrap_or(span);
                node.get(key)
            }
            Segment::Unknown => None,
        };
        let Some(next) = next else { break };
        node = next;
        span = node.span.clone();
    }
    span
}

/// The word that was most likely meant, if any is near.
fn nearest<'w>(wrong: &str, known: impl IntoIterator<Item = &'w str>) -> Option<String> {
    let score = |word: &'w str| (strsim::jaro_winkler(wrong, word), word);
    let best = known.into_iter().map(score).max_by(|(one, _), (other, _)| one.total_cmp(other))?;
    (best.0 > 0.75).then(|| best.1.to_owned())
}

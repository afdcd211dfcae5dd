use smallvec::SmallVec;

use crate::{Chunk, Id, Json, Text};

/// What a stream observer answers.
///
/// A verdict on a delta speaks about all *pending* text of its lane: what the observer holds of it, then the chunk's text. So no verdict
/// can reorder a lane. On any other chunk it speaks about the chunk.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
#[must_use]
pub enum Verdict {
    /// Everything pending passes as it is. The default.
    #[default]
    Continue,
    /// Another chunk passes instead: same kind and lane, or one whole tool call in the place of a text delta. Only while nothing is held.
    Amend(Chunk),
    /// Like `Continue`; each event goes to its channel before the chunk is handed on.
    Emit(Vec<SideEvent>),
    /// The invocation ends here. This chunk is not delivered. The stack adds who and where.
    Stop {
        /// A stable machine code.
        code: Text,
        /// For people; no matched text.
        reason: Text,
    },
    /// Everything pending stays held. Deltas only.
    Buffer,
    /// Pending text is replaced, or a part of it stays held. Deltas only.
    Release(Release),
}

impl Verdict {
    /// The names of all verdicts.
    pub const NAMES: &[&str] = &["continue", "amend", "emit", "stop", "buffer", "release"];

    /// Ends the invocation.
    pub fn stop(code: impl Into<Text>, reason: impl Into<Text>) -> Self {
        Self::Stop { code: code.into(), reason: reason.into() }
    }

    /// The name: `continue`, `amend`, `emit`, `stop`, `buffer`, `release`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Continue => "continue",
            Self::Amend(_) => "amend",
            Self::Emit(_) => "emit",
            Self::Stop { .. } => "stop",
            Self::Buffer => "buffer",
            Self::Release(_) => "release",
        }
    }
}

impl From<Release> for Verdict {
    fn from(release: Release) -> Self {
        Self::Release(release)
    }
}

/// What goes on in place of pending text.
///
/// Says *pieces*, not chunks: lane, ids, offsets and provenance are filled by the stack, so that other choices and opaque content cannot
/// be written.
///
/// ```
/// use streamkeeper_contract::{Release, Verdict};
///
/// // Deliver all but the last three bytes.
/// let verdict: Verdict = Release::unchanged().keep(3).into();
/// assert_eq!(verdict.name(), "release");
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
#[must_use]
pub struct Release {
    pieces: Option<SmallVec<[Piece; 1]>>,
    keep: usize,
}

/// One part of a release.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Piece {
    /// Text in the lane itself.
    Text(Text),
    /// A whole tool call in a lane of its own, in the same choice.
    ToolCall {
        /// The tool.
        name: Text,
        /// JSON text.
        arguments: Text,
    },
}

impl Piece {
    /// Bytes of text in it.
    pub fn len(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::ToolCall { name, arguments } => name.len() + arguments.len(),
        }
    }

    /// Whether it holds nothing. Such a piece makes no chunk.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Release {
    /// Pending text as it is; useful with [`keep`](Release::keep).
    pub fn unchanged() -> Self {
        Self::default()
    }

    /// Another text.
    pub fn text(text: impl Into<Text>) -> Self {
        Self::pieces([Piece::Text(text.into())])
    }

    /// Several pieces, in order. At most 64.
    pub fn pieces(pieces: impl IntoIterator<Item = Piece>) -> Self {
        Self { pieces: Some(pieces.into_iter().collect()), keep: 0 }
    }

    /// Leaves the last `bytes` of pending text held and out of this release. Must fall on a character boundary.
    pub fn keep(mut self, bytes: usize) -> Self {
        self.keep = bytes;
        self
    }

    /// How many bytes stay held.
    pub fn kept(&self) -> usize {
        self.keep
    }

    /// The pieces, or `None` if the text itself is released.
    pub fn as_pieces(&self) -> Option<&[Piece]> {
        self.pieces.as_deref()
    }

    /// The pieces by value, or `None` if the text itself is released.
    pub fn into_pieces(self) -> Option<SmallVec<[Piece; 1]>> {
        self.pieces
    }
}

/// What an observer tells the outside world on a named channel: the way to asynchronous work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SideEvent {
    /// The channel it is for.
    pub channel: Id,
    /// What happened.
    pub name: Id,
    /// Details.
    pub payload: Json,
}

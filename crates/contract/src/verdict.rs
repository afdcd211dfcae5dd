use smallvec::SmallVec;

use crate::{Chunk, Id, Json, Text};

/// What a stream observer answers, when it is asked about a chunk and when it has to settle held text.
///
/// A verdict on a delta speaks about all *pending* text of its lane: what the observer holds of it, then the chunk's text, in one piece.
/// So no verdict can reorder a lane. On any other chunk it speaks about the chunk. It is carried out before the next observer is asked,
/// and before the consumer gets anything.
///
/// A verdict that is not allowed where it is given is a failure of the observer, of kind `contract`; a release or amendment that grows too
/// much, and a hold that is full, one of kind `overflow`. What then happens to the stream is decided by the observer's registration.
///
/// ```
/// use streamkeeper_contract::{Chunk, Lane, Release, Verdict};
///
/// // Pass a chunk with another text.
/// let chunk = Chunk::delta(Lane::TEXT, "my password");
/// let verdict = chunk.with_text("my ********").map_or(Verdict::Continue, Verdict::Amend);
/// assert_eq!(verdict.name(), "amend");
///
/// // Let go of everything but the last four bytes, which may be the beginning of something.
/// let verdict = Verdict::from(Release::unchanged().keep(4));
/// assert_eq!(verdict.name(), "release");
///
/// // End it.
/// let verdict = Verdict::stop("too_long", "the answer is over its limit");
/// assert_eq!(verdict.name(), "stop");
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
#[must_use]
pub enum Verdict {
    /// Everything pending passes as it is. The default. At a barrier: held text passes.
    #[default]
    Continue,
    /// Another chunk passes instead, exactly one for one: of the same kind and lane, or one whole tool call in the place of a delta of
    /// answer text. Only while nothing is held; never for an [opaque](crate::Body::Opaque) chunk; never at a barrier.
    ///
    /// Everything but the body is taken from the original: offset, origin, unknown fields. The stack notes who amended it.
    Amend(Chunk),
    /// Like [`Continue`](Verdict::Continue), and each event goes to its channel before the chunk is handed on.
    Emit(Vec<SideEvent>),
    /// The invocation ends here. This chunk and everything held are withheld, later observers are not asked about it, and the source is
    /// not asked for more. The consumer gets one terminal; the stack adds who stopped it, at which chunk, and after how much text.
    Stop {
        /// A stable machine code, for programs.
        code: Text,
        /// For people. It ends up in logs: repeat no text of the model.
        reason: Text,
    },
    /// Everything pending stays held, by the stack and not by the observer. Deltas only; at a barrier it is not allowed.
    Buffer,
    /// Pending text is replaced, or a part of it stays held. Deltas, and at a barrier if nothing is kept.
    Release(Release),
}

impl Verdict {
    /// The names of all verdicts.
    pub const NAMES: &[&str] = &["continue", "amend", "emit", "stop", "buffer", "release"];

    /// [`Verdict::Stop`], with a code for programs and a reason for people.
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

/// What goes on in place of pending text, and how much of its end stays held.
///
/// Says *pieces*, not chunks: lane, ids, offsets and provenance are filled by the stack, so that other choices and opaque content cannot
/// be written. Pieces stand for all pending text but what is [kept](Release::keep); no pieces at all swallow it. A release may have 64
/// pieces and 4 KiB more text than it replaces, unless the stack was given other limits.
///
/// ```
/// use streamkeeper_contract::{Piece, Release};
///
/// // Pending is `id: 12`, and the number may go on.
/// let as_it_is = Release::unchanged().keep(2);
/// assert_eq!((as_it_is.as_pieces(), as_it_is.kept()), (None, 2));
///
/// // Pending is `id: 123456.`, and nothing is undecided.
/// let replaced = Release::text("id: ######.");
/// assert_eq!(replaced.as_pieces(), Some(&[Piece::Text("id: ######.".into())][..]));
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
#[must_use]
pub struct Release {
    pieces: Option<SmallVec<[Piece; 1]>>,
    keep: usize,
}

/// One part of a release. Its JSON form is an object with a `kind`: `text`, `reasoning` or `tool_call`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Piece {
    /// Text in the lane itself.
    Text(Text),
    /// Text in the reasoning of the same choice and part: thoughts that a model wrote into its answer. Only out of answer text.
    Reasoning(Text),
    /// A whole tool call in a lane of its own, in the same choice. The stack gives it an id.
    ToolCall {
        /// The tool.
        name: Text,
        /// JSON text; empty means `{}`.
        arguments: Text,
    },
}

impl Piece {
    /// Bytes of text in it.
    pub fn len(&self) -> usize {
        match self {
            Self::Text(text) | Self::Reasoning(text) => text.len(),
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
///
/// ```
/// use streamkeeper_contract::{Json, SideEvent, id};
///
/// let payload = Json::new(&42)?;
/// let event = SideEvent { channel: id!("metrics"), name: id!("words"), payload };
/// assert_eq!(serde_json::to_string(&event)?, r#"{"channel":"metrics","name":"words","payload":42}"#);
/// # Ok::<_, serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SideEvent {
    /// The channel it is for.
    pub channel: Id,
    /// What happened.
    pub name: Id,
    /// Details.
    pub payload: Json,
}

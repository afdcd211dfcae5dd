use std::collections::VecDeque;

use streamkeeper_contract::{Body, Chunk, ErrorInfo, Lane, Offset, Origin, Raw, Text};

use crate::dialect::{error_event, error_first};

/// Where in an event's JSON the text of a chunk stands, as a path. It is only followed when text has to be spliced, so decoding pays
/// nothing for it but a copy of a few words.
///
/// The path has keys and `*` for array elements, separated by `/`; `index` holds the element for each `*`. Several places that repeat
/// the same text are alternatives, separated by `|`, which share the indices: `choices/*/delta/content|choices/*/text`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Leaf {
    /// What stands before the path: for formats that wrap another one.
    pub(crate) prefix: &'static str,
    pub(crate) path: &'static str,
    pub(crate) index: [u16; 4],
}

impl Leaf {
    /// The chunk's text stands nowhere that can be spliced.
    pub(crate) const NONE: Leaf = Leaf { prefix: "", path: "", index: [0; 4] };

    pub(crate) const fn new(path: &'static str, index: [u16; 4]) -> Self {
        Self { prefix: "", path, index }
    }
}

const MADE_UP: &str = "unnamed_call_";

/// Whether the id of a tool call was made up here, since the provider gave none: `unnamed_call_`, the choice, `_`, and the number of
/// the call.
///
/// ```
/// use streamkeeper_wire::is_made_up;
///
/// assert!(is_made_up("unnamed_call_0_1"));
/// assert!(!is_made_up("call_3rqTYrA6H21AYUaRGP4F66oq"));
/// ```
pub fn is_made_up(id: &str) -> bool {
    id.starts_with(MADE_UP)
}

/// What a dialect makes of events: chunks in order, each with the place of its text.
#[derive(Debug, Default)]
pub(crate) struct Output {
    queue: VecDeque<(Chunk, Leaf)>,
    at: Offset,
    frame: u32,
    part: u16,
    /// Set by a dialect around the events of a format that it wraps, for example `event/`.
    pub(crate) prefix: &'static str,
    /// Events that no rule fits.
    pub(crate) unknown: u64,
    /// Events that a rule fits.
    pub(crate) known: u64,
    /// The format's own end was seen.
    pub(crate) ended: bool,
    /// An error was added.
    pub(crate) failed: bool,
    /// The stream has more of these than the limit: the current event is not decoded, and nothing after it.
    pub(crate) too_many: Option<(&'static str, usize)>,
    /// How the format said that it ended, where that is no finish: `failed`, `RUN_ERROR`.
    pub(crate) stated_end: Option<Text>,
}

impl Output {
    /// Chunks from here on belong to the next frame.
    pub(crate) fn next_frame(&mut self) {
        self.frame = self.frame.saturating_add(1);
        self.part = 0;
    }

    /// Chunks from here on arrived at this offset.
    pub(crate) fn set_offset(&mut self, at: Offset) {
        self.at = at;
    }

    /// Adds a chunk whose text, if any, cannot be spliced.
    pub(crate) fn push(&mut self, chunk: impl Into<Chunk>) {
        self.chunk(chunk.into(), Leaf::NONE);
    }

    /// Adds a delta. Empty text makes none.
    pub(crate) fn delta(&mut self, lane: Lane, text: impl Into<Text>, leaf: Leaf) {
        let text = text.into();
        if !text.is_empty() {
            self.chunk(Chunk::delta(lane, text), leaf);
        }
    }

    /// Adds the whole text of a lane, repeated.
    pub(crate) fn snapshot(&mut self, lane: Lane, text: impl Into<Text>, leaf: Leaf) {
        self.chunk(Chunk::snapshot(lane, text), leaf);
    }

    /// Adds any chunk with the place of its text.
    pub(crate) fn chunk(&mut self, mut chunk: Chunk, mut leaf: Leaf) {
        let meta = chunk.meta_mut();
        // A canonical chunk states when it arrived; it is believed unless its own arrival here is.
        if self.at > Offset::default() {
            meta.at = self.at;
        }
        meta.origin = Origin { frame: self.frame, part: self.part };
        self.part = self.part.saturating_add(1);
        leaf.prefix = self.prefix;
        self.queue.push_back((chunk, leaf));
    }

    /// The id of a call that the provider gave none, for [`is_made_up`] to tell. The same stream gives the same ids.
    pub(crate) fn made_up_id(lane: Lane) -> Text {
        format!("{MADE_UP}{}_{}", lane.choice, lane.call).into()
    }

    /// Adds an error that the provider reports. Only the first one is: providers repeat it. No finish may follow it.
    pub(crate) fn error(&mut self, error: ErrorInfo) {
        self.error_at(error, Leaf::NONE);
    }

    /// The same with the place of its message.
    pub(crate) fn error_at(&mut self, error: ErrorInfo, leaf: Leaf) {
        if !self.failed {
            self.failed = true;
            self.chunk(Chunk::error(error), leaf);
        }
    }

    /// Adds an event that no rule of its format fits: an error, if it states one as any provider does, else a `raw` chunk.
    pub(crate) fn raw(&mut self, name: Option<&str>, data: &str) {
        let is_first = self.known + self.unknown == 0;
        if let Some(error) = error_event(name, data).or_else(|| is_first.then(|| error_first(data))?) {
            self.known += 1;
            return self.error(error);
        }
        self.unknown += 1;
        self.push(Body::Raw(Box::new(Raw { event: name.map(Text::from), data: data.into() })));
    }

    /// The stream has more of something than can be told apart.
    #[cold]
    pub(crate) fn too_many(&mut self, what: &'static str, limit: usize) {
        self.too_many = self.too_many.or(Some((what, limit)));
    }

    /// Forgets the chunks of the current frame.
    #[cold]
    pub(crate) fn forget_frame(&mut self) {
        let frame = self.frame;
        self.queue.retain(|(chunk, _)| chunk.origin().frame != frame);
    }

    /// Whether no chunk is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Takes the oldest chunk.
    pub(crate) fn pop(&mut self) -> Option<(Chunk, Leaf)> {
        // An empty queue keeps no more room than this, so that open streams are cheap.
        const KEPT: usize = 16;
        let chunk = self.queue.pop_front();
        if chunk.is_none() && self.queue.capacity() > KEPT {
            self.queue.shrink_to(KEPT);
        }
        chunk
    }
}

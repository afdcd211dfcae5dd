//! Halting a stream at a pattern.

mod pattern;
mod refusals;
mod sets;

use std::sync::{Arc, LazyLock};

use streamkeeper_contract::{Body, Channel, Chunk, ChunkKind, Id, Json, Lane, Text, Verdict, id};
use streamkeeper_stream::{Interest, ObserverContext, Observers, OnFailure, Registration, StreamObserver, from_fn};

use self::pattern::{Judgement, Pattern, Tail};
pub use self::{
    pattern::{MAX_PATTERN_BYTES, PatternError},
    refusals::RefusalSet,
    sets::PatternSet,
};

/// Stops the stream as soon as its text matches a pattern. A guard.
///
/// By default it looks for generic refusals ([`RefusalSet`]), so that the program can ask another model, or ask otherwise, before it has
/// paid for the rest of the answer.
///
/// # When it stops
/// At the first chunk after which the match can no longer be undone, however the text is cut into chunks. For most patterns that is the
/// chunk that completes the match; a pattern that looks ahead (`\bhelp\b`, `end$`) needs one more character, or the end of the text. That
/// chunk is not delivered. **The chunks before it were**: a match that spans several chunks has been delivered up to the last one. This
/// observer halts, it does not hold back; to keep text from a reader, redact it.
///
/// The outcome is `Stopped` with code `pattern_matched`. The reason names the pattern set and the channel and repeats no text of the model
/// unless [`quote_match`](Self::quote_match) says so.
///
/// # What it looks at
/// Each lane (choice, part, channel) is a text of its own, of the channels that were chosen: the answer by default. Whole texts that a
/// provider repeats or sends in one piece (snapshots, tool calls, tool results) are judged alone. A match of at most
/// [`window`](Self::window) bytes is found wherever it is; a longer one may be missed.
///
/// # Which calls
/// All call classes. Narrow it where only final answers count: `Registration::from(halt).when(CallClass::Synthesize)`.
///
/// # What it costs
/// One table look-up for each byte of text, and no allocation beyond the window. The full search over the window runs only when that
/// look-up says that a match may have ended. Patterns that do not fit its table of 1 MiB (large Unicode classes, repeated) are searched in
/// the whole window for each chunk. The window is cut down to the longest text that the pattern can match.
///
/// # When it fails
/// The invocation fails with it, as for every guard; [`fail_open`](Self::fail_open) lets the stream go on instead. More than 256 texts
/// open at once end the invocation with code `too_many_lanes`.
///
/// ```
/// use streamkeeper_contract::{Chunk, Lane, Outcome};
/// use streamkeeper_observers::HaltOnPattern;
/// use streamkeeper_stream::{ObserverFactoryContext, Observers};
///
/// # fn main() -> Result<(), streamkeeper_observers::PatternError> {
/// let observers = Observers::from(HaltOnPattern::pattern(r"(?i)\bas an ai language model\b")?);
/// let mut stack = observers.stack(&ObserverFactoryContext::default());
/// for text in ["As an AI lan", "guage model", ", I think"] {
///     stack.push(Chunk::delta(Lane::TEXT, text));
/// }
/// stack.finish();
///
/// assert_eq!(stack.pop().unwrap().text(), Some("As an AI lan"));
/// let Some(Outcome::Stopped(stop)) = stack.outcome().map(|outcome| &**outcome) else { panic!("it goes on") };
/// assert_eq!((stop.code.as_str(), stop.chunk_index), ("pattern_matched", 2));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[must_use = "it does nothing until it is registered"]
pub struct HaltOnPattern {
    id: Id,
    config: Config,
    fail_open: bool,
}

#[derive(Debug, Clone)]
struct Config {
    pattern: Arc<Pattern>,
    /// What the reason calls the pattern.
    name: Text,
    channels: Vec<Channel>,
    window: usize,
    quote_match: bool,
}

/// Compiled once for all.
static REFUSALS: LazyLock<Arc<Pattern>> = LazyLock::new(|| {
    let pattern = Pattern::new(&RefusalSet::bundled().pattern());
    Arc::new(pattern.expect("the bundled set is checked by tests"))
});
static JAILBREAK: LazyLock<Arc<Pattern>> = LazyLock::new(|| {
    let pattern = Pattern::new(&PatternSet::jailbreak().pattern());
    Arc::new(pattern.expect("the bundled sets are checked by tests"))
});
/// The code of the stop.
const MATCHED: Text = Text::from_static("pattern_matched");
const DEFAULT_WINDOW: usize = 16 * 1024;
/// Text that comes in one piece, and the ends of text that does not.
const WHOLES_AND_ENDS: Interest = Interest::only(&[
    ChunkKind::Snapshot,
    ChunkKind::ToolCall,
    ChunkKind::ToolResult,
    ChunkKind::ToolCallEnd,
    ChunkKind::ProviderToolEnd,
    ChunkKind::PartEnd,
    ChunkKind::MessageEnd,
    ChunkKind::Finish,
]);
const MAX_LANES: usize = 256;
const MAX_QUOTE: usize = 256;

impl Default for HaltOnPattern {
    fn default() -> Self {
        Self::refusals()
    }
}

impl HaltOnPattern {
    /// Halts at generic refusals: [`RefusalSet::bundled`].
    pub fn refusals() -> Self {
        let set = RefusalSet::bundled();
        Self::new(REFUSALS.clone(), format!("the pattern set `{}` version {}", set.id, set.version))
    }

    /// Halts at any pattern of these sets: refusals in other languages, a jailbreak, sets of your own.
    ///
    /// ```
    /// use streamkeeper_contract::{Chunk, Lane};
    /// use streamkeeper_observers::{HaltOnPattern, PatternSet};
    /// use streamkeeper_stream::{ObserverFactoryContext, Observers};
    ///
    /// let sets = ["de", "fr"].into_iter().filter_map(PatternSet::refusals);
    /// let observers = Observers::from(HaltOnPattern::sets(sets)?);
    /// let mut stack = observers.stack(&ObserverFactoryContext::default());
    /// stack.push(Chunk::delta(Lane::TEXT, "Dabei kann ich leider nicht hel"));
    /// stack.push(Chunk::delta(Lane::TEXT, "fen."));
    /// assert_eq!(stack.outcome().unwrap().stop().unwrap().chunk_index, 1);
    /// # Ok::<_, streamkeeper_observers::PatternError>(())
    /// ```
    ///
    /// # Errors
    /// As for [`pattern`](Self::pattern); no set at all matches the empty text.
    pub fn sets<'s>(sets: impl IntoIterator<Item = &'s PatternSet>) -> Result<Self, PatternError> {
        let sets: Vec<&PatternSet> = sets.into_iter().collect();
        let pattern: Vec<String> = sets.iter().map(|set| format!("(?:{})", set.pattern())).collect();
        let names: Vec<String> = sets.iter().map(|set| format!("`{}` version {}", set.id, set.version)).collect();
        let of = if sets.len() == 1 { "the pattern set" } else { "one of the pattern sets" };
        Ok(Self::new(Arc::new(Pattern::new(&pattern.join("|"))?), format!("{of} {}", names.join(", "))))
    }

    /// Halts where a model says that it plays without its rules: [`PatternSet::jailbreak`].
    ///
    /// ```
    /// use streamkeeper_contract::{Chunk, Lane};
    /// use streamkeeper_observers::HaltOnPattern;
    /// use streamkeeper_stream::{ObserverFactoryContext, Observers};
    ///
    /// let observers = Observers::from(HaltOnPattern::jailbreak());
    /// let mut stack = observers.stack(&ObserverFactoryContext::default());
    /// stack.push(Chunk::delta(Lane::TEXT, "Jailbreak mode activated. "));
    /// assert!(stack.is_ended());
    /// ```
    pub fn jailbreak() -> Self {
        let set = PatternSet::jailbreak();
        Self::new(JAILBREAK.clone(), format!("the pattern set `{}` version {}", set.id, set.version))
    }

    /// Halts at a regular expression in the syntax of the `regex` crate (no look-around, no back-references).
    ///
    /// Prefer `(?-u:\b)` to `\b`: it means ASCII words and spares the full search at every candidate.
    ///
    /// # Errors
    /// If it cannot be parsed, matches the empty text, or is too large ([`MAX_PATTERN_BYTES`], 4 MiB compiled).
    pub fn pattern(pattern: &str) -> Result<Self, PatternError> {
        Ok(Self::new(Arc::new(Pattern::new(pattern)?), "the pattern"))
    }

    fn new(pattern: Arc<Pattern>, name: impl Into<Text>) -> Self {
        let config = Config {
            pattern,
            name: name.into(),
            channels: vec![Channel::Text],
            window: DEFAULT_WINDOW,
            quote_match: false,
        };
        Self { id: id!("halt-on-pattern"), config, fail_open: false }
    }

    /// The id it is registered with. Default: `halt-on-pattern`. Two in one stack need two ids.
    pub fn id(mut self, id: Id) -> Self {
        self.id = id;
        self
    }

    /// The channels whose text is judged, instead of the answer alone: [`Channel::Refusal`] and [`Channel::Reasoning`] are common
    /// additions.
    pub fn channels(mut self, channels: impl IntoIterator<Item = Channel>) -> Self {
        self.config.channels = channels.into_iter().collect();
        self
    }

    /// How many bytes of each lane are kept for a match that began in earlier chunks. Default: 16 KiB. Cut at a character, so that up to
    /// three bytes more may count.
    pub fn window(mut self, bytes: usize) -> Self {
        self.config.window = bytes;
        self
    }

    /// Whether the reason quotes the matched text, as a JSON string of at most 256 bytes. Default: no, since reasons end up in logs.
    pub fn quote_match(mut self, quote: bool) -> Self {
        self.config.quote_match = quote;
        self
    }

    /// If it fails, the stream goes on without it. By default the invocation fails.
    pub fn fail_open(mut self) -> Self {
        self.fail_open = true;
        self
    }

    /// The registration of this guard, for all call classes. `Registration::from(halt)` is the same.
    pub fn registration(self) -> Registration {
        let config = Arc::new(self.config);
        let guard = Registration::guard(self.id, from_fn(move |_| Halt { config: config.clone(), open: Vec::new() }));
        if self.fail_open { guard.on_failure(OnFailure::PassThrough) } else { guard }
    }
}

impl From<HaltOnPattern> for Registration {
    fn from(halt: HaltOnPattern) -> Self {
        halt.registration()
    }
}

impl From<HaltOnPattern> for Observers {
    fn from(halt: HaltOnPattern) -> Self {
        halt.registration().into()
    }
}

/// The observer of one invocation.
struct Halt {
    config: Arc<Config>,
    open: Vec<OpenText>,
}

struct OpenText {
    lane: Lane,
    tail: Tail,
    undecided: bool,
}

impl StreamObserver for Halt {
    fn interest(&self) -> Interest {
        Interest::channels(&self.config.channels) | WHOLES_AND_ENDS
    }

    fn on_chunk(&mut self, chunk: &Chunk, _: &mut ObserverContext<'_>) -> Verdict {
        match chunk.body() {
            Body::Delta { lane, text } => self.piece(*lane, text),
            Body::Snapshot(_) | Body::ToolCall(_) | Body::ToolResult(_) => self.whole(chunk),
            Body::PartEnd { choice, part } => self.ended(|lane| lane.choice == *choice && lane.part == *part),
            Body::MessageEnd { choice } => self.ended(|lane| lane.choice == *choice),
            Body::Finish(finish) => self.ended(|lane| lane.choice == finish.choice),
            Body::ToolCallEnd(ended) | Body::ProviderToolEnd(ended) => self.ended(|lane| lane == *ended),
            _ => Verdict::Continue,
        }
    }
}

impl Halt {
    fn piece(&mut self, lane: Lane, text: &str) -> Verdict {
        let at = match self.open.iter().rposition(|open| open.lane == lane) {
            Some(at) => at,
            None if self.open.len() < MAX_LANES => {
                self.open.push(OpenText { lane, tail: Tail::default(), undecided: false });
                self.open.len() - 1
            }
            None => return Verdict::stop("too_many_lanes", "more than 256 texts are open at once"),
        };
        let open = &mut self.open[at];
        let judgement = self.config.pattern.push(&mut open.tail, text, self.config.window);
        open.undecided = judgement == Judgement::Undecided;
        match judgement {
            Judgement::Match(range) => self.config.stop(lane, &open.tail.text()[range]),
            Judgement::None | Judgement::Undecided => Verdict::Continue,
        }
    }

    /// Judges a text that came in one piece: sent so, or repeated. If it repeats deltas, those had no match, so this finds one only in a
    /// repetition that differs.
    fn whole(&mut self, chunk: &Chunk) -> Verdict {
        let (Some(lane), Some(text)) = (chunk.lane(), chunk.text()) else { return Verdict::Continue };
        if !self.config.channels.contains(&lane.channel) {
            return Verdict::Continue;
        }
        let pattern = &self.config.pattern;
        let goes_on = chunk.kind() == ChunkKind::Snapshot && self.open.iter().any(|open| open.lane == lane);
        let found = if goes_on { pattern.find_before_more(text) } else { pattern.find(text) };
        found.map_or(Verdict::Continue, |range| self.config.stop(lane, &text[range]))
    }

    /// Judges the texts that are over and forgets them.
    fn ended(&mut self, is_over: impl Fn(Lane) -> bool) -> Verdict {
        let mut verdict = Verdict::Continue;
        self.open.retain(|open| {
            if !is_over(open.lane) {
                return true;
            }
            if open.undecided
                && verdict == Verdict::Continue
                && let Some(range) = self.config.pattern.find_at_end(&open.tail, self.config.window)
            {
                verdict = self.config.stop(open.lane, &open.tail.text()[range]);
            }
            false
        });
        verdict
    }
}

impl Config {
    fn stop(&self, lane: Lane, matched: &str) -> Verdict {
        let mut reason = format!("{} matched in channel `{}`", self.name, lane.channel.as_str());
        if self.quote_match {
            let end = matched.floor_char_boundary(MAX_QUOTE);
            let cut = if end < matched.len() { " (cut)" } else { "" };
            reason = format!("{reason}: {}{cut}", Json::string(&matched[..end]).as_str());
        }
        Verdict::stop(MATCHED, reason)
    }
}

//! Patterns over text, and what happens where one matches: the layer under redaction and other exact text observers.

mod on_match;
mod reading;
pub mod validators;

use std::{fmt, sync::Arc};

use streamkeeper_contract::{Body, Channel, Chunk, ChunkKind, Id, Json, Lane, Release, SideEvent, Text, Verdict, id};
use streamkeeper_stream::{Interest, ObserverContext, Observers, OnFailure, Registration, StreamObserver, from_fn};
use streamkeeper_text::Patterns;

use self::{
    on_match::Kind,
    reading::{Answer, Reading},
};
pub use self::{
    on_match::{Match, OnMatch},
    reading::MAX_UNDECIDED,
};

/// Looks for patterns in the text of a stream and does one thing where they match: replaces, stops, emits, or tags. A guard.
///
/// State the patterns, the channels and what happens; holds, lanes, barriers, snapshots, JSON and limits are the layer's business.
/// However a text is cut into chunks and lanes are mixed, the joined text of each lane is what
/// [`redact_once`](streamkeeper_text::redact_once) makes of the whole text between two
/// [barriers](streamkeeper_stream::StreamObserver::on_barrier).
///
/// # What it looks at
/// Each lane (choice, part, channel, call) is a text of its own. By default all channels, and whatever else carries text:
/// whole tool calls and results, snapshots, errors, structured chunks. With [`channels`](Self::channels) only those.
///
/// Tool arguments, tool results and structured chunks that begin with `{`, `[`, `"` or, in arguments, a number, are read as JSON: their
/// strings, keys and values, are searched with escapes decoded, and a replacement is escaped. Other text is plain. A match in the
/// arguments of a call [denies](OnArguments::Deny) the call unless told otherwise.
///
/// # What it holds
/// The bytes that may still become a match, and no others. A match that has begun for certain is swallowed as it comes; where the
/// replacement depends on the matched text ([`OnMatch::replace`]) it is held until it is whole. Nothing is held and nothing is allocated
/// while no pattern can have begun.
///
/// # Limits
/// | limit | past it |
/// |---|---|
/// | [`MAX_UNDECIDED`], 4 KiB undecided in one lane | stops, code `undecided_too_long` |
/// | 256 lanes open at once | stops, code `too_many_lanes` |
/// | 4 KiB of a match for [`OnMatch::replace`] | it gets the first 4 KiB, marked as [cut](Match::is_cut) |
/// | 64 KiB of arguments to [check](Self::check_arguments) | stops, code `tool_call_denied` |
///
/// The limits of the stack hold too: many short matches that get long replacements in one chunk can exceed
/// [`growth_bytes`](streamkeeper_stream::Limits::growth_bytes).
///
/// ```
/// use streamkeeper_contract::{Chunk, Lane, id};
/// use streamkeeper_observers::{OnMatch, TextObserver};
/// use streamkeeper_stream::{ObserverFactoryContext, Observers};
/// use streamkeeper_text::{Pattern, Patterns};
///
/// let patterns = Patterns::new([Pattern::regex("ticket", r"\bTICKET-\d+")?])?;
/// let observers = Observers::from(TextObserver::new(id!("tickets"), patterns, OnMatch::label(|_| "[ticket]".into())));
/// let mut stack = observers.stack(&ObserverFactoryContext::default());
/// for text in ["See TICK", "ET-1", "2 for more"] {
///     stack.push(Chunk::delta(Lane::TEXT, text));
/// }
/// stack.finish();
/// let texts: Vec<_> = std::iter::from_fn(|| stack.pop()).filter_map(|chunk| chunk.text().map(str::to_owned)).collect();
/// assert_eq!(texts.concat(), "See [ticket] for more");
/// # Ok::<_, streamkeeper_text::PatternError>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "it does nothing until it is registered"]
pub struct TextObserver {
    id: Id,
    rules: Rules,
    is_transform: bool,
    fail_open: bool,
}

/// Says whether masked arguments may go to a tool: gets the tool's name and the arguments.
pub type ArgumentsCheck = Arc<dyn Fn(&str, &str) -> bool + Send + Sync>;

/// What a match in the arguments of a tool call means, where text is replaced or tagged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnArguments {
    /// The invocation stops with code `tool_call_denied`, and no byte of the match goes out. The default: a tool that gets a mask in
    /// place of a value does something that nobody asked for.
    #[default]
    Deny,
    /// It is replaced inside of the JSON string that it stands in, so that the arguments stay valid JSON. A match outside of strings, in
    /// a number for example, denies the call.
    Mask,
}

/// What to look for and what to do.
#[derive(Clone)]
struct Rules {
    patterns: Patterns,
    on_match: OnMatch,
    channels: Option<Vec<Channel>>,
    arguments: OnArguments,
    check: Option<ArgumentsCheck>,
    report: Option<Id>,
    quote_match: bool,
}

const MAX_LANES: usize = 256;
const MAX_QUOTE: usize = 256;
/// The code of a stop for a match in arguments.
const DENIED: &str = "tool_call_denied";
/// Kinds that have no text and end none.
const SILENT: [ChunkKind; 6] = [
    ChunkKind::Heartbeat,
    ChunkKind::Usage,
    ChunkKind::RunStart,
    ChunkKind::RunEnd,
    ChunkKind::StepStart,
    ChunkKind::StepEnd,
];
/// The text of lanes, and all that can be a barrier of one.
const TEXTS_AND_ENDS: Interest = Interest::only(&[
    ChunkKind::Snapshot,
    ChunkKind::ToolCallStart,
    ChunkKind::ToolCall,
    ChunkKind::ToolResult,
    ChunkKind::ToolCallEnd,
    ChunkKind::ProviderToolStart,
    ChunkKind::ProviderToolEnd,
    ChunkKind::ProviderToolOutput,
    ChunkKind::Opaque,
    ChunkKind::Annotation,
    ChunkKind::Media,
    ChunkKind::PartStart,
    ChunkKind::PartEnd,
    ChunkKind::MessageEnd,
    ChunkKind::Finish,
    ChunkKind::Error,
    ChunkKind::Discard,
]);

impl TextObserver {
    /// Looks for these patterns. The first pattern of those that overlap or touch names the match.
    pub fn new(id: Id, patterns: Patterns, on_match: OnMatch) -> Self {
        let rules = Rules {
            patterns,
            on_match,
            channels: None,
            arguments: OnArguments::default(),
            check: None,
            report: None,
            quote_match: false,
        };
        Self { id, rules, is_transform: false, fail_open: false }
    }

    /// Only the text of these channels, and nothing outside of lanes. Default: all text.
    pub fn channels(mut self, channels: impl IntoIterator<Item = Channel>) -> Self {
        self.rules.channels = Some(channels.into_iter().collect());
        self
    }

    /// What a match in tool arguments means. Default: [`OnArguments::Deny`].
    pub fn arguments(mut self, arguments: OnArguments) -> Self {
        self.rules.arguments = arguments;
        self
    }

    /// Asks whether the arguments of a call that was changed still fit its tool; gets the tool's name and the whole arguments. `false`
    /// denies the call before its end goes out. At most 64 KiB of arguments are kept for it.
    pub fn check_arguments(mut self, check: impl Fn(&str, &str) -> bool + Send + Sync + 'static) -> Self {
        self.rules.check = Some(Arc::new(check));
        self
    }

    /// Sends an event `match` on this channel for every match, with the pattern's name, the lane, and the byte of the lane's text where
    /// it begins; never the text.
    pub fn report(mut self, channel: Id) -> Self {
        self.rules.report = Some(channel);
        self
    }

    /// Whether the reason of a stop quotes the match as far as it is known, at most 256 bytes. Reasons end up in logs. Default: no.
    pub fn quote_match(mut self, quote: bool) -> Self {
        self.rules.quote_match = quote;
        self
    }

    /// Registers it as a transform: if it fails, the stream goes on without it.
    pub fn transform(mut self) -> Self {
        self.is_transform = true;
        self
    }

    /// A guard that lets the stream go on without it if it fails.
    pub fn fail_open(mut self) -> Self {
        self.fail_open = true;
        self
    }

    /// The registration, for all call classes. `Registration::from(observer)` is the same.
    pub fn registration(self) -> Registration {
        let rules = Arc::new(self.rules);
        let make = from_fn(move |_| Observer { rules: rules.clone(), open: Vec::new(), last: 0 });
        match (self.is_transform, self.fail_open) {
            (true, _) => Registration::transform(self.id, make),
            (false, false) => Registration::guard(self.id, make),
            (false, true) => Registration::guard(self.id, make).on_failure(OnFailure::PassThrough),
        }
    }
}

impl From<TextObserver> for Registration {
    fn from(observer: TextObserver) -> Self {
        observer.registration()
    }
}

impl From<TextObserver> for Observers {
    fn from(observer: TextObserver) -> Self {
        observer.registration().into()
    }
}

impl Rules {
    fn has(&self, lane: Lane) -> bool {
        self.channels.as_ref().is_none_or(|channels| channels.contains(&lane.channel))
    }

    /// Whether a match in this lane ends the call.
    fn denies(&self, lane: Lane) -> bool {
        lane.channel == Channel::Arguments && self.arguments == OnArguments::Deny && self.on_match.changes_text()
    }

    fn stop(&self, lane: Option<Lane>, pattern: usize, matched: &str) -> Verdict {
        let name = self.patterns.get(pattern).map_or("", |pattern| pattern.name());
        let place = lane.map_or("an event", |lane| lane.channel.as_str());
        let (code, mut reason) = match &self.on_match.0 {
            Kind::Stop { code, reason } => (code.clone(), format!("{reason}: `{name}` in {place}")),
            _ => (DENIED.into(), format!("pattern `{name}` matched in {place}, where it cannot be replaced")),
        };
        if self.quote_match {
            let end = matched.floor_char_boundary(MAX_QUOTE);
            let cut = if end < matched.len() { " (cut)" } else { "" };
            reason = format!("{reason}: {}{cut}", Json::string(&matched[..end]).as_str());
        }
        Verdict::stop(code, reason)
    }

    /// The event about a match.
    fn event(&self, pattern: usize, lane: Option<Lane>, at: u64) -> Option<SideEvent> {
        #[derive(serde::Serialize)]
        struct Found<'a> {
            pattern: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            lane: Option<Lane>,
            at: u64,
        }
        let channel = match &self.on_match.0 {
            Kind::Emit { channel } => channel,
            _ => self.report.as_ref()?,
        };
        let pattern = self.patterns.get(pattern).map_or("", |pattern| pattern.name());
        let payload = Json::new(&Found { pattern, lane, at }).ok()?;
        Some(SideEvent { channel: channel.clone(), name: id!("match"), payload })
    }
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rules")
            .field("patterns", &self.patterns.len())
            .field("on_match", &self.on_match)
            .field("channels", &self.channels)
            .field("arguments", &self.arguments)
            .finish_non_exhaustive()
    }
}

/// The observer of one invocation.
struct Observer {
    rules: Arc<Rules>,
    open: Vec<Reading>,
    /// Where the last delta was: the next one is most often there.
    last: usize,
}

impl StreamObserver for Observer {
    fn interest(&self) -> Interest {
        match &self.rules.channels {
            Some(channels) => Interest::channels(channels) | TEXTS_AND_ENDS,
            None => ChunkKind::ALL
                .iter()
                .filter(|kind| !SILENT.contains(kind))
                .fold(Interest::NONE, |all, &kind| all | Interest::only(&[kind])),
        }
    }

    fn on_chunk(&mut self, chunk: &Chunk, ctx: &mut ObserverContext<'_>) -> Verdict {
        if let Body::Delta { lane, .. } = chunk.body() {
            return self.read(*lane, ctx, false);
        }
        match self.ended(chunk) {
            Verdict::Continue => {}
            stop => return stop,
        }
        self.whole(chunk, ctx)
    }

    fn on_barrier(&mut self, ctx: &mut ObserverContext<'_>) -> Verdict {
        match ctx.lane() {
            Some(lane) => self.read(lane, ctx, true),
            None => Verdict::Buffer,
        }
    }
}

impl Observer {
    fn read(&mut self, lane: Lane, ctx: &mut ObserverContext<'_>, is_last: bool) -> Verdict {
        let Some(at) = self.reading_of(lane) else {
            return Verdict::stop("too_many_lanes", "more than 256 texts are open at once");
        };
        let Self { rules, open, .. } = self;
        match open[at].read(rules, ctx.pending(), is_last, &mut |event| ctx.emit(event)) {
            Answer::Stop(verdict) => verdict,
            Answer::Goes { text: None, keep: 0 } => Verdict::Continue,
            Answer::Goes { text: None, keep } => Release::unchanged().keep(keep).into(),
            Answer::Goes { text: Some(text), keep } => Release::text(text).keep(keep).into(),
        }
    }

    fn reading_of(&mut self, lane: Lane) -> Option<usize> {
        if self.open.get(self.last).is_none_or(|reading| reading.lane != lane) {
            self.last = match self.open.iter().position(|reading| reading.lane == lane) {
                Some(at) => at,
                None if self.open.len() < MAX_LANES => {
                    self.open.push(Reading::new(&self.rules, lane));
                    self.open.len() - 1
                }
                None => return None,
            };
        }
        Some(self.last)
    }

    /// Forgets the texts that a chunk ends, after a last look at arguments.
    fn ended(&mut self, chunk: &Chunk) -> Verdict {
        if let Body::ToolCallStart(call) = chunk.body()
            && self.rules.check.is_some()
            && let Some(at) = self.reading_of(call.lane)
        {
            self.open[at].tool = Some(call.name.clone());
        }
        let goes_on = matches!(
            chunk.kind(),
            ChunkKind::ToolCallStart
                | ChunkKind::Snapshot
                | ChunkKind::Annotation
                | ChunkKind::Opaque
                | ChunkKind::Media
        );
        let rules = &self.rules;
        let mut verdict = Verdict::Continue;
        self.open.retain_mut(|reading| {
            if !chunk.is_barrier_for(reading.lane) {
                return true;
            }
            if verdict == Verdict::Continue && !goes_on {
                verdict = reading.check(rules);
            }
            reading.reset(rules);
            goes_on
        });
        verdict
    }

    /// Looks at a text that comes in one piece.
    fn whole(&self, chunk: &Chunk, ctx: &mut ObserverContext<'_>) -> Verdict {
        let Some(text) = chunk.text() else { return Verdict::Continue };
        let lane = match chunk.body() {
            Body::Snapshot(_) | Body::ToolCall(_) | Body::ToolResult(_) | Body::ProviderToolOutput(_) => chunk.lane(),
            // The stack withholds the tokens of a text that was changed.
            Body::Annotation(note) if note.is_logprobs() => return Verdict::Continue,
            Body::End(_) => return Verdict::Continue,
            _ => None,
        };
        let is_asked_for = lane.map_or(self.rules.channels.is_none(), |lane| self.rules.has(lane));
        if !is_asked_for {
            return Verdict::Continue;
        }
        let is_plain = matches!(chunk.body(), Body::Error(_));
        let mut reading = Reading::of_whole(&self.rules, lane, is_plain);
        match reading.read(&self.rules, text, true, &mut |event| ctx.emit(event)) {
            Answer::Stop(verdict) => verdict,
            Answer::Goes { text: None, .. } => Verdict::Continue,
            Answer::Goes { text: Some(text), .. } => {
                if let Body::ToolCall(call) = chunk.body()
                    && let Some(check) = &self.rules.check
                    && !check(&call.name, &text)
                {
                    return denied_by_check();
                }
                let unreplaced =
                    || Verdict::stop("unreplaceable", "a pattern matched in an event that cannot be rewritten");
                chunk.with_text(text).map_or_else(unreplaced, Verdict::Amend)
            }
        }
    }
}

fn denied_by_check() -> Verdict {
    Verdict::stop(Text::from_static(DENIED), "the masked arguments of a tool call do not fit its tool")
}

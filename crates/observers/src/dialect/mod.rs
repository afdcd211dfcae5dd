//! Normalising what models write into their answers because their API has no other place for it.

mod marker;
mod object;
mod scan;
mod tokens;

use std::sync::Arc;

use streamkeeper_contract::{Body, Channel, Chunk, ChunkKind, Id, Lane, Text, Verdict, id};
use streamkeeper_stream::{
    Interest, ObserverContext, ObserverFactoryContext, Observers, Registration, StreamObserver, from_fn,
};

pub use self::tokens::SPECIAL_TOKENS;
use self::{scan::Reading, tokens::Tokens};

/// Turns tool calls, thoughts and control tokens that a model wrote into its answer into what they mean. A transform.
///
/// | dialect | in the answer | becomes |
/// |---|---|---|
/// | [`ToolTag`](Dialect::ToolTag) | `<tool name="search">{"q":"x"}</tool>` | a whole tool call |
/// | [`Tuple`](Dialect::Tuple) | `{0:"search",1:{"q":"x"}}` | a whole tool call |
/// | [`ToolCallTag`](Dialect::ToolCallTag) | `<tool_call>{"name":"search","arguments":{"q":"x"}}</tool_call>` | a whole tool call |
/// | [`FencedJson`](Dialect::FencedJson) | the same object in a fenced block, labelled `json`, `tool_call`, `tool_use`, `tool_code`, `tool` or not at all | a whole tool call |
/// | [`Think`](Dialect::Think) | `<think>…</think>`, `<thinking>…</thinking>` | reasoning of the same choice and part |
/// | [`SpecialTokens`](Dialect::SpecialTokens) | `<\|im_end\|>` and its family ([`SPECIAL_TOKENS`]) | nothing |
///
/// Whatever the dialect, a call comes out as one [`tool_call`](ChunkKind::ToolCall) chunk of the same choice, with an id made by the
/// stack, in its place between the texts around it. The finish stays the provider's, often `stop`: who runs tools goes by the calls.
///
/// # What counts
/// However the answer is cut into chunks, calls, texts and their order are the same.
///
/// A call counts if it is whole, its arguments are a JSON object (empty means `{}`), and, where the invocation states its tools
/// ([`tool_names`](ObserverFactoryContext::tool_names)), its tool is one of them. Braces and tags inside of JSON strings are
/// text. Names are at most 128 bytes, in quotes of either kind. White space may stand between the parts, at most 64 bytes of it. In an
/// object that states the tool, `name` may also be called `tool`, `tool_name` or `function`, and `arguments` `parameters`, `args` or
/// `input`; they may be a text that is JSON. `id` and `type` may stand there, anything else makes it an ordinary object.
///
/// Whatever does not count is text, and leaves as it came:
///
/// - a call that is not closed when its text ends or something else comes (a [barrier](StreamObserver::on_barrier)), or that is not JSON;
/// - a call longer than [`max_call`](Self::max_call), 64 KiB by default;
/// - calls and thoughts after the 31st of one text;
/// - `</think>` where no thought began (but see [`begins_thinking`](Self::begins_thinking)).
///
/// A thought that is not closed is a thought up to the end of its text. Markers are taken wherever they stand, in examples of code too:
/// choose with [`only`](Self::only) what your model needs.
///
/// Control tokens are also taken out of reasoning, and out of texts that the provider sends whole (snapshots without deltas). In those no
/// call is looked for.
///
/// # What it holds
/// Only what may be the beginning of one of these, and a call until it is whole. The text of a thought is not held. At an end held text
/// goes out; at an abort it is withheld and counted, as for every observer.
///
/// # What it costs
/// One table look-up for each byte. While a call is held, each byte of it is looked at once. No allocation while nothing is changed.
///
/// # Where it stands
/// Before guards, so that they see calls as calls and thoughts as thoughts. If it fails the stream goes on as it came.
/// Raw bytes (`ObserveBytesExt`, feature `wire` of `streamkeeper-stream`) have a place for calls in most formats, and one for thoughts made out of answers in
/// Chat Completions and Ollama; elsewhere they are withheld and reported.
///
/// ```
/// use streamkeeper_contract::{Body, Chunk, Lane};
/// use streamkeeper_observers::NormalizeDialects;
/// use streamkeeper_stream::{ObserverFactoryContext, Observers};
///
/// let observers = Observers::from(NormalizeDialects::new());
/// let mut stack = observers.stack(&ObserverFactoryContext::default());
/// for text in ["One moment. <to", "ol name=\"search\">{\"q\":", "\"tea\"}</to", "ol> There."] {
///     stack.push(Chunk::delta(Lane::TEXT, text));
/// }
/// assert_eq!(stack.pop().unwrap().text(), Some("One moment. "));
/// let call = stack.pop().unwrap();
/// let Body::ToolCall(call) = call.body() else { panic!("it is a call") };
/// assert_eq!((call.name.as_str(), call.arguments.as_str()), ("search", r#"{"q":"tea"}"#));
/// assert_eq!(stack.pop().unwrap().text(), Some(" There."));
/// ```
#[derive(Debug, Clone)]
#[must_use = "it does nothing until it is registered"]
pub struct NormalizeDialects {
    id: Id,
    dialects: Vec<Dialect>,
    tokens: Vec<String>,
    max_call: usize,
    begins_thinking: bool,
}

/// One of the ways in which models write into an answer what is none. See [`NormalizeDialects`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dialect {
    /// `<tool name="…">{…}</tool>`
    ToolTag,
    /// `{0:"…",1:{…}}`
    Tuple,
    /// `<tool_call>{"name":"…","arguments":{…}}</tool_call>`
    ToolCallTag,
    /// The object of a call in a fenced block.
    FencedJson,
    /// `<think>…</think>`
    Think,
    /// Control tokens of chat templates.
    SpecialTokens,
}

impl Dialect {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::ToolTag, Self::Tuple, Self::ToolCallTag, Self::FencedJson, Self::Think, Self::SpecialTokens];
}

const DEFAULT_MAX_CALL: usize = 64 * 1024;
const MAX_LANES: usize = 256;
const WHOLES_AND_ENDS: Interest = Interest::only(&[
    ChunkKind::Snapshot,
    ChunkKind::PartEnd,
    ChunkKind::MessageEnd,
    ChunkKind::Finish,
    ChunkKind::Discard,
]);

impl Default for NormalizeDialects {
    fn default() -> Self {
        Self::new()
    }
}

impl NormalizeDialects {
    /// All dialects.
    pub fn new() -> Self {
        Self {
            id: id!("normalize-dialects"),
            dialects: Dialect::ALL.to_vec(),
            tokens: SPECIAL_TOKENS.iter().map(|&token| token.to_owned()).collect(),
            max_call: DEFAULT_MAX_CALL,
            begins_thinking: false,
        }
    }

    /// Only these dialects.
    pub fn only(mut self, dialects: impl IntoIterator<Item = Dialect>) -> Self {
        self.dialects = dialects.into_iter().collect();
        self
    }

    /// These control tokens instead of [`SPECIAL_TOKENS`]. Of two that begin alike the longer one counts; empty ones are ignored.
    pub fn special_tokens<T: Into<String>>(mut self, tokens: impl IntoIterator<Item = T>) -> Self {
        self.tokens = tokens.into_iter().map(Into::into).collect();
        self
    }

    /// The most bytes that a call may have, from its first character to its last. Default: 64 KiB, which is what an observer may hold of
    /// a text by default ([`Limits`](streamkeeper_stream::Limits)).
    pub fn max_call(mut self, bytes: usize) -> Self {
        self.max_call = bytes;
        self
    }

    /// Whether an answer begins in a thought, for models whose template writes `<think>` itself, so that only `</think>` is in the stream.
    /// Holds for the first part of each choice. An answer without `</think>` is then all thought. Default: no.
    pub fn begins_thinking(mut self, begins: bool) -> Self {
        self.begins_thinking = begins;
        self
    }

    /// The id it is registered with. Default: `normalize-dialects`.
    pub fn id(mut self, id: Id) -> Self {
        self.id = id;
        self
    }

    /// The registration of this transform, for all call classes. `Registration::from(normalize)` is the same.
    pub fn registration(self) -> Registration {
        let has_tokens = self.dialects.contains(&Dialect::SpecialTokens);
        let tokens = Arc::new(Tokens::new(if has_tokens { self.tokens } else { Vec::new() }));
        let (dialects, max_call, begins_thinking) = (self.dialects, self.max_call, self.begins_thinking);
        let make = move |ctx: &ObserverFactoryContext| Normalize {
            rules: Rules {
                dialects: dialects.clone(),
                tokens: tokens.clone(),
                tools: ctx.tool_names.clone(),
                max_call,
            },
            begins_thinking: begins_thinking && dialects.contains(&Dialect::Think),
            open: Vec::new(),
        };
        Registration::transform(self.id, from_fn(make))
    }
}

impl From<NormalizeDialects> for Registration {
    fn from(normalize: NormalizeDialects) -> Self {
        normalize.registration()
    }
}

impl From<NormalizeDialects> for Observers {
    fn from(normalize: NormalizeDialects) -> Self {
        normalize.registration().into()
    }
}

/// What to look for.
#[derive(Debug)]
struct Rules {
    dialects: Vec<Dialect>,
    tokens: Arc<Tokens>,
    /// Those the model may call. Empty if they are not known.
    tools: Arc<[Text]>,
    max_call: usize,
}

impl Rules {
    fn has(&self, dialect: Dialect) -> bool {
        self.dialects.contains(&dialect)
    }

    fn knows(&self, tool: &str) -> bool {
        self.tools.is_empty() || self.tools.iter().any(|known| known == tool)
    }

    /// A whole text without its control tokens, if it has any.
    fn without_tokens(&self, text: &str) -> Option<String> {
        let mut out = String::new();
        let (mut from, mut at) = (0, 0);
        while let Some(found) = text.as_bytes()[at..].iter().position(|&byte| self.tokens.may_begin_with(byte)) {
            let here = at + found;
            at = here + 1;
            if let Ok(Some(len)) = self.tokens.at_start(&text[here..], false) {
                out.push_str(&text[from..here]);
                from = here + len;
                at = from;
            }
        }
        (from > 0).then(|| out + &text[from..])
    }
}

/// The observer of one invocation.
#[derive(Debug)]
struct Normalize {
    rules: Rules,
    begins_thinking: bool,
    open: Vec<(Lane, Reading)>,
}

impl StreamObserver for Normalize {
    fn interest(&self) -> Interest {
        Interest::channels(&[Channel::Text, Channel::Reasoning]) | WHOLES_AND_ENDS
    }

    fn on_chunk(&mut self, chunk: &Chunk, ctx: &mut ObserverContext<'_>) -> Verdict {
        match chunk.body() {
            Body::Delta { lane, .. } => self.read(*lane, ctx.pending(), true),
            Body::Snapshot(snapshot) if matches!(snapshot.lane.channel, Channel::Text | Channel::Reasoning) => {
                let text = self.rules.without_tokens(&snapshot.text);
                text.and_then(|text| chunk.with_text(text)).map_or(Verdict::Continue, Verdict::Amend)
            }
            Body::PartEnd { choice, part } => self.ended(|lane| lane.choice == *choice && lane.part == *part),
            Body::MessageEnd { choice } => self.ended(|lane| lane.choice == *choice),
            Body::Finish(finish) => self.ended(|lane| lane.choice == finish.choice),
            Body::Discard(_) => self.ended(|_| true),
            _ => Verdict::Continue,
        }
    }

    fn on_barrier(&mut self, ctx: &mut ObserverContext<'_>) -> Verdict {
        ctx.lane().map_or(Verdict::Continue, |lane| self.read(lane, ctx.pending(), false))
    }
}

impl Normalize {
    fn read(&mut self, lane: Lane, pending: &str, more_may_come: bool) -> Verdict {
        let at = match self.open.iter().rposition(|(known, _)| *known == lane) {
            Some(at) => at,
            None if self.open.len() < MAX_LANES => {
                let is_answer = lane.channel == Channel::Text;
                let reading = Reading::new(is_answer, is_answer && lane.part == 0 && self.begins_thinking);
                self.open.push((lane, reading));
                self.open.len() - 1
            }
            // More texts at once than anybody reads: this one stays as it is.
            None => return Verdict::Continue,
        };
        self.open[at].1.read(pending, more_may_come, &self.rules)
    }

    fn ended(&mut self, is_over: impl Fn(Lane) -> bool) -> Verdict {
        self.open.retain(|(lane, _)| !is_over(*lane));
        Verdict::Continue
    }
}

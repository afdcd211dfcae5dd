//! Ceilings for what a model may write.

use std::{fmt, sync::Arc};

use streamkeeper_contract::{Body, Channel, Chunk, ChunkKind, Id, Lane, Money, Usage, Verdict, id};
use streamkeeper_stream::{Interest, IntoFactory, ObserverContext, StreamObserver, from_fn};

use crate::halting::{ENDS, Settings, Texts, settings_of};

/// What a model writes itself.
const WRITTEN: [Channel; 6] = [
    Channel::Text,
    Channel::Reasoning,
    Channel::Refusal,
    Channel::Arguments,
    Channel::ProviderTool,
    Channel::Transcript,
];

type Count = Arc<dyn Fn(&str) -> u64 + Send + Sync>;

/// How tokens are counted that the provider has not stated yet.
#[derive(Clone)]
enum Tokens {
    /// Four bytes are one.
    Estimated,
    /// By a function of words.
    Counted(Count),
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Estimated => "Estimated",
            Self::Counted(_) => "Counted",
        })
    }
}

/// Stops a stream whose output passes a number of tokens. A guard.
///
/// # What counts
/// Output tokens, all choices together: as the provider states them, and what came since its last statement by an estimate of one token
/// for four bytes of UTF-8, rounded up, or by a function of yours ([`count_with`](Self::count_with)). A statement replaces the estimate.
/// Most providers state tokens only at the end, so in the middle of a stream the count is an estimate; the reason then says `estimated`.
/// Text of every channel that the model writes counts: answer, reasoning, refusal, arguments of tools, transcripts.
///
/// # When it stops
/// At the first text with which the count is over the limit, with code `token_ceiling`. That chunk is not delivered. A statement alone
/// never stops: there is nothing left to save if no text follows. The place depends on the text, and not on how it is cut, but for the
/// chunk that it stands in.
///
/// # What it costs
/// An addition a chunk. With a function, what that costs, and one small buffer for each text.
///
/// The ceiling is for one invocation.
///
/// ```
/// use streamkeeper_contract::{Chunk, Lane};
/// use streamkeeper_observers::TokenCeiling;
/// use streamkeeper_stream::{ObserverFactoryContext, Observers};
///
/// let observers = Observers::from(TokenCeiling::new(3));
/// let mut stack = observers.stack(&ObserverFactoryContext::default());
/// for text in ["twelve bytes", "!"] {
///     stack.push(Chunk::delta(Lane::TEXT, text));
/// }
/// assert_eq!(stack.outcome().unwrap().stop().unwrap().code, "token_ceiling");
/// ```
#[derive(Debug, Clone)]
#[must_use = "it does nothing until it is registered"]
pub struct TokenCeiling {
    settings: Settings,
    max: u64,
    tokens: Tokens,
}

impl TokenCeiling {
    /// At most so many output tokens.
    pub fn new(max: u64) -> Self {
        Self { settings: Settings::new(id!("token-ceiling"), &WRITTEN), max, tokens: Tokens::Estimated }
    }

    /// Counts with a tokenizer instead of the estimate.
    ///
    /// The function is given one word at a time: white space and what follows, up to the next white space, at most 256 bytes. So the
    /// count is the same however the text is cut. A word counts once it is whole.
    ///
    /// ```
    /// use streamkeeper_contract::{Chunk, Lane};
    /// use streamkeeper_observers::TokenCeiling;
    /// use streamkeeper_stream::{ObserverFactoryContext, Observers};
    ///
    /// let observers = Observers::from(TokenCeiling::new(2).count_with(|_word| 1));
    /// let mut stack = observers.stack(&ObserverFactoryContext::default());
    /// stack.push(Chunk::delta(Lane::TEXT, "one two three"));
    /// assert!(!stack.is_ended(), "the third word may go on");
    /// stack.push(Chunk::delta(Lane::TEXT, " four"));
    /// assert!(stack.is_ended());
    /// ```
    pub fn count_with(mut self, count: impl Fn(&str) -> u64 + Send + Sync + 'static) -> Self {
        self.tokens = Tokens::Counted(Arc::new(count));
        self
    }

    fn factory(self, settings: Arc<Settings>) -> impl IntoFactory {
        let rule = Arc::new(Rule { ceiling: Ceiling::Tokens(self.max), tokens: self.tokens });
        from_fn(move |_| Meter::new(rule.clone(), settings.clone()))
    }
}

settings_of!(TokenCeiling, "token-ceiling");

/// What a million tokens cost, in [`Money`]. One dollar is `Money::from_pico(1_000_000_000_000)`.
///
/// ```
/// use streamkeeper_contract::Money;
/// use streamkeeper_observers::TokenPrices;
///
/// const DOLLAR: Money = Money::from_pico(1_000_000_000_000);
/// let prices = TokenPrices::per_million(DOLLAR.times(3), DOLLAR.times(15));
/// assert_eq!((prices.cache_read, prices.reasoning), (prices.input, prices.output));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TokenPrices {
    /// Input that no cache served or stored.
    pub input: Money,
    /// Input served from a cache.
    pub cache_read: Money,
    /// Input written to a cache.
    pub cache_write: Money,
    /// Output without reasoning.
    pub output: Money,
    /// Reasoning output.
    pub reasoning: Money,
}

impl TokenPrices {
    /// Prices for a million tokens of input, whatever a cache does, and of output, reasoning included. The fields can be changed.
    pub fn per_million(input: Money, output: Money) -> Self {
        Self { input, cache_read: input, cache_write: input, output, reasoning: output }
    }
}

/// Stops a stream whose cost passes an amount. A guard.
///
/// Tokens are counted as by [`TokenCeiling`], priced by what the caller says, and rounded up to a pico-dollar. Input counts from the moment
/// the provider states it: some do at the beginning, most at the end. The code is `cost_ceiling`.
///
/// ```
/// use streamkeeper_contract::{Chunk, Lane, Money};
/// use streamkeeper_observers::{CostCeiling, TokenPrices};
/// use streamkeeper_stream::{ObserverFactoryContext, Observers};
///
/// const DOLLAR: Money = Money::from_pico(1_000_000_000_000);
/// const CENT: Money = Money::from_pico(10_000_000_000);
/// let prices = TokenPrices::per_million(DOLLAR.times(3), DOLLAR.times(15));
///
/// let observers = Observers::from(CostCeiling::new(CENT, prices));
/// let mut stack = observers.stack(&ObserverFactoryContext::default());
/// stack.push(Chunk::delta(Lane::TEXT, "x".repeat(2_664))); // 666 tokens
/// assert!(!stack.is_ended());
/// stack.push(Chunk::delta(Lane::TEXT, "x".repeat(4)));
/// assert_eq!(stack.outcome().unwrap().stop().unwrap().code, "cost_ceiling");
/// ```
#[derive(Debug, Clone)]
#[must_use = "it does nothing until it is registered"]
pub struct CostCeiling {
    settings: Settings,
    max: Money,
    prices: TokenPrices,
    tokens: Tokens,
}

impl CostCeiling {
    /// At most this amount, at these prices.
    pub fn new(max: Money, prices: TokenPrices) -> Self {
        Self { settings: Settings::new(id!("cost-ceiling"), &WRITTEN), max, prices, tokens: Tokens::Estimated }
    }

    /// Counts with a tokenizer instead of the estimate, as [`TokenCeiling::count_with`] does.
    pub fn count_with(mut self, count: impl Fn(&str) -> u64 + Send + Sync + 'static) -> Self {
        self.tokens = Tokens::Counted(Arc::new(count));
        self
    }

    fn factory(self, settings: Arc<Settings>) -> impl IntoFactory {
        let rule = Arc::new(Rule { ceiling: Ceiling::Cost(self.max, self.prices), tokens: self.tokens });
        from_fn(move |_| Meter::new(rule.clone(), settings.clone()))
    }
}

settings_of!(CostCeiling, "cost-ceiling");

/// Stops a stream whose answer gets too long. A guard.
///
/// It stops at the first chunk with which the text, all choices together, is longer than the limit; that chunk is not delivered. Only
/// answer text counts, unless [`channels`](Self::channels) says otherwise. The code is `length_ceiling`. It costs an addition a chunk.
///
/// ```
/// use streamkeeper_contract::{Chunk, Lane};
/// use streamkeeper_observers::LengthCeiling;
/// use streamkeeper_stream::{ObserverFactoryContext, Observers};
///
/// for (ceiling, stops) in [(LengthCeiling::bytes(4), true), (LengthCeiling::chars(4), false)] {
///     let mut stack = Observers::from(ceiling).stack(&ObserverFactoryContext::default());
///     stack.push(Chunk::delta(Lane::TEXT, "café"));
///     assert_eq!(stack.is_ended(), stops);
/// }
/// ```
#[derive(Debug, Clone)]
#[must_use = "it does nothing until it is registered"]
pub struct LengthCeiling {
    settings: Settings,
    ceiling: Ceiling,
}

impl LengthCeiling {
    /// At most so many bytes of UTF-8.
    pub fn bytes(max: u64) -> Self {
        Self { settings: Settings::new(id!("length-ceiling"), &[Channel::Text]), ceiling: Ceiling::Bytes(max) }
    }

    /// At most so many characters (Unicode scalar values).
    pub fn chars(max: u64) -> Self {
        Self { ceiling: Ceiling::Chars(max), ..Self::bytes(0) }
    }

    fn factory(self, settings: Arc<Settings>) -> impl IntoFactory {
        let rule = Arc::new(Rule { ceiling: self.ceiling, tokens: Tokens::Estimated });
        from_fn(move |_| Meter::new(rule.clone(), settings.clone()))
    }
}

settings_of!(LengthCeiling, "length-ceiling");

#[derive(Debug, Clone, Copy)]
enum Ceiling {
    Tokens(u64),
    Cost(Money, TokenPrices),
    Bytes(u64),
    Chars(u64),
}

struct Rule {
    ceiling: Ceiling,
    tokens: Tokens,
}

/// Text since the provider last stated tokens.
#[derive(Debug, Clone, Copy, Default)]
struct Since {
    /// Bytes, characters or tokens, as the rule counts.
    answer: u64,
    reasoning: u64,
}

/// The observer of one invocation.
struct Meter {
    rule: Arc<Rule>,
    settings: Arc<Settings>,
    stated: Usage,
    since: Since,
    /// The word that each text ends in, where words are counted.
    words: Texts<String>,
    is_reported: bool,
}

/// The longest word that is counted as one.
const MAX_WORD: usize = 256;
const BYTES_PER_TOKEN: u64 = 4;

impl Meter {
    fn new(rule: Arc<Rule>, settings: Arc<Settings>) -> Self {
        let stated = Usage::default();
        Self { rule, settings, stated, since: Since::default(), words: Texts::default(), is_reported: false }
    }

    /// Adds a text of a lane, which may go on.
    fn add(&mut self, lane: Lane, text: &str) -> Result<(), Verdict> {
        let added = match (&self.rule.ceiling, &self.rule.tokens) {
            (Ceiling::Chars(_), _) => text.chars().count() as u64,
            (Ceiling::Tokens(_) | Ceiling::Cost(..), Tokens::Counted(count)) => {
                let word = self.words.open(lane)?;
                word.push_str(text);
                let mut added = 0_u64;
                let mut from = 0;
                while let Some(len) = first_word(&word[from..]) {
                    added = added.saturating_add(count(&word[from..from + len]));
                    from += len;
                }
                word.drain(..from);
                added
            }
            _ => text.len() as u64,
        };
        self.count(lane, added);
        Ok(())
    }

    fn count(&mut self, lane: Lane, added: u64) {
        let since = match lane.channel {
            Channel::Reasoning => &mut self.since.reasoning,
            _ => &mut self.since.answer,
        };
        *since = since.saturating_add(added);
    }

    /// Counts the words that texts end in which go no further.
    fn close(&mut self, end: &Chunk) {
        let Tokens::Counted(count) = &self.rule.tokens else { return };
        let mut last = Since::default();
        self.words.close(end, |lane, word| {
            let added = if word.is_empty() { 0 } else { count(word) };
            let part = if lane.channel == Channel::Reasoning { &mut last.reasoning } else { &mut last.answer };
            *part = part.saturating_add(added);
        });
        self.since.answer = self.since.answer.saturating_add(last.answer);
        self.since.reasoning = self.since.reasoning.saturating_add(last.reasoning);
    }

    fn state(&mut self, usage: &Usage) {
        if matches!(self.rule.ceiling, Ceiling::Bytes(_) | Ceiling::Chars(_)) {
            return;
        }
        let before = self.stated.output_total();
        self.stated.update(usage);
        if self.stated.output_total() != before {
            self.since = Since::default();
        }
    }

    fn tokens_since(&self) -> (u64, u64) {
        match self.rule.tokens {
            Tokens::Estimated => {
                (self.since.answer.div_ceil(BYTES_PER_TOKEN), self.since.reasoning.div_ceil(BYTES_PER_TOKEN))
            }
            Tokens::Counted(_) => (self.since.answer, self.since.reasoning),
        }
    }

    fn cost(&self, prices: &TokenPrices) -> Money {
        let (answer, reasoning) = self.tokens_since();
        let usage = &self.stated;
        let parts = [
            (usage.uncached_input, 0, prices.input),
            (usage.cache_read, 0, prices.cache_read),
            (usage.cache_write, 0, prices.cache_write),
            (usage.output, answer, prices.output),
            (usage.reasoning, reasoning, prices.reasoning),
        ];
        let millionths = parts.into_iter().fold(0_u128, |sum, (stated, since, price)| {
            let tokens = stated.unwrap_or(0).saturating_add(since);
            sum.saturating_add(u128::from(tokens) * u128::from(price.pico()))
        });
        Money::from_pico(u64::try_from(millionths.div_ceil(1_000_000)).unwrap_or(u64::MAX))
    }

    /// Why the stream has to stop, if it has to.
    fn over(&self) -> Option<(Id, String)> {
        let length = self.since.answer.saturating_add(self.since.reasoning);
        let is_estimate = matches!(self.rule.tokens, Tokens::Estimated) && length > 0;
        let note = if is_estimate { ", estimated" } else { "" };
        match &self.rule.ceiling {
            Ceiling::Bytes(max) => {
                (length > *max).then(|| (id!("length_ceiling"), format!("the text is longer than {max} bytes")))
            }
            Ceiling::Chars(max) => {
                (length > *max).then(|| (id!("length_ceiling"), format!("the text is longer than {max} characters")))
            }
            Ceiling::Tokens(max) => {
                let (answer, reasoning) = self.tokens_since();
                let stated = self.stated.output_total().unwrap_or(0);
                let tokens = stated.saturating_add(answer).saturating_add(reasoning);
                let reason = || format!("the output is over {max} tokens{note}");
                (tokens > *max).then(|| (id!("token_ceiling"), reason()))
            }
            Ceiling::Cost(max, prices) => {
                let reason = || format!("the invocation costs over {max}{note}");
                (self.cost(prices) > *max).then(|| (id!("cost_ceiling"), reason()))
            }
        }
    }
}

/// The length of the first word of a text, if it is whole: up to white space behind it.
fn first_word(text: &str) -> Option<usize> {
    let mut is_inside = false;
    for (at, char) in text.char_indices() {
        if at > MAX_WORD || at == MAX_WORD && !char.is_whitespace() {
            break;
        }
        if is_inside && char.is_whitespace() {
            return Some(at);
        }
        is_inside = !char.is_whitespace();
    }
    (text.len() > MAX_WORD).then(|| text.floor_char_boundary(MAX_WORD))
}

impl StreamObserver for Meter {
    fn interest(&self) -> Interest {
        let others = [
            ChunkKind::Snapshot,
            ChunkKind::ToolCallStart,
            ChunkKind::ProviderToolStart,
            ChunkKind::ToolCall,
            ChunkKind::ToolResult,
            ChunkKind::Usage,
        ];
        Interest::channels(&self.settings.channels) | Interest::only(&others) | ENDS
    }

    fn on_chunk(&mut self, chunk: &Chunk, ctx: &mut ObserverContext<'_>) -> Verdict {
        let counts = |lane: Lane| self.settings.channels.contains(&lane.channel);
        let added = match chunk.body() {
            Body::Delta { lane, text } => self.add(*lane, text),
            Body::Usage(usage) => {
                self.state(usage);
                return Verdict::Continue;
            }
            // The stack shows repeated text only if it is new.
            Body::Snapshot(snapshot) if counts(snapshot.lane) => self.add(snapshot.lane, &snapshot.text),
            Body::ToolCallStart(call) | Body::ProviderToolStart(call) if counts(call.lane) => {
                self.add(call.lane, &call.name)
            }
            Body::ToolCall(call) if counts(call.lane) => {
                self.add(call.lane, &call.name).and_then(|()| self.add(call.lane, &call.arguments))
            }
            Body::ToolResult(result) if counts(result.lane) => self.add(result.lane, &result.content),
            _ => {
                self.close(chunk);
                return Verdict::Continue;
            }
        };
        if let Err(verdict) = added {
            return verdict;
        }
        match self.over() {
            Some((code, reason)) if !self.is_reported => {
                self.is_reported = true;
                self.settings.halt(code, reason, ctx)
            }
            _ => Verdict::Continue,
        }
    }
}

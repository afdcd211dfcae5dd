//! Noticing that a model recites its system prompt.

use std::{collections::HashSet, sync::Arc};

use streamkeeper_contract::{Channel, Chunk, Id, Release, Verdict, id};
use streamkeeper_stream::{Interest, IntoFactory, ObserverContext, ObserverFactoryContext, StreamObserver, from_fn};

use crate::halting::{Settings, TextHalt, TextRule, Word, Words, settings_of, words};

/// Stops a model that recites its system prompt. A guard.
///
/// # What a leak is
/// - **Canaries**: texts that you put into the prompt and that nobody has a reason to say, for example a random word. One that is said,
///   byte for byte, is a leak. What may be the beginning of one is held until it is known, so no part of a canary is delivered.
/// - **Overlap**: of the last [`window`](Self::window) words of a text (40), at least [`words`](Self::words) (25) stand in a run of 5 words
///   that is also in the prompt. Of a prompt of fewer words, all; one of fewer than 5 has no overlap. Words are compared without regard to
///   case, punctuation, apostrophes and white space; in scripts without spaces each character is a word.
///
/// The prompt is that of the invocation ([`system_prompt`](ObserverFactoryContext::system_prompt)), or what [`prompt`](Self::prompt) says.
/// Without either, only canaries are looked for. What a prompt tells the model to say can be [allowed](Self::allow).
///
/// A prompt that was translated, spelled or encoded is not recognised.
///
/// # When it stops
/// At the chunk that completes the canary, or that has the first character behind the word with which the overlap is reached, or at the end
/// of the text; with code `prompt_leak`. That chunk is not delivered. **The words before it were.** The place depends on the text, not on how
/// it is cut. Answers, reasoning, refusals and arguments of tools are looked at, each text alone, unless [`channels`](Self::channels)
/// says otherwise. Arguments are read as they are written: escapes of JSON are not decoded.
///
/// # What it costs
/// Some steps for each character and a look-up for each word; no allocation. At the beginning of an invocation the prompt is read once.
/// More than 256 texts open at once end the invocation with code `too_many_lanes`.
///
/// ```
/// use streamkeeper_contract::{Chunk, Lane};
/// use streamkeeper_observers::PromptLeak;
/// use streamkeeper_stream::{ObserverFactoryContext, Observers};
///
/// let observers = Observers::from(PromptLeak::new().canary("zebra-4711"));
/// let mut stack = observers.stack(&ObserverFactoryContext::default());
/// for text in ["My instructions: zeb", "ra-47", "11 and"] {
///     stack.push(Chunk::delta(Lane::TEXT, text));
/// }
/// assert_eq!(stack.pop().unwrap().text(), Some("My instructions: "));
/// assert_eq!(stack.outcome().unwrap().stop().unwrap().code, "prompt_leak");
/// ```
#[derive(Clone)]
#[must_use = "it does nothing until it is registered"]
pub struct PromptLeak {
    settings: Settings,
    canaries: Vec<String>,
    prompt: Option<Arc<str>>,
    allowed: Vec<String>,
    words: u32,
    window: u32,
}

/// Without the prompt and the canaries.
impl std::fmt::Debug for PromptLeak {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PromptLeak")
            .field("settings", &self.settings)
            .field("canaries", &self.canaries.len())
            .field("words", &self.words)
            .field("window", &self.window)
            .finish_non_exhaustive()
    }
}

impl Default for PromptLeak {
    fn default() -> Self {
        Self::new()
    }
}

impl PromptLeak {
    /// Compares with the system prompt of the invocation: 25 of 40 words.
    pub fn new() -> Self {
        let channels = [Channel::Text, Channel::Reasoning, Channel::Refusal, Channel::Arguments];
        let settings = Settings::new(id!("prompt-leak"), &channels);
        Self { settings, canaries: Vec::new(), prompt: None, allowed: Vec::new(), words: 25, window: 40 }
    }

    /// A text that must not be said. An empty one is ignored.
    pub fn canary(mut self, canary: impl Into<String>) -> Self {
        self.canaries.push(canary.into());
        self.canaries.retain(|canary| !canary.is_empty());
        self
    }

    /// Compares with this text instead of the prompt of the invocation.
    pub fn prompt(mut self, prompt: impl Into<Arc<str>>) -> Self {
        self.prompt = Some(prompt.into());
        self
    }

    /// A part of the prompt that may be said, such as a greeting or a notice.
    pub fn allow(mut self, text: impl Into<String>) -> Self {
        self.allowed.push(text.into());
        self
    }

    /// How many words in the window make a leak. Default: 25; at least 5.
    pub fn words(mut self, words: u32) -> Self {
        self.words = words.clamp(RUN as u32, 128);
        self.window = self.window.max(self.words);
        self
    }

    /// How many words of a text are looked at together. Default: 40; at most 128.
    pub fn window(mut self, words: u32) -> Self {
        self.window = words.clamp(RUN as u32, 128);
        self.words = self.words.min(self.window);
        self
    }

    fn factory(self, settings: Arc<Settings>) -> impl IntoFactory {
        let canaries: Arc<[String]> = self.canaries.into();
        let allowed: Vec<u64> = self.allowed.iter().flat_map(|text| runs(text)).collect();
        let compare = move |prompt: &str| {
            let count = u32::try_from(words(prompt).len()).unwrap_or(u32::MAX);
            let mut runs: HashSet<u64> = runs(prompt).into_iter().collect();
            allowed.iter().for_each(|run| {
                runs.remove(run);
            });
            Arc::new(Overlap { runs, words: self.words.min(count), window: u128::MAX >> (128 - self.window) })
        };
        let fixed = self.prompt.as_deref().map(&compare);
        from_fn(move |ctx: &ObserverFactoryContext| Leak {
            canaries: canaries.clone(),
            longest: canaries.iter().map(String::len).max().unwrap_or(0),
            overlap: TextHalt::new(
                fixed.clone().unwrap_or_else(|| compare(ctx.system_prompt.as_deref().unwrap_or_default())),
                settings.clone(),
            ),
            settings: settings.clone(),
        })
    }
}

settings_of!(PromptLeak, "prompt-leak");

/// How many words in a row are compared.
const RUN: usize = 5;

fn runs(text: &str) -> Vec<u64> {
    words(text).windows(RUN).map(|run| Word::phrase(run.iter().copied())).collect()
}

/// The runs of words of a prompt.
struct Overlap {
    runs: HashSet<u64>,
    /// How many words make a leak.
    words: u32,
    /// A bit for each word of the window.
    window: u128,
}

#[derive(Default)]
struct Reading {
    words: Words,
    /// The last words, the newest last.
    last: [Option<Word>; RUN],
    /// A bit for each of the last words, set if it is in a run of the prompt. The newest is the lowest.
    covered: u128,
}

impl Overlap {
    /// Whether the overlap is reached with this word.
    fn reached(&self, word: Word, last: &mut [Option<Word>; RUN], covered: &mut u128) -> bool {
        last.rotate_left(1);
        last[RUN - 1] = Some(word);
        *covered <<= 1;
        let is_run = last[0].is_some() && self.runs.contains(&Word::phrase(last.iter().flatten().copied()));
        if is_run {
            *covered |= (1 << RUN) - 1;
        }
        *covered &= self.window;
        is_run && covered.count_ones() >= self.words
    }

    fn reason(&self) -> String {
        format!("{} words of the system prompt are repeated", self.words)
    }
}

impl TextRule for Overlap {
    type Reading = Reading;
    const CODE: Id = id!("prompt_leak");

    fn read(&self, reading: &mut Reading, text: &str) -> Option<String> {
        if self.runs.is_empty() {
            return None;
        }
        let Reading { words, last, covered } = reading;
        let mut found = false;
        words.read(text, |word| found |= self.reached(word, last, covered));
        found.then(|| self.reason())
    }

    fn end(&self, reading: &mut Reading) -> Option<String> {
        let word = reading.words.end()?;
        self.reached(word, &mut reading.last, &mut reading.covered).then(|| self.reason())
    }
}

/// The observer of one invocation.
struct Leak {
    canaries: Arc<[String]>,
    longest: usize,
    overlap: TextHalt<Overlap>,
    settings: Arc<Settings>,
}

impl Leak {
    fn has_canary(&self, text: &str) -> bool {
        self.canaries.iter().any(|canary| text.contains(canary.as_str()))
    }

    /// How many bytes at the end may be the beginning of a canary.
    fn undecided(&self, text: &str) -> usize {
        let from = text.ceil_char_boundary(text.len() - self.longest.saturating_sub(1).min(text.len()));
        let may_begin = |at: &usize| self.canaries.iter().any(|canary| canary.starts_with(&text[*at..]));
        let at = text[from..].char_indices().map(|(at, _)| from + at).find(may_begin);
        at.map_or(0, |at| text.len() - at)
    }
}

impl StreamObserver for Leak {
    fn interest(&self) -> Interest {
        self.overlap.interest()
    }

    fn on_chunk(&mut self, chunk: &Chunk, ctx: &mut ObserverContext<'_>) -> Verdict {
        let pending = ctx.pending();
        let is_looked_at = chunk.lane().is_some_and(|lane| self.settings.channels.contains(&lane.channel));
        if is_looked_at && self.has_canary(pending) {
            let verdict = self.settings.halt(id!("prompt_leak"), "a canary of the system prompt was said", ctx);
            if verdict != Verdict::Continue {
                return verdict;
            }
        }
        match self.overlap.on_chunk(chunk, ctx) {
            Verdict::Continue if chunk.is_delta() => match self.undecided(pending) {
                0 => Verdict::Continue,
                keep => Release::unchanged().keep(keep).into(),
            },
            verdict => verdict,
        }
    }

    fn on_barrier(&mut self, _: &mut ObserverContext<'_>) -> Verdict {
        Verdict::Continue
    }
}

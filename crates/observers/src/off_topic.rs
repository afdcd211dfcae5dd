//! Noticing that a model talks about something else.

use std::{
    collections::{HashMap, VecDeque},
    fmt,
    sync::Arc,
};

use streamkeeper_contract::{Channel, Id, id};
use streamkeeper_stream::{IntoFactory, from_fn};

use crate::halting::{Settings, TextHalt, TextRule, Word, Words, settings_of, words};

/// Stops a model that talks about something else. A guard.
///
/// # What is off topic
/// - A **denied** topic, whose terms in the last [`window`](Self::window) words (100) weigh [`limit`](Self::limit) (5) or more together.
/// - No **allowed** topic: once a text has as many words as the window, its last window has no term of any of them. Only if some were given.
/// - What a function of yours says of the [last sentences](Self::judge).
///
/// A term is one or more words, compared without regard to case, punctuation and apostrophes; in scripts without spaces each character is a
/// word. Each place where a term stands counts its weight. Words have no stems: `loan` does not stand in `loans`. A term without words is
/// ignored. Thousands of terms cost no more than a few.
///
/// # When it stops
/// At the chunk with the first character behind the word or sentence that decides, or at the end of the text; with code `off_topic` and the
/// name of the topic in the reason. That chunk is not delivered, the ones before it were. The place depends on the text, not on how it is
/// cut. Answers are looked at, each alone, unless [`channels`](Self::channels) says otherwise.
///
/// # What it costs
/// Some steps for each character, and one look-up for each word and each length that terms have. Memory: the hits of the window.
/// More than 256 texts open at once end the invocation with code `too_many_lanes`.
///
/// ```
/// use streamkeeper_contract::{Chunk, Lane};
/// use streamkeeper_observers::OffTopic;
/// use streamkeeper_stream::{ObserverFactoryContext, Observers};
///
/// let guard = OffTopic::new().deny("medicine", [("dosage", 3), ("twice a day", 2)]);
/// let mut stack = Observers::from(guard).stack(&ObserverFactoryContext::default());
/// for text in ["The usual dosage is one ", "pill, twice ", "a ", "day.", " Ask "] {
///     stack.push(Chunk::delta(Lane::TEXT, text));
/// }
/// let stop = stack.outcome().unwrap().stop().unwrap().clone();
/// assert_eq!((stop.code.as_str(), stop.chunk_index), ("off_topic", 3));
/// ```
#[derive(Debug, Clone)]
#[must_use = "it does nothing until it is registered"]
pub struct OffTopic {
    settings: Settings,
    rule: Rule,
}

type Judge = Arc<dyn Fn(&str) -> bool + Send + Sync>;

#[derive(Clone)]
struct Rule {
    topics: Vec<Topic>,
    /// What the words of each term weigh, for which topics.
    terms: HashMap<u64, Vec<(usize, u32)>>,
    /// How many words terms have, each number once.
    lengths: Vec<usize>,
    window: usize,
    limit: u64,
    judge: Option<(usize, Judge)>,
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rule")
            .field("topics", &self.topics)
            .field("terms", &self.terms.len())
            .field("window", &self.window)
            .field("limit", &self.limit)
            .field("judges", &self.judge.is_some())
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Clone)]
struct Topic {
    name: String,
    is_allowed: bool,
}

impl Default for OffTopic {
    fn default() -> Self {
        Self::new()
    }
}

impl OffTopic {
    /// No topic yet.
    pub fn new() -> Self {
        let rule =
            Rule { topics: Vec::new(), terms: HashMap::new(), lengths: Vec::new(), window: 100, limit: 5, judge: None };
        Self { settings: Settings::new(id!("off-topic"), &[Channel::Text]), rule }
    }

    /// A topic that must not be talked about: terms and their weights.
    pub fn deny<T: AsRef<str>>(self, topic: impl Into<String>, terms: impl IntoIterator<Item = (T, u32)>) -> Self {
        self.topic(Topic { name: topic.into(), is_allowed: false }, terms)
    }

    /// A topic that the model is there for: terms that show it.
    pub fn allow<T: AsRef<str>>(self, topic: impl Into<String>, terms: impl IntoIterator<Item = T>) -> Self {
        let terms = terms.into_iter().map(|term| (term, 1));
        self.topic(Topic { name: topic.into(), is_allowed: true }, terms)
    }

    fn topic<T: AsRef<str>>(mut self, topic: Topic, terms: impl IntoIterator<Item = (T, u32)>) -> Self {
        for (term, weight) in terms {
            let words = words(term.as_ref());
            if words.is_empty() {
                continue;
            }
            if !self.rule.lengths.contains(&words.len()) {
                self.rule.lengths.push(words.len());
            }
            let known = self.rule.terms.entry(Word::phrase(words)).or_default();
            known.push((self.rule.topics.len(), weight));
        }
        self.rule.topics.push(topic);
        self
    }

    /// How many words are looked at together. Default: 100; at least 1.
    pub fn window(mut self, words: usize) -> Self {
        self.rule.window = words.max(1);
        self
    }

    /// What the terms of a denied topic may not weigh together. Default: 5; at least 1.
    pub fn limit(mut self, weight: u64) -> Self {
        self.rule.limit = weight.max(1);
        self
    }

    /// Asks a function after each sentence, with the last `sentences` ones (1 to 64), as they were written. `true`: this is off topic.
    ///
    /// A sentence ends behind `.`, `!` or `?` and white space, at a line end, at `。`, `！` or `？`, and at 1 KiB. The function must give the same
    /// answer for the same text, and must not wait. If it panics the guard has failed.
    ///
    /// ```
    /// use streamkeeper_contract::{Chunk, Lane};
    /// use streamkeeper_observers::OffTopic;
    /// use streamkeeper_stream::{ObserverFactoryContext, Observers};
    ///
    /// let guard = OffTopic::new().judge(2, |sentences| sentences.matches("election").count() >= 2);
    /// let mut stack = Observers::from(guard).stack(&ObserverFactoryContext::default());
    /// stack.push(Chunk::delta(Lane::TEXT, "The election is near. The last election was close."));
    /// assert!(!stack.is_ended(), "the sentence may go on");
    /// stack.push(Chunk::delta(Lane::TEXT, " But"));
    /// assert!(stack.is_ended());
    /// ```
    pub fn judge(mut self, sentences: usize, is_off: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        self.rule.judge = Some((sentences.clamp(1, 64), Arc::new(is_off)));
        self
    }

    fn factory(self, settings: Arc<Settings>) -> impl IntoFactory {
        let rule = Arc::new(self.rule);
        from_fn(move |_| TextHalt::new(rule.clone(), settings.clone()))
    }
}

settings_of!(OffTopic, "off-topic");

const MAX_SENTENCE: usize = 1024;

#[derive(Default)]
struct Reading {
    words: Words,
    hits: Hits,
    sentences: Sentences,
}

/// Terms in the window.
#[derive(Default)]
struct Hits {
    /// As many words as the longest term has, the newest last.
    last: VecDeque<Word>,
    count: usize,
    /// The number of the word, the topic, and the weight.
    hits: VecDeque<(usize, usize, u32)>,
    /// What each topic weighs.
    weights: Vec<u64>,
}

/// The last sentences, and the one that is being written.
#[derive(Default)]
struct Sentences {
    text: String,
    /// Where the whole ones end.
    ends: VecDeque<usize>,
    before: Option<char>,
}

impl TextRule for Rule {
    type Reading = Reading;
    const CODE: Id = id!("off_topic");

    fn read(&self, reading: &mut Reading, text: &str) -> Option<String> {
        let Reading { words, hits, sentences } = reading;
        let mut found = None;
        if !self.topics.is_empty() {
            words.read(text, |word| {
                if found.is_none() {
                    found = self.weigh(hits, word);
                }
            });
        }
        found.or_else(|| self.hear(sentences, text))
    }

    fn end(&self, reading: &mut Reading) -> Option<String> {
        let last = reading.words.end().and_then(|word| self.weigh(&mut reading.hits, word));
        last.or_else(|| self.is_off(&reading.sentences))
    }
}

impl Rule {
    /// What is wrong with this word.
    fn weigh(&self, hits: &mut Hits, word: Word) -> Option<String> {
        let longest = self.lengths.iter().copied().max().unwrap_or(0);
        if hits.last.len() == longest {
            hits.last.pop_front();
        }
        hits.last.push_back(word);
        hits.weights.resize(self.topics.len(), 0);
        hits.count += 1;
        while let Some(&(_, topic, weight)) = hits.hits.front().filter(|(at, ..)| at + self.window <= hits.count) {
            hits.weights[topic] -= u64::from(weight);
            hits.hits.pop_front();
        }
        for &len in self.lengths.iter().filter(|&&len| len <= hits.last.len()) {
            let term = Word::phrase(hits.last.range(hits.last.len() - len..).copied());
            for &(topic, weight) in self.terms.get(&term).into_iter().flatten() {
                hits.hits.push_back((hits.count, topic, weight));
                hits.weights[topic] += u64::from(weight);
            }
        }
        let topics = || self.topics.iter().zip(&hits.weights);
        if let Some((denied, _)) = topics().find(|(topic, weight)| !topic.is_allowed && **weight >= self.limit) {
            return Some(format!("the topic `{}` is talked about", denied.name));
        }
        let mut allowed = topics().filter(|(topic, _)| topic.is_allowed).peekable();
        let is_lost = allowed.peek().is_some() && hits.count >= self.window && allowed.all(|(_, weight)| *weight == 0);
        is_lost.then(|| format!("no allowed topic is talked about in {} words", self.window))
    }

    fn hear(&self, sentences: &mut Sentences, text: &str) -> Option<String> {
        let (keep, _) = self.judge.as_ref()?;
        for char in text.chars() {
            sentences.text.push(char);
            let from = sentences.ends.back().copied().unwrap_or(0);
            let is_over = match char {
                '\n' | '。' | '！' | '？' => true,
                char if char.is_whitespace() => matches!(sentences.before, Some('.' | '!' | '?')),
                _ => false,
            };
            sentences.before = Some(char);
            if !is_over && sentences.text.len() - from < MAX_SENTENCE {
                continue;
            }
            let found = self.is_off(sentences);
            if found.is_some() {
                return found;
            }
            if !sentences.text[from..].trim().is_empty() {
                sentences.ends.push_back(sentences.text.len());
            } else {
                sentences.text.truncate(from);
            }
            // The next sentence is heard together with one fewer than asked for.
            if sentences.ends.len() >= *keep {
                let cut = sentences.ends.pop_front().unwrap_or(0);
                sentences.text.drain(..cut);
                sentences.ends.iter_mut().for_each(|end| *end -= cut);
            }
        }
        None
    }

    /// Asks about the last sentences, if the newest says anything.
    fn is_off(&self, sentences: &Sentences) -> Option<String> {
        let (_, judge) = self.judge.as_ref()?;
        let from = sentences.ends.back().copied().unwrap_or(0);
        let says = !sentences.text[from..].trim().is_empty();
        (says && judge(&sentences.text)).then(|| "the last sentences are off topic".to_owned())
    }
}

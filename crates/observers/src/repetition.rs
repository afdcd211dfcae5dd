//! Noticing that a model repeats itself without end.

use std::sync::Arc;

use memchr::memmem;
use streamkeeper_contract::{Channel, Id, id};
use streamkeeper_stream::{IntoFactory, from_fn};

use crate::halting::{Settings, TextHalt, TextRule, settings_of};

/// Stops a model that has fallen into a loop. A guard.
///
/// # What a loop is
/// A text whose end has a period: the same bytes, at most [`max_period`](Self::max_period) of them (1 KiB by default), again and again, at
/// least [`copies`](Self::copies) times (6) and over at least [`min_bytes`](Self::min_bytes) bytes (1 KiB). So a character, a word, a line
/// or a paragraph that repeats is a loop; rules, tables, lists and code that repeat a little are none. A loop that counts, or changes a
/// word each time, is not found.
///
/// # When it stops
/// Each text (choice, part, channel) is looked at when it has grown by another 256 bytes, counted from its beginning. So the place depends
/// on the text, not on how it is cut. It stops at the chunk with that byte, with code `repetition`; that chunk is not delivered, the ones
/// before it were. Answers and reasoning are looked at unless [`channels`](Self::channels) says otherwise.
///
/// # What it costs
/// One search for the last 32 bytes in the period before them, for each 256 bytes of text. Where those repeat, time linear in the window
/// (copies × period, 6 KiB by default). Memory: a quarter more than that window for each open text, and four times it once text repeats.
/// No allocation after that. More than 256 texts open at once end the invocation with code `too_many_lanes`.
///
/// ```
/// use streamkeeper_contract::{Chunk, Lane};
/// use streamkeeper_observers::Repetition;
/// use streamkeeper_stream::{ObserverFactoryContext, Observers};
///
/// let mut stack = Observers::from(Repetition::new()).stack(&ObserverFactoryContext::default());
/// for _ in 0..1000 {
///     stack.push(Chunk::delta(Lane::TEXT, "I am sorry. "));
/// }
/// let stop = stack.outcome().unwrap().stop().unwrap().clone();
/// assert_eq!((stop.code.as_str(), stop.accumulated_content_length), ("repetition", 1020));
/// ```
#[derive(Debug, Clone)]
#[must_use = "it does nothing until it is registered"]
pub struct Repetition {
    settings: Settings,
    rule: Rule,
}

impl Default for Repetition {
    fn default() -> Self {
        Self::new()
    }
}

impl Repetition {
    /// At least 1 KiB that repeats at most 1 KiB, six times or more.
    pub fn new() -> Self {
        let settings = Settings::new(id!("repetition"), &[Channel::Text, Channel::Reasoning]);
        Self { settings, rule: Rule { min_bytes: 1024, copies: 6, max_period: 1024 } }
    }

    /// How many bytes have to repeat. Default: 1024; at least 64.
    pub fn min_bytes(mut self, bytes: usize) -> Self {
        self.rule.min_bytes = bytes.clamp(MIN_BYTES, MAX_WINDOW);
        self
    }

    /// How often the same has to come. Default: 6; from 2 to 64.
    pub fn copies(mut self, copies: usize) -> Self {
        self.rule.copies = copies.clamp(2, 64);
        self
    }

    /// The most bytes that are one copy. Default: 1024; from 1 to 16 KiB.
    pub fn max_period(mut self, bytes: usize) -> Self {
        self.rule.max_period = bytes.clamp(1, 16 * 1024);
        self
    }

    fn factory(self, settings: Arc<Settings>) -> impl IntoFactory {
        let rule = Arc::new(self.rule);
        from_fn(move |_| TextHalt::new(rule.clone(), settings.clone()))
    }
}

settings_of!(Repetition, "repetition");

#[derive(Debug, Clone)]
struct Rule {
    min_bytes: usize,
    copies: usize,
    max_period: usize,
}

/// How often a text is looked at, in bytes.
const STEP: usize = 256;
/// A text repeats only if its last bytes come in the period before.
const NEEDLE: usize = 32;
/// So that the needle fits in what repeats.
const MIN_BYTES: usize = 2 * NEEDLE;
const MAX_WINDOW: usize = 1024 * 1024;

#[derive(Debug, Default)]
pub(crate) struct Reading {
    /// The end of the text.
    tail: Vec<u8>,
    /// All of it.
    len: u64,
    /// For [`loop_at_end`]; kept so that it is allocated once.
    borders: Vec<u32>,
}

impl TextRule for Rule {
    type Reading = Reading;
    const CODE: Id = id!("repetition");

    fn read(&self, reading: &mut Reading, text: &str) -> Option<String> {
        let window = self.window();
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            let to_next = STEP - (reading.len % STEP as u64) as usize;
            let (piece, after) = rest.split_at(to_next.min(rest.len()));
            rest = after;
            reading.tail.extend_from_slice(piece);
            reading.len += piece.len() as u64;
            if piece.len() == to_next {
                let from = reading.tail.len().saturating_sub(window);
                if let Some((period, len)) = self.loop_at_end(&reading.tail[from..], &mut reading.borders) {
                    let end = reading.len;
                    return Some(format!("the last {len} bytes up to byte {end} repeat the same {period}"));
                }
                // More than needed, so that the text moves once in a while.
                if reading.tail.len() > window + window / 4 {
                    reading.tail.drain(..from);
                }
            }
        }
        None
    }

    fn end(&self, _: &mut Reading) -> Option<String> {
        None
    }
}

impl Rule {
    fn window(&self) -> usize {
        self.min_bytes.max(self.copies * self.max_period)
    }

    /// The period of the shortest end of a text that is a loop, and the length of that end.
    fn loop_at_end(&self, text: &[u8], borders: &mut Vec<u32>) -> Option<(usize, usize)> {
        if text.len() < self.min_bytes {
            return None;
        }
        let needle = &text[text.len() - NEEDLE..];
        let from = text.len().saturating_sub(NEEDLE + self.max_period);
        memmem::rfind(&text[from..text.len() - 1], needle)?;

        // The longest border of each end of the text, as Knuth, Morris and Pratt find it; an end without its border is a period of it.
        let back = |at: usize| text[text.len() - 1 - at];
        borders.clear();
        borders.push(0);
        let mut border = 0;
        for at in 1..text.len() {
            while border > 0 && back(at) != back(border) {
                border = borders[border - 1] as usize;
            }
            border += usize::from(back(at) == back(border));
            // A window is at most 1 MiB.
            borders.push(border as u32);
            let len = at + 1;
            let period = len - border;
            if period <= self.max_period && len >= self.min_bytes && len >= self.copies * period {
                return Some((period, len));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The definition, tried for every end and period.
    fn plain(rule: &Rule, text: &[u8]) -> Option<(usize, usize)> {
        (rule.min_bytes..=text.len()).find_map(|len| {
            let end = &text[text.len() - len..];
            let is_period = |period: &usize| end[*period..] == end[..len - period];
            (1..=rule.max_period.min(len / rule.copies)).find(is_period).map(|period| (period, len))
        })
    }

    proptest! {
        /// spec 6.2: a loop is what the definition says.
        #[test]
        fn loops_are_those_of_the_definition(
            before in "[ab]{0,40}",
            copy in "[ab]{1,40}",
            copies in 1_usize..12,
            after in "[ab]{0,2}",
            rule in (64_usize..128, 2_usize..6, 1_usize..50),
        ) {
            let rule = Rule { min_bytes: rule.0, copies: rule.1, max_period: rule.2 };
            let text = format!("{before}{}{after}", copy.repeat(copies));
            let text = &text.as_bytes()[text.len().saturating_sub(rule.window())..];
            prop_assert_eq!(rule.loop_at_end(text, &mut Vec::new()), plain(&rule, text));
        }
    }

    #[test]
    fn memory_stays_near_the_window() {
        let rule = Repetition::new().rule;
        let mut reading = Reading::default();
        for n in 0..20_000_u32 {
            assert_eq!(rule.read(&mut reading, &format!("{n} ")), None);
            assert!(reading.tail.len() <= rule.window() + rule.window() / 4 + STEP);
        }
    }
}

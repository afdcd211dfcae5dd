//! Replaces a word in a provider's stream and leaves every other byte as it is, so that any client of the provider reads the result.
//!
//! cargo run -p streamkeeper-examples --example redact_word [FILE [WORD [REPLACEMENT]]]
//!
//! FILE may be `-` for stdin. Without arguments: a stream of ours without the word `Rotterdam`.

use std::{
    env,
    error::Error,
    fs::File,
    io::{self, Read, Write},
};

use streamkeeper::{prelude::*, stream::ObservedBytes, wire::Decoder};

/// Replaces a word in answer, reasoning and refusal, however the stream cuts it.
#[derive(Clone)]
struct Redact {
    word: String,
    replacement: String,
}

impl Redact {
    /// Bytes at the end that may be the beginning of the word.
    fn begun(&self, text: &str) -> usize {
        let ends_in = |n: &usize| self.word.is_char_boundary(*n) && text.ends_with(&self.word[..*n]);
        (1..self.word.len()).rev().find(ends_in).unwrap_or(0)
    }

    fn verdict(&self, text: &str, more_may_come: bool) -> Verdict {
        // Whole words are found first: what is left of them cannot be the beginning of another one.
        let rest = text.rfind(&self.word).map_or(text, |at| &text[at + self.word.len()..]);
        let keep = if more_may_come { self.begun(rest) } else { 0 };
        let settled = &text[..text.len() - keep];
        match (settled.contains(&self.word), keep) {
            (false, 0) => Verdict::Continue,
            (false, keep) => Release::unchanged().keep(keep).into(),
            (true, keep) => Release::text(settled.replace(&self.word, &self.replacement)).keep(keep).into(),
        }
    }
}

impl StreamObserver for Redact {
    fn interest(&self) -> Interest {
        Interest::channels(&[Channel::Text, Channel::Reasoning, Channel::Refusal])
            | Interest::only(&[ChunkKind::Snapshot])
    }

    fn on_chunk(&mut self, chunk: &Chunk, ctx: &mut ObserverContext<'_>) -> Verdict {
        if chunk.is_delta() {
            return self.verdict(ctx.pending(), true);
        }
        // A text that comes whole. One that only repeats its deltas has their edits already.
        match chunk.text().filter(|text| text.contains(&self.word)) {
            Some(text) => {
                chunk.with_text(text.replace(&self.word, &self.replacement)).map_or(Verdict::Continue, Verdict::Amend)
            }
            None => Verdict::Continue,
        }
    }

    fn on_barrier(&mut self, ctx: &mut ObserverContext<'_>) -> Verdict {
        self.verdict(ctx.pending(), false)
    }
}

/// Takes a body through a guard that replaces the word. Returns how it ended.
fn redact(
    word: &str,
    replacement: &str,
    from: &mut dyn Read,
    to: &mut dyn Write,
    read_size: usize,
) -> Result<Outcome, Box<dyn Error>> {
    if word.is_empty() {
        return Err("WORD must not be empty".into());
    }
    let guard = Redact { word: word.to_owned(), replacement: replacement.to_owned() };
    let observers = Observers::from(Registration::guard(id!("redact-word"), guard));
    let mut observed = ObservedBytes::new(Decoder::detect(), observers.stack(&ObserverFactoryContext::default()));
    let mut buffer = vec![0; read_size];
    loop {
        let read = from.read(&mut buffer)?;
        if read == 0 || observed.is_ended() {
            break;
        }
        observed.push(&buffer[..read]);
        to.write_all(&observed.take())?;
        to.flush()?;
    }
    observed.finish();
    to.write_all(&observed.take())?;
    to.flush()?;
    let outcome = observed.outcome().map(|outcome| Outcome::clone(outcome));
    outcome.ok_or_else(|| "every stream has an outcome".into())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = env::args_os().skip(1);
    let mut from: Box<dyn Read> = match args.next() {
        None => Box::new(File::open(streamkeeper_examples::stream("support-chat.openai.sse"))?),
        Some(path) if path == "-" => Box::new(io::stdin()),
        Some(path) => Box::new(File::open(path)?),
    };
    let mut text =
        |default: &str| args.next().map_or_else(|| default.to_owned(), |arg| arg.to_string_lossy().into_owned());
    let (word, replacement) = (text("Rotterdam"), text("[redacted]"));
    let outcome = redact(&word, &replacement, &mut from, &mut io::stdout(), 8192)?;
    eprintln!("{outcome}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn redacted(name: &str, word: &str, replacement: &str, read_size: usize) -> String {
        let body = fs::read(streamkeeper_examples::stream(name)).unwrap();
        let mut out = Vec::new();
        let outcome = redact(word, replacement, &mut &body[..], &mut out, read_size).unwrap();
        assert!(outcome.is_finished(), "{name}: {outcome}");
        String::from_utf8(out).unwrap()
    }

    /// The answer in a body, read again by a fresh decoder.
    fn answer(body: &str) -> String {
        let mut decoder = Decoder::detect();
        decoder.push(body.as_bytes()).unwrap();
        decoder.finish().unwrap();
        std::iter::from_fn(|| decoder.next_chunk())
            .filter(|chunk| chunk.kind() == ChunkKind::ContentDelta)
            .map(|chunk| chunk.text().unwrap_or_default().to_owned())
            .collect()
    }

    /// The key is cut into five events; the word is found wherever the reads cut the bytes as well.
    #[test]
    fn a_word_cut_over_many_events_is_replaced() {
        let whole = redacted("leaked-key.openai.sse", "sk-demo-4f9A2c77Qm1Zx0B8", "[key]", 1_000_000);
        for read_size in [1, 2, 7, 64, 1000] {
            assert_eq!(redacted("leaked-key.openai.sse", "sk-demo-4f9A2c77Qm1Zx0B8", "[key]", read_size), whole);
        }
        assert_eq!(
            answer(&whole),
            "The key on your account is [key]. Keep it private and write to maya@example.org if you lose it."
        );
        assert!(!whole.contains("4f9A2c"));
    }

    #[test]
    fn a_body_without_anything_like_the_word_is_byte_identical() {
        for name in [
            "support-chat.openai.sse",
            "support-chat.anthropic.sse",
            "support-chat.gemini.sse",
            "support-chat.ag-ui.sse",
        ] {
            let body = fs::read_to_string(streamkeeper_examples::stream(name)).unwrap();
            assert_eq!(redacted(name, "§ 12", "x", 50), body, "{name}");
        }
    }

    /// What stands around the word stays byte for byte.
    #[test]
    fn nothing_but_the_word_changes() {
        let body = fs::read_to_string(streamkeeper_examples::stream("support-chat.openai.sse")).unwrap();
        let out = redacted("support-chat.openai.sse", "Rotterdam", "[redacted]", 64);
        assert_eq!(out, body.replace("Rotterdam", "[redacted]"));
        // Cut in two by the stream: "Hi Maya" and ", thanks".
        assert!(!redacted("support-chat.openai.sse", "Maya, th", "x", 64).contains("Maya"));
    }

    /// A provider that repeats the whole text leaks nothing in the repeats.
    #[test]
    fn repeats_are_redacted_too() {
        let body = redacted("support-chat.openai-responses.sse", "password", "[secret]", 64);
        assert!(!body.contains("password"), "{body}");
        assert!(answer(&body).contains("to set a new [secret]"));
    }
}

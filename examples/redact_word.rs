//! Replaces a word in a provider's stream and leaves every other byte as it is.
//!
//!     cargo run -p streamkeeper-examples --example redact_word [FILE [WORD]]
//!
//! The word is found wherever chunks cut it. Events that hold none of it leave byte for byte as they came, so any client of the provider
//! reads the result.

use std::{env, error::Error, io::Write, path::PathBuf};

use streamkeeper::{
    prelude::*,
    wire::{Decoder, Passthrough},
};

const REPLACEMENT: &str = "[redacted]";

#[derive(Clone)]
struct RedactWord {
    word: String,
}

impl RedactWord {
    fn redacted(&self, text: &str) -> Option<String> {
        text.contains(&self.word).then(|| text.replace(&self.word, REPLACEMENT))
    }

    /// How many bytes at the end may be the beginning of the word.
    fn undecided(&self, text: &str) -> usize {
        let rest = text.rfind(&self.word).map_or(text, |at| &text[at + self.word.len()..]);
        let starts = self.word.char_indices().map(|(at, _)| at).skip(1);
        starts.filter(|&len| rest.ends_with(&self.word[..len])).max().unwrap_or(0)
    }
}

impl StreamObserver for RedactWord {
    fn interest(&self) -> Interest {
        Interest::only(&[ChunkKind::ContentDelta, ChunkKind::Snapshot])
    }

    fn on_chunk(&mut self, chunk: &Chunk, ctx: &mut ObserverContext<'_>) -> Verdict {
        let pending = ctx.pending();
        if !chunk.is_delta() {
            // The whole text again, in one piece.
            let redacted = self.redacted(pending).and_then(|text| chunk.with_text(text));
            return redacted.map_or(Verdict::Continue, Verdict::Amend);
        }
        let keep = self.undecided(pending);
        match self.redacted(&pending[..pending.len() - keep]) {
            Some(text) => Release::text(text).keep(keep).into(),
            None if keep > 0 => Release::unchanged().keep(keep).into(),
            None => Verdict::Continue,
        }
    }

    /// The text goes no further: what is held is no beginning of the word after all.
    fn on_barrier(&mut self, _: &mut ObserverContext<'_>) -> Verdict {
        Verdict::Continue
    }
}

/// The provider's bytes without the word.
fn redact(body: &[u8], word: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    let observers = Observers::from(Registration::guard(id!("redact-word"), RedactWord { word: word.to_owned() }));
    let mut stack = observers.stack(&ObserverFactoryContext::default());
    let mut passthrough = Passthrough::new(Decoder::detect());
    let mut out = Vec::new();

    // A live body comes in pieces, which may end anywhere.
    for piece in body.chunks(1024) {
        passthrough.push(piece)?;
        copy(&mut passthrough, &mut stack, &mut out)?;
    }
    passthrough.finish()?;
    copy(&mut passthrough, &mut stack, &mut out)?;
    stack.finish();
    passthrough.release(&delivered(&mut stack), &mut out)?;
    if let Some(outcome) = stack.outcome() {
        passthrough.end(outcome, &mut out);
    }
    Ok(out)
}

/// Takes each event that is there through the observers and writes it again.
fn copy(passthrough: &mut Passthrough, stack: &mut Stack, out: &mut Vec<u8>) -> Result<(), Box<dyn Error>> {
    let mut chunks = Vec::new();
    while passthrough.next_frame(&mut chunks)? {
        chunks.drain(..).for_each(|chunk| stack.push(chunk));
        passthrough.write(&delivered(stack), out)?;
    }
    Ok(())
}

fn delivered(stack: &mut Stack) -> Vec<Chunk> {
    std::iter::from_fn(|| stack.pop()).collect()
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = env::args_os().skip(1);
    let path = args.next().map_or_else(|| streamkeeper_examples::stream("support-chat.openai.sse"), PathBuf::from);
    let word = args.next().map_or_else(|| "Rotterdam".to_owned(), |word| word.to_string_lossy().into_owned());
    let out = redact(&std::fs::read(path)?, &word)?;
    std::io::stdout().write_all(&out)?;
    Ok(())
}

#[cfg(test)]
#[test]
fn it_runs() {
    let body = std::fs::read_to_string(streamkeeper_examples::stream("support-chat.openai.sse")).unwrap();
    let redacted = |word| String::from_utf8(redact(body.as_bytes(), word).unwrap()).unwrap();
    assert_eq!(redacted("Amsterdam"), body);
    assert_eq!(redacted("Rotterdam"), body.replace("Rotterdam", REPLACEMENT));
    // Cut in two by the stream: "Hi Maya" and ", thanks".
    assert!(!redacted("Maya, th").contains("Maya"));
}

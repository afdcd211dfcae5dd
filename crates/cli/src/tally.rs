use std::{
    collections::BTreeMap,
    io::{self, Write},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde::Deserialize;

/// How often each observer did what, by its id; `None` is the stack itself.
pub(crate) type Counts = BTreeMap<(Option<String>, String), u64>;

/// Counts the verdicts of a recording on their way to where it is written.
pub(crate) struct Tally<W> {
    to: W,
    line: Vec<u8>,
    counts: Arc<Mutex<Counts>>,
}

#[derive(Deserialize)]
struct Verdict {
    record: String,
    observer: Option<String>,
    #[serde(default)]
    action: String,
}

/// Longer lines are not kept to be counted. A verdict quotes at most what an observer may hold.
const LONGEST: usize = 1024 * 1024;

impl<W: Write> Tally<W> {
    pub(crate) fn new(to: W) -> (Self, Arc<Mutex<Counts>>) {
        let counts = Arc::<Mutex<Counts>>::default();
        (Self { to, line: Vec::new(), counts: counts.clone() }, counts)
    }

    fn count(&mut self) {
        let line = std::mem::take(&mut self.line);
        if line.starts_with(b"{\"record\":\"verdict\"")
            && let Ok(verdict) = serde_json::from_slice::<Verdict>(&line)
            && verdict.record == "verdict"
        {
            *lock(&self.counts).entry((verdict.observer, verdict.action)).or_default() += 1;
        }
    }
}

pub(crate) fn lock(counts: &Mutex<Counts>) -> MutexGuard<'_, Counts> {
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<W: Write> Write for Tally<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes)?;
        for piece in bytes[..written].split_inclusive(|byte| *byte == b'\n') {
            let room = LONGEST.saturating_sub(self.line.len());
            self.line.extend_from_slice(&piece[..piece.len().min(room)]);
            if piece.ends_with(b"\n") {
                self.count();
            }
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

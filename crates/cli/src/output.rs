use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use streamkeeper_contract::{Body, Channel, Chunk};
use streamkeeper_wire::Stats;

use crate::failure::Failure;

/// Stdout, written at once: whoever reads a live stream wants what is there.
pub(crate) struct Out {
    stdout: io::Stdout,
    /// The last byte written, to know whether a line is open.
    last: u8,
}

impl Out {
    pub(crate) fn stdout() -> Self {
        Self { stdout: io::stdout(), last: b'\n' }
    }

    /// Writes bytes and hands them on.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let Some(last) = bytes.last() else { return Ok(()) };
        self.last = *last;
        let mut stdout = self.stdout.lock();
        stdout.write_all(bytes).and_then(|()| stdout.flush()).map_err(|error| Failure::stdout(&error))
    }

    /// Ends the line, if one is open.
    pub(crate) fn end_line(&mut self) -> Result<(), Failure> {
        if self.last == b'\n' { Ok(()) } else { self.write(b"\n") }
    }
}

/// The answer text of a chunk: what a person reads.
pub(crate) fn answer(chunk: &Chunk) -> Option<&str> {
    match chunk.body() {
        Body::Delta { lane, text } if lane.choice == 0 && lane.channel == Channel::Text => Some(text),
        _ => None,
    }
}

/// A chunk as a line of canonical JSON.
pub(crate) fn json_line(chunk: &Chunk) -> Result<Vec<u8>, Failure> {
    let mut line =
        serde_json::to_vec(chunk).map_err(|error| Failure::stream(format!("cannot write a chunk: {error}")))?;
    line.push(b'\n');
    Ok(line)
}

/// How far a long run is, on one line of stderr: only on a terminal, and only where stdout does not show it already.
pub(crate) struct Progress {
    shown: bool,
    is_on: bool,
    next: Instant,
}

const EVERY: Duration = Duration::from_millis(100);

impl Progress {
    pub(crate) fn new() -> Self {
        let is_on = io::stderr().is_terminal() && !io::stdout().is_terminal();
        Self { shown: false, is_on, next: Instant::now() + EVERY }
    }

    pub(crate) fn show(&mut self, stats: &Stats) {
        if self.is_on && Instant::now() >= self.next {
            self.next = Instant::now() + EVERY;
            self.shown = true;
            let _ = write!(io::stderr(), "\r{} bytes, {} events ", stats.bytes, stats.events);
        }
    }

    /// Wipes the line.
    pub(crate) fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            let _ = write!(io::stderr(), "\r{:60}\r", "");
        }
    }
}

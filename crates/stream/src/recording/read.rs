use std::{
    fmt,
    io::{self, BufRead, Read, Write},
};

use streamkeeper_contract::{Chunk, Outcome};

use super::{
    Entry, Header, View,
    line::{self, Line},
};

/// The most bytes one line may have: 64 MiB.
const MAX_LINE: u64 = 64 * 1024 * 1024;

/// A recording, read.
///
/// ```
/// use streamkeeper_contract::{Chunk, FinishReason, Lane};
/// use streamkeeper_stream::{Observers, Recorder, Tape, View};
///
/// let tape = Tape::new();
/// let ctx = Default::default();
/// let mut stack = Observers::new().builder(&ctx).recorder(Recorder::delivered(tape.clone())).build();
/// stack.push(Chunk::delta(Lane::TEXT, "Hello"));
/// stack.push(Chunk::finish(0, FinishReason::Stop));
/// stack.finish();
/// while stack.pop().is_some() {}
///
/// let recording = tape.recording()?;
/// assert_eq!(recording.header().view, View::Delivered);
/// assert_eq!(recording.output().count(), 3);
/// assert_eq!(recording.outcome().unwrap().code(), "finished");
/// # Ok::<_, streamkeeper_stream::RecordingError>(())
/// ```
#[derive(Clone, PartialEq)]
pub struct Recording {
    header: Header,
    entries: Vec<Entry>,
    unknown: u64,
}

/// Why a recording cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// The reader failed.
    #[error("line {line} cannot be read")]
    Io {
        /// The line, from 1.
        line: u64,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A line is no JSON, or not what its kind says.
    #[error("line {line} is broken: {source}")]
    Line {
        /// The line, from 1.
        line: u64,
        /// Why. May quote the line.
        #[source]
        source: serde_json::Error,
    },
    /// A line is longer than 64 MiB.
    #[error("line {line} is longer than 64 MiB")]
    TooLong {
        /// The line, from 1.
        line: u64,
    },
    /// The first line is no header.
    #[error("this is no recording: its first line is no header")]
    NoHeader,
    /// A second header.
    #[error("line {line} is a second header")]
    SecondHeader {
        /// The line, from 1.
        line: u64,
    },
    /// The format is newer than this reader.
    #[error("the recording has version {0} of its format; this reader knows up to {known}", known = Header::VERSION)]
    Version(u32),
}

impl Recording {
    /// Reads JSON lines. Lines of a kind that this version does not know are counted and left out; empty lines are skipped.
    ///
    /// # Errors
    /// If a line is broken or too long, or the first is no header. A recording whose writer was cut off in a line is broken there.
    pub fn read(mut from: impl BufRead) -> Result<Self, RecordingError> {
        let mut header = None;
        let mut entries = Vec::new();
        let (mut unknown, mut number) = (0, 0);
        let mut text = Vec::new();
        loop {
            number += 1;
            text.clear();
            let len = from
                .by_ref()
                .take(MAX_LINE + 1)
                .read_until(b'\n', &mut text)
                .map_err(|source| RecordingError::Io { line: number, source })?;
            if len == 0 {
                break;
            }
            if text.len() as u64 > MAX_LINE {
                return Err(RecordingError::TooLong { line: number });
            }
            let broken = |source| RecordingError::Line { line: number, source };
            let line = std::str::from_utf8(&text)
                .map_err(|error| broken(<serde_json::Error as serde::de::Error>::custom(error)))?
                .trim_ascii();
            if line.is_empty() {
                continue;
            }
            if header.is_none() {
                header = Some(read_header(line)?);
                continue;
            }
            match line::read(line).map_err(broken)? {
                Line::Header(_) => return Err(RecordingError::SecondHeader { line: number }),
                Line::Entry(entry) => entries.push(entry),
                Line::Unknown => unknown += 1,
            }
        }
        Ok(Self { header: header.ok_or(RecordingError::NoHeader)?, entries, unknown })
    }

    pub(super) fn new(header: Header, entries: Vec<Entry>) -> Self {
        Self { header, entries, unknown: 0 }
    }

    /// Writes JSON lines.
    ///
    /// # Errors
    /// If the writer fails.
    pub fn write(&self, mut to: impl Write) -> io::Result<()> {
        writeln!(to, "{}", line::write_header(&self.header)?)?;
        for entry in &self.entries {
            writeln!(to, "{}", line::write(entry)?)?;
        }
        Ok(())
    }

    /// The first line.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Everything else, in order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// What the consumer got.
    pub fn output(&self) -> impl Iterator<Item = &Chunk> {
        self.entries.iter().filter_map(|entry| match entry {
            Entry::Output { chunk, .. } => Some(chunk),
            _ => None,
        })
    }

    /// How the invocation ended. `None` if the recording was cut off.
    pub fn outcome(&self) -> Option<&Outcome> {
        self.entries.iter().rev().find_map(|entry| match entry {
            Entry::Outcome { outcome, .. } => Some(outcome),
            _ => None,
        })
    }

    /// How many lines were of a kind that this version does not know.
    pub fn unknown(&self) -> u64 {
        self.unknown
    }

    /// The recording as one that can be replayed.
    ///
    /// # Errors
    /// If it shows only what was delivered: guards that are given what guards let through say nothing about guards.
    pub fn into_raw(self) -> Result<RawRecording, NotRaw> {
        match self.header.view {
            View::Raw => Ok(RawRecording(self)),
            View::Delivered => Err(NotRaw),
        }
    }
}

fn read_header(line: &str) -> Result<Header, RecordingError> {
    #[derive(serde::Deserialize)]
    struct Version {
        version: u32,
    }
    if let Ok(Version { version }) = serde_json::from_str(line)
        && version > Header::VERSION
    {
        return Err(RecordingError::Version(version));
    }
    match line::read(line) {
        Ok(Line::Header(header)) => Ok(header),
        _ => Err(RecordingError::NoHeader),
    }
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recording")
            .field("header", &self.header)
            .field("entries", &self.entries.len())
            .field("outcome", &self.outcome().map(Outcome::code))
            .finish_non_exhaustive()
    }
}

/// A recording that shows what came in, everything that guards withheld included. Keep it where the provider's own answers may be kept.
#[derive(Debug, Clone, PartialEq)]
pub struct RawRecording(pub(super) Recording);

impl RawRecording {
    /// The recording.
    pub fn recording(&self) -> &Recording {
        &self.0
    }

    /// What came in.
    pub fn input(&self) -> impl Iterator<Item = &Chunk> {
        self.0.entries.iter().filter_map(|entry| match entry {
            Entry::Input { chunk, .. } => Some(chunk),
            _ => None,
        })
    }
}

/// The recording shows only what was delivered and cannot be replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the recording shows only what was delivered; replay needs the raw view")]
pub struct NotRaw;

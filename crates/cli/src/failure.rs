use std::{fmt, io, path::Path, process::ExitCode};

/// How the command ends. The numbers are part of the interface: see `--help`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The stream finished.
    Finished = 0,
    /// A wrong argument, or a file that cannot be read or written.
    Usage = 1,
    /// The stream failed, was cut off, or cannot be read.
    Stream = 2,
    /// An observer stopped the stream.
    Stopped = 3,
    /// A replay differs from its recording.
    Differs = 4,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        (exit as u8).into()
    }
}

/// Why the command cannot go on, in words for the person who started it.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A sentence, and how the command ends.
    Message(String, Exit),
    /// Whoever reads our stdout has gone: nothing is left to say, and nobody to say it to.
    ReaderGone,
}

impl Failure {
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::Message(message.into(), Exit::Usage)
    }

    pub(crate) fn stream(message: impl Into<String>) -> Self {
        Self::Message(message.into(), Exit::Stream)
    }

    pub(crate) fn file(path: &Path, what: &str, error: &io::Error) -> Self {
        Self::usage(format!("cannot {what} {}: {error}", path.display()))
    }

    /// A write to stdout failed.
    pub(crate) fn stdout(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::ReaderGone,
            _ => Self::usage(format!("cannot write to stdout: {error}")),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message(message, _) => f.write_str(message),
            Self::ReaderGone => f.write_str("the reader of stdout has gone"),
        }
    }
}

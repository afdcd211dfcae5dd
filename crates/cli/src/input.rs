use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

use crate::failure::Failure;

/// A file or stdin, read as it comes.
pub(crate) struct Input {
    path: PathBuf,
    reader: Box<dyn Read>,
    buffer: Vec<u8>,
}

/// A read returns what is there, up to so many bytes: small reads of a live pipe are passed on at once.
const READ: usize = 64 * 1024;

impl Input {
    /// Opens a path; `-` is stdin.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let reader: Box<dyn Read> = if path.as_os_str() == "-" {
            Box::new(io::stdin())
        } else {
            let is_folder = std::fs::metadata(path).is_ok_and(|metadata| metadata.is_dir());
            if is_folder {
                return Err(Failure::usage(format!("{} is a folder; name a file, or - for stdin", path.display())));
            }
            Box::new(File::open(path).map_err(|error| Failure::file(path, "read", &error))?)
        };
        Ok(Self { path: path.to_owned(), reader, buffer: vec![0; READ] })
    }

    /// Reads so many bytes at a time at most.
    pub(crate) fn at_most(mut self, bytes: usize) -> Self {
        self.buffer.truncate(bytes.max(1));
        self
    }

    /// The next bytes, or `None` at the end.
    pub(crate) fn read(&mut self) -> Result<Option<&[u8]>, Failure> {
        loop {
            match self.reader.read(&mut self.buffer) {
                Ok(0) => return Ok(None),
                Ok(n) => return Ok(Some(&self.buffer[..n])),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Failure::file(&self.path, "read", &error)),
            }
        }
    }

    /// The name for messages.
    pub(crate) fn name(&self) -> String {
        if self.path.as_os_str() == "-" { "stdin".to_owned() } else { self.path.display().to_string() }
    }
}

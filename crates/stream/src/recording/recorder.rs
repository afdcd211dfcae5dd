use std::{
    fmt,
    io::{self, Write},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, PoisonError},
};

use super::{Entry, Header, Recording, RecordingError, View, line};

/// Writes what happens in a stack as it happens, as JSON lines.
///
/// Each entry is written at once, in line with the stream: give it a writer that does not block, or a buffered one. The writer is flushed
/// after the last entry. If it fails, recording ends, a failure is reported for component `recorder`, and the stream goes on.
///
/// ```
/// use streamkeeper_stream::{Observers, Recorder};
///
/// let ctx = Default::default();
/// let stack = Observers::new().builder(&ctx).recorder(Recorder::delivered(std::io::sink())).build();
/// # drop(stack);
/// ```
pub struct Recorder {
    view: View,
    sink: Box<dyn RecordSink>,
}

trait RecordSink: Send {
    fn header(&mut self, header: Header) -> io::Result<()>;
    fn entry(&mut self, entry: Entry) -> io::Result<()>;
}

impl Recorder {
    /// Records what the consumer gets: output, events and outcome, and who changed something, without the text.
    pub fn delivered(to: impl Write + Send + 'static) -> Self {
        Self { view: View::Delivered, sink: Box::new(Lines(to)) }
    }

    /// Records what comes in too, and each verdict with its texts. That is everything that the guards withhold from the consumer: secrets
    /// included.
    pub fn raw_sensitive(to: impl Write + Send + 'static) -> Self {
        Self { view: View::Raw, sink: Box::new(Lines(to)) }
    }

    pub(super) fn entries(to: Arc<Mutex<Vec<Entry>>>) -> Self {
        Self { view: View::Raw, sink: Box::new(Entries(to)) }
    }

    /// What it records.
    pub fn view(&self) -> View {
        self.view
    }

    pub(crate) fn is_raw(&self) -> bool {
        self.view == View::Raw
    }

    pub(crate) fn header(&mut self, header: Header) -> std::thread::Result<io::Result<()>> {
        catch_unwind(AssertUnwindSafe(|| self.sink.header(header)))
    }

    pub(crate) fn entry(&mut self, entry: Entry) -> std::thread::Result<io::Result<()>> {
        catch_unwind(AssertUnwindSafe(|| self.sink.entry(entry)))
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("view", &self.view).finish_non_exhaustive()
    }
}

struct Lines<W>(W);

impl<W: Write + Send> RecordSink for Lines<W> {
    fn header(&mut self, header: Header) -> io::Result<()> {
        writeln!(self.0, "{}", line::write_header(&header)?)
    }

    fn entry(&mut self, entry: Entry) -> io::Result<()> {
        writeln!(self.0, "{}", line::write(&entry)?)?;
        if matches!(entry, Entry::Outcome { .. }) { self.0.flush() } else { Ok(()) }
    }
}

struct Entries(Arc<Mutex<Vec<Entry>>>);

impl RecordSink for Entries {
    fn header(&mut self, _: Header) -> io::Result<()> {
        Ok(())
    }

    fn entry(&mut self, entry: Entry) -> io::Result<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
        Ok(())
    }
}

/// A recording in memory: a writer whose clones share what is written.
#[derive(Clone, Default)]
pub struct Tape(Arc<Mutex<Vec<u8>>>);

impl Tape {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// The lines written so far.
    pub fn lines(&self) -> String {
        String::from_utf8_lossy(&self.bytes()).into_owned()
    }

    /// What was written so far, read.
    ///
    /// # Errors
    /// If nothing was recorded yet.
    pub fn recording(&self) -> Result<Recording, RecordingError> {
        Recording::read(&**self.bytes())
    }

    fn bytes(&self) -> std::sync::MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Write for Tape {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Debug for Tape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tape({} bytes)", self.bytes().len())
    }
}

use super::{Buffer, Found, Place};

/// One JSON value a line. A blank line is a frame without payload.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// Relative to the frame being read: where its line begins, and how far there is no line end.
    line: usize,
    seen: usize,
}

impl Lines {
    pub(super) fn skip(&mut self, bytes: usize) {
        (self.line, self.seen) = (bytes, bytes);
    }

    pub(super) fn find(&mut self, buffer: &Buffer) -> Option<Found> {
        let unread = buffer.unread();
        let end = memchr::memchr(b'\n', &unread[self.seen..]).map(|at| self.seen + at);
        let (to, len) = match end {
            Some(end) => (end, end + 1),
            None if buffer.closed && !unread.is_empty() => (unread.len(), unread.len()),
            None => {
                self.seen = unread.len();
                return None;
            }
        };
        let line = &unread[self.line..to];
        let from = self.line + line.len() - line.trim_ascii_start().len();
        let data = if from < to { Place::At(from..from + line.trim_ascii().len()) } else { Place::Nowhere };
        (self.line, self.seen) = (0, 0);
        Some(Found { len, unterminated: end.is_none() && from < to, data, ..Found::default() })
    }
}

use super::{Buffer, Found, text_at};

/// One JSON value a line. Blank lines belong to the frame that follows.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// Where the line being read begins, and how far it is known to have no end.
    line: usize,
    seen: usize,
}

impl Lines {
    pub(super) fn find(&mut self, buffer: &Buffer) -> Option<Found> {
        let unread = buffer.unread();
        loop {
            let end = memchr::memchr(b'\n', &unread[self.seen.min(unread.len())..]).map(|at| self.seen + at);
            let (line_end, raw_end) = match end {
                Some(end) => (end, end + 1),
                None if buffer.closed && !unread.is_empty() => (unread.len(), unread.len()),
                None => {
                    self.seen = unread.len();
                    return None;
                }
            };
            let line = unread[self.line..line_end].trim_ascii_end();
            let from = self.line + line.len() - line.trim_ascii_start().len();
            let to = self.line + line.len();
            if from == to && raw_end < unread.len() {
                (self.line, self.seen) = (raw_end, raw_end);
                continue;
            }
            if from == to && !buffer.closed {
                (self.line, self.seen) = (raw_end, raw_end);
                return None;
            }
            (self.line, self.seen) = (0, 0);
            let mut found = Found { raw: 0..raw_end, unterminated: end.is_none() && from < to, ..Found::default() };
            if from < to {
                found.data = text_at(unread, from..to);
            }
            return Some(found);
        }
    }
}

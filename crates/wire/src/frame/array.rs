use super::{Buffer, Found, json_end::JsonEnd, text_at};

/// One JSON array, an event an element. What stands between elements belongs to the frame that follows; the closing bracket is a frame
/// without payload.
#[derive(Debug, Default)]
pub(super) struct Array {
    opened: bool,
    /// Relative to the frame being read: how far it is read.
    seen: usize,
    element: Option<(usize, JsonEnd)>,
}

impl Array {
    pub(super) fn find(&mut self, buffer: &Buffer) -> Option<Found> {
        let unread = buffer.unread();
        loop {
            if let Some((from, end)) = &mut self.element {
                let from = *from;
                let end = end.find(unread);
                return match end {
                    Some(end) => Some(self.take(unread, from, end, false)),
                    None if buffer.closed => Some(self.take(unread, from, unread.len(), true)),
                    None => None,
                };
            }
            let Some(&byte) = unread.get(self.seen) else {
                let rest = buffer.closed && !unread.is_empty();
                return rest.then(|| self.take(unread, unread.len(), unread.len(), false));
            };
            if byte.is_ascii_whitespace() || byte == b',' || (byte == b'[' && !self.opened) {
                self.opened |= byte == b'[';
                self.seen += 1;
            } else if byte == b']' {
                // The rest of the body belongs to it.
                self.seen += 1;
                self.opened = false;
            } else {
                self.element = Some((self.seen, JsonEnd::at(self.seen)));
            }
        }
    }

    fn take(&mut self, unread: &[u8], from: usize, end: usize, unterminated: bool) -> Found {
        self.element = None;
        self.seen = 0;
        let mut found = Found { raw: 0..end, unterminated, ..Found::default() };
        if from < end {
            found.data = text_at(unread, from..end);
        }
        found
    }
}

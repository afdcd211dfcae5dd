use super::{Buffer, Found, Place, json_end::JsonEnd};

/// One JSON array, an event an element. What stands between elements belongs to the frame that follows; the closing bracket is a frame
/// without payload. Elements without an array around them are taken too.
#[derive(Debug, Default)]
pub(super) struct Array {
    opened: bool,
    /// The array is over: what follows stands outside of it.
    over: bool,
    /// Relative to the frame being read: how far it is read.
    seen: usize,
    element: Option<JsonEnd>,
}

impl Array {
    pub(super) fn skip(&mut self, bytes: usize) {
        self.seen = bytes;
    }

    pub(super) fn is_framed(&self) -> bool {
        self.over
    }

    pub(super) fn find(&mut self, buffer: &Buffer) -> Option<Found> {
        let unread = buffer.unread();
        loop {
            if let Some(element) = &mut self.element {
                let (from, end) = (element.from(), element.find(unread));
                let (to, unterminated) = match end {
                    Some(end) => (end, false),
                    None if buffer.closed => (unread.len(), true),
                    None => return None,
                };
                (self.element, self.seen) = (None, 0);
                let data = Place::At(from..to);
                return Some(Found {
                    len: to,
                    data,
                    outside: self.over && !self.opened,
                    unterminated,
                    ..Found::default()
                });
            }
            let Some(&byte) = unread.get(self.seen) else {
                let rest = buffer.closed && !unread.is_empty();
                return rest.then(|| self.separators());
            };
            match byte {
                b'[' if !self.opened => {
                    self.opened = true;
                    self.seen += 1;
                }
                b']' if self.opened => {
                    (self.opened, self.over) = (false, true);
                    self.seen += 1;
                    return Some(self.separators());
                }
                _ if byte == b',' || byte.is_ascii_whitespace() => self.seen += 1,
                _ => self.element = Some(JsonEnd::at(self.seen)),
            }
        }
    }

    fn separators(&mut self) -> Found {
        Found { len: std::mem::take(&mut self.seen), ..Found::default() }
    }
}

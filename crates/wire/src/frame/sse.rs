use std::ops::Range;

use super::{Buffer, Data, Found, json_end::JsonEnd, own_text, text_at};

/// Server-sent events by the WHATWG rules (HTML, 9.2.6), for every split.
///
/// It goes on where the rules would lose something silently: a last event without its blank line is found and marked, and so is a bare
/// JSON body between events.
#[derive(Debug, Default)]
pub(super) struct Sse {
    /// Relative to the frame being read: where the line being read begins, and how far it is known to have no end.
    line: usize,
    seen: usize,
    begun: bool,
    name: Option<Range<usize>>,
    data: Lines,
    /// The block has a line that is not blank.
    any: bool,
    /// A bare JSON body: where it begins, and the search for its end.
    outside: Option<(usize, JsonEnd)>,
}

#[derive(Debug, Default)]
enum Lines {
    #[default]
    None,
    One(Range<usize>),
    Many(Vec<u8>),
}

impl Sse {
    pub(super) fn find(&mut self, buffer: &Buffer) -> Option<Found> {
        let unread = buffer.unread();
        if !self.begun {
            const BOM: &[u8] = b"\xEF\xBB\xBF";
            if unread.len() < BOM.len() && BOM.starts_with(unread) && !buffer.closed {
                return None;
            }
            self.begun = true;
            if unread.starts_with(BOM) {
                (self.line, self.seen) = (BOM.len(), BOM.len());
            }
        }
        loop {
            if let Some((_, end)) = &mut self.outside {
                let end = end.find(unread);
                return match end {
                    Some(end) => Some(self.take_outside(unread, end, false)),
                    None if buffer.closed => Some(self.take_outside(unread, unread.len(), true)),
                    None => None,
                };
            }
            let Some((line, next)) = self.next_line(unread, buffer.closed) else {
                return if buffer.closed && !unread.is_empty() { Some(self.last(unread)) } else { None };
            };
            if line.is_empty() {
                (self.line, self.seen) = (next, next);
                if self.any {
                    return Some(self.take(unread, next, false));
                }
                continue;
            }
            if !self.any && matches!(unread[line.start], b'{' | b'[') {
                let from = line.start;
                self.outside = Some((from, JsonEnd::at(from)));
                continue;
            }
            self.any = true;
            (self.line, self.seen) = (next, next);
            self.field(unread, line);
        }
    }

    /// The next whole line without its end, and where the one after begins.
    fn next_line(&mut self, unread: &[u8], closed: bool) -> Option<(Range<usize>, usize)> {
        let Some(at) = memchr::memchr2(b'\n', b'\r', &unread[self.seen.min(unread.len())..]) else {
            self.seen = unread.len();
            return None;
        };
        let end = self.seen + at;
        let next = match (unread[end], unread.get(end + 1)) {
            (b'\r', Some(b'\n')) => end + 2,
            // A line feed may follow in the next read.
            (b'\r', None) if !closed => {
                self.seen = end;
                return None;
            }
            _ => end + 1,
        };
        Some((self.line..end, next))
    }

    fn field(&mut self, unread: &[u8], line: Range<usize>) {
        let bytes = &unread[line.clone()];
        let colon = memchr::memchr(b':', bytes);
        let name = &bytes[..colon.unwrap_or(bytes.len())];
        let mut value = colon.map_or(line.end, |colon| line.start + colon + 1)..line.end;
        if unread[value.clone()].first() == Some(&b' ') {
            value.start += 1;
        }
        match name {
            b"data" => {
                self.data = match std::mem::take(&mut self.data) {
                    Lines::None => Lines::One(value),
                    Lines::One(first) => Lines::Many([&unread[first], b"\n", &unread[value]].concat()),
                    Lines::Many(mut lines) => {
                        lines.push(b'\n');
                        lines.extend_from_slice(&unread[value]);
                        Lines::Many(lines)
                    }
                };
            }
            b"event" => {
                self.name = Some(value).filter(|name| !name.is_empty());
            }
            // No field of the standard: some gateways write an error this way.
            b"error" if matches!(self.data, Lines::None) => {
                self.name = Some(line.start..line.start + name.len());
                self.data = Lines::One(value);
            }
            _ => {}
        }
    }

    /// The body is over and no blank line came.
    fn last(&mut self, unread: &[u8]) -> Found {
        if self.line < unread.len() {
            let line = self.line..unread.len();
            self.any = true;
            self.field(unread, line);
        }
        let any_data = !matches!(self.data, Lines::None);
        self.take(unread, unread.len(), any_data)
    }

    fn take(&mut self, unread: &[u8], end: usize, unterminated: bool) -> Found {
        let data = match std::mem::take(&mut self.data) {
            Lines::None => Data::None,
            Lines::One(range) => text_at(unread, range),
            Lines::Many(lines) => own_text(&lines),
        };
        let name = self.name.take().map_or(Data::None, |range| text_at(unread, range));
        (self.line, self.seen, self.any) = (0, 0, false);
        Found { raw: 0..end, name, data, outside: false, unterminated }
    }

    fn take_outside(&mut self, unread: &[u8], end: usize, unterminated: bool) -> Found {
        let from = self.outside.take().map_or(0, |(from, _)| from);
        (self.line, self.seen, self.any) = (0, 0, false);
        Found { raw: 0..end, name: Data::None, data: text_at(unread, from..end), outside: true, unterminated }
    }
}

use std::ops::Range;

use super::{Buffer, Found, Place, json_end::JsonEnd};

/// Server-sent events by the WHATWG rules (HTML, 9.2.6), for every split. All places are relative to the frame being read.
#[derive(Debug, Default)]
pub(super) struct Sse {
    /// Where the line being read begins, and how far there is no line end.
    line: usize,
    seen: usize,
    /// The line being read begins like a JSON body and is none.
    no_body: bool,
    block: Block,
    body: Option<Body>,
    id: String,
    /// A comment or a field of the standard was seen.
    framed: bool,
}

/// The lines since the last blank one.
#[derive(Debug, Default)]
struct Block {
    /// One is a field of the standard.
    fields: bool,
    name: Option<Range<usize>>,
    data: Option<Range<usize>>,
    /// There are more data lines than that.
    many: bool,
    /// The name and value of an error field.
    error: Option<(Range<usize>, Range<usize>)>,
}

impl Sse {
    pub(super) fn last_id(&self) -> &str {
        &self.id
    }

    pub(super) fn is_framed(&self) -> bool {
        self.framed
    }

    pub(super) fn skip(&mut self, bytes: usize) {
        (self.line, self.seen) = (bytes, bytes);
    }

    /// How many of the unread bytes belong to the frame being read, whatever follows.
    pub(super) fn certain(&self, unread: usize) -> usize {
        self.body.as_ref().filter(|body| body.line_start).map_or(unread, |body| body.json.seen())
    }

    pub(super) fn find(&mut self, buffer: &Buffer, own: &mut Vec<u8>) -> Option<Found> {
        let unread = buffer.unread();
        loop {
            if let Some(body) = &mut self.body {
                match body.find(unread, buffer.closed) {
                    Span::Whole(end) => return Some(self.take_body(end, false)),
                    Span::Broken(end) => return Some(self.take_body(end, false)),
                    Span::Rest => return Some(self.take_body(unread.len(), true)),
                    Span::None => (self.body, self.no_body) = (None, true),
                    Span::Open => return None,
                }
            }
            if !self.block.fields && !self.no_body && matches!(unread.get(self.line), Some(b'{' | b'[')) {
                self.body = Some(Body::at(self.line));
                continue;
            }
            let Some((line, next)) = self.next_line(buffer) else {
                return (buffer.closed && !unread.is_empty()).then(|| self.last(unread, own));
            };
            (self.line, self.seen, self.no_body) = (next, next, false);
            if line.is_empty() {
                return Some(self.take(unread, next, false, own));
            }
            self.field(unread, line);
        }
    }

    /// The next whole line without its end, and where the one after begins.
    fn next_line(&mut self, buffer: &Buffer) -> Option<(Range<usize>, usize)> {
        let unread = buffer.unread();
        let Some(at) = memchr::memchr2(b'\n', b'\r', &unread[self.seen..]) else {
            self.seen = unread.len();
            return None;
        };
        let end = self.seen + at;
        // A line feed may follow in the next read.
        if end + 1 == unread.len() && unread[end] == b'\r' && !buffer.closed {
            self.seen = end;
            return None;
        }
        Some((self.line..end, after_line_end(unread, end)))
    }

    fn field(&mut self, unread: &[u8], line: Range<usize>) {
        let from = line.start;
        let Some((name, value)) = split(unread, line) else {
            self.framed = true;
            return;
        };
        match name {
            b"data" => match self.block.data {
                None => self.block.data = Some(value),
                Some(_) => self.block.many = true,
            },
            b"event" => self.block.name = Some(value).filter(|name| !name.is_empty()),
            b"id" => {
                let id = &unread[value];
                if !id.contains(&0) {
                    self.id.clear();
                    self.id.push_str(&String::from_utf8_lossy(id));
                }
            }
            b"retry" => {}
            // No field of the standard: some gateways write an error this way.
            b"error" => {
                if !value.is_empty() {
                    self.block.error = Some((from..from + name.len(), value));
                }
                return;
            }
            _ => return,
        }
        self.block.fields = true;
        self.framed = true;
    }

    /// The body of the response is over and no blank line came.
    fn last(&mut self, unread: &[u8], own: &mut Vec<u8>) -> Found {
        let line = &unread[self.line..];
        let field_begins =
            !line.is_empty() && [&b"data"[..], b"event", b"id", b"retry"].iter().any(|name| name.starts_with(line));
        self.field(unread, self.line..unread.len());
        let unterminated = field_begins || self.block.fields || self.block.error.is_some();
        self.take(unread, unread.len(), unterminated, own)
    }

    fn take(&mut self, unread: &[u8], len: usize, unterminated: bool, own: &mut Vec<u8>) -> Found {
        (self.line, self.seen, self.no_body) = (0, 0, false);
        let block = std::mem::take(&mut self.block);
        let mut found = Found { len, unterminated, ..Found::default() };
        let mut name = block.name;
        match (block.data, block.error) {
            (Some(first), _) if block.many => {
                join(&unread[..len], first, own);
                found.data = Place::Own;
            }
            (Some(data), _) => found.data = Place::At(data),
            (None, Some((field, error))) => {
                name = name.or(Some(field));
                found.data = Place::At(error);
                found.outside = true;
            }
            (None, None) => {}
        }
        found.name = name.map_or(Place::Nowhere, Place::At);
        found
    }

    fn take_body(&mut self, end: usize, unterminated: bool) -> Found {
        (self.line, self.seen) = (0, 0);
        self.block = Block::default();
        let data = self.body.take().map_or(Place::Nowhere, |body| Place::At(body.json.from()..end));
        Found { len: end, name: Place::Nowhere, data, outside: true, unterminated }
    }
}

/// Where the line after a line end at `end` begins.
fn after_line_end(bytes: &[u8], end: usize) -> usize {
    if bytes[end] == b'\r' && bytes.get(end + 1) == Some(&b'\n') { end + 2 } else { end + 1 }
}

/// The name of a field and the place of its value; `None` for a comment.
fn split(bytes: &[u8], line: Range<usize>) -> Option<(&[u8], Range<usize>)> {
    let text = &bytes[line.clone()];
    match memchr::memchr(b':', text) {
        Some(0) => None,
        Some(colon) => {
            let space = usize::from(text.get(colon + 1) == Some(&b' '));
            Some((&text[..colon], line.start + colon + 1 + space..line.end))
        }
        None => Some((text, line.end..line.end)),
    }
}

/// Joins the data lines of a block, of which this is the first, by line feeds.
fn join(block: &[u8], first: Range<usize>, own: &mut Vec<u8>) {
    own.clear();
    own.extend_from_slice(&block[first.clone()]);
    let mut at = first.end;
    while at < block.len() {
        let from = after_line_end(block, at);
        at = memchr::memchr2(b'\n', b'\r', &block[from..]).map_or(block.len(), |end| from + end);
        if let Some((b"data", value)) = split(block, from..at) {
            own.push(b'\n');
            own.extend_from_slice(&block[value]);
        }
    }
}

/// A JSON object or array between events.
#[derive(Debug)]
struct Body {
    json: JsonEnd,
    /// How far a second byte was looked for that tells JSON from other text.
    probe: Option<usize>,
    line_ended: bool,
    crlf: bool,
    /// An event may begin at the byte that comes next.
    line_start: bool,
}

enum Span {
    Whole(usize),
    /// An event begins here.
    Broken(usize),
    /// The response ends inside.
    Rest,
    /// It needs more bytes.
    Open,
    /// It is no JSON.
    None,
}

impl Body {
    fn at(from: usize) -> Self {
        Self { json: JsonEnd::at(from), probe: Some(from + 1), line_ended: false, crlf: false, line_start: false }
    }

    fn find(&mut self, unread: &[u8], closed: bool) -> Span {
        while let Some(probe) = &mut self.probe {
            let byte = unread.get(*probe);
            match (unread[self.json.from()], byte) {
                (b'{', Some(b'"' | b'}')) | (b'[', Some(b'{')) => self.probe = None,
                (_, Some(b' ' | b'\t')) => *probe += 1,
                // A second one would be a blank line.
                (_, Some(b'\n' | b'\r')) if !self.line_ended => {
                    self.line_ended = true;
                    *probe += 1;
                }
                (_, Some(b'\n')) if unread[*probe - 1] == b'\r' && !self.crlf => {
                    self.crlf = true;
                    *probe += 1;
                }
                (_, None) if !closed => return Span::Open,
                _ => return Span::None,
            }
        }
        loop {
            if self.line_start {
                let rest = &unread[self.json.seen()..];
                let begins = |field: &[u8]| rest.starts_with(field);
                if begins(b"data:") || begins(b"event:") {
                    return Span::Broken(self.json.seen());
                }
                if !closed && (b"data:".starts_with(rest) || b"event:".starts_with(rest)) {
                    return Span::Open;
                }
                self.line_start = false;
            }
            let from = self.json.seen();
            let line_end = memchr::memchr2(b'\n', b'\r', &unread[from..]).map(|end| from + end + 1);
            if let Some(end) = self.json.find(&unread[..line_end.unwrap_or(unread.len())]) {
                return Span::Whole(end);
            }
            match line_end {
                Some(_) => self.line_start = true,
                None if closed => return Span::Rest,
                None => return Span::Open,
            }
        }
    }
}

//! Payloads to bytes: the framing around events that were changed or put in.

use crate::{Framing, frame::Frame};

use super::shape::Event;

/// Writes events the way the provider does.
#[derive(Debug)]
pub(super) struct Envelope {
    framing: Framing,
    /// The line end of server-sent events.
    newline: &'static str,
    /// Whether events carry names. Until one was seen, those that have one do.
    names: Option<bool>,
    /// The last byte that was written, and whether it ended an event.
    last: u8,
    clean: bool,
    array: Array,
}

/// Where a JSON array is.
#[derive(Debug, Default)]
struct Array {
    begun: bool,
    elements: u64,
    over: bool,
}

impl Envelope {
    pub(super) fn new(framing: Framing) -> Self {
        Self { framing, newline: "\n", names: None, last: b'\n', clean: true, array: Array::default() }
    }

    /// A frame as it came.
    pub(super) fn pass(&mut self, frame: &Frame<'_>, out: &mut Vec<u8>) {
        self.learn(frame);
        if self.framing == Framing::JsonArray {
            return self.element(frame, None, out);
        }
        out.extend_from_slice(frame.raw);
    }

    /// A frame with another payload.
    pub(super) fn rewrite(&mut self, frame: &Frame<'_>, json: &str, out: &mut Vec<u8>) {
        self.learn(frame);
        match (self.framing, frame.data, frame.data_at) {
            (Framing::JsonArray, ..) => self.element(frame, Some(json), out),
            (Framing::AwsEventStream, ..) => {
                let headers =
                    frame.raw.get(4..8).map_or(0, |bytes| bytes.iter().fold(0, |n, b| n << 8 | usize::from(*b)));
                message(frame.raw.get(12..12 + headers).unwrap_or_default(), json, out);
            }
            (_, Some(data), Some(at)) if frame.raw.len() >= at + data.len() => {
                out.extend_from_slice(&frame.raw[..at]);
                line(json, out);
                out.extend_from_slice(&frame.raw[at + data.len()..]);
            }
            (Framing::Sse, ..) => self.relay(frame.raw, json, out),
            _ => {
                line(json, out);
                out.push(b'\n');
            }
        }
    }

    /// The provider's frame is not written.
    pub(super) fn leave_out(&mut self, frame: &Frame<'_>) {
        let (last, clean) = (self.last, self.clean);
        self.learn(frame);
        (self.last, self.clean) = (last, clean);
    }

    /// An event of our own.
    pub(super) fn event(&mut self, event: &Event, out: &mut Vec<u8>) {
        match self.framing {
            Framing::JsonArray => {
                if self.array.over {
                    return;
                }
                self.separate(out);
                out.extend_from_slice(event.json.as_bytes());
            }
            Framing::AwsEventStream => message(&headers(event.name.as_deref().unwrap_or("chunk")), &event.json, out),
            Framing::Sse => {
                self.settle(out);
                if let Some(name) = event.name.as_deref().filter(|_| self.names != Some(false)) {
                    out.extend_from_slice(format!("event: {name}{}", self.newline).as_bytes());
                }
                out.extend_from_slice(b"data: ");
                line(&event.json, out);
                out.extend_from_slice(self.newline.as_bytes());
                out.extend_from_slice(self.newline.as_bytes());
            }
            _ => {
                if self.last != b'\n' {
                    out.push(b'\n');
                }
                line(&event.json, out);
                out.push(b'\n');
            }
        }
        (self.last, self.clean) = (b'\n', true);
    }

    /// What the framing needs at the end of a stream that did not end by itself.
    pub(super) fn end(&mut self, out: &mut Vec<u8>) {
        if self.framing == Framing::JsonArray && !std::mem::replace(&mut self.array.over, true) {
            out.extend_from_slice(if self.array.begun { b"\n]" } else { b"[]" });
        }
    }

    /// Whether events carry names, as far as is known.
    pub(super) fn has_names(&self) -> bool {
        self.names != Some(false)
    }

    fn learn(&mut self, frame: &Frame<'_>) {
        let raw = frame.raw;
        if raw.ends_with(b"\r\n") {
            self.newline = "\r\n";
        }
        if frame.data.is_some() && !frame.outside {
            self.names = Some(self.names.unwrap_or(false) || frame.name.is_some());
        }
        if let Some(last) = raw.last() {
            self.last = *last;
            self.clean = [&b"\n\n"[..], b"\n\r\n", b"\r\r"].iter().any(|end| raw.ends_with(end));
        }
    }

    /// Ends an event that the body left open, so that the next one is one of its own.
    fn settle(&mut self, out: &mut Vec<u8>) {
        if !self.clean {
            if self.last != b'\n' {
                out.extend_from_slice(self.newline.as_bytes());
            }
            out.extend_from_slice(self.newline.as_bytes());
        }
    }

    /// An event of several `data` lines, written with one in their place.
    fn relay(&self, raw: &[u8], json: &str, out: &mut Vec<u8>) {
        let mut written = false;
        let mut rest = raw;
        while !rest.is_empty() {
            let text = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')).unwrap_or(rest.len());
            let end = match rest.get(text..text + 2) {
                Some(b"\r\n") => text + 2,
                _ => (text + 1).min(rest.len()),
            };
            let (this, later) = rest.split_at(end);
            rest = later;
            let field = this[..text].strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&this[..text]);
            let is_data = field == b"data" || field.starts_with(b"data:");
            if !is_data {
                out.extend_from_slice(this);
            } else if !std::mem::replace(&mut written, true) {
                out.extend_from_slice(b"data: ");
                line(json, out);
                out.extend_from_slice(if text == end { self.newline.as_bytes() } else { &this[text..] });
            }
        }
    }

    /// A frame of a JSON array, with its own payload or another one.
    fn element(&mut self, frame: &Frame<'_>, json: Option<&str>, out: &mut Vec<u8>) {
        // An element that is not UTF-8 stands nowhere as it is: what is written of it is what was read.
        let separators =
            frame.raw.iter().take_while(|byte| byte.is_ascii_whitespace() || b"[,\xEF\xBB\xBF".contains(byte));
        let at = match (frame.data, frame.data_at) {
            (None, _) => frame.raw.len(),
            (Some(_), Some(at)) => at,
            (Some(_), None) => separators.count(),
        };
        let (before, rest) = frame.raw.split_at(at.min(frame.raw.len()));
        let own = if frame.data_at.is_some() { frame.data.map_or(0, str::len) } else { rest.len() };
        let has = |byte: u8| before.contains(&byte);
        let fits = has(b'[') != self.array.begun && (frame.data.is_none() || has(b',') == (self.array.elements > 0));
        if fits {
            out.extend_from_slice(before);
            self.array.begun = true;
            self.array.elements += u64::from(frame.data.is_some());
        } else if frame.data.is_some() {
            self.separate(out);
        } else {
            out.extend_from_slice(if self.array.begun { b"\n]" } else { b"[]" });
        }
        self.array.over |= frame.data.is_none() && has(b']');
        match json {
            Some(json) if frame.data.is_some() => {
                out.extend_from_slice(json.as_bytes());
                out.extend_from_slice(rest.get(own..).unwrap_or_default());
            }
            _ => out.extend_from_slice(rest),
        }
    }

    /// What stands before an element.
    fn separate(&mut self, out: &mut Vec<u8>) {
        if !std::mem::replace(&mut self.array.begun, true) {
            out.push(b'[');
        }
        if self.array.elements > 0 {
            out.extend_from_slice(b",\n");
        }
        self.array.elements += 1;
    }
}

/// An AWS message: two lengths and their checksum, headers, payload, and the checksum of it all.
fn message(headers: &[u8], payload: &str, out: &mut Vec<u8>) {
    let total = u32::try_from(16 + headers.len() + payload.len()).unwrap_or(u32::MAX);
    let start = out.len();
    out.extend_from_slice(&total.to_be_bytes());
    out.extend_from_slice(&u32::try_from(headers.len()).unwrap_or(u32::MAX).to_be_bytes());
    let checksum = crc32fast::hash(&out[start..]);
    out.extend_from_slice(&checksum.to_be_bytes());
    out.extend_from_slice(headers);
    out.extend_from_slice(payload.as_bytes());
    let checksum = crc32fast::hash(&out[start..]);
    out.extend_from_slice(&checksum.to_be_bytes());
}

/// The headers of an event, or of an exception if its name says so.
fn headers(name: &str) -> Vec<u8> {
    let (kind, named) =
        if name.ends_with("Exception") { ("exception", ":exception-type") } else { ("event", ":event-type") };
    let mut out = Vec::new();
    for (key, value) in [(named, name), (":content-type", "application/json"), (":message-type", kind)] {
        out.push(u8::try_from(key.len()).unwrap_or(u8::MAX));
        out.extend_from_slice(key.as_bytes());
        // A string.
        out.push(7);
        out.extend_from_slice(&u16::try_from(value.len()).unwrap_or(u16::MAX).to_be_bytes());
        out.extend_from_slice(value.as_bytes());
    }
    out
}

/// JSON on one line. Line ends stand in JSON only between its words.
fn line(json: &str, out: &mut Vec<u8>) {
    if !json.contains(['\n', '\r']) {
        return out.extend_from_slice(json.as_bytes());
    }
    out.extend(json.bytes().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte }));
}

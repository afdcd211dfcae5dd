/// Looks for the end of a JSON value, across reads. Knows strings and brackets, nothing else.
#[derive(Debug)]
pub(super) struct JsonEnd {
    from: usize,
    seen: usize,
    depth: u32,
    in_string: bool,
    escaped: bool,
}

impl JsonEnd {
    /// The value begins here.
    pub(super) fn at(from: usize) -> Self {
        Self { from, seen: from, depth: 0, in_string: false, escaped: false }
    }

    /// Where the value begins.
    pub(super) fn from(&self) -> usize {
        self.from
    }

    /// How far it has looked.
    pub(super) fn seen(&self) -> usize {
        self.seen
    }

    /// Where the value ends, if it does. It has one byte at least. A value that is no object, array or string ends before the next thing
    /// that is no part of it.
    pub(super) fn find(&mut self, bytes: &[u8]) -> Option<usize> {
        loop {
            if self.in_string && !self.escaped {
                let rest = bytes.get(self.seen..)?;
                self.seen += memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
            }
            let byte = *bytes.get(self.seen)?;
            if self.in_string {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    _ => self.in_string = false,
                }
                self.seen += 1;
                if !self.in_string && self.depth == 0 {
                    return Some(self.seen);
                }
                continue;
            }
            let is_scalar = self.depth == 0 && self.seen > self.from;
            if is_scalar && (byte.is_ascii_whitespace() || b",\"[]{}".contains(&byte)) {
                return Some(self.seen);
            }
            self.seen += 1;
            match byte {
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth = self.depth.saturating_add(1),
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        return Some(self.seen);
                    }
                }
                _ => {}
            }
        }
    }
}

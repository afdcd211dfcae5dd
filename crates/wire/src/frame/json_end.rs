/// Looks for the end of a JSON value, across reads. Knows strings and brackets, nothing else.
#[derive(Debug)]
pub(super) struct JsonEnd {
    seen: usize,
    depth: u32,
    in_string: bool,
    escaped: bool,
}

impl JsonEnd {
    /// The value begins here.
    pub(super) fn at(from: usize) -> Self {
        Self { seen: from, depth: 0, in_string: false, escaped: false }
    }

    /// Where the value ends, if it does. A value that is no object, array or string ends before a comma, a bracket or white space.
    pub(super) fn find(&mut self, bytes: &[u8]) -> Option<usize> {
        while let Some(&byte) = bytes.get(self.seen) {
            self.seen += 1;
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_string => self.escaped = true,
                b'"' => {
                    self.in_string = !self.in_string;
                    if !self.in_string && self.depth == 0 {
                        return Some(self.seen);
                    }
                }
                _ if self.in_string => {}
                b'{' | b'[' => self.depth = self.depth.saturating_add(1),
                b'}' | b']' if self.depth > 0 => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        return Some(self.seen);
                    }
                }
                b'}' | b']' | b',' if self.depth == 0 => return Some(self.seen - 1),
                _ if self.depth == 0 && byte.is_ascii_whitespace() => return Some(self.seen - 1),
                _ => {}
            }
        }
        None
    }
}

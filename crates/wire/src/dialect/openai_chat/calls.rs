//! The tool calls of one choice, whose fragments may be interleaved.

use streamkeeper_contract::{Body, Lane, Text, ToolCallStart};

use crate::output::Output;

/// The calls of one choice, in order of appearance. They count from 1.
#[derive(Debug, Default)]
pub(super) struct Calls(Vec<Call>);

#[derive(Debug)]
struct Call {
    lane: Lane,
    index: Option<u64>,
    /// The provider's id. Empty as long as it gave none.
    id: Text,
    name: Text,
    arguments: Nesting,
    started: bool,
    open: bool,
}

/// What a fragment says about the call it belongs to. Empty is the same as absent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fragment<'a> {
    pub(super) index: Option<u64>,
    pub(super) id: &'a str,
    pub(super) name: &'a str,
    pub(super) arguments: &'a str,
}

impl Calls {
    /// A choice has at most so many calls.
    const MOST: usize = 4096;

    /// Finds or opens the call of a fragment and writes its start as soon as its name is known. Returns the lane of its arguments.
    pub(super) fn take(&mut self, choice: Lane, fragment: Fragment<'_>, out: &mut Output) -> Lane {
        let at = self.find(fragment).unwrap_or_else(|| {
            if self.0.len() == Self::MOST {
                out.too_many("calls", Self::MOST);
                return Self::MOST - 1;
            }
            self.0.push(Call::new(choice.arguments(self.next()), fragment.index));
            self.0.len() - 1
        });
        let call = &mut self.0[at];
        call.open = true;
        if !call.started {
            if call.id.is_empty() {
                call.id = fragment.id.into();
            }
            call.name = fragment.name.into();
            if !(fragment.name.is_empty() && fragment.arguments.is_empty()) {
                call.start(out);
            }
        }
        call.arguments.push(fragment.arguments);
        call.lane
    }

    /// By id, then by index. A new id with a name opens a call; without a name it is one of those that some servers draw anew for
    /// every fragment. So does a known id with a name at another index, or with arguments behind whole ones: some servers give all calls
    /// one id. Without any id a name opens a call unless it repeats that of a call whose arguments are not complete.
    fn find(&self, fragment: Fragment<'_>) -> Option<usize> {
        let newest = |is: &dyn Fn(&Call) -> bool| self.0.iter().rposition(is);
        let elsewhere = |call: &Call| fragment.index.is_some() && call.index.is_some() && call.index != fragment.index;
        if !fragment.id.is_empty()
            && let Some(at) = newest(&|call| call.id == fragment.id && !elsewhere(call))
                .or_else(|| newest(&|call| call.id == fragment.id))
        {
            let call = &self.0[at];
            let repeats = call.arguments.is_whole() && fragment.arguments.trim_start().starts_with('{');
            let opens = call.started && !fragment.name.is_empty() && (elsewhere(call) || repeats);
            return (!opens).then_some(at);
        }
        let at = match fragment.index {
            Some(index) => newest(&|call| call.index == Some(index))?,
            None if fragment.name.is_empty() => self.0.len().checked_sub(1)?,
            None => return None,
        };
        let call = self.0.get(at)?;
        let opens = match (fragment.id.is_empty(), fragment.name.is_empty()) {
            (_, true) => false,
            (false, false) => call.started,
            (true, false) => call.started && (call.name != fragment.name || call.arguments.is_whole()),
        };
        (!opens).then_some(at)
    }

    /// The lane of the call with this id, or else of the one at this place.
    pub(super) fn lane(&self, id: &str, at: usize) -> Option<Lane> {
        let named = self.0.iter().find(|call| !id.is_empty() && call.id == id);
        named.or_else(|| self.0.get(at)).map(|call| call.lane)
    }

    /// The number of a new call.
    fn next(&self) -> u16 {
        u16::try_from(self.0.len() + 1).unwrap_or(u16::MAX)
    }

    /// Ends the calls that are open.
    pub(super) fn end(&mut self, out: &mut Output) {
        for call in self.0.iter_mut().filter(|call| call.open) {
            call.start(out);
            call.open = false;
            out.push(Body::ToolCallEnd(call.lane));
        }
    }
}

impl Call {
    fn new(lane: Lane, index: Option<u64>) -> Self {
        Self {
            lane,
            index,
            id: Text::default(),
            name: Text::default(),
            arguments: Nesting::default(),
            started: false,
            open: true,
        }
    }

    fn start(&mut self, out: &mut Output) {
        if !self.started {
            self.started = true;
            let id = if self.id.is_empty() { Output::made_up_id(self.lane) } else { self.id.clone() };
            out.push(Body::ToolCallStart(Box::new(ToolCallStart { lane: self.lane, id, name: self.name.clone() })));
        }
    }
}

/// How deep in an object or array a JSON text ends that comes in pieces.
#[derive(Debug, Default)]
struct Nesting {
    begun: bool,
    depth: u32,
    in_string: bool,
    escaped: bool,
}

impl Nesting {
    fn push(&mut self, text: &str) {
        for byte in text.bytes() {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_string => self.escaped = true,
                b'"' => self.in_string = !self.in_string,
                _ if self.in_string => {}
                b'{' | b'[' => (self.begun, self.depth) = (true, self.depth.saturating_add(1)),
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
    }

    fn is_whole(&self) -> bool {
        self.begun && self.depth == 0 && !self.in_string
    }
}

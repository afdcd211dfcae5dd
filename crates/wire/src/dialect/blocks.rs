//! The content blocks of a message, as Anthropic and Bedrock stream them: begun, continued and ended under an index.

use std::collections::BTreeMap;

use streamkeeper_contract::{Body, Channel, Lane};

use crate::output::Output;

use super::read::Lanes;

/// The blocks of one message.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    open: BTreeMap<u64, Block>,
    /// Blocks with text, in order, whose whole text was not repeated yet.
    unrepeated: Vec<(Channel, u16)>,
}

/// A block that was begun.
#[derive(Debug, Clone, Copy)]
struct Block {
    part: u16,
    tool: Option<Tool>,
}

/// The call that a block is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tool {
    pub(super) lane: Lane,
    /// Its input stood in its beginning.
    pub(super) whole: bool,
}

impl Blocks {
    /// Begins a block, and ends an open one of the same index. Returns its part.
    pub(super) fn begin(&mut self, index: u64, lanes: &mut Lanes, out: &mut Output) -> u16 {
        self.end(index, out);
        self.part(index, lanes, out)
    }

    /// The lane of a channel in a block, which is begun if the provider did not say so.
    pub(super) fn lane(&mut self, index: u64, channel: Channel, lanes: &mut Lanes, out: &mut Output) -> Lane {
        if let Some(block) = self.open.get(&index) {
            return Lane::new(channel).in_part(block.part);
        }
        let part = self.part(index, lanes, out);
        self.expect_repeat(channel, part);
        Lane::new(channel).in_part(part)
    }

    fn part(&mut self, index: u64, lanes: &mut Lanes, out: &mut Output) -> u16 {
        let part = lanes.part(out);
        self.open.insert(index, Block { part, tool: None });
        part
    }

    /// Says that the block is a tool call.
    pub(super) fn set_tool(&mut self, index: u64, tool: Tool) {
        if let Some(block) = self.open.get_mut(&index) {
            block.tool = Some(tool);
        }
    }

    /// The call that this block is.
    pub(super) fn tool(&self, index: u64) -> Option<Tool> {
        self.open.get(&index)?.tool
    }

    /// Ends a block.
    pub(super) fn end(&mut self, index: u64, out: &mut Output) {
        if let Some(block) = self.open.remove(&index) {
            block.end(out);
        }
    }

    /// Ends what is still open, in order.
    pub(super) fn end_all(&mut self, out: &mut Output) {
        for block in std::mem::take(&mut self.open).into_values() {
            block.end(out);
        }
    }

    /// The text of this part may be repeated whole.
    pub(super) fn expect_repeat(&mut self, channel: Channel, part: u16) {
        self.unrepeated.push((channel, part));
    }

    /// The part whose text is repeated now: the oldest of its channel that was not yet.
    pub(super) fn repeated(&mut self, channel: Channel) -> Option<u16> {
        let at = self.unrepeated.iter().position(|(of, _)| *of == channel)?;
        Some(self.unrepeated.remove(at).1)
    }
}

impl Block {
    fn end(self, out: &mut Output) {
        end(self.part, self.tool, out);
    }
}

/// Ends the input of a call, unless it came whole, and its part.
pub(super) fn end(part: u16, tool: Option<Tool>, out: &mut Output) {
    if let Some(Tool { lane, whole: false }) = tool {
        out.push(match lane.channel {
            Channel::ProviderTool => Body::ProviderToolEnd(lane),
            _ => Body::ToolCallEnd(lane),
        });
    }
    out.push(Body::PartEnd { choice: 0, part });
}

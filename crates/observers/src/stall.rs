//! Noticing that nothing comes any more.

use std::{sync::Arc, time::Duration};

use streamkeeper_contract::{Body, Channel, Chunk, Offset, Verdict, id};
use streamkeeper_stream::{Interest, IntoFactory, ObserverContext, StreamObserver, from_fn};

use crate::halting::{Settings, settings_of};

/// Stops a stream in which nothing is said for too long. A guard.
///
/// # Time
/// is what the chunks say: the offsets at which they arrived. This observer reads no clock, so a replay decides the same. While a source is
/// silent nothing arrives, so the host has to push a [heartbeat](Chunk::heartbeat) now and then, with its offset; without heartbeats a
/// silence is noticed when it ends. Whether there are heartbeats does not change what counts as a stall, only how soon it is noticed.
///
/// # When it stops
/// At the first chunk that arrives later than the limit allows, with code `stalled`. That chunk is not delivered.
///
/// | waiting for | limit | default |
/// |---|---|---|
/// | the first text | [`first`](Self::first), from the start of the stream | none |
/// | more of it | [`new`](Self::new) | |
/// | a tool, after a call is complete | [`tools`](Self::tools) | none |
///
/// Text is what any channel says, and tool calls and results, whole or begun; see [`channels`](Self::channels). Other chunks, such as a
/// provider's pings, are silence. After the finish of all choices that have spoken nothing is waited for.
///
/// # What it costs
/// A comparison a chunk.
///
/// ```
/// use std::time::Duration;
///
/// use streamkeeper_contract::{Chunk, Lane, Offset};
/// use streamkeeper_observers::Stall;
/// use streamkeeper_stream::{ObserverFactoryContext, Observers};
///
/// let observers = Observers::from(Stall::new(Duration::from_secs(10)).first(Duration::from_secs(60)));
/// let mut stack = observers.stack(&ObserverFactoryContext::default());
/// stack.push(Chunk::delta(Lane::TEXT, "Well").at(Offset(50_000_000)));
/// stack.push(Chunk::heartbeat(Offset(59_000_000)));
/// assert!(!stack.is_ended());
/// stack.push(Chunk::heartbeat(Offset(61_000_000)));
/// assert_eq!(stack.outcome().unwrap().stop().unwrap().code, "stalled");
/// ```
#[derive(Debug, Clone)]
#[must_use = "it does nothing until it is registered"]
pub struct Stall {
    settings: Settings,
    limits: Limits,
}

#[derive(Debug, Clone, Copy)]
struct Limits {
    first: Option<Duration>,
    gap: Duration,
    tools: Option<Duration>,
}

impl Stall {
    /// At most so long between two texts.
    pub fn new(gap: Duration) -> Self {
        let limits = Limits { first: None, gap, tools: None };
        Self { settings: Settings::new(id!("stall"), Channel::ALL), limits }
    }

    /// At most so long before the first text.
    pub fn first(mut self, limit: Duration) -> Self {
        self.limits.first = Some(limit);
        self
    }

    /// At most so long after a tool call that is complete, while the tool runs. Default: as long as it takes.
    pub fn tools(mut self, limit: Duration) -> Self {
        self.limits.tools = Some(limit);
        self
    }

    fn factory(self, settings: Arc<Settings>) -> impl IntoFactory {
        let limits = self.limits;
        from_fn(move |_| Watch {
            settings: settings.clone(),
            limits,
            last: Offset(0),
            waiting: Waiting::First,
            speaking: Vec::new(),
            is_reported: false,
        })
    }
}

settings_of!(Stall, "stall");

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waiting {
    First,
    More,
    Tool,
    Nothing,
}

/// The observer of one invocation.
struct Watch {
    settings: Arc<Settings>,
    limits: Limits,
    /// When something was said last.
    last: Offset,
    waiting: Waiting,
    /// Choices that have said something and are not finished.
    speaking: Vec<u16>,
    is_reported: bool,
}

const MAX_CHOICES: usize = 256;

impl Watch {
    fn limit(&self) -> Option<(Duration, &'static str)> {
        match self.waiting {
            Waiting::First => self.limits.first.map(|limit| (limit, "no text came at first")),
            Waiting::More => Some((self.limits.gap, "no more text came")),
            Waiting::Tool => self.limits.tools.map(|limit| (limit, "no text came after a tool call")),
            Waiting::Nothing => None,
        }
    }

    /// The reason to stop at this time.
    fn late(&self, now: Offset) -> Option<String> {
        let (limit, what) = self.limit()?;
        let waited = now.0.saturating_sub(self.last.0);
        (waited > Offset::from(limit).0).then(|| format!("{what} for over {} ms", limit.as_millis()))
    }

    /// What is waited for after this chunk. `None` if it says nothing.
    fn after(&mut self, chunk: &Chunk) -> Option<Waiting> {
        let waiting = match chunk.body() {
            Body::Finish(finish) => {
                self.speaking.retain(|choice| *choice != finish.choice);
                return Some(if self.speaking.is_empty() { Waiting::Nothing } else { Waiting::More });
            }
            Body::Error(_) => return Some(Waiting::Nothing),
            Body::Delta { text, .. } if text.is_empty() => return None,
            Body::ToolCall(_) | Body::ToolCallEnd(_) | Body::ProviderToolEnd(_) => Waiting::Tool,
            Body::Delta { .. }
            | Body::Snapshot(_)
            | Body::ToolCallStart(_)
            | Body::ToolResult(_)
            | Body::ProviderToolStart(_)
            | Body::ProviderToolOutput(_)
            | Body::Media(_) => Waiting::More,
            _ => return None,
        };
        let lane = chunk.lane()?;
        if !self.settings.channels.contains(&lane.channel) {
            return None;
        }
        if !self.speaking.contains(&lane.choice) && self.speaking.len() < MAX_CHOICES {
            self.speaking.push(lane.choice);
        }
        Some(waiting)
    }
}

impl StreamObserver for Watch {
    fn interest(&self) -> Interest {
        Interest::ALL
    }

    fn on_chunk(&mut self, chunk: &Chunk, ctx: &mut ObserverContext<'_>) -> Verdict {
        let now = chunk.offset();
        let late = self.late(now);
        let after = self.after(chunk);
        // A silence that goes on is reported once.
        let goes_on = late.is_some() && after.is_none();
        let verdict = match late {
            Some(reason) if !self.is_reported => self.settings.halt(id!("stalled"), reason, ctx),
            _ => Verdict::Continue,
        };
        self.is_reported = goes_on;
        if let Some(waiting) = after {
            self.waiting = waiting;
            self.last = self.last.max(now);
        }
        verdict
    }
}

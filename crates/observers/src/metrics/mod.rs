//! Counting and timing a stream.

mod gaps;

use std::num::NonZeroU64;

use serde::{Serialize, Serializer, ser::SerializeMap};
use streamkeeper_contract::{Body, Channel, Chunk, ChunkKind, Id, Json, Offset, SideEvent, id};
use streamkeeper_stream::{InvocationResult, ObserverContext, Observers, Registration, StreamWatcher};

use self::gaps::{GapSummary, Gaps};

/// Counts the chunks of an invocation and measures their timing, and says so on the channel `metrics`. A watcher: it cannot change the
/// stream.
///
/// It counts what it sees, so its place in the list decides: behind a redactor it measures redacted text, before it the original.
///
/// # Events
/// On channel `metrics` ([`Metrics::CHANNEL`]): one event `invocation` when the invocation is over, whatever its outcome, and with
/// [`every`](Self::every) one event `progress` each so many chunks. Both have the same payload, a JSON object; fields that are `null` are
/// not known (yet).
///
/// | field | meaning |
/// |---|---|
/// | `schema` | 1; changes when a field changes its meaning |
/// | `outcome` | code of the outcome: `finished`, `stopped`, `truncated` …; `null` in `progress` |
/// | `chunks` | chunks seen, heartbeats not counted |
/// | `kinds` | the same by kind, e.g. `{"content_delta": 40, "finish": 1}`; kinds that did not occur are left out |
/// | `bytes` | UTF-8 bytes of text by channel, e.g. `{"text": 180}`: deltas and whole tool calls and results; repeated text (snapshots) is not counted |
/// | `tool_calls` | tool calls begun that the client has to run |
/// | `first_chunk_us`, `first_text_us` | microseconds from the start of the stream to the first chunk, and to the first answer text |
/// | `gaps` | times between arrivals: `count`, `max_us`, `p50_us`, `p95_us`, `p99_us` |
/// | `duration_us` | microseconds from the start of the stream to the last chunk |
/// | `delivered_bytes`, `withheld_bytes` | bytes of answer text handed to the consumer, and of text held back to the end; the latter `null` in `progress` |
///
/// # Time
/// From the offsets that the source stamped on the chunks, so that a replay gives the same numbers; no clock is read. A source that stamps
/// none gives zeros. Chunks with one offset arrived together and have no gap between them. Percentiles come from a histogram of fixed size
/// and are at most one eighth too large.
///
/// # What it costs
/// A few additions a chunk, no allocation, and about 2 KB while the stream is open. An event allocates its payload.
///
/// ```
/// use streamkeeper_contract::{Chunk, Lane};
/// use streamkeeper_observers::Metrics;
/// use streamkeeper_stream::{ObserverFactoryContext, Observers};
///
/// let observers = Observers::from(Metrics::new().every(100));
/// let mut stack = observers.stack(&ObserverFactoryContext::default());
/// stack.push(Chunk::delta(Lane::TEXT, "Hello"));
/// ```
#[derive(Debug, Clone)]
#[must_use = "it does nothing until it is registered"]
pub struct Metrics {
    id: Id,
    every: Option<NonZeroU64>,
    counts: Counts,
}

#[derive(Debug, Clone)]
struct Counts {
    chunks: u64,
    kinds: [u32; ChunkKind::ALL.len()],
    bytes: [u64; Channel::ALL.len()],
    tool_calls: u64,
    first_chunk: Option<Offset>,
    first_text: Option<Offset>,
    last: Option<Offset>,
    gaps: Gaps,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// The channel of its events: `metrics`.
    pub const CHANNEL: Id = id!("metrics");

    /// One event, at the end.
    pub fn new() -> Self {
        Self { id: Self::CHANNEL, every: None, counts: Counts::new() }
    }

    /// A `progress` event after each so many chunks. Default, and with 0: none.
    pub fn every(mut self, chunks: u64) -> Self {
        self.every = NonZeroU64::new(chunks);
        self
    }

    /// The id it is registered with. Default: `metrics`. Two in one stack need two ids; both write to the channel `metrics`.
    pub fn id(mut self, id: Id) -> Self {
        self.id = id;
        self
    }

    /// The registration of this watcher, for all call classes. `Registration::from(metrics)` is the same.
    pub fn registration(self) -> Registration {
        Registration::watcher(self.id.clone(), self)
    }

    fn event(&self, name: Id, result: Option<&InvocationResult>, ctx: &mut ObserverContext<'_>) {
        let payload = Payload::new(&self.counts, result, ctx.delivered_len());
        if let Ok(payload) = Json::new(&payload) {
            ctx.emit(SideEvent { channel: Self::CHANNEL, name, payload });
        }
    }
}

impl From<Metrics> for Registration {
    fn from(metrics: Metrics) -> Self {
        metrics.registration()
    }
}

impl From<Metrics> for Observers {
    fn from(metrics: Metrics) -> Self {
        metrics.registration().into()
    }
}

impl StreamWatcher for Metrics {
    fn on_chunk(&mut self, chunk: &Chunk, ctx: &mut ObserverContext<'_>) {
        if chunk.kind() == ChunkKind::Heartbeat {
            return;
        }
        self.counts.add(chunk);
        if self.every.is_some_and(|every| self.counts.chunks.is_multiple_of(every.get())) {
            self.event(id!("progress"), None, ctx);
        }
    }

    fn on_end_invocation(&mut self, result: &InvocationResult, ctx: &mut ObserverContext<'_>) {
        self.event(id!("invocation"), Some(result), ctx);
    }
}

impl Counts {
    fn new() -> Self {
        Self {
            chunks: 0,
            kinds: [0; ChunkKind::ALL.len()],
            bytes: [0; Channel::ALL.len()],
            tool_calls: 0,
            first_chunk: None,
            first_text: None,
            last: None,
            gaps: Gaps::default(),
        }
    }

    fn add(&mut self, chunk: &Chunk) {
        let at = chunk.offset();
        self.chunks += 1;
        self.kinds[chunk.kind() as usize] += 1;
        self.first_chunk.get_or_insert(at);
        match self.last {
            Some(last) if at > last => self.gaps.record(at.0 - last.0),
            _ => {}
        }
        self.last = self.last.max(Some(at));
        match chunk.body() {
            Body::Delta { lane, text } => {
                self.bytes[lane.channel as usize] += text.len() as u64;
                if lane.channel == Channel::Text && !text.is_empty() {
                    self.first_text.get_or_insert(at);
                }
            }
            Body::ToolCallStart(_) => self.tool_calls += 1,
            Body::ToolCall(call) => {
                self.tool_calls += 1;
                self.bytes[Channel::Arguments as usize] += call.arguments.len() as u64;
            }
            Body::ToolResult(result) => self.bytes[Channel::ToolResult as usize] += result.content.len() as u64,
            _ => {}
        }
    }
}

/// The payload of an event, in the order of its fields.
#[derive(Serialize)]
struct Payload<'a> {
    schema: u32,
    outcome: Option<&'static str>,
    chunks: u64,
    kinds: Kinds<'a>,
    bytes: Bytes<'a>,
    tool_calls: u64,
    first_chunk_us: Option<u64>,
    first_text_us: Option<u64>,
    gaps: GapSummary,
    duration_us: u64,
    delivered_bytes: u64,
    withheld_bytes: Option<u64>,
}

impl<'a> Payload<'a> {
    fn new(counts: &'a Counts, result: Option<&InvocationResult>, delivered: u64) -> Self {
        Self {
            schema: 1,
            outcome: result.map(|result| result.outcome.code()),
            chunks: counts.chunks,
            kinds: Kinds(&counts.kinds),
            bytes: Bytes(&counts.bytes),
            tool_calls: counts.tool_calls,
            first_chunk_us: counts.first_chunk.map(|at| at.0),
            first_text_us: counts.first_text.map(|at| at.0),
            gaps: counts.gaps.summary(),
            duration_us: counts.last.map_or(0, |at| at.0),
            delivered_bytes: result.map_or(delivered, |result| result.delivered_len),
            withheld_bytes: result.map(|result| result.withheld_len),
        }
    }
}

struct Kinds<'a>(&'a [u32; ChunkKind::ALL.len()]);

impl Serialize for Kinds<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (kind, count) in ChunkKind::ALL.iter().zip(self.0).filter(|(_, count)| **count > 0) {
            map.serialize_entry(kind.as_str(), count)?;
        }
        map.end()
    }
}

struct Bytes<'a>(&'a [u64; Channel::ALL.len()]);

impl Serialize for Bytes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (channel, bytes) in Channel::ALL.iter().zip(self.0).filter(|(_, bytes)| **bytes > 0) {
            map.serialize_entry(channel.as_str(), bytes)?;
        }
        map.end()
    }
}

//! What the guards that end a stream have in common: their settings, and the way from a rule about a text to a verdict.

mod texts;
mod words;

use std::sync::Arc;

use serde::Serialize;
use streamkeeper_contract::{Body, Channel, Chunk, ChunkKind, Id, Json, Lane, SideEvent, Text, Verdict, id};
use streamkeeper_stream::{Interest, IntoFactory, ObserverContext, OnFailure, Registration, StreamObserver};

pub(crate) use self::{
    texts::{ENDS, Texts},
    words::{Word, Words, words},
};

/// The channel of the events of guards that only report: `halts`.
pub const HALTS: Id = id!("halts");

/// Chosen by the user, the same for each of these guards.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) id: Id,
    pub(crate) channels: Vec<Channel>,
    pub(crate) fail_open: bool,
    pub(crate) report_only: bool,
}

impl Settings {
    pub(crate) fn new(id: Id, channels: &[Channel]) -> Self {
        Self { id, channels: channels.to_vec(), fail_open: false, report_only: false }
    }

    pub(crate) fn guard(&self, factory: impl IntoFactory) -> Registration {
        let guard = Registration::guard(self.id.clone(), factory);
        if self.fail_open { guard.on_failure(OnFailure::PassThrough) } else { guard }
    }

    /// Stops, or says that it would have.
    pub(crate) fn halt(&self, code: Id, reason: impl Into<Text>, ctx: &mut ObserverContext<'_>) -> Verdict {
        if !self.report_only {
            return Verdict::stop(code.as_str(), reason);
        }
        let reason = reason.into();
        let report =
            Report { observer: &self.id, code: &code, reason: reason.as_str(), chunk_index: ctx.chunk_index() };
        if let Ok(payload) = Json::new(&report) {
            ctx.emit(SideEvent { channel: HALTS, name: code, payload });
        }
        Verdict::Continue
    }
}

#[derive(Serialize)]
struct Report<'a> {
    observer: &'a Id,
    code: &'a Id,
    reason: &'a str,
    chunk_index: u64,
}

/// The options that all of these guards have. The type has a field `settings` and a method `observer`, which makes a factory.
macro_rules! settings_of {
    ($guard:ident, $id:literal) => {
        impl $guard {
            #[doc = concat!("The id it is registered with. Default: `", $id, "`. Two in one stack need two ids.")]
            pub fn id(mut self, id: streamkeeper_contract::Id) -> Self {
                self.settings.id = id;
                self
            }

            /// The channels whose text counts, instead of the default ones.
            pub fn channels(mut self, channels: impl IntoIterator<Item = streamkeeper_contract::Channel>) -> Self {
                self.settings.channels = channels.into_iter().collect();
                self
            }

            /// Does not stop: sends one event on the channel [`HALTS`](crate::HALTS) where it would have, and the stream goes on.
            pub fn report_only(mut self) -> Self {
                self.settings.report_only = true;
                self
            }

            /// If it fails, the stream goes on without it. By default the invocation fails.
            pub fn fail_open(mut self) -> Self {
                self.settings.fail_open = true;
                self
            }

            /// The registration of this guard, for all call classes. `Registration::from(…)` is the same.
            pub fn registration(self) -> streamkeeper_stream::Registration {
                let settings = std::sync::Arc::new(self.settings.clone());
                settings.guard(self.factory(settings.clone()))
            }
        }

        impl From<$guard> for streamkeeper_stream::Registration {
            fn from(guard: $guard) -> Self {
                guard.registration()
            }
        }

        impl From<$guard> for streamkeeper_stream::Observers {
            fn from(guard: $guard) -> Self {
                guard.registration().into()
            }
        }
    };
}
pub(crate) use settings_of;

/// A rule about one text that arrives in pieces. What it says must not depend on where the pieces end.
pub(crate) trait TextRule: Send + Sync + 'static {
    /// How far the reading of a text is.
    type Reading: Default + Send;

    const CODE: Id;

    /// Reads on. If the text is to be halted for what is known now: the reason.
    fn read(&self, reading: &mut Self::Reading, text: &str) -> Option<String>;

    /// The text goes no further.
    fn end(&self, reading: &mut Self::Reading) -> Option<String>;
}

/// A guard that halts when a rule says so of any text.
pub(crate) struct TextHalt<R: TextRule> {
    rule: Arc<R>,
    settings: Arc<Settings>,
    texts: Texts<(R::Reading, bool)>,
}

impl<R: TextRule> TextHalt<R> {
    pub(crate) fn new(rule: Arc<R>, settings: Arc<Settings>) -> Self {
        Self { rule, settings, texts: Texts::default() }
    }

    fn piece(&mut self, lane: Lane, text: &str) -> Result<Option<String>, Verdict> {
        let (reading, is_reported) = self.texts.open(lane)?;
        if *is_reported {
            return Ok(None);
        }
        let found = self.rule.read(reading, text);
        *is_reported = found.is_some();
        Ok(found.map(|found| in_channel(&found, lane)))
    }

    /// A text that came in one piece.
    fn whole(&self, chunk: &Chunk) -> Option<String> {
        let lane = chunk.lane().filter(|lane| self.settings.channels.contains(&lane.channel))?;
        let mut reading = R::Reading::default();
        let found = self.rule.read(&mut reading, chunk.text()?).or_else(|| self.rule.end(&mut reading))?;
        Some(in_channel(&found, lane))
    }

    fn ended(&mut self, end: &Chunk) -> Option<String> {
        let mut found = None;
        let rule = &self.rule;
        self.texts.close(end, |lane, (reading, is_reported)| {
            if !*is_reported && found.is_none() {
                found = rule.end(reading).map(|found| in_channel(&found, lane));
            }
        });
        found
    }
}

fn in_channel(found: &str, lane: Lane) -> String {
    format!("{found} in channel `{}`", lane.channel.as_str())
}

impl<R: TextRule> StreamObserver for TextHalt<R> {
    fn interest(&self) -> Interest {
        let wholes = Interest::only(&[ChunkKind::Snapshot, ChunkKind::ToolCall, ChunkKind::ToolResult]);
        Interest::channels(&self.settings.channels) | wholes | ENDS
    }

    fn on_chunk(&mut self, chunk: &Chunk, ctx: &mut ObserverContext<'_>) -> Verdict {
        let found = match chunk.body() {
            Body::Delta { lane, text } => match self.piece(*lane, text) {
                Ok(found) => found,
                Err(verdict) => return verdict,
            },
            Body::Snapshot(_) | Body::ToolCall(_) | Body::ToolResult(_) => self.whole(chunk),
            _ => self.ended(chunk),
        };
        found.map_or(Verdict::Continue, |reason| self.settings.halt(R::CODE, reason, ctx))
    }
}

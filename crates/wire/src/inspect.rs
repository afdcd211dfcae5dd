use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use streamkeeper_contract::{Body, Channel, Chunk, Lane, Text, ToolCall, ToolCallStart, Usage};

use crate::{Decoder, Format, Stats, WireError, is_made_up};

/// What a whole stream says, put together from its chunks.
///
/// Collects all text, so it grows with the stream: it is for looking at streams and for tests, not for watching live ones. It is
/// serialised as the object that `streamkeeper inspect --json` prints.
///
/// ```
/// use streamkeeper_wire::{Decoder, Format, Inspection};
///
/// let mut decoder = Decoder::new(Format::OpenAiChat);
/// decoder.push(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\n")?;
/// decoder.push(b"data: [DONE]\n\n")?;
/// decoder.finish()?;
/// let inspection = Inspection::of(&mut decoder);
/// assert_eq!((inspection.text.as_str(), inspection.finish.as_deref()), ("Hi", Some("stop")));
/// assert_eq!((inspection.n_events, inspection.terminal, inspection.outcome), (2, Some(true), "finished"));
/// # Ok::<_, streamkeeper_wire::WireError>(())
/// ```
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct Inspection {
    /// The format the events were read in.
    pub format: Option<&'static str>,
    /// Events, as [`Stats::events`] counts them.
    pub n_events: u64,
    /// The answer of the first choice, in the order of the wire. Repeats of it are not added.
    pub text: String,
    /// The reasoning of the first choice.
    pub reasoning: String,
    /// The refusal of the first choice.
    pub refusal: String,
    /// All choices, if there is more than one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<InspectedChoice>,
    /// Calls that the client has to run, of all choices, in order of appearance.
    pub tool_calls: Vec<InspectedCall>,
    /// Calls that the provider runs itself.
    pub server_tool_calls: Vec<InspectedCall>,
    /// Why the first choice is done, or how a failed stream says that it ended, in the provider's own word.
    pub finish: Option<Text>,
    /// Tokens as the provider states them, nothing added up.
    pub usage: InspectedUsage,
    /// The provider reported an error, in an event or outside of any.
    pub error: bool,
    /// The bare body that reported it, if it stood outside of any event.
    pub error_outside_events: Option<Text>,
    /// The format's own end was seen. `None` where the framing cannot show it.
    pub terminal: Option<bool>,
    /// The model, as the provider names it.
    pub model: Option<Text>,
    /// `finished`, `failed` or `truncated`: how an invocation ends that delivers all of it.
    pub outcome: &'static str,
    /// The code of the [`WireError`] that ended decoding, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decode_error: Option<&'static str>,
    #[serde(skip)]
    state: State,
}

/// One choice of several.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct InspectedChoice {
    /// Which one.
    pub index: u16,
    /// Its answer.
    pub text: String,
    /// Its reasoning.
    pub reasoning: String,
    /// Its refusal.
    pub refusal: String,
    /// Why it is done, in the provider's own word.
    pub finish: Option<Text>,
}

/// A tool call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct InspectedCall {
    /// The provider's id, if it gave one.
    pub id: Option<Text>,
    /// The tool.
    pub name: Text,
    /// The fragments of its arguments, joined: JSON text, or nothing, which means `{}`. `None` for a provider's tool that was given no
    /// JSON.
    pub arguments: Option<String>,
}

/// Tokens as the provider states them: see [`Stated`](streamkeeper_contract::Stated).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct InspectedUsage {
    /// Input tokens.
    pub input: Option<u64>,
    /// Output tokens.
    pub output: Option<u64>,
    /// Cached input tokens.
    pub cached: Option<u64>,
    /// Reasoning tokens.
    pub reasoning: Option<u64>,
    /// Tokens written to a cache.
    pub cache_write: Option<u64>,
}

#[derive(Debug, Clone, Default)]
struct State {
    choices: BTreeMap<u16, Choice>,
    usage: Usage,
    calls: Vec<Call>,
    /// Lanes whose text is there, and needs no snapshot.
    told: BTreeSet<Lane>,
}

#[derive(Debug, Clone, Default)]
struct Choice {
    told: InspectedChoice,
    /// It has text or calls: it needs a finish.
    speaks: bool,
    finished: bool,
}

#[derive(Debug, Clone)]
struct Call {
    lane: Lane,
    id: Text,
    name: Text,
    arguments: String,
}

impl Inspection {
    /// Nothing seen yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the chunks that a decoder still has, and its stats. Call it after the decoder's end.
    pub fn of(decoder: &mut Decoder) -> Self {
        let mut inspection = Self::new();
        while let Some(chunk) = decoder.next_chunk() {
            inspection.chunk(&chunk);
        }
        inspection.finish(&decoder.stats(), decoder.format());
        inspection
    }

    /// Takes the next chunk.
    pub fn chunk(&mut self, chunk: &Chunk) {
        match chunk.body() {
            Body::Delta { lane, text } => {
                self.state.told.insert(*lane);
                self.add(*lane, text);
            }
            Body::Snapshot(snapshot) if self.state.told.insert(snapshot.lane) => {
                self.add(snapshot.lane, &snapshot.text);
            }
            Body::ToolCallStart(call) | Body::ProviderToolStart(call) => {
                let ToolCallStart { lane, id, name } = call.as_ref();
                self.open(*lane, id, name, "");
            }
            Body::ToolCall(call) => {
                let ToolCall { lane, id, name, arguments } = call.as_ref();
                self.state.told.insert(*lane);
                self.open(*lane, id, name, arguments);
            }
            Body::MessageStart(message) => {
                self.choice(message.choice);
                if self.model.is_none() {
                    self.model.clone_from(&message.model);
                }
            }
            Body::Finish(finish) => {
                let choice = self.choice(finish.choice);
                if !choice.finished {
                    choice.finished = true;
                    choice.told.finish.clone_from(&finish.stated);
                }
            }
            Body::Usage(usage) => self.state.usage.update(usage),
            Body::Error(_) => self.error = true,
            _ => {}
        }
    }

    /// Decoding ended with an error. Call it before [`finish`](Inspection::finish).
    pub fn fail(&mut self, error: &WireError) {
        self.decode_error = Some(error.code());
    }

    /// The stream is over: fills what only its end tells.
    pub fn finish(&mut self, stats: &Stats, format: Option<Format>) {
        let State { choices, usage, calls, .. } = std::mem::take(&mut self.state);
        self.format = format.map(Format::name);
        self.n_events = stats.events;
        self.terminal = stats.end_mark;
        let some_finished = choices.values().any(|choice| choice.finished);
        let all_finished = choices.values().all(|choice| choice.finished || !choice.speaks);
        self.outcome = match (self.error || self.decode_error.is_some(), some_finished && all_finished) {
            (true, _) => "failed",
            (false, true) => "finished",
            (false, false) => "truncated",
        };
        self.error_outside_events.clone_from(&stats.error_outside_events);
        if choices.len() > 1 {
            self.choices = choices.values().map(|choice| choice.told.clone()).collect();
        }
        let first = choices.into_values().next().unwrap_or_default().told;
        (self.text, self.reasoning, self.refusal) = (first.text, first.reasoning, first.refusal);
        self.finish = first.finish.or_else(|| stats.stated_end.clone());
        self.usage = InspectedUsage {
            input: usage.stated.input,
            output: usage.stated.output,
            cached: usage.stated.cached,
            reasoning: usage.stated.reasoning,
            cache_write: usage.stated.cache_write,
        };
        for call in calls {
            let by_provider = call.lane.channel == Channel::ProviderTool;
            let list = if by_provider { &mut self.server_tool_calls } else { &mut self.tool_calls };
            let is_json = || serde_json::from_str::<serde::de::IgnoredAny>(&call.arguments).is_ok();
            let arguments = (!by_provider || is_json()).then_some(call.arguments);
            let id = (!is_made_up(&call.id)).then_some(call.id);
            list.push(InspectedCall { id, name: call.name, arguments });
        }
    }

    fn choice(&mut self, index: u16) -> &mut Choice {
        let choice = self.state.choices.entry(index).or_default();
        choice.told.index = index;
        choice
    }

    fn add(&mut self, lane: Lane, text: &str) {
        let choice = self.choice(lane.choice);
        choice.speaks = true;
        let choice = &mut choice.told;
        match lane.channel {
            Channel::Text => choice.text.push_str(text),
            Channel::Reasoning => choice.reasoning.push_str(text),
            Channel::Refusal => choice.refusal.push_str(text),
            Channel::Arguments | Channel::ProviderTool => {
                if let Some(call) = self.state.calls.iter_mut().rfind(|call| call.lane == lane) {
                    call.arguments.push_str(text);
                }
            }
            _ => {}
        }
    }

    fn open(&mut self, lane: Lane, id: &Text, name: &Text, arguments: &str) {
        self.choice(lane.choice).speaks = true;
        self.state.calls.push(Call { lane, id: id.clone(), name: name.clone(), arguments: arguments.to_owned() });
    }
}

#[cfg(test)]
mod tests {
    use streamkeeper_contract::{Body, ErrorInfo, Finish, FinishReason, MessageInfo};

    use super::*;

    fn inspect(chunks: impl IntoIterator<Item = Chunk>) -> Inspection {
        let mut inspection = Inspection::new();
        chunks.into_iter().for_each(|chunk| inspection.chunk(&chunk));
        inspection.finish(&Stats::default(), None);
        inspection
    }

    fn finish(choice: u16, stated: &str) -> Chunk {
        let stated = Some(stated.into());
        Body::Finish(Box::new(Finish { choice, reason: FinishReason::Stop, stated })).into()
    }

    fn start(choice: u16, model: Option<&str>) -> Chunk {
        let model = model.map(Text::from);
        Body::MessageStart(Box::new(MessageInfo { choice, model, ..MessageInfo::default() })).into()
    }

    // spec 2.7
    #[test]
    fn a_snapshot_counts_only_where_nothing_was_said() {
        let reasoning = Lane::new(Channel::Reasoning);
        let inspection = inspect([
            Chunk::delta(Lane::TEXT, "a"),
            Chunk::snapshot(Lane::TEXT, "a"),
            Chunk::snapshot(reasoning, "r"),
            Chunk::snapshot(reasoning, "r"),
            Chunk::delta(Lane::TEXT.in_part(1), "b"),
        ]);
        assert_eq!((inspection.text.as_str(), inspection.reasoning.as_str()), ("ab", "r"));
    }

    // spec 2.5
    #[test]
    fn calls_stand_in_order_of_appearance_with_the_ids_that_the_provider_gave() {
        let (one, two) = (Lane::TEXT.arguments(1), Lane::TEXT.arguments(2));
        let provider = Lane { channel: Channel::ProviderTool, call: 3, ..Lane::TEXT };
        let other = Lane { call: 4, ..provider };
        let provider_call = |lane, name: &'static str| {
            Chunk::from(Body::ProviderToolStart(Box::new(ToolCallStart { lane, id: "p".into(), name: name.into() })))
        };
        let inspection = inspect([
            Chunk::tool_call_start(one, "unnamed_call_0_1", "f"),
            Chunk::tool_call_start(two, "b", "g"),
            provider_call(provider, "search"),
            provider_call(other, "python"),
            Chunk::delta(two, "{\"x\":"),
            Chunk::delta(provider, "{}"),
            Chunk::delta(other, "print(1)"),
            Chunk::delta(two, "1}"),
            Chunk::tool_call(Lane::TEXT.arguments(5), "c", "h", "{}"),
        ]);
        let calls = |calls: &[InspectedCall]| -> Vec<String> {
            let text = |call: &InspectedCall| {
                let (id, arguments) = (call.id.as_deref().unwrap_or("-"), call.arguments.as_deref().unwrap_or("-"));
                format!("{id} {} {arguments}", call.name)
            };
            calls.iter().map(text).collect()
        };
        assert_eq!(calls(&inspection.tool_calls), ["- f ", "b g {\"x\":1}", "c h {}"]);
        assert_eq!(calls(&inspection.server_tool_calls), ["p search {}", "p python -"]);
    }

    // spec 2.4
    #[test]
    fn the_outcome_needs_a_finish_of_every_choice_that_said_anything() {
        let text = |choice| Chunk::delta(Lane::TEXT.in_choice(choice), "a");
        let error = || Chunk::error(ErrorInfo::new("x"));
        for (chunks, outcome) in [
            (vec![], "truncated"),
            (vec![text(0)], "truncated"),
            (vec![finish(0, "stop")], "finished"),
            (vec![text(0), finish(0, "stop")], "finished"),
            (vec![text(0), text(1), finish(0, "stop")], "truncated"),
            (vec![start(1, None), text(0), finish(0, "stop")], "finished"),
            (vec![text(0), finish(0, "stop"), error()], "failed"),
        ] {
            assert_eq!(inspect(chunks.clone()).outcome, outcome, "{chunks:?}");
        }
        let mut inspection = Inspection::new();
        inspection.chunk(&finish(0, "stop"));
        inspection.fail(&WireError::EventTooLarge { limit: 1 });
        inspection.finish(&Stats::default(), Some(Format::Gemini));
        assert_eq!((inspection.outcome, inspection.decode_error), ("failed", Some("event_too_large")));
    }

    #[test]
    fn several_choices_are_listed_and_the_first_one_is_the_answer() {
        let one = inspect([start(0, None), Chunk::delta(Lane::TEXT, "a"), finish(0, "eos")]);
        assert!(one.choices.is_empty());
        let inspection = inspect([
            start(1, Some("m")),
            start(0, Some("n")),
            Chunk::delta(Lane::TEXT.in_choice(1), "b"),
            Chunk::delta(Lane::TEXT, "a"),
            finish(1, "length"),
            finish(0, "eos"),
        ]);
        let choices: Vec<_> = inspection.choices.iter().map(|choice| (choice.index, choice.text.as_str())).collect();
        assert_eq!(choices, [(0, "a"), (1, "b")]);
        assert_eq!((inspection.text.as_str(), inspection.finish.as_deref()), ("a", Some("eos")));
        assert_eq!(inspection.model.as_deref(), Some("m"));
    }
}

use async_openai::types::responses::{
    LogProb, OutputContent, OutputItem, OutputMessageContent, OutputTextContent, ReasoningItemContent, Response,
    ResponseCustomToolCallInputDeltaEvent, ResponseFunctionCallArgumentsDeltaEvent,
    ResponseReasoningSummaryTextDeltaEvent, ResponseReasoningTextDeltaEvent, ResponseRefusalDeltaEvent,
    ResponseStreamEvent, ResponseTextDeltaEvent, ResponseUsage, SummaryPart,
};
use streamkeeper_contract::{
    Body, Channel, Chunk, Custom, ErrorInfo, Finish, FinishReason, Json, Lane, MessageInfo, Opaque, Stated, Text, Usage,
};
use streamkeeper_stream::{Part, StreamItem};

/// What is remembered of a Responses stream from event to event: which part or tool call an index stands for.
#[derive(Debug, Default)]
pub struct ResponsesState {
    /// In order of appearance: the ordinals of their lanes.
    parts: Vec<Place>,
    calls: Vec<Call>,
    /// Whether the client has tools to run.
    has_calls: bool,
    sequence: u64,
}

/// Where a part stands.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    output: u32,
    kind: Kind,
    index: u32,
    item: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Content,
    Summary,
}

#[derive(Debug)]
struct Call {
    output: u32,
    item: String,
    channel: Channel,
    /// Its input is text, not JSON.
    is_custom: bool,
    begun: bool,
    ended: bool,
}

/// Parts and calls past this share the last one: a response that has so many is broken.
const MOST: usize = 4096;

impl StreamItem<ResponsesState> for ResponseStreamEvent {
    fn visit(&mut self, state: &mut ResponsesState, f: &mut dyn FnMut(Part<'_>)) {
        use ResponseStreamEvent as E;
        match self {
            E::ResponseOutputTextDelta(event) => {
                state.sequence = event.sequence_number;
                let lane = state.part(Kind::Content, event.output_index, event.content_index, &event.item_id);
                delta(lane, &mut event.delta, &mut event.logprobs, f);
            }
            E::ResponseRefusalDelta(event) => {
                state.sequence = event.sequence_number;
                let lane = state.part(Kind::Content, event.output_index, event.content_index, &event.item_id);
                f(Part::Delta(lane.in_channel(Channel::Refusal), &mut event.delta));
            }
            E::ResponseReasoningTextDelta(event) => {
                state.sequence = event.sequence_number;
                let lane = state.part(Kind::Content, event.output_index, event.content_index, &event.item_id);
                f(Part::Delta(lane.in_channel(Channel::Reasoning), &mut event.delta));
            }
            E::ResponseReasoningSummaryTextDelta(event) => {
                state.sequence = event.sequence_number;
                let lane = state.part(Kind::Summary, event.output_index, event.summary_index, &event.item_id);
                f(Part::Delta(lane.in_channel(Channel::Reasoning), &mut event.delta));
            }
            E::ResponseAudioTranscriptDelta(event) => {
                f(Part::Delta(Lane::new(Channel::Transcript), &mut event.delta));
            }
            E::ResponseFunctionCallArgumentsDelta(event) => {
                state.sequence = event.sequence_number;
                f(Part::Delta(state.call(event.output_index, &event.item_id, Channel::Arguments), &mut event.delta));
            }
            E::ResponseCustomToolCallInputDelta(event) => {
                state.sequence = event.sequence_number;
                f(Part::Delta(state.call(event.output_index, &event.item_id, Channel::Arguments), &mut event.delta));
            }
            E::ResponseMCPCallArgumentsDelta(event) => {
                f(Part::Delta(state.call(event.output_index, &event.item_id, Channel::ProviderTool), &mut event.delta));
            }
            E::ResponseCodeInterpreterCallCodeDelta(event) => {
                f(Part::Delta(state.call(event.output_index, &event.item_id, Channel::ProviderTool), &mut event.delta));
            }

            E::ResponseOutputTextDone(event) => {
                let lane = state.part(Kind::Content, event.output_index, event.content_index, &event.item_id);
                whole(lane, &mut event.text, &mut event.logprobs, f);
            }
            E::ResponseRefusalDone(event) => {
                let lane = state.part(Kind::Content, event.output_index, event.content_index, &event.item_id);
                f(Part::Snapshot(lane.in_channel(Channel::Refusal), &mut event.refusal));
            }
            E::ResponseReasoningTextDone(event) => {
                let lane = state.part(Kind::Content, event.output_index, event.content_index, &event.item_id);
                f(Part::Snapshot(lane.in_channel(Channel::Reasoning), &mut event.text));
            }
            E::ResponseReasoningSummaryTextDone(event) => {
                let lane = state.part(Kind::Summary, event.output_index, event.summary_index, &event.item_id);
                f(Part::Snapshot(lane.in_channel(Channel::Reasoning), &mut event.text));
            }
            E::ResponseFunctionCallArgumentsDone(event) => {
                let lane = state.call(event.output_index, &event.item_id, Channel::Arguments);
                f(Part::Snapshot(lane, &mut event.arguments));
                state.end_call(event.output_index, lane, f);
            }
            E::ResponseCustomToolCallInputDone(event) => {
                let lane = state.call(event.output_index, &event.item_id, Channel::Arguments);
                f(Part::Snapshot(lane, &mut event.input));
                state.end_call(event.output_index, lane, f);
            }
            E::ResponseMCPCallArgumentsDone(event) => {
                let lane = state.call(event.output_index, &event.item_id, Channel::ProviderTool);
                f(Part::Snapshot(lane, &mut event.arguments));
            }
            E::ResponseCodeInterpreterCallCodeDone(event) => {
                let lane = state.call(event.output_index, &event.item_id, Channel::ProviderTool);
                f(Part::Snapshot(lane, &mut event.code));
            }

            E::ResponseContentPartAdded(event) => {
                let lane = state.part(Kind::Content, event.output_index, event.content_index, &event.item_id);
                content(lane, &mut event.part, f);
            }
            E::ResponseContentPartDone(event) => {
                let lane = state.part(Kind::Content, event.output_index, event.content_index, &event.item_id);
                content(lane, &mut event.part, f);
                f(Part::Fixed(Body::PartEnd { choice: 0, part: lane.part }.into()));
            }
            E::ResponseReasoningSummaryPartAdded(event) => {
                let lane = state.part(Kind::Summary, event.output_index, event.summary_index, &event.item_id);
                summary(lane, &mut event.part, f);
            }
            E::ResponseReasoningSummaryPartDone(event) => {
                let lane = state.part(Kind::Summary, event.output_index, event.summary_index, &event.item_id);
                summary(lane, &mut event.part, f);
                f(Part::Fixed(Body::PartEnd { choice: 0, part: lane.part }.into()));
            }
            E::ResponseOutputItemAdded(event) => state.item(event.output_index, &mut event.item, false, f),
            E::ResponseOutputItemDone(event) => state.item(event.output_index, &mut event.item, true, f),

            E::ResponseCreated(event) => {
                let info = MessageInfo {
                    choice: 0,
                    id: Some(event.response.id.as_str().into()),
                    role: Some(Text::from_static("assistant")),
                    model: Some(event.response.model.as_str().into()),
                };
                f(Part::Fixed(Body::MessageStart(Box::new(info)).into()));
            }
            E::ResponseCompleted(event) => state.end(&mut event.response, "completed", f),
            E::ResponseIncomplete(event) => state.end(&mut event.response, "incomplete", f),
            E::ResponseFailed(event) => state.end(&mut event.response, "failed", f),
            E::ResponseError(event) => {
                let code = event.code.as_deref().unwrap_or("error");
                f(Part::Fixed(Chunk::error(ErrorInfo::new(code).with_message(event.message.as_str()))));
            }
            E::ResponseInProgress(_) | E::ResponseQueued(_) => {}
            // Whatever else it is, a guard may look at it.
            other => f(Part::Fixed(custom(other))),
        }
    }

    fn synth(state: &mut ResponsesState, _: Option<&Self>, lane: Lane, text: &str) -> Option<Self> {
        let (sequence_number, delta) = (state.sequence, text.to_owned());
        if lane.channel == Channel::Arguments {
            let call = state.calls.get(usize::from(lane.call).checked_sub(1)?)?;
            let (item_id, output_index) = (call.item.clone(), call.output);
            return Some(if call.is_custom {
                let event = ResponseCustomToolCallInputDeltaEvent { sequence_number, output_index, item_id, delta };
                Self::ResponseCustomToolCallInputDelta(event)
            } else {
                let event = ResponseFunctionCallArgumentsDeltaEvent { sequence_number, item_id, output_index, delta };
                Self::ResponseFunctionCallArgumentsDelta(event)
            });
        }
        let Place { output: output_index, kind, index, item: item_id } =
            state.parts.get(usize::from(lane.part))?.clone();
        Some(match (lane.channel, kind) {
            (Channel::Text, _) => Self::ResponseOutputTextDelta(ResponseTextDeltaEvent {
                sequence_number,
                item_id,
                output_index,
                content_index: index,
                delta,
                logprobs: None,
            }),
            (Channel::Refusal, _) => Self::ResponseRefusalDelta(ResponseRefusalDeltaEvent {
                sequence_number,
                item_id,
                output_index,
                content_index: index,
                delta,
            }),
            (Channel::Reasoning, Kind::Content) => Self::ResponseReasoningTextDelta(ResponseReasoningTextDeltaEvent {
                sequence_number,
                item_id,
                output_index,
                content_index: index,
                delta,
            }),
            (Channel::Reasoning, Kind::Summary) => {
                Self::ResponseReasoningSummaryTextDelta(ResponseReasoningSummaryTextDeltaEvent {
                    sequence_number,
                    item_id,
                    output_index,
                    summary_index: index,
                    delta,
                })
            }
            _ => return None,
        })
    }
}

impl ResponsesState {
    /// The text lane of a part.
    fn part(&mut self, kind: Kind, output: u32, index: u32, item: &str) -> Lane {
        let is_it = |place: &Place| (place.output, place.kind, place.index) == (output, kind, index);
        let at = self.parts.iter().rposition(is_it).unwrap_or_else(|| {
            if self.parts.len() < MOST {
                self.parts.push(Place { output, kind, index, item: item.to_owned() });
            }
            self.parts.len() - 1
        });
        Lane::TEXT.in_part(u16::try_from(at).unwrap_or(u16::MAX))
    }

    /// The lane of a call's arguments or input.
    fn call(&mut self, output: u32, item: &str, channel: Channel) -> Lane {
        let at = self.calls.iter().rposition(|call| call.output == output).unwrap_or_else(|| {
            if self.calls.len() < MOST {
                let item = item.to_owned();
                self.calls.push(Call { output, item, channel, is_custom: false, begun: false, ended: false });
            }
            self.calls.len() - 1
        });
        let channel = self.calls[at].channel;
        Lane::TEXT.arguments(u16::try_from(at + 1).unwrap_or(u16::MAX)).in_channel(channel)
    }

    fn begin_call(
        &mut self,
        output: u32,
        id: &str,
        name: &str,
        item: &str,
        is_custom: bool,
        f: &mut dyn FnMut(Part<'_>),
    ) -> Lane {
        let lane = self.call(output, item, Channel::Arguments);
        self.has_calls = true;
        if let Some(call) = self.calls.iter_mut().find(|call| call.output == output && !call.begun) {
            call.begun = true;
            call.is_custom = is_custom;
            f(Part::Fixed(Chunk::tool_call_start(lane, id, name)));
        }
        lane
    }

    fn end_call(&mut self, output: u32, lane: Lane, f: &mut dyn FnMut(Part<'_>)) {
        if let Some(call) = self.calls.iter_mut().find(|call| call.output == output && !call.ended) {
            call.ended = true;
            f(Part::Fixed(Body::ToolCallEnd(lane).into()));
        }
    }

    /// An item of the output: as it begins, or whole.
    fn item(&mut self, output: u32, item: &mut OutputItem, is_done: bool, f: &mut dyn FnMut(Part<'_>)) {
        match item {
            OutputItem::Message(message) => {
                for (index, part) in (0..).zip(&mut message.content) {
                    let lane = self.part(Kind::Content, output, index, &message.id);
                    match part {
                        OutputMessageContent::OutputText(text) => output_text(lane, text, f),
                        OutputMessageContent::Refusal(refusal) => {
                            f(Part::Snapshot(lane.in_channel(Channel::Refusal), &mut refusal.refusal));
                        }
                    }
                }
            }
            OutputItem::Reasoning(reasoning) => {
                let id = reasoning.id.clone().unwrap_or_default();
                for (index, part) in (0..).zip(&mut reasoning.summary) {
                    summary(self.part(Kind::Summary, output, index, &id), part, f);
                }
                for (index, part) in (0..).zip(reasoning.content.iter_mut().flatten()) {
                    let lane = self.part(Kind::Content, output, index, &id).in_channel(Channel::Reasoning);
                    let ReasoningItemContent::ReasoningText(part) = part;
                    f(Part::Snapshot(lane, &mut part.text));
                }
                if let Some(data) = reasoning.encrypted_content.as_deref().filter(|_| is_done) {
                    let lane = Lane::new(Channel::Reasoning);
                    let opaque = Opaque { lane, form: Text::from_static("encrypted"), data: data.into() };
                    f(Part::Fixed(Body::Opaque(Box::new(opaque)).into()));
                }
            }
            OutputItem::FunctionCall(call) => {
                let id = call.id.clone().unwrap_or_default();
                let lane = self.begin_call(output, &call.call_id, &call.name, &id, false, f);
                if is_done {
                    f(Part::Snapshot(lane, &mut call.arguments));
                    self.end_call(output, lane, f);
                }
            }
            OutputItem::CustomToolCall(call) => {
                let lane = self.begin_call(output, &call.call_id, &call.name, &call.id, true, f);
                if is_done {
                    f(Part::Snapshot(lane, &mut call.input));
                    self.end_call(output, lane, f);
                }
            }
            other if is_done => f(Part::Fixed(custom(other))),
            _ => {}
        }
    }

    fn end(&mut self, response: &mut Response, status: &'static str, f: &mut dyn FnMut(Part<'_>)) {
        for (output, item) in (0..).zip(&mut response.output) {
            self.item(output, item, true, f);
        }
        if let Some(usage) = &response.usage {
            f(Part::Fixed(Chunk::usage(usage_of(usage))));
        }
        let why = response.incomplete_details.as_ref().map(|details| details.reason.as_str());
        let (reason, stated) = match (status, why) {
            ("failed", _) => {
                let error = response.error.as_ref();
                let code = error.and_then(|error| word(&error.code)).unwrap_or_else(|| "error".to_owned());
                let info = ErrorInfo::new(code);
                let info = match error {
                    Some(error) => info.with_message(error.message.as_str()),
                    None => info,
                };
                f(Part::Fixed(Chunk::error(info)));
                return;
            }
            ("incomplete", Some("max_output_tokens")) => (FinishReason::Length, "max_output_tokens"),
            ("incomplete", Some("content_filter")) => (FinishReason::ContentFilter, "content_filter"),
            ("incomplete", Some(other)) => (FinishReason::Other(other.into()), status),
            ("completed", _) if self.has_calls => (FinishReason::ToolCalls, status),
            ("completed", _) => (FinishReason::Stop, status),
            _ => (FinishReason::Unstated, status),
        };
        let finish = Finish { choice: 0, reason, stated: Some(Text::from_static(stated)) };
        f(Part::Fixed(Body::Finish(Box::new(finish)).into()));
    }
}

/// A piece of text. Log probabilities repeat it, so they are right for this text alone.
fn delta<P>(lane: Lane, text: &mut String, logprobs: &mut Option<Vec<P>>, f: &mut dyn FnMut(Part<'_>)) {
    let before = logprobs.is_some().then(|| text.clone());
    f(Part::Delta(lane, text));
    if before.is_some_and(|before| before != *text) {
        *logprobs = None;
    }
}

/// The same for a text that comes whole. Empty ones say nothing.
fn whole<P>(lane: Lane, text: &mut String, logprobs: &mut Option<Vec<P>>, f: &mut dyn FnMut(Part<'_>)) {
    if text.is_empty() {
        return;
    }
    let before = logprobs.is_some().then(|| text.clone());
    f(Part::Snapshot(lane, text));
    if before.is_some_and(|before| before != *text) {
        *logprobs = None;
    }
}

fn output_text(lane: Lane, part: &mut OutputTextContent, f: &mut dyn FnMut(Part<'_>)) {
    let logprobs: &mut Option<Vec<LogProb>> = &mut part.logprobs;
    whole(lane, &mut part.text, logprobs, f);
}

fn content(lane: Lane, part: &mut OutputContent, f: &mut dyn FnMut(Part<'_>)) {
    let (channel, text) = match part {
        OutputContent::OutputText(part) => return output_text(lane, part, f),
        OutputContent::Refusal(part) => (Channel::Refusal, &mut part.refusal),
        OutputContent::ReasoningText(part) => (Channel::Reasoning, &mut part.text),
    };
    if !text.is_empty() {
        f(Part::Snapshot(lane.in_channel(channel), text));
    }
}

fn summary(lane: Lane, part: &mut SummaryPart, f: &mut dyn FnMut(Part<'_>)) {
    let SummaryPart::SummaryText(part) = part;
    if !part.text.is_empty() {
        f(Part::Snapshot(lane.in_channel(Channel::Reasoning), &mut part.text));
    }
}

/// An event or item that has no kind of its own here, as JSON under its type.
fn custom(value: &impl serde::Serialize) -> Chunk {
    #[derive(serde::Deserialize)]
    struct Typed {
        r#type: String,
    }
    let value = Json::new(value).unwrap_or_else(|_| Json::string(""));
    let name = value.parse::<Typed>().map_or_else(|_| Text::from_static("unknown"), |typed| typed.r#type.into());
    Body::Custom(Box::new(Custom { name, value })).into()
}

/// The word that a value of the client is in JSON.
fn word(value: &impl serde::Serialize) -> Option<String> {
    serde_json::to_value(value).ok()?.as_str().map(ToOwned::to_owned)
}

fn usage_of(usage: &ResponseUsage) -> Usage {
    let (input, output) = (u64::from(usage.input_tokens), u64::from(usage.output_tokens));
    let cached = u64::from(usage.input_tokens_details.cached_tokens);
    let written = usage.input_tokens_details.cache_write_tokens.and_then(|tokens| u64::try_from(tokens).ok());
    let reasoning = u64::from(usage.output_tokens_details.reasoning_tokens);
    Usage {
        uncached_input: Some(input.saturating_sub(cached).saturating_sub(written.unwrap_or(0))),
        cache_read: Some(cached),
        cache_write: written,
        output: Some(output.saturating_sub(reasoning)),
        reasoning: Some(reasoning.min(output)),
        stated: Stated {
            input: Some(input),
            output: Some(output),
            cached: Some(cached),
            cache_write: written,
            reasoning: Some(reasoning),
            total: Some(usage.total_tokens.into()),
            raw: serde_json::value::to_raw_value(usage).ok().map(Into::into),
        },
        ..Usage::default()
    }
}

use async_openai::types::chat::{
    ChatChoiceStream, ChatCompletionMessageToolCallChunk, ChatCompletionStreamAudio, ChatCompletionStreamResponseDelta,
    CompletionUsage, CreateChatCompletionStreamResponse, FinishReason as StatedReason, FunctionCallStream,
    FunctionType, Role,
};
use streamkeeper_contract::{
    Body, Channel, Chunk, Finish, FinishReason, Lane, Media, MediaData, MessageInfo, Stated, Text, ToolCall, Usage,
};
use streamkeeper_stream::{Part, StreamItem};

/// What is remembered of a chat stream from item to item: which tool call an index stands for.
#[derive(Debug, Default)]
pub struct ChatState {
    choices: Vec<ChoiceState>,
}

#[derive(Debug)]
struct ChoiceState {
    index: u32,
    begun: bool,
    calls: Vec<Call>,
}

/// A tool call. Its place in the list, from 1, is its number in the lane.
#[derive(Debug)]
struct Call {
    index: u32,
    id: Option<String>,
    /// Made by an observer, under this number.
    derived: Option<u16>,
    open: bool,
}

/// Choices past this share the last one's state: a stream that has so many is broken.
const MOST_CHOICES: usize = 1024;
/// The same for the calls of a choice.
const MOST_CALLS: usize = 4096;
/// Stands for the index of the function call that older models make instead of tool calls. It has none.
const FUNCTION_CALL: u32 = u32::MAX;

impl StreamItem<ChatState> for CreateChatCompletionStreamResponse {
    fn visit(&mut self, state: &mut ChatState, f: &mut dyn FnMut(Part<'_>)) {
        for choice in &mut self.choices {
            let known = state.choice(choice.index);
            if !std::mem::replace(&mut known.begun, true) {
                f(Part::Fixed(message_start(choice, &self.id, &self.model)));
            }
            visit_choice(choice, known, f);
        }
        if let Some(usage) = &self.usage {
            f(Part::Fixed(Chunk::usage(usage_of(usage))));
        }
    }

    fn synth(state: &mut ChatState, like: Option<&Self>, lane: Lane, text: &str) -> Option<Self> {
        let mut delta = ChatCompletionStreamResponseDelta::default();
        let text = Some(text.to_owned());
        match lane.channel {
            Channel::Text => delta.content = text,
            Channel::Refusal => delta.refusal = text,
            Channel::Transcript => {
                delta.audio =
                    Some(ChatCompletionStreamAudio { transcript: text, ..ChatCompletionStreamAudio::default() });
            }
            Channel::Arguments => {
                let index = state.choice(lane.choice.into()).index_of(lane.call)?;
                set_arguments(&mut delta, index, text);
            }
            _ => return None,
        }
        Some(made(like, lane.choice, delta))
    }

    fn synth_tool_call(state: &mut ChatState, like: Option<&Self>, call: &ToolCall) -> Option<Self> {
        let index = state.choice(call.lane.choice.into()).derive(call.lane.call);
        let function =
            FunctionCallStream { name: Some(call.name.to_string()), arguments: Some(call.arguments.to_string()) };
        let chunk = ChatCompletionMessageToolCallChunk {
            index,
            id: Some(call.id.to_string()),
            r#type: Some(FunctionType::Function),
            function: Some(function),
        };
        let delta = ChatCompletionStreamResponseDelta { tool_calls: Some(vec![chunk]), ..Default::default() };
        Some(made(like, call.lane.choice, delta))
    }

    fn like(&self) -> Option<Self> {
        Some(Self { choices: Vec::new(), usage: None, obfuscation: None, moderation: None, ..self.clone() })
    }
}

fn visit_choice(choice: &mut ChatChoiceStream, known: &mut ChoiceState, f: &mut dyn FnMut(Part<'_>)) {
    let lane = Lane::TEXT.in_choice(known.number());
    let delta = &mut choice.delta;
    for (channel, text) in [(Channel::Text, &mut delta.content), (Channel::Refusal, &mut delta.refusal)] {
        let Some(text) = text else { continue };
        // Log probabilities repeat the text, so they are right for this text alone.
        let before = choice.logprobs.is_some().then(|| text.clone());
        f(Part::Delta(lane.in_channel(channel), text));
        if before.is_some_and(|before| before != *text) {
            choice.logprobs = None;
        }
    }
    if let Some(audio) = &mut delta.audio {
        if let Some(transcript) = &mut audio.transcript {
            f(Part::Delta(lane.in_channel(Channel::Transcript), transcript));
        }
        if let Some(data) = &audio.data {
            let data = MediaData::Base64(data.as_str().into());
            let media = Media { lane, form: Text::from_static("audio"), mime: None, data };
            f(Part::Fixed(Body::Media(Box::new(media)).into()));
        }
    }
    for call in delta.tool_calls.iter_mut().flatten() {
        visit_call(call.index, call.id.as_deref(), call.function.as_mut(), known, f);
    }
    #[allow(deprecated, reason = "older models use it")]
    if let Some(function) = &mut delta.function_call {
        visit_call(FUNCTION_CALL, None, Some(function), known, f);
    }
    if let Some(stated) = choice.finish_reason {
        for (at, call) in known.calls.iter_mut().enumerate().filter(|(_, call)| call.open) {
            call.open = false;
            f(Part::Fixed(Body::ToolCallEnd(lane.arguments(call_number(at))).into()));
        }
        let (reason, word) = reason(stated);
        let finish = Finish { choice: lane.choice, reason, stated: Some(Text::from_static(word)) };
        f(Part::Fixed(Body::Finish(Box::new(finish)).into()));
    }
}

fn visit_call(
    index: u32,
    id: Option<&str>,
    function: Option<&mut FunctionCallStream>,
    known: &mut ChoiceState,
    f: &mut dyn FnMut(Part<'_>),
) {
    let id = id.filter(|id| !id.is_empty());
    let (at, is_new) = known.call(index, id);
    let lane = Lane::TEXT.in_choice(known.number()).arguments(call_number(at));
    if is_new {
        let name = function.as_ref().and_then(|function| function.name.as_deref()).unwrap_or_default();
        let id = id.map_or_else(|| Text::from(format!("call_{}_{}", lane.choice, lane.call)), Text::from);
        f(Part::Fixed(Chunk::tool_call_start(lane, id, name)));
    }
    if let Some(arguments) = function.and_then(|function| function.arguments.as_mut()) {
        f(Part::Delta(lane, arguments));
    }
}

impl ChatState {
    fn choice(&mut self, index: u32) -> &mut ChoiceState {
        let at = self.choices.iter().position(|choice| choice.index == index).unwrap_or_else(|| {
            if self.choices.len() < MOST_CHOICES {
                self.choices.push(ChoiceState { index, begun: false, calls: Vec::new() });
            }
            self.choices.len() - 1
        });
        &mut self.choices[at]
    }
}

impl ChoiceState {
    fn number(&self) -> u16 {
        u16::try_from(self.index).unwrap_or(u16::MAX)
    }

    /// The place of a call, and whether it is new: by id, then by index. A new id at a known index opens a new call.
    fn call(&mut self, index: u32, id: Option<&str>) -> (usize, bool) {
        let newest = |is: &dyn Fn(&Call) -> bool| self.calls.iter().rposition(is);
        let known = id
            .and_then(|id| newest(&|call| call.id.as_deref() == Some(id)))
            .or_else(|| newest(&|call| call.index == index && (id.is_none() || call.id.is_none())));
        match known {
            Some(at) => (at, false),
            None if self.calls.len() < MOST_CALLS => {
                self.calls.push(Call { index, id: id.map(ToOwned::to_owned), derived: None, open: true });
                (self.calls.len() - 1, true)
            }
            None => (MOST_CALLS - 1, false),
        }
    }

    /// The client's index of a call.
    fn index_of(&self, number: u16) -> Option<u32> {
        let derived = self.calls.iter().find(|call| call.derived == Some(number));
        derived.or_else(|| self.calls.get(usize::from(number).checked_sub(1)?)).map(|call| call.index)
    }

    /// An index for a call that an observer has made: one that no call has yet.
    fn derive(&mut self, number: u16) -> u32 {
        let taken = self.calls.iter().map(|call| call.index).filter(|&index| index != FUNCTION_CALL).max();
        let index = taken.map_or(0, |index| index.saturating_add(1));
        if self.calls.len() < MOST_CALLS {
            self.calls.push(Call { index, id: None, derived: Some(number), open: false });
        }
        index
    }
}

fn call_number(at: usize) -> u16 {
    u16::try_from(at + 1).unwrap_or(u16::MAX)
}

fn set_arguments(delta: &mut ChatCompletionStreamResponseDelta, index: u32, arguments: Option<String>) {
    let function = Some(FunctionCallStream { name: None, arguments });
    #[allow(deprecated, reason = "older models use it")]
    if index == FUNCTION_CALL {
        delta.function_call = function;
    } else {
        delta.tool_calls = Some(vec![ChatCompletionMessageToolCallChunk { index, function, id: None, r#type: None }]);
    }
}

/// An item like the others of its stream that says one thing.
fn made(
    like: Option<&CreateChatCompletionStreamResponse>,
    choice: u16,
    delta: ChatCompletionStreamResponseDelta,
) -> CreateChatCompletionStreamResponse {
    let like = like.and_then(StreamItem::like).unwrap_or_else(|| CreateChatCompletionStreamResponse {
        object: "chat.completion.chunk".to_owned(),
        ..CreateChatCompletionStreamResponse::default()
    });
    let choice = ChatChoiceStream { index: choice.into(), delta, finish_reason: None, logprobs: None };
    CreateChatCompletionStreamResponse { choices: vec![choice], ..like }
}

fn message_start(choice: &ChatChoiceStream, id: &str, model: &str) -> Chunk {
    let filled = |text: &str| (!text.is_empty()).then(|| text.into());
    let role = choice.delta.role.as_ref().map(|role| match role {
        Role::Developer => "developer",
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
        Role::Function => "function",
    });
    let choice = u16::try_from(choice.index).unwrap_or(u16::MAX);
    let info = MessageInfo { choice, id: filled(id), role: role.map(Text::from_static), model: filled(model) };
    Body::MessageStart(Box::new(info)).into()
}

fn reason(stated: StatedReason) -> (FinishReason, &'static str) {
    match stated {
        StatedReason::Stop => (FinishReason::Stop, "stop"),
        StatedReason::Length => (FinishReason::Length, "length"),
        StatedReason::ToolCalls => (FinishReason::ToolCalls, "tool_calls"),
        StatedReason::FunctionCall => (FinishReason::ToolCalls, "function_call"),
        StatedReason::ContentFilter => (FinishReason::ContentFilter, "content_filter"),
    }
}

fn usage_of(usage: &CompletionUsage) -> Usage {
    let cached = usage.prompt_tokens_details.as_ref().and_then(|details| details.cached_tokens).map(u64::from);
    let reasoning =
        usage.completion_tokens_details.as_ref().and_then(|details| details.reasoning_tokens).map(u64::from);
    let (input, output) = (u64::from(usage.prompt_tokens), u64::from(usage.completion_tokens));
    Usage {
        uncached_input: Some(input.saturating_sub(cached.unwrap_or(0))),
        cache_read: cached,
        output: Some(output.saturating_sub(reasoning.unwrap_or(0))),
        reasoning: reasoning.map(|reasoning| reasoning.min(output)),
        stated: Stated {
            input: Some(input),
            output: Some(output),
            cached,
            reasoning,
            total: Some(usage.total_tokens.into()),
            raw: serde_json::value::to_raw_value(usage).ok().map(Into::into),
            ..Stated::default()
        },
        ..Usage::default()
    }
}

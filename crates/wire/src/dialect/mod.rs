//! One module a format: what its events mean. Only here does anybody know a provider's field names.

mod ag_ui;
mod anthropic;
mod bedrock_converse;
mod bedrock_invoke;
mod blocks;
mod chunks;
mod claude_code;
mod cohere;
mod error;
mod gemini;
mod jsonl;
mod ollama;
mod openai_chat;
mod openai_responses;
mod partial_args;
mod pull;
mod raw;
mod read;
#[cfg(test)]
mod testing;

use std::fmt;

pub(crate) use error::{error_event, error_first, error_of};

use crate::{Format, output::Output};

/// Reads the events of one stream in one format.
pub(crate) trait Dialect: Send + fmt::Debug {
    /// Takes an event. Never fails: what it does not understand becomes a `raw` chunk.
    fn event(&mut self, event: &Event<'_>, out: &mut Output);

    /// The body ended cleanly: not inside an event.
    fn finish(&mut self, out: &mut Output) {
        let _ = out;
    }
}

/// One event: SSE event, JSON line, array element or binary message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Event<'a> {
    /// The name of the event in its framing, if it states one.
    pub(crate) name: Option<&'a str>,
    /// The payload: JSON in all formats but for end marks like `[DONE]`.
    pub(crate) data: &'a str,
}

/// The reader of a format.
pub(crate) fn reader(format: Format) -> Box<dyn Dialect> {
    match format {
        // Legacy completions are chat completions whose text is a field of the choice, which dialects of either mix.
        Format::OpenAiChat | Format::OpenAiCompletions => Box::<openai_chat::OpenAiChat>::default(),
        Format::OpenAiResponses => Box::<openai_responses::OpenAiResponses>::default(),
        Format::AnthropicMessages => Box::<anthropic::Anthropic>::default(),
        Format::Gemini => Box::<gemini::Gemini>::default(),
        Format::Ollama => Box::<ollama::Ollama>::default(),
        Format::CohereV2 => Box::<cohere::Cohere>::default(),
        Format::BedrockConverse => Box::<bedrock_converse::BedrockConverse>::default(),
        Format::BedrockInvoke => Box::<bedrock_invoke::BedrockInvoke>::default(),
        Format::AgUi => Box::<ag_ui::AgUi>::default(),
        Format::ClaudeCode => Box::<claude_code::ClaudeCode>::default(),
        Format::Jsonl => Box::<jsonl::Jsonl>::default(),
        Format::Raw => Box::<raw::Anything>::default(),
    }
}

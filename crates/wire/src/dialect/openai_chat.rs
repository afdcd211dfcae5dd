//! OpenAI Chat Completions with its dialects, and the older Completions, whose events differ in one field.

mod calls;
mod growth;
#[cfg(test)]
mod tests;
mod wire;

use serde_json::value::RawValue;
use streamkeeper_contract::{
    Body, Channel, Chunk, FinishReason, Json, Lane, Media, MediaData, MessageInfo, Text, Usage,
};

use crate::output::{Leaf, Output};

use super::{
    Dialect, Event,
    chunks::{annotation, custom, finish, opaque},
    read::{choice as ordinal, error_info, is_filled, leaf, parse, plain},
};
use calls::{Calls, Fragment};
use wire::{Audio, Call, Choice, Content, Delta, Detail, ImageUrl, Logprobs, Part, Wire, XGroq, usage_of};

/// Reads one completion.
#[derive(Debug, Default)]
pub(super) struct OpenAiChat {
    id: Option<Text>,
    model: Option<Text>,
    choices: Vec<Progress>,
    usage: Usage,
    /// The sources listed last: Perplexity lists them in every event.
    citations: Option<Json>,
}

/// How far a choice is.
#[derive(Debug, Default)]
struct Progress {
    choice: u16,
    begun: bool,
    finished: bool,
    calls: Calls,
}

impl Dialect for OpenAiChat {
    fn event(&mut self, event: &Event<'_>, out: &mut Output) {
        match self.read(event, out) {
            Some(()) => out.known += 1,
            None => out.raw(event.name, event.data),
        }
    }
}

impl OpenAiChat {
    const MOST_CHOICES: usize = 1024;

    fn read(&mut self, event: &Event<'_>, out: &mut Output) -> Option<()> {
        let data = event.data.trim_ascii();
        if data == "[DONE]" {
            self.done(out);
            return Some(());
        }
        let is_named_error = event.name == Some("error");
        if !is_named_error
            && let Some(choice) = growth::of_event(data)
            && let Some(progress) = self.choices.iter_mut().find(|known| known.begun && known.is(&choice))
        {
            progress.take(0, &choice, out);
            return Some(());
        }
        let wire: Wire<'_> = data.starts_with('{').then(|| serde_json::from_str(data).ok())??;
        let is_error = is_named_error || wire.object.as_str() == "error";
        let is_known = wire.choices.is_some() || wire.usage.is_some() || stated_error(wire.error).is_some();
        if !(is_known || is_error) {
            return None;
        }
        if self.id.is_none() {
            self.id = wire.id.filled().map(Text::from);
        }
        if self.model.is_none() {
            self.model = wire.model.filled().map(Text::from);
        }
        if let Some(results) = wire.prompt_filter_results {
            filtered(Lane::TEXT, results, out);
        }
        let mut usage = wire.usage;
        let mut error = stated_error(wire.error).map(|error| (error_info(error), error_place(error)));
        for (at, choice) in wire.choices.iter().flatten().enumerate() {
            self.choice(at, choice, out);
            usage = usage.or(choice.usage);
            error = error.or_else(|| {
                let error = stated_error(choice.error)?;
                Some((error_info(error), leaf("choices/*/error/message", &[at])))
            });
        }
        if let Some(citations) = wire.citations.filter(|list| is_filled(Some(list)))
            && self.citations.as_ref().map(Json::as_str) != Some(citations.get())
        {
            self.citations = Some(citations.into());
            out.push(annotation(Lane::TEXT, "citation", citations));
        }
        self.count(usage.or_else(|| parse::<XGroq<'_>>(wire.x_groq?)?.usage), out);
        if error.is_none() && is_error {
            let error_of = |whole| (error_info(whole), Leaf::new("message", [0; 4]));
            error = serde_json::from_str(data).ok().map(error_of);
        }
        if let Some((error, place)) = error {
            out.error_at(error, place);
        }
        Some(())
    }

    fn choice(&mut self, at: usize, choice: &Choice<'_>, out: &mut Output) {
        let known = self.choices.iter().position(|known| known.is(choice));
        if known.is_none() && self.choices.len() == Self::MOST_CHOICES {
            return out.too_many("choices", Self::MOST_CHOICES);
        }
        let known = known.unwrap_or_else(|| {
            self.choices.push(Progress::new(choice, out));
            self.choices.len() - 1
        });
        let progress = &mut self.choices[known];
        let stated = choice.finish_reason.filled();
        let has_text = choice.text.filled().is_some();
        if !progress.begun && (choice.delta.is_some() || choice.message.is_some() || has_text || stated.is_some()) {
            progress.begun = true;
            let role = choice.delta.as_ref().and_then(|delta| delta.role.filled()).map(Text::from);
            let (id, model) = (self.id.clone(), self.model.clone());
            out.push(Body::MessageStart(Box::new(MessageInfo { choice: progress.choice, id, role, model })));
        }
        progress.take(at, choice, out);
        if let Some(stated) = stated {
            progress.finish(reason(stated), Some(stated.into()), out);
        }
    }

    fn count(&mut self, usage: Option<&RawValue>, out: &mut Output) {
        let Some(raw) = usage else { return };
        if self.usage.stated.raw.as_ref().map(Json::as_str) == Some(raw.get()) {
            return;
        }
        if let Some(usage) = usage_of(raw) {
            self.usage.update(&usage);
            out.push(Body::Usage(Box::new(self.usage.clone())));
        }
    }

    fn done(&mut self, out: &mut Output) {
        out.ended = true;
        if self.choices.is_empty() {
            self.choices.push(Progress { begun: true, ..Progress::default() });
        }
        for progress in self.choices.iter_mut().filter(|progress| progress.begun) {
            progress.finish(FinishReason::Unstated, None, out);
        }
    }
}

impl Progress {
    fn new(choice: &Choice<'_>, out: &mut Output) -> Self {
        Self { choice: ordinal(choice.index.or_zero(), out), ..Self::default() }
    }

    fn is(&self, choice: &Choice<'_>) -> bool {
        u64::from(self.choice) == choice.index.or_zero()
    }

    fn lane(&self, channel: Channel) -> Lane {
        Lane::new(channel).in_choice(self.choice)
    }

    fn take(&mut self, at: usize, choice: &Choice<'_>, out: &mut Output) {
        let text = self.lane(Channel::Text);
        let delta = choice.delta.as_ref();
        if let Some(delta) = delta {
            self.reasoning(at, delta, out);
        }
        match (delta.and_then(|delta| delta.content.filled()), choice.text.filled()) {
            (None, None) => {}
            (Some(piece), None) => out.delta(text, piece, leaf("choices/*/delta/content", &[at])),
            (None, Some(piece)) => out.delta(text, piece, leaf("choices/*/text", &[at])),
            (Some(piece), Some(same)) if piece == same => {
                out.delta(text, piece, leaf("choices/*/delta/content|choices/*/text", &[at]));
            }
            (Some(piece), Some(other)) => {
                out.delta(text, piece, leaf("choices/*/delta/content", &[at]));
                out.push(Chunk::custom("text", Json::string(other)));
            }
        }
        if let Some(delta) = delta {
            if let Content::Parts(parts) = &delta.content {
                self.parts(at, parts, out);
            }
            out.delta(self.lane(Channel::Refusal), delta.refusal.clone(), leaf("choices/*/delta/refusal", &[at]));
            for (key, value) in &delta.rest {
                self.rare(at, key.as_str(), value, out);
            }
        }
        if let Some(logprobs) = choice.logprobs.filter(|logprobs| has_logprobs(logprobs)) {
            out.chunk(annotation(text, "logprobs", logprobs), leaf("choices/*/logprobs", &[at]));
        }
        if let Some(results) = choice.content_filter_results {
            filtered(text, results, out);
        }
        if let Some(message) = choice.message {
            self.whole(at, message, out);
        }
    }

    /// Reasoning under any of its names. Names that repeat one text are one delta with several places.
    fn reasoning(&self, at: usize, delta: &Delta<'_>, out: &mut Output) {
        let lane = self.lane(Channel::Reasoning);
        let raw = delta.field("reasoning_details");
        let details: Vec<Detail<'_>> = raw.and_then(parse).unwrap_or_default();
        let named = match (delta.reasoning_content.filled(), delta.reasoning.filled()) {
            (Some(text), None) => Some((text, Names::Content)),
            (None, Some(text)) => Some((text, Names::Plain)),
            (Some(text), Some(same)) if text == same => Some((text, Names::Both)),
            (Some(text), Some(other)) => {
                out.delta(lane, text, leaf(Names::Content.path(None), &[at]));
                Some((other, Names::Plain))
            }
            (None, None) => None,
        };
        let mut listed = details.iter().enumerate().filter(|(_, detail)| !detail.words().is_empty());
        match (named, listed.next(), listed.next()) {
            (None, first, second) => {
                for (place, detail) in first.into_iter().chain(second).chain(listed) {
                    out.delta(lane, detail.words(), leaf(detail.path(), &[at, place]));
                }
            }
            (Some((text, names)), None, _) => out.delta(lane, text, leaf(names.path(None), &[at])),
            (Some((text, names)), Some((place, detail)), None) if detail.words() == text => {
                out.delta(lane, text, leaf(names.path(Some(detail)), &[at, place]));
            }
            (Some((text, names)), ..) => {
                out.delta(lane, text, leaf(names.path(None), &[at]));
                out.push(Chunk::custom("delta.reasoning_details", raw.map_or_else(|| Json::string(""), Json::from)));
            }
        }
        for detail in &details {
            for (form, data) in [("signature", &detail.signature), ("encrypted", &detail.data)] {
                if let Some(data) = data.filled() {
                    out.push(opaque(lane, form, data));
                }
            }
        }
    }

    /// Content that is a list of parts.
    fn parts(&self, at: usize, parts: &[&RawValue], out: &mut Output) {
        let (text, reasoning) = (self.lane(Channel::Text), self.lane(Channel::Reasoning));
        for (place, raw) in parts.iter().enumerate() {
            let part: Part<'_> = parse(raw).unwrap_or_default();
            match (part.kind.as_str(), &part.thinking) {
                ("text", _) => {
                    out.delta(text, part.text, leaf("choices/*/delta/content/*/text", &[at, place]));
                }
                ("thinking", Content::Text(thinking)) => {
                    out.delta(reasoning, thinking.clone(), leaf("choices/*/delta/content/*/thinking", &[at, place]));
                }
                ("thinking", Content::Parts(thoughts)) => {
                    for (inner, thought) in thoughts.iter().enumerate() {
                        let place = leaf("choices/*/delta/content/*/thinking/*/text", &[at, place, inner]);
                        match parse::<Part<'_>>(thought).filter(|thought| thought.text.get().is_some()) {
                            Some(thought) => out.delta(reasoning, thought.text, place),
                            None => out.push(custom("delta.content.thinking", thought)),
                        }
                    }
                }
                ("image_url", _) if part.image_url.is_some() => self.image(part.image_url, out),
                _ => out.push(custom("delta.content", raw)),
            }
        }
    }

    /// A field of a delta that few events have. What is not known here but holds text is shown, lest it pass unseen.
    fn rare(&mut self, at: usize, key: &str, value: &RawValue, out: &mut Output) {
        if self.known(at, key, value, out).is_none() && value.get().contains('"') && is_filled(Some(value)) {
            out.push(custom(&format!("delta.{key}"), value));
        }
    }

    fn known(&mut self, at: usize, key: &str, value: &RawValue, out: &mut Output) -> Option<()> {
        match key {
            "tool_calls" => {
                for (place, call) in parse::<Vec<Call<'_>>>(value)?.iter().enumerate() {
                    self.call(call, leaf(call.path(), &[at, place]), out);
                }
            }
            "function_call" => {
                let call = Call { function: Some(parse(value)?), ..Call::default() };
                self.call(&call, leaf("choices/*/delta/function_call/arguments", &[at]), out);
            }
            // Read with the reasoning.
            "reasoning_details" => drop(parse::<Vec<Detail<'_>>>(value)?),
            "annotations" => {
                for note in parse::<Vec<&RawValue>>(value)? {
                    out.push(annotation(self.lane(Channel::Text), "citation", note));
                }
            }
            "audio" => {
                let audio: Audio<'_> = parse(value)?;
                let transcript = leaf("choices/*/delta/audio/transcript", &[at]);
                out.delta(self.lane(Channel::Transcript), audio.transcript, transcript);
                if let Some(data) = audio.data.filled() {
                    self.media("audio", None, MediaData::Base64(data.into()), out);
                }
            }
            "images" => {
                for image in parse::<Vec<Part<'_>>>(value)? {
                    self.image(image.image_url, out);
                }
            }
            _ => return None,
        }
        Some(())
    }

    fn call(&mut self, call: &Call<'_>, place: Leaf, out: &mut Output) {
        let function = call.function.as_ref().or(call.custom.as_ref());
        let arguments = function.and_then(|function| function.arguments.or(function.input));
        let arguments = arguments.filter(|raw| raw.get() != "null").map(plain).unwrap_or_default();
        let fragment = Fragment {
            index: call.index.0,
            id: call.id.as_str(),
            name: function.map(|function| function.name.as_str()).unwrap_or_default(),
            arguments: &arguments,
        };
        let lane = self.calls.take(self.lane(Channel::Arguments), fragment, out);
        out.delta(lane, arguments, place);
    }

    fn image(&self, raw: Option<&RawValue>, out: &mut Output) {
        let Some(image) = raw.and_then(parse::<ImageUrl<'_>>) else { return };
        let Some(url) = image.url.filled() else { return };
        match url.strip_prefix("data:").and_then(|url| url.split_once(";base64,")) {
            Some((mime, data)) => self.media("image", Some(mime.into()), MediaData::Base64(data.into()), out),
            None => self.media("image", None, MediaData::Url(url.into()), out),
        }
    }

    fn media(&self, form: &'static str, mime: Option<Text>, data: MediaData, out: &mut Output) {
        let media = Media { lane: self.lane(Channel::Text), form: Text::from_static(form), mime, data };
        out.push(Body::Media(Box::new(media)));
    }

    /// The whole message, which some servers send in every event or as the only one.
    fn whole(&mut self, at: usize, raw: &RawValue, out: &mut Output) {
        let Some(message) = parse::<Delta<'_>>(raw) else {
            out.push(custom("message", raw));
            return;
        };
        for (channel, text, path) in [
            (Channel::Reasoning, message.reasoning_content.filled(), "choices/*/message/reasoning_content"),
            (Channel::Reasoning, message.reasoning.filled(), "choices/*/message/reasoning"),
            (Channel::Text, message.content.filled(), "choices/*/message/content"),
            (Channel::Refusal, message.refusal.filled(), "choices/*/message/refusal"),
        ] {
            if let Some(text) = text {
                out.snapshot(self.lane(channel), text, leaf(path, &[at]));
            }
        }
        for (key, value) in &message.rest {
            match (key.as_str(), parse::<Vec<Call<'_>>>(value)) {
                ("tool_calls", Some(calls)) => {
                    for (place, call) in calls.iter().enumerate() {
                        let place_of = leaf("choices/*/message/tool_calls/*/function/arguments", &[at, place]);
                        match (self.calls.lane(call.id.as_str(), place), &call.function) {
                            (Some(lane), Some(function)) => {
                                let arguments = function.arguments.map(plain).unwrap_or_default();
                                out.snapshot(lane, arguments, place_of);
                            }
                            _ => self.call(call, place_of, out),
                        }
                    }
                }
                (key, _) if value.get().contains('"') && is_filled(Some(value)) => {
                    out.push(custom(&format!("message.{key}"), value));
                }
                _ => {}
            }
        }
        if let Content::Parts(parts) = &message.content {
            for part in parts {
                out.push(custom("message.content", part));
            }
        }
    }

    fn finish(&mut self, reason: FinishReason, stated: Option<Text>, out: &mut Output) {
        self.calls.end(out);
        if out.failed {
            out.stated_end = out.stated_end.take().or(stated);
        } else if !self.finished {
            self.finished = true;
            out.push(finish(self.choice, reason, stated));
        }
    }
}

/// The names under which an event has the same reasoning.
#[derive(Debug, Clone, Copy)]
enum Names {
    Content,
    Plain,
    Both,
}

impl Names {
    /// The places of these names, and of the detail that repeats them.
    fn path(self, detail: Option<&Detail<'_>>) -> &'static str {
        match (self, detail.map(Detail::is_text)) {
            (Names::Content, None) => "choices/*/delta/reasoning_content",
            (Names::Plain, None) => "choices/*/delta/reasoning",
            (Names::Both, None) => "choices/*/delta/reasoning_content|choices/*/delta/reasoning",
            (Names::Content, Some(true)) => {
                "choices/*/delta/reasoning_content|choices/*/delta/reasoning_details/*/text"
            }
            (Names::Content, Some(false)) => {
                "choices/*/delta/reasoning_content|choices/*/delta/reasoning_details/*/summary"
            }
            (Names::Plain, Some(true)) => "choices/*/delta/reasoning|choices/*/delta/reasoning_details/*/text",
            (Names::Plain, Some(false)) => "choices/*/delta/reasoning|choices/*/delta/reasoning_details/*/summary",
            (Names::Both, Some(true)) => {
                "choices/*/delta/reasoning_content|choices/*/delta/reasoning|choices/*/delta/reasoning_details/*/text"
            }
            (Names::Both, Some(false)) => {
                "choices/*/delta/reasoning_content|choices/*/delta/reasoning|choices/*/delta/reasoning_details/*/summary"
            }
        }
    }
}

/// Some servers have the key in every event, with nothing in it.
fn stated_error(error: Option<&RawValue>) -> Option<&RawValue> {
    error.filter(|error| error.get().starts_with(['{', '"']) && is_filled(Some(error)))
}

/// Where the message of an error stands: in an object or alone.
fn error_place(error: &RawValue) -> Leaf {
    let path = if error.get().starts_with('{') { "error/message" } else { "error" };
    Leaf::new(path, [0; 4])
}

fn reason(stated: &str) -> FinishReason {
    match stated {
        "stop" | "eos" | "end_turn" | "stop_sequence" => FinishReason::Stop,
        "length" | "max_tokens" | "model_length" => FinishReason::Length,
        "tool_calls" | "function_call" => FinishReason::ToolCalls,
        "content_filter" => FinishReason::ContentFilter,
        "refusal" => FinishReason::Refusal,
        word => FinishReason::Other(word.into()),
    }
}

fn has_logprobs(raw: &RawValue) -> bool {
    let Logprobs { content, refusal, tokens } = parse(raw).unwrap_or_default();
    [content, refusal, tokens].into_iter().any(is_filled)
}

/// Azure's filters speak in every event. Only what they found is worth a chunk.
fn filtered(lane: Lane, results: &RawValue, out: &mut Output) {
    if results.get().contains("true") {
        out.push(annotation(lane, "safety", results));
    }
}

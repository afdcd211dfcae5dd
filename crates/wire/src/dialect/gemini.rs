//! Gemini `streamGenerateContent`: every event is a piece of a whole response; parts have no index.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use streamkeeper_contract::{
    Body, Channel, FinishReason, Json, Lane, Media, MediaData, MessageInfo, ProviderToolOutput, Stated, Text, ToolCall,
    ToolCallStart, Usage,
};

use crate::output::{Leaf, Output};

use super::{
    Dialect, Event,
    chunks::{annotation, custom, finish, opaque},
    partial_args::PartialArgs,
    pull::Pull,
    read::{Flag, Lanes, List, Num, Str, choice as ordinal, error_info, is_filled, leaf, parse},
};

/// Reads one response.
///
/// Some servers state a finish reason in every event, so a finish is held back until the body ends.
#[derive(Debug, Default)]
pub(super) struct Gemini {
    choices: BTreeMap<u16, Choice>,
    usage: Usage,
    /// The counts stated last: events repeat them.
    counts: Counts,
    finishing: bool,
}

#[derive(Debug, Default)]
struct Choice {
    lanes: Lanes,
    begun: bool,
    /// The text that grows.
    open: Option<Lane>,
    /// A call whose arguments come in pieces.
    streamed: Option<Streamed>,
    /// The client has tools to run.
    calls: bool,
    safety: String,
    finish: Option<Held>,
}

/// A finish that is held back.
#[derive(Debug)]
enum Held {
    Stated(Text),
    /// The prompt was blocked, so there is no candidate to state a reason.
    Blocked,
}

#[derive(Debug)]
struct Streamed {
    lane: Lane,
    args: PartialArgs,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wire<'a> {
    #[serde(borrow)]
    candidates: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    prompt_feedback: Option<&'a RawValue>,
    #[serde(borrow)]
    usage_metadata: Option<&'a RawValue>,
    #[serde(borrow)]
    model_version: Str<'a>,
    #[serde(borrow)]
    response_id: Str<'a>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'a> {
    index: Num,
    #[serde(borrow)]
    content: Option<Content<'a>>,
    #[serde(borrow)]
    finish_reason: Str<'a>,
    #[serde(borrow)]
    finish_message: Option<&'a RawValue>,
    #[serde(borrow)]
    safety_ratings: Option<&'a RawValue>,
    #[serde(borrow)]
    citation_metadata: Option<&'a RawValue>,
    #[serde(borrow)]
    grounding_metadata: Option<&'a RawValue>,
    #[serde(borrow)]
    url_context_metadata: Option<&'a RawValue>,
    #[serde(borrow)]
    logprobs_result: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
struct Content<'a> {
    #[serde(borrow)]
    parts: Option<Vec<&'a RawValue>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    #[serde(borrow)]
    text: Str<'a>,
    thought: Flag,
    #[serde(borrow)]
    thought_signature: Str<'a>,
    #[serde(borrow)]
    function_call: Option<&'a RawValue>,
    #[serde(borrow)]
    executable_code: Option<&'a RawValue>,
    #[serde(borrow)]
    code_execution_result: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_call: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_response: Option<&'a RawValue>,
    #[serde(borrow)]
    inline_data: Option<&'a RawValue>,
    #[serde(borrow)]
    file_data: Option<&'a RawValue>,
    #[serde(borrow)]
    function_response: Option<&'a RawValue>,
}

impl Dialect for Gemini {
    fn event(&mut self, event: &Event<'_>, out: &mut Output) {
        match self.read(event, out) {
            Some(()) => out.known += 1,
            None => out.raw(event.name, event.data),
        }
    }

    fn finish(&mut self, out: &mut Output) {
        for (index, choice) in &mut self.choices {
            let Some(held) = choice.finish.take() else { continue };
            choice.end_parts(*index, out);
            let (reason, stated) = match held {
                Held::Stated(word) => (reason(&word, choice.calls), Some(word)),
                Held::Blocked => (FinishReason::ContentFilter, None),
            };
            if out.failed {
                out.stated_end = stated.or(out.stated_end.take());
            } else {
                out.push(finish(*index, reason, stated));
            }
        }
    }
}

impl Gemini {
    const MOST_CHOICES: usize = 1024;

    fn read(&mut self, event: &Event<'_>, out: &mut Output) -> Option<()> {
        if let Some(growth) = Growth::of_event(event.data)
            && let Some(choice) = self.choices.get_mut(&growth.choice).filter(|choice| choice.begun)
        {
            let lane = choice.text(growth.choice, growth.channel, out);
            out.delta(lane, growth.text, leaf(TEXT, &[0, 0]));
            self.count(growth.counts, None, out);
            return Some(());
        }
        let wire: Wire<'_> = serde_json::from_str(event.data).ok()?;
        if let Some(error) = wire.error {
            out.error_at(error_info(error), Leaf::new("error/message", [0; 4]));
            return Some(());
        }
        if wire.candidates.is_none() && wire.prompt_feedback.is_none() && wire.usage_metadata.is_none() {
            return None;
        }
        for (at, raw) in wire.candidates.iter().flatten().enumerate() {
            let Some(candidate) = parse::<Candidate<'_>>(raw) else {
                out.chunk(custom("candidate", raw), leaf("candidates/*", &[at]));
                continue;
            };
            let index = ordinal(candidate.index.0.unwrap_or(at as u64), out);
            if self.choices.len() == Self::MOST_CHOICES && !self.choices.contains_key(&index) {
                out.too_many("choices", Self::MOST_CHOICES);
                return Some(());
            }
            let choice = self.choices.entry(index).or_default();
            choice.begin(index, &wire, out);
            let parts = candidate.content.as_ref().and_then(|content| content.parts.as_ref());
            for (part_at, raw) in parts.into_iter().flatten().enumerate() {
                let part = parse(raw).unwrap_or_default();
                choice.part(index, &part, [at, part_at], raw, out);
            }
            choice.notes(index, at, &candidate, out);
            if let Some(stated) = candidate.finish_reason.filled() {
                choice.finish = Some(Held::Stated(stated.into()));
                self.finishing = true;
                out.ended = true;
            }
        }
        if let Some(feedback) = wire.prompt_feedback.filter(|feedback| is_filled(Some(feedback))) {
            let choice = self.choices.entry(0).or_default();
            choice.begin(0, &wire, out);
            out.chunk(annotation(Lane::TEXT, "safety", feedback), Leaf::new("promptFeedback", [0; 4]));
            if is_blocked(feedback) {
                choice.finish.get_or_insert(Held::Blocked);
                out.ended = true;
            }
        }
        if let Some(usage) = wire.usage_metadata {
            self.count(parse(usage).unwrap_or_default(), Some(usage), out);
        }
        Some(())
    }

    fn count(&mut self, counts: Counts, raw: Option<&RawValue>, out: &mut Output) {
        // The statement as written is kept from the last event on only: it would cost every event a copy.
        let raw = raw.filter(|_| self.finishing);
        if counts == Counts::default() || (counts == self.counts && (raw.is_none() || self.usage.stated.raw.is_some()))
        {
            return;
        }
        self.counts = counts;
        let mut usage = counts.usage();
        usage.stated.raw = raw.map(Json::from);
        self.usage.update(&usage);
        out.push(Body::Usage(Box::new(self.usage.clone())));
    }
}

impl Choice {
    fn begin(&mut self, choice: u16, wire: &Wire<'_>, out: &mut Output) {
        if !std::mem::replace(&mut self.begun, true) {
            let (id, model) = (wire.response_id.text(), wire.model_version.text());
            out.push(Body::MessageStart(Box::new(MessageInfo { choice, id, role: Some("assistant".into()), model })));
        }
    }

    fn part(&mut self, choice: u16, part: &Part<'_>, at: [usize; 2], raw: &RawValue, out: &mut Output) {
        let signature = part.thought_signature.filled();
        let lane = match part.text.get() {
            // An empty text only carries a signature for the text before it.
            Some("") | None if part.is_text() => {
                let channel = part.channel();
                signature.map(|_| self.open.unwrap_or_else(|| self.text(choice, channel, out)))
            }
            Some(_) => {
                let lane = self.text(choice, part.channel(), out);
                out.delta(lane, part.text.clone(), leaf(TEXT, &at));
                Some(lane)
            }
            None => self.other_part(choice, part, at, raw, out),
        };
        if let (Some(lane), Some(signature)) = (lane, signature) {
            out.chunk(opaque(lane, "signature", signature), leaf("candidates/*/content/parts/*/thoughtSignature", &at));
        }
        // What is no text and does not go on is a part of its own.
        if let Some(lane) = lane
            && self.open != Some(lane)
            && self.streamed.is_none()
        {
            out.push(Body::PartEnd { choice, part: lane.part });
        }
    }

    fn other_part(
        &mut self,
        choice: u16,
        part: &Part<'_>,
        at: [usize; 2],
        raw: &RawValue,
        out: &mut Output,
    ) -> Option<Lane> {
        if let Some(call) = part.function_call {
            self.function_call(choice, call, at, out)
        } else if let Some(code) = part.executable_code {
            let lane = self.provider_call(choice, code, out);
            if let Some(code) = parse::<Code<'_>>(code) {
                out.delta(lane, code.code, leaf("candidates/*/content/parts/*/executableCode/code", &at));
            }
            out.push(Body::ProviderToolEnd(lane));
            Some(lane)
        } else if let Some(call) = part.tool_call {
            let lane = self.provider_call(choice, call, out);
            out.chunk(custom("toolCall", call), leaf("candidates/*/content/parts/*/toolCall", &at));
            Some(lane)
        } else if let Some((name, output, path)) = part.tool_output() {
            let id = parse::<Named<'_>>(output).and_then(|named| named.id.text()).unwrap_or_default();
            let known = self.lanes.named(&id);
            let lane = known.unwrap_or_else(|| self.call(choice, Channel::ProviderTool, out));
            let output = ProviderToolOutput { lane, id, name: name.into(), output: Json::from(output) };
            out.chunk(Body::ProviderToolOutput(Box::new(output)).into(), leaf(path, &at));
            Some(lane).filter(|_| known.is_none())
        } else if let Some(data) = part.inline_data.or(part.file_data) {
            self.media(choice, data, at, out)
        } else {
            out.chunk(custom("part", raw), leaf("candidates/*/content/parts/*", &at));
            None
        }
    }

    /// The lane of text in this channel: the open one, or a new part.
    fn text(&mut self, choice: u16, channel: Channel, out: &mut Output) -> Lane {
        match self.open {
            Some(lane) if lane.channel == channel => lane,
            _ => {
                let part = self.next_part(choice, out);
                let lane = Lane::new(channel).in_choice(choice).in_part(part);
                self.open = Some(lane);
                lane
            }
        }
    }

    fn next_part(&mut self, choice: u16, out: &mut Output) -> u16 {
        self.end_parts(choice, out);
        self.lanes.part(out)
    }

    fn call(&mut self, choice: u16, channel: Channel, out: &mut Output) -> Lane {
        let part = self.next_part(choice, out);
        self.lanes.call(part, channel, out).in_choice(choice)
    }

    /// A call is whole, or begins with a name and gets its arguments in the events that follow; the last one does not continue.
    fn function_call(&mut self, choice: u16, raw: &RawValue, at: [usize; 2], out: &mut Output) -> Option<Lane> {
        #[derive(Default, Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Wire<'a> {
            #[serde(borrow)]
            id: Str<'a>,
            #[serde(borrow)]
            name: Str<'a>,
            #[serde(borrow)]
            args: Option<&'a RawValue>,
            #[serde(borrow)]
            partial_args: Option<List<'a>>,
            will_continue: Flag,
        }
        let Some(call) = parse::<Wire<'_>>(raw) else {
            out.chunk(custom("functionCall", raw), leaf("candidates/*/content/parts/*/functionCall", &at));
            return None;
        };
        if call.name.filled().is_some() || call.args.is_some() {
            let lane = self.call(choice, Channel::Arguments, out);
            let id = call.id.filled().map_or_else(|| Output::made_up_id(lane), Text::from);
            let name = call.name.text().unwrap_or_default();
            self.calls = true;
            if !call.will_continue.0 && call.partial_args.is_none() {
                let arguments = call.args.map_or("", RawValue::get).into();
                let whole = ToolCall { lane, id, name, arguments };
                let place = leaf("candidates/*/content/parts/*/functionCall/args", &at);
                out.chunk(Body::ToolCall(Box::new(whole)).into(), place);
                return Some(lane);
            }
            out.push(Body::ToolCallStart(Box::new(ToolCallStart { lane, id, name })));
            self.streamed = Some(Streamed { lane, args: PartialArgs::default() });
        }
        let streamed = self.streamed.as_mut()?;
        let lane = streamed.lane;
        let mut text = String::new();
        for (i, value) in call.partial_args.iter().flat_map(|list| &list.0).enumerate() {
            if streamed.args.add(value, &mut text).is_none() {
                let place = leaf("candidates/*/content/parts/*/functionCall/partialArgs/*", &[at[0], at[1], i]);
                out.chunk(custom("partialArgs", value), place);
            }
        }
        out.delta(lane, text, Leaf::NONE);
        if !call.will_continue.0 {
            self.end_call(out);
        }
        Some(lane)
    }

    /// Something that the provider runs. It is not announced as a call: Gemini shows it as content.
    fn provider_call(&mut self, choice: u16, raw: &RawValue, out: &mut Output) -> Lane {
        let lane = self.call(choice, Channel::ProviderTool, out);
        if let Some(named) = parse::<Named<'_>>(raw) {
            self.lanes.name(named.id.as_str(), lane);
        }
        lane
    }

    fn media(&mut self, choice: u16, raw: &RawValue, at: [usize; 2], out: &mut Output) -> Option<Lane> {
        #[derive(Default, Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Wire<'a> {
            #[serde(borrow)]
            mime_type: Str<'a>,
            #[serde(borrow)]
            data: Str<'a>,
            #[serde(borrow)]
            file_uri: Str<'a>,
        }
        let Some(wire) = parse::<Wire<'_>>(raw) else {
            out.chunk(
                custom("media", raw),
                leaf("candidates/*/content/parts/*/inlineData|candidates/*/content/parts/*/fileData", &at),
            );
            return None;
        };
        let part = self.next_part(choice, out);
        let lane = Lane::TEXT.in_choice(choice).in_part(part);
        let form = wire.mime_type.as_str().split('/').next().filter(|form| ["image", "audio", "video"].contains(form));
        let form = form.unwrap_or("file");
        let data = match wire.file_uri.filled() {
            Some(uri) => MediaData::Url(uri.into()),
            None => MediaData::Base64(wire.data.as_str().into()),
        };
        out.push(Body::Media(Box::new(Media { lane, form: form.into(), mime: wire.mime_type.text(), data })));
        Some(lane)
    }

    /// What a candidate says about its text.
    fn notes(&mut self, choice: u16, at: usize, candidate: &Candidate<'_>, out: &mut Output) {
        let lane = self.open.unwrap_or(Lane::TEXT.in_choice(choice));
        // Ratings are repeated in every event.
        let ratings = candidate.safety_ratings.filter(|ratings| ratings.get() != self.safety);
        if let Some(ratings) = ratings {
            ratings.get().clone_into(&mut self.safety);
        }
        for (form, value, path) in [
            ("citation", candidate.citation_metadata, "candidates/*/citationMetadata"),
            ("grounding", candidate.grounding_metadata, "candidates/*/groundingMetadata"),
            ("url_context", candidate.url_context_metadata, "candidates/*/urlContextMetadata"),
            ("logprobs", candidate.logprobs_result, "candidates/*/logprobsResult"),
            ("finish_message", candidate.finish_message, "candidates/*/finishMessage"),
            ("safety", ratings, "candidates/*/safetyRatings"),
        ] {
            if let Some(value) = value.filter(|value| is_filled(Some(value))) {
                out.chunk(annotation(lane, form, value), leaf(path, &[at]));
            }
        }
    }

    fn end_parts(&mut self, choice: u16, out: &mut Output) {
        for lane in [self.end_call(out), self.open.take()].into_iter().flatten() {
            out.push(Body::PartEnd { choice, part: lane.part });
        }
    }

    /// Ends the call whose arguments come in pieces.
    fn end_call(&mut self, out: &mut Output) -> Option<Lane> {
        let Streamed { lane, mut args } = self.streamed.take()?;
        let mut text = String::new();
        args.end(&mut text);
        out.delta(lane, text, Leaf::NONE);
        out.push(Body::ToolCallEnd(lane));
        Some(lane)
    }
}

#[derive(Default, Deserialize)]
struct Code<'a> {
    #[serde(borrow)]
    code: Str<'a>,
}

#[derive(Default, Deserialize)]
struct Named<'a> {
    #[serde(borrow)]
    id: Str<'a>,
}

impl<'a> Part<'a> {
    /// It has a text, maybe an empty one, or nothing but a signature.
    fn is_text(&self) -> bool {
        let others = [self.function_call, self.executable_code, self.tool_call, self.inline_data, self.file_data];
        let is_other = others.iter().any(Option::is_some) || self.tool_output().is_some();
        self.text.get().is_some() || (!is_other && self.thought_signature.filled().is_some())
    }

    fn channel(&self) -> Channel {
        if self.thought.0 { Channel::Reasoning } else { Channel::Text }
    }

    fn tool_output(&self) -> Option<(&'static str, &'a RawValue, &'static str)> {
        [
            ("codeExecutionResult", self.code_execution_result, "candidates/*/content/parts/*/codeExecutionResult"),
            ("toolResponse", self.tool_response, "candidates/*/content/parts/*/toolResponse"),
            ("functionResponse", self.function_response, "candidates/*/content/parts/*/functionResponse"),
        ]
        .into_iter()
        .find_map(|(name, output, path)| Some((name, output?, path)))
    }
}

fn is_blocked(feedback: &RawValue) -> bool {
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Wire<'a> {
        #[serde(borrow)]
        block_reason: Str<'a>,
    }
    parse::<Wire<'_>>(feedback).is_some_and(|wire| wire.block_reason.filled().is_some())
}

fn reason(stated: &str, calls: bool) -> FinishReason {
    match stated {
        "STOP" if calls => FinishReason::ToolCalls,
        "STOP" => FinishReason::Stop,
        "MAX_TOKENS" => FinishReason::Length,
        "SAFETY"
        | "RECITATION"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "IMAGE_SAFETY"
        | "IMAGE_RECITATION"
        | "IMAGE_PROHIBITED_CONTENT"
        | "MODEL_ARMOR" => FinishReason::ContentFilter,
        word => FinishReason::Other(word.into()),
    }
}

/// What the provider counts. The prompt includes what a cache served; results of tools that the provider ran are counted beside it, and
/// thoughts beside the candidates.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Counts {
    prompt_token_count: Num,
    candidates_token_count: Num,
    cached_content_token_count: Num,
    thoughts_token_count: Num,
    tool_use_prompt_token_count: Num,
    total_token_count: Num,
}

impl Counts {
    fn usage(self) -> Usage {
        let uncached = self.prompt_token_count.0.map(|prompt| {
            prompt
                .saturating_sub(self.cached_content_token_count.or_zero())
                .saturating_add(self.tool_use_prompt_token_count.or_zero())
        });
        Usage {
            uncached_input: uncached,
            cache_read: self.cached_content_token_count.0,
            output: self.candidates_token_count.0,
            reasoning: self.thoughts_token_count.0,
            stated: Stated {
                input: self.prompt_token_count.0,
                output: self.candidates_token_count.0,
                cached: self.cached_content_token_count.0,
                reasoning: self.thoughts_token_count.0,
                total: self.total_token_count.0,
                ..Stated::default()
            },
            ..Usage::default()
        }
    }

    fn read(json: &mut Pull<'_>) -> Option<Self> {
        let mut counts = Self::default();
        json.open(b'{')?;
        let mut first = true;
        while let Some(key) = json.key(&mut first)? {
            let count = match key {
                "promptTokenCount" => &mut counts.prompt_token_count,
                "candidatesTokenCount" => &mut counts.candidates_token_count,
                "cachedContentTokenCount" => &mut counts.cached_content_token_count,
                "thoughtsTokenCount" => &mut counts.thoughts_token_count,
                "toolUsePromptTokenCount" => &mut counts.tool_use_prompt_token_count,
                "totalTokenCount" => &mut counts.total_token_count,
                _ => {
                    json.skip()?;
                    continue;
                }
            };
            count.0 = Some(json.count()?);
        }
        Some(counts)
    }
}

const TEXT: &str = "candidates/*/content/parts/*/text";

/// A piece of the text of one candidate, and nothing else but counts.
#[derive(Debug)]
struct Growth<'a> {
    choice: u16,
    channel: Channel,
    text: Str<'a>,
    counts: Counts,
}

impl<'a> Growth<'a> {
    fn of_event(data: &'a str) -> Option<Self> {
        let mut json = Pull::object(data)?;
        let (mut candidate, mut counts) = (None, Counts::default());
        let mut first = true;
        while let Some(key) = json.key(&mut first)? {
            match key {
                "candidates" if candidate.is_none() => {
                    json.open(b'[')?;
                    let mut first = true;
                    json.more(&mut first, b']')?.then_some(())?;
                    candidate = Some(Self::read_candidate(&mut json)?);
                    json.at_end(&mut first, b']')?;
                }
                "usageMetadata" => counts = Counts::read(&mut json)?,
                "modelVersion" | "responseId" | "createTime" => json.skip()?,
                _ => return None,
            }
        }
        json.end()?;
        let (choice, channel, text) = candidate?;
        Some(Self { choice, channel, text, counts }).filter(|growth| growth.text.filled().is_some())
    }

    fn read_candidate(json: &mut Pull<'a>) -> Option<(u16, Channel, Str<'a>)> {
        let (mut choice, mut part) = (0, None);
        json.open(b'{')?;
        let mut first = true;
        while let Some(key) = json.key(&mut first)? {
            match key {
                "index" => choice = u16::try_from(json.count()?).ok()?,
                "content" if part.is_none() => {
                    json.open(b'{')?;
                    let mut first = true;
                    while let Some(key) = json.key(&mut first)? {
                        match key {
                            "parts" if part.is_none() => part = Some(Self::read_parts(json)?),
                            "role" => json.skip()?,
                            _ => return None,
                        }
                    }
                }
                _ => return None,
            }
        }
        let (channel, text) = part?;
        Some((choice, channel, text))
    }

    fn read_parts(json: &mut Pull<'a>) -> Option<(Channel, Str<'a>)> {
        let (mut channel, mut text) = (Channel::Text, None);
        json.open(b'[')?;
        let mut first = true;
        json.more(&mut first, b']')?.then_some(())?;
        json.open(b'{')?;
        let mut in_part = true;
        while let Some(key) = json.key(&mut in_part)? {
            match key {
                "text" if text.is_none() => text = Some(json.string()?),
                "thought" if json.flag()? => channel = Channel::Reasoning,
                "thought" => {}
                _ => return None,
            }
        }
        json.at_end(&mut first, b']')?;
        Some((channel, text?))
    }
}

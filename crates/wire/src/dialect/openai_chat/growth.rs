//! What nearly every event says: one choice grows by a piece of text. Read in one pass.

use super::{
    super::{pull::Pull, read::Str},
    wire::{Choice, Content, Delta},
};

/// The choice of such an event. `None` for an event that says more, or may.
pub(super) fn of_event(data: &str) -> Option<Choice<'_>> {
    let mut json = Pull::object(data)?;
    let mut choice = None;
    let mut first = true;
    while let Some(key) = json.key(&mut first)? {
        match key {
            "choices" if choice.is_none() => {
                let mut first = true;
                json.open(b'[')?;
                json.more(&mut first, b']')?.then_some(())?;
                choice = Some(read_choice(&mut json)?);
                json.at_end(&mut first, b']')?;
            }
            "choices" => return None,
            "usage" | "error" | "citations" | "prompt_filter_results" | "x_groq" => json.null()?,
            _ => json.skip()?,
        }
    }
    json.end()?;
    choice
}

fn read_choice<'a>(json: &mut Pull<'a>) -> Option<Choice<'a>> {
    let mut choice = Choice::default();
    let mut first = true;
    json.open(b'{')?;
    while let Some(key) = json.key(&mut first)? {
        match key {
            "index" => choice.index.0 = Some(json.count()?),
            "delta" if choice.delta.is_none() => choice.delta = Some(read_delta(json)?),
            "text" => set(&mut choice.text, json.string_or_null()?)?,
            "content_filter_results" => (!json.raw()?.contains("true")).then_some(())?,
            "delta" | "finish_reason" | "logprobs" | "message" | "usage" | "error" => json.null()?,
            _ => json.skip()?,
        }
    }
    Some(choice)
}

fn read_delta<'a>(json: &mut Pull<'a>) -> Option<Delta<'a>> {
    let mut delta = Delta::default();
    let mut content = Str::Unstated;
    let mut first = true;
    json.open(b'{')?;
    while let Some(key) = json.key(&mut first)? {
        match key {
            "content" => set(&mut content, json.string_or_null()?)?,
            "reasoning_content" => set(&mut delta.reasoning_content, json.string_or_null()?)?,
            "reasoning" => set(&mut delta.reasoning, json.string_or_null()?)?,
            "refusal" => set(&mut delta.refusal, json.string_or_null()?)?,
            "role" => drop(json.word_or_null()?),
            // Anything else may say more.
            _ => {
                let other = json.raw()?;
                (matches!(other, "[]" | "{}") || !other.contains(['"', '[', '{'])).then_some(())?;
            }
        }
    }
    delta.content = Content::Text(content);
    Some(delta)
}

/// Of a key that an object has twice the general way knows what to do.
fn set<'a>(field: &mut Str<'a>, text: Str<'a>) -> Option<()> {
    (*field == Str::Unstated).then(|| *field = text)
}

//! What a stream says, apart from how it is cut into chunks.

use std::collections::BTreeMap;

use streamkeeper_contract::{Body, Channel, Chunk, Lane};
use streamkeeper_wire::{Decoder, Format, is_made_up};

/// Texts, calls, finishes, and how many events make no sense.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Said {
    /// The parts of each choice and channel joined: formats cut them differently.
    pub(crate) texts: Vec<(u16, Channel, String)>,
    /// Id, name and arguments of the calls of the client and of the provider. An id that was made up is empty.
    pub(crate) calls: Vec<(String, String, String)>,
    pub(crate) finishes: Vec<(u16, String)>,
    pub(crate) errors: usize,
    pub(crate) raw: usize,
}

pub(crate) fn said(chunks: &[Chunk]) -> Said {
    let mut said = Said::default();
    let mut texts: BTreeMap<Lane, String> = BTreeMap::new();
    let mut calls: Vec<(Lane, String, String)> = Vec::new();
    for chunk in chunks {
        match chunk.body() {
            Body::Delta { lane, text } => texts.entry(*lane).or_default().push_str(text),
            Body::ToolCallStart(call) | Body::ProviderToolStart(call) => {
                calls.push((call.lane, call.id.to_string(), call.name.to_string()));
            }
            Body::ToolCall(call) => {
                calls.push((call.lane, call.id.to_string(), call.name.to_string()));
                texts.entry(call.lane).or_default().push_str(&call.arguments);
            }
            Body::Finish(finish) => said.finishes.push((finish.choice, finish.reason.as_str().into())),
            Body::Error(_) => said.errors += 1,
            Body::Raw(_) => said.raw += 1,
            _ => {}
        }
    }
    for (lane, id, name) in calls {
        let id = if is_made_up(&id) { String::new() } else { id };
        said.calls.push((id, name, texts.remove(&lane).unwrap_or_default()));
    }
    said.calls.sort();
    let mut joined: BTreeMap<(u16, Channel), String> = BTreeMap::new();
    texts.into_iter().for_each(|(lane, text)| joined.entry((lane.choice, lane.channel)).or_default().push_str(&text));
    said.texts = joined.into_iter().map(|((choice, channel), text)| (choice, channel, text)).collect();
    said.texts.retain(|(.., text)| !text.is_empty());
    said
}

/// The chunks of a whole stream.
#[track_caller]
pub(crate) fn decode(format: Format, body: &[u8]) -> Vec<Chunk> {
    let mut decoder = Decoder::new(format);
    decoder.push(body).and_then(|()| decoder.finish()).expect("the stream can be read");
    std::iter::from_fn(|| decoder.next_chunk()).collect()
}

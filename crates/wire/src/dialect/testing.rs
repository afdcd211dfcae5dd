//! What the tests of dialects share: events in, one short line a chunk out.

use streamkeeper_contract::{Body, Chunk, Lane, MediaData, Usage};

use crate::{
    Format,
    output::{Leaf, Output},
};

use super::{Event, reader};

/// The chunks that a reader of the format makes of these payloads, and of the end of the body, as lines.
pub(super) fn lines(format: Format, payloads: &[&str]) -> Vec<String> {
    read(format, payloads).0
}

/// The same with the output, which knows about ends and unknown events.
pub(super) fn read(format: Format, payloads: &[&str]) -> (Vec<String>, Output) {
    named(format, &payloads.iter().map(|data| ("", *data)).collect::<Vec<_>>())
}

/// The same with the names of the events.
pub(super) fn named(format: Format, events: &[(&str, &str)]) -> (Vec<String>, Output) {
    let mut reader = reader(format);
    let mut out = Output::default();
    for (name, data) in events {
        out.next_frame();
        reader.event(&Event { name: Some(*name).filter(|name| !name.is_empty()), data }, &mut out);
    }
    reader.finish(&mut out);
    let mut lines = Vec::new();
    while let Some((chunk, leaf)) = out.pop() {
        lines.push(line(&chunk, leaf));
    }
    (lines, out)
}

/// A chunk as a line: its kind, its lane, its content, and the place of its text after `@`.
fn line(chunk: &Chunk, leaf: Leaf) -> String {
    let kind = chunk.kind().as_str();
    let lane = chunk.lane().map(|lane| format!(" {}", lane_name(lane))).unwrap_or_default();
    let content = match chunk.body() {
        Body::MessageStart(message) => {
            let words = [message.id.as_deref(), message.role.as_deref(), message.model.as_deref()];
            let choice = if message.choice == 0 { String::new() } else { format!(" choice {}", message.choice) };
            format!("{choice} {}", words.map(|word| word.unwrap_or("-")).join(" "))
        }
        Body::RunStart(run) | Body::RunEnd(run) => {
            format!(" {} {}", run.run.as_deref().unwrap_or("-"), run.thread.as_deref().unwrap_or("-"))
        }
        Body::StepStart(name) | Body::StepEnd(name) => format!(" {name}"),
        Body::PartEnd { choice, part } => format!(" {choice}.{part}"),
        Body::ToolCallStart(call) | Body::ProviderToolStart(call) => format!(" {} {}", call.id, call.name),
        Body::ToolCall(call) => format!(" {} {} {}", call.id, call.name, call.arguments),
        Body::ToolResult(result) => {
            format!(" {}{} {:?}", result.id, if result.is_error { " error" } else { "" }, result.content.as_str())
        }
        Body::ProviderToolOutput(output) => format!(" {} {} {}", output.id, output.name, output.output.as_str()),
        Body::Opaque(opaque) => format!(" {} {}", opaque.form, opaque.data),
        Body::Annotation(note) => format!(" {} {}", note.form, note.value.as_str()),
        Body::Media(media) => {
            let (MediaData::Base64(data) | MediaData::Url(data) | MediaData::Id(data)) = &media.data else {
                unreachable!("a new kind of media data")
            };
            format!(" {} {} {data}", media.form, media.mime.as_deref().unwrap_or("-"))
        }
        Body::Usage(usage) => format!(" {}", usage_line(usage)),
        Body::Finish(finish) => {
            format!(" {} {} ({})", finish.choice, finish.reason.as_str(), finish.stated.as_deref().unwrap_or("-"))
        }
        Body::Error(error) => format!(" {} {}", error.code, error.message.as_deref().unwrap_or("-")),
        Body::Custom(custom) => format!(" {} {}", custom.name, custom.value.as_str()),
        Body::Raw(raw) => format!(" {} {}", raw.event.as_deref().unwrap_or("-"), raw.data),
        Body::Delta { text, .. } => format!(" {:?}", text.as_str()),
        _ => chunk.text().map(|text| format!(" {text:?}")).unwrap_or_default(),
    };
    let place = if leaf.path.is_empty() {
        String::new()
    } else {
        let path = |path: &str| {
            let mut stars = leaf.index.iter();
            path.chars()
                .map(|c| match c {
                    '*' => stars.next().map(u16::to_string).unwrap_or_default(),
                    c => c.to_string(),
                })
                .collect::<String>()
        };
        let path = leaf.path.split('|').map(path).collect::<Vec<_>>().join("|");
        format!(" @{}{path}", leaf.prefix)
    };
    format!("{kind}{lane}{content}{place}")
}

fn lane_name(lane: Lane) -> String {
    let call = if lane.call == 0 { String::new() } else { format!("#{}", lane.call) };
    format!("{}.{}{call}/{}", lane.choice, lane.part, lane.channel.as_str())
}

/// The buckets, and after `|` what the provider stated.
fn usage_line(usage: &Usage) -> String {
    let counts = |counts: &[(&str, Option<u64>)]| {
        counts.iter().filter_map(|(name, count)| Some(format!("{name} {}", (*count)?))).collect::<Vec<_>>().join(" ")
    };
    let buckets = counts(&[
        ("in", usage.uncached_input),
        ("read", usage.cache_read),
        ("write", usage.cache_write),
        ("out", usage.output),
        ("reasoning", usage.reasoning),
    ]);
    let stated = counts(&[
        ("in", usage.stated.input),
        ("out", usage.stated.output),
        ("cached", usage.stated.cached),
        ("write", usage.stated.cache_write),
        ("reasoning", usage.stated.reasoning),
        ("total", usage.stated.total),
    ]);
    format!("{buckets} | {stated}")
}

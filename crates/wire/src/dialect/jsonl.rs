//! Canonical chunks: an event is a chunk in its JSON form.

use std::collections::BTreeSet;

use streamkeeper_contract::{Body, Chunk, Outcome, Provenance, Text};

use crate::output::{Leaf, Output};

use super::{Dialect, Event, chunks::finish};

/// Reads chunks.
///
/// An `end` is not handed on, since whoever reads the chunks makes another one; what it says becomes a finish or an error, unless there was
/// one. Nor is provenance: its positions mean another stack.
#[derive(Debug, Default)]
pub(super) struct Jsonl {
    finished: BTreeSet<u16>,
}

impl Dialect for Jsonl {
    fn event(&mut self, event: &Event<'_>, out: &mut Output) {
        let Ok(chunk) = serde_json::from_str::<Chunk>(event.data) else {
            return out.raw(event.name, event.data);
        };
        out.known += 1;
        match chunk.body() {
            Body::End(end) => self.end(end.outcome(), out),
            Body::Error(error) => out.error_at(error.as_ref().clone(), Leaf::new("message", [0; 4])),
            Body::Finish(finish) if out.failed || !self.finished.insert(finish.choice) => {}
            _ => hand_on(chunk, out),
        }
    }
}

impl Jsonl {
    fn end(&mut self, outcome: &Outcome, out: &mut Output) {
        out.ended = true;
        match outcome {
            Outcome::Finished { reason } if !out.failed && self.finished.is_empty() => {
                self.finished.insert(0);
                out.push(finish(0, reason.clone(), None));
            }
            Outcome::Finished { .. } => {}
            Outcome::Failed { error } => out.error(error.clone()),
            other => out.stated_end = Some(Text::from_static(other.code())),
        }
    }
}

/// Hands on a chunk with the place of its text.
fn hand_on(mut chunk: Chunk, out: &mut Output) {
    chunk.meta_mut().provenance = Provenance::default();
    let path = match chunk.body() {
        Body::Delta { .. } | Body::Snapshot(_) => "text",
        Body::ToolCall(_) => "arguments",
        Body::ToolResult(_) => "content",
        Body::ProviderToolOutput(_) => "output",
        Body::Annotation(_)
        | Body::Custom(_)
        | Body::StateSnapshot(_)
        | Body::StateDelta(_)
        | Body::MessagesSnapshot(_) => "value",
        Body::Raw(_) => "data",
        _ => "",
    };
    out.chunk(chunk, Leaf::new(path, [0; 4]));
}

#[cfg(test)]
mod tests {
    use streamkeeper_contract::{Chunk, Lane, Offset};

    use super::super::testing::{lines, read};
    use crate::{Format, output::Output};

    // spec 2.1
    #[test]
    fn every_chunk_comes_back_with_the_place_of_its_text() {
        for (json, line) in [
            (r#"{"kind":"content_delta","text":"Hi"}"#, "content_delta 0.0/text \"Hi\" @text"),
            (r#"{"kind":"finish","reason":"stop","stated":"eos"}"#, "finish 0 stop (eos)"),
            (r#"{"kind":"error","code":"x","message":"no"}"#, "error x no @message"),
            (r#"{"kind":"custom","name":"n","value":1.50}"#, "custom n 1.50 @value"),
            (r#"{"kind":"raw","event":"e","data":"d"}"#, "raw e d @data"),
            (r#"{"kind":"heartbeat"}"#, "heartbeat"),
            (r#"{"kind":"of_tomorrow","x":1}"#, "unknown"),
            (r#"{"no":"kind"}"#, r#"raw - {"no":"kind"}"#),
            ("not JSON", "raw - not JSON"),
        ] {
            assert_eq!(lines(Format::Jsonl, &[json]), [line], "{json}");
        }
    }

    // spec 1.7, 2.4
    #[test]
    fn an_end_becomes_what_a_provider_would_have_said() {
        for (chunks, expected, ended) in [
            (
                &[r#"{"kind":"end","outcome":{"kind":"finished","reason":"stop"}}"#][..],
                &["finish 0 stop (-)"][..],
                true,
            ),
            (
                &[
                    r#"{"kind":"finish","reason":"length"}"#,
                    r#"{"kind":"end","outcome":{"kind":"finished","reason":"length"}}"#,
                ],
                &["finish 0 length (-)"],
                true,
            ),
            (&[r#"{"kind":"end","outcome":{"kind":"failed","error":{"code":"x"}}}"#], &["error x -"], true),
            (&[r#"{"kind":"end","outcome":{"kind":"truncated"}}"#], &[], true),
            (&[r#"{"kind":"content_delta","text":"a"}"#], &["content_delta 0.0/text \"a\" @text"], false),
        ] {
            let (lines, out) = read(Format::Jsonl, chunks);
            assert_eq!(lines, expected, "{chunks:?}");
            assert_eq!((out.ended, out.unknown), (ended, 0), "{chunks:?}");
        }
    }

    // spec 1.12, 3.10
    #[test]
    fn the_stated_offset_stays_and_provenance_goes() {
        let mut chunk = Chunk::delta(Lane::TEXT, "a").at(Offset(7));
        chunk.meta_mut().provenance.add(3);
        let json = serde_json::to_string(&chunk).unwrap();
        let mut reader = super::super::reader(Format::Jsonl);
        let mut out = Output::default();
        reader.event(&super::Event { name: None, data: &json }, &mut out);
        let (read, _) = out.pop().unwrap();
        assert_eq!(read.offset(), Offset(7));
        assert!(read.provenance().is_empty());
    }
}

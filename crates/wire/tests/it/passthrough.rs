//! Passthrough: spec 2.8.

use std::collections::BTreeMap;

use proptest::prelude::*;
use streamkeeper_contract::{Body, Channel, Chunk, Lane, Meta};
use streamkeeper_wire::{Decoder, Format, Passthrough, PassthroughError};

use crate::{
    said::{decode, said},
    streams::{self, Stream},
};

/// Lets everything pass; the bytes come `size` at a time.
fn identity(format: Format, body: &[u8], size: usize) -> Vec<u8> {
    let mut pass = Passthrough::new(Decoder::new(format));
    let (mut chunks, mut out) = (Vec::new(), Vec::new());
    let mut drain = |pass: &mut Passthrough| {
        while pass.next_frame(&mut chunks).expect("the stream can be read") {
            pass.write(&chunks, &mut out).expect("nothing was changed");
        }
    };
    for bytes in body.chunks(size) {
        pass.push(bytes).expect("the stream can be read");
        drain(&mut pass);
    }
    pass.finish().expect("the stream can be read");
    drain(&mut pass);
    out
}

/// The bytes that can be read: the last event of a stream that was broken off never leaves.
fn whole(stream: &Stream) -> &[u8] {
    let cut_off = stream.path.starts_with("cut-off");
    let blank = || stream.body.windows(2).rposition(|two| two == b"\n\n");
    &stream.body[..if cut_off { blank().map_or(0, |at| at + 2) } else { stream.body.len() }]
}

// spec 2.8, 3.5
#[test]
fn an_event_that_is_not_utf8_is_changed_or_withheld_in_every_framing() {
    let event = |text: &[u8]| [br#"{"candidates":[{"content":{"parts":[{"text":""#, text, br#""}]}}]}"#].concat();
    let (first, second) = (event(b"\xFFsecret"), event(b"clear\xFF"));
    let array = [b"[", &first[..], b",\n", &second, b"]"].concat();
    let sse = [b"data: ", &first[..], b"\n\ndata: ", &second, b"\n\n"].concat();
    let lines = [&first[..], b"\n", &second, b"\n"].concat();
    for body in [array, sse, lines] {
        assert_eq!(identity(Format::Gemini, &body, 7), body, "untouched, it leaves as it came");
        for new in [None, Some(""), Some("amended")] {
            let mut pass = Passthrough::new(Decoder::new(Format::Gemini));
            let (mut chunks, mut out) = (Vec::new(), Vec::new());
            pass.push(&body).unwrap();
            pass.finish().unwrap();
            while pass.next_frame(&mut chunks).unwrap() {
                let change = |chunk: Chunk| match chunk.text().filter(|text| text.contains("secret")) {
                    Some(_) => new.and_then(|new| chunk.with_text(new)),
                    None => Some(chunk),
                };
                let delivered: Vec<Chunk> = chunks.drain(..).filter_map(change).collect();
                pass.write(&delivered, &mut out).unwrap();
            }
            let said = String::from_utf8_lossy(&out);
            assert!(!said.contains("secret") && said.contains("clear"), "{new:?}: {said}");
            assert_eq!(said.contains("amended"), new == Some("amended"), "{said}");
            let mut again = Decoder::new(Format::Gemini);
            again.push(&out).and_then(|()| again.finish()).unwrap();
            assert_eq!(again.stats().unknown, 0, "{said}");
        }
    }
}

// spec 2.8
#[test]
fn what_nobody_changed_leaves_byte_for_byte_however_it_is_cut() {
    for stream in streams::all() {
        for size in [1, 2, 3, 7, 64, usize::MAX] {
            let out = identity(stream.format, &stream.body, size);
            assert!(out == whole(&stream), "{}, {size} bytes at a time", stream.path);
        }
    }
}

// spec 2.8, 3.15
#[test]
fn what_an_event_repeats_in_another_shape_goes_with_its_text() {
    let event = |text: &str, raw: &str| {
        format!(
            "data: {{\"type\":\"TEXT_MESSAGE_CONTENT\",\"messageId\":\"m\",\"delta\":\"{text}\",\"rawEvent\":{raw}}}\n\n"
        )
    };
    let free = event("free", r#"{"chunk":["free"]}"#);
    let body = event("secret", r#"{"chunk":["secret"]}"#) + &free;
    let mut pass = Passthrough::new(Decoder::new(Format::AgUi));
    pass.push(body.as_bytes()).unwrap();
    let (mut chunks, mut out) = (Vec::new(), Vec::new());
    while pass.next_frame(&mut chunks).unwrap() {
        for chunk in chunks.iter_mut().filter(|chunk| chunk.text() == Some("secret")) {
            *chunk = chunk.with_text("[gone]").unwrap();
            chunk.meta_mut().provenance.add(0);
        }
        pass.write(&chunks, &mut out).unwrap();
    }
    assert_eq!(String::from_utf8(out).unwrap(), event("[gone]", "null") + &free);
}

/// An observer that does to text what the stack allows, as a script of bytes says.
struct Editor<'a> {
    script: std::iter::Cycle<std::slice::Iter<'a, u8>>,
    holds: BTreeMap<Lane, (String, Meta)>,
    /// Makes tool calls out of text.
    calls: bool,
    made: u16,
}

const NASTY: &str = "«\"\\\n\u{1}\u{2028}🦀»";

impl<'a> Editor<'a> {
    fn new(script: &'a [u8], calls: bool) -> Self {
        Self { script: script.iter().cycle(), holds: BTreeMap::new(), calls, made: 0 }
    }

    fn next(&mut self) -> u8 {
        *self.script.next().expect("a script is never empty")
    }

    fn feed(&mut self, chunk: Chunk, out: &mut Vec<Chunk>) {
        let Body::Delta { lane, text } = chunk.body() else {
            let held: Vec<Lane> = self.holds.keys().copied().filter(|lane| chunk.is_barrier_for(*lane)).collect();
            held.into_iter().for_each(|lane| self.release(lane, 0, out));
            out.push(chunk);
            return;
        };
        let lane = *lane;
        let may_edit = !matches!(lane.channel, Channel::Arguments | Channel::ProviderTool);
        let decision = self.next() % 8;
        if !self.holds.contains_key(&lane) {
            match decision {
                0..3 => return out.push(chunk),
                3 if may_edit => {
                    let mut amended = chunk.with_text(format!("{NASTY}{text}")).expect("a delta has text");
                    amended.meta_mut().provenance.add(0);
                    return out.push(amended);
                }
                _ => {}
            }
        }
        let hold = self.holds.entry(lane).or_default();
        hold.0.push_str(text);
        hold.1 = chunk.meta().clone();
        match decision {
            0..4 => self.release(lane, 0, out),
            4 => {
                let keep = usize::from(self.next());
                self.release(lane, keep, out);
            }
            _ => {}
        }
    }

    fn release(&mut self, lane: Lane, keep: usize, out: &mut Vec<Chunk>) {
        let Some((text, mut meta)) = self.holds.remove(&lane) else { return };
        meta.provenance.add(0);
        let cut = (0..=text.len().saturating_sub(keep)).rev().find(|cut| text.is_char_boundary(*cut)).unwrap_or(0);
        let (released, kept) = text.split_at(cut);
        let decision = self.next() % 6;
        let may_edit = !matches!(lane.channel, Channel::Arguments | Channel::ProviderTool);
        let mut say = |text: &str| {
            if !text.is_empty() {
                out.push(Chunk::delta(lane, text).with_meta(meta.clone()));
            }
        };
        match decision {
            0 if may_edit => say("[gone]"),
            1 if may_edit => {}
            2 if may_edit && self.calls => {
                say("before");
                self.made += 1;
                let call = Chunk::tool_call(
                    lane.arguments(0x8000 + self.made),
                    format!("derived_{}", self.made),
                    "made_up",
                    r#"{"a":"b"}"#,
                );
                out.push(call.with_meta(meta.clone()));
                out.push(Chunk::delta(lane, "after").with_meta(meta.clone()));
            }
            3 => released.chars().for_each(|c| say(c.encode_utf8(&mut [0; 4]))),
            _ => say(released),
        }
        if !kept.is_empty() {
            self.holds.insert(lane, (kept.to_owned(), meta));
        }
    }

    fn finish(&mut self, out: &mut Vec<Chunk>) {
        let held: Vec<Lane> = self.holds.keys().copied().collect();
        held.into_iter().for_each(|lane| self.release(lane, 0, out));
    }
}

/// One stream through an editor: what was delivered, what was written, and whether something had no place.
struct Edited {
    delivered: Vec<Chunk>,
    out: Vec<u8>,
    lost: Option<PassthroughError>,
}

fn edit(stream: &Stream, script: &[u8], calls: bool) -> Edited {
    let mut editor = Editor::new(script, calls);
    let mut pass = Passthrough::new(Decoder::new(stream.format));
    // Beside it, the same stream untouched: to compare frame by frame.
    let mut twin = Passthrough::new(Decoder::new(stream.format));
    let (mut chunks, mut same, mut raw) = (Vec::new(), Vec::new(), Vec::new());
    let mut edited = Edited { delivered: Vec::new(), out: Vec::new(), lost: None };
    let mut counts_on = calls;
    for pass in [&mut pass, &mut twin] {
        pass.push(&stream.body).expect("the stream can be read");
        pass.finish().expect("the stream can be read");
    }
    while pass.next_frame(&mut chunks).expect("the stream can be read") {
        raw.clear();
        twin.next_frame(&mut same).expect("the stream can be read");
        twin.write(&same, &mut raw).expect("nothing was changed");
        let mut delivered = Vec::new();
        chunks.drain(..).for_each(|chunk| editor.feed(chunk, &mut delivered));
        let from = edited.out.len();
        edited.lost = pass.write(&delivered, &mut edited.out).err().or(edited.lost);
        // An event that was put in has a number too, where events have one.
        let own = |chunk: &Chunk| same.iter().any(|same| same.origin() == chunk.origin());
        counts_on |= stream.format == Format::OpenAiResponses && !delivered.iter().all(own);
        if delivered == same && !counts_on {
            assert!(edited.out[from..] == raw, "{}: an untouched event changed", stream.path);
        }
        edited.delivered.append(&mut delivered);
    }
    let mut rest = Vec::new();
    editor.finish(&mut rest);
    edited.lost = pass.release(&rest, &mut edited.out).err().or(edited.lost);
    edited.delivered.append(&mut rest);
    edited
}

/// Streams in which a text has no bytes of its own: fragments of arguments that only the decoder puts together.
fn has_no_place(stream: &Stream) -> bool {
    stream.path.contains("streamed_function_args")
}

/// Streams whose format has no place for a tool call.
fn takes_no_calls(stream: &Stream) -> bool {
    matches!(stream.format, Format::OpenAiCompletions | Format::Raw) || stream.path.starts_with("ollama/generate")
}

#[track_caller]
fn check(stream: &Stream, script: &[u8], calls: bool) -> Result<(), TestCaseError> {
    let edited = edit(stream, script, calls);
    if has_no_place(stream) || (calls && takes_no_calls(stream)) {
        return Ok(());
    }
    prop_assert_eq!(edited.lost, None, "{}", &stream.path);
    let (mut delivered, mut written) = (said(&edited.delivered), said(&decode(stream.format, &edited.out)));
    if calls {
        // Some formats say by the calls themselves that they are why the model stopped.
        delivered.finishes.iter_mut().chain(&mut written.finishes).for_each(|finish| finish.1.clear());
    }
    prop_assert_eq!(delivered, written, "{}", &stream.path);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    // spec 2.8
    #[test]
    fn what_was_delivered_is_what_is_written(script in prop::collection::vec(any::<u8>(), 1..40)) {
        for stream in streams::all() {
            check(&stream, &script, false)?;
        }
    }

    // spec 2.8
    #[test]
    fn a_tool_call_made_out_of_text_has_events_of_its_own(script in prop::collection::vec(any::<u8>(), 1..40)) {
        for stream in streams::all() {
            check(&stream, &script, true)?;
        }
    }
}

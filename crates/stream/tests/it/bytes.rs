//! Provider bytes through observers and out again (spec 2.8, 3.11).

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use futures_executor::block_on;
use futures_util::{StreamExt, stream};
use streamkeeper_contract::{
    Body, Channel, Chunk, ChunkKind, FailureReport, FailureSink, Lane, Outcome, Piece, Release, Verdict, id,
};
use streamkeeper_stream::{
    Interest, InvocationResult, ObserveBytesExt, ObservedBytes, ObservedError, ObserverContext, Observers, Recorder,
    Registration, StreamObserver, StreamWatcher, Tape, from_fn,
};
use streamkeeper_wire::{Decoder, Format};

#[derive(Clone)]
struct Idle;

impl StreamWatcher for Idle {
    fn on_chunk(&mut self, _: &Chunk, _: &mut ObserverContext<'_>) {}
}

/// Asks a function for each delta.
#[derive(Clone)]
struct Does(fn(&mut ObserverContext<'_>) -> Verdict);

impl StreamObserver for Does {
    fn on_chunk(&mut self, chunk: &Chunk, ctx: &mut ObserverContext<'_>) -> Verdict {
        if chunk.is_delta() { (self.0)(ctx) } else { Verdict::Continue }
    }

    fn on_barrier(&mut self, _: &mut ObserverContext<'_>) -> Verdict {
        Verdict::Continue
    }
}

/// Writes `î` for each `i`, which no JSON keyword has.
#[derive(Clone)]
struct Hat;

impl StreamObserver for Hat {
    fn interest(&self) -> Interest {
        Interest::TEXT
    }

    fn on_chunk(&mut self, chunk: &Chunk, ctx: &mut ObserverContext<'_>) -> Verdict {
        match chunk.with_text(ctx.pending().replace('i', "î")) {
            Some(amended) => Verdict::Amend(amended),
            None => Verdict::Continue,
        }
    }
}

fn watched() -> Observers {
    Registration::watcher(id!("idle"), Idle).into()
}

fn guarded(does: fn(&mut ObserverContext<'_>) -> Verdict) -> Observers {
    Registration::guard(id!("guard"), Does(does)).into()
}

fn own(file: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/streams").join(file)).unwrap()
}

/// The project's own streams, and the recorded ones where they are there.
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
fn streams() -> Vec<(String, Vec<u8>)> {
    let mut streams = Vec::new();
    for file in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/streams")).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        if name != "expected.jsonl" && name != "README.md" {
            let body = own(&name);
            streams.push((name, body));
        }
    }
    let folder = std::env::var_os("STREAMKEEPER_STREAMS")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/streams"), PathBuf::from);
    let Ok(index) = fs::read_to_string(folder.join("INDEX.tsv")) else {
        eprintln!("SKIPPED: recorded streams not found at {}", folder.display());
        return streams;
    };
    let paths = index.lines().skip(1).filter_map(|line| line.split('\t').next());
    streams.extend(paths.map(|path| (path.to_owned(), fs::read(folder.join(path)).unwrap())));
    streams
}

fn observe_as(decoder: Decoder, body: &[u8], observers: &Observers, read: usize) -> (Vec<u8>, ObservedBytes) {
    let mut observed = ObservedBytes::new(decoder, observers.stack(&Default::default()));
    let mut out = Vec::new();
    for bytes in body.chunks(read) {
        observed.push(bytes);
        out.extend(observed.take());
    }
    observed.finish();
    out.extend(observed.take());
    (out, observed)
}

fn observe(body: &[u8], observers: &Observers, read: usize) -> (Vec<u8>, ObservedBytes) {
    observe_as(Decoder::detect(), body, observers, read)
}

fn decode(path: &str, format: Format, body: &[u8]) -> Vec<Chunk> {
    let mut decoder = Decoder::new(format);
    let read = decoder.push(body).and_then(|()| decoder.finish());
    assert!(read.is_ok(), "{path}: {read:?}");
    std::iter::from_fn(|| decoder.next_chunk()).collect()
}

/// The text of each lane, and of its last snapshot. Parts are not told apart: a format that does not number them may join two.
fn texts(chunks: &[Chunk]) -> BTreeMap<(Lane, bool), String> {
    let mut texts = BTreeMap::<_, String>::new();
    let mut snapshots = BTreeMap::new();
    for chunk in chunks {
        match chunk.body() {
            Body::Delta { lane, text } => texts.entry((lane.in_part(0), false)).or_default().push_str(text),
            Body::Snapshot(snapshot) => {
                snapshots.insert(snapshot.lane, snapshot.text.to_string());
            }
            _ => {}
        }
    }
    for (lane, text) in snapshots {
        texts.entry((lane.in_part(0), true)).or_default().push_str(&text);
    }
    texts.retain(|_, text| !text.is_empty());
    texts
}

/// Arguments in pieces by JSON path: their text has no place of its own in the bytes, and that is reported.
fn has_unwritable_text(path: &str) -> bool {
    path.contains("vertex_streamed_function_args")
}

/// But for deltas, usage, and log probabilities, which go where their text is held.
fn kinds(chunks: &[Chunk]) -> Vec<ChunkKind> {
    let is_logprobs = |chunk: &Chunk| matches!(chunk.body(), Body::Annotation(note) if note.is_logprobs());
    let kinds = chunks.iter().filter(|chunk| !chunk.is_delta() && !is_logprobs(chunk)).map(Chunk::kind);
    kinds.filter(|kind| *kind != ChunkKind::Usage).collect()
}

#[test]
fn watched_bytes_are_the_providers_bytes() {
    // spec 2.8
    for (path, body) in streams() {
        for read in [1, 7, 64, body.len()] {
            let (out, observed) = observe(&body, &watched(), read);
            if observed.outcome().unwrap().code() == "truncated" {
                // What was broken off does not leave, and an ending is added.
                let last = body.windows(2).rposition(|bytes| bytes == b"\n\n").unwrap() + 2;
                assert!(out.starts_with(&body[..last]), "{path} in reads of {read}");
            } else {
                assert!(out == body, "{path} in reads of {read}");
            }
        }
    }
}

#[test]
fn text_that_is_held_and_let_go_again_is_all_there() {
    // spec 2.8, 3.7
    let holds_all = guarded(|_| Verdict::Buffer);
    let holds_three = guarded(|ctx| {
        let pending = ctx.pending();
        let keep = pending.char_indices().rev().nth(2).map_or(pending.len(), |(at, _)| pending.len() - at);
        Release::unchanged().keep(keep).into()
    });
    for (path, body) in streams() {
        for observers in [&holds_all, &holds_three] {
            let failures = Arc::new(Failures::default());
            let observers = observers.clone().failures(failures.clone());
            let (out, observed) = observe(&body, &observers, 64);
            let format = observed.decoder().format().unwrap();
            let (before, after) = (decode(&path, format, &body), decode(&path, format, &out));
            let failures = failures.0.lock().unwrap();
            if has_unwritable_text(&path) {
                assert_eq!(failures[0].to_string(), "`passthrough` failed in on_chunk: not_run", "{path}");
                continue;
            }
            assert!(failures.is_empty(), "{path}: {failures:?}");
            if observed.outcome().unwrap().code() == "finished" {
                assert_eq!(texts(&after), texts(&before), "{path}");
                assert_eq!(kinds(&after), kinds(&before), "{path}");
            }
        }
    }
}

#[test]
fn an_amended_text_is_amended_in_its_repeats_too() {
    // spec 1.3, 2.8
    let observers = Observers::from(Registration::guard(id!("guard"), Hat));
    for (path, body) in streams().into_iter().filter(|(path, _)| !has_unwritable_text(path)) {
        let (out, observed) = observe(&body, &observers, 64);
        let format = observed.decoder().format().unwrap();
        let (before, after) = (decode(&path, format, &body), decode(&path, format, &out));
        let expected: BTreeMap<_, _> =
            texts(&before).into_iter().map(|(lane, text)| (lane, text.replace('i', "î"))).collect();
        assert_eq!(texts(&after), expected, "{path}");
    }
}

#[test]
fn an_amend_in_the_middle_leaves_all_other_events_as_they_were() {
    // spec 2.8
    let observers = guarded(|ctx| match ctx.pending() {
        " 48213" => Verdict::Amend(Chunk::delta(Lane::TEXT, " [order]")),
        _ => Verdict::Continue,
    });
    let body = String::from_utf8(own("support-chat.openai.sse")).unwrap();
    let (out, _) = observe(body.as_bytes(), &observers, 100);
    assert!(body.contains(r#""content":" 48213""#));
    let expected = body.replace(r#""content":" 48213""#, r#""content":" [order]""#);
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

#[test]
fn a_stop_writes_a_valid_ending_of_the_format() {
    // spec 2.8, 3.5
    let observers = guarded(|ctx| match ctx.delivered_len() {
        0..20 => Verdict::Continue,
        _ => Verdict::stop("enough", "twenty bytes are enough"),
    });
    for (file, ending) in [
        ("support-chat.openai.sse", "\"finish_reason\":\"content_filter\"}]}\n\ndata: [DONE]\n\n"),
        ("support-chat.anthropic.sse", "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"),
    ] {
        let body = own(file);
        let (out, observed) = observe(&body, &observers, 50);
        let out = String::from_utf8(out).unwrap();
        assert!(out.ends_with(ending), "{file}: {out}");
        assert_eq!(observed.outcome().unwrap().code(), "stopped");
        let chunks = decode(file, observed.decoder().format().unwrap(), out.as_bytes());
        let (_, text) = texts(&chunks).into_iter().find(|((lane, _), _)| lane.channel.as_str() == "text").unwrap();
        let Outcome::Stopped(stop) = &**observed.outcome().unwrap() else { panic!("{file} is stopped") };
        assert_eq!(text.len() as u64, stop.accumulated_content_length, "{file}");
    }
}

#[derive(Default)]
struct Failures(Mutex<Vec<FailureReport>>);

impl FailureSink for Failures {
    fn report(&self, failure: &FailureReport) {
        self.0.lock().unwrap().push(failure.clone());
    }
}

#[test]
fn bytes_that_cannot_be_read_on_fail_the_invocation() {
    // spec 2.3, 3.11
    for (body, code) in [("", "empty"), ("no stream at all\n", "undetected")] {
        let (_, observed) = observe(body.as_bytes(), &watched(), 64);
        let Outcome::Failed { error } = &**observed.outcome().unwrap() else { panic!("{code}") };
        assert_eq!(error.code, code);
    }
}

#[test]
fn what_the_format_cannot_say_is_reported() {
    // spec 2.8
    let failures = Arc::new(Failures::default());
    let observers =
        guarded(|_| Release::pieces([Piece::ToolCall { name: "look".into(), arguments: "{}".into() }]).into())
            .failures(failures.clone());
    let body = "data: {\"choices\":[{\"index\":0,\"text\":\"hi\",\"finish_reason\":\"stop\"}],\"object\":\"text_completion\"}\n\ndata: [DONE]\n\n";
    let decoder = Decoder::new(Format::OpenAiCompletions);
    let (out, observed) = observe_as(decoder, body.as_bytes(), &observers, 1000);
    assert!(!String::from_utf8(out).unwrap().contains("hi"), "what was withheld stays so");
    assert_eq!(observed.outcome().unwrap().code(), "finished");
    assert_eq!(failures.0.lock().unwrap()[0].to_string(), "`passthrough` failed in on_chunk: not_run");
}

#[test]
fn thoughts_made_out_of_an_answer_go_where_the_format_has_them() {
    // spec 2.8, 3.6
    let thought: fn(&mut ObserverContext<'_>) -> Verdict = |ctx| match ctx.pending().split_once("hm") {
        Some((before, after)) => {
            let pieces = [Piece::Text(before.into()), Piece::Reasoning("hm".into()), Piece::Text(after.into())];
            Release::pieces(pieces).into()
        }
        None => Verdict::Continue,
    };
    let of = |chunks: &[Chunk], channel: Channel| -> String {
        let is_of = |chunk: &&Chunk| chunk.is_delta() && chunk.lane().is_some_and(|lane| lane.channel == channel);
        chunks.iter().filter(is_of).filter_map(Chunk::text).collect()
    };
    for (format, body) in [
        (
            Format::OpenAiChat,
            "data: {\"id\":\"1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a hm b\"}}]}\n\ndata: {\"id\":\"1\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
        ),
        (
            Format::Ollama,
            "{\"model\":\"m\",\"message\":{\"role\":\"assistant\",\"content\":\"a hm b\"},\"done\":false}\n{\"model\":\"m\",\"message\":{\"role\":\"assistant\",\"content\":\"\"},\"done\":true,\"done_reason\":\"stop\"}\n",
        ),
        (
            Format::Ollama,
            "{\"model\":\"m\",\"response\":\"a hm b\",\"done\":false}\n{\"model\":\"m\",\"response\":\"\",\"done\":true,\"done_reason\":\"stop\"}\n",
        ),
    ] {
        let failures = Arc::new(Failures::default());
        let observers = guarded(thought).failures(failures.clone());
        let (out, observed) = observe_as(Decoder::new(format), body.as_bytes(), &observers, 1000);
        let mut decoder = Decoder::new(format);
        decoder.push(&out).unwrap();
        decoder.finish().unwrap();
        let chunks: Vec<Chunk> = std::iter::from_fn(|| decoder.next_chunk()).collect();
        assert_eq!((of(&chunks, Channel::Text), of(&chunks, Channel::Reasoning)), ("a  b".into(), "hm".into()));
        assert_eq!(observed.outcome().unwrap().code(), "finished");
        assert!(failures.0.lock().unwrap().is_empty());
    }
    let failures = Arc::new(Failures::default());
    let (out, _) = observe(
        &own("support-chat.anthropic.sse"),
        &guarded(|ctx| match ctx.lane().map(|lane| lane.channel) {
            Some(Channel::Text) => Release::pieces([Piece::Reasoning(ctx.pending().into())]).into(),
            _ => Verdict::Continue,
        })
        .failures(failures.clone()),
        1000,
    );
    let chunks = decode("support-chat.anthropic.sse", Format::AnthropicMessages, &out);
    assert_eq!(of(&chunks, Channel::Text), "");
    assert_eq!(failures.0.lock().unwrap()[0].to_string(), "`passthrough` failed in on_chunk: not_run");
}

struct Results(Arc<Mutex<Vec<InvocationResult>>>);

impl StreamWatcher for Results {
    fn on_chunk(&mut self, _: &Chunk, _: &mut ObserverContext<'_>) {}

    fn on_end_invocation(&mut self, result: &InvocationResult, _: &mut ObserverContext<'_>) {
        self.0.lock().unwrap().push(result.clone());
    }
}

fn results() -> (Observers, Arc<Mutex<Vec<InvocationResult>>>) {
    let results = Arc::new(Mutex::new(Vec::new()));
    let seen = results.clone();
    (Registration::watcher(id!("results"), from_fn(move |_| Results(seen.clone()))).into(), results)
}

#[test]
fn bytes_that_nobody_took_were_not_delivered() {
    // spec 3.9
    let (observers, results) = results();
    let body = own("support-chat.openai.sse");
    let mut observed = ObservedBytes::new(Decoder::detect(), observers.stack(&Default::default()));
    observed.push(&body);
    observed.finish();
    drop(observed);
    let result = results.lock().unwrap()[0].clone();
    assert_eq!(*result.outcome, Outcome::Dropped);
    assert_eq!((result.delivered_len, result.chunks_out), (0, 0));
    assert!(result.withheld_len > 0);
}

type Read = Result<Vec<u8>, io::Error>;

#[test]
fn a_body_stream_ends_once_and_quietly_if_asked() {
    // spec 3.11
    let body = own("support-chat.openai.sse");
    let reads = |fails: bool| {
        let mut reads: Vec<Read> = body.chunks(100).map(|read| Ok(read.to_vec())).collect();
        if fails {
            reads.truncate(10);
            reads.push(Err(io::Error::other("reset")));
        }
        stream::iter(reads)
    };
    let stops = || guarded(|_| Verdict::stop("no", "no"));

    let out: Vec<_> = block_on(reads(false).observed_sse(watched()).collect());
    let bytes: Vec<u8> = out.into_iter().flat_map(Result::unwrap).collect();
    assert_eq!(bytes, body);

    let mut out: Vec<_> = block_on(reads(false).observed_sse(stops()).collect());
    assert!(matches!(out.pop(), Some(Err(ObservedError::Ended(outcome))) if outcome.code() == "stopped"));
    assert!(out.iter().all(Result::is_ok));
    let quiet: Vec<Read> = block_on(reads(false).observed_sse(stops()).quiet().collect());
    let quiet: Vec<u8> = quiet.into_iter().flat_map(Result::unwrap).collect();
    let loud: Vec<u8> = out.into_iter().flat_map(Result::unwrap).collect();
    assert_eq!(quiet, loud);
    assert!(quiet.ends_with(b"data: [DONE]\n\n"));

    let mut out: Vec<_> = block_on(reads(true).observed_sse(watched()).collect());
    assert!(matches!(out.pop(), Some(Err(ObservedError::Source(error))) if error.to_string() == "reset"));
    let ending: Vec<u8> = out.into_iter().next_back().unwrap().unwrap();
    assert!(ending.ends_with(b"data: [DONE]\n\n"), "the reader's parser is not left hanging");
}

#[test]
fn a_source_is_not_asked_again_after_a_stop() {
    // spec 3.5
    let body = own("support-chat.openai.sse");
    let mut asked = 0;
    let reads = stream::poll_fn(|_| {
        asked += 1;
        std::task::Poll::Ready(Some(Ok::<_, io::Error>(body.clone())))
    });
    let observed = reads.observed_sse(guarded(|_| Verdict::stop("no", "no")));
    let out: Vec<_> = block_on(observed.quiet().collect());
    assert!(!out.is_empty());
    assert_eq!(asked, 1);
}

#[test]
fn a_recording_of_bytes_replays() {
    // spec 3.14
    let tape = Tape::new();
    let observers = guarded(|ctx| Release::unchanged().keep(ctx.pending().len().min(1)).into());
    let ctx = Default::default();
    let stack = observers.builder(&ctx).recorder(Recorder::raw_sensitive(tape.clone())).build();
    let body = own("support-chat.anthropic.sse");
    let mut observed = ObservedBytes::new(Decoder::detect(), stack);
    observed.push(&body);
    observed.finish();
    observed.take();
    let recording = tape.recording().unwrap().into_raw().unwrap();
    assert_eq!(recording.replay(&observers).run().difference, None);
    assert_eq!(recording.recording().outcome().unwrap().code(), "finished");
}

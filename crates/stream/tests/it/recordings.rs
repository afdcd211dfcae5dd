//! Recordings, replay, explanations and determinism: spec 3.10, 3.14.

use std::{
    io::{self, Write},
    sync::Arc,
};

use streamkeeper_contract::{CallClass, Chunk, ErrorInfo, Offset, Outcome, Release, Text, Verdict, id};
use streamkeeper_stream::{
    Entry, NotRaw, ObserverFactoryContext, Observers, RawRecording, Recorder, Recording, RecordingError, Registration,
    Stack, Tape, Track, View, explain,
};

use crate::support::*;

/// Holds a trailing `k` or `ke`, masks `key`, tells each mask as an event.
fn masks() -> Registration {
    let on = On::delta(|_, ctx| {
        let pending = ctx.pending();
        let keep = ["ke", "k"].iter().find(|tail| pending.ends_with(**tail)).map_or(0, |tail| tail.len());
        let head = &pending[..pending.len() - keep];
        if head.contains("key") {
            ctx.emit(event("masked"));
            return Release::text(head.replace("key", "***")).keep(keep).into();
        }
        Release::unchanged().keep(keep).into()
    });
    Registration::guard(id!("mask"), on).version("1.2.0")
}

fn stops_at(word: &'static str) -> Registration {
    struct Stops(&'static str);
    impl streamkeeper_stream::StreamObserver for Stops {
        fn on_chunk(&mut self, _: &Chunk, ctx: &mut streamkeeper_stream::ObserverContext<'_>) -> Verdict {
            if ctx.pending().contains(self.0) { Verdict::stop("word", "a word came") } else { Verdict::Continue }
        }
    }
    Registration::guard(id!("stops"), streamkeeper_stream::from_fn(move |_| Stops(word)))
}

fn chunks() -> Vec<Chunk> {
    let at = |chunk: Chunk, at| chunk.at(Offset(at));
    vec![
        at(text("my k"), 1_000),
        Chunk::heartbeat(Offset(1_500)),
        at(text("ey is"), 2_000),
        at(text(" secret"), 3_000),
        at(finish(), 4_000),
    ]
}

/// Records while the chunks go through, ended as given.
fn record(
    make: fn(Tape) -> Recorder,
    observers: &Observers,
    chunks: impl IntoIterator<Item = Chunk>,
    end: impl FnOnce(&mut Stack),
) -> Tape {
    let tape = Tape::new();
    let mut ctx = ObserverFactoryContext::new(CallClass::Converse);
    ctx.model = Some("m-1".into());
    ctx.policy_hash = Some("sha256:00".into());
    let mut stack =
        observers.builder(&ctx).failures(Arc::new(Failures::default())).recorder(make(tape.clone())).build();
    for chunk in chunks {
        stack.push(chunk);
        while stack.pop().is_some() {}
    }
    end(&mut stack);
    tape
}

fn drain(stack: &mut Stack) {
    while stack.pop().is_some() {}
}

fn finished(stack: &mut Stack) {
    stack.finish();
    drain(stack);
}

fn raw(tape: &Tape) -> RawRecording {
    tape.recording().unwrap().into_raw().unwrap()
}

#[test]
fn a_delivered_recording_holds_what_was_delivered_and_nothing_that_was_withheld() {
    // spec 3.14
    let observers = list([masks()]);
    let tape = record(Recorder::delivered, &observers, chunks(), finished);
    let expected = r#"
{"record":"header","view":"delivered","version":1,"call_class":"converse","ordinal":0,"model":"m-1","observers":[{"id":"mask","version":"1.2.0","role":"guard"}],"policy_hash":"sha256:00"}
{"record":"verdict","index":0,"observer":"mask","hook":"on_chunk","lane":{"channel":"text"},"action":"release","rule":"verdict"}
{"record":"output","index":0,"chunk":{"kind":"content_delta","at":1000,"amended_by":[0],"text":"my "}}
{"record":"output","index":1,"chunk":{"kind":"heartbeat","at":1500}}
{"record":"event","index":2,"observer":"mask","event":{"channel":"test","name":"masked","payload":"payload"}}
{"record":"verdict","index":2,"observer":"mask","hook":"on_chunk","lane":{"channel":"text"},"action":"release","changes":true,"rule":"verdict"}
{"record":"output","index":2,"chunk":{"kind":"content_delta","at":2000,"amended_by":[0],"text":"*** is"}}
{"record":"output","index":3,"chunk":{"kind":"content_delta","at":3000,"text":" secret"}}
{"record":"output","index":4,"chunk":{"kind":"finish","at":4000,"reason":"stop"}}
{"record":"output","index":5,"chunk":{"kind":"end","outcome":{"kind":"finished","reason":"stop"}}}
{"record":"outcome","outcome":{"kind":"finished","reason":"stop"},"summary":{"chunks_in":5,"chunks_out":6,"delivered_len":16,"withheld_len":0,"duration":4000}}
"#;
    assert_eq!(tape.lines().trim(), expected.trim());
    assert!(!tape.lines().contains("ey"), "no part of what was masked");
}

#[test]
fn a_raw_recording_holds_the_input_the_silence_and_each_verdict() {
    // spec 3.14, 3.10
    let observers = list([masks(), stops_at("secret")]);
    let tape = record(Recorder::raw_sensitive, &observers, chunks(), |_| {});
    let expected = r#"
{"record":"header","view":"raw","version":1,"call_class":"converse","ordinal":0,"model":"m-1","observers":[{"id":"mask","version":"1.2.0","role":"guard"},{"id":"stops","role":"guard"}],"policy_hash":"sha256:00"}
{"record":"input","index":0,"chunk":{"kind":"content_delta","at":1000,"text":"my k"}}
{"record":"verdict","index":0,"observer":"mask","hook":"on_chunk","lane":{"channel":"text"},"action":"release","rule":"verdict","verdict":{"kind":"release","keep":1}}
{"record":"output","index":0,"chunk":{"kind":"content_delta","at":1000,"amended_by":[0],"text":"my "}}
{"record":"input","index":1,"chunk":{"kind":"heartbeat","at":1500}}
{"record":"output","index":1,"chunk":{"kind":"heartbeat","at":1500}}
{"record":"input","index":2,"chunk":{"kind":"content_delta","at":2000,"text":"ey is"}}
{"record":"event","index":2,"observer":"mask","event":{"channel":"test","name":"masked","payload":"payload"}}
{"record":"verdict","index":2,"observer":"mask","hook":"on_chunk","lane":{"channel":"text"},"action":"release","changes":true,"rule":"verdict","verdict":{"kind":"release","pieces":[{"kind":"text","text":"*** is"}]}}
{"record":"output","index":2,"chunk":{"kind":"content_delta","at":2000,"amended_by":[0],"text":"*** is"}}
{"record":"input","index":3,"chunk":{"kind":"content_delta","at":3000,"text":" secret"}}
{"record":"verdict","index":3,"observer":"stops","hook":"on_chunk","lane":{"channel":"text"},"action":"stop","changes":true,"rule":"verdict","verdict":{"kind":"stop","code":"word","reason":"a word came"}}
{"record":"withheld","index":3,"lane":{"channel":"text"},"len":7,"text":" secret"}
{"record":"output","index":3,"chunk":{"kind":"end","outcome":{"kind":"stopped","observer":"stops","code":"word","reason":"a word came","chunk_index":3,"accumulated_content_length":9}}}
{"record":"outcome","outcome":{"kind":"stopped","observer":"stops","code":"word","reason":"a word came","chunk_index":3,"accumulated_content_length":9},"summary":{"chunks_in":4,"chunks_out":4,"delivered_len":9,"withheld_len":7,"duration":3000}}
"#;
    assert_eq!(tape.lines().trim(), expected.trim());
}

#[test]
fn what_is_held_at_a_cancel_is_in_the_record() {
    // spec 3.7
    let tape = record(Recorder::raw_sensitive, &list([masks()]), [text("if k")], |stack| {
        stack.abort(None);
        drain(stack);
    });
    let withheld = tape.recording().unwrap().entries().iter().find_map(|entry| match entry {
        Entry::Withheld { text, len, .. } => Some((text.clone(), *len)),
        _ => None,
    });
    assert_eq!(withheld, Some((Some(Text::from("k")), 1)));
    let tape = record(Recorder::delivered, &list([masks()]), [text("if k")], |stack| stack.abort(None));
    assert!(tape.lines().contains(r#""len":1}"#), "its length alone where the text may not be kept");
}

#[test]
fn a_recording_reads_as_it_was_written() {
    // spec 3.14
    for make in [Recorder::delivered as fn(Tape) -> Recorder, Recorder::raw_sensitive] {
        let tape = record(make, &list([masks(), stops_at("nothing")]), chunks(), finished);
        let recording = tape.recording().unwrap();
        let mut written = Vec::new();
        recording.write(&mut written).unwrap();
        assert_eq!(String::from_utf8(written).unwrap(), tape.lines());
        assert_eq!(recording.outcome().unwrap().code(), "finished");
        assert_eq!(recording.header().model.as_deref(), Some("m-1"));
    }
}

#[test]
fn lines_of_kinds_to_come_are_counted_and_broken_ones_are_named() {
    // spec 3.14
    let tape = record(Recorder::delivered, &list([masks()]), chunks(), finished);
    let lines: Vec<_> = tape.lines().lines().map(str::to_owned).collect();
    let read = |lines: &[&str]| Recording::read(lines.join("\n").as_bytes());
    let header = lines[0].as_str();
    let recording = read(&[header, r#"{"record":"mood","of":"the model"}"#, "", &lines[2]]).unwrap();
    assert_eq!((recording.unknown(), recording.entries().len()), (1, 1));
    assert!(recording.outcome().is_none());

    let error = |lines: &[&str]| read(lines).unwrap_err().to_string();
    assert_eq!(error(&[]), "this is no recording: its first line is no header");
    assert_eq!(error(&[&lines[2], header]), "this is no recording: its first line is no header");
    assert_eq!(error(&["data: hello"]), "this is no recording: its first line is no header");
    assert_eq!(error(&[header, &lines[2], header]), "line 3 is a second header");
    assert_eq!(
        error(&[&header.replace(r#""version":1"#, r#""version":2"#)]),
        "the recording has version 2 of its format; this reader knows up to 1"
    );
    for broken in [&lines[2][..40], r#"{"record":"output","index":0}"#, r#"{"record":"output","index":-1,"chunk":{}}"#]
    {
        let error = error(&[header, &lines[2], broken]);
        assert!(error.starts_with("line 3 is broken: "), "{error}");
    }
    let not_text = Recording::read([header.as_bytes(), b"\n\xff\n"].concat().as_slice()).unwrap_err();
    assert!(matches!(not_text, RecordingError::Line { line: 2, .. }));
}

#[test]
fn a_reader_that_fails_is_told_apart() {
    // spec 3.14
    struct Broken;
    impl io::Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("disk"))
        }
    }
    let error = Recording::read(io::BufReader::new(Broken)).unwrap_err();
    assert_eq!(error.to_string(), "line 1 cannot be read");
}

#[test]
fn what_was_delivered_cannot_be_replayed() {
    // spec 3.14
    let tape = record(Recorder::delivered, &list([masks()]), chunks(), finished);
    let recording = tape.recording().unwrap();
    assert_eq!(recording.header().view, View::Delivered);
    assert_eq!(recording.into_raw().unwrap_err(), NotRaw);
}

#[test]
fn a_replay_gives_the_same_bytes_however_the_invocation_ended() {
    // spec 3.10, 3.14
    let ends: [(&str, End); 8] = [
        ("finished", finished),
        ("failed", |stack| {
            stack.fail(ErrorInfo::new("source_error"));
            drain(stack);
        }),
        ("aborted", |stack| {
            stack.abort(Some("enough".into()));
            drain(stack);
        }),
        ("suspended", |stack| {
            stack.end_with(Outcome::Suspended { interrupts: Vec::new() });
            drain(stack);
        }),
        ("dropped", |_| {}),
        ("finished and not taken", Stack::finish),
        ("aborted and not taken", |stack| stack.abort(None)),
        ("finished, then some of it taken", |stack| {
            stack.push(text("tail k"));
            stack.finish();
            stack.pop();
        }),
    ];
    for stop in ["nothing", "secret"] {
        let observers = list([masks(), stops_at(stop)]);
        for (name, end) in ends {
            let tape = record(Recorder::raw_sensitive, &observers, chunks(), end);
            let recording = raw(&tape);
            let replayed = recording.replay(&observers).run();
            assert_eq!(replayed.difference.map(|difference| difference.to_string()), None, "{name}");
            let again = replayed.recording.replay(&observers).run();
            let (mut one, mut two) = (Vec::new(), Vec::new());
            // The replay's own recording has no end of the source of its own making, so it is complete.
            replayed.recording.recording().write(&mut one).unwrap();
            again.recording.recording().write(&mut two).unwrap();
            assert_eq!(String::from_utf8(one).unwrap(), String::from_utf8(two).unwrap(), "{name}");
        }
    }
}

#[test]
fn the_time_of_taking_makes_no_difference() {
    // spec 3.10
    let observers = list([masks()]);
    let tape = Tape::new();
    let ctx = ObserverFactoryContext::default();
    let mut stack = observers.builder(&ctx).recorder(Recorder::raw_sensitive(tape.clone())).build();
    chunks().into_iter().for_each(|chunk| stack.push(chunk));
    stack.finish();
    drain(&mut stack);
    assert_eq!(raw(&tape).replay(&observers).run().difference, None);
}

#[test]
fn a_changed_observer_is_found_at_the_first_chunk_that_differs() {
    // spec 3.10, 3.14
    let recording = raw(&record(Recorder::raw_sensitive, &list([masks(), stops_at("nothing")]), chunks(), finished));
    let cases = [
        (list([masks(), stops_at("is")]), 2, Track::Verdict),
        (list([masks(), stops_at("secret")]), 3, Track::Verdict),
        (list([stops_at("nothing")]), 0, Track::Verdict),
        (
            list([
                masks(),
                Registration::transform(
                    id!("stops"),
                    On::delta(|chunk, ctx| match ctx.pending() {
                        " secret" => Verdict::Amend(chunk.with_text(" SECRET").unwrap()),
                        _ => Verdict::Continue,
                    }),
                ),
            ]),
            3,
            Track::Verdict,
        ),
        (
            list([
                masks(),
                Registration::transform(
                    id!("stops"),
                    On::delta(|_, ctx| {
                        if ctx.chunk_index() == 3 {
                            ctx.emit(event("new"));
                        }
                        Verdict::Continue
                    }),
                ),
            ]),
            3,
            Track::Event,
        ),
        (
            list([
                masks(),
                Registration::transform(
                    id!("stops"),
                    On::delta(|_, ctx| if ctx.chunk_index() == 2 { blow_up() } else { Verdict::Continue }),
                ),
            ]),
            2,
            Track::Failure,
        ),
    ];
    for (observers, index, track) in cases {
        let difference = recording.replay(&observers).run().difference.unwrap();
        assert_eq!((difference.index, difference.track), (index, track), "{difference}");
    }
    let difference = recording.replay(&list([masks(), stops_at("secret")])).run().difference.unwrap();
    assert!(difference.expected.is_none());
    assert!(difference.got.unwrap().contains(r#""action":"stop""#));
}

#[test]
fn a_replay_runs_in_recorded_time_if_the_caller_waits() {
    // spec 3.14
    let observers = list([masks()]);
    let recording = raw(&record(Recorder::raw_sensitive, &observers, chunks(), finished));
    let mut replay = recording.replay(&observers);
    let mut told = Vec::new();
    while let Some(at) = replay.next_offset() {
        let step = replay.next().unwrap();
        assert_eq!(step.at, at);
        told.push((at.0, step.chunks.iter().map(show).collect::<Vec<_>>().join(" ")));
    }
    let expected = [
        (1_000, "text:my "),
        (1_500, "heartbeat"),
        (2_000, "text:*** is"),
        (3_000, "text: secret"),
        (4_000, "finish:stop"),
        (4_000, "end:finished"),
    ];
    assert_eq!(told, expected.map(|(at, out)| (at, out.to_owned())));
    assert_eq!(replay.run().difference, None);
}

#[test]
fn a_replay_sends_nothing_to_live_sinks() {
    // spec 3.14
    let (queue, failures) = (Arc::new(streamkeeper_stream::EventQueue::bounded(9)), Arc::new(Failures::default()));
    let recording = raw(&record(Recorder::raw_sensitive, &list([masks()]), chunks(), finished));
    let faulty = Registration::transform(id!("faulty"), On::delta(|_, _| blow_up()));
    let observers = list([masks(), faulty]).events(queue.clone()).failures(failures.clone());
    assert!(recording.replay(&observers).run().difference.is_some());
    assert!(queue.is_empty() && failures.reports().is_empty());
}

#[test]
fn an_observer_that_needs_more_than_the_header_tells_gets_it_from_the_caller() {
    // spec 3.14
    let tells = || {
        let factory = streamkeeper_stream::from_fn(|ctx: &ObserverFactoryContext| {
            if ctx.system_prompt.is_some() {
                On::delta(|_, _| Verdict::stop("x", "x"))
            } else {
                On::delta(|_, _| Verdict::Continue)
            }
        });
        list([Registration::guard(id!("tells"), factory).when(CallClass::Converse)])
    };
    let recording = raw(&record(Recorder::raw_sensitive, &tells(), chunks(), finished));
    assert_eq!(recording.replay(&tells()).run().difference, None, "the call class is in the header");
    let mut ctx = recording.context();
    ctx.system_prompt = Some("be kind".into());
    assert!(recording.replay_in(&tells(), &ctx).run().difference.is_some());
}

#[test]
fn a_recorder_that_fails_is_reported_and_let_go_of() {
    // spec 3.14
    struct Full(u32);
    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += 1;
            match self.0 {
                0..=6 => Ok(bytes.len()),
                7 => Err(io::Error::other("disk full")),
                _ => blow_up(),
            }
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    for (start, kind) in [(0, "error"), (100, "panic")] {
        let failures = Arc::new(Failures::default());
        let ctx = ObserverFactoryContext::default();
        let observers = list([masks()]).failures(failures.clone());
        let mut stack = observers.builder(&ctx).recorder(Recorder::raw_sensitive(Full(start))).build();
        chunks().into_iter().for_each(|chunk| stack.push(chunk));
        stack.finish();
        let out: Vec<_> = std::iter::from_fn(|| stack.pop()).map(|chunk| show(&chunk)).collect();
        assert_eq!(out.last().unwrap(), "end:finished");
        assert_eq!(failures.reports(), [format!("recorder record {kind}")]);
    }
}

#[test]
fn an_explanation_names_chunk_observer_verdict_and_rule() {
    // spec 3.14
    let faulty = || {
        Registration::guard(
            id!("faulty"),
            On::delta(|_, ctx| if ctx.pending().contains("secret") { blow_up() } else { Verdict::Continue }),
        )
    };
    let cases: [(Observers, &str); 5] = [
        (list([]), "finished (stop)\nnothing was changed"),
        (list([masks()]), "finished (stop)\nchunk 2, text: `mask` release, rule verdict"),
        (
            list([masks(), stops_at("secret")]),
            "stopped by `stops` (word) at chunk 3 after 9 bytes of text: a word came\n\
             chunk 2, text: `mask` release, rule verdict\n\
             chunk 3, text: `stops` stop (word), rule verdict",
        ),
        (list([faulty()]), "failed: guard_failed (`faulty`)\nchunk 3: `faulty` failed in on_chunk: panic"),
        (
            list([faulty().on_failure(streamkeeper_stream::OnFailure::Placeholder("[gone]".into()))]),
            "finished (stop)\n\
             chunk 3: `faulty` failed in on_chunk: panic\n\
             chunk 3, text: `faulty` placeholder, rule on_failure",
        ),
    ];
    for (observers, expected) in cases {
        for make in [Recorder::delivered as fn(Tape) -> Recorder, Recorder::raw_sensitive] {
            let tape = record(make, &observers, chunks(), finished);
            assert_eq!(explain(&tape.recording().unwrap()).to_string(), expected);
        }
    }
    let tape = record(Recorder::delivered, &list([]), chunks(), |_| {});
    let cut: String = tape.lines().lines().take(2).collect::<Vec<_>>().join("\n");
    let recording = Recording::read(cut.as_bytes()).unwrap();
    assert!(explain(&recording).to_string().starts_with("the recording was cut off"));
}

#[test]
fn nothing_of_a_raw_recording_shows_when_it_is_printed() {
    // spec 3.14: typed as sensitive
    let tape = record(Recorder::raw_sensitive, &list([masks()]), chunks(), finished);
    let recording = raw(&tape);
    let replay = recording.replay(&list([stops_at("secret")]));
    let printed = format!("{recording:?} {:?} {replay:?} {tape:?}", recording.recording().entries());
    assert!(!printed.contains("secret") && !printed.contains("my "), "{printed}");
    let difference = replay.run().difference;
    assert!(!format!("{difference:?}").contains("my "));
}

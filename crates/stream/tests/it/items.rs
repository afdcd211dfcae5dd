//! Streams of a client's own items (spec 3.11).

use std::sync::{Arc, Mutex};

use futures_executor::block_on;
use futures_util::{Stream, StreamExt, stream};
use streamkeeper_contract::{
    Channel, Chunk, ChunkKind, FailureReport, FailureSink, FinishReason, Lane, Outcome, Piece, Release, ToolCall,
    Verdict, id,
};
use streamkeeper_stream::{
    InvocationResult, ObserveExt, ObservedError, ObserverContext, ObserverFactoryContext, Observers, Part,
    Registration, StreamItem, StreamObserver, StreamWatcher, from_fn,
};

#[derive(Debug, Clone, Default, PartialEq)]
struct Item {
    id: u32,
    texts: Vec<(Lane, String)>,
    snapshot: Option<(Lane, String)>,
    call: Option<String>,
    finish: Option<FinishReason>,
}

impl StreamItem for Item {
    fn visit(&mut self, _: &mut (), f: &mut dyn FnMut(Part<'_>)) {
        for (lane, text) in &mut self.texts {
            f(Part::Delta(*lane, text));
        }
        if let Some((lane, text)) = &mut self.snapshot {
            f(Part::Snapshot(*lane, text));
        }
        if let Some(reason) = &self.finish {
            f(Part::Fixed(Chunk::finish(0, reason.clone())));
        }
    }

    fn synth(_: &mut (), like: Option<&Self>, lane: Lane, text: &str) -> Option<Self> {
        let id = like.map_or(0, |like| like.id);
        (lane.channel != Channel::Refusal).then(|| Item { id, texts: vec![(lane, text.to_owned())], ..Item::default() })
    }

    fn synth_tool_call(_: &mut (), like: Option<&Self>, call: &ToolCall) -> Option<Self> {
        let id = like.map_or(0, |like| like.id);
        Some(Item { id, call: Some(format!("{}{}", call.name, call.arguments)), ..Item::default() })
    }

    fn like(&self) -> Option<Self> {
        Some(Item { id: self.id, ..Item::default() })
    }
}

const REASONING: Lane = Lane::new(Channel::Reasoning);

fn text(lane: Lane, text: &str) -> Item {
    Item { id: 7, texts: vec![(lane, text.to_owned())], ..Item::default() }
}

fn finish() -> Item {
    Item { id: 7, finish: Some(FinishReason::Stop), ..Item::default() }
}

/// What an item says, in one line.
fn show(item: &Item) -> String {
    let mut parts: Vec<_> = item.texts.iter().map(|(lane, text)| format!("{}:{text}", lane.channel.as_str())).collect();
    parts.extend(item.snapshot.as_ref().map(|(_, text)| format!("snapshot:{text}")));
    parts.extend(item.call.clone());
    parts.extend(item.finish.as_ref().map(|reason| reason.as_str().to_owned()));
    parts.join("+")
}

/// Holds a `<` until more text comes, removes `x`, turns `T` into a tool call, stops at `!`.
#[derive(Clone)]
struct Editor;

impl StreamObserver for Editor {
    fn on_chunk(&mut self, chunk: &Chunk, ctx: &mut ObserverContext<'_>) -> Verdict {
        let pending = ctx.pending();
        match chunk.kind() {
            ChunkKind::Snapshot => return Verdict::Continue,
            _ if !chunk.is_delta() => return Verdict::Continue,
            _ => {}
        }
        if pending.contains('!') {
            return Verdict::stop("bang", "a bang");
        }
        if let Some((before, after)) = pending.split_once('T') {
            let call = Piece::ToolCall { name: "look".into(), arguments: "{}".into() };
            return Release::pieces([Piece::Text(before.into()), call, Piece::Text(after.into())]).into();
        }
        if pending.contains('x') {
            return Release::text(pending.replace('x', "")).into();
        }
        if pending.ends_with('<') {
            return Release::unchanged().keep(1).into();
        }
        Verdict::Continue
    }

    fn on_barrier(&mut self, _: &mut ObserverContext<'_>) -> Verdict {
        Verdict::Continue
    }
}

type Items = Vec<Result<Item, std::io::Error>>;

fn source(items: impl IntoIterator<Item = Item>) -> impl Stream<Item = Result<Item, std::io::Error>> {
    stream::iter(items.into_iter().map(Ok).collect::<Items>())
}

fn editor() -> Registration {
    Registration::guard(id!("editor"), Editor)
}

#[test]
fn texts_are_changed_in_place_and_held_text_is_never_lost() {
    let pair = |a: (Lane, &str), b: (Lane, &str)| Item {
        id: 7,
        texts: vec![(a.0, a.1.to_owned()), (b.0, b.1.to_owned())],
        ..Item::default()
    };
    let cases: [(&str, Vec<Item>, &[&str]); 9] = [
        ("untouched", vec![text(Lane::TEXT, "a"), finish()], &["text:a", "stop"]),
        ("changed in place", vec![text(Lane::TEXT, "axb"), finish()], &["text:ab", "stop"]),
        (
            "held text leaves its item empty and enters the next one of its lane",
            vec![text(Lane::TEXT, "<"), text(REASONING, "r"), text(Lane::TEXT, "b"), finish()],
            &["text:", "reasoning:r", "text:<b", "stop"],
        ),
        (
            "text that a finish releases goes before it in an item of its own",
            vec![text(Lane::TEXT, "a<"), finish()],
            &["text:a", "text:<", "stop"],
        ),
        (
            "text that the finish in the same item releases stays in the item",
            vec![Item { finish: Some(FinishReason::Stop), ..text(Lane::TEXT, "a<") }],
            &["text:a<+stop"],
        ),
        (
            "two lanes of one item are changed apart",
            vec![pair((Lane::TEXT, "a<"), (REASONING, "rx")), pair((REASONING, "s"), (Lane::TEXT, "b")), finish()],
            &["text:a+reasoning:r", "reasoning:s+text:<b", "stop"],
        ),
        (
            "a tool call gets an item of its own, between the texts",
            vec![text(Lane::TEXT, "aTb"), finish()],
            &["text:a", "look{}", "text:b", "stop"],
        ),
        (
            "the end of the source releases too",
            vec![Item { finish: Some(FinishReason::Stop), ..text(REASONING, "r") }, text(Lane::TEXT, "<")],
            &["reasoning:r+stop", "text:", "text:<"],
        ),
        ("the stopped item is not delivered", vec![text(Lane::TEXT, "a"), text(Lane::TEXT, "b!")], &["text:a"]),
    ];
    for (name, items, expected) in cases {
        let out: Vec<_> = block_on(source(items).observed(editor()).quiet().collect());
        let shown: Vec<_> = out.iter().map(|item| show(item.as_ref().unwrap())).collect();
        assert_eq!(shown, expected, "{name}");
        assert!(out.iter().all(|item| item.as_ref().unwrap().id == 7), "{name}: made like the others");
    }
}

#[test]
fn the_end_of_foreign_items_is_an_error_unless_it_finished() {
    let ended = |items: Vec<Item>| {
        let out: Vec<_> = block_on(source(items).observed(editor()).collect());
        match out.into_iter().next_back() {
            Some(Err(ObservedError::Ended(outcome))) => outcome.code(),
            Some(Err(_)) => "source",
            _ => "plain",
        }
    };
    assert_eq!(ended(vec![text(Lane::TEXT, "a"), finish()]), "plain");
    assert_eq!(ended(vec![text(Lane::TEXT, "a")]), "truncated");
    assert_eq!(ended(vec![text(Lane::TEXT, "!")]), "stopped");
}

#[test]
fn the_clients_own_error_is_kept() {
    let failing = || stream::iter([Ok(text(Lane::TEXT, "a<")), Err(std::io::Error::other("cut"))]);
    let out: Vec<_> = block_on(failing().observed(editor()).collect());
    assert_eq!(out.len(), 3);
    assert_eq!(show(out[1].as_ref().unwrap()), "text:<");
    assert!(matches!(&out[2], Err(ObservedError::Source(error)) if error.to_string() == "cut"));
    let out: Vec<Result<Item, std::io::Error>> = block_on(failing().observed(editor()).quiet().collect());
    assert_eq!(out[2].as_ref().unwrap_err().to_string(), "cut");
}

#[derive(Default)]
struct Failures(Mutex<Vec<FailureReport>>);

impl FailureSink for Failures {
    fn report(&self, failure: &FailureReport) {
        self.0.lock().unwrap().push(failure.clone());
    }
}

struct Results(Arc<Mutex<Vec<InvocationResult>>>);

impl StreamWatcher for Results {
    fn on_chunk(&mut self, _: &Chunk, _: &mut ObserverContext<'_>) {}

    fn on_end_invocation(&mut self, result: &InvocationResult, _: &mut ObserverContext<'_>) {
        self.0.lock().unwrap().push(result.clone());
    }
}

fn watched(failures: &Arc<Failures>) -> (Observers, Arc<Mutex<Vec<InvocationResult>>>) {
    let results = Arc::new(Mutex::new(Vec::new()));
    let mut observers = Observers::from(editor()).failures(failures.clone());
    let seen = results.clone();
    observers.register(Registration::watcher(id!("results"), from_fn(move |_| Results(seen.clone())))).unwrap();
    (observers, results)
}

#[test]
fn text_that_the_client_cannot_say_is_withheld_and_reported() {
    let refusal = Lane::new(Channel::Refusal);
    let failures = Arc::new(Failures::default());
    let (observers, results) = watched(&failures);
    let out: Vec<_> = block_on(source([text(refusal, "no<"), finish()]).observed(observers).quiet().collect());
    let shown: Vec<_> = out.iter().map(|item| show(item.as_ref().unwrap())).collect();
    assert_eq!(shown, ["refusal:no", "stop"]);
    let result = results.lock().unwrap()[0].clone();
    assert_eq!((result.withheld_len, result.delivered_in(refusal)), (1, 2));
    assert_eq!(failures.0.lock().unwrap()[0].to_string(), "`editor` failed in on_chunk: not_run");
}

#[test]
fn what_was_not_taken_was_not_delivered() {
    let failures = Arc::new(Failures::default());
    let (observers, results) = watched(&failures);
    let stack = observers.stack(&ObserverFactoryContext::default());
    let mut observed = source([text(Lane::TEXT, "abTcd"), finish()]).with_stack(stack);
    let first = block_on(observed.next()).unwrap().unwrap();
    assert_eq!(show(&first), "text:ab");
    drop(observed);
    let result = results.lock().unwrap()[0].clone();
    assert_eq!(*result.outcome, Outcome::Dropped);
    assert_eq!((result.delivered_len, result.withheld_len), (2, 4));
}

#[test]
fn a_fixed_part_cannot_be_amended() {
    #[derive(Clone)]
    struct Liar;
    impl StreamObserver for Liar {
        fn on_chunk(&mut self, chunk: &Chunk, _: &mut ObserverContext<'_>) -> Verdict {
            match chunk.kind() {
                ChunkKind::Finish => Verdict::Amend(Chunk::finish(0, FinishReason::Length)),
                _ => Verdict::Continue,
            }
        }
    }
    let observed = source([text(Lane::TEXT, "a"), finish()]).observed(Registration::guard(id!("liar"), Liar));
    let out: Vec<_> = block_on(observed.collect());
    assert_eq!(out.len(), 2, "the finish is not delivered");
    let Some(Err(ObservedError::Ended(outcome))) = out.into_iter().next_back() else { panic!("it failed") };
    assert_eq!(outcome.to_string(), "failed: guard_failed (`liar`)");
}

//! What the tests of both APIs need.

use std::{
    cell::Cell,
    fs,
    path::Path,
    pin::{Pin, pin},
    rc::Rc,
    sync::{Arc, Mutex},
    task::{Context, Poll},
};

use futures_util::{FutureExt, Stream};
use streamkeeper_contract::{Body, Chunk, ChunkKind, Release, Verdict, id};
use streamkeeper_stream::{
    InvocationResult, ObserverContext, ObserverFactoryContext, Observers, Registration, StreamObserver, StreamWatcher,
    from_fn,
};
use streamkeeper_wire::{Decoder, Format};

/// The value of a future that needs to wait for nothing.
pub(crate) fn now<F: Future>(future: F) -> F::Output {
    pin!(future).now_or_never().expect("nothing to wait for")
}

/// A stream of ours in `examples/streams`.
pub(crate) fn fixture(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/streams").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What a watcher saw.
#[derive(Clone, Default)]
pub(crate) struct Seen(Arc<Mutex<(Vec<String>, Option<InvocationResult>)>>);

impl Seen {
    /// A line for each chunk.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().0.clone()
    }

    pub(crate) fn result(&self) -> InvocationResult {
        self.0.lock().unwrap().1.clone().expect("the stream is over")
    }
}

struct Watcher(Seen);

impl StreamWatcher for Watcher {
    fn on_chunk(&mut self, chunk: &Chunk, _: &mut ObserverContext<'_>) {
        self.0.0.lock().unwrap().0.extend(line(chunk));
    }

    fn on_end_invocation(&mut self, result: &InvocationResult, _: &mut ObserverContext<'_>) {
        self.0.0.lock().unwrap().1 = Some(result.clone());
    }
}

/// A watcher that writes down what it sees.
pub(crate) fn watch() -> (Registration, Seen) {
    let seen = Seen::default();
    let shared = seen.clone();
    (Registration::watcher(id!("watch"), from_fn(move |_| Watcher(shared.clone()))), seen)
}

/// What our own decoder shows an observer of the same body.
pub(crate) fn decoded(format: Format, body: &str) -> Vec<String> {
    let (watcher, seen) = watch();
    let mut stack = Observers::from(watcher).stack(&ObserverFactoryContext::default());
    let mut decoder = Decoder::new(format);
    decoder.push(body.as_bytes()).unwrap();
    decoder.finish().unwrap();
    std::iter::from_fn(|| decoder.next_chunk()).for_each(|chunk| stack.push(chunk));
    seen.lines()
}

/// `kind choice/call text`, or what else tells such chunks apart.
fn line(chunk: &Chunk) -> Option<String> {
    let kind = chunk.kind().as_str();
    let lane = chunk.lane().map(|lane| format!("{}/{}", lane.choice, lane.call)).unwrap_or_default();
    Some(match chunk.body() {
        Body::Delta { text, .. } if text.is_empty() => return None,
        Body::Delta { text, .. } => format!("{kind} {lane} {text}"),
        Body::Snapshot(snapshot) => format!("{kind} {lane} {}", snapshot.text),
        Body::ToolCallStart(start) => format!("{kind} {lane} {} {}", start.id, start.name),
        Body::ToolCallEnd(_) => format!("{kind} {lane}"),
        Body::Finish(finish) => {
            format!("{kind} {} ({})", finish.reason.as_str(), finish.stated.as_deref().unwrap_or_default())
        }
        _ => kind.to_owned(),
    })
}

/// A guard that hides a literal, however the stream cuts it.
#[derive(Clone)]
pub(crate) struct Hide(pub(crate) &'static str);

impl Hide {
    pub(crate) fn guard(self) -> Registration {
        Registration::guard(id!("hide"), self)
    }

    fn verdict(&self, text: &str, more_may_come: bool) -> Verdict {
        let begun = (1..self.0.len()).rev().find(|&n| text.ends_with(&self.0[..n])).unwrap_or(0);
        let keep = if more_may_come { begun } else { 0 };
        let settled = &text[..text.len() - keep];
        match (settled.contains(self.0), keep) {
            (false, 0) => Verdict::Continue,
            (false, keep) => Release::unchanged().keep(keep).into(),
            (true, keep) => Release::text(settled.replace(self.0, "[hidden]")).keep(keep).into(),
        }
    }
}

impl StreamObserver for Hide {
    fn on_chunk(&mut self, chunk: &Chunk, ctx: &mut ObserverContext<'_>) -> Verdict {
        match chunk.kind() {
            ChunkKind::Snapshot => match chunk.text().filter(|text| text.contains(self.0)) {
                Some(text) => {
                    chunk.with_text(text.replace(self.0, "[hidden]")).map_or(Verdict::Continue, Verdict::Amend)
                }
                None => Verdict::Continue,
            },
            _ if chunk.is_delta() => self.verdict(ctx.pending(), true),
            _ => Verdict::Continue,
        }
    }

    fn on_barrier(&mut self, ctx: &mut ObserverContext<'_>) -> Verdict {
        self.verdict(ctx.pending(), false)
    }
}

/// A stream that counts how often it was asked.
pub(crate) struct Watched<S> {
    source: Pin<Box<S>>,
    polled: Rc<Cell<u32>>,
}

impl<S> Watched<S> {
    pub(crate) fn new(source: S) -> Self {
        Self { source: Box::pin(source), polled: Rc::default() }
    }

    pub(crate) fn polled(&self) -> Rc<Cell<u32>> {
        self.polled.clone()
    }
}

impl<S: Stream> Stream for Watched<S> {
    type Item = S::Item;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        self.polled.set(self.polled.get() + 1);
        self.source.as_mut().poll_next(cx)
    }
}

//! Taking small chunks through a stack of observers.

use std::{
    hint::black_box,
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
};

use futures_util::Stream;
use streamkeeper_contract::{Chunk, ChunkKind, Id, Lane, Verdict};
use streamkeeper_observers::{HaltOnPattern, Metrics, Redact};
use streamkeeper_stream::{
    Interest, ObserveExt, ObserverContext, ObserverFactoryContext, Observers, Registration, StreamObserver,
};

/// The same small delta again and again, made anew each time.
#[derive(Debug)]
pub struct Source(pub u32);

impl Stream for Source {
    type Item = Result<Chunk, std::convert::Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.0 == 0 {
            return Poll::Ready(None);
        }
        self.0 -= 1;
        Poll::Ready(Some(Ok(Chunk::delta(Lane::TEXT, black_box("token")))))
    }
}

/// Looks at every chunk, and lets it pass.
#[derive(Debug, Clone, Default)]
struct PassThrough(u64);

impl StreamObserver for PassThrough {
    fn on_chunk(&mut self, chunk: &Chunk, _: &mut ObserverContext<'_>) -> Verdict {
        self.0 += black_box(chunk).text().map_or(0, str::len) as u64;
        Verdict::Continue
    }
}

/// Wants nothing but the end of a choice.
#[derive(Debug, Clone)]
struct Disinterested;

impl StreamObserver for Disinterested {
    fn interest(&self) -> Interest {
        Interest::only(&[ChunkKind::Finish])
    }

    fn on_chunk(&mut self, _: &Chunk, _: &mut ObserverContext<'_>) -> Verdict {
        Verdict::Continue
    }
}

fn list(n: usize, make: impl Fn(Id) -> Registration) -> Observers {
    let mut observers = Observers::new();
    for i in 0..n {
        let id = Id::new(&format!("observer-{i}")).expect("a valid id");
        observers.register(make(id)).expect("ids differ");
    }
    observers
}

/// So many observers that look at every chunk.
pub fn pass_through(n: usize) -> Observers {
    list(n, |id| Registration::guard(id, PassThrough::default()))
}

/// So many observers that are not interested in deltas.
pub fn disinterested(n: usize) -> Observers {
    list(n, |id| Registration::guard(id, Disinterested))
}

/// The bundled observers: metrics, and the halt at refusals.
pub fn bundled() -> Observers {
    let mut observers = Observers::from(Metrics::new());
    observers.register(HaltOnPattern::refusals()).expect("ids differ");
    observers
}

/// All built-in redaction.
pub fn redaction() -> Observers {
    Redact::default().into()
}

/// The baseline: polls the source alone. Returns how many chunks came.
pub fn bare(source: Source) -> usize {
    drain(source)
}

/// Polls the source through observers.
pub fn observed(source: Source, observers: &Observers) -> usize {
    drain(source.observed(observers))
}

fn drain<T, E>(stream: impl Stream<Item = Result<T, E>>) -> usize {
    let mut stream = pin!(stream);
    let mut cx = Context::from_waker(Waker::noop());
    let mut chunks = 0;
    while let Poll::Ready(Some(item)) = stream.as_mut().poll_next(&mut cx) {
        chunks += usize::from(black_box(item).is_ok());
    }
    chunks
}

const PROSE: &str = "The river ran low that summer, and the mill stood still for weeks. Nobody in the village could remember such \
    a thing; the oldest of them said that it had rained in every July since the war. By August they carried water from the well \
    behind the church, two buckets at a time, and talked much less than they used to. ";

/// Pushes so many deltas of prose into a stack, five bytes each. Returns how many chunks came out.
pub fn push_prose(deltas: u32, observers: &Observers) -> usize {
    let mut stack = observers.stack(&ObserverFactoryContext::default());
    let (mut at, mut chunks) = (0, 0);
    for _ in 0..deltas {
        if at + 5 > PROSE.len() {
            at = 0;
        }
        stack.push(Chunk::delta(Lane::TEXT, black_box(&PROSE[at..at + 5])));
        at += 5;
        while let Some(chunk) = stack.pop() {
            chunks += usize::from(black_box(chunk).is_delta());
        }
    }
    chunks
}

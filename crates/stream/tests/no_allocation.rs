//! spec 8.2: on the way of a chunk that passes, nothing is allocated.
#![allow(unsafe_code, reason = "an allocator that counts can only be written as an unsafe trait")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    convert::Infallible,
    pin::pin,
    task::{Context, Poll, Waker},
};

use futures_util::{Stream, stream};
use streamkeeper_contract::{Channel, Chunk, ChunkKind, Lane, Verdict, id};
use streamkeeper_stream::{
    Interest, ObserveExt, ObserverContext, Observers, Part, Registration, Stack, StreamItem, StreamObserver,
    StreamWatcher,
};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

fn count() {
    // Fails only while the thread goes away.
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
}

// SAFETY: everything is handed to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(run: impl FnOnce()) -> usize {
    let before = ALLOCATIONS.get();
    run();
    ALLOCATIONS.get() - before
}

#[derive(Clone)]
struct Counts(u64, Interest);

impl StreamObserver for Counts {
    fn interest(&self) -> Interest {
        self.1
    }

    fn on_chunk(&mut self, _: &Chunk, ctx: &mut ObserverContext<'_>) -> Verdict {
        self.0 += ctx.pending().len() as u64;
        Verdict::Continue
    }
}

impl StreamWatcher for Counts {
    fn on_chunk(&mut self, _: &Chunk, ctx: &mut ObserverContext<'_>) {
        self.0 += ctx.pending().len() as u64;
    }
}

/// Holds the text it is given last, and lets it go with the next.
#[derive(Clone)]
struct Lags;

impl StreamObserver for Lags {
    fn on_chunk(&mut self, chunk: &Chunk, ctx: &mut ObserverContext<'_>) -> Verdict {
        match chunk.text() {
            Some("hold") => Verdict::Buffer,
            _ if ctx.held().is_empty() => Verdict::Continue,
            _ => streamkeeper_contract::Release::unchanged().into(),
        }
    }
}

fn eight(interest: Interest) -> Observers {
    let ids = [id!("a"), id!("b"), id!("c"), id!("d"), id!("e"), id!("f"), id!("g"), id!("h")];
    let mut observers = Observers::new();
    observers.extend(ids.map(|id| Registration::guard(id, Counts(0, interest)))).unwrap();
    observers
}

/// Two lanes, so that the way to a lane's counters is part of it.
fn push(stack: &mut Stack, count: usize) {
    for i in 0..count {
        let lane = if i % 7 == 0 { Lane::new(Channel::Reasoning) } else { Lane::TEXT };
        assert!(stack.transit(Chunk::delta(lane, "a few words")).is_some());
    }
}

#[test]
fn the_counter_counts() {
    assert_eq!(allocations(|| drop(std::hint::black_box(Box::new(1)))), 1);
}

#[test]
fn a_delta_that_passes_allocates_nothing() {
    for (name, observers) in [
        ("no observer", Observers::new()),
        ("eight that look", eight(Interest::ALL)),
        ("eight that do not", eight(Interest::only(&[ChunkKind::Usage]))),
        ("a watcher", Registration::watcher(id!("watcher"), Counts(0, Interest::ALL)).into()),
        ("one that holds nothing now", Registration::transform(id!("lags"), Lags).into()),
    ] {
        let mut stack = observers.stack(&Default::default());
        push(&mut stack, 10);
        assert_eq!(allocations(|| push(&mut stack, 1000)), 0, "{name}");
    }
}

#[test]
fn after_a_hold_it_is_the_same_again() {
    let mut stack = Observers::from(Registration::transform(id!("lags"), Lags)).stack(&Default::default());
    for text in ["a", "hold", "b"] {
        stack.push(Chunk::delta(Lane::TEXT, text));
    }
    while stack.pop().is_some() {}
    push(&mut stack, 10);
    assert_eq!(allocations(|| push(&mut stack, 1000)), 0);
}

fn poll_all<T>(stream: impl Stream<Item = T>, skip: usize) -> usize {
    let mut stream = pin!(stream);
    let mut cx = Context::from_waker(Waker::noop());
    let mut next = || match stream.as_mut().poll_next(&mut cx) {
        Poll::Ready(item) => item.is_some(),
        Poll::Pending => panic!("the source is always ready"),
    };
    for _ in 0..skip {
        next();
    }
    allocations(|| {
        for _ in 0..1000 {
            assert!(next());
        }
    })
}

#[test]
fn a_stream_of_chunks_allocates_nothing_for_each() {
    let chunks = || stream::repeat_with(|| Ok::<_, Infallible>(Chunk::delta(Lane::TEXT, "a few words")));
    assert_eq!(poll_all(chunks().observed(Observers::new()), 10), 0);
    assert_eq!(poll_all(chunks().observed(eight(Interest::ALL)), 10), 0);
}

#[test]
fn a_stream_of_a_clients_items_allocates_nothing_for_each() {
    struct Item(String);
    impl StreamItem for Item {
        fn visit(&mut self, _: &mut (), f: &mut dyn FnMut(Part<'_>)) {
            f(Part::Delta(Lane::TEXT, &mut self.0));
        }
        fn synth(_: &mut (), _: Option<&Self>, _: Lane, text: &str) -> Option<Self> {
            Some(Self(text.to_owned()))
        }
    }
    // The items themselves are made beforehand.
    let items: Vec<_> = (0..1100).map(|_| Ok::<_, Infallible>(Item("a few words".to_owned()))).collect();
    assert_eq!(poll_all(stream::iter(items).observed(eight(Interest::ALL)), 10), 0);
}

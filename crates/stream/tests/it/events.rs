//! Side events: spec 3.13.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use streamkeeper_contract::{Verdict, id};
use streamkeeper_stream::{Channels, EventQueue, EventSink, Registration};

use crate::support::*;

#[test]
fn a_full_queue_drops_the_oldest_counts_it_and_never_changes_the_stream() {
    // spec 3.13
    let emits = Registration::guard(id!("emits"), On::delta(|_, _| Verdict::Emit(vec![event("a"), event("b")])));
    let queue = Arc::new(EventQueue::bounded(3));
    let mut stack = list([emits]).events(queue.clone()).stack(&Default::default());
    for _ in 0..4 {
        stack.push(text("x"));
        assert_eq!(stack.pop().unwrap().text(), Some("x"));
    }
    assert_eq!((queue.len(), queue.dropped()), (3, 5));
    assert_eq!(queue.drain().iter().map(|event| event.name.as_str()).collect::<Vec<_>>(), ["b", "a", "b"]);
    assert!(queue.is_empty());
}

#[test]
fn a_queue_of_nothing_holds_one() {
    // spec 3.13
    let queue = EventQueue::bounded(0);
    queue.emit(event("a"));
    assert_eq!(queue.len(), 1);
}

#[test]
fn events_reach_every_reader_of_their_channel_and_no_other() {
    // spec 3.13
    let (one, two, other) = (EventQueue::bounded(9), EventQueue::bounded(9), EventQueue::bounded(9));
    let (one, two, other) = (Arc::new(one), Arc::new(two), Arc::new(other));
    let channels = Channels::new()
        .route(id!("test"), one.clone())
        .route(id!("other"), other.clone())
        .route(id!("test"), two.clone());
    channels.emit(event("a"));
    assert_eq!((one.len(), two.len(), other.len(), channels.unread()), (1, 1, 0, 0));
    Channels::new().emit(event("a"));
}

#[test]
fn a_waiting_reader_is_woken() {
    // spec 3.13
    #[derive(Default)]
    struct Flag(AtomicBool);
    impl Wake for Flag {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let flag = Arc::new(Flag::default());
    let waker = Waker::from(flag.clone());
    let queue = EventQueue::bounded(9);
    let mut cx = Context::from_waker(&waker);
    assert!(queue.poll_pop(&mut cx).is_pending());
    queue.emit(event("a"));
    assert!(flag.0.load(Ordering::Relaxed));
    assert!(matches!(queue.poll_pop(&mut cx), Poll::Ready(event) if event.name == id!("a")));
}

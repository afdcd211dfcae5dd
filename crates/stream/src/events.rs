use std::{
    collections::VecDeque,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
};

use streamkeeper_contract::{Id, SideEvent};

/// Where side events go.
///
/// Called in line with the stream, before the chunk that caused the event is handed on: it must be quick and must not block. A panic in
/// here is caught and reported; the sink gets no more events of that invocation, and neither the stream nor the observer notices.
pub trait EventSink: Send + Sync {
    /// Takes one event.
    fn emit(&self, event: SideEvent);
}

impl<S: EventSink + ?Sized> EventSink for Arc<S> {
    fn emit(&self, event: SideEvent) {
        (**self).emit(event);
    }
}

/// A bounded queue between stacks and one reader: the way from a synchronous observer to asynchronous work.
///
/// When it is full, the oldest event is dropped and counted; a slow reader never slows a stream. A lock is held for the push or pop of
/// one event.
///
/// ```
/// use streamkeeper_contract::{Json, SideEvent, id};
/// use streamkeeper_stream::{EventQueue, EventSink};
///
/// let queue = EventQueue::bounded(2);
/// for n in 0..3 {
///     queue.emit(SideEvent { channel: id!("metrics"), name: id!("chunk"), payload: Json::new(&n).unwrap() });
/// }
/// assert_eq!(queue.dropped(), 1);
/// assert_eq!(queue.pop().unwrap().payload.as_str(), "1");
/// ```
#[derive(Debug)]
pub struct EventQueue {
    capacity: usize,
    state: Mutex<QueueState>,
}

#[derive(Debug, Default)]
struct QueueState {
    events: VecDeque<SideEvent>,
    dropped: u64,
    waiting: Option<Waker>,
}

impl EventQueue {
    /// An empty queue for so many events, at least one.
    pub fn bounded(capacity: usize) -> Self {
        Self { capacity: capacity.max(1), state: Mutex::default() }
    }

    /// Takes the oldest event.
    pub fn pop(&self) -> Option<SideEvent> {
        self.state().events.pop_front()
    }

    /// Takes all events there are, oldest first.
    pub fn drain(&self) -> Vec<SideEvent> {
        self.state().events.drain(..).collect()
    }

    /// How many events wait.
    pub fn len(&self) -> usize {
        self.state().events.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many events were dropped because the reader was too slow.
    pub fn dropped(&self) -> u64 {
        self.state().dropped
    }

    /// Takes the oldest event, or has the task woken when one comes. One reader: the last task that asked is woken.
    ///
    /// ```
    /// # use std::task::{Context, Poll, Waker};
    /// # use streamkeeper_stream::EventQueue;
    /// let queue = EventQueue::bounded(16);
    /// // In a task: `std::future::poll_fn(|cx| queue.poll_pop(cx)).await`.
    /// assert!(queue.poll_pop(&mut Context::from_waker(Waker::noop())).is_pending());
    /// ```
    pub fn poll_pop(&self, cx: &mut Context<'_>) -> Poll<SideEvent> {
        let mut state = self.state();
        if let Some(event) = state.events.pop_front() {
            return Poll::Ready(event);
        }
        match &mut state.waiting {
            Some(waiting) => waiting.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        Poll::Pending
    }

    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EventSink for EventQueue {
    fn emit(&self, event: SideEvent) {
        let waiting = {
            let mut state = self.state();
            if state.events.len() == self.capacity {
                state.events.pop_front();
                state.dropped += 1;
            }
            state.events.push_back(event);
            state.waiting.take()
        };
        if let Some(waker) = waiting {
            waker.wake();
        }
    }
}

/// Sends each event to the reader of its channel. An event of a channel without a reader is dropped and counted.
///
/// ```
/// use std::sync::Arc;
/// use streamkeeper_contract::{Json, SideEvent, id};
/// use streamkeeper_stream::{Channels, EventQueue, EventSink};
///
/// let metrics = Arc::new(EventQueue::bounded(1024));
/// let channels = Channels::new().route(id!("metrics"), metrics.clone());
/// for channel in [id!("metrics"), id!("audit")] {
///     channels.emit(SideEvent { channel, name: id!("seen"), payload: Json::string("x") });
/// }
/// assert_eq!(metrics.len(), 1);
/// assert_eq!(channels.unread(), 1);
/// ```
#[derive(Default)]
pub struct Channels {
    routes: Vec<(Id, Arc<dyn EventSink>)>,
    unread: AtomicU64,
}

impl Channels {
    /// No channel has a reader.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a reader for a channel. Several readers of one channel each get its events, in order of addition.
    #[must_use]
    pub fn route(mut self, channel: Id, sink: Arc<dyn EventSink>) -> Self {
        self.routes.push((channel, sink));
        self
    }

    /// How many events came for channels without a reader.
    pub fn unread(&self) -> u64 {
        self.unread.load(Ordering::Relaxed)
    }
}

impl EventSink for Channels {
    fn emit(&self, event: SideEvent) {
        let mut readers = self.routes.iter().filter(|(channel, _)| *channel == event.channel).map(|(_, sink)| sink);
        let Some(mut reader) = readers.next() else {
            self.unread.fetch_add(1, Ordering::Relaxed);
            return;
        };
        for next in readers {
            reader.emit(event.clone());
            reader = next;
        }
        reader.emit(event);
    }
}

impl fmt::Debug for Channels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channels")
            .field("routes", &self.routes.iter().map(|(channel, _)| channel.as_str()).collect::<Vec<_>>())
            .field("unread", &self.unread())
            .finish()
    }
}

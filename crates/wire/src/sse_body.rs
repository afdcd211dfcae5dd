use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_core::{FusedStream, Stream};
use pin_project_lite::pin_project;
use streamkeeper_contract::{Chunk, ErrorInfo, Outcome};

use crate::encode::{Encoder, Target};

/// The most bytes that are put together from chunks that are ready at once.
const BATCH: usize = 8 * 1024;
/// The most chunks that are taken in one poll.
const BATCH_CHUNKS: usize = 256;

/// Turns a stream of chunks into the body of a response, in one line.
///
/// ```
/// use futures_util::{StreamExt, stream};
/// use streamkeeper_contract::{Chunk, FinishReason, Lane};
/// use streamkeeper_wire::{SseBodyExt, encode::Target};
///
/// let chunks = [Chunk::delta(Lane::TEXT, "Hi"), Chunk::finish(0, FinishReason::Stop)];
/// let source = stream::iter(chunks.map(Ok::<_, std::io::Error>));
///
/// # futures_executor::block_on(async {
/// let body = source.into_sse_body(Target::OpenAiChat);
/// assert_eq!(body.headers()[0], ("content-type", "text/event-stream"));
/// let bytes: Vec<u8> = body.map(|bytes| bytes.unwrap().to_vec()).concat().await;
/// assert!(bytes.ends_with(b"data: [DONE]\n\n"));
/// # });
/// ```
pub trait SseBodyExt: Stream + Sized {
    /// The body in a target's format, as server-sent events for every target.
    ///
    /// The stream of bytes never fails, since a response cannot: an error of the source ends it as failed with code `stream_failed`,
    /// unless [`SseBody::ending`] says otherwise. The error's own words are not written.
    fn into_sse_body<E>(self, target: Target) -> SseBody<Self, fn(E) -> Outcome>
    where
        Self: Stream<Item = Result<Chunk, E>>,
    {
        self.into_sse_body_with(Encoder::new(target))
    }

    /// The same with an encoder that has its ids and model.
    fn into_sse_body_with<E>(self, encoder: Encoder) -> SseBody<Self, fn(E) -> Outcome>
    where
        Self: Stream<Item = Result<Chunk, E>>,
    {
        SseBody {
            source: Some(self),
            encoder: encoder.server_sent(),
            outcome: |_| Outcome::Failed { error: ErrorInfo::new("stream_failed") },
            ticks: Some(NoTicks),
            out: Vec::new(),
        }
    }
}

impl<S: Stream> SseBodyExt for S {}

pin_project! {
    /// A body of server-sent events, made by [`SseBodyExt`].
    ///
    /// The source is polled only when the body is, so a slow reader slows it down. It is dropped when it ended, when it failed and when
    /// the body is dropped: a server drops the body when the reader goes away, so nothing goes on for nobody. Nothing is spawned and no
    /// clock is read.
    ///
    /// Chunks that are ready at once are written together, up to 8 KiB.
    #[must_use = "streams do nothing unless polled"]
    pub struct SseBody<S, F, T = NoTicks> {
        #[pin]
        source: Option<S>,
        encoder: Encoder,
        outcome: F,
        #[pin]
        ticks: Option<T>,
        out: Vec<u8>,
    }
}

impl<S, F, T> SseBody<S, F, T> {
    /// The headers that the response needs. `connection` belongs to HTTP/1.1 alone: leave it out in HTTP/2 and later.
    pub fn headers(&self) -> [(&'static str, &'static str); 4] {
        [
            ("content-type", "text/event-stream"),
            ("cache-control", "no-cache"),
            ("x-accel-buffering", "no"),
            ("connection", "keep-alive"),
        ]
    }

    /// Says how an error of the source ends the body.
    pub fn ending<E, G>(self, outcome: G) -> SseBody<S, G, T>
    where
        S: Stream<Item = Result<Chunk, E>>,
        G: FnMut(E) -> Outcome,
    {
        let Self { source, encoder, ticks, out, .. } = self;
        SseBody { source, encoder, outcome, ticks, out }
    }

    /// Writes a comment at each tick, so that neither proxies nor readers give up while nothing comes: 15 seconds between ticks are
    /// usual. Ticks that come while chunks are written are passed over.
    ///
    /// ```
    /// use futures_util::{StreamExt, stream};
    /// use streamkeeper_contract::Chunk;
    /// use streamkeeper_wire::{SseBodyExt, encode::Target};
    ///
    /// let silent = stream::pending::<Result<Chunk, std::io::Error>>();
    /// let mut body = silent.into_sse_body(Target::AgUi).keep_alive(stream::iter([()]));
    /// # futures_executor::block_on(async {
    /// assert_eq!(&body.next().await.unwrap().unwrap()[..], b": keep-alive\n\n");
    /// # });
    /// ```
    pub fn keep_alive<U: Stream<Item = ()>>(self, ticks: U) -> SseBody<S, F, U> {
        let Self { source, encoder, outcome, out, .. } = self;
        SseBody { source, encoder, outcome, ticks: Some(ticks), out }
    }
}

impl<S, F, T, E> Stream for SseBody<S, F, T>
where
    S: Stream<Item = Result<Chunk, E>>,
    F: FnMut(E) -> Outcome,
    T: Stream<Item = ()>,
{
    type Item = Result<Bytes, std::convert::Infallible>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut this = self.project();
        let mut taken = 0;
        while let Some(source) = this.source.as_mut().as_pin_mut() {
            if this.out.len() >= BATCH {
                break;
            }
            if taken == BATCH_CHUNKS {
                // Others have a turn, even if nothing that can be written comes.
                cx.waker().wake_by_ref();
                break;
            }
            taken += 1;
            match source.poll_next(cx) {
                Poll::Ready(Some(Ok(chunk))) => this.encoder.push(&chunk, this.out),
                Poll::Ready(Some(Err(error))) => this.encoder.end((this.outcome)(error), this.out),
                Poll::Ready(None) => this.encoder.finish(this.out),
                Poll::Pending => break,
            }
            if this.encoder.has_ended() {
                this.source.set(None);
                this.ticks.set(None);
            }
        }
        if !this.out.is_empty() {
            return Poll::Ready(Some(Ok(std::mem::take(this.out).into())));
        }
        if this.source.is_none() {
            return Poll::Ready(None);
        }
        match this.ticks.as_mut().as_pin_mut().map(|ticks| ticks.poll_next(cx)) {
            Some(Poll::Ready(Some(()))) => Poll::Ready(Some(Ok(Bytes::from_static(b": keep-alive\n\n")))),
            Some(Poll::Ready(None)) => {
                this.ticks.set(None);
                Poll::Pending
            }
            Some(Poll::Pending) | None => Poll::Pending,
        }
    }
}

impl<S, F, T, E> FusedStream for SseBody<S, F, T>
where
    S: Stream<Item = Result<Chunk, E>>,
    F: FnMut(E) -> Outcome,
    T: Stream<Item = ()>,
{
    fn is_terminated(&self) -> bool {
        self.source.is_none() && self.out.is_empty()
    }
}

impl<S, F, T> fmt::Debug for SseBody<S, F, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SseBody")
            .field("target", &self.encoder.target())
            .field("is_over", &self.source.is_none())
            .finish_non_exhaustive()
    }
}

/// No ticks: a body without keep-alive.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoTicks;

impl Stream for NoTicks {
    type Item = ();

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<()>> {
        Poll::Pending
    }
}

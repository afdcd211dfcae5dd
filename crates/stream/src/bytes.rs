//! Provider bytes through observers and out again.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Instant,
};

use futures_core::{FusedStream, Stream};
use pin_project_lite::pin_project;
use streamkeeper_contract::{Chunk, ErrorInfo, Offset, Outcome, Text};
use streamkeeper_wire::{Decoder, Passthrough, WireError};

use crate::{ObservedError, ObserverFactoryContext, Observers, Stack, stack::Passed};

/// A [`Stack`] between a provider's bytes and their reader, without I/O.
///
/// Bytes go in with any split; events leave as soon as all their chunks have passed. An event that no observer touched leaves byte for
/// byte as it came. See [`Passthrough`] for what becomes of the others. When the outcome is decided, whatever it is, a valid ending of
/// the format is written.
///
/// Bytes that cannot be read on, for example an event beyond the decoder's limit, end the invocation as `Failed` with the code of the
/// [`WireError`]. Something that an observer made and the format has no place for is left out, and reported as a failure of component
/// `passthrough`.
///
/// ```
/// use streamkeeper_stream::{ObservedBytes, Observers};
/// use streamkeeper_wire::Decoder;
///
/// let body = b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
/// let mut observed = ObservedBytes::new(Decoder::detect(), Observers::new().stack(&Default::default()));
/// let mut out = Vec::new();
/// for read in body.chunks(7) {
///     observed.push(read);
///     out.extend(observed.take());
/// }
/// observed.finish();
/// out.extend(observed.take());
/// assert_eq!(out, body);
/// assert_eq!(observed.outcome().unwrap().code(), "finished");
/// ```
pub struct ObservedBytes {
    stack: Stack,
    wire: Passthrough,
    /// What is fed to the stack.
    frame: Vec<Chunk>,
    /// What waits for the reader as bytes, and for which entering chunk it passed.
    chunks: Vec<Chunk>,
    indices: Vec<u64>,
    out: Vec<u8>,
    is_ended: bool,
}

impl ObservedBytes {
    /// A stack behind a decoder that has seen no bytes yet.
    pub fn new(decoder: Decoder, stack: Stack) -> Self {
        let mut observed = Self {
            stack,
            wire: Passthrough::new(decoder),
            frame: Vec::new(),
            chunks: Vec::new(),
            indices: Vec::new(),
            out: Vec::new(),
            is_ended: false,
        };
        // A guard that could not be made has ended it already.
        observed.end_if_decided();
        observed
    }

    /// Stamps what is pushed from here on.
    pub fn set_offset(&mut self, at: Offset) {
        self.wire.set_offset(at);
    }

    /// Takes the next bytes of the body. Does nothing once the outcome is decided.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.is_ended() {
            return;
        }
        let read = self.wire.push(bytes);
        self.pass_frames(read);
        self.end_if_decided();
    }

    /// The body is at its end.
    pub fn finish(&mut self) {
        if self.is_ended() {
            return;
        }
        let read = self.wire.finish();
        self.pass_frames(read);
        if !self.stack.is_ended() {
            self.stack.finish();
        }
        self.end_if_decided();
    }

    /// The body failed. Returns whether this error is the outcome, see [`Stack::fail`].
    pub fn fail(&mut self, error: ErrorInfo) -> bool {
        let first = self.stack.fail(error);
        self.end_if_decided();
        first
    }

    /// The caller gives up; see [`Stack::abort`].
    pub fn abort(&mut self, reason: Option<Text>) {
        self.stack.abort(reason);
        self.end_if_decided();
    }

    /// Takes the bytes that the reader may have now. That is their delivery; taking the last ones ends the invocation.
    pub fn take(&mut self) -> Vec<u8> {
        for (index, chunk) in self.indices.drain(..).zip(self.chunks.drain(..)) {
            self.stack.deliver(index, &chunk);
        }
        if self.is_ended {
            while self.stack.pop().is_some() {}
        }
        std::mem::take(&mut self.out)
    }

    /// How many bytes wait to be taken.
    pub fn len(&self) -> usize {
        self.out.len()
    }

    /// Whether no bytes wait.
    pub fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// Whether the outcome is decided. The source is then of no more use; bytes may still be there to take.
    pub fn is_ended(&self) -> bool {
        self.stack.is_ended()
    }

    /// The outcome, once it is decided.
    pub fn outcome(&self) -> Option<&Arc<Outcome>> {
        self.stack.outcome()
    }

    /// The stack inside.
    pub fn stack(&self) -> &Stack {
        &self.stack
    }

    /// The decoder, for its format and stats.
    pub fn decoder(&self) -> &Decoder {
        self.wire.decoder()
    }

    fn pass_frames(&mut self, mut read: Result<(), WireError>) {
        while !self.stack.is_ended() {
            match self.wire.next_frame(&mut self.frame) {
                Ok(true) => self.pass_frame(),
                Ok(false) => break,
                Err(error) => {
                    read = read.and(Err(error));
                    break;
                }
            }
        }
        if let Err(error) = read {
            self.stack.fail(ErrorInfo::new(error.code()).with_message(error.to_string()));
        }
    }

    fn pass_frame(&mut self) {
        let first = self.chunks.len();
        for chunk in self.frame.drain(..) {
            if self.stack.passes(&chunk) {
                let passed = self.stack.passed(chunk);
                self.chunks.push(passed.chunk);
                self.indices.push(passed.index);
                continue;
            }
            self.stack.go_on(chunk);
            while let Some(passed) = self.stack.take() {
                self.chunks.push(passed.chunk);
                self.indices.push(passed.index);
            }
        }
        if self.wire.write(&self.chunks[first..], &mut self.out).is_err() {
            self.stack.has_no_place();
        }
    }

    /// Writes what the end released, and the ending.
    fn end_if_decided(&mut self) {
        let Some(outcome) = self.stack.outcome().filter(|_| !self.is_ended).cloned() else { return };
        self.is_ended = true;
        let first = self.chunks.len();
        while let Some(passed) = self.stack.take() {
            self.chunks.push(passed.chunk);
            self.indices.push(passed.index);
        }
        if self.wire.release(&self.chunks[first..], &mut self.out).is_err() {
            self.stack.has_no_place();
        }
        self.wire.end(&outcome, &mut self.out);
    }
}

impl Drop for ObservedBytes {
    fn drop(&mut self) {
        // What waits was not delivered.
        for (index, chunk) in self.indices.drain(..).zip(self.chunks.drain(..)).rev() {
            self.stack.give_back(Passed { index, chunk });
        }
    }
}

impl fmt::Debug for ObservedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObservedBytes")
            .field("stack", &self.stack)
            .field("waiting", &self.out.len())
            .finish_non_exhaustive()
    }
}

/// Puts observers around a body of bytes, in one line.
///
/// The body that comes out has the bytes of the provider, changed only where an observer changed them, and ends in a way that is valid in
/// its format. A body that did not finish has, after its last bytes, one error; [`ObservedBody::quiet`] leaves that out, for readers who
/// would cut the connection at an error.
///
/// ```
/// use futures_util::{TryStreamExt, stream};
/// use streamkeeper_contract::{Chunk, id};
/// use streamkeeper_stream::{ObserveBytesExt, ObserverContext, Registration, StreamWatcher};
///
/// #[derive(Clone)]
/// struct Idle;
///
/// impl StreamWatcher for Idle {
///     fn on_chunk(&mut self, _: &Chunk, _: &mut ObserverContext<'_>) {}
/// }
///
/// let reads = ["data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},", "\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"];
/// let body = stream::iter(reads.map(|read| Ok::<_, std::io::Error>(read.as_bytes().to_vec())));
///
/// # futures_executor::block_on(async {
/// let out: Vec<Vec<u8>> = body.observed_sse(Registration::watcher(id!("idle"), Idle)).try_collect().await?;
/// assert_eq!(out.concat(), reads.concat().into_bytes());
/// # Ok::<_, streamkeeper_stream::ObservedError<std::io::Error>>(())
/// # }).unwrap();
/// ```
pub trait ObserveBytesExt: Stream + Sized {
    /// The observed body, in a format that is told from its first event. Works for every framing, not for SSE alone.
    fn observed_sse<B, E>(self, observers: impl Into<Observers>) -> ObservedBody<Self, E>
    where
        Self: Stream<Item = Result<B, E>>,
        B: AsRef<[u8]> + From<Vec<u8>>,
    {
        self.observed_bytes(Decoder::detect(), observers.into().stack(&ObserverFactoryContext::default()))
    }

    /// The same with a decoder of a named format or with other limits, and with a stack that is built already.
    fn observed_bytes<B, E>(self, decoder: Decoder, stack: Stack) -> ObservedBody<Self, E>
    where
        Self: Stream<Item = Result<B, E>>,
        B: AsRef<[u8]> + From<Vec<u8>>,
    {
        ObservedBody {
            source: (!stack.is_ended()).then_some(self),
            bytes: ObservedBytes::new(decoder, stack),
            started: Instant::now(),
            error: None,
            is_over: false,
        }
    }
}

impl<S: Stream> ObserveBytesExt for S {}

pin_project! {
    /// An observed body of bytes; see [`ObserveBytesExt`]. Reads the clock once a read.
    #[must_use = "streams do nothing unless polled"]
    pub struct ObservedBody<S, E> {
        #[pin]
        source: Option<S>,
        bytes: ObservedBytes,
        started: Instant,
        error: Option<E>,
        is_over: bool,
    }
}

impl<S, E> ObservedBody<S, E> {
    /// The same without errors of ours: after the last bytes it ends, or yields the source's own error.
    pub fn quiet(self) -> QuietBody<S, E> {
        QuietBody { observed: self }
    }

    /// Gives up: the source is dropped, held text is withheld, a valid ending is written. The outcome is `Aborted` if nothing else was
    /// decided.
    pub fn abort(self: Pin<&mut Self>, reason: Option<Text>) {
        let mut this = self.project();
        this.bytes.abort(reason);
        this.source.set(None);
    }

    /// What is inside.
    pub fn bytes(&self) -> &ObservedBytes {
        &self.bytes
    }
}

/// What comes next for the reader of a body.
enum Next<B, E> {
    Bytes(B),
    Failed(E),
    Ended(Arc<Outcome>),
}

impl<S, B, E> ObservedBody<S, E>
where
    S: Stream<Item = Result<B, E>>,
    B: AsRef<[u8]> + From<Vec<u8>>,
{
    fn poll_bytes(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Next<B, E>>> {
        let mut this = self.project();
        loop {
            if !this.bytes.is_empty() {
                return Poll::Ready(Some(Next::Bytes(this.bytes.take().into())));
            }
            if let Some(outcome) = this.bytes.outcome().filter(|_| !*this.is_over).cloned() {
                *this.is_over = true;
                // The end itself is taken, if no bytes were left to take it with.
                drop(this.bytes.take());
                return Poll::Ready(Some(match this.error.take() {
                    Some(error) => Next::Failed(error),
                    None => Next::Ended(outcome),
                }));
            }
            let Some(source) = this.source.as_mut().as_pin_mut() else { return Poll::Ready(None) };
            match ready!(source.poll_next(cx)) {
                Some(Ok(bytes)) => {
                    this.bytes.set_offset(this.started.elapsed().into());
                    this.bytes.push(bytes.as_ref());
                }
                Some(Err(error)) => {
                    *this.error = this.bytes.fail(ErrorInfo::new("source_error")).then_some(error);
                }
                None => this.bytes.finish(),
            }
            if this.bytes.is_ended() {
                this.source.set(None);
            }
        }
    }
}

impl<S, B, E> Stream for ObservedBody<S, E>
where
    S: Stream<Item = Result<B, E>>,
    B: AsRef<[u8]> + From<Vec<u8>>,
{
    type Item = Result<B, ObservedError<E>>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(match ready!(self.poll_bytes(cx)) {
            Some(Next::Bytes(bytes)) => Some(Ok(bytes)),
            Some(Next::Failed(error)) => Some(Err(ObservedError::Source(error))),
            Some(Next::Ended(outcome)) if !outcome.is_finished() => Some(Err(ObservedError::Ended(outcome))),
            Some(Next::Ended(_)) | None => None,
        })
    }
}

impl<S, B, E> FusedStream for ObservedBody<S, E>
where
    S: Stream<Item = Result<B, E>>,
    B: AsRef<[u8]> + From<Vec<u8>>,
{
    fn is_terminated(&self) -> bool {
        self.is_over
    }
}

impl<S, E> fmt::Debug for ObservedBody<S, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObservedBody").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

pin_project! {
    /// An observed body without errors of ours; see [`ObservedBody::quiet`].
    #[must_use = "streams do nothing unless polled"]
    pub struct QuietBody<S, E> {
        #[pin]
        observed: ObservedBody<S, E>,
    }
}

impl<S, E> QuietBody<S, E> {
    /// The outcome, once it is decided.
    pub fn outcome(&self) -> Option<&Arc<Outcome>> {
        self.observed.bytes.outcome()
    }
}

impl<S, B, E> Stream for QuietBody<S, E>
where
    S: Stream<Item = Result<B, E>>,
    B: AsRef<[u8]> + From<Vec<u8>>,
{
    type Item = Result<B, E>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(match ready!(self.project().observed.poll_bytes(cx)) {
            Some(Next::Bytes(bytes)) => Some(Ok(bytes)),
            Some(Next::Failed(error)) => Some(Err(error)),
            Some(Next::Ended(_)) | None => None,
        })
    }
}

impl<S, E> fmt::Debug for QuietBody<S, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuietBody").field("bytes", &self.observed.bytes).finish_non_exhaustive()
    }
}

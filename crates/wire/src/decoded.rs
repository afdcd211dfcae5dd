use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Instant,
};

use futures_core::{FusedStream, Stream};
use pin_project_lite::pin_project;
use streamkeeper_contract::{Chunk, Offset};

use crate::{Decoder, WireError};

/// Decodes a stream of bytes, in one line.
///
/// ```
/// use futures_util::{TryStreamExt, stream};
/// use streamkeeper_contract::Chunk;
/// use streamkeeper_wire::{DecodeError, DecodeExt, Decoder, Format};
///
/// let reads = ["data: {\"choices\":[{\"index\":0,\"delta\":{\"con", "tent\":\"Hi\"}}]}\n\ndata: [DONE]\n\n"];
/// let body = stream::iter(reads.map(Ok::<_, std::io::Error>));
///
/// # futures_executor::block_on(async {
/// let chunks: Vec<Chunk> = body.decoded(Decoder::new(Format::OpenAiChat)).try_collect().await?;
/// assert_eq!(chunks.iter().filter_map(Chunk::text).collect::<String>(), "Hi");
/// # Ok::<_, DecodeError<std::io::Error>>(())
/// # }).unwrap();
/// ```
pub trait DecodeExt: Stream + Sized {
    /// The chunks of this body. Needs no runtime and spawns nothing.
    ///
    /// The source is polled only when all chunks of the last read were taken, and dropped as soon as it ended, gave an error, or gave
    /// bytes that cannot be read on. Chunks that were decoded before an error come first; the error is the last item.
    fn decoded<B, E>(self, decoder: Decoder) -> Decoded<Self>
    where
        Self: Stream<Item = Result<B, E>>,
        B: AsRef<[u8]>,
    {
        Decoded { source: Some(self), decoder, clock: Clock::Started(None), error: None }
    }
}

impl<S: Stream> DecodeExt for S {}

pin_project! {
    /// A stream of chunks, made by [`DecodeExt::decoded`].
    ///
    /// Each chunk is stamped with the time of the read that completed it, counted from the first poll; the clock is read once a read.
    #[derive(Debug)]
    #[must_use = "streams do nothing unless polled"]
    pub struct Decoded<S> {
        #[pin]
        source: Option<S>,
        decoder: Decoder,
        clock: Clock,
        error: Option<WireError>,
    }
}

impl<S> Decoded<S> {
    /// Takes the arrival of each read from here instead of the system's clock.
    ///
    /// ```
    /// use futures_util::{StreamExt, stream};
    /// use streamkeeper_contract::Offset;
    /// use streamkeeper_wire::{DecodeExt, Decoder, Format};
    ///
    /// let reads = ["data: a\n\n", "data: b\n\n"].map(Ok::<_, std::io::Error>);
    /// let mut ticks = 0;
    /// let chunks = stream::iter(reads).decoded(Decoder::new(Format::Raw)).with_clock(move || {
    ///     ticks += 10;
    ///     Offset(ticks)
    /// });
    /// let offsets = chunks.map(|chunk| chunk.unwrap().offset().0);
    /// # let offsets = futures_executor::block_on(offsets.collect::<Vec<_>>());
    /// // The last one is a finish, made of the end of the body.
    /// assert_eq!(offsets, [10, 20, 20]);
    /// ```
    pub fn with_clock(mut self, clock: impl FnMut() -> Offset + Send + 'static) -> Self {
        self.clock = Clock::Given(Box::new(clock));
        self
    }

    /// Leaves the arrival of chunks at 0 and reads no clock.
    pub fn without_clock(mut self) -> Self {
        self.clock = Clock::Off;
        self
    }

    /// The decoder: for its format and stats, also when the stream is over.
    pub fn decoder(&self) -> &Decoder {
        &self.decoder
    }
}

impl<S, B, E> Stream for Decoded<S>
where
    S: Stream<Item = Result<B, E>>,
    B: AsRef<[u8]>,
{
    type Item = Result<Chunk, DecodeError<E>>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut this = self.project();
        this.clock.start();
        loop {
            if let Some(chunk) = this.decoder.next_chunk() {
                return Poll::Ready(Some(Ok(chunk)));
            }
            let Some(source) = this.source.as_mut().as_pin_mut() else {
                return Poll::Ready(this.error.take().map(|error| Err(DecodeError::Wire(error))));
            };
            let decoded = match ready!(source.poll_next(cx)) {
                Some(Ok(bytes)) => {
                    if let Some(at) = this.clock.now() {
                        this.decoder.set_offset(at);
                    }
                    this.decoder.push(bytes.as_ref())
                }
                Some(Err(error)) => {
                    this.source.set(None);
                    return Poll::Ready(Some(Err(DecodeError::Source(error))));
                }
                None => {
                    this.source.set(None);
                    this.decoder.finish()
                }
            };
            if let Err(error) = decoded {
                this.source.set(None);
                *this.error = Some(error);
            }
        }
    }
}

impl<S, B, E> FusedStream for Decoded<S>
where
    S: Stream<Item = Result<B, E>>,
    B: AsRef<[u8]>,
{
    fn is_terminated(&self) -> bool {
        self.source.is_none() && self.error.is_none() && self.decoder.is_drained()
    }
}

/// A body that could not be read to its end. It is the last item.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError<E> {
    /// The source's own error, as it gave it.
    #[error(transparent)]
    Source(E),
    /// The bytes are no stream of events, or not in the named format.
    #[error(transparent)]
    Wire(WireError),
}

/// Tells when a read arrived.
enum Clock {
    Off,
    Started(Option<Instant>),
    Given(Box<dyn FnMut() -> Offset + Send>),
}

impl Clock {
    fn start(&mut self) {
        if let Clock::Started(start @ None) = self {
            *start = Some(Instant::now());
        }
    }

    fn now(&mut self) -> Option<Offset> {
        match self {
            Clock::Off => None,
            Clock::Started(start) => start.map(|start| start.elapsed().into()),
            Clock::Given(clock) => Some(clock()),
        }
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Clock::Off => f.write_str("Off"),
            Clock::Started(start) => f.debug_tuple("Started").field(start).finish(),
            Clock::Given(_) => f.write_str("Given"),
        }
    }
}

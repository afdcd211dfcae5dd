//! Stream observers for the response bodies of [`reqwest`]: provider bytes in, the same bytes out, changed only where an observer changed
//! them.
//!
//! Works for every provider whose stream [`streamkeeper_wire`] reads, without any client crate: for a proxy, for a gateway, or in front of a
//! parser of your own.
//!
//! ```no_run
//! use futures_util::StreamExt;
//! use streamkeeper_reqwest::ObserveResponse;
//! # async fn run(request: reqwest::RequestBuilder, observers: streamkeeper_stream::Observers) -> Result<(), Box<dyn std::error::Error>> {
//!
//! let response = request.send().await?.error_for_status()?;
//! let mut body = response.observed(observers); // the line
//! while let Some(bytes) = body.next().await {
//!     send_on(bytes?); // untouched events are byte for byte as the provider sent them
//! }
//! # Ok(())
//! # }
//! # fn send_on(_: bytes::Bytes) {}
//! ```
#![forbid(unsafe_code)]

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_core::Stream;
use streamkeeper_stream::{ObserveBytesExt, ObservedBody, ObserverFactoryContext, Observers, Stack};
use streamkeeper_wire::{Decoder, Format};

/// Puts observers around the body of a [`reqwest::Response`].
///
/// What comes out is a stream of [`Bytes`] whose last item, if the invocation did not finish, is an error: reqwest's own, or the outcome.
/// However it ends, the bytes before that are a valid ending of the format, so that an official client can read them.
/// [`quiet`](ObservedBody::quiet) leaves our errors out.
///
/// A stop or failure drops the response, which closes its connection (HTTP/1) or resets its stream (HTTP/2): nothing more is generated
/// that nobody reads.
///
/// Status and headers are gone once this is called; look at them before. When the body is passed on, leave `content-length` and
/// `content-encoding` out: the length may differ, and reqwest has decoded it.
pub trait ObserveResponse: Sized {
    /// The observed body, in a format that is told from its first event.
    fn observed(self, observers: impl Into<Observers>) -> ObservedResponse {
        self.observed_with(Decoder::detect(), observers.into().stack(&ObserverFactoryContext::default()))
    }

    /// The observed body in a named format. A body that is in another one fails with a code that says so.
    fn observed_as(self, format: Format, observers: impl Into<Observers>) -> ObservedResponse {
        self.observed_with(Decoder::new(format), observers.into().stack(&ObserverFactoryContext::default()))
    }

    /// The same with a decoder of other limits, and with a stack that is built already, for example for a class of calls.
    fn observed_with(self, decoder: Decoder, stack: Stack) -> ObservedResponse;
}

/// The observed body of a response.
pub type ObservedResponse = ObservedBody<ResponseBody, reqwest::Error>;

impl ObserveResponse for reqwest::Response {
    fn observed_with(self, decoder: Decoder, stack: Stack) -> ObservedResponse {
        ResponseBody(Box::pin(self.bytes_stream())).observed_bytes(decoder, stack)
    }
}

/// The body of a response as a stream with a name: [`reqwest::Response::bytes_stream`], boxed once.
pub struct ResponseBody(Pin<Box<dyn Stream<Item = reqwest::Result<Bytes>> + Send>>);

impl Stream for ResponseBody {
    type Item = reqwest::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.as_mut().poll_next(cx)
    }
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ResponseBody")
    }
}

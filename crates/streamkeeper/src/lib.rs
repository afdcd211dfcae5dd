//! Watch, guard and steer the streams of language models.
//!
//! Streamkeeper stands between a model and whoever reads its answer. A stream of any large provider becomes one kind of
//! [`Chunk`](contract::Chunk)s; each chunk passes a list of observers before it is delivered; an observer may look, change, hold back or
//! stop. There is no runtime in here, no thread and no lock on the way of a chunk.
//!
//! # Quick start
//!
//! One line around a stream you have. It stops before the model talks itself into a refusal, and tells how the stream went:
//!
//! ```
//! use std::sync::Arc;
//!
//! use futures_util::{StreamExt, stream};
//! use streamkeeper::{
//!     observers::{HaltOnPattern, Metrics},
//!     prelude::*,
//! };
//!
//! # futures_executor::block_on(async {
//! let events = Arc::new(EventQueue::bounded(64));
//! let mut observers = Observers::new().events(events.clone());
//! observers.register(HaltOnPattern::refusals())?; // a guard
//! observers.register(Metrics::new())?; // a watcher
//!
//! # let texts = ["I'm sorry, but ", "I cannot", " help", " with that."];
//! # let model = stream::iter(texts.map(|text| Ok::<_, std::io::Error>(Chunk::delta(Lane::TEXT, text))));
//! let mut answer = model.observed(&observers); // the line
//!
//! let mut text = String::new();
//! while let Some(chunk) = answer.next().await {
//!     match chunk {
//!         Ok(chunk) if chunk.kind() == ChunkKind::ContentDelta => text.push_str(chunk.text().unwrap_or_default()),
//!         Ok(_) => {} // reasoning, tool calls, usage, the end
//!         Err(error) => println!("{error}"), // it was stopped: ask another model
//!     }
//! }
//! drop(answer);
//!
//! assert_eq!(text, "I'm sorry, but I cannot help");
//! assert_eq!(events.pop().unwrap().channel, Metrics::CHANNEL);
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```
//!
//! Where do chunks come from? From provider bytes, in any split, by a [`Decoder`](wire::Decoder):
//!
//! ```
//! use streamkeeper::{prelude::*, wire::Decoder};
//!
//! let body = br#"data: {"id":"1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"Hello"}}]}
//!
//! data: {"id":"1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}
//!
//! data: [DONE]
//!
//! "#;
//! let mut decoder = Decoder::detect();
//! let mut chunks = Vec::new();
//! for read in body.chunks(7) {
//!     decoder.push(read)?;
//!     chunks.extend(std::iter::from_fn(|| decoder.next_chunk()));
//! }
//! decoder.finish()?;
//!
//! assert!(chunks.iter().any(|chunk| chunk.text() == Some("Hello")));
//! # Ok::<_, streamkeeper::wire::WireError>(())
//! ```
//!
//! And an observer of your own is a type with one method. Text comes in pieces that somebody else chose: this one needs a single
//! character; how to look for more is in `docs/authoring.md`, and [`Redact`](observers::Redact) and
//! [`TextObserver`](observers::TextObserver) do it exactly.
//!
//! ```
//! use streamkeeper::prelude::*;
//!
//! /// Ends the call when the model writes markup.
//! #[derive(Clone)]
//! struct NoMarkup;
//!
//! impl StreamObserver for NoMarkup {
//!     fn on_chunk(&mut self, _: &Chunk, ctx: &mut ObserverContext<'_>) -> Verdict {
//!         if ctx.pending().contains('<') {
//!             Verdict::stop("markup", "the answer has markup in it")
//!         } else {
//!             Verdict::Continue
//!         }
//!     }
//! }
//!
//! let observers = Observers::from(Registration::guard(id!("no-markup"), NoMarkup));
//! let mut stack = observers.stack(&ObserverFactoryContext::default());
//! stack.push(Chunk::delta(Lane::TEXT, "Never <b>ever</b>"));
//! assert_eq!(stack.outcome().unwrap().code(), "stopped");
//! ```
//!
//! # Where things are
//!
//! | module | what it has | feature |
//! |---|---|---|
//! | [`contract`] | the data: chunks, lanes, verdicts, usage, outcomes, ids, failures | always |
//! | [`wire`] | provider bytes to chunks and back | `wire` |
//! | [`stream`] | observers, registrations, the stack, recordings | `stream` |
//! | [`observers`] | what comes bundled | `observers` |
//! | [`text`] | exact search in text that comes in pieces | `observers` |
//! | `policy` | observers from a file in TOML or JSON | `policy` |
//! | `stream::testing` | a kit to test observers of your own | `testing` |
//! | [`Plugin`] | sets of observers that are installed as one | `stream` |
//! | `reqwest` | `response.observed(..)`: the bytes of a response, whatever the provider | `reqwest` |
//! | `async_openai` | `stream.observed(..)` for the streams of async-openai, item types kept | `async-openai` |
//!
//! The features of the first five modules and of [`Plugin`] are on by default, and none of them brings a runtime. An application names this crate; a library
//! that implements one observer can depend on `streamkeeper-stream` alone.
#![forbid(unsafe_code)]

#[cfg(feature = "stream")]
mod plugin;

#[cfg(feature = "async-openai")]
pub use streamkeeper_async_openai as async_openai;
pub use streamkeeper_contract as contract;
#[cfg(feature = "observers")]
pub use streamkeeper_observers as observers;
#[cfg(feature = "policy")]
pub use streamkeeper_policy as policy;
#[cfg(feature = "reqwest")]
pub use streamkeeper_reqwest as reqwest;
#[cfg(feature = "stream")]
pub use streamkeeper_stream as stream;
#[cfg(feature = "observers")]
pub use streamkeeper_text as text;
#[cfg(feature = "wire")]
pub use streamkeeper_wire as wire;

#[cfg(feature = "stream")]
pub use plugin::{Plugin, PluginError, Plugins};

/// What most programs name.
///
/// ```
/// use streamkeeper::prelude::*;
/// ```
pub mod prelude {
    #[doc(no_inline)]
    pub use streamkeeper_contract::{
        Body, CallClass, Channel, Chunk, ChunkKind, FinishReason, Id, Json, Lane, Outcome, Piece, Release, SideEvent,
        Text, Verdict, id,
    };
    #[cfg(feature = "stream")]
    #[doc(no_inline)]
    pub use streamkeeper_stream::{
        EventQueue, Interest, InvocationResult, ObserveExt, ObservedError, ObserverContext, ObserverFactoryContext,
        Observers, OnFailure, RegisterError, Registration, Stack, StreamObserver, StreamWatcher, from_fn,
    };

    #[cfg(all(feature = "stream", feature = "wire"))]
    #[doc(no_inline)]
    pub use streamkeeper_stream::ObserveBytesExt;

    #[cfg(feature = "reqwest")]
    #[doc(no_inline)]
    pub use streamkeeper_reqwest::ObserveResponse;

    #[cfg(feature = "stream")]
    #[doc(no_inline)]
    pub use crate::{Plugin, Plugins};
}

/// The Rust in the pages of `docs` is compiled and run.
#[cfg(all(doctest, feature = "stream"))]
mod pages {
    #[doc = include_str!("../../../docs/authoring.md")]
    struct Authoring;

    #[doc = include_str!("../../../docs/observer-contract.md")]
    struct ObserverContract;

    #[doc = include_str!("../../../docs/determinism.md")]
    struct Determinism;

    #[cfg(feature = "policy")]
    #[doc = include_str!("../../../docs/policy.md")]
    struct Policy;

    #[cfg(feature = "testing")]
    #[doc = include_str!("../../../docs/testing.md")]
    struct Testing;
}

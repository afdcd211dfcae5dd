//! Synchronous observers between a model's stream and its consumer.
//!
//! An observer looks at each [`Chunk`](streamkeeper_contract::Chunk) and answers with a
//! [`Verdict`](streamkeeper_contract::Verdict). The [`Stack`] owns the order, the held text and the failures; it is a state machine
//! without a runtime. [`ObserveExt::observed`] puts a stack around a stream.
//!
//! ```
//! use streamkeeper_contract::{Chunk, FinishReason, Lane, Verdict, id};
//! use streamkeeper_stream::{ObserverContext, Observers, Registration, StreamObserver};
//!
//! /// Ends the invocation when the model writes markup. A single character is never cut in two; longer texts are.
//! #[derive(Clone)]
//! struct NoMarkup;
//!
//! impl StreamObserver for NoMarkup {
//!     fn on_chunk(&mut self, chunk: &Chunk, _: &mut ObserverContext<'_>) -> Verdict {
//!         match chunk.text() {
//!             Some(text) if text.contains('<') => Verdict::stop("markup", "the answer has markup in it"),
//!             _ => Verdict::Continue,
//!         }
//!     }
//! }
//!
//! let observers = Observers::from(Registration::guard(id!("no-markup"), NoMarkup));
//! let mut stack = observers.stack(&Default::default());
//! for text in ["I am ", "<b>", "bold"] {
//!     stack.push(Chunk::delta(Lane::TEXT, text));
//! }
//! stack.finish();
//!
//! let out: Vec<_> = std::iter::from_fn(|| stack.pop()).collect();
//! assert_eq!(out[0].text(), Some("I am "));
//! assert_eq!(out[1].kind().as_str(), "end");
//! assert_eq!(out.len(), 2);
//! ```
#![forbid(unsafe_code)]

#[cfg(feature = "wire")]
mod bytes;
mod context;
mod events;
mod factory;
mod failures;
mod interest;
mod item;
mod limits;
mod observed;
mod observer;
mod recording;
mod registration;
mod stack;
#[cfg(feature = "testing")]
pub mod testing;

#[cfg(feature = "wire")]
pub use bytes::{ObserveBytesExt, ObservedBody, ObservedBytes, QuietBody};
pub use context::{InvocationResult, LaneText, ObserverContext};
pub use events::{Channels, EventQueue, EventSink};
pub use factory::{Extensions, Factory, FromFn, IntoFactory, IntoWatcherFactory, ObserverFactoryContext, from_fn};
pub use failures::TracingSink;
pub use interest::Interest;
pub use item::{Part, StreamItem};
pub use limits::Limits;
pub use observed::{Observable, ObserveExt, Observed, ObservedError, Quiet};
pub use observer::{StreamObserver, StreamWatcher};
pub use recording::{
    Action, Difference, Entry, Explanation, Finding, Header, NotRaw, RawRecording, RecordedObserver, Recorder,
    Recording, RecordingError, Replay, Replayed, Rule, SourceEnd, Step, Summary, Tape, Track, VerdictEntry, View,
    explain,
};
pub use registration::{Observers, OnFailure, RegisterError, Registration, Role, When};
pub use stack::{Stack, StackBuilder};

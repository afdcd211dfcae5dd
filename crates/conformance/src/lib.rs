//! Vectors and kits that say whether an implementation keeps Streamkeeper's rules.
//!
//! The vectors are JSON files that any language can read: bytes in and chunks out for the wire, chunks and observers in and delivered
//! chunks out for the stream, and for the bundled observers. Each names the rules that it holds. Run them against
//!
//! - our own crates: [`wire::Ours`], [`stream::Ours`], [`observers::Registered`], which takes observers of your own too;
//! - a decoder or a stack of your own in Rust: implement [`WireImplementation`] or [`StreamImplementation`];
//! - a program in any language: [`Process`], which speaks JSON lines over its stdin and stdout.
//!
//! [`stream::check_observer`] is for an observer of your own: it finds out whether the observer gives the same text for every split of
//! its input, settles what it holds, and gives the same answers twice.
//!
//! Depend on this crate in `[dev-dependencies]`. It has one feature a layer: `wire`, `stream` and `observers`, all on by default.
//!
//! ```
//! # #[cfg(feature = "wire")] {
//! let report = streamkeeper_conformance::wire::run("running totals", &mut streamkeeper_conformance::wire::Ours);
//! assert!(report.is_clean(), "{report}");
//! # }
//! ```
#![forbid(unsafe_code)]

#[cfg(feature = "wire")]
mod bytes;
#[cfg(any(feature = "wire", feature = "stream"))]
mod compare;
#[cfg(feature = "observers")]
pub mod observers;
#[cfg(any(feature = "wire", feature = "stream"))]
mod process;
mod report;
#[cfg(feature = "stream")]
pub mod stream;
#[cfg(any(feature = "wire", feature = "stream"))]
mod vector;
#[cfg(feature = "wire")]
pub mod wire;

#[cfg(feature = "observers")]
pub use observers::{ObserversAnswer, ObserversCase, ObserversImplementation};
#[cfg(any(feature = "wire", feature = "stream"))]
pub use process::{Process, answer};
pub use report::{Failed, NoAnswer, Report};
#[cfg(feature = "stream")]
pub use stream::{StreamAnswer, StreamCase, StreamImplementation};
#[cfg(feature = "wire")]
pub use wire::{WireAnswer, WireCase, WireImplementation};

//! A kit to test observers of your own, behind the feature `testing`. Put it into `[dev-dependencies]`:
//!
//! ```toml
//! streamkeeper-stream = { version = "0.1", features = ["testing"] }
//! ```
//!
//! | what you want to know | what to use |
//! |---|---|
//! | is the text the same wherever chunks and bytes are cut, and lanes take turns? | [`assert_split_invariant`] |
//! | does something that must not get out get out, by any door? | [`assert_no_leak`], [`assert_no_leak_in_bytes`] |
//! | what does the observer make of this stream? | [`Script`] says what enters and when, [`Ran`] what came of it |
//! | what does the stack ask an observer, in which order? | [`Mock`] |
//! | what does my program do when an observer fails? | [`Faulty`] |
//!
//! Nothing here waits or reads a clock: time is in the offsets of the chunks, so a test of a silence of ten minutes takes none. There is
//! no randomness either; what is called random follows from a seed.
//!
//! The messages of the kit say which run differs at which chunk, and show the texts: they are for tests, not for logs.
//!
//! ```
//! use streamkeeper_contract::{Chunk, Lane, Release, Verdict, id};
//! use streamkeeper_stream::{ObserverContext, Observers, Registration, StreamObserver, testing};
//!
//! /// Hides a word where one delta has all of it: wrong.
//! #[derive(Clone)]
//! struct Careless;
//!
//! impl StreamObserver for Careless {
//!     fn on_chunk(&mut self, chunk: &Chunk, ctx: &mut ObserverContext<'_>) -> Verdict {
//!         match ctx.pending().contains("secret") {
//!             true => Release::text(ctx.pending().replace("secret", "…")).into(),
//!             false => Verdict::Continue,
//!         }
//!     }
//! }
//!
//! let observers = Observers::from(Registration::guard(id!("careless"), Careless));
//! let chunks = [Chunk::delta(Lane::TEXT, "the secret word")];
//! let difference = testing::check_split_invariant(&observers, chunks.clone()).unwrap_err();
//! assert!(difference.to_string().starts_with("cut into single characters"), "{difference}");
//! let in_pieces = ["the sec", "ret word"].map(|piece| Chunk::delta(Lane::TEXT, piece));
//! assert!(testing::check_no_leak("secret", &observers, in_pieces).is_err());
//! ```

mod faulty;
mod invariance;
mod leak;
mod mock;
mod ran;
mod script;
mod split;

pub use faulty::Faulty;
pub use invariance::{
    SplitDifference, assert_split_invariant, assert_split_invariant_by, check_split_invariant, check_split_invariant_by,
};
pub use leak::{Leak, assert_no_leak, check_no_leak};
#[cfg(feature = "wire")]
pub use leak::{assert_no_leak_in_bytes, check_no_leak_in_bytes};
pub use mock::{Call, Mock, Unmet};
pub use ran::Ran;
pub use script::{Script, ScriptStream, SourceFailed};
pub use split::{Interleave, Split, rearrange};

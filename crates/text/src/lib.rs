//! Exact streaming search over text that arrives in pieces.
//!
//! A [`Scanner`] looks at the text of one stream piece by piece and says, after every piece, what is certain: which bytes are in no match,
//! which are in one, and which are still undecided. However the text is cut, the answer is the one that a search of the whole text would
//! give, and no byte waits longer than it must: a byte is undecided exactly while some continuation could still put it into a match that
//! is not certain yet.
//!
//! The scanner keeps positions and automaton states, never text. Whoever drives it keeps the undecided bytes and shows them again.
//!
//! This crate knows no chunks and no observers. Depend on it to search or mask any text that comes in pieces.
//!
//! ```
//! use streamkeeper_text::{Pattern, Patterns, redact_pieces};
//!
//! let patterns = Patterns::new([Pattern::regex("key", r"sk-[a-z0-9]{6,}")?])?;
//! let pieces = ["the key is s", "k-abc", "123, keep", " it"];
//! let out = redact_pieces(&patterns, pieces, |pattern| format!("[{pattern}]"));
//! assert_eq!(out.concat(), "the key is [key], keep it");
//! assert_eq!(out[0], "the key is "); // the `s` could be the beginning of a key
//! # Ok::<_, streamkeeper_text::PatternError>(())
//! ```
#![forbid(unsafe_code)]

mod common;
mod json;
mod machine;
mod pattern;
mod redact;
mod scan;
mod syntax;
mod table;
mod trie;

pub use json::{JsonCut, JsonScan, JsonScanner};
pub use pattern::{Cost, Pattern, PatternError, Patterns, Validator};
pub use redact::{redact_once, redact_pieces};
pub use scan::{Cut, CutKind, Scan, Scanner};

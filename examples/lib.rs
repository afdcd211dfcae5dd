//! Where the fixtures are, for the examples beside this file.
#![forbid(unsafe_code)]

use std::path::PathBuf;

/// The path of a stream in `examples/streams`, wherever the program is started.
pub fn stream(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("streams").join(name)
}

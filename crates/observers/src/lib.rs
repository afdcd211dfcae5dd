//! Bundled stream observers.
#![forbid(unsafe_code)]

//! `cargo xtask`: what the project does with itself.
#![forbid(unsafe_code)]

fn main() {}

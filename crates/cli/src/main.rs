//! The `streamkeeper` command.
#![forbid(unsafe_code)]

fn main() {}

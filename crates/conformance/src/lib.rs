//! Language-neutral vectors and kits to test an implementation of Streamkeeper's contracts.
#![forbid(unsafe_code)]

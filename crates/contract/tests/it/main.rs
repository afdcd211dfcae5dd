//! The contract's types as a user meets them.

mod chunk;
mod docs;
mod json_form;
mod names;
mod samples;
mod usage;

//! The contract's types as a user meets them.

mod json_form;
mod samples;

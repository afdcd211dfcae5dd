//! Watch, guard and steer streams of language models.
#![forbid(unsafe_code)]

//! async-openai's streams through observers, by constructed items and by its own client.

mod chat;
mod client;
mod common;
mod responses;
#[path = "../../../reqwest/tests/server/mod.rs"]
mod server;

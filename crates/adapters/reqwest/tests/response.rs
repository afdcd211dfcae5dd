//! Observers around the body of a real response, over a real connection to a server in this process.

mod server;

use std::{fs, path::Path};

use futures_util::StreamExt;
use server::{Served, Server};
use streamkeeper_contract::{Chunk, Outcome, Release, Verdict, id};
use streamkeeper_reqwest::{ObserveResponse, ObservedResponse};
use streamkeeper_stream::{ObservedError, ObserverContext, Registration, StreamObserver, StreamWatcher};
use streamkeeper_wire::Format;

fn fixture(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/streams").join(name);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Pieces of growing and shrinking size, which cut events, lines and characters anywhere.
fn pieces(mut body: &[u8]) -> Vec<Vec<u8>> {
    let mut pieces = Vec::new();
    for size in [1, 2, 3, 5, 7, 64, 300, 11].into_iter().cycle() {
        if body.is_empty() {
            return pieces;
        }
        let (piece, rest) = body.split_at(size.min(body.len()));
        pieces.push(piece.to_vec());
        body = rest;
    }
    pieces
}

async fn get(server: &Server) -> reqwest::Response {
    reqwest::get(&server.url).await.unwrap()
}

/// The bytes, and how it ended if it did not finish.
async fn read(mut body: ObservedResponse) -> (Vec<u8>, Option<ObservedError<reqwest::Error>>) {
    let (mut bytes, mut error) = (Vec::new(), None);
    while let Some(item) = body.next().await {
        match item {
            Ok(read) => bytes.extend_from_slice(&read),
            Err(ended) => error = Some(ended),
        }
    }
    (bytes, error)
}

fn outcome(error: Option<ObservedError<reqwest::Error>>) -> Outcome {
    match error {
        Some(ObservedError::Ended(outcome)) => Outcome::clone(&outcome),
        other => panic!("no outcome but {other:?}"),
    }
}

/// How the server saw the end. The client's side of the connection is a task of this runtime, so it must not be blocked meanwhile.
async fn served(server: Server) -> Served {
    tokio::task::spawn_blocking(|| server.served()).await.unwrap()
}

#[derive(Clone)]
struct Idle;

impl StreamWatcher for Idle {
    fn on_chunk(&mut self, _: &Chunk, _: &mut ObserverContext<'_>) {}
}

fn idle() -> Registration {
    Registration::watcher(id!("idle"), Idle)
}

/// Replaces a name however it is cut, and stops at a word.
#[derive(Clone)]
struct Guard;

impl StreamObserver for Guard {
    fn on_chunk(&mut self, chunk: &Chunk, ctx: &mut ObserverContext<'_>) -> Verdict {
        let text = ctx.pending();
        if !chunk.is_delta() {
            Verdict::Continue
        } else if text.contains("cannot help") {
            Verdict::stop("refused", "the model refused")
        } else {
            let keep =
                ["Maya", "May", "Ma", "M"].iter().find(|begun| text.ends_with(**begun)).map_or(0, |s| s.len() % 4);
            Release::text(text[..text.len() - keep].replace("Maya", "[name]")).keep(keep).into()
        }
    }

    fn on_barrier(&mut self, ctx: &mut ObserverContext<'_>) -> Verdict {
        Release::text(ctx.pending().replace("Maya", "[name]")).into()
    }
}

fn guard() -> Registration {
    Registration::guard(id!("guard"), Guard)
}

/// spec 2.8
#[tokio::test]
async fn watched_bytes_are_the_providers_bytes() {
    for name in
        ["support-chat.openai.sse", "support-chat.anthropic.sse", "support-chat.gemini.sse", "tool-calls.openai.sse"]
    {
        let body = fixture(name);
        let server = Server::start(pieces(&body), false);
        let (bytes, error) = read(get(&server).await.observed(idle())).await;
        assert!(error.is_none(), "{name}: {error:?}");
        assert_eq!(bytes, body, "{name}");
        assert_eq!(served(server).await, Served::Whole);
    }
}

#[tokio::test]
async fn an_amended_text_changes_and_nothing_else() {
    let body = fixture("support-chat.openai.sse");
    let server = Server::start(pieces(&body), false);
    let (bytes, error) = read(get(&server).await.observed_as(Format::OpenAiChat, guard())).await;
    assert!(error.is_none(), "{error:?}");
    let expected = String::from_utf8(body).unwrap().replace("\"Hi Maya\"", "\"Hi [name]\"");
    assert_eq!(String::from_utf8(bytes).unwrap(), expected);
}

/// A stop drops the response while the server would go on for ever, and what was read until then is a valid stream.
#[tokio::test]
async fn a_stop_closes_the_connection_and_ends_the_body_validly() {
    let server = Server::start(pieces(&fixture("refusal.openai.sse")), true);
    let (bytes, error) = read(get(&server).await.observed(guard())).await;
    let Outcome::Stopped(stop) = outcome(error) else { panic!("it was not stopped") };
    assert_eq!(stop.code, "refused");
    assert_eq!(served(server).await, Served::HungUp);

    let text = String::from_utf8(bytes).unwrap();
    assert!(!text.contains("cannot help"), "{text}");
    assert!(text.contains("\"finish_reason\":\"content_filter\""), "{text}");
    assert!(text.ends_with("data: [DONE]\n\n"), "{text}");
}

#[tokio::test]
async fn a_dropped_body_closes_the_connection() {
    let server = Server::start(pieces(&fixture("support-chat.openai.sse")), true);
    let mut body = get(&server).await.observed(idle());
    assert!(body.next().await.unwrap().is_ok());
    drop(body);
    assert_eq!(served(server).await, Served::HungUp);
}

/// A connection that breaks is reqwest's own error, after what came before it.
#[tokio::test]
async fn a_lost_connection_stays_an_error_of_reqwest() {
    let body = fixture("support-chat.openai.sse");
    let server = Server::cut_off(pieces(&body[..900]));
    let (bytes, error) = read(get(&server).await.observed(idle())).await;
    let Some(ObservedError::Source(error)) = error else { panic!("{error:?}") };
    assert!(error.is_body() || error.is_decode(), "{error:?}");
    let common = bytes.iter().zip(&body).take_while(|(ours, theirs)| ours == theirs).count();
    assert!(common > 500, "{common} bytes came before the break");
}

#[tokio::test]
async fn a_body_that_just_ends_is_truncated() {
    let server = Server::start(pieces(&fixture("cut-off.anthropic.sse")), false);
    let (_, error) = read(get(&server).await.observed(idle())).await;
    assert_eq!(outcome(error), Outcome::Truncated);
}

#[tokio::test]
async fn a_body_in_another_format_fails_with_a_code() {
    let server = Server::start(pieces(&fixture("support-chat.anthropic.sse")), false);
    let (_, error) = read(get(&server).await.observed_as(Format::OpenAiChat, idle())).await;
    let Outcome::Failed { error } = outcome(error) else { panic!("it did not fail") };
    assert_eq!(error.code, "wrong_format");
}

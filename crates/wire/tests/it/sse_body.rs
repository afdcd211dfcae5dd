//! Bodies of responses: spec 2.9.

use std::{
    cell::Cell,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, Waker},
};

use futures_util::{Stream, StreamExt, stream};
use streamkeeper_contract::{Body, Chunk, FinishReason, Lane, Outcome, Stop, id};
use streamkeeper_wire::{
    SseBodyExt,
    encode::{Encoder, Target},
};

use crate::said::decode;

fn hello() -> Vec<Result<Chunk, std::io::Error>> {
    vec![Ok(Chunk::delta(Lane::TEXT, "Hello")), Ok(Chunk::finish(0, FinishReason::Stop))]
}

fn read(body: impl Stream<Item = Result<bytes::Bytes, std::convert::Infallible>>) -> Vec<u8> {
    let bytes = body.map(|bytes| bytes.unwrap_or_else(|never| match never {}).to_vec());
    futures_executor::block_on(bytes.concat())
}

// spec 2.9
#[test]
fn a_body_says_what_the_chunks_say_and_ends() {
    for target in Target::ALL.iter().copied() {
        let body = read(stream::iter(hello()).into_sse_body(target));
        let chunks = decode(target.format(), &body);
        let text: String = chunks.iter().filter(|chunk| chunk.is_delta()).filter_map(Chunk::text).collect();
        assert_eq!(text, "Hello", "{target}");
        assert!(chunks.iter().any(|chunk| matches!(chunk.body(), Body::Finish(_))), "{target}");
        assert!(body.starts_with(b"data: ") || body.starts_with(b"event: "), "{target} is server-sent");
    }
}

#[test]
fn an_error_of_the_source_ends_the_body_as_it_is_told_to() {
    let source =
        || stream::iter(vec![Ok(Chunk::delta(Lane::TEXT, "Hel")), Err(std::io::Error::other("secret address"))]);
    let failed = read(source().into_sse_body(Target::OpenAiChat));
    let failed = String::from_utf8(failed).expect("UTF-8");
    assert!(failed.contains("stream_failed") && failed.ends_with("data: [DONE]\n\n"), "{failed}");
    assert!(!failed.contains("secret address"));
    let stop = Outcome::Stopped(Stop {
        observer: id!("guard"),
        code: "pattern_matched".into(),
        reason: "a refusal".into(),
        chunk_index: 1,
        accumulated_content_length: 3,
    });
    let stopped = read(source().into_sse_body_with(Encoder::new(Target::OpenAiChat)).ending(|_| stop.clone()));
    let stopped = String::from_utf8(stopped).expect("UTF-8");
    assert!(stopped.contains("content_filter") && !stopped.contains("error"), "{stopped}");
}

/// A source that counts how often it is polled, and says when it is dropped.
struct Watched {
    polls: Rc<Cell<u32>>,
    dropped: Rc<Cell<bool>>,
    ready: u32,
}

impl Stream for Watched {
    type Item = Result<Chunk, std::io::Error>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.polls.set(self.polls.get() + 1);
        if self.ready == 0 {
            return Poll::Pending;
        }
        self.ready -= 1;
        Poll::Ready(Some(Ok(Chunk::delta(Lane::TEXT, "x"))))
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.dropped.set(true);
    }
}

// spec 2.9
#[test]
fn a_reader_that_goes_away_drops_the_source() {
    let (polls, dropped) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(false)));
    let source = Watched { polls: polls.clone(), dropped: dropped.clone(), ready: 1 };
    let mut body = Box::pin(source.into_sse_body(Target::OpenAiChat));
    assert_eq!(polls.get(), 0, "nothing runs before the first poll");
    let mut cx = Context::from_waker(Waker::noop());
    assert!(matches!(body.as_mut().poll_next(&mut cx), Poll::Ready(Some(Ok(_)))));
    assert!(body.as_mut().poll_next(&mut cx).is_pending());
    assert!(!dropped.get());
    drop(body);
    assert!(dropped.get());
}

#[test]
fn a_source_that_ended_is_dropped_before_the_body_is() {
    let (polls, dropped) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(false)));
    let source = Watched { polls, dropped: dropped.clone(), ready: 1 }.take(1);
    let mut body = Box::pin(source.into_sse_body(Target::OpenAiChat));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(body.as_mut().poll_next(&mut cx).is_ready());
    assert!(dropped.get());
    assert!(matches!(body.as_mut().poll_next(&mut cx), Poll::Ready(None)));
}

#[test]
fn what_is_ready_at_once_is_written_together_within_bounds() {
    let (polls, dropped) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(false)));
    let source = Watched { polls, dropped, ready: 10_000 };
    let mut body = Box::pin(source.into_sse_body(Target::Jsonl));
    let mut cx = Context::from_waker(Waker::noop());
    let Poll::Ready(Some(Ok(bytes))) = body.as_mut().poll_next(&mut cx) else { panic!("chunks are ready") };
    assert!(bytes.len() > 1_000 && bytes.len() < 16 * 1024, "{} bytes", bytes.len());
}

// spec 2.9
#[test]
fn keep_alives_go_out_while_nothing_else_does() {
    let (polls, dropped) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(false)));
    let source = Watched { polls, dropped, ready: 1 };
    let body = source.into_sse_body(Target::OpenAiChat).keep_alive(stream::iter([(), ()]));
    let mut body = Box::pin(body);
    let mut cx = Context::from_waker(Waker::noop());
    let mut next = || match body.as_mut().poll_next(&mut cx) {
        Poll::Ready(Some(Ok(bytes))) => Some(bytes.to_vec()),
        _ => None,
    };
    assert!(next().is_some_and(|bytes| bytes.starts_with(b"data: ")), "chunks come first");
    assert_eq!(next().as_deref(), Some(&b": keep-alive\n\n"[..]));
    assert_eq!(next().as_deref(), Some(&b": keep-alive\n\n"[..]));
    assert_eq!(next(), None, "no more ticks, no more comments");
}

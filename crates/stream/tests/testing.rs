//! The kit finds what it is there to find, and is silent where nothing is wrong (spec 6.9).

use streamkeeper_contract::{Channel, Chunk, ChunkKind, FinishReason, Hook, Lane, Release, Verdict, id};
use streamkeeper_stream::{
    Interest, ObserverContext, Observers, Registration, StreamObserver,
    testing::{
        Faulty, Interleave, Mock, Script, Split, assert_no_leak, assert_split_invariant, check_no_leak,
        check_split_invariant, rearrange,
    },
};

const CANARY: &str = "sk-live-4f9a1c7e2b";

/// Hides a word: by what is pending, or chunk by chunk.
#[derive(Clone)]
struct Hide {
    is_careful: bool,
    interest: Interest,
}

impl Hide {
    fn guard(is_careful: bool, interest: Interest) -> Observers {
        Registration::guard(id!("hide"), Self { is_careful, interest }).into()
    }
}

impl StreamObserver for Hide {
    fn interest(&self) -> Interest {
        self.interest
    }

    fn on_chunk(&mut self, chunk: &Chunk, ctx: &mut ObserverContext<'_>) -> Verdict {
        let pending = ctx.pending();
        let hidden = pending.replace(CANARY, "[hidden]");
        if chunk.is_delta() {
            let starts = (1..CANARY.len()).rev().find(|len| hidden.ends_with(&CANARY[..*len])).unwrap_or(0);
            let keep = if self.is_careful { starts } else { 0 };
            return Release::text(&hidden[..hidden.len() - keep]).keep(keep).into();
        }
        chunk.with_text(hidden).filter(|hidden| hidden != chunk).map_or(Verdict::Continue, Verdict::Amend)
    }

    fn on_barrier(&mut self, _: &mut ObserverContext<'_>) -> Verdict {
        Verdict::Continue
    }
}

/// Stops at a character, by what comes: delivers what came before.
#[derive(Clone)]
struct StopAt(char);

impl StreamObserver for StopAt {
    fn on_chunk(&mut self, _: &Chunk, ctx: &mut ObserverContext<'_>) -> Verdict {
        if ctx.pending().contains(self.0) { Verdict::stop("found", "as told") } else { Verdict::Continue }
    }
}

/// Stops once a chunk is short.
#[derive(Clone)]
struct StopAtShort;

impl StreamObserver for StopAtShort {
    fn on_chunk(&mut self, _: &Chunk, ctx: &mut ObserverContext<'_>) -> Verdict {
        if (1..4).contains(&ctx.pending().len()) { Verdict::stop("short", "as told") } else { Verdict::Continue }
    }
}

fn planted() -> Vec<Chunk> {
    let reasoning = Lane::new(Channel::Reasoning);
    vec![
        Chunk::delta(reasoning, "The key is sk-live-4f"),
        Chunk::delta(reasoning, "9a1c7e2b."),
        Chunk::delta(Lane::TEXT, "It is sk-live-4f9a1c7e2b, ü"),
        Chunk::delta(Lane::TEXT.in_choice(1), "Or sk-live-"),
        Chunk::finish(0, FinishReason::Stop),
    ]
}

#[test]
fn every_split_makes_up_the_text() {
    for text in ["", "a", "né", "🙂🙂", "The quick brown fox jumps über den lazy dog."] {
        for split in Split::ALL {
            let ways = split.text(text);
            assert!(ways.iter().all(|pieces| pieces.concat() == text && !pieces.contains(&"")), "{split} {text}");
            assert!(split.bytes(text.as_bytes()).iter().all(|pieces| pieces.concat() == text.as_bytes()), "{split}");
        }
        let borders = text.chars().count().saturating_sub(1);
        let cut_in_two = Split::EveryBorder.text(text).iter().filter(|pieces| pieces.len() == 2).count();
        assert_eq!(cut_in_two, borders, "{text}");
    }
}

#[test]
fn another_order_of_lanes_keeps_each_lane_and_what_stands_between() {
    let chunks = planted();
    let whole = rearrange(&chunks, Split::Whole, Interleave::Sequential).remove(0);
    assert_eq!(whole.len(), 4);
    for split in Split::ALL {
        for interleave in Interleave::ALL {
            for way in rearrange(&chunks, split, interleave) {
                assert_eq!(way.last().unwrap().kind(), ChunkKind::Finish);
                assert_eq!(rearrange(&way, Split::Whole, Interleave::Sequential)[0].len(), 4);
                for chunk in &whole[..3] {
                    let lane = chunk.lane().unwrap();
                    let pieces = way.iter().filter(|piece| piece.is_delta() && piece.lane() == Some(lane));
                    assert_eq!(pieces.filter_map(Chunk::text).collect::<String>(), chunk.text().unwrap());
                }
            }
        }
    }
}

#[test]
fn an_observer_that_looks_at_one_delta_at_a_time_is_found() {
    assert_split_invariant(&Hide::guard(true, Interest::TEXT), planted());
    let difference = check_split_invariant(&Hide::guard(false, Interest::TEXT), planted()).unwrap_err();
    let said = difference.to_string();
    assert!(
        said.starts_with("cut into single characters, one lane after the other: the text of `text` differs"),
        "{said}"
    );
    assert!(said.contains("at byte 6, in delivered chunk"), "{said}");
    assert!(said.contains(r#"expected "It is [hidden], ü""#), "{said}");
}

#[test]
fn a_stop_has_to_be_at_the_same_character() {
    let text = [Chunk::delta(Lane::TEXT, "abcdefghijk!mno"), Chunk::finish(0, FinishReason::Stop)];
    assert_split_invariant(&Registration::guard(id!("stop"), StopAt('!')).into(), text.clone());
    // A chunk without text has nothing pending, so only the cuts decide.
    let difference =
        check_split_invariant(&Registration::guard(id!("stop"), StopAtShort).into(), text).unwrap_err().to_string();
    assert!(difference.contains("the outcome: expected finished (stop), got stopped by `stop`"), "{difference}");
}

/// spec 3.15
#[test]
fn a_canary_is_found_by_whichever_door_it_leaves() {
    assert_no_leak(CANARY, &Hide::guard(true, Interest::TEXT), planted());
    let leak =
        |observers: &Observers, chunks: Vec<Chunk>| check_no_leak(CANARY, observers, chunks).unwrap_err().to_string();
    let careless = leak(&Hide::guard(false, Interest::TEXT), planted());
    assert!(careless.contains("`text` of chunk 0 (reasoning_delta)"), "{careless}");
    // Something that only looks at the answer.
    let answer = Hide::guard(true, Interest::only(&[ChunkKind::ContentDelta]));
    let json = |text: &str| streamkeeper_contract::Json::from_text(text).unwrap();
    for (chunk, door) in [
        (Chunk::snapshot(Lane::TEXT, format!("again: {CANARY}")), "`text` of chunk 0 (snapshot)"),
        (Chunk::custom("note", json(r#"{"a":[{"b":"sk-live-4f9a1c7e2b"}]}"#)), "`value.a.b` of chunk 0 (custom)"),
        (Chunk::custom("note", json(r#"{"a":"{\"sk-live-4f9a1c7e2b\":1}"}"#)), "`value.a` of chunk 0 (custom)"),
        (
            Chunk::tool_call(Lane::TEXT.arguments(1), "1", "f", r#"{"k":"\u0073k-live-4f9a1c7e2b"}"#),
            "`arguments` of chunk 0 (tool_call)",
        ),
        (Chunk::error(streamkeeper_contract::ErrorInfo::new("e").with_message(CANARY)), "`message` of chunk 0 (error)"),
    ] {
        let said = leak(&answer, vec![chunk, Chunk::finish(0, FinishReason::Stop)]);
        assert!(said.contains(door), "{said}");
    }
    // Tokens of log probabilities, each harmless.
    let tokens = json(r#"[{"token":"sk-live"},{"token":"-4f9a"},{"token":"1c7e2b"}]"#);
    let logprobs = streamkeeper_contract::Annotation { lane: Lane::TEXT, form: "logprobs".into(), value: tokens };
    let said = leak(&Observers::new(), vec![streamkeeper_contract::Body::Annotation(Box::new(logprobs)).into()]);
    assert!(said.contains("joined `value.token` of the annotation chunks of lane `text`"), "{said}");
}

/// Half of a secret is a leak: what a window that lets the first half out does.
#[test]
fn half_a_canary_is_a_leak() {
    let cut = Chunk::delta(Lane::TEXT, "sk-live-4f9a1c7e");
    let stops = Observers::from(Registration::guard(id!("stop"), StopAt('b')));
    check_no_leak(CANARY, &stops, [cut, Chunk::delta(Lane::TEXT, "2b")]).unwrap_err();
    check_no_leak(CANARY, &Observers::new(), [Chunk::delta(Lane::TEXT, "unplanted")]).unwrap_err();
}

#[test]
fn a_mock_says_what_came_otherwise() {
    let run = |mock: &Mock| Script::new().text("a").text("b").finish().run(&mock.guard(id!("mock")).into());
    let met = Mock::new()
        .expect_text("a", Verdict::Buffer)
        .expect_text("ab", Verdict::Buffer)
        .expect_barrier("ab", Verdict::Continue)
        .expect(ChunkKind::Finish, Verdict::Continue)
        .expect_end();
    assert_eq!(run(&met).answer(), "ab");
    met.verify();
    assert_eq!(met.calls().len(), 5);

    for (mock, lines) in [
        (
            Mock::new().expect_text("a", Verdict::Continue).expect(ChunkKind::Finish, Verdict::Continue),
            "call 1: expected on_chunk finish, got on_chunk content_delta with \"b\" pending at chunk 1",
        ),
        (
            Mock::new().lenient().expect_text("b", Verdict::Continue).expect_text("c", Verdict::Continue),
            "never came: on_chunk with \"c\" pending",
        ),
        (
            Mock::new().interest(Interest::only(&[ChunkKind::Finish])),
            "call 0: expected nothing more, got on_chunk finish at chunk 2",
        ),
    ] {
        run(&mock);
        assert_eq!(mock.met().unwrap_err().to_string(), lines);
    }
}

/// spec 3.8
#[test]
fn faulty_observers_fail_as_they_say() {
    for (faulty, failure, answer) in [
        (Faulty::panics(Hook::Interest), Some("`faulty` failed in interest: panic"), "text"),
        (Faulty::panics(Hook::OnBarrier), Some("`faulty` failed in on_barrier: panic"), "text"),
        (Faulty::panics(Hook::OnEndInvocation), Some("`faulty` failed in on_end_invocation: panic"), "text"),
        (Faulty::forgets_barriers(), Some("`faulty` failed in on_barrier: contract"), "text"),
        (Faulty::overflows(), None, "text"),
        (Faulty::slow(std::time::Duration::from_millis(1)), None, "text"),
    ] {
        let observers = Observers::from(Registration::transform(id!("faulty"), faulty));
        let ran = Script::new().text("text").finish().run(&observers);
        let failures: Vec<_> = ran.failures().iter().map(ToString::to_string).collect();
        assert_eq!((failures.first().map(String::as_str), ran.answer().as_str()), (failure, answer), "{faulty:?}");
    }
    let observers = Observers::from(Registration::guard(id!("faulty"), Faulty::overflows()));
    let ran = Script::new().text("x".repeat(65 * 1024)).finish().run(&observers);
    assert_eq!(ran.failures()[0].kind.as_str(), "overflow");
}

#[cfg(feature = "wire")]
#[test]
fn bytes_that_repeat_a_canary_are_found() {
    use streamkeeper_stream::testing::{assert_no_leak_in_bytes, check_no_leak_in_bytes};
    use streamkeeper_wire::Format;

    let body = r#"data: {"id":"1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"It is sk-live-\u0034f9a"}}]}

data: {"id":"1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"1c7e2b."},"finish_reason":"stop"}]}

data: [DONE]

"#;
    assert_no_leak_in_bytes(CANARY, &Hide::guard(true, Interest::TEXT), Format::OpenAiChat, body);
    check_no_leak_in_bytes(CANARY, &Hide::guard(false, Interest::TEXT), Format::OpenAiChat, body).unwrap_err();
}

/// spec 6.9: an observer that fails in every run has shown nothing.
#[test]
fn an_observer_that_always_fails_passes_no_check() {
    let observers = Observers::from(Registration::guard(id!("faulty"), Faulty::forgets_barriers()));
    let script = Script::new().text("a secret").finish();
    let difference = check_split_invariant(&observers, &script).unwrap_err();
    assert!(difference.to_string().contains("an observer fails"), "{difference}");
    let leak = check_no_leak("secret", &observers, &script).unwrap_err();
    assert!(leak.to_string().contains("an observer fails"), "{leak}");
}

//! [`TextObserver`] in a stack.

mod common;

use proptest::prelude::*;
use streamkeeper_contract::{Body, Channel, Chunk, ErrorInfo, FinishReason, Lane, Outcome, id};
use streamkeeper_observers::{OnArguments, OnMatch, TextObserver};
use streamkeeper_stream::{ObserverFactoryContext, Observers};
use streamkeeper_text::{Pattern, Patterns};

use self::common::{run, split};

fn patterns() -> Patterns {
    Patterns::new([
        Pattern::regex("key", r"sk-[a-z0-9]{4,}").unwrap(),
        Pattern::regex("mail", r"\b[a-z.]+@[a-z]+\.[a-z]{2,}\b").unwrap(),
        Pattern::literal("word", "swordfish").unwrap(),
    ])
    .unwrap()
}

fn replace() -> OnMatch {
    OnMatch::replace(|found| format!("<{}:{}>", found.pattern, found.text.len()).into())
}

fn label() -> OnMatch {
    OnMatch::label(|name| format!("[{name}]").into())
}

fn deltas(lane: Lane, pieces: &[&str]) -> Vec<Chunk> {
    pieces.iter().map(|&piece| Chunk::delta(lane, piece)).collect()
}

/// What is delivered in a lane, piece by piece, and how it ended.
fn delivered(observer: TextObserver, chunks: Vec<Chunk>) -> (Vec<Chunk>, Outcome) {
    let observers = Observers::from(observer);
    let mut stack = observers.stack(&ObserverFactoryContext::default());
    for chunk in chunks {
        stack.push(chunk);
    }
    stack.finish();
    let mut out: Vec<Chunk> = std::iter::from_fn(|| stack.pop()).collect();
    let Some(Body::End(end)) = out.pop().map(Chunk::into_body) else { panic!("every stream has an end") };
    (out, Outcome::clone(end.outcome()))
}

fn text_of(chunks: &[Chunk], lane: Lane) -> String {
    let deltas = chunks.iter().filter(|chunk| chunk.is_delta() && chunk.lane() == Some(lane));
    deltas.filter_map(Chunk::text).collect()
}

/// The plain reference: all matches of all patterns in the whole text, overlapping and touching ones merged.
fn reference(text: &str, make: impl Fn(&str, &str) -> String) -> String {
    let patterns = patterns();
    let mut spans: Vec<(usize, usize, usize)> = Vec::new();
    for (i, pattern) in patterns.iter().enumerate() {
        let regex = regex::Regex::new(pattern.expression()).unwrap();
        spans.extend(regex.find_iter(text).map(|found| (found.start(), i, found.end())));
    }
    spans.sort_unstable();
    let mut merged: Vec<(usize, usize, usize)> = Vec::new();
    for (start, i, end) in spans {
        match merged.last_mut() {
            Some(last) if start <= last.2 => last.2 = last.2.max(end),
            _ => merged.push((start, i, end)),
        }
    }
    let (mut out, mut at) = (String::new(), 0);
    for (start, i, end) in merged {
        out.push_str(&text[at..start]);
        out.push_str(&make(patterns.get(i).unwrap().name(), &text[start..end]));
        at = end;
    }
    out + &text[at..]
}

/// spec 6.1, bug report G15: the joined output is that of one chunk, and no part of a match goes out before it is known.
#[test]
fn a_secret_that_is_cut_in_two_does_not_leak() {
    for pieces in [
        &["Mail x.y@exam", "ple.org now"][..],
        &["Mail x.y@example.", "org now"],
        &["Mail x.", "y@example.org now"],
        &["Mail ", "x", ".", "y", "@", "example.org", " now"],
    ] {
        for action in [label(), OnMatch::replace(|found| format!("[{}]", found.pattern).into())] {
            let observer = TextObserver::new(id!("t"), patterns(), action);
            let (chunks, _) = delivered(observer, deltas(Lane::TEXT, pieces));
            assert_eq!(text_of(&chunks, Lane::TEXT), "Mail [mail] now", "{pieces:?}");
            for chunk in &chunks {
                let text = chunk.text().unwrap_or_default();
                assert!(!text.contains("x.") && !text.contains("org n") && !text.contains('@'), "{pieces:?}: {text}");
            }
        }
    }
}

/// spec 3.7, bug report G16: what is held at the end goes out before the finish.
#[test]
fn a_held_tail_goes_out_at_the_end() {
    let chunks = [deltas(Lane::TEXT, &["see s", "k-ab"]), vec![Chunk::finish(0, FinishReason::Stop)]].concat();
    let (out, _) = delivered(TextObserver::new(id!("t"), patterns(), label()), chunks);
    assert_eq!(text_of(&out, Lane::TEXT), "see sk-ab");
    assert!(matches!(out.last().unwrap().body(), Body::Finish(_)));
    let (out, outcome) =
        delivered(TextObserver::new(id!("t"), patterns(), label()), deltas(Lane::TEXT, &["if ", "sword"]));
    assert_eq!((text_of(&out, Lane::TEXT).as_str(), outcome.code()), ("if sword", "truncated"));
}

/// spec 6.1a, bug report G17: a match in arguments denies the call, and no fragment of it goes out.
#[test]
fn a_match_in_arguments_denies_the_call() {
    let args = Lane::TEXT.arguments(1);
    let chunks = || {
        [
            vec![Chunk::tool_call_start(args, "t1", "post")],
            deltas(args, &[r#"{"body":"key sword"#, r#"fish"}"#]),
            vec![Body::ToolCallEnd(args).into(), Chunk::finish(0, FinishReason::ToolCalls)],
        ]
        .concat()
    };
    let (out, outcome) = delivered(TextObserver::new(id!("t"), patterns(), label()), chunks());
    assert!(matches!(&outcome, Outcome::Stopped(stop) if stop.code == "tool_call_denied"), "{outcome:?}");
    assert_eq!(text_of(&out, args), r#"{"body":"key "#);

    let mask =
        || TextObserver::new(id!("t"), patterns(), OnMatch::label(|_| "a\"b".into())).arguments(OnArguments::Mask);
    let (out, _) = delivered(mask(), chunks());
    assert_eq!(text_of(&out, args), r#"{"body":"key a\"b"}"#);

    let (out, outcome) =
        delivered(mask().check_arguments(|tool, json| tool != "post" || json.contains("sword")), chunks());
    assert!(matches!(&outcome, Outcome::Stopped(stop) if stop.code == "tool_call_denied"), "{outcome:?}");
    assert!(!out.iter().any(|chunk| matches!(chunk.body(), Body::ToolCallEnd(_))));
}

/// spec 6.1a
#[test]
fn arguments_are_read_as_json_where_they_are() {
    let args = Lane::TEXT.arguments(1);
    for (written, expected) in [
        (r#"{"to":"\u0073wordfish!"}"#, Some(r#"{"to":"[word]!"}"#)),
        (r#"{"swordfish":1}"#, Some(r#"{"[word]":1}"#)),
        (r#"{"a":sk-12345}"#, None),
        ("say \"swordfish", Some("say \"[word]")),
    ] {
        for pieces in [vec![written], written.split_inclusive(|_| true).collect()] {
            let observer = TextObserver::new(id!("t"), patterns(), label()).arguments(OnArguments::Mask);
            let (out, outcome) = delivered(observer, deltas(args, &pieces));
            match expected {
                Some(expected) => assert_eq!(text_of(&out, args), expected),
                None => assert_eq!(outcome.code(), "stopped"),
            }
        }
        let observer = TextObserver::new(id!("t"), patterns(), label()).arguments(OnArguments::Mask);
        let (out, outcome) = delivered(observer, vec![Chunk::tool_call(args, "t1", "post", written)]);
        match expected {
            Some(expected) => assert_eq!(out[0].text(), Some(expected)),
            None => assert_eq!(outcome.code(), "stopped"),
        }
    }
}

/// spec 1.3, 3.15
#[test]
fn whole_texts_are_replaced_whole() {
    let observer = || TextObserver::new(id!("t"), patterns(), label());
    let (out, _) = delivered(observer(), vec![Chunk::snapshot(Lane::TEXT, "a swordfish")]);
    assert_eq!(out[0].text(), Some("a [word]"));
    let repeated = [deltas(Lane::TEXT, &["a swo", "rdfish."]), vec![Chunk::snapshot(Lane::TEXT, "a swordfish.")]];
    let (out, _) = delivered(observer(), repeated.concat());
    assert_eq!(out.last().unwrap().text(), Some("a [word]."));
    let (out, _) = delivered(observer(), vec![Chunk::error(ErrorInfo::new("x").with_message("no swordfish"))]);
    assert_eq!(out[0].text(), Some("no [word]"));
}

#[test]
fn a_text_without_a_beginning_of_a_match_is_not_held() {
    let text = "THE QUICK FOX 123 (!) ";
    let observers = Observers::from(TextObserver::new(id!("t"), patterns(), replace()));
    let mut stack = observers.stack(&ObserverFactoryContext::default());
    for piece in text.split_inclusive(|_| true) {
        stack.push(Chunk::delta(Lane::TEXT, piece));
        assert_eq!(stack.pop().unwrap().text(), Some(piece));
    }
}

/// spec 6.1: what is certain is swallowed, and what stays undecided for too long fails closed, at the same byte for every split.
#[test]
fn long_matches_are_swallowed_and_endless_candidates_stop() {
    let secret = format!("x sk-{} y", "a".repeat(20_000));
    for size in [1, 7, 5000, 30_000] {
        let pieces: Vec<&str> = secret.as_bytes().chunks(size).map(|piece| str::from_utf8(piece).unwrap()).collect();
        let (out, _) = delivered(TextObserver::new(id!("t"), patterns(), label()), deltas(Lane::TEXT, &pieces));
        assert_eq!(text_of(&out, Lane::TEXT), "x [key] y", "pieces of {size}");
        let (out, _) = delivered(TextObserver::new(id!("t"), patterns(), replace()), deltas(Lane::TEXT, &pieces));
        assert_eq!(text_of(&out, Lane::TEXT), "x <key:4096> y", "pieces of {size}");
        let endless = secret.replace("sk-", "");
        let pieces: Vec<&str> = endless.as_bytes().chunks(size).map(|piece| str::from_utf8(piece).unwrap()).collect();
        let (out, outcome) = delivered(TextObserver::new(id!("t"), patterns(), label()), deltas(Lane::TEXT, &pieces));
        assert!(matches!(&outcome, Outcome::Stopped(stop) if stop.code == "undecided_too_long"), "{outcome:?}");
        assert!(!text_of(&out, Lane::TEXT).contains('a'), "pieces of {size}");
    }
}

#[test]
fn a_match_can_be_told_tagged_or_end_the_stream() {
    let chunks = || deltas(Lane::TEXT, &["a sword", "fish b"]);
    let ran = run(TextObserver::new(id!("t"), patterns(), OnMatch::emit(id!("found"))), chunks());
    assert_eq!(ran.text, "a swordfish b");
    assert_eq!(ran.events.len(), 1);
    assert_eq!(ran.events[0].payload.as_str(), r#"{"pattern":"word","lane":{"channel":"text"},"at":2}"#);
    let ran = run(TextObserver::new(id!("t"), patterns(), OnMatch::tag()), chunks());
    assert_eq!(ran.text, "a <word>swordfish</word> b");
    let stop = || TextObserver::new(id!("t"), patterns(), OnMatch::stop("found", "found it"));
    for (observer, reason) in
        [(stop(), "found it: `word` in text"), (stop().quote_match(true), "found it: `word` in text: \"swordfish\"")]
    {
        let ran = run(observer, chunks());
        let Outcome::Stopped(stop) = ran.outcome else { panic!("it goes on") };
        assert_eq!(
            (stop.code.as_str(), stop.reason.as_str(), stop.chunk_index, ran.text.as_str()),
            ("found", reason, 1, "a ")
        );
    }
}

#[test]
fn more_than_256_open_texts_stop_the_stream() {
    let lanes = |n| (0..n).map(|choice| Chunk::delta(Lane::TEXT.in_choice(choice), "HI")).collect();
    let observer = || TextObserver::new(id!("t"), patterns(), label());
    assert_eq!(delivered(observer(), lanes(256)).1.code(), "truncated");
    assert!(matches!(delivered(observer(), lanes(257)).1, Outcome::Stopped(stop) if stop.code == "too_many_lanes"));
}

fn texts() -> impl Strategy<Value = String> {
    let part = prop::sample::select(vec![
        "sk-",
        "abcd",
        "12",
        "swordfish",
        "sword",
        "fish",
        "x.y",
        "@",
        "ab.org",
        ".",
        " ",
        "é",
        "S",
        "sk-abcd",
    ]);
    prop::collection::vec(part, 0..14).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// spec 6.1: for every split and interleaving, the joined text of each lane is what a plain search of the whole text gives, for each
    /// thing that can happen on a match; and events are the same.
    #[test]
    fn every_split_and_interleaving_gives_the_reference(
        all in prop::collection::vec(texts(), 4),
        cuts in prop::collection::vec(prop::collection::vec(any::<prop::sample::Index>(), 0..8), 4),
        order in prop::collection::vec(0..4_usize, 0..40),
    ) {
        let lanes = [
            Lane::TEXT,
            Lane::new(Channel::Reasoning),
            Lane::new(Channel::Refusal).in_choice(1),
            Lane::TEXT.arguments(1),
        ];
        let json = format!("{{\"v\":\"{}\"}}", all[3]);
        let wholes: Vec<&str> = all[..3].iter().map(String::as_str).chain([json.as_str()]).collect();
        let mut pieces: Vec<std::collections::VecDeque<&str>> =
            wholes.iter().zip(&cuts).map(|(whole, cuts)| split(whole, cuts).into()).collect();
        let mut chunks = Vec::new();
        for i in order.into_iter().chain((0..4).cycle().take(40)) {
            chunks.extend(pieces[i].pop_front().map(|piece| Chunk::delta(lanes[i], piece)));
        }
        type Make = fn(&str, &str) -> String;
        let ways: [(OnMatch, Make); 4] = [
            (label(), |name, _| format!("[{name}]")),
            (replace(), |name, text| format!("<{name}:{}>", text.len())),
            (OnMatch::tag(), |name, text| format!("<{name}>{text}</{name}>")),
            (OnMatch::emit(id!("found")), |_, text| text.to_owned()),
        ];
        for (on_match, make) in ways {
            let observer = TextObserver::new(id!("t"), patterns(), on_match).arguments(OnArguments::Mask);
            let (out, _) = delivered(observer, chunks.clone());
            for (lane, whole) in lanes.iter().zip(&all) {
                let expected = match lane.channel {
                    Channel::Arguments => format!("{{\"v\":\"{}\"}}", reference(whole, make)),
                    _ => reference(whole, make),
                };
                prop_assert_eq!(text_of(&out, *lane), expected);
            }
        }
    }

    /// spec 3.5: it stops at the chunk in which the first match becomes certain, which is a byte that no split moves.
    #[test]
    fn every_split_stops_at_the_same_byte(whole in texts(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8)) {
        let stop = |pieces: &[&str]| {
            let (out, outcome) = delivered(TextObserver::new(id!("t"), patterns(), OnMatch::stop("s", "s")), deltas(Lane::TEXT, pieces));
            let at = match outcome { Outcome::Stopped(stop) => Some(stop.chunk_index as usize), _ => None };
            (at, text_of(&out, Lane::TEXT))
        };
        let chars: Vec<&str> = whole.split_inclusive(|_| true).collect();
        let pieces = split(&whole, &cuts);
        let (by_char, _) = stop(&chars);
        let (by_piece, text) = stop(&pieces);
        let ends: Vec<usize> = pieces.iter().scan(0, |end, piece| { *end += piece.len(); Some(*end) }).collect();
        let expected = by_char.map(|at| {
            // Certain only at the end of the text.
            if at == chars.len() {
                return pieces.len();
            }
            let byte = chars[..=at].iter().map(|c| c.len()).sum();
            ends.iter().position(|end| *end >= byte).unwrap_or(pieces.len())
        });
        prop_assert_eq!(by_piece, expected);
        prop_assert!(reference(&whole, |_, _| "\0".into()).split('\0').next().unwrap().starts_with(&text));
    }
}

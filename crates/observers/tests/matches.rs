//! [`TextObserver`] in a stack.

mod common;

use proptest::prelude::*;
use streamkeeper_contract::{Body, Channel, Chunk, ErrorInfo, FinishReason, Lane, id};
use streamkeeper_observers::{MAX_UNDECIDED, NormalizeDialects, OnArguments, OnMatch, TextObserver};
use streamkeeper_stream::{
    Observers, Registration,
    testing::{Script, assert_no_leak, assert_split_invariant},
};
use streamkeeper_text::{Pattern, Patterns};

use self::common::{run, split};

const ARGUMENTS: Lane = Lane::TEXT.arguments(1);

fn patterns(all: &[(&str, &str)]) -> Patterns {
    Patterns::new(all.iter().map(|(name, regex)| Pattern::regex(name, regex).expect("it is a pattern")))
        .expect("they fit")
}

fn masking(all: &[(&str, &str)]) -> TextObserver {
    let label = OnMatch::label(|name| format!("[{name}]").into());
    TextObserver::new(id!("masking"), patterns(all), label).arguments(OnArguments::Mask)
}

const MAIL: &[(&str, &str)] = &[("EMAIL", r"\b\w[\w.]*@\w+(?:\.\w+)*\.[a-z]{2,}")];

/// spec 6.1: G15. A secret is the same secret wherever it is cut, and no part of it is ever out.
#[test]
fn an_address_cut_anywhere_is_replaced_whole() {
    for pieces in [
        &["Mail x.y@exam", "ple.org now"][..],
        &["Mail x.y@example.", "org now"],
        &["Mail x.", "y@example.org now"],
        &["Mail ", "x", ".", "y", "@", "example.org", " now"],
    ] {
        let mut stack = Observers::from(masking(MAIL)).stack(&Default::default());
        let mut seen = String::new();
        for &piece in pieces {
            stack.push(Chunk::delta(Lane::TEXT, piece));
            seen.extend(std::iter::from_fn(|| stack.pop()).filter_map(|chunk| chunk.text().map(str::to_owned)));
            assert!("Mail [EMAIL] now".starts_with(&seen), "{seen}");
        }
        stack.push(Chunk::finish(0, FinishReason::Stop));
        stack.finish();
        seen.extend(std::iter::from_fn(|| stack.pop()).filter_map(|chunk| chunk.text().map(str::to_owned)));
        assert_eq!(seen, "Mail [EMAIL] now", "{pieces:?}");
    }
}

/// spec 3.7, 6.3: G16. What is held when the text ends is told or counted, never lost.
#[test]
fn a_tail_that_was_held_goes_out_at_the_end_and_is_counted_at_an_abort() {
    let held = |text: &str| Script::new().text("if n ").text(text);
    let filters = [Observers::from(NormalizeDialects::new()), Observers::from(masking(&[("x", "<think>.*")]))];
    for observers in filters {
        for tail in ["<", "<thi"] {
            let ran = held(tail).finish().run(&observers);
            assert_eq!(ran.answer(), format!("if n {tail}"));
            let kinds: Vec<_> = ran.delivered().iter().map(|chunk| chunk.kind().as_str()).collect();
            assert_eq!(kinds[..3], ["content_delta", "content_delta", "finish"]);

            let ran = held(tail).fails("truncated").run(&observers);
            assert_eq!(ran.answer(), format!("if n {tail}"));

            let ran = held(tail).aborted().run(&observers);
            assert_eq!((ran.answer().as_str(), ran.withheld_len()), ("if n ", tail.len() as u64));
        }
    }
}

/// spec 6.1a: G17. Arguments are guarded like text, for each call; the call is not made.
#[test]
fn a_word_in_arguments_denies_the_call() {
    let call = |pieces: &[&str]| {
        let start = Chunk::tool_call_start(ARGUMENTS, "t1", "post");
        let args = pieces.iter().map(|&piece| Chunk::delta(ARGUMENTS, piece));
        [start].into_iter().chain(args).chain([Chunk::finish(0, FinishReason::ToolCalls)]).collect::<Vec<_>>()
    };
    for pieces in [&[r#"{"body":"key SEC"#, r#"RET-42"}"#][..], &[r#"{"body":"key SECR\u0045"#, r#"T-42"}"#]] {
        let observer = TextObserver::new(id!("block"), patterns(&[("w", "SECRET-42")]), OnMatch::label(|_| "x".into()));
        let ran = Script::from(call(pieces)).run(&Observers::from(observer.clone()));
        let stop = ran.stop().expect("it stops");
        assert_eq!(stop.code, "tool_call_denied");
        assert!(!ran.text(ARGUMENTS).contains("SEC"), "{pieces:?}");
        assert!(!ran.delivered().iter().any(|chunk| matches!(chunk.body(), Body::ToolCallEnd(_) | Body::ToolCall(_))));
        assert_no_leak("SECRET-42", &Observers::from(observer), call(&[r#"{"body":"key SEC"#, r#"RET-42"}"#]));
    }
}

/// spec 6.1: what each answer to a match does.
#[test]
fn a_match_is_labelled_replaced_tagged_stopped_at_or_told() {
    let all = &[("n", r"\d+"), ("w", "secret")];
    let text = "a 12 b secret 345";
    for (on_match, expected) in [
        (OnMatch::label(|name| format!("<{name}>").into()), "a <n> b <w> <n>"),
        (OnMatch::replace(|found| format!("({})", found.text.len()).into()), "a (2) b (6) (3)"),
        (OnMatch::tag(), "a <n>12</n> b <w>secret</w> <n>345</n>"),
        (OnMatch::emit(id!("found")), text),
    ] {
        let observers = Observers::from(TextObserver::new(id!("o"), patterns(all), on_match.clone()));
        let script = Script::new().text(text).finish();
        assert_eq!(script.run(&observers).answer(), expected, "{on_match:?}");
        assert_split_invariant(&observers, script);
    }
    let observers = Observers::from(TextObserver::new(id!("o"), patterns(all), OnMatch::stop("found", "not here")));
    let ran = Script::new().text("a b sec").text("ret c").finish().run(&observers);
    assert_eq!(ran.answer(), "a b ");
    let stop = ran.stop().expect("it stops");
    assert_eq!((stop.code.as_str(), stop.reason.as_str()), ("found", "not here: `w` in text"));
}

/// spec 6.1: an event has the place of the match in the text that came, and none of the text.
#[test]
fn an_event_names_the_pattern_and_the_place() {
    let ran = run(
        masking(&[("w", "secret")]).report(id!("found")),
        [
            Chunk::delta(Lane::TEXT, "a sec"),
            Chunk::delta(Lane::TEXT, "ret, secret"),
            Chunk::finish(0, FinishReason::Stop),
        ],
    );
    let told: Vec<_> = ran.events.iter().map(|event| event.payload.as_str()).collect();
    assert_eq!(
        told,
        [r#"{"pattern":"w","lane":{"channel":"text"},"at":2}"#, r#"{"pattern":"w","lane":{"channel":"text"},"at":10}"#,]
    );
}

/// spec 6.1a: masked arguments are JSON that differs where the mask is and nowhere else.
#[test]
fn masked_arguments_stay_json() {
    let all = &[("w", "secret|7{3}")];
    for (arguments, expected) in [
        (r#"{"a":"my secret!","secret":1.50}"#, Some(r#"{"a":"my [w]!","[w]":1.50}"#)),
        (r#"{"a":"se\u0063ret\n\"x\""}"#, Some(r#"{"a":"[w]\n\"x\""}"#)),
        (r#"["\ud83d\ude00 secret",null]"#, Some(r#"["\ud83d\ude00 [w]",null]"#)),
        (r#"{"n":1777}"#, None),
        ("no json, secret", Some("no json, [w]")),
        ("", Some("")),
    ] {
        let observers = Observers::from(masking(all));
        let chunks = [
            Chunk::tool_call_start(ARGUMENTS, "t1", "post"),
            Chunk::delta(ARGUMENTS, arguments),
            Chunk::finish(0, FinishReason::ToolCalls),
        ];
        assert_split_invariant(&observers, chunks.clone());
        let ran = Script::from(chunks).run(&observers);
        match expected {
            Some(expected) => assert_eq!(ran.text(ARGUMENTS), expected),
            None => assert_eq!(ran.stop().map(|stop| stop.code.as_str()), Some("tool_call_denied"), "{arguments}"),
        }
        if !arguments.is_empty() {
            let whole = Script::from([Chunk::tool_call(ARGUMENTS, "t1", "post", arguments)]).run(&observers);
            let text = whole.delivered().iter().find_map(Chunk::text).map(str::to_owned);
            assert_eq!(text.as_deref(), expected, "a call that comes whole");
        }
    }
}

/// spec 6.1a: arguments that no longer fit their tool are not sent.
#[test]
fn a_check_that_the_mask_breaks_denies_the_call() {
    let observer =
        masking(&[("w", "secret")]).check_arguments(|tool, arguments| tool == "post" && arguments.len() < 20);
    let chunks = |arguments: &str| {
        [
            Chunk::tool_call_start(ARGUMENTS, "t1", "post"),
            Chunk::delta(ARGUMENTS, arguments),
            Chunk::from(Body::ToolCallEnd(ARGUMENTS)),
            Chunk::finish(0, FinishReason::ToolCalls),
        ]
    };
    for (arguments, denied) in [
        (r#"{"a":"secret"}"#, false),
        (r#"{"a":"secret, and more of it"}"#, true),
        (r#"{"a":"unchanged arguments are not checked"}"#, false),
    ] {
        let ran = Script::from(chunks(arguments)).run(&Observers::from(observer.clone()));
        assert_eq!(ran.stop().is_some(), denied, "{arguments}");
    }
}

/// spec 8.1, 6.1: past the cap it fails closed, at the same place for every split.
#[test]
fn text_that_stays_undecided_for_too_long_stops_the_stream() {
    let observers = Observers::from(masking(&[("w", "a[b]*c")]));
    let endless = format!("x a{}", "b".repeat(MAX_UNDECIDED + 10));
    for size in [1, 7, 1000, endless.len()] {
        let chunks =
            endless.as_bytes().chunks(size).map(|piece| Chunk::delta(Lane::TEXT, str::from_utf8(piece).unwrap()));
        let ran = Script::from(chunks.collect::<Vec<_>>()).run(&observers);
        assert_eq!(ran.stop().map(|stop| stop.code.as_str()), Some("undecided_too_long"), "{size}");
        // The chunk that goes past the limit is not delivered, and what was let through before is.
        assert_eq!(ran.answer(), if size < endless.len() { "x " } else { "" }, "{size}");
    }
    let fits = format!("x a{}", "b".repeat(MAX_UNDECIDED - 1));
    assert_eq!(Script::new().text(fits.clone()).finish().run(&observers).answer(), fits);
}

/// spec 6.1: a match that is certain is swallowed, however long it is.
#[test]
fn a_long_secret_is_swallowed_and_not_held() {
    let observers = Observers::from(masking(&[("key", r"BEGIN KEY[^-]*(?:-END)?")]));
    let mut stack = observers.stack(&Default::default());
    stack.push(Chunk::delta(Lane::TEXT, "see BEGIN KEY"));
    let mut out = String::new();
    for _ in 0..20_000 {
        stack.push(Chunk::delta(Lane::TEXT, "0123456789"));
        out.extend(std::iter::from_fn(|| stack.pop()).filter_map(|chunk| chunk.text().map(str::to_owned)));
    }
    assert_eq!(out, "see [key]");
    stack.push(Chunk::delta(Lane::TEXT, "-END after"));
    stack.push(Chunk::finish(0, FinishReason::Stop));
    stack.finish();
    out.extend(std::iter::from_fn(|| stack.pop()).filter_map(|chunk| chunk.text().map(str::to_owned)));
    assert_eq!(out, "see [key] after");
}

/// spec 6.1: where no pattern can begin, a text goes at once.
#[test]
fn nothing_is_held_where_nothing_can_begin() {
    let mut stack = Observers::from(masking(&[("k", "sk-[a-z0-9]{8}")])).stack(&Default::default());
    for piece in ["The r", "iver ", "runs.", "\n"] {
        stack.push(Chunk::delta(Lane::TEXT, piece));
        assert_eq!(stack.pop().as_ref().and_then(Chunk::text), Some(piece));
    }
    stack.push(Chunk::delta(Lane::TEXT, "ask"));
    assert_eq!(stack.pop().as_ref().and_then(Chunk::text), Some("a"));
}

/// spec 1.3, 3.15: what repeats a text, and what comes beside it, is looked at too.
#[test]
fn snapshots_results_and_errors_are_looked_at() {
    const CANARY: &str = "canary-7F3K9";
    let observers = Observers::from(masking(&[("w", CANARY)]));
    let result = Lane::new(Channel::ToolResult);
    let chunks = [
        Chunk::delta(Lane::TEXT, format!("my {CANARY}")),
        Chunk::snapshot(Lane::TEXT, format!("my {CANARY}")),
        Chunk::snapshot(Lane::new(Channel::Reasoning), format!("{CANARY} thinks")),
        Chunk::delta(Lane::new(Channel::Refusal), CANARY),
        Chunk::delta(result, format!("{{\"a\":\"{CANARY}\"}}")),
        Chunk::error(ErrorInfo::new("bad").with_message(format!("no {CANARY}"))),
    ];
    for chunk in &chunks {
        assert_no_leak(CANARY, &observers, [chunk.clone()]);
    }
    assert_no_leak(CANARY, &observers, chunks);
}

fn expected(all: &[(&str, &str)], text: &str) -> String {
    let mut spans: Vec<(usize, usize, usize)> = Vec::new();
    for (place, (_, regex)) in all.iter().enumerate() {
        spans
            .extend(regex::Regex::new(regex).unwrap().find_iter(text).map(|found| (found.start(), place, found.end())));
    }
    spans.sort_unstable();
    let (mut out, mut end) = (String::new(), None);
    let mut from = 0;
    for (start, place, to) in spans {
        if end.is_none_or(|end| start > end) {
            out.push_str(&text[from..start]);
            out.push_str(&format!("[{}]", all[place].0));
        }
        from = from.max(to);
        end = Some(from);
    }
    out + &text[from..]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// spec 6.1, 3.10: for every split and every order of lanes each lane's text is that of a search of the whole.
    #[test]
    fn every_split_and_interleaving_gives_what_one_search_gives(
        texts in prop::collection::vec("[ab .@-]{0,24}", 1..4),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        order in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
    ) {
        let all = &[("one", "a+b"), ("two", "b[.@]a?"), ("three", "@-*a|ab@b")];
        let mut queues: Vec<Vec<&str>> = texts.iter().map(|text| split(text, &cuts)).collect();
        queues.iter_mut().for_each(|queue| queue.reverse());
        let mut order = order.iter().cycle();
        let mut chunks = Vec::new();
        while queues.iter().any(|queue| !queue.is_empty()) {
            let at = order.next().map_or(0, |index| index.index(queues.len()));
            let at = (0..queues.len()).map(|i| (at + i) % queues.len()).find(|&i| !queues[i].is_empty()).unwrap();
            let piece = queues[at].pop().unwrap();
            chunks.push(Chunk::delta(Lane::TEXT.in_choice(at as u16), piece));
        }
        let ran = Script::from(chunks).finish().run(&Observers::from(Registration::from(masking(all))));
        prop_assert!(ran.stop().is_none() && ran.failures().is_empty());
        for (choice, text) in texts.iter().enumerate() {
            prop_assert_eq!(ran.text(Lane::TEXT.in_choice(choice as u16)), expected(all, text));
        }
    }

    /// spec 6.1a: masked JSON is JSON, for every split, and decodes to what a search of each string gives.
    #[test]
    fn masked_json_is_json(
        strings in prop::collection::vec(r#"[ab"\\n\u{e9}\u{1F600}]{0,10}"#, 1..4),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let all = &[("one", "a+b"), ("two", "b[\u{e9}\"\\\\]")];
        let text = serde_json::to_string(&strings).unwrap();
        let start = Chunk::tool_call_start(ARGUMENTS, "t", "f");
        let chunks = [start].into_iter().chain(split(&text, &cuts).into_iter().map(|piece| Chunk::delta(ARGUMENTS, piece)));
        let ran = Script::from(chunks.collect::<Vec<_>>()).finish().run(&Observers::from(masking(all)));
        let masked: Vec<String> = serde_json::from_str(&ran.text(ARGUMENTS)).unwrap();
        let wanted: Vec<String> = strings.iter().map(|text| expected(all, text)).collect();
        prop_assert_eq!(masked, wanted);
    }
}

/// spec 3.7, 6.1: a barrier ends the text for a guard that checks arguments too.
#[test]
fn a_tool_call_ends_the_text_before_it() {
    let swallows = || masking(&[("key", "BEGIN[^-]*(?:-END)?")]);
    for observer in [swallows(), swallows().check_arguments(|_, _| true)] {
        let chunks = [
            Chunk::delta(Lane::TEXT, "a BEGIN x"),
            Chunk::tool_call_start(ARGUMENTS, "t1", "post"),
            Chunk::delta(ARGUMENTS, "{}"),
            Chunk::delta(Lane::TEXT, "after"),
        ];
        assert_eq!(Script::from(chunks).finish().run(&Observers::from(observer)).answer(), "a [key]after");
    }
}

/// spec 6.1a: what repeats the arguments in between does not hide that they were changed.
#[test]
fn arguments_are_checked_though_a_snapshot_came() {
    let observers = Observers::from(masking(&[("w", "secret")]).check_arguments(|_, _| false));
    let chunks = [
        Chunk::tool_call_start(ARGUMENTS, "t1", "post"),
        Chunk::delta(ARGUMENTS, r#"{"a":"secret"}"#),
        Chunk::snapshot(ARGUMENTS, r#"{"a":"secret"}"#),
        Chunk::from(Body::ToolCallEnd(ARGUMENTS)),
        Chunk::finish(0, FinishReason::ToolCalls),
    ];
    let ran = Script::from(chunks).run(&observers);
    assert_eq!(ran.stop().map(|stop| stop.code.as_str()), Some("tool_call_denied"));
}

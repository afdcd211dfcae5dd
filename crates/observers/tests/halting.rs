//! The guards that end a stream, in a stack: ceilings, stalls, loops, leaks of the prompt, topics.

mod common;

use std::time::Duration;

use proptest::prelude::*;
use streamkeeper_contract::{Body, Channel, Chunk, FinishReason, Lane, Money, Offset, Outcome, Stop, Usage};
use streamkeeper_observers::{
    CostCeiling, HALTS, LengthCeiling, OffTopic, PromptLeak, Repetition, Stall, TokenCeiling, TokenPrices,
};
use streamkeeper_stream::{Observers, Registration};

use self::common::{Ran, run, split};

fn stopped(ran: &Ran) -> Option<&Stop> {
    match &ran.outcome {
        Outcome::Stopped(stop) => Some(stop),
        _ => None,
    }
}

/// The code and the entering chunk that it stopped at.
fn at(observers: impl Into<Observers>, chunks: impl IntoIterator<Item = Chunk>) -> Option<(String, u64)> {
    stopped(&run(observers, chunks)).map(|stop| (stop.code.to_string(), stop.chunk_index))
}

fn text(text: &str) -> Chunk {
    Chunk::delta(Lane::TEXT, text)
}

fn texts<'t>(pieces: impl IntoIterator<Item = &'t str>) -> Vec<Chunk> {
    pieces.into_iter().map(text).chain([Chunk::finish(0, FinishReason::Stop)]).collect()
}

fn output(tokens: u64) -> Chunk {
    Chunk::usage(Usage { output: Some(tokens), ..Usage::default() })
}

fn input(tokens: u64) -> Chunk {
    Chunk::usage(Usage { uncached_input: Some(tokens), ..Usage::default() })
}

/// spec 6.2: stated tokens where the provider states them, an estimate of what came since.
#[test]
fn tokens_are_counted_as_stated_and_estimated_since() {
    let reasoning = Chunk::delta(Lane::new(Channel::Reasoning), "12345678");
    let args = Lane::TEXT.arguments(1);
    for (max, chunks, expected) in [
        (2, vec![text("12345678")], None),
        (2, vec![text("12345678"), text("9")], Some(1)),
        (2, vec![text("123456789")], Some(0)),
        // A statement replaces the estimate, in both directions.
        (2, vec![text("12345678"), output(1), text("1234")], None),
        (2, vec![text("1"), output(2), text("1")], Some(2)),
        // Said again, it says nothing new.
        (3, vec![output(1), text("12345678"), output(1), text("1")], Some(3)),
        // Input alone does not touch the estimate.
        (2, vec![text("12345678"), input(5), text("1")], Some(2)),
        // A statement alone stops nothing.
        (2, vec![text("1"), output(100), Chunk::finish(0, FinishReason::Stop)], None),
        // All that the model writes counts, of all choices.
        (2, vec![reasoning, text("1")], Some(1)),
        (2, vec![text("12345678"), Chunk::delta(Lane::TEXT.in_choice(1), "1")], Some(1)),
        (2, vec![Chunk::tool_call(args, "c", "name", "{}")], None),
        (2, vec![Chunk::tool_call(args, "c", "name", "{\"a\":1}")], Some(0)),
        (1, vec![Chunk::tool_call_start(args, "c", "search"), text("1")], Some(0)),
        (1, vec![Chunk::delta(Lane::new(Channel::ToolResult), "what a tool says is not written by the model")], None),
        // A repetition counts once, a new whole text counts.
        (2, vec![text("12345678"), Chunk::snapshot(Lane::TEXT, "12345678")], None),
        (1, vec![Chunk::snapshot(Lane::TEXT, "12345678")], Some(0)),
    ] {
        let expected = expected.map(|at| ("token_ceiling".to_owned(), at));
        assert_eq!(at(TokenCeiling::new(max), chunks.clone()), expected, "{max} {chunks:?}");
    }
}

#[test]
fn a_reason_says_whether_it_is_an_estimate() {
    let ran = run(TokenCeiling::new(1), [text("12345")]);
    assert_eq!(stopped(&ran).unwrap().reason, "the output is over 1 tokens, estimated");
    let ran = run(TokenCeiling::new(1).count_with(|_| 2), [text("a ")]);
    assert_eq!(stopped(&ran).unwrap().reason, "the output is over 1 tokens");
}

/// spec 1.6: money is an integer. Input counts once it is stated.
#[test]
fn cost_follows_the_prices() {
    let pico = Money::from_pico;
    let mut prices = TokenPrices::per_million(pico(2_000_000), pico(5_000_000));
    prices.reasoning = pico(7_000_000);
    prices.cache_read = pico(1_000_000);
    let reasoning = Chunk::delta(Lane::new(Channel::Reasoning), "1234");
    let cached = Chunk::usage(Usage { cache_read: Some(3), ..Usage::default() });
    for (max, chunks, expected) in [
        (5, vec![text("1234")], None),
        (4, vec![text("1234")], Some(0)),
        (7, vec![reasoning.clone()], None),
        (6, vec![reasoning], Some(0)),
        (15, vec![input(5), text("1")], None),
        (14, vec![input(5), text("1")], Some(1)),
        (8, vec![cached.clone(), text("1")], None),
        (7, vec![cached, text("1")], Some(1)),
        (10, vec![output(2), text("")], None),
    ] {
        let expected = expected.map(|at| ("cost_ceiling".to_owned(), at));
        assert_eq!(at(CostCeiling::new(pico(max), prices), chunks.clone()), expected, "{max} {chunks:?}");
    }
    // A part of a pico-dollar is one.
    let cheap = TokenPrices::per_million(pico(0), pico(1));
    assert_eq!(at(CostCeiling::new(pico(0), cheap), [text("1")]), Some(("cost_ceiling".into(), 0)));
    // Sums stay at the largest amount, and do not begin again.
    let dear = TokenPrices::per_million(pico(u64::MAX), pico(u64::MAX));
    assert!(at(CostCeiling::new(pico(u64::MAX - 1), dear), [output(u64::MAX), text("1")]).is_some());
}

#[test]
fn length_is_exact() {
    for (ceiling, expected) in [
        (LengthCeiling::bytes(5), None),
        (LengthCeiling::bytes(4), Some(1)),
        (LengthCeiling::chars(4), None),
        (LengthCeiling::chars(3), Some(1)),
        (LengthCeiling::chars(3).channels([Channel::Refusal]), None),
    ] {
        let expected = expected.map(|at| ("length_ceiling".to_owned(), at));
        // Tokens that are stated are no length.
        assert_eq!(at(ceiling, [text("caf"), text("é"), output(0), text("")]), expected);
    }
}

#[test]
fn only_reporting_goes_on() {
    let ran = run(LengthCeiling::bytes(4).report_only(), texts(["12345", "6", "7"]));
    assert_eq!((ran.text.as_str(), ran.events.len()), ("1234567", 1));
    let event = &ran.events[0];
    assert_eq!((&event.channel, event.name.as_str()), (&HALTS, "length_ceiling"));
    assert_eq!(
        event.payload.as_str(),
        r#"{"observer":"length-ceiling","code":"length_ceiling","reason":"the text is longer than 4 bytes","chunk_index":0}"#
    );
}

/// spec 8.1
#[test]
fn more_than_256_open_texts_have_no_words_to_count() {
    let lanes = |n| (0..n).map(|choice| Chunk::delta(Lane::TEXT.in_choice(choice), "hi"));
    let ceiling = || TokenCeiling::new(u64::MAX).count_with(|_| 1);
    assert_eq!(at(ceiling(), lanes(256)), None);
    assert_eq!(at(ceiling(), lanes(300)), Some(("too_many_lanes".into(), 256)));
    assert_eq!(at(TokenCeiling::new(1000), lanes(300)), None, "an estimate needs no words");
}

const fn ms(ms: u64) -> Offset {
    Offset(ms * 1000)
}

fn beat(at: u64) -> Chunk {
    Chunk::heartbeat(ms(at))
}

fn said(at: u64) -> Chunk {
    text("x").at(ms(at))
}

fn stall() -> Stall {
    Stall::new(Duration::from_millis(100))
}

/// spec 3.10, 6.2: time is what the chunks say.
#[test]
fn silence_is_a_stall_after_its_limit() {
    let first = || stall().first(Duration::from_millis(500));
    let finish = |at| Chunk::finish(0, FinishReason::Stop).at(ms(at));
    let call = Chunk::tool_call(Lane::TEXT.arguments(1), "c", "f", "{}").at(ms(10));
    let other = |at| Chunk::delta(Lane::TEXT.in_choice(1), "x").at(ms(at));
    for (stall, chunks, expected) in [
        (stall(), vec![beat(10_000), said(20_000), said(20_100)], None),
        (stall(), vec![said(0), beat(100)], None),
        (stall(), vec![said(0), beat(101)], Some(1)),
        (stall(), vec![said(0), said(101)], Some(1)),
        (stall(), vec![said(0), said(90), said(180), beat(281)], Some(3)),
        (stall(), vec![said(0), text("").at(ms(90)), beat(101)], Some(2)),
        (stall(), vec![said(0), output(1).at(ms(90)), beat(101)], Some(2)),
        (first(), vec![beat(500), said(500)], None),
        (first(), vec![beat(501)], Some(0)),
        (first(), vec![said(501)], Some(0)),
        // Nothing is due after the finish, but while another choice speaks.
        (stall(), vec![said(0), finish(10), output(1).at(ms(900)), beat(999)], None),
        (stall(), vec![said(0), finish(101)], Some(1)),
        (stall(), vec![said(0), other(0), finish(10), beat(111)], Some(3)),
        // Tools take their time.
        (stall(), vec![call.clone(), beat(10_000), said(10_000), beat(10_101)], Some(3)),
        (stall().tools(Duration::from_millis(50)), vec![call, beat(61)], Some(1)),
        // Text of other channels does not count if they were not chosen.
        (stall().channels([Channel::Reasoning]), vec![said(0), beat(500), said(500)], None),
        // A clock that goes backwards makes no gap.
        (stall(), vec![said(500), said(0), beat(600)], None),
    ] {
        let expected = expected.map(|at| ("stalled".to_owned(), at));
        assert_eq!(at(stall, chunks.clone()), expected, "{chunks:?}");
    }
}

#[test]
fn each_silence_is_reported_once() {
    let chunks = [said(0), beat(101), beat(150), said(200), said(250), beat(351), beat(500)];
    let ran = run(stall().report_only(), chunks);
    let at: Vec<_> = ran.events.iter().map(|event| event.payload.as_str().rsplit(':').next().unwrap()).collect();
    assert_eq!(at, ["1}", "5}"]);
}

/// What a plain reading of the whole text says: the bytes after which it is known that the stream is to stop, and the reason.
type Known = Option<(usize, String)>;

/// However a text is cut, it is stopped at the piece in which the place stands, everything before is delivered, and the reason is the same.
fn stops_where_the_whole_text_says(
    make: impl Fn() -> Registration,
    whole: &str,
    cuts: &[prop::sample::Index],
    known: &Known,
) -> Result<(), TestCaseError> {
    let pieces = split(whole, cuts);
    let ran = run(make(), texts(pieces.iter().copied()));
    let reason = stopped(&ran).map(|stop| stop.reason.to_string());
    prop_assert_eq!(reason.as_ref(), known.as_ref().map(|(_, reason)| reason));
    let place = known.as_ref().map_or(usize::MAX, |(place, _)| *place);
    let mut delivered = 0;
    for piece in &pieces {
        if delivered + piece.len() >= place {
            break;
        }
        delivered += piece.len();
    }
    prop_assert_eq!(&ran.text, &whole[..delivered]);
    Ok(())
}

/// The byte after which a count over prefixes passes a limit.
fn passes(whole: &str, max: u64, count: impl Fn(&str) -> u64) -> Option<usize> {
    (1..=whole.len()).filter(|&end| whole.is_char_boundary(end)).find(|&end| count(&whole[..end]) > max)
}

/// The same words as are counted one by one.
fn whole_words(text: &str) -> Vec<&str> {
    let mut ends: Vec<usize> = Vec::new();
    let mut inside = false;
    for (at, char) in text.char_indices() {
        if inside && char.is_whitespace() {
            ends.push(at);
        }
        inside = !char.is_whitespace();
    }
    let mut from = 0;
    ends.into_iter()
        .map(|end| {
            let word = &text[from..end];
            from = end;
            word
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// spec 6.2: one-shot and in pieces are the same.
    #[test]
    fn a_ceiling_does_not_depend_on_the_split(
        whole in "[a-cé \n]{0,60}",
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        max in 0_u64..30,
    ) {
        let known = passes(&whole, max, |text| text.len() as u64);
        let known = known.map(|at| (at, format!("the text is longer than {max} bytes")));
        stops_where_the_whole_text_says(|| LengthCeiling::bytes(max).into(), &whole, &cuts, &known)?;

        let known = passes(&whole, max, |text| text.chars().count() as u64);
        let known = known.map(|at| (at, format!("the text is longer than {max} characters")));
        stops_where_the_whole_text_says(|| LengthCeiling::chars(max).into(), &whole, &cuts, &known)?;

        let known = passes(&whole, max, |text| text.len().div_ceil(4) as u64);
        let known = known.map(|at| (at, format!("the output is over {max} tokens, estimated")));
        stops_where_the_whole_text_says(|| TokenCeiling::new(max).into(), &whole, &cuts, &known)?;

        // A tokenizer that is not additive over cuts: a token for each two characters of a word, rounded up.
        let count = |word: &str| word.chars().count().div_ceil(2) as u64;
        let known = passes(&whole, max, |text| whole_words(text).into_iter().map(count).sum());
        let known = known.map(|at| (at, format!("the output is over {max} tokens")));
        stops_where_the_whole_text_says(|| TokenCeiling::new(max).count_with(count).into(), &whole, &cuts, &known)?;
    }
}

#[test]
fn words_without_an_end_are_cut_at_256_bytes() {
    let long = "é".repeat(1000);
    for size in [2, 6, 254, 2000] {
        let pieces: Vec<_> = (0..2000).step_by(size).map(|from| &long[from..(from + size).min(2000)]).collect();
        for (max, stops) in [(6, true), (7, false)] {
            let ran = run(TokenCeiling::new(max).count_with(|_| 1), pieces.iter().copied().map(text));
            assert_eq!(stopped(&ran).is_some(), stops, "{size}");
        }
    }
}

#[test]
fn an_end_counts_the_last_word() {
    let chunks = |last: Body| vec![text("one"), last.into(), text("two "), text("x")];
    let ceiling = || TokenCeiling::new(1).count_with(|_| 1);
    assert_eq!(at(ceiling(), chunks(Body::PartEnd { choice: 0, part: 0 })), Some(("token_ceiling".into(), 2)));
    assert_eq!(at(ceiling(), chunks(Body::PartEnd { choice: 0, part: 1 })), None);
}

/// The first of the places at which a text is looked at where its end is a loop. Plain and slow.
fn first_loop(whole: &str, min_bytes: usize, copies: usize, max_period: usize) -> Known {
    (256..=whole.len()).step_by(256).find_map(|end| {
        let text = &whole.as_bytes()[..end];
        (min_bytes..=end).find_map(|len| {
            let tail = &text[end - len..];
            let period = (1..=max_period.min(len / copies)).find(|&period| tail[period..] == tail[..len - period])?;
            let reason = format!("the last {len} bytes up to byte {end} repeat the same {period} in channel `text`");
            Some((end, reason))
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// spec 6.2: one-shot and in pieces are the same.
    #[test]
    fn a_loop_is_found_for_every_split(
        before in "[a-z \n]{0,400}",
        copy in "[a-c é\n]{1,20}",
        copies in 1_usize..60,
        after in "[a-z]{0,300}",
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
    ) {
        let whole = format!("{before}{}{after}", copy.repeat(copies));
        let known = first_loop(&whole, 100, 3, 40);
        let make = || Repetition::new().min_bytes(100).copies(3).max_period(40).into();
        stops_where_the_whole_text_says(make, &whole, &cuts, &known)?;
    }
}

#[test]
fn what_repeats_a_little_is_no_loop() {
    let table = format!("|{}|\n", "---|".repeat(40)) + &"| a | b |\n".repeat(60);
    let code = "    let value = compute(value);\n".repeat(30);
    let list: String = (0..200).map(|n| format!("{n}. the same\n")).collect();
    for (text, stops) in [
        (table.as_str(), false),
        (&code, false),
        (&list, false),
        (&"=".repeat(1000), false),
        (&"=".repeat(2000), true),
        (&"\n".repeat(2000), true),
        (&"I cannot answer that. ".repeat(100), true),
        (&"A paragraph of some length, said again. ".repeat(20).repeat(8), true),
    ] {
        assert_eq!(at(Repetition::new(), texts([text])).is_some(), stops, "{}", &text[..20]);
    }
}

#[test]
fn a_loop_is_found_behind_a_megabyte_of_near_loops() {
    // The near loop is never one: the hard way is taken for each look.
    let near = format!("{}!{}?", "ab".repeat(300), "ab".repeat(300));
    let chunks = (0..1000).map(|_| text(&near)).chain((0..10).map(|_| text(&"x".repeat(500))));
    let (code, index) = at(Repetition::new().max_period(1000), chunks).unwrap();
    assert_eq!(code, "repetition");
    assert!((1002..1005).contains(&index), "{index}");
}

const PROMPT: &str = "You are Ada, the assistant of a small bank. Never tell anybody the name of the director. If somebody asks \
    about loans, say that rates change every day and offer to call them back. Do not give advice about shares, and answer in at most \
    three sentences unless the question is about safety.";

fn leak() -> PromptLeak {
    PromptLeak::new().prompt(PROMPT)
}

/// spec 6.2: words, not bytes; enough of them, in one place.
#[test]
fn reciting_the_prompt_is_a_leak() {
    let shouted = PROMPT.to_uppercase().replace(' ', "\n* ").replace(',', "");
    let few: String = PROMPT.split_inclusive(' ').take(24).collect();
    let scattered: String =
        PROMPT.split_inclusive(' ').enumerate().map(|(n, word)| if n % 4 == 3 { "well " } else { word }).collect();
    let far = format!("{few}{} {few}", "and so on ".repeat(20));
    for (text, leaks) in [
        (PROMPT, true),
        (&format!("Sure! My instructions are: “{PROMPT}”"), true),
        (&shouted, true),
        (&few, false),
        (&scattered, false),
        (&far, false),
        ("Rates change every day. May I call you back about the loan? I cannot give advice about shares.", false),
    ] {
        let expected = leaks.then(|| "prompt_leak".to_owned());
        assert_eq!(at(leak(), texts([text])).map(|(code, _)| code), expected, "{text}");
        assert_eq!(at(PromptLeak::new(), texts([text])), None, "no prompt is known");
    }
    assert_eq!(at(leak().allow(PROMPT), texts([PROMPT])), None);
    assert!(at(leak().words(20), texts([few.as_str()])).is_some());
    // A short prompt leaks when all of it is said, also at the very end.
    let short = || PromptLeak::new().prompt("Talk like a pirate, always");
    assert_eq!(at(short(), texts(["I am to talk like a pirate", " always"])), Some(("prompt_leak".into(), 2)));
    assert_eq!(at(short(), texts(["I like to talk like a pirate"])), None);
}

#[test]
fn the_prompt_of_the_invocation_is_compared() {
    let mut ctx = streamkeeper_stream::ObserverFactoryContext::default();
    ctx.system_prompt = Some(PROMPT.into());
    let mut stack = Observers::from(PromptLeak::new()).stack(&ctx);
    stack.push(text(PROMPT));
    assert_eq!(stack.outcome().unwrap().stop().unwrap().code, "prompt_leak");
}

#[test]
fn neither_prompt_nor_canary_is_in_its_debug_form() {
    let shown = format!("{:?}", leak().canary("zebra-4711"));
    assert!(!shown.contains("zebra") && !shown.contains("Ada"), "{shown}");
}

/// Where the overlap is reached, word by word over the whole text.
fn first_overlap(whole: &str, prompt: &str, need: usize, window: usize) -> Known {
    let words = |text: &str| -> Vec<String> {
        let words = text.split(|char: char| !char.is_alphanumeric()).filter(|word| !word.is_empty());
        words.map(str::to_lowercase).collect()
    };
    let prompt = words(prompt);
    let is_run = |run: &[String]| prompt.windows(5).any(|known| known == run);
    // A word is known at the character behind it; the end of the text, one byte further, stands for the finish.
    let known_at: Vec<usize> = {
        let mut ends = Vec::new();
        let mut inside = false;
        for (at, char) in whole.char_indices().chain([(whole.len(), ' ')]) {
            if inside && !char.is_alphanumeric() {
                ends.push(at + char.len_utf8());
            }
            inside = char.is_alphanumeric();
        }
        ends
    };
    let said = words(whole);
    let need = need.min(prompt.len());
    (5..=said.len()).find_map(|end| {
        let from = end.saturating_sub(window);
        let covered = (from..end)
            .filter(|&at| (at.saturating_sub(4)..=at).any(|start| start + 5 <= end && is_run(&said[start..start + 5])));
        let reached = is_run(&said[end - 5..end]) && covered.count() >= need;
        let reason = format!("{need} words of the system prompt are repeated in channel `text`");
        reached.then(|| (known_at[end - 1], reason))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// spec 6.2: one-shot and in pieces are the same.
    #[test]
    fn an_overlap_is_found_for_every_split(
        prompt in "([a-cé]{1,2} ){4,12}",
        whole in "([a-cA-Cé]{1,2}[ ,—]{1,2}){0,40}",
        recited in 0_usize..40,
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
        need in 5_u32..9,
    ) {
        let recited = &prompt[prompt.floor_char_boundary(recited.min(prompt.len()))..];
        let whole = format!("{whole}{recited}{whole}");
        let known = first_overlap(&whole, &prompt, need as usize, 10);
        let make = || PromptLeak::new().prompt(prompt.as_str()).window(10).words(need).into();
        stops_where_the_whole_text_says(make, &whole, &cuts, &known)?;
    }

    /// No byte of a canary is delivered, wherever it is cut, and all other text is.
    #[test]
    fn no_part_of_a_canary_gets_out(
        before in "[zeb -]{0,20}",
        said in any::<bool>(),
        after in "[zeb-]{0,20}",
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
    ) {
        let whole = format!("{before}{}{after}", if said { "zeb-é7" } else { "" });
        let pieces = split(&whole, &cuts);
        let ran = run(PromptLeak::new().canary("zeb-é7").canary("zzzz"), texts(pieces.iter().copied()));
        let place = ["zeb-é7", "zzzz"].iter().filter_map(|canary| whole.find(canary)).min();
        prop_assert_eq!(stopped(&ran).is_some(), place.is_some());
        match place {
            // What stands in the chunk before the canary is withheld with it.
            Some(place) => prop_assert!(whole[..place].starts_with(&ran.text)),
            None => prop_assert_eq!(&ran.text, &whole),
        }
    }
}

#[test]
fn one_byte_at_a_time_in_interleaved_texts() {
    let other = Lane::TEXT.in_choice(1);
    let mixed = PROMPT
        .char_indices()
        .flat_map(|(at, _)| [Chunk::delta(Lane::TEXT, &PROMPT[at..=at]), Chunk::delta(other, "no ")]);
    assert!(at(leak(), mixed).is_some());
    let alternate = PROMPT
        .split_inclusive(' ')
        .enumerate()
        .map(|(n, word)| Chunk::delta(if n % 2 == 0 { Lane::TEXT } else { other }, word));
    assert_eq!(at(leak(), alternate), None, "two texts are not one");
    let many = (0..300).map(|choice| Chunk::delta(Lane::TEXT.in_choice(choice), "hi"));
    assert_eq!(at(leak(), many), Some(("too_many_lanes".into(), 256)));
}

/// spec 6.2: denied topics by weight in a window, allowed ones by their absence.
#[test]
fn topics_are_weighed_by_their_terms() {
    let medicine =
        || OffTopic::new().deny("medicine", [("dosage", 3), ("side effects", 3), ("pill", 1), ("药", 5), ("", 9)]);
    let far = format!("A pill. {} The dosage? Pill!", "And so on. ".repeat(40));
    let many = "pill ".repeat(5);
    let apart: String = (0..5).map(|_| format!("pill {}", "or ".repeat(24))).collect();
    for (text, stops) in [
        ("The dosage and its SIDE—EFFECTS", true),
        ("The dosage and its side, or effects", false),
        ("dosages pills", false),
        (many.as_str(), true),
        (&apart, false),
        (&far, false),
        ("吃药吧", true),
    ] {
        let expected = stops.then(|| "off_topic".to_owned());
        assert_eq!(at(medicine(), texts([text])).map(|(code, _)| code), expected, "{text}");
    }
    let ran = run(medicine(), texts([many.as_str()]));
    assert_eq!(stopped(&ran).unwrap().reason, "the topic `medicine` is talked about in channel `text`");
    // Two topics do not add up.
    let two = OffTopic::new().deny("a", [("x", 3)]).deny("b", [("y", 3)]);
    assert_eq!(at(two, texts(["x y z"])), None);

    let banking = || OffTopic::new().allow("loans", ["loan", "interest rate"]).allow("cards", ["card"]).window(4);
    for (text, stops) in [
        ("short and other", false),
        ("one two three four", true),
        ("a loan a b", false),
        ("a loan a b c", false),
        ("a loan a b c d", true),
        ("my interest rate is a card of mine", false),
    ] {
        assert_eq!(at(banking(), texts([text])).is_some(), stops, "{text}");
    }
}

#[test]
fn five_thousand_terms_cost_no_more_than_one() {
    let terms = (0..5000).map(|n| (format!("term {n}"), 1));
    let guard = OffTopic::new().deny("numbers", terms).limit(2);
    assert_eq!(at(guard, texts(["term 4999 and term", " 17", " in"])), Some(("off_topic".into(), 2)));
}

/// What a function is asked about, and the byte after which it is asked.
fn sentences(whole: &str, keep: usize) -> Vec<(usize, String)> {
    let (mut all, mut sentence, mut before): (Vec<(usize, String)>, _, _) = (Vec::new(), String::new(), ' ');
    for (at, char) in whole.char_indices() {
        sentence.push(char);
        let ends = "\n。！？".contains(char) || char.is_whitespace() && ".!?".contains(before);
        before = char;
        if ends {
            let done = std::mem::take(&mut sentence);
            if !done.trim().is_empty() {
                all.push((at + char.len_utf8(), done));
            }
        }
    }
    if !sentence.trim().is_empty() {
        all.push((whole.len() + 1, sentence));
    }
    (0..all.len())
        .map(|n| {
            let window = &all[(n + 1).saturating_sub(keep)..=n];
            (all[n].0, window.iter().map(|(_, sentence)| sentence.as_str()).collect())
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// spec 6.2: one-shot and in pieces are the same.
    #[test]
    fn a_topic_is_found_for_every_split(
        whole in "([abé]{1,2}[ ,.—]{1,2}){0,40}",
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
        limit in 1_u64..8,
        window in 1_usize..12,
    ) {
        let said: Vec<(usize, &str)> = whole
            .split_inclusive(|char: char| !char.is_alphanumeric())
            .scan(0, |at, piece| {
                *at += piece.len();
                Some((*at, piece.trim_end_matches(|char: char| !char.is_alphanumeric())))
            })
            .filter(|(_, word)| !word.is_empty())
            .collect();
        let weight = |end: usize| -> u64 {
            let is = |at: usize, word: &str| said[at].1 == word;
            let one: u64 = (end.saturating_sub(window)..end).map(|at| u64::from(is(at, "é")) * 2).sum();
            let pair = |at: &usize| *at > 0 && is(*at, "a") && is(*at - 1, "b");
            one + (end.saturating_sub(window)..end).filter(pair).count() as u64
        };
        let known = (1..=said.len()).find(|end| weight(*end) >= limit);
        let known = known.map(|end| (said[end - 1].0, "the topic `t` is talked about in channel `text`".to_owned()));
        let make = || OffTopic::new().deny("t", [("é", 2), ("B a", 1)]).limit(limit).window(window).into();
        stops_where_the_whole_text_says(make, &whole, &cuts, &known)?;
    }

    #[test]
    fn a_function_is_asked_the_same_for_every_split(
        whole in "[abc .?\n。]{0,60}",
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
        keep in 1_usize..4,
    ) {
        let is_off = |text: &str| text.matches('a').count() >= 3;
        let known = sentences(&whole, keep).into_iter().find(|(_, window)| is_off(window));
        let known = known.map(|(at, _)| (at, "the last sentences are off topic in channel `text`".to_owned()));
        stops_where_the_whole_text_says(|| OffTopic::new().judge(keep, is_off).into(), &whole, &cuts, &known)?;
    }
}

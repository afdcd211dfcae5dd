//! [`HaltOnPattern`] in a stack.

mod common;

use std::sync::LazyLock;

use proptest::prelude::*;
use streamkeeper_contract::{Body, Channel, Chunk, FinishReason, Lane, Outcome, Stop, id};
use streamkeeper_observers::{HaltOnPattern, RefusalSet};

use self::common::{Ran, run, split};

fn text(pieces: &[&str]) -> Vec<Chunk> {
    let finish = Chunk::finish(0, FinishReason::Stop);
    pieces.iter().map(|&piece| Chunk::delta(Lane::TEXT, piece)).chain([finish]).collect()
}

fn stopped(ran: &Ran) -> Option<&Stop> {
    match &ran.outcome {
        Outcome::Stopped(stop) => Some(stop),
        _ => None,
    }
}

/// spec 3.5: the stopping chunk is not delivered, the reason holds none of its text, and position and length are the stack's.
#[test]
fn a_refusal_stops_the_stream_before_the_chunk_that_completes_it() {
    let ran = run(HaltOnPattern::refusals(), text(&["Sorry, ", "I can’", "t hel", "p with", " that."]));
    let expected = Stop {
        observer: id!("halt-on-pattern"),
        code: "pattern_matched".into(),
        reason: "the pattern set `refusals` version 1 matched in channel `text`".into(),
        chunk_index: 3,
        accumulated_content_length: "Sorry, I can’t hel".len() as u64,
    };
    assert_eq!(stopped(&ran), Some(&expected));
    assert_eq!(ran.text, "Sorry, I can’t hel");
}

/// The end of the text is a word boundary too: what is undecided until then is judged there.
#[test]
fn a_refusal_at_the_very_end_stops_the_finish() {
    let ran = run(HaltOnPattern::refusals(), text(&["I cannot", " help"]));
    assert_eq!((stopped(&ran).unwrap().chunk_index, ran.text.as_str()), (2, "I cannot help"));

    let ran = run(HaltOnPattern::refusals(), text(&["I cannot", " help", "fully say"]));
    assert_eq!(ran.outcome, Outcome::Finished { reason: FinishReason::Stop });
}

#[test]
fn each_end_of_a_text_settles_it() {
    let undecided = || vec![Chunk::delta(Lane::TEXT.in_choice(1).in_part(2), "I cannot help")];
    for (end, stops) in [
        (Body::PartEnd { choice: 1, part: 2 }, true),
        (Body::PartEnd { choice: 1, part: 0 }, false),
        (Body::PartEnd { choice: 0, part: 2 }, false),
        (Body::MessageEnd { choice: 1 }, true),
        (Body::MessageEnd { choice: 0 }, false),
        (Body::StepEnd(Box::default()), false),
    ] {
        let chunks = [undecided(), vec![end.clone().into()]].concat();
        assert_eq!(stopped(&run(HaltOnPattern::refusals(), chunks)).is_some(), stops, "{end:?}");
    }
    for (choice, stops) in [(1, true), (0, false)] {
        let chunks = [undecided(), vec![Chunk::finish(choice, FinishReason::Stop)]].concat();
        assert_eq!(stopped(&run(HaltOnPattern::refusals(), chunks)).is_some(), stops, "finish of choice {choice}");
    }
}

/// Texts are judged lane by lane: a match made of two lanes is none (spec 3.7).
#[test]
fn lanes_do_not_mix() {
    for (second, stops) in [
        (Lane::TEXT, true),
        (Lane::TEXT.in_choice(1), false),
        (Lane::TEXT.in_part(1), false),
        (Lane::new(Channel::Reasoning), false),
    ] {
        let chunks = [Chunk::delta(Lane::TEXT, "I cannot "), Chunk::delta(second, "help you")];
        assert_eq!(stopped(&run(HaltOnPattern::refusals(), chunks)).is_some(), stops, "{second:?}");
    }
    // Interleaved, each lane keeps its own text.
    let other = Lane::TEXT.in_choice(1);
    let pieces =
        [(Lane::TEXT, "I can"), (other, "Sure, "), (Lane::TEXT, "not he"), (other, "here"), (Lane::TEXT, "lp you")];
    let ran = run(HaltOnPattern::refusals(), pieces.map(|(lane, piece)| Chunk::delta(lane, piece)));
    assert_eq!(stopped(&ran).unwrap().chunk_index, 4);
}

#[test]
fn only_chosen_channels_are_judged() {
    let reasoning = || [Chunk::delta(Lane::new(Channel::Reasoning), "I cannot help here")];
    assert!(stopped(&run(HaltOnPattern::refusals(), reasoning())).is_none());
    let halt = HaltOnPattern::refusals().channels([Channel::Text, Channel::Reasoning]);
    assert_eq!(
        stopped(&run(halt, reasoning())).unwrap().reason,
        "the pattern set `refusals` version 1 matched in channel `reasoning`"
    );
    let halt = HaltOnPattern::refusals().channels([Channel::Refusal]);
    assert!(stopped(&run(halt, text(&["I cannot help here"]))).is_none());
}

#[test]
fn text_that_comes_whole_is_judged_whole() {
    let snapshot = || vec![Chunk::snapshot(Lane::TEXT, "I cannot help")];
    assert!(stopped(&run(HaltOnPattern::refusals(), snapshot())).is_some());

    let args = Lane::TEXT.arguments(1);
    let call = || vec![Chunk::tool_call(args, "call_1", "say", r#"{"text":"I cannot help"}"#)];
    assert!(stopped(&run(HaltOnPattern::refusals(), call())).is_none());
    assert!(stopped(&run(HaltOnPattern::refusals().channels([Channel::Arguments]), call())).is_some());

    // A repetition of what passed passes.
    let repeated = [text(&["I can", " help"]), vec![Chunk::snapshot(Lane::TEXT, "I can help")]].concat();
    assert!(stopped(&run(HaltOnPattern::refusals(), repeated)).is_none());
    // A repetition that is not one does not (spec 1.3).
    let differs = [text(&["I can", " help"]), vec![Chunk::snapshot(Lane::TEXT, "I cannot help")]].concat();
    assert!(stopped(&run(HaltOnPattern::refusals(), differs)).is_some());
}

/// spec 3.5
#[test]
fn a_reason_quotes_the_match_only_if_asked_to() {
    let secret = || HaltOnPattern::pattern("sk-[a-z\"]+").unwrap().id(id!("keys"));
    let chunks = || text(&["key sk-", "ab\"c", " is it"]);
    let quiet = run(secret(), chunks());
    assert_eq!(stopped(&quiet).unwrap().reason, "the pattern matched in channel `text`");
    assert_eq!(stopped(&quiet).unwrap().observer, id!("keys"));
    assert_eq!(
        stopped(&run(secret().quote_match(true), chunks())).unwrap().reason,
        r#"the pattern matched in channel `text`: "sk-ab\"c""#
    );
    let long = run(HaltOnPattern::pattern("é{200}").unwrap().quote_match(true), text(&[&"é".repeat(200)]));
    assert!(stopped(&long).unwrap().reason.ends_with("éé\" (cut)"));
    assert!(stopped(&long).unwrap().reason.len() < 350);
}

#[test]
fn more_than_256_open_texts_stop_the_stream() {
    let lanes = |n| (0..n).map(|choice| Chunk::delta(Lane::TEXT.in_choice(choice), "hi"));
    assert!(stopped(&run(HaltOnPattern::refusals(), lanes(256))).is_none());
    assert_eq!(stopped(&run(HaltOnPattern::refusals(), lanes(257))).unwrap().code, "too_many_lanes");
}

/// A window of 16 KiB by default (spec 6.2), in bytes.
#[test]
fn the_window_is_16_kib_unless_said_otherwise() {
    let halt = || HaltOnPattern::pattern("BEGIN[^!]*END").unwrap();
    let chunks = |between: usize| {
        let filler = std::iter::repeat_n("é", between / 2).map(|piece| Chunk::delta(Lane::TEXT, piece));
        [Chunk::delta(Lane::TEXT, "BEGIN")].into_iter().chain(filler).chain([Chunk::delta(Lane::TEXT, "END")])
    };
    let window = 16 * 1024;
    assert!(stopped(&run(halt(), chunks(window - 6))).is_some());
    assert!(stopped(&run(halt(), chunks(window))).is_none());
    assert!(stopped(&run(halt().window(100), chunks(200))).is_none());
    assert!(stopped(&run(halt().window(100_000), chunks(50_000))).is_some());
}

static REFUSALS: LazyLock<regex::Regex> =
    LazyLock::new(|| regex::Regex::new(&RefusalSet::bundled().pattern()).unwrap());

proptest! {
    /// Wherever the stream is cut, it stops at the first chunk that shows what the whole text shows: the end of the match and, since the
    /// pattern asks for a word boundary, one character more. Nothing of that chunk is delivered, everything before it is.
    #[test]
    fn a_refusal_is_found_for_every_split(
        before in "[a-zé’ .]{0,20}",
        refusal in prop::sample::select(vec!["I cannot help", "SORRY, I CAN’T  assist", "i wont be able to\nprovide", "I'm not able to comply"]),
        after in "[ .!é][a-z ]{0,20}|",
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..10),
    ) {
        let whole = format!("{before} {refusal}{after}");
        let found = REFUSALS.find(&whole).unwrap();
        let known_at = found.end() + whole[found.end()..].chars().next().map_or(0, char::len_utf8);

        let pieces = split(&whole, &cuts);
        let mut delivered = 0;
        for piece in &pieces {
            if delivered + piece.len() >= known_at && known_at > found.end() {
                break;
            }
            delivered += piece.len();
        }
        let ran = run(HaltOnPattern::refusals(), text(&pieces));
        prop_assert!(stopped(&ran).is_some());
        prop_assert_eq!(&ran.text, &whole[..delivered]);
    }
}

//! Budgets that can be counted exactly: allocations (spec 8.2).

use allocation_counter::measure;
use streamkeeper_benches::{
    decode::INPUTS,
    stack::{Source, bare, bundled, disinterested, observed, pass_through, push_prose},
};
use streamkeeper_observers::{LengthCeiling, PromptLeak, Redact, Repetition, TokenCeiling};
use streamkeeper_stream::Observers;
use streamkeeper_text::Pattern;

/// What a long stream allocates beyond one of 10 000 chunks, through these observers: what each chunk costs once all buffers have their
/// size.
fn per_chunk(observers: &Observers) -> u64 {
    per_chunk_of(|chunks| assert!(observed(Source(chunks), observers) > 0))
}

fn per_chunk_of(run: impl Fn(u32)) -> u64 {
    let allocations = |chunks| measure(|| run(chunks)).count_total;
    // Once beforehand, for what is made on first use.
    allocations(10);
    allocations(100_000) - allocations(10_000)
}

#[test]
fn a_chunk_that_passes_allocates_nothing() {
    assert_eq!(measure(|| assert!(bare(Source(1_000)) > 0)).count_total, 0, "the baseline");
    for n in [0, 1, 8] {
        assert_eq!(per_chunk(&pass_through(n)), 0, "{n} observers that look");
    }
    assert_eq!(per_chunk(&disinterested(8)), 0, "8 observers that are not interested");
}

/// The bundled observers keep a bounded text, which moves now and then but does not grow.
#[test]
fn a_chunk_through_the_bundled_observers_allocates_nothing() {
    assert_eq!(per_chunk(&bundled()), 0);
}

/// Guards over prose, where nothing is held: its words are not what these look for.
#[test]
fn a_chunk_through_the_guards_allocates_nothing_while_nothing_is_held() {
    let prompt =
        "You are a helpful assistant of the shop and never speak of the warehouse in Rotterdam or the voucher.";
    let key = Pattern::regex("key", r"\bZK-[0-9]{8}").expect("it is a pattern");
    let guards: [(&str, Observers); 5] = [
        ("redaction", Redact::new().pattern(key).expect("it compiles").into()),
        ("prompt leak", PromptLeak::new().prompt(prompt).into()),
        ("repetition", Repetition::new().copies(1000).into()),
        ("token ceiling", TokenCeiling::new(u64::MAX).into()),
        ("length ceiling", LengthCeiling::bytes(u64::MAX).into()),
    ];
    for (name, observers) in &guards {
        assert_eq!(per_chunk_of(|chunks| assert!(push_prose(chunks, observers) > 0)), 0, "{name}");
    }
}

/// An open stream costs at most 8 KB beyond the text it must keep.
#[test]
fn an_open_stream_is_small() {
    for (name, observers) in [("8 that pass", pass_through(8)), ("bundled", bundled())] {
        assert!(observed(Source(10), &observers) > 0);
        let peak = measure(|| assert!(observed(Source(10), &observers) > 0)).bytes_max;
        assert!(peak <= 8 * 1024, "{name}: {peak} bytes");
    }
}

/// A text event whose text fits into a chunk allocates nothing: the frame is read in place, the text is inline.
#[test]
fn decoding_a_short_text_allocates_nothing() {
    let mut found = Vec::new();
    for input in INPUTS {
        let allocations = |events| {
            let body = input.body(events);
            measure(|| assert_eq!(input.decode(&body), events)).count_total
        };
        let beyond = allocations(11_000).saturating_sub(allocations(1_000));
        if beyond > 0 {
            found.push(format!("{}: {beyond} allocations for 10000 events", input.format));
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

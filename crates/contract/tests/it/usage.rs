//! spec 1.6: tokens in disjoint buckets, where unknown is not zero, and money without floats.

use proptest::prelude::*;
use streamkeeper_contract::{Json, Money, Stated, Usage};

use crate::samples::any_usage;

/// `[uncached input, cache read, cache write, output, reasoning]`
fn usage(buckets: [Option<u64>; 5]) -> Usage {
    let [uncached_input, cache_read, cache_write, output, reasoning] = buckets;
    Usage { uncached_input, cache_read, cache_write, output, reasoning, ..Usage::default() }
}

const N: Option<u64> = None;
const MAX: Option<u64> = Some(u64::MAX);

#[test]
fn totals_are_the_sum_of_what_is_known() {
    // spec 1.6
    for (buckets, input, output, total) in [
        ([N, N, N, N, N], N, N, N),
        ([Some(0), N, N, N, N], Some(0), N, Some(0)),
        ([N, N, N, Some(0), N], N, Some(0), Some(0)),
        ([Some(10), Some(90), Some(5), Some(7), Some(20)], Some(105), Some(27), Some(132)),
        ([Some(10), N, N, N, Some(20)], Some(10), Some(20), Some(30)),
        ([MAX, Some(1), N, N, N], MAX, N, MAX),
        ([MAX, N, N, MAX, MAX], MAX, MAX, MAX),
    ] {
        let usage = usage(buckets);
        assert_eq!((usage.input(), usage.output_total(), usage.total()), (input, output, total), "{usage:?}");
    }
}

#[test]
fn a_later_statement_wins_where_it_says_something() {
    // spec 1.6, 2.6
    for (earlier, later, expected) in [
        ([Some(43), N, N, Some(1), N], [Some(61), N, N, Some(9), N], [Some(61), N, N, Some(9), N]),
        ([Some(43), Some(5), N, N, N], [N, N, N, Some(9), N], [Some(43), Some(5), N, Some(9), N]),
        ([Some(43), N, N, N, N], [Some(0), N, N, N, N], [Some(0), N, N, N, N]),
        ([N; 5], [N; 5], [N; 5]),
    ] {
        let mut sum = usage(earlier);
        sum.update(&usage(later));
        assert_eq!(sum, usage(expected));
    }
}

#[test]
fn calls_are_added_up_and_saturate() {
    // spec 1.6
    for (one, other, expected) in [
        ([Some(100), N, N, Some(10), N], [Some(150), N, N, Some(20), N], [Some(250), N, N, Some(30), N]),
        ([Some(1), N, Some(0), N, N], [N, Some(2), N, N, N], [Some(1), Some(2), Some(0), N, N]),
        ([MAX, N, N, N, N], [Some(1), N, N, N, N], [MAX, N, N, N, N]),
        ([N; 5], [N; 5], [N; 5]),
    ] {
        let mut sum = usage(one);
        sum.add(&usage(other));
        assert_eq!(sum, usage(expected));
    }
}

#[test]
fn the_providers_own_numbers_are_kept_as_stated() {
    // spec 1.6
    let stated = |input, raw: &str| Usage {
        stated: Stated { input: Some(input), raw: Some(Json::from_text(raw).unwrap()), ..Stated::default() },
        ..Usage::default()
    };
    let mut call = stated(10, r#"{"n": 10}"#);
    call.update(&stated(12, r#"{"n": 12}"#));
    assert_eq!(call, stated(12, r#"{"n": 12}"#), "a later statement of the same call replaces the earlier one");
    call.update(&Usage { output: Some(1), ..Usage::default() });
    assert_eq!(call.stated, stated(12, r#"{"n": 12}"#).stated, "one that says nothing leaves it");

    call.add(&stated(5, r#"{"n": 5}"#));
    assert_eq!(call.stated.input, Some(17));
    assert_eq!(call.stated.raw, None, "there is no statement for a sum");
}

#[test]
fn a_sum_with_an_estimate_is_an_estimate() {
    // spec 1.6
    let estimate = Usage { output: Some(1), estimated: true, ..Usage::default() };
    for combine in [Usage::update, Usage::add] {
        let mut sum = usage([Some(1), N, N, N, N]);
        combine(&mut sum, &estimate);
        assert!(sum.estimated);
        combine(&mut sum, &usage([N; 5]));
        assert!(sum.estimated, "it stays one");
    }
}

#[test]
fn whether_anything_is_known_can_be_asked() {
    assert!(usage([N; 5]).is_empty());
    assert!(!usage([Some(0), N, N, N, N]).is_empty(), "zero is known");
    assert!(!Usage { stated: Stated { total: Some(0), ..Stated::default() }, ..Usage::default() }.is_empty());
}

#[test]
fn money_is_exact_and_saturates() {
    // spec 1.6
    let mega = Money::from_pico(2_000_000); // $2.00 for a million tokens
    for (money, pico, shown) in [
        (Money::default(), 0, "$0.000000000000"),
        (mega.times(1_000_000), 2_000_000_000_000, "$2.000000000000"),
        (mega.times(3).plus(Money::from_pico(1)), 6_000_001, "$0.000006000001"),
        (mega.times(u64::MAX), u64::MAX, "$18446744.073709551615"),
        (Money::from_pico(u64::MAX).plus(mega), u64::MAX, "$18446744.073709551615"),
    ] {
        assert_eq!((money.pico(), money.to_string()), (pico, shown.to_owned()));
    }
    // Ten tenths are one: what floats get wrong.
    let tenth = Money::from_pico(100_000_000_000);
    assert_eq!((0..10).fold(Money::default(), |sum, _| sum.plus(tenth)).to_string(), "$1.000000000000");
}

proptest! {
    #[test]
    fn adding_up_does_not_depend_on_order(mut one in any_usage(), mut other in any_usage()) {
        // spec 1.6
        let first = one.clone();
        one.add(&other);
        other.add(&first);
        prop_assert_eq!(one, other);
    }

    #[test]
    fn a_statement_repeated_changes_nothing(mut call in any_usage(), later in any_usage()) {
        // spec 2.6
        call.update(&later);
        let once = call.clone();
        call.update(&later);
        prop_assert_eq!(call, once);
    }
}

//! spec 1.9, 1.10, 1.11, 1.13: ids, call classes, failures and the stable names of everything.

use std::{collections::HashSet, error::Error, sync::Mutex};

use proptest::prelude::*;
use streamkeeper_contract::{
    CallClass, Channel, ErrorInfo, FailureDetail, FailureKind, FailureReport, FailureSink, FinishReason, Hook, Id,
    InvalidId, Json, Outcome, Text, Verdict, id,
};

use crate::samples;

#[test]
fn an_id_is_1_to_64_characters_and_has_firm_ends() {
    // spec 1.10
    let longest = "a".repeat(64);
    for valid in ["a", "0", "9z", "a.b", "a_b", "a-b", "a..b", "a-_.b", "redact.pii-v2_1", &longest] {
        assert_eq!(Id::new(valid).map(|id| id.to_string()).as_deref(), Ok(valid));
        assert_eq!(valid.parse::<Id>(), Id::new(valid));
    }
    let too_long = "a".repeat(65);
    let invalid = [
        "", ".", "-", "_", "-a", "a-", ".a", "a.", "_a", "a_", "A", "aB", "a b", " a", "a ", "a/b", "a:b", "a\0", "ä",
        "a\u{e4}b", "a\n", "\u{ff41}", &too_long,
    ];
    for invalid in invalid {
        assert_eq!(Id::new(invalid), Err(InvalidId), "{invalid:?}");
        let error = serde_json::from_value::<Id>(invalid.into()).unwrap_err().to_string();
        assert!(error.contains("1 to 64 characters"), "{error}");
    }
    assert_eq!(id!("redact.pii-v2_1"), Id::new("redact.pii-v2_1").unwrap());
}

#[test]
fn a_refused_id_is_not_repeated() {
    // spec 1.10: ids come from configuration, where a secret may stand by mistake.
    assert!(!Id::new("sk-CANARY").unwrap_err().to_string().contains("CANARY"));
}

#[test]
fn a_call_class_is_its_name() {
    // spec 1.9
    assert_eq!(CallClass::default(), CallClass::Synthesize);
    for (name, class) in [
        ("synthesize", CallClass::Synthesize),
        ("reasoning", CallClass::Reasoning),
        ("utility", CallClass::Utility),
        ("converse", CallClass::Converse),
        ("rerank", CallClass::Custom(id!("rerank"))),
        // A class of the user's own with a known name is the known one, so that no registration for it is missed.
        ("utility", CallClass::Custom(id!("utility"))),
    ] {
        assert_eq!(name.parse::<CallClass>(), Ok(class.clone()));
        assert_eq!((class.as_str(), class.to_string()), (name, name.to_owned()));
        assert!(HashSet::from([class]).contains(&name.parse().unwrap()));
    }
    for invalid in ["", "*", "Synthesize", "re rank"] {
        assert_eq!(invalid.parse::<CallClass>(), Err(InvalidId), "{invalid:?}");
    }
}

#[test]
fn a_finish_reason_is_its_name() {
    // spec 1.7, 1.13
    for name in FinishReason::NAMES {
        let reason = FinishReason::from_name(name);
        assert_eq!(reason.as_str(), *name);
        assert!(!matches!(reason, FinishReason::Other(_)), "{name}");
    }
    assert_eq!(FinishReason::from_name("RECITATION"), FinishReason::Other("RECITATION".into()));
    assert_eq!(FinishReason::from_name(""), FinishReason::Other(Text::default()));
}

#[test]
fn every_outcome_has_a_code_and_a_sentence() {
    // spec 1.7, 1.13
    let aborted = |reason: Option<&str>| Outcome::Aborted { reason: reason.map(Text::from), cancel_requested: false };
    for (outcome, code, sentence) in [
        (Outcome::Finished { reason: FinishReason::Stop }, "finished", "finished (stop)"),
        (
            Outcome::Stopped(samples::stop()),
            "stopped",
            "stopped by `refusals` (pattern_matched) at chunk 12 after 340 bytes of text: a refusal",
        ),
        (Outcome::Truncated, "truncated", "truncated: the source ended without an end"),
        (
            Outcome::Failed { error: samples::error() },
            "failed",
            "failed: overloaded_error (`primary`): try again later",
        ),
        (Outcome::Failed { error: ErrorInfo::new("guard_failed") }, "failed", "failed: guard_failed"),
        (aborted(Some("user left")), "aborted", "aborted: user left"),
        (aborted(None), "aborted", "aborted"),
        (
            Outcome::Suspended { interrupts: vec![Json::string("a"), Json::string("b")] },
            "suspended",
            "suspended, waiting for 2 answers",
        ),
        (Outcome::Suspended { interrupts: vec![Json::string("a")] }, "suspended", "suspended, waiting for 1 answer"),
        (Outcome::Dropped, "dropped", "dropped by the consumer"),
    ] {
        assert_eq!((outcome.code(), outcome.to_string().as_str()), (code, sentence));
        assert!(Outcome::CODES.contains(&code));
        assert_eq!(outcome.is_finished(), code == "finished");
    }
    assert_eq!(Outcome::CODES.len(), 7);
}

#[test]
fn what_an_outcome_says_can_be_asked_without_a_match() {
    let finished = Outcome::Finished { reason: FinishReason::Length };
    let stopped = Outcome::Stopped(samples::stop());
    let failed = Outcome::Failed { error: samples::error() };
    for (outcome, reason, stop, error) in [
        (&finished, Some(&FinishReason::Length), None, None),
        (&stopped, None, Some(samples::stop()), None),
        (&failed, None, None, Some(samples::error())),
        (&Outcome::Truncated, None, None, None),
        (&Outcome::Dropped, None, None, None),
    ] {
        assert_eq!(outcome.finish_reason(), reason);
        assert_eq!(outcome.stop(), stop.as_ref());
        assert_eq!(outcome.error(), error.as_ref());
    }
}

#[test]
fn the_default_verdict_lets_everything_pass() {
    // spec 3.1, 3.3
    assert_eq!(Verdict::default(), Verdict::Continue);
    assert_eq!(Verdict::NAMES, ["continue", "amend", "emit", "stop", "buffer", "release"]);
}

#[test]
fn a_failure_report_says_who_where_and_how_and_nothing_else() {
    // spec 1.11: an exhaustive pattern, so that a new field has to be looked at here.
    for hook in Hook::ALL {
        for kind in FailureKind::ALL {
            let report = FailureReport { component: id!("secrets"), hook: *hook, kind: *kind };
            assert_eq!(report.to_string(), format!("`secrets` failed in {hook}: {kind}"));
            let FailureReport { component, hook, kind } = report;
            fn names_only<T: Copy + 'static>(_: T) {}
            names_only(hook);
            names_only(kind);
            assert_eq!(component, id!("secrets"));
        }
    }
    let kinds = ["error", "panic", "timeout", "overflow", "contract", "not_run"];
    assert_eq!(FailureKind::ALL.iter().map(|kind| kind.as_str()).collect::<Vec<_>>(), kinds);
}

#[test]
fn every_name_leads_back() {
    // spec 1.13
    fn check<T: Copy + PartialEq + std::fmt::Debug>(
        all: &[T],
        name: fn(T) -> &'static str,
        from: fn(&str) -> Option<T>,
    ) {
        for one in all {
            assert_eq!(from(name(*one)), Some(*one));
        }
        assert_eq!(from("no_such_name"), None);
        assert_eq!(from(""), None);
    }
    check(Hook::ALL, Hook::as_str, Hook::from_name);
    check(FailureKind::ALL, FailureKind::as_str, FailureKind::from_name);
    check(Channel::ALL, Channel::as_str, Channel::from_name);
}

#[test]
fn a_sink_gets_causes_only_if_it_asks() {
    // spec 1.11
    #[derive(Default)]
    struct Quiet(Mutex<Vec<FailureReport>>);
    impl FailureSink for Quiet {
        fn report(&self, failure: &FailureReport) {
            self.0.lock().unwrap().push(failure.clone());
        }
    }
    let sink = Quiet::default();
    assert!(!sink.wants_detail());
    let report = FailureReport { component: id!("a"), hook: Hook::OnChunk, kind: FailureKind::Error };
    sink.report(&report);
    let cause: Box<dyn Error> = "canary".into();
    sink.detail(&report, &FailureDetail::Error(&*cause));
    assert_eq!(*sink.0.lock().unwrap(), [report]);
}

#[test]
fn json_is_kept_as_it_was_written() {
    for text in [r#"{"b": 1.10, "a": [ ]}"#, "1e400", "-0", "null", r#""\u0041""#] {
        let json = Json::from_text(text).unwrap();
        assert_eq!((json.as_str(), format!("{json:?}")), (text, text.to_owned()));
        assert_eq!(serde_json::to_string(&json).unwrap(), text);
    }
    assert_eq!(Json::from_text(" [1] \n").unwrap().as_str(), "[1]");
    assert_eq!(Json::from_text("{\r\n\t\"a\": \"b\\n\"\n}").unwrap().as_str(), "{  \t\"a\": \"b\\n\" }");
    assert_eq!(Json::new(&[1, 2]).unwrap().as_str(), "[1,2]");
    assert_eq!(Json::string("a\"b").as_str(), r#""a\"b""#);
    assert_eq!(Json::from_text("[1, 2]").unwrap().parse::<Vec<u8>>().unwrap(), [1, 2]);
    assert!(Json::from_text("[1, 2]").unwrap().parse::<String>().is_err());
    for broken in ["", " ", "{", "[1,]", "1 2", "nul", "\"\n\""] {
        assert!(Json::from_text(broken).is_err(), "{broken:?}");
    }
    assert!(Json::new(&std::collections::BTreeMap::from([((1, 2), 3)])).is_err(), "keys have to be strings");
}

proptest! {
    #[test]
    fn an_id_is_valid_if_it_matches_the_pattern(name in "[a-zA-Z0-9._-]{0,70}") {
        // spec 1.10
        let firm = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
        let expected = name.len() <= 64
            && firm(name.chars().next())
            && firm(name.chars().last())
            && !name.contains(|c: char| c.is_ascii_uppercase());
        prop_assert_eq!(Id::new(&name).is_ok(), expected);
    }

    #[test]
    fn text_is_what_was_put_in(text in any::<String>()) {
        let whole = Text::from(text.as_str());
        prop_assert_eq!(&*whole, text.as_str());
        prop_assert_eq!(&Text::from(text.clone()), &whole);
        prop_assert_eq!(format!("{whole:?} {whole}"), format!("{text:?} {text}"));
        prop_assert_eq!(whole.into_string(), text);
    }
}

//! [`Redact`], its sets and its vault.

use streamkeeper_contract::{Channel, Chunk, ErrorInfo, FinishReason, Lane};
use streamkeeper_observers::{OnArguments, Redact, RedactionSet, Replacement, Vault};
use streamkeeper_stream::{
    Observers,
    testing::{Script, assert_no_leak, assert_split_invariant},
};
use streamkeeper_text::Pattern;

fn replacements() -> Vec<Replacement> {
    vec![
        Replacement::Mask,
        #[cfg(feature = "keyed-hash")]
        Replacement::hash("hash-key-1"),
        Replacement::Token(Vault::new()),
    ]
}

/// Joined, so that nobody's scanner takes these for keys.
fn key(parts: &[&str]) -> String {
    parts.concat()
}

/// spec 6.1: what each pattern finds, and what looks like it and is none. `expected` is the name of the one pattern that matches.
#[test]
fn each_pattern_finds_its_own_and_leaves_what_is_near() {
    let random = "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5bC7d";
    let table: Vec<(String, Option<&str>)> = vec![
        (key(&["sk", "-", random]), Some("openai_key")),
        (key(&["sk", "-proj-", random, "_", random]), Some("openai_key")),
        ("sk-estimator-html-doc-link-button".into(), None),
        ("task-aB3dE5fG7hJ9kL1mN3pQ5".into(), None),
        (key(&["sk", "-ant-api03-", random]), Some("anthropic_key")),
        (key(&["sk", "-or-v1-", &"0a1b".repeat(16)]), Some("openrouter_key")),
        (key(&["AI", "za", &random[..35]]), Some("google_key")),
        (key(&["AI", "za", &random[..20]]), None),
        (key(&["AK", "IA", "ABCDEFGHIJKLMNOP"]), Some("aws_access_key")),
        ("AKIABCDEFG".into(), None),
        (key(&["aws_secret_access_key = ", &random[..40]]), Some("aws_secret_key")),
        ("aws_secret_access_key = see the vault".into(), None),
        (key(&["gh", "p_", &random[..36]]), Some("github_token")),
        (key(&["github", "_pat_", random, random]), Some("github_token")),
        ("ghp_short".into(), None),
        (key(&["gl", "pat-", &random[..20]]), Some("gitlab_token")),
        (key(&["xo", "xb-123456789012-", &random[..24]]), Some("slack_token")),
        ("xoxb-only-words-here".into(), None),
        (key(&["https://hooks.slack", ".com/services/T0123/B0123/", &random[..24]]), Some("slack_webhook")),
        (key(&["sk", "_live_", &random[..24]]), Some("stripe_key")),
        ("sk_live_demo".into(), None),
        (key(&["S", "G.", &random[..22], ".", random, "abc"]), Some("sendgrid_key")),
        (key(&["np", "m_", &random[..36]]), Some("npm_token")),
        (key(&["py", "pi-AgEIcHlwaS5vcmc", random, random]), Some("pypi_token")),
        (key(&["h", "f_", &random[..34]]), Some("hugging_face_token")),
        (key(&["gs", "k_", random]), Some("groq_key")),
        (key(&["ya", "29.", random]), Some("google_oauth_token")),
        (key(&["Account", "Key=", &"aB3d".repeat(21), "aB=="]), Some("azure_key")),
        (key(&["ey", "JhbGciOiJIUzI1NiJ9.", "ey", "JzdWIiOiIxMjM0NTY3ODkwIn0.", random]), Some("jwt")),
        ("eyJhbGciOiJIUzI1NiJ9 alone".into(), None),
        (key(&["Authorization: Bearer ", random]), Some("bearer_token")),
        ("the bearer of this letter".into(), None),
        ("postgres://app:hunter2@db.example.org/x".into(), Some("url_credentials")),
        ("https://example.org:8080/a@b".into(), None),
        (key(&["-----BEGIN RSA ", "PRIVATE KEY-----\nMIIE-x\n-----END RSA ", "PRIVATE KEY-----"]), Some("private_key")),
        ("-----BEGIN PUBLIC KEY-----\nMIIE\n-----END PUBLIC KEY-----".into(), None),
        ("ada@example.org".into(), Some("email")),
        ("first.last+tag@mail.example.co.uk".into(), Some("email")),
        ("ada@localhost".into(), None),
        ("@example.org".into(), None),
        ("DE89 3704 0044 0532 0130 00".into(), Some("iban")),
        ("BE68 5390 0754 7034".into(), Some("iban")),
        ("GB82WEST12345698765432".into(), Some("iban")),
        ("DE88 3704 0044 0532 0130 00".into(), None),
        ("4111 1111 1111 1111".into(), Some("card")),
        ("4111111111111111".into(), Some("card")),
        ("3782-822463-10005".into(), Some("card")),
        ("4111 1111 1111 1112".into(), None),
        ("1234567890123456".into(), None),
        ("078-05-1120".into(), Some("ssn")),
        ("000-12-3456".into(), None),
        ("2024-05-1120".into(), None),
        ("+49 30 901820".into(), Some("phone")),
        ("+1 (415) 555-2671".into(), Some("phone")),
        ("(415) 555-2671".into(), Some("phone")),
        ("415-555-2671".into(), Some("phone")),
        ("+12".into(), None),
        ("2024-05-17".into(), None),
        ("192.168.17.4".into(), Some("ip_address")),
        ("127.0.0.1".into(), None),
        ("300.1.1.1".into(), None),
        ("2001:db8::8a2e:370:7334".into(), Some("ip_address")),
        ("12:30:45".into(), None),
        ("std::fmt".into(), None),
    ];
    let redactor = Redact::default().redactor();
    for (text, expected) in &table {
        let redacted = redactor.redact(&format!("so ({text}) it is"));
        let found: Vec<&str> = redacted.found.iter().map(|name| name.as_str()).collect();
        assert_eq!(found, expected.iter().copied().collect::<Vec<_>>(), "{text}");
        if expected.is_some() {
            assert!(redacted.text.starts_with("so (") && redacted.text.ends_with(" it is"), "{}", redacted.text);
            assert!(!redacted.text.contains(&text[text.len() - 8..]), "{}", redacted.text);
        }
    }
    for pattern in RedactionSet::ALL.iter().flat_map(|set| set.patterns()) {
        assert!(
            table.iter().any(|(_, expected)| *expected == Some(pattern.name())),
            "`{}` has no true case",
            pattern.name()
        );
    }
}

/// spec 6.1: what stands beside a match does not hide it.
#[test]
fn a_match_is_found_among_what_looks_like_more_of_it() {
    let redactor = Redact::pii().redactor();
    for (text, expected) in [
        ("4111 1111 1111 1111 20 items", "[CARD] 20 items"),
        ("BE68 5390 0754 7034 EUR", "[IBAN]"),
        ("2001:db8::1: up", "[IP_ADDRESS] up"),
        ("ada@example.org.", "[EMAIL]."),
        ("ada@b.org1", "[EMAIL]1"),
        ("<ada@example.org>,bob@example.org", "<[EMAIL]>,[EMAIL]"),
    ] {
        assert_eq!(redactor.redact(text).text, expected);
    }
}

/// spec 6.1, 3.10: all built-in patterns over mixed text, for many splits and orders.
#[test]
fn the_sets_find_the_same_for_every_split() {
    let text = key(&[
        "Mail ada@example.org or call +1 (415) 555-2671; card 4111 1111 1111 1111, sk",
        "-proj-aB3dE5fG7hJ9kL1mN3pQ5, from 192.168.17.4.",
    ]);
    let observers = Observers::from(Redact::default());
    assert_split_invariant(&observers, Script::new().text(text.clone()).finish());
    let ran = Script::new().text(text.clone()).finish().run(&observers);
    assert_eq!(ran.answer(), Redact::default().redactor().redact(&text).text);
    assert_eq!(ran.answer(), "Mail [EMAIL] or call [PHONE]; card [CARD], [OPENAI_KEY], from [IP_ADDRESS].");
}

/// spec 6.1, 1.3: a canary leaves by no text: deltas, snapshots, arguments, results, error messages.
#[test]
fn a_secret_leaves_by_no_text() {
    const CANARY: &str = "canary.7f3k9@example.org";
    let arguments = Lane::TEXT.arguments(1);
    let chunks = [
        Chunk::delta(Lane::TEXT, format!("my {CANARY}")),
        Chunk::snapshot(Lane::TEXT, format!("my {CANARY}")),
        Chunk::snapshot(Lane::new(Channel::Reasoning), format!("{CANARY} thinks")),
        Chunk::delta(Lane::new(Channel::Refusal), format!("{CANARY} no")),
        Chunk::tool_call_start(arguments, "t1", "post"),
        Chunk::delta(arguments, format!("{{\"to\":\"{CANARY}\",\"{CANARY}\":1}}")),
        Chunk::delta(Lane::new(Channel::ToolResult), format!("{{\"a\":\"{CANARY}\"}}")),
        Chunk::error(ErrorInfo::new("bad").with_message(format!("no {CANARY}"))),
    ];
    for arguments in [OnArguments::Mask, OnArguments::Deny] {
        let observers = Observers::from(Redact::pii().arguments(arguments));
        for chunk in chunks.iter().filter(|chunk| chunk.text().is_some()) {
            assert_no_leak(CANARY, &observers, [chunk.clone()]);
        }
        assert_no_leak(CANARY, &observers, chunks.clone());
    }
    for replacement in replacements() {
        let observers = Observers::from(Redact::pii().replacement(replacement).arguments(OnArguments::Mask));
        assert_no_leak(CANARY, &observers, chunks.clone());
    }
}

/// spec 6.1a: JSON stays JSON where a number is matched, whole or in part.
#[test]
fn redacted_json_is_json() {
    let pattern = Pattern::regex("sevens", "7{3}").unwrap();
    let redactor = Redact::pii().pattern(pattern).unwrap().redactor();
    for (json, expected) in [
        (r#"{"n":1777}"#, r#"{"n":"[SEVENS]"}"#),
        (r#"{"n":-17770.5e3,"m":[777,12]}"#, r#"{"n":"[SEVENS]","m":["[SEVENS]",12]}"#),
        (r#"[1777077720,"a 777 b"]"#, r#"["[SEVENS]","a [SEVENS] b"]"#),
        (r#"{"card":4111111111111111,"x":null}"#, r#"{"card":"[CARD]","x":null}"#),
        (r#"{"ada@example.org":"\u0061da@example.org"}"#, r#"{"[EMAIL]":"[EMAIL]"}"#),
    ] {
        let redacted = redactor.redact_json(json).text;
        assert_eq!(redacted, expected);
        serde_json::from_str::<serde_json::Value>(&redacted).unwrap();
    }
}

/// spec 6.1: a text that is too long to be known whole gets no token that would restore a part of it.
#[test]
fn a_match_over_the_limit_gets_a_label() {
    let vault = Vault::new();
    let long = Pattern::regex("long", "BEGIN x+").unwrap();
    let redact = Redact::new().pattern(long).unwrap().replacement(Replacement::Token(vault.clone()));
    let script = Script::new().text(format!("a BEGIN {} b", "x".repeat(5000))).text(", BEGIN xx c").finish();
    let ran = script.run(&Observers::from(redact));
    assert_eq!(ran.answer(), "a [LONG] b, [LONG_1] c");
    assert_eq!(vault.restore("[LONG_1]"), "BEGIN xx");
}

/// spec 6.1: what is allowed stays, and nothing else.
#[test]
fn allowed_texts_stay() {
    let observers = Observers::from(Redact::pii().allow(["help@example.org"]));
    let script = Script::new().text("ask help@example.org, not ada@example.org or xhelp@example.org").finish();
    assert_eq!(script.run(&observers).answer(), "ask help@example.org, not [EMAIL] or [EMAIL]");
    assert_split_invariant(&observers, script);
}

/// spec 4.17: what goes to a model has tokens; answer and arguments get the texts back, JSON stays JSON.
#[test]
fn tokens_go_to_the_model_and_texts_come_back() {
    let vault = Vault::new();
    let redact = Redact::pii().replacement(Replacement::Token(vault.clone()));
    let prompt = redact.redactor().redact("ada@example.org and bob@example.org and ada@example.org");
    assert_eq!(prompt.text, "[EMAIL_1] and [EMAIL_2] and [EMAIL_1]");
    assert_eq!(vault.restore("To [EMAIL_2], [EMAIL_3]"), "To bob@example.org, [EMAIL_3]");
    assert_eq!(vault.restore_json(r#"{"to":["[EMAIL_1]"]}"#), r#"{"to":["ada@example.org"]}"#);

    let observers = Observers::from(vault.restore_stream());
    let arguments = Lane::TEXT.arguments(1);
    let chunks = [
        Chunk::delta(Lane::TEXT, "I write to [EMAIL_1]."),
        Chunk::tool_call_start(arguments, "t1", "post"),
        Chunk::delta(arguments, r#"{"to":"[EMAIL_2]"}"#),
        Chunk::finish(0, FinishReason::ToolCalls),
    ];
    let ran = Script::from(chunks.clone()).run(&observers);
    assert_eq!(ran.answer(), "I write to ada@example.org.");
    assert_eq!(ran.text(arguments), r#"{"to":"bob@example.org"}"#);
    assert_split_invariant(&observers, chunks);
}

/// spec 8.1: a full vault gives labels, and keeps what it knows.
#[test]
fn a_full_vault_gives_labels() {
    let vault = Vault::with_capacity(1);
    let redactor = Redact::pii().replacement(Replacement::Token(vault.clone())).redactor();
    assert_eq!(redactor.redact("a@x.org b@x.org a@x.org").text, "[EMAIL_1] [EMAIL] [EMAIL_1]");
    assert_eq!(vault.len(), 1);
}

/// spec 1.11: neither texts nor keys are in debug output.
#[test]
fn debug_output_has_no_secrets() {
    let vault = Vault::new();
    let redact = Redact::pii().allow(["help@example.org"]).replacement(Replacement::Token(vault.clone()));
    redact.redactor().redact("ada@example.org");
    let shown =
        format!("{vault:?} {redact:?} {:?} {:?} {:?}", replacements(), redact.redactor(), vault.restore_stream());
    for secret in ["ada@example.org", "hash-key-1"] {
        assert!(!shown.contains(secret), "{shown}");
    }
}

/// spec 6.1: a pattern that cannot be searched is refused when it is added.
#[test]
fn a_pattern_that_does_not_compile_is_refused() {
    let huge = Pattern::regex("huge", r"(?u)(?:\w{1,200}\s\d{1,200}){1,100}").expect("it parses");
    assert!(Redact::new().pattern(huge).is_err());
}

/// spec 8.1, 6.1: a private key without an end is swallowed to the last byte, and nothing of it is kept.
#[test]
fn a_private_key_that_never_ends_is_swallowed() {
    let mut stack = Observers::from(Redact::secrets()).stack(&Default::default());
    stack.push(Chunk::delta(Lane::TEXT, key(&["x -----BEGIN ", "PRIVATE KEY-----\n"])));
    let mut out = String::new();
    for _ in 0..2_000 {
        stack.push(Chunk::delta(Lane::TEXT, "MIIEvQIBADANBg"));
        out.extend(std::iter::from_fn(|| stack.pop()).filter_map(|chunk| chunk.text().map(str::to_owned)));
    }
    stack.push(Chunk::finish(0, FinishReason::Stop));
    stack.finish();
    out.extend(std::iter::from_fn(|| stack.pop()).filter_map(|chunk| chunk.text().map(str::to_owned)));
    assert_eq!(out, "x [PRIVATE_KEY]");
}

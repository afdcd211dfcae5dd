//! Observers from a file (spec 6.8).

use std::{collections::BTreeSet, path::Path, time::Duration};

use streamkeeper_contract::CallClass;
use streamkeeper_policy::{MAX_OBSERVERS, MAX_POLICY_BYTES, Policy, PolicyError, PolicyHandle, PolicyRegistry};
use streamkeeper_stream::{
    OnFailure, When,
    testing::{Script, assert_no_leak, assert_split_invariant},
};

fn root(path: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

#[track_caller]
fn refused(result: Result<Policy, PolicyError>) -> String {
    result.map(|policy| policy.registered().len()).unwrap_err().to_string()
}

#[test]
fn a_mistake_says_where_it_is_and_what_may_be_meant() {
    let halt = |rest: &str| format!("version = 1\n[[observers]]\nkind = \"halt-on-pattern\"\n{rest}");
    for (text, expected) in [
        (String::new(), "policy:1:1: missing field `version`"),
        ("version = 2".to_owned(), "policy:1:11: version 2 of policies is not known here; this is version 1"),
        ("version = \"1\"".to_owned(), "policy:1:11: invalid type: string \"1\", expected u64"),
        (
            "version = 1\nobserver = []".to_owned(),
            "policy:2:1: unknown key `observer`, expected one of `version`, `id`, `observers`; did you mean `observers`?",
        ),
        ("version = 1\nid = \"No\"".to_owned(), "policy:2:6: "),
        ("version = 1\n[[observers]]\nid = 'a'".to_owned(), "policy:2:1: missing field `kind`"),
        (
            "version = 1\n[[observers]]\nkind = 'metrix'".to_owned(),
            "policy:3:8: there is no kind of observer `metrix`; did you mean `metrics`?",
        ),
        (
            halt("patern = 'x'"),
            "policy:4:1: unknown key `patern`, expected one of `pattern`, `channels`, `window`, `quote_match`, `kind`, `id`, `when`, \
             `on_failure`; did you mean `pattern`?",
        ),
        (halt("whne = '*'"), "did you mean `when`?"),
        (halt("channels = ['text', 'reasonning']"), "policy:4:21: unknown value `reasonning`, expected one of `text`,"),
        (halt("channels = ['text', 'reasonning']"), "; did you mean `reasoning`?"),
        (halt("channels = []"), "policy:4:1: `halt-on-pattern`: `channels`: without a channel it would judge nothing"),
        (
            "version = 1\n[[observers]]\nkind = 'length-ceiling'".to_owned(),
            "policy:2:1: `length-ceiling`: it needs `bytes` or `chars`",
        ),
        (
            "version = 1\n[[observers]]\nkind = 'cost-ceiling'\nmax = '1,5'\ninput = '1'\noutput = '1'".to_owned(),
            "policy:4:7: expected US dollars as a text such as",
        ),
        (
            "version = 1\n[[observers]]\nkind = 'repetition'\ncopies = 65".to_owned(),
            "policy:4:1: `repetition`: `copies`: it may be at most 64",
        ),
        (halt("pattern = '(a'"), "policy:4:1: `halt-on-pattern`: `pattern`: the pattern is not valid"),
        (halt("pattern = 'a*'"), "policy:4:1: `halt-on-pattern`: `pattern`: the pattern matches empty text"),
        (halt("window = -1"), "policy:4:10: invalid value: integer `-1`, expected u32"),
        (halt("window = 99999999999999999999"), "policy:4:10: invalid type: string"),
        (
            halt("on_failure = 'pass-through'"),
            "policy:4:14: unknown value `pass-through`, expected one of `fail`, `pass_through`,",
        ),
        (halt("on_failure = 'pass-through'"), "did you mean `pass_through`?"),
        (halt("when = 'Not A Class'"), "policy:4:8: "),
        (halt("id = 'ü'"), "policy:4:6: "),
        (
            halt("[[observers]]\nkind = \"halt-on-pattern\"\nid = \"halt-on-pattern\""),
            "policy:6:6: an observer `halt-on-pattern` is registered already; give it an `id` of its own",
        ),
        ("version = 1\nversion = 1".to_owned(), "policy:2:1: duplicate key"),
        ("version = 1\nid = ü".to_owned(), "policy:2:6: "),
        (
            "version = 1\n[[observers]]\nkind = 'metrics'\nevery = 0".to_owned(),
            "policy:4:1: `metrics`: `every`: it has to be",
        ),
    ] {
        let said = refused(Policy::from_toml(&text));
        assert!(said.contains(expected), "{text}\n  said:     {said}\n  expected: {expected}");
    }
}

#[test]
fn json_has_the_same_shape_and_the_same_errors() {
    for (text, expected) in [
        ("{}", "policy:1:1: missing field `version`"),
        ("{\"version\": 1,\n \"observer\": []}", "policy:2:2: unknown key `observer`"),
        (
            "{\n \"version\": 1,\n \"observers\": [\n  {\"kind\": \"metrics\", \"evry\": 2}]}",
            "policy:4:23: unknown key `evry`, expected one of `every`",
        ),
        (
            "{\"version\": 1, \"observers\": [{\"kind\": \"metrics\",\n \"every\": \"2\"}]}",
            "policy:2:11: invalid type: string \"2\"",
        ),
        ("{\"version\": 1,\n\"version\": 1}", "policy:2:"),
        ("{\"version\": 1,\n \"observers\": [,]}", "policy:2:16: expected value"),
        ("[]", "policy:1:1: a policy is an object"),
        ("", "policy:1:1: EOF while parsing a value"),
    ] {
        let said = refused(Policy::from_json(text));
        assert!(said.starts_with(expected), "{text}\n  said:     {said}\n  expected: {expected}");
    }
}

/// spec 8.1
#[test]
fn a_policy_has_limits() {
    let large = format!("version = 1\n#{}", "x".repeat(MAX_POLICY_BYTES));
    assert!(matches!(Policy::from_toml(&large), Err(PolicyError::TooLarge { .. })));
    let many = |n: usize| {
        let observers = (0..n).map(|i| format!("[[observers]]\nkind = 'metrics'\nid = 'm{i}'\n"));
        format!("version = 1\n{}", observers.collect::<String>())
    };
    assert_eq!(Policy::from_toml(&many(MAX_OBSERVERS)).unwrap().registered().len(), MAX_OBSERVERS);
    assert!(refused(Policy::from_toml(&many(MAX_OBSERVERS + 1))).ends_with("a policy may have 256 observers"));
    let deep = format!("{{\"version\": {}1{}}}", "[".repeat(1000), "]".repeat(1000));
    refused(Policy::from_json(&deep));
    refused(Policy::from_toml(&format!("version = {}1{}", "[".repeat(1000), "]".repeat(1000))));
}

#[test]
fn the_example_registers_what_it_says_in_its_order() {
    let policy = Policy::load(root("examples/streamkeeper.toml")).unwrap();
    let shown: Vec<_> = policy.registered().iter().map(|one| format!("{} {}", one.id, one.role.as_str())).collect();
    assert_eq!(shown[..4], ["normalize-dialects transform", "redact guard", "refusals guard", "internal guard"]);
    assert_eq!(shown.last().unwrap(), "metrics watcher");
    let kinds: BTreeSet<_> = policy.registered().iter().map(|one| one.kind.as_str()).collect();
    assert_eq!(kinds, PolicyRegistry::bundled().kinds().collect(), "the example has every kind");
    let [_, _, refusals, internal, ..] = policy.registered() else { panic!("three and more") };
    assert_eq!((&refusals.when, &refusals.on_failure), (&When::Class(CallClass::Synthesize), &OnFailure::Fail));
    assert_eq!((&internal.when, &internal.on_failure), (&When::Any, &OnFailure::Placeholder("[withheld]".into())));
    let script = Script::new().text("<think>It is</think> for internal use only!").finish();
    assert_eq!(script.run(policy.observers()).stop().unwrap().observer.as_str(), "internal");
}

/// spec 6.1: redaction does what its options say.
#[test]
fn redaction_of_a_policy_redacts() {
    let text = "ada@example.org, TICKET-1, help@example.org";
    let ticket = "patterns = [{ name = 'ticket', regex = 'TICKET-[0-9]' }]";
    for (options, expected) in [
        ("", "[EMAIL], TICKET-1, [EMAIL]"),
        ("sets = ['secrets']", text),
        (ticket, "ada@example.org, [TICKET], help@example.org"),
        ("allow = ['help@example.org']\nreplacement = 'mask'", "***, TICKET-1, help@example.org"),
        ("replacement = 'token'", "[EMAIL_1], TICKET-1, [EMAIL_2]"),
    ] {
        let policy = Policy::from_toml(&format!("version = 1\n[[observers]]\nkind = 'redact'\n{options}")).unwrap();
        assert_eq!(Script::new().text(text).finish().run(policy.observers()).answer(), expected, "{options}");
    }
    for (options, expected) in [
        ("sets = []", "it would look for nothing"),
        ("patterns = [{ name = 'x', regex = '(a' }]", "unclosed group"),
        ("replacement = 'hash'", "`hash` needs the environment variable"),
        ("replacement = 'hash'\nkey_env = 'STREAMKEEPER_NO_SUCH_VARIABLE'", "is not set"),
        ("key_env = 'PATH'", "only `hash` has a key"),
    ] {
        let why = refused(Policy::from_toml(&format!("version = 1\n[[observers]]\nkind = 'redact'\n{options}")));
        assert!(why.contains(expected), "{why}");
    }
}

/// spec 6.2: each kind does what its options say.
#[test]
fn every_guard_of_a_policy_guards() {
    let words = "one two three four five six seven ";
    let said = |text: &str| Script::new().text(text).finish();
    for (options, script, code) in [
        ("kind = 'token-ceiling'\nmax = 5", said(words), "token_ceiling"),
        ("kind = 'length-ceiling'\nbytes = 5", said(words), "length_ceiling"),
        ("kind = 'length-ceiling'\nchars = 5", said(words), "length_ceiling"),
        ("kind = 'cost-ceiling'\nmax = '0.000001'\ninput = '1'\noutput = '1'", said(words), "cost_ceiling"),
        (
            "kind = 'stall'\ngap_ms = 10",
            Script::new().text("a").silence(Duration::from_millis(20)).text("b"),
            "stalled",
        ),
        ("kind = 'repetition'\nmin_bytes = 64\ncopies = 2", said(&words.repeat(20)), "repetition"),
        ("kind = 'prompt-leak'\ncanaries = ['three four']", said(words), "prompt_leak"),
        ("kind = 'halt-on-pattern'\npattern = 'three'", said(words), "pattern_matched"),
    ] {
        let policy = Policy::from_toml(&format!("version = 1\n[[observers]]\n{options}")).unwrap();
        let ran = script.run(policy.observers());
        assert_eq!(ran.stop().map(|stop| stop.code.as_str()), Some(code), "{options}");
        assert!(policy.registered()[0].kind.starts_with(options.split('\'').nth(1).unwrap()));
        if code != "pattern_matched" {
            let policy =
                Policy::from_toml(&format!("version = 1\n[[observers]]\n{options}\nreport_only = true")).unwrap();
            let ran = script.run(policy.observers());
            assert!(ran.stop().is_none() && ran.events()[0].channel.as_str() == "halts", "{options}");
        }
    }
}

#[test]
fn a_canary_of_the_environment_is_shown_nowhere() {
    // `cargo test` sets this one for every test.
    let canary = std::env::var("CARGO_MANIFEST_DIR").unwrap();
    let text = "version = 1\n[[observers]]\nkind = 'prompt-leak'\ncanaries_env = ['CARGO_MANIFEST_DIR']";
    let policy = Policy::from_toml(text).unwrap();
    assert_no_leak(&canary, policy.observers(), Script::new().text(canary.as_str()).finish());
    assert!(!format!("{policy:?} {}", policy.hash()).contains(&canary));
    let said = refused(Policy::from_toml(&text.replace("CARGO_MANIFEST_DIR", "NO_SUCH_VARIABLE")));
    assert!(said.ends_with("the environment variable `NO_SUCH_VARIABLE` is not set"), "{said}");
}

/// What a policy makes is like what code makes.
#[test]
fn observers_of_a_policy_keep_the_rules_of_all_observers() {
    let text = "version = 1\n[[observers]]\nkind = 'normalize-dialects'\n[[observers]]\nkind = 'halt-on-pattern'\npattern = 'x{3}'";
    let policy = Policy::from_toml(text).unwrap();
    assert_split_invariant(
        policy.observers(),
        Script::new().text("<think>ü</think><tool name=\"f\">{}</tool> xx").finish(),
    );
    assert_split_invariant(policy.observers(), Script::new().text("<think>ü</think> xxx and more").finish());
}

/// spec 3.14
#[test]
fn the_hash_is_that_of_what_a_policy_says() {
    let hash = |text: &str| Policy::from_toml(text).unwrap().hash().to_owned();
    let one = "version = 1\n[[observers]]\nkind = 'metrics'\nevery = 10\n";
    let same = "# other words\nversion=1\n\n[[observers]]\nevery=0xA\nkind = \"\"\"metrics\"\"\"\n";
    assert_eq!(hash(one), hash(same));
    // printf '{"observers":[{"every":10,"kind":"metrics"}],"version":1}' | sha256sum
    assert_eq!(hash(one), "sha256:c8fcd76a6b3727ca4f56ebc80480485023d326d567da1adb98952110ba76f6c4");
    for other in [one.replace("10", "11"), one.replace("version = 1", "version = 1\nid = 'p'")] {
        assert_ne!(hash(one), hash(&other), "{other}");
    }
    let policy = Policy::from_toml("version = 1\nid = 'p'").unwrap();
    let ran = Script::new().finish().run(policy.observers());
    let header = ran.recording().recording().header();
    assert_eq!((header.policy_id.as_ref(), header.policy_hash.as_deref()), (policy.id(), Some(policy.hash())));
}

#[test]
fn the_published_schema_is_current() {
    let published = std::fs::read_to_string(root("docs/policy.schema.json")).unwrap();
    let current = format!("{:#}\n", PolicyRegistry::bundled().schema());
    assert!(published == current, "run `cargo xtask schema` to write docs/policy.schema.json anew");
}

/// Every option is described, since the schema is what an editor shows.
#[test]
fn the_schema_describes_every_option() {
    let schema = PolicyRegistry::bundled().schema();
    let kinds = schema["properties"]["observers"]["items"]["oneOf"].as_array().unwrap();
    assert_eq!(kinds.len(), PolicyRegistry::bundled().kinds().count());
    for kind in kinds {
        assert_eq!(kind["additionalProperties"], false, "{}", kind["title"]);
        for (name, option) in kind["properties"].as_object().unwrap() {
            assert!(option["description"].is_string(), "{} {name}", kind["title"]);
        }
    }
}

#[test]
fn a_running_invocation_keeps_its_observers() {
    let path = std::env::temp_dir().join(format!("streamkeeper-policy-test-{}.toml", std::process::id()));
    let halt = |pattern: &str| format!("version = 1\n[[observers]]\nkind = 'halt-on-pattern'\npattern = '{pattern}'\n");
    std::fs::write(&path, halt("one")).unwrap();
    let handle = PolicyHandle::load(&path).unwrap();
    let mut running = handle.observers().stack(&Default::default());
    std::fs::write(&path, halt("two")).unwrap();
    handle.reload().unwrap();
    running.push(streamkeeper_contract::Chunk::delta(streamkeeper_contract::Lane::TEXT, "two"));
    assert!(!running.is_ended());
    running.push(streamkeeper_contract::Chunk::delta(streamkeeper_contract::Lane::TEXT, " one"));
    assert!(running.is_ended());
    assert!(Script::new().text("two").run(&handle.observers()).stop().is_some());
    std::fs::remove_file(&path).unwrap();
    let said = handle.reload().unwrap_err().to_string();
    assert!(said.starts_with("cannot read "), "{said}");
    assert!(Script::new().text("two").run(&handle.observers()).stop().is_some(), "the old one holds");
}

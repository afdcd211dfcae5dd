//! [`NormalizeDialects`] in a stack.

mod common;

use std::sync::Arc;

use proptest::prelude::*;
use streamkeeper_contract::{Body, Channel, Chunk, FinishReason, Lane, Outcome};
use streamkeeper_observers::{Dialect, Metrics, NormalizeDialects, SPECIAL_TOKENS};
use streamkeeper_stream::{EventQueue, ObserverFactoryContext, Observers};

use self::common::split;

/// What was delivered, neighbours of one kind joined: `text`, `reasoning`, `call name args`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Said(Vec<(String, String)>);

impl Said {
    fn push(&mut self, kind: &str, text: &str) {
        match self.0.last_mut() {
            Some((last, joined)) if last == kind && !kind.starts_with("call") => joined.push_str(text),
            _ if text.is_empty() => {}
            _ => self.0.push((kind.to_owned(), text.to_owned())),
        }
    }

    fn of(parts: &[(&str, &str)]) -> Self {
        let mut said = Self(Vec::new());
        parts.iter().for_each(|(kind, text)| said.push(kind, text));
        said
    }
}

fn delivered(normalize: NormalizeDialects, tools: &[&str], chunks: impl IntoIterator<Item = Chunk>) -> Said {
    let mut ctx = ObserverFactoryContext::default();
    ctx.tool_names = tools.iter().map(|&tool| tool.into()).collect();
    let mut stack = Observers::from(normalize).stack(&ctx);
    let mut said = Said(Vec::new());
    let mut out = Vec::new();
    for chunk in chunks {
        stack.push(chunk);
        out.extend(std::iter::from_fn(|| stack.pop()));
    }
    stack.finish();
    out.extend(std::iter::from_fn(|| stack.pop()));
    for chunk in &out {
        match chunk.body() {
            Body::Delta { lane, text } => said.push(lane.channel.as_str(), text),
            Body::ToolCall(call) => said.push(&format!("call {}", call.name), &call.arguments),
            Body::Snapshot(snapshot) => said.push("snapshot", &snapshot.text),
            _ => {}
        }
    }
    said
}

fn pieces<'t>(pieces: impl IntoIterator<Item = &'t str>) -> Vec<Chunk> {
    let finish = Chunk::finish(0, FinishReason::Stop);
    pieces.into_iter().map(|piece| Chunk::delta(Lane::TEXT, piece)).chain([finish]).collect()
}

fn said(text: &str) -> Said {
    delivered(NormalizeDialects::new(), &[], pieces([text]))
}

/// spec 6.3: each dialect, with text around it kept in order.
#[test]
fn every_dialect_becomes_one_shape() {
    let call = |arguments| [("text", "a "), ("call search", arguments), ("text", " b")];
    for (text, arguments) in [
        (r#"a <tool name="search">{"q":"x"}</tool> b"#, r#"{"q":"x"}"#),
        (r#"a <tool name='search'>{"q":"x"}</tool> b"#, r#"{"q":"x"}"#),
        ("a <tool  name = \"search\" >\n{\"q\": \"x\"}\n</tool> b", r#"{"q": "x"}"#),
        (r#"a <tool name="search"></tool> b"#, "{}"),
        (r#"a <tool name="search">{}</tool> b"#, "{}"),
        (r#"a {0:"search",1:{"q":"x"}} b"#, r#"{"q":"x"}"#),
        (r#"a { 0: 'search', 1: { "q": "x" } } b"#, r#"{ "q": "x" }"#),
        (r#"a {"0":"search","1":{"q":"x"}} b"#, r#"{"q":"x"}"#),
        (r#"a <tool_call>{"name":"search","arguments":{"q":"x"}}</tool_call> b"#, r#"{"q":"x"}"#),
        ("a <tool_call>\n{\"arguments\": {\"q\":\"x\"}, \"name\": \"search\"}\n</tool_call> b", r#"{"q":"x"}"#),
        (r#"a <tool_call>{"name":"search","arguments":"{\"q\":\"x\"}"}</tool_call> b"#, r#"{"q":"x"}"#),
        (r#"a <tool_call>{"name":"search"}</tool_call> b"#, "{}"),
        (
            r#"a <tool_call>{"type":"function","function":{"name":"search","parameters":{"q":"x"}}}</tool_call> b"#,
            r#"{"q":"x"}"#,
        ),
    ] {
        assert_eq!(said(text), Said::of(&call(arguments)), "{text}");
    }
    for label in ["", "json", "JSON", "tool_call", "tool_use "] {
        let text = format!("a \n```{label}\n{{\"tool\":\"search\",\"args\":{{\"q\":[1]}}}}\n```\nb");
        assert_eq!(
            said(&text),
            Said::of(&[("text", "a \n"), ("call search", r#"{"q":[1]}"#), ("text", "\nb")]),
            "{label}"
        );
    }
    assert_eq!(
        said("<think>why?\n</think>\n\nBecause."),
        Said::of(&[("reasoning", "why?\n"), ("text", "\n\nBecause.")])
    );
    for token in SPECIAL_TOKENS {
        assert_eq!(said(&format!("a {token} b")), Said::of(&[("text", "a  b")]), "{token}");
    }
}

/// spec 6.3: braces and tags inside of strings, objects in objects.
#[test]
fn a_call_ends_at_its_own_end() {
    let arguments = r#"{"a":{"b":[{"c":"}</tool>{0:\"x\""}]},"d":"<think><|im_end|>```"}"#;
    for text in [
        format!(r#"<tool name="f">{arguments}</tool>"#),
        format!(r#"{{0:"f",1:{arguments}}}"#),
        format!(r#"<tool_call>{{"name":"f","arguments":{arguments}}}</tool_call>"#),
        format!("```json\n{{\"name\":\"f\",\"arguments\":{arguments}}}```"),
    ] {
        assert_eq!(said(&text), Said::of(&[("call f", arguments)]), "{text}");
    }
}

/// spec 6.3: what is not surely one of them stays as it came.
#[test]
fn what_does_not_count_is_text() {
    for text in [
        "a < b, a <b>c</b>, {1: 2}, `x`, ```\nlet a = {};\n```",
        r#"<tool name="">{}</tool>"#,
        r#"<tool name="f">{"a":1,}</tool>"#,
        r#"<tool name="f">{a:1}</tool>"#,
        r#"<tool name="f">[1]</tool>"#,
        r#"<tool name="f">{} and</tool>"#,
        r#"<tool name="f">{}</tol>"#,
        r#"<tool name="f">{"a":01}</tool>"#,
        r#"<tool names="f">{}</tool>"#,
        r#"<toolname="f">{}</tool>"#,
        r#"{0:"f",2:{}}"#,
        r#"{0:"f",1:{},2:{}}"#,
        r#"{0:"f"}"#,
        r#"{"0":f}"#,
        "<tool_call>{\"name\":\"f\",\"arguments\":[]}</tool_call>",
        "<tool_call>{\"arguments\":{}}</tool_call>",
        "<tool_call>{\"name\":\"f\",\"name\":\"g\"}</tool_call>",
        "<tool_call>f</tool_call>",
        "```json\n{\"name\":\"Maya\",\"age\":3}\n```",
        "```json\n{\"name\":\"Maya\"}\n```",
        "```json\n{\"title\":\"x\"}\n```",
        "```rust\n{\"name\":\"f\",\"arguments\":{}}\n```",
        "say ```json\n{\"name\":\"f\",\"arguments\":{}}\n```",
        "````json\n{\"name\":\"f\",\"arguments\":{}}\n````",
        "and </think> then",
        "<|not_a_token|> <im_end> |im_end|",
        "<s>struck</s>",
    ] {
        assert_eq!(said(text), Said::of(&[("text", text)]), "{text}");
    }
    let long = format!(r#"<tool name="{}">{{}}</tool>"#, "f".repeat(129));
    assert_eq!(said(&long), Said::of(&[("text", &long)]));
}

/// spec 6.3: a beginning inside of something that turned out to be nothing is found.
#[test]
fn a_false_beginning_hides_nothing() {
    for (before, after) in [
        ("<tool name=\"x\"> oops ", ""),
        ("<", ""),
        ("<tool ", ""),
        ("{0:\"x\",1:{\"a\":", "}}"),
        ("<tool_call>{\"name\": ", ""),
        ("```json\n{\"name\":", "\n```"),
        ("<thin", ""),
        ("<|im_", ""),
    ] {
        let text = format!("{before}<tool name=\"f\">{{}}</tool>{after}");
        assert_eq!(said(&text), Said::of(&[("text", before), ("call f", "{}"), ("text", after)]), "{before}");
    }
}

/// spec 6.3: unterminated calls are text, an unterminated thought is a thought.
#[test]
fn what_is_never_closed_is_defined() {
    for text in [
        "see <thi",
        "if n <",
        "<tool name=\"f\">{\"a\":1}</tool",
        "<tool name=\"f\">{\"a\":{\"b\":\"",
        "{0:\"f\",1:{}",
        "```json\n{\"name\":\"f\",\"arguments\":{}}\n``",
        "<|im_end|",
    ] {
        assert_eq!(said(text), Said::of(&[("text", text)]), "{text}");
    }
    assert_eq!(said("a<think>b</thin"), Said::of(&[("text", "a"), ("reasoning", "b</thin")]));
    // A token that a longer one begins with is one all the same.
    assert_eq!(said("a<|im_start|>assis"), Said::of(&[("text", "aassis")]));
    // Something else comes before it is closed.
    let args = Lane::TEXT.arguments(1);
    let chunks = [
        Chunk::delta(Lane::TEXT, "<tool name=\"f\">{"),
        Chunk::tool_call(args, "call_1", "g", "{}"),
        Chunk::delta(Lane::TEXT, "}</tool>"),
    ];
    let expected = Said::of(&[("text", "<tool name=\"f\">{"), ("call g", "{}"), ("text", "}</tool>")]);
    assert_eq!(delivered(NormalizeDialects::new(), &[], chunks), expected);
}

/// spec 3.7, 6.3 (a filter that lost its tail): at a finish, at a body with no end, and at an abort.
#[test]
fn a_held_beginning_is_not_lost_at_the_end() {
    for (tail, joined) in [("<", "if n <"), ("<thi", "if n <thi")] {
        let chunks = || vec![Chunk::delta(Lane::TEXT, "if n "), Chunk::delta(Lane::TEXT, tail)];
        for (then, code) in [(vec![Chunk::finish(0, FinishReason::Stop)], "finished"), (vec![], "truncated")] {
            let mut stack = Observers::from(NormalizeDialects::new()).stack(&ObserverFactoryContext::default());
            chunks().into_iter().chain(then).for_each(|chunk| stack.push(chunk));
            stack.finish();
            let out: Vec<Chunk> = std::iter::from_fn(|| stack.pop()).collect();
            let deltas: Vec<&str> = out.iter().filter(|chunk| chunk.is_delta()).filter_map(Chunk::text).collect();
            assert_eq!(deltas, ["if n ", tail], "{code}");
            assert_eq!(deltas.concat(), joined);
            assert_eq!(stack.outcome().unwrap().code(), code);
            let finish = out.iter().position(|chunk| matches!(chunk.body(), Body::Finish(_)));
            assert!(finish.is_none_or(|at| at == 2), "the tail comes before the finish");
        }
        let events = Arc::new(EventQueue::bounded(8));
        let mut observers = Observers::from(NormalizeDialects::new()).events(events.clone());
        observers.register(Metrics::new()).unwrap();
        let mut stack = observers.stack(&ObserverFactoryContext::default());
        chunks().into_iter().for_each(|chunk| stack.push(chunk));
        stack.abort(None);
        let out: Vec<Chunk> = std::iter::from_fn(|| stack.pop()).collect();
        assert_eq!(out.iter().filter(|chunk| chunk.is_delta()).filter_map(Chunk::text).collect::<String>(), "if n ");
        assert!(matches!(**stack.outcome().unwrap(), Outcome::Aborted { .. }));
        drop(stack);
        let metrics = events.pop().unwrap();
        assert!(metrics.payload.as_str().ends_with(&format!("\"withheld_bytes\":{}}}", tail.len())));
    }
}

#[test]
fn only_tools_of_the_invocation_are_called() {
    let text = r#"<tool name="f">{}</tool>{0:"g",1:{}}<tool_call>{"name":"h"}</tool_call>"#;
    assert_eq!(said(text), Said::of(&[("call f", "{}"), ("call g", "{}"), ("call h", "{}")]));
    let known = delivered(NormalizeDialects::new(), &["g", "x"], pieces([text]));
    let expected =
        [("text", r#"<tool name="f">{}</tool>"#), ("call g", "{}"), ("text", r#"<tool_call>{"name":"h"}</tool_call>"#)];
    assert_eq!(known, Said::of(&expected));
}

#[test]
fn options_choose_what_is_looked_for() {
    let text = r#"<think>a</think><tool name="f">{}</tool><|im_end|>"#;
    let only =
        |dialects: &[Dialect]| delivered(NormalizeDialects::new().only(dialects.iter().copied()), &[], pieces([text]));
    assert_eq!(only(&[]), Said::of(&[("text", text)]));
    assert_eq!(
        only(&[Dialect::Think]),
        Said::of(&[("reasoning", "a"), ("text", r#"<tool name="f">{}</tool><|im_end|>"#)])
    );
    assert_eq!(only(&[Dialect::SpecialTokens]), Said::of(&[("text", r#"<think>a</think><tool name="f">{}</tool>"#)]));
    assert_eq!(only(&Dialect::ALL), Said::of(&[("reasoning", "a"), ("call f", "{}")]));

    let tokens = NormalizeDialects::new().special_tokens(["ÄNDE", ""]);
    assert_eq!(delivered(tokens, &[], pieces(["<|im_end|> Ä", "NDE"])), Said::of(&[("text", "<|im_end|> ")]));

    let thinking = NormalizeDialects::new().begins_thinking(true);
    assert_eq!(
        delivered(thinking.clone(), &[], pieces(["hm</th", "ink>yes"])),
        Said::of(&[("reasoning", "hm"), ("text", "yes")])
    );
    assert_eq!(delivered(thinking, &[], pieces(["hm"])), Said::of(&[("reasoning", "hm")]));
}

#[test]
fn a_call_of_max_call_bytes_counts_and_a_longer_one_does_not() {
    let call = r#"<tool name="f">{"a":"b"}</tool>"#;
    for (max, counts) in [(call.len(), true), (call.len() - 1, false), (call.len() - 8, false), (0, false)] {
        for cut in [0, 10, call.len() - 1] {
            let chunks = pieces([&call[..cut], &call[cut..], "."]);
            let said = delivered(NormalizeDialects::new().max_call(max), &[], chunks);
            assert_eq!(said.0.len() == 2, counts, "{max} {cut} {said:?}");
        }
    }
    // The default is what a stack lets an observer hold.
    let big = format!(r#"<tool name="f">{{"a":"{}"}}</tool>"#, "x".repeat(64 * 1024 - 31 + 2 - 1));
    assert_eq!(big.len(), 64 * 1024);
    let cut = |at: usize| delivered(NormalizeDialects::new(), &[], pieces([&big[..at], &big[at..]]));
    assert_eq!(cut(big.len() - 1).0[0].0, "call f");
    let bigger = big.replacen('x', "xx", 1);
    assert_eq!(
        delivered(NormalizeDialects::new(), &[], pieces([&bigger[..100], &bigger[100..]])),
        Said::of(&[("text", &bigger)])
    );
}

/// spec 8.1: past the limit structures are text, and no release has too many pieces.
#[test]
fn the_32nd_call_of_a_text_is_text() {
    let text = r#"a<tool name="f">{}</tool>"#.repeat(33) + "<think>b</think>";
    let all = said(&text);
    assert_eq!(all.0.iter().filter(|(kind, _)| kind == "call f").count(), 31);
    assert_eq!(all.0.last().unwrap().1, r#"a<tool name="f">{}</tool>a<tool name="f">{}</tool><think>b</think>"#);
    let split: Vec<&str> = text.split_inclusive('>').collect();
    assert_eq!(delivered(NormalizeDialects::new(), &[], pieces(split)), all);
    let thoughts = said(&"<think>a</think>b".repeat(31));
    assert_eq!(thoughts.0.len(), 62);
}

#[test]
fn lanes_do_not_mix() {
    let other = Lane::TEXT.in_choice(1);
    let chunks = [
        Chunk::delta(Lane::TEXT, "<think>a"),
        Chunk::delta(other, "b</think>"),
        Chunk::delta(Lane::TEXT.in_part(1), "c"),
        Chunk::delta(Lane::new(Channel::Reasoning), "<think><|im_end|>d"),
        Chunk::delta(Lane::new(Channel::Refusal), "<|im_end|>"),
    ];
    let expected = [("reasoning", "a"), ("text", "b</think>c"), ("reasoning", "<think>d"), ("refusal", "<|im_end|>")];
    assert_eq!(delivered(NormalizeDialects::new(), &[], chunks), Said::of(&expected));
}

/// spec 1.3: a repetition gets the edits of its deltas; text that comes whole loses its control tokens.
#[test]
fn snapshots_lose_what_their_deltas_lost() {
    let text = "a<think>b</think>c<|im_end|>";
    let chunks =
        [Chunk::delta(Lane::TEXT, &text[..5]), Chunk::delta(Lane::TEXT, &text[5..]), Chunk::snapshot(Lane::TEXT, text)];
    let expected = [("text", "a"), ("reasoning", "b"), ("text", "c"), ("snapshot", "ac")];
    assert_eq!(delivered(NormalizeDialects::new(), &[], chunks), Said::of(&expected));
    let whole = [Chunk::snapshot(Lane::TEXT, "<|im_start|>assistant\nhi<|im_end|>")];
    assert_eq!(delivered(NormalizeDialects::new(), &[], whole), Said::of(&[("snapshot", "\nhi")]));
}

#[test]
fn a_text_ends_with_its_part() {
    for end in [Body::PartEnd { choice: 0, part: 0 }, Body::MessageEnd { choice: 0 }, Body::Discard(Box::default())] {
        let chunks = [Chunk::delta(Lane::TEXT, "<think>a"), end.clone().into(), Chunk::delta(Lane::TEXT, "b")];
        let expected = Said::of(&[("reasoning", "a"), ("text", "b")]);
        assert_eq!(delivered(NormalizeDialects::new(), &[], chunks), expected, "{end:?}");
    }
}

/// Nothing is held that cannot be a beginning.
#[test]
fn ordinary_text_is_not_held() {
    let mut stack = Observers::from(NormalizeDialects::new()).stack(&ObserverFactoryContext::default());
    for text in ["a ", "< ", "{\"a\"", "`b`", "<b", ">", "{0 ", "<tool x", "```rust\n", "<think> ", "deep"] {
        stack.push(Chunk::delta(Lane::TEXT, text));
        let out: String =
            std::iter::from_fn(|| stack.pop()).filter_map(|chunk| chunk.text().map(str::to_owned)).collect();
        assert!(!out.is_empty() || matches!(text, "<b" | "{0 "), "{text} is held");
    }
}

/// A part of an answer, and what becomes of it.
fn segment() -> impl Strategy<Value = (String, Vec<(String, String)>)> {
    let plain = "[a-zé .,\\n<{`]{0,6} ".prop_map(|text| (text.clone(), vec![("text".to_owned(), text)]));
    let json = prop::sample::select(vec![
        "{}",
        r#"{"q":"x"}"#,
        r#"{"a":{"b":[1,{"c":"}"}]}}"#,
        r#"{ "é": "</tool>" , "n": -1.5e3 }"#,
        r#"{"t":"<think>{0:\"a\"```"}"#,
    ]);
    let call = (json, 0..4_usize).prop_map(|(json, form)| {
        let text = match form {
            0 => format!("<tool name=\"f\">{json}</tool>"),
            1 => format!("{{0:'f', 1: {json} }}"),
            2 => format!("<tool_call>\n{{\"name\":\"f\",\"arguments\":{json}}}\n</tool_call>"),
            _ => format!("\n```json\n{{\"name\":\"f\",\"arguments\":{json}}}\n```\n"),
        };
        let around = if form == 3 { "\n" } else { "" };
        let said = [("text", around), ("call f", json), ("text", around)];
        (text, said.map(|(kind, text)| (kind.to_owned(), text.to_owned())).to_vec())
    });
    let thought =
        "[a-zé \\n{`]{0,8}".prop_map(|text| (format!("<think>{text}</think>"), vec![("reasoning".to_owned(), text)]));
    let token = prop::sample::select(SPECIAL_TOKENS.to_vec())
        .prop_map(|token| (format!("{token} "), vec![("text".to_owned(), " ".to_owned())]));
    prop_oneof![4 => plain, 2 => call, 2 => thought, 1 => token]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// spec 6.3, 3.10: for every split the joined texts, the calls, the thoughts and their order are what was put in; nothing is lost.
    #[test]
    fn every_split_says_the_same(
        segments in prop::collection::vec(segment(), 0..8),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
    ) {
        let text: String = segments.iter().map(|(text, _)| text.as_str()).collect();
        let mut expected = Said(Vec::new());
        segments.iter().flat_map(|(_, said)| said).for_each(|(kind, text)| expected.push(kind, text));
        prop_assert_eq!(&delivered(NormalizeDialects::new(), &[], pieces(split(&text, &cuts))), &expected);
        prop_assert_eq!(&delivered(NormalizeDialects::new(), &[], pieces(text.split_inclusive(|_| true))), &expected);
    }

    /// The same for text of which nobody knows what it is.
    #[test]
    fn every_split_of_anything_says_what_the_whole_says(
        parts in prop::collection::vec(prop::sample::select(vec![
            "<", "tool", " name=", "\"", "f", ">", "{", "}", "</tool>", "0:", "1:", ",", "```", "json", "\n", "<think>", "</think>",
            "<|im_", "start|>", "assistant", "<tool_call>", "</tool_call>", "\"name\":", "\"arguments\":", "{}", "é", " ", "\\",
        ]), 0..24),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..16),
    ) {
        let text = parts.concat();
        prop_assert_eq!(delivered(NormalizeDialects::new(), &[], pieces(split(&text, &cuts))), said(&text));
    }
}

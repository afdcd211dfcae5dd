//! One chunk of every kind, and any chunk.

use proptest::{collection::vec, option, prelude::*, sample::select};
use streamkeeper_contract::{
    Annotation, Body, Channel, Chunk, ChunkKind, Custom, EndToken, ErrorInfo, Extra, Finish, FinishReason, Id, Json,
    Lane, Media, MediaData, MessageInfo, Meta, Offset, Opaque, Origin, Outcome, Provenance, ProviderToolOutput, Raw,
    RunInfo, Snapshot, Stated, Stop, Text, ToolCall, ToolCallStart, ToolResult, Usage, id,
};

/// One chunk of each kind, in the order of [`ChunkKind::ALL`].
pub(crate) fn one_of_each() -> Vec<Chunk> {
    ChunkKind::ALL.iter().map(|kind| sample(*kind)).collect()
}

fn json(text: &str) -> Json {
    Json::from_text(text).unwrap()
}

fn sample(kind: ChunkKind) -> Chunk {
    let text = |text: &str| Text::from(text);
    let boxed = |text: &str| Box::new(Text::from(text));
    let call = Lane::TEXT.in_part(1).arguments(1);
    let server = Lane::new(Channel::ProviderTool).in_part(2);
    let body = match kind {
        ChunkKind::ContentDelta => return Chunk::delta(Lane::TEXT, "Hello"),
        ChunkKind::ReasoningDelta => return Chunk::delta(Lane::new(Channel::Reasoning), "The user greets."),
        ChunkKind::RefusalDelta => return Chunk::delta(Lane::new(Channel::Refusal).in_choice(1), "I can"),
        ChunkKind::ToolCallDelta => return Chunk::delta(call, r#"{"city":"#),
        ChunkKind::ToolResultDelta => return Chunk::delta(call.in_channel(Channel::ToolResult), "21 °C"),
        ChunkKind::ProviderToolDelta => return Chunk::delta(server, r#"{"query":"#),
        ChunkKind::TranscriptDelta => return Chunk::delta(Lane::new(Channel::Transcript), "Good morning"),
        ChunkKind::RunStart => Body::RunStart(Box::new(RunInfo {
            run: Some(text("run-2")),
            thread: Some(text("thread-1")),
            parent: Some(text("run-1")),
        })),
        ChunkKind::RunEnd => Body::RunEnd(Box::new(RunInfo { run: Some(text("run-2")), ..RunInfo::default() })),
        ChunkKind::MessageStart => Body::MessageStart(Box::new(MessageInfo {
            choice: 0,
            id: Some(text("msg-1")),
            role: Some(text("assistant")),
            model: Some(text("model-a")),
        })),
        ChunkKind::MessageEnd => Body::MessageEnd { choice: 1 },
        ChunkKind::StepStart => Body::StepStart(boxed("search")),
        ChunkKind::StepEnd => Body::StepEnd(boxed("search")),
        ChunkKind::PartStart => Body::PartStart(Lane::new(Channel::Reasoning).in_part(1)),
        ChunkKind::PartEnd => Body::PartEnd { choice: 0, part: 1 },
        ChunkKind::Snapshot => return Chunk::snapshot(Lane::TEXT, "Hello there"),
        ChunkKind::ToolCallStart => return Chunk::tool_call_start(call, "call-1", "weather"),
        ChunkKind::ToolCallEnd => Body::ToolCallEnd(call),
        ChunkKind::ToolCall => return Chunk::tool_call(call, "call-1", "weather", r#"{"city":"Oslo"}"#),
        ChunkKind::ToolResult => Body::ToolResult(Box::new(ToolResult {
            lane: call.in_channel(Channel::ToolResult),
            id: text("call-1"),
            content: text("no such city"),
            is_error: true,
        })),
        ChunkKind::ProviderToolStart => Body::ProviderToolStart(Box::new(ToolCallStart {
            lane: server,
            id: text("srv-1"),
            name: text("web_search"),
        })),
        ChunkKind::ProviderToolEnd => Body::ProviderToolEnd(server),
        ChunkKind::ProviderToolOutput => Body::ProviderToolOutput(Box::new(ProviderToolOutput {
            lane: server,
            id: text("srv-1"),
            name: text("web_search_result"),
            output: json(r#"[{"url": "https://example.org"}]"#),
        })),
        ChunkKind::Opaque => Body::Opaque(Box::new(Opaque {
            lane: Lane::new(Channel::Reasoning),
            form: text("signature"),
            data: "EqQBCkYI".into(),
        })),
        ChunkKind::Annotation => Body::Annotation(Box::new(Annotation {
            lane: Lane::TEXT,
            form: text("citation"),
            value: json(r#"{"start": 0, "end": 5, "score": 0.50}"#),
        })),
        ChunkKind::Media => Body::Media(Box::new(Media {
            lane: Lane::TEXT.in_part(3),
            form: text("image"),
            mime: Some(text("image/png")),
            data: MediaData::Base64("iVBORw0KGgo=".into()),
        })),
        ChunkKind::Usage => return Chunk::usage(usage()),
        ChunkKind::Finish => Body::Finish(Box::new(Finish {
            choice: 0,
            reason: FinishReason::ToolCalls,
            stated: Some(text("tool_use")),
        })),
        ChunkKind::End => return Chunk::end(EndToken::open(), Outcome::Stopped(stop()).into()),
        ChunkKind::Error => return Chunk::error(error()),
        ChunkKind::Discard => Body::Discard(boxed("msg-1")),
        ChunkKind::StateSnapshot => Body::StateSnapshot(Box::new(json(r#"{"step": 1}"#))),
        ChunkKind::StateDelta => {
            Body::StateDelta(Box::new(json(r#"[{"op": "replace", "path": "/step", "value": 2}]"#)))
        }
        ChunkKind::MessagesSnapshot => Body::MessagesSnapshot(Box::new(json(r#"[{"role": "user", "content": "Hi"}]"#))),
        ChunkKind::Custom => return Chunk::custom("progress", json(r#"{"done": 0.5}"#)),
        ChunkKind::Heartbeat => return Chunk::heartbeat(Offset(15_000_000)),
        ChunkKind::Raw => Body::Raw(Box::new(Raw { event: Some(text("ping")), data: text(r#"{"type": "ping"}"#) })),
        ChunkKind::Unknown => return serde_json::from_str(r#"{"kind":"hologram","beams":1.10}"#).unwrap(),
        kind => panic!("no sample of {kind:?}"),
    };
    body.into()
}

pub(crate) fn usage() -> Usage {
    Usage {
        uncached_input: Some(10),
        cache_read: Some(90),
        cache_write: Some(0),
        output: Some(7),
        reasoning: Some(20),
        estimated: true,
        stated: Stated {
            input: Some(100),
            output: Some(27),
            cached: Some(90),
            cache_write: Some(0),
            reasoning: Some(20),
            total: Some(127),
            raw: Some(json(r#"{"prompt_tokens": 100}"#)),
        },
    }
}

pub(crate) fn stop() -> Stop {
    Stop {
        observer: id!("refusals"),
        code: "pattern_matched".into(),
        reason: "a refusal".into(),
        chunk_index: 12,
        accumulated_content_length: 340,
    }
}

pub(crate) fn error() -> ErrorInfo {
    ErrorInfo::new("overloaded_error").with_message("try again later").with_component(id!("primary"))
}

/// Any JSON, with white space inside and numbers that no machine type holds.
pub(crate) fn any_json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        select(&["null", "true", "0", "-0", "1.10", "1e400", "12345678901234567890123", "\"\\u0041\\ud800\""])
            .prop_map(str::to_owned),
        any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap()),
    ];
    let tree = leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(|items| format!("[ {}]", items.join(" ,\t"))),
            vec((select(&["b", "a", "kind", "text"]), inner), 0..3).prop_map(|members| {
                let members: Vec<_> = members.iter().map(|(name, value)| format!("\"{name}\" :{value}")).collect();
                format!("{{{} }}", members.join(","))
            }),
        ]
    });
    tree.prop_map(|text| json(&text))
}

pub(crate) fn any_text() -> impl Strategy<Value = Text> {
    prop_oneof![any::<String>().prop_map(Text::from), "[ -~]{20,28}".prop_map(Text::from)]
}

pub(crate) fn any_id() -> impl Strategy<Value = Id> {
    "[a-z0-9]([a-z0-9._-]{0,62}[a-z0-9])?".prop_map(|name| Id::new(&name).unwrap())
}

pub(crate) fn any_lane() -> impl Strategy<Value = Lane> {
    let ordinal = || prop_oneof![Just(0), any::<u16>()];
    (ordinal(), ordinal(), ordinal(), select(Channel::ALL)).prop_map(|(choice, part, call, channel)| Lane {
        choice,
        part,
        call,
        channel,
    })
}

pub(crate) fn any_finish_reason() -> impl Strategy<Value = FinishReason> {
    prop_oneof![
        select(&["stop", "length", "tool_calls", "content_filter", "refusal", "pause", "unstated"])
            .prop_map(Text::from),
        any_text(),
    ]
    .prop_map(|name| FinishReason::from_name(&name))
}

pub(crate) fn any_error() -> impl Strategy<Value = ErrorInfo> {
    (any_text(), option::of(any_text()), option::of(any_id())).prop_map(|(code, message, component)| ErrorInfo {
        code,
        message,
        component,
    })
}

pub(crate) fn any_usage() -> impl Strategy<Value = Usage> {
    let count = || option::of(any::<u64>());
    let buckets = (count(), count(), count(), count(), count(), any::<bool>());
    let stated = (count(), count(), count(), count(), count(), count(), option::of(any_json()));
    (buckets, stated).prop_map(|(buckets, stated)| {
        let (uncached_input, cache_read, cache_write, output, reasoning, estimated) = buckets;
        let (input, stated_output, cached, stated_write, stated_reasoning, total, raw) = stated;
        let stated = Stated {
            input,
            output: stated_output,
            cached,
            cache_write: stated_write,
            reasoning: stated_reasoning,
            total,
            raw,
        };
        Usage { uncached_input, cache_read, cache_write, output, reasoning, estimated, stated }
    })
}

pub(crate) fn any_outcome() -> impl Strategy<Value = Outcome> {
    let stop = (any_id(), any_text(), any_text(), any::<u64>(), any::<u64>()).prop_map(
        |(observer, code, reason, chunk_index, accumulated_content_length)| Stop {
            observer,
            code,
            reason,
            chunk_index,
            accumulated_content_length,
        },
    );
    prop_oneof![
        any_finish_reason().prop_map(|reason| Outcome::Finished { reason }),
        stop.prop_map(Outcome::Stopped),
        any_error().prop_map(|error| Outcome::Failed { error }),
        (option::of(any_text()), any::<bool>())
            .prop_map(|(reason, cancel_requested)| Outcome::Aborted { reason, cancel_requested }),
        vec(any_json(), 0..3).prop_map(|interrupts| Outcome::Suspended { interrupts }),
        select(vec![Outcome::Truncated, Outcome::Dropped]),
    ]
}

/// Any body that a decoder or a stack can make: every variant, with any content.
pub(crate) fn any_body() -> impl Strategy<Value = Body> {
    let name = || option::of(any_text());
    let opaque_text = || any::<String>().prop_map(Box::<str>::from);
    let start =
        || (any_lane(), any_text(), any_text()).prop_map(|(lane, id, name)| Box::new(ToolCallStart { lane, id, name }));
    let run = || (name(), name(), name()).prop_map(|(run, thread, parent)| Box::new(RunInfo { run, thread, parent }));
    let boundaries = prop_oneof![
        run().prop_map(Body::RunStart),
        run().prop_map(Body::RunEnd),
        (any::<u16>(), name(), name(), name()).prop_map(|(choice, id, role, model)| {
            Body::MessageStart(Box::new(MessageInfo { choice, id, role, model }))
        }),
        any::<u16>().prop_map(|choice| Body::MessageEnd { choice }),
        any_text().prop_map(|name| Body::StepStart(Box::new(name))),
        any_text().prop_map(|name| Body::StepEnd(Box::new(name))),
        any_lane().prop_map(Body::PartStart),
        any::<(u16, u16)>().prop_map(|(choice, part)| Body::PartEnd { choice, part }),
        (any::<u16>(), any_finish_reason(), name())
            .prop_map(|(choice, reason, stated)| Body::Finish(Box::new(Finish { choice, reason, stated }))),
        any_outcome().prop_map(|outcome| Chunk::end(EndToken::open(), outcome.into()).into_body()),
        any_error().prop_map(|error| Body::Error(Box::new(error))),
        any_text().prop_map(|message| Body::Discard(Box::new(message))),
        Just(Body::Heartbeat),
    ];
    let tools = prop_oneof![
        start().prop_map(Body::ToolCallStart),
        start().prop_map(Body::ProviderToolStart),
        any_lane().prop_map(Body::ToolCallEnd),
        any_lane().prop_map(Body::ProviderToolEnd),
        (any_lane(), any_text(), any_text(), any_text()).prop_map(|(lane, id, name, arguments)| {
            Body::ToolCall(Box::new(ToolCall { lane, id, name, arguments }))
        }),
        (any_lane(), any_text(), any_text(), any::<bool>()).prop_map(|(lane, id, content, is_error)| {
            Body::ToolResult(Box::new(ToolResult { lane, id, content, is_error }))
        }),
        (any_lane(), any_text(), any_text(), any_json()).prop_map(|(lane, id, name, output)| {
            Body::ProviderToolOutput(Box::new(ProviderToolOutput { lane, id, name, output }))
        }),
    ];
    let content =
        prop_oneof![
            (any_lane(), any_text()).prop_map(|(lane, text)| Body::Delta { lane, text }),
            (any_lane(), any_text()).prop_map(|(lane, text)| Body::Snapshot(Box::new(Snapshot { lane, text }))),
            (any_lane(), any_text(), opaque_text()).prop_map(|(lane, form, data)| Body::Opaque(Box::new(Opaque {
                lane,
                form,
                data
            }))),
            (any_lane(), any_text(), any_json())
                .prop_map(|(lane, form, value)| Body::Annotation(Box::new(Annotation { lane, form, value }))),
            (any_lane(), any_text(), name(), 0..3, opaque_text()).prop_map(|(lane, form, mime, which, data)| {
                let data = [MediaData::Base64, MediaData::Url, MediaData::Id][which as usize](data);
                Body::Media(Box::new(Media { lane, form, mime, data }))
            }),
            any_usage().prop_map(|usage| Body::Usage(Box::new(usage))),
            any_json().prop_map(|value| Body::StateSnapshot(Box::new(value))),
            any_json().prop_map(|value| Body::StateDelta(Box::new(value))),
            any_json().prop_map(|value| Body::MessagesSnapshot(Box::new(value))),
            (any_text(), any_json()).prop_map(|(name, value)| Body::Custom(Box::new(Custom { name, value }))),
            (name(), any_text()).prop_map(|(event, data)| Body::Raw(Box::new(Raw { event, data }))),
        ];
    prop_oneof![boundaries, tools, content]
}

/// Members with names that no kind has, in any order, some of them twice.
pub(crate) fn any_extra() -> impl Strategy<Value = Extra> {
    let name = select(&["zeta", "Text", "x-\u{e9}\"", "", "kinds", "alpha", "a_name_of_more_than_24_bytes"]);
    vec((name.prop_map(Text::from), any_json()), 0..4).prop_map(Extra)
}

pub(crate) fn any_chunk() -> impl Strategy<Value = Chunk> {
    let at = prop_oneof![Just(0), any::<u64>()].prop_map(Offset);
    let origin =
        prop_oneof![Just(Origin::default()), any::<(u32, u16)>().prop_map(|(frame, part)| Origin { frame, part })];
    let provenance = vec(0_usize..70, 0..3).prop_map(|positions| {
        let mut provenance = Provenance::default();
        positions.into_iter().for_each(|position| provenance.add(position));
        provenance
    });
    (any_body(), at, origin, provenance, any_extra()).prop_map(|(body, at, origin, provenance, extra)| {
        let extra = (!extra.0.is_empty()).then(|| Box::new(extra));
        Chunk::from(body).with_meta(Meta { at, origin, provenance, extra })
    })
}

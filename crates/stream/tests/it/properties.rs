//! Any chunks with any verdicts, in any interleaving of lanes: spec 3.4 to 3.11.
//!
//! Each character of a lane stands once in what enters, in ascending order. Observers never invent one of these; what they put in is
//! made of `*`. So what is delivered shows by itself whether an order was changed, or anything came twice.

use std::{collections::HashMap, sync::Arc};

use proptest::prelude::*;
use streamkeeper_contract::{
    Body, Channel, Chunk, ErrorInfo, FinishReason, Id, Lane, Offset, Opaque, Piece, Release, Usage, Verdict,
};
use streamkeeper_stream::{
    Interest, Limits, ObserverContext, ObserverFactoryContext, Observers, OnFailure, Recorder, Registration, Stack,
    StreamObserver, Tape, from_fn,
};

use crate::support::*;

#[derive(Debug, Clone)]
enum Enters {
    Delta { lane: Lane, chars: usize },
    Snapshot(Lane),
    PartEnd { choice: u16, part: u16 },
    ToolCallStart(Lane),
    ToolCallEnd(Lane),
    ToolCall { lane: Lane, chars: usize },
    Finish(u16),
    Error,
    Opaque(Lane),
    Usage,
    Heartbeat,
}

#[derive(Debug, Clone)]
enum Does {
    Continue,
    AmendSame,
    AmendStars,
    AmendIllegal,
    Emit,
    Stop,
    Buffer,
    /// Keeps so many of the last characters.
    Keep(usize),
    /// Keeps so many bytes, whether that is possible or not.
    KeepBytes(usize),
    Characters,
    Stars {
        keep: usize,
    },
    Call,
    TooMany,
    TooLarge,
    Panic,
}

#[derive(Debug, Clone)]
struct Observer {
    policy: u8,
    is_transform: bool,
    interest: u8,
    chunks: Vec<Does>,
    barriers: Vec<Does>,
}

struct Scripted {
    observer: Observer,
    chunk: usize,
    barrier: usize,
}

impl StreamObserver for Scripted {
    fn interest(&self) -> Interest {
        match self.observer.interest {
            0 => Interest::channels(&[Channel::Text]),
            1 => Interest::TEXT,
            _ => Interest::ALL,
        }
    }

    fn on_chunk(&mut self, chunk: &Chunk, ctx: &mut ObserverContext<'_>) -> Verdict {
        let does = &self.observer.chunks[self.chunk % self.observer.chunks.len()];
        self.chunk += 1;
        does.verdict(Some(chunk), ctx)
    }

    fn on_barrier(&mut self, ctx: &mut ObserverContext<'_>) -> Verdict {
        let does = &self.observer.barriers[self.barrier % self.observer.barriers.len()];
        self.barrier += 1;
        does.verdict(None, ctx)
    }
}

impl Does {
    fn verdict(&self, chunk: Option<&Chunk>, ctx: &mut ObserverContext<'_>) -> Verdict {
        let pending = ctx.pending();
        let tail = |chars: usize| pending.chars().rev().take(chars).map(char::len_utf8).sum::<usize>();
        match *self {
            Does::Continue => Verdict::Continue,
            Does::AmendSame => chunk.map_or(Verdict::Continue, |chunk| Verdict::Amend(chunk.clone())),
            Does::AmendStars => match chunk.and_then(|chunk| chunk.with_text("**")) {
                Some(amended) => Verdict::Amend(amended),
                None => Verdict::Continue,
            },
            Does::AmendIllegal => Verdict::Amend(Chunk::delta(Lane::TEXT.in_choice(7), "*")),
            Does::Emit => Verdict::Emit(vec![event("seen")]),
            Does::Stop => Verdict::stop("stop", "stop"),
            Does::Buffer => Verdict::Buffer,
            Does::Keep(chars) => Release::unchanged().keep(tail(chars)).into(),
            Does::KeepBytes(bytes) => Release::unchanged().keep(bytes).into(),
            Does::Characters => Release::pieces(pending.chars().map(|c| Piece::Text(c.to_string().into()))).into(),
            Does::Stars { keep } => Release::text("***").keep(tail(keep)).into(),
            Does::Call => {
                let call = Piece::ToolCall { name: "look".into(), arguments: "*".into() };
                Release::pieces([Piece::Text("*".into()), call, Piece::Text("".into())]).into()
            }
            Does::TooMany => Release::pieces((0..65).map(|_| Piece::Text("*".into()))).into(),
            Does::TooLarge => Release::text("*".repeat(5000)).into(),
            Does::Panic => blow_up(),
        }
    }
}

fn lane() -> impl Strategy<Value = Lane> {
    let channel = prop_oneof![Just(Channel::Text), Just(Channel::Reasoning), Just(Channel::Arguments)];
    (0_u16..2, 0_u16..2, channel).prop_map(|(choice, part, channel)| {
        let lane = Lane::new(channel).in_choice(choice).in_part(part);
        if channel == Channel::Arguments { lane.arguments(part + 1) } else { lane }
    })
}

fn enters(with_repeats: bool) -> impl Strategy<Value = Enters> {
    prop_oneof![
        20 => (lane(), 1_usize..6).prop_map(|(lane, chars)| Enters::Delta { lane, chars }),
        1 => lane().prop_map(move |lane| if with_repeats { Enters::Snapshot(lane) } else { Enters::Heartbeat }),
        1 => (0_u16..2, 0_u16..2).prop_map(|(choice, part)| Enters::PartEnd { choice, part }),
        1 => (0_u16..2).prop_map(|part| Enters::ToolCallStart(Lane::TEXT.in_part(part).arguments(part + 1))),
        1 => (0_u16..2).prop_map(|part| Enters::ToolCallEnd(Lane::TEXT.in_part(part).arguments(part + 1))),
        1 => (1_usize..4).prop_map(|chars| Enters::ToolCall { lane: Lane::TEXT.in_part(9).arguments(9), chars }),
        1 => (0_u16..2).prop_map(Enters::Finish),
        1 => Just(Enters::Error),
        1 => lane().prop_map(Enters::Opaque),
        1 => Just(Enters::Usage),
        1 => Just(Enters::Heartbeat),
    ]
}

/// What changes no text, if all goes well.
fn keeps_text() -> BoxedStrategy<Does> {
    prop_oneof![
        6 => Just(Does::Continue),
        2 => Just(Does::AmendSame),
        1 => Just(Does::AmendIllegal),
        2 => Just(Does::Emit),
        1 => Just(Does::Stop),
        6 => Just(Does::Buffer),
        6 => (0_usize..4).prop_map(Does::Keep),
        1 => (0_usize..20).prop_map(Does::KeepBytes),
        3 => Just(Does::Characters),
        1 => Just(Does::TooMany),
        1 => Just(Does::TooLarge),
        1 => Just(Does::Panic),
    ]
    .boxed()
}

fn anything() -> BoxedStrategy<Does> {
    prop_oneof![
        3 => keeps_text(),
        1 => Just(Does::AmendStars),
        1 => (0_usize..4).prop_map(|keep| Does::Stars { keep }),
        1 => Just(Does::Call),
    ]
    .boxed()
}

fn observers(does: fn() -> BoxedStrategy<Does>) -> impl Strategy<Value = Vec<Observer>> {
    let scripts = (prop::collection::vec(does(), 1..6), prop::collection::vec(does(), 1..4));
    let observer =
        (0_u8..3, any::<bool>(), 0_u8..4, scripts).prop_map(|(policy, is_transform, interest, (chunks, barriers))| {
            Observer { policy, is_transform, interest, chunks, barriers }
        });
    prop::collection::vec(observer, 0..4)
}

fn registered(script: &[Observer], placeholder: &'static str) -> Observers {
    let registrations = script.iter().enumerate().map(|(i, observer)| {
        let id = Id::new(&format!("o{i}")).unwrap();
        let made = observer.clone();
        let factory = from_fn(move |_| Scripted { observer: made.clone(), chunk: 0, barrier: 0 });
        let registration =
            if observer.is_transform { Registration::transform(id, factory) } else { Registration::guard(id, factory) };
        registration.on_failure(match observer.policy {
            0 => OnFailure::Fail,
            1 => OnFailure::PassThrough,
            _ => OnFailure::Placeholder(placeholder.into()),
        })
    });
    let mut limits = Limits::default();
    (limits.held_lane_bytes, limits.held_lanes, limits.held_bytes, limits.pieces_per_chunk) = (40, 3, 70, 200);
    list(registrations).limits(limits)
}

const FIRST: u32 = 0x4E00;

/// The chunks, and for each lane how many characters had entered before each chunk.
fn build(script: &[Enters]) -> (Vec<Chunk>, Vec<HashMap<Lane, u32>>) {
    let mut counts = HashMap::<Lane, u32>::new();
    let mut texts = HashMap::<Lane, String>::new();
    let mut before = Vec::new();
    let chunks = script.iter().enumerate().map(|(at, enters)| {
        before.push(counts.clone());
        let mut say = |lane: Lane, chars: usize| {
            let count = counts.entry(lane).or_default();
            let text: String = (0..chars as u32).filter_map(|i| char::from_u32(FIRST + *count + i)).collect();
            *count += chars as u32;
            texts.entry(lane).or_default().push_str(&text);
            text
        };
        let chunk = match *enters {
            Enters::Delta { lane, chars } => Chunk::delta(lane, say(lane, chars)),
            Enters::Snapshot(lane) => Chunk::snapshot(lane, texts.get(&lane).cloned().unwrap_or_default()),
            Enters::PartEnd { choice, part } => Body::PartEnd { choice, part }.into(),
            Enters::ToolCallStart(lane) => Chunk::tool_call_start(lane, "id", "look"),
            Enters::ToolCallEnd(lane) => Body::ToolCallEnd(lane).into(),
            Enters::ToolCall { lane, chars } => Chunk::tool_call(lane, "id", "look", say(lane, chars)),
            Enters::Finish(choice) => Chunk::finish(choice, FinishReason::Stop),
            Enters::Error => Chunk::error(ErrorInfo::new("overloaded")),
            Enters::Opaque(lane) => {
                Body::Opaque(Box::new(Opaque { lane, form: "signature".into(), data: "s".into() })).into()
            }
            Enters::Usage => Chunk::usage(Usage::default()),
            Enters::Heartbeat => Chunk::from(Body::Heartbeat),
        };
        chunk.at(Offset(at as u64))
    });
    (chunks.collect(), before)
}

/// The numbers of the characters of a lane in a delta or whole tool call.
fn numbers(chunk: &Chunk) -> Option<(Lane, Vec<u32>)> {
    let (lane, text) = match chunk.body() {
        Body::Delta { lane, text } => (*lane, text.as_str()),
        Body::ToolCall(call) => (call.lane, call.arguments.as_str()),
        _ => return None,
    };
    Some((lane, text.chars().filter(|c| *c != '*').map(|c| u32::from(c) - FIRST).collect()))
}

#[derive(Debug, Clone, Copy)]
enum Ends {
    Finish,
    Fail,
    Abort,
    Drop,
}

fn ends() -> impl Strategy<Value = Ends> {
    prop_oneof![Just(Ends::Finish), Just(Ends::Fail), Just(Ends::Abort), Just(Ends::Drop)]
}

/// Runs it all; the consumer takes at most so many chunks. Returns what was taken.
fn take(stack: &mut Stack, chunks: &[Chunk], ends: Ends, most: usize, largest: &mut usize) -> Vec<Chunk> {
    let mut out = Vec::new();
    for chunk in chunks {
        stack.push(chunk.clone());
        *largest = (*largest).max(stack.held_len());
        while out.len() < most
            && let Some(chunk) = stack.pop()
        {
            out.push(chunk);
        }
    }
    match ends {
        Ends::Finish => stack.finish(),
        Ends::Fail => {
            stack.fail(ErrorInfo::new("source_error"));
        }
        Ends::Abort => stack.abort(None),
        Ends::Drop => {}
    }
    while out.len() < most
        && let Some(chunk) = stack.pop()
    {
        out.push(chunk);
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn order_limits_and_one_terminal_hold_whatever_observers_do(
        script in observers(anything),
        enters in prop::collection::vec(enters(true), 0..60),
        ends in ends(),
    ) {
        // spec 3.3, 3.5, 3.7, 3.11
        let (chunks, before) = build(&enters);
        let results = Results::default();
        let mut observers = registered(&script, "*");
        observers.register(results.watcher()).unwrap();
        let mut stack = observers.failures(Arc::new(Failures::default())).stack(&ObserverFactoryContext::default());
        let mut largest = 0;
        let out = take(&mut stack, &chunks, ends, usize::MAX, &mut largest);
        drop(stack);
        prop_assert_eq!(results.take().len(), 1, "the end is told once");

        // At most one chunk beyond the limit was ever held.
        prop_assert!(largest <= 70, "{} bytes are held", largest);

        let terminals = out.iter().filter(|chunk| matches!(chunk.body(), Body::End(_))).count();
        let is_decided = !matches!(ends, Ends::Drop);
        prop_assert!(terminals <= 1 && (terminals == 1 || !is_decided));
        if terminals == 1 {
            prop_assert!(matches!(out.last().unwrap().body(), Body::End(_)), "it is the last");
        }

        let mut last = HashMap::<Lane, u32>::new();
        for chunk in &out {
            // What had entered before a finish is not behind it.
            if let Body::Finish(finish) = chunk.body() {
                let entered = &before[chunk.offset().0 as usize];
                for (lane, count) in entered.iter().filter(|(lane, _)| lane.choice == finish.choice) {
                    let next = last.entry(*lane).or_default();
                    *next = (*next).max(*count);
                }
            }
            let Some((lane, numbers)) = numbers(chunk) else { continue };
            for number in numbers {
                let next = last.entry(lane).or_default();
                prop_assert!(number >= *next, "character {} of {:?} comes late or twice", number, lane);
                *next = number + 1;
            }
        }
    }

    #[test]
    fn what_enters_is_delivered_or_counted_as_withheld(
        script in observers(keeps_text),
        enters in prop::collection::vec(enters(false), 0..60),
        ends in ends(),
        most in prop_oneof![Just(usize::MAX), 0_usize..40],
    ) {
        // spec 3.7: nothing held is lost silently
        let (chunks, _) = build(&enters);
        let results = Results::default();
        let mut observers = registered(&script, "");
        observers.register(results.watcher()).unwrap();
        let mut stack = observers.failures(Arc::new(Failures::default())).stack(&ObserverFactoryContext::default());
        let out = take(&mut stack, &chunks, ends, most, &mut 0);
        drop(stack);
        let result = results.take().remove(0);

        let original = |chunk: &Chunk| numbers(chunk).map_or(0, |(_, numbers)| 3 * numbers.len() as u64);
        let entered: u64 = chunks.iter().take(result.chunks_in as usize).map(original).sum();
        let delivered: u64 = out.iter().map(original).sum();
        // Placeholders are empty here, and nothing else is put in: it adds up to the byte.
        prop_assert_eq!(entered, delivered + result.withheld_len);
        let delivered_lanes: u64 = result.lanes.iter().map(|text| text.delivered_len).sum();
        prop_assert_eq!(delivered_lanes, delivered);
        prop_assert_eq!(result.chunks_out, out.len() as u64);
    }

    #[test]
    fn the_same_input_gives_the_same_recording_and_replays(
        script in observers(anything),
        enters in prop::collection::vec(enters(true), 0..40),
        ends in ends(),
        most in prop_oneof![Just(usize::MAX), 0_usize..30],
    ) {
        // spec 3.10, 3.14
        let (chunks, _) = build(&enters);
        let observers = registered(&script, "*").failures(Arc::new(Failures::default()));
        let record = || {
            let tape = Tape::new();
            let ctx = ObserverFactoryContext::default();
            let mut stack = observers.builder(&ctx).recorder(Recorder::raw_sensitive(tape.clone())).build();
            take(&mut stack, &chunks, ends, most, &mut 0);
            drop(stack);
            tape
        };
        let (one, two) = (record(), record());
        prop_assert_eq!(one.lines(), two.lines());
        let recording = one.recording().unwrap().into_raw().unwrap();
        let difference = recording.replay(&observers).run().difference;
        prop_assert_eq!(difference.map(|difference| difference.to_string()), None);
    }

    #[test]
    fn observers_that_let_everything_pass_change_nothing(
        interests in prop::collection::vec(0_u8..4, 0..4),
        enters in prop::collection::vec(enters(true), 0..40),
    ) {
        // spec 3.3, 3.12
        let script: Vec<_> = interests
            .into_iter()
            .map(|interest| Observer {
                policy: 0,
                is_transform: false,
                interest,
                chunks: vec![Does::Continue],
                barriers: vec![Does::Panic],
            })
            .collect();
        let (chunks, _) = build(&enters);
        let mut stack = registered(&script, "*").stack(&ObserverFactoryContext::default());
        let out = take(&mut stack, &chunks, Ends::Finish, usize::MAX, &mut 0);
        prop_assert_eq!(&out[..out.len() - 1], &chunks[..]);
    }
}

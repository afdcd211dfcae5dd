use std::sync::{Arc, PoisonError};

use streamkeeper_contract::{Body, Channel, Chunk, FinishReason, Id, Lane, Outcome, SideEvent, id};
use streamkeeper_stream::{ObserverFactoryContext, Observers, Registration, StreamObserver, from_fn};

use super::answer::{Told, take};
use crate::Report;

const UNDER_TEST: Id = id!("under-test");

/// Tests an observer of your own over some texts, and says which rules it breaks.
///
/// Each text is fed whole, one character at a time, and in pieces of 2, 3, 7 and 64 characters, as an answer between reasoning and a
/// second choice. The observer passes when
///
/// - it fails at no time: no panic, no broken rule, no hold over the limit (spec 3.1, 3.6, 3.8);
/// - the delivered text is the same for every split (spec 3.3): an observer that looks at one delta at a time misses what is cut in two;
/// - two runs of the same input deliver the same chunks and emit the same events (spec 3.10).
///
/// Text an observer changes on purpose is no fault, and neither is a stop, as long as it is the same every time.
///
/// ```
/// use streamkeeper_conformance::stream::check_observer;
/// use streamkeeper_contract::{Chunk, Release, Verdict};
/// use streamkeeper_stream::{ObserverContext, StreamObserver};
///
/// /// Replaces a word, but only where one delta has all of it.
/// struct Careless;
///
/// impl StreamObserver for Careless {
///     fn on_chunk(&mut self, chunk: &Chunk, _: &mut ObserverContext<'_>) -> Verdict {
///         match chunk.text() {
///             Some(text) if text.contains("secret") => {
///                 chunk.with_text(text.replace("secret", "…")).map_or(Verdict::Continue, Verdict::Amend)
///             }
///             _ => Verdict::Continue,
///         }
///     }
/// }
///
/// let report = check_observer(|| Careless, &["nothing to see", "a secret word"]);
/// assert_eq!(report.failed.len(), 1, "{report}");
/// ```
pub fn check_observer<O: StreamObserver + 'static>(
    make: impl Fn() -> O + Send + Sync + 'static,
    texts: &[&str],
) -> Report {
    let observers = Observers::from(Registration::guard(UNDER_TEST, from_fn(move |_: &ObserverFactoryContext| make())));
    let mut report = Report::default();
    for text in texts {
        let name = format!("text of {} bytes: {:?}", text.len(), text.chars().take(24).collect::<String>());
        report.add(&name, "spec 3.1, 3.3, 3.6, 3.8, 3.10", Ok(faults(&observers, text)));
    }
    report
}

const SPLITS: [usize; 6] = [usize::MAX, 1, 2, 3, 7, 64];

fn faults(observers: &Observers, text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let mut first: Option<String> = None;
    for n in SPLITS {
        let how = if n == usize::MAX { "fed whole".to_owned() } else { format!("fed {n} characters at a time") };
        let run = Run::of(observers, &pieces(text, n));
        for failure in &run.failures {
            faults.push(format!("{how}: {failure}"));
        }
        if run != Run::of(observers, &pieces(text, n)) {
            faults.push(format!("{how}: a second run of the same input gave something else"));
        }
        match &first {
            None => first = Some(run.text),
            // A stop cuts the text where the split has its chunk.
            Some(_) if run.is_stopped => {}
            Some(whole) if *whole == run.text => {}
            Some(whole) => faults.push(format!(
                "{how}: {} bytes came out, other than the {} when fed whole",
                run.text.len(),
                whole.len()
            )),
        }
    }
    faults
}

fn pieces(text: &str, n: usize) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    characters.chunks(n.min(characters.len().max(1))).map(|piece| piece.iter().collect()).collect()
}

#[derive(Debug, PartialEq)]
struct Run {
    delivered: Vec<Chunk>,
    text: String,
    is_stopped: bool,
    events: Vec<SideEvent>,
    failures: Vec<String>,
}

impl Run {
    fn of(observers: &Observers, pieces: &[String]) -> Self {
        let told = Arc::new(Told::default());
        let ctx = ObserverFactoryContext::default();
        let mut stack = observers.builder(&ctx).events(told.clone()).failures(told.clone()).build();
        let mut delivered = Vec::new();
        let mut push = |chunk| {
            stack.push(chunk);
            take(&mut stack, &mut delivered);
        };
        push(Chunk::delta(Lane::new(Channel::Reasoning), "thinking"));
        for piece in pieces {
            push(Chunk::delta(Lane::TEXT, piece.as_str()));
            push(Chunk::delta(Lane::TEXT.in_choice(1), "another choice "));
        }
        push(Chunk::finish(0, FinishReason::Stop));
        push(Chunk::finish(1, FinishReason::Stop));
        stack.finish();
        take(&mut stack, &mut delivered);
        let text = delivered.iter().filter_map(|chunk| match chunk.body() {
            Body::Delta { lane, text } if *lane == Lane::TEXT => Some(text.as_str()),
            _ => None,
        });
        let text = text.collect();
        let is_stopped = delivered
            .iter()
            .any(|chunk| matches!(chunk.body(), Body::End(end) if matches!(**end.outcome(), Outcome::Stopped(_))));
        let events = std::mem::take(&mut *told.events.lock().unwrap_or_else(PoisonError::into_inner));
        let failures = told.failures.lock().unwrap_or_else(PoisonError::into_inner);
        Self { failures: failures.iter().map(ToString::to_string).collect(), delivered, text, is_stopped, events }
    }
}

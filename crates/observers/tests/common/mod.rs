use std::sync::Arc;

use streamkeeper_contract::{Channel, Chunk, Outcome, SideEvent};
use streamkeeper_stream::{EventQueue, ObserverFactoryContext, Observers};

/// What came of a stream.
#[allow(dead_code, reason = "not every test reads all of it")]
pub(crate) struct Ran {
    pub(crate) outcome: Outcome,
    /// The answer text that was delivered, of all choices.
    pub(crate) text: String,
    pub(crate) events: Vec<SideEvent>,
}

/// Takes chunks through observers to the end, as a reader would.
#[allow(dead_code, reason = "not every test asks for this much")]
pub(crate) fn run(observers: impl Into<Observers>, chunks: impl IntoIterator<Item = Chunk>) -> Ran {
    let queue = Arc::new(EventQueue::bounded(10_000));
    let observers = observers.into().events(queue.clone());
    let mut stack = observers.stack(&ObserverFactoryContext::default());
    let mut text = String::new();
    let mut outcome = None;
    let mut take = |chunk: Chunk| {
        if chunk.lane().is_some_and(|lane| lane.channel == Channel::Text) && chunk.is_delta() {
            text.push_str(chunk.text().unwrap_or_default());
        }
        if let streamkeeper_contract::Body::End(end) = chunk.body() {
            outcome = Some(Outcome::clone(end.outcome()));
        }
    };
    for chunk in chunks {
        stack.push(chunk);
        std::iter::from_fn(|| stack.pop()).for_each(&mut take);
    }
    stack.finish();
    std::iter::from_fn(|| stack.pop()).for_each(&mut take);
    drop(stack);
    Ran { outcome: outcome.expect("every stream has an end"), text, events: queue.drain() }
}

/// A text cut at these places, without empty pieces.
#[allow(dead_code, reason = "not every test cuts")]
pub(crate) fn split<'t>(text: &'t str, cuts: &[proptest::sample::Index]) -> Vec<&'t str> {
    let mut at: Vec<_> = cuts.iter().map(|cut| text.floor_char_boundary(cut.index(text.len() + 1))).collect();
    at.extend([0, text.len()]);
    at.sort_unstable();
    at.windows(2).map(|pair| &text[pair[0]..pair[1]]).filter(|piece| !piece.is_empty()).collect()
}

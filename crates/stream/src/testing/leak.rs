use std::{
    collections::BTreeMap,
    fmt,
    pin::pin,
    task::{Context, Poll, Waker},
};

use futures_core::Stream;
use serde_json::Value;
use streamkeeper_contract::Chunk;

use super::{Script, ran::Taken};
use crate::{ObserveExt, Observers, Recorder};

/// Something got out that must not. Its `Display` says by which door; it does not repeat what got out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leak {
    what: String,
}

impl fmt::Display for Leak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Leak {}

/// Panics if a canary gets out of a stack by any door: [`check_no_leak`].
///
/// # Panics
/// With the [`Leak`].
#[track_caller]
pub fn assert_no_leak(canary: &str, observers: &Observers, script: impl Into<Script>) {
    check_no_leak(canary, observers, script).unwrap_or_else(|leak| panic!("{leak}"));
}

/// Whether a canary gets out of a stack that it was put into.
///
/// Searched are
///
/// - every delivered chunk, whatever its kind: each text, name and JSON value in it, as it stands and read as JSON again where it is
///   JSON; and what the same member of all chunks of a lane adds up to, so that a canary is found in the pieces that deltas, arguments
///   or the tokens of log probabilities cut it into;
/// - side events, failures and the outcome;
/// - the recording of what was delivered, verdict log and header included;
/// - the error that a wrapped stream ends with, and the `Debug` of chunks, events, errors, stack, observers and of the raw recording
///   (which itself holds what came in, by its purpose).
///
/// Half of a canary is a leak too: any piece of it as long as its half, and of at least 8 bytes. Make it long and strange, and plant it
/// so that the observers should find it.
///
/// ```
/// use streamkeeper_contract::{Chunk, Lane};
/// use streamkeeper_stream::{Observers, testing::check_no_leak};
///
/// let canary = "sk-live-4f9a1c7e2b";
/// let chunks = ["sk-live", "-4f9a", "1c7e2b"].map(|piece| Chunk::delta(Lane::TEXT, piece));
/// let leak = check_no_leak(canary, &Observers::new(), chunks).unwrap_err();
/// assert_eq!(leak.to_string(), "the canary is in the joined `text` of the content_delta chunks of lane `text`");
///
/// let harmless = [Chunk::delta(Lane::TEXT, "nothing to see")];
/// let leak = check_no_leak(canary, &Observers::new(), harmless).unwrap_err();
/// assert_eq!(leak.to_string(), "the canary is nowhere in what enters, so this shows nothing");
/// ```
///
/// # Errors
/// With the first door that it gets out by; and if it is nowhere in what enters, whole or in the pieces of a lane, since then nothing is
/// shown. An observer that fails is an error too: what it withholds says nothing about what it finds.
pub fn check_no_leak(canary: &str, observers: &Observers, script: impl Into<Script>) -> Result<(), Leak> {
    let (canary, script) = (Canary::new(canary), script.into());
    if canary.in_chunks(&script.chunks).is_none() {
        return Err(nothing_shown());
    }
    let ran = script.run(observers);
    let safe = Taken::of(observers, &script, Recorder::delivered);
    for delivered in [ran.delivered(), &safe.delivered] {
        canary.in_chunks(delivered).map_or(Ok(()), |place| Err(leak(&place)))?;
    }
    for (i, line) in safe.tape.lines().lines().enumerate() {
        canary.absent(line, || format!("line {} of the recording of what was delivered", i + 1))?;
    }
    for (i, event) in ran.events().iter().enumerate() {
        let text = serde_json::to_string(event).unwrap_or_default();
        canary.absent(&text, || format!("side event {i} ({}/{})", event.channel, event.name))?;
    }
    let debugs = [
        ("the failures", format!("{:?} {:?}", ran.failures(), safe.failures)),
        ("the outcome", format!("{} {:?}", ran.outcome(), ran.outcome())),
        ("the `Debug` of the stack", safe.debug),
        ("the `Debug` of the observers", format!("{observers:?}")),
        ("the `Debug` of the events", format!("{:?}", safe.events)),
        ("the `Debug` of the raw recording", format!("{:?}", ran.recording().recording())),
        ("the `Debug` of an entry of the raw recording", format!("{:?}", ran.recording().recording().entries())),
        ("the error of the wrapped stream", errors(observers, &script)),
    ];
    debugs.iter().try_for_each(|(place, text)| canary.absent(text, || (*place).to_owned()))?;
    match ran.failures().first() {
        Some(failure) => {
            Err(Leak { what: format!("nothing gets out, but an observer fails, which shows nothing: {failure}") })
        }
        None => Ok(()),
    }
}

/// What a wrapped stream says of its errors.
fn errors(observers: &Observers, script: &Script) -> String {
    let mut stream = pin!(script.stream().with_stack(observers.stack(&script.ctx)));
    let mut ctx = Context::from_waker(Waker::noop());
    let mut said = String::new();
    // A scripted source is always ready.
    while let Poll::Ready(Some(item)) = stream.as_mut().poll_next(&mut ctx) {
        match item {
            Ok(chunk) => said.push_str(&format!("{chunk:?}\n")),
            Err(error) => said.push_str(&format!("{error} {error:?}\n")),
        }
    }
    said.push_str(&format!("{stream:?}"));
    said
}

/// Panics if a canary gets out in a provider's bytes: [`check_no_leak_in_bytes`].
///
/// # Panics
/// With the [`Leak`].
#[cfg(feature = "wire")]
#[track_caller]
pub fn assert_no_leak_in_bytes(
    canary: &str,
    observers: &Observers,
    format: streamkeeper_wire::Format,
    body: impl AsRef<[u8]>,
) {
    check_no_leak_in_bytes(canary, observers, format, body).unwrap_or_else(|leak| panic!("{leak}"));
}

/// The same for a provider's bytes on their way through [`ObservedBytes`](crate::ObservedBytes), and for the chunks that they decode to.
///
/// The body is fed whole, in pieces of 7 and 64 bytes, and byte by byte. Searched is what comes out, as it stands, and decoded again by
/// the rules of [`check_no_leak`].
///
/// # Errors
/// With the first door that it gets out by; if the body cannot be decoded; and if the canary is nowhere in it.
#[cfg(feature = "wire")]
pub fn check_no_leak_in_bytes(
    canary: &str,
    observers: &Observers,
    format: streamkeeper_wire::Format,
    body: impl AsRef<[u8]>,
) -> Result<(), Leak> {
    use super::Split;
    use crate::{ObservedBytes, ObserverFactoryContext};
    use streamkeeper_wire::Decoder;

    let body = body.as_ref();
    let chunks =
        decoded(format, body).map_err(|error| Leak { what: format!("the body cannot be decoded: {error}") })?;
    check_no_leak(canary, observers, chunks)?;
    let canary = Canary::new(canary);
    for split in [Split::Whole, Split::Bytes(64), Split::Bytes(7), Split::EveryByte] {
        for reads in split.bytes(body) {
            let stack = observers.stack(&ObserverFactoryContext::default());
            let mut observed = ObservedBytes::new(Decoder::new(format), stack);
            let (mut out, mut debug) = (Vec::new(), String::new());
            for read in reads {
                observed.push(read);
                out.extend(observed.take());
            }
            debug.push_str(&format!("{observed:?}"));
            observed.finish();
            out.extend(observed.take());
            let place = || format!("the bytes that leave, {split}");
            canary.absent(&String::from_utf8_lossy(&out), place)?;
            canary.absent(&debug, || "the `Debug` of the observed bytes".to_owned())?;
            // What was written after an early end need not be readable to its end.
            let (Ok(chunks) | Err(Undecoded { chunks, .. })) = decoded(format, &out);
            canary.in_chunks(&chunks).map_or(Ok(()), |at| Err(leak(&format!("{}: {at}", place()))))?;
        }
    }
    Ok(())
}

#[cfg(feature = "wire")]
#[derive(Debug)]
struct Undecoded {
    chunks: Vec<Chunk>,
    error: streamkeeper_wire::WireError,
}

#[cfg(feature = "wire")]
impl fmt::Display for Undecoded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

#[cfg(feature = "wire")]
fn decoded(format: streamkeeper_wire::Format, body: &[u8]) -> Result<Vec<Chunk>, Undecoded> {
    let mut decoder = streamkeeper_wire::Decoder::new(format);
    let result = decoder.push(body).and_then(|()| decoder.finish());
    let chunks = std::iter::from_fn(|| decoder.next_chunk()).collect();
    match result {
        Ok(()) => Ok(chunks),
        Err(error) => Err(Undecoded { chunks, error }),
    }
}

fn leak(place: &str) -> Leak {
    Leak { what: format!("the canary is in {place}") }
}

fn nothing_shown() -> Leak {
    Leak { what: "the canary is nowhere in what enters, so this shows nothing".to_owned() }
}

/// What must not get out, as the pieces of it that count.
struct Canary {
    pieces: Vec<String>,
}

/// A shorter piece may stand in a text by accident.
const SHORTEST: usize = 8;

/// Members of one name, whose texts may be pieces of one text: kind of chunk, lane, path.
type Member = (&'static str, String, String);

impl Canary {
    fn new(canary: &str) -> Self {
        let len = canary.len().div_ceil(2).max(SHORTEST).min(canary.len());
        let at = |from: usize| canary.get(from..from + len).map(str::to_owned);
        let mut pieces: Vec<_> = (0..=canary.len() - len).filter_map(at).collect();
        if pieces.is_empty() {
            pieces.push(canary.to_owned());
        }
        Self { pieces }
    }

    fn is_in(&self, text: &str) -> bool {
        self.pieces.iter().any(|piece| text.contains(piece.as_str()))
    }

    fn absent(&self, text: &str, place: impl FnOnce() -> String) -> Result<(), Leak> {
        let is_inside = || serde_json::from_str(text).is_ok_and(|value| self.in_value(&value));
        if self.is_in(text) || is_inside() { Err(leak(&place())) } else { Ok(()) }
    }

    /// Whether it is in a string or a key of a value, or in one that is JSON in turn.
    fn in_value(&self, value: &Value) -> bool {
        let mut found = false;
        leaves(value, &mut String::new(), &mut |_, text| found |= self.is_in(text));
        found
    }

    /// Where it is in chunks, if it is.
    fn in_chunks(&self, chunks: &[Chunk]) -> Option<String> {
        let mut members = BTreeMap::<Member, String>::new();
        for (i, chunk) in chunks.iter().enumerate() {
            let kind = chunk.kind().as_str();
            let value = serde_json::to_value(chunk).unwrap_or_default();
            let lane = chunk.lane().map_or_else(String::new, lane_name);
            let mut place = None;
            leaves(&value, &mut String::new(), &mut |path, text| {
                if self.is_in(text) {
                    place.get_or_insert_with(|| format!("`{path}` of chunk {i} ({kind})"));
                }
                members.entry((kind, lane.clone(), path.to_owned())).or_default().push_str(text);
            });
            if place.is_some() {
                return place;
            }
        }
        // Arguments that came in pieces are JSON once they are joined.
        let is_in = |text: &String| self.absent(text, String::new).is_err();
        members.into_iter().find(|(_, text)| is_in(text)).map(|((kind, lane, path), _)| {
            let lane = if lane.is_empty() { lane } else { format!(" of lane {lane}") };
            format!("the joined `{path}` of the {kind} chunks{lane}")
        })
    }
}

fn lane_name(lane: streamkeeper_contract::Lane) -> String {
    let place = [("choice", lane.choice), ("part", lane.part), ("call", lane.call)];
    let place = place.iter().filter(|(_, number)| *number > 0).map(|(name, number)| format!(", {name} {number}"));
    format!("`{}`{}", lane.channel, place.collect::<String>())
}

/// Visits every string and key with its path; array indices are no part of it. A string that is JSON is visited as what it says, too.
fn leaves(value: &Value, path: &mut String, visit: &mut dyn FnMut(&str, &str)) {
    match value {
        Value::String(text) => {
            visit(path, text);
            if text.starts_with(['{', '[', '"'])
                && let Ok(inner) = serde_json::from_str(text)
            {
                leaves(&inner, path, visit);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| leaves(value, path, visit)),
        Value::Object(members) => {
            for (key, value) in members {
                visit(path, key);
                let len = path.len();
                if len > 0 {
                    path.push('.');
                }
                path.push_str(key);
                leaves(value, path, visit);
                path.truncate(len);
            }
        }
        Value::Number(number) => visit(path, &number.to_string()),
        Value::Null | Value::Bool(_) => {}
    }
}

use std::{
    fmt::{self, Display, Write},
    sync::Mutex,
};

use serde_json::Value;
use streamkeeper_contract::{Outcome, Usage};
use streamkeeper_wire::Decoder;

use crate::{
    failure::Exit,
    invocation::Invocation,
    tally::{Counts, lock},
};

/// What the observers did and how an invocation went, for people.
pub(crate) struct Summary<'a> {
    pub(crate) outcome: &'a Outcome,
    pub(crate) invocation: &'a Invocation,
    pub(crate) verdicts: &'a Mutex<Counts>,
}

/// The exit code of an outcome.
pub(crate) fn exit_of(outcome: &Outcome) -> Exit {
    match outcome {
        Outcome::Finished { .. } => Exit::Finished,
        Outcome::Stopped(_) => Exit::Stopped,
        _ => Exit::Stream,
    }
}

impl Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let invocation = self.invocation;
        line(f, "outcome", self.outcome)?;
        line(f, "format", source(invocation.decoder()))?;
        let told = invocation.told.state();
        if let Some(metrics) = &told.metrics {
            line(f, "delivered", delivered(metrics))?;
            line(f, "timing", timing(metrics))?;
        }
        if let Some(usage) = invocation.stack().usage() {
            line(f, "usage", tokens(usage))?;
        }
        self.verdicts(f)?;
        let events = told.events.iter().map(|((channel, name), count)| format!("{channel}/{name} × {count}"));
        line(f, "events", listed(events))?;
        for (i, failure) in told.failures.iter().enumerate() {
            line(f, if i == 0 { "failures" } else { "" }, failure)?;
        }
        if told.failure_count > told.failures.len() as u64 {
            line(f, "", format_args!("{} in all", told.failure_count))?;
        }
        Ok(())
    }
}

impl Summary<'_> {
    /// What each observer did, in order of registration, then what the stack did for all of them.
    fn verdicts(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = lock(self.verdicts);
        let of = |who: Option<&str>| {
            let mine = counts.iter().filter(move |((observer, _), _)| observer.as_deref() == who);
            listed(mine.map(|((_, action), count)| format!("{action} × {count}")))
        };
        let mut label = "verdicts";
        for id in self.invocation.stack().observers().iter() {
            line(f, label, format_args!("{id}: {}", of(Some(id.as_str()))))?;
            label = "";
        }
        if counts.keys().any(|(observer, _)| observer.is_none()) {
            line(f, label, format_args!("the stack: {}", of(None)))?;
        }
        Ok(())
    }
}

fn source(decoder: &Decoder) -> String {
    let stats = decoder.stats();
    let mut text = decoder.format().map_or_else(|| "unknown".to_owned(), |format| format.to_string());
    if let Some(framing) = decoder.framing() {
        let _ = write!(text, " ({})", framing.name());
    }
    let _ = write!(text, ", {} bytes, {} events", stats.bytes, stats.events);
    for (count, what) in [(stats.unknown, "unknown"), (stats.invalid_utf8, "places with invalid UTF-8")] {
        if count > 0 {
            let _ = write!(text, ", {count} {what}");
        }
    }
    if stats.unterminated {
        text.push_str(", the last one unterminated");
    }
    if stats.cut_off {
        text.push_str(", cut off inside an event");
    }
    text
}

fn line(f: &mut fmt::Formatter<'_>, label: &str, value: impl Display) -> fmt::Result {
    writeln!(f, "{label:10} {value}")
}

fn listed(items: impl Iterator<Item = String>) -> String {
    let items: Vec<_> = items.collect();
    if items.is_empty() { "none".to_owned() } else { items.join(", ") }
}

fn number(metrics: &Value, field: &str) -> Option<u64> {
    metrics.get(field).and_then(Value::as_u64)
}

fn delivered(metrics: &Value) -> String {
    let bytes = number(metrics, "delivered_bytes").unwrap_or_default();
    let mut text = format!("{bytes} bytes of text in {} chunks", number(metrics, "chunks").unwrap_or_default());
    if let Some(withheld) = number(metrics, "withheld_bytes").filter(|bytes| *bytes > 0) {
        let _ = write!(text, ", {withheld} bytes withheld");
    }
    if let Some(calls) = number(metrics, "tool_calls").filter(|calls| *calls > 0) {
        let _ = write!(text, ", {calls} tool calls");
    }
    text
}

fn timing(metrics: &Value) -> String {
    let at = |field| number(metrics, field).map(milliseconds);
    let mut parts = Vec::new();
    for (field, what) in [("first_chunk_us", "first chunk"), ("first_text_us", "first text"), ("duration_us", "all")] {
        if let Some(at) = at(field) {
            parts.push(format!("{what} after {at}"));
        }
    }
    if let Some(longest) = metrics.get("gaps").and_then(|gaps| number(gaps, "max_us")) {
        parts.push(format!("longest gap {}", milliseconds(longest)));
    }
    parts.join(", ")
}

fn milliseconds(us: u64) -> String {
    format!("{}.{} ms", us / 1000, us % 1000 / 100)
}

/// Tokens in words: what the provider stated, where it did.
pub(crate) fn tokens(usage: &Usage) -> String {
    let buckets = [
        ("input", usage.input()),
        ("of that cached", usage.cache_read),
        ("written to the cache", usage.cache_write),
        ("output", usage.output_total()),
        ("of that reasoning", usage.reasoning),
    ];
    let known = buckets.into_iter().filter_map(|(name, tokens)| Some(format!("{name} {}", tokens?)));
    let mut text = listed(known);
    if usage.estimated {
        text.push_str(", in part estimated");
    }
    text
}

//! No known format: an event is an error, if it states one as most providers do, or a `raw` chunk.

use streamkeeper_contract::{Body, FinishReason, Raw, Text};

use crate::output::Output;

use super::{Dialect, Event, chunks::finish, error_event, error_first};

/// Reads anything. A clean end of the body is the end: nothing else can be told.
#[derive(Debug, Default)]
pub(super) struct Anything;

impl Dialect for Anything {
    fn event(&mut self, event: &Event<'_>, out: &mut Output) {
        let is_first = out.known + out.unknown == 0;
        out.known += 1;
        if let Some(error) =
            error_event(event.name, event.data).or_else(|| is_first.then(|| error_first(event.data))?)
        {
            return out.error(error);
        }
        out.push(Body::Raw(Box::new(Raw { event: event.name.map(Text::from), data: event.data.into() })));
    }

    fn finish(&mut self, out: &mut Output) {
        out.ended = true;
        if !out.failed {
            out.push(finish(0, FinishReason::Unstated, None));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{named, read};
    use crate::Format;

    // spec 2.4, 2.10
    #[test]
    fn every_event_is_kept_and_a_clean_end_is_the_end() {
        let (lines, out) = named(Format::Raw, &[("output", "plain text"), ("", "")]);
        assert_eq!(lines, ["raw output plain text", "raw - ", "finish 0 unstated (-)"]);
        assert!(out.ended && out.unknown == 0);
        assert_eq!(read(Format::Raw, &[]).0, ["finish 0 unstated (-)"]);
    }
}

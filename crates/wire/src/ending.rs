//! Ends of streams that did not end by themselves, before they are put into a format.

use std::borrow::Cow;

use streamkeeper_contract::Outcome;

use crate::json::Quoted;

/// Why a stream ends before its end, in the words of wires.
#[derive(Debug)]
pub(crate) struct Ending<'a> {
    /// Somebody who may do so stopped it: a guard. Else something went wrong.
    pub(crate) is_stop: bool,
    /// A stable machine code.
    pub(crate) code: &'a str,
    /// For people. No words of a model or provider.
    pub(crate) words: Cow<'a, str>,
    pub(crate) outcome: &'a Outcome,
}

impl<'a> Ending<'a> {
    /// `None` if the stream ended by itself.
    pub(crate) fn of(outcome: &'a Outcome) -> Option<Self> {
        let (is_stop, code, words): (bool, &str, Cow<'_, str>) = match outcome {
            Outcome::Finished { .. } => return None,
            Outcome::Stopped(stop) => (true, &stop.code, Cow::Borrowed(&stop.reason)),
            Outcome::Failed { error } => match &error.component {
                Some(component) => (true, &error.code, format!("{component} failed").into()),
                None => (false, &error.code, "the stream failed".into()),
            },
            Outcome::Truncated => (false, "truncated", "the stream ended before its end".into()),
            Outcome::Aborted { .. } => (false, "aborted", "the stream was aborted".into()),
            Outcome::Suspended { .. } => (false, "suspended", "the run waits for an answer".into()),
            Outcome::Dropped => (false, "dropped", "the stream was dropped".into()),
            other => (false, other.code(), "the stream ended early".into()),
        };
        Some(Self { is_stop, code, words, outcome })
    }
}

/// Events that more than one writer of a format needs.
impl Ending<'_> {
    /// The error event of OpenAI's streams.
    pub(crate) fn openai_error(&self) -> String {
        let (code, words) = (Quoted(self.code), Quoted(&self.words));
        format!(r#"{{"error":{{"message":{words},"type":"stream_error","param":null,"code":{code}}}}}"#)
    }

    /// The error event of Anthropic's streams, without braces and type.
    pub(crate) fn anthropic_error(&self) -> String {
        format!(r#""error":{{"type":{},"message":{}}}"#, Quoted(self.code), Quoted(&self.words))
    }

    /// The one end of an AG-UI run.
    pub(crate) fn ag_ui_terminal(&self, thread: &str, run: &str) -> String {
        let (thread, run) = (Quoted(thread), Quoted(run));
        if let Outcome::Suspended { interrupts } = self.outcome
            && !interrupts.is_empty()
        {
            let interrupts: Vec<&str> = interrupts.iter().map(|json| json.as_str()).collect();
            return format!(
                r#"{{"type":"RUN_FINISHED","threadId":{thread},"runId":{run},"outcome":{{"type":"interrupt","interrupts":[{}]}}}}"#,
                interrupts.join(",")
            );
        }
        format!(r#"{{"type":"RUN_ERROR","message":{},"code":{}}}"#, Quoted(&self.words), Quoted(self.code))
    }
}

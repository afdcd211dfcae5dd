use std::fmt::Write;

use streamkeeper_wire::{Decoder, InspectedCall, Inspection, WireError};

use crate::{
    args::Inspect,
    failure::{Exit, Failure},
    input::Input,
    output::Out,
};

pub(crate) fn run(args: &Inspect) -> Result<Exit, Failure> {
    let mut input = Input::open(&args.file)?;
    if let Some(bytes) = args.chunk_bytes {
        input = input.at_most(usize::try_from(bytes).unwrap_or(usize::MAX));
    }
    let mut decoder = args.format.format.map_or_else(Decoder::detect, Decoder::new);
    let mut inspection = Inspection::new();
    let error = decode(&mut input, &mut decoder, &mut inspection)?;
    if let Some(error) = &error {
        // Nothing was read: there is nothing to show but why.
        if matches!(error, WireError::Empty | WireError::Undetected | WireError::WrongFormat { .. }) {
            return Err(Failure::stream(format!("{}: {error}", input.name())));
        }
        inspection.fail(error);
    }
    inspection.finish(&decoder.stats(), decoder.format());
    let text = if args.json { json(&inspection)? } else { table(&inspection, &decoder, error.as_ref()) };
    Out::stdout().write(text.as_bytes())?;
    Ok(if inspection.outcome == "finished" { Exit::Finished } else { Exit::Stream })
}

fn decode(input: &mut Input, decoder: &mut Decoder, inspection: &mut Inspection) -> Result<Option<WireError>, Failure> {
    loop {
        let (result, is_over) = match input.read()? {
            Some(bytes) => (decoder.push(bytes), false),
            None => (decoder.finish(), true),
        };
        while let Some(chunk) = decoder.next_chunk() {
            inspection.chunk(&chunk);
        }
        match result {
            Err(error) => return Ok(Some(error)),
            Ok(()) if is_over => return Ok(None),
            Ok(()) => {}
        }
    }
}

fn json(inspection: &Inspection) -> Result<String, Failure> {
    let json = serde_json::to_string(inspection);
    json.map(|json| json + "\n").map_err(|error| Failure::stream(format!("cannot write JSON: {error}")))
}

fn table(inspection: &Inspection, decoder: &Decoder, error: Option<&WireError>) -> String {
    let mut out = String::new();
    let mut line = |label: &str, value: &str| {
        if !value.is_empty() {
            // Writing to a string cannot fail.
            let _ = writeln!(out, "{label:10} {value}");
        }
    };
    let framing = decoder.framing().map(|framing| format!(" ({})", framing.name())).unwrap_or_default();
    line("format", &format!("{}{framing}", inspection.format.unwrap_or("unknown")));
    line("model", inspection.model.as_deref().unwrap_or_default());
    line("events", &inspection.n_events.to_string());
    let outcome = match (&inspection.finish, error) {
        (_, Some(error)) => format!("{}: {error}", inspection.outcome),
        (Some(finish), None) => format!("{} ({finish})", inspection.outcome),
        (None, None) => inspection.outcome.to_owned(),
    };
    line("outcome", &outcome);
    let usage = &inspection.usage;
    let usage = [
        ("input", usage.input),
        ("output", usage.output),
        ("cached", usage.cached),
        ("reasoning", usage.reasoning),
        ("cache write", usage.cache_write),
    ];
    let usage: Vec<_> = usage.iter().filter_map(|(name, n)| Some(format!("{name} {}", (*n)?))).collect();
    line("usage", &usage.join(", "));
    line("reasoning", &indented(&inspection.reasoning));
    line("refusal", &indented(&inspection.refusal));
    if inspection.choices.len() > 1 {
        for choice in &inspection.choices {
            line("text", &format!("[choice {}] {}", choice.index, indented(&choice.text)));
        }
    } else {
        line("text", &indented(&inspection.text));
    }
    for (label, calls) in [("call", &inspection.tool_calls), ("ran", &inspection.server_tool_calls)] {
        for call in calls {
            line(label, &shown(call));
        }
    }
    out
}

/// Lines behind the first stand under it.
fn indented(text: &str) -> String {
    text.trim_end().replace('\n', "\n           ")
}

fn shown(call: &InspectedCall) -> String {
    let id = call.id.as_ref().map(|id| format!("  [{id}]")).unwrap_or_default();
    format!("{}({}){id}", call.name, call.arguments.as_deref().unwrap_or_default())
}

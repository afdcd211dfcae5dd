use std::{
    fs::File,
    io::{BufWriter, Write},
    sync::{Arc, Mutex},
    time::Instant,
};

use streamkeeper_contract::Outcome;
use streamkeeper_stream::Recorder;
use streamkeeper_wire::WireError;

use crate::{
    args::{Emit, Observe},
    failure::{Exit, Failure},
    input::Input,
    invocation::{Delivered, Invocation},
    observers::observers,
    output::{Out, Progress, answer, json_line},
    summary::{Summary, exit_of},
    tally::{Counts, Tally},
};

pub(crate) fn run(args: &Observe) -> Result<Exit, Failure> {
    let observers = observers(&args.halt)?;
    let mut input = Input::open(&args.file)?;
    let is_wire = args.emit == Emit::Wire;
    let recorder = recorder(args)?;
    let mut invocation = Invocation::new(args.format.format, is_wire, &observers, &args.call_class, recorder);
    let mut out = Out::stdout();
    let mut progress = Progress::new();
    let start = Instant::now();
    let mut delivered = Delivered::default();
    let mut count = 0;
    let outcome = loop {
        let ended = match input.read()? {
            Some(bytes) => invocation.push(bytes, start.elapsed().into(), &mut delivered),
            None => invocation.finish(start.elapsed().into(), &mut delivered),
        };
        write(args.emit, &delivered, &mut out)?;
        count += delivered.chunks.len() as u64;
        delivered.clear();
        if let Some(outcome) = ended {
            break outcome;
        }
        progress.show(invocation.decoder().stats().bytes, count);
    };
    progress.clear();
    if let Some(error @ (WireError::Empty | WireError::Undetected | WireError::WrongFormat { .. })) = &invocation.error
    {
        return Err(Failure::stream(format!("{}: {error}", input.name())));
    }
    report(args.emit, &invocation, &outcome, &mut out)?;
    if args.record.is_some() && invocation.told.has_failed("recorder") {
        return Err(Failure::usage("the recording could not be written to its end"));
    }
    Ok(exit_of(&outcome))
}

/// Verdicts are counted whether or not the recording is kept.
fn recorder(args: &Observe) -> Result<(Recorder, Arc<Mutex<Counts>>), Failure> {
    let to: Box<dyn Write + Send> = match &args.record {
        Some(path) => {
            let file = File::create(path).map_err(|error| Failure::file(path, "write", &error))?;
            Box::new(BufWriter::new(file))
        }
        None => Box::new(std::io::sink()),
    };
    let (tally, counts) = Tally::new(to);
    let recorder = if args.raw { Recorder::raw_sensitive(tally) } else { Recorder::delivered(tally) };
    Ok((recorder, counts))
}

fn write(emit: Emit, delivered: &Delivered, out: &mut Out) -> Result<(), Failure> {
    match emit {
        Emit::Text => {
            let text: String = delivered.chunks.iter().filter_map(answer).collect();
            out.write(text.as_bytes())
        }
        Emit::Chunks => {
            let lines = delivered.chunks.iter().map(json_line).collect::<Result<Vec<_>, _>>()?;
            out.write(&lines.concat())
        }
        Emit::Wire => out.write(&delivered.wire),
    }
}

fn report(emit: Emit, invocation: &Invocation, outcome: &Outcome, out: &mut Out) -> Result<(), Failure> {
    let summary = Summary { outcome, invocation };
    if emit == Emit::Text {
        out.end_line()?;
        return out.write(format!("\n{summary}").as_bytes());
    }
    // Nobody may be there to read it, which is no fault of the stream.
    let _ = write!(std::io::stderr(), "{summary}");
    Ok(())
}

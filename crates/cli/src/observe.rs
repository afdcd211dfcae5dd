use std::{
    fs::File,
    io::{BufWriter, Write},
    sync::{Arc, Mutex},
};

use streamkeeper_contract::Outcome;
use streamkeeper_stream::Recorder;
use streamkeeper_wire::WireError;

use crate::{
    args::{Emit, Observe},
    failure::{Exit, Failure},
    input::Input,
    invocation::{Delivered, Invocation, To, read_all},
    observers::observers,
    output::{Out, answer, json_line},
    summary::{Summary, exit_of},
    tally::{Counts, Tally},
};

pub(crate) fn run(args: &Observe) -> Result<Exit, Failure> {
    let observers = observers(&args.observers)?;
    let mut input = Input::open(&args.file)?;
    let (recorder, verdicts) = recorder(args)?;
    let to = if args.emit == Emit::Wire { To::Bytes } else { To::Chunks };
    let mut invocation = Invocation::new(args.format.format, to, &observers, &args.call_class, Some(recorder));
    let mut out = Out::stdout();
    let outcome = read_all(&mut input, &mut invocation, |delivered| write(args.emit, delivered, &mut out))?;
    if let Some(why) = is_unreadable(&outcome) {
        return Err(Failure::stream(format!("{}: {why}", input.name())));
    }
    report(args.emit, &Summary { outcome: &outcome, invocation: &invocation, verdicts: &verdicts }, &mut out)?;
    if args.record.is_some() && invocation.told.has_failed("recorder") {
        return Err(Failure::usage("the recording could not be written to its end"));
    }
    Ok(exit_of(&outcome))
}

/// Why nothing could be read: then there is nothing to sum up either.
fn is_unreadable(outcome: &Outcome) -> Option<&str> {
    let codes = [WireError::Empty.code(), WireError::Undetected.code(), "wrong_format"];
    match outcome {
        Outcome::Failed { error } if codes.contains(&error.code.as_str()) => error.message.as_deref(),
        _ => None,
    }
}

/// Verdicts are counted whether or not the recording is kept.
fn recorder(args: &Observe) -> Result<(Recorder, Arc<Mutex<Counts>>), Failure> {
    let to: Box<dyn Write + Send> = match &args.record {
        Some(path) => {
            // Creating it would empty the stream that is to be read.
            if let (Ok(input), Ok(record)) = (args.file.canonicalize(), path.canonicalize())
                && input == record
            {
                return Err(Failure::usage(format!("--record {} is the stream itself", path.display())));
            }
            let file = File::create(path).map_err(|error| Failure::file(path, "write", &error))?;
            Box::new(BufWriter::new(file))
        }
        None => Box::new(std::io::sink()),
    };
    let (tally, counts) = Tally::new(to);
    let recorder = if args.raw { Recorder::raw_sensitive(tally) } else { Recorder::delivered(tally) };
    Ok((recorder, counts))
}

fn write(emit: Emit, delivered: Delivered, out: &mut Out) -> Result<(), Failure> {
    match delivered {
        Delivered::Bytes(bytes) => out.write(&bytes),
        Delivered::Chunks(chunks) if emit == Emit::Chunks => {
            let lines = chunks.iter().map(json_line).collect::<Result<Vec<_>, _>>()?;
            out.write(&lines.concat())
        }
        Delivered::Chunks(chunks) => {
            let text: String = chunks.iter().filter_map(answer).collect();
            out.write(text.as_bytes())
        }
    }
}

fn report(emit: Emit, summary: &Summary<'_>, out: &mut Out) -> Result<(), Failure> {
    if emit == Emit::Text {
        out.end_line()?;
        return out.write(format!("\n{summary}").as_bytes());
    }
    // Nobody may be there to read it, which is no fault of the stream.
    let _ = write!(std::io::stderr(), "{summary}");
    Ok(())
}

use std::{io::Write, sync::Arc, time::Instant};

use streamkeeper_contract::Outcome;
use streamkeeper_wire::WireError;

use crate::{
    args::{Emit, Observe},
    failure::{Exit, Failure},
    input::Input,
    invocation::Invocation,
    observers::observers,
    output::{Out, Progress, answer, json_line},
    summary::{Summary, exit_of},
};

pub(crate) fn run(args: &Observe) -> Result<Exit, Failure> {
    let observers = observers(&args.halt)?;
    let mut input = Input::open(&args.file)?;
    let mut invocation = Invocation::new(args.format.format, &observers, &args.call_class);
    let mut out = Out::stdout();
    let mut progress = Progress::new();
    let start = Instant::now();
    let mut delivered = 0;
    let outcome = loop {
        match input.read()? {
            Some(bytes) => invocation.push(bytes, start.elapsed().into()),
            None => invocation.finish(start.elapsed().into()),
        }
        while let Some(chunk) = invocation.pop() {
            delivered += 1;
            match args.emit {
                Emit::Text => out.write(answer(&chunk).unwrap_or_default().as_bytes())?,
                Emit::Chunks => out.write(&json_line(&chunk)?)?,
            }
        }
        // Once the outcome is decided the source is not asked again.
        if let Some(outcome) = invocation.stack.outcome() {
            break Arc::clone(outcome);
        }
        progress.show(invocation.decoder.stats().bytes, delivered);
    };
    progress.clear();
    if let Some(error @ (WireError::Empty | WireError::Undetected | WireError::WrongFormat { .. })) = &invocation.error
    {
        return Err(Failure::stream(format!("{}: {error}", input.name())));
    }
    report(args, &invocation, &outcome, &mut out)?;
    Ok(exit_of(&outcome))
}

fn report(args: &Observe, invocation: &Invocation, outcome: &Outcome, out: &mut Out) -> Result<(), Failure> {
    let stats = invocation.decoder.stats();
    let summary = Summary {
        outcome,
        format: invocation.decoder.format(),
        framing: invocation.decoder.framing(),
        stats: &stats,
        usage: invocation.usage.as_ref(),
        observers: invocation.stack.observers(),
        verdicts: &[],
        told: &invocation.told,
    };
    if args.emit == Emit::Text {
        out.end_line()?;
        return out.write(format!("\n{summary}").as_bytes());
    }
    // Nobody may be there to read it, which is no fault of the stream.
    let _ = write!(std::io::stderr(), "{summary}");
    Ok(())
}

//! The `streamkeeper` command: takes recorded or live streams of language models through observers, and says what is in them.
#![forbid(unsafe_code)]

mod args;
mod convert;
mod explain;
mod failure;
mod input;
mod inspect;
mod invocation;
mod observe;
mod observers;
mod output;
mod policy;
mod replay;
mod summary;
mod tally;
mod told;

use std::{io::Write, process::ExitCode};

use clap::{Parser, error::ErrorKind};

use args::{Args, Command};
use failure::{Exit, Failure};

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            // Clap's own exit code for a wrong argument is 2, which here means that the stream failed.
            let asked = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
            let _ = error.print();
            return if asked { Exit::Finished } else { Exit::Usage }.into();
        }
    };
    let result = match &args.command {
        Command::Replay(args) => replay::run(args),
        Command::Explain(args) => explain::run(args),
        Command::Inspect(args) => inspect::run(args),
        Command::Convert(args) => convert::run(args),
        Command::Observe(args) => observe::run(args),
        Command::Policy(args) => policy::run(args),
    };
    match result {
        Ok(exit) => exit.into(),
        Err(Failure::ReaderGone) => Exit::Finished.into(),
        Err(Failure::Message(message, exit)) => {
            let _ = writeln!(std::io::stderr(), "streamkeeper: {message}");
            exit.into()
        }
    }
}

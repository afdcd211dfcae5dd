//! Runs the vectors: `streamkeeper-conformance [--filter TEXT] [--exec COMMAND]`.
//!
//! With `--answer` it is the other side of the protocol instead: it reads requests from stdin and answers them with our own crates.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command talks to the person who runs it")]

use std::{io::BufRead, process::ExitCode};

use streamkeeper_conformance::{Process, Report, answer, observers, stream, wire};

const USAGE: &str = "usage: streamkeeper-conformance [--filter TEXT] [--exec COMMAND | --answer]";

fn main() -> ExitCode {
    let (mut filter, mut exec, mut answering) = (String::new(), None, false);
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match (arg.as_str(), args.next()) {
            ("--filter", Some(text)) => filter = text,
            ("--exec", Some(command)) => exec = Some(command),
            ("--answer", None) => answering = true,
            _ => {
                eprintln!("{USAGE}");
                return ExitCode::from(2);
            }
        }
    }
    if answering {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            println!("{}", answer(&line));
        }
        return ExitCode::SUCCESS;
    }
    let mut report = Report::default();
    match exec.map(|command| Process::start(&command)) {
        None => {
            report.merge(wire::run(&filter, &mut wire::Ours));
            report.merge(stream::run(&filter, &mut stream::Ours));
            report.merge(observers::run(&filter, &mut observers::Registered::bundled()));
        }
        Some(Ok(mut process)) => {
            report.merge(wire::run(&filter, &mut process));
            report.merge(stream::run(&filter, &mut process));
            report.merge(observers::run(&filter, &mut process));
        }
        Some(Err(error)) => {
            eprintln!("cannot start the program: {error}");
            return ExitCode::from(2);
        }
    }
    println!("{report}");
    if report.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

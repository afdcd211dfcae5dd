//! `cargo xtask`: what the project does with itself. Run it without arguments for the list of tasks.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a task talks to the person who runs it")]

mod arch;
mod ci;
mod fixtures;
mod gates;
mod peers;
mod run;
mod schema;

use std::process::ExitCode;

use run::{Result, cargo};

const USAGE: &str = "\
usage: cargo xtask TASK

  test [--peers] [ARGS]   every test of the workspace; needs the Rust toolchain alone
                          --peers adds the tests against official Python SDKs, and sets those up in target/peers
                          ARGS go to `cargo test`
  conformance [--filter TEXT] [--exec COMMAND]
                          the vectors of crates/conformance against our crates, or against a command that speaks
                          the protocol of docs/conformance.md
  bench [ARGS]            the benches; ARGS go to `cargo bench`
  gates                   the budgets for instructions, counted by valgrind, which is set up if it is not there
  arch                    the invariants of docs/architecture.md that a machine can check
  examples                every example, to its end
  fixtures [--check]      writes the binary fixtures of examples/streams, or checks that they are what they should be
  schema [--check]        writes docs/policy.schema.json, or checks that it is current
  ci                      everything that has to pass before a change lands
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match task(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("\nxtask: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn task(args: &[&str]) -> Result {
    match args {
        ["test", "--peers", rest @ ..] => test(rest).and_then(|()| peers::run()),
        ["test", rest @ ..] => test(rest),
        ["conformance", rest @ ..] => conformance(rest),
        ["bench", rest @ ..] => cargo("bench").args(["--package", "streamkeeper-benches"]).args(rest).run(),
        ["gates"] => gates::run(),
        ["arch"] => arch::check(),
        ["examples"] => arch::run_examples(),
        ["fixtures"] => fixtures::write(),
        ["fixtures", "--check"] => fixtures::check(),
        ["schema"] => schema::write(),
        ["schema", "--check"] => schema::check(),
        ["ci"] => ci::run(),
        [] | ["--help" | "-h" | "help"] => {
            print!("{USAGE}");
            Ok(())
        }
        [other, ..] => Err(format!("there is no task `{other}`\n\n{USAGE}")),
    }
}

/// The README's test command. Doctests are a part of it.
fn test(rest: &[&str]) -> Result {
    cargo("test").args(["--workspace", "--all-features"]).args(rest).run()
}

fn conformance(rest: &[&str]) -> Result {
    let bin =
        ["--quiet", "--package", "streamkeeper-conformance", "--all-features", "--bin", "streamkeeper-conformance"];
    cargo("run").args(bin).arg("--").args(rest).run()
}

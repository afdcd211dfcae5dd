//! The command as a user meets it: arguments and bytes in; stdout, stderr and an exit code out.
//!
//! Holds spec 2.1, 2.4, 2.8, 3.5, 3.11, 3.14, 6.8 from the outside.

#![expect(clippy::print_stderr, reason = "a test that cannot run says so")]

mod bad_input;
mod inspect;
mod observe;
mod policy;
mod recordings;

use std::{
    io::Write,
    path::PathBuf,
    process::{Command, Output, Stdio},
};

/// A stream of `examples/streams`.
fn fixture(name: &str) -> PathBuf {
    streams().join(name)
}

fn streams() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/streams")
}

/// The recorded streams, which are no part of the project. Says so on stderr if they are not there.
fn recorded() -> Option<PathBuf> {
    let folder = std::env::var_os("STREAMKEEPER_STREAMS")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/streams"), PathBuf::from);
    if folder.join("TRUTH.jsonl").exists() {
        return Some(folder);
    }
    eprintln!("SKIPPED: recorded streams not found at {}", folder.display());
    None
}

/// What a run of the command gave.
struct Ran {
    code: i32,
    stdout: Vec<u8>,
    stderr: String,
}

impl Ran {
    fn out(&self) -> &str {
        std::str::from_utf8(&self.stdout).expect("stdout is UTF-8")
    }

    #[track_caller]
    fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stderr: {}\nstdout: {}", self.stderr, String::from_utf8_lossy(&self.stdout));
        self
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let stderr = String::from_utf8(output.stderr).expect("stderr is UTF-8");
        assert!(!stderr.contains("panicked"), "{stderr}");
        Self { code: output.status.code().expect("it was not killed"), stdout: output.stdout, stderr }
    }
}

fn command() -> Command {
    Command::new(env!("CARGO_BIN_EXE_streamkeeper"))
}

/// Runs it with arguments; a word that is the name of a fixture becomes its path.
fn run(args: &[&str]) -> Ran {
    command().args(args.iter().map(|arg| path_of(arg))).stdin(Stdio::null()).output().expect("it starts").into()
}

fn path_of(arg: &str) -> PathBuf {
    let path = fixture(arg);
    if arg.contains('.') && path.is_file() { path } else { PathBuf::from(arg) }
}

/// Runs it with these bytes on stdin.
fn feed(args: &[&str], stdin: &[u8]) -> Ran {
    let mut child = command()
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut pipe = child.stdin.take().expect("stdin is piped");
    let stdin = stdin.to_vec();
    // It may end before it has read everything.
    let writer = std::thread::spawn(move || drop(pipe.write_all(&stdin)));
    let output = child.wait_with_output().expect("it ends");
    writer.join().expect("the writer ends");
    output.into()
}

/// A folder of this test's own, empty.
fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("the folder can be made");
    folder
}

/// The lines of a JSON Lines file.
fn json_lines(text: &str) -> Vec<serde_json::Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect()
}

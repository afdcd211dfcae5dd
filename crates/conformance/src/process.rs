use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, sync_channel},
    time::Duration,
};

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::NoAnswer;

/// An implementation in any language: a program that reads one request a line and writes one answer a line.
///
/// `docs/conformance.md` describes requests and answers. The program is started once, by `sh -c`, asked all cases one after the other,
/// and ended when this is dropped. An answer that takes longer than 60 seconds, or is no JSON, fails its case; a program that has ended
/// fails all later ones.
///
/// ```no_run
/// let mut theirs = streamkeeper_conformance::Process::start("python3 my_decoder.py")?;
/// # #[cfg(feature = "wire")]
/// println!("{}", streamkeeper_conformance::wire::run("", &mut theirs));
/// # Ok::<_, std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Process {
    child: Child,
    requests: ChildStdin,
    answers: Receiver<String>,
}

const DEADLINE: Duration = Duration::from_secs(60);

impl Process {
    /// Starts the program. Its stderr goes to ours.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(command: &str) -> std::io::Result<Self> {
        let mut child =
            Command::new("sh").args(["-c", command]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let missing = || std::io::Error::other("the program has no stdin or stdout");
        let requests = child.stdin.take().ok_or_else(missing)?;
        let stdout = child.stdout.take().ok_or_else(missing)?;
        let (sender, answers) = sync_channel(1);
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Self { child, requests, answers })
    }

    /// Sends a request and waits for its answer.
    pub(crate) fn ask<A: DeserializeOwned>(&mut self, request: &impl Serialize) -> Result<A, NoAnswer> {
        let broken = |what: String| NoAnswer::Broken(what);
        let mut line = serde_json::to_string(request).map_err(|error| broken(error.to_string()))?;
        line.push('\n');
        let sent = self.requests.write_all(line.as_bytes()).and_then(|()| self.requests.flush());
        sent.map_err(|error| broken(format!("the program takes no requests ({error})")))?;
        let answer = self.answers.recv_timeout(DEADLINE).map_err(|error| match error {
            RecvTimeoutError::Timeout => broken(format!("nothing came within {} seconds", DEADLINE.as_secs())),
            RecvTimeoutError::Disconnected => broken("the program has ended".to_owned()),
        })?;
        let answer: Value = serde_json::from_str(&answer).map_err(|error| broken(format!("it is no JSON: {error}")))?;
        if let Some(why) = answer.get("unsupported") {
            return Err(NoAnswer::Unsupported(why.as_str().unwrap_or_default().to_owned()));
        }
        serde_json::from_value(answer).map_err(|error| broken(format!("it has another shape: {error}")))
    }
}

/// The other side of the protocol: answers one request with our own crates. What a program in Rust does with each line of its stdin.
///
/// A request that cannot be read, or is for a layer whose feature is off, gets an `unsupported` answer.
///
/// ```
/// use streamkeeper_conformance::answer;
///
/// assert!(answer("{}").starts_with(r#"{"unsupported":"#));
/// ```
pub fn answer(request: &str) -> String {
    let result =
        serde_json::from_str::<Value>(request).map_err(|error| NoAnswer::Broken(error.to_string())).and_then(answer_of);
    result.unwrap_or_else(|error| serde_json::json!({"unsupported": error.to_string()})).to_string()
}

fn answer_of(request: Value) -> Result<Value, NoAnswer> {
    let layer = request.get("layer").and_then(Value::as_str).unwrap_or_default().to_owned();
    match layer.as_str() {
        #[cfg(feature = "wire")]
        "wire" => {
            let request: crate::wire::Request = read(request)?;
            write(&crate::WireImplementation::decode(&mut crate::wire::Ours, &request.try_into()?)?)
        }
        #[cfg(feature = "stream")]
        "stream" => write(&crate::StreamImplementation::observe(&mut crate::stream::Ours, &read(request)?)?),
        #[cfg(feature = "observers")]
        "observers" => {
            let mut ours = crate::observers::Registered::bundled();
            write(&crate::ObserversImplementation::observe(&mut ours, &read(request)?)?)
        }
        other => Err(NoAnswer::Unsupported(format!("there is no layer `{other}`"))),
    }
}

fn read<T: DeserializeOwned>(request: Value) -> Result<T, NoAnswer> {
    serde_json::from_value(request).map_err(|error| NoAnswer::Broken(error.to_string()))
}

fn write(answer: &impl Serialize) -> Result<Value, NoAnswer> {
    serde_json::to_value(answer).map_err(|error| NoAnswer::Broken(error.to_string()))
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

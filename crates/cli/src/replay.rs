use std::{fs::File, io::BufReader, path::Path, time::Instant};

use streamkeeper_stream::{Recording, RecordingError};

use crate::{
    args::Replay,
    failure::{Exit, Failure},
    observers::observers,
    output::{Out, answer},
};

pub(crate) fn run(args: &Replay) -> Result<Exit, Failure> {
    let observers = observers(&args.observers)?;
    let raw = read(&args.recording)?.into_raw();
    let raw = raw.map_err(|error| Failure::usage(format!("{}: {error}", args.recording.display())))?;
    let mut out = Out::stdout();
    let mut replay = raw.replay(&observers);
    let start = Instant::now();
    while let Some(at) = replay.next_offset() {
        if args.real_time {
            std::thread::sleep(at.duration().saturating_sub(start.elapsed()));
        }
        let Some(step) = replay.next() else { break };
        let text: String = step.chunks.iter().filter_map(answer).collect();
        out.write(text.as_bytes())?;
    }
    out.end_line()?;
    match replay.run().difference {
        None => {
            out.write(b"\nno difference\n")?;
            Ok(Exit::Finished)
        }
        Some(difference) => {
            out.write(format!("\nfirst difference {difference}\n").as_bytes())?;
            Ok(Exit::Differs)
        }
    }
}

/// Reads a recording.
pub(crate) fn read(path: &Path) -> Result<Recording, Failure> {
    let file = File::open(path).map_err(|error| Failure::file(path, "read", &error))?;
    Recording::read(BufReader::new(file)).map_err(|error| match error {
        RecordingError::Io { source, .. } => Failure::file(path, "read", &source),
        error => Failure::usage(format!("{}: no recording can be read here: {error}", path.display())),
    })
}

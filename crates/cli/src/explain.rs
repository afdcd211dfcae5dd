use streamkeeper_stream::explain;

use crate::{
    args::Explain,
    failure::{Exit, Failure},
    output::Out,
    replay::read,
};

pub(crate) fn run(args: &Explain) -> Result<Exit, Failure> {
    let recording = read(&args.recording)?;
    Out::stdout().write(format!("{}\n", explain(&recording)).as_bytes())?;
    Ok(Exit::Finished)
}

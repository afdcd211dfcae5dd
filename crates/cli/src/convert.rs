use streamkeeper_contract::CallClass;
use streamkeeper_stream::Observers;
use streamkeeper_wire::encode::Encoder;

use crate::{
    args::Convert,
    failure::{Exit, Failure},
    input::Input,
    invocation::{Delivered, Invocation, To, read_all},
    output::Out,
};

/// The same as observing without observers, with another writer at the end.
pub(crate) fn run(args: &Convert) -> Result<Exit, Failure> {
    let mut input = Input::open(&args.file)?;
    let mut invocation =
        Invocation::new(args.format.format, To::Chunks, &Observers::new(), &CallClass::default(), None);
    let mut encoder = Encoder::new(args.to);
    let mut out = Out::stdout();
    let mut bytes = Vec::new();
    let outcome = read_all(&mut input, &mut invocation, |delivered| {
        if let Delivered::Chunks(chunks) = delivered {
            chunks.iter().for_each(|chunk| encoder.push(chunk, &mut bytes));
        }
        out.write(&bytes)?;
        bytes.clear();
        Ok(())
    })?;
    if outcome.is_finished() {
        return Ok(Exit::Finished);
    }
    Err(Failure::stream(format!("{}: {outcome}", input.name())))
}

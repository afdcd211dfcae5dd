use streamkeeper_contract::Id;
use streamkeeper_observers::{HaltOnPattern, Metrics};
use streamkeeper_stream::{Observers, Registration};

use crate::failure::Failure;

/// The observers that the command line asks for: a halt for each pattern, then the metrics of what they let through.
pub(crate) fn observers(halt: &[String]) -> Result<Observers, Failure> {
    let mut observers = Observers::new();
    for (i, pattern) in halt.iter().enumerate() {
        let id = if i == 0 { "halt".to_owned() } else { format!("halt-{}", i + 1) };
        let id = Id::new(&id).map_err(|error| Failure::usage(error.to_string()))?;
        let halt = HaltOnPattern::pattern(pattern);
        let halt = halt.map_err(|error| Failure::usage(format!("--halt {pattern:?}: {error}")))?;
        register(&mut observers, halt.id(id).registration())?;
    }
    register(&mut observers, Metrics::new().registration())?;
    Ok(observers)
}

fn register(observers: &mut Observers, registration: Registration) -> Result<(), Failure> {
    observers.register(registration).map(|_| ()).map_err(|error| Failure::usage(error.to_string()))
}

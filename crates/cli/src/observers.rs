use streamkeeper_contract::Id;
use streamkeeper_observers::{
    HaltOnPattern, Metrics, NormalizeDialects, PromptLeak, Redact, RedactionSet, Replacement, Vault,
};
use streamkeeper_policy::Policy;
use streamkeeper_stream::{Observers, Registration};
use streamkeeper_text::Pattern;

use crate::{
    args::{ObserverArgs, Replace},
    failure::Failure,
};

/// The observers that the command line asks for, in the order that its help states. Metrics come last, of what all others let through,
/// unless the policy has some.
pub(crate) fn observers(args: &ObserverArgs) -> Result<Observers, Failure> {
    let mut observers = Observers::new();
    if args.normalise {
        register(&mut observers, [NormalizeDialects::new().into()])?;
    }
    if !args.redact.is_empty() {
        register(&mut observers, [redact(&args.redact, args.replace)?.into()])?;
    }
    if let Some(path) = &args.policy {
        let policy = Policy::load(path).map_err(|error| Failure::usage(error.to_string()))?;
        register(&mut observers, policy.observers().iter().cloned())?;
        observers = observers.policy(policy.id().cloned(), policy.hash());
    }
    if let Some(path) = &args.prompt_leak {
        let prompt = std::fs::read_to_string(path).map_err(|error| Failure::file(path, "read", &error))?;
        if prompt.trim().is_empty() {
            return Err(Failure::usage(format!("--prompt-leak {}: the file is empty", path.display())));
        }
        register(&mut observers, [PromptLeak::new().prompt(prompt).into()])?;
    }
    for (i, pattern) in args.halt.iter().enumerate() {
        let id = if i == 0 { "halt".to_owned() } else { format!("halt-{}", i + 1) };
        let id = Id::new(&id).map_err(|error| Failure::usage(error.to_string()))?;
        let halt = HaltOnPattern::pattern(pattern);
        let halt = halt.map_err(|error| Failure::usage(format!("--halt {pattern:?}: {error}")))?;
        register(&mut observers, [halt.id(id).into()])?;
    }
    let metrics = Metrics::new().registration();
    if observers.ids().all(|id| id != metrics.id()) {
        register(&mut observers, [metrics])?;
    }
    Ok(observers)
}

/// The guard of `--redact` and `--replace`.
fn redact(values: &[String], replace: Replace) -> Result<Redact, Failure> {
    let mut redact = Redact::new();
    if values.iter().any(|value| value.trim().is_empty()) {
        return Err(Failure::usage("--redact needs `secrets`, `pii` or NAME=REGEX".to_owned()));
    }
    for value in values {
        let mut rest = value.as_str();
        while !rest.is_empty() {
            let name = &rest[..rest.find([',', '=']).unwrap_or(rest.len())];
            if let Some(regex) = rest[name.len()..].strip_prefix('=') {
                let added = Pattern::regex(name.trim(), regex).and_then(|pattern| redact.pattern(pattern));
                redact = added.map_err(|error| Failure::usage(format!("--redact: {error}")))?;
                break;
            }
            let set = RedactionSet::from_name(name.trim());
            let unknown =
                || Failure::usage(format!("--redact: `{name}` is neither `secrets` nor `pii` nor NAME=REGEX"));
            redact = redact.set(set.ok_or_else(unknown)?);
            rest = rest[name.len()..].trim_start_matches(',');
        }
    }
    let replacement = match replace {
        Replace::Mask => Replacement::Mask,
        Replace::Label => Replacement::Label,
        Replace::Token => Replacement::Token(Vault::new()),
        Replace::Hash => match std::env::var("STREAMKEEPER_HASH_KEY") {
            Ok(key) if !key.is_empty() => Replacement::hash(key),
            _ => {
                return Err(Failure::usage("--replace hash: the variable STREAMKEEPER_HASH_KEY has no key".to_owned()));
            }
        },
    };
    Ok(redact.replacement(replacement))
}

fn register(observers: &mut Observers, more: impl IntoIterator<Item = Registration>) -> Result<(), Failure> {
    observers.extend(more).map(|_| ()).map_err(|error| {
        let hint = "give the one in the policy another `id`, or leave the flag out";
        Failure::usage(format!("{error}; {hint}"))
    })
}

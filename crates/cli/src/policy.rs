use std::fmt::Write;

use streamkeeper_policy::{Policy, PolicyRegistry, Registered};
use streamkeeper_stream::{OnFailure, Role, When};

use crate::{
    args,
    failure::{Exit, Failure},
    output::Out,
};

pub(crate) fn run(args: &args::Policy) -> Result<Exit, Failure> {
    let text = match args {
        args::Policy::Check { file } => {
            let policy = Policy::load(file).map_err(|error| Failure::usage(error.to_string()))?;
            shown(&policy)
        }
        args::Policy::Schema => format!("{:#}\n", PolicyRegistry::bundled().schema()),
    };
    Out::stdout().write(text.as_bytes())?;
    Ok(Exit::Finished)
}

/// What a policy registers, for people: the id and the hash, then a line for each observer, in order.
fn shown(policy: &Policy) -> String {
    let mut text = String::new();
    if let Some(id) = policy.id() {
        let _ = writeln!(text, "policy     {id}");
    }
    let _ = writeln!(text, "hash       {}", policy.hash());
    let rows: Vec<_> = policy.registered().iter().map(row).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths = [width(0), width(1), width(2), width(3)];
    for (i, [id, kind, role, when, failure]) in rows.iter().enumerate() {
        let label = if i == 0 { "observers" } else { "" };
        let [a, b, c, d] = widths;
        let _ = writeln!(text, "{label:10} {id:a$}  {kind:b$}  {role:c$}  {when:d$}  {failure}");
    }
    if rows.is_empty() {
        text.push_str("observers  none\n");
    }
    text
}

fn row(observer: &Registered) -> [String; 5] {
    let when = match &observer.when {
        When::Class(class) => format!("{class} calls"),
        _ => "all calls".to_owned(),
    };
    let failure = match (&observer.on_failure, observer.role) {
        (_, Role::Watcher) => "if it fails, nothing happens to the stream".to_owned(),
        (OnFailure::Fail, _) => "if it fails, the invocation fails".to_owned(),
        (OnFailure::Placeholder(text), _) => format!("if it fails, text becomes {:?}", text.as_str()),
        _ => "if it fails, the stream goes on without it".to_owned(),
    };
    [observer.id.to_string(), observer.kind.clone(), observer.role.as_str().to_owned(), when, failure]
}

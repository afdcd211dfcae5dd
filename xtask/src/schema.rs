//! The published schema of policies, made from the types that read them.

use crate::run::{Result, cargo, read, root};

const PATH: &str = "docs/policy.schema.json";

fn current() -> Result<String> {
    cargo("run").args(["--quiet", "--package", "streamkeeper-policy", "--example", "policy_schema"]).read()
}

/// Writes it.
pub(crate) fn write() -> Result {
    std::fs::write(root().join(PATH), current()?).map_err(|error| format!("cannot write {PATH}: {error}"))
}

/// Checks that it is what the types say.
pub(crate) fn check() -> Result {
    if read(PATH)? == current()? {
        return Ok(());
    }
    Err(format!("{PATH} is not current; `cargo xtask schema` writes it"))
}

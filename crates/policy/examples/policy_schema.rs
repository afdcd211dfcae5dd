//! Prints the JSON schema of policies with the bundled observers: `cargo xtask schema` writes it to `docs/policy.schema.json`.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use streamkeeper_policy::PolicyRegistry;

fn main() {
    println!("{:#}", PolicyRegistry::bundled().schema());
}

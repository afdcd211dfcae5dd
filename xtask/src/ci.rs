//! Everything that has to pass before a change lands. The quick checks come first, the tests last.

use crate::{
    arch, fixtures, gates, peers,
    run::{Result, cargo, cmd, root, step},
    schema,
};

pub(crate) fn run() -> Result {
    step("format", || cargo("fmt").args(["--all", "--check"]).run())?;
    step("architecture", arch::check)?;
    step("fixtures", fixtures::check)?;
    step("schema", schema::check)?;
    step("clippy", || {
        cargo("clippy")
            .args(["--workspace", "--all-targets", "--all-features", "--quiet", "--", "-D", "warnings"])
            .run()
    })?;
    step("each crate alone", each_crate_alone)?;
    step("documentation", || {
        let doc = cargo("doc").args(["--workspace", "--no-deps", "--all-features", "--quiet"]);
        doc.env("RUSTDOCFLAGS", "-D warnings").run()
    })?;
    step("examples", arch::run_examples)?;
    step("conformance", || crate::conformance(&[]))?;
    step("instruction gates", gates::run)?;
    step("fuzz, briefly", fuzz)?;
    step("tests with peers", || peers::run().and_then(|()| crate::test(&[])))
}

/// Features only add: each library builds without any, with its defaults, with each one alone and with all.
fn each_crate_alone() -> Result {
    // Clippy, since flags for it are no flags for the dependencies: nothing is built twice.
    let clippy = |package: &str, features: &[&str]| {
        let args = ["--quiet", "--lib", "--package", package];
        cargo("clippy").args(args).args(features).args(["--", "-D", "warnings"]).run()
    };
    for package in arch::Workspace::load()?.libraries() {
        clippy(&package.name, &[])?;
        clippy(&package.name, &["--no-default-features"])?;
        for feature in package.features.iter().filter(|feature| *feature != "default") {
            clippy(&package.name, &["--no-default-features", "--features", feature])?;
        }
        clippy(&package.name, &["--all-features"])?;
        println!("ok   {}", package.name);
    }
    Ok(())
}

/// A few seconds for each fuzz target. Needs nightly Rust and cargo-fuzz: the second is installed if only it is missing.
fn fuzz() -> Result {
    let script = root().join("fuzz/run");
    if !script.exists() {
        println!("there are no fuzz targets yet");
        return Ok(());
    }
    if !cmd("rustup").own_toolchain().args(["run", "nightly", "rustc", "--version"]).works() {
        println!("NOT RUN: fuzzing needs a nightly toolchain; `rustup toolchain install nightly` gives one");
        return Ok(());
    }
    if !cmd("cargo").own_toolchain().args(["+nightly", "fuzz", "--version"]).works() {
        cmd("cargo").own_toolchain().args(["+nightly", "install", "--quiet", "--locked", "cargo-fuzz"]).run()?;
    }
    cmd(script).own_toolchain().arg("5").run()
}

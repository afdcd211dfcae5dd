//! Tests against what others have written: official SDKs read what our command writes.

use crate::run::{Result, cargo, cmd, target};

const SCRIPT: &str = "xtask/peers/sdk.py";
const REQUIREMENTS: &str = "xtask/peers/requirements.txt";

/// Sets up a Python environment in target/peers, builds what is tested, and runs the script.
pub(crate) fn run() -> Result {
    let env = target().join("peers");
    let python = env.join("bin/python");
    if !cmd(&python).args(["-m", "pip", "--version"]).works() {
        make_environment(&env)?;
    }
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement", REQUIREMENTS];
    cmd(&python).args(pip).run()?;
    cargo("build").args(["--quiet", "--package", "streamkeeper-cli"]).run()?;
    cargo("build").args(["--quiet", "--package", "streamkeeper-examples", "--example", "redact_word"]).run()?;
    cmd(&python).arg(SCRIPT).arg(target().join("debug")).run()
}

fn make_environment(env: &std::path::Path) -> Result {
    let venv = || cmd("python3").args(["-m", "venv", "--clear"]).arg(env);
    if venv().works() {
        return Ok(());
    }
    // Debian packs venv apart from Python.
    println!("python3 has no venv; trying apt-get install python3-venv");
    let install = "apt-get update --quiet=2 && apt-get install --quiet=2 --yes python3 python3-venv";
    let installed = cmd("sh").args(["-c", install]).env("DEBIAN_FRONTEND", "noninteractive").works();
    if installed && venv().works() {
        return Ok(());
    }
    Err("the peers tests need python3 with its venv module; install it and try again".to_owned())
}

//! Budgets that a busy machine cannot blur: instructions, counted by callgrind. Allocations are counted by the tests of benches.

use std::{collections::BTreeMap, path::Path};

use serde_json::Value;

use crate::run::{Result, cargo, cmd, read, target};

/// Events and chunks of each run in benches/counts.rs.
const CHUNKS: u64 = 2_000;

/// Decoding a text event may cost so many times what it costs to skip the same JSON (spec 8.2).
const DECODE: f64 = 2.0;

/// The most instructions that a chunk may cost more than from the bare source: a little more than it costs now, so that it never gets
/// slower unseen. docs/performance.md has the nanoseconds that these counts are, beside the budgets of spec 8.2.
const OBSERVE: &[(&str, u64)] =
    &[("none", 130), ("one", 275), ("eight", 660), ("eight_disinterested", 325), ("bundled", 750)];

/// The most instructions that all built-in redaction may add to a chunk of five bytes of prose: a little more than it costs now.
/// The budget of spec 8.2, 120 ns, is below that; docs/performance.md has the nanoseconds.
const REDACT: u64 = 3_250;

/// Runs the counting benches and compares them with their budgets.
pub(crate) fn run() -> Result {
    set_up()?;
    let folder = target().join("gungraun");
    // Counts of benches that are gone would be read too.
    let _ = std::fs::remove_dir_all(&folder);
    let bench = ["--quiet", "--package", "streamkeeper-benches", "--bench", "counts", "--", "--save-summary=json"];
    cargo("bench").args(bench).read()?;
    let mut counts = BTreeMap::new();
    collect(&folder, &mut counts)?;
    let breaches = check(&counts)?;
    if breaches.is_empty() { Ok(()) } else { Err(breaches.join("\n       ")) }
}

/// Valgrind is a package of every Linux; the runner has to have the version of the library.
fn set_up() -> Result {
    if !cmd("valgrind").arg("--version").works() {
        let install = "apt-get update --quiet=2 && apt-get install --quiet=2 --yes valgrind";
        if !cmd("sh").args(["-c", install]).env("DEBIAN_FRONTEND", "noninteractive").works() {
            return Err("counting instructions needs valgrind; install it and try again".to_owned());
        }
    }
    let lock = read("Cargo.lock")?;
    let version = lock
        .split("name = \"gungraun\"\nversion = \"")
        .nth(1)
        .and_then(|rest| rest.split('"').next())
        .ok_or("Cargo.lock has no gungraun")?;
    let has = cmd("gungraun-runner").arg("--version").read().unwrap_or_default();
    if has.trim().ends_with(version) {
        return Ok(());
    }
    cmd("cargo").own_toolchain().args(["install", "--quiet", "--locked", "--version", version, "gungraun-runner"]).run()
}

/// Reads the count of each run: `function` or `function/id`.
fn collect(folder: &Path, counts: &mut BTreeMap<String, u64>) -> Result {
    let entries = std::fs::read_dir(folder).map_err(|error| format!("cannot read {}: {error}", folder.display()))?;
    for path in entries.filter_map(|entry| entry.ok().map(|entry| entry.path())) {
        if path.is_dir() {
            collect(&path, counts)?;
        } else if path.file_name().is_some_and(|name| name == "summary.json") {
            let summary: Value = serde_json::from_str(&read(&path)?).map_err(|error| error.to_string())?;
            let function = summary["function_name"].as_str().unwrap_or_default();
            let name = summary["id"].as_str().map_or_else(|| function.to_owned(), |id| format!("{function}/{id}"));
            let count = member(&summary, "Ir").and_then(first_number);
            counts.insert(name, count.ok_or_else(|| format!("{} has no count of instructions", path.display()))?);
        }
    }
    Ok(())
}

/// The first member of this name at any depth.
fn member<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    match value {
        Value::Object(object) => object.get(name).or_else(|| object.values().find_map(|value| member(value, name))),
        Value::Array(array) => array.iter().find_map(|value| member(value, name)),
        _ => None,
    }
}

fn first_number(value: &Value) -> Option<u64> {
    match value {
        Value::Object(object) => object.values().find_map(first_number),
        Value::Array(array) => array.iter().find_map(first_number),
        value => value.as_u64(),
    }
}

fn check(counts: &BTreeMap<String, u64>) -> Result<Vec<String>> {
    let of = |name: &str| counts.get(name).copied().ok_or_else(|| format!("benches/counts.rs has no run `{name}`"));
    let mut breaches = Vec::new();
    for (name, decode) in counts.iter().filter_map(|(name, count)| Some((name.strip_prefix("decode/")?, *count))) {
        let ratio = decode as f64 / of(&format!("skip/{name}"))? as f64;
        println!("decode {name:20} {ratio:5.2} × skipping it (at most {DECODE})");
        if ratio > DECODE {
            breaches.push(format!("decoding {name} costs {ratio:.2} × skipping it; the budget is {DECODE}"));
        }
    }
    let bare = of("bare_source")?;
    for (name, most) in OBSERVE {
        let extra = of(&format!("through_observers/{name}"))?.saturating_sub(bare) / CHUNKS;
        println!("observers: {name:20} {extra:4} instructions a chunk (at most {most})");
        if extra > *most {
            breaches.push(format!("{name} observers cost {extra} instructions a chunk; the budget is {most}"));
        }
    }
    let prose = of("prose_through/none")?;
    let extra = of("prose_through/redact")?.saturating_sub(prose) / CHUNKS;
    println!("redaction of prose: {extra:18} instructions a chunk (at most {REDACT})");
    if extra > REDACT {
        breaches.push(format!("redaction of prose costs {extra} instructions a chunk; the budget is {REDACT}"));
    }
    if !counts.keys().any(|name| name.starts_with("decode/")) {
        breaches.push("benches/counts.rs has no run of `decode`".to_owned());
    }
    Ok(breaches)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_the_first_number_under_its_name() {
        let summary: Value =
            serde_json::from_str(r#"{"id":"x","profiles":[{"data":{"Dr":{"Both":[1,2]},"Ir":{"Left":{"Int":42}}}}]}"#)
                .unwrap();
        assert_eq!(member(&summary, "Ir").and_then(first_number), Some(42));
        assert_eq!(member(&summary, "Nothing"), None);
    }

    #[test]
    fn a_budget_that_is_passed_is_named() {
        let mut counts: BTreeMap<String, u64> =
            OBSERVE.iter().map(|(name, _)| (format!("through_observers/{name}"), 1_000)).collect();
        counts.extend(
            [
                ("bare_source", 1_000),
                ("prose_through/none", 1),
                ("prose_through/redact", 2),
                ("decode/gemini", 199),
                ("skip/gemini", 100),
            ]
            .map(|(name, count)| (name.to_owned(), count)),
        );
        assert_eq!(check(&counts), Ok(vec![]));
        counts.insert("decode/gemini".to_owned(), 201);
        counts.insert("through_observers/eight".to_owned(), 1_000_000_000);
        let breaches = check(&counts).unwrap();
        assert!(breaches[0].contains("gemini") && breaches[1].contains("eight"), "{breaches:?}");
        counts.remove("bare_source");
        assert!(check(&counts).is_err());
    }
}

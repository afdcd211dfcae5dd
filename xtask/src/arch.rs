//! The invariants of docs/architecture.md that a machine can check. Each check says what is wrong and how to mend it.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::run::{Result, cargo, cmd, read, root, target, tracked};

/// Which of our crates each library may depend on. Dependencies point downwards only.
const MAY_USE: &[(&str, &[&str])] = &[
    ("contract", &[]),
    ("text", &[]),
    ("wire", &["contract"]),
    ("stream", &["contract", "wire"]),
    ("observers", &["contract", "text", "stream"]),
    ("policy", &["contract", "text", "stream", "observers"]),
    ("streamkeeper", &["contract", "text", "wire", "stream", "observers", "policy", "reqwest", "async-openai"]),
    ("conformance", &["contract", "text", "wire", "stream", "observers", "policy"]),
    ("cli", &["contract", "text", "wire", "stream", "observers", "policy", "conformance", "streamkeeper"]),
];

/// What an adapter may depend on: each is a crate of its own, for one foreign client.
const ADAPTER_MAY_USE: &[&str] = &["contract", "wire", "stream"];

/// Crates that are usable without any runtime.
const NO_RUNTIME: &[&str] = &["contract", "text", "wire", "stream", "observers", "policy"];
const RUNTIMES: &[&str] = &["tokio", "async-std", "smol", "async-executor", "futures-executor", "glommio", "monoio"];

/// The most crates that the facade pulls in with its default features.
const FACADE_TREE: usize = 40;

/// Field names and values of provider formats that are no words of ours. Only `wire` writes them as JSON keys.
const PROVIDER_FIELDS: &[&str] = &[
    "choices",
    "finish_reason",
    "finishReason",
    "stop_reason",
    "stopReason",
    "content_block_delta",
    "contentBlockDelta",
    "message_stop",
    "input_json_delta",
    "candidates",
    "usageMetadata",
    "promptFeedback",
    "prompt_tokens",
    "completion_tokens",
    "input_tokens",
    "output_tokens",
    "response.output_text.delta",
    "reasoning_content",
    "tool_calls.function",
    "done_reason",
    "prompt_eval_count",
    "TEXT_MESSAGE_CONTENT",
    "stream_event",
];

/// Crates whose purpose is to name them.
const NAMES_PROVIDERS: &[&str] = &["wire", "conformance"];

/// Licences that a dependency may have; of alternatives one is enough.
const LICENCES: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "MPL-2.0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

const OUR_LICENCE: &str = "MIT OR Apache-2.0";

/// Runs every check and reports everything that is wrong, not only the first.
pub(crate) fn check() -> Result {
    let workspace = Workspace::load()?;
    let checks: &[(&str, Check)] = &[
        ("dependencies point downwards", dependencies_point_downwards),
        ("no runtime in the core", no_runtime),
        ("the facade is small", facade_is_small),
        ("libraries forbid unsafe code", libraries_forbid_unsafe),
        ("only wire knows provider JSON", only_wire_knows_providers),
        ("licences", licences),
        ("every example has an entry", every_example_has_an_entry),
        ("links in our Markdown lead somewhere", links_lead_somewhere),
        ("no path of one machine", no_path_of_one_machine),
    ];
    let mut wrong = 0;
    for (name, check) in checks {
        let findings = check(&workspace)?;
        println!("{} {name}", if findings.is_empty() { "ok  " } else { "FAIL" });
        for finding in &findings {
            println!("       {finding}");
        }
        wrong += findings.len();
    }
    report_spec_rules()?;
    if wrong == 0 {
        Ok(())
    } else {
        Err(format!("{wrong} breaches of docs/architecture.md; each line above says how to mend it"))
    }
}

type Check = fn(&Workspace) -> Result<Vec<String>>;

/// What `cargo metadata` says.
pub(crate) struct Workspace {
    members: Vec<Package>,
    foreign: Vec<(String, String)>,
}

pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) features: Vec<String>,
    folder: PathBuf,
    licence: String,
    description: bool,
    is_library: bool,
    /// Packages it depends on outside of tests.
    uses: BTreeSet<String>,
    examples: Vec<String>,
}

impl Package {
    /// The folder's name: `contract` for `streamkeeper-contract`.
    fn short(&self) -> &str {
        self.name.strip_prefix("streamkeeper-").unwrap_or(&self.name)
    }

    fn is_adapter(&self) -> bool {
        self.folder.parent().is_some_and(|folder| folder.ends_with("crates/adapters"))
    }

    fn is_published(&self) -> bool {
        self.folder.strip_prefix(root()).is_ok_and(|folder| folder.starts_with("crates"))
    }
}

impl Workspace {
    pub(crate) fn load() -> Result<Self> {
        let text = cargo("metadata").args(["--format-version", "1", "--all-features"]).read()?;
        let metadata: Value = serde_json::from_str(&text).map_err(|error| format!("cargo metadata: {error}"))?;
        let ids: BTreeSet<&str> = strings(&metadata["workspace_members"]).collect();
        let (mut members, mut foreign) = (Vec::new(), Vec::new());
        for package in metadata["packages"].as_array().into_iter().flatten() {
            let name = package["name"].as_str().unwrap_or_default().to_owned();
            let licence = package["license"].as_str().unwrap_or_default().to_owned();
            if !package["id"].as_str().is_some_and(|id| ids.contains(id)) {
                foreign.push((format!("{name} {}", package["version"].as_str().unwrap_or_default()), licence));
                continue;
            }
            let manifest = Path::new(package["manifest_path"].as_str().unwrap_or_default());
            let dependencies = package["dependencies"].as_array().into_iter().flatten();
            let targets = || package["targets"].as_array().into_iter().flatten();
            let is = |target: &Value, kind: &str| strings(&target["kind"]).any(|is| is == kind);
            members.push(Package {
                name,
                licence,
                features: package["features"].as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect(),
                folder: manifest.parent().unwrap_or(manifest).to_owned(),
                description: package["description"].is_string(),
                is_library: targets().any(|target| is(target, "lib")),
                uses: dependencies
                    .filter(|dependency| dependency["kind"].is_null())
                    .filter_map(|dependency| dependency["name"].as_str().map(str::to_owned))
                    .collect(),
                examples: targets()
                    .filter(|target| is(target, "example"))
                    .filter_map(|target| target["name"].as_str().map(str::to_owned))
                    .collect(),
            });
        }
        Ok(Self { members, foreign })
    }

    /// The libraries that users can depend on.
    pub(crate) fn libraries(&self) -> impl Iterator<Item = &Package> {
        self.members.iter().filter(|package| package.is_library && package.is_published())
    }

    fn named(&self, short: &str) -> Option<&Package> {
        self.members.iter().find(|package| package.is_published() && package.short() == short)
    }
}

fn strings(value: &Value) -> impl Iterator<Item = &str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str)
}

fn dependencies_point_downwards(workspace: &Workspace) -> Result<Vec<String>> {
    let ours: BTreeMap<&str, &str> =
        workspace.members.iter().map(|package| (package.name.as_str(), package.short())).collect();
    let mut findings = Vec::new();
    for package in workspace.members.iter().filter(|package| package.is_published()) {
        let allowed = if package.is_adapter() {
            ADAPTER_MAY_USE
        } else if let Some((_, allowed)) = MAY_USE.iter().find(|(name, _)| *name == package.short()) {
            allowed
        } else {
            findings.push(format!("{} has no line in MAY_USE of xtask/src/arch.rs; give it one", package.name));
            continue;
        };
        for used in package.uses.iter().filter_map(|name| ours.get(name.as_str())) {
            if !allowed.contains(used) {
                findings.push(format!(
                    "{} depends on {used}, which is not below it; move the shared part down into a crate that both may use",
                    package.short()
                ));
            }
        }
    }
    Ok(findings)
}

/// The packages in the tree of normal dependencies, the package itself included.
fn tree(package: &str, features: &[&str]) -> Result<BTreeSet<String>> {
    let args = ["--edges", "normal", "--prefix", "none", "--format", "{p}", "--package", package];
    let text = cargo("tree").args(args).args(features).read()?;
    // `name v1.2.3 (*)`, `name v1.2.3 (/path)`: name and version are enough.
    Ok(text
        .lines()
        .filter(|line| !line.is_empty())
        .map(|line| line.split(' ').take(2).collect::<Vec<_>>().join(" "))
        .collect())
}

fn no_runtime(workspace: &Workspace) -> Result<Vec<String>> {
    let mut findings = Vec::new();
    for package in NO_RUNTIME.iter().filter_map(|short| workspace.named(short)) {
        for dependency in tree(&package.name, &["--all-features"])? {
            let name = dependency.split(' ').next().unwrap_or_default();
            if RUNTIMES.contains(&name) {
                findings.push(format!(
                    "{} pulls in {name}; find the way with `cargo tree -p {} -e normal --all-features -i {name}` and cut it",
                    package.name, package.name
                ));
            }
        }
    }
    Ok(findings)
}

fn facade_is_small(workspace: &Workspace) -> Result<Vec<String>> {
    let Some(facade) = workspace.named("streamkeeper") else { return Ok(Vec::new()) };
    let tree = tree(&facade.name, &[])?;
    let foreign: Vec<_> = tree.iter().filter(|name| !name.starts_with("streamkeeper")).cloned().collect();
    println!("       {} crates with default features, {} of them foreign", tree.len(), foreign.len());
    if tree.len() <= FACADE_TREE {
        return Ok(Vec::new());
    }
    Ok(vec![format!(
        "the facade pulls in {} crates by default, over {FACADE_TREE}; put some behind a feature: {}",
        tree.len(),
        foreign.join(", ")
    )])
}

fn libraries_forbid_unsafe(workspace: &Workspace) -> Result<Vec<String>> {
    let mut findings = Vec::new();
    for package in workspace.libraries() {
        let lib = package.folder.join("src/lib.rs");
        if !read(&lib)?.lines().any(|line| line.trim() == "#![forbid(unsafe_code)]") {
            findings.push(format!("{} lacks `#![forbid(unsafe_code)]`; add it below its docs", lib.display()));
        }
    }
    Ok(findings)
}

fn only_wire_knows_providers(workspace: &Workspace) -> Result<Vec<String>> {
    let members = workspace.members.iter().filter(|package| package.is_published());
    let mut findings = Vec::new();
    for package in members.filter(|package| !NAMES_PROVIDERS.contains(&package.short())) {
        let folder = package.folder.join("src");
        let folder = folder.strip_prefix(root()).unwrap_or(&folder).to_owned();
        for path in tracked()?.iter().filter(|path| path.starts_with(&folder) && is_rust(path)) {
            let text = read(path)?;
            for (number, line) in code_lines(&text) {
                for field in PROVIDER_FIELDS.iter().filter(|field| line.contains(&format!("{field}\""))) {
                    if line.contains(&format!("\"{field}\"")) || line.contains(&format!("\\\"{field}\\\"")) {
                        findings.push(format!(
                            "{}:{number} writes the provider's `{field}`; say it in terms of chunks, or move it into wire",
                            path.display()
                        ));
                    }
                }
            }
        }
    }
    Ok(findings)
}

/// Lines of code with their numbers: neither comments nor the test module at the end of a file.
fn code_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .take_while(|(_, line)| line.trim() != "#[cfg(test)]")
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
        .map(|(i, line)| (i + 1, line))
}

fn licences(workspace: &Workspace) -> Result<Vec<String>> {
    let mut findings = Vec::new();
    for package in &workspace.members {
        if package.licence != OUR_LICENCE {
            findings.push(format!("{} is not under {OUR_LICENCE}; write `license.workspace = true`", package.name));
        }
        if !package.description {
            findings.push(format!("{} has no description in its Cargo.toml; write one sentence", package.name));
        }
    }
    for (name, licence) in workspace.foreign.iter().filter(|(_, licence)| !is_allowed(licence)) {
        findings
            .push(format!("{name} is under `{licence}`, which is not in LICENCES of xtask/src/arch.rs; do without it"));
    }
    for file in ["LICENSE-MIT", "LICENSE-APACHE"] {
        if !root().join(file).exists() {
            findings.push(format!("{file} is missing; put it back"));
        }
    }
    Ok(findings)
}

/// Whether an SPDX expression can be met. Knows `OR` in either case, `AND`, the old `/`, and parentheses around alternatives.
fn is_allowed(expression: &str) -> bool {
    let normal = expression.replace('/', " OR ").replace(" or ", " OR ");
    split_outside(&normal, " OR ").into_iter().any(|alternative| {
        let parts = split_outside(alternative, " AND ");
        if let [part] = parts[..] {
            let part = part.trim();
            return match part.strip_prefix('(').and_then(|part| part.strip_suffix(')')) {
                Some(inner) => is_allowed(inner),
                None => LICENCES.contains(&part),
            };
        }
        parts.into_iter().all(is_allowed)
    })
}

/// Splits at a separator that stands in no parentheses.
fn split_outside<'a>(text: &'a str, separator: &str) -> Vec<&'a str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0, 0);
    for (i, byte) in text.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ if depth == 0 && i >= start && text[i..].starts_with(separator) => {
                parts.push(&text[start..i]);
                start = i + separator.len();
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn every_example_has_an_entry(workspace: &Workspace) -> Result<Vec<String>> {
    let known: BTreeSet<&str> =
        workspace.members.iter().flat_map(|package| package.examples.iter().map(String::as_str)).collect();
    Ok(tracked()?
        .iter()
        .filter(|path| path.parent() == Some(Path::new("examples")) && is_rust(path))
        .filter_map(|path| path.file_stem()?.to_str())
        .filter(|name| *name != "lib" && !known.contains(name))
        .map(|name| format!("examples/{name}.rs is never built; give it an [[example]] entry in examples/Cargo.toml"))
        .collect())
}

/// Links to files of the project: `[text](path)` with a relative path.
fn links_lead_somewhere(_: &Workspace) -> Result<Vec<String>> {
    let mut findings = Vec::new();
    for path in tracked()?.iter().filter(|path| path.extension().is_some_and(|extension| extension == "md")) {
        let text = read(path)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        for target in text.split("](").skip(1).filter_map(|rest| rest.split([')', '#', ' ']).next()) {
            let is_path = |c: char| c.is_alphanumeric() || "._-/".contains(c);
            if !target.is_empty() && target.chars().all(is_path) && !root().join(folder).join(target).exists() {
                findings.push(format!("{} links to {target}, which is not there; mend the path", path.display()));
            }
        }
    }
    Ok(findings)
}

/// A path that only exists on one machine makes a test or a command useless everywhere else.
fn no_path_of_one_machine(_: &Workspace) -> Result<Vec<String>> {
    let roots = [concat!("/", "work/"), concat!("/", "home/"), concat!("/", "Users/"), concat!("/", "root/")];
    let mut findings = Vec::new();
    for path in tracked()? {
        let Ok(text) = std::fs::read_to_string(root().join(&path)) else { continue };
        for (i, line) in text.lines().enumerate() {
            let absolute = roots.iter().find(|needle| {
                line.match_indices(**needle).any(|(at, _)| {
                    let before = line[..at].chars().next_back();
                    before.is_none_or(|c| !c.is_alphanumeric() && !"._-~/}".contains(c))
                })
            });
            if let Some(needle) = absolute {
                findings.push(format!(
                    "{}:{} has a path under {needle}; make it relative to the workspace",
                    path.display(),
                    i + 1
                ));
            }
        }
    }
    Ok(findings)
}

/// Which rules of docs/spec.md no test names. A report, not a gate: a rule may belong to a layer that is not there yet.
fn report_spec_rules() -> Result {
    let Ok(spec) = read("docs/spec.md") else { return Ok(()) };
    let rules: Vec<(&str, &str)> = spec.lines().filter_map(rule).collect();
    let mut named = BTreeSet::new();
    for path in tracked()? {
        let is_kind = |kinds: &[&str]| path.extension().and_then(|e| e.to_str()).is_some_and(|e| kinds.contains(&e));
        if !is_kind(&["rs", "json", "jsonl"]) {
            continue;
        }
        let Ok(text) = std::fs::read_to_string(root().join(&path)) else { continue };
        let name = path.to_string_lossy();
        if !name.contains("test")
            && !name.contains("vector")
            && !text.contains("#[test]")
            && !text.contains("proptest!")
        {
            continue;
        }
        for rest in text.split("spec ").skip(1) {
            for word in rest.split(", ") {
                let end = word.find(|c: char| !c.is_ascii_alphanumeric() && c != '.').unwrap_or(word.len());
                let number = word[..end].trim_end_matches('.');
                if !number.starts_with(|c: char| c.is_ascii_digit()) {
                    break;
                }
                named.insert(number.to_owned());
                if end < word.len() {
                    break;
                }
            }
        }
    }
    let missing: Vec<_> = rules.iter().filter(|(number, _)| !named.contains(*number)).collect();
    println!("note {} of {} rules of docs/spec.md are named by a test", rules.len() - missing.len(), rules.len());
    for (number, text) in missing {
        println!("       {number} {}", text.chars().take(90).collect::<String>());
    }
    Ok(())
}

/// `3.7 Order within a lane …`: the number and the text.
fn rule(line: &str) -> Option<(&str, &str)> {
    let (number, text) = line.split_once(' ')?;
    let (section, rest) = number.split_once('.')?;
    let is_digit = |c: char| c.is_ascii_digit();
    (!section.is_empty() && section.chars().all(is_digit) && rest.starts_with(is_digit)).then_some((number, text))
}

fn is_rust(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "rs")
}

/// Runs every example to its end. An example that needs arguments has defaults for them.
pub(crate) fn run_examples() -> Result {
    let workspace = Workspace::load()?;
    for package in workspace.members.iter().filter(|package| !package.examples.is_empty()) {
        cargo("build").args(["--quiet", "--examples", "--all-features", "--package", &package.name]).run()?;
        for name in &package.examples {
            let start = Instant::now();
            let path = target().join("debug/examples").join(name);
            let output = cmd(path).read().map_err(|failure| format!("example {name}: {failure}"))?;
            if output.trim().is_empty() {
                return Err(format!("example {name} printed nothing; let it show what it does"));
            }
            if start.elapsed() > Duration::from_secs(30) {
                return Err(format!("example {name} took {:?}; an example ends in seconds", start.elapsed()));
            }
            println!("ok   {name}");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_licence_is_allowed_if_one_alternative_can_be_met() {
        for (expression, expected) in [
            ("MIT", true),
            ("MIT/Apache-2.0", true),
            ("MIT OR GPL-3.0", true),
            ("GPL-3.0", false),
            ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
            ("MIT AND GPL-3.0", false),
            ("Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT", true),
            ("", false),
        ] {
            assert_eq!(is_allowed(expression), expected, "{expression}");
        }
    }

    #[test]
    fn comments_and_the_test_module_are_no_code() {
        let text = "a\n// b\n    /// c\nd\n#[cfg(test)]\nmod tests {}\n";
        assert_eq!(code_lines(text).collect::<Vec<_>>(), [(1, "a"), (4, "d")]);
    }

    #[test]
    fn a_rule_is_a_number_and_a_text() {
        for (line, expected) in [
            ("3.7 Order within a lane", Some(("3.7", "Order within a lane"))),
            ("6.1a Tool arguments", Some(("6.1a", "Tool arguments"))),
            ("## 3 Stream observers", None),
            ("    8 pass-through observers", None),
        ] {
            assert_eq!(rule(line), expected, "{line}");
        }
    }
}

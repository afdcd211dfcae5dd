//! The streams that tests read: our own, and recorded ones if they are there.

use std::{
    fs,
    path::{Path, PathBuf},
};

use streamkeeper_wire::Format;

/// A stream as it was received.
pub(crate) struct Stream {
    pub(crate) path: String,
    pub(crate) format: Format,
    pub(crate) body: Vec<u8>,
}

/// Our own streams in `examples/streams`, and the recorded ones beside the workspace.
pub(crate) fn all() -> Vec<Stream> {
    let mut streams = own();
    streams.extend(recorded());
    streams
}

/// Our own streams.
pub(crate) fn own() -> Vec<Stream> {
    let mut streams = read_tree(&root().join("examples/streams"), &|path| {
        let name = path.split('.').nth(1).filter(|_| path != "expected.jsonl")?;
        Some(match name {
            "openai" => Format::OpenAiChat,
            "anthropic" => Format::AnthropicMessages,
            "cohere" => Format::CohereV2,
            name => name.parse().ok()?,
        })
    });
    assert!(!streams.is_empty(), "our own streams are in the repository");
    streams.sort_by(|a, b| a.path.cmp(&b.path));
    streams
}

/// The recorded streams, or none with a word about it.
#[expect(clippy::print_stderr, reason = "a test that has nothing to read has to say so")]
pub(crate) fn recorded() -> Vec<Stream> {
    let folder = recordings();
    let Ok(index) = fs::read_to_string(folder.join("INDEX.tsv")) else {
        eprintln!("SKIPPED: recorded streams not found at {}", folder.display());
        return Vec::new();
    };
    let formats: Vec<(&str, Format)> = index
        .lines()
        .skip(1)
        .filter_map(|line| {
            let mut fields = line.split('\t');
            let (path, format) = (fields.next()?, fields.nth(1)?);
            Some((path, format.parse().unwrap_or(Format::Raw)))
        })
        .collect();
    let mut streams =
        read_tree(&folder, &|path| formats.iter().find(|(known, _)| *known == path).map(|(_, format)| *format));
    streams.sort_by(|a, b| a.path.cmp(&b.path));
    assert_eq!(streams.len(), formats.len(), "every stream of the index is there");
    streams
}

/// What is in each recorded stream, or nothing.
pub(crate) fn truths() -> Vec<serde_json::Value> {
    let truths = fs::read_to_string(recordings().join("TRUTH.jsonl")).unwrap_or_default();
    truths.lines().map(|line| serde_json::from_str(line).expect("an object a line")).collect()
}

fn recordings() -> PathBuf {
    std::env::var_os("STREAMKEEPER_STREAMS").map_or_else(|| root().join("../shared/streams"), PathBuf::from)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read_tree(folder: &Path, format: &dyn Fn(&str) -> Option<Format>) -> Vec<Stream> {
    let mut streams = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(folder).unwrap_or(&path).to_string_lossy().into_owned();
            if let (Some(format), Ok(body)) = (format(&name), fs::read(&path)) {
                streams.push(Stream { path: name, format, body });
            }
        }
    }
    streams
}

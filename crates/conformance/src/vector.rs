use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

/// What every vector has, whatever its layer.
#[derive(Debug, Deserialize)]
pub(crate) struct Vector<C> {
    /// Unique in its layer.
    pub(crate) name: String,
    /// The rules it holds: `spec 2.2, 2.3`.
    pub(crate) spec: String,
    /// What goes wrong where the rule is broken, for people.
    #[expect(dead_code, reason = "for the reader of the vector")]
    about: String,
    /// What goes in.
    #[serde(flatten)]
    pub(crate) case: C,
    /// What comes out: partial, see `compare`.
    pub(crate) expect: Value,
}

/// Reads the vectors of files that are built in. Each file holds an array.
pub(crate) fn read<C: DeserializeOwned>(files: &[(&str, &str)]) -> Vec<Vector<C>> {
    let vectors = |&(name, text): &(&str, &str)| -> Vec<Vector<C>> {
        serde_json::from_str(text).unwrap_or_else(|error| panic!("the vectors of {name} cannot be read: {error}"))
    };
    files.iter().flat_map(vectors).collect()
}

/// Whether a vector is asked for: the filter is a part of its name or its rules.
pub(crate) fn is_wanted<C>(vector: &Vector<C>, filter: &str) -> bool {
    vector.name.contains(filter) || vector.spec.contains(filter)
}

use std::fmt;

/// What came out of a run of vectors. Its `Display` is the text for people, with a closing line `N passed, N failed`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// How many cases gave what their vector expects.
    pub passed: usize,
    /// The cases that did not.
    pub failed: Vec<Failed>,
    /// The cases that the implementation says it does not support, with its words.
    pub unsupported: Vec<(String, String)>,
}

/// A case that did not give what its vector expects.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failed {
    /// The case.
    pub name: String,
    /// The rules it holds, for example `spec 2.2`.
    pub spec: String,
    /// Where the answer differs.
    pub differences: Vec<String>,
}

/// Why an implementation gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoAnswer {
    /// It does not have what the case needs. Listed apart, and not counted as passed.
    #[error("not supported: {0}")]
    Unsupported(String),
    /// It broke: it ended, took too long, or answered something that cannot be read. Counts as failed.
    #[error("no answer: {0}")]
    Broken(String),
}

impl Report {
    /// Whether every case that was run passed, and at least one was.
    pub fn is_clean(&self) -> bool {
        self.failed.is_empty() && self.passed > 0
    }

    /// Adds what came out of another run.
    pub fn merge(&mut self, other: Report) {
        self.passed += other.passed;
        self.failed.extend(other.failed);
        self.unsupported.extend(other.unsupported);
    }

    #[cfg(any(feature = "wire", feature = "stream"))]
    pub(crate) fn add(&mut self, name: &str, spec: &str, result: Result<Vec<String>, NoAnswer>) {
        let differences = match result {
            Ok(differences) if differences.is_empty() => {
                self.passed += 1;
                return;
            }
            Ok(differences) => differences,
            Err(NoAnswer::Unsupported(why)) => {
                self.unsupported.push((name.to_owned(), why));
                return;
            }
            Err(broken) => vec![broken.to_string()],
        };
        self.failed.push(Failed { name: name.to_owned(), spec: spec.to_owned(), differences });
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for failed in &self.failed {
            writeln!(f, "FAILED {} ({})", failed.name, failed.spec)?;
            for difference in &failed.differences {
                writeln!(f, "    {difference}")?;
            }
        }
        for (name, why) in &self.unsupported {
            writeln!(f, "unsupported {name}: {why}")?;
        }
        write!(f, "{} passed, {} failed", self.passed, self.failed.len())?;
        if !self.unsupported.is_empty() {
            write!(f, ", {} unsupported", self.unsupported.len())?;
        }
        Ok(())
    }
}

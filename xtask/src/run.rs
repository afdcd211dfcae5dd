use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Instant,
};

/// A task fails with a sentence that says what is wrong and, where it can, how to mend it.
pub(crate) type Result<T = ()> = std::result::Result<T, String>;

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask has a parent folder").to_owned()
}

/// Where cargo builds.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |folder| root().join(folder))
}

/// A command that runs in the root of the workspace.
pub(crate) struct Cmd(Command);

/// `cargo SUBCOMMAND`, by the toolchain that runs this task.
pub(crate) fn cargo(subcommand: &str) -> Cmd {
    cmd(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())).arg(subcommand)
}

/// Any other command.
pub(crate) fn cmd(program: impl AsRef<OsStr>) -> Cmd {
    let mut command = Command::new(program);
    command.current_dir(root()).stdin(Stdio::null());
    Cmd(command)
}

impl Cmd {
    pub(crate) fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.0.arg(arg);
        self
    }

    pub(crate) fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.0.args(args);
        self
    }

    pub(crate) fn env(mut self, key: &str, value: impl AsRef<OsStr>) -> Self {
        self.0.env(key, value);
        self
    }

    /// Drops what the toolchain proxy set for this process, so that `cargo +nightly` finds its own toolchain.
    pub(crate) fn own_toolchain(mut self) -> Self {
        for key in ["CARGO", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN"] {
            self.0.env_remove(key);
        }
        self
    }

    /// Runs it with its output on ours.
    pub(crate) fn run(mut self) -> Result {
        let status = self.0.status().map_err(|error| format!("cannot run {}: {error}", self.line()))?;
        if status.success() { Ok(()) } else { Err(format!("{} failed ({status})", self.line())) }
    }

    /// Runs it and returns what it printed on stdout.
    pub(crate) fn read(mut self) -> Result<String> {
        let output =
            self.0.stderr(Stdio::inherit()).output().map_err(|error| format!("cannot run {}: {error}", self.line()))?;
        if !output.status.success() {
            return Err(format!("{} failed ({})", self.line(), output.status));
        }
        String::from_utf8(output.stdout).map_err(|_| format!("{} printed bytes that are not UTF-8", self.line()))
    }

    /// Whether it runs and succeeds, quietly.
    pub(crate) fn works(mut self) -> bool {
        self.0.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    }

    fn line(&self) -> String {
        let words = std::iter::once(self.0.get_program()).chain(self.0.get_args());
        let words: Vec<_> = words.map(|word| word.to_string_lossy().into_owned()).collect();
        format!("`{}`", words.join(" "))
    }
}

/// Runs one named step and says how long it took.
pub(crate) fn step(name: &str, body: impl FnOnce() -> Result) -> Result {
    println!("\n== {name}");
    let start = Instant::now();
    body().map_err(|failure| format!("step `{name}`: {failure}"))?;
    println!("== {name}: done in {:.0?}", start.elapsed());
    Ok(())
}

/// The files that git tracks, relative to the root.
pub(crate) fn tracked() -> Result<Vec<PathBuf>> {
    Ok(cmd("git").args(["ls-files", "-z"]).read()?.split_terminator('\0').map(PathBuf::from).collect())
}

/// Reads a file of the workspace.
pub(crate) fn read(path: impl AsRef<Path>) -> Result<String> {
    let path = root().join(path);
    std::fs::read_to_string(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

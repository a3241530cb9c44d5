//! The commands to measure, in the order in which they run: each depends on the state that the earlier ones leave.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;

use crate::{Failure, synthetic};

/// The program and the folders for a run.
pub struct Setup {
    /// The program.
    pub steno: PathBuf,
    /// The folder of its store.
    pub home: PathBuf,
    /// The folder for the output of commands.
    pub out: PathBuf,
    /// The tree of sessions.
    pub root: PathBuf,
    /// The session for commands that take one session.
    pub file: PathBuf,
}

/// How long users are willing to wait for a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// Users expect an immediate answer.
    AtOnce,
    /// Users expect a time in proportion to the input.
    InProportion,
}

/// A command to measure.
pub struct Measured {
    /// Its name in the table.
    pub name: &'static str,
    /// Whether the commands after it need it.
    pub is_needed: bool,
    /// Whether running it again measures the same work.
    pub is_repeated: bool,
    pub patience: Patience,
    /// Prepares the input for a run, and returns the command.
    pub command: fn(&Setup) -> Result<Command, Failure>,
}

impl Setup {
    fn steno(&self, arguments: &[&str]) -> Result<Command, Failure> {
        let mut command = Command::new(&self.steno);
        command.args(arguments).env("STENO_HOME", &self.home).env("HOME", &self.root).env("TZ", "UTC");
        Ok(command)
    }

    /// A command on the whole tree.
    fn over(&self, arguments: &[&str]) -> Result<Command, Failure> {
        let mut command = self.steno(arguments)?;
        command.arg("--root").arg(&self.root);
        Ok(command)
    }

    /// A command on the one file.
    fn on(&self, verb: &str, arguments: &[&str]) -> Result<Command, Failure> {
        let mut command = self.steno(&[verb])?;
        command.arg(&self.file).args(arguments);
        Ok(command)
    }

    /// A command on the one file that writes a new one.
    fn into(&self, verb: &str, arguments: &[&str]) -> Result<Command, Failure> {
        let out = self.out.join(verb);
        if out.exists() {
            fs::remove_file(&out)?;
        }
        let mut command = self.on(verb, arguments)?;
        command.arg("-o").arg(out);
        Ok(command)
    }

    fn is_codex(&self) -> bool {
        self.file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("rollout-"))
    }
}

/// The commands for a tree of sessions, or for a single large file.
pub fn all(is_tree: bool) -> Vec<Measured> {
    let mut all = store();
    all.extend(if is_tree { tree() } else { file() });
    all
}

use Patience::{AtOnce, InProportion};

fn measured(name: &'static str, patience: Patience, command: fn(&Setup) -> Result<Command, Failure>) -> Measured {
    Measured { name, is_needed: false, is_repeated: true, patience, command }
}

/// The commands that use the index and the archive.
fn store() -> Vec<Measured> {
    vec![
        Measured {
            is_needed: true,
            is_repeated: false,
            ..measured("index, first", InProportion, |setup| setup.over(&["index"]))
        },
        measured("index, nothing changed", AtOnce, |setup| setup.over(&["index"])),
        measured("index, one line appended", AtOnce, |setup| {
            let line = if setup.is_codex() { synthetic::codex_line() } else { synthetic::line() };
            File::options().append(true).open(&setup.file)?.write_all(line.as_bytes())?;
            setup.over(&["index"])
        }),
        measured("find, a word", AtOnce, |setup| setup.over(&["find", "wheel"])),
        measured("find, a rare word", AtOnce, |setup| setup.over(&["find", "value_177"])),
        measured("find, a phrase", AtOnce, |setup| setup.over(&["find", "\"nothing else moved\""])),
        measured("find, a pattern", AtOnce, |setup| setup.over(&["find", "/wheel_1[0-9]*7/"])),
        measured("find, is:error", AtOnce, |setup| setup.over(&["find", "is:error"])),
        measured("list", AtOnce, |setup| setup.over(&["list"])),
        measured("status", AtOnce, |setup| setup.over(&["status"])),
        measured("usage", AtOnce, |setup| setup.over(&["usage"])),
        measured("archive verify", InProportion, |setup| setup.steno(&["archive", "verify"])),
        measured("archive prune --dry-run", InProportion, |setup| {
            setup.over(&["archive", "prune", "--older-than", "1d", "--dry-run"])
        }),
        measured("show --last", AtOnce, |setup| setup.on("show", &["--last", "5"])),
        measured("show --event", AtOnce, |setup| setup.on("show", &["--event", LATE_EVENT])),
        measured("tail", AtOnce, |setup| setup.on("tail", &["-n", "5"])),
    ]
}

/// An event that every file has; it is near the end of the smallest file.
const LATE_EVENT: &str = "40";

fn tree() -> Vec<Measured> {
    vec![
        measured("audit, a session", AtOnce, |setup| setup.on("audit", &[])),
        measured("audit, by a query", InProportion, |setup| setup.over(&["audit", "refused"])),
        measured("list --sort errors", AtOnce, |setup| setup.over(&["list", "--sort", "errors"])),
        measured("find --file", AtOnce, |setup| setup.over(&["find", "--file", "src/main.rs"])),
    ]
}

/// The commands that read one file.
fn file() -> Vec<Measured> {
    vec![
        measured("show --event, near the end", AtOnce, |setup| {
            let number = setup.file.metadata()?.len() / BYTES_OF_EVENT;
            setup.on("show", &["--event", &number.to_string()])
        }),
        measured("find --in", InProportion, |setup| {
            let mut command = setup.steno(&["find", "/wheel_1[0-9]*7/", "--in"])?;
            command.arg(&setup.file);
            Ok(command)
        }),
        measured("check", InProportion, |setup| setup.on("check", &[])),
        measured("audit", InProportion, |setup| setup.on("audit", &[])),
        measured("export", InProportion, |setup| setup.into("export", &["--to", "markdown"])),
        measured("convert", InProportion, |setup| {
            let to = if setup.is_codex() { "claude-code" } else { "codex" };
            setup.into("convert", &["--to", to])
        }),
        measured("cut", InProportion, |setup| setup.into("cut", &["--turns", "2..4"])),
        measured("trim", InProportion, |setup| {
            // Remove half of the session.
            let tokens = setup.file.metadata()?.len() / 8;
            setup.into("trim", &["--max-tokens", &tokens.to_string()])
        }),
    ]
}

/// More than the average size of a synthetic event, so that the size of a file divided by this is the number of an event in it.
const BYTES_OF_EVENT: u64 = 3_000;

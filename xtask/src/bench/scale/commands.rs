//! The commands whose cost is measured, in the order in which they run: each finds what those before it left.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;

use crate::{Failure, synthetic};

/// Where commands run.
pub struct Ground {
    /// The program.
    pub steno: PathBuf,
    /// The folder of its store.
    pub home: PathBuf,
    /// A folder for what commands write.
    pub out: PathBuf,
    /// The tree of sessions.
    pub root: PathBuf,
    /// The session that commands on one session are given.
    pub file: PathBuf,
}

/// How long somebody waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// People expect it at once.
    AtOnce,
    /// People expect it to take time in proportion to the input.
    InProportion,
}

/// A command to measure.
pub struct Measured {
    /// What the table calls it.
    pub name: &'static str,
    /// Whether the commands after it need it.
    pub is_needed: bool,
    /// Whether running it again measures the same.
    pub is_repeated: bool,
    /// How long somebody waits for it.
    pub patience: Patience,
    /// Makes it, and changes what has to change before each run.
    pub command: fn(&Ground) -> Result<Command, Failure>,
}

impl Ground {
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

fn measured(name: &'static str, patience: Patience, command: fn(&Ground) -> Result<Command, Failure>) -> Measured {
    Measured { name, is_needed: false, is_repeated: true, patience, command }
}

/// What rests on the index and the archive.
fn store() -> Vec<Measured> {
    vec![
        Measured {
            is_needed: true,
            is_repeated: false,
            ..measured("index, first", InProportion, |ground| ground.over(&["index"]))
        },
        measured("index, nothing changed", AtOnce, |ground| ground.over(&["index"])),
        measured("index, one line appended", AtOnce, |ground| {
            let line = if ground.is_codex() { synthetic::codex_line() } else { synthetic::line() };
            File::options().append(true).open(&ground.file)?.write_all(line.as_bytes())?;
            ground.over(&["index"])
        }),
        measured("find, a word", AtOnce, |ground| ground.over(&["find", "wheel"])),
        measured("find, a rare word", AtOnce, |ground| ground.over(&["find", "value_177"])),
        measured("find, a phrase", AtOnce, |ground| ground.over(&["find", "\"nothing else moved\""])),
        measured("find, a pattern", AtOnce, |ground| ground.over(&["find", "/wheel_1[0-9]*7/"])),
        measured("find, is:error", AtOnce, |ground| ground.over(&["find", "is:error"])),
        measured("list", AtOnce, |ground| ground.over(&["list"])),
        measured("status", AtOnce, |ground| ground.over(&["status"])),
        measured("usage", AtOnce, |ground| ground.over(&["usage"])),
        measured("archive verify", InProportion, |ground| ground.steno(&["archive", "verify"])),
        measured("archive prune --dry-run", InProportion, |ground| {
            ground.over(&["archive", "prune", "--older-than", "1d", "--dry-run"])
        }),
        measured("show --last", AtOnce, |ground| ground.on("show", &["--last", "5"])),
        measured("show --event", AtOnce, |ground| ground.on("show", &["--event", LATE_EVENT])),
        measured("tail", AtOnce, |ground| ground.on("tail", &["-n", "5"])),
    ]
}

/// An event that every file has, and that stands late in the smallest.
const LATE_EVENT: &str = "40";

fn tree() -> Vec<Measured> {
    vec![
        measured("audit, a session", AtOnce, |ground| ground.on("audit", &[])),
        measured("audit, by a query", InProportion, |ground| ground.over(&["audit", "refused"])),
        measured("list --sort errors", AtOnce, |ground| ground.over(&["list", "--sort", "errors"])),
        measured("find --file", AtOnce, |ground| ground.over(&["find", "--file", "src/main.rs"])),
    ]
}

/// What reads one file.
fn file() -> Vec<Measured> {
    vec![
        measured("show --event, near the end", AtOnce, |ground| {
            let number = ground.file.metadata()?.len() / BYTES_OF_EVENT;
            ground.on("show", &["--event", &number.to_string()])
        }),
        measured("find --in", InProportion, |ground| {
            let mut command = ground.steno(&["find", "/wheel_1[0-9]*7/", "--in"])?;
            command.arg(&ground.file);
            Ok(command)
        }),
        measured("check", InProportion, |ground| ground.on("check", &[])),
        measured("audit", InProportion, |ground| ground.on("audit", &[])),
        measured("export", InProportion, |ground| ground.into("export", &["--to", "markdown"])),
        measured("convert", InProportion, |ground| {
            let to = if ground.is_codex() { "claude-code" } else { "codex" };
            ground.into("convert", &["--to", to])
        }),
        measured("cut", InProportion, |ground| ground.into("cut", &["--turns", "2..4"])),
        measured("trim", InProportion, |ground| {
            // Half of it goes.
            let tokens = ground.file.metadata()?.len() / 8;
            ground.into("trim", &["--max-tokens", &tokens.to_string()])
        }),
    ]
}

/// No event of a synthetic file takes more in the middle, so that this many bytes stand before a number that every file has.
const BYTES_OF_EVENT: u64 = 3_000;

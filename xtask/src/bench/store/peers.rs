//! Runs other programs that index sessions, if they are installed, on the same tree. Each gets a folder for its data and the
//! tree as its home folder; it decides which files it reads. It must not leave a process behind.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::Failure;
use crate::bench::process::{RunCost, run_and_measure, timed};

/// A program that indexes sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// Keeps messages in a database and searches them through a server.
    Agentsview,
    /// Keeps the paths of sessions and reads the files again for every search.
    Agtrace,
}

/// An installed peer, with a folder for its data.
#[derive(Debug)]
pub struct Installed {
    pub peer: Peer,
    program: PathBuf,
    tree: PathBuf,
    data: PathBuf,
}

impl Peer {
    pub const ALL: [Peer; 2] = [Peer::Agentsview, Peer::Agtrace];

    pub fn name(self) -> &'static str {
        match self {
            Peer::Agentsview => "agentsview",
            Peer::Agtrace => "agtrace",
        }
    }

    /// Finds the peer on the `PATH`. It will read `tree` and keep its data below `folder`.
    pub fn installed(self, tree: &Path, folder: &Path) -> Option<Installed> {
        let program = program(self.name())?;
        Some(Installed { peer: self, program, tree: tree.to_owned(), data: folder.join(self.name()) })
    }
}

/// Finds a program by name. If a Python package wraps it in a script, returns the wrapped program, so that its time does not
/// include the start of an interpreter.
fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&path).map(|folder| folder.join(name)).find(|program| program.is_file())?;
    let packages = found.parent()?.parent()?.join("lib");
    let wrapped = fs::read_dir(packages).into_iter().flatten().flatten().map(|version| {
        let package = version.path().join("site-packages").join(name);
        package.join("bin").join(name)
    });
    Some(wrapped.into_iter().find(|program| program.is_file()).unwrap_or(found))
}

impl Installed {
    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.env("HOME", &self.tree).current_dir(&self.tree);
        match self.peer {
            Peer::Agentsview => {
                command.env("AGENTSVIEW_DATA_DIR", &self.data).env("AGENTSVIEW_TELEMETRY_ENABLED", "0");
                command.env("AGENTSVIEW_DISABLE_UPDATE_CHECK", "1").env("AGENTSVIEW_NO_BROWSER", "1");
            }
            Peer::Agtrace => {
                command.arg("--data-dir").arg(&self.data);
            }
        }
        command
    }

    /// Indexes the whole tree from an empty data folder.
    pub fn full(&self) -> Result<RunCost, Failure> {
        if self.data.exists() {
            fs::remove_dir_all(&self.data)?;
        }
        fs::create_dir_all(&self.data)?;
        match self.peer {
            Peer::Agentsview => {}
            Peer::Agtrace => _ = run_and_measure(self.command().arg("init"))?,
        }
        self.again()
    }

    /// Indexes what changed.
    pub fn again(&self) -> Result<RunCost, Failure> {
        match self.peer {
            Peer::Agentsview => run_and_measure(self.command().env("AGENTSVIEW_NO_DAEMON", "1").arg("sync")),
            Peer::Agtrace => run_and_measure(self.command().args(["index", "update", "--all-projects"])),
        }
    }

    /// The size of its data, in bytes.
    pub fn size(&self) -> Result<u64, Failure> {
        super::size_below(&self.data)
    }

    /// Prepares it for searches.
    pub fn serve(&self) -> Result<Serving<'_>, Failure> {
        match self.peer {
            Peer::Agentsview => {
                let mut start = self.command();
                let started =
                    start.args(["daemon", "start"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
                if !started.status()?.success() {
                    return Err("agentsview does not start its server".into());
                }
            }
            Peer::Agtrace => {}
        }
        Ok(Serving(self))
    }
}

/// A peer that is ready to search. Dropping it stops the peer's server.
pub struct Serving<'p>(&'p Installed);

impl Serving<'_> {
    /// Searches for a word or a phrase with each search method of the peer, and returns the method's name and time.
    pub fn search(&self, text: &str) -> Result<Vec<(&'static str, Duration)>, Failure> {
        let ways: &[(&'static str, &[&str])] = match self.0.peer {
            Peer::Agentsview => &[("messages", &["session", "search", "--fts"]), ("all", &["session", "search"])],
            Peer::Agtrace => &[("all", &["lab", "grep", "--all-projects"])],
        };
        let mut times = Vec::new();
        for (name, arguments) in ways {
            let mut command = self.0.command();
            let (_, time) = timed(command.args(*arguments).args(["--limit", "20", "--", text]))?;
            times.push((*name, time));
        }
        Ok(times)
    }
}

impl Drop for Serving<'_> {
    fn drop(&mut self) {
        match self.0.peer {
            Peer::Agentsview => {
                let mut stop = self.0.command();
                let stopped = stop
                    .args(["daemon", "stop"])
                    .stdin(Stdio::null())
                    .stdout(Stdio::null())
                    .stderr(Stdio::null())
                    .status();
                if !stopped.is_ok_and(|status| status.success()) {
                    eprintln!("agentsview: its server did not end");
                }
            }
            Peer::Agtrace => {}
        }
    }
}

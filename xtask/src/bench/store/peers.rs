//! Other programs that keep sessions, run on the same tree where they are installed. They get a folder of their own for what they
//! keep and the tree as their home; what one of them reads is its own choice. It must not leave a process behind.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::Failure;
use crate::bench::process::{Ran, timed, watched};

/// A program that indexes sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// Keeps messages in a database and searches them through a server of its own.
    Agentsview,
    /// Keeps where sessions are and reads them again for every search.
    Agtrace,
}

/// A peer that is there, with a folder for what it keeps.
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

    /// The peer as it is found on the path, to work on a tree and below a folder.
    pub fn installed(self, tree: &Path, folder: &Path) -> Option<Installed> {
        let program = program(self.name())?;
        Some(Installed { peer: self, program, tree: tree.to_owned(), data: folder.join(self.name()) })
    }
}

/// The program of a name. One that a package wraps in a script is taken itself: starting an interpreter is not its own work.
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

    /// Indexes everything from nothing.
    pub fn full(&self) -> Result<Ran, Failure> {
        if self.data.exists() {
            fs::remove_dir_all(&self.data)?;
        }
        fs::create_dir_all(&self.data)?;
        match self.peer {
            Peer::Agentsview => {}
            Peer::Agtrace => _ = watched(self.command().arg("init"))?,
        }
        self.again()
    }

    /// Indexes what is new.
    pub fn again(&self) -> Result<Ran, Failure> {
        match self.peer {
            Peer::Agentsview => watched(self.command().env("AGENTSVIEW_NO_DAEMON", "1").arg("sync")),
            Peer::Agtrace => watched(self.command().args(["index", "update", "--all-projects"])),
        }
    }

    /// How many bytes it keeps.
    pub fn size(&self) -> Result<u64, Failure> {
        super::size_below(&self.data)
    }

    /// Gets ready to search.
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

/// A peer that can search; its server ends with this.
pub struct Serving<'p>(&'p Installed);

impl Serving<'_> {
    /// Searches for a word or a phrase in the ways the peer has, and gives each way's name and time.
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

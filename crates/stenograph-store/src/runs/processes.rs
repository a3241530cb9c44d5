//! The processes of this machine, as far as the system shows them: which files they have open, and where programs run.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::discover::FileId;

/// The visible processes of this machine.
#[derive(Debug, Default)]
pub struct Processes {
    /// The files that any process has open.
    open: HashSet<FileId>,
    /// Each program's name and working folder.
    programs: HashSet<(String, PathBuf)>,
}

impl Processes {
    /// The running processes; empty on systems that do not show them.
    pub fn now() -> Processes {
        let mut processes = Processes::default();
        let own = std::process::id().to_string();
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        for entry in entries {
            let name = entry.file_name();
            let is_other =
                name.to_str().is_some_and(|name| name != own && name.bytes().all(|byte| byte.is_ascii_digit()));
            if is_other {
                processes.add(&entry.path());
            }
        }
        processes
    }

    fn add(&mut self, process: &Path) {
        for open in std::fs::read_dir(process.join("fd")).into_iter().flatten().flatten() {
            // Sockets, pipes and devices are not transcripts.
            if let Ok(metadata) = std::fs::metadata(open.path())
                && metadata.is_file()
            {
                self.open.insert(FileId::of(&open.path(), &metadata));
            }
        }
        let Ok(folder) = std::fs::read_link(process.join("cwd")) else { return };
        let words = std::fs::read(process.join("cmdline")).unwrap_or_default();
        // The first argument of an interpreter is the program that it runs.
        for word in words.split(|byte| *byte == 0).take(2) {
            let word = String::from_utf8_lossy(word);
            let program = word.rsplit('/').next().unwrap_or_default();
            if !program.is_empty() {
                self.programs.insert((program.to_owned(), folder.clone()));
            }
        }
    }

    /// Whether processes and their folders can be seen.
    pub fn are_visible(&self) -> bool {
        !self.programs.is_empty()
    }

    /// Whether any process has the file open.
    pub fn have_open(&self, file: FileId) -> bool {
        self.open.contains(&file)
    }

    /// Whether the program runs in the folder.
    pub fn run_in(&self, program: &str, folder: &str) -> bool {
        !program.is_empty() && self.programs.contains(&(program.to_owned(), PathBuf::from(folder)))
    }
}

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
        self.programs.extend(programs(&words).map(|program| (program, folder.clone())));
    }

    /// Whether processes and their folders can be seen.
    pub(crate) fn are_visible(&self) -> bool {
        !self.programs.is_empty()
    }

    /// Whether any process has the file open.
    pub(crate) fn have_open(&self, file: FileId) -> bool {
        self.open.contains(&file)
    }

    /// Whether the program runs in any folder.
    pub(crate) fn run(&self, program: &str) -> bool {
        self.programs.iter().any(|(running, _)| running == program)
    }

    /// Whether the program runs in the folder.
    pub(crate) fn run_in(&self, program: &str, folder: &str) -> bool {
        !program.is_empty() && self.programs.contains(&(program.to_owned(), PathBuf::from(folder)))
    }
}

/// Programs that run the program in their first argument.
const INTERPRETERS: [&str; 9] = ["node", "bun", "deno", "python", "ruby", "perl", "bash", "sh", "env"];

/// The names of the programs in a command line whose arguments end with a zero byte: the command, and what an interpreter runs.
fn programs(command_line: &[u8]) -> impl Iterator<Item = String> {
    let mut words = command_line.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned());
    let command = words.next().map(|word| file_name(&word)).unwrap_or_default();
    let unversioned = command.trim_end_matches(|char: char| char.is_ascii_digit() || char == '.');
    let is_interpreter = INTERPRETERS.contains(&unversioned);
    let script = words.find(|word| !word.starts_with('-')).filter(|_| is_interpreter).map(|word| file_name(&word));
    [Some(command), script].into_iter().flatten().filter(|program| !program.is_empty())
}

fn file_name(path: &str) -> String {
    path.rsplit('/').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::programs;

    fn names(command_line: &str) -> Vec<String> {
        programs(command_line.replace(' ', "\0").as_bytes()).collect()
    }

    #[test]
    fn an_argument_is_a_program_only_for_an_interpreter() {
        assert_eq!(names("/usr/bin/vim claude"), ["vim"]);
        assert_eq!(names("/usr/bin/claude -p x"), ["claude"]);
        assert_eq!(names("/usr/bin/node --max-old-space-size=4096 /opt/bin/codex exec"), ["node", "codex"]);
        assert_eq!(names("python3.11 -u /opt/bin/aider"), ["python3.11", "aider"]);
        assert!(names("").is_empty());
    }
}

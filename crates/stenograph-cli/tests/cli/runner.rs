//! Runs the binary in a folder of its own.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// Four valid events of the native stream.
pub const NATIVE: &str = r#"{"v":1,"kind":"message","time":"2026-03-02T09:14:05Z","session":"s1","id":"e1","role":"user","content":"Fix the test."}
{"v":1,"kind":"thinking","time":"2026-03-02T09:14:06Z","session":"s1","id":"e2","content":"Run it first."}
{"v":1,"kind":"tool_call","time":"2026-03-02T09:14:07Z","session":"s1","id":"e3","name":"Bash","call":"c1","input":{"command":"cargo test"}}
{"v":1,"kind":"tool_result","time":"2026-03-02T09:14:09Z","session":"s1","id":"e4","name":"Bash","call":"c1","content":"ok","error":false}
"#;

/// Three entries of another format.
pub const CHIBI: &str = r#"{"id":"1","timestamp":1705123456,"from":"alice","to":"default","content":"What is Rust?","entry_type":"message"}
{"id":"2","timestamp":1705123465,"from":"default","to":"read_file","content":"{\"path\":\"Cargo.toml\"}","entry_type":"tool_call"}
{"id":"3","timestamp":1705123466,"from":"read_file","to":"default","content":"[package]","entry_type":"tool_result"}
"#;

/// A folder in which the binary runs.
pub struct Folder(TempDir);

/// The result of a run.
#[derive(Debug)]
pub struct Done {
    pub code: i32,
    pub out: Vec<u8>,
    pub talk: String,
}

impl Folder {
    pub fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    /// A folder with one file in it.
    pub fn with(name: &str, bytes: impl AsRef<[u8]>) -> Folder {
        let folder = Folder::new();
        folder.write(name, bytes);
        folder
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.path(name), bytes).unwrap();
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    /// The names of all files, including hidden ones.
    pub fn names(&self) -> Vec<String> {
        names(self.0.path())
    }

    /// A command that runs here.
    pub fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_steno"));
        command.args(line.split_whitespace()).current_dir(self.0.path());
        command
            .env_remove("NO_COLOR")
            .env("TZ", "UTC")
            .env("HOME", self.path("home"))
            .env("TMPDIR", self.0.path())
            .env("STENO_HOME", self.path("store"));
        command
    }

    /// Runs the binary with these arguments.
    pub fn run(&self, line: &str) -> Done {
        self.run_with(line, b"")
    }

    /// Runs the binary with these bytes on standard input.
    pub fn run_with(&self, line: &str, input: &[u8]) -> Done {
        let mut command = self.command(line);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_vec();
        let feeding = std::thread::spawn(move || {
            let _ = stdin.write_all(&input);
        });
        let output = child.wait_with_output().unwrap();
        feeding.join().unwrap();
        let talk = String::from_utf8(output.stderr).unwrap();
        assert!(!talk.contains("panicked"), "{line}: {talk}");
        Done { code: output.status.code().unwrap(), out: output.stdout, talk }
    }
}

pub fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

impl Done {
    /// Standard output as text.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.out).unwrap()
    }

    /// Standard output as JSON, one value per line.
    pub fn json(&self) -> Vec<serde_json::Value> {
        self.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[track_caller]
    pub fn ends(&self, code: i32) -> &Done {
        assert_eq!(self.code, code, "out: {}\ntalk: {}", String::from_utf8_lossy(&self.out), self.talk);
        self
    }

    /// Asserts exit code 2, an `error:` that contains `what`, and a `hint:`.
    #[track_caller]
    pub fn fails(&self, what: &str) -> &Done {
        self.ends(2);
        assert!(self.talk.starts_with("error: ") && self.talk.contains(what), "{what} is not in: {}", self.talk);
        assert!(self.talk.contains("\nhint: "), "no hint: {}", self.talk);
        self
    }

    /// Asserts a no, which is not an error.
    #[track_caller]
    pub fn finds_nothing(&self, what: &str) -> &Done {
        self.ends(1);
        assert!(!self.talk.contains("error: ") && self.talk.contains(what), "{what} is not in: {}", self.talk);
        assert!(self.talk.contains("\nhint: "), "no hint: {}", self.talk);
        self
    }

    #[track_caller]
    pub fn says(&self, what: &str) -> &Done {
        let text = String::from_utf8_lossy(&self.out);
        assert!(text.contains(what), "{what} is not in:\n{text}");
        self
    }

    #[track_caller]
    pub fn talks(&self, what: &str) -> &Done {
        assert!(self.talk.contains(what), "{what} is not in:\n{}", self.talk);
        self
    }
}

/// The demonstration of a format.
pub fn demo(format: &str) -> PathBuf {
    let formats = Path::new(env!("CARGO_MANIFEST_DIR")).join("../stenograph/src/formats");
    let fixtures = formats.join(format.replace('-', "_")).join("fixtures");
    let mut files = std::fs::read_dir(fixtures).unwrap().map(|entry| entry.unwrap().path());
    let is_demo = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("demo.") && !name.ends_with(".golden") && !name.ends_with(".losses")
    };
    files.find(is_demo).unwrap()
}

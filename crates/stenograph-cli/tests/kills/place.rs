//! A recording folder, the acknowledged messages, and the check that `show` prints them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::life::{self, Life};

/// The layouts in which all recordings in one folder form one conversation. The others have a conversation for each.
const ONE_CONVERSATION: [&str; 3] = ["chibi", "cycod", "steno"];

pub struct Place {
    folder: TempDir,
    layout: String,
    policy: String,
    seed: u64,
    /// The number of the next message.
    next: usize,
    acknowledged: Vec<usize>,
    pub kills: usize,
    /// A log of all actions, for debugging.
    story: Vec<String>,
}

impl Place {
    pub fn new(layout: &str, policy: &str, seed: u64) -> Place {
        // A kill does not lose data in the page cache, so no disk is needed.
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let (layout, policy) = (layout.to_owned(), policy.to_owned());
        Place { folder, layout, policy, seed, next: 0, acknowledged: Vec::new(), kills: 0, story: Vec::new() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("recording")
    }

    fn steno(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_steno"));
        command.args(words).current_dir(self.folder.path()).env("HOME", self.folder.path());
        command
    }

    /// Runs a recorder and remembers what it acknowledged.
    pub fn live(&mut self, life: &Life, random: &mut fastrand::Rng) {
        let first = self.next;
        let lines: Vec<String> = life.lengths.iter().map(|length| self.message(*length, random)).collect();
        let to = format!("{}:recording", self.layout);
        let command = self.steno(&["record", "--from", "openai-chat", "--to", &to, "--sync", &self.policy, "--ack"]);
        let outcome = life::live(command, lines, life.end);
        let acknowledged: Vec<usize> = outcome.acknowledged.iter().map(|line| first + line - 1).collect();
        self.story.push(format!("{first}.. {:?}: acknowledged {acknowledged:?}", life.end));
        if let Some(failed) = outcome.failed {
            self.fail(&format!("a recorder failed: {failed}"));
        }
        self.kills += usize::from(life.is_killed());
        self.acknowledged.extend(acknowledged);
    }

    /// A unique line of input.
    fn message(&mut self, length: usize, random: &mut fastrand::Rng) -> String {
        let number = self.next;
        self.next += 1;
        let text = format!("message {number}. {}", "word ".repeat(length / 5));
        let call = format!("call-{}", number / 4);
        let mut message = match number % 4 {
            0 => json!({"role": "user", "content": text}),
            1 => {
                let function = json!({"name": "look", "arguments": json!({"said": text}).to_string()});
                json!({"role": "assistant", "content": null,
                    "tool_calls": [{"id": call, "type": "function", "function": function}]})
            }
            2 => json!({"role": "tool", "tool_call_id": call, "content": text}),
            _ => json!({"role": "assistant", "content": text}),
        };
        if random.u8(..6) == 0 {
            message["name"] = json!("somebody");
        }
        format!("{message}\n")
    }

    /// Runs `recover`, which is sometimes killed too.
    pub fn recover(&mut self, random: &mut fastrand::Rng) {
        for _ in 0..random.usize(..3) {
            let mut recover = self.steno(&["recover", "recording"]);
            let mut child = recover.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            std::thread::sleep(Duration::from_micros(random.u64(..8_000)));
            let _ = child.kill();
            child.wait().unwrap();
            self.kills += 1;
            self.story.push("recover, killed".to_owned());
        }
        if self.acknowledged.is_empty() && !self.path().exists() {
            return;
        }
        self.story.push("recover".to_owned());
        let done = self.run(&["recover", "recording"]);
        if !done.status.success() {
            self.fail(&format!("recover failed: {}", String::from_utf8_lossy(&done.stderr)));
        }
        let again = self.run(&["recover", "recording", "--json"]);
        let report: Value = serde_json::from_slice(&again.stdout).unwrap_or_default();
        if !report["remarks"].as_array().is_some_and(Vec::is_empty) {
            self.fail(&format!("recover had more to do the second time: {report}"));
        }
    }

    /// Every acknowledged message is shown, in order and once.
    pub fn check(&self) {
        if self.acknowledged.is_empty() && !self.path().exists() {
            return;
        }
        let done = self.run(&["show", "--json", "recording"]);
        if !done.status.success() {
            if self.acknowledged.is_empty() {
                // There may be nothing to show.
                return;
            }
            self.fail(&format!("show failed: {}", String::from_utf8_lossy(&done.stderr)));
        }
        let mut shown = messages(&done.stdout);
        if !ONE_CONVERSATION.contains(&self.layout.as_str()) {
            shown.sort_unstable();
        }
        if !shown.is_sorted_by(|a, b| a < b) {
            self.fail(&format!("shown out of order or twice: {shown:?}"));
        }
        let seen: BTreeSet<usize> = shown.iter().copied().collect();
        let missing: Vec<&usize> = self.acknowledged.iter().filter(|number| !seen.contains(number)).collect();
        if !missing.is_empty() {
            self.fail(&format!("acknowledged and not shown: {missing:?}; shown: {shown:?}"));
        }
        let files = files(self.folder.path());
        let torn = files.iter().filter(|path| path.to_string_lossy().contains(".torn-")).count();
        if torn > self.kills {
            self.fail(&format!("{torn} torn ends after {} kills", self.kills));
        }
    }

    fn run(&self, words: &[&str]) -> Output {
        self.steno(words).output().unwrap()
    }

    /// Fails with all details needed for debugging.
    fn fail(&self, what: &str) -> ! {
        let files: Vec<String> = files(self.folder.path()).iter().map(|path| path.display().to_string()).collect();
        let (layout, policy, seed, story) = (&self.layout, &self.policy, self.seed, self.story.join("\n"));
        let kept = std::env::temp_dir().join(format!("steno-kills-{}-{layout}-{seed}", std::process::id()));
        let copied = Command::new("cp").arg("-r").arg(self.folder.path()).arg(&kept).status();
        panic!("{layout} --sync {policy} STENO_SEED={seed}: {what}\n{story}\n{files:#?}\n{kept:?} {copied:?}");
    }
}

/// The numbers of the shown messages, in order.
fn messages(shown: &[u8]) -> Vec<usize> {
    let text = std::str::from_utf8(shown).unwrap();
    let events = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let messages = events.filter(|event| {
        let kind = event["kind"].as_str().unwrap_or_default();
        matches!(kind, "message" | "tool_call" | "tool_result") && event["restates"] != json!(true)
    });
    messages
        .filter_map(|event| {
            let text = event.get("input").filter(|input| !input.is_null()).unwrap_or(&event["content"]).to_string();
            text.split("message ").nth(1)?.split('.').next()?.parse().ok()
        })
        .collect()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.path() {
            path if path.is_dir() => found.extend(files(&path)),
            path => found.push(path),
        }
    }
    found.sort();
    found
}

//! What agents keep in their homes beside transcripts: folders and tokens of sessions, and secrets.

use std::fs;

use crate::runner::{Folder, demo};

/// A folder with the demonstration of a format at a path of its home.
fn home(format: &str, path: &str) -> Folder {
    let folder = Folder::new();
    put(&folder, path, fs::read(demo(format)).unwrap());
    folder
}

fn put(folder: &Folder, path: &str, bytes: impl AsRef<[u8]>) {
    fs::create_dir_all(folder.path(path).parent().unwrap()).unwrap();
    folder.write(path, bytes);
}

#[test]
fn a_folder_that_only_a_file_beside_a_transcript_states_is_that_of_the_session() {
    let transcript = "home/.gemini/tmp/almanac/chats/session-2026-03-02T09-14-1.jsonl";
    let folder = home("gemini-cli", transcript);
    put(&folder, "home/.gemini/tmp/almanac/.project_root", "/work/almanac");
    folder.run("index").ends(0);
    folder.run("list").ends(0).says("almanac");
    folder.run("resume latest").ends(0).says("cd /work/almanac && gemini --resume");
    folder.run(&format!("resume {transcript}")).ends(0).says("cd /work/almanac && gemini --resume");
    folder.run(&format!("move {transcript} --to codex --force --dry-run")).ends(0);
    // The file does not become a part of the index or of the archive.
    assert!(!folder.run("archive list --json").ends(0).text().contains("project_root"));
}

#[test]
fn the_tokens_of_a_session_of_droid_are_in_its_settings() {
    let folder = home("droid", "home/.factory/sessions/-work/d1.jsonl");
    let settings = fs::read(demo("droid-settings")).unwrap();
    put(&folder, "home/.factory/sessions/-work/d1.settings.json", settings);
    folder.run("index").ends(0).talks("2 new");
    assert_eq!(folder.run("list --json").ends(0).json().len(), 1);
    let page = |line: &str| folder.run(line).ends(0).text().to_owned();
    let usage = page("usage --json");
    assert!(usage.contains("\"output\":38") && usage.contains("\"cache_read\":1200"), "{usage}");
    assert_eq!(usage, page("usage --json --no-index"));
}

#[test]
fn the_request_before_a_call_of_kimi_code_states_its_model() {
    let folder = home("kimi-code", "home/.kimi-code/sessions/wd_1/session_1/agents/main/wire.jsonl");
    folder.run("usage --by model").ends(0).says("kimi-k2");
    folder.run("index").ends(0);
    folder.run("usage --by model").ends(0).says("kimi-k2");
}

#[test]
fn files_with_secrets_are_not_opened() {
    let folder = home("codex", "home/.codex/sessions/2026/03/02/rollout-2026-03-02T09-14-05-0198.jsonl");
    for name in [".claude/.credentials.json", ".codex/auth.json", ".qwen/oauth_creds.json", ".pi/agent/models.json"] {
        // Read as a transcript it would be one.
        let line = "{\"role\":\"user\",\"content\":\"sk-not-for-the-archive\"}\n".repeat(2);
        put(&folder, &format!("home/{name}"), line);
    }
    folder.run("index --root home").ends(0).talks("1 new");
    folder.run("find not-for-the-archive --root home").finds_nothing("no");
    folder.run("usage --root home --no-index").ends(0);
}

#[test]
fn a_file_that_cline_attaches_to_a_message_is_converted() {
    let folder = Folder::new();
    let demo = demo("cline");
    for target in ["codex", "claude-code"] {
        folder.run(&format!("convert {} --to {target}", demo.display())).ends(0).says("A kettle.");
    }
}

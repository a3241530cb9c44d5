//! Discovery in real folders.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{FoundFile, Machine, Places, Platform, discover};
use crate::tail::Warning;

struct Tree {
    folder: tempfile::TempDir,
}

impl Tree {
    fn new(files: &[&str]) -> Tree {
        let tree = Tree { folder: tempfile::tempdir().unwrap() };
        files.iter().for_each(|file| tree.file(file));
        tree
    }

    fn root(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn file(&self, name: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, name).unwrap();
    }

    /// The home folder of a machine with this environment.
    fn machine(&self, set: &[(&str, OsString)]) -> Machine {
        let set: Vec<(String, OsString)> =
            set.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let find = move |name: &str| set.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        Machine { home: Some(self.root()), variables: Arc::new(find), platform: Platform::Unix }
    }

    /// The files found, one line each: the path, the format (in brackets if it is only likely), and the names.
    fn lines(&self, found: &[FoundFile]) -> Vec<String> {
        let line = |found: &FoundFile| {
            let named = &found.hints;
            let path = found.path.strip_prefix(self.folder.path()).unwrap_or(&found.path).display().to_string();
            let like = named.like.map(|like| format!("({})", like.info().name));
            let format = named.format.map(|format| format.info().name.to_owned()).or(like).unwrap_or_default();
            let name = |name: &Option<String>| name.clone().unwrap_or_else(|| "-".to_owned());
            let names = [&named.project, &named.session, &named.thread].map(name).join(" ");
            format!("{path} {format} {names}").replace('\\', "/")
        };
        found.iter().map(line).collect()
    }
}

fn found(places: &Places) -> (Vec<FoundFile>, Vec<Warning>) {
    let mut found = Vec::new();
    let warnings = discover(places, &mut |file| found.push(file));
    (found, warnings)
}

/// What is found in a home folder, without warnings.
#[track_caller]
fn at_home(tree: &Tree, wanted: &[&str]) {
    let (found, warnings) = found(&Places::of(tree.machine(&[])));
    assert_eq!(tree.lines(&found), wanted);
    assert_eq!(warnings, []);
}

#[test]
fn contexts_are_found_with_all_their_files() {
    let tree = Tree::new(&[
        ".chibi/contexts/a/context.jsonl",
        ".chibi/contexts/a/context_meta.json",
        ".chibi/contexts/a/inbox.jsonl",
        ".chibi/contexts/a/journal.steno",
        ".chibi/contexts/a/requests.jsonl",
        ".chibi/contexts/a/response_meta.jsonl",
        ".chibi/contexts/a/transcript.md",
        ".chibi/contexts/a/transcript/active.jsonl",
        ".chibi/contexts/a/transcript/manifest.json",
        ".chibi/contexts/a/transcript/partitions/1-2.bloom",
        ".chibi/contexts/a/transcript/partitions/1-2.jsonl",
        ".chibi/contexts/b/transcript.jsonl",
        ".chibi/contexts/b/transcript_archive.jsonl",
        ".chibi/state.json",
    ]);
    at_home(
        &tree,
        &[
            ".chibi/contexts/a/context.jsonl chibi - a -",
            ".chibi/contexts/a/inbox.jsonl chibi-inbox - a -",
            ".chibi/contexts/a/journal.steno steno - a -",
            ".chibi/contexts/a/requests.jsonl chibi-requests - a -",
            ".chibi/contexts/a/response_meta.jsonl chibi-responses - a -",
            ".chibi/contexts/a/transcript/active.jsonl chibi - a -",
            ".chibi/contexts/a/transcript/partitions/1-2.jsonl chibi - a -",
            ".chibi/contexts/a/transcript.md chibi-markdown - a -",
            ".chibi/contexts/b/transcript.jsonl chibi - b -",
            ".chibi/contexts/b/transcript_archive.jsonl chibi - b -",
        ],
    );
    let (files, _) = found(&Places::of(tree.machine(&[])));
    assert!(files.iter().all(|file| file.hints.within.as_deref() == Some(&tree.path(".chibi/contexts"))));
}

#[test]
fn sessions_are_found_with_their_sub_agents() {
    let tree = Tree::new(&[
        ".claude/history.jsonl",
        ".claude/projects/-w-p/agent-old.jsonl",
        ".claude/projects/-w-p/s1.jsonl",
        ".claude/projects/-w-p/s1/subagents/agent-a1.jsonl",
        ".claude/projects/-w-p/s1/subagents/agent-a1.meta.json",
        ".claude/projects/-w-p/s1/subagents/workflows/r1/agent-a2.jsonl",
        ".claude/projects/-w-p/s1/subagents/workflows/r1/journal.jsonl",
        ".claude/projects/-w-p/s1/tool-results/x.txt",
        ".claude/projects/-w-p/s1/transcripts/a3.jsonl",
        ".claude/projects/-w-p/sessions-index.json",
        ".config/claude/projects/-w-q/s2.jsonl",
    ]);
    at_home(
        &tree,
        &[
            ".claude/projects/-w-p/agent-old.jsonl claude-code -w-p - old",
            ".claude/projects/-w-p/s1/subagents/agent-a1.jsonl claude-code -w-p s1 a1",
            ".claude/projects/-w-p/s1/subagents/workflows/r1/agent-a2.jsonl claude-code -w-p s1 a2",
            ".claude/projects/-w-p/s1/subagents/workflows/r1/journal.jsonl claude-code -w-p s1 -",
            ".claude/projects/-w-p/s1/transcripts/a3.jsonl claude-events -w-p s1 a3",
            ".claude/projects/-w-p/s1.jsonl claude-code -w-p s1 -",
            ".config/claude/projects/-w-q/s2.jsonl claude-code -w-q s2 -",
        ],
    );
}

#[test]
fn rollouts_are_found_old_and_new_compressed_and_archived() {
    let tree = Tree::new(&[
        ".codex/archived_sessions/2026/01/02/rollout-2026-01-02T03-04-05-0198-d.jsonl",
        ".codex/archived_sessions/rollout-2026-01-02T03-04-05-0198-c.jsonl",
        ".codex/history.jsonl",
        ".codex/sessions/2026/01/02/rollout-2026-01-02T03-04-05-0198-a.jsonl",
        ".codex/sessions/2026/01/02/rollout-2026-01-02T03-04-05-0198-b.jsonl.zst",
        ".codex/sessions/2026/01/02/rollout-2026-01-02T03-04-05-0198-e_0199-f.jsonl",
        ".codex/sessions/2026/01/02/rollout-odd.jsonl",
        ".codex/sessions/2026/01/02/rollout-2026-01-02T03-04-05-0198-b.jsonl.zst.tmp",
        ".codex/sessions/rollout-2025-04-20-77aa-g.json",
    ]);
    at_home(
        &tree,
        &[
            ".codex/archived_sessions/2026/01/02/rollout-2026-01-02T03-04-05-0198-d.jsonl codex - 0198-d -",
            ".codex/archived_sessions/rollout-2026-01-02T03-04-05-0198-c.jsonl codex - 0198-c -",
            ".codex/sessions/2026/01/02/rollout-2026-01-02T03-04-05-0198-a.jsonl codex - 0198-a -",
            ".codex/sessions/2026/01/02/rollout-2026-01-02T03-04-05-0198-b.jsonl.zst codex - 0198-b -",
            ".codex/sessions/2026/01/02/rollout-2026-01-02T03-04-05-0198-e_0199-f.jsonl codex - 0198-e -",
            ".codex/sessions/2026/01/02/rollout-odd.jsonl codex - - -",
            ".codex/sessions/rollout-2025-04-20-77aa-g.json codex - 77aa-g -",
        ],
    );
}

#[test]
fn chat_histories_and_what_was_made_of_them_have_one_name() {
    let tree = Tree::new(&[
        ".cycod/exceptions/exception-chat-history-4.jsonl",
        ".cycod/history/chat-history-1.jsonl",
        ".cycod/history/chat-history-1.jsonl.steno",
        ".cycod/history/chat-history.jsonl",
        ".cycod/history/trajectory-1.md",
        ".leslie/threads/t/.meta/transcripts/20260101-0101-x.txt",
    ]);
    at_home(
        &tree,
        &[
            ".cycod/exceptions/exception-chat-history-4.jsonl openai-chat - 4 -",
            ".cycod/history/chat-history-1.jsonl openai-chat - 1 -",
            ".cycod/history/chat-history-1.jsonl.steno steno - 1 -",
            ".cycod/history/chat-history.jsonl openai-chat - - -",
            ".cycod/history/trajectory-1.md cycod-trajectory - 1 -",
            ".leslie/threads/t/.meta/transcripts/20260101-0101-x.txt leslie - t -",
        ],
    );
}

const IN_A_PROJECT: [&str; 9] = [
    ".cycod/history/chat-history-2.jsonl",
    ".devflow/runs/r1/journal.steno",
    ".devflow/runs/r1/transcript.json.gz",
    ".goodvibes/state/agent-tracking.json",
    ".goodvibes/telemetry/2026-01.jsonl",
    ".goodvibes/transcripts/s1/a1.jsonl",
    ".goodvibes/transcripts/s1/a1.jsonl.steno",
    ".leslie/threads/t/.meta/transcripts/20260101-0101-x.txt",
    ".leslie/threads/t/.meta/transcripts/20260101-0101-x.txt.steno",
];

const IN_A_PROJECT_FOUND: [&str; 9] = [
    "p/.cycod/history/chat-history-2.jsonl openai-chat - 2 -",
    "p/.devflow/runs/r1/journal.steno steno - r1 -",
    "p/.devflow/runs/r1/transcript.json.gz devflow - r1 -",
    "p/.goodvibes/state/agent-tracking.json goodvibes-tracking - - -",
    "p/.goodvibes/telemetry/2026-01.jsonl goodvibes-telemetry - - -",
    "p/.goodvibes/transcripts/s1/a1.jsonl claude-events - s1 a1",
    "p/.goodvibes/transcripts/s1/a1.jsonl.steno steno - s1 a1",
    "p/.leslie/threads/t/.meta/transcripts/20260101-0101-x.txt leslie - t -",
    "p/.leslie/threads/t/.meta/transcripts/20260101-0101-x.txt.steno steno - t -",
];

#[test]
fn projects_are_looked_into_and_say_which_they_are() {
    let tree = Tree::new(&["p/README.md", "p/chat-history-3.jsonl", "p/src/chat-history-9.jsonl", "p/x.steno.jsonl"]);
    IN_A_PROJECT.iter().for_each(|file| tree.file(&format!("p/{file}")));
    let places = Places { projects: vec![tree.path("p"), tree.path("gone")], ..Places::of(tree.machine(&[])) };
    let (found, warnings) = found(&places);
    let mut wanted = IN_A_PROJECT_FOUND.to_vec();
    // A name alone proves nothing.
    wanted.extend(["p/chat-history-3.jsonl (openai-chat) - 3 -", "p/x.steno.jsonl (steno) - x -"]);
    assert_eq!(tree.lines(&found), wanted);
    assert_eq!(warnings, []);
    assert!(found.iter().all(|file| file.hints.folder.as_deref() == Some(&tree.path("p"))));
}

#[test]
fn a_root_is_a_home_and_is_walked_whole() {
    let tree = Tree::new(&[
        ".claude/projects/-w-p/s1.jsonl",
        ".claude/.credentials.json",
        ".codex/auth.json",
        ".codex/history.jsonl",
        ".gemini/Settings.json",
        "backup/alice/.claude/projects/-w-q/s2.jsonl",
        "backup/moved/contexts/c/context.jsonl",
        "backup/a.JSONL",
        "backup/b.json.zst",
        "backup/c.png",
        "backup/d.tar.gz",
        "backup/e.md",
        "p/.git/x.json",
        "p/node_modules/x/y.json",
        "p/target/x.json",
        "cache/CACHEDIR.TAG",
        "cache/x.json",
        "store/archive/log.jsonl",
    ]);
    IN_A_PROJECT.iter().for_each(|file| tree.file(&format!("p/{file}")));
    let places = Places { excluded: vec![tree.path("store")], ..Places::below(tree.root()) };
    let (files, warnings) = found(&places);
    let mut wanted = vec![
        ".claude/projects/-w-p/s1.jsonl claude-code -w-p s1 -",
        ".codex/history.jsonl  - - -",
        "backup/a.JSONL  - - -",
        "backup/alice/.claude/projects/-w-q/s2.jsonl claude-code -w-q s2 -",
        "backup/b.json.zst  - - -",
        "backup/e.md  - - -",
        "backup/moved/contexts/c/context.jsonl (chibi) - c -",
    ];
    wanted.extend(IN_A_PROJECT_FOUND);
    assert_eq!(tree.lines(&files), wanted);
    assert_eq!(warnings, []);
    let of_projects = files.iter().filter(|file| file.hints.folder.as_deref() == Some(&tree.path("p")));
    assert_eq!(of_projects.count(), IN_A_PROJECT.len());
    let again: Vec<PathBuf> = found(&places).0.into_iter().map(|file| file.path).collect();
    assert_eq!(again, files.into_iter().map(|file| file.path).collect::<Vec<_>>());
}

#[test]
fn a_variable_moves_a_home_and_may_list_several() {
    let tree = Tree::new(&[".claude/projects/p/a.jsonl", "one/projects/p/b.jsonl", "two/projects/p/c.jsonl"]);
    let list = format!("{},~/two", tree.path("one").display());
    let (found, _) = found(&Places::of(tree.machine(&[("CLAUDE_CONFIG_DIR", list.into())])));
    let wanted = ["one/projects/p/b.jsonl claude-code p b -", "two/projects/p/c.jsonl claude-code p c -"];
    assert_eq!(tree.lines(&found), wanted);
}

#[test]
fn an_added_folder_is_walked_whole_and_an_added_file_is_found() {
    let tree =
        Tree::new(&["kept/a/b/c.jsonl", "kept/a/.codex/sessions/rollout-2025-04-20-g.json", "other.txt", "x.jsonl"]);
    let folders = vec![tree.path("kept"), tree.path("kept/a"), tree.path("x.jsonl"), tree.path("none")];
    let home = Tree::new(&[]);
    let (found, warnings) = found(&Places { folders, ..Places::of(home.machine(&[])) });
    let wanted =
        ["kept/a/.codex/sessions/rollout-2025-04-20-g.json codex - g -", "kept/a/b/c.jsonl  - - -", "x.jsonl  - - -"];
    assert_eq!(tree.lines(&found), wanted);
    assert_eq!(warnings, [Warning::new(&tree.path("none"), "does not exist")]);
}

#[cfg(unix)]
mod on_unix {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_file_with_several_names_is_found_once_by_the_best_one() {
        let tree = Tree::new(&["data/projects/p/a.jsonl", "data/b.jsonl"]);
        symlink(tree.path("data"), tree.path(".claude")).unwrap();
        symlink("b.jsonl", tree.path("data/c.jsonl")).unwrap();
        fs::hard_link(tree.path("data/b.jsonl"), tree.path("data/projects/p/z.jsonl")).unwrap();
        let (found, _) = found(&Places::below(tree.root()));
        let wanted = [".claude/projects/p/a.jsonl claude-code p a -", ".claude/projects/p/z.jsonl claude-code p z -"];
        assert_eq!(tree.lines(&found), wanted);
    }

    #[test]
    fn link_cycles_end() {
        let tree = Tree::new(&["a/x.jsonl", "b/y.jsonl"]);
        symlink(tree.root(), tree.path("a/up")).unwrap();
        symlink(tree.path("b"), tree.path("a/to-b")).unwrap();
        symlink(tree.path("a"), tree.path("b/to-a")).unwrap();
        symlink("self", tree.path("self")).unwrap();
        symlink("/none", tree.path("dead.jsonl")).unwrap();
        let (found, warnings) = found(&Places::below(tree.root()));
        assert_eq!(tree.lines(&found), ["a/to-b/y.jsonl  - - -", "a/x.jsonl  - - -"]);
        assert_eq!(warnings, []);
    }

    #[test]
    fn a_link_that_leads_out_is_followed_once_and_never_to_what_is_above() {
        let (tree, elsewhere) = (Tree::new(&["root/x.jsonl", "beside.jsonl"]), Tree::new(&["y.jsonl"]));
        symlink(elsewhere.root(), tree.path("root/out")).unwrap();
        symlink(tree.root(), tree.path("root/above")).unwrap();
        let (found, _) = found(&Places::below(tree.path("root")));
        assert_eq!(tree.lines(&found), ["root/out/y.jsonl  - - -", "root/x.jsonl  - - -"]);
    }

    #[test]
    fn an_inaccessible_folder_causes_a_warning_and_stops_nothing() {
        let tree = Tree::new(&[".claude/projects/p/a.jsonl", ".claude/projects/q/b.jsonl", "shut/c.jsonl"]);
        let shut = [tree.path(".claude/projects/p"), tree.path("shut")];
        let allow =
            |mode| shut.iter().for_each(|path| fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap());
        allow(0o000);
        let is_enforced = fs::read_dir(&shut[1]).is_err();
        let (found, warnings) = found(&Places::below(tree.root()));
        allow(0o755);
        // A privileged user sees everything.
        if is_enforced {
            assert_eq!(tree.lines(&found), [".claude/projects/q/b.jsonl claude-code q b -"]);
            let paths: Vec<&Path> = warnings.iter().map(|warning| warning.path.as_path()).collect();
            assert!(shut.iter().all(|path| paths.contains(&path.as_path())), "{warnings:?}");
        } else {
            assert_eq!((found.len(), warnings.len()), (3, 0));
        }
    }

    #[test]
    fn a_file_with_a_name_that_is_not_text_is_found() {
        use std::os::unix::ffi::OsStringExt;
        let tree = Tree::new(&[]);
        let name = OsString::from_vec(b"odd\xff.jsonl".to_vec());
        fs::write(tree.root().join(&name), "").unwrap();
        let (found, _) = found(&Places::below(tree.root()));
        assert_eq!(found[0].path.file_name(), Some(name.as_os_str()));
    }

    #[test]
    fn pipes_and_folders_named_like_sources_are_skipped() {
        let tree = Tree::new(&["folder.jsonl/x.png"]);
        let made = std::process::Command::new("mkfifo").arg(tree.path("pipe.jsonl")).status().unwrap();
        assert!(made.success());
        assert!(found(&Places::below(tree.root())).0.is_empty());
    }
}

#[test]
fn very_deep_folders_cause_a_warning() {
    let tree = Tree::new(&[]);
    tree.file(&format!("{}x.jsonl", "d/".repeat(60)));
    let (found, warnings) = found(&Places::below(tree.root()));
    assert_eq!((found.len(), warnings.len()), (0, 1));
}

#[test]
fn size_and_time_are_found_without_opening_a_file() {
    let tree = Tree::new(&[".claude/projects/p/a.jsonl"]);
    let (found, _) = found(&Places::below(tree.root()));
    let path = tree.path(".claude/projects/p/a.jsonl");
    assert_eq!(found[0].stat, super::Stat::of(&path).unwrap());
    assert_eq!(found[0].stat.size, ".claude/projects/p/a.jsonl".len() as u64);
    let modified = fs::metadata(&path).unwrap().modified().unwrap();
    let since = modified.duration_since(std::time::UNIX_EPOCH).unwrap();
    assert_eq!(i128::from(found[0].stat.modified_ns), since.as_nanos() as i128);
}

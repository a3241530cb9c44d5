//! Finds side conversations in separate files beside a source, by the homes of its format: for a file given by name, without an
//! index. For a session in the index, the catalogue lists them.

use std::path::{Path, PathBuf};

use stenograph::format::Format;

use crate::discover::Pattern;
use crate::identity::stated_session;
use crate::source::{Passes, Source};

/// A side conversation in its own file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubagentFile {
    /// Its name.
    pub thread: String,
    /// Its path.
    pub path: PathBuf,
}

/// The side conversations beside a source of this format, sorted by path. They lie in a folder named after the session, or
/// beside the source; in the latter case the session that they state decides.
pub fn of_session_file(path: &Path, format: &'static dyn Format) -> Vec<SubagentFile> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        return Vec::new();
    };
    let mut found: Vec<SubagentFile> = Vec::new();
    for (base, last) in format.info().homes.iter().filter_map(|home| home.rsplit_once('/')) {
        let Some(session) = Pattern::of(last).matches(name).and_then(|names| names.session) else { continue };
        for home in format.info().homes.iter().filter(|home| home.contains(THREAD)) {
            let Some(rest) = home.strip_prefix(base).and_then(|rest| rest.strip_prefix('/')) else { continue };
            match rest.strip_prefix("<session>/") {
                Some(below) => walk(&folder.join(session), below, None, &mut |side| found.push(side)),
                None if !rest.contains('/') => walk(folder, rest, None, &mut |side| {
                    if side.path != path && session_at(&side.path, format).as_deref() == Some(session) {
                        found.push(side);
                    }
                }),
                None => {}
            }
        }
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    found.dedup();
    found
}

/// The session in whose folder a file lies, by the homes of its format; the file of the session must be beside that folder.
pub(crate) fn session_above(path: &Path, format: &'static dyn Format) -> Option<String> {
    let info = format.info();
    info.homes.iter().filter_map(|home| home.split_once("<session>/")).find_map(|(_, below)| {
        let mut above = path;
        for step in below.rsplit('/') {
            Pattern::of(step).matches(above.file_name()?.to_str()?)?;
            above = above.parent()?;
        }
        let session = above.file_name()?.to_str()?;
        let beside = above.with_file_name(format!("{session}.{}", info.extension));
        beside.is_file().then(|| session.to_owned())
    })
}

/// The placeholder of a side conversation in a home.
const THREAD: &str = "<thread>";

/// Passes every file below a folder that matches these steps to `each`. The depth is the number of steps in a home.
fn walk(folder: &Path, steps: &str, thread: Option<&str>, each: &mut dyn FnMut(SubagentFile)) {
    let (step, rest) = steps.split_once('/').map_or((steps, None), |(step, rest)| (step, Some(rest)));
    let pattern = Pattern::of(step);
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(names) = name.to_str().and_then(|name| pattern.matches(name)) else { continue };
        let (path, thread) = (entry.path(), names.thread.or(thread));
        match (rest, thread) {
            (Some(rest), thread) => walk(&path, rest, thread, each),
            (None, Some(thread)) if path.is_file() => each(SubagentFile { thread: thread.to_owned(), path }),
            (None, _) => {}
        }
    }
}

/// The session that the first records of a source state.
fn session_at(path: &Path, format: &'static dyn Format) -> Option<String> {
    let source = Source::open(path, Passes::Once).ok()?;
    stated_session(format, source.head())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn line(session: &str) -> String {
        format!(
            r#"{{"type":"user","uuid":"u1","parentUuid":null,"isSidechain":true,"agentId":"x","sessionId":"{session}","timestamp":"2026-01-02T03:04:05.000Z","cwd":"/w","version":"2.1.0","message":{{"role":"user","content":"Look."}}}}"#
        ) + "\n"
    }

    #[test]
    fn side_conversations_stand_below_or_beside_their_session() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for below in ["s1/subagents/workflows/w", "s2/subagents"] {
            fs::create_dir_all(root.join(below)).unwrap();
        }
        for (name, session) in [
            ("s1.jsonl", "s1"),
            ("s1/subagents/agent-a1.jsonl", "s1"),
            ("s1/subagents/agent-a1.meta.json", "s1"),
            ("s1/subagents/workflows/w/agent-a2.jsonl", "s1"),
            ("s2/subagents/agent-a3.jsonl", "s2"),
            ("agent-a4.jsonl", "s1"),
            ("agent-a5.jsonl", "s2"),
        ] {
            fs::write(root.join(name), line(session)).unwrap();
        }
        let format = stenograph::Registry::built_in().named("claude-code").unwrap();
        let found = |name: &str| -> Vec<String> {
            of_session_file(&root.join(name), format).into_iter().map(|side| side.thread).collect()
        };
        assert_eq!(found("s1.jsonl"), ["a4", "a1", "a2"]);
        assert!(found("s3.jsonl").is_empty());
        let above = |name: &str| session_above(&root.join(name), format);
        assert_eq!(above("s1/subagents/workflows/w/journal.jsonl").as_deref(), Some("s1"));
        // The file of this session is not there.
        assert_eq!(above("s2/subagents/agent-a3.jsonl"), None);
        assert_eq!(above("s1.jsonl"), None);
        assert!(found("agent-a4.jsonl").is_empty());
    }
}

//! The files that a tool call touches, and how, derived from the shape of the input: the file tools of all agents look alike.
//! This file names no agent and no tool, and does not parse shell commands.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use memchr::memmem;

use super::input::COMMAND_KEYS;
use crate::json::{Leaf, leaves};
use crate::model::Input;
use crate::text::name_words;

/// A file that a call touches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Touch {
    /// The path: absolute if the working folder is known.
    pub path: String,
    /// What the call does to it.
    pub how: TouchHow,
}

/// What a call does to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TouchHow {
    /// It reads the file.
    Read,
    /// It creates or overwrites the file.
    Written,
    /// It changes part of the file.
    Edited,
    /// It deletes the file.
    Deleted,
    /// It names the file for an unknown purpose.
    Named,
}

impl TouchHow {
    /// Every variant.
    pub const ALL: [TouchHow; 5] =
        [TouchHow::Read, TouchHow::Written, TouchHow::Edited, TouchHow::Deleted, TouchHow::Named];

    /// The name on the wire and for people.
    pub fn name(self) -> &'static str {
        match self {
            TouchHow::Read => "read",
            TouchHow::Written => "written",
            TouchHow::Edited => "edited",
            TouchHow::Deleted => "deleted",
            TouchHow::Named => "named",
        }
    }

    /// The variant with this name.
    pub fn named(name: &str) -> Option<TouchHow> {
        TouchHow::ALL.into_iter().find(|how| how.name() == name)
    }
}

/// The most files of one call that are kept: more is a listing.
const TOUCHES_MAX: usize = 256;

/// The longest path accepted.
const PATH_SIZE_MAX: usize = 4096;

/// Keys whose value is a path, without the separators between their words.
const PATH_KEYS: [&str; 22] = [
    "file",
    "filepath",
    "filename",
    "files",
    "filepaths",
    "filenames",
    "path",
    "paths",
    "absolutepath",
    "relativepath",
    "relativeworkspacepath",
    "targetfile",
    "targetpath",
    "sourcepath",
    "sourcefile",
    "destinationpath",
    "destinationfile",
    "outputfile",
    "outputpath",
    "notebookpath",
    "oldpath",
    "newpath",
];

/// Keys whose value selects the operation of a tool with several.
const ACTION_KEYS: [&str; 5] = ["command", "action", "operation", "op", "mode"];

/// Words for operations on a file, the stronger first: a tool that replaces text may also read it.
const VERBS: [(&str, TouchHow); 24] = [
    ("delete", TouchHow::Deleted),
    ("remove", TouchHow::Deleted),
    ("unlink", TouchHow::Deleted),
    ("edit", TouchHow::Edited),
    ("replace", TouchHow::Edited),
    ("patch", TouchHow::Edited),
    ("update", TouchHow::Edited),
    ("modify", TouchHow::Edited),
    ("insert", TouchHow::Edited),
    ("append", TouchHow::Edited),
    ("apply", TouchHow::Edited),
    ("rename", TouchHow::Edited),
    ("move", TouchHow::Edited),
    ("write", TouchHow::Written),
    ("create", TouchHow::Written),
    ("save", TouchHow::Written),
    ("copy", TouchHow::Written),
    ("download", TouchHow::Written),
    ("read", TouchHow::Read),
    ("view", TouchHow::Read),
    ("open", TouchHow::Read),
    ("show", TouchHow::Read),
    ("cat", TouchHow::Read),
    ("load", TouchHow::Read),
];

/// Words that end with one of these and mean something else.
const OTHER_WORDS: [&str; 4] = ["thread", "upload", "reload", "review"];

/// The first line of a patch in the format that names its files on separate lines.
const PATCH: &str = "*** Begin Patch";

/// Programs and functions that apply such a patch.
const PATCH_APPLIERS: [&str; 2] = ["apply_patch", "applypatch"];

/// Keys whose value is a patch, without the separators between their words. Every other text only quotes one.
const PATCH_KEYS: [&str; 5] = ["patch", "diff", "input", "patchtext", "unifieddiff"];

/// The lines of such a patch that name a file.
const PATCH_LINES: [(&str, TouchHow); 4] = [
    ("*** Update File: ", TouchHow::Edited),
    ("*** Add File: ", TouchHow::Written),
    ("*** Delete File: ", TouchHow::Deleted),
    ("*** Move to: ", TouchHow::Written),
];

/// The files that a call of this tool touches.
pub(crate) fn touches(tool: &str, input: &Input<'_>, cwd: Option<&str>) -> Vec<Touch> {
    let mut found = TouchList { touches: Vec::new(), cwd };
    match input {
        Input::Text(text) => {
            let text = text.decode();
            found.patch(&text, if is_script(&text) { PatchPlace::Anywhere } else { PatchPlace::Applied });
        }
        Input::Json(raw) => {
            let mut named: Vec<String> = Vec::new();
            let mut action: Option<TouchHow> = None;
            leaves(raw, &mut |key, leaf| {
                let Leaf::Text(text) = leaf else { return };
                let text = text.decode();
                if is_key(key, &PATH_KEYS) {
                    if is_path(&text) && named.len() < TOUCHES_MAX {
                        named.push(text.into_owned());
                    }
                } else if ACTION_KEYS.contains(&key) && text.len() <= 32 {
                    action = action.or_else(|| verb(&text));
                } else if is_key(key, &PATCH_KEYS) || is_key(key, &COMMAND_KEYS) {
                    found.patch(&text, PatchPlace::Applied);
                }
            });
            let how = action.or_else(|| verb(tool)).unwrap_or(TouchHow::Named);
            named.iter().for_each(|path| found.add(path, how));
        }
    }
    found.touches
}

/// Where in a text a patch counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PatchPlace {
    /// At the beginning, or where a command hands it to a program that applies it.
    Applied,
    /// Anywhere: a script calls a function that applies it.
    Anywhere,
}

/// Whether a text calls a function that applies a patch.
fn is_script(text: &str) -> bool {
    PATCH_APPLIERS.iter().any(|applier| {
        text.match_indices(applier)
            .any(|(at, _)| text.get(at + applier.len()..).is_some_and(|rest| rest.starts_with('(')))
    })
}

/// The patch that a text is, or that a command hands to a program that applies it: the command names that program on the line
/// of the patch or on the line before.
pub(crate) fn applied_patch(text: &str) -> Option<&str> {
    let (before, patch) = text.split_at_checked(memmem::find(text.as_bytes(), PATCH.as_bytes())?)?;
    let is_handed_over =
        || before.rsplit('\n').take(2).any(|line| PATCH_APPLIERS.iter().any(|applier| line.contains(applier)));
    (before.trim().is_empty() || is_handed_over()).then_some(patch)
}

struct TouchList<'a> {
    touches: Vec<Touch>,
    cwd: Option<&'a str>,
}

impl TouchList<'_> {
    /// Adds the files of a unified diff, which names each file twice: before and after the change.
    fn diff(&mut self, text: &str) {
        let mut before = "";
        for line in text.lines() {
            if let Some(path) = line.strip_prefix("--- ") {
                before = diff_path(path);
            } else if let Some(path) = line.strip_prefix("+++ ").map(diff_path) {
                let (path, how) = match (before, path) {
                    (NO_FILE, path) => (path, TouchHow::Written),
                    (before, NO_FILE) => (before, TouchHow::Deleted),
                    (_, path) => (path, TouchHow::Edited),
                };
                if is_path(path) {
                    self.add(path, how);
                }
                before = "";
            }
        }
    }

    fn add(&mut self, path: &str, how: TouchHow) {
        let touch = Touch { path: joined(path.trim(), self.cwd).into_owned(), how };
        if self.touches.len() < TOUCHES_MAX && !self.touches.contains(&touch) {
            self.touches.push(touch);
        }
    }

    fn patch(&mut self, text: &str, place: PatchPlace) {
        if text.starts_with("--- ") || text.starts_with("diff --git ") {
            self.diff(text);
        }
        let patch = match place {
            PatchPlace::Applied => applied_patch(text),
            PatchPlace::Anywhere => text.find(PATCH).and_then(|start| text.get(start..)),
        };
        for line in patch.unwrap_or_default().lines() {
            let named = PATCH_LINES.into_iter().find_map(|(mark, how)| Some((line.strip_prefix(mark)?, how)));
            if let Some((path, how)) = named.filter(|(path, _)| is_path(path)) {
                self.add(path, how);
            }
        }
    }
}

/// The path that a unified diff uses for a file that does not exist.
const NO_FILE: &str = "/dev/null";

/// The path in a line of a unified diff, without its `a/` or `b/` prefix and the time after it.
fn diff_path(line: &str) -> &str {
    let path = line.split('\t').next().unwrap_or_default().trim();
    path.strip_prefix("a/").or_else(|| path.strip_prefix("b/")).unwrap_or(path)
}

/// Whether a key is one of these, which are spelled without separators.
fn is_key(key: &str, known: &[&str]) -> bool {
    const LENGTH_MAX: usize = 32;
    let letters = || key.bytes().filter(|byte| !matches!(byte, b'_' | b'-')).map(|byte| byte.to_ascii_lowercase());
    key.len() <= LENGTH_MAX && known.iter().any(|known| known.bytes().eq(letters()))
}

/// Whether a text may be the path of a file. URLs are not paths; control characters are allowed in paths.
pub(crate) fn is_path(text: &str) -> bool {
    let text = text.trim();
    !matches!(text, "" | "." | "./" | "/" | "-") && text.len() <= PATH_SIZE_MAX && !text.contains("://")
}

/// The operation that a name states.
pub(crate) fn verb(name: &str) -> Option<TouchHow> {
    let parts = name_words(name);
    let is = |verb: &str| parts.iter().any(|part| part == verb);
    let compound = |verb: &str| {
        let is_in = |part: &String| part.starts_with(verb) || part.ends_with(verb);
        verb.len() > 3 && parts.iter().any(|part| is_in(part) && !OTHER_WORDS.contains(&part.as_str()))
    };
    let whole = VERBS.into_iter().find(|(verb, _)| is(verb));
    whole.or_else(|| VERBS.into_iter().find(|(verb, _)| compound(verb))).map(|(_, how)| how)
}

/// The path relative to the working folder, without empty, `.` and `..` segments. A path that needs no change keeps its
/// spelling.
pub(crate) fn joined<'a>(path: &'a str, cwd: Option<&str>) -> Cow<'a, str> {
    let drive =
        |path: &str| matches!(path.as_bytes(), [letter, b':', b'/' | b'\\', ..] if letter.is_ascii_alphabetic());
    let is_absolute = path.starts_with(['/', '\\', '~']) || drive(path);
    let separator_of =
        |path: &str| if drive(path) && path.contains('\\') || path.starts_with('\\') { '\\' } else { '/' };
    let (root, separator, segments) = match cwd.filter(|cwd| !cwd.is_empty()) {
        _ if is_absolute && has_dot_segments(path, separator_of(path)) => {
            let separator = separator_of(path);
            // A network share begins with two separators, a drive or a home folder with its name.
            let length =
                path.find(['/', separator]).map_or(path.len(), |at| at + usize::from(path.starts_with("\\\\")));
            let (root, segments) = path.split_at(length);
            (root.to_owned(), separator, segments)
        }
        Some(cwd) if !is_absolute => (cwd.trim_end_matches(['/', '\\']).to_owned(), separator_of(cwd), path),
        Some(_) | None => return Cow::Borrowed(path),
    };
    let mut whole = root.clone();
    for segment in segments.split(['/', separator]) {
        match segment {
            "" | "." => {}
            // Nothing is above the root.
            ".." if is_absolute => whole.truncate(whole.rfind(['/', separator]).unwrap_or(0).max(root.len())),
            ".." => whole.truncate(whole.rfind(['/', separator]).unwrap_or(0)),
            segment => {
                whole.push(separator);
                whole.push_str(segment);
            }
        }
    }
    if whole.is_empty() {
        whole.push(separator);
    }
    Cow::Owned(whole)
}

/// Whether a path has empty, `.` or `..` segments.
fn has_dot_segments(path: &str, separator: char) -> bool {
    let mut segments = path.split(['/', separator]).skip(1).peekable();
    let mut at_start = true;
    while let Some(segment) = segments.next() {
        // The trailing separator of a folder is part of its spelling, and so are the first two of a network share.
        let is_empty = segment.is_empty() && segments.peek().is_some() && !(at_start && separator == '\\');
        if is_empty || matches!(segment, "." | "..") {
            return true;
        }
        at_start = false;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touched(tool: &str, json: &'static str) -> Vec<String> {
        let found = touches(tool, &Input::Json(json.into()), Some("/work/app"));
        found.into_iter().map(|touch| format!("{} {}", touch.how.name(), touch.path)).collect()
    }

    #[test]
    fn an_absolute_path_loses_its_dot_segments() {
        for (path, expected) in [
            ("/a/./b/../c", "/a/c"),
            ("/a//b", "/a/b"),
            ("/../x", "/x"),
            ("~/x/../y", "~/y"),
            ("C:\\a\\..\\b", "C:\\b"),
            ("/a/b/", "/a/b/"),
            ("\\\\server\\share", "\\\\server\\share"),
        ] {
            assert_eq!(joined(path, Some("/w")), expected);
            assert_eq!(joined(path, None), expected);
        }
    }

    #[test]
    fn the_name_of_a_tool_states_its_operation() {
        let json = r#"{"file_path":"/a.rs"}"#;
        for (tool, how) in [
            ("Read", "read"),
            ("NotebookEdit", "edited"),
            ("MultiEdit", "edited"),
            ("multiedit", "edited"),
            ("write_to_file", "written"),
            ("search_replace", "edited"),
            ("delete_file", "deleted"),
            ("ReadFile", "read"),
            ("mcp__fs__read_text_file", "read"),
            ("Grep", "named"),
            ("thread", "named"),
            ("download_file", "written"),
            ("code_review", "named"),
        ] {
            assert_eq!(touched(tool, json), [format!("{how} /a.rs")], "{tool}");
        }
    }

    #[test]
    fn the_action_of_a_tool_overrides_its_name() {
        assert_eq!(
            touched("str_replace_editor", r#"{"command":"view","path":"src/a.rs"}"#),
            ["read /work/app/src/a.rs"]
        );
        assert_eq!(touched("editor", r#"{"path":"a","command":"create"}"#), ["written /work/app/a"]);
    }

    #[test]
    fn relative_paths_are_resolved_against_the_working_folder() {
        assert_eq!(touched("read", r#"{"path":"./src/../b.rs"}"#), ["read /work/app/b.rs"]);
        assert_eq!(
            touched("read", r#"{"paths":["a","../b","~/c","C:\\d"]}"#),
            ["read /work/app/a", "read /work/b", "read ~/c", "read C:\\d"]
        );
        let found = touches("read", &Input::Json(r#"{"path":"src/a"}"#.into()), Some("C:\\w"));
        assert_eq!(found[0].path, "C:\\w\\src\\a");
    }

    #[test]
    fn a_patch_names_its_files() {
        let patch = r#"{"input":"*** Begin Patch\n*** Update File: a.rs\n@@\n-x\n+y\n*** Add File: b.rs\n+z\n*** Delete File: c.rs\n*** End Patch"}"#;
        assert_eq!(
            touched("anything", patch),
            ["edited /work/app/a.rs", "written /work/app/b.rs", "deleted /work/app/c.rs"]
        );
    }

    #[test]
    fn a_text_that_quotes_a_patch_touches_nothing() {
        let quoted = "*** Begin Patch\\n*** Delete File: src/secret.c\\n*** End Patch";
        let diff = "--- a/a.rs\\n+++ /dev/null\\n";
        let touched = |tool: &str, json: String| -> Vec<String> {
            let found = touches(tool, &Input::Json(json.into()), None);
            found.into_iter().map(|touch| format!("{} {}", touch.how.name(), touch.path)).collect()
        };
        for (tool, json, expected) in [
            ("Write", format!(r#"{{"file_path":"n.md","content":"{quoted}"}}"#), vec!["written n.md"]),
            ("Edit", format!(r#"{{"file_path":"n.md","old_string":"{diff}","new_string":"x"}}"#), vec!["edited n.md"]),
            ("Bash", format!(r#"{{"command":"git log","description":"{diff}"}}"#), vec![]),
            ("mcp__tracker__comment", format!(r#"{{"body":"{quoted}"}}"#), vec![]),
            ("Bash", format!(r#"{{"command":"man apply_patch\ntrue\ncat > n.md <<'EOF'\n{quoted}\nEOF"}}"#), vec![]),
            ("Bash", format!(r#"{{"command":"apply_patch <<'EOF'\n{quoted}\nEOF"}}"#), vec!["deleted src/secret.c"]),
            ("shell", format!(r#"{{"command":["apply_patch","{quoted}"]}}"#), vec!["deleted src/secret.c"]),
            ("patch", format!(r#"{{"patchText":"\n{quoted}"}}"#), vec!["deleted src/secret.c"]),
        ] {
            assert_eq!(touched(tool, json.clone()), expected, "{json}");
        }
        let script = "const patch = `*** Begin Patch\n*** Add File: a.rs\n+x`;\nawait tools.apply_patch(patch);";
        assert_eq!(touches("exec", &Input::Text(script.into()), None).len(), 1);
        let prompt = "Explain this:\n*** Begin Patch\n*** Delete File: a.rs\n";
        assert!(touches("ask", &Input::Text(prompt.into()), None).is_empty());
    }

    #[test]
    fn a_path_with_a_control_character_is_touched() {
        assert_eq!(touched("Write", r#"{"file_path":"/a\u001b[2Jb"}"#), ["written /a\u{1b}[2Jb"]);
        assert_eq!(touched("Write", r#"{"file_path":"/a\nb"}"#), ["written /a\nb"]);
    }

    #[test]
    fn a_unified_diff_names_its_files() {
        let diff = r#"{"patch":"diff --git a/a.rs b/a.rs\n--- a/a.rs\n+++ b/a.rs\n@@ -1 +1 @@\n-x\n+y\n--- /dev/null\n+++ b/new.rs\n@@ -0,0 +1 @@\n+z\n--- a/old.rs\t2026-01-01\n+++ /dev/null\n"}"#;
        assert_eq!(
            touched("anything", diff),
            ["edited /work/app/a.rs", "written /work/app/new.rs", "deleted /work/app/old.rs"]
        );
        assert!(touched("anything", r#"{"text":"look:\n--- a/a.rs\n+++ b/a.rs\n"}"#).is_empty());
        assert_eq!(touched("apply_diff", r#"{"path":"a.rs","diff":"x"}"#), ["edited /work/app/a.rs"]);
    }

    #[test]
    fn texts_that_are_not_paths_touch_nothing() {
        assert!(touched("read", r#"{"path":"https://x.org/a","query":"c.rs","path":"."}"#).is_empty());
        assert!(touched("bash", r#"{"command":"cat src/main.rs"}"#).is_empty());
    }
}

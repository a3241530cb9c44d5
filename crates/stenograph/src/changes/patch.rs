//! Parses patches as agents write them: the envelope that names its files on separate lines, and unified diffs. It applies
//! nothing.

use super::contents::Hunk;

/// The change of one file in a patch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PatchedFile {
    /// The file.
    pub path: String,
    /// What happens to it.
    pub action: PatchAction,
}

/// What a patch does to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PatchAction {
    /// Create it.
    Add(String),
    /// Delete it, with its contents if they are stated.
    Delete { was: Option<String> },
    /// Change lines, and possibly rename it.
    Update { hunks: Vec<Hunk>, to: Option<String> },
}

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";

/// The enveloped patch in a text, from its first line to its last.
pub(super) fn envelope(text: &str) -> Option<&str> {
    let from = memchr::memmem::find(text.as_bytes(), BEGIN.as_bytes())?;
    let text = text.get(from..)?;
    let end = memchr::memmem::find(text.as_bytes(), END.as_bytes())?;
    text.get(..end)
}

/// The changes in an enveloped patch, file by file.
pub(super) fn read_envelope(patch: &str) -> Vec<PatchedFile> {
    let mut found: Vec<PatchedFile> = Vec::new();
    let mut mark = ' ';
    for line in patch.split_inclusive('\n').skip(1) {
        let bare = line.trim_end_matches(['\n', '\r']);
        let named = |mark: &str| bare.strip_prefix(mark).map(|path| path.trim().to_owned());
        if let Some(path) = named("*** Add File: ") {
            found.push(PatchedFile { path, action: PatchAction::Add(String::new()) });
        } else if let Some(path) = named("*** Delete File: ") {
            found.push(PatchedFile { path, action: PatchAction::Delete { was: None } });
        } else if let Some(path) = named("*** Update File: ") {
            found.push(PatchedFile { path, action: PatchAction::Update { hunks: Vec::new(), to: None } });
        } else {
            match found.last_mut().map(|patched| &mut patched.action) {
                Some(PatchAction::Add(text)) if bare.starts_with('\\') => pop_newline(text),
                Some(PatchAction::Add(text)) => text.push_str(line.strip_prefix('+').unwrap_or_default()),
                Some(PatchAction::Update { to, .. }) if bare.starts_with("*** Move to: ") => {
                    *to = named("*** Move to: ");
                }
                Some(PatchAction::Update { .. }) if bare.starts_with("*** ") => {}
                Some(PatchAction::Update { hunks, .. }) => match bare.strip_prefix("@@") {
                    Some(after) => hunks.push(Hunk { after: named_line(after), ..Hunk::default() }),
                    None => mark = add_line(hunks, line, mark),
                },
                Some(PatchAction::Delete { .. }) | None => {}
            }
        }
    }
    for patched in &mut found {
        if let PatchAction::Update { hunks, .. } = &mut patched.action {
            hunks.retain(|hunk| hunk.old != hunk.new);
        }
    }
    found
}

/// The line that precedes a hunk of an envelope, if the hunk names it.
fn named_line(after: &str) -> Option<String> {
    let after = after.strip_prefix(' ').unwrap_or(after);
    let after = after.strip_suffix(" @@").unwrap_or(after);
    (!after.trim().is_empty()).then(|| after.to_owned())
}

/// Adds a line of a hunk, after a line with the mark `before`, and returns its mark. A line without a mark is unchanged:
/// models forget the space before an empty line.
pub(super) fn add_line(hunks: &mut Vec<Hunk>, line: &str, before: char) -> char {
    if hunks.is_empty() {
        hunks.push(Hunk::default());
    }
    let Some(hunk) = hunks.last_mut() else { return ' ' };
    let mark = line.chars().next().unwrap_or(' ');
    let rest = line.get(1..).unwrap_or_default();
    match mark {
        '-' => hunk.old.push_str(rest),
        '+' => hunk.new.push_str(rest),
        // The remark about a missing newline refers to the line before it.
        '\\' => {
            if before != '+' {
                pop_newline(&mut hunk.old);
            }
            if before != '-' {
                pop_newline(&mut hunk.new);
            }
        }
        ' ' => [&mut hunk.old, &mut hunk.new].into_iter().for_each(|side| side.push_str(rest)),
        _ => [&mut hunk.old, &mut hunk.new].into_iter().for_each(|side| side.push_str(line)),
    }
    mark
}

fn pop_newline(side: &mut String) {
    if side.ends_with('\n') {
        side.pop();
    }
}

/// The changes in a unified diff, file by file. A part that names no file applies to `path`.
pub(super) fn read_unified(diff: &str, path: Option<&str>) -> Vec<PatchedFile> {
    let mut found: Vec<PatchedFile> = Vec::new();
    let mut from: Option<String> = None;
    let mut mark = ' ';
    // The lines of a hunk that are still missing on both sides.
    let mut left = (0_usize, 0_usize);
    for line in diff.split_inclusive('\n') {
        let bare = line.trim_end_matches(['\n', '\r']);
        if left == (0, 0) {
            if let Some(name) = bare.strip_prefix("--- ") {
                from = side(name);
            } else if let Some(name) = bare.strip_prefix("+++ ") {
                let (old, new) = (from.take(), side(name));
                let Some(path) = new.clone().or(old.clone()) else { continue };
                let action = match (&old, &new) {
                    (None, _) => PatchAction::Add(String::new()),
                    (_, None) => PatchAction::Delete { was: Some(String::new()) },
                    (Some(old), Some(new)) => {
                        let to = (old != new).then(|| new.clone());
                        PatchAction::Update { hunks: Vec::new(), to }
                    }
                };
                found.push(PatchedFile { path: old.unwrap_or(path), action });
            } else if let Some(head) = head(bare) {
                if found.is_empty()
                    && let Some(path) = path
                {
                    let action = PatchAction::Update { hunks: Vec::new(), to: None };
                    found.push(PatchedFile { path: path.to_owned(), action });
                }
                left = (head.old, head.new);
                if let Some(PatchAction::Update { hunks, .. }) = found.last_mut().map(|patched| &mut patched.action) {
                    hunks.push(Hunk { at: Some(head.at), ..Hunk::default() });
                }
            } else if bare.starts_with('\\') {
                match found.last_mut().map(|patched| &mut patched.action) {
                    Some(PatchAction::Update { hunks, .. }) => mark = add_line(hunks, line, mark),
                    Some(PatchAction::Add(text) | PatchAction::Delete { was: Some(text) }) => pop_newline(text),
                    Some(PatchAction::Delete { was: None }) | None => {}
                }
            }
            continue;
        }
        match line.chars().next() {
            Some('-') => left.0 = left.0.saturating_sub(1),
            Some('+') => left.1 = left.1.saturating_sub(1),
            Some('\\') => {}
            _ => left = (left.0.saturating_sub(1), left.1.saturating_sub(1)),
        }
        match found.last_mut().map(|patched| &mut patched.action) {
            Some(PatchAction::Add(text) | PatchAction::Delete { was: Some(text) }) if line.starts_with('\\') => {
                pop_newline(text);
            }
            Some(PatchAction::Add(text)) => text.push_str(line.strip_prefix('+').unwrap_or_default()),
            Some(PatchAction::Update { hunks, .. }) => mark = add_line(hunks, line, mark),
            Some(PatchAction::Delete { was: Some(was) }) => was.push_str(line.strip_prefix('-').unwrap_or_default()),
            Some(PatchAction::Delete { was: None }) | None => {}
        }
    }
    found
}

/// The path of a side of a unified diff; `None` if there is no file.
fn side(name: &str) -> Option<String> {
    let name = name.split('\t').next().unwrap_or_default().trim().trim_matches('"');
    let name = name.strip_prefix("a/").or_else(|| name.strip_prefix("b/")).unwrap_or(name);
    (name != "/dev/null" && !name.is_empty()).then(|| name.to_owned())
}

struct Head {
    at: usize,
    old: usize,
    new: usize,
}

/// The numbers in the first line of a hunk.
fn head(line: &str) -> Option<Head> {
    let (old, rest) = line.strip_prefix("@@ -")?.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let side = |side: &str| -> Option<(usize, usize)> {
        match side.split_once(',') {
            Some((at, length)) => Some((at.parse().ok()?, length.parse().ok()?)),
            None => Some((side.parse().ok()?, 1)),
        }
    };
    let ((at, old), (_, new)) = (side(old)?, side(new)?);
    Some(Head { at, old, new })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hunk(at: Option<usize>, after: Option<&str>, old: &str, new: &str) -> Hunk {
        Hunk { at, after: after.map(str::to_owned), old: old.to_owned(), new: new.to_owned() }
    }

    #[test]
    fn an_envelope_is_read_file_by_file() {
        let text = "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: a.txt\n+one\n+\n*** Update File: b.rs\n*** Move to: c.rs\n\
                    @@ fn main() {\n x\n-y\n+z\n\n@@\n+w\n*** End of File\n*** Delete File: d\n*** End Patch\nEOF";
        let found = read_envelope(envelope(text).unwrap());
        let hunks = vec![hunk(None, Some("fn main() {"), "x\ny\n\n", "x\nz\n\n"), hunk(None, None, "", "w\n")];
        assert_eq!(
            found,
            [
                PatchedFile { path: "a.txt".into(), action: PatchAction::Add("one\n\n".into()) },
                PatchedFile { path: "b.rs".into(), action: PatchAction::Update { hunks, to: Some("c.rs".into()) } },
                PatchedFile { path: "d".into(), action: PatchAction::Delete { was: None } },
            ]
        );
    }

    #[test]
    fn an_envelope_without_an_end_was_cut() {
        assert_eq!(envelope("*** Begin Patch\n*** Add File: a\n+x"), None);
    }

    #[test]
    fn a_unified_diff_is_read_with_its_numbers() {
        let text = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -3,2 +3,2 @@ fn\n a\n--- b\n+++ c\n@@ -9 +9 @@\n-d\n+e\n\\ No newline at end of file\n\
                    --- /dev/null\n+++ b/new\n@@ -0,0 +1,1 @@\n+n\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-g\n";
        let hunks = vec![hunk(Some(3), None, "a\n-- b\n", "a\n++ c\n"), hunk(Some(9), None, "d\n", "e")];
        assert_eq!(
            read_unified(text, None),
            [
                PatchedFile { path: "x".into(), action: PatchAction::Update { hunks, to: None } },
                PatchedFile { path: "new".into(), action: PatchAction::Add("n\n".into()) },
                PatchedFile { path: "gone".into(), action: PatchAction::Delete { was: Some("g\n".into()) } },
            ]
        );
    }

    #[test]
    fn a_last_line_without_an_end_stays_one() {
        let text = "--- /dev/null\n+++ b/new\n@@ -0,0 +1,2 @@\n+a\n+b\n\\ No newline at end of file\n\
                    --- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-g\n\\ No newline at end of file\n";
        let found = read_unified(text, None);
        assert_eq!(found[0].action, PatchAction::Add("a\nb".into()));
        assert_eq!(found[1].action, PatchAction::Delete { was: Some("g".into()) });
        let text = "*** Begin Patch\n*** Add File: a\n+one\n\\ No newline at end of file\n*** End Patch";
        assert_eq!(read_envelope(envelope(text).unwrap())[0].action, PatchAction::Add("one".into()));
    }

    #[test]
    fn hunks_without_a_file_apply_to_the_given_path() {
        let found = read_unified("@@ -1 +1 @@\n-a\n+b\n", Some("x"));
        let hunks = vec![hunk(Some(1), None, "a\n", "b\n")];
        assert_eq!(found, [PatchedFile { path: "x".into(), action: PatchAction::Update { hunks, to: None } }]);
        assert_eq!(read_unified("no diff", Some("x")), []);
    }
}

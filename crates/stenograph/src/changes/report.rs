//! The change of one file for people and programs: a diff, and how much of it is known. It tracks nothing.

use super::contents::{Base, FileContents};
use super::file::File;
use super::parts::Part;
use super::unified::{Hunks, TextEnd, TextPosition, hunks, quoted};

/// The change of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// The current or last path: absolute if the working folder is known.
    pub path: String,
    /// The initial path, if the file was moved.
    pub from: Option<String>,
    /// The kind of change.
    pub how: ChangeHow,
    /// How much of the initial contents is known.
    pub base: BaseKnown,
    /// The number of added lines.
    pub added: u64,
    /// The number of removed lines.
    pub removed: u64,
    /// The net change as a unified diff. `git apply` accepts the exact part; the rest has no line numbers, and `git apply`
    /// ignores it.
    pub diff: String,
    /// Whether `git apply` accepts all of it.
    pub exact: bool,
}

/// The kind of change of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChangeHow {
    /// It was created.
    Created,
    /// It was written, and may have existed before.
    Written,
    /// It was edited.
    Changed,
    /// It was renamed, and possibly edited.
    Moved,
    /// It was deleted.
    Deleted,
}

impl ChangeHow {
    /// The name on the wire and for people.
    pub fn name(self) -> &'static str {
        match self {
            ChangeHow::Created => "created",
            ChangeHow::Written => "written",
            ChangeHow::Changed => "changed",
            ChangeHow::Moved => "moved",
            ChangeHow::Deleted => "deleted",
        }
    }
}

/// How much of a file's initial contents is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BaseKnown {
    /// All of it.
    Whole,
    /// Some parts, or the contents after an unrecorded change.
    Parts,
    /// Nothing.
    Nothing,
}

impl BaseKnown {
    /// The name on the wire and for people.
    pub fn name(self) -> &'static str {
        match self {
            BaseKnown::Whole => "whole",
            BaseKnown::Parts => "parts",
            BaseKnown::Nothing => "nothing",
        }
    }
}

/// The remark on hunks without line numbers.
const NOT_RECORDED: &str = "the file's initial contents are not recorded";

/// The remark on a diff that does not start where the previous one ends.
const ELSEWHERE: &str = "an unrecorded change to the file came before this one";

/// The change of a file; `None` if no change is known. `root` is the folder that paths in the diff are relative to.
pub(super) fn change(path: &str, file: &File, root: Option<&str>) -> Option<FileChange> {
    let mut change = FileChange {
        path: path.to_owned(),
        from: file.from.clone().filter(|from| from != path),
        how: ChangeHow::Changed,
        base: BaseKnown::Whole,
        added: 0,
        removed: 0,
        diff: String::new(),
        exact: true,
    };
    let (old, new) = (below(change.from.as_deref().unwrap_or(path), root), below(path, root));
    let mut first: Option<&FileContents> = None;
    for contents in &file.closed {
        Section { contents, old: &old, new: &old, is_first: first.is_none() }.write(&mut change);
        first = first.or(Some(contents));
    }
    if !file.contents.is_unchanged() || old != new {
        Section { contents: &file.contents, old: &old, new: &new, is_first: first.is_none() }.write(&mut change);
        first = first.or(Some(&file.contents));
    }
    let first = first?;
    change.how = how(first, &file.contents, change.from.is_some());
    change.base = match first {
        _ if !file.closed.is_empty() => BaseKnown::Parts,
        FileContents::Whole { base: Base::Absent | Base::Text(_), .. } => BaseKnown::Whole,
        FileContents::Whole { base: Base::Unknown, .. } => BaseKnown::Nothing,
        FileContents::Parts(parts) if parts.all().iter().any(|part| part.at.is_some()) => BaseKnown::Parts,
        FileContents::Parts(_) => BaseKnown::Nothing,
    };
    Some(change)
}

fn how(first: &FileContents, last: &FileContents, is_moved: bool) -> ChangeHow {
    let is_gone = matches!(last, FileContents::Whole { now: None, .. });
    match first {
        _ if is_gone => ChangeHow::Deleted,
        FileContents::Whole { base: Base::Absent, .. } => ChangeHow::Created,
        _ if is_moved => ChangeHow::Moved,
        FileContents::Whole { base: Base::Unknown, .. } => ChangeHow::Written,
        FileContents::Whole { base: Base::Text(_), .. } | FileContents::Parts(_) => ChangeHow::Changed,
    }
}

/// A path in a diff: relative to the root, with the prefix of a git path.
fn below(path: &str, root: Option<&str>) -> String {
    let slashes = |path: &str| -> String {
        let is_foreign = path.contains('\\') && !path.contains('/');
        if is_foreign { path.replace('\\', "/") } else { path.to_owned() }
    };
    let (path, root) = (slashes(path), root.map(slashes));
    let inside = root.and_then(|root| {
        let rest = path.strip_prefix(root.trim_end_matches('/'))?;
        Some(rest.strip_prefix('/')?.to_owned())
    });
    inside.unwrap_or_else(|| path.trim_start_matches('/').to_owned())
}

/// The diff of one state of the contents.
struct Section<'a> {
    contents: &'a FileContents,
    old: &'a str,
    new: &'a str,
    /// Only the first one begins with the initial file: the later ones cannot be applied to the same file.
    is_first: bool,
}

impl Section<'_> {
    fn write(&self, change: &mut FileChange) {
        let mut found = Hunks::default();
        let mut remark = if self.is_first { NOT_RECORDED } else { ELSEWHERE };
        let whole = if self.is_first { WHOLE } else { TextPosition { new: None, ..WHOLE } };
        let (mut head, mut sides) = (String::new(), (quoted("a/", self.old), quoted("b/", self.new)));
        if self.old != self.new {
            head = format!("rename from {}\nrename to {}\n", quoted("", self.old), quoted("", self.new));
        }
        match self.contents {
            FileContents::Whole { base: Base::Text(base), now: Some(now) } => hunks(base, now, whole, &mut found),
            FileContents::Whole { base: Base::Absent, now } => {
                "new file mode 100644\n".clone_into(&mut head);
                sides.0 = "/dev/null".to_owned();
                hunks("", now.as_deref().unwrap_or_default(), whole, &mut found);
            }
            FileContents::Whole { base: Base::Text(base), now: None } => {
                "deleted file mode 100644\n".clone_into(&mut head);
                sides.1 = "/dev/null".to_owned();
                hunks(base, "", whole, &mut found);
            }
            FileContents::Whole { base: Base::Unknown, now: Some(now) } => {
                hunks("", now, TextPosition { old: None, new: Some(1), end: TextEnd::OfFile }, &mut found);
            }
            FileContents::Whole { base: Base::Unknown, now: None } => {
                remark = "the file was deleted; its contents are not recorded";
                sides.1 = "/dev/null".to_owned();
            }
            FileContents::Parts(parts) => {
                let lines = parts.lines_alone();
                for (part, line) in parts.all().iter().zip(lines).filter(|(part, _)| part.is_changed()) {
                    part_hunks(part, line.filter(|_| self.is_first), &mut found);
                }
            }
        }
        change.added += found.added;
        change.removed += found.removed;
        let is_silent = found.applicable.is_empty() && found.for_people.is_empty();
        if !found.applicable.is_empty() || is_silent && !head.is_empty() {
            // For a file without hunks, git takes the path from the first line, if the names on both sides are equal.
            let first = if head.starts_with("new") || head.starts_with("deleted") { self.new } else { self.old };
            change.diff.push_str(&format!("diff --git {} {}\n", quoted("a/", first), quoted("b/", self.new)));
            change.diff.push_str(&head);
            if !found.applicable.is_empty() {
                change.diff.push_str(&format!(
                    "--- {}\n+++ {}\n{}",
                    tabbed(&sides.0),
                    tabbed(&sides.1),
                    found.applicable
                ));
            }
        }
        if !found.for_people.is_empty() || is_silent && head.is_empty() {
            change.exact = false;
            let (old, new) = (tabbed(&sides.0), tabbed(&sides.1));
            change.diff.push_str(&format!("diff {} {}\n--- {old}\n+++ {new}\n{remark}\n", sides.0, sides.1));
            change.diff.push_str(&found.for_people);
        }
    }
}

const WHOLE: TextPosition = TextPosition { old: Some(1), new: Some(1), end: TextEnd::OfFile };

fn part_hunks(part: &Part, line: Option<usize>, out: &mut Hunks) {
    if let Some(label) = &part.label {
        out.for_people.push_str(&format!("{label}: the earlier contents are not recorded\n"));
    }
    hunks(part.was(), &part.now, TextPosition { old: part.at, new: line, end: TextEnd::Unknown }, out);
}

/// In the head of a diff, git writes a tab after a path that contains a space.
fn tabbed(path: &str) -> String {
    if path.contains(' ') && !path.starts_with('"') { format!("{path}\t") } else { path.to_owned() }
}

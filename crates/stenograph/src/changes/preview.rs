//! The change that one call requests, as a diff for people. Unlike the fold [`Changes`](super::Changes), it does not know
//! the file before the call, so most hunks have no line numbers.

use super::contents::Before;
use super::step::{Act, plan};
use super::unified::{Hunks, TextEnd, TextPosition, hunks};
use crate::model::{Body, Event};

/// What a call requests to change in one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestedChange {
    /// The path of the file: absolute if the working folder is known.
    pub path: String,
    /// What happens to the file.
    pub kind: RequestedKind,
    /// The hunks of the diff, without a header.
    pub diff: String,
    /// The number of added lines.
    pub added: u64,
    /// The number of removed lines.
    pub removed: u64,
}

/// What a call requests to do with a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RequestedKind {
    /// Change part of it.
    #[default]
    Edit,
    /// Replace or create the whole file.
    Write,
    /// Delete it.
    Delete,
    /// Rename it to this path.
    Move(String),
}

/// The changes that a call requests, one for each file and kind, in order. Empty for calls that change no file, and for shell commands.
pub fn requested_changes(event: &Event<'_>) -> Vec<RequestedChange> {
    let Body::ToolCall { name, input, .. } = &event.body else { return Vec::new() };
    let mut changes: Vec<RequestedChange> = Vec::new();
    for step in plan(name, input, event.cwd.as_deref()).steps {
        let mut out = Hunks::default();
        let unknown = TextPosition { old: None, new: None, end: TextEnd::Unknown };
        let kind = match step.act {
            Act::Write { text, before } => {
                let old = (before == Before::Absent).then_some(1);
                hunks("", &text, TextPosition { old, new: Some(1), end: TextEnd::Unknown }, &mut out);
                RequestedKind::Write
            }
            Act::Append(text) | Act::Insert { text, .. } | Act::Cell { source: Some(text), .. } => {
                hunks("", &text, unknown, &mut out);
                RequestedKind::Edit
            }
            Act::Replace { old, new, .. } => {
                hunks(&old, &new, unknown, &mut out);
                RequestedKind::Edit
            }
            Act::Patch(patch) => {
                for hunk in patch {
                    hunks(
                        &hunk.old,
                        &hunk.new,
                        TextPosition { old: hunk.at, new: hunk.at, end: TextEnd::Unknown },
                        &mut out,
                    );
                }
                RequestedKind::Edit
            }
            Act::Delete => RequestedKind::Delete,
            Act::Move(to) => RequestedKind::Move(to),
            Act::See(_) | Act::Look { .. } | Act::Undo | Act::Cell { source: None, .. } | Act::Opaque(_) => continue,
        };
        if step.path.is_empty() {
            continue;
        }
        let diff = out.applicable + &out.for_people;
        match changes.last_mut().filter(|last| last.path == step.path && last.kind == kind) {
            Some(last) => {
                last.diff.push_str(&diff);
                last.added += out.added;
                last.removed += out.removed;
            }
            None => {
                changes.push(RequestedChange { path: step.path, kind, diff, added: out.added, removed: out.removed });
            }
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Input;

    fn requested(tool: &'static str, input: &'static str) -> Vec<RequestedChange> {
        let body = Body::ToolCall { call: None, name: tool.into(), input: Input::Json(input.into()) };
        requested_changes(&Event { cwd: Some("/w".into()), ..Event::new(body) })
    }

    #[test]
    fn a_replacement_is_a_hunk_without_numbers() {
        let found = requested("Edit", r#"{"file_path":"/w/a.rs","old_string":"a\nb\n","new_string":"a\nc\n"}"#);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].path.as_str(), found[0].added, found[0].removed), ("/w/a.rs", 1, 1));
        assert!(found[0].diff.contains("\n a\n-b\n+c\n"), "{}", found[0].diff);
    }

    #[test]
    fn a_patch_names_its_files() {
        let patch = r#"{"input":"*** Begin Patch\n*** Add File: n\n+x\n*** Delete File: d\n*** Update File: u\n@@\n-1\n+2\n*** End Patch"}"#;
        let found = requested("apply_patch", patch);
        let kinds: Vec<(&str, &RequestedKind)> =
            found.iter().map(|change| (change.path.as_str(), &change.kind)).collect();
        assert_eq!(
            kinds,
            [("/w/n", &RequestedKind::Write), ("/w/d", &RequestedKind::Delete), ("/w/u", &RequestedKind::Edit)]
        );
    }

    #[test]
    fn reading_and_commands_request_no_change() {
        assert!(requested("Read", r#"{"file_path":"/a"}"#).is_empty());
        assert!(requested("Bash", r#"{"command":"rm /a"}"#).iter().all(|change| change.kind == RequestedKind::Delete));
    }
}

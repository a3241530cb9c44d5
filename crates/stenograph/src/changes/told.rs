//! What a record says of files in a shape for programs, beside the words for the model: what a file was before, which lines were
//! changed, what was shown of it. Formats say where such a shape stands; what it says is told by its keys.

use super::contents::Hunk;
use super::patch::{Deed, Patched, add_line, read_unified};
use crate::json::{Object, items};
use crate::model::Event;
use crate::text::Text;

/// What a record says of files.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Told {
    /// The call it is about, where the record is no result.
    pub call: Option<String>,
    /// Whether the call did what it was to do.
    pub success: Option<bool>,
    /// What the file was before.
    pub before: Option<Was>,
    /// What it is after.
    pub after: Option<String>,
    /// The lines that were changed.
    pub hunks: Vec<Hunk>,
    /// Whether somebody changed what was to be done before it was done.
    pub amended: bool,
    /// What was shown of the file.
    pub shown: Option<Sight>,
    /// What became of each file, where a call has several.
    pub files: Vec<Patched>,
}

/// What a file was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Was {
    Absent,
    Text(String),
}

/// Lines of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sight {
    /// The line they begin at, from 1.
    pub at: usize,
    pub text: String,
    /// Whether they are all there are.
    pub all: bool,
}

/// What an event's record says of files; `None` where it says nothing.
pub(super) fn told(event: &Event<'_>) -> Option<Told> {
    let mut told = Told::default();
    let mut found = false;
    let (mut created, mut updated) = (false, false);
    let mut written: Option<String> = None;
    for (info, residue) in event.extra.known().filter(|(info, _)| !info.effects.is_empty()) {
        residue.each("", &mut |path, raw| {
            if info.effects_call == Some(path) {
                told.call = text(raw);
            }
            for field in info.effects {
                let mut take = |key: &str, raw: &str| {
                    found |= told.take(key, raw);
                    created |= key == "type" && raw == "\"create\"";
                    updated |= key == "type" && raw == "\"update\"";
                    if key == "content" {
                        written = text(raw);
                    }
                };
                if path == *field {
                    Object::parse(raw).iter().flat_map(Object::pairs).for_each(|(key, raw)| take(key, raw));
                } else if let Some(key) = path.strip_prefix(field).and_then(|rest| rest.strip_prefix('.')) {
                    take(key.split('.').next().unwrap_or_default(), raw);
                }
            }
        });
    }
    if created && !updated && told.before.is_none() {
        told.before = Some(Was::Absent);
    }
    if created || updated {
        // What was written may be more than what was to be written.
        told.after = told.after.or(written);
    }
    (found || told.before.is_some() || told.after.is_some()).then_some(told)
}

impl Told {
    /// Takes a field, and says whether it told something.
    fn take(&mut self, key: &str, raw: &str) -> bool {
        match key {
            "originalFile" | "originalFileContents" | "original_file" => {
                self.before = text(raw).map(Was::Text).or(self.before.take());
                self.before.is_some()
            }
            "updated_file" => {
                self.after = text(raw);
                self.after.is_some()
            }
            "structuredPatch" => {
                self.hunks = items(raw).unwrap_or_default().into_iter().filter_map(hunk).collect();
                !self.hunks.is_empty()
            }
            "userModified" => {
                self.amended = raw == "true";
                false
            }
            "success" => {
                self.success = raw.parse().ok();
                false
            }
            "file" => {
                self.shown = sight(raw);
                self.shown.is_some()
            }
            "changes" => {
                self.files = changes(raw);
                !self.files.is_empty()
            }
            _ => false,
        }
    }
}

fn text(raw: &str) -> Option<String> {
    Some(Text::from_json(raw)?.decode().into_owned())
}

fn number(object: &Object<'_>, key: &str) -> Option<usize> {
    object.peek(key)?.parse().ok()
}

/// Lines that were shown of a file.
fn sight(raw: &str) -> Option<Sight> {
    let object = Object::parse(raw)?;
    let (at, length, total) =
        (number(&object, "startLine")?, number(&object, "numLines")?, number(&object, "totalLines")?);
    let mut text = text(object.peek("content")?)?;
    let all = at <= 1 && length == total;
    // The lines are joined: the last of those asked for has an end, if it is not the last of all.
    if at + length <= total {
        text.push('\n');
    }
    Some(Sight { at: at.max(1), text, all })
}

/// A hunk with its lines in a list.
fn hunk(raw: &str) -> Option<Hunk> {
    let object = Object::parse(raw)?;
    let mut hunks = vec![Hunk { at: number(&object, "oldStart"), ..Hunk::default() }];
    let mut mark = ' ';
    for line in items(object.peek("lines")?)? {
        mark = add_line(&mut hunks, &format!("{}\n", text(line)?), mark);
    }
    hunks.pop()
}

/// What became of files, by path.
fn changes(raw: &str) -> Vec<Patched> {
    let Some(object) = Object::parse(raw) else { return Vec::new() };
    let change = |(path, raw): (&str, &str)| {
        let change = Object::parse(raw)?;
        let path = path.to_owned();
        let deed = match change.peek_str("type").as_deref() {
            Some("add") => Deed::Add(text(change.peek("content")?)?),
            Some("delete") => Deed::Delete { was: change.peek("content").and_then(text) },
            _ => {
                let diff = text(change.peek("unified_diff")?)?;
                let to = change.peek_str("move_path").map(std::borrow::Cow::into_owned);
                let hunks = read_unified(&diff, Some(&path)).into_iter().find_map(|patched| match patched.deed {
                    Deed::Update { hunks, .. } => Some(hunks),
                    Deed::Add(_) | Deed::Delete { .. } => None,
                });
                Deed::Update { hunks: hunks.unwrap_or_default(), to }
            }
        };
        Some(Patched { path, deed })
    };
    object.pairs().filter_map(change).collect()
}

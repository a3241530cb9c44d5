//! What a record reports about files for programs, in addition to the text for the model: the file before, the changed lines,
//! the lines shown. Formats say where such a report is; its keys say what it means.

use super::contents::Hunk;
use super::patch::{PatchAction, PatchedFile, add_line, read_unified};
use crate::json::{Object, items};
use crate::model::Event;
use crate::text::Text;

/// The report of a record about files.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct FileReport {
    /// The call that it is about, if the record is not a result.
    pub call: Option<String>,
    /// Whether the call succeeded.
    pub success: Option<bool>,
    /// The file before the call.
    pub before: Option<Was>,
    /// The file after the call.
    pub after: Option<String>,
    /// The changed lines.
    pub hunks: Vec<Hunk>,
    /// Whether a person changed the request before it was carried out.
    pub amended: bool,
    /// The lines of the file that were shown.
    pub shown: Option<Sight>,
    /// The changes of each file, if the call has several.
    pub files: Vec<PatchedFile>,
}

/// The file before a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Was {
    Absent,
    Text(String),
}

/// Lines of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sight {
    /// The first line, from 1.
    pub at: usize,
    pub text: String,
    /// Whether they are the whole file.
    pub all: bool,
}

/// The report of an event's record about files; `None` if there is none.
pub(super) fn file_report(event: &Event<'_>) -> Option<FileReport> {
    let mut report = FileReport::default();
    let mut found = false;
    let (mut created, mut updated) = (false, false);
    let mut written: Option<String> = None;
    for (info, extra) in event.extra.known().filter(|(info, _)| !info.effects.is_empty()) {
        extra.each("", &mut |path, raw| {
            if info.effects_call == Some(path) {
                report.call = text(raw);
            }
            for field in info.effects {
                let mut take = |key: &str, raw: &str| {
                    found |= report.take(key, raw);
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
    if created && !updated && report.before.is_none() {
        report.before = Some(Was::Absent);
    }
    if created || updated {
        // The written text may differ from the requested one.
        report.after = report.after.or(written);
    }
    (found || report.before.is_some() || report.after.is_some()).then_some(report)
}

impl FileReport {
    /// Takes a field, and returns whether it reported something.
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

/// The lines of a file that were shown.
fn sight(raw: &str) -> Option<Sight> {
    let object = Object::parse(raw)?;
    let (at, length, total) =
        (number(&object, "startLine")?, number(&object, "numLines")?, number(&object, "totalLines")?);
    let mut text = text(object.peek("content")?)?;
    let all = at <= 1 && length == total;
    // The lines are joined: the last requested line has a newline, unless it is the last of the file.
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

/// The changes of files, by path.
fn changes(raw: &str) -> Vec<PatchedFile> {
    let Some(object) = Object::parse(raw) else { return Vec::new() };
    let change = |(path, raw): (&str, &str)| {
        let change = Object::parse(raw)?;
        let path = path.to_owned();
        let action = match change.peek_str("type").as_deref() {
            Some("add") => PatchAction::Add(text(change.peek("content")?)?),
            Some("delete") => PatchAction::Delete { was: change.peek("content").and_then(text) },
            _ => {
                let diff = text(change.peek("unified_diff")?)?;
                let to = change.peek_str("move_path").map(std::borrow::Cow::into_owned);
                let hunks = read_unified(&diff, Some(&path)).into_iter().find_map(|patched| match patched.action {
                    PatchAction::Update { hunks, .. } => Some(hunks),
                    PatchAction::Add(_) | PatchAction::Delete { .. } => None,
                });
                PatchAction::Update { hunks: hunks.unwrap_or_default(), to }
            }
        };
        Some(PatchedFile { path, action })
    };
    object.pairs().filter_map(change).collect()
}

//! What a call requests to do to files, by the shape of its input: every agent has tools that write, replace and patch, and
//! they look alike. It names no agent and no tool, and applies nothing.

use std::cell::Cell;

use super::contents::{Before, Hunk, Times};
use super::patch::{self, PatchAction, PatchedFile};
use super::shell;
use crate::json::{Object, items};
use crate::model::Input;
use crate::query::{TouchHow, is_path, joined, verb};
use crate::text::{Text, name_words};

/// One step: a change of one file, or a look at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// The file, relative to the working folder.
    pub path: String,
    /// The action.
    pub act: Act,
}

/// An action on a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// Its whole contents are reported.
    See(String),
    /// It is read; the flag says whether the whole file was requested.
    Look { all: bool },
    /// Replace its contents.
    Write { text: String, before: Before },
    /// Append to it.
    Append(String),
    /// Replace a text.
    Replace { old: String, new: String, times: Times },
    /// Insert lines after a line.
    Insert { after: usize, text: String },
    /// Change lines.
    Patch(Vec<Hunk>),
    /// Delete it.
    Delete,
    /// Rename it.
    Move(String),
    /// Undo the last change.
    Undo,
    /// Replace the source of a notebook cell; `None` deletes the cell.
    Cell { label: String, source: Option<String> },
    /// A change that cannot be tracked.
    Opaque(Opaque),
}

/// Why a possible change of files cannot be tracked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Opaque {
    /// A shell command that may write.
    Command,
    /// An edit in an unknown form.
    Shape,
    /// A patch that cannot be parsed.
    Patch,
    /// Content that is incomplete or not text.
    Damaged,
}

/// What a call requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// Whether the tool can undo its changes.
    pub undoable: bool,
}

/// The most steps of one call: a patch may name many files.
const STEPS_MAX: usize = 4096;

/// The steps that a call of this tool requests.
pub(super) fn plan(tool: &str, input: &Input<'_>, cwd: Option<&str>) -> Plan {
    let mut plan = Plan::default();
    match input {
        Input::Text(text) => {
            let text = text.decode();
            if text.trim_start().starts_with("*** Begin Patch") {
                enveloped(&text, cwd, &mut plan.steps);
            } else if patch::envelope(&text).is_some() {
                // A program that contains a patch: only the program knows what it does with it.
                plan.steps.push(Step { path: String::new(), act: Act::Opaque(Opaque::Patch) });
            }
        }
        Input::Json(raw) => {
            if let Some(object) = Object::parse(raw) {
                Fields { object, tool, cwd, damaged: Cell::new(false) }.read(&mut plan);
            }
        }
    }
    plan.steps.truncate(STEPS_MAX);
    plan
}

/// The steps of an enveloped patch.
fn enveloped(text: &str, cwd: Option<&str>, steps: &mut Vec<Step>) {
    match patch::envelope(text) {
        Some(patch) => patched(patch::read_envelope(patch), cwd, steps),
        None => steps.push(Step { path: String::new(), act: Act::Opaque(Opaque::Patch) }),
    }
}

/// The steps of a patch.
pub(super) fn patched(files: Vec<PatchedFile>, cwd: Option<&str>, steps: &mut Vec<Step>) {
    for PatchedFile { path, action } in files.into_iter().filter(|file| is_path(&file.path)) {
        let path = joined(&path, cwd).into_owned();
        match action {
            PatchAction::Add(text) => steps.push(Step { path, act: Act::Write { text, before: Before::Absent } }),
            PatchAction::Delete { was } => {
                steps.extend(was.map(|was| Step { path: path.clone(), act: Act::See(was) }));
                steps.push(Step { path, act: Act::Delete });
            }
            PatchAction::Update { hunks, to } => {
                let to = to.map(|to| joined(&to, cwd).into_owned());
                if !hunks.is_empty() {
                    steps.push(Step { path: path.clone(), act: Act::Patch(hunks) });
                }
                if let Some(to) = to {
                    steps.push(Step { path, act: Act::Move(to) });
                }
            }
        }
    }
}

/// Keys by meaning, without word separators, the more certain ones first.
const PATHS: [&str; 12] = [
    "filepath",
    "path",
    "absolutepath",
    "targetfile",
    "notebookpath",
    "filename",
    "file",
    "relativeworkspacepath",
    "relativepath",
    "sourcepath",
    "oldpath",
    "source",
];
const TARGETS: [&str; 6] = ["destination", "destinationpath", "newpath", "targetpath", "to", "newname"];
const OLD: [&str; 7] = ["oldstring", "oldstr", "oldtext", "search", "oldcontent", "originaltext", "find"];
const NEW: [&str; 7] = ["newstring", "newstr", "newtext", "replace", "replacement", "newcontent", "inserttext"];
const WHOLE: [&str; 5] = ["content", "filetext", "contents", "text", "filecontent"];
const COMMANDS: [&str; 4] = ["command", "cmd", "script", "commandline"];
const FOLDERS: [&str; 4] = ["workdir", "cwd", "directory", "dir"];

/// The fields of a tool's input.
struct Fields<'a> {
    object: Object<'a>,
    tool: &'a str,
    cwd: Option<&'a str>,
    /// Whether a text could not be decoded.
    damaged: Cell<bool>,
}

impl Fields<'_> {
    fn read(&self, plan: &mut Plan) {
        let folder = self.text(&FOLDERS).filter(|folder| is_path(folder));
        let cwd = folder.map(|folder| joined(&folder, self.cwd).into_owned());
        let cwd = cwd.as_deref().or(self.cwd);
        let path = self.text(&PATHS).filter(|path| is_path(path)).map(|path| joined(path.trim(), cwd).into_owned());
        let action = self.text(&["command", "action", "operation", "op", "mode"]).filter(|action| action.len() <= 32);
        let patch = ["input", "patch", "diff", "patchtext", "content"]
            .into_iter()
            .filter_map(|key| self.text(&[key]))
            .find(|text| text.trim_start().starts_with("*** Begin Patch"));
        if let Some(patch) = patch {
            return enveloped(&patch, cwd, &mut plan.steps);
        }
        let Some(path) = path else {
            if let Some(command) = self.command() {
                shell::read(&command, cwd, &mut plan.steps);
            } else if let Some(diff) = self.text(&["patch", "diff"]) {
                patched(patch::read_unified(&diff, None), cwd, &mut plan.steps);
            }
            return;
        };
        plan.undoable = action.is_some();
        let has_word = |word: &str| {
            let words = action.as_deref().map(name_words).unwrap_or_default();
            words.iter().chain(&name_words(self.tool)).any(|part| part == word)
        };
        let how = action.as_deref().and_then(verb).or_else(|| verb(self.tool));
        let mut acts: Vec<Act> = Vec::new();
        if has_word("undo") {
            acts.push(Act::Undo);
        } else {
            self.acts(&path, how, &has_word, &mut acts);
        }
        if self.damaged.get() || acts.iter().any(is_binary) {
            acts = vec![Act::Opaque(Opaque::Damaged)];
        }
        plan.steps.extend(acts.into_iter().map(|act| Step { path: path.clone(), act }));
    }

    /// The steps on the one file that the input names.
    fn acts(&self, path: &str, how: Option<TouchHow>, has_word: &dyn Fn(&str) -> bool, acts: &mut Vec<Act>) {
        let (old, new) = (self.text(&OLD), self.text(&NEW));
        let whole = self.text(&WHOLE);
        let insert = self.number(&["insertline", "afterline"]);
        // An input in the form of an edit is one, whatever the name of the tool.
        let is_diff = self.text(&["patch", "diff"]).is_some_and(|diff| diff.contains("@@ -"));
        let how = how.or((is_diff || old.is_some() && new.is_some()).then_some(TouchHow::Edited));
        match how {
            Some(TouchHow::Read) => {
                const SOME: [&str; 8] =
                    ["offset", "limit", "viewrange", "startline", "endline", "from", "linestart", "lineend"];
                let is_some = |key: &&str| self.raw(&[key]).is_some_and(|raw| raw != "null" && raw != "0");
                acts.push(Act::Look { all: !SOME.iter().any(is_some) });
                return;
            }
            Some(TouchHow::Deleted) if old.is_none() => return acts.push(Act::Delete),
            Some(TouchHow::Named) | None => return,
            Some(TouchHow::Written | TouchHow::Edited | TouchHow::Deleted) => {}
        }
        if self.raw(&["owner"]).is_some() && self.raw(&["repo"]).is_some() {
            // A file in a remote repository.
            return;
        }
        if has_word("move") || has_word("rename") {
            let to = self.text(&TARGETS).filter(|to| is_path(to));
            acts.push(to.map_or(Act::Opaque(Opaque::Shape), |to| Act::Move(joined(&to, self.cwd).into_owned())));
        } else if let Some(edits) = self.raw(&["edits"]).and_then(items) {
            acts.extend(edits.into_iter().map(|edit| self.edit(edit)));
        } else if let Some(label) = self.cell() {
            let is_deleted = self.text(&["editmode"]).as_deref() == Some("delete");
            let source = self.text(&["newsource"]).filter(|_| !is_deleted);
            acts.push(Act::Cell { label, source });
        } else if let (Some(after), Some(text)) = (insert, new.clone().or(whole.clone())) {
            acts.push(Act::Insert { after, text });
        } else if let Some(old) = old {
            acts.push(Act::Replace { old, new: new.unwrap_or_default(), times: self.times() });
        } else if let Some(diff) = self.text(&["patch", "diff"]) {
            let files = patch::read_unified(&diff, Some(path));
            let mut steps = Vec::new();
            patched(files, None, &mut steps);
            let is_read = !steps.is_empty();
            acts.extend(steps.into_iter().map(|step| step.act));
            if !is_read {
                acts.push(Act::Opaque(Opaque::Patch));
            }
        } else if let Some(text) =
            whole.filter(|_| how == Some(TouchHow::Written) || !has_word("edit") && !has_word("append"))
        {
            let before = if has_word("create") { Before::Absent } else { Before::Unknown };
            acts.push(Act::Write { text, before });
        } else if let Some(text) = self.text(&WHOLE).filter(|_| has_word("append")) {
            acts.push(Act::Append(text));
        } else {
            acts.push(Act::Opaque(Opaque::Shape));
        }
    }

    /// One of several replacements.
    fn edit(&self, raw: &str) -> Act {
        let Some(object) = Object::parse(raw) else { return Act::Opaque(Opaque::Shape) };
        let edit = Fields { object, tool: self.tool, cwd: self.cwd, damaged: Cell::new(false) };
        let texts = (edit.text(&OLD), edit.text(&NEW));
        self.damaged.set(self.damaged.get() || edit.damaged.get());
        match texts {
            (Some(old), Some(new)) => Act::Replace { old, new, times: edit.times() },
            (Some(_) | None, _) => Act::Opaque(Opaque::Shape),
        }
    }

    fn times(&self) -> Times {
        let all =
            self.raw(&["replaceall", "all", "allowmultiple"]).is_some_and(|raw| raw == "true" || raw == "\"true\"");
        let several = self.number(&["expectedreplacements", "expectedoccurrences"]).is_some_and(|number| number > 1);
        if all || several { Times::Everywhere } else { Times::Once }
    }

    /// The label of a notebook cell.
    fn cell(&self) -> Option<String> {
        self.raw(&["newsource"])?;
        if self.text(&["editmode"]).as_deref() == Some("insert") {
            return Some(format!(
                "a new cell after {}",
                self.cell_name().unwrap_or_else(|| "the beginning".to_owned())
            ));
        }
        Some(self.cell_name().unwrap_or_else(|| "a cell".to_owned()))
    }

    fn cell_name(&self) -> Option<String> {
        let number = self.number(&["cellnumber", "cellindex"]).map(|number| number.to_string());
        self.text(&["cellid"]).or(number).map(|name| format!("cell {name}"))
    }

    /// A shell command: one text, or a list of words.
    fn command(&self) -> Option<String> {
        let raw = self.raw(&COMMANDS)?;
        let word = |raw: &str| Text::from_json(raw).map(|text| text.decode().into_owned());
        match items(raw) {
            // The last word of `bash -lc "…"` is the command.
            Some(words) => {
                let words: Vec<String> = words.into_iter().filter_map(word).collect();
                let is_shell = words.len() == 3 && words.get(1).is_some_and(|flag| flag.starts_with('-'));
                if is_shell { words.into_iter().nth(2) } else { Some(words.join(" ")) }
            }
            None => word(raw),
        }
    }

    fn raw(&self, keys: &[&str]) -> Option<&str> {
        let is = |key: &str, known: &str| {
            let letters = key.bytes().filter(|byte| !matches!(byte, b'_' | b'-')).map(|byte| byte.to_ascii_lowercase());
            known.bytes().eq(letters)
        };
        keys.iter().find_map(|known| self.object.pairs().find(|(key, _)| is(key, known)).map(|(_, raw)| raw))
    }

    fn text(&self, keys: &[&str]) -> Option<String> {
        keys.iter().find_map(|key| {
            let text = Text::from_json(self.raw(&[key])?)?;
            self.damaged.set(self.damaged.get() || text.is_damaged());
            Some(text.decode().into_owned())
        })
    }

    fn number(&self, keys: &[&str]) -> Option<usize> {
        self.raw(keys)?.trim_matches('"').parse().ok()
    }
}

/// Whether a text cannot be part of a text file.
fn is_binary(act: &Act) -> bool {
    match act {
        Act::Write { text, .. } | Act::Append(text) | Act::Insert { text, .. } => text.contains('\0'),
        Act::Replace { old, new, .. } => old.contains('\0') || new.contains('\0'),
        Act::See(_)
        | Act::Look { .. }
        | Act::Patch(_)
        | Act::Delete
        | Act::Move(_)
        | Act::Undo
        | Act::Cell { .. }
        | Act::Opaque(_) => false,
    }
}

#[cfg(test)]
mod tests;

//! What a move did, for people and programs. Standard output gets only the command that resumes the session, so that a shell can
//! run it; everything else goes to standard error.

use std::path::PathBuf;

use stenograph::convert::{ConversionMethod, Outcome};
use stenograph::format::Format;
use stenograph::json::Draft;
use stenograph::resume::{self, ResumeTarget};

use super::Syntax;
use crate::error::{CommandError, ExitStatus};
use crate::output::{Output, counted, harmless_json};

/// What became of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveKind {
    /// It is a new session of the other agent.
    Placed,
    /// Its agent imported it.
    Imported,
    /// Its original was gone and is in its place again.
    Restored,
    /// Its new turns are at the end of the original.
    Appended,
    /// The original has new turns of its own: it is a fork beside it.
    Forked,
    /// The original has all its turns already.
    Unchanged,
    /// It followed its folder, and these fields name the new one.
    Followed { fields: u64 },
}

impl MoveKind {
    fn name(self) -> &'static str {
        match self {
            MoveKind::Placed => "placed",
            MoveKind::Imported => "imported",
            MoveKind::Restored => "restored",
            MoveKind::Appended => "appended",
            MoveKind::Forked => "forked",
            MoveKind::Unchanged => "unchanged",
            MoveKind::Followed { .. } => "followed",
        }
    }
}

/// The commands of the agent that imported a session.
#[derive(Clone, Debug)]
pub struct ImportCommands {
    pub import: String,
    /// Removes the session again.
    pub remove: Option<String>,
}

/// A session that was moved.
#[derive(Debug)]
pub struct Moved {
    /// The name that the user gave.
    name: String,
    from: &'static dyn Format,
    to: &'static dyn Format,
    pub kind: MoveKind,
    /// The session id of the source.
    source: Option<String>,
    /// Its id after the move.
    pub id: String,
    /// Its file after the move.
    pub path: PathBuf,
    folder: Option<String>,
    /// The file that it came from, if it was not copied, or that it is a fork of.
    pub original: Option<PathBuf>,
    /// The files of its sub-agents, which do not move.
    pub left_behind: Option<PathBuf>,
    pub undo: Option<PathBuf>,
    pub import: Option<ImportCommands>,
    pub is_dry_run: bool,
    outcome: Outcome,
}

/// Stands for the id in a path that nothing was written to: every run makes a new one.
const NEW_ID: &str = "NEW-ID";

impl Moved {
    pub fn new(
        name: &str,
        from: &'static dyn Format,
        to: &'static dyn Format,
        kind: MoveKind,
        id: String,
        path: PathBuf,
        outcome: Outcome,
    ) -> Moved {
        Moved {
            name: name.to_owned(),
            from,
            to,
            kind,
            source: None,
            id,
            path,
            folder: None,
            original: None,
            left_behind: None,
            undo: None,
            import: None,
            is_dry_run: false,
            outcome,
        }
    }

    pub fn set_folder(&mut self, folder: Option<String>, source: Option<String>) {
        (self.folder, self.source) = (folder, source);
    }

    /// The command that resumes the session.
    pub fn command(&self, shell: Syntax) -> Result<String, CommandError> {
        let info = self.to.info();
        let template =
            info.resume.ok_or_else(|| CommandError::new(format!("{} cannot resume a session", info.agent)))?;
        let file = self.path.display().to_string();
        let id = self.shown_id();
        let target = ResumeTarget { session: Some(id), file: Some(&file), folder: self.folder.as_deref() };
        resume::line(template, &target, shell.quoting()).map_err(|refused| {
            CommandError::new(format!("{}: no safe command: {refused}", self.name))
                .hint(format!("read the session with steno show {}", self.path.display()))
        })
    }

    /// Whether a dry run would have made up the id.
    fn is_id_unknown(&self) -> bool {
        self.is_dry_run && matches!(self.kind, MoveKind::Placed | MoveKind::Imported | MoveKind::Forked)
    }

    fn shown_id(&self) -> &str {
        if self.is_id_unknown() { NEW_ID } else { &self.id }
    }

    fn shown_path(&self) -> String {
        let path = self.path.display().to_string();
        // The names of some agents have only the beginning of the id.
        let beginning = self.id.get(..8).unwrap_or(&self.id);
        if self.is_id_unknown() { path.replace(&self.id, NEW_ID).replace(beginning, NEW_ID) } else { path }
    }

    /// Prints the report, and the command on standard output.
    pub fn print(&self, shell: Syntax, json: bool, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
        let command = self.command(shell)?;
        if json {
            output.line(&harmless_json(&self.json(&command, shell)))?;
            return Ok(ExitStatus::Done);
        }
        self.explain(output);
        output.line(&command)?;
        Ok(ExitStatus::Done)
    }

    /// Says what happened, on standard error.
    pub fn explain(&self, output: &mut Output<'_>) {
        let (from, to) = (self.from.info().agent, self.to.info().agent);
        let would = |done: &'static str, would: &'static str| if self.is_dry_run { would } else { done };
        let events = counted(self.outcome.outline.events, "event");
        match self.kind {
            MoveKind::Placed | MoveKind::Imported => output.say(&format!("{from} to {to}: {events}")),
            MoveKind::Restored => {
                output.say(&format!("{from} to {to}: the original is gone; restored from the embedded source"));
            }
            MoveKind::Appended => output
                .say(&format!("{from} to {to}: {} the new turns to the original", would("appended", "would append"))),
            MoveKind::Forked => {
                output.say(&format!("{from} to {to}: both sessions have new turns, so this one becomes a fork"));
            }
            MoveKind::Unchanged => output.say(&format!("{from} to {to}: the original has all its turns already")),
            MoveKind::Followed { fields } => {
                output.say(&format!(
                    "{}: {} now {} the new folder",
                    would("moved", "would move"),
                    counted(fields, "field"),
                    if fields == 1 { "names" } else { "name" }
                ));
            }
        }
        if let ConversionMethod::Merged { edited, added, missing } = self.outcome.method {
            let changes = [(added, "added"), (edited, "edited")].into_iter().filter(|(count, _)| *count > 0);
            changes
                .for_each(|(count, how)| output.say(&format!("  {} {how} since the move", counted(count, "record"))));
            if missing > 0 {
                output.say(&format!("  {} of the embedded source missing", counted(missing, "piece")));
            }
        }
        self.outcome.losses.summary().iter().for_each(|line| output.say(&format!("  {line}")));
        if let Some(original) = self.original.as_ref().filter(|_| self.kind == MoveKind::Forked) {
            output.say(&format!("the original stays as it is: {}", original.display()));
        }
        match (&self.import, self.kind) {
            (_, MoveKind::Unchanged) => {}
            (Some(import), _) if self.is_dry_run => {
                output.say(&format!("would run: {}", import.import.replace(&self.id, NEW_ID)));
            }
            (Some(_), _) => output.say(&format!("{to} imported {}", self.shown_path())),
            (None, _) => output.say(&format!("{} {}", would("wrote", "would write"), self.shown_path())),
        }
        if let Some(folder) = &self.left_behind {
            output.say(&format!("note: the files of its sub-agents stay in {}", folder.display()));
        }
        if let Some(note) = self.outcome.output_notes.first() {
            output.say(&format!("warning: {to} may reject it: {}", crate::output::harmless_line(&note.text)));
        }
        if let Some(folder) = self.folder.as_deref().filter(|folder| !std::path::Path::new(folder).is_dir()) {
            output.say(&format!("the folder of the session does not exist here: {folder}"));
        }
        if let Some(remove) = self.import.as_ref().and_then(|import| import.remove.as_deref()) {
            output.say(&format!("steno undo cannot undo it; {to} removes the session with: {remove}"));
        }
        if self.undo.is_some() {
            output.say(&format!(
                "undo it with: steno undo {}",
                stenograph::resume::sh_word(&self.path.display().to_string())
            ));
        }
    }

    fn json(&self, command: &str, shell: Syntax) -> String {
        let mut draft = Draft::new();
        draft.set_str("from", self.from.info().agent);
        draft.set_str("to", self.to.info().agent);
        draft.set_str("result", self.kind.name());
        draft.set("dry_run", self.is_dry_run.to_string());
        draft.set_opt("source_session", self.source.as_deref());
        draft.set_opt("session", Some(self.id.as_str()).filter(|_| !self.is_id_unknown()));
        draft.set_str("path", &self.shown_path());
        draft.set_opt("folder", self.folder.as_deref());
        draft.set_str("command", command);
        draft.set_str("shell", shell.name());
        let import = self.import.as_ref().map(|import| import.import.replace(&self.id, self.shown_id()));
        draft.set_opt("import", import.as_deref());
        draft.set_opt("remove", self.import.as_ref().and_then(|import| import.remove.as_deref()));
        draft.set_opt("undo", self.undo.as_ref().map(|undo| undo.display().to_string()).as_deref());
        draft.set_opt("original", self.original.as_ref().map(|path| path.display().to_string()).as_deref());
        if let MoveKind::Followed { fields } = self.kind {
            draft.set_number("fields", Some(fields));
        } else {
            draft.set_opt("carries", self.outcome.carries.as_deref());
            draft.set_number("events", Some(self.outcome.outline.events));
            draft.set("report", self.outcome.losses.to_json());
        }
        draft.render(None)
    }
}

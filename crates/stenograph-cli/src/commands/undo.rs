//! `steno undo`: undoes the last edit of a file, or the last compaction of a context.

use std::path::PathBuf;

use super::compact::undo_context;
use crate::context::ContextName;
use crate::edit_output;
use crate::error::{CommandError, ExitStatus};
use crate::output::Output;
use crate::store::{ResolvedName, SessionArgs};
use stenograph_store::layouts::chibi::Context;
use stenograph_store::undo::{self, EditCommand};

/// Undo the last edit of a file
///
/// Restores the file byte for byte to its state before steno trim, cut or compact changed it with --in-place, or before
/// --reversible wrote it. Run it again to undo the edit before that one. Records appended after the edit stay at the end of the
/// file. If anything else has changed, steno refuses and changes nothing. A file that steno move wrote is removed, and one that
/// it moved goes back, unless the session has new records. With --context, steno undoes the last change of a context of Chibi.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steno undo session.jsonl
  steno undo --context research           the last compaction of a context

Exit codes: 0 success, 1 nothing to undo, 2 error")]
pub struct Options {
    /// A file, a session, or the folder of a context
    #[arg(value_name = "FILE|SESSION", add = crate::completion::transcript(), required_unless_present = "context", conflicts_with = "context")]
    file: Option<PathBuf>,
    #[command(flatten)]
    named: ContextName,
    /// Only sessions of this project; . is the project of this folder
    #[arg(long, value_name = "NAME", requires = "file", add = crate::completion::project())]
    project: Option<String>,
    /// Print the report as one JSON object
    #[arg(long)]
    json: bool,
}

pub fn run(options: &Options, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    let Some(path) = &options.file else {
        let context = options.named.context()?;
        let context = context.ok_or_else(|| CommandError::new("name a file to restore"))?;
        return undo_in_context(&context, options.json, output);
    };
    let path = match SessionArgs::new(options.named.root(), options.project.clone()).resolve(path)? {
        ResolvedName::File(path) => path,
        ResolvedName::Session(session) => session.source.path.clone(),
    };
    let path = &path;
    match if path.is_dir() { Some(Context::at(path)) } else { Context::of_window(path) } {
        Some(context) => undo_in_context(&context, options.json, output),
        None => edit_output::undo_last_edit(path, options.json, output),
    }
}

/// Undoes the last change of a context: a compaction, which also changed its archive, or an edit of its window as a file.
fn undo_in_context(context: &Context, json: bool, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    match undo::last_edit(&context.window())? {
        Some(EditCommand::Trim | EditCommand::Cut | EditCommand::Move) => {
            edit_output::undo_last_edit(&context.window(), json, output)
        }
        Some(EditCommand::Compact) | None => undo_context(context, json, output),
    }
}

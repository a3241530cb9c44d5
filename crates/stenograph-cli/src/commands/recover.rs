//! `steno recover`: completes a recording that was cut off.

use std::path::PathBuf;

use stenograph::json::Draft;
use stenograph_store::log::Durability;
use stenograph_store::recover::{self, Recovery};

use super::record::{environment, print_warning};
use crate::commands::archive::warnings_json;
use crate::error::{CommandError, ExitStatus};
use crate::output::{Output, counted, harmless_json};
use stenograph_store::sessions::path_json;

/// Complete a recording after a crash
///
/// Moves an incomplete last line to a file beside the recording (.torn-1), and completes the files of the layout with all
/// acknowledged events. PATH is the file or folder that was given to steno record. Running it again changes nothing. A
/// recording that is still running is not changed.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steno recover run.steno.jsonl
  steno recover FOLDER

Exit codes: 0 all recordings are complete, 2 error")]
pub struct Options {
    /// Files or folders of recordings
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// Print one JSON object per path
    #[arg(long)]
    json: bool,
}

pub fn run(options: &Options, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    let mut status = ExitStatus::Done;
    for path in &options.paths {
        let recovered = recover::recover(path, &environment(Durability::Always));
        if recovered.as_ref().is_ok_and(|done| done.failed) {
            status = ExitStatus::Error;
        }
        match recovered {
            Ok(done) if options.json => {
                let draft = Draft::new()
                    .with("path", path.display().to_string())
                    .with_list("journals", done.journals.iter().map(|path| path_json(path)))
                    .with_json("remarks", warnings_json(&done.warnings));
                output.line(&harmless_json(&draft.render(None)))?;
            }
            Ok(done) => {
                done.warnings.iter().for_each(|warning| print_warning(warning, output));
                output.say(&format!("{}: {}", path.display(), outcome(&done)));
            }
            // One bad path does not stop the rest.
            Err(error) => {
                output.error(&error.into());
                status = ExitStatus::Error;
            }
        }
    }
    Ok(status)
}

/// What a recovery did, for people.
fn outcome(done: &Recovery) -> String {
    let complete = (done.journals.len() as u64).saturating_sub(done.completed);
    match (done.completed, complete) {
        _ if done.failed => "not everything could be completed".to_owned(),
        (0, 0 | 1) => "already complete".to_owned(),
        (0, complete) => format!("{} already complete", counted(complete, "recording")),
        (completed, 0) => format!("{} completed", counted(completed, "recording")),
        (completed, complete) => format!("{} completed, {complete} already complete", counted(completed, "recording")),
    }
}

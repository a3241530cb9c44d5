//! `steno config folder`: the folders that are looked through besides the usual places. The archive's log remembers them, so that they
//! outlive an index.

use std::path::PathBuf;

use clap::Subcommand;

use super::super::archive::{archive, archive_writer};
use crate::clock;
use crate::error::{CommandError, Status};
use crate::output::{Output, harmless, harmless_json};
use crate::store::{Where, path_json};

/// Look through a folder too, from now on
///
/// steno index and steno archive add look through these folders as a whole, besides the places where agents write.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steno config folder add ~/transcripts
  steno config folder list
  steno config folder remove ~/transcripts      what was kept from there stays

Exit codes: 0 done, 1 there is no such folder among them, 2 error")]
pub struct Options {
    /// What to do
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Add a folder
    #[command(after_help = "Examples:\n  steno config folder add ~/transcripts")]
    Add(Which),
    /// Remove a folder; what was kept from there stays
    #[command(after_help = "Examples:\n  steno config folder remove ~/transcripts")]
    Remove(Which),
    /// List the folders that were added
    #[command(after_help = "Examples:\n  steno config folder list --json")]
    List {
        #[command(flatten)]
        place: Where,
        /// Print one JSON object a folder
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, clap::Args)]
struct Which {
    /// The folder
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    #[command(flatten)]
    place: Where,
}

impl Which {
    /// From the root of the file system, as it is called without links where it is there.
    fn whole(&self) -> Result<PathBuf, CommandError> {
        std::fs::canonicalize(&self.folder)
            .or_else(|_| std::path::absolute(&self.folder))
            .map_err(|error| CommandError::new(format!("{}: {error}", self.folder.display())).hint("name a folder"))
    }
}

/// Runs it.
pub fn run(options: &Options, output: &mut Output<'_>) -> Result<Status, CommandError> {
    match &options.action {
        Action::Add(which) => {
            let folder = which.whole()?;
            if !folder.is_dir() {
                return Err(CommandError::new(format!("{}: is no folder", folder.display()))
                    .hint("name a folder that is there; steno archive add FILE keeps a single file"));
            }
            let mut writer = archive_writer(&which.place.store()?)?;
            writer.add_folder(&folder)?;
            writer.commit(clock::millis())?;
            output.say(&format!(
                "{}: is looked through from now on, by steno index and steno archive add",
                folder.display()
            ));
        }
        Action::Remove(which) => {
            let folder = which.whole()?;
            let mut writer = archive_writer(&which.place.store()?)?;
            if !writer.folders().contains(&folder) {
                return Err(CommandError::nothing(format!("{}: was not added", folder.display()))
                    .hint("steno config folder list shows those that were"));
            }
            writer.remove_folder(&folder)?;
            writer.commit(clock::millis())?;
            output.say(&format!("{}: is not looked through any more; what was kept stays", folder.display()));
        }
        Action::List { place, json } => {
            for folder in archive(&place.store()?)?.folders() {
                match json {
                    true => output.line(&harmless_json(&format!("{{\"folder\":{}}}", path_json(folder))))?,
                    false => output.line(&harmless(&folder.display().to_string()))?,
                }
            }
        }
    }
    Ok(Status::Done)
}

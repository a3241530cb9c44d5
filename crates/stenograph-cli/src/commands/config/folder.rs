//! `steno config folder`: manages additional folders to search. The archive's log stores them, so that they outlive an index.

use std::path::PathBuf;

use clap::Subcommand;

use super::super::archive::{archive, archive_writer};
use crate::clock;
use crate::error::{CommandError, ExitStatus};
use crate::output::{Output, harmless, harmless_json};
use crate::store::{StoreArgs, path_json};

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
    Add(FolderArgs),
    /// Remove a folder; what was kept from there stays
    #[command(after_help = "Examples:\n  steno config folder remove ~/transcripts")]
    Remove(FolderArgs),
    /// List the folders that were added
    #[command(after_help = "Examples:\n  steno config folder list --json")]
    List {
        #[command(flatten)]
        place: StoreArgs,
        /// Print one JSON object a folder
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, clap::Args)]
struct FolderArgs {
    /// The folder
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    #[command(flatten)]
    place: StoreArgs,
}

impl FolderArgs {
    /// The absolute path, without symbolic links if the folder exists.
    fn absolute(&self) -> Result<PathBuf, CommandError> {
        std::fs::canonicalize(&self.folder)
            .or_else(|_| std::path::absolute(&self.folder))
            .map_err(|error| CommandError::new(format!("{}: {error}", self.folder.display())).hint("name a folder"))
    }
}

pub fn run(options: &Options, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    match &options.action {
        Action::Add(args) => {
            let folder = args.absolute()?;
            if !folder.is_dir() {
                return Err(CommandError::new(format!("{}: is no folder", folder.display()))
                    .hint("name a folder that is there; steno archive add FILE keeps a single file"));
            }
            let mut writer = archive_writer(&args.place.store()?)?;
            writer.add_folder(&folder)?;
            writer.commit(clock::millis())?;
            output.say(&format!(
                "{}: is looked through from now on, by steno index and steno archive add",
                folder.display()
            ));
        }
        Action::Remove(args) => {
            let folder = args.absolute()?;
            let mut writer = archive_writer(&args.place.store()?)?;
            if !writer.folders().contains(&folder) {
                return Err(CommandError::not_found(format!("{}: was not added", folder.display()))
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
    Ok(ExitStatus::Done)
}

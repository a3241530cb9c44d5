//! `steno config folder`: manages additional folders to search. The archive's log stores them, so that they outlive an index.

use std::path::PathBuf;

use clap::Subcommand;

use stenograph::json::Draft;

use super::super::archive::{archive, archive_writer};
use crate::clock;
use crate::error::{CommandError, ExitStatus};
use crate::output::{Output, harmless_json, harmless_line};
use crate::store::StoreArgs;

/// Manage additional folders to index
///
/// steno index and steno archive add read all transcripts in these folders, in addition to the agents' own folders.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steno config folder add ~/transcripts
  steno config folder list
  steno config folder remove ~/transcripts

Exit codes: 0 success, 1 the folder is not in the list, 2 error")]
pub struct Options {
    /// The action
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Add a folder
    #[command(after_help = "Examples:\n  steno config folder add ~/transcripts")]
    Add(FolderArgs),
    /// Remove a folder; archived copies stay
    #[command(after_help = "Examples:\n  steno config folder remove ~/transcripts")]
    Remove(FolderArgs),
    /// List the added folders
    #[command(after_help = "Examples:\n  steno config folder list --json")]
    List {
        #[command(flatten)]
        place: StoreArgs,
        /// Print one JSON object per folder
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, clap::Args)]
struct FolderArgs {
    /// Path of the folder
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    #[command(flatten)]
    place: StoreArgs,
}

impl FolderArgs {
    /// The absolute path, without symbolic links if the folder exists.
    fn resolved_path(&self) -> Result<PathBuf, CommandError> {
        std::fs::canonicalize(&self.folder).or_else(|_| std::path::absolute(&self.folder)).map_err(|error| {
            CommandError::new(format!("{}: {error}", self.folder.display())).hint("check the spelling of the path")
        })
    }
}

pub fn run(options: &Options, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    match &options.action {
        Action::Add(args) => {
            let folder = args.resolved_path()?;
            if !folder.is_dir() {
                return Err(CommandError::new(format!("{}: not a folder", folder.display()))
                    .hint("name an existing folder; archive a single file with steno archive add FILE"));
            }
            let mut writer = archive_writer(&args.place.store()?)?;
            if writer.folders().contains(&folder) {
                output.say(&harmless_line(&format!("{}: already added", folder.display())));
                return Ok(ExitStatus::Done);
            }
            writer.add_folder(&folder)?;
            writer.commit(clock::millis())?;
            let name = folder.display();
            output.say(&harmless_line(&format!("{name}: added; steno index and steno archive add now include it")));
        }
        Action::Remove(args) => {
            let folder = args.resolved_path()?;
            let mut writer = archive_writer(&args.place.store()?)?;
            if !writer.folders().contains(&folder) {
                return Err(CommandError::not_found(format!("{}: not an added folder", folder.display()))
                    .hint("list the added folders with steno config folder list"));
            }
            writer.remove_folder(&folder)?;
            writer.commit(clock::millis())?;
            output.say(&harmless_line(&format!("{}: removed; archived copies stay", folder.display())));
        }
        Action::List { place, json } => {
            let archive = archive(&place.store()?)?;
            if archive.folders().is_empty() {
                output.say("no folders are added");
                output.say("hint: add one with steno config folder add DIR");
            }
            for folder in archive.folders() {
                match json {
                    true => {
                        let draft = Draft::new().with("folder", folder.display().to_string());
                        output.line(&harmless_json(&draft.render(None)))?;
                    }
                    false => output.line(&harmless_line(&folder.display().to_string()))?,
                }
            }
        }
    }
    Ok(ExitStatus::Done)
}

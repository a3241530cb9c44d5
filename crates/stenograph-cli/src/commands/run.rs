//! `steno run`: looks after the runs of a system that keeps each one in a folder of its own. What is done is in `run/`, a file
//! for each action; how runs lie on disk is the layout's part.

mod archive;
mod choice;
mod clean;
mod list;
mod restore;

use clap::Subcommand;
use stenograph::text::quote;
use stenograph_store::files::Disk;
use stenograph_store::layouts::devflow::{Base, index};

use crate::error::{CommandError, Status};
use crate::output::{Output, harmless_json, harmless_line};

/// List the runs in a .devflow folder, put them away, bring them back, clear them out
///
/// A run is a folder with metadata.json and a transcript: one that devflow wrote, or steno record --to devflow. Runs are listed with
/// the help of index.json, which is made again whenever it is missing or behind. What is put away is a .tar.gz file that was read back and
/// compared before the folder goes.
#[derive(Debug, clap::Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  steno run list --status failed --since 7d
  steno run archive --before 30d --dry-run
  steno run restore 2025-01-15-ticket-to-pr-TK421
  steno run clean --dry-run

Exit codes: 0 done, 1 no such run was found, 2 error"
)]
pub struct Options {
    /// What to do
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    List(list::Options),
    Archive(archive::Options),
    Restore(restore::Options),
    Clean(clean::Options),
}

/// Runs it.
pub fn run(options: &Options, output: &mut Output<'_>) -> Result<Status, CommandError> {
    match &options.action {
        Action::List(options) => list::run(options, output),
        Action::Archive(options) => archive::run(options, output),
        Action::Restore(options) => restore::run(options, output),
        Action::Clean(options) => clean::run(options, output),
    }
}

/// How what is done is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    People,
    Json,
}

/// Whether it is done, or only told what would be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    Real,
    DryRun,
}

/// One thing that was done with a run, or would be.
struct Deed<'a> {
    action: &'static str,
    run: &'a str,
    /// The file or the reason.
    about: (&'static str, String),
}

/// Tells of a deed, at once: somebody may be watching.
fn tell(deed: &Deed<'_>, manner: Manner, effect: Effect, output: &mut Output<'_>) -> Result<(), CommandError> {
    let (key, value) = &deed.about;
    match manner {
        Manner::Json => {
            let dry = if effect == Effect::DryRun { ",\"dryRun\":true" } else { "" };
            let (action, run, value) = (quote(&deed.action.replace(' ', "-")), quote(deed.run), quote(value));
            let json = format!("{{\"action\":{action},\"runId\":{run},\"{key}\":{value}{dry}}}");
            output.line(&harmless_json(&json))?;
        }
        Manner::People => {
            let done = match effect {
                Effect::DryRun => format!("would {}", deed.action),
                Effect::Real => match deed.action.split_once(' ') {
                    Some((verb, object)) => format!("{} {object}", past(verb)),
                    None => past(deed.action),
                },
            };
            let line = format!("{done}  {}  {value}", deed.run);
            output.line(&harmless_line(&line))?;
        }
    }
    output.flush()
}

fn past(verb: &str) -> String {
    if verb.ends_with('e') { format!("{verb}d") } else { format!("{verb}ed") }
}

/// Brings the index up to date after runs were moved. That it cannot be written is said, and no failure: it will be made again.
fn settle_index(base: &Base, output: &mut Output<'_>) {
    if let Err(error) = index::update(&Disk, base, &crate::clock::now()) {
        output.say(&format!("note: {error}: it will be made again when runs are listed"));
    }
}

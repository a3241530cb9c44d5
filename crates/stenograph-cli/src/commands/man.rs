//! `steno man`: prints the manual pages, generated from the help texts.

use std::io::Write as _;
use std::path::PathBuf;

use clap_mangen::Man;
use stenograph_store::files::FileMode;
use stenograph_store::{Existing, NewFile};

use crate::error::{CommandError, ExitStatus};
use crate::output::Output;

/// Print the manual page, or write all pages to a folder
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steno man | man -l -
  steno man ~/.local/share/man/man1")]
pub struct Options {
    /// Write all pages (steno.1, steno-check.1, ...) to this folder
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
}

pub fn run(options: &Options, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    let mut command = crate::args::command();
    command.build();
    let Some(folder) = &options.folder else {
        output.data().write_all(&page(command)?.1)?;
        return Ok(ExitStatus::Done);
    };
    let mut pages = Vec::new();
    let mut waiting = vec![command];
    while let Some(command) = waiting.pop() {
        waiting.extend(subcommands(&command));
        pages.push(command);
    }
    for command in pages {
        let (name, text) = page(command)?;
        let options = NewFile::options().existing(Existing::Replaced).mode(FileMode::PUBLIC);
        let mut file = options.create(&folder.join(name), [])?;
        file.write_all(&text)?;
        file.commit()?;
    }
    Ok(ExitStatus::Done)
}

/// The file name and the text of the page of a command. What follows the options in the help is a section of examples, in which
/// lines stay as they are.
fn page(command: clap::Command) -> Result<(String, Vec<u8>), CommandError> {
    let page = Man::new(command);
    let mut text = Vec::new();
    page.render(&mut text)?;
    let text = String::from_utf8_lossy(&text).into_owned();
    let Some((before, after)) = text.split_once(EXTRA) else { return Ok((page.get_filename(), text.into_bytes())) };
    let (examples, after) =
        after.split_once("\n.SH ").map_or((after, None), |(examples, after)| (examples, Some(after)));
    let after = after.map(|after| format!(".SH {after}")).unwrap_or_default();
    let examples = examples.trim_start_matches("Examples:\n").trim_end();
    Ok((page.get_filename(), format!("{before}.SH EXAMPLES\n.nf\n{examples}\n.fi\n{after}").into_bytes()))
}

/// How the generator calls what follows the options.
const EXTRA: &str = ".SH EXTRA\n";

fn subcommands(command: &clap::Command) -> Vec<clap::Command> {
    command.get_subcommands().filter(|command| command.get_name() != "help").cloned().collect()
}

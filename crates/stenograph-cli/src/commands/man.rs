//! `steno man`: prints the manual pages, generated from the help texts.

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
        Man::new(command).render(output.data())?;
        return Ok(ExitStatus::Done);
    };
    let mut pages = Vec::new();
    let mut waiting = vec![command];
    while let Some(command) = waiting.pop() {
        waiting.extend(subcommands(&command));
        pages.push(command);
    }
    for page in pages {
        let page = Man::new(page);
        let options = NewFile::options().existing(Existing::Replaced).mode(FileMode::PUBLIC);
        let mut file = options.create(&folder.join(page.get_filename()), [])?;
        page.render(&mut file)?;
        file.commit()?;
    }
    Ok(ExitStatus::Done)
}

fn subcommands(command: &clap::Command) -> Vec<clap::Command> {
    command.get_subcommands().filter(|command| command.get_name() != "help").cloned().collect()
}

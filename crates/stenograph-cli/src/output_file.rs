//! The options that name an output file, and the one way to create it.

use std::path::{Path, PathBuf};

use stenograph_store::{Existing, NewFile, NewFileOptions, Source};

use crate::error::CommandError;
use crate::output::Output;

/// The options of every command that writes a result.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct OutputFile {
    /// Write the result to this file (complete or not at all)
    #[arg(short, long, value_name = "OUT")]
    pub output: Option<PathBuf>,
    /// Let -o replace an existing file
    #[arg(long, requires = "output")]
    pub force: bool,
}

const STANDARD_OUTPUT: [&str; 4] = ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];

impl OutputFile {
    /// The named file; `None` for standard output.
    pub fn path(&self) -> Option<&Path> {
        self.output.as_deref().filter(|path| !STANDARD_OUTPUT.iter().any(|name| *path == Path::new(name)))
    }

    /// Creates the named file, if any. It replaces another file only with --force, never an input, and is readable only by
    /// those who may read the first input.
    pub fn create(&self, inputs: &[&Source]) -> Result<Option<NewFile>, CommandError> {
        let create = |path| self.options(inputs.first().copied()).create(path, inputs.iter().copied());
        match self.path() {
            Some(path) => Ok(Some(create(path)?)),
            None if inputs.iter().any(|input| input.is_standard_output()) => {
                Err(CommandError::new("standard output is also the input").hint("write to another file"))
            }
            None => Ok(None),
        }
    }

    /// Refuses to fill a terminal with what is not for people.
    pub fn must_not_fill_terminal(&self, output: &Output<'_>) -> Result<(), CommandError> {
        // A user who writes -o - wants it there.
        match &self.output {
            None if output.is_terminal() => Err(CommandError::new("the result is not for a terminal")
                .hint("name a file with -o, or pass the output to another program")),
            _ => Ok(()),
        }
    }

    /// The options for a file derived from `source`.
    pub fn options(&self, source: Option<&Source>) -> NewFileOptions {
        let existing = if self.force { Existing::Replaced } else { Existing::Refused };
        NewFile::options().existing(existing).like(source).guarded()
    }
}

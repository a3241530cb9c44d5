//! Where a command writes its result: the options that all of them share, and the one way in which such a file is made.

use std::path::{Path, PathBuf};

use stenograph_store::{Existing, NewFile, NewFileOptions, Source};

use crate::error::CommandError;

/// The options of every command that writes a result.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct OutputFile {
    /// Write the result to this file, whole or not at all
    #[arg(short, long, value_name = "OUT")]
    pub output: Option<PathBuf>,
    /// Replace the file that -o names if it exists
    #[arg(long, requires = "output")]
    pub force: bool,
}

/// The names of standard output.
const STANDARD_OUTPUT: [&str; 4] = ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];

impl OutputFile {
    /// The file that is named; `None` for standard output.
    pub fn path(&self) -> Option<&Path> {
        self.output.as_deref().filter(|path| !STANDARD_OUTPUT.iter().any(|name| *path == Path::new(name)))
    }

    /// Begins the file that is named, if one is. It takes the place of another file only where --force says so, never that of an
    /// input, and nobody may read it who may not read the first of the inputs.
    pub fn create(&self, inputs: &[&Source]) -> Result<Option<NewFile>, CommandError> {
        let create = |path| self.options(inputs.first().copied()).create(path, inputs.iter().copied());
        match self.path() {
            Some(path) => Ok(Some(create(path)?)),
            None if inputs.iter().any(|input| input.is_standard_output()) => {
                Err(CommandError::new("standard output is the input itself").hint("write to another file"))
            }
            None => Ok(None),
        }
    }

    /// How files are made of this source.
    pub fn options(&self, source: Option<&Source>) -> NewFileOptions {
        let existing = if self.force { Existing::Replaced } else { Existing::Refused };
        NewFile::options().existing(existing).like(source).guarded()
    }
}

//! Resolves a context from arguments: a folder, or a name below a home. `commands/` uses it.

use std::path::{Path, PathBuf};

use stenograph_store::layouts::chibi::{Context, HOME};

use crate::error::CommandError;
use crate::home::Root;

/// A context, by its folder or by its name.
#[derive(Debug, clap::Args)]
pub struct ContextArgs {
    /// Folder of the context
    #[arg(value_name = "FOLDER", conflicts_with_all = ["context", "root"])]
    folder: Option<PathBuf>,
    #[command(flatten)]
    named: ContextName,
}

/// A context by its name.
#[derive(Debug, clap::Args)]
pub struct ContextName {
    /// Name of a Chibi context in ~/.chibi/contexts (CHIBI_HOME replaces ~/.chibi)
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    #[command(flatten)]
    root: Root,
}

impl ContextArgs {
    pub fn context(&self) -> Result<Context, CommandError> {
        match (&self.folder, self.named.context()?) {
            (Some(folder), _) => Ok(Context::at(folder)),
            (None, Some(context)) => Ok(context),
            (None, None) => Err(CommandError::new("no context given").hint("use --context NAME, or give its folder")),
        }
    }
}

impl ContextName {
    /// The home folder to use.
    pub fn root(&self) -> &Root {
        &self.root
    }

    /// The named context; `None` if no name is given.
    pub fn context(&self) -> Result<Option<Context>, CommandError> {
        let Some(name) = &self.context else { return Ok(None) };
        let named = Context::named(&home(&self.root)?, name);
        Ok(Some(
            named
                .map_err(|error| CommandError::from(error).hint("to use a folder, give its path without --context"))?,
        ))
    }
}

/// The folder that contains all contexts. A root may be this folder itself.
pub fn home(root: &Root) -> Result<PathBuf, CommandError> {
    let home = root.resolve(HOME)?;
    Ok(match root.given() {
        Some(given) if !home.is_dir() && given.join("contexts").is_dir() => given.to_owned(),
        _ => home,
    })
}

/// Turns the error "no such context" into a not-found answer with a hint.
pub fn missing(error: stenograph_store::Error, folder: &Path) -> CommandError {
    use stenograph_store::Problem;
    match error.problem {
        Problem::Missing | Problem::NoLayout => {
            CommandError::not_found(format!("{}: no such context", folder.display()))
                .hint("list the contexts with steno chibi context list")
        }
        _ => error.into(),
    }
}

//! Which context is meant: a folder, or a name below a home. What is done with it is in `commands/`.

use std::path::{Path, PathBuf};

use stenograph_store::layouts::chibi::{Context, HOME};

use crate::error::CommandError;
use crate::home::Root;

/// A context, by its folder or by its name.
#[derive(Debug, clap::Args)]
pub struct Which {
    /// The folder of the context
    #[arg(value_name = "FOLDER", conflicts_with_all = ["context", "root"])]
    folder: Option<PathBuf>,
    #[command(flatten)]
    named: Named,
}

/// A context by its name.
#[derive(Debug, clap::Args)]
pub struct Named {
    /// The name of the context, below ~/.chibi/contexts (CHIBI_HOME may name another folder than ~/.chibi)
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    #[command(flatten)]
    root: Root,
}

impl Which {
    /// The context that is meant.
    pub fn context(&self) -> Result<Context, CommandError> {
        match (&self.folder, self.named.context()?) {
            (Some(folder), _) => Ok(Context::at(folder)),
            (None, Some(context)) => Ok(context),
            (None, None) => {
                Err(CommandError::new("no context is named").hint("name it with --context NAME, or name its folder"))
            }
        }
    }
}

impl Named {
    /// What is looked at instead of the home folder.
    pub fn root(&self) -> &Root {
        &self.root
    }

    /// The context of that name, where one is named.
    pub fn context(&self) -> Result<Option<Context>, CommandError> {
        let Some(name) = &self.context else { return Ok(None) };
        let named = Context::named(&home(&self.root)?, name);
        Ok(Some(named.map_err(|error| CommandError::from(error).hint("name a folder by its path alone"))?))
    }
}

/// The home of all contexts. A root may also be one itself.
pub fn home(root: &Root) -> Result<PathBuf, CommandError> {
    let home = root.resolve(HOME)?;
    Ok(match root.given() {
        Some(given) if !home.is_dir() && given.join("contexts").is_dir() => given.to_owned(),
        _ => home,
    })
}

/// The same error; that there is no such context is a no, with a way to the right name.
pub fn missing(error: stenograph_store::Error, folder: &Path) -> CommandError {
    use stenograph_store::Problem;
    match error.problem {
        Problem::Missing | Problem::NoLayout => {
            CommandError::nothing(format!("{}: there is no context", folder.display()))
                .hint("steno context list shows the contexts there are")
        }
        _ => error.into(),
    }
}

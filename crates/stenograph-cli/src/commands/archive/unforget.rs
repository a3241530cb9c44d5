//! `steno archive unforget`: allows a pruned session to come back. It archives nothing itself.

use std::collections::BTreeSet;

use stenograph_store::archive::Label;

use super::{archive, archive_writer};
use crate::clock;
use crate::error::{CommandError, ExitStatus};
use crate::output::{Output, harmless_json};
use crate::store::StoreArgs;
use stenograph::json::Draft;

/// Allow a pruned session to be archived again
///
/// steno index and steno archive add skip sessions that steno archive prune removed. After this command, their next run
/// archives and indexes the session again if its files still exist.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steno archive unforget 0198f2c4 && steno index

Exit codes: 0 success, 1 no such pruned session, 2 error")]
pub struct Options {
    /// A pruned session: the beginning of its id
    #[arg(value_name = "SESSION", add = crate::completion::session())]
    session: String,
    #[command(flatten)]
    place: StoreArgs,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

pub fn run(options: &Options, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    let store = options.place.store()?;
    let name = options.session.as_str();
    let has_prefix = |session: &str| {
        !name.is_empty() && session.get(..name.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(name))
    };
    let mut labels: Vec<Label> =
        archive(&store)?.forgotten().filter(|label| label.session.as_deref().is_some_and(has_prefix)).collect();
    if labels.iter().any(|label| label.session.as_deref() == Some(name)) {
        labels.retain(|label| label.session.as_deref() == Some(name));
    }
    let sessions: BTreeSet<&str> = labels.iter().filter_map(|label| label.session.as_deref()).collect();
    let session = match (sessions.first(), sessions.len()) {
        (Some(session), 1) => (*session).to_owned(),
        (None, _) => {
            return Err(CommandError::not_found(format!("{name}: no pruned session has that id or prefix"))
                .hint("give the beginning of its id; steno list shows only sessions that were not pruned"));
        }
        (Some(_), count) => {
            let error = CommandError::new(format!("{name}: ambiguous: {count} pruned sessions match"));
            return Err(sessions.iter().take(6).fold(error, |error, session| error.hint(*session)));
        }
    };
    let mut writer = archive_writer(&store)?;
    for label in &labels {
        writer.unforget(label)?;
    }
    writer.commit(clock::millis())?;
    if options.json {
        let mut draft = Draft::new();
        draft.set_str("unforgotten", &session);
        output.line(&harmless_json(&draft.render(None)))?;
    } else {
        output.say(&format!("{session}: the next steno index includes it if its files still exist"));
    }
    Ok(ExitStatus::Done)
}

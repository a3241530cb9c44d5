//! `steno continue`: the newest conversation of a folder of chat histories, ready to be sent on. Nothing is written.

use std::path::PathBuf;

use stenograph::text::quote;
use stenograph_store::layouts::cycod::{self, Ready};
use stenograph_store::{Passes, Source};

use crate::error::{CommandError, Status};
use crate::home::Root;
use crate::output::{Output, counted, harmless_json};

/// Print the newest chat history, ready to be sent to a model
///
/// Finds the conversation that CycoD would go on with: of all chat-history*.jsonl and exception-chat-history*.jsonl in ~/.cycod/history,
/// .cycod/history and the current folder the one that was written last. Its messages go to standard output, one a line; which file it
/// is, to standard error. A call without an answer gets one that says so, as CycoD gives it; the file stays as it is.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steno continue > messages.jsonl
  steno continue --json | jq .messages
  FILE=$(steno continue --json | jq -r .file)
  my-agent | steno record --load \"$FILE\" --to cycod:\"$FILE\"

Exit codes: 0 found, 1 there is none, 2 error")]
pub struct Options {
    #[command(flatten)]
    root: Root,
    /// Print one JSON object: the file, its title, and all messages
    #[arg(long)]
    json: bool,
}

/// The folders that are searched.
const PLACES: [&str; 3] = ["~/.cycod/history", ".cycod/history", "."];

/// A larger file is no conversation that a model could be sent.
const SIZE_MAX: u64 = 1 << 30;

/// Runs it.
pub fn run(options: &Options, output: &mut Output<'_>) -> Result<Status, CommandError> {
    // Without a home folder the other places remain.
    let folders: Vec<PathBuf> = PLACES.iter().filter_map(|place| options.root.resolve(place).ok()).collect();
    let Some(history) = cycod::newest(&folders)? else {
        let places: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
        output.say(&format!("no chat history in {}", places.join(", ")));
        output.say("hint: steno record --to cycod makes one");
        return Ok(Status::No);
    };
    let place = history.path.display().to_string();
    let bytes = Source::open(&history.path, Passes::Once)?.read_whole(SIZE_MAX)?;
    let ready = cycod::ready(&bytes);
    if ready.messages.is_empty() {
        output.say(&format!("{place}: holds no message"));
        return Ok(Status::No);
    }
    if options.json {
        output.line(&harmless_json(&json(&place, &ready)))?;
    } else {
        for message in &ready.messages {
            output.line(&harmless_json(message))?;
        }
    }
    say(&place, &ready, output);
    Ok(Status::Done)
}

fn say(place: &str, ready: &Ready, output: &mut Output<'_>) {
    let title = ready.title.as_deref().map(|title| format!(", \"{title}\"")).unwrap_or_default();
    output.say(&format!("{place}: {}{title}", counted(ready.messages.len() as u64, "message")));
    if ready.answered > 0 {
        let calls = counted(ready.answered, "call");
        output.say(&format!("note: {calls} without an answer got one that says so"));
    }
    if ready.orphans > 0 {
        let answers = counted(ready.orphans, "answer");
        output.say(&format!("note: {answers} left out that nobody asked for: no model takes them"));
    }
    if ready.others > 0 {
        output.say(&format!("note: {} left out: steno check {place} tells", counted(ready.others, "line")));
    }
}

fn json(place: &str, ready: &Ready) -> String {
    format!(
        "{{\"file\":{},\"title\":{},\"answered\":{},\"left_out\":{},\"messages\":[{}]}}",
        quote(place),
        ready.title.as_deref().map_or_else(|| "null".to_owned(), quote),
        ready.answered,
        ready.orphans + ready.others,
        ready.messages.join(",")
    )
}

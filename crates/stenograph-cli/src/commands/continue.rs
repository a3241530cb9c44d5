//! `steno continue`: the newest conversation of a folder of chat histories, ready to be sent on. Nothing is written.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use stenograph::edit::trim::{Account, Limits};
use stenograph::text::quote;
use stenograph_store::files::{Disk, Files};
use stenograph_store::layouts::cycod::{self, Ready};
use stenograph_store::{Passes, Source, journal, recover};

use crate::config::{Config, MAX_CHAT_TOKENS, MAX_PROMPT_TOKENS, MAX_TOOL_TOKENS};
use crate::error::{CommandError, Status};
use crate::home::Root;
use crate::output::{Output, counted, harmless_json};

/// Print the newest chat history, ready to be sent to a model
///
/// Finds the conversation that CycoD would go on with: of all chat-history*.jsonl and exception-chat-history*.jsonl in ~/.cycod/history,
/// .cycod/history and the current folder the one that was written last. Its messages go to standard output, one a line; which file it
/// is, to standard error. A call without an answer gets one that says so, as CycoD gives it; the file stays as it is. Without
/// --max-tokens, what steno config says about App.MaxChatTokens holds, and what it says about prompts and tools in any case.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steno continue > messages.jsonl
  steno continue --max-tokens 100000 --json | jq .messages
  FILE=$(steno continue --json | jq -r .file)
  my-agent | steno record --load \"$FILE\" --to cycod:\"$FILE\"

Exit codes: 0 found, 1 there is none or it does not fit, 2 error")]
pub struct Options {
    #[command(flatten)]
    root: Root,
    /// Trim it to so many tokens: large old tool results first, then whole old turns; never the system prompt or the newest turn
    #[arg(long, value_name = "N")]
    max_tokens: Option<u64>,
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
    let mut ready = cycod::ready(&bytes);
    if ready.messages.is_empty() {
        output.say(&format!("{place}: holds no message"));
        return Ok(Status::No);
    }
    let account = match limits(options)? {
        Limits::NONE => None,
        limits => Some(ready.trim(limits).map_err(|error| CommandError::new(format!("{place}: {error}")))?),
    };
    if options.json {
        output.line(&harmless_json(&json(&place, &ready)))?;
    } else {
        for message in &ready.messages {
            output.line(&harmless_json(message))?;
        }
    }
    say(&place, &ready, output);
    if is_unfinished(&history.path) {
        output
            .say(&format!("note: a recording goes on there, or was cut off: then steno recover {place} completes it"));
    }
    Ok(account.map_or(Status::Done, |account| say_account(&account, output)))
}

/// Whether a journal beside the file has no end yet, and may know more than the file.
fn is_unfinished(path: &Path) -> bool {
    let files: Arc<dyn Files> = Arc::new(Disk);
    let recordings = journal::recordings(&files, &recover::beside(path)).unwrap_or_default();
    recordings.last().is_some_and(|recorded| recorded.ended.is_none())
}

/// What was typed counts before what was set, and 0 is no limit.
fn limits(options: &Options) -> Result<Limits, CommandError> {
    let config = Config::load()?;
    let set = |setting| Ok::<u64, CommandError>(config.tokens(setting)?.unwrap_or(0));
    Ok(Limits {
        chat: options.max_tokens.map_or_else(|| set(&MAX_CHAT_TOKENS), Ok)?,
        prompt: set(&MAX_PROMPT_TOKENS)?,
        tool: set(&MAX_TOOL_TOKENS)?,
    })
}

fn say_account(account: &Account, output: &mut Output<'_>) -> Status {
    let Account { before, after, target, went } = account;
    if !went.is_empty() {
        let went = counted(went.len() as u64, "event");
        output.say(&format!("trimmed from {before} to {after} tokens: {went} went or were cut"));
    }
    if account.is_reached() {
        return Status::Done;
    }
    output.say(&format!("warning: still {after} tokens, not {target}: the system prompt and the newest turn stay"));
    Status::No
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

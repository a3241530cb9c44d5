//! `steno cycod continue`: prints a chat history, named or the newest, ready to send to a model. It writes no file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::ValueEnum;
use stenograph::edit::trim::{Limits, Moment, TrimReport};
use stenograph::json::Draft;
use stenograph_store::discover::PathHints;
use stenograph_store::files::{Disk, Files};
use stenograph_store::layouts::cycod::{chat_format, is_chat};
use stenograph_store::source_file::Confidence;
use stenograph_store::systems::cycod::{self, PreparedConversation};
use stenograph_store::{Passes, Source, journal, recover};

use crate::config::Config;
use crate::error::{CommandError, ExitStatus};
use crate::output::{Output, counted, harmless_json};
use crate::store::{ResolvedName, SessionArgs};

/// Print a chat history, ready for a model
///
/// Prints the messages to standard output, one per line, and the name of the file to standard error. Without a name, steno chooses
/// the conversation that CycoD would continue: the newest chat-history*.jsonl or exception-chat-history*.jsonl in ~/.cycod/history,
/// .cycod/history and the current folder.
///
/// A call without a result gets a placeholder result, as in CycoD. The file does not change, and a recording to it may be running.
/// Without --max-tokens, the setting App.MaxChatTokens applies. App.MaxPromptTokens and App.MaxToolTokens apply to every message,
/// the newest included: longer ones are cut.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steno cycod continue > messages.jsonl
  steno cycod continue talk.jsonl --max-tokens 100000 --at request
  steno cycod continue --max-tokens 100000 --json | jq .messages
  FILE=$(steno cycod continue --json | jq -r .file)
  my-agent | steno record --load \"$FILE\" --to cycod:\"$FILE\"

Exit codes: 0 success, 1 no chat history, or it does not fit, 2 error")]
pub struct Options {
    /// Chat history: a file, or a session (id prefix or latest) [default: the newest one]
    #[arg(value_name = "FILE|SESSION", add = crate::completion::transcript())]
    file: Option<PathBuf>,
    #[command(flatten)]
    place: SessionArgs,
    /// Trim to N tokens: large old tool results first, then whole old turns; never the system prompt or the newest question
    #[arg(long, value_name = "N")]
    max_tokens: Option<u64>,
    /// When the history is used: at load and request, all limits apply; at a user message, all but those of tool results
    #[arg(long, value_name = "MOMENT", default_value = "load")]
    at: At,
    /// Print one JSON object with the file, its title and all messages
    #[arg(long)]
    json: bool,
}

/// The moments at which CycoD trims a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum At {
    /// A history is loaded
    Load,
    /// A message of the user is added
    UserMessage,
    /// The conversation is about to be sent
    Request,
}

impl At {
    fn moment(self) -> Moment {
        match self {
            At::Load => Moment::Load,
            At::UserMessage => Moment::UserMessage,
            At::Request => Moment::Request,
        }
    }
}

const FOLDERS: [&str; 3] = ["~/.cycod/history", ".cycod/history", "."];

/// A larger file is not a conversation that a model accepts.
const SIZE_MAX: u64 = 1 << 30;

pub fn run(options: &Options, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    let Some(path) = options.history(output)? else { return Ok(ExitStatus::No) };
    let place = path.display().to_string();
    let mut source = Source::open(&path, Passes::Once)?;
    check_format(&source)?;
    let bytes = source.read_whole(SIZE_MAX)?;
    let mut ready = cycod::ready(&bytes);
    if ready.messages.is_empty() {
        output.say(&format!("{place}: no messages"));
        return Ok(ExitStatus::No);
    }
    let account = match limits(options)? {
        Limits::NONE => None,
        limits => Some(
            ready.trim(limits, options.at.moment()).map_err(|error| CommandError::new(format!("{place}: {error}")))?,
        ),
    };
    if options.json {
        output.line(&harmless_json(&json(&place, &ready)))?;
    } else {
        for message in &ready.messages {
            output.line(&harmless_json(message))?;
        }
    }
    say(&place, &ready, output);
    if is_unfinished(&path) {
        output
            .say(&format!("note: a recording is running or was cut off; if it was cut off, run steno recover {place}"));
    }
    Ok(account.map_or(ExitStatus::Done, |account| report_trim(&account, output)))
}

impl Options {
    /// The named file, else the newest chat history.
    fn history(&self, output: &mut Output<'_>) -> Result<Option<PathBuf>, CommandError> {
        if let Some(file) = &self.file {
            return Ok(Some(match self.place.resolve(file)? {
                ResolvedName::File(path) => path,
                ResolvedName::Session(session) => session.source.path.clone(),
            }));
        }
        if self.place.project().is_some() {
            return Err(CommandError::new("--project needs a session").hint("name one, such as latest"));
        }
        // Without a home folder, the other folders remain.
        let folders: Vec<PathBuf> = FOLDERS.iter().filter_map(|place| self.place.home().resolve(place).ok()).collect();
        let newest = cycod::newest(&folders)?;
        if newest.is_none() {
            let places: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
            output.say(&format!("no chat history in {}", places.join(", ")));
            output.say("hint: create one with steno record --to cycod");
        }
        Ok(newest.map(|history| history.path))
    }
}

/// Refuses a transcript of another system: no model accepts its lines as messages.
fn check_format(source: &Source) -> Result<(), CommandError> {
    let recognized = source.recognize(&PathHints::default());
    match recognized.filter(|recognized| recognized.confidence != Confidence::Tied) {
        Some(recognized) if !is_chat(recognized.format) => {
            let (place, name) = (source.place(), recognized.format.info().name);
            Err(CommandError::new(format!("{place}: the format is {name}, not a chat history"))
                .hint(format!("convert it with steno convert {place} --to {}", chat_format().info().name)))
        }
        Some(_) | None => Ok(()),
    }
}

/// Whether a journal beside the file is still open and may have more events than the file.
fn is_unfinished(path: &Path) -> bool {
    let files: Arc<dyn Files> = Arc::new(Disk);
    let recordings = journal::recordings(&files, &recover::journal_path(path)).unwrap_or_default();
    recordings.last().is_some_and(|recorded| recorded.ended.is_none())
}

/// Arguments precede settings; 0 means no limit.
fn limits(options: &Options) -> Result<Limits, CommandError> {
    let set = Config::load()?.limits()?;
    Ok(Limits { chat: options.max_tokens.unwrap_or(set.chat), ..set })
}

fn report_trim(report: &TrimReport, output: &mut Output<'_>) -> ExitStatus {
    let TrimReport { before, after, target, trimmed } = report;
    if !trimmed.is_empty() {
        let events = counted(trimmed.len() as u64, "event");
        output.say(&format!("trimmed from {before} to {after} tokens: {events} removed or cut"));
    }
    if report.is_reached() {
        return ExitStatus::Done;
    }
    output.say(&format!(
        "warning: still {after} tokens, more than {target}: the system prompt and the newest question always stay"
    ));
    ExitStatus::No
}

fn say(place: &str, ready: &PreparedConversation, output: &mut Output<'_>) {
    let title = ready.title.as_deref().map(|title| format!(", \"{title}\"")).unwrap_or_default();
    output.say(&format!("{place}: {}{title}", counted(ready.messages.len() as u64, "message")));
    if ready.answered > 0 {
        let calls = counted(ready.answered, "call");
        output.say(&format!("note: {calls} without a result got a placeholder"));
    }
    if ready.orphans > 0 {
        let answers = counted(ready.orphans, "result");
        output.say(&format!("note: {answers} without a call left out: models reject them"));
    }
    if ready.others > 0 {
        output.say(&format!("note: {} left out: run steno check {place}", counted(ready.others, "line")));
    }
}

fn json(place: &str, ready: &PreparedConversation) -> String {
    let draft = Draft::new().with("file", place).with("title", &ready.title).with("answered", ready.answered);
    let draft = draft.with("left_out", ready.orphans + ready.others);
    draft.with_list("messages", ready.messages.iter().cloned()).render(None)
}

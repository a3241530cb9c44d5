//! `steno chibi context`: lists contexts and changes the window of one. The layout knows how a context is stored.

use clap::Subcommand;
use stenograph::json::Draft;
use stenograph::time::{Time, TimeUnit};
use stenograph_store::files::Disk;
use stenograph_store::layouts::chibi::{Context, ContextLockStatus};
use stenograph_store::log::Durability;
use stenograph_store::systems::chibi::{ContextSummary, Window, WindowChange, contexts};

use crate::commands::record::{environment, print_warning};
use crate::context::{ContextArgs, home, missing};
use crate::error::{CommandError, ExitStatus};
use crate::home::Root;
use crate::output::{Colour, Output, TextStyle, counted, harmless_json, harmless_line};
use crate::table::display_width;

/// List, clear or rebuild the contexts of Chibi
///
/// A context is a folder with one conversation. The model sees its window (context.jsonl). Entries that have left the window are in
/// transcript_archive.jsonl, or in the transcript folder if Chibi keeps one. steno removes nothing before it is archived on disk.
#[derive(Debug, clap::Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  steno chibi context list
  steno chibi context clear --context research
  steno chibi context rebuild contexts/research

Exit codes: 0 success, 1 no such context, or none found, 2 error"
)]
pub struct Options {
    /// The action
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    List(List),
    Clear(Change),
    Rebuild(Rebuild),
}

/// List the contexts
///
/// Shows the number of entries in the window, the time of the newest entry, the lock ([active], or [stale] if its holder has been silent
/// for 45 seconds), and the number of messages in the inbox.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steno chibi context list
  steno chibi context list --root BACKUP --json")]
struct List {
    #[command(flatten)]
    root: Root,
    /// Print one JSON object per context
    #[arg(long)]
    json: bool,
}

/// Archive and clear the window of a context
///
/// Moves every entry to the archive with its id, and appends the messages to transcript.md. If a full transcript (transcript/ or
/// transcript.jsonl) exists, transcript.md is not created. Then an anchor replaces the window. After a crash, run it again: nothing is
/// added twice.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steno chibi context clear --context research
  steno chibi context clear contexts/research --json")]
struct Change {
    #[command(flatten)]
    which: ContextArgs,
    /// Print the report as one JSON object
    #[arg(long)]
    json: bool,
}

/// Rebuild the window of a context
///
/// The new window has the last anchor (the last compaction, clearing or beginning), the entries that were kept then, and all later
/// entries. Entries that leave the window are archived first.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steno chibi context rebuild --context research
  steno chibi context rebuild contexts/research --json")]
struct Rebuild {
    #[command(flatten)]
    change: Change,
}

pub fn run(options: &Options, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    match &options.action {
        Action::List(list) => list.run(output),
        Action::Clear(change) => change.clear(output),
        Action::Rebuild(rebuild) => rebuild.change.rebuild(output),
    }
}

impl List {
    fn run(&self, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
        let home = home(&self.root)?;
        let found = contexts(&home, &Disk)?;
        if found.is_empty() {
            output.say(&format!("no contexts in {}", home.join("contexts").display()));
            return Ok(ExitStatus::No);
        }
        let mut status = ExitStatus::Done;
        let mut looks = Vec::new();
        for context in found {
            match context.look(&Disk, crate::clock::seconds()) {
                Ok(look) => looks.push(look),
                // One bad folder does not stop the rest.
                Err(error) => {
                    output.error(&error.into());
                    status = ExitStatus::Error;
                }
            }
        }
        let width = looks.iter().map(|look| display_width(&harmless_line(&look.context.name))).max().unwrap_or(0);
        for look in &looks {
            let line = if self.json { json(look) } else { line(look, width, output.colour()) };
            output.line(&line)?;
        }
        Ok(status)
    }
}

fn moment(look: &ContextSummary) -> Option<Time<'static>> {
    let seconds = look.active_seconds?;
    Time::number(seconds.to_string().into(), TimeUnit::Seconds)
}

fn status(look: &ContextSummary) -> &'static str {
    match look.status {
        Some(ContextLockStatus::Active) => "active",
        Some(ContextLockStatus::Stale) => "stale",
        None => "free",
    }
}

fn line(look: &ContextSummary, width: usize, colour: Colour) -> String {
    let name = harmless_line(&look.context.name);
    let gap = " ".repeat(width.saturating_sub(display_width(&name)));
    let moment =
        moment(look).and_then(|time| time.to_millis()).map_or_else(|| "-".to_owned(), crate::clock::format_minute);
    let entries = counted(look.entries, "entry");
    let mut line = format!("{}{gap}  {entries:>12}  {moment:<20}", colour.paint(TextStyle::Strong, &name));
    match look.status {
        Some(ContextLockStatus::Active) => line += &format!("  {}", colour.paint(TextStyle::Good, "[active]")),
        Some(ContextLockStatus::Stale) => line += &format!("  {}", colour.paint(TextStyle::Warning, "[stale]")),
        None => {}
    }
    if look.messages > 0 {
        line += &format!("  {} in the inbox", counted(look.messages, "message"));
    }
    line.trim_end().to_owned()
}

fn json(look: &ContextSummary) -> String {
    let draft = context_draft(&look.context)
        .with("entries", look.entries)
        .with("last", moment(look).and_then(|time| time.to_utc()))
        .with("status", status(look))
        .with("inbox", look.messages);
    harmless_json(&draft.render(None)).into_owned()
}

fn context_draft(context: &Context) -> Draft<'static> {
    Draft::new().with("context", &context.name).with("folder", context.folder.display().to_string())
}

impl Change {
    fn hold(&self) -> Result<(Context, Window), CommandError> {
        let context = self.which.context()?;
        let held = Window::lock(&context, &environment(Durability::Always));
        let window = held.map_err(|error| missing(error, &context.folder))?;
        Ok((context, window))
    }

    fn clear(&self, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
        let (context, window) = self.hold()?;
        if window.is_empty() {
            let entries = window.entries().len();
            window.warnings().iter().for_each(|warning| print_warning(warning, output));
            if self.json {
                output.line(&harmless_json(&change_json(&context, 0, entries, None)))?;
            } else {
                output.say(&format!("{}: nothing to clear: the window has no messages", context.folder.display()));
            }
            return Ok(ExitStatus::Done);
        }
        let changed = window.clear()?;
        changed.warnings.iter().for_each(|warning| print_warning(warning, output));
        if self.json {
            return self.print_json(&context, &changed, output);
        }
        let transcript = changed.transcript.display();
        output.say(&format!("cleared: {} moved to {transcript}; only the anchor is left", entries(changed.archived)));
        Ok(ExitStatus::Done)
    }

    fn rebuild(&self, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
        let (context, window) = self.hold()?;
        self.report_change(&context, &window.rebuild()?, output)
    }

    fn print_json(
        &self,
        context: &Context,
        changed: &WindowChange,
        output: &mut Output<'_>,
    ) -> Result<ExitStatus, CommandError> {
        let json = change_json(context, changed.archived, changed.entries, anchor_type(changed));
        output.line(&harmless_json(&json))?;
        Ok(ExitStatus::Done)
    }

    fn report_change(
        &self,
        context: &Context,
        changed: &WindowChange,
        output: &mut Output<'_>,
    ) -> Result<ExitStatus, CommandError> {
        changed.warnings.iter().for_each(|warning| print_warning(warning, output));
        if self.json {
            return self.print_json(context, changed, output);
        }
        let (folder, window) = (context.folder.display(), entries(changed.entries));
        let anchor = anchor_type(changed);
        let from = anchor.map(|anchor| format!(" since the last {anchor}")).unwrap_or_default();
        let archived = match changed.archived {
            0 => String::new(),
            number => format!("; {} archived in {}", entries(number), changed.transcript.display()),
        };
        output.say(&format!("{folder}: the window has {window}{}{archived}", harmless_line(&from)));
        Ok(ExitStatus::Done)
    }
}

/// The type of the entry with which the window begins.
fn anchor_type(changed: &WindowChange) -> Option<&str> {
    changed.anchor.as_ref().and_then(|anchor| anchor.entry_type.as_deref())
}

fn entries(count: usize) -> String {
    counted(count as u64, "entry")
}

fn change_json(context: &Context, archived: usize, entries: usize, anchor: Option<&str>) -> String {
    context_draft(context).with("archived", archived).with("entries", entries).with("anchor", anchor).render(None)
}

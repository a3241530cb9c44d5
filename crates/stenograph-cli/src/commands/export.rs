//! `steno export`: writes a session as a document for people or for other programs. The library formats it; this file selects
//! the events and the destination.

mod chapter;
mod html;
mod html_chunks;
mod ledger;

use std::io::Write;
use std::path::{Path, PathBuf};

use stenograph::evidence::nested_events;
use stenograph::ledger::{CallCounter, CallDetail, Ledger, LedgerBuilder};
use stenograph::model::{Body, Event};
use stenograph::render::{Document, Markdown, Shown};
use stenograph_store::{Error, Problem};

use self::chapter::{Chapter, EventRole};
use crate::conversation::Conversation;
use crate::error::{CommandError, ExitStatus};
use crate::input::Flow;
use crate::output::{Output, counted};
use crate::output_file::OutputFile;
use crate::redaction::{RedactArgs, Redaction};
use crate::store::SessionArgs;

/// Export sessions as a web page, Markdown, JSON or CSV
///
/// A web page (HTML) is one file that loads nothing from elsewhere, with an outline, a search and the sub-agents. Several sessions,
/// or a whole project, become a folder of pages with an index. Markdown and JSON contain the conversation turn by turn; CSV lists
/// the model calls with their tokens and cost. Markdown omits abandoned branches, repeated records and sub-agents. JSON has all
/// events; for an event that belongs to no turn, it states the reason. Text from the transcript is escaped: it cannot add headings,
/// markup, scripts or control characters to the document.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steno export latest --to html -o session.html             a page to share
  steno export --project . --to html -o pages               a page per session
  steno export session.jsonl --to markdown -o session.md
  steno export latest --to markdown --no-tools              messages only
  steno export 0198f2c4 --to markdown --subagents           with its sub-agents
  steno export latest --to csv -o calls.csv                 one row per call
  steno export latest --to html --redact -o session.html    mask secrets
  steno export session.jsonl --to json | jq '.sections[] | select(.role == \"user\")'

Exit codes: 0 success, 1 no such session, 2 error")]
pub struct Options {
    /// Files, recording folders, or sessions (id prefix or latest); - is standard input
    ///
    /// Only --to html takes several. With --project and no name, it exports all sessions of the project.
    #[arg(value_name = "FILE|SESSION", required_unless_present = "project", add = crate::completion::transcript())]
    files: Vec<PathBuf>,
    #[command(flatten)]
    place: SessionArgs,
    /// Type of document
    #[arg(long, value_enum, value_name = "KIND")]
    to: To,
    #[command(flatten)]
    output: OutputFile,
    #[command(flatten)]
    redact: RedactArgs,
    /// Also export the events of sub-agents (a page always has them)
    #[arg(long)]
    subagents: bool,
    /// Include the complete record of every event (HTML only)
    #[arg(long)]
    raw: bool,
    /// Omit thinking (Markdown only)
    #[arg(long)]
    no_thinking: bool,
    /// Omit tool calls and results (Markdown only)
    #[arg(long)]
    no_tools: bool,
    /// Read as this format instead of detecting it (steno formats lists them)
    #[arg(long, value_name = "FORMAT", value_parser = crate::args::format_name(), hide_possible_values = true)]
    from: Option<String>,
}

/// What can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum To {
    /// A page for a browser
    Html,
    /// A document for people
    #[value(alias = "md")]
    Markdown,
    /// One JSON document with all events
    Json,
    /// The ledger: one row per model call, including sub-agents
    Csv,
}

pub fn run(options: &Options, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    if options.to != To::Markdown && (options.no_thinking || options.no_tools) {
        return Err(CommandError::new("--no-thinking and --no-tools require --to markdown")
            .hint("omit them, or filter the output with jq"));
    }
    if options.to == To::Html {
        return html::run(options, output);
    }
    if options.raw {
        return Err(CommandError::new("--raw requires --to html").hint("--to json has the complete events"));
    }
    let [file] = options.files.as_slice() else {
        return Err(CommandError::new("only --to html takes several sessions").hint("name one session"));
    };
    let from = options.from.as_deref();
    let (main, threads) = match options.subagents || options.to == To::Csv {
        true => Conversation::open_with_threads(&options.place, file, from, output)?,
        false => (Conversation::open(&options.place, file, from, output)?, Vec::new()),
    };
    let all = || std::iter::once(&main).chain(threads.iter().map(|(_, conversation)| conversation));
    if let Some(path) = options.output.path().filter(|path| all().any(|conversation| conversation.has(path))) {
        return Err(Error::about(path, Problem::OwnInput).into());
    }
    let mut file = options.output.create(&all().flat_map(Conversation::sources).collect::<Vec<_>>())?;
    let mut redaction = options.redaction()?;
    let (main, threads) = options.redacted(main, threads, &mut redaction)?;
    let mut chapters = Chapter::all(main, threads);
    if options.subagents && options.to != To::Csv {
        count_all_chapters(options, &mut chapters)?;
    }
    let out: &mut dyn Write = match &mut file {
        Some(file) => file,
        None => output.data(),
    };
    match options.to {
        // Written above.
        To::Html => {}
        To::Markdown => markdown(options, &mut chapters, out)?,
        To::Json => json(options, &mut chapters, out)?,
        To::Csv => ledger::write(&counted_calls(options, &mut chapters)?.0, &crate::prices::load()?, out)?,
    }
    match file {
        Some(file) => file.commit()?,
        None => output.flush()?,
    }
    if options.to == To::Markdown {
        report_left_out(options, &chapters, output);
    }
    options.report_redaction(&redaction, output);
    // The readable part of a damaged source is written; the damage is an error all the same.
    chapters.into_iter().find_map(|chapter| chapter.overview.damage).map_or(Ok(ExitStatus::Done), Err)
}

impl Options {
    fn redaction(&self) -> Result<Redaction, CommandError> {
        match self.redact.is_given() {
            true => Redaction::new(&self.place),
            false => Redaction::only_search(&self.place),
        }
    }

    /// Searches all sources of a session for secrets, and masks them if the user wants that. All are searched before the first
    /// is masked: one may reveal the secrets of another.
    fn redacted(
        &self,
        mut main: Conversation,
        mut threads: Vec<(String, Conversation)>,
        redaction: &mut Redaction,
    ) -> Result<(Conversation, Vec<(String, Conversation)>), CommandError> {
        let all = std::iter::once(&mut main).chain(threads.iter_mut().map(|(_, conversation)| conversation));
        let searched =
            all.map(|conversation| conversation.search(redaction)).collect::<Result<Vec<()>, CommandError>>();
        if !self.redact.is_given() {
            return Ok((main, threads));
        }
        searched?;
        let main = main.redacted(redaction)?;
        let masked = threads.into_iter().map(|(thread, side)| Ok((thread, side.redacted(redaction)?)));
        Ok((main, masked.collect::<Result<_, CommandError>>()?))
    }

    /// Says what was masked, or how many likely secrets the export contains.
    fn report_redaction(&self, redaction: &Redaction, output: &mut Output<'_>) {
        match self.redact.is_given() {
            true => redaction.report(output),
            false => redaction.warn(output),
        }
    }
}

fn markdown(options: &Options, chapters: &mut [Chapter], out: &mut dyn Write) -> Result<(), CommandError> {
    let shown = |left_out: bool| if left_out { Shown::No } else { Shown::Yes };
    let mut markdown = Markdown::new(out, shown(options.no_thinking), shown(options.no_tools), crate::clock::zone());
    for chapter in chapters {
        match &chapter.thread {
            Some(thread) => markdown.side(thread)?,
            None => markdown.head(&chapter.overview.outline, chapter.format(), &options.name(&chapter.conversation))?,
        }
        chapter.each(options, &mut |exported| match exported.role {
            EventRole::InConversation | EventRole::Nested => markdown.event(exported.event),
            EventRole::Bookkeeping | EventRole::LeftOut(_) => {
                markdown.leave_out(exported.event);
                Ok(())
            }
        })?;
    }
    markdown.finish()?;
    Ok(())
}

fn json(options: &Options, chapters: &mut [Chapter], out: &mut dyn Write) -> Result<(), CommandError> {
    let mut document = Document::new(out);
    for chapter in &mut *chapters {
        match chapter.thread {
            Some(_) => document.side()?,
            None => document.head(&chapter.overview.outline, format_name(chapter), &chapter.conversation.name)?,
        }
        chapter.each(options, &mut |exported| match exported.role.why() {
            None => document.event(exported.event),
            Some(_) => Ok(()),
        })?;
    }
    document.rest()?;
    for chapter in chapters {
        chapter.each(options, &mut |exported| match exported.role.why() {
            None => Ok(()),
            Some(why) => document.other(exported.event, why),
        })?;
    }
    document.finish()?;
    Ok(())
}

/// Makes the head of the document state the tool calls and the usage of all chapters.
fn count_all_chapters(options: &Options, chapters: &mut [Chapter]) -> Result<(), CommandError> {
    let (ledger, nested_calls) = counted_calls(options, chapters)?;
    let calls = nested_calls + chapters.iter().map(|chapter| chapter.overview.outline.calls).sum::<u64>();
    if let Some(main) = chapters.first_mut() {
        let outline = &mut main.overview.outline;
        outline.total = ledger.total(&outline.total);
        outline.calls = calls;
    }
    Ok(())
}

/// The model calls of all chapters, each once, and the number of tool calls in nested records that have no chapter of their own.
fn counted_calls(options: &Options, chapters: &mut [Chapter]) -> Result<(Ledger, u64), CommandError> {
    let (mut ledger_builder, mut nested_calls) = (LedgerBuilder::default(), 0);
    for Chapter { conversation, overview, own_chapters, .. } in chapters {
        let agent = conversation.format().map_or("", |format| format.info().agent);
        let mut counting = CallCounter::new(agent, CallDetail::Tools);
        let is_counted = |inner: &&Event<'_>| {
            let is_elsewhere =
                inner.thread.as_ref().is_some_and(|thread| own_chapters.iter().any(|name| name == thread));
            matches!(inner.body, Body::ToolCall { .. }) && !inner.restates && !is_elsewhere
        };
        let read = conversation.read_quietly(&mut |event| {
            counting.add(event);
            nested_calls += nested_events(event).iter().filter(is_counted).count() as u64;
            Flow::Continue
        });
        // The first pass has already reported this damage.
        if overview.damage.is_none() {
            read?;
        }
        let name = options.name(conversation);
        ledger_builder.add(&conversation.name, Some(&name), 0, counting.finish());
    }
    Ok((ledger_builder.finish(), nested_calls))
}

fn format_name(chapter: &Chapter) -> &'static str {
    chapter.conversation.format().map_or("", |format| format.info().name)
}

/// Reports what the document leaves out.
fn report_left_out(options: &Options, chapters: &[Chapter], output: &mut Output<'_>) {
    let sum = |count: fn(&Chapter) -> u64| chapters.iter().map(count).sum::<u64>();
    let (abandoned_events, omitted_side_events) =
        (sum(|chapter| chapter.abandoned_events), sum(|chapter| chapter.omitted_side_events));
    if abandoned_events > 0 {
        let was = if abandoned_events == 1 { "was" } else { "were" };
        let events = counted(abandoned_events, "event");
        output.say(&format!("left out: {events} that {was} abandoned; --to json has all events"));
    }
    if omitted_side_events > 0 && !options.subagents {
        let events = counted(omitted_side_events, "event");
        output.say(&format!("left out: {events} of sub-agents; include them with --subagents"));
    }
}

impl Options {
    /// The name of a session without an id: what the user called it, or a name without secrets.
    fn name(&self, conversation: &Conversation) -> String {
        match self.files.first().filter(|_| !self.redact.is_given()) {
            Some(file) => name_of(file),
            None => name_of(Path::new(&conversation.name)),
        }
    }

    /// Whether the sub-agents are part of the document.
    fn has_threads(&self) -> bool {
        self.subagents || self.to == To::Html
    }

    /// Whether records inside other records are written on their own. In JSON, the outer record contains them.
    fn has_nested(&self) -> bool {
        matches!(self.to, To::Markdown | To::Html)
    }
}

/// The name of a file without its extension.
fn name_of(file: &Path) -> String {
    file.file_stem().unwrap_or(file.as_os_str()).to_string_lossy().into_owned()
}

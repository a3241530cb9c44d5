//! `steno export`: writes a session as a document for people or for other programs. The library formats it; this file selects
//! the events and the destination.

mod ledger;

use std::io::{self, Write};
use std::path::PathBuf;

use stenograph::evidence::nested_events;
use stenograph::ledger::{CallCounter, CallDetail, Ledger, LedgerBuilder};
use stenograph::model::{Body, Event, LeftOut};
use stenograph::render::{Document, Markdown, Shown, SpeakerSections};
use stenograph_store::{Error, Problem};

use crate::conversation::{Conversation, ConversationOverview};
use crate::error::{CommandError, ExitStatus};
use crate::input::Flow;
use crate::output::{Output, counted};
use crate::output_file::OutputFile;
use crate::redaction::{RedactArgs, Redaction};
use crate::store::SessionArgs;

/// Export a session as Markdown, JSON or CSV
///
/// Markdown and JSON contain the conversation turn by turn; CSV lists the model calls with their tokens and cost. Markdown omits
/// abandoned branches, repeats and sub-agents. JSON has all events, with a reason for each event outside a turn. Text from the
/// transcript is escaped: it cannot add headings, markup or control characters.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steno export session.jsonl --to markdown -o session.md
  steno export latest --to markdown --no-tools              messages only
  steno export 0198f2c4 --to markdown --threads             with its sub-agents
  steno export latest --to csv -o calls.csv                 one row per call
  steno export latest --to markdown --redact                mask secrets
  steno export session.jsonl --to json | jq '.turns[] | select(.role == \"user\")'")]
pub struct Options {
    /// A file, a recording folder, or a session (id prefix or latest); - is standard input
    #[arg(value_name = "FILE|SESSION", add = crate::completion::transcript())]
    file: PathBuf,
    #[command(flatten)]
    place: SessionArgs,
    /// Kind of document
    #[arg(long, value_enum, value_name = "KIND")]
    to: To,
    #[command(flatten)]
    output: OutputFile,
    #[command(flatten)]
    redact: RedactArgs,
    /// Also write the sub-agents
    #[arg(long)]
    threads: bool,
    /// Omit thinking (Markdown only)
    #[arg(long)]
    no_thinking: bool,
    /// Omit tool calls and results (Markdown only)
    #[arg(long)]
    no_tools: bool,
    /// Read as this format instead of detecting it
    #[arg(long, value_name = "FORMAT", value_parser = crate::args::format_name())]
    from: Option<String>,
}

/// What can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum To {
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
    let from = options.from.as_deref();
    let (mut main, mut threads) = match options.threads || options.to == To::Csv {
        true => Conversation::open_with_threads(&options.place, &options.file, from, output)?,
        false => (Conversation::open(&options.place, &options.file, from, output)?, Vec::new()),
    };
    let all = || std::iter::once(&main).chain(threads.iter().map(|(_, conversation)| conversation));
    if let Some(path) = options.output.path().filter(|path| all().any(|conversation| conversation.has(path))) {
        return Err(Error::about(path, Problem::OwnInput).into());
    }
    let mut file = options.output.create(&all().flat_map(Conversation::sources).collect::<Vec<_>>())?;
    let mut redaction = match options.redact.is_given() {
        true => Redaction::new(&options.place)?,
        false => Redaction::only_search(&options.place)?,
    };
    let searched = search_all(&mut main, &mut threads, &mut redaction);
    if options.redact.is_given() {
        searched?;
        main = main.redacted(&mut redaction)?;
        let masked = threads.into_iter().map(|(thread, side)| Ok((thread, side.redacted(&mut redaction)?)));
        threads = masked.collect::<Result<_, CommandError>>()?;
    }
    let names: Vec<String> = threads.iter().map(|(thread, _)| thread.clone()).collect();
    let mut chapters = vec![Chapter { own_chapters: names, ..Chapter::of(None, main) }];
    chapters.extend(threads.into_iter().map(|(thread, conversation)| Chapter::of(Some(thread), conversation)));
    if options.threads && options.to != To::Csv {
        count_all_chapters(options, &mut chapters)?;
    }
    let out: &mut dyn Write = match &mut file {
        Some(file) => file,
        None => output.data(),
    };
    match options.to {
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
    match options.redact.is_given() {
        true => redaction.report(output),
        false => redaction.warn(output),
    }
    // The readable part of a damaged source is written; the damage is an error all the same.
    chapters.into_iter().find_map(|chapter| chapter.overview.damage).map_or(Ok(ExitStatus::Done), Err)
}

/// Searches all sources before the first is read: one may reveal the secrets of another.
fn search_all(
    main: &mut Conversation,
    threads: &mut [(String, Conversation)],
    redaction: &mut Redaction,
) -> Result<(), CommandError> {
    main.search(redaction)?;
    threads.iter_mut().try_for_each(|(_, conversation)| conversation.search(redaction))
}

/// One source of the document.
struct Chapter {
    /// The name of the side conversation; `None` for the main one.
    thread: Option<String>,
    conversation: Conversation,
    overview: ConversationOverview,
    /// The side conversations that have their own chapter.
    own_chapters: Vec<String>,
    given_up: u64,
    aside: u64,
}

/// The role of an event in the document.
enum EventRole {
    InConversation,
    /// Not part of the conversation, with the reason.
    Other(&'static str),
}

impl Chapter {
    fn of(thread: Option<String>, mut conversation: Conversation) -> Chapter {
        let overview = conversation.overview();
        Chapter { thread, conversation, overview, own_chapters: Vec::new(), given_up: 0, aside: 0 }
    }

    fn format(&self) -> &'static str {
        self.conversation.format().map_or("several files", |format| format.info().title)
    }

    /// Reads the events once and classifies each.
    fn each(
        &mut self,
        options: &Options,
        write_event: &mut dyn FnMut(&Event<'_>, EventRole) -> io::Result<()>,
    ) -> Result<(), CommandError> {
        let Chapter { conversation, overview, given_up, aside, own_chapters, .. } = self;
        (*given_up, *aside) = (0, 0);
        overview.spine.rewind();
        let mut failed = None;
        let read = conversation.read_quietly(&mut |event| {
            let left_out = overview.spine.left_out(event);
            let part = match left_out.filter(|why| *why != LeftOut::Thread || !options.threads) {
                None if SpeakerSections::is_outside(event) => EventRole::Other("nobody said or did it"),
                None => EventRole::InConversation,
                Some(why) => {
                    *given_up += u64::from(why == LeftOut::Branch);
                    *aside += u64::from(why == LeftOut::Thread);
                    EventRole::Other(why.reason())
                }
            };
            failed = write_event(event, part).err();
            // The record itself contains its nested events, so only Markdown needs them separately.
            let inside = if options.to == To::Markdown { nested_events(event) } else { Vec::new() };
            for inner in &inside {
                let is_elsewhere =
                    inner.thread.as_ref().is_some_and(|thread| own_chapters.iter().any(|name| name == thread));
                match options.threads {
                    true if is_elsewhere => {}
                    true => failed = failed.take().or_else(|| write_event(inner, EventRole::InConversation).err()),
                    false => *aside += 1,
                }
            }
            if failed.is_some() { Flow::Stop } else { Flow::Continue }
        });
        match failed {
            Some(error) => Err(error.into()),
            // The overview met the same damage; it is reported once.
            None if overview.damage.is_some() => Ok(()),
            None => read,
        }
    }
}

fn markdown(options: &Options, chapters: &mut [Chapter], out: &mut dyn Write) -> Result<(), CommandError> {
    let shown = |left_out: bool| if left_out { Shown::No } else { Shown::Yes };
    let mut markdown = Markdown::new(out, shown(options.no_thinking), shown(options.no_tools), crate::clock::zone());
    for chapter in chapters {
        match &chapter.thread {
            Some(thread) => markdown.side(thread)?,
            None => markdown.head(&chapter.overview.outline, chapter.format(), &options.name())?,
        }
        chapter.each(options, &mut |event, part| match part {
            EventRole::InConversation => markdown.event(event),
            EventRole::Other(_) => {
                markdown.leave_out(event);
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
        chapter.each(options, &mut |event, part| match part {
            EventRole::InConversation => document.event(event),
            EventRole::Other(_) => Ok(()),
        })?;
    }
    document.rest()?;
    for chapter in chapters {
        chapter.each(options, &mut |event, part| match part {
            EventRole::InConversation => Ok(()),
            EventRole::Other(why) => document.other(event, why),
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
        // The overview met the same damage; it is reported once.
        if overview.damage.is_none() {
            read?;
        }
        ledger_builder.add(&conversation.name, Some(&options.name()), 0, counting.finish());
    }
    Ok((ledger_builder.finish(), nested_calls))
}

fn format_name(chapter: &Chapter) -> &'static str {
    chapter.conversation.format().map_or("", |format| format.info().name)
}

/// Reports what the document leaves out.
fn report_left_out(options: &Options, chapters: &[Chapter], output: &mut Output<'_>) {
    let sum = |count: fn(&Chapter) -> u64| chapters.iter().map(count).sum::<u64>();
    let (given_up, aside) = (sum(|chapter| chapter.given_up), sum(|chapter| chapter.aside));
    if given_up > 0 {
        let was = if given_up == 1 { "was" } else { "were" };
        let events = counted(given_up, "event");
        output.say(&format!("left out: {events} that {was} abandoned; --to json has all events"));
    }
    if aside > 0 && !options.threads {
        let events = counted(aside, "event");
        output.say(&format!("left out: {events} of sub-agents; include them with --threads"));
    }
}

impl Options {
    /// The name of a session without an id.
    fn name(&self) -> String {
        self.file.file_stem().unwrap_or(self.file.as_os_str()).to_string_lossy().into_owned()
    }
}

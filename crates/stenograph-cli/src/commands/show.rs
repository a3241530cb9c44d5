//! `steno show`: prints the events of a file for people. This file opens the source; `show/printer.rs` selects and prints events, `show/view.rs` formats them.

pub(super) mod header;
mod last;
mod notes;
mod numbers;
mod printer;
mod select;
mod session;
pub(super) mod view;

use std::collections::VecDeque;
use std::path::PathBuf;

use stenograph::model::Event;
use stenograph::read::Sink;
use stenograph::repeat::CheckRepeats;
use stenograph::wire;
use stenograph_store::files::Disk;
use stenograph_store::index::search::ReadStart;
use stenograph_store::{Passes, folder};

use crate::context::{ContextName, missing};
use crate::error::{CommandError, ExitStatus};
use crate::input::{self, Flow, TranscriptInput};
use crate::output::{Output, counted, harmless_json};
use crate::progress::SourceProgress;
use crate::store::{ResolvedName, SessionArgs};
use crate::terminal::{self, Drawer};
use notes::EventNotes;
use numbers::NumberSelection;
use printer::{NestedEvents, ShowPrinter};
use select::EventSelection;

/// Show the events of a session or transcript
///
/// Shows each event with its time, its speaker and its content. Long calls and results are folded; --full shows all of their
/// lines. Name a file, or a session that steno index has found: the beginning of its id, or latest. If the file is gone, steno
/// shows the archived copy. Control characters appear as visible symbols. The notes that you gave an event with steno mark
/// follow it.
///
/// Some agents write the same content in several records. steno hides a record whose content is also in an earlier record or in
/// one of the next 64 events. With --last, it compares only the events that it reads from the end of the file. --json and
/// --type show repeated records too.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Kinds: message, thinking, call, result, compaction, failure, stop, fact, other.
       These are the kinds of is: in steno find. The names in JSON, tool_call
       and tool_result, work too. A role (user, assistant, system, ...) selects
       the messages of that role.

Examples:
  steno show session.jsonl --last 5
  steno show 0198f2c4                              a session by its id
  steno show latest --subagents                    with its sub-agents
  steno show SESSION --event 120,131               two events
  steno show SESSION --event 120 --around 2        an event with its context
  steno show session.jsonl --kind user --text      all messages of the user
  steno show session.jsonl --kind call,result --first 10
  steno show session.jsonl --type file-history-snapshot
                                                   by the agent's own type
  steno show session.jsonl --json | jq .kind
  steno show --context research --last 10          the window of a Chibi context

Exit codes: 0 success, 1 nothing to show, or no such session, 2 error")]
pub struct Options {
    /// A file, a recording folder, or a session (id prefix or latest); - is standard input
    #[arg(value_name = "FILE|SESSION", add = crate::completion::transcript(), required_unless_present = "context", conflicts_with = "context")]
    file: Option<PathBuf>,
    #[command(flatten)]
    named: ContextName,
    /// Only sessions of this project; . is the project of this folder
    #[arg(long, value_name = "NAME", conflicts_with = "context", add = crate::completion::project())]
    project: Option<String>,
    /// With --context: also show events that Chibi has moved out of the window, into its archive
    #[arg(long, requires = "context")]
    archive: bool,
    /// Also show the events of sub-agents
    #[arg(long, conflicts_with_all = ["context", "event"])]
    subagents: bool,
    /// Show an archived version of a file that was rewritten (steno archive list --json lists them)
    #[arg(long, value_name = "N", conflicts_with_all = ["context", "subagents"])]
    version: Option<u32>,
    /// Read as this format instead of detecting it (steno formats lists them)
    #[arg(long, value_name = "FORMAT", value_parser = crate::args::format_name(), hide_possible_values = true)]
    from: Option<String>,
    /// Show only the last N events, after all other selections
    #[arg(long, value_name = "N", conflicts_with = "first")]
    last: Option<usize>,
    /// Show only the first N events, after all other selections
    #[arg(long, value_name = "N")]
    first: Option<usize>,
    /// Show the events with these numbers, from steno find or steno audit (repeat, or separate with commas)
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1..),
        conflicts_with_all = ["first", "last", "kind", "types"])]
    event: Vec<u64>,
    /// With --event: also show N events before and after each [default: 0]
    #[arg(long, value_name = "N", requires = "event")]
    around: Option<u64>,
    /// Show only events of this kind or role (repeat, or separate with commas)
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = select::kind, add = crate::completion::kind())]
    kind: Vec<String>,
    /// Show only records whose type has this name in the agent's own format (repeat, or separate with commas)
    #[arg(long = "type", value_name = "TYPE", value_delimiter = ',')]
    types: Vec<String>,
    #[command(flatten)]
    draw: terminal::DrawArgs,
    /// Print only the content, in full
    #[arg(long)]
    text: bool,
    /// Print one JSON object per event, with all fields
    #[arg(long, conflicts_with = "text")]
    json: bool,
}

/// The source of the events.
enum ShowSource {
    /// Several files that form one conversation.
    Parts(folder::RecordingParts),
    Input(Box<TranscriptInput>),
    /// One source, from a record on.
    At(Box<TranscriptInput>, ReadStart),
}

/// What the command line names.
enum ShowTarget {
    /// A file, a folder or a session.
    Path(PathBuf),
    /// The window of a context.
    Window(PathBuf, Box<TranscriptInput>),
    Nothing,
}

pub fn run(options: &Options, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    let path = match options.target(output)? {
        ShowTarget::Path(path) => path,
        ShowTarget::Window(path, input) => {
            return show(
                options,
                &path.display().to_string(),
                ShowSource::Input(input),
                &[],
                EventNotes::default(),
                output,
            );
        }
        ShowTarget::Nothing => return Ok(ExitStatus::No),
    };
    let place = SessionArgs::new(options.named.root(), options.project.clone());
    if let Some(version) = options.version {
        let selected = place.session(&path.display().to_string())?;
        return session::version(options, &place.store()?, &selected, version, output);
    }
    let path = match place.resolve(&path)? {
        ResolvedName::File(path) => path,
        ResolvedName::Session(selected) => return session::run(options, &place.store()?, &selected, output),
    };
    if options.has_header() {
        let session = place.known(&path).and_then(|(store, row)| {
            let session = store.catalogue().ok()?.session(row.session).ok()??;
            header::of_source(&session, &row, &store).ok()
        });
        let header = session.or_else(|| header::of_file(&path, options.from.as_deref()));
        options.print_header(header, output)?;
    }
    // A recording may spread over a folder, or have a journal beside it with more events.
    let from = match options.from.is_none().then(|| input::parts(&path, output)).flatten() {
        Some(parts) => ShowSource::Parts(parts),
        None => {
            let input = Box::new(input::open(&path, options.from.as_deref(), Passes::Once)?);
            let known = (!options.event.is_empty()).then(|| place.known(&path)).flatten();
            match known.and_then(|(store, row)| session::start(options, &store, &row)) {
                Some(start) => ShowSource::At(input, start),
                None => ShowSource::Input(input),
            }
        }
    };
    show(options, &path.display().to_string(), from, &[], EventNotes::default(), output)
}

/// Shows one conversation. The side conversations in `elsewhere` are shown from their own files.
fn show(
    options: &Options,
    name: &str,
    mut from: ShowSource,
    elsewhere: &[String],
    event_notes: EventNotes,
    output: &mut Output<'_>,
) -> Result<ExitStatus, CommandError> {
    let form = match (options.json, options.text) {
        (true, _) => ShowForm::Json,
        (_, true) => ShowForm::Text,
        _ => ShowForm::View,
    };
    if form == ShowForm::View {
        output.page();
    }
    if let ShowSource::Input(input) | ShowSource::At(input, _) = &from {
        input::say_history(input, output);
    }
    if let (Some(most), ShowSource::Input(input)) = (options.last, &from)
        && let Some(events) = last::events(options, form, most, input, &options.drawer(output))?
    {
        let gap = if form == ShowForm::Text { "\n" } else { "" };
        let mut drawer = options.drawer(output);
        let texts: Vec<String> = events.iter().map(|shown| shown.text(&mut drawer)).collect();
        write!(output.data(), "{}", texts.join(gap))?;
        return Ok(ExitStatus::Done);
    }
    // A progress bar would mix with the events, unless they are printed at the end.
    let progress = match &from {
        ShowSource::Input(input) if options.last.is_some() => SourceProgress::over(&input.source, 1),
        _ => SourceProgress::none(),
    };
    let mut printer = ShowPrinter {
        form,
        drawer: options.drawer(output),
        count: 0,
        selection: EventSelection::new(&options.kind, &options.types),
        numbers: options.numbers(),
        first: options.first,
        last: options.last,
        kept: VecDeque::new(),
        gap: if form == ShowForm::Text { "\n" } else { "" },
        shown: 0,
        written: 0,
        number: 0,
        nested: match (options.subagents, elsewhere) {
            (true, threads) => NestedEvents::Shown { elsewhere: threads },
            (false, _) => NestedEvents::Counted(0),
        },
        repeats: 0,
        notes: 0,
        event_notes,
        output,
        failed: None,
    };
    if let ShowSource::At(_, start) = &from {
        printer.numbers.iter_mut().for_each(|numbers| numbers.skip_to(start.event));
    }
    let read = match form {
        ShowForm::Json => read(&mut from, &mut printer, &progress, ShowPrinter::flow),
        ShowForm::Text | ShowForm::View => {
            let mut checked = CheckRepeats::new(&mut printer);
            let read = read(&mut from, &mut checked, &progress, |checked| checked.sink.flow());
            checked.finish();
            read
        }
    };
    drop(progress);
    printer.finish(name)?;
    let ShowPrinter { shown, count, written, selection, numbers, output, .. } = printer;
    read?;
    if let Some(numbers) = numbers {
        return Ok(report_missing(&numbers, output));
    }
    if shown == 0 && !(options.kind.is_empty() && options.types.is_empty()) {
        let asked = [("kind", &options.kind), ("type", &options.types)];
        let asked = asked.iter().filter(|(_, names)| !names.is_empty());
        let asked: Vec<String> = asked.map(|(what, names)| format!("{what} {}", names.join(", "))).collect();
        output.say(&format!("no events of {}", asked.join(" and ")));
        for (what, seen) in [("kinds", selection.seen_kinds()), ("types", selection.seen_types())] {
            if !seen.is_empty() {
                output.say(&format!("hint: the {what} in this file are {}", seen.join(", ")));
            }
        }
        return Ok(ExitStatus::No);
    }
    if written == 0 {
        let is_all_wanted = form == ShowForm::View && options.last != Some(0) && options.first != Some(0);
        let what = if is_all_wanted { "messages and no calls" } else { "events" };
        output.say(&format!("{name}: no {what} to show"));
        if count > 0 && is_all_wanted && !options.draw.all() {
            output.say(&format!("hint: --all shows its {}", counted(count, "other event")));
        }
        return Ok(ExitStatus::No);
    }
    Ok(ExitStatus::Done)
}

/// Reads the source until `flow` stops the read.
fn read<S: Sink>(
    from: &mut ShowSource,
    sink: &mut S,
    progress: &SourceProgress,
    flow: impl Fn(&S) -> Flow,
) -> Result<(), CommandError> {
    match from {
        ShowSource::Input(input) => input.read(sink, progress, flow),
        ShowSource::At(input, start) => input.read_from(start.at, sink, flow),
        ShowSource::Parts(parts) => Ok(folder::read(parts, sink)?),
    }
}

/// Reports requested events that do not exist.
fn report_missing(numbers: &NumberSelection, output: &mut Output<'_>) -> ExitStatus {
    let missing: Vec<String> = numbers.missing().iter().map(u64::to_string).collect();
    if missing.is_empty() {
        return ExitStatus::Done;
    }
    output.say(&format!("no such event: {}", missing.join(", ")));
    output.say(&format!(
        "hint: the transcript has {}; steno find prints event numbers",
        counted(numbers.seen(), "event")
    ));
    ExitStatus::No
}

impl Options {
    fn target(&self, output: &mut Output<'_>) -> Result<ShowTarget, CommandError> {
        let Some(context) = self.named.context()? else {
            return Ok(self.file.clone().map_or(ShowTarget::Nothing, ShowTarget::Path));
        };
        context.must_exist().map_err(|error| missing(error, &context.folder))?;
        if self.archive {
            return Ok(ShowTarget::Path(context.folder));
        }
        let window = context.window();
        match context.open_window(&Disk, crate::clock::seconds())? {
            Some(source) => Ok(ShowTarget::Window(window, Box::new(input::from_source(source, self.from.as_deref())?))),
            None => {
                output.say(&format!("{}: the window is empty", window.display()));
                output.say("hint: --archive shows events that have left the window");
                Ok(ShowTarget::Nothing)
            }
        }
    }

    /// Whether a header is printed: for people who read a conversation from its beginning.
    fn has_header(&self) -> bool {
        !self.json && !self.text && self.last.is_none() && self.event.is_empty()
    }

    fn print_header(&self, header: Option<terminal::Header>, output: &mut Output<'_>) -> Result<(), CommandError> {
        output.page();
        let colour = output.colour();
        let lines = header.map(|header| header.lines(terminal::width())).unwrap_or_default();
        lines.iter().try_for_each(|line| output.line(&line.drawn(colour)))
    }

    /// The drawer for people. Events that the user asked for by kind or type are drawn even if they keep the books.
    fn drawer(&self, output: &Output<'_>) -> Drawer {
        let mut drawer = self.draw.drawer(output.colour());
        if !(self.kind.is_empty() && self.types.is_empty() && self.event.is_empty()) {
            drawer.draw_all();
        }
        drawer
    }

    /// The events requested by number, if any.
    fn numbers(&self) -> Option<NumberSelection> {
        (!self.event.is_empty()).then(|| NumberSelection::new(&self.event, self.around.unwrap_or(0)))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ShowForm {
    /// For people.
    View,
    /// Contents only.
    Text,
    /// As a line of the wire format.
    Json,
}

/// What is shown for an event.
pub(super) enum Shown {
    Text(String),
    /// The event itself, with its number if it is known: the drawer needs to know what was drawn before it.
    Event(Option<u64>, Box<Event<'static>>),
}

impl Shown {
    pub(super) fn event(number: Option<u64>, event: &Event<'_>) -> Shown {
        Shown::Event(number, Box::new(event.clone().into_owned()))
    }

    /// The same with the number of its event.
    pub(super) fn numbered(self, number: Option<u64>) -> Shown {
        match self {
            Shown::Event(_, event) => Shown::Event(number, event),
            text @ Shown::Text(_) => text,
        }
    }

    /// The text to print; empty for an event that is hidden.
    pub(super) fn text(&self, drawer: &mut Drawer) -> String {
        match self {
            Shown::Text(text) => text.clone(),
            Shown::Event(number, event) => drawer.event(*number, event).unwrap_or_default(),
        }
    }
}

impl ShowForm {
    /// What to show for an event; `None` if it has nothing to show.
    fn shown(self, number: Option<u64>, event: &Event<'_>) -> Option<Shown> {
        Some(match self {
            ShowForm::Json => Shown::Text(format!("{}\n", harmless_json(&wire::event_at(event)))),
            ShowForm::Text => Shown::Text(view::contents(event)?),
            ShowForm::View => Shown::event(number, event),
        })
    }
}

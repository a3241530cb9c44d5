//! `steno show`: the events of a file, for people. Which ones is chosen here; how one looks is in `show/view.rs`.

mod last;
mod numbers;
mod select;
mod session;
pub(super) mod view;

use std::collections::VecDeque;
use std::path::PathBuf;

use stenograph::evidence::nested_events;
use stenograph::model::{Event, Note};
use stenograph::read::Sink;
use stenograph::repeat::CheckRepeats;
use stenograph::wire;
use stenograph_store::files::Disk;
use stenograph_store::index::search::ReadStart;
use stenograph_store::{Passes, folder};

use crate::context::{Named, missing};
use crate::error::{CommandError, Status};
use crate::input::{self, Go, Input};
use crate::output::{Colour, Ink, Output, counted, harmless_json};
use crate::progress::Progress;
use crate::store::{Asked, Where};
use numbers::{Near, Numbers};
use select::{Chosen, Selection};

/// Show what happened in a transcript
///
/// Shows each event with its time, who it is from and what it says. What tools were given and what they answered is shortened; --text and
/// --json show everything. Records that only repeat what another one says are left out, unless --json or --type asks for them; one that claims to
/// repeat another is shown if no record before it or among the 64 events after it says the same.
/// Control characters are shown, not obeyed. What is named is a file, or else a session that steno index has found: by the beginning of
/// its id, or latest. A session whose file is gone is shown as it was kept.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Kinds: message, thinking, tool_call, tool_result, compaction, failure, stop, fact, other;
       user, assistant, system and the other roles: what somebody in that role said

Examples:
  steno show session.jsonl --last 5
  steno show 0198f2c4                              a session, by the beginning of its id
  steno show latest --threads                      with its sub-agents
  steno show SESSION --event 120,131               what steno find found, and what stands around it
  steno show session.jsonl --kind user --text      everything the user said
  steno show session.jsonl --kind tool_call,tool_result --first 10
  steno show session.jsonl --type file-history-snapshot          a record type of the format itself
  steno show session.jsonl --json | jq .kind
  steno show --context research --last 10          what the model of a context sees")]
pub struct Options {
    /// The file, or a folder that was recorded into, or a session; - is standard input
    #[arg(value_name = "FILE|SESSION", required_unless_present = "context", conflicts_with = "context")]
    file: Option<PathBuf>,
    #[command(flatten)]
    named: Named,
    /// With --context: show what left its window as well
    #[arg(long, requires = "context")]
    archive: bool,
    /// Show the side conversations of a session too
    #[arg(long, conflicts_with_all = ["context", "event"])]
    threads: bool,
    /// Show what the file of a session was before it was rewritten; steno archive list --json names the versions
    #[arg(long, value_name = "N", conflicts_with_all = ["context", "threads"])]
    version: Option<u32>,
    /// Read as this format instead of looking at the content
    #[arg(long, value_name = "FORMAT", value_parser = crate::args::format_name())]
    from: Option<String>,
    /// Show only the last N events
    #[arg(long, value_name = "N", conflicts_with = "first")]
    last: Option<usize>,
    /// Show only the first N events
    #[arg(long, value_name = "N")]
    first: Option<usize>,
    /// Show the event of this number, as steno find and steno audit give it (can be repeated, or separated by commas)
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1..),
        conflicts_with_all = ["first", "last", "kind", "types"])]
    event: Vec<u64>,
    /// With --event: how many events before and after it are shown too; 2 if nothing is said, and none with --text and --json
    #[arg(long, value_name = "N", requires = "event")]
    around: Option<u64>,
    /// Show only events of this kind or role (can be repeated, or separated by commas)
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = select::kind)]
    kind: Vec<String>,
    /// Show only events of records that their format calls this (can be repeated, or separated by commas)
    #[arg(long = "type", value_name = "TYPE", value_delimiter = ',')]
    types: Vec<String>,
    /// Print the contents only, whole
    #[arg(long)]
    text: bool,
    /// Print the events as JSON, one a line, with everything
    #[arg(long, conflicts_with = "text")]
    json: bool,
}

/// How many events around one that is asked for people want to see.
const AROUND_USUAL: u64 = 2;

/// What is read.
enum From {
    /// Several files that are one conversation.
    Parts(folder::RecordingParts),
    /// One source.
    Input(Box<Input>),
    /// One source, from a record on.
    At(Box<Input>, ReadStart),
}

/// What is named on the command line.
enum Subject {
    /// A file, a folder or a session.
    Path(PathBuf),
    /// The window of a context.
    Window(PathBuf, Box<Input>),
    /// Nothing that could be shown.
    Nothing,
}

/// Runs it.
pub fn run(options: &Options, output: &mut Output<'_>) -> Result<Status, CommandError> {
    let path = match options.subject(output)? {
        Subject::Path(path) => path,
        Subject::Window(path, input) => {
            return show(options, &path.display().to_string(), From::Input(input), &[], output);
        }
        Subject::Nothing => return Ok(Status::No),
    };
    let place = Where::below(options.named.root());
    if let Some(version) = options.version {
        let chosen = place.session(&path.display().to_string())?;
        return session::version(options, &place.store()?, &chosen, version, output);
    }
    let path = match place.asked(&path)? {
        Asked::File(path) => path,
        Asked::Session(chosen) => return session::run(options, &place.store()?, &chosen, output),
    };
    // A recording may be spread over a folder, or have a journal beside it that says more.
    let from = match options.from.is_none().then(|| input::parts(&path, output)).flatten() {
        Some(parts) => From::Parts(parts),
        None => {
            let input = Box::new(input::open(&path, options.from.as_deref(), Passes::Once)?);
            let known = (!options.event.is_empty()).then(|| place.known(&path)).flatten();
            match known.and_then(|(store, row)| session::start(options, &store, &row)) {
                Some(start) => From::At(input, start),
                None => From::Input(input),
            }
        }
    };
    show(options, &path.display().to_string(), from, &[], output)
}

/// Shows one conversation. The side conversations of which `elsewhere` names the ids are shown from files of their own.
fn show(
    options: &Options,
    name: &str,
    mut from: From,
    elsewhere: &[String],
    output: &mut Output<'_>,
) -> Result<Status, CommandError> {
    let manner = match (options.json, options.text) {
        (true, _) => Manner::Json,
        (_, true) => Manner::Text,
        _ => Manner::View(output.colour()),
    };
    if let (Some(most), From::Input(input)) = (options.last, &from)
        && let Some(texts) = last::texts(options, manner, most, input)?
    {
        let gap = if manner == Manner::Text { "\n" } else { "" };
        write!(output.data(), "{}", texts.join(gap))?;
        return Ok(Status::Done);
    }
    // A bar would run through the events, unless they are only shown at the end.
    let progress = match &from {
        From::Input(input) if options.last.is_some() => Progress::over(&input.source, 1),
        _ => Progress::none(),
    };
    let mut showing = Showing {
        manner,
        selection: Selection::new(&options.kind, &options.types),
        numbers: options.numbers(manner),
        first: options.first,
        last: options.last,
        kept: VecDeque::new(),
        gap: if manner == Manner::Text { "\n" } else { "" },
        shown: 0,
        written: 0,
        number: 0,
        nested: match (options.threads, elsewhere) {
            (true, threads) => NestedEvents::Shown { elsewhere: threads },
            (false, _) => NestedEvents::Counted(0),
        },
        repeats: 0,
        notes: 0,
        output,
        failed: None,
    };
    if let From::At(_, start) = &from {
        showing.numbers.iter_mut().for_each(|numbers| numbers.skip_to(start.event));
    }
    let read = match manner {
        Manner::Json => read(&mut from, &mut showing, &progress, Showing::go),
        Manner::Text | Manner::View(_) => {
            let mut checked = CheckRepeats::new(&mut showing);
            let read = read(&mut from, &mut checked, &progress, |checked| checked.sink.go());
            checked.finish();
            read
        }
    };
    drop(progress);
    showing.finish(name)?;
    let Showing { shown, selection, numbers, output, .. } = showing;
    read?;
    if let Some(numbers) = numbers {
        return Ok(told(&numbers, output));
    }
    if shown == 0 && !(options.kind.is_empty() && options.types.is_empty()) {
        let asked = [("kind", &options.kind), ("type", &options.types)];
        let asked = asked.iter().filter(|(_, names)| !names.is_empty());
        let asked: Vec<String> = asked.map(|(what, names)| format!("{what} {}", names.join(", "))).collect();
        output.say(&format!("no event of {}", asked.join(" and ")));
        for (what, seen) in [("kinds", selection.seen_kinds()), ("types", selection.seen_types())] {
            if !seen.is_empty() {
                output.say(&format!("hint: the {what} in this file are {}", seen.join(", ")));
            }
        }
        return Ok(Status::No);
    }
    Ok(Status::Done)
}

/// Reads what there is, for as long as `go` says.
fn read<S: Sink>(
    from: &mut From,
    sink: &mut S,
    progress: &Progress,
    go: impl Fn(&S) -> Go,
) -> Result<(), CommandError> {
    match from {
        From::Input(input) => input.read(sink, progress, go),
        From::At(input, start) => input.read_from(start.at, sink, go),
        From::Parts(parts) => Ok(folder::read(parts, sink)?),
    }
}

/// Which events were asked for and are not there.
fn told(numbers: &Numbers, output: &mut Output<'_>) -> Status {
    let missing: Vec<String> = numbers.missing().iter().map(u64::to_string).collect();
    if missing.is_empty() {
        return Status::Done;
    }
    output.say(&format!("there is no event {}", missing.join(", ")));
    output.say(&format!("hint: there are {}; steno find gives their numbers", counted(numbers.seen(), "event")));
    Status::No
}

impl Options {
    /// What is named on the command line.
    fn subject(&self, output: &mut Output<'_>) -> Result<Subject, CommandError> {
        let Some(context) = self.named.context()? else {
            return Ok(self.file.clone().map_or(Subject::Nothing, Subject::Path));
        };
        context.must_exist().map_err(|error| missing(error, &context.folder))?;
        if self.archive {
            return Ok(Subject::Path(context.folder));
        }
        let window = context.window();
        match context.open_window(&Disk, crate::clock::seconds())? {
            Some(source) => Ok(Subject::Window(window, Box::new(input::of_source(source, self.from.as_deref())?))),
            None => {
                output.say(&format!("{}: the window is empty", window.display()));
                output.say("hint: --archive shows what left it");
                Ok(Subject::Nothing)
            }
        }
    }

    /// The events that are asked for by number, where some are.
    fn numbers(&self, manner: Manner) -> Option<Numbers> {
        let usual = match manner {
            Manner::View(_) => AROUND_USUAL,
            Manner::Text | Manner::Json => 0,
        };
        (!self.event.is_empty()).then(|| Numbers::new(&self.event, self.around.unwrap_or(usual)))
    }
}

/// How an event is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    /// For people.
    View(Colour),
    /// Its contents only.
    Text,
    /// As a line of the wire.
    Json,
}

impl Manner {
    /// An event as it is shown; nothing when it has nothing to show.
    fn text(self, event: &Event<'_>) -> Option<String> {
        match self {
            Manner::Json => Some(format!("{}\n", harmless_json(&wire::event_at(event)))),
            Manner::Text => view::contents(event),
            Manner::View(colour) => Some(view::event(event, colour)),
        }
    }
}

/// Whether an event is left out because it only repeats another.
fn is_repeat(event: &Event<'_>, manner: Manner, chosen: Chosen) -> bool {
    event.restates && manner != Manner::Json && chosen != Chosen::ByType
}

/// Shows events as they are read.
struct Showing<'a, 'o> {
    manner: Manner,
    selection: Selection,
    /// With `--event`: which ones.
    numbers: Option<Numbers>,
    first: Option<usize>,
    last: Option<usize>,
    /// With `--last`: the newest so far, as they will be shown.
    kept: VecDeque<String>,
    /// What stands between two events.
    gap: &'static str,
    shown: usize,
    written: usize,
    /// With `--event`: the number of the last one that was shown.
    number: u64,
    nested: NestedEvents<'a>,
    repeats: u64,
    notes: u64,
    output: &'a mut Output<'o>,
    failed: Option<CommandError>,
}

/// What becomes of the events of records that stand inside others.
enum NestedEvents<'a> {
    /// They are shown where they stand, but for those of side conversations that have a file of their own.
    Shown { elsewhere: &'a [String] },
    /// They are counted.
    Counted(u64),
}

impl Sink for Showing<'_, '_> {
    fn event(&mut self, event: &Event<'_>) {
        if self.numbers.is_some() {
            return self.numbered(event);
        }
        self.one(event);
        for inner in nested_events(event) {
            let is_elsewhere =
                |threads: &[String]| threads.iter().any(|thread| inner.thread.as_deref() == Some(thread));
            match &mut self.nested {
                NestedEvents::Shown { elsewhere } if is_elsewhere(elsewhere) => {}
                NestedEvents::Shown { .. } => self.one(&inner),
                NestedEvents::Counted(count) => *count += 1,
            }
        }
    }

    fn note(&mut self, _note: Note) {
        self.notes += 1;
    }
}

impl Showing<'_, '_> {
    fn one(&mut self, event: &Event<'_>) {
        let chosen = self.selection.choose(event);
        if chosen == Chosen::No || self.go() == Go::NoFurther {
            return;
        }
        if is_repeat(event, self.manner, chosen) {
            self.repeats += 1;
            return;
        }
        let Some(text) = self.manner.text(event) else { return };
        self.shown += 1;
        match self.last {
            None => self.put(&text),
            Some(most) => {
                self.kept.push_back(text);
                if self.kept.len() > most {
                    self.kept.pop_front();
                }
            }
        }
    }

    fn go(&self) -> Go {
        let enough =
            self.first.is_some_and(|most| self.shown >= most) || self.numbers.as_ref().is_some_and(Numbers::is_past);
        if enough || self.failed.is_some() { Go::NoFurther } else { Go::On }
    }

    /// An event that is shown or not by its number alone.
    fn numbered(&mut self, event: &Event<'_>) {
        let Some(numbers) = &mut self.numbers else { return };
        let width = numbers.width();
        let (number, near) = numbers.next();
        // What is asked for is shown even if it only repeats another; what stands around it is not.
        let is_shown = near == Near::Meant || near == Near::Beside && (!event.restates || self.manner == Manner::Json);
        self.numbered_one(event, (number, width), near, is_shown);
        // What stands inside a record has its number.
        for inner in nested_events(event).into_iter().filter(|_| near == Near::Meant) {
            self.numbered_one(&inner, (number, width), near, true);
        }
    }

    fn numbered_one(&mut self, event: &Event<'_>, (number, width): (u64, usize), near: Near, is_shown: bool) {
        let text = match self.manner {
            _ if !is_shown => None,
            Manner::Json => Some(format!("{}\n", harmless_json(&wire::event_at(event)))),
            Manner::Text => view::contents(event),
            Manner::View(colour) => {
                let mark = if near == Near::Meant { colour.ink(Ink::Warning, ">") } else { " ".to_owned() };
                // Numbers that do not follow each other stand apart.
                let gap = if self.number > 0 && self.number + 1 < number { "\n" } else { "" };
                Some(format!("{gap}{mark} {number:>width$}  {}", view::event(event, colour)))
            }
        };
        if let Some(text) = text {
            self.shown += 1;
            self.number = number;
            self.put(&text);
        }
    }

    fn put(&mut self, text: &str) {
        if self.failed.is_none() {
            let gap = if self.written > 0 { self.gap } else { "" };
            self.written += 1;
            self.failed = write!(self.output.data(), "{gap}{text}").err().map(CommandError::from);
        }
    }

    fn finish(&mut self, name: &str) -> Result<(), CommandError> {
        for text in std::mem::take(&mut self.kept) {
            self.put(&text);
        }
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        if let NestedEvents::Counted(count @ 1..) = self.nested {
            let events = counted(count, "event");
            self.output.say(&format!("{events} of sub-agents inside other records not shown: --threads shows them"));
        }
        if self.repeats > 0 {
            let repeats = counted(self.repeats, "event");
            self.output.say(&format!("{repeats} left out that only repeat others: --json shows them"));
        }
        if self.notes > 0 && self.go() == Go::On {
            let notes = counted(self.notes, "note");
            self.output.say(&format!("{notes} about this file: steno check {name} tells"));
        }
        Ok(())
    }
}

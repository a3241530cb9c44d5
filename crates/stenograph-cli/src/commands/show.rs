//! `steno show`: the events of a file, for people. Which ones is chosen here; how one looks is in `show/view.rs`.

mod select;
pub(super) mod view;

use std::collections::VecDeque;
use std::path::PathBuf;

use stenograph::model::{Event, Note};
use stenograph::read::Sink;
use stenograph::wire;
use stenograph_store::files::Disk;
use stenograph_store::{Passes, folder};

use crate::context::{Named, missing};
use crate::error::{CommandError, Status};
use crate::input::{self, Go};
use crate::output::{Colour, Output, counted, harmless_json};
use crate::progress::Progress;
use select::{Chosen, Selection};

/// Show what happened in a transcript
///
/// Shows each event with its time, who it is from and what it says. What tools were given and what they answered is shortened; --text and
/// --json show everything. Records that only repeat what another one says are left out, unless --json or their own type asks for them.
/// Control characters are shown, not obeyed.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Kinds: message, thinking, tool_call, tool_result, compaction, failure, stop, fact, other;
       user, assistant, system and the other roles; and the type names of the format itself

Examples:
  steno show session.jsonl --last 5
  steno show session.jsonl --kind user --text      everything the user said
  steno show session.jsonl --kind tool_call,tool_result --first 10
  steno show session.jsonl --json | jq .kind
  steno show --context research --last 10          what the model of a context sees")]
pub struct Options {
    /// The file, or a folder that was recorded into; - is standard input
    #[arg(value_name = "FILE", required_unless_present = "context", conflicts_with_all = ["context", "root"])]
    file: Option<PathBuf>,
    #[command(flatten)]
    named: Named,
    /// With --context: show what left its window as well
    #[arg(long, requires = "context")]
    archive: bool,
    /// Read as this format instead of looking at the content
    #[arg(long, value_name = "FORMAT", value_parser = crate::args::format_name())]
    from: Option<String>,
    /// Show only the last N events
    #[arg(long, value_name = "N", conflicts_with = "first")]
    last: Option<usize>,
    /// Show only the first N events
    #[arg(long, value_name = "N")]
    first: Option<usize>,
    /// Show only events of this kind, role or type (can be repeated, or separated by commas)
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    kind: Vec<String>,
    /// Print the contents only, whole
    #[arg(long)]
    text: bool,
    /// Print the events as JSON, one a line, with everything
    #[arg(long, conflicts_with = "text")]
    json: bool,
}

/// Runs it.
pub fn run(options: &Options, output: &mut Output<'_>) -> Result<Status, CommandError> {
    let Some(path) = options.path(output)? else { return Ok(Status::No) };
    // A recording may be spread over a folder, or have a journal beside it that says more.
    let parts = options.from.is_none().then(|| folder::parts(&path)).flatten();
    let mut input = match &parts {
        Some(_) => None,
        None => Some(input::open(&path, options.from.as_deref(), Passes::Once)?),
    };
    let manner = match (options.json, options.text) {
        (true, _) => Manner::Json,
        (_, true) => Manner::Text,
        _ => Manner::View(output.colour()),
    };
    // A bar would run through the events, unless they are only shown at the end.
    let progress = match &input {
        Some(input) if options.last.is_some() => Progress::over(&input.source, 1),
        _ => Progress::none(),
    };
    let mut showing = Showing {
        manner,
        selection: Selection::new(&options.kind),
        first: options.first,
        last: options.last,
        kept: VecDeque::new(),
        gap: if manner == Manner::Text { "\n" } else { "" },
        shown: 0,
        written: 0,
        repeats: 0,
        notes: 0,
        output,
        failed: None,
    };
    let read = match (&mut input, &parts) {
        (Some(input), _) => input.read(&mut showing, &progress, Showing::go),
        (None, Some(parts)) => Ok(folder::read(parts, &mut showing)?),
        (None, None) => Ok(()),
    };
    drop(progress);
    showing.finish(&path.display().to_string())?;
    let Showing { shown, selection, output, .. } = showing;
    read?;
    if shown == 0 && !options.kind.is_empty() {
        output.say(&format!("no event of kind {}", options.kind.join(", ")));
        let seen = selection.seen();
        if !seen.is_empty() {
            output.say(&format!("hint: the kinds in this file are {}", seen.join(", ")));
        }
        return Ok(Status::No);
    }
    Ok(Status::Done)
}

impl Options {
    /// What is to be read; nothing when a context is named whose window is empty.
    fn path(&self, output: &mut Output<'_>) -> Result<Option<PathBuf>, CommandError> {
        let Some(context) = self.named.context()? else { return Ok(self.file.clone()) };
        context.must_exist().map_err(|error| missing(error, &context.folder))?;
        if self.archive {
            return Ok(Some(context.folder));
        }
        let window = context.window();
        if context.has_window(&Disk) {
            return Ok(Some(window));
        }
        output.say(&format!("{}: the window is empty", window.display()));
        output.say("hint: --archive shows what left it");
        Ok(None)
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

/// Shows events as they are read.
struct Showing<'a, 'o> {
    manner: Manner,
    selection: Selection,
    first: Option<usize>,
    last: Option<usize>,
    /// With `--last`: the newest so far, as they will be shown.
    kept: VecDeque<String>,
    /// What stands between two events.
    gap: &'static str,
    shown: usize,
    written: usize,
    repeats: u64,
    notes: u64,
    output: &'a mut Output<'o>,
    failed: Option<CommandError>,
}

impl Sink for Showing<'_, '_> {
    fn event(&mut self, event: &Event<'_>) {
        let chosen = self.selection.choose(event);
        if chosen == Chosen::No || self.go() == Go::NoFurther {
            return;
        }
        if event.restates && self.manner != Manner::Json && chosen != Chosen::ByType {
            self.repeats += 1;
            return;
        }
        let text = match self.manner {
            Manner::Json => Some(format!("{}\n", harmless_json(&wire::event_at(event)))),
            Manner::Text => view::contents(event),
            Manner::View(colour) => Some(view::event(event, colour)),
        };
        let Some(text) = text else { return };
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

    fn note(&mut self, _note: Note) {
        self.notes += 1;
    }
}

impl Showing<'_, '_> {
    fn go(&self) -> Go {
        let enough = self.first.is_some_and(|most| self.shown >= most);
        if enough || self.failed.is_some() { Go::NoFurther } else { Go::On }
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

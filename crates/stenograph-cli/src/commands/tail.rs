//! `steno tail`: prints the last events of a file, and new ones as they arrive. `steno show` formats events; the store reads a
//! file from its end and follows it.

use std::path::{Path, PathBuf};

use stenograph::model::Event;
use stenograph::read::Sink;
use stenograph::repeat::{IsRepeat, RepeatQueue, SpokenWords};
use stenograph::wire;
use stenograph_store::databases;
use stenograph_store::follow::{ChangeSignal, Follow, FollowChange, Last, LastLine, Listener, SWEEP};
use stenograph_store::journal::{self, Author};
use stenograph_store::{Passes, Source};

use super::show::Shown;
use crate::error::{CommandError, ExitStatus};
use crate::last::{InWindow, LastShown, last_shown, unless_repeated};
use crate::output::{Output, counted, grouped, harmless_json};
use crate::store::{LATEST, SessionArgs};
use crate::terminal::{self, Drawer};
use crate::{input, live};

/// Show the last events of a transcript, and follow it
///
/// Without a name, steno shows the transcript that was written last. It reads line formats from the end, whatever the size of
/// the file, and other files completely.
///
/// With --follow, steno prints new events until you stop it. If another file replaces the file, steno prints the rest of the
/// old one and then all of the new one. If the file shrinks, steno starts again at its beginning. An incomplete last line is
/// printed when it is complete; without --follow it is printed as it is.
///
/// Some agents write the same content in several records. steno hides a record whose content is also in one of the events
/// before it (as far back as steno has read) or in one of the next 64 events. With --follow it waits a moment for those events.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steno tail                                       the newest transcript
  steno tail session.jsonl -n 3
  steno tail -f session.jsonl                      follow it
  steno tail 0198f2c4                              a session by its id
  steno tail -f session.jsonl --json | jq .kind

Exit codes: 0 success, 1 nothing to show, 2 error")]
pub struct Options {
    /// A file, a recording folder, or a session (id prefix or latest); - is standard input
    #[arg(value_name = "FILE|SESSION", add = crate::completion::transcript())]
    file: Option<PathBuf>,
    #[arg(skip)]
    standard_input: input::StandardInput,
    #[command(flatten)]
    place: SessionArgs,
    /// Start with the last N events
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10)]
    last: usize,
    /// Keep running and print new events
    #[arg(short, long)]
    follow: bool,
    /// Read as this format instead of detecting it (steno formats lists them)
    #[arg(long, alias = "format", value_name = "FORMAT", value_parser = crate::args::format_name(), hide_possible_values = true)]
    from: Option<String>,
    #[command(flatten)]
    draw: terminal::DrawArgs,
    /// Print one JSON object per event, with all fields
    #[arg(long)]
    json: bool,
}

pub fn run(options: &Options, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    let path = match &options.file {
        Some(name) if name == Path::new("-") && options.follow => {
            return Err(CommandError::new("standard input cannot be followed").hint("name the file, or omit --follow"));
        }
        Some(name) => live::file_named(&options.place, &options.standard_input.path(name)?)?,
        // Only the index knows the projects of all transcripts.
        None if options.place.project().is_some() => live::file_named(&options.place, Path::new(LATEST))?,
        None => {
            let newest = live::transcripts(&options.place)?.into_iter().next();
            newest.ok_or_else(|| live::no_transcripts(options.place.home()))?.path
        }
    };
    if databases::is_conversation(&path) {
        return Err(CommandError::new(format!("{}: cannot follow a conversation in a database", path.display()))
            .hint("show its last events with steno show SESSION --last N"));
    }
    let is_standard_input = options.file.as_deref() == Some(Path::new("-"));
    let name = if is_standard_input { "-".to_owned() } else { path.display().to_string() };
    // A user who names the file knows which one it is.
    if !is_standard_input && options.file.as_ref().is_none_or(|name| name.symlink_metadata().is_err()) {
        output.say(&name);
    }
    let recognized = input::recognized_so_far(&Source::open(&path, Passes::Once)?, options.from.as_deref())?;
    if recognized.is_none() && !options.follow {
        return Err(CommandError::not_found(format!("{name}: the file is empty"))
            .hint("wait for events with steno tail -f FILE"));
    }
    let form = if options.json { TailForm::Json } else { TailForm::View };
    let drawer = options.draw.drawer(output.colour());
    let open = if options.follow { Follow::wait_for } else { Follow::open_recognized };
    let mut follow = open(&path, recognized)?;
    // The signal exists before the first look, so that no change is missed in between.
    let signal = options.follow.then(|| ChangeSignal::over(std::slice::from_ref(&path)));
    let last_line = if options.follow { LastLine::HoldBack } else { LastLine::Include };
    let is_seen = |event: &Event<'_>| form == TailForm::Json || drawer.shows(event);
    let LastShown { last, queue, window } =
        last_shown(&mut follow, options.last, last_line, &mut |event| form.shown(event).filter(|_| is_seen(event)))?;
    let before = match form {
        TailForm::View => window.events_before(&path, follow.format(), &options.place),
        TailForm::Json => None,
    };
    let warnings = warnings(&last, &name);
    let events = last.events;
    let mut printer =
        NewEventPrinter { form, drawer, name, output, queue, count: window.count(), before, came: false, failed: None };
    for shown in events {
        printer.print(shown, IsRepeat::No);
    }
    if let Some(error) = printer.failed.take() {
        return Err(error);
    }
    warnings.iter().for_each(|warning| printer.output.say(warning));
    printer.output.flush()?;
    let Some(signal) = signal else { return Ok(ExitStatus::Done) };
    loop {
        printer.came = false;
        follow.look(&mut printer)?;
        if !printer.came {
            printer.print_waiting();
        }
        if let Some(error) = printer.failed.take() {
            return Err(error);
        }
        printer.output.flush()?;
        signal.wait(SWEEP);
    }
}

/// Warnings about the end of a file.
fn warnings<T>(last: &Last<T>, name: &str) -> Vec<String> {
    let torn = last.torn.as_ref().map(|note| {
        let (length, offset) = (counted(note.at.length, "byte"), grouped(note.at.offset));
        format!("{name}: the last record ({length} at byte {offset}) is incomplete: still being written, or cut off")
    });
    let gave_up = last.gave_up.map(|length| {
        let (found, length) = (counted(last.events.len() as u64, "event"), counted(length, "byte"));
        format!("{name}: {found} in the last {length}; earlier content was not read")
    });
    torn.into_iter().chain(gave_up).collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TailForm {
    /// For people.
    View,
    /// As a line of the wire format.
    Json,
}

impl TailForm {
    /// What is shown for an event, and its words, which tell whether it repeats another; `None` for marks that divide a journal.
    fn shown(self, event: &Event<'_>) -> Option<(SpokenWords, Shown)> {
        match self {
            _ if journal::author(event) == Author::Mark => None,
            TailForm::Json => {
                let text = format!("{}\n", harmless_json(&wire::event_at(event)));
                Some((SpokenWords::stated(event), Shown::Text(text)))
            }
            TailForm::View => unless_repeated(event, |event| Some(Shown::event(None, event))),
        }
    }
}

/// Prints new events.
struct NewEventPrinter<'a, 'o> {
    form: TailForm,
    drawer: Drawer,
    name: String,
    output: &'a mut Output<'o>,
    /// Events that may turn out to repeat others.
    queue: RepeatQueue<InWindow<Shown>>,
    /// How many events the window has.
    count: u64,
    /// How many events of the file precede the window, if that is known.
    before: Option<u64>,
    /// Whether an event arrived since the last look.
    came: bool,
    failed: Option<CommandError>,
}

impl NewEventPrinter<'_, '_> {
    /// Prints the waiting events: no repetition arrived for a while.
    fn print_waiting(&mut self) {
        while let Some((shown, is_repeat)) = self.queue.take() {
            self.print(shown, is_repeat);
        }
    }

    fn print(&mut self, (in_window, shown): InWindow<Shown>, is_repeat: IsRepeat) {
        if is_repeat == IsRepeat::No && self.failed.is_none() {
            let text = shown.numbered(self.before.map(|before| before + in_window + 1)).text(&mut self.drawer);
            self.failed = write!(self.output.data(), "{text}").err().map(CommandError::from);
        }
    }
}

impl Sink for NewEventPrinter<'_, '_> {
    fn event(&mut self, event: &Event<'_>) {
        self.came = true;
        let in_window = self.count;
        self.count += 1;
        let Some((words, shown)) = self.form.shown(event) else { return };
        self.queue.add(words, (in_window, shown));
        while let Some((shown, is_repeat)) = self.queue.next_decided() {
            self.print(shown, is_repeat);
        }
    }
}

impl Listener for NewEventPrinter<'_, '_> {
    fn file_change(&mut self, change: FollowChange) {
        self.print_waiting();
        self.queue = RepeatQueue::default();
        if change != FollowChange::Gone {
            (self.count, self.before) = (0, self.before.map(|_| 0));
        }
        let what = match change {
            FollowChange::Rotated => "replaced by another file; showing it from its beginning",
            FollowChange::Truncated => "the file shrank; showing it from its beginning",
            FollowChange::Rewritten => "the file was rewritten; showing it from its beginning",
            FollowChange::Recognized => "its first records suggested another format; showing it from its beginning",
            FollowChange::Gone => "the file is gone; waiting for a new one",
        };
        self.output.say(&format!("{}: {what}", self.name));
    }
}

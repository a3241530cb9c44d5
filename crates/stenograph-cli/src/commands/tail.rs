//! `steno tail`: the last events of a file, and those that come. How events look is the business of `steno show`; how a file is read from
//! its end and followed is the store's.

use std::path::PathBuf;

use stenograph::model::{Event, Note};
use stenograph::read::Sink;
use stenograph::repeat::{IsRepeat, RepeatQueue, SpokenWords};
use stenograph::wire;
use stenograph_store::follow::{ChangeSignal, Follow, FollowChange, Last, LastLine, Listener, SWEEP};
use stenograph_store::journal::{self, Author};
use stenograph_store::{Passes, Source};

use super::show::view;
use crate::error::{CommandError, Status};
use crate::last::{last_shown, unless_repeated};
use crate::output::{Colour, Output, counted, grouped, harmless_json};
use crate::store::Where;
use crate::{input, live};

/// Show the last events of a transcript, and those that come
///
/// Without a name, the transcript that was written last is shown. Files of one record a line are read from their end, however large they
/// are; other files are read whole. With --follow, events are shown as they are written, until you stop it: when the file is renamed and
/// another takes its name, the rest of the old one is shown and then all of the new one; when it becomes shorter, it is shown from its
/// beginning. A last line that is only half written is shown when it is whole; without --follow it is shown as it is. A record that claims to
/// repeat another is left out if one of those before it or of the 64 events after it says the same; with --follow it waits for them until
/// nothing comes for a moment.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steno tail                                       the end of what was written last
  steno tail session.jsonl -n 3
  steno tail -f session.jsonl                      and what comes
  steno tail 0198f2c4                              a session, by the beginning of its id
  steno tail -f session.jsonl --json | jq .kind

Exit codes: 0 done, 1 there is nothing to show, 2 error")]
pub struct Options {
    /// The file, or a folder that was recorded into, or a session: the beginning of its id, or latest
    #[arg(value_name = "FILE|SESSION")]
    file: Option<PathBuf>,
    #[command(flatten)]
    place: Where,
    /// Begin with the last N events
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10)]
    last: usize,
    /// Go on, and show what comes
    #[arg(short, long)]
    follow: bool,
    /// Read as this format instead of looking at the content
    #[arg(long, alias = "format", value_name = "FORMAT", value_parser = crate::args::format_name())]
    from: Option<String>,
    /// Print the events as JSON, one a line, with everything
    #[arg(long)]
    json: bool,
}

/// Runs it.
pub fn run(options: &Options, output: &mut Output<'_>) -> Result<Status, CommandError> {
    let root = options.place.home();
    let path = match &options.file {
        Some(name) => live::named(&options.place, name)?,
        None => live::files(root)?.into_iter().next().ok_or_else(|| live::nothing(root))?.path,
    };
    let name = path.display().to_string();
    // Who named the file knows which it is.
    if options.file.as_ref().is_none_or(|name| name.symlink_metadata().is_err()) {
        output.say(&name);
    }
    let recognized = input::recognized_so_far(&Source::open(&path, Passes::Once)?, options.from.as_deref())?;
    if recognized.is_none() && !options.follow {
        return Err(CommandError::nothing(format!("{name}: the file is empty"))
            .hint("steno tail -f FILE waits for what will be written"));
    }
    let manner = if options.json { Manner::Json } else { Manner::View(output.colour()) };
    let open = if options.follow { Follow::wait_for } else { Follow::open_recognized };
    let mut follow = open(&path, recognized)?;
    // The signal exists before the first look, so that no change is missed in between.
    let signal = options.follow.then(|| ChangeSignal::over(std::slice::from_ref(&path)));
    let last_line = if options.follow { LastLine::HoldBack } else { LastLine::Include };
    let (last, queue) = last_shown(&mut follow, options.last, last_line, &mut |event| manner.shown(event))?;
    for text in &last.events {
        write!(output.data(), "{text}")?;
    }
    warning(&last, &name, output);
    output.flush()?;
    let Some(signal) = signal else { return Ok(Status::Done) };
    let mut showing = Showing { manner, name, output, queue, came: false, failed: None };
    loop {
        showing.came = false;
        follow.look(&mut showing)?;
        if !showing.came {
            showing.give_held();
        }
        if let Some(error) = showing.failed.take() {
            return Err(error);
        }
        showing.output.flush()?;
        signal.wait(SWEEP);
    }
}

/// What should be known of the end of a file.
fn warning<T>(last: &Last<T>, name: &str, output: &mut Output<'_>) {
    if let Some(note) = &last.torn {
        let (length, offset) = (counted(note.at.length, "byte"), grouped(note.at.offset));
        output.say(&format!(
            "{name}: the last record, {length} from byte {offset} on, is not whole: it is being written, or was cut off"
        ));
    }
    if let Some(length) = last.gave_up {
        let (found, length) = (counted(last.events.len() as u64, "event"), counted(length, "byte"));
        output.say(&format!("{name}: {found} in the last {length}; what stands before was not looked at"));
    }
}

/// How an event is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    /// For people.
    View(Colour),
    /// As a line of the wire.
    Json,
}

impl Manner {
    /// An event as it is shown, and its words by which it may turn out to repeat another; nothing when it only divides a journal.
    fn shown(self, event: &Event<'_>) -> Option<(SpokenWords, String)> {
        match self {
            _ if journal::author(event) == Author::Mark => None,
            Manner::Json => Some((SpokenWords::stated(event), format!("{}\n", harmless_json(&wire::event_at(event))))),
            Manner::View(colour) => unless_repeated(event, |event| Some(view::event(event, colour))),
        }
    }
}

/// Shows what comes.
struct Showing<'a, 'o> {
    manner: Manner,
    name: String,
    output: &'a mut Output<'o>,
    /// Events that may turn out to repeat others.
    queue: RepeatQueue<String>,
    /// Whether an event came since the last look.
    came: bool,
    failed: Option<CommandError>,
}

impl Showing<'_, '_> {
    /// Shows what is held: nothing came for a while that says the same.
    fn give_held(&mut self) {
        while let Some((text, is_repeat)) = self.queue.take() {
            self.give(&text, is_repeat);
        }
    }

    fn give(&mut self, text: &str, is_repeat: IsRepeat) {
        if is_repeat == IsRepeat::No && self.failed.is_none() {
            self.failed = write!(self.output.data(), "{text}").err().map(CommandError::from);
        }
    }
}

impl Sink for Showing<'_, '_> {
    fn event(&mut self, event: &Event<'_>) {
        self.came = true;
        let Some((words, text)) = self.manner.shown(event) else { return };
        self.queue.add(words, text);
        while let Some((text, is_repeat)) = self.queue.next_decided() {
            self.give(&text, is_repeat);
        }
    }

    /// What is odd about a record can be seen, and steno check tells all of it.
    fn note(&mut self, _note: Note) {}
}

impl Listener for Showing<'_, '_> {
    fn file_change(&mut self, change: FollowChange) {
        self.give_held();
        self.queue = RepeatQueue::default();
        let what = match change {
            FollowChange::Rotated => "another file has this name now; it is shown from its beginning",
            FollowChange::Truncated => "became shorter; it is shown from its beginning",
            FollowChange::Rewritten => "was written anew; it is shown from its beginning",
            FollowChange::Recognized => {
                "has another format than its first records showed; it is shown from its beginning"
            }
            FollowChange::Gone => "is gone; waiting for another of this name",
        };
        self.output.say(&format!("{}: {what}", self.name));
    }
}

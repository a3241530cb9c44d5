//! One conversation, whatever was named: a file, a folder that was recorded into, or a session of the index, also one whose file is
//! gone. It is read as often as needed; what is done with its events is in `commands/`.

use std::path::Path;

use stenograph::format::{Format, named};
use stenograph::model::{Event, Note, Outline, Spine};
use stenograph::read::Sink;
use stenograph_store::index::catalogue::SourceRow;
use stenograph_store::index::{Held, Store};
use stenograph_store::recall::Recall;
use stenograph_store::{Passes, Problem, folder};

use crate::error::CommandError;
use crate::input::{self, Go, Input, format_named};
use crate::output::Output;
use crate::progress::Progress;
use crate::store::{Asked, Where};

/// A conversation that can be read.
pub struct Conversation {
    /// What to call it.
    pub name: String,
    from: From,
}

enum From {
    /// One source.
    Input(Box<Input>),
    /// Several files that are one conversation.
    Parts(folder::Parts),
}

/// Whether a long way through a source is shown. What is written meanwhile would run through a bar.
#[derive(Clone, Copy)]
enum Bar {
    Shown,
    None,
}

/// What is known of a conversation after one way through it.
pub struct Overview {
    /// Which of its events are the conversation that goes on.
    pub spine: Spine,
    /// What it is, in a few lines.
    pub outline: Outline,
    /// How many events the source has.
    pub events: u64,
    /// That it could not be read to its end.
    pub damage: Option<CommandError>,
}

impl Conversation {
    /// Opens what is named.
    pub fn open(
        place: &Where,
        name: &Path,
        from: Option<&str>,
        output: &mut Output<'_>,
    ) -> Result<Conversation, CommandError> {
        let path = match place.asked(name)? {
            Asked::File(path) => path,
            Asked::Session(chosen) => {
                let input = kept(&place.store()?, &chosen.source, from, output)?;
                return Ok(Conversation::of(input));
            }
        };
        match folder::parts(&path).filter(|_| from.is_none()) {
            Some(parts) => Ok(Conversation { name: path.display().to_string(), from: From::Parts(parts) }),
            None => Ok(Conversation::of(input::open(&path, from, Passes::Many)?)),
        }
    }

    fn of(input: Input) -> Conversation {
        Conversation { name: input.name(), from: From::Input(Box::new(input)) }
    }

    /// Its format, where it has one.
    pub fn format(&self) -> Option<&'static dyn Format> {
        match &self.from {
            From::Input(input) => Some(input.format),
            From::Parts(parts) => parts.format(),
        }
    }

    /// Reads it from beginning to end, or for as long as `each` wants to.
    fn read(&mut self, bar: Bar, each: &mut dyn FnMut(&Event<'_>) -> Go) -> Result<(), CommandError> {
        let mut every = Every { each, go: Go::On };
        match &mut self.from {
            From::Input(input) => {
                let progress = match bar {
                    Bar::Shown => Progress::over(&input.source, 1),
                    Bar::None => Progress::none(),
                };
                input.read(&mut every, &progress, |every| every.go)
            }
            From::Parts(parts) => Ok(folder::read(parts, &mut every)?),
        }
    }

    /// Goes through it once. What could be read of a damaged source is worth having.
    pub fn overview(&mut self) -> Overview {
        let mut overview = Overview {
            spine: Spine::default(),
            outline: Outline::new(self.format().map_or("", |format| format.info().name)),
            events: 0,
            damage: None,
        };
        let read = self.read(Bar::Shown, &mut |event| {
            overview.events += 1;
            overview.spine.add(event);
            overview.outline.add(event);
            Go::On
        });
        overview.spine.decide();
        overview.damage = read.err();
        overview
    }

    /// Goes through it, and shows how far it is.
    pub fn through(&mut self, each: &mut dyn FnMut(&Event<'_>) -> Go) -> Result<(), CommandError> {
        self.read(Bar::Shown, each)
    }

    /// Goes through it once more, without a word about how long it takes.
    pub fn again(&mut self, each: &mut dyn FnMut(&Event<'_>) -> Go) -> Result<(), CommandError> {
        self.read(Bar::None, each)
    }

    /// Finds its events again.
    pub fn recall(&self) -> Recall {
        match &self.from {
            From::Input(input) => Recall::over(&input.source, input.format),
            From::Parts(_) => Recall::default(),
        }
    }
}

/// Opens a source that the index knows, from the archive when it is gone.
pub fn kept(
    store: &Store,
    row: &SourceRow,
    from: Option<&str>,
    output: &mut Output<'_>,
) -> Result<Input, CommandError> {
    let name = row.path.display().to_string();
    let (source, held) = store.open_source(row).map_err(|error| match error.problem {
        Problem::Missing => CommandError::nothing(format!("{name}: is gone, and was never kept"))
            .hint("steno index keeps what it reads from now on"),
        _ => error.into(),
    })?;
    if held == Held::InArchive {
        output.say(&format!("{name} is gone; this is what was kept of it"));
    }
    let format = match from {
        Some(from) => format_named(from)?,
        None => named(&row.format).ok_or_else(|| CommandError::new(format!("{name}: the format is unknown")))?,
    };
    Ok(Input { source, format })
}

/// Gives every event to somebody.
struct Every<'e> {
    each: &'e mut dyn FnMut(&Event<'_>) -> Go,
    go: Go,
}

impl Sink for Every<'_> {
    fn event(&mut self, event: &Event<'_>) {
        if self.go == Go::On {
            self.go = (self.each)(event);
        }
    }

    /// What is odd about a source is told by steno check.
    fn note(&mut self, _note: Note) {}
}

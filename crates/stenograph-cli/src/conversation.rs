//! One conversation, whatever was named: a file, a folder that was recorded into, or a session of the index, also one whose file is
//! gone. It is read as often as needed; what is done with its events is in `commands/`.

use std::path::Path;

use stenograph::evidence::nested_events;
use stenograph::format::Format;
use stenograph::ledger::{CallDetail, Counting, LedgerBuilder};
use stenograph::model::{Event, Note, Outline, Spine, Usage};
use stenograph::read::Sink;
use stenograph_store::event_cache::EventCache;
use stenograph_store::{Passes, Source, folder, subagent_files};

use crate::error::CommandError;
use crate::input::{self, Go, Input};
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
    Parts(folder::RecordingParts),
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
        Conversation::open_asked(place, &place.asked(name)?, from, output)
    }

    fn open_asked(
        place: &Where,
        asked: &Asked,
        from: Option<&str>,
        output: &mut Output<'_>,
    ) -> Result<Conversation, CommandError> {
        let (parts, name) = match asked {
            Asked::File(path) => (input::parts(path, output), path),
            Asked::Session(chosen) => (chosen.parts(), &chosen.source.path),
        };
        if let Some(parts) = parts.filter(|_| from.is_none()) {
            return Ok(Conversation { name: name.display().to_string(), from: From::Parts(parts) });
        }
        Ok(Conversation::of(match asked {
            Asked::File(path) => input::open(path, from, Passes::Many)?,
            Asked::Session(chosen) => input::open_known(&place.store()?, &chosen.source, from, output)?,
        }))
    }

    /// Opens what is named, and the side conversations that stand in sources of their own, each with its name. One that
    /// cannot be opened does not stop the rest.
    pub fn open_with_threads(
        place: &Where,
        name: &Path,
        from: Option<&str>,
        output: &mut Output<'_>,
    ) -> Result<(Conversation, Vec<(String, Conversation)>), CommandError> {
        let asked = place.asked(name)?;
        let main = Conversation::open_asked(place, &asked, from, output)?;
        let mut threads = Vec::new();
        let chosen = match asked {
            Asked::Session(chosen) => chosen,
            Asked::File(path) => {
                let format = main.format().filter(|_| main.source().is_some());
                for side in format.map(|format| subagent_files::beside(&path, format)).unwrap_or_default() {
                    match input::open(&side.path, from, Passes::Many) {
                        Ok(input) => threads.push((side.thread, Conversation::of(input))),
                        Err(error) => output.error(&error),
                    }
                }
                return Ok((main, threads));
            }
        };
        let store = place.store()?;
        for row in chosen.threads() {
            let Some(thread) = row.thread.clone() else { continue };
            if let Some(parts) = chosen.parts_of_thread(row).filter(|_| from.is_none()) {
                threads.push((thread, Conversation { name: row.path.display().to_string(), from: From::Parts(parts) }));
                continue;
            }
            match input::open_known(&store, row, from, output) {
                Ok(input) => threads.push((thread, Conversation::of(input))),
                Err(error) => output.error(&error),
            }
        }
        Ok((main, threads))
    }

    /// The source it is read from, where it is one.
    pub fn source(&self) -> Option<&Source> {
        match &self.from {
            From::Input(input) => Some(&input.source),
            From::Parts(_) => None,
        }
    }

    /// The sources it is read from, where they are open.
    pub fn sources(&self) -> impl Iterator<Item = &Source> {
        self.source().into_iter()
    }

    /// Whether a file of that path is a part of it.
    pub fn has(&self, path: &Path) -> bool {
        match &self.from {
            From::Input(input) => input.source.is_at(path),
            From::Parts(parts) => parts.has(path),
        }
    }

    /// The conversation that a source is.
    pub fn of(input: Input) -> Conversation {
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
        let mut counting = Counting::new(self.format().map_or("", |format| format.info().agent), CallDetail::Numbers);
        let read = self.read(Bar::Shown, &mut |event| {
            overview.events += 1;
            overview.spine.add(event);
            nested_events(event).iter().for_each(|inner| overview.spine.add_nested(inner));
            overview.outline.add(event);
            counting.add(event);
            Go::On
        });
        overview.spine.decide();
        overview.damage = read.err();
        overview.outline.total = total_of(counting, &overview.outline.total);
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
    pub fn event_cache(&self) -> EventCache {
        match &self.from {
            From::Input(input) => EventCache::new(&input.source, input.format),
            From::Parts(_) => EventCache::default(),
        }
    }
}

/// What the calls of one source took together. The ledger knows what only the format tells, such as what a whole run took and cost;
/// `stated` is what its events state.
pub fn total_of(counting: Counting, stated: &Usage) -> Usage {
    let mut book = LedgerBuilder::default();
    // Calls that name no session are all of one.
    book.add("", Some(""), 0, counting.finish());
    book.finish().total(stated)
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

//! One conversation from any kind of source: a file, a recording folder, or a session of the index, even if its file is gone.
//! Callers can read it several times; `commands/` processes its events.

use std::path::Path;

use stenograph::format::Format;
use stenograph::ledger::{CountedOutline, Ledger, SupersededUsage};
use stenograph::model::{Event, Outline, Spine};
use stenograph::read::Sink;
use stenograph_store::event_cache::EventCache;
use stenograph_store::redaction::SecretSearch;
use stenograph_store::{Passes, Source, folder, subagent_files};

use crate::error::CommandError;
use crate::input::{self, Flow, TranscriptInput};
use crate::output::{Output, harmless_line};
use crate::progress::SourceProgress;
use crate::redaction::Redaction;
use crate::store::{ResolvedName, SessionArgs};

/// A readable conversation.
pub struct Conversation {
    /// The name in messages.
    pub name: String,
    from: ConversationSource,
}

enum ConversationSource {
    Input(Box<TranscriptInput>),
    /// Several files that form one conversation.
    Parts(folder::RecordingParts),
}

/// Whether a read shows a progress bar. Output that is printed during the read would break up the bar.
#[derive(Clone, Copy)]
enum ProgressBar {
    Shown,
    None,
}

/// The results of one pass over a conversation.
pub struct ConversationOverview {
    /// Which events belong to the conversation's current branch.
    pub spine: Spine,
    /// Which statements of usage a later event repeats.
    pub usage: SupersededUsage,
    pub outline: Outline,
    pub ledger: Ledger,
    pub events: u64,
    /// The error that ended the read early.
    pub damage: Option<CommandError>,
}

impl Conversation {
    /// Opens the named conversation.
    pub fn open(
        place: &SessionArgs,
        name: &Path,
        from: Option<&str>,
        output: &mut Output<'_>,
    ) -> Result<Conversation, CommandError> {
        Conversation::open_resolved(place, &place.resolve(name)?, from, output)
    }

    /// Opens a conversation whose name is resolved.
    pub fn open_resolved(
        place: &SessionArgs,
        resolved: &ResolvedName,
        from: Option<&str>,
        output: &mut Output<'_>,
    ) -> Result<Conversation, CommandError> {
        let (parts, name) = match resolved {
            ResolvedName::File(path) => (input::parts(path, output), path),
            ResolvedName::Session(session) => (session.parts(), &session.source.path),
        };
        if let Some(parts) = parts.filter(|_| from.is_none()) {
            return Ok(Conversation { name: name.display().to_string(), from: ConversationSource::Parts(parts) });
        }
        if let ResolvedName::Session(session) = resolved {
            for row in session.other_files() {
                let path = row.path.display().to_string();
                output.say(&harmless_line(&format!("this session has another file, which is not read: {path}")));
            }
        }
        Ok(Conversation::from_input(match resolved {
            ResolvedName::File(path) => input::open(path, from, Passes::Many)?,
            ResolvedName::Session(session) => input::open_known(&place.store()?, &session.source, from, output)?,
        }))
    }

    /// Opens the named conversation and its side conversations in other sources, each with its name. A side conversation that
    /// cannot be opened is reported and skipped.
    pub fn open_with_threads(
        place: &SessionArgs,
        name: &Path,
        from: Option<&str>,
        output: &mut Output<'_>,
    ) -> Result<(Conversation, Vec<(String, Conversation)>), CommandError> {
        let resolved = place.resolve(name)?;
        let main = Conversation::open_resolved(place, &resolved, from, output)?;
        let mut threads = Vec::new();
        let session = match resolved {
            ResolvedName::Session(session) => session,
            ResolvedName::File(path) => {
                let format = main.format().filter(|_| main.source().is_some());
                for side in format.map(|format| subagent_files::of_session_file(&path, format)).unwrap_or_default() {
                    match input::open(&side.path, from, Passes::Many) {
                        Ok(input) => threads.push((side.thread, Conversation::from_input(input))),
                        Err(error) => output.error(&error),
                    }
                }
                return Ok((main, threads));
            }
        };
        let store = place.store()?;
        for row in session.threads() {
            let Some(thread) = row.thread.clone() else { continue };
            if let Some(parts) = session.parts_of_thread(row).filter(|_| from.is_none()) {
                threads.push((
                    thread,
                    Conversation { name: row.path.display().to_string(), from: ConversationSource::Parts(parts) },
                ));
                continue;
            }
            match input::open_known(&store, row, from, output) {
                Ok(input) => threads.push((thread, Conversation::from_input(input))),
                Err(error) => output.error(&error),
            }
        }
        Ok((main, threads))
    }

    /// The source, if there is exactly one.
    pub fn source(&self) -> Option<&Source> {
        match &self.from {
            ConversationSource::Input(input) => Some(&input.source),
            ConversationSource::Parts(_) => None,
        }
    }

    /// The open sources.
    pub fn sources(&self) -> impl Iterator<Item = &Source> {
        self.source().into_iter()
    }

    /// Whether the file at `path` is part of the conversation.
    pub fn has(&self, path: &Path) -> bool {
        match &self.from {
            ConversationSource::Input(input) => input.source.is_at(path),
            ConversationSource::Parts(parts) => parts.has(path),
        }
    }

    pub fn from_input(input: TranscriptInput) -> Conversation {
        Conversation { name: input.name(), from: ConversationSource::Input(Box::new(input)) }
    }

    /// Searches it for secrets, which are then masked in all conversations.
    pub fn search(&mut self, redaction: &mut Redaction) -> Result<(), CommandError> {
        match &mut self.from {
            ConversationSource::Input(input) => redaction.search(input, &mut |_, _| {}),
            ConversationSource::Parts(parts) => {
                let found = parts.find_secrets(redaction.redactor())?;
                redaction.learn(found);
                Ok(())
            }
        }
    }

    /// A search for secrets that another thread can make meanwhile; `None` if this one must be searched first.
    pub fn secret_search(&self) -> Option<SecretSearch> {
        match &self.from {
            ConversationSource::Input(input) => input.source.secret_search(input.format),
            ConversationSource::Parts(_) => None,
        }
    }

    /// The same conversation with its secrets masked.
    pub fn redacted(self, redaction: &mut Redaction) -> Result<Conversation, CommandError> {
        let from = match self.from {
            ConversationSource::Input(input) => ConversationSource::Input(Box::new(redaction.apply(*input)?)),
            ConversationSource::Parts(parts) => {
                let (parts, report) = parts.redacted(redaction.redactor())?;
                redaction.add(&report);
                ConversationSource::Parts(parts)
            }
        };
        // The folders of a path reveal its owner and the names of projects, and a file may have any name.
        let path = Path::new(&self.name);
        let name = path.file_name().map_or_else(|| self.name.clone(), |name| name.to_string_lossy().into_owned());
        Ok(Conversation { name: redaction.masked_text(&name), from })
    }

    /// The format, if all parts share one.
    pub fn format(&self) -> Option<&'static dyn Format> {
        match &self.from {
            ConversationSource::Input(input) => Some(input.format),
            ConversationSource::Parts(parts) => parts.format(),
        }
    }

    /// Reads all events, or until `each` stops the read.
    fn read(&mut self, bar: ProgressBar, each: &mut dyn FnMut(&Event<'_>) -> Flow) -> Result<(), CommandError> {
        let mut for_each_event = ForEach { each, flow: Flow::Continue };
        match &mut self.from {
            ConversationSource::Input(input) => {
                let progress = match bar {
                    ProgressBar::Shown => SourceProgress::over(&input.source, 1),
                    ProgressBar::None => SourceProgress::none(),
                };
                input.read(&mut for_each_event, &progress, |for_each_event| for_each_event.flow)
            }
            ConversationSource::Parts(parts) => Ok(folder::read(parts, &mut for_each_event)?),
        }
    }

    /// Reads the conversation once. Keeps what it read of a damaged source.
    pub fn overview(&mut self) -> ConversationOverview {
        let mut overview = ConversationOverview {
            spine: Spine::default(),
            usage: SupersededUsage::default(),
            outline: Outline::default(),
            ledger: Ledger::default(),
            events: 0,
            damage: None,
        };
        let mut outline = CountedOutline::new(self.format());
        let read = self.read(ProgressBar::Shown, &mut |event| {
            overview.events += 1;
            overview.spine.add(event);
            overview.usage.add(event);
            outline.add(event);
            Flow::Continue
        });
        overview.spine.decide();
        overview.usage.decide();
        overview.damage = read.err();
        (overview.outline, overview.ledger) = outline.finish_with_ledger();
        overview
    }

    /// Reads the events and shows a progress bar.
    pub fn read_with_progress(&mut self, each: &mut dyn FnMut(&Event<'_>) -> Flow) -> Result<(), CommandError> {
        self.read(ProgressBar::Shown, each)
    }

    /// Reads the events without a progress bar.
    pub fn read_quietly(&mut self, each: &mut dyn FnMut(&Event<'_>) -> Flow) -> Result<(), CommandError> {
        self.read(ProgressBar::None, each)
    }

    /// A cache that reads single events again.
    pub fn event_cache(&self) -> EventCache {
        match &self.from {
            ConversationSource::Input(input) => EventCache::new(&input.source, input.format),
            ConversationSource::Parts(_) => EventCache::default(),
        }
    }
}

/// Passes every event to a closure.
struct ForEach<'e> {
    each: &'e mut dyn FnMut(&Event<'_>) -> Flow,
    flow: Flow,
}

impl Sink for ForEach<'_> {
    fn event(&mut self, event: &Event<'_>) {
        if self.flow == Flow::Continue {
            self.flow = (self.each)(event);
        }
    }
}

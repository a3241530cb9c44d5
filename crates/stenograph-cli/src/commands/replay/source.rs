//! The source of a replay: a finished conversation, or a file that is still being written. Either is read twice: once to find
//! the current branch, and once to play its events.

use std::path::{Path, PathBuf};

use stenograph::format::Format;
use stenograph::ledger::{CountedOutline, SupersededUsage};
use stenograph::model::{Event, Spine, Usage};
use stenograph::read::Sink;
use stenograph_store::event_cache::EventCache;
use stenograph_store::follow::{ChangeSignal, Follow, FollowChange, Listener};
use stenograph_store::layouts::run_summary;
use stenograph_store::source_file::Recognized;

use super::{Options, header};
use crate::conversation::Conversation;
use crate::error::CommandError;
use crate::input::{self, Flow};
use crate::live;
use crate::output::Output;
use crate::terminal::Header;

pub enum ReplaySource {
    Finished(Box<Conversation>),
    Live(Box<Live>),
}

/// A file that is followed.
pub struct Live {
    path: PathBuf,
    format: Option<&'static dyn Format>,
    follow: Follow,
    /// Signals that the file may have grown.
    pub signal: ChangeSignal,
}

/// Receives events until it has enough.
pub trait EventReceiver: Listener {
    /// Whether to continue.
    fn flow(&self) -> Flow;
}

/// Decides which events are played. The spine decides about events that exist when the replay begins; a later event is played
/// unless it is a repeat or belongs to a side conversation, because nobody knows yet whether it will be taken back.
pub struct EventFilter {
    spine: Spine,
    usage: SupersededUsage,
    /// The number of events that the spine knows.
    known: u64,
    seen: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FilterDecision {
    /// Played, with its usage unless a later event repeats it.
    Played(Option<Usage>),
    LeftOut,
}

impl EventFilter {
    pub fn next(&mut self, event: &Event<'_>) -> FilterDecision {
        self.seen += 1;
        if self.seen > self.known {
            let is_played = !event.restates && event.thread.is_none();
            return if is_played { FilterDecision::Played(event.usage) } else { FilterDecision::LeftOut };
        }
        let is_superseded = self.usage.is_superseded(event);
        match self.spine.left_out(event) {
            Some(_) => FilterDecision::LeftOut,
            None if is_superseded => FilterDecision::Played(None),
            None => FilterDecision::Played(event.usage),
        }
    }

    /// Restarts for another file.
    pub fn restart(&mut self) {
        (self.known, self.seen) = (0, 0);
    }
}

/// What is known before the first event is played.
pub struct ReplayOverview {
    pub header: Header,
    /// The number of events in the source.
    pub events: u64,
    pub filter: EventFilter,
    /// The error that ended the read early.
    pub damage: Option<CommandError>,
}

impl ReplaySource {
    pub fn open(options: &Options, output: &mut Output<'_>) -> Result<ReplaySource, CommandError> {
        let from = options.from.as_deref();
        if !options.follow {
            let conversation = Conversation::open(&options.place, &options.file, from, output)?;
            return Ok(ReplaySource::Finished(Box::new(conversation)));
        }
        if options.file == Path::new("-") {
            return Err(CommandError::new("cannot follow standard input").hint("name a file"));
        }
        let path = live::file_named(&options.place, &options.file)?;
        let format = from.map(input::format_named).transpose()?;
        let signal = ChangeSignal::over(std::slice::from_ref(&path));
        let follow = Follow::wait_for(&path, format.map(Recognized::certain))?;
        Ok(ReplaySource::Live(Box::new(Live { follow, path, format, signal })))
    }

    /// The name in messages.
    pub fn name(&self) -> String {
        match self {
            ReplaySource::Finished(conversation) => conversation.name.clone(),
            ReplaySource::Live(live) => live.path.display().to_string(),
        }
    }

    /// Reads the source for the first time.
    pub fn overview(&mut self) -> Result<ReplayOverview, CommandError> {
        let name = self.name();
        let summary = run_summary(Path::new(&name));
        match self {
            ReplaySource::Finished(conversation) => {
                let found = conversation.overview();
                let filter = EventFilter { spine: found.spine, usage: found.usage, known: found.events, seen: 0 };
                let agent = conversation.format().map_or(found.outline.origin, |format| format.info().agent);
                let header = header::of_replay(&name, agent, &found.outline, &found.ledger, summary.as_ref())?;
                Ok(ReplayOverview { header, events: found.outline.events, filter, damage: found.damage })
            }
            ReplaySource::Live(live) => {
                let mut first = LiveOverview::default();
                let mut follow = Follow::wait_for(&live.path, live.format.map(Recognized::certain))?;
                look_twice(&mut follow, &mut first)?;
                first.spine.decide();
                first.usage.decide();
                let (spine, usage, known) = (first.spine, first.usage, first.outline.events());
                let (outline, ledger) = first.outline.finish_with_ledger();
                let agent = follow.format().map_or("", |format| format.info().agent);
                let filter = EventFilter { spine, usage, known, seen: 0 };
                let header = header::of_replay(&name, agent, &outline, &ledger, summary.as_ref())?;
                Ok(ReplayOverview { header, events: outline.events, filter, damage: None })
            }
        }
    }

    /// Passes on all events that exist now.
    pub fn play(&mut self, receiver: &mut dyn EventReceiver) -> Result<(), CommandError> {
        match self {
            ReplaySource::Finished(conversation) => {
                // The first pass has reported any damage.
                let _ = conversation.read_quietly(&mut |event| {
                    receiver.event(event);
                    receiver.flow()
                });
                Ok(())
            }
            ReplaySource::Live(live) => look_twice(&mut live.follow, receiver),
        }
    }

    /// A cache that reads single events again. Events of a followed file are stored as they arrive.
    pub fn event_cache(&self) -> EventCache {
        match self {
            ReplaySource::Finished(conversation) => conversation.event_cache(),
            ReplaySource::Live(_) => EventCache::default(),
        }
    }
}

impl Live {
    /// Passes on new events.
    pub fn look(&mut self, receiver: &mut dyn EventReceiver) -> Result<(), CommandError> {
        Ok(self.follow.look(receiver)?)
    }
}

/// Reads everything there is. The first look at a document only checks whether it is still changing.
fn look_twice(follow: &mut Follow, listener: &mut dyn Listener) -> Result<(), CommandError> {
    follow.look(listener)?;
    Ok(follow.look(listener)?)
}

/// Collects the overview of a followed file.
#[derive(Default)]
struct LiveOverview {
    spine: Spine,
    usage: SupersededUsage,
    outline: CountedOutline,
}

impl Sink for LiveOverview {
    fn event(&mut self, event: &Event<'_>) {
        self.spine.add(event);
        self.usage.add(event);
        self.outline.add(event);
    }
}

impl Listener for LiveOverview {
    fn file_change(&mut self, change: FollowChange) {
        if change != FollowChange::Gone {
            *self = LiveOverview::default();
        }
    }
}

/// Describes what happened to a followed file.
pub fn describe_change(turn: FollowChange) -> &'static str {
    match turn {
        FollowChange::Rotated => "replaced by another file; playing it from its beginning",
        FollowChange::Truncated => "the file shrank; playing it from its beginning",
        FollowChange::Rewritten => "the file was rewritten; playing it from its beginning",
        FollowChange::Recognized => "its first records suggested another format; playing it from its beginning",
        FollowChange::Gone => "the file is gone; waiting for a new one",
    }
}

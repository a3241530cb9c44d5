//! Where a replay comes from: a conversation as it is, or a file that is still being written. Either is gone through twice, once to see
//! which of its events are the conversation that goes on, and once to play them.

use std::path::{Path, PathBuf};

use stenograph::format::Format;
use stenograph::ledger::{CallDetail, Counting};
use stenograph::model::{Event, Note, Outline, Spine, Usage};
use stenograph::read::Sink;
use stenograph_store::event_cache::EventCache;
use stenograph_store::follow::{ChangeSignal, Follow, FollowChange, Listener};
use stenograph_store::layouts::{RunSummary, run_summary};
use stenograph_store::source_file::Recognized;

use super::Options;
use crate::conversation::{Conversation, total_of};
use crate::error::CommandError;
use crate::input::{self, Go};
use crate::live;
use crate::output::Output;

/// Where a replay comes from.
pub enum ReplaySource {
    /// A conversation as it is.
    Kept(Box<Conversation>),
    /// A file that is followed.
    Live(Box<Live>),
}

/// A file that is followed.
pub struct Live {
    path: PathBuf,
    format: Option<&'static dyn Format>,
    follow: Follow,
    /// Rings when there may be more.
    pub signal: ChangeSignal,
}

/// Somebody who is given events, until it is enough.
pub trait Audience: Listener {
    /// Whether to go on.
    fn go(&self) -> Go;
}

/// Decides which events are played, as they come. What was there when the replay began is judged by the spine; what comes later is
/// played unless it only repeats or belongs to a side conversation, because nobody knows yet what will be taken back.
pub struct Judge {
    spine: Spine,
    /// How many events the spine knows.
    known: u64,
    seen: u64,
}

/// Whether an event is played.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// It is, with what it took unless that is said again later.
    Played(Option<Usage>),
    /// It is not.
    LeftOut,
}

impl Judge {
    /// Decides about the next event.
    pub fn next(&mut self, event: &Event<'_>) -> Verdict {
        self.seen += 1;
        if self.seen > self.known {
            let is_played = !event.restates && event.thread.is_none();
            return if is_played { Verdict::Played(event.usage) } else { Verdict::LeftOut };
        }
        match self.spine.left_out(event) {
            Some(_) => Verdict::LeftOut,
            None if self.spine.is_usage_superseded(event) => Verdict::Played(None),
            None => Verdict::Played(event.usage),
        }
    }

    /// What comes now is of another file.
    pub fn anew(&mut self) {
        (self.known, self.seen) = (0, 0);
    }
}

/// What is known before the first event is played.
pub struct Overview {
    /// What its system states about it as a whole.
    pub summary: Option<RunSummary>,
    /// The conversation in a few lines.
    pub outline: Outline,
    /// Which events are played.
    pub judge: Judge,
    /// That it could not be read to its end.
    pub damage: Option<CommandError>,
}

impl ReplaySource {
    /// Opens what is asked for.
    pub fn open(options: &Options, output: &mut Output<'_>) -> Result<ReplaySource, CommandError> {
        let from = options.from.as_deref();
        if !options.follow {
            let conversation = Conversation::open(&options.place, &options.file, from, output)?;
            return Ok(ReplaySource::Kept(Box::new(conversation)));
        }
        if options.file == Path::new("-") {
            return Err(CommandError::new("standard input cannot be followed").hint("name the file itself"));
        }
        let path = live::named(&options.place, &options.file)?;
        let format = from.map(input::format_named).transpose()?;
        let signal = ChangeSignal::over(std::slice::from_ref(&path));
        let follow = Follow::wait_for(&path, format.map(Recognized::certain))?;
        Ok(ReplaySource::Live(Box::new(Live { follow, path, format, signal })))
    }

    /// What to call it.
    pub fn name(&self) -> String {
        match self {
            ReplaySource::Kept(conversation) => conversation.name.clone(),
            ReplaySource::Live(live) => live.path.display().to_string(),
        }
    }

    /// Goes through it for the first time.
    pub fn overview(&mut self) -> Result<Overview, CommandError> {
        let summary = run_summary(Path::new(&self.name()));
        match self {
            ReplaySource::Kept(conversation) => {
                let found = conversation.overview();
                let judge = Judge { spine: found.spine, known: found.events, seen: 0 };
                Ok(Overview { summary, outline: found.outline, judge, damage: found.damage })
            }
            ReplaySource::Live(live) => {
                let mut first = First::default();
                let mut follow = Follow::wait_for(&live.path, live.format.map(Recognized::certain))?;
                both_looks(&mut follow, &mut first)?;
                first.spine.decide();
                first.outline.origin = follow.format().map_or("", |format| format.info().name);
                let stated = first.outline.total;
                first.outline.total =
                    first.counting.take().map(|counting| total_of(counting, &stated)).unwrap_or_default();
                let judge = Judge { spine: first.spine, known: first.outline.events, seen: 0 };
                Ok(Overview { summary, outline: first.outline, judge, damage: None })
            }
        }
    }

    /// Gives everything there is now.
    pub fn play(&mut self, audience: &mut dyn Audience) -> Result<(), CommandError> {
        match self {
            ReplaySource::Kept(conversation) => {
                // Whether it can be read to its end was found out on the first way through.
                let _ = conversation.again(&mut |event| {
                    audience.event(event);
                    audience.go()
                });
                Ok(())
            }
            ReplaySource::Live(live) => both_looks(&mut live.follow, audience),
        }
    }

    /// Finds its events again. Those of a file that is followed are put aside as they come.
    pub fn event_cache(&self) -> EventCache {
        match self {
            ReplaySource::Kept(conversation) => conversation.event_cache(),
            ReplaySource::Live(_) => EventCache::default(),
        }
    }
}

impl Live {
    /// Gives what came since.
    pub fn look(&mut self, audience: &mut dyn Audience) -> Result<(), CommandError> {
        Ok(self.follow.look(audience)?)
    }
}

/// Looks at all there is. A document of a known format is only read when it was seen to be quiet.
fn both_looks(follow: &mut Follow, listener: &mut dyn Listener) -> Result<(), CommandError> {
    follow.look(listener)?;
    Ok(follow.look(listener)?)
}

/// Takes notice of events for the first time.
#[derive(Default)]
struct First {
    spine: Spine,
    outline: Outline,
    counting: Option<Counting>,
}

impl Sink for First {
    fn event(&mut self, event: &Event<'_>) {
        self.spine.add(event);
        self.outline.add(event);
        self.counting.get_or_insert_with(|| Counting::new("", CallDetail::Numbers)).add(event);
    }

    fn note(&mut self, _note: Note) {}
}

impl Listener for First {
    fn file_change(&mut self, change: FollowChange) {
        if change != FollowChange::Gone {
            *self = First::default();
        }
    }
}

/// What happened to a file that is followed.
pub fn turned(turn: FollowChange) -> &'static str {
    match turn {
        FollowChange::Rotated => "another file has this name now; it is played from its beginning",
        FollowChange::Truncated => "the file became shorter; it is played from its beginning",
        FollowChange::Rewritten => "the file was written anew; it is played from its beginning",
        FollowChange::Recognized => {
            "the file has another format than its first records showed; it is played from its beginning"
        }
        FollowChange::Gone => "the file is gone; waiting for another of this name",
    }
}

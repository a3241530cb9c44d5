//! The sources of an exported document: the main conversation and its side conversations. It decides which events are part of
//! the conversation, and formats nothing.

use std::io;

use stenograph::evidence::nested_events;
use stenograph::model::{Event, LeftOut, Usage};
use stenograph::render::SpeakerSections;

use super::{Options, To};
use crate::conversation::{Conversation, ConversationOverview};
use crate::error::CommandError;
use crate::input::Flow;

/// One source of the document.
pub(super) struct Chapter {
    /// The name of the side conversation; `None` for the main one.
    pub thread: Option<String>,
    pub conversation: Conversation,
    pub overview: ConversationOverview,
    /// The side conversations that have their own chapter.
    pub own_chapters: Vec<String>,
    /// The events on abandoned branches.
    pub abandoned_events: u64,
    /// The events of side conversations that are left out.
    pub omitted_side_events: u64,
}

/// An event on its way into the document.
pub(super) struct ExportedEvent<'e, 'a> {
    pub event: &'e Event<'a>,
    pub role: EventRole,
    /// Its number, or that of its record for a nested event.
    pub number: u64,
    /// Its usage. `None` if a later record of the same model response repeats it, or if the document is not HTML.
    pub usage: Option<Usage>,
}

/// The role of an event in the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventRole {
    InConversation,
    /// Part of the conversation, inside the record of another event.
    Nested,
    /// Nobody said or did it.
    Bookkeeping,
    LeftOut(LeftOut),
}

impl EventRole {
    /// Why the event is not part of the conversation.
    pub fn why(self) -> Option<&'static str> {
        match self {
            EventRole::InConversation | EventRole::Nested => None,
            EventRole::Bookkeeping => Some("nobody said or did it"),
            EventRole::LeftOut(why) => Some(why.reason()),
        }
    }
}

impl Chapter {
    /// The main conversation and its side conversations.
    pub fn all(main: Conversation, threads: Vec<(String, Conversation)>) -> Vec<Chapter> {
        let names: Vec<String> = threads.iter().map(|(thread, _)| thread.clone()).collect();
        let mut chapters = vec![Chapter { own_chapters: names, ..Chapter::of(None, main) }];
        chapters.extend(threads.into_iter().map(|(thread, conversation)| Chapter::of(Some(thread), conversation)));
        chapters
    }

    fn of(thread: Option<String>, mut conversation: Conversation) -> Chapter {
        let overview = conversation.overview();
        Chapter {
            thread,
            conversation,
            overview,
            own_chapters: Vec::new(),
            abandoned_events: 0,
            omitted_side_events: 0,
        }
    }

    pub fn format(&self) -> &'static str {
        self.conversation.format().map_or("several files", |format| format.info().title)
    }

    /// Reads the events once and classifies each.
    pub fn each(
        &mut self,
        options: &Options,
        write_event: &mut dyn FnMut(ExportedEvent<'_, '_>) -> io::Result<()>,
    ) -> Result<(), CommandError> {
        let Chapter { conversation, overview, abandoned_events, omitted_side_events, own_chapters, .. } = self;
        (*abandoned_events, *omitted_side_events) = (0, 0);
        overview.spine.rewind();
        let (mut failed, mut number) = (None, 0);
        let read = conversation.read_quietly(&mut |event| {
            number += 1;
            let left_out = overview.spine.left_out(event);
            let role = match left_out.filter(|why| *why != LeftOut::Thread || !options.has_threads()) {
                None if SpeakerSections::is_outside(event) => EventRole::Bookkeeping,
                None => EventRole::InConversation,
                Some(why) => {
                    *abandoned_events += u64::from(why == LeftOut::Branch);
                    *omitted_side_events += u64::from(why == LeftOut::Thread);
                    EventRole::LeftOut(why)
                }
            };
            let counts_usage = options.to == To::Html && !overview.usage.is_superseded(event);
            let usage = event.usage.filter(|_| counts_usage);
            failed = write_event(ExportedEvent { event, role, number, usage }).err();
            let inside = if options.has_nested() { nested_events(event) } else { Vec::new() };
            for inner in &inside {
                let is_elsewhere =
                    inner.thread.as_ref().is_some_and(|thread| own_chapters.iter().any(|name| name == thread));
                let nested = ExportedEvent { event: inner, role: EventRole::Nested, number, usage: None };
                match options.has_threads() {
                    true if is_elsewhere => {}
                    true => failed = failed.take().or_else(|| write_event(nested).err()),
                    false => *omitted_side_events += 1,
                }
            }
            if failed.is_some() { Flow::Stop } else { Flow::Continue }
        });
        match failed {
            Some(error) => Err(error.into()),
            // The first pass has already reported this damage.
            None if overview.damage.is_some() => Ok(()),
            None => read,
        }
    }
}

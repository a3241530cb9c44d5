//! What is kept of an event, as the spine sees it.

use std::borrow::Cow;

use super::Sketch;
use crate::evidence::UserMessage;
use crate::model::{Kind, Role, SpineEvent};

/// What the spine sees of an event.
pub(super) struct View<'a> {
    pub(super) sketch: &'a Sketch,
    pub(super) prints: &'a [u64],
    pub(super) rewinds: Option<u64>,
    pub(super) part_index: u32,
    pub(super) parent: u64,
    /// Whether its text ends with the mark of a cut.
    pub(super) is_marked: bool,
}

impl SpineEvent for View<'_> {
    fn kind(&self) -> Kind {
        self.sketch.kind
    }

    fn role(&self) -> Option<Role> {
        self.sketch.role
    }

    fn part_index(&self) -> u32 {
        self.part_index
    }

    fn thread(&self) -> Option<u64> {
        stated(self.sketch.thread)
    }

    fn id(&self) -> Option<u64> {
        stated(self.sketch.id)
    }

    fn parent(&self) -> Option<u64> {
        stated(self.parent)
    }

    fn group(&self) -> Option<u64> {
        stated(self.sketch.group)
    }

    fn restates(&self) -> bool {
        self.sketch.restates
    }

    fn user_message(&self) -> Option<UserMessage> {
        match self.sketch.message {
            // What an agent injects is recognized by its end, and the mark hides it.
            Some(UserMessage::Injected) if self.is_marked => Some(UserMessage::Typed),
            message => message,
        }
    }

    fn rewinds(&self) -> Option<u64> {
        self.rewinds
    }

    fn prints(&self) -> Cow<'_, [u64]> {
        Cow::Borrowed(self.prints)
    }
}

fn stated(key: u64) -> Option<u64> {
    (key != 0).then_some(key)
}

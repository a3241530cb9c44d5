//! A sketch as an event of the spine.

use std::borrow::Cow;

use super::Sketch;
use crate::evidence::UserMessage;
use crate::model::{Kind, Rewind, Role, SpineEvent};

/// A sketch with the fields that a plan may change.
pub(super) struct SpineView<'a> {
    pub(super) sketch: &'a Sketch,
    pub(super) fingerprints: &'a [u64],
    pub(super) rewinds: Option<Rewind>,
    pub(super) part_index: u32,
    pub(super) parent: u64,
    /// Whether the plan shortens its text, which then ends with `...snip...`.
    pub(super) is_shortened: bool,
}

impl SpineEvent for SpineView<'_> {
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
        nonzero(self.sketch.thread)
    }

    fn id(&self) -> Option<u64> {
        nonzero(self.sketch.id)
    }

    fn parent(&self) -> Option<u64> {
        nonzero(self.parent)
    }

    fn group(&self) -> Option<u64> {
        nonzero(self.sketch.group)
    }

    fn restates(&self) -> bool {
        self.sketch.restates
    }

    fn user_message(&self) -> Option<UserMessage> {
        match self.sketch.message {
            // The end of a message shows that an agent injected it; shortening removes the end.
            Some(UserMessage::Injected) if self.is_shortened => Some(UserMessage::Typed),
            message => message,
        }
    }

    fn rewinds(&self) -> Option<Rewind> {
        self.rewinds
    }

    fn fingerprints(&self) -> Cow<'_, [u64]> {
        Cow::Borrowed(self.fingerprints)
    }
}

fn nonzero(key: u64) -> Option<u64> {
    (key != 0).then_some(key)
}

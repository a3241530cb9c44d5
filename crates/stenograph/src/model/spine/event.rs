//! What the spine asks of an event: its place among others, and what it says or restates. The fold is in `spine.rs`.

use std::borrow::Cow;

use xxhash_rust::xxh3::xxh3_64;

use crate::evidence::UserMessage;
use crate::model::message_index::{Rewind, fingerprints};
use crate::model::{Body, Event, Fact, Kind, Role};

/// The properties of an event that the spine needs. It compares texts by fingerprint, so that a summary of an event can
/// implement it too.
pub(crate) trait SpineEvent {
    /// The kind of its body.
    fn kind(&self) -> Kind;
    /// The speaker of a message.
    fn role(&self) -> Option<Role>;
    /// Its part number within the record.
    fn part_index(&self) -> u32;
    /// The fingerprint of its side conversation.
    fn thread(&self) -> Option<u64>;
    /// The fingerprint of its own id.
    fn id(&self) -> Option<u64>;
    /// The fingerprint of the id of the record it follows.
    fn parent(&self) -> Option<u64>;
    /// The fingerprint of its model response.
    fn group(&self) -> Option<u64>;
    /// Whether it repeats another record.
    fn restates(&self) -> bool;
    /// What it is as a message in the role of the user.
    fn user_message(&self) -> Option<UserMessage>;
    /// What it takes back.
    fn rewinds(&self) -> Option<Rewind>;
    /// The fingerprints of its texts, each combined with the speaker.
    fn fingerprints(&self) -> Cow<'_, [u64]>;
}

impl SpineEvent for Event<'_> {
    fn kind(&self) -> Kind {
        Event::kind(self)
    }

    fn role(&self) -> Option<Role> {
        Event::role(self)
    }

    fn part_index(&self) -> u32 {
        self.part.index
    }

    fn thread(&self) -> Option<u64> {
        self.thread.as_deref().map(key)
    }

    fn id(&self) -> Option<u64> {
        self.id.as_deref().map(key)
    }

    fn parent(&self) -> Option<u64> {
        self.parent.as_deref().map(key)
    }

    fn group(&self) -> Option<u64> {
        self.group.as_deref().map(key)
    }

    fn restates(&self) -> bool {
        self.restates
    }

    fn user_message(&self) -> Option<UserMessage> {
        UserMessage::of(self)
    }

    fn rewinds(&self) -> Option<Rewind> {
        match &self.body {
            Body::Fact { fact: Fact::Rewind, content: Some(content) } => {
                Some(Rewind::Turns(content.joined().decode().trim().parse().unwrap_or(0)))
            }
            Body::Fact { fact: Fact::RewindTo, content: Some(content) } => {
                Some(Rewind::To(key(&content.joined().decode())))
            }
            _ => None,
        }
    }

    fn fingerprints(&self) -> Cow<'_, [u64]> {
        Cow::Owned(fingerprints(self))
    }
}

/// The fingerprint of an id.
pub(crate) fn key(id: &str) -> u64 {
    xxh3_64(id.as_bytes())
}

//! The change of one event, in few bytes: a plan holds it instead of the new event, which is made when the event itself is read.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use xxhash_rust::xxh3::{Xxh3, xxh3_64_with_seed};

use super::trim::SNIP;
use crate::model::{Body, Content, Event, Piece, PieceKind, is_uuid, uuid_of};
use crate::text::{Str, Text};

/// What changes in one event.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct EventChange {
    pub(super) body: Option<NewBody>,
    pub(super) parent: Option<NewParent>,
    /// Fields with a new JSON value: the format that names the field, the field, the value.
    pub(super) fields: Vec<(&'static str, &'static str, String)>,
}

/// The new body of an event.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum NewBody {
    /// This body.
    Given(Box<Body<'static>>),
    /// The old body with this content.
    Content(Content<'static>),
    /// The old body with shortened texts.
    Shortened(Shortening),
    /// The new body of the event with this number, which this event restates.
    SameAs(usize),
}

/// How the texts of an event are shortened. `...snip...` follows each shortened text.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shortening {
    /// Each text keeps this many UTF-16 units.
    Units(usize),
    /// The text with this index keeps this many bytes. The texts before it stay, and those after it are removed.
    FirstTexts { text: usize, bytes: usize },
}

impl Shortening {
    /// The body with its texts shortened.
    pub(super) fn of(&self, body: &Body<'_>) -> Body<'static> {
        let mut index = 0;
        with_texts(body, |text| {
            let at = index;
            index += 1;
            let text = text.decode();
            match self {
                Shortening::Units(kept) => {
                    // C# may divide a character; when CycoD writes the half, it becomes U+FFFD.
                    let units: Vec<u16> = text.encode_utf16().take(*kept).collect();
                    Some(String::from_utf16_lossy(&units) + SNIP)
                }
                Shortening::FirstTexts { text: last, .. } if at < *last => Some(text.into_owned()),
                Shortening::FirstTexts { text: last, bytes } if at == *last => {
                    Some(text.get(..*bytes).unwrap_or_default().to_owned() + SNIP)
                }
                Shortening::FirstTexts { .. } => None,
            }
        })
    }
}

/// The body with each of its texts changed or, for `None`, removed.
fn with_texts(body: &Body<'_>, mut change: impl FnMut(&Text<'_>) -> Option<String>) -> Body<'static> {
    let body = body.clone().into_owned();
    let content = match body.content() {
        None => return body,
        Some(Content::Text(text)) => Content::Text(change(text).unwrap_or_default().into()),
        Some(Content::Pieces(pieces)) => {
            let piece = |piece: &Piece<'static>| match &piece.kind {
                PieceKind::Text(text) => {
                    let kind = PieceKind::Text(change(text)?.into());
                    Some(Piece { kind, extra: piece.extra.clone() })
                }
                PieceKind::Blob { .. } | PieceKind::Other(_) => Some(piece.clone()),
            };
            Content::Pieces(pieces.iter().filter_map(piece).collect())
        }
    };
    body.with_content(content)
}

/// The new parent of an event.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum NewParent {
    /// It follows nothing.
    Nothing,
    /// The record with this id.
    Given(Str<'static>),
    /// The event with this number.
    Event(usize),
    /// The parent of the event with this number.
    ParentOf(usize),
}

/// The properties of other events that changes need. A pass of its own collects them.
#[derive(Debug, Default)]
pub(super) struct Lookup {
    /// The id and the parent of events.
    parents: HashMap<usize, (Option<String>, Option<String>)>,
    /// The bodies that restatements repeat.
    bodies: BTreeMap<usize, Option<RestatedBody>>,
}

/// The new body of an event, and fingerprints of the old one to recognize its restatements.
#[derive(Debug)]
struct RestatedBody {
    old_content: u64,
    old_body: u64,
    new: Body<'static>,
}

impl Lookup {
    /// An empty lookup for the events that these changes need.
    pub(super) fn wanted<'c>(changes: impl Iterator<Item = &'c EventChange>) -> Lookup {
        let mut wanted = Lookup::default();
        for change in changes {
            if let Some(NewParent::Event(number) | NewParent::ParentOf(number)) = change.parent {
                wanted.parents.insert(number, (None, None));
            }
            if let Some(NewBody::SameAs(number)) = change.body {
                wanted.bodies.insert(number, None);
            }
        }
        wanted
    }

    pub(super) fn is_empty(&self) -> bool {
        self.parents.is_empty() && self.bodies.is_empty()
    }

    /// Whether it needs one of these events.
    pub(super) fn wants(&self, numbers: &Range<usize>) -> bool {
        numbers.clone().any(|number| self.parents.contains_key(&number) || self.bodies.contains_key(&number))
    }

    /// Adds an event with its change.
    pub(super) fn add(&mut self, number: usize, event: &Event<'_>, change: Option<&EventChange>) {
        if let Some(slot) = self.parents.get_mut(&number) {
            let owned = |id: &Option<Str<'_>>| id.as_deref().map(str::to_owned);
            *slot = (owned(&event.id), owned(&event.parent));
        }
        if let Some(slot) = self.bodies.get_mut(&number) {
            let new =
                change.map_or_else(|| event.clone().into_owned(), |change| change.apply(event, &Lookup::default()));
            let (old_content, old_body) = (content_print(event.content()), body_print(&event.body));
            *slot = Some(RestatedBody { old_content, old_body, new: new.body });
        }
    }
}

impl EventChange {
    /// The changed event.
    pub(super) fn apply(&self, event: &Event<'_>, lookup: &Lookup) -> Event<'static> {
        let body = match &self.body {
            None => None,
            Some(NewBody::Given(body)) => Some((**body).clone()),
            Some(NewBody::Content(content)) => Some(event.body.clone().into_owned().with_content(content.clone())),
            Some(NewBody::Shortened(shortening)) => Some(shortening.of(&event.body)),
            Some(NewBody::SameAs(base)) => {
                lookup.bodies.get(base).and_then(Option::as_ref).and_then(|base| base.restated_in(event))
            }
        };
        let mut new = event.clone().into_owned();
        if let Some(body) = body {
            new.body = body;
        }
        match &self.parent {
            None => {}
            Some(NewParent::Nothing) => new.parent = None,
            Some(NewParent::Given(id)) => new.parent = Some(id.clone()),
            Some(NewParent::Event(number)) => {
                new.parent = lookup.parents.get(number).and_then(|(id, _)| id.clone()).map(Into::into);
            }
            Some(NewParent::ParentOf(number)) => {
                new.parent = lookup.parents.get(number).and_then(|(_, parent)| parent.clone()).map(Into::into);
            }
        }
        for (origin, field, json) in &self.fields {
            new.extra.set_field(origin, field, json.clone());
        }
        new
    }
}

impl RestatedBody {
    /// The new body of a restatement.
    fn restated_in(&self, event: &Event<'_>) -> Option<Body<'static>> {
        if self.old_body == body_print(&event.body) {
            return Some(self.new.clone());
        }
        let content = self.new.content()?;
        let content = match event.content() {
            Some(before) if self.old_content == content_print(Some(before)) => content.clone(),
            _ => Content::Text(content.joined().into_owned()),
        };
        Some(event.body.clone().into_owned().with_content(content))
    }
}

/// A fingerprint of a content.
fn content_print(content: Option<&Content<'_>>) -> u64 {
    let mut hasher = Xxh3::new();
    match content {
        None => {}
        Some(Content::Text(text)) => {
            hasher.update(b"t");
            hasher.update(text.decode().as_bytes());
        }
        Some(Content::Pieces(pieces)) => {
            for piece in pieces {
                hasher.update(b"\0p");
                match &piece.kind {
                    PieceKind::Text(text) => hasher.update(text.decode().as_bytes()),
                    kind @ (PieceKind::Blob { .. } | PieceKind::Other(_)) => {
                        hasher.update(format!("{kind:?}").as_bytes());
                    }
                }
                hasher.update(format!("{:?}", piece.extra).as_bytes());
            }
        }
    }
    hasher.digest()
}

/// A fingerprint of a body.
fn body_print(body: &Body<'_>) -> u64 {
    let rest = match body {
        Body::Fact { fact: name, .. } => format!("fact {name}"),
        Body::Message { role, .. } => format!("message {}", role.name()),
        Body::Thinking { .. } => "thinking".to_owned(),
        Body::ToolCall { call, name, input } => format!("call {call:?} {name:?} {}", input.to_text().decode()),
        Body::ToolResult { call, name, error, .. } => format!("result {call:?} {name:?} {error:?}"),
        Body::Compaction { .. } => "compaction".to_owned(),
        Body::Failure { name, .. } => format!("failure {name:?}"),
        Body::Stop { reason, success, .. } => format!("stop {reason:?} {success:?}"),
        Body::Other { name, bytes } => format!("other {name:?} {bytes:?}"),
    };
    xxh3_64_with_seed(rest.as_bytes(), content_print(body.content()))
}

/// The id of the session that a range of events becomes.
pub(super) fn own_session(session: &str, range: &Range<usize>) -> String {
    let name = format!("{session} {}..{}", range.start, range.end);
    let bits = xxhash_rust::xxh3::xxh3_128(name.as_bytes());
    match is_uuid(session) {
        true => uuid_of(bits),
        false => format!("{session}-{:08x}", bits >> 96),
    }
}

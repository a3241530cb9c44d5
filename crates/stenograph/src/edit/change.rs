//! What changes in an event, said in few bytes: a plan holds this instead of the new event, which is made when the event itself comes
//! along. Which events change is not decided here.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use xxhash_rust::xxh3::{Xxh3, xxh3_64_with_seed};

use super::trim::SNIP;
use crate::model::{Body, Content, Event, Piece, PieceKind, is_uuid, uuid_of};
use crate::text::{Str, Text};

/// What changes in one event.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Change {
    /// What it says from now on.
    pub(super) body: Option<NewBody>,
    /// What it follows from now on.
    pub(super) parent: Option<NewParent>,
    /// Fields that hold another JSON value: the format in whose words they are, the field, the value.
    pub(super) fields: Vec<(&'static str, &'static str, String)>,
}

/// What an event says from now on.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum NewBody {
    /// This.
    Given(Box<Body<'static>>),
    /// The same, with another content.
    Content(Content<'static>),
    /// The beginnings of its texts.
    Shortened(Shortening),
    /// What the event of that number says from now on.
    As(usize),
}

/// How the texts of an event are shortened.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shortening {
    /// So many UTF-16 units of each text stay, and the mark follows.
    Units(usize),
    /// So many bytes of each text stay, and the mark follows; `None` where all of it stays.
    Bytes(Box<[Option<usize>]>),
}

impl Shortening {
    /// The body with its texts shortened.
    pub(super) fn of(&self, body: &Body<'_>) -> Body<'static> {
        let mut number = 0;
        with_texts(body, |text| {
            let at = number;
            number += 1;
            let text = text.decode();
            match self {
                Shortening::Units(kept) => {
                    // C# may cut a character in two; on its way to disk the half becomes U+FFFD.
                    let units: Vec<u16> = text.encode_utf16().take(*kept).collect();
                    String::from_utf16_lossy(&units) + SNIP
                }
                Shortening::Bytes(kept) => match kept.get(at).copied().flatten() {
                    Some(kept) => text.get(..kept).unwrap_or_default().to_owned() + SNIP,
                    None => text.into_owned(),
                },
            }
        })
    }
}

/// The body with every text of it changed.
pub(super) fn with_texts(body: &Body<'_>, mut change: impl FnMut(&Text<'_>) -> String) -> Body<'static> {
    let body = body.clone().into_owned();
    let content = match body.content() {
        None => return body,
        Some(Content::Text(text)) => Content::Text(change(text).into()),
        Some(Content::Pieces(pieces)) => {
            let piece = |piece: &Piece<'static>| match &piece.kind {
                PieceKind::Text(text) => {
                    Piece { kind: PieceKind::Text(change(text).into()), extra: piece.extra.clone() }
                }
                PieceKind::Blob { .. } | PieceKind::Other(_) => piece.clone(),
            };
            Content::Pieces(pieces.iter().map(piece).collect())
        }
    };
    body.with_content(content)
}

/// What an event follows from now on.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum NewParent {
    /// Nothing.
    Nothing,
    /// The record with this id.
    Given(Str<'static>),
    /// The event of that number.
    Event(usize),
    /// What the event of that number follows.
    ParentOf(usize),
}

/// What changes need to know of other events than the one they change, found in a pass of its own.
#[derive(Debug, Default)]
pub(super) struct Lookup {
    /// The id and the parent of events.
    links: HashMap<usize, (Option<String>, Option<String>)>,
    /// What events say that others repeat.
    bodies: BTreeMap<usize, Option<Repeated>>,
}

/// What an event says from now on, and what it is recognised by.
#[derive(Debug)]
struct Repeated {
    content: u64,
    body: u64,
    new: Body<'static>,
}

impl Lookup {
    /// What these changes need.
    pub(super) fn wanted<'c>(changes: impl Iterator<Item = &'c Change>) -> Lookup {
        let mut wanted = Lookup::default();
        for change in changes {
            if let Some(NewParent::Event(number) | NewParent::ParentOf(number)) = change.parent {
                wanted.links.insert(number, (None, None));
            }
            if let Some(NewBody::As(number)) = change.body {
                wanted.bodies.insert(number, None);
            }
        }
        wanted
    }

    pub(super) fn is_empty(&self) -> bool {
        self.links.is_empty() && self.bodies.is_empty()
    }

    /// Whether one of these events is needed.
    pub(super) fn wants(&self, numbers: &Range<usize>) -> bool {
        numbers.clone().any(|number| self.links.contains_key(&number) || self.bodies.contains_key(&number))
    }

    /// Takes notice of an event, which may change.
    pub(super) fn add(&mut self, number: usize, event: &Event<'_>, change: Option<&Change>) {
        if let Some(links) = self.links.get_mut(&number) {
            let own = |id: &Option<Str<'_>>| id.as_deref().map(str::to_owned);
            *links = (own(&event.id), own(&event.parent));
        }
        if let Some(slot) = self.bodies.get_mut(&number) {
            let new =
                change.map_or_else(|| event.clone().into_owned(), |change| change.made(event, &Lookup::default()));
            *slot = Some(Repeated { content: of_content(event.content()), body: of_body(&event.body), new: new.body });
        }
    }
}

impl Change {
    /// The event as it is from now on.
    pub(super) fn made(&self, event: &Event<'_>, lookup: &Lookup) -> Event<'static> {
        let body = match &self.body {
            None => None,
            Some(NewBody::Given(body)) => Some((**body).clone()),
            Some(NewBody::Content(content)) => Some(event.body.clone().into_owned().with_content(content.clone())),
            Some(NewBody::Shortened(shortening)) => Some(shortening.of(&event.body)),
            Some(NewBody::As(base)) => {
                lookup.bodies.get(base).and_then(Option::as_ref).and_then(|base| base.as_of(event))
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
                new.parent = lookup.links.get(number).and_then(|(id, _)| id.clone()).map(Into::into);
            }
            Some(NewParent::ParentOf(number)) => {
                new.parent = lookup.links.get(number).and_then(|(_, parent)| parent.clone()).map(Into::into);
            }
        }
        for (origin, field, json) in &self.fields {
            new.extra.set_field(origin, field, json.clone());
        }
        new
    }
}

impl Repeated {
    /// What an event says that repeats this one.
    fn as_of(&self, event: &Event<'_>) -> Option<Body<'static>> {
        if self.body == of_body(&event.body) {
            return Some(self.new.clone());
        }
        let content = self.new.content()?;
        let content = match event.content() {
            Some(before) if self.content == of_content(Some(before)) => content.clone(),
            _ => Content::Text(content.joined().into_owned()),
        };
        Some(event.body.clone().into_owned().with_content(content))
    }
}

/// A fingerprint of a content: equal for contents that are.
fn of_content(content: Option<&Content<'_>>) -> u64 {
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

/// A fingerprint of a body: equal for bodies that are.
fn of_body(body: &Body<'_>) -> u64 {
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
    xxh3_64_with_seed(rest.as_bytes(), of_content(body.content()))
}

/// What a stretch of a session is called as a session of its own.
pub(super) fn own_session(session: &str, stretch: &Range<usize>) -> String {
    let name = format!("{session} {}..{}", stretch.start, stretch.end);
    let bits = xxhash_rust::xxh3::xxh3_128(name.as_bytes());
    match is_uuid(session) {
        true => uuid_of(bits),
        false => format!("{session}-{:08x}", bits >> 96),
    }
}

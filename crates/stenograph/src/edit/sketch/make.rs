//! What is kept of an event, made from the event.

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::{Fact, Sketch, of_text};
use crate::evidence::UserMessage;
use crate::model::{Body, Content, Event, Kind, Piece, PieceKind, key, speaker};
use crate::time::Time;

impl Sketch {
    /// What is kept of an event; what the spine compares is added to `prints`.
    pub(super) fn of(event: &Event<'_>, prints: &mut Vec<u64>) -> Sketch {
        let fingerprint = |id: Option<&str>| id.map_or(0, |id| key(id).max(1));
        let start = u32::try_from(prints.len()).unwrap_or(u32::MAX);
        let said = said(event, prints);
        let (kind, role, call) = (event.kind(), event.role(), fingerprint(event.call()));
        let at = event.at.unwrap_or_default();
        Sketch {
            offset: at.offset,
            length: u32::try_from(at.length & u64::from(u32::MAX)).unwrap_or_default(),
            line: u32::try_from(at.line).unwrap_or(u32::MAX),
            has_place: event.at.is_some(),
            kind,
            role,
            fact: Fact::of(event),
            part: event.part.index,
            is_only: event.part.of <= 1,
            id: fingerprint(event.id.as_deref()),
            parent: fingerprint(event.parent.as_deref()),
            group: fingerprint(event.group.as_deref()),
            thread: fingerprint(event.thread.as_deref()),
            call,
            said,
            prints: start,
            time: event.time.as_ref().and_then(Time::instant),
            restates: event.restates,
            says: call != 0 || kind == Kind::ToolCall || event.content().is_some_and(|content| !content.is_empty()),
            has_session: event.session.is_some(),
            has_usage: event.usage.is_some(),
            has_room: has_room(event),
            message: UserMessage::of(event),
        }
    }
}

impl Fact {
    fn of(event: &Event<'_>) -> Fact {
        match &event.body {
            Body::Fact { fact: name, .. } => match name.as_ref() {
                "session" => Fact::Session,
                "session_end" | "end" => Fact::End,
                "title" => Fact::Title,
                _ => Fact::Other,
            },
            _ => Fact::Other,
        }
    }
}

/// The fingerprint of all that an event says. Where somebody speaks, adds what the spine compares: that of all of it and of each of
/// its texts, each with who speaks.
fn said(event: &Event<'_>, prints: &mut Vec<u64>) -> u64 {
    if let Body::ToolCall { name, input, .. } = &event.body {
        return xxh3_64(format!("{name} {}", input.to_text().decode()).as_bytes());
    }
    let Some(content) = event.content() else { return of_text("") };
    let whole = of_text(&content.joined().decode());
    if let Some(speaker) = speaker(&event.body) {
        let spoken = |print: u64| xxh3_64_with_seed(&print.to_le_bytes(), speaker);
        prints.push(spoken(whole));
        if content.texts().nth(1).is_some() {
            prints.extend(content.texts().map(|text| spoken(of_text(&text.decode()))));
        }
    }
    whole
}

/// Whether the mark has a place in a result: one that is nothing but an image may stand in the record of its call, and one that is
/// nothing but a structure of its own has no place for a text.
fn has_room(event: &Event<'_>) -> bool {
    let Some(content) = event.content() else { return false };
    let told = |piece: &Piece<'_>| !matches!(piece.kind, PieceKind::Other(_));
    match content {
        Content::Text(_) => true,
        Content::Pieces(pieces) if event.part.of <= 1 => pieces.iter().any(told),
        Content::Pieces(_) => content.texts().next().is_some(),
    }
}

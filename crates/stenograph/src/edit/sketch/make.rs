//! Makes the sketch of one event.

use xxhash_rust::xxh3::xxh3_64;

use super::{Sketch, text_print};
use crate::evidence::UserMessage;
use crate::model::{Body, Content, Event, Fact, Kind, PieceKind, fingerprints, key};
use crate::time::Time;

impl Sketch {
    /// The sketch of an event. Adds the fingerprints that the spine compares to `all_fingerprints`.
    pub(super) fn of(event: &Event<'_>, call_number: Option<u64>, all_fingerprints: &mut Vec<u64>) -> Sketch {
        let fingerprint = |id: Option<&str>| id.map_or(0, |id| key(id).max(1));
        let start = u32::try_from(all_fingerprints.len()).unwrap_or(u32::MAX);
        all_fingerprints.extend(fingerprints(event));
        let (kind, role, call) = (event.kind(), event.role(), fingerprint(event.call()));
        let at = event.at.unwrap_or_default();
        let fact = match &event.body {
            Body::Fact { fact, .. } => Some(fact),
            _ => None,
        };
        Sketch {
            offset: at.offset,
            length: u32::try_from(at.length & u64::from(u32::MAX)).unwrap_or_default(),
            line: u32::try_from(at.line).unwrap_or(u32::MAX),
            has_place: event.at.is_some(),
            kind,
            role,
            is_frame: fact.is_some_and(is_frame),
            is_title: fact == Some(&Fact::Title),
            part: event.part.index,
            is_only: event.part.of <= 1,
            id: fingerprint(event.id.as_deref()),
            parent: fingerprint(event.parent.as_deref()),
            group: fingerprint(event.group.as_deref()),
            thread: fingerprint(event.thread.as_deref()),
            call,
            call_number: call_number.and_then(|number| u32::try_from(number).ok()).unwrap_or(0),
            text: whole_text(event),
            fingerprints: start,
            time: event.time.as_ref().and_then(Time::instant),
            restates: event.restates,
            has_text: call != 0 || kind == Kind::ToolCall || event.content().is_some_and(|content| !content.is_empty()),
            has_session: event.session.is_some(),
            has_usage: event.usage.is_some(),
            is_replaceable: is_replaceable(event),
            message: UserMessage::of(event),
        }
    }
}

fn is_frame(fact: &Fact<'_>) -> bool {
    match fact {
        Fact::Session | Fact::SessionEnd | Fact::DocumentEnd => true,
        Fact::Title | Fact::Summary | Fact::Usage | Fact::Rewind | Fact::RewindTo | Fact::Other(_) => false,
    }
}

/// The fingerprint of the whole text of an event.
fn whole_text(event: &Event<'_>) -> u64 {
    match (&event.body, event.content()) {
        (Body::ToolCall { name, input, .. }, _) => xxh3_64(format!("{name} {}", input.to_text().decode()).as_bytes()),
        (_, Some(content)) => text_print(&content.joined().decode()),
        (_, None) => text_print(""),
    }
}

/// Whether a text can replace the content of a result. A result that is only an image may be in the record of its call, and one
/// that is only a structure of its own has no place for a text.
fn is_replaceable(event: &Event<'_>) -> bool {
    match event.content() {
        None => false,
        Some(Content::Text(_)) => true,
        Some(Content::Pieces(pieces)) if event.part.of <= 1 => {
            pieces.iter().any(|piece| !matches!(piece.kind, PieceKind::Other(_)))
        }
        Some(content @ Content::Pieces(_)) => content.texts().next().is_some(),
    }
}

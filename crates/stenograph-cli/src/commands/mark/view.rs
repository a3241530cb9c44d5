//! Formats marks, for people and for programs.

use stenograph::json::Draft;
use stenograph_store::archive::{EventKey, Marks, SessionNote};
use stenograph_store::index::Store;
use stenograph_store::index::catalogue::{Catalogue, IndexedSession};
use stenograph_store::index::search::Hit;
use stenograph_store::sessions::session_draft;

use crate::clock;
use crate::commands::archive::strings_json;

use crate::error::CommandError;
use crate::output::{Colour, TextStyle, harmless_line};
use crate::store::{EventAddresses, PIN, ShortNames, ShowAddress};
use crate::table::{self, Align};
use crate::terminal::wrapped_text;

/// How to print marks.
pub(super) struct MarkView<'a> {
    pub store: &'a Store,
    pub shorts: ShortNames,
    pub catalogue: &'a Catalogue,
}

/// Where the event of a note is now.
enum NotedEvent {
    /// The note is about the session.
    None,
    /// In the session, or in an archived version of one of its files.
    At(ShowAddress, Option<u32>),
    /// Nowhere in the index.
    Gone,
}

const HEADINGS: [(&str, Align); 6] = [
    ("SESSION", Align::Left),
    ("AGENT", Align::Left),
    ("LAST", Align::Right),
    ("NOTES", Align::Right),
    ("TAGS", Align::Left),
    ("TITLE", Align::Left),
];

/// The widest cell of tags in a list.
const TAGS_WIDTH_MAX: usize = 24;

/// The width of the labels before the marks of a session.
const LABEL_WIDTH: usize = 9;

impl MarkView<'_> {
    /// The marks of a session for people.
    pub fn text(&self, session: &IndexedSession, colour: Colour) -> Result<String, CommandError> {
        let marks = &session.marks;
        let title = session.about();
        let short = colour.paint(TextStyle::Strong, &harmless_line(&self.shorts.name(session)));
        let mut lines = vec![format!("{short}  {}", harmless_line(&title)).trim_end().to_owned()];
        let label = |name: &str| format!("  {name:<LABEL_WIDTH$}");
        if marks.is_empty() {
            lines.push("  no marks".to_owned());
        }
        if marks.pinned {
            lines.push("  pinned".to_owned());
        }
        if marks.title.is_some() {
            let original = session.agent_title.as_deref().map(harmless_line);
            let original = original.map_or_else(String::new, |title| format!(" (the agent's: {title})"));
            lines.push(format!("{}{}{original}", label("title"), harmless_line(&title)));
        }
        if !marks.tags.is_empty() {
            lines.push(format!("{}{}", label("tags"), harmless_line(&marks.tags.join(", "))));
        }
        for (note, event) in marks.notes.iter().zip(self.events(session)?) {
            let about = match event {
                NotedEvent::None => String::new(),
                NotedEvent::At(address, None) => format!("  steno show {} --event {}", address.word(), address.event),
                NotedEvent::At(address, Some(version)) => {
                    format!("  steno show {} --version {version} --event {}", address.word(), address.event)
                }
                NotedEvent::Gone => "  (its event is gone)".to_owned(),
            };
            let head = format!("{}{about}", clock::format_minute(note.time_ms));
            let head = colour.paint(TextStyle::Faint, &harmless_line(&head));
            lines.push(format!("{}{head}", label(&format!("note {}", note.number))));
            for line in note.text.lines() {
                let line = format!("{}{}", label(""), harmless_line(line));
                lines.push(wrapped_text(line.trim_end(), table::screen_width()).into_owned());
            }
        }
        Ok(lines.join("\n"))
    }

    /// The list of marked sessions.
    pub fn table(&self, sessions: &[IndexedSession], colour: Colour) -> Vec<String> {
        if sessions.is_empty() {
            return Vec::new();
        }
        let now = clock::millis();
        let cells = |session: &IndexedSession| {
            let title = session.about();
            let pin = if session.marks.pinned { PIN } else { "" };
            [
                harmless_line(&self.shorts.name(session)),
                harmless_line(&session.agent),
                session.ended.map_or("-".to_owned(), |ended| table::ago(now - ended)),
                session.marks.notes.len().to_string(),
                table::truncated(&harmless_line(&session.marks.tags.join(", ")), TAGS_WIDTH_MAX),
                format!("{pin}{}", harmless_line(&title)),
            ]
        };
        let rows: Vec<[String; 6]> = sessions.iter().map(cells).collect();
        let mut lines = table::lines(HEADINGS, &rows, table::screen_width());
        if let Some(heading) = lines.first_mut() {
            *heading = colour.paint(TextStyle::Faint, heading);
        }
        lines
    }

    pub fn json(&self, session: &IndexedSession) -> Result<String, CommandError> {
        let mut draft = session_draft(session, &self.shorts);
        let notes = session.marks.notes.iter().zip(self.events(session)?);
        let notes: Vec<String> = notes.map(|(note, event)| note_json(note, &event)).collect();
        draft.set("notes", format!("[{}]", notes.join(",")));
        Ok(draft.render(None))
    }

    /// Where the events of a session's notes are, in the order of the notes.
    fn events(&self, session: &IndexedSession) -> Result<Vec<NotedEvent>, CommandError> {
        let notes = &session.marks.notes;
        let keys: Vec<EventKey> = notes.iter().filter_map(|note| note.event).collect();
        if keys.is_empty() {
            return Ok(notes.iter().map(|_| NotedEvent::None).collect());
        }
        let found = self.store.searcher()?.events_with_keys(session.id, &keys)?;
        let mut addresses = EventAddresses::default();
        let mut events = Vec::with_capacity(notes.len());
        for note in notes {
            events.push(match note.event.map(|key| found.get(&key)) {
                None => NotedEvent::None,
                Some(None) => NotedEvent::Gone,
                Some(Some(hit)) => self.address(session, hit, &mut addresses)?,
            });
        }
        Ok(events)
    }

    fn address(
        &self,
        session: &IndexedSession,
        hit: &Hit,
        addresses: &mut EventAddresses,
    ) -> Result<NotedEvent, CommandError> {
        let Some(source) = self.catalogue.source(hit.source)? else { return Ok(NotedEvent::Gone) };
        let name = self.shorts.name(session);
        let named = Some((session, name.as_str())).filter(|_| self.shorts.is_unique(session));
        let found = (&source, hit.event);
        let address = addresses.of(self.catalogue, named, found, hit.version)?;
        Ok(NotedEvent::At(address, hit.version))
    }
}

/// Marks of a session that the index does not know.
pub(super) fn unknown_json(name: &str, marks: &Marks) -> String {
    let mut draft = Draft::new();
    draft.set_str("session", name);
    draft.set("indexed", "false".to_owned());
    draft.set_opt("title", marks.title.as_deref());
    draft.set("pinned", marks.pinned.to_string());
    draft.set("tags", strings_json(&marks.tags));
    let notes: Vec<String> = marks.notes.iter().map(|note| note_json(note, &NotedEvent::None)).collect();
    draft.set("notes", format!("[{}]", notes.join(",")));
    draft.render(None)
}

fn note_json(note: &SessionNote, event: &NotedEvent) -> String {
    let mut draft = Draft::new();
    draft.set_number("number", Some(u64::from(note.number)));
    draft.set_opt("time", clock::iso(Some(note.time_ms)).as_deref());
    draft.set_str("text", &note.text);
    draft.set_opt("key", note.event.map(|key| format!("{:016x}", key.0)).as_deref());
    if let NotedEvent::At(address, version) = event {
        draft.set_number("event", Some(address.event));
        draft.set_number("version", version.map(u64::from));
        let version = version.map(|version| format!(" --version {version}")).unwrap_or_default();
        draft.set_str("show", &format!("steno show {}{version} --event {}", address.word(), address.event));
    }
    if matches!(event, NotedEvent::Gone) {
        draft.set("gone", "true".to_owned());
    }
    draft.render(None)
}

//! The notes of `steno mark` about single events, which `steno show` prints below them for people.

use std::collections::HashMap;

use stenograph_store::archive::EventKey;
use stenograph_store::index::Store;

use crate::error::CommandError;
use crate::output::{Colour, TextStyle, harmless_line};
use crate::store::{EventAddresses, NamedBy, ResolvedSession};
use crate::table;
use crate::terminal::wrapped_text;

/// The width of the column of event numbers.
const GUTTER_WIDTH: usize = 7;

/// The notes about each event, with their own numbers, by the number of the event that `steno show` prints.
#[derive(Debug, Default)]
pub struct EventNotes(HashMap<u64, Vec<(u32, String)>>);

impl EventNotes {
    /// The notes about events that the name of the session shows.
    pub fn of(store: &Store, resolved: &ResolvedSession) -> Result<EventNotes, CommandError> {
        let session = &resolved.session;
        let keys: Vec<EventKey> = session.marks.notes.iter().filter_map(|note| note.event).collect();
        let mut notes = EventNotes::default();
        if keys.is_empty() || resolved.by != NamedBy::Session {
            return Ok(notes);
        }
        let found = store.searcher()?.events_with_keys(session.id, &keys)?;
        let (catalogue, mut addresses) = (store.catalogue()?, EventAddresses::default());
        for note in &session.marks.notes {
            let hit = note.event.and_then(|key| found.get(&key)).filter(|hit| hit.version.is_none());
            let Some(hit) = hit else { continue };
            let Some(source) = catalogue.source(hit.source)? else { continue };
            let named = Some((session, session.name.as_str()));
            let address = addresses.of(&catalogue, named, (&source, hit.event), None)?;
            if address.name == session.name {
                notes.0.entry(address.event).or_default().push((note.number, note.text.clone()));
            }
        }
        Ok(notes)
    }

    /// The lines to print below an event, each with a newline at its end. They are printed once.
    pub fn take(&mut self, event: Option<u64>, colour: Colour) -> String {
        let mut out = String::new();
        for (number, text) in event.and_then(|event| self.0.remove(&event)).unwrap_or_default() {
            let mut label = format!("note {number}: ");
            for line in text.lines() {
                let line = format!("{:GUTTER_WIDTH$}{label}{}", "", harmless_line(line));
                label = " ".repeat(label.len());
                for line in wrapped_text(line.trim_end(), table::screen_width()).lines() {
                    out += &colour.paint(TextStyle::Strong, line);
                    out.push('\n');
                }
            }
        }
        out
    }
}

//! Reads single events of a source again on demand: code that walks a long session needs to keep only references to events. If
//! a record can be read without those before it, it is read from the file; all other events are spooled as native lines in a
//! temporary file without a name.

use std::fs::File;
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};

use stenograph::format::{Format, Wanted};
use stenograph::json::Object;
use stenograph::model::{Event, Span};
use stenograph::read::{Reading, Sink};
use stenograph::wire;

use crate::error::{Error, Place, Problem};
use crate::source::Source;
use crate::source_file::Access;

/// A reference to an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventRef {
    offset: u64,
    length: u64,
    part: u32,
    stored_in: StoredIn,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StoredIn {
    /// In the source itself.
    Source,
    /// In the spool.
    Spool,
}

/// Reads events again.
#[derive(Debug, Default)]
pub struct EventCache {
    source: Option<(File, &'static dyn Format)>,
    spooled: Option<Spooled>,
}

#[derive(Debug)]
struct Spooled {
    file: BufWriter<File>,
    length: u64,
}

impl EventCache {
    /// A cache over the events of a source. The source must be read to its end before an event is read again.
    pub fn new(source: &Source, format: &'static dyn Format) -> EventCache {
        let file = (source.access(format) == Access::ByRecord).then(|| source.plain_file()).flatten();
        EventCache { source: file.map(|file| (file, format)), spooled: None }
    }

    /// A reference to this event of the source.
    pub fn event_ref(&mut self, event: &Event<'_>) -> Result<EventRef, Error> {
        match (&self.source, event.at) {
            (Some(_), Some(at)) => Ok(EventRef {
                offset: at.offset,
                length: at.length,
                part: event.part.index,
                stored_in: StoredIn::Source,
            }),
            _ => self.spool(event),
        }
    }

    /// Spools an event that need not be in the source, such as a later one.
    pub(crate) fn spool(&mut self, event: &Event<'_>) -> Result<EventRef, Error> {
        let spooled = match &mut self.spooled {
            Some(spooled) => spooled,
            none => {
                let file = tempfile::tempfile().map_err(unwritable)?;
                none.insert(Spooled { file: BufWriter::new(file), length: 0 })
            }
        };
        let line = wire::event(event);
        spooled.file.write_all(line.as_bytes()).map_err(unwritable)?;
        let event_ref =
            EventRef { offset: spooled.length, length: line.len() as u64, part: 0, stored_in: StoredIn::Spool };
        spooled.length += event_ref.length;
        Ok(event_ref)
    }

    /// Reads an event again; `None` if the source no longer has it.
    pub fn event(&mut self, event_ref: EventRef) -> Result<Option<Event<'static>>, Error> {
        let file = match (event_ref.stored_in, &mut self.source, &mut self.spooled) {
            (StoredIn::Source, Some((file, _)), _) => file,
            (StoredIn::Spool, _, Some(spooled)) => {
                spooled.file.flush().map_err(unwritable)?;
                spooled.file.get_mut()
            }
            (StoredIn::Source, None, _) | (StoredIn::Spool, _, None) => return Ok(None),
        };
        let bytes = bytes_at(file, event_ref)
            .map_err(|error| Error::from_system(&Place::Temporary, Problem::Unreadable, error))?;
        if event_ref.stored_in == StoredIn::Spool {
            // The next event is spooled at the end again.
            file.seek(SeekFrom::End(0)).map_err(unwritable)?;
            let text = std::str::from_utf8(&bytes).unwrap_or_default();
            return Ok(Object::parse(text).and_then(|mut line| Some(wire::read(&mut line)?.into_owned())));
        }
        let Some((_, format)) = &self.source else { return Ok(None) };
        let at = Span { offset: event_ref.offset, length: 0, line: Span::LINE_UNKNOWN };
        let mut reading = Reading::from_line(*format, Wanted::All, at);
        let mut found = PartFinder { part: event_ref.part, event: None };
        reading.feed(&bytes, &mut found);
        reading.end(&mut found);
        Ok(found.event)
    }
}

fn bytes_at(file: &mut File, event_ref: EventRef) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(event_ref.offset))?;
    file.take(event_ref.length).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn unwritable(error: std::io::Error) -> Error {
    Error::from_system(&Place::Temporary, Problem::Unwritable, error)
}

/// Takes one part of a record.
struct PartFinder {
    part: u32,
    event: Option<Event<'static>>,
}

impl Sink for PartFinder {
    fn event(&mut self, event: &Event<'_>) {
        if event.part.index == self.part && self.event.is_none() {
            self.event = Some(event.clone().into_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use stenograph::formats::FORMATS;
    use stenograph::read::Collected;
    use stenograph::{Detected, Registry};

    use super::*;
    use crate::Passes;

    fn read_again(bytes: &[u8]) -> (Vec<Event<'static>>, Vec<Event<'static>>, bool) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, bytes).unwrap();
        let mut source = Source::open(&path, Passes::Many).unwrap();
        let Detected::Format(format) = Registry::built_in().detect(source.head()) else { panic!("no format") };
        let mut cache = EventCache::new(&source, format);
        let mut read = Collected::default();
        let mut reading = Reading::new(format, Wanted::All);
        reading.feed_all(&mut source.pass().unwrap(), &mut read).unwrap();
        reading.end(&mut read);
        let marks: Vec<EventRef> = read.events.iter().map(|event| cache.event_ref(event).unwrap()).collect();
        let again = marks.iter().rev().map(|event_ref| cache.event(*event_ref).unwrap().unwrap()).rev().collect();
        (read.events, again, cache.spooled.is_none())
    }

    #[test]
    fn events_of_every_format_are_found_again() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../stenograph/src/formats");
        let mut in_place = 0;
        for format in FORMATS {
            let fixtures = folder.join(format.info().name.replace('-', "_")).join("fixtures");
            let demo = std::fs::read_dir(&fixtures).unwrap().map(|entry| entry.unwrap().path());
            let demo = demo.into_iter().find(|path| {
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                name.starts_with("demo.") && !name.ends_with(".golden") && !name.ends_with(".losses")
            });
            let Some(demo) = demo else { continue };
            let (read, again, is_in_place) = read_again(&std::fs::read(&demo).unwrap());
            assert_eq!(read.len(), again.len());
            for (one, other) in read.iter().zip(&again) {
                assert_eq!(one.body, other.body, "{}", demo.display());
                assert_eq!(
                    (&one.time, &one.id, one.usage),
                    (&other.time, &other.id, other.usage),
                    "{}",
                    demo.display()
                );
            }
            in_place += usize::from(is_in_place);
        }
        assert!(in_place >= 3, "{in_place}");
    }

    #[test]
    fn events_of_a_compressed_source_are_spooled() {
        let line = "{\"v\":1,\"kind\":\"message\",\"role\":\"user\",\"content\":\"again\"}\n";
        let (read, again, is_in_place) = read_again(&zstd::encode_all(line.repeat(3).as_bytes(), 3).unwrap());
        assert_eq!((read.len(), again.len(), is_in_place), (3, 3, false));
        assert_eq!(read[2].body, again[2].body);
    }

    #[test]
    fn a_removed_event_reads_as_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let line = "{\"v\":1,\"kind\":\"message\",\"role\":\"user\",\"content\":\"again\"}\n";
        std::fs::write(&path, line.repeat(2)).unwrap();
        let source = Source::open(&path, Passes::Many).unwrap();
        let Detected::Format(format) = Registry::built_in().detect(source.head()) else { panic!("no format") };
        let mut cache = EventCache::new(&source, format);
        let at = Span { offset: line.len() as u64, length: line.len() as u64, line: 2 };
        let event_ref = cache.event_ref(&Event { at: Some(at), ..Event::default() }).unwrap();
        assert!(cache.event(event_ref).unwrap().is_some());
        std::fs::write(&path, line).unwrap();
        assert!(cache.event(event_ref).unwrap().is_none());
    }
}

//! Single events of a source, read again when somebody looks at them: what goes through a long session needs to remember only where its
//! events stand. Where a record can be read without those before it, it is read from the file; all else is put aside as lines of the
//! native stream in a temporary file without a name.

use std::fs::File;
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};

use stenograph::format::{Format, Want};
use stenograph::json::Object;
use stenograph::model::{Event, Note, Span};
use stenograph::read::{Reading, Sink};
use stenograph::wire;

use crate::error::{Error, Place, Problem};
use crate::source::Source;
use crate::source_file::Access;

/// Where an event is found again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    offset: u64,
    length: u64,
    part: u32,
    shelf: Shelf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shelf {
    /// In the source itself.
    Source,
    /// Among what was put aside.
    Aside,
}

/// Finds events again.
#[derive(Debug, Default)]
pub struct Recall {
    source: Option<(File, &'static dyn Format)>,
    aside: Option<Aside>,
}

#[derive(Debug)]
struct Aside {
    file: BufWriter<File>,
    length: u64,
}

impl Recall {
    /// Of the events of a source, which is read to its end before any is asked for.
    pub fn over(source: &Source, format: &'static dyn Format) -> Recall {
        let file = (source.access(format) == Access::ByRecord).then(|| source.plain_file()).flatten();
        Recall { source: file.map(|file| (file, format)), aside: None }
    }

    /// Where this event of the source will be found again.
    pub fn mark(&mut self, event: &Event<'_>) -> Result<Mark, Error> {
        match (&self.source, event.at) {
            (Some(_), Some(at)) => {
                Ok(Mark { offset: at.offset, length: at.length, part: event.part.index, shelf: Shelf::Source })
            }
            _ => self.put_aside(event),
        }
    }

    /// Puts an event aside that need not stand in the source: one that came later.
    pub(crate) fn put_aside(&mut self, event: &Event<'_>) -> Result<Mark, Error> {
        let aside = match &mut self.aside {
            Some(aside) => aside,
            none => {
                let file = tempfile::tempfile().map_err(unwritable)?;
                none.insert(Aside { file: BufWriter::new(file), length: 0 })
            }
        };
        let line = wire::event(event);
        aside.file.write_all(line.as_bytes()).map_err(unwritable)?;
        let mark = Mark { offset: aside.length, length: line.len() as u64, part: 0, shelf: Shelf::Aside };
        aside.length += mark.length;
        Ok(mark)
    }

    /// The event again; nothing when the source does not say it any more.
    pub fn event(&mut self, mark: Mark) -> Result<Option<Event<'static>>, Error> {
        let file = match (mark.shelf, &mut self.source, &mut self.aside) {
            (Shelf::Source, Some((file, _)), _) => file,
            (Shelf::Aside, _, Some(aside)) => {
                aside.file.flush().map_err(unwritable)?;
                aside.file.get_mut()
            }
            (Shelf::Source, None, _) | (Shelf::Aside, _, None) => return Ok(None),
        };
        let bytes =
            bytes_at(file, mark).map_err(|error| Error::from_system(&Place::Temporary, Problem::Unreadable, error))?;
        if mark.shelf == Shelf::Aside {
            // What comes next is put at the end again.
            file.seek(SeekFrom::End(0)).map_err(unwritable)?;
            let text = std::str::from_utf8(&bytes).unwrap_or_default();
            return Ok(Object::parse(text).and_then(|mut line| Some(wire::read(&mut line)?.into_owned())));
        }
        let Some((_, format)) = &self.source else { return Ok(None) };
        let at = Span { offset: mark.offset, length: 0, line: Span::LINE_UNKNOWN };
        let mut reading = Reading::from_line(*format, Want::All, at);
        let mut found = Found { part: mark.part, event: None };
        reading.feed(&bytes, &mut found);
        reading.end(&mut found);
        Ok(found.event)
    }
}

fn bytes_at(file: &mut File, mark: Mark) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(mark.offset))?;
    file.take(mark.length).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn unwritable(error: std::io::Error) -> Error {
    Error::from_system(&Place::Temporary, Problem::Unwritable, error)
}

/// Takes one part of a record.
struct Found {
    part: u32,
    event: Option<Event<'static>>,
}

impl Sink for Found {
    fn event(&mut self, event: &Event<'_>) {
        if event.part.index == self.part && self.event.is_none() {
            self.event = Some(event.clone().into_owned());
        }
    }

    fn note(&mut self, _note: Note) {}
}

#[cfg(test)]
mod tests {
    use stenograph::formats::FORMATS;
    use stenograph::read::Collected;
    use stenograph::{Detected, Registry};

    use super::*;
    use crate::Passes;

    fn recalled(bytes: &[u8]) -> (Vec<Event<'static>>, Vec<Event<'static>>, bool) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, bytes).unwrap();
        let mut source = Source::open(&path, Passes::Many).unwrap();
        let Detected::Format(format) = Registry::built_in().detect(source.head()) else { panic!("no format") };
        let mut recall = Recall::over(&source, format);
        let mut read = Collected::default();
        let mut reading = Reading::new(format, Want::All);
        reading.feed_all(&mut source.pass().unwrap(), &mut read).unwrap();
        reading.end(&mut read);
        let marks: Vec<Mark> = read.events.iter().map(|event| recall.mark(event).unwrap()).collect();
        let again = marks.iter().rev().map(|mark| recall.event(*mark).unwrap().unwrap()).rev().collect();
        (read.events, again, recall.aside.is_none())
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
            let (read, again, is_in_place) = recalled(&std::fs::read(&demo).unwrap());
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
    fn what_is_compressed_is_put_aside() {
        let line = "{\"v\":1,\"kind\":\"message\",\"role\":\"user\",\"content\":\"again\"}\n";
        let (read, again, is_in_place) = recalled(&zstd::encode_all(line.repeat(3).as_bytes(), 3).unwrap());
        assert_eq!((read.len(), again.len(), is_in_place), (3, 3, false));
        assert_eq!(read[2].body, again[2].body);
    }

    #[test]
    fn what_is_not_there_any_more_is_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let line = "{\"v\":1,\"kind\":\"message\",\"role\":\"user\",\"content\":\"again\"}\n";
        std::fs::write(&path, line.repeat(2)).unwrap();
        let source = Source::open(&path, Passes::Many).unwrap();
        let Detected::Format(format) = Registry::built_in().detect(source.head()) else { panic!("no format") };
        let mut recall = Recall::over(&source, format);
        let at = Span { offset: line.len() as u64, length: line.len() as u64, line: 2 };
        let mark = recall.mark(&Event { at: Some(at), ..Event::default() }).unwrap();
        assert!(recall.event(mark).unwrap().is_some());
        std::fs::write(&path, line).unwrap();
        assert!(recall.event(mark).unwrap().is_none());
    }
}

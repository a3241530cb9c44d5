//! Redacts sources: reads one twice, so that a secret found in one place is masked in all, and keeps the key on which masks
//! depend. The library decides what a secret is.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use stenograph::format::Format;
use stenograph::redact::{
    Finding, KnownSecrets, RecordSyntax, RedactionReport, RedactionSink, Redactor, SourceRedactor,
};

use crate::archive::{Archive, ArchiveWriter, CopyInfo, RewriteOutcome, WhichVersion};
use crate::decode::{ByteCounter, Container, DecodeGuard, decode};
use crate::discover::Stat;
use crate::edit::FileEdit;
use crate::error::{Error, Place, Problem};
use crate::files::{Disk, FileMode, create_folder_durably};
use crate::index::Store;
use crate::index::catalogue::{FileStamp, SourceRow};
use crate::index::change::{self, SourceChange};
use crate::output::{Existing, NewFile, Spool};
use crate::source::Source;
use crate::source_file::Access;
use crate::undo;

/// How many bytes to read at a time.
const CHUNK_SIZE: usize = 256 << 10;

/// The name of the file with the key, in the folder of the store.
const KEY_FILE: &str = "redaction.key";

/// The key of a store, created on first use. With it the same secret has the same mask in every file, and without it nobody can
/// test a guess.
pub fn store_key(folder: &Path) -> Result<[u8; 32], Error> {
    let path = folder.join(KEY_FILE);
    if let Some(key) = read_key(&path)? {
        return Ok(key);
    }
    create_folder_durably(&Disk, folder).map_err(|error| Error::at(folder, Problem::Unwritable, error))?;
    let key = random_key();
    let mut file = NewFile::options().existing(Existing::Refused).mode(FileMode::PRIVATE).create(&path, [])?;
    file.write_all(&key).map_err(|error| Error::at(&path, Problem::Unwritable, error))?;
    match file.commit() {
        Ok(()) => Ok(key),
        // Another process was faster.
        Err(error) => read_key(&path)?.ok_or(error),
    }
}

fn read_key(path: &Path) -> Result<Option<[u8; 32]>, Error> {
    match std::fs::read(path) {
        Ok(bytes) => match bytes.first_chunk() {
            Some(key) if bytes.len() == key.len() => Ok(Some(*key)),
            _ => Err(Error::about(path, Problem::Changed)),
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::at(path, Problem::Unreadable, error)),
    }
}

/// A key for one run.
pub fn random_key() -> [u8; 32] {
    let mut key = [0; 32];
    for (half, id) in key.chunks_mut(16).zip([uuid::Uuid::new_v4(), uuid::Uuid::new_v4()]) {
        half.copy_from_slice(id.as_bytes());
    }
    key
}

impl Source {
    /// Finds what a redactor would mask, and passes each finding with its line to `each`.
    pub fn find_secrets(
        &mut self,
        format: &dyn Format,
        redactor: &Redactor,
        each: &mut dyn FnMut(u64, &Finding),
    ) -> Result<(RedactionReport, KnownSecrets), Error> {
        let mut sink = Findings(each);
        let place = self.place().clone();
        pass(&mut self.pass()?, &place, RecordSyntax::of(format), redactor, &mut sink)
    }

    /// A search for secrets that another thread can make while this source is read; `None` for a stream.
    pub fn secret_search(&self, format: &dyn Format) -> Option<SecretSearch> {
        let (file, length) = self.shared_file()?;
        Some(SecretSearch { file, length, place: self.place().clone(), syntax: RecordSyntax::of(format) })
    }

    /// The same source with its secrets masked, in a private temporary file, and what was masked. It keeps its name and its
    /// permissions.
    pub fn redacted(mut self, format: &dyn Format, redactor: &Redactor) -> Result<(Source, RedactionReport), Error> {
        let mut spool = Spool::new()?;
        let report = redact_into(&mut self, format, redactor, &mut spool)?;
        Ok((self.with_content(spool)?, report))
    }
}

/// A search for secrets in the file of a source, independent of the passes over the source.
#[derive(Debug)]
pub struct SecretSearch {
    file: File,
    length: u64,
    place: Place,
    syntax: RecordSyntax,
}

impl SecretSearch {
    /// Finds what a redactor would mask.
    pub fn find(&self, redactor: &Redactor) -> Result<(RedactionReport, KnownSecrets), Error> {
        let raw = FileFromStart { file: &self.file, at: 0, length: self.length };
        let mut decoded = decode(raw, &self.place, &ByteCounter::default(), DecodeGuard::USUAL)?;
        pass(&mut decoded, &self.place, self.syntax, redactor, &mut ())
    }
}

/// Reads a file without moving its position, which others share.
struct FileFromStart<'f> {
    file: &'f File,
    at: u64,
    length: u64,
}

impl Read for FileFromStart<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let rest = usize::try_from(self.length.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let room = buffer.len().min(rest);
        #[cfg(unix)]
        let length =
            std::os::unix::fs::FileExt::read_at(self.file, buffer.get_mut(..room).unwrap_or_default(), self.at)?;
        #[cfg(not(unix))]
        let length = self.file.take(room as u64).read(buffer)?;
        self.at += length as u64;
        Ok(length)
    }
}

/// How much of a file that has grown is searched again: a secret may cross its former end.
const OVERLAP: u64 = 64 << 10;

/// Which sources were searched for secrets.
#[derive(Debug, Default)]
pub struct SearchedSources(HashMap<PathBuf, SearchedSource>);

/// A source when it was searched.
#[derive(Debug)]
struct SearchedSource {
    stamp: FileStamp,
    row: SourceRow,
}

impl SearchedSources {
    /// Searches the sources that have changed since they were searched, and returns the secrets in them. Of a file that has only grown,
    /// only the end is searched. A source that cannot be read is tried again next time.
    pub fn search(&mut self, store: &Store, rows: &[SourceRow], redactor: &Redactor) -> KnownSecrets {
        let stamp = |path: &Path| Stat::of(path).map_or_else(|_| FileStamp::default(), FileStamp::from);
        let changed: Vec<(&SourceRow, FileStamp)> = rows
            .iter()
            .map(|row| (row, stamp(&row.path)))
            .filter(|(row, stamp)| self.0.get(&row.path).is_none_or(|searched| searched.stamp != *stamp))
            .collect();
        let next = AtomicUsize::new(0);
        let found = Mutex::new((KnownSecrets::default(), Vec::new()));
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(changed.len());
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    while let Some((row, stamp)) = changed.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let Ok(secrets) = search(store, row, self.0.get(&row.path), stamp, redactor) else { continue };
                        let searched = SearchedSource { stamp: *stamp, row: (*row).clone() };
                        let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                        found.0.extend(secrets);
                        found.1.push((row.path.clone(), searched));
                    }
                });
            }
        });
        let (secrets, searched) = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.0.extend(searched);
        secrets
    }
}

/// The secrets of one source. If it has only grown since it was searched, those of its end.
fn search(
    store: &Store,
    row: &SourceRow,
    before: Option<&SearchedSource>,
    now: &FileStamp,
    redactor: &Redactor,
) -> Result<KnownSecrets, Error> {
    let Some(format) = row.known_format() else { return Ok(KnownSecrets::default()) };
    if let Some(before) = before.filter(|_| row.access == Access::ByRecord) {
        let unreadable = |error| Error::at(&row.path, Problem::Unreadable, error);
        let mut file = File::open(&row.path).map_err(unreadable)?;
        if matches!(change::detect(&before.row, &mut file, now), Ok(SourceChange::Grown)) {
            let from = before.row.stable_until.min(before.stamp.size).saturating_sub(OVERLAP);
            file.seek(SeekFrom::Start(from)).map_err(unreadable)?;
            let place = Place::Path(row.path.clone());
            return Ok(pass(&mut file, &place, RecordSyntax::of(format), redactor, &mut ())?.1);
        }
    }
    let (mut source, _) = store.open_source(row)?;
    Ok(source.find_secrets(format, redactor, &mut |_, _| {})?.1)
}

/// Writes a source with its secrets masked.
pub fn redact_into(
    source: &mut Source,
    format: &dyn Format,
    redactor: &Redactor,
    out: &mut dyn Write,
) -> Result<RedactionReport, Error> {
    let place = source.place().clone();
    redact_stream(&mut source.pass()?, &place, RecordSyntax::of(format), redactor, out)
}

/// Copies a stream with its secrets masked.
pub(crate) fn redact_stream(
    stream: &mut dyn Read,
    place: &Place,
    syntax: RecordSyntax,
    redactor: &Redactor,
    out: &mut dyn Write,
) -> Result<RedactionReport, Error> {
    let mut sink = CopySink { out, failed: None };
    let (report, _) = pass(stream, place, syntax, redactor, &mut sink)?;
    match sink.failed {
        Some(error) => Err(Error::from_system(place, Problem::Unwritable, error)),
        None => Ok(report),
    }
}

fn pass(
    stream: &mut dyn Read,
    place: &Place,
    syntax: RecordSyntax,
    redactor: &Redactor,
    sink: &mut dyn RedactionSink,
) -> Result<(RedactionReport, KnownSecrets), Error> {
    let mut source = SourceRedactor::new(redactor, syntax);
    let mut buffer = vec![0; CHUNK_SIZE];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(source.end(sink)),
            Ok(length) => source.feed(buffer.get(..length).unwrap_or_default(), sink),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Error::from_system(place, Problem::Unreadable, error)),
        }
    }
}

/// Copies a stream with its secrets masked, in the same compression.
fn redact_container(
    raw: &mut dyn Read,
    place: &Place,
    syntax: RecordSyntax,
    redactor: &Redactor,
    out: &mut dyn Write,
) -> Result<RedactionReport, Error> {
    let unwritable = |error| Error::from_system(place, Problem::Unwritable, error);
    let mut decoded = decode(raw, place, &ByteCounter::default(), DecodeGuard::USUAL)?;
    match decoded.container() {
        Container::Plain => redact_stream(&mut decoded, place, syntax, redactor, out),
        Container::Gzip => {
            let mut encoder = flate2::write::GzEncoder::new(out, flate2::Compression::default());
            let report = redact_stream(&mut decoded, place, syntax, redactor, &mut encoder)?;
            encoder.finish().map(|_| report).map_err(unwritable)
        }
        Container::Zstd => {
            let mut encoder = zstd::stream::write::Encoder::new(out, 0).map_err(unwritable)?;
            let report = redact_stream(&mut decoded, place, syntax, redactor, &mut encoder)?;
            encoder.finish().map(|_| report).map_err(unwritable)
        }
    }
}

/// What became of a file that was redacted in place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RedactedFile {
    /// What was masked.
    pub report: RedactionReport,
    /// The undo files that were removed, because they hold the old content.
    pub undo_files: Vec<PathBuf>,
}

/// Masks the secrets of a file in place and removes its undo files. There is no undo: that would keep the secrets. A file that
/// another process writes to is refused.
pub fn redact_file(path: &Path, format: &dyn Format, redactor: &Redactor) -> Result<RedactedFile, Error> {
    let place = Place::Path(path.to_owned());
    let edit = FileEdit::begin(path)?;
    let mut output = edit.output()?;
    let mut file = File::open(edit.path()).map_err(|error| Error::at(path, Problem::Unreadable, error))?;
    let report = redact_container(&mut file, &place, RecordSyntax::of(format), redactor, &mut output)?;
    if report.total() > 0 {
        edit.restore(output)?;
    }
    let undo_files = undo::undo_files(edit.path());
    undo_files.iter().try_for_each(|undo| edit.remove(undo))?;
    Ok(RedactedFile { report, undo_files })
}

/// Finds the secrets in every archived version of a source, and counts what would be masked.
pub fn find_archived_secrets(
    archive: &Archive,
    copy: &CopyInfo,
    format: &dyn Format,
    redactor: &Redactor,
) -> Result<(RedactionReport, KnownSecrets), Error> {
    let place = Place::Path(copy.path.clone());
    let (mut report, mut known) = (RedactionReport::default(), KnownSecrets::default());
    for version in &copy.versions {
        let raw = archive.read(copy.id, WhichVersion::Number(version.number), 0)?;
        let mut decoded = decode(raw, &place, &ByteCounter::default(), DecodeGuard::USUAL)?;
        let found = pass(&mut decoded, &place, RecordSyntax::of(format), redactor, &mut ())?;
        report.merge(&found.0);
        known.extend(found.1);
    }
    Ok((report, known))
}

/// Masks the secrets in every archived version of a source. [`ArchiveWriter::reclaim_all`] then removes the old bytes.
pub fn redact_copy(
    writer: &mut ArchiveWriter,
    copy: &CopyInfo,
    format: &dyn Format,
    redactor: &Redactor,
) -> Result<RedactionReport, Error> {
    let (place, mut report) = (Place::Path(copy.path.clone()), RedactionReport::default());
    writer.rewrite(copy.id, &mut |raw, out| {
        let masked = redact_container(raw, &place, RecordSyntax::of(format), redactor, out)?;
        report.merge(&masked);
        Ok(if masked.total() > 0 { RewriteOutcome::Changed } else { RewriteOutcome::Same })
    })?;
    Ok(report)
}

/// Passes findings on and drops the bytes.
struct Findings<'e>(&'e mut dyn FnMut(u64, &Finding));

impl RedactionSink for Findings<'_> {
    fn bytes(&mut self, _bytes: &[u8]) {}

    fn finding(&mut self, line: u64, finding: &Finding) {
        (self.0)(line, finding);
    }
}

/// Writes the bytes until that fails.
struct CopySink<'w> {
    out: &'w mut dyn Write,
    failed: Option<std::io::Error>,
}

impl RedactionSink for CopySink<'_> {
    fn bytes(&mut self, bytes: &[u8]) {
        if self.failed.is_none() {
            self.failed = self.out.write_all(bytes).err();
        }
    }
}

//! Reads the events of one source into the index: from where the last run stopped, as a whole, or from the archive. `source.rs`
//! decides which source and why.

use std::collections::HashSet;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use stenograph::format::{Format, Wanted};
use stenograph::ledger::CountingState;
use stenograph::model::Span;
use stenograph::read::Reading;
use xxhash_rust::xxh3::xxh3_64;

use super::catalogue::{FileStamp, Gone, SourceId, SourceRow, SourceSummary};
use super::change;
use super::event_indexer::EventIndexer;
use super::run::{IndexProgress, IndexReport, IndexRun, RunObserver};
use super::source::{ReadExtent, StartAt};
use super::survey::{IndexJob, is_missing};
use super::text::TextWriter;
use crate::databases;
use crate::decode::{ByteCounter, DecodeGuard, decode};
use crate::discover::PathHints;
use crate::fingerprint::FINGERPRINT_SIZE;
use crate::recover;
use crate::session_files::Coverage;
use crate::tail::Warning;
use crate::{Error, Passes, Place, Problem, Source, working_folder};

/// How many bytes one read takes.
const CHUNK_SIZE: usize = 256 << 10;

/// How many bytes of one source are read between two commits.
const PIECE_SIZE: u64 = 1 << 30;

/// How many touched files are collected before they are saved.
const TOUCHES_MAX: usize = 4096;

impl IndexRun<'_> {
    /// Reads lines from where the last run stopped, up to the size of a batch.
    #[expect(clippy::too_many_arguments, reason = "the source, the position in it, and the receivers")]
    pub(super) fn read_on(
        &mut self,
        writer: &TextWriter,
        job: &IndexJob,
        file: &mut File,
        format: &'static dyn Format,
        row: &mut SourceRow,
        start: StartAt,
        report: &mut IndexReport,
        progress: &mut IndexProgress,
        observer: &mut dyn RunObserver,
    ) -> Result<ReadExtent, Error> {
        let unreadable = |error| Error::at(&job.path, Problem::Unreadable, error);
        self.catalogue.retire(row.tail)?;
        (row.tail, row.tail_events) = (0, 0);
        if start == StartAt::Beginning {
            self.reset_source(row)?;
        }
        let (batch, tail_lot) = (self.batch, self.catalogue.new_doc_group()?);
        let mut event_indexer =
            EventIndexer::resumed(writer, format, batch, row, self.catalogue.ledger_state(row.doc_group)?);
        event_indexer.keys = self.seen_keys.as_ref().map(|_| HashSet::new());
        event_indexer.status = self.status.take();
        let at = Span { offset: row.stable_until, length: 0, line: row.line };
        let mut reading = Reading::from_line(format, Wanted::All, at);
        file.seek(SeekFrom::Start(row.stable_until)).map_err(unreadable)?;
        let mut left = job.stamp.size.saturating_sub(row.stable_until);
        let mut content =
            crc32fast::Hasher::new_with_initial(if row.stable_until > 0 { row.content.stable } else { 0 });
        let (mut buffer, mut taken) = (vec![0; CHUNK_SIZE], 0_u64);
        let mut reach = ReadExtent::End;
        while left > 0 {
            let want = usize::try_from(left).unwrap_or(CHUNK_SIZE).min(CHUNK_SIZE);
            let length = match file.read(buffer.get_mut(..want).unwrap_or_default()) {
                Ok(0) => break,
                Ok(length) => length,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(unreadable(error)),
            };
            let chunk = buffer.get(..length).unwrap_or_default();
            content.update(chunk);
            row.line += memchr::memchr_iter(b'\n', chunk).count() as u64;
            reading.feed(chunk, &mut event_indexer);
            left -= length as u64;
            taken += length as u64;
            progress.bytes_done += length as u64;
            observer.progress(progress);
            if let Some(failed) = event_indexer.failed.take() {
                return Err(failed);
            }
            if event_indexer.touches.len() > TOUCHES_MAX {
                self.catalogue.put_touches(&mut event_indexer.touches)?;
            }
            if event_indexer.is_page_full() {
                self.catalogue.put_page(row.doc_group, event_indexer.turn_page())?;
            }
            if left > 0 && (taken >= PIECE_SIZE || observer.is_stopped()) {
                reach = ReadExtent::Part;
                break;
            }
        }
        self.content_read = (reach == ReadExtent::End).then(|| content.finalize());
        report.events += event_indexer.event - row.doc_group_events;
        report.bytes += taken;
        row.stable_until = reading.stable_until();
        row.doc_group_events = event_indexer.event;
        row.reading_state = event_indexer.state();
        self.catalogue.put_page(row.doc_group, event_indexer.turn_page())?;
        if reach == ReadExtent::End && row.stable_until < job.stamp.size {
            event_indexer.doc_group = tail_lot;
            // The next run reads the end of the source again, and counts its unknown records then.
            let unknown = event_indexer.unknown.clone();
            reading.end(&mut event_indexer);
            event_indexer.unknown = unknown;
            row.tail_events = event_indexer.event - row.doc_group_events;
            row.tail = if row.tail_events > 0 { tail_lot } else { 0 };
            if row.tail != 0 {
                self.catalogue.put_page(row.tail, event_indexer.turn_page())?;
            }
            report.events += row.tail_events;
        }
        self.status = event_indexer.status.take().filter(|_| reach == ReadExtent::End);
        self.save_source(job, format, row, event_indexer)?;
        self.read += taken;
        Ok(reach)
    }

    /// Indexes archived sources whose files are gone, so that a rebuilt index has them too.
    pub(super) fn index_archived(&mut self, report: &mut IndexReport) -> Result<(), Error> {
        let mut copies = self.archive()?.copies();
        // The longest first: a shorter one may be an earlier state of it.
        copies.sort_by_key(|copy| std::cmp::Reverse(copy.length));
        let non_transcripts = self.catalogue.non_transcripts()?;
        for copy in copies {
            let known = self.catalogue.source_at(&copy.path)?.is_some();
            // A file that is no longer recognisable counts as gone: what it was stays visible.
            if known || !is_missing(&copy.path) && !non_transcripts.contains_key(&copy.path) {
                continue;
            }
            let stamp = FileStamp { size: copy.length, changed: copy.modified_ns, ..FileStamp::default() };
            let (archive_copy, archived_length, format) = (Some(copy.id.to_string()), copy.length, copy.label.format);
            let row = SourceRow { archive_copy, archived_length, format, stamp, ..self.new_row(&copy.path) };
            self.index_gone(row, copy.label.session, report)?;
        }
        Ok(())
    }

    /// Indexes a source that only the archive has: as a copy if another source has all of its content.
    fn index_gone(&mut self, row: SourceRow, session: Option<String>, report: &mut IndexReport) -> Result<(), Error> {
        let Some(format) = row.known_format() else { return Ok(()) };
        report.gone += 1;
        let Some(original) = self.original_of(&row, session.as_deref())? else {
            return self.index_one_archived(format, session, row, report);
        };
        let SourceRow { path, stamp, archive_copy, archived_length, .. } = row;
        let copy_of = Some(original.id);
        let of_copy =
            SourceRow { id: 0, path, stamp, copy_of, archive_copy, archived_length, doc_group: 0, tail: 0, ..original };
        self.catalogue.put(&SourceRow { gone: Gone::Gone, ..of_copy }).map(drop)
    }

    /// Handles a file that now records another session. The previous content moves in the archive to a path of its own, and the
    /// file becomes a new source. Returns whether that is the case.
    pub(super) fn split_off_previous_session(
        &mut self,
        old: &SourceRow,
        row: &mut SourceRow,
        report: &mut IndexReport,
    ) -> Result<bool, Error> {
        let name = self.catalogue.session_name(old.session)?;
        if old.session == row.session || name == self.catalogue.session_name(row.session)? {
            return Ok(false);
        }
        let is_journal = recover::is_journal_name(&row.path);
        if let Some(name) = name.filter(|_| old.archive_copy.is_some() && !is_journal) {
            let path = self.free_path(&old.path, &name)?;
            let gone = SourceRow { id: 0, path, ..old.clone() };
            self.archive_worker.moved(&gone);
            self.archive()?;
            self.archive.iter_mut().for_each(|archive| archive.will_move(&gone));
            (row.archive_copy, row.archived_length) = (None, 0);
            self.catalogue.put(row)?;
            let SourceRow { path, stamp, archive_copy, archived_length, format, .. } = gone;
            let gone = SourceRow { stamp, archive_copy, archived_length, format, ..self.new_row(&path) };
            self.index_gone(gone, Some(name), report)?;
        }
        self.catalogue.drop_session_without_sources(old.session)?;
        Ok(!is_journal)
    }

    /// A path that no source has, for a file's previous content. It contains the name of the session.
    fn free_path(&self, path: &Path, session: &str) -> Result<PathBuf, Error> {
        let text = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
        let stem = text(path.file_stem());
        let ending = path.extension().map(|ending| format!(".{}", text(Some(ending)))).unwrap_or_default();
        let session: String =
            session.chars().filter(|char| char.is_alphanumeric() || matches!(char, '-' | '_')).collect();
        let mut number = 1;
        loop {
            let suffix = if number == 1 { String::new() } else { format!("-{number}") };
            let free = path.with_file_name(format!("{stem}.{session}{suffix}{ending}"));
            if self.catalogue.source_at(&free)?.is_none() && is_missing(&free) {
                return Ok(free);
            }
            number += 1;
        }
    }

    fn index_one_archived(
        &mut self,
        format: &'static dyn Format,
        session: Option<String>,
        mut row: SourceRow,
        report: &mut IndexReport,
    ) -> Result<(), Error> {
        let hints = PathHints { format: Some(format), session, ..PathHints::default() };
        let job = IndexJob { path: row.path.clone(), stamp: row.stamp, hints, known: None };
        let writer = self.take_writer()?;
        let taken = self.read_kept(&writer, &job, format, &mut row, report);
        self.give_writer(writer);
        taken
    }

    /// Reads a copy that is gone from the archive, because its original has changed.
    pub(super) fn index_diverged(&mut self, id: SourceId, report: &mut IndexReport) -> Result<(), Error> {
        let Some(copy) = self.catalogue.source(id)?.filter(|row| row.copy_of.is_some()) else { return Ok(()) };
        // Another archive may have replaced the one that had it.
        if !self.archive()?.has_own(&copy) {
            return Ok(());
        }
        let Some(format) = copy.known_format() else { return Ok(()) };
        let session = self.catalogue.session_name(copy.session)?;
        let (stamp, archive_copy, archived_length) =
            (FileStamp { size: copy.archived_length, ..copy.stamp }, copy.archive_copy, copy.archived_length);
        let row =
            SourceRow { id, format: copy.format, stamp, archive_copy, archived_length, ..self.new_row(&copy.path) };
        self.index_one_archived(format, session, row, report)
    }

    /// The source that has all content of an archived copy: the file it was copied from, perhaps with more at its end.
    fn original_of(&mut self, copy: &SourceRow, session: Option<&str>) -> Result<Option<SourceRow>, Error> {
        let Some(mut stream) = self.archive()?.read(copy, 0)? else { return Ok(None) };
        let mut begin = Vec::new();
        let read = stream.by_ref().take(FINGERPRINT_SIZE).read_to_end(&mut begin);
        drop(stream);
        if read.is_err() || begin.is_empty() {
            return Ok(None);
        }
        let mut alike = self.catalogue.sources_with_head(xxh3_64(&begin))?;
        if (begin.len() as u64) < FINGERPRINT_SIZE
            && let Some(session) = session
        {
            // A short file that has grown since has a longer head.
            for found in self.catalogue.sessions_named(session)?.iter().filter(|found| found.name == session) {
                alike.extend(self.catalogue.sources_of(found.id)?);
            }
        }
        for row in alike {
            if row.stamp.size < copy.archived_length || row.path == copy.path || row.copy_of.is_some() {
                continue;
            }
            let archive = self.archive()?;
            let Some(stream) = archive.read(copy, 0)? else { return Ok(None) };
            let is_same = match databases::open_file(&row.path) {
                Ok(file) => change::is_same(file.take(copy.archived_length), stream),
                // Both are gone.
                Err(_) => match archive.read(&row, 0)? {
                    Some(other) => change::is_same(other.take(copy.archived_length), stream),
                    None => Ok(false),
                },
            };
            if is_same.unwrap_or(false) {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }

    fn read_kept(
        &mut self,
        writer: &TextWriter,
        job: &IndexJob,
        format: &'static dyn Format,
        row: &mut SourceRow,
        report: &mut IndexReport,
    ) -> Result<(), Error> {
        let archived_length = row.archived_length;
        self.reset_source(row)?;
        row.archived_length = archived_length;
        let mut event_indexer = EventIndexer::resumed(writer, format, self.batch, row, CountingState::default());
        let place = Place::Path(job.path.clone());
        if let Some(stream) = self.archive()?.read(row, 0)? {
            let stream = decode(stream, &place, &ByteCounter::default(), DecodeGuard::USUAL);
            read_through(format, stream, &mut event_indexer, job, report)?;
        }
        (row.doc_group_events, row.reading_state) = (event_indexer.event, event_indexer.state());
        self.catalogue.put_page(row.doc_group, event_indexer.turn_page())?;
        report.events += event_indexer.event;
        self.save_source(job, format, row, event_indexer)?;
        self.record_archived_fingerprint(row)?;
        row.gone = Gone::Gone;
        self.catalogue.put(row).map(drop)
    }

    /// Records the fingerprint of a source that only the archive has, so that copies of it are recognised.
    fn record_archived_fingerprint(&mut self, row: &mut SourceRow) -> Result<(), Error> {
        let (mut begin, mut end) = (Vec::new(), Vec::new());
        let archive = self.archive()?;
        if let Some(stream) = archive.read(row, 0)?
            && stream.take(FINGERPRINT_SIZE).read_to_end(&mut begin).is_ok()
        {
            (row.head, row.head_length) = (xxh3_64(&begin), begin.len() as u64);
        }
        if row.stamp.size == row.archived_length
            && let Some(mut stream) = archive.read(row, row.archived_length.saturating_sub(FINGERPRINT_SIZE))?
            && stream.read_to_end(&mut end).is_ok()
        {
            row.tail_hash = xxh3_64(&end);
        }
        Ok(())
    }

    /// Reads a source that can only be read as a whole.
    pub(super) fn read_whole(
        &mut self,
        writer: &TextWriter,
        job: &IndexJob,
        format: &'static dyn Format,
        row: &mut SourceRow,
        report: &mut IndexReport,
        progress: &mut IndexProgress,
    ) -> Result<ReadExtent, Error> {
        self.catalogue.retire(row.tail)?;
        (row.tail, row.tail_events) = (0, 0);
        self.reset_source(row)?;
        let mut event_indexer = EventIndexer::resumed(writer, format, self.batch, row, CountingState::default());
        event_indexer.keys = self.seen_keys.as_ref().map(|_| HashSet::new());
        event_indexer.status = self.status.take();
        let mut source = Source::open(&job.path, Passes::Many)?;
        let warnings = report.warnings.len();
        read_through(format, source.pass(), &mut event_indexer, job, report)?;
        // What `status` says about a damaged file is up to its own reading.
        self.status = event_indexer.status.take().filter(|_| report.warnings.len() == warnings);
        row.doc_group_events = event_indexer.event;
        row.reading_state = event_indexer.state();
        self.catalogue.put_page(row.doc_group, event_indexer.turn_page())?;
        report.events += event_indexer.event;
        report.bytes += job.stamp.size;
        progress.bytes_done += job.stamp.size;
        self.save_source(job, format, row, event_indexer)?;
        self.read += job.stamp.size;
        Ok(ReadExtent::End)
    }

    /// Resets a source before it is read from its beginning. Its documents are retired.
    fn reset_source(&mut self, row: &mut SourceRow) -> Result<(), Error> {
        self.catalogue.retire(row.doc_group)?;
        if row.id != 0 {
            self.catalogue.forget_unknown(row.id)?;
            self.recheck_copies(row)?;
        }
        row.doc_group = self.catalogue.new_doc_group()?;
        (row.doc_group_events, row.stable_until, row.line) = (0, 0, 1);
        // The archive has the previous content.
        row.archived_length = 0;
        (row.reading_state, row.summary, row.first_key) = (String::new(), SourceSummary::default(), None);
        Ok(())
    }

    /// Saves the results in the catalogue.
    fn save_source(
        &mut self,
        job: &IndexJob,
        format: &'static dyn Format,
        row: &mut SourceRow,
        mut event_indexer: EventIndexer<'_>,
    ) -> Result<(), Error> {
        self.catalogue.put_touches(&mut event_indexer.touches)?;
        let mut summary = std::mem::take(&mut event_indexer.summary);
        if summary.header.cwd.is_none() {
            summary.header.cwd = working_folder(&job.path, format);
        }
        let has_new_folder = summary.header.cwd != row.summary.header.cwd;
        row.summary = summary;
        if row.session == 0 || row.first_key != event_indexer.first_key {
            self.unordered.extend(event_indexer.first_key);
        }
        row.first_key = event_indexer.first_key;
        if let (Some(seen_keys), Some(keys)) = (&mut self.seen_keys, event_indexer.keys.take()) {
            seen_keys.extend(keys);
        }
        row.coverage = Coverage::of(format);
        let (claims, claims_before) =
            (std::mem::take(&mut event_indexer.claims), std::mem::take(&mut event_indexer.claims_before));
        let unknown = std::mem::take(&mut event_indexer.unknown);
        let nested = std::mem::take(&mut event_indexer.nested);
        drop(event_indexer);
        if row.session == 0 || has_new_folder || claims != claims_before {
            let session = row.session;
            self.assign_session(job, format, row, claims)?;
            if session != 0 {
                self.unresolved.insert(session);
                self.catalogue.set_session(row.id, row.session, row.thread.as_deref())?;
            }
        }
        self.unresolved.insert(row.session);
        row.path.clone_from(&job.path);
        (row.gone, row.copy_of) = (Gone::There, None);
        row.id = self.catalogue.put(row)?;
        self.catalogue.put_nested(row.id, &nested)?;
        for (name, (count, line)) in unknown {
            self.catalogue.count_unknown(row.id, &name, count, line, self.batch)?;
        }
        Ok(())
    }
}

/// Reads a stream to its end. A damaged stream counts up to the damage, with a warning.
fn read_through(
    format: &'static dyn Format,
    stream: Result<impl Read, Error>,
    event_indexer: &mut EventIndexer<'_>,
    job: &IndexJob,
    report: &mut IndexReport,
) -> Result<(), Error> {
    let mut reading = Reading::new(format, Wanted::All);
    let read = match stream {
        Ok(mut stream) => reading.feed_all(&mut stream, event_indexer).map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    if let Err(error) = read {
        report.warnings.push(Warning::new(&job.path, error));
    }
    reading.end(event_indexer);
    event_indexer.failed.take().map_or(Ok(()), Err)
}

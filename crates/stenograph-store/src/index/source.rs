//! Indexes one source of a run: detects how it changed and its format, and has it archived. `reading.rs` reads its events.

use std::fs::File;
use std::path::Path;

use stenograph::format::{Format, Head};

use super::catalogue::{DivergedCopy, FileStamp, Gone, SourceRow};
use super::change::{self, SourceChange};
use super::run::{IndexProgress, IndexReport, IndexRun, RunObserver};
use super::survey::{IndexJob, is_missing};
use crate::archive::{ForgottenState, Label};
use crate::databases;
use crate::discover::{PathHints, Stat, registry_path_hints};
use crate::fingerprint::{FINGERPRINT_SIZE, Fingerprint, head_of, tail_of};
use crate::identity::session_of;
use crate::source_file::Access;
use crate::tail::Warning;
use crate::{Error, Passes, Place, Problem, Source};

/// Where reading starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StartAt {
    Beginning,
    Resume,
}

/// Whether a source was read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadExtent {
    End,
    Part,
}

impl IndexRun<'_> {
    /// Updates one source. A problem with the file becomes a warning; an error concerns the store itself.
    pub(super) fn index_file(
        &mut self,
        job: &IndexJob,
        report: &mut IndexReport,
        progress: &mut IndexProgress,
        observer: &mut dyn RunObserver,
    ) -> Result<(), Error> {
        self.catalogue.savepoint()?;
        self.reading = None;
        match self.try_index_file(job, report, progress, observer) {
            Ok(()) => self.catalogue.release_savepoint(),
            Err(error) if error.place == Place::Path(job.path.clone()) => {
                report.warnings.push(Warning::new(&job.path, error.to_string()));
                self.catalogue.rollback_to(self.reading)
            }
            Err(error) => Err(error),
        }
    }

    fn try_index_file(
        &mut self,
        job: &IndexJob,
        report: &mut IndexReport,
        progress: &mut IndexProgress,
        observer: &mut dyn RunObserver,
    ) -> Result<(), Error> {
        let before = progress.bytes_done;
        let unreadable = |error| Error::at(&job.path, Problem::Unreadable, error);
        let opened = databases::open_conversation(&job.path).and_then(|member| match member {
            Some((file, stat)) => Ok((file, FileStamp::from(stat))),
            None => Ok((File::open(&job.path)?, job.stamp)),
        });
        let (mut file, stamp) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                report.warnings.push(Warning::new(&job.path, unreadable(error).to_string()));
                return Ok(());
            }
        };
        // The size of a conversation in a database is known once it is open.
        let job = &IndexJob { stamp, ..job.clone() };
        let known = match job.known {
            // A copy that replaced its original has that one's number now.
            Some(id) => match self.catalogue.source(id)? {
                Some(row) => Some(row),
                None => match self.catalogue.source_at(&job.path)? {
                    Some(row) => Some(row),
                    None => return Ok(()),
                },
            },
            None => None,
        };
        let (row, start) = match known {
            Some(row) if row.copy_of.is_some() => match self.check_copy(row, job, &mut file, report)? {
                Some(read) => read,
                None => return Ok(()),
            },
            Some(row) => match change::detect(&row, &mut file, &job.stamp).map_err(unreadable)? {
                SourceChange::None => {
                    report.unchanged += 1;
                    return self.record_unchanged(row, job);
                }
                SourceChange::Grown => {
                    report.grown += 1;
                    (row, StartAt::Resume)
                }
                SourceChange::Rewritten => {
                    report.rewritten += 1;
                    (row, StartAt::Beginning)
                }
            },
            None => match self.find_known_content(job, &mut file)? {
                KnownContent::Moved(row) if row.stamp.size == job.stamp.size => {
                    report.moved += 1;
                    self.archive_worker.moved(&row);
                    self.save_status_of_known(job, row.id)?;
                    return self.record_unchanged(row, job);
                }
                KnownContent::Moved(row) => {
                    report.moved += 1;
                    self.archive_worker.moved(&row);
                    (row, StartAt::Resume)
                }
                KnownContent::MovedCopy(row) => {
                    report.moved += 1;
                    self.archive_worker.moved(&row);
                    (row, StartAt::Beginning)
                }
                KnownContent::Copy(mut row) => {
                    report.copies += 1;
                    row.id = self.catalogue.put(&row)?;
                    self.save_status_of_known(job, row.id)?;
                    return self.archive_source(&row);
                }
                KnownContent::New => {
                    report.added += 1;
                    (self.new_row(&job.path), StartAt::Beginning)
                }
            },
        };
        let read = self.read_source(job, file, row, start, report, progress, observer);
        progress.bytes_done = before + job.stamp.size;
        read
    }

    /// Checks a copy. While its content equals its original's, it has no documents of its own; once the original is gone, the
    /// copy takes its place. Returns what must be read.
    fn check_copy(
        &mut self,
        copy: SourceRow,
        job: &IndexJob,
        file: &mut File,
        report: &mut IndexReport,
    ) -> Result<Option<(SourceRow, StartAt)>, Error> {
        let unreadable = |error| Error::at(&job.path, Problem::Unreadable, error);
        let diverged = SourceRow { id: copy.id, ..self.new_row(&job.path) };
        let Some(original) = copy.copy_of.map(|id| self.catalogue.source(id)).transpose()?.flatten() else {
            return Ok(Some((diverged, StartAt::Beginning)));
        };
        let is_gone = is_missing(&original.path);
        match change::detect(&original, file, &job.stamp).map_err(unreadable)? {
            SourceChange::None if !is_gone => {
                report.unchanged += 1;
                self.record_unchanged(copy, job).map(|()| None)
            }
            change @ (SourceChange::None | SourceChange::Grown) if is_gone => {
                let row = self.swap_with_original(&copy, original, job)?;
                if change == SourceChange::Grown {
                    report.grown += 1;
                    return Ok(Some((row, StartAt::Resume)));
                }
                report.unchanged += 1;
                self.save_status_of_known(job, row.id)?;
                self.record_unchanged(row, job).map(|()| None)
            }
            // Its content now differs: it becomes an ordinary source.
            SourceChange::None | SourceChange::Grown | SourceChange::Rewritten => {
                Ok(Some((diverged, StartAt::Beginning)))
            }
        }
    }

    /// Swaps a copy with its original, which is gone. Returns the row that has the documents.
    fn swap_with_original(
        &mut self,
        copy: &SourceRow,
        original: SourceRow,
        job: &IndexJob,
    ) -> Result<SourceRow, Error> {
        self.catalogue.drop_copy(copy.id)?;
        let row = SourceRow {
            path: job.path.clone(),
            gone: Gone::There,
            archive_copy: None,
            archived_length: 0,
            ..original.clone()
        };
        self.catalogue.put(&row)?;
        // A source that is gone and was never archived cannot be asked for.
        if original.archive_copy.is_some() {
            let copy_of = Some(original.id);
            self.catalogue.put(&SourceRow { id: 0, doc_group: 0, tail: 0, copy_of, gone: Gone::Gone, ..original })?;
        }
        Ok(row)
    }

    /// Records that a source is unchanged except for its path or the time it was seen.
    fn record_unchanged(&mut self, row: SourceRow, job: &IndexJob) -> Result<(), Error> {
        if row.gone != Gone::There {
            self.unresolved.insert(row.session);
        }
        let row = SourceRow { path: job.path.clone(), stamp: job.stamp, seen: self.plan.now, gone: Gone::There, ..row };
        self.catalogue.put(&row)?;
        self.archive_source(&row)
    }

    /// Whether a file with an unknown path has the content of a known source.
    fn find_known_content(&mut self, job: &IndexJob, file: &mut File) -> Result<KnownContent, Error> {
        let unreadable = |error| Error::at(&job.path, Problem::Unreadable, error);
        let length = job.stamp.size.min(FINGERPRINT_SIZE);
        if length == 0 {
            return Ok(KnownContent::New);
        }
        let head = head_of(file, length).map_err(unreadable)?;
        // A file that the archive has under this path did not move here: a killed run has seen it before.
        let may_have_moved = !self.archive()?.has_copy_at(&job.path);
        let mut copy = None;
        for row in self.catalogue.sources_with_head(head)? {
            let end = row.read_end();
            let begins = row.head_length == length && end <= job.stamp.size;
            if !begins || tail_of(file, end).map_err(unreadable)? != row.tail_hash {
                continue;
            }
            let grows = row.stable_until > 0 || row.stamp.size == job.stamp.size;
            if may_have_moved && is_missing(&row.path) && grows {
                return Ok(KnownContent::moved(row, &job.path));
            }
            // Another source with the same content may be the one that moved.
            let same_size = copy.is_none() && row.stamp.size == job.stamp.size;
            if same_size && change::is_copy(&row.path, &job.path).unwrap_or(false) {
                copy = Some(row);
            }
        }
        for row in self.catalogue.gone_copies_with_head(head)? {
            let end = row.read_end();
            let grows = row.stable_until > 0 || row.stamp.size == job.stamp.size;
            let may_be = grows && end <= job.stamp.size && row.head_length == length && is_missing(&row.path);
            let may_be = may_be && may_have_moved && self.archive()?.has_own(&row);
            if may_be && tail_of(file, end).map_err(unreadable)? == row.tail_hash {
                return Ok(KnownContent::moved(row, &job.path));
            }
        }
        if let Some(row) = copy {
            return Ok(KnownContent::Copy(SourceRow {
                id: 0,
                path: job.path.clone(),
                stamp: job.stamp,
                seen: self.plan.now,
                doc_group: 0,
                tail: 0,
                copy_of: Some(row.id),
                gone: Gone::There,
                archive_copy: None,
                archived_length: 0,
                ..row
            }));
        }
        let short_heads = if may_have_moved { self.catalogue.short_heads(length)? } else { Vec::new() };
        for (id, head, length) in short_heads {
            if head_of(file, length).map_err(unreadable)? == head
                && let Some(row) = self.catalogue.source(id)?
                && row.stable_until <= job.stamp.size
                && tail_of(file, row.stable_until).map_err(unreadable)? == row.tail_hash
                && is_missing(&row.path)
                && (row.copy_of.is_none() || self.archive()?.has_own(&row))
            {
                return Ok(KnownContent::moved(row, &job.path));
            }
        }
        Ok(KnownContent::New)
    }

    #[expect(clippy::too_many_arguments, reason = "the source, the position in it, and the receivers")]
    fn read_source(
        &mut self,
        job: &IndexJob,
        file: File,
        mut row: SourceRow,
        mut start: StartAt,
        report: &mut IndexReport,
        progress: &mut IndexProgress,
        observer: &mut dyn RunObserver,
    ) -> Result<(), Error> {
        self.status = None;
        let Some((format, access)) = self.format_of(job, &file, &row, start, report)? else { return Ok(()) };
        let mut left = None;
        if start == StartAt::Resume && format.info().name != row.format {
            // The format turned out to be another one: its documents are retired, and its session is determined again.
            (report.grown, report.rewritten) = (report.grown.saturating_sub(1), report.rewritten + 1);
            left = Some(row.session);
            (row.session, row.thread, start) = (0, None, StartAt::Beginning);
        }
        let mut displaced = (start == StartAt::Beginning && row.id != 0 && row.session != 0).then(|| row.clone());
        if displaced.is_some() {
            // A rewritten file may record another session.
            (row.session, row.thread) = (0, None);
        }
        (row.format, row.access) = (format.info().name.to_owned(), access);
        let mut before = self.version_before(&row, start)?;
        let mut file = file;
        loop {
            self.reading = (row.id != 0).then_some(row.id);
            self.content_read = None;
            let from = row.stable_until;
            let writer = self.take_writer()?;
            let read = match access {
                Access::ByRecord => {
                    self.read_on(&writer, job, &mut file, format, &mut row, start, report, progress, observer)
                }
                Access::Whole => self.read_whole(&writer, job, format, &mut row, report, progress),
            };
            self.give_writer(writer);
            let reach = read?;
            if let Some(session) = left.take() {
                self.catalogue.drop_session_without_sources(session)?;
            }
            if let Some(old) = displaced.take()
                && self.split_off_previous_session(&old, &mut row, report)?
            {
                (before, self.seen_keys) = (None, None);
            }
            self.record_fingerprint(job, &mut file, &mut row, reach, start, from)?;
            if reach == ReadExtent::End {
                self.save_status(job, row.id)?;
                if self.has_changed(job, &row) {
                    self.catalogue.put_status(row.id, None)?;
                    self.read_again(job, &mut row)?;
                }
            }
            self.archive_source(&row)?;
            if reach == ReadExtent::End {
                return match (before, self.seen_keys.take()) {
                    (Some((copy, version)), Some(mut seen_keys)) => {
                        self.index_version(&row, copy, version, &mut seen_keys, report)
                    }
                    _ => Ok(()),
                };
            }
            // A piece of this size gets its own commit.
            self.commit()?;
            self.catalogue.begin()?;
            self.catalogue.savepoint()?;
            if observer.is_stopped() {
                report.stopped = true;
                return Ok(());
            }
            start = StartAt::Resume;
        }
    }

    /// Detects the format of a file. A growing source is checked again as long as more bytes can change the answer.
    fn format_of(
        &mut self,
        job: &IndexJob,
        file: &File,
        row: &SourceRow,
        start: StartAt,
        report: &mut IndexReport,
    ) -> Result<Option<(&'static dyn Format, Access)>, Error> {
        let before = row.known_format().filter(|_| start == StartAt::Resume);
        if let Some(format) = before
            && row.stamp.size >= Head::SIZE_MAX as u64
        {
            return Ok(Some((format, row.access)));
        }
        let unreadable = |error| Error::at(&job.path, Problem::Unreadable, error);
        let opened = file.try_clone().map_err(unreadable);
        let source = match opened.and_then(|file| Source::of_open(&job.path, file, Passes::Many)) {
            Ok(source) => source,
            Err(error) => {
                report.warnings.push(Warning::new(&job.path, error.to_string()));
                return Ok(None);
            }
        };
        let expected = job.hints.format;
        let place = PathHints { like: job.hints.like.or(before), ..job.hints.clone() };
        let recognized = source.recognize(&place);
        let format = recognized.map(|recognized| recognized.format).or(before);
        if start == StartAt::Beginning {
            self.collect_status(job, &source, recognized);
        }
        if row.id == 0 {
            match self.forgotten_state(job, format, source.head())? {
                ForgottenState::Unknown => {}
                ForgottenState::Forgotten => {
                    (report.added, report.forgotten) = (report.added.saturating_sub(1), report.forgotten + 1);
                    return Ok(None);
                }
                ForgottenState::Continued { session } => {
                    report.added = report.added.saturating_sub(1);
                    report.continued.push(session.unwrap_or_else(|| job.path.display().to_string()));
                    return Ok(None);
                }
            }
        }
        if format.is_none() {
            if row.id != 0 {
                self.recheck_copies(row)?;
            }
            match row.archive_copy {
                // The archive keeps the previous content.
                Some(_) => {
                    let row = SourceRow { stamp: job.stamp, seen: self.plan.now, gone: Gone::Gone, ..row.clone() };
                    self.catalogue.put(&row)?;
                }
                None if row.id != 0 => self.catalogue.remove(row)?,
                None => {}
            }
            report.added = report.added.saturating_sub(u64::from(row.id == 0));
            report.non_transcripts += 1;
            report.passed_over.add_unrecognized(&job.path, &job.stamp);
            self.catalogue.put_non_transcript(&job.path, job.stamp, expected.map(|format| format.info().name))?;
        }
        Ok(format.map(|format| (format, source.access(format))))
    }

    /// What the archive remembers of a forgotten file.
    fn forgotten_state(
        &mut self,
        job: &IndexJob,
        format: Option<&'static dyn Format>,
        head: &[u8],
    ) -> Result<ForgottenState, Error> {
        let session = session_of(job.hints.session.as_deref(), format, head);
        let format = format.map(|format| format.info().name.to_owned()).unwrap_or_default();
        self.archive()?.forgotten_state(&Label { format, session }, &job.path)
    }

    /// Queues the copies of a changed source for reading, because they have no documents of their own.
    pub(super) fn recheck_copies(&mut self, row: &SourceRow) -> Result<(), Error> {
        for DivergedCopy { id, path } in self.catalogue.recheck_copies(row.id)? {
            match Stat::of(&path) {
                Ok(stat) => {
                    let hints = registry_path_hints(self.catalogue.registry(), &path);
                    self.diverged.push(IndexJob { path, stamp: FileStamp::from(stat), hints, known: Some(id) });
                }
                Err(_) => self.diverged_gone.push(id),
            }
        }
        Ok(())
    }

    /// Records the file's fingerprint, so that the next run can detect changes.
    fn record_fingerprint(
        &mut self,
        job: &IndexJob,
        file: &mut File,
        row: &mut SourceRow,
        reach: ReadExtent,
        start: StartAt,
        from: u64,
    ) -> Result<(), Error> {
        let unreadable = |error| Error::at(&job.path, Problem::Unreadable, error);
        row.seen = self.plan.now;
        row.stamp = match reach {
            ReadExtent::End => job.stamp,
            ReadExtent::Part => FileStamp { size: row.stable_until, changed: 0, ..job.stamp },
        };
        let end = if row.stable_until > 0 { row.stable_until } else { job.stamp.size };
        let head_length = job.stamp.size.min(FINGERPRINT_SIZE);
        row.set_fingerprint(Fingerprint::of(file, head_length, end).map_err(unreadable)?);
        let continues = start == StartAt::Resume && from <= row.stable_until;
        let (summed, before) = if continues { (from, row.content.stable) } else { (0, 0) };
        row.content.stable = change::sum(file, before, summed..row.stable_until).map_err(unreadable)?;
        row.content.whole =
            change::sum(file, row.content.stable, row.stable_until..row.stamp.size).map_err(unreadable)?;
        self.catalogue.put(row).map(drop)
    }

    /// Whether the file differs from what was just read of it.
    fn has_changed(&self, job: &IndexJob, row: &SourceRow) -> bool {
        match (self.content_read, row.access) {
            (Some(read), Access::ByRecord) => read != row.content.whole,
            (_, Access::ByRecord | Access::Whole) => {
                Stat::of(&job.path).map_or(true, |stat| FileStamp::from(stat) != job.stamp)
            }
        }
    }

    /// Has a file that changed while it was read, read again: once more in this run, and otherwise in the next one. Its
    /// recorded fingerprint is not that of the bytes read.
    fn read_again(&mut self, job: &IndexJob, row: &mut SourceRow) -> Result<(), Error> {
        row.head = !row.head;
        row.id = self.catalogue.put(row)?;
        if self.read_again.insert(row.id)
            && let Ok(stat) = Stat::of(&job.path)
        {
            let (path, stamp, hints) = (job.path.clone(), FileStamp::from(stat), job.hints.clone());
            self.diverged.push(IndexJob { path, stamp, hints, known: Some(row.id) });
        }
        Ok(())
    }

    /// Has a source archived. The archive detects whether it already has these bytes.
    fn archive_source(&mut self, row: &SourceRow) -> Result<(), Error> {
        let session = self.catalogue.session_name(row.session)?;
        self.archive_worker.enqueue(row, session);
        Ok(())
    }
}

/// The result of looking for a known source with the same content.
enum KnownContent {
    /// A known source that moved here.
    Moved(SourceRow),
    /// A known source that moved here, but a copy has taken its place: it is read like a new one.
    MovedCopy(SourceRow),
    /// A copy of a source that still exists.
    Copy(SourceRow),
    /// No known source has this content.
    New,
}

impl KnownContent {
    /// The row of a source that is at this path now.
    fn moved(row: SourceRow, path: &Path) -> KnownContent {
        match row.copy_of {
            Some(_) => KnownContent::MovedCopy(SourceRow {
                id: row.id,
                archive_copy: row.archive_copy,
                ..SourceRow::new(path, row.registry)
            }),
            None => KnownContent::Moved(SourceRow { path: path.to_owned(), gone: Gone::There, ..row }),
        }
    }
}

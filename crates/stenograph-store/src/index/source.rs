//! One source of a run: what happened to it, which format it is, and whether it is kept. How its events are taken in is in
//! `reading.rs`.

use std::fs::File;
use std::path::Path;

use stenograph::Registry;
use stenograph::format::{Format, Head};

use super::catalogue::{Gone, PartedCopy, SourceRow, Stamp};
use super::change::{self, Change};
use super::passed::PassedOverReason;
use super::run::{Job, Progress, Report, Run, Watch, is_missing};
use crate::archive::{Label, Memory};
use crate::discover::{Named, Stat, place_of};
use crate::fingerprint::{FINGERPRINT_SIZE, Fingerprint, head_of, tail_of};
use crate::identity::session_of;
use crate::source_file::Access;
use crate::tail::Warning;
use crate::{Error, Passes, Place, Problem, Source};

/// Where reading begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    Anew,
    GoOn,
}

/// Whether all of a source was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    End,
    Part,
}

impl Run<'_> {
    /// Brings one source up to date. What is wrong with a file is a warning; an error is the store's own.
    pub(super) fn take_in(
        &mut self,
        job: &Job,
        report: &mut Report,
        progress: &mut Progress,
        watch: &mut dyn Watch,
    ) -> Result<(), Error> {
        self.catalogue.mark()?;
        self.reading = None;
        match self.try_take_in(job, report, progress, watch) {
            Ok(()) => self.catalogue.unmark(),
            Err(error) if error.place == Place::Path(job.path.clone()) => {
                report.warnings.push(Warning::new(&job.path, error.to_string()));
                self.catalogue.take_back(self.reading)
            }
            Err(error) => Err(error),
        }
    }

    fn try_take_in(
        &mut self,
        job: &Job,
        report: &mut Report,
        progress: &mut Progress,
        watch: &mut dyn Watch,
    ) -> Result<(), Error> {
        let before = progress.bytes_done;
        let unreadable = |error| Error::at(&job.path, Problem::Unreadable, error);
        let mut file = match File::open(&job.path) {
            Ok(file) => file,
            Err(error) => {
                report.warnings.push(Warning::new(&job.path, unreadable(error).to_string()));
                return Ok(());
            }
        };
        let known = match job.known {
            // A copy that took the place of its original has the number of that one now.
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
            Some(row) if row.copy_of.is_some() => match self.look_at_copy(row, job, &mut file, report)? {
                Some(read) => read,
                None => return Ok(()),
            },
            Some(row) => match change::of(&row, &mut file, &job.stamp).map_err(unreadable)? {
                Change::None => {
                    report.unchanged += 1;
                    return self.same(row, job);
                }
                Change::Grown => {
                    report.grown += 1;
                    (row, Start::GoOn)
                }
                Change::Rewritten => {
                    report.rewritten += 1;
                    (row, Start::Anew)
                }
            },
            None => match self.recognise(job, &mut file)? {
                Recognised::Moved(row) if row.stamp.size == job.stamp.size => {
                    report.moved += 1;
                    self.keeper.moved(&row);
                    return self.same(row, job);
                }
                Recognised::Moved(row) => {
                    report.moved += 1;
                    self.keeper.moved(&row);
                    (row, Start::GoOn)
                }
                Recognised::MovedCopy(row) => {
                    report.moved += 1;
                    self.keeper.moved(&row);
                    (row, Start::Anew)
                }
                Recognised::Copy(mut row) => {
                    report.copies += 1;
                    row.id = self.catalogue.put(&row)?;
                    return self.keep(&row);
                }
                Recognised::New => {
                    report.added += 1;
                    (SourceRow::new(&job.path), Start::Anew)
                }
            },
        };
        let read = self.read_source(job, file, row, start, report, progress, watch);
        progress.bytes_done = before + job.stamp.size;
        read
    }

    /// What became of a copy. As long as it says what its original says, it has no documents of its own; once the original is gone, the
    /// copy stands in its place. Gives what has to be read.
    fn look_at_copy(
        &mut self,
        copy: SourceRow,
        job: &Job,
        file: &mut File,
        report: &mut Report,
    ) -> Result<Option<(SourceRow, Start)>, Error> {
        let unreadable = |error| Error::at(&job.path, Problem::Unreadable, error);
        let apart = SourceRow { id: copy.id, ..SourceRow::new(&job.path) };
        let Some(original) = copy.copy_of.map(|id| self.catalogue.source(id)).transpose()?.flatten() else {
            return Ok(Some((apart, Start::Anew)));
        };
        let is_gone = is_missing(&original.path);
        match change::of(&original, file, &job.stamp).map_err(unreadable)? {
            Change::None if !is_gone => {
                report.unchanged += 1;
                self.same(copy, job).map(|()| None)
            }
            same @ (Change::None | Change::Grown) if is_gone => {
                let row = self.swap(&copy, original, job)?;
                if same == Change::Grown {
                    report.grown += 1;
                    return Ok(Some((row, Start::GoOn)));
                }
                report.unchanged += 1;
                self.same(row, job).map(|()| None)
            }
            // It goes its own way: a source like any other.
            Change::None | Change::Grown | Change::Rewritten => Ok(Some((apart, Start::Anew))),
        }
    }

    /// Puts a copy in the place of its original, which is gone, and the original in that of the copy. Gives the row that has the documents.
    fn swap(&mut self, copy: &SourceRow, original: SourceRow, job: &Job) -> Result<SourceRow, Error> {
        self.catalogue.drop_copy(copy.id)?;
        let row =
            SourceRow { path: job.path.clone(), gone: Gone::There, kept: None, kept_length: 0, ..original.clone() };
        self.catalogue.put(&row)?;
        // What nobody kept of a file that is gone is nothing that could be asked for.
        if original.kept.is_some() {
            let copy_of = Some(original.id);
            self.catalogue.put(&SourceRow { id: 0, lot: 0, tail: 0, copy_of, gone: Gone::Gone, ..original })?;
        }
        Ok(row)
    }

    /// Nothing new but where or when it was seen.
    fn same(&mut self, row: SourceRow, job: &Job) -> Result<(), Error> {
        let row = SourceRow { path: job.path.clone(), stamp: job.stamp, seen: self.plan.now, gone: Gone::There, ..row };
        self.catalogue.put(&row)?;
        self.keep(&row)
    }

    /// Whether a file that is not known by its name is known by what it says.
    fn recognise(&mut self, job: &Job, file: &mut File) -> Result<Recognised, Error> {
        let unreadable = |error| Error::at(&job.path, Problem::Unreadable, error);
        let length = job.stamp.size.min(FINGERPRINT_SIZE);
        if length == 0 {
            return Ok(Recognised::New);
        }
        let head = head_of(file, length).map_err(unreadable)?;
        // A file that the archive has under this name did not move here: a run that was killed has seen it.
        let may_have_moved = !self.archive()?.has_copy_at(&job.path);
        let mut copy = None;
        for row in self.catalogue.sources_with_head(head)? {
            let end = row.read_end();
            let begins = row.head_length == length && end <= job.stamp.size;
            if !begins || tail_of(file, end).map_err(unreadable)? != row.tail_hash {
                continue;
            }
            let grows = row.settled > 0 || row.stamp.size == job.stamp.size;
            if may_have_moved && is_missing(&row.path) && grows {
                return Ok(Recognised::moved(row, &job.path));
            }
            // Another one that says the same may be the one that moved.
            let same_size = copy.is_none() && row.stamp.size == job.stamp.size;
            if same_size && change::is_copy(&row.path, &job.path).unwrap_or(false) {
                copy = Some(row);
            }
        }
        for row in self.catalogue.gone_copies_with_head(head)? {
            let end = row.read_end();
            let grows = row.settled > 0 || row.stamp.size == job.stamp.size;
            let may_be = grows && end <= job.stamp.size && row.head_length == length && is_missing(&row.path);
            let may_be = may_be && may_have_moved && self.archive()?.has_own(&row);
            if may_be && tail_of(file, end).map_err(unreadable)? == row.tail_hash {
                return Ok(Recognised::moved(row, &job.path));
            }
        }
        if let Some(row) = copy {
            return Ok(Recognised::Copy(SourceRow {
                id: 0,
                path: job.path.clone(),
                stamp: job.stamp,
                seen: self.plan.now,
                lot: 0,
                tail: 0,
                copy_of: Some(row.id),
                gone: Gone::There,
                kept: None,
                kept_length: 0,
                ..row
            }));
        }
        let short_heads = if may_have_moved { self.catalogue.short_heads(length)? } else { Vec::new() };
        for (id, head, length) in short_heads {
            if head_of(file, length).map_err(unreadable)? == head
                && let Some(row) = self.catalogue.source(id)?
                && row.settled <= job.stamp.size
                && tail_of(file, row.settled).map_err(unreadable)? == row.tail_hash
                && is_missing(&row.path)
                && (row.copy_of.is_none() || self.archive()?.has_own(&row))
            {
                return Ok(Recognised::moved(row, &job.path));
            }
        }
        Ok(Recognised::New)
    }

    #[expect(clippy::too_many_arguments, reason = "what a source is, where it stands, and who wants to know")]
    fn read_source(
        &mut self,
        job: &Job,
        file: File,
        mut row: SourceRow,
        mut start: Start,
        report: &mut Report,
        progress: &mut Progress,
        watch: &mut dyn Watch,
    ) -> Result<(), Error> {
        let Some((format, access)) = self.format_of(job, &row, start, report)? else { return Ok(()) };
        let mut left = None;
        if start == Start::GoOn && format.info().name != row.format {
            // It turned out to be something else: what was made of it goes, and its session is found again.
            (report.grown, report.rewritten) = (report.grown.saturating_sub(1), report.rewritten + 1);
            left = Some(row.session);
            (row.session, row.thread, start) = (0, None, Start::Anew);
        }
        let mut displaced = (start == Start::Anew && row.id != 0 && row.session != 0).then(|| row.clone());
        if displaced.is_some() {
            // What was rewritten may tell another session.
            (row.session, row.thread) = (0, None);
        }
        (row.format, row.access) = (format.info().name.to_owned(), access);
        let mut before = self.version_before(&row, start)?;
        let mut file = file;
        loop {
            self.reading = (row.id != 0).then_some(row.id);
            self.content_read = None;
            let from = row.settled;
            let writer = self.take_writer()?;
            let read = match access {
                Access::ByRecord => {
                    self.read_on(&writer, job, &mut file, format, &mut row, start, report, progress, watch)
                }
                Access::Whole => self.read_whole(&writer, job, format, &mut row, report, progress),
            };
            self.give_writer(writer);
            let reach = read?;
            if let Some(session) = left.take() {
                self.catalogue.drop_session_without_sources(session)?;
            }
            if let Some(old) = displaced.take()
                && self.displace(&old, &mut row, report)?
            {
                (before, self.said) = (None, None);
            }
            self.print(job, &mut file, &mut row, reach, start, from)?;
            if reach == Reach::End && self.has_changed(job, &row) {
                self.read_again(job, &mut row)?;
            }
            self.keep(&row)?;
            if reach == Reach::End {
                return match (before, self.said.take()) {
                    (Some((copy, version)), Some(mut said)) => {
                        self.take_in_version(&row, copy, version, &mut said, report)
                    }
                    _ => Ok(()),
                };
            }
            // So much of one source is worth a commit of its own.
            self.commit()?;
            self.catalogue.begin()?;
            self.catalogue.mark()?;
            if watch.is_stopped() {
                report.stopped = true;
                return Ok(());
            }
            start = Start::GoOn;
        }
    }

    /// Which format a file is. A source that goes on is asked again for as long as more of it can change the answer.
    fn format_of(
        &mut self,
        job: &Job,
        row: &SourceRow,
        start: Start,
        report: &mut Report,
    ) -> Result<Option<(&'static dyn Format, Access)>, Error> {
        let before = Registry::built_in().named(&row.format).filter(|_| start == Start::GoOn);
        if let Some(format) = before
            && row.stamp.size >= Head::SIZE_MAX as u64
        {
            return Ok(Some((format, row.access)));
        }
        let source = match Source::open(&job.path, Passes::Many) {
            Ok(source) => source,
            Err(error) => {
                report.warnings.push(Warning::new(&job.path, error.to_string()));
                return Ok(None);
            }
        };
        let expected = job.named.format;
        let place = Named { like: job.named.like.or(before), ..job.named.clone() };
        let format = source.recognize(&place).map(|recognized| recognized.format).or(before);
        if row.id == 0 {
            match self.memory(job, format, source.head())? {
                Memory::Unknown => {}
                Memory::Forgotten => {
                    (report.added, report.forgotten) = (report.added.saturating_sub(1), report.forgotten + 1);
                    return Ok(None);
                }
                Memory::Continued { session } => {
                    report.added = report.added.saturating_sub(1);
                    report.continued.push(session.unwrap_or_else(|| job.path.display().to_string()));
                    return Ok(None);
                }
            }
        }
        if format.is_none() {
            if row.id != 0 {
                self.part_copies(row)?;
            }
            match row.kept {
                // What it was stays, in the archive.
                Some(_) => {
                    let row = SourceRow { stamp: job.stamp, seen: self.plan.now, gone: Gone::Gone, ..row.clone() };
                    self.catalogue.put(&row)?;
                }
                None if row.id != 0 => self.catalogue.remove(row)?,
                None => {}
            }
            report.added = report.added.saturating_sub(u64::from(row.id == 0));
            report.strangers += 1;
            report.passed_over.add(&job.path, PassedOverReason::Format);
            self.catalogue.stranger(&job.path, job.stamp, expected.map(|format| format.info().name))?;
        }
        Ok(format.map(|format| (format, source.access(format))))
    }

    /// What the archive remembers of a file that was forgotten.
    fn memory(&mut self, job: &Job, format: Option<&'static dyn Format>, head: &[u8]) -> Result<Memory, Error> {
        let session = session_of(job.named.session.as_deref(), format, head);
        let format = format.map(|format| format.info().name.to_owned()).unwrap_or_default();
        self.archive()?.memory(&Label { format, session }, &job.path)
    }

    /// Copies have no documents of their own: when what they are copies of is not what it was, they are read.
    pub(super) fn part_copies(&mut self, row: &SourceRow) -> Result<(), Error> {
        for PartedCopy { id, path } in self.catalogue.part_copies(row.id)? {
            match Stat::of(&path) {
                Ok(stat) => {
                    let named = place_of(&path);
                    self.parted.push(Job { path, stamp: Stamp::from(stat), named, known: Some(id) });
                }
                Err(_) => self.parted_gone.push(id),
            }
        }
        Ok(())
    }

    /// Remembers what the file looked like, so that the next run sees what happened to it.
    fn print(
        &mut self,
        job: &Job,
        file: &mut File,
        row: &mut SourceRow,
        reach: Reach,
        start: Start,
        from: u64,
    ) -> Result<(), Error> {
        let unreadable = |error| Error::at(&job.path, Problem::Unreadable, error);
        row.seen = self.plan.now;
        row.stamp = match reach {
            Reach::End => job.stamp,
            Reach::Part => Stamp { size: row.settled, changed: 0, ..job.stamp },
        };
        let end = if row.settled > 0 { row.settled } else { job.stamp.size };
        let head_length = job.stamp.size.min(FINGERPRINT_SIZE);
        row.set_fingerprint(Fingerprint::of(file, head_length, end).map_err(unreadable)?);
        let goes_on = start == Start::GoOn && from <= row.settled;
        let (summed, before) = if goes_on { (from, row.content.settled) } else { (0, 0) };
        row.content.settled = change::sum(file, before, summed..row.settled).map_err(unreadable)?;
        row.content.whole = change::sum(file, row.content.settled, row.settled..row.stamp.size).map_err(unreadable)?;
        self.catalogue.put(row).map(drop)
    }

    /// Whether a file says something else than what was read of it a moment ago.
    fn has_changed(&self, job: &Job, row: &SourceRow) -> bool {
        match (self.content_read, row.access) {
            (Some(read), Access::ByRecord) => read != row.content.whole,
            (_, Access::ByRecord | Access::Whole) => {
                Stat::of(&job.path).map_or(true, |stat| Stamp::from(stat) != job.stamp)
            }
        }
    }

    /// Has a file read anew that changed while it was read: once more in this run, and else in the next one. What was remembered of it is
    /// not what was read.
    fn read_again(&mut self, job: &Job, row: &mut SourceRow) -> Result<(), Error> {
        row.head = !row.head;
        row.id = self.catalogue.put(row)?;
        if self.read_again.insert(row.id)
            && let Ok(stat) = Stat::of(&job.path)
        {
            let (path, stamp, named) = (job.path.clone(), Stamp::from(stat), job.named.clone());
            self.parted.push(Job { path, stamp, named, known: Some(row.id) });
        }
        Ok(())
    }

    /// Has a source archived. The archive itself knows whether it has these bytes.
    fn keep(&mut self, row: &SourceRow) -> Result<(), Error> {
        let session = self.catalogue.session_name(row.session)?;
        self.keeper.keep(row, session);
        Ok(())
    }
}

/// What a file that is not known by its name turned out to be.
enum Recognised {
    /// A source that stood somewhere else.
    Moved(SourceRow),
    /// A source that stood somewhere else, and whose copy took its place: it is read like a new one.
    MovedCopy(SourceRow),
    /// A copy of one that is still there.
    Copy(SourceRow),
    /// Nobody knows it.
    New,
}

impl Recognised {
    /// A source that stands at this path now.
    fn moved(row: SourceRow, path: &Path) -> Recognised {
        match row.copy_of {
            Some(_) => Recognised::MovedCopy(SourceRow { id: row.id, kept: row.kept, ..SourceRow::new(path) }),
            None => Recognised::Moved(SourceRow { path: path.to_owned(), gone: Gone::There, ..row }),
        }
    }
}

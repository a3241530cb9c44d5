//! The events of one source on their way into the index: from where the last run left off, as a whole, or out of the archive. Which
//! source, and why, is in `source.rs`.

use std::collections::HashSet;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use stenograph::format::{Format, Want};
use stenograph::ledger::CountingState;
use stenograph::model::Span;
use stenograph::read::Reading;
use xxhash_rust::xxh3::xxh3_64;

use super::catalogue::{Gone, SourceId, SourceRow, Stamp, Tally};
use super::change;
use super::intake::Intake;
use super::place::Said;
use super::run::{Job, Progress, Report, Run, Watch, is_missing};
use super::source::{Reach, Start};
use super::text::TextWriter;
use crate::decode::{Counter, Guard, decode};
use crate::discover::Named;
use crate::fingerprint::FINGERPRINT_SIZE;
use crate::recover;
use crate::session_files::Tells;
use crate::tail::Warning;
use crate::{Error, Passes, Place, Problem, Source};

/// How much is read at a time.
const CHUNK_SIZE: usize = 256 << 10;

/// How many bytes of one source are read between two commits.
const PIECE_SIZE: u64 = 1 << 30;

/// Files touched are told to the database so many at a time.
const TOUCHES_MAX: usize = 4096;

impl Run<'_> {
    /// Reads lines from where the last run left off, as far as a batch goes.
    #[expect(clippy::too_many_arguments, reason = "what a source is, where it stands, and who wants to know")]
    pub(super) fn read_on(
        &mut self,
        writer: &TextWriter,
        job: &Job,
        file: &mut File,
        format: &'static dyn Format,
        row: &mut SourceRow,
        start: Start,
        report: &mut Report,
        progress: &mut Progress,
        watch: &mut dyn Watch,
    ) -> Result<Reach, Error> {
        let unreadable = |error| Error::at(&job.path, Problem::Unreadable, error);
        self.catalogue.bury(row.tail)?;
        (row.tail, row.tail_events) = (0, 0);
        if start == Start::Anew {
            self.renew(row)?;
        }
        let (batch, tail_lot) = (self.batch, self.catalogue.new_lot()?);
        let mut intake = Intake::resumed(writer, format, batch, row, self.catalogue.ledger_state(row.lot)?);
        intake.keys = self.said.as_ref().map(|_| HashSet::new());
        let at = Span { offset: row.settled, length: 0, line: row.line };
        let mut reading = Reading::from_line(format, Want::All, at);
        file.seek(SeekFrom::Start(row.settled)).map_err(unreadable)?;
        let mut left = job.stamp.size.saturating_sub(row.settled);
        let mut content = crc32fast::Hasher::new_with_initial(if row.settled > 0 { row.content.settled } else { 0 });
        let (mut buffer, mut taken) = (vec![0; CHUNK_SIZE], 0_u64);
        let mut reach = Reach::End;
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
            reading.feed(chunk, &mut intake);
            left -= length as u64;
            taken += length as u64;
            progress.bytes_done += length as u64;
            watch.progress(progress);
            if let Some(failed) = intake.failed.take() {
                return Err(failed);
            }
            if intake.touches.len() > TOUCHES_MAX {
                self.catalogue.touch_all(&mut intake.touches)?;
            }
            if intake.is_page_full() {
                self.catalogue.put_page(row.lot, intake.turn_page())?;
            }
            if left > 0 && (taken >= PIECE_SIZE || watch.is_stopped()) {
                reach = Reach::Part;
                break;
            }
        }
        self.content_read = (reach == Reach::End).then(|| content.finalize());
        report.events += intake.event - row.lot_events;
        report.bytes += taken;
        row.settled = reading.stable_until();
        row.lot_events = intake.event;
        row.trail = intake.state();
        self.catalogue.put_page(row.lot, intake.turn_page())?;
        if reach == Reach::End && row.settled < job.stamp.size {
            intake.lot = tail_lot;
            reading.end(&mut intake);
            row.tail_events = intake.event - row.lot_events;
            row.tail = if row.tail_events > 0 { tail_lot } else { 0 };
            if row.tail != 0 {
                self.catalogue.put_page(row.tail, intake.turn_page())?;
            }
            report.events += row.tail_events;
        }
        self.finish(job, format, row, intake)?;
        self.read += taken;
        Ok(reach)
    }

    /// Reads sources that are gone out of the archive: an index that is made anew must not forget them.
    pub(super) fn take_in_kept(&mut self, report: &mut Report) -> Result<(), Error> {
        let mut copies = self.archive()?.copies();
        // The longest first: a shorter one may be how it began.
        copies.sort_by_key(|copy| std::cmp::Reverse(copy.length));
        let strangers = self.catalogue.strangers()?;
        for copy in copies {
            let known = self.catalogue.source_at(&copy.path)?.is_some();
            // A file that became unrecognisable hides what it was no more than one that is gone.
            if known || !is_missing(&copy.path) && !strangers.contains_key(&copy.path) {
                continue;
            }
            let stamp = Stamp { size: copy.length, changed: copy.modified_ns, ..Stamp::default() };
            let (kept, kept_length, format) = (Some(copy.id.to_string()), copy.length, copy.label.format);
            let row = SourceRow { kept, kept_length, format, stamp, ..SourceRow::new(&copy.path) };
            self.take_in_gone(row, copy.label.session, report)?;
        }
        Ok(())
    }

    /// Takes in a source that only the archive has: as a copy where another source says all of it.
    fn take_in_gone(&mut self, row: SourceRow, session: Option<String>, report: &mut Report) -> Result<(), Error> {
        let Some(format) = stenograph::format::named(&row.format) else { return Ok(()) };
        report.gone += 1;
        let Some(original) = self.original_of(&row, session.as_deref())? else {
            return self.take_in_one_kept(format, session, row, report);
        };
        let SourceRow { path, stamp, kept, kept_length, .. } = row;
        let copy_of = Some(original.id);
        let of_copy = SourceRow { id: 0, path, stamp, copy_of, kept, kept_length, lot: 0, tail: 0, ..original };
        self.catalogue.put(&SourceRow { gone: Gone::Gone, ..of_copy }).map(drop)
    }

    /// Where a file tells another session than it did: what it told stays, in the archive under a path of its own, and the file is a new
    /// source. Gives whether it is so.
    pub(super) fn displace(
        &mut self,
        old: &SourceRow,
        row: &mut SourceRow,
        report: &mut Report,
    ) -> Result<bool, Error> {
        let name = self.catalogue.session_name(old.session)?;
        if old.session == row.session || name == self.catalogue.session_name(row.session)? {
            return Ok(false);
        }
        let is_journal = recover::is_journal_name(&row.path);
        if let Some(name) = name.filter(|_| old.kept.is_some() && !is_journal) {
            let path = self.free_path(&old.path, &name)?;
            let gone = SourceRow { id: 0, path, ..old.clone() };
            self.keeper.moved(&gone);
            self.archive()?;
            self.archive.iter_mut().for_each(|archive| archive.will_move(&gone));
            (row.kept, row.kept_length) = (None, 0);
            self.catalogue.put(row)?;
            let SourceRow { path, stamp, kept, kept_length, format, .. } = gone;
            let gone = SourceRow { stamp, kept, kept_length, format, ..SourceRow::new(&path) };
            self.take_in_gone(gone, Some(name), report)?;
        }
        self.catalogue.drop_session_without_sources(old.session)?;
        Ok(!is_journal)
    }

    /// A path that no source has, for what a file told before another session took its place: with the name of the session in it.
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

    fn take_in_one_kept(
        &mut self,
        format: &'static dyn Format,
        session: Option<String>,
        mut row: SourceRow,
        report: &mut Report,
    ) -> Result<(), Error> {
        let named = Named { format: Some(format), session, ..Named::default() };
        let job = Job { path: row.path.clone(), stamp: row.stamp, named, known: None };
        let writer = self.take_writer()?;
        let taken = self.read_kept(&writer, &job, format, &mut row, report);
        self.give_writer(writer);
        taken
    }

    /// Reads a copy that is gone out of the archive: what it was a copy of says something else now.
    pub(super) fn take_in_parted(&mut self, id: SourceId, report: &mut Report) -> Result<(), Error> {
        let Some(copy) = self.catalogue.source(id)?.filter(|row| row.copy_of.is_some()) else { return Ok(()) };
        // Another archive may be in the place of the one that had it.
        if !self.archive()?.has_own(&copy) {
            return Ok(());
        }
        let Some(format) = stenograph::format::named(&copy.format) else { return Ok(()) };
        let session = self.catalogue.session_name(copy.session)?;
        let (stamp, kept, kept_length) = (Stamp { size: copy.kept_length, ..copy.stamp }, copy.kept, copy.kept_length);
        let row = SourceRow { id, format: copy.format, stamp, kept, kept_length, ..SourceRow::new(&copy.path) };
        self.take_in_one_kept(format, session, row, report)
    }

    /// The source that says all that a kept copy says: the file that was copied from it, perhaps with more at its end.
    fn original_of(&mut self, kept: &SourceRow, session: Option<&str>) -> Result<Option<SourceRow>, Error> {
        let Some(mut stream) = self.archive()?.read(kept, 0)? else { return Ok(None) };
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
            // A short file that has grown since begins with more than it had.
            for found in self.catalogue.sessions_named(session)?.iter().filter(|found| found.name == session) {
                alike.extend(self.catalogue.sources_of(found.id)?);
            }
        }
        for row in alike {
            if row.stamp.size < kept.kept_length || row.path == kept.path || row.copy_of.is_some() {
                continue;
            }
            let archive = self.archive()?;
            let Some(stream) = archive.read(kept, 0)? else { return Ok(None) };
            let is_same = match File::open(&row.path) {
                Ok(file) => change::is_same(file.take(kept.kept_length), stream),
                // Both are gone.
                Err(_) => match archive.read(&row, 0)? {
                    Some(other) => change::is_same(other.take(kept.kept_length), stream),
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
        job: &Job,
        format: &'static dyn Format,
        row: &mut SourceRow,
        report: &mut Report,
    ) -> Result<(), Error> {
        let kept_length = row.kept_length;
        self.renew(row)?;
        row.kept_length = kept_length;
        let mut intake = Intake::resumed(writer, format, self.batch, row, CountingState::default());
        let place = Place::Path(job.path.clone());
        if let Some(stream) = self.archive()?.read(row, 0)? {
            let stream = decode(stream, &place, &Counter::default(), Guard::USUAL);
            read_through(format, stream, &mut intake, job, report)?;
        }
        (row.lot_events, row.trail) = (intake.event, intake.state());
        self.catalogue.put_page(row.lot, intake.turn_page())?;
        report.events += intake.event;
        self.finish(job, format, row, intake)?;
        self.print_kept(row)?;
        row.gone = Gone::Gone;
        self.catalogue.put(row).map(drop)
    }

    /// Remembers how a source began and ended that only the archive has: a copy of it does, too.
    fn print_kept(&mut self, row: &mut SourceRow) -> Result<(), Error> {
        let (mut begin, mut end) = (Vec::new(), Vec::new());
        let archive = self.archive()?;
        if let Some(stream) = archive.read(row, 0)?
            && stream.take(FINGERPRINT_SIZE).read_to_end(&mut begin).is_ok()
        {
            (row.head, row.head_length) = (xxh3_64(&begin), begin.len() as u64);
        }
        if row.stamp.size == row.kept_length
            && let Some(mut stream) = archive.read(row, row.kept_length.saturating_sub(FINGERPRINT_SIZE))?
            && stream.read_to_end(&mut end).is_ok()
        {
            row.tail_hash = xxh3_64(&end);
        }
        Ok(())
    }

    /// Reads what only makes sense as a whole.
    pub(super) fn read_whole(
        &mut self,
        writer: &TextWriter,
        job: &Job,
        format: &'static dyn Format,
        row: &mut SourceRow,
        report: &mut Report,
        progress: &mut Progress,
    ) -> Result<Reach, Error> {
        self.catalogue.bury(row.tail)?;
        (row.tail, row.tail_events) = (0, 0);
        self.renew(row)?;
        let mut intake = Intake::resumed(writer, format, self.batch, row, CountingState::default());
        intake.keys = self.said.as_ref().map(|_| HashSet::new());
        let mut source = Source::open(&job.path, Passes::Many)?;
        read_through(format, source.pass(), &mut intake, job, report)?;
        row.lot_events = intake.event;
        row.trail = intake.state();
        self.catalogue.put_page(row.lot, intake.turn_page())?;
        report.events += intake.event;
        report.bytes += job.stamp.size;
        progress.bytes_done += job.stamp.size;
        self.finish(job, format, row, intake)?;
        self.read += job.stamp.size;
        Ok(Reach::End)
    }

    /// Begins a source anew: what it said before is put aside.
    fn renew(&mut self, row: &mut SourceRow) -> Result<(), Error> {
        self.catalogue.bury(row.lot)?;
        if row.id != 0 {
            self.catalogue.forget_unknown(row.id)?;
            self.part_copies(row)?;
        }
        row.lot = self.catalogue.new_lot()?;
        (row.lot_events, row.settled, row.line) = (0, 0, 1);
        // What the archive has is what the file was.
        row.kept_length = 0;
        (row.trail, row.tally, row.first_key) = (String::new(), Tally::default(), None);
        Ok(())
    }

    /// Puts into the catalogue what was found.
    fn finish(
        &mut self,
        job: &Job,
        format: &'static dyn Format,
        row: &mut SourceRow,
        mut intake: Intake<'_>,
    ) -> Result<(), Error> {
        self.catalogue.touch_all(&mut intake.touches)?;
        row.tally = std::mem::take(&mut intake.tally);
        row.first_key = intake.first_key;
        if let (Some(said), Some(keys)) = (&mut self.said, intake.keys.take()) {
            said.extend(keys);
        }
        row.tells = Tells::of(format);
        let said = Said {
            sessions: std::mem::take(&mut intake.sessions),
            thread: intake.thread.take().flatten(),
            recording: intake.recording.take(),
        };
        let unknown = std::mem::take(&mut intake.unknown);
        drop(intake);
        if row.session == 0 {
            self.place(job, format, row, said)?;
            self.unordered.extend(row.first_key);
        }
        self.unresolved.insert(row.session);
        row.path.clone_from(&job.path);
        (row.gone, row.copy_of) = (Gone::There, None);
        row.id = self.catalogue.put(row)?;
        for (name, (count, line)) in unknown {
            self.catalogue.count_unknown(row.id, &name, count, line, self.batch)?;
        }
        Ok(())
    }
}

/// Reads a stream to its end. What is damaged further on is still a source up to there, with a warning.
fn read_through(
    format: &'static dyn Format,
    stream: Result<impl Read, Error>,
    intake: &mut Intake<'_>,
    job: &Job,
    report: &mut Report,
) -> Result<(), Error> {
    let mut reading = Reading::new(format, Want::All);
    let read = match stream {
        Ok(mut stream) => reading.feed_all(&mut stream, intake).map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    if let Err(error) = read {
        report.warnings.push(Warning::new(&job.path, error));
    }
    reading.end(intake);
    intake.failed.take().map_or(Ok(()), Err)
}

//! One source of a run: what happened to it, which format it is, and its events from where the last run left off.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use stenograph::format::{Detected, Format, Want, detect};
use stenograph::frame::Framing;
use stenograph::model::Span;
use stenograph::read::Reading;

use super::catalogue::{Gone, Packed, SourceRow, Stamp, Tally};
use super::change::{self, Change};
use super::intake::Intake;
use super::run::{Job, Progress, Report, Run, Watch, is_missing};
use super::text::TextWriter;
use crate::archive::Label;
use crate::decode::{Container, Counter, Guard, decode};
use crate::discover::{Named, Stat};
use crate::tail::Remark;
use crate::{Error, Passes, Place, Problem, Source};

/// How much is read at a time.
const CHUNK_SIZE: usize = 256 << 10;

/// How many bytes of one source are read between two commits.
const PIECE_SIZE: u64 = 1 << 30;

/// Files touched are told to the database so many at a time.
const TOUCHES_MAX: usize = 4096;

/// Where reading begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    Anew,
    GoOn,
}

/// Whether all of a source was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    End,
    Part,
}

impl Run<'_> {
    /// Brings one source up to date. What is wrong with a file is a remark; an error is the store's own.
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
                report.remarks.push(Remark::new(&job.path, error.to_string()));
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
                report.remarks.push(Remark::new(&job.path, unreadable(error).to_string()));
                return Ok(());
            }
        };
        let known = match job.known {
            Some(id) => self.catalogue.source(id)?,
            None => None,
        };
        let (row, start) = match known {
            // A copy has no documents of its own: once it changes it is a source like any other.
            Some(row) if row.copy_of.is_some() => (SourceRow { id: row.id, ..SourceRow::new(&job.path) }, Start::Anew),
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
                Recognised::Copy(row) => {
                    report.copies += 1;
                    return self.catalogue.put(&row).map(drop);
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

    /// Nothing new but where or when it was seen.
    fn same(&mut self, row: SourceRow, job: &Job) -> Result<(), Error> {
        let row = SourceRow { path: job.path.clone(), stamp: job.stamp, seen: self.plan.now, gone: Gone::There, ..row };
        self.catalogue.put(&row)?;
        self.keep(&row)
    }

    /// Whether a file that is not known by its name is known by what it says.
    fn recognise(&self, job: &Job, file: &mut File) -> Result<Recognised, Error> {
        let unreadable = |error| Error::at(&job.path, Problem::Unreadable, error);
        let length = job.stamp.size.min(change::PRINT_SIZE);
        if length == 0 {
            return Ok(Recognised::New);
        }
        let head = change::head(file, length).map_err(unreadable)?;
        let mut copy = None;
        for row in self.catalogue.sources_with_head(head)? {
            let mark = if row.settled > 0 { row.settled } else { row.stamp.size };
            let begins = row.head_length == length && mark <= job.stamp.size;
            if !begins || change::tail(file, mark).map_err(unreadable)? != row.tail_hash {
                continue;
            }
            let grows = row.settled > 0 || row.stamp.size == job.stamp.size;
            if is_missing(&row.path) && grows {
                return Ok(Recognised::Moved(SourceRow { path: job.path.clone(), gone: Gone::There, ..row }));
            }
            // Another one that says the same may be the one that moved.
            let same_size = copy.is_none() && row.stamp.size == job.stamp.size;
            if same_size && change::is_copy(&row.path, &job.path).unwrap_or(false) {
                copy = Some(row);
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
                ..row
            }));
        }
        for (id, head, length) in self.catalogue.short_heads(length)? {
            if change::head(file, length).map_err(unreadable)? == head
                && let Some(row) = self.catalogue.source(id)?
                && row.settled <= job.stamp.size
                && change::tail(file, row.settled).map_err(unreadable)? == row.tail_hash
                && is_missing(&row.path)
            {
                return Ok(Recognised::Moved(SourceRow { path: job.path.clone(), gone: Gone::There, ..row }));
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
        let Some((format, container)) = self.format_of(job, &row, start, report)? else { return Ok(()) };
        row.format = format.info().name.to_owned();
        row.container = if container == Container::Plain { Packed::Plain } else { Packed::Packed };
        let in_pieces =
            container == Container::Plain && format.info().traits.pieces && format.info().framing == Framing::Lines;
        let mut file = file;
        loop {
            self.reading = (row.id != 0).then_some(row.id);
            let writer = self.take_writer()?;
            let read = if in_pieces {
                self.read_on(&writer, job, &mut file, format, &mut row, start, report, progress, watch)
            } else {
                self.read_whole(&writer, job, format, &mut row, report, progress)
            };
            self.give_writer(writer);
            let reach = read?;
            self.print(job, &mut file, &mut row, reach)?;
            self.keep(&row)?;
            if reach == Reach::End {
                return Ok(());
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

    /// Which format a file is: by what it says. Where that leaves a choice, its place decides.
    fn format_of(
        &mut self,
        job: &Job,
        row: &SourceRow,
        start: Start,
        report: &mut Report,
    ) -> Result<Option<(&'static dyn Format, Container)>, Error> {
        if start == Start::GoOn
            && let Some(format) = stenograph::format::named(&row.format)
        {
            return Ok(Some((format, Container::Plain)));
        }
        let source = match Source::open(&job.path, Passes::Many) {
            Ok(source) => source,
            Err(error) => {
                report.remarks.push(Remark::new(&job.path, error.to_string()));
                return Ok(None);
            }
        };
        let mut first = [0; 4];
        let read = File::open(&job.path).and_then(|mut file| file.read(&mut first)).unwrap_or(0);
        let container = Container::of(first.get(..read).unwrap_or_default());
        let expected = job.named.format;
        let format = match detect(source.head()) {
            Detected::Format(format) => Some(format),
            Detected::Tie(formats) => {
                let is = |format: &&'static dyn Format, other: Option<&'static dyn Format>| {
                    other.is_some_and(|other| other.info().name == format.info().name)
                };
                let by_place =
                    formats.iter().find(|format| is(format, expected) || is(format, job.named.like)).copied();
                by_place.or_else(|| formats.first().copied())
            }
            Detected::Unknown => None,
        };
        if row.id == 0 && self.is_forgotten(job, format)? {
            (report.added, report.forgotten) = (report.added.saturating_sub(1), report.forgotten + 1);
            return Ok(None);
        }
        if format.is_none() {
            if row.id != 0 {
                self.part_copies(row)?;
                self.catalogue.remove(row)?;
            }
            report.added = report.added.saturating_sub(u64::from(row.id == 0));
            report.strangers += 1;
            self.catalogue.stranger(&job.path, job.stamp, expected.map(|format| format.info().name))?;
        }
        Ok(format.map(|format| (format, container)))
    }

    /// Reads lines from where the last run left off, as far as a batch goes.
    #[expect(clippy::too_many_arguments, reason = "what a source is, where it stands, and who wants to know")]
    fn read_on(
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
        let mut intake = Intake::resumed(writer, format, batch, row);
        let at = Span { offset: row.settled, length: 0, line: row.line };
        let mut reading = Reading::from_line(format, Want::All, at);
        file.seek(SeekFrom::Start(row.settled)).map_err(unreadable)?;
        let mut left = job.stamp.size.saturating_sub(row.settled);
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
            if left > 0 && (taken >= PIECE_SIZE || watch.is_stopped()) {
                reach = Reach::Part;
                break;
            }
        }
        report.events += intake.event - row.lot_events;
        report.bytes += taken;
        row.settled = reading.settled();
        row.lot_events = intake.event;
        row.trail = intake.state();
        if reach == Reach::End && row.settled < job.stamp.size {
            intake.lot = tail_lot;
            reading.end(&mut intake);
            row.tail_events = intake.event - row.lot_events;
            row.tail = if row.tail_events > 0 { tail_lot } else { 0 };
            report.events += row.tail_events;
        }
        self.finish(job, format, row, intake)?;
        self.read += taken;
        Ok(reach)
    }

    /// Whether the user wanted a file to be forgotten.
    fn is_forgotten(&mut self, job: &Job, format: Option<&'static dyn Format>) -> Result<bool, Error> {
        let mut begin = Vec::new();
        let read = File::open(&job.path).and_then(|file| file.take(change::PRINT_SIZE).read_to_end(&mut begin));
        let label = Label {
            format: format.map(|format| format.info().name.to_owned()).unwrap_or_default(),
            session: job.named.session.clone(),
        };
        Ok(read.is_ok() && self.archive()?.is_forgotten(&label, &begin))
    }

    /// Reads sources that are gone out of the archive: an index that is made anew must not forget them.
    pub(super) fn take_in_kept(&mut self, report: &mut Report) -> Result<(), Error> {
        for copy in self.archive()?.copies() {
            let known = self.catalogue.source_at(&copy.path)?.is_some();
            let Some(format) = stenograph::format::named(&copy.label.format) else { continue };
            if known || !is_missing(&copy.path) {
                continue;
            }
            let mut row = SourceRow::new(&copy.path);
            row.kept = Some(copy.id.to_string());
            row.kept_length = copy.length;
            row.format = format.info().name.to_owned();
            row.stamp = Stamp { size: copy.length, changed: copy.modified_ns, ..Stamp::default() };
            let named = Named { format: Some(format), session: copy.label.session.clone(), ..Named::default() };
            let job = Job { path: copy.path.clone(), stamp: row.stamp, named, known: None };
            let writer = self.take_writer()?;
            let taken = self.read_kept(&writer, &job, format, &mut row, report);
            self.give_writer(writer);
            taken?;
            report.gone += 1;
        }
        Ok(())
    }

    fn read_kept(
        &mut self,
        writer: &TextWriter,
        job: &Job,
        format: &'static dyn Format,
        row: &mut SourceRow,
        report: &mut Report,
    ) -> Result<(), Error> {
        self.renew(row)?;
        let mut intake = Intake::resumed(writer, format, self.batch, row);
        let mut reading = Reading::new(format, Want::All);
        let place = Place::Path(job.path.clone());
        if let Some(stream) = self.archive()?.read(row, 0)? {
            let stream = decode(stream, &place, &Counter::default(), Guard::USUAL);
            let read = stream.map(|mut stream| reading.feed_all(&mut stream, &mut intake));
            if let Ok(Err(error)) = read {
                report.remarks.push(Remark::new(&job.path, error.to_string()));
            }
        }
        reading.end(&mut intake);
        if let Some(failed) = intake.failed.take() {
            return Err(failed);
        }
        (row.lot_events, row.trail) = (intake.event, intake.state());
        report.events += intake.event;
        self.finish(job, format, row, intake)?;
        row.gone = Gone::Gone;
        self.catalogue.put(row).map(drop)
    }

    /// Reads what only makes sense as a whole.
    fn read_whole(
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
        let batch = self.batch;
        let mut intake = Intake::resumed(writer, format, batch, row);
        let mut reading = Reading::new(format, Want::All);
        let mut source = Source::open(&job.path, Passes::Many)?;
        let read = source.pass().map(|mut pass| reading.feed_all(&mut pass, &mut intake));
        // What is damaged further on is still a source up to there.
        if let Ok(Err(error)) = read {
            report.remarks.push(Remark::new(&job.path, error.to_string()));
        }
        reading.end(&mut intake);
        if let Some(failed) = intake.failed.take() {
            return Err(failed);
        }
        row.lot_events = intake.event;
        row.trail = intake.state();
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

    /// Copies have no documents of their own: when what they are copies of is not what it was, they are read.
    fn part_copies(&mut self, row: &SourceRow) -> Result<(), Error> {
        for (id, path) in self.catalogue.part_copies(row.id)? {
            if let Ok(stat) = Stat::of(&path) {
                self.parted.push(Job { path, stamp: Stamp::from(stat), named: Named::default(), known: Some(id) });
            }
        }
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
        let (sessions, thread) = (std::mem::take(&mut intake.sessions), intake.thread.take().flatten());
        let unknown = std::mem::take(&mut intake.unknown);
        drop(intake);
        if row.session == 0 {
            self.place(job, format, row, &sessions, thread)?;
        }
        row.path.clone_from(&job.path);
        (row.gone, row.copy_of) = (Gone::There, None);
        row.id = self.catalogue.put(row)?;
        for (name, (count, line)) in unknown {
            self.catalogue.count_unknown(row.id, &name, count, line, self.batch)?;
        }
        Ok(())
    }

    /// Remembers what the file looked like, so that the next run sees what happened to it.
    fn print(&mut self, job: &Job, file: &mut File, row: &mut SourceRow, reach: Reach) -> Result<(), Error> {
        let unreadable = |error| Error::at(&job.path, Problem::Unreadable, error);
        row.seen = self.plan.now;
        row.stamp = match reach {
            Reach::End => job.stamp,
            Reach::Part => Stamp { size: row.settled, changed: 0, ..job.stamp },
        };
        row.head_length = job.stamp.size.min(change::PRINT_SIZE);
        row.head = change::head(file, row.head_length).map_err(unreadable)?;
        let mark = if row.settled > 0 { row.settled } else { job.stamp.size };
        row.tail_hash = change::tail(file, mark).map_err(unreadable)?;
        self.catalogue.put(row).map(drop)
    }

    /// Has a source kept, unless that was done.
    fn keep(&mut self, row: &SourceRow) -> Result<(), Error> {
        if row.kept.is_none() || row.kept_length < row.stamp.size {
            let session = self.catalogue.session_name(row.session)?;
            self.keeper.keep(row, session);
        }
        Ok(())
    }
}

/// What a file that is not known by its name turned out to be.
enum Recognised {
    /// A source that stood somewhere else.
    Moved(SourceRow),
    /// A copy of one that is still there.
    Copy(SourceRow),
    /// Nobody knows it.
    New,
}

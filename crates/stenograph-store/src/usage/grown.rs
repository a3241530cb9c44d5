//! Large sources that grew since they were indexed: the index has the pages of what it read, and only what was appended is counted.

use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use stenograph::format::{Format, Want, named};
use stenograph::ledger::{CallDetail, Counting, CountingState, SourceUsage};
use stenograph::model::Span;
use stenograph::read::Reading;

use crate::fingerprint::WHOLE_SIZE_MAX;
use crate::index::catalogue::{Catalogue, Paged, Pages, SourceRow, Stamp, Stamped};
use crate::index::change::{self, Change};
use crate::source_file::Access;

/// What the index knows of a source that grew.
pub(super) struct Grown {
    format: &'static dyn Format,
    /// The end of what the index settled.
    at: Span,
    /// The pages up to there.
    pages: Vec<SourceUsage>,
    /// The state of the count there.
    state: CountingState,
    /// The session of the source.
    pub session: String,
}

/// What happened to a large file since it was indexed.
pub(super) enum Large {
    /// Nothing, although it was indexed too soon after it was written for its time to prove that.
    Same,
    /// It grew.
    Grown(Box<Grown>),
    /// It is not large, or was rewritten: it is read whole.
    Unknown,
}

impl Large {
    /// Compares a file with what the index knows of it. Small files are read whole: that takes as long as the comparison.
    pub fn of(
        catalogue: &Catalogue,
        known: &Stamped,
        path: &Path,
        now: &Stamp,
        source: &Paged,
        pages: &Pages,
    ) -> Large {
        if known.stamp.size <= WHOLE_SIZE_MAX || now.size < known.stamp.size {
            return Large::Unknown;
        }
        let row = catalogue.source(known.id).ok().flatten().filter(|row| row.copy_of.is_none());
        let Some((row, mut file)) = row.zip(File::open(path).ok()) else { return Large::Unknown };
        match change::of(&row, &mut file, now) {
            Ok(Change::None) => Large::Same,
            Ok(Change::Grown) if row.access == Access::ByRecord && row.settled > WHOLE_SIZE_MAX => {
                let grown = Grown::of(catalogue, &row, source, pages);
                grown.map_or(Large::Unknown, |grown| Large::Grown(Box::new(grown)))
            }
            Ok(Change::Grown | Change::Rewritten) | Err(_) => Large::Unknown,
        }
    }
}

impl Grown {
    fn of(catalogue: &Catalogue, row: &SourceRow, source: &Paged, pages: &Pages) -> Option<Grown> {
        Some(Grown {
            format: named(&row.format)?,
            at: Span { offset: row.settled, length: 0, line: row.line },
            pages: pages.settled(source)?,
            state: catalogue.ledger_state(row.lot).ok()?,
            session: source.session.clone(),
        })
    }

    /// The pages of the whole source.
    pub fn read(
        &self,
        path: &Path,
        calls: CallDetail,
        buffer: &mut [u8],
        done: &AtomicU64,
    ) -> io::Result<Vec<SourceUsage>> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(self.at.offset))?;
        let want = match calls {
            CallDetail::Numbers => Want::Usage,
            CallDetail::Tools => Want::All,
        };
        let mut counting = Counting::resumed(self.format.info().agent, calls, self.state.clone());
        let mut reading = Reading::from_line(self.format, want, self.at);
        done.fetch_add(self.at.offset, Ordering::Relaxed);
        loop {
            match file.read(buffer) {
                Ok(0) => break,
                Ok(length) => {
                    reading.feed(buffer.get(..length).unwrap_or_default(), &mut counting);
                    done.fetch_add(length as u64, Ordering::Relaxed);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        reading.end(&mut counting);
        let mut pages = self.pages.clone();
        pages.push(counting.finish());
        Ok(pages)
    }
}

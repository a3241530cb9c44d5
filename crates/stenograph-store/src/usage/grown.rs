//! Large sources that grew since they were indexed: the index has the pages of the part it read, and only the appended part is
//! counted.

use std::io::{self, Read, Seek as _, SeekFrom};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use stenograph::format::{Format, Wanted};
use stenograph::ledger::{CallCounter, CallDetail, CountingState, SourceUsage};
use stenograph::model::Span;
use stenograph::read::Reading;

use crate::databases;
use crate::fingerprint::WHOLE_SIZE_MAX;
use crate::index::catalogue::{Catalogue, FileStamp, KnownFile, LedgerPages, SourcePages, SourceRow};
use crate::index::change::{self, SourceChange};
use crate::source_file::Access;

/// What the index has of a source that grew.
pub(super) struct Grown {
    format: &'static dyn Format,
    /// The end of the part whose pages are final.
    at: Span,
    /// The pages up to there.
    pages: Vec<SourceUsage>,
    /// The counting state there.
    state: CountingState,
    /// The session of the source.
    pub session: String,
}

/// How a large file changed since it was indexed.
pub(super) enum LargeFile {
    /// Not at all, although it was indexed too soon after a write for its time to prove that.
    Same,
    /// It grew.
    Grown(Box<Grown>),
    /// It is not large, or was rewritten: it is read whole.
    Unknown,
}

impl LargeFile {
    /// Compares a file with the index. Small files are read whole, which takes as long as the comparison.
    pub fn of(
        catalogue: &Catalogue,
        known: &KnownFile,
        path: &Path,
        now: &FileStamp,
        source: &SourcePages,
        pages: &LedgerPages,
    ) -> LargeFile {
        if known.stamp.size <= WHOLE_SIZE_MAX || now.size < known.stamp.size {
            return LargeFile::Unknown;
        }
        let row = catalogue.source(known.id).ok().flatten().filter(|row| row.copy_of.is_none());
        let Some((row, mut file)) = row.zip(databases::open_file(path).ok()) else { return LargeFile::Unknown };
        match change::detect(&row, &mut file, now) {
            Ok(SourceChange::None) => LargeFile::Same,
            Ok(SourceChange::Grown) if row.access == Access::ByRecord && row.stable_until > WHOLE_SIZE_MAX => {
                let grown = Grown::of(catalogue, &row, source, pages);
                grown.map_or(LargeFile::Unknown, |grown| LargeFile::Grown(Box::new(grown)))
            }
            Ok(SourceChange::Grown | SourceChange::Rewritten) | Err(_) => LargeFile::Unknown,
        }
    }
}

impl Grown {
    fn of(catalogue: &Catalogue, row: &SourceRow, source: &SourcePages, pages: &LedgerPages) -> Option<Grown> {
        Some(Grown {
            format: row.known_format()?,
            at: Span { offset: row.stable_until, length: 0, line: row.line },
            pages: pages.final_pages(source)?,
            state: catalogue.ledger_state(row.doc_group).ok()?,
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
        let mut file = databases::open_file(path)?;
        file.seek(SeekFrom::Start(self.at.offset))?;
        let want = match calls {
            CallDetail::Numbers => Wanted::Usage,
            CallDetail::Tools => Wanted::All,
        };
        let mut counting = CallCounter::resumed(self.format.info().agent, calls, self.state.clone());
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

//! What the model calls of an audited session took: the tokens and the cost that `steno usage` counts for the same files.

use std::path::{Path, PathBuf};

use stenograph::ledger::{CallDetail, LedgerBuilder};
use stenograph_store::index::NoObserver;
use stenograph_store::sessions::SessionCost;
use stenograph_store::usage::{UsageRequest, UseIndex, pages};

use super::Options;
use crate::error::CommandError;
use crate::prices;

/// The tokens and the cost of some files; `None` if they are not reported, or if standard input is one of the files, which was
/// read and is gone.
pub(super) fn of_files(options: &Options, files: &[PathBuf]) -> Result<Option<SessionCost>, CommandError> {
    if options.only.is_some() || options.diff || files.iter().any(|file| file == Path::new("-")) {
        return Ok(None);
    }
    let mut files = files.to_vec();
    files.sort();
    files.dedup();
    let request = UsageRequest {
        places: None,
        files: &files,
        below: &[],
        store: &options.place.store()?,
        // The audit has read the files as they are now.
        index: UseIndex::No,
        calls: CallDetail::Numbers,
        threads: 1,
    };
    let mut builder = LedgerBuilder::default();
    pages(&request, &mut NoObserver, &mut |page| page.add_to(&mut builder))?;
    Ok(Some(SessionCost::of_ledger(&builder.finish(), &prices::load()?)))
}

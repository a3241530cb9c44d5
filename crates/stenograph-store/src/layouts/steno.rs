//! The native layout: one stream in one file, which is its own journal.

use std::path::{Path, PathBuf};

use super::{Documents, Ground, Info, JournalKind, Layout, Loaded, Opened, Site, Stamps, Target};
use crate::error::{Error, Problem};
use crate::files::Files;
use crate::journal::Recorded;
use crate::tail::LastLine;

/// The layout.
pub struct Steno;

impl Layout for Steno {
    fn info(&self) -> &'static Info {
        &Info {
            name: "steno",
            title: "one native stream",
            path: "the file, or a folder in which a new one is made (the current folder by default)",
            keys: &[],
        }
    }

    fn open(&self, target: &Target, site: &Site) -> Result<Opened, Error> {
        let given = target.path.clone().unwrap_or_else(|| PathBuf::from("."));
        let path = if given.is_dir() { given.join(new_name(site)) } else { given };
        let same = target.load.as_deref().is_some_and(|load| crate::identity::is_same(load, &path));
        Ok(Opened {
            ground: Ground::of_stream(&path, LastLine::MayLackNewline, site)?,
            kind: JournalKind::Stream,
            documents: None,
            first: Vec::new(),
            stamps: Stamps::Time,
            loaded: if same { Loaded::InPlace } else { Loaded::ToBeRecorded },
            locks: Vec::new(),
            remarks: Vec::new(),
        })
    }

    fn resume(&self, recorded: &Recorded, _site: &Site) -> Result<Box<dyn Documents>, Error> {
        // A stream has no documents beside it, and says so in no header.
        Err(Error::about(&recorded.journal, Problem::NoLayout))
    }

    fn reads(&self, _folder: &Path, _files: &dyn Files) -> Option<Vec<PathBuf>> {
        None
    }
}

fn new_name(site: &Site) -> String {
    let clock = (site.clock)().wall("%Y%m%d-%H%M%S").unwrap_or_default();
    let number = uuid::Uuid::new_v4().simple().to_string();
    format!("{clock}-{}.steno.jsonl", number.get(..8).unwrap_or_default())
}

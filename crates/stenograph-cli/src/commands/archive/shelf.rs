//! Which copies are of which session: by what the index says, else by what the archive says of a copy itself.

use std::collections::HashMap;
use std::path::PathBuf;

use stenograph_store::archive::{Archive, CopyInfo};
use stenograph_store::index::catalogue::{Catalogue, Session, SourceRow};

use crate::error::CommandError;

/// All copies, by what they are known by.
pub struct Shelf {
    copies: HashMap<u32, CopyInfo>,
    by_path: HashMap<PathBuf, u32>,
    by_session: HashMap<String, Vec<u32>>,
    /// How many sessions have a name.
    names: HashMap<String, usize>,
}

/// The copies of a session.
#[derive(Debug, Default)]
pub struct Held {
    /// Those of its sources.
    pub own: Vec<CopyInfo>,
    /// Those that say they are of it, and that no source knows: of files that were moved.
    pub others: Vec<CopyInfo>,
}

impl Shelf {
    /// Everything that is kept.
    pub fn new(archive: &Archive, catalogue: &Catalogue) -> Result<Shelf, CommandError> {
        let copies: HashMap<u32, CopyInfo> = archive.copies().map(|copy| (copy.id.0, copy)).collect();
        let by_path = copies.iter().map(|(id, copy)| (copy.path.clone(), *id)).collect();
        let mut by_session: HashMap<String, Vec<u32>> = HashMap::new();
        for (id, copy) in &copies {
            if let Some(session) = &copy.label.session {
                by_session.entry(session.clone()).or_default().push(*id);
            }
        }
        let mut names: HashMap<String, usize> = HashMap::new();
        for (_, name) in catalogue.session_names()? {
            *names.entry(name).or_default() += 1;
        }
        Ok(Shelf { copies, by_path, by_session, names })
    }

    /// The copies of a session, which has these sources.
    pub fn of(&self, session: &Session, rows: &[SourceRow]) -> Held {
        let by_number = |row: &SourceRow| row.archive_copy.as_deref().and_then(|kept| kept.parse().ok());
        let mut own: Vec<u32> =
            rows.iter().flat_map(|row| [by_number(row), self.by_path.get(&row.path).copied()]).flatten().collect();
        own.sort_unstable();
        own.dedup();
        let named = self.by_session.get(&session.name).map_or(&[][..], Vec::as_slice);
        // A name that several sessions have says nothing about whose copy it is.
        let is_alone = self.names.get(&session.name) == Some(&1);
        let is_other = |id: &&u32| {
            let format = self.copies.get(id).map(|copy| copy.label.format.as_str());
            is_alone && !own.contains(id) && rows.iter().any(|row| Some(row.format.as_str()) == format)
        };
        let mut others: Vec<u32> = named.iter().filter(is_other).copied().collect();
        others.sort_unstable();
        let infos = |ids: Vec<u32>| ids.iter().filter_map(|id| self.copies.get(id).cloned()).collect();
        Held { others: infos(others), own: infos(own) }
    }
}

//! Finds the copies of a session: by the index, else by the label of each copy.

use std::collections::HashMap;
use std::path::PathBuf;

use stenograph_store::archive::{Archive, CopyInfo};
use stenograph_store::index::catalogue::{Catalogue, IndexedSession, SourceRow};

use crate::error::CommandError;

/// All copies, by path and by session.
pub struct CopiesBySession {
    copies: HashMap<u32, CopyInfo>,
    by_path: HashMap<PathBuf, u32>,
    by_session: HashMap<String, Vec<u32>>,
    /// How many sessions share each name.
    names: HashMap<String, usize>,
}

#[derive(Debug, Default)]
pub struct SessionCopies {
    /// Copies of its sources.
    pub own: Vec<CopyInfo>,
    /// Copies labelled with its name that no source refers to: copies of moved files.
    pub others: Vec<CopyInfo>,
}

impl CopiesBySession {
    pub fn new(archive: &Archive, catalogue: &Catalogue) -> Result<CopiesBySession, CommandError> {
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
        Ok(CopiesBySession { copies, by_path, by_session, names })
    }

    /// The copies of a session with these sources.
    pub fn of(&self, session: &IndexedSession, rows: &[SourceRow]) -> SessionCopies {
        let by_id = |row: &SourceRow| row.archive_copy.as_deref().and_then(|kept| kept.parse().ok());
        let mut own: Vec<u32> =
            rows.iter().flat_map(|row| [by_id(row), self.by_path.get(&row.path).copied()]).flatten().collect();
        own.sort_unstable();
        own.dedup();
        let named = self.by_session.get(&session.name).map_or(&[][..], Vec::as_slice);
        // A name that several sessions share does not identify a copy.
        let is_unique = self.names.get(&session.name) == Some(&1);
        let is_other = |id: &&u32| {
            let format = self.copies.get(id).map(|copy| copy.label.format.as_str());
            is_unique && !own.contains(id) && rows.iter().any(|row| Some(row.format.as_str()) == format)
        };
        let mut others: Vec<u32> = named.iter().filter(is_other).copied().collect();
        others.sort_unstable();
        let infos = |ids: Vec<u32>| ids.iter().filter_map(|id| self.copies.get(id).cloned()).collect();
        SessionCopies { others: infos(others), own: infos(own) }
    }
}

//! Lists the contexts of a home and summarises each. It changes none of them.

use std::path::Path;

use super::inbox;
use crate::error::{Error, Problem};
use crate::files::Files;
use crate::layouts::chibi::Context;
use crate::layouts::chibi::context_lock::{self, ContextLockStatus, HEARTBEAT_SECONDS};
use crate::layouts::chibi::entry::{self, ContextEntry};
use crate::layouts::chibi::transcript::WindowState;

impl Context {
    /// Summarises the context.
    pub fn look(&self, files: &dyn Files, now: u64) -> Result<ContextSummary, Error> {
        let mut look =
            ContextSummary { context: self.clone(), status: None, entries: 0, active_seconds: None, messages: 0 };
        let mut add = |entry: &ContextEntry| {
            look.entries += 1;
            look.active_seconds = look.active_seconds.max(entry.seconds);
        };
        match self.window_state(files)? {
            WindowState::OutOfDate => self.window_entries(files, now)?.iter().for_each(add),
            WindowState::Current => entry::each(files, &self.window(), &mut |entry| {
                add(&entry);
                Ok(())
            })?,
        }
        look.messages = inbox::count(files, &self.folder)?;
        look.status = context_lock::status(&self.folder, now, HEARTBEAT_SECONDS);
        Ok(look)
    }
}

/// The summary of a context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextSummary {
    /// The context.
    pub context: Context,
    /// The state of its lock.
    pub status: Option<ContextLockStatus>,
    /// How many entries its window has.
    pub entries: u64,
    /// When the newest of them was written.
    pub active_seconds: Option<u64>,
    /// How many messages wait in its inbox.
    pub messages: u64,
}

/// The maximum number of contexts listed. No home has as many.
const CONTEXTS_MAX: usize = 100_000;

/// All contexts in a Chibi home, by name.
pub fn contexts(home: &Path, files: &dyn Files) -> Result<Vec<Context>, Error> {
    let folder = home.join("contexts");
    let found = files.list(&folder).map_err(|error| Error::at(&folder, Problem::Unreadable, error))?;
    let contexts = found.iter().filter(|path| path.is_dir()).map(|path| Context::at(path));
    Ok(contexts.filter(Context::exists).take(CONTEXTS_MAX).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::Disk;

    #[test]
    fn contexts_are_listed_with_what_is_known_of_them() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(contexts(home.path(), &Disk).unwrap(), []);
        for name in ["b", "a", "empty"] {
            std::fs::create_dir_all(home.path().join("contexts").join(name)).unwrap();
        }
        std::fs::write(home.path().join("contexts/b/inbox.jsonl"), "{\"content\":\"x\"}\n").unwrap();
        std::fs::write(home.path().join("contexts/a/context.jsonl"), "{\"timestamp\":9}\n{\"timestamp\":7}\n").unwrap();
        let found = contexts(home.path(), &Disk).unwrap();
        assert_eq!(found.iter().map(|context| context.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        let look = found[0].look(&Disk, 10).unwrap();
        assert_eq!((look.entries, look.active_seconds, look.messages, look.status), (2, Some(9), 0, None));
        assert_eq!(found[1].look(&Disk, 10).unwrap().messages, 1);
    }
}

//! The folder of a conversation of OpenHands: its state, and a file for each event. Nothing is recorded in this form, so it is
//! not one of the layouts of recordings.

use std::path::{Path, PathBuf};

use crate::files::Files;

/// The folder of the events.
const EVENTS: &str = "events";

/// The file with the state of the conversation.
const STATE: &str = "base_state.json";

/// The state and the events of a conversation, in order; `None` if this is not the folder of one. The names of events begin with
/// their numbers, so that their order is that of the names.
pub fn files_to_read(folder: &Path, files: &dyn Files) -> Option<Vec<PathBuf>> {
    let state = folder.join(STATE);
    let is_event = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("event-") && name.ends_with(".json")
    };
    files.length(&state).ok()??;
    let events = files.list(&folder.join(EVENTS)).ok()?.into_iter().filter(is_event);
    let found: Vec<PathBuf> = std::iter::once(state).chain(events).collect();
    (found.len() > 1).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::Disk;

    #[test]
    fn events_follow_the_state_in_order() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(files_to_read(folder.path(), &Disk), None);
        std::fs::create_dir(folder.path().join(EVENTS)).unwrap();
        for name in [STATE, "events/event-00001-b.json", "events/event-00000-z.json", "events/.lock"] {
            std::fs::write(folder.path().join(name), "{}").unwrap();
        }
        let found = files_to_read(folder.path(), &Disk).unwrap();
        let names: Vec<&str> = found.iter().filter_map(|path| path.file_name()?.to_str()).collect();
        assert_eq!(names, [STATE, "event-00000-z.json", "event-00001-b.json"]);
    }
}

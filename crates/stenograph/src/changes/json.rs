//! Changes of files as JSON, for programs. The names are stable.

use super::{ChangesOutcome, FileChange, Unseen};
use crate::json::Draft;

impl ChangesOutcome {
    /// Adds all changes to an object.
    pub fn put(&self, draft: &mut Draft<'static>) {
        draft.set("files", list(self.files.iter().map(file)));
        draft.set("unseen", list(self.unseen.iter().map(unseen)));
        draft.set_number("unlisted", Some(self.unlisted));
    }
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(","))
}

pub(crate) fn file(file: &FileChange) -> String {
    let mut draft = Draft::new();
    draft.set_str("path", &file.path);
    draft.set_opt("from", file.from.as_deref());
    draft.set_str("how", file.how.name());
    draft.set_str("base", file.base.name());
    draft.set("exact", file.exact.to_string());
    draft.set_number("added", Some(file.added));
    draft.set_number("removed", Some(file.removed));
    draft.set_str("diff", &file.diff);
    draft.render(None)
}

pub(crate) fn unseen(unseen: &Unseen) -> String {
    let mut draft = Draft::new();
    draft.set_number("source", Some(unseen.place.source as u64));
    draft.set_number("event", Some(unseen.place.event));
    draft.set_number("line", Some(unseen.place.line).filter(|line| *line > 0));
    draft.set_opt("path", unseen.path.as_deref());
    draft.set_str("what", &unseen.what);
    draft.set_str("why", unseen.why.name());
    draft.set_str("reason", unseen.why.sentence());
    draft.render(None)
}

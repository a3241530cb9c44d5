//! Records a change of a window before it is made: after a crash the change is continued instead of restarted, so that entries
//! without ids to compare are not added twice.

use std::path::PathBuf;

use stenograph::json::{Draft, Object};
use stenograph::text::quote;

use crate::error::{Error, Problem};
use crate::files::{Files, replace};
use crate::layouts::chibi::context::Context;
use crate::layouts::chibi::entry::ContextEntry;

/// A change that has begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// The length of `transcript.md` before the change.
    pub markdown_length: u64,
    /// The new beginning of the window.
    pub anchor: ContextEntry,
    /// Its old beginning.
    first: String,
}

impl Pending {
    /// The path of the record.
    pub fn path(context: &Context) -> PathBuf {
        context.folder.join(".steno-pending.json")
    }

    /// Begins a change, or continues the one that was begun on the same window to the same end.
    pub fn begin(
        files: &dyn Files,
        context: &Context,
        window: &[ContextEntry],
        anchor: ContextEntry,
    ) -> Result<Pending, Error> {
        let first = window.first().map(|entry| String::from_utf8_lossy(&entry.line).into_owned()).unwrap_or_default();
        let begun = Pending::read(files, context)?.filter(|begun| begun.first == first);
        let markdown_length = match begun {
            Some(begun)
                if begun.anchor.entry_type == anchor.entry_type
                    && begun.anchor.sums_up_like(&anchor)
                    && begun.anchor.kept_ids() == anchor.kept_ids() =>
            {
                return Ok(begun);
            }
            // Another summary of the same entries: `transcript.md` already has them.
            Some(begun) => begun.markdown_length,
            None => {
                let page = context.markdown();
                let length = files.length(&page).map_err(|error| Error::at(&page, Problem::Unreadable, error))?;
                length.unwrap_or(0)
            }
        };
        let pending = Pending { markdown_length, anchor, first };
        let path = Pending::path(context);
        replace(files, &path, pending.render().as_bytes())
            .map_err(|error| Error::at(&path, Problem::Unwritable, error))?;
        Ok(pending)
    }

    /// The recorded change; an invalid record counts as none.
    pub fn read(files: &dyn Files, context: &Context) -> Result<Option<Pending>, Error> {
        let path = Pending::path(context);
        let unreadable = |error| Error::at(&path, Problem::Unreadable, error);
        if files.length(&path).map_err(unreadable)?.is_none() {
            return Ok(None);
        }
        let bytes = files.read(&path, 0).map_err(unreadable)?;
        Ok(std::str::from_utf8(&bytes).ok().and_then(Pending::parse))
    }

    fn parse(text: &str) -> Option<Pending> {
        let mut object = Object::parse(text)?;
        Some(Pending {
            markdown_length: object.take_number("markdown_length")?,
            anchor: ContextEntry::new(object.take_str("anchor")?.as_bytes()),
            first: object.take_str("first")?.into_owned(),
        })
    }

    fn render(&self) -> String {
        let mut draft = Draft::new();
        draft.set("markdown_length", self.markdown_length.to_string());
        draft.set("anchor", quote(&String::from_utf8_lossy(&self.anchor.line)));
        draft.set("first", quote(&self.first));
        draft.render(None)
    }
}

//! The first line of an undo file, written and read. The old content follows it, compressed.

use std::borrow::Cow;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use stenograph::json::{Draft, Object};

use super::{EditCommand, HEAD_SIZE_MAX, VERSION};
use crate::edit::FileState;
use crate::error::{Error, Place, Problem};

/// The first line of an undo file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UndoHeader {
    pub by: EditCommand,
    /// `None` if a move created the file.
    pub before: Option<FileState>,
    pub after: FileState,
    /// The name of the folder that the file was in before it followed its folder.
    pub folder: Option<String>,
}

impl UndoHeader {
    /// Opens an undo file and reads its first line; `None` if that is damaged.
    pub fn open(path: &Path) -> Result<Option<(UndoHeader, BufReader<File>)>, Error> {
        let place = Place::Path(path.to_owned());
        let unreadable = |error| Error::from_system(&place, Problem::Unreadable, error);
        let mut input = BufReader::new(File::open(path).map_err(unreadable)?);
        let mut header_line = Vec::new();
        input.by_ref().take(HEAD_SIZE_MAX).read_until(b'\n', &mut header_line).map_err(unreadable)?;
        Ok(UndoHeader::parse(&String::from_utf8_lossy(&header_line)).map(|header| (header, input)))
    }

    /// The line with its newline.
    pub fn line(&self) -> String {
        let state = |state: &FileState| Draft::new().with("size", state.size).with("xxh3", &state.fingerprint);
        let mut draft = Draft::new().with("steno_undo", VERSION).with("by", self.by.name());
        draft.set_opt("folder", self.folder.as_deref());
        match &self.before {
            Some(before) => draft.nest("before", state(before)),
            None => draft.set("before", "null"),
        }
        draft.nest("after", state(&self.after));
        draft.render(None) + "\n"
    }

    pub(super) fn parse(header_line: &str) -> Option<UndoHeader> {
        let mut object = Object::parse(header_line.trim_end())?;
        if object.take_number("steno_undo")? != VERSION {
            return None;
        }
        let by = EditCommand::named(&object.take_str("by")?)?;
        let before = match object.take("before")? {
            "null" if by == EditCommand::Move => None,
            raw => Some(parse_state(raw)?),
        };
        let after = parse_state(object.take("after")?)?;
        let folder = object.take_str("folder").filter(|_| by == EditCommand::Move).map(Cow::into_owned);
        Some(UndoHeader { by, before, after, folder })
    }
}

fn parse_state(raw: &str) -> Option<FileState> {
    let mut object = Object::parse(raw)?;
    Some(FileState { size: object.take_number("size")?, fingerprint: object.take_str("xxh3")?.into_owned() })
}

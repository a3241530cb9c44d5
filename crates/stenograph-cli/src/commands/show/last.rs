//! `steno show --last N` of a file of lines: it is read from its end, as `steno tail` reads it.

use stenograph::repeat::SpokenWords;
use stenograph_store::Place;
use stenograph_store::follow::{Follow, LastLine};
use stenograph_store::source_file::Access;

use super::select::{Chosen, Selection};
use super::{Manner, Options};
use crate::error::CommandError;
use crate::input::Input;
use crate::last::{last_shown, unless_repeated};

/// The last events as they are shown; nothing when the source has to be read from its beginning to know them.
pub(super) fn texts(
    options: &Options,
    manner: Manner,
    most: usize,
    input: &Input,
) -> Result<Option<Vec<String>>, CommandError> {
    let Place::Path(path) = input.source.place() else { return Ok(None) };
    // What only the archive has is not at its path any more.
    if !input.source.is_at(path) || input.source.access(input.format) != Access::ByRecord {
        return Ok(None);
    }
    let mut selection = Selection::new(&options.kind, &options.types);
    let mut follow = Follow::open(path, Some(input.format))?;
    let (last, _) = last_shown(&mut follow, most, LastLine::Include, &mut |event| match selection.choose(event) {
        Chosen::No => None,
        Chosen::ByKind if manner != Manner::Json => unless_repeated(event, |event| manner.text(event)),
        Chosen::ByKind | Chosen::ByType => Some((SpokenWords::stated(event), manner.text(event)?)),
    })?;
    // What is rare may stand further back, and whoever finds nothing is told what there is.
    let is_answer = last.gave_up.is_none() && !last.events.is_empty();
    Ok(is_answer.then(|| last.events.into()))
}

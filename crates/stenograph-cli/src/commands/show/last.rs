//! `steno show --last N` for a file of lines: reads the file from its end, as `steno tail` does.

use stenograph::repeat::SpokenWords;
use stenograph_store::Place;
use stenograph_store::follow::{Follow, LastLine};
use stenograph_store::source_file::Access;

use super::select::{EventSelection, Selected};
use super::{Options, ShowForm, Shown};
use crate::error::CommandError;
use crate::input::TranscriptInput;
use crate::last::{last_shown, unless_repeated};

/// The last events; `None` if the source must be read from its beginning.
pub(super) fn events(
    options: &Options,
    form: ShowForm,
    most: usize,
    input: &TranscriptInput,
) -> Result<Option<Vec<Shown>>, CommandError> {
    let Place::Path(path) = input.source.place() else { return Ok(None) };
    // A source that only the archive has is no longer at its path.
    if !input.source.is_at(path) || input.source.access(input.format) != Access::ByRecord {
        return Ok(None);
    }
    let mut selection = EventSelection::new(&options.kind, &options.types);
    let mut follow = Follow::open(path, Some(input.format))?;
    let (last, _) = last_shown(&mut follow, most, LastLine::Include, &mut |event| match selection.choose(event) {
        Selected::No => None,
        Selected::ByKind if form != ShowForm::Json => unless_repeated(event, |event| form.shown(None, event)),
        Selected::ByKind | Selected::ByType => Some((SpokenWords::stated(event), form.shown(None, event)?)),
    })?;
    // Rare events may be further back; and if there are none, the full read lists the kinds that exist.
    let is_answer = last.gave_up.is_none() && !last.events.is_empty();
    Ok(is_answer.then(|| last.events.into()))
}

//! `steno show --last N` for a file of lines: reads the file from its end, as `steno tail` does.

use stenograph::model::Event;
use stenograph::repeat::SpokenWords;
use stenograph_store::Place;
use stenograph_store::follow::{Follow, LastLine};
use stenograph_store::source_file::Access;

use super::select::{EventSelection, Selected};
use super::{Options, ShowForm, Shown};
use crate::error::CommandError;
use crate::input::TranscriptInput;
use crate::last::{LastShown, last_shown, unless_repeated};
use crate::store::StoreArgs;
use crate::terminal::Drawer;

/// A file up to this size is read from its beginning: all its events are compared to find repeats.
const WHOLE_SIZE_MAX: u64 = 32 << 20;

/// The last events; `None` if the source must be read from its beginning.
pub(super) fn events(
    options: &Options,
    form: ShowForm,
    most: usize,
    input: &TranscriptInput,
    drawer: &Drawer,
) -> Result<Option<Vec<Shown>>, CommandError> {
    let Place::Path(path) = input.source.place() else { return Ok(None) };
    // A source that only the archive has is no longer at its path.
    if !input.source.is_at(path) || input.source.access(input.format) != Access::ByRecord {
        return Ok(None);
    }
    let is_large = std::fs::metadata(path).is_ok_and(|metadata| metadata.len() > WHOLE_SIZE_MAX);
    if form == ShowForm::View && !is_large {
        return Ok(None);
    }
    let mut selection = EventSelection::new(&options.kind, &options.types);
    let is_seen = |event: &Event<'_>| form != ShowForm::View || drawer.shows(event);
    let mut follow = Follow::open(path, Some(input.format))?;
    let LastShown { last, window, .. } =
        last_shown(&mut follow, most, LastLine::Include, &mut |event| match selection.choose(event) {
            Selected::No => None,
            _ if !is_seen(event) => None,
            Selected::ByKind if form != ShowForm::Json => unless_repeated(event, |event| form.shown(None, event)),
            Selected::ByKind | Selected::ByType => Some((SpokenWords::stated(event), form.shown(None, event)?)),
        })?;
    // Rare events may be further back; and if there are none, the full read lists the kinds that exist.
    let is_answer = last.gave_up.is_none() && !last.events.is_empty();
    if !is_answer {
        return Ok(None);
    }
    let before = match form {
        ShowForm::View => window.events_before(path, Some(input.format), &StoreArgs::below(options.named.root())),
        ShowForm::Text | ShowForm::Json => None,
    };
    let numbered = |(in_window, shown): (u64, Shown)| shown.numbered(before.map(|before| before + in_window + 1));
    Ok(Some(last.events.into_iter().map(numbered).collect()))
}

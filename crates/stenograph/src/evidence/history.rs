//! A fork whose source has only its new records: its header states which records of another source come first.

use crate::json::{Draft, Object};
use crate::model::{Event, FormatInfo, HistoryPaths};

/// The records of another source that come before those of a fork.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryBase {
    /// The session of the other source.
    pub session: String,
    /// The length of that source, in bytes, at the time of the fork.
    pub length: u64,
}

impl HistoryBase {
    /// What a header states.
    pub fn of(event: &Event<'_>) -> Option<HistoryBase> {
        event.extra.known().find_map(|(info, extra)| {
            let paths = info.usage.history.as_ref()?;
            let object = extra.object_at(paths.object)?;
            let length = object.raw(paths.length).and_then(crate::json::number)?;
            Some(HistoryBase { session: object.text(paths.session)?.into_owned(), length })
        })
    }

    /// The header of a source that has those records itself, from the header of the fork; `None` if it states no other source.
    pub fn removed_from(format: &FormatInfo, header: &str) -> Option<String> {
        let HistoryPaths { object, number, .. } = &format.usage.history?;
        let (above, name) = object.split_once('.')?;
        let mut record = Object::parse(header)?;
        let mut fields = record.open(above)?;
        fields.take(name)?;
        record.close(above, fields);
        let mut draft = Draft::new();
        // It is the first record again.
        draft.set_number(*number, record.take_number(number).map(|_| 0));
        Some(draft.render(Some(&record.into_extra())))
    }
}

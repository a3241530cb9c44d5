//! Extra fields: the fields of a record that have no place in the model, kept as spelled. Nothing here interprets a field.

use std::borrow::Cow;

use super::{FormatInfo, Origin};
pub use crate::json::{ExtraFields, Held};

/// The fields that the reader did not take, by the format they come from. An event from an agent's file has one entry; an event
/// from a native stream may have entries of several formats.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Extra<'a>(Vec<(Origin<'a>, ExtraFields<'a>)>);

impl<'a> Extra<'a> {
    /// The extra fields of one format.
    pub fn of(format: &'static FormatInfo, fields: ExtraFields<'a>) -> Extra<'a> {
        Extra(vec![(Origin::Known(format), fields)])
    }

    /// Adds the extra fields of a format.
    pub fn add(&mut self, origin: Origin<'a>, fields: ExtraFields<'a>) {
        // Keep an empty entry too: it states which format the record comes from.
        self.0.push((origin, fields));
    }

    /// The extra fields of a format.
    pub fn get(&self, origin: &str) -> Option<&ExtraFields<'a>> {
        self.0.iter().find(|(known, _)| known.name() == origin).map(|(_, fields)| fields)
    }

    /// All formats and their extra fields.
    pub fn iter(&self) -> impl Iterator<Item = (&Origin<'a>, &ExtraFields<'a>)> {
        self.0.iter().map(|(origin, fields)| (origin, fields))
    }

    /// The known formats and their extra fields.
    pub fn known(&self) -> impl Iterator<Item = (&'static FormatInfo, &ExtraFields<'a>)> {
        self.0.iter().filter_map(|(origin, fields)| Some((origin.info()?, fields)))
    }

    /// Removes the field at this dotted path from the extra fields of a format.
    pub(crate) fn drop_field(&mut self, origin: &str, path: &str) {
        let found = self.0.iter_mut().find(|(known, _)| known.name() == origin);
        if let Some((_, fields)) = found {
            fields.drop_field(path);
        }
    }

    /// Replaces the value of an existing extra field of a format with this JSON.
    pub(crate) fn set_field(&mut self, origin: &str, key: &str, json: String) {
        let found = self.0.iter_mut().find(|(known, _)| known.name() == origin);
        if let Some(held) = found.and_then(|(_, fields)| fields.held_mut(key)) {
            *held = Held::Raw(Cow::Owned(json));
        }
    }

    /// The extra fields of a part that becomes the first of its record: those of the record, which the old first part has, and
    /// its own.
    pub(crate) fn inherited(self, heir: &Extra<'a>) -> Extra<'a> {
        let mut merged = self;
        for (origin, fields) in &heir.0 {
            match merged.0.iter_mut().find(|(known, _)| known == origin) {
                Some((_, base)) => base.overlay(fields),
                None => merged.0.push((origin.clone(), fields.clone())),
            }
        }
        merged
    }

    /// Whether there are no extra fields.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|(_, fields)| fields.is_empty())
    }

    /// The same, borrowing nothing.
    pub fn into_owned(self) -> Extra<'static> {
        let own = |(origin, fields): (Origin<'a>, ExtraFields<'a>)| (origin.into_owned(), fields.into_owned());
        Extra(self.0.into_iter().map(own).collect())
    }
}

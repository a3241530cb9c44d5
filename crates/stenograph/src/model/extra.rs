//! What a reader did not take: the fields of a record that have no place in the model, kept as they were spelled.
//! Nothing here interprets a field.

use std::borrow::Cow;

use super::{FormatInfo, Origin};
pub use crate::json::{ExtraFields, Held};

/// The fields nobody took, by the format whose words they are. An event read from an agent's file has one entry; one
/// read from a native stream may have those of several formats.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Extra<'a>(Vec<(Origin<'a>, ExtraFields<'a>)>);

impl<'a> Extra<'a> {
    /// An extra of one format.
    pub fn of(format: &'static FormatInfo, residue: ExtraFields<'a>) -> Extra<'a> {
        Extra(vec![(Origin::Known(format), residue)])
    }

    /// Adds what is left in the words of `origin`.
    pub fn add(&mut self, origin: Origin<'a>, residue: ExtraFields<'a>) {
        // An empty residue is kept too: it says which format the record came from, and needs nothing else.
        self.0.push((origin, residue));
    }

    /// What is left in the words of `origin`.
    pub fn get(&self, origin: &str) -> Option<&ExtraFields<'a>> {
        self.0.iter().find(|(known, _)| known.name() == origin).map(|(_, residue)| residue)
    }

    /// All origins and what is left in their words.
    pub fn iter(&self) -> impl Iterator<Item = (&Origin<'a>, &ExtraFields<'a>)> {
        self.0.iter().map(|(origin, residue)| (origin, residue))
    }

    /// What is known of each format in whose words something is left, with what is left. A format that this program does not know is
    /// passed over.
    pub fn known(&self) -> impl Iterator<Item = (&'static FormatInfo, &ExtraFields<'a>)> {
        self.0.iter().filter_map(|(origin, residue)| Some((origin.info()?, residue)))
    }

    /// Drops the field at this path, of which the keys are joined by points, in what is left in the words of `origin`.
    pub(crate) fn drop_field(&mut self, origin: &str, path: &str) {
        let found = self.0.iter_mut().find(|(known, _)| known.name() == origin);
        if let Some((_, residue)) = found {
            residue.drop_field(path);
        }
    }

    /// Lets a field that is there hold this JSON, in what is left in the words of `origin`.
    pub(crate) fn set_field(&mut self, origin: &str, key: &str, json: String) {
        let found = self.0.iter_mut().find(|(known, _)| known.name() == origin);
        if let Some(held) = found.and_then(|(_, residue)| residue.held_mut(key)) {
            *held = Held::Raw(Cow::Owned(json));
        }
    }

    /// What the first part of a record leaves to the part that takes its place: what it holds of the record, with what the heir
    /// holds of itself.
    pub(crate) fn inherited(self, heir: &Extra<'a>) -> Extra<'a> {
        let mut left = self;
        for (origin, residue) in &heir.0 {
            match left.0.iter_mut().find(|(known, _)| known == origin) {
                Some((_, base)) => base.overlay(residue),
                None => left.0.push((origin.clone(), residue.clone())),
            }
        }
        left
    }

    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|(_, residue)| residue.is_empty())
    }

    /// The same, borrowing nothing.
    pub fn into_owned(self) -> Extra<'static> {
        let own = |(origin, residue): (Origin<'a>, ExtraFields<'a>)| (origin.into_owned(), residue.into_owned());
        Extra(self.0.into_iter().map(own).collect())
    }
}

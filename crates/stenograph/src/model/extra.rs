//! What a reader did not take: the fields of a record that have no place in the model, kept as they were spelled.
//! Nothing here interprets a field.

use std::borrow::Cow;

use super::{FormatInfo, Origin};
use crate::text::{Raw, Str};

/// The fields nobody took, by the format whose words they are. An event read from an agent's file has one entry; one
/// read from a native stream may have those of several formats.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Extra<'a>(Vec<(Origin<'a>, ExtraFields<'a>)>);

/// The fields of a JSON object that no field of an event has a place for. A taken field leaves a hole, so that a writer can put the value
/// back where it stood.
#[derive(Clone, Debug, Default)]
pub struct ExtraFields<'a>(pub Vec<(Str<'a>, Held<'a>)>);

/// What a place in an object holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Held<'a> {
    /// A taken field stood here.
    Hole,
    /// A value nobody took.
    Raw(Raw<'a>),
    /// An object of which parts were taken.
    Object(ExtraFields<'a>),
}

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

impl<'a> ExtraFields<'a> {
    /// Whether nothing but holes is left.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|(_, held)| match held {
            Held::Hole => true,
            Held::Raw(_) => false,
            // An empty object is still something the source said.
            Held::Object(inner) => !inner.0.is_empty() && inner.is_empty(),
        })
    }

    /// What stands under a key: of two equal keys the last one counts, as in every JSON parser.
    pub fn held(&self, key: &str) -> Option<&Held<'a>> {
        self.0.iter().rev().find(|(name, _)| name == key).map(|(_, held)| held)
    }

    /// The value of the field at this path, whose keys are joined by points, as it was spelled.
    pub(crate) fn at(&self, path: &str) -> Option<&str> {
        let (key, below) = match path.split_once('.') {
            Some((key, below)) => (key, Some(below)),
            None => (path, None),
        };
        match (self.held(key)?, below) {
            (Held::Raw(raw), None) => Some(raw),
            (Held::Raw(raw), Some(below)) => crate::json::value_at(raw, below),
            (Held::Object(inner), Some(below)) => inner.at(below),
            (Held::Object(_), None) | (Held::Hole, _) => None,
        }
    }

    /// The text of the field at this path, or its digits.
    pub(crate) fn word_at(&self, path: &str) -> Option<Str<'_>> {
        if path.is_empty() { None } else { crate::json::word(self.at(path)?) }
    }

    fn held_mut(&mut self, key: &str) -> Option<&mut Held<'a>> {
        self.0.iter_mut().rev().find(|(name, _)| name == key).map(|(_, held)| held)
    }

    /// The value of a field that was not taken.
    pub fn raw(&self, key: &str) -> Option<&str> {
        match self.held(key)? {
            Held::Raw(raw) => Some(raw.as_ref()),
            Held::Hole | Held::Object(_) => None,
        }
    }

    /// The text of a field that was not taken, if it is a string.
    pub fn text(&self, key: &str) -> Option<Str<'_>> {
        crate::text::Text::from_json(self.raw(key)?)?.exact()
    }

    /// What is left of an object in it.
    pub fn object(&self, key: &str) -> Option<&ExtraFields<'a>> {
        match self.held(key)? {
            Held::Object(inner) => Some(inner),
            Held::Hole | Held::Raw(_) => None,
        }
    }

    /// An object in it, whether parts of it were taken or it is still whole, as it is where a native stream holds it.
    pub fn opened(&self, key: &str) -> Option<Cow<'_, ExtraFields<'_>>> {
        match self.object(key) {
            Some(inner) => Some(Cow::Borrowed(inner)),
            None => Some(Cow::Owned(crate::json::Object::parse(self.raw(key)?)?.rest())),
        }
    }

    /// Whether a key stands in it, taken or not.
    pub fn has(&self, key: &str) -> bool {
        self.0.iter().any(|(name, _)| name == key)
    }

    fn drop_field(&mut self, path: &str) {
        match path.split_once('.') {
            None => self.0.retain(|(name, _)| name != path),
            Some((key, below)) => {
                for (_, held) in self.0.iter_mut().filter(|(name, _)| name == key) {
                    if let Held::Object(inner) = held {
                        inner.drop_field(below);
                    }
                }
            }
        }
    }

    /// Puts what a part holds into what its record holds: a part names its place by the path down to it.
    fn overlay(&mut self, part: &ExtraFields<'a>) {
        for (key, held) in &part.0 {
            match (self.held_mut(key), held) {
                (Some(Held::Object(base)), Held::Object(inner))
                    if matches!(inner.0.as_slice(), [(_, Held::Object(_))]) =>
                {
                    base.overlay(inner);
                }
                (Some(base), held) => *base = held.clone(),
                (None, held) => self.0.push((key.clone(), held.clone())),
            }
        }
    }

    /// The fields that are left, each with the path to it.
    pub fn each(&self, path: &str, visit: &mut dyn FnMut(&str, &str)) {
        for (name, held) in &self.0 {
            let path = if path.is_empty() { name.to_string() } else { format!("{path}.{name}") };
            match held {
                Held::Hole => {}
                Held::Raw(raw) => visit(&path, raw),
                Held::Object(inner) if inner.0.is_empty() => visit(&path, "{}"),
                Held::Object(inner) => inner.each(&path, visit),
            }
        }
    }

    /// The same, borrowing nothing.
    pub fn into_owned(self) -> ExtraFields<'static> {
        let own = |(name, held): (Str<'a>, Held<'a>)| -> (Str<'static>, Held<'static>) {
            let held = match held {
                Held::Hole => Held::Hole,
                Held::Raw(raw) => Held::Raw(Cow::Owned(raw.into_owned())),
                Held::Object(inner) => Held::Object(inner.into_owned()),
            };
            (Cow::Owned(name.into_owned()), held)
        };
        ExtraFields(self.0.into_iter().map(own).collect())
    }

    /// Appends what is left as a JSON object; holes do not show.
    pub fn write_json(&self, out: &mut String) {
        out.push('{');
        let mut first = true;
        for (name, held) in &self.0 {
            let shows = match held {
                Held::Hole => false,
                Held::Raw(_) => true,
                Held::Object(inner) => inner.0.is_empty() || !inner.is_empty(),
            };
            if !shows {
                continue;
            }
            if !first {
                out.push(',');
            }
            first = false;
            out.push_str(&crate::text::quote(name));
            out.push(':');
            match held {
                Held::Hole => {}
                Held::Raw(raw) => out.push_str(raw),
                Held::Object(inner) => inner.write_json(out),
            }
        }
        out.push('}');
    }
}

impl PartialEq for ExtraFields<'_> {
    /// Holes and the order of keys are spelling, not content; so is whether an object was opened or left whole.
    fn eq(&self, other: &Self) -> bool {
        // Almost always nothing differs, not even the spelling.
        if self.0 == other.0 {
            return true;
        }
        let spelled = |residue: &ExtraFields<'_>| {
            let mut json = String::new();
            residue.write_json(&mut json);
            crate::json::canonical(&json).into_owned()
        };
        spelled(self) == spelled(other)
    }
}

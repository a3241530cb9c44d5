//! The fields of a JSON object that a reader did not take, as they were spelled. Nothing here interprets a field.

use std::borrow::Cow;

use crate::text::{Raw, Str};

/// The fields of a JSON object that have no place in the model. A taken field leaves a hole, so that a writer can put its value
/// back at the same position.
#[derive(Clone, Debug, Default)]
pub struct ExtraFields<'a>(pub Vec<(Str<'a>, Held<'a>)>);

/// The content of one position in an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Held<'a> {
    /// A taken field stood here.
    Hole,
    /// A value nobody took.
    Raw(Raw<'a>),
    /// An object of which parts were taken.
    Object(ExtraFields<'a>),
}

impl<'a> ExtraFields<'a> {
    /// Whether there are only holes.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|(_, held)| match held {
            Held::Hole => true,
            Held::Raw(_) => false,
            // An empty object is still something the source said.
            Held::Object(inner) => !inner.0.is_empty() && inner.is_empty(),
        })
    }

    /// The content under a key. The last of two equal keys counts, as in every JSON parser.
    pub fn held(&self, key: &str) -> Option<&Held<'a>> {
        self.0.iter().rev().find(|(name, _)| name == key).map(|(_, held)| held)
    }

    /// The value at this dotted path, as spelled.
    pub(crate) fn at(&self, path: &str) -> Option<&str> {
        let (key, below) = match path.split_once('.') {
            Some((key, below)) => (key, Some(below)),
            None => (path, None),
        };
        match (self.held(key)?, below) {
            (Held::Raw(raw), None) => Some(raw),
            (Held::Raw(raw), Some(below)) => super::value_at(raw, below),
            (Held::Object(inner), Some(below)) => inner.at(below),
            (Held::Object(_), None) | (Held::Hole, _) => None,
        }
    }

    /// The object at this path, with or without holes. An empty path is the record itself.
    pub(crate) fn object_at(&self, path: &str) -> Option<Cow<'_, ExtraFields<'_>>> {
        let mut object = self;
        let mut keys = path.split('.').filter(|key| !key.is_empty());
        while let Some(key) = keys.next() {
            match object.held(key)? {
                Held::Object(inner) => object = inner,
                Held::Raw(raw) => {
                    let below = keys.try_fold(raw.as_ref(), |raw, key| super::fields(raw, [key])[0]);
                    return Some(Cow::Owned(crate::json::Object::parse(below?)?.into_extra()));
                }
                Held::Hole => return None,
            }
        }
        Some(Cow::Borrowed(object))
    }

    /// The text of the field at this path, or its digits.
    pub(crate) fn word_at(&self, path: &str) -> Option<Str<'_>> {
        if path.is_empty() { None } else { super::word(self.at(path)?) }
    }

    pub(crate) fn held_mut(&mut self, key: &str) -> Option<&mut Held<'a>> {
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

    /// The extra fields of the object under a key.
    pub fn object(&self, key: &str) -> Option<&ExtraFields<'a>> {
        match self.held(key)? {
            Held::Object(inner) => Some(inner),
            Held::Hole | Held::Raw(_) => None,
        }
    }

    /// The object under a key, with or without holes; a native stream stores it whole.
    pub fn opened(&self, key: &str) -> Option<Cow<'_, ExtraFields<'_>>> {
        match self.object(key) {
            Some(inner) => Some(Cow::Borrowed(inner)),
            None => Some(Cow::Owned(super::Object::parse(self.raw(key)?)?.into_extra())),
        }
    }

    /// Whether the object has this key, taken or not.
    pub fn has(&self, key: &str) -> bool {
        self.0.iter().any(|(name, _)| name == key)
    }

    pub(crate) fn drop_field(&mut self, path: &str) {
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

    /// Merges the extra fields of a part into those of its record: a part locates itself by the path down to it.
    pub(crate) fn overlay(&mut self, part: &ExtraFields<'a>) {
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

    /// Calls `visit` with the path and value of each extra field.
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

    /// Appends the extra fields as a JSON object, without holes.
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
    /// Holes, the order of keys, and whether an object was opened are spelling, not content.
    fn eq(&self, other: &Self) -> bool {
        // Almost always nothing differs, not even the spelling.
        if self.0 == other.0 {
            return true;
        }
        let spelled = |extra: &ExtraFields<'_>| {
            let mut json = String::new();
            extra.write_json(&mut json);
            super::canonical(&json).into_owned()
        };
        spelled(self) == spelled(other)
    }
}

//! A JSON object from which a reader takes fields. Taking a field removes it, and a field whose type differs from the expected
//! one stays, so the remaining fields are exactly the extra fields.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::scan::{Escapes, Scan};
use super::{ExtraFields, Held};
use crate::text::{Str, Text};
use crate::time::{Time, TimeUnit};

/// A parsed object. It parses a value only when the caller takes or opens it.
#[derive(Clone, Debug)]
pub struct Object<'a> {
    /// Raw values borrow from the input text, so they live as long as it does.
    fields: Vec<(Str<'a>, Held<'a>)>,
}

impl<'a> Object<'a> {
    /// Parses one object; `None` if `text` is anything else.
    pub fn parse(text: &'a str) -> Option<Object<'a>> {
        let scan = Scan::new(text);
        if !scan.is_object(scan.start()) {
            return None;
        }
        // The scan does not decode escaped keys, so serde_json parses such an object.
        Object::scanned(scan, &[]).or_else(|| serde_json::from_str(text).ok())
    }

    /// Parses one object and, in the same pass, the objects along `path`; `None` if `text` is not an object, if a value on the
    /// path is not an object, or if a key has escapes.
    pub(crate) fn parse_open(text: &'a str, path: &[&str]) -> Option<Object<'a>> {
        Object::scanned(Scan::new(text), path)
    }

    /// The object that makes up the whole text; `None` if a key has escapes.
    fn scanned(scan: Scan<'a>, path: &[&str]) -> Option<Object<'a>> {
        let mut fields = Vec::with_capacity(FIELDS);
        let end = members(scan, scan.start(), path, &mut fields)?;
        scan.ends(end).then_some(Object { fields })
    }

    /// The keys, in order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(|(key, _)| key.as_ref())
    }

    /// The fields that are not taken yet, in order.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &'a str)> {
        self.fields.iter().filter_map(|(key, held)| Some((key.as_ref(), raw_of(held)?)))
    }

    /// Whether the object has no fields.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Whether the field exists and is not taken yet.
    pub fn has(&self, key: &str) -> bool {
        self.peek(key).is_some()
    }

    /// A key that occurs twice.
    pub fn duplicate(&self) -> Option<&str> {
        const FEW: usize = 48;
        if self.fields.len() > FEW {
            let mut seen = HashSet::with_capacity(self.fields.len());
            return self.keys().find(|key| !seen.insert(*key));
        }
        // Almost every object has few keys, and a 64-bit filter shows that almost all of them differ.
        let mut filter = 0_u64;
        for (at, key) in self.keys().enumerate() {
            let edge = |byte: Option<&u8>| byte.copied().map_or(0, usize::from);
            let bytes = key.as_bytes();
            let bit = 1_u64 << ((bytes.len() * 7 + edge(bytes.first()) * 3 + edge(bytes.last())) % 64);
            if filter & bit != 0 && self.keys().take(at).any(|earlier| earlier == key) {
                return Some(key);
            }
            filter |= bit;
        }
        None
    }

    // The last of two equal keys counts, as in every JSON parser; the first one stays in the extra fields.
    fn held(&mut self, key: &str) -> Option<&mut Held<'a>> {
        self.fields.iter_mut().rev().find(|(name, _)| is_same(name, key)).map(|(_, held)| held)
    }

    /// The raw value of a field, without taking it.
    pub fn peek(&self, key: &str) -> Option<&'a str> {
        self.fields.iter().rev().find(|(name, _)| is_same(name, key)).and_then(|(_, held)| raw_of(held))
    }

    /// The text of a field, without taking it.
    pub fn peek_str(&self, key: &str) -> Option<Str<'a>> {
        Text::from_json(self.peek(key)?)?.exact()
    }

    /// The object in a field, without taking it.
    pub fn peek_object(&self, key: &str) -> Option<Object<'a>> {
        self.peek(key).and_then(Object::parse)
    }

    /// Whether a field is `true`, without taking it.
    pub fn peek_true(&self, key: &str) -> bool {
        self.peek(key) == Some("true")
    }

    /// Takes a field of any type.
    pub fn take(&mut self, key: &str) -> Option<&'a str> {
        self.take_as(key, Some)
    }

    /// Takes a field whose value `read` understands.
    pub(crate) fn take_as<T>(&mut self, key: &str, read: impl FnOnce(&'a str) -> Option<T>) -> Option<T> {
        let held = self.held(key)?;
        let value = read(raw_of(held)?)?;
        *held = Held::Hole;
        Some(value)
    }

    /// Takes a string of any length.
    pub fn take_text(&mut self, key: &str) -> Option<Text<'a>> {
        self.take_as(key, Text::from_json)
    }

    /// Takes a string that is valid Unicode.
    pub fn take_str(&mut self, key: &str) -> Option<Str<'a>> {
        self.take_as(key, |raw| Text::from_json(raw)?.exact())
    }

    /// Takes a non-empty string that is valid Unicode.
    pub fn take_name(&mut self, key: &str) -> Option<Str<'a>> {
        self.take_as(key, |raw| Text::from_json(raw)?.exact().filter(|text| !text.is_empty()))
    }

    /// Takes a string that `named` recognizes.
    pub fn take_word<T>(&mut self, key: &str, named: impl Fn(&str) -> Option<T>) -> Option<T> {
        self.take_as(key, |raw| named(raw.strip_prefix('"')?.strip_suffix('"')?))
    }

    /// Takes `true` or `false`.
    pub fn take_bool(&mut self, key: &str) -> Option<bool> {
        self.take_as(key, |raw| match raw {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        })
    }

    /// Takes a whole number.
    pub fn take_number(&mut self, key: &str) -> Option<u64> {
        self.take_as(key, super::number)
    }

    /// Takes a time in RFC 3339.
    pub fn take_iso(&mut self, key: &str) -> Option<Time<'a>> {
        self.take_as(key, |raw| Time::iso(Text::from_json(raw)?.exact()?))
    }

    /// Takes a time given as a number.
    pub fn take_time(&mut self, key: &str, unit: TimeUnit) -> Option<Time<'a>> {
        self.take_as(key, |raw| Time::number(Cow::Borrowed(raw), unit))
    }

    /// Takes the elements of an array.
    pub fn take_items(&mut self, key: &str) -> Option<Vec<&'a str>> {
        self.take_as(key, super::items)
    }

    /// Opens the object in a field so that the caller can take from it. Return the remaining fields with [`Object::close`].
    pub fn open(&mut self, key: &str) -> Option<Object<'a>> {
        if let Some(Held::Object(_)) = self.held(key) {
            return self.opened(key);
        }
        self.take_as(key, Object::parse)
    }

    /// The object in a field, if it was opened during parsing.
    fn opened(&mut self, key: &str) -> Option<Object<'a>> {
        match std::mem::replace(self.held(key)?, Held::Hole) {
            Held::Object(ExtraFields(fields)) => Some(Object { fields }),
            Held::Hole | Held::Raw(_) => None,
        }
    }

    /// Whether the object in this field was opened during parsing.
    pub fn is_open(&self, key: &str) -> bool {
        self.fields.iter().any(|(name, held)| name == key && matches!(held, Held::Object(_)))
    }

    /// Puts back the remaining fields of an opened object.
    pub fn close(&mut self, key: &str, fields: Object<'a>) {
        self.close_with(key, fields.into_extra());
    }

    /// Puts back the extra fields of an opened object.
    pub(crate) fn close_with(&mut self, key: &str, fields: ExtraFields<'a>) {
        if let Some(held) = self.held(key) {
            *held = Held::Object(fields);
        }
    }

    /// The fields that were not taken, with holes for those that were.
    pub fn into_extra(self) -> ExtraFields<'a> {
        ExtraFields(self.fields)
    }
}

/// Whether two keys are equal. The last byte usually distinguishes two keys of equal length without a call to `memcmp`.
#[inline]
fn is_same(name: &str, key: &str) -> bool {
    name.len() == key.len() && name.as_bytes().last() == key.as_bytes().last() && name == key
}

/// Most objects have at most this many fields.
const FIELDS: usize = 20;

/// Appends the fields of the object that begins at `at` and returns where it ends.
fn members<'a>(scan: Scan<'a>, at: usize, path: &[&str], fields: &mut Vec<(Str<'a>, Held<'a>)>) -> Option<usize> {
    scan.members(at, |key, from| {
        if key.escapes == Escapes::Some {
            return None;
        }
        let (held, to) = match path {
            [next, below @ ..] if key.spelled == *next => {
                let mut fields = Vec::with_capacity(FIELDS);
                let to = members(scan, from, below, &mut fields)?;
                (Held::Object(ExtraFields(fields)), to)
            }
            _ => {
                let to = scan.value(from)?;
                (Held::Raw(Cow::Borrowed(scan.text(from, to)?)), to)
            }
        };
        fields.push((Cow::Borrowed(key.spelled), held));
        Some(to)
    })
}

fn raw_of<'a>(held: &Held<'a>) -> Option<&'a str> {
    match held {
        Held::Raw(Cow::Borrowed(raw)) => Some(raw),
        Held::Raw(Cow::Owned(_)) | Held::Hole | Held::Object(_) => None,
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Object<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Object<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
                let mut fields = Vec::with_capacity(FIELDS);
                while let Some(key) = map.next_key::<Key<'de>>()? {
                    fields.push((key.0, Held::Raw(Cow::Borrowed(map.next_value::<&RawValue>()?.get()))));
                }
                Ok(Object { fields })
            }
        }
        deserializer.deserialize_map(Fields)
    }
}

/// A key, borrowed unless it has escapes.
struct Key<'a>(Str<'a>);

impl<'de: 'a, 'a> Deserialize<'de> for Key<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Name;
        impl<'de> Visitor<'de> for Name {
            type Value = Key<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a key")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Key(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Key(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taken_fields_leave_holes_and_other_fields_stay() {
        let mut object = Object::parse(r#"{"a":1,"b":"x","c":{"d":true,"e":null},"a":2}"#).unwrap();
        assert_eq!(object.duplicate(), Some("a"));
        assert_eq!(object.take_number("a"), Some(2));
        assert_eq!(object.take_number("b"), None);
        let mut inner = object.open("c").unwrap();
        assert_eq!(inner.take_bool("d"), Some(true));
        object.close("c", inner);
        let mut extra = String::new();
        object.into_extra().write_json(&mut extra);
        assert_eq!(extra, r#"{"a":1,"b":"x","c":{"e":null}}"#);
    }
}

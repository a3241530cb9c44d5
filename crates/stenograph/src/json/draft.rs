//! A JSON object under construction: values from an event, merged with the extra fields of the record the event came from.

use serde::Serialize;

use super::{ExtraFields, Held};
use crate::text::{Raw, Str, Text, quote};

/// An object under construction.
///
/// [`Draft::set`] adds a value that the event states. [`Draft::default`] adds a value that a record of this format needs when
/// the event comes from another format. A record that comes from this format has all its other fields in its extra fields and
/// takes no defaults.
#[derive(Clone, Debug, Default)]
pub struct Draft<'a> {
    fields: Vec<(Str<'a>, Value<'a>, Force)>,
}

#[derive(Clone, Debug)]
enum Value<'a> {
    Raw(Raw<'a>),
    Draft(Draft<'a>),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Force {
    Set,
    Default,
}

impl<'a> Draft<'a> {
    /// An empty object.
    pub fn new() -> Draft<'a> {
        Draft { fields: Vec::new() }
    }

    /// Adds a JSON value, compacted to one line: a record is one line in most formats.
    pub fn set(&mut self, key: impl Into<Str<'a>>, raw: impl Into<Raw<'a>>) {
        self.fields.push((key.into(), Value::Raw(super::one_line(raw.into())), Force::Set));
    }

    /// Adds a text.
    pub fn set_text(&mut self, key: impl Into<Str<'a>>, text: &Text<'_>) {
        self.set(key, text.to_json());
    }

    /// Adds a string.
    pub fn set_str(&mut self, key: impl Into<Str<'a>>, text: &str) {
        self.set(key, quote(text));
    }

    /// Adds a string if there is one.
    pub fn set_opt(&mut self, key: impl Into<Str<'a>>, text: Option<&str>) {
        if let Some(text) = text {
            self.set_str(key, text);
        }
    }

    /// Adds a number if there is one.
    pub fn set_number(&mut self, key: impl Into<Str<'a>>, number: Option<u64>) {
        if let Some(number) = number {
            self.set(key, number.to_string());
        }
    }

    /// Adds an array of JSON values.
    pub fn set_list(&mut self, key: impl Into<Str<'a>>, items: impl IntoIterator<Item = String>) {
        let items: Vec<String> = items.into_iter().collect();
        self.set(key, format!("[{}]", items.join(",")));
    }

    /// The draft with a value of ours, as serde spells it.
    #[must_use]
    pub fn with(mut self, key: impl Into<Str<'a>>, value: impl Serialize) -> Draft<'a> {
        self.set(key, serde_json::to_string(&value).unwrap_or_else(|_| "null".to_owned()));
        self
    }

    /// The draft with a JSON value.
    #[must_use]
    pub fn with_json(mut self, key: impl Into<Str<'a>>, raw: impl Into<Raw<'a>>) -> Draft<'a> {
        self.set(key, raw);
        self
    }

    /// The draft with an array of JSON values.
    #[must_use]
    pub fn with_list(mut self, key: impl Into<Str<'a>>, items: impl IntoIterator<Item = String>) -> Draft<'a> {
        self.set_list(key, items);
        self
    }

    /// Adds a JSON value that only a record from another format needs.
    pub fn default(&mut self, key: impl Into<Str<'a>>, raw: impl Into<Raw<'a>>) {
        self.fields.push((key.into(), Value::Raw(raw.into()), Force::Default));
    }

    /// Adds a string that only a record from another format needs.
    pub fn default_str(&mut self, key: impl Into<Str<'a>>, text: &str) {
        self.default(key, quote(text));
    }

    /// Adds the string that the event states, or a default that only a record from another format needs.
    pub fn set_or(&mut self, key: impl Into<Str<'a>>, text: Option<&str>, default: &str) {
        match text {
            Some(text) => self.set_str(key, text),
            None => self.default_str(key, default),
        }
    }

    /// Adds an object.
    pub fn nest(&mut self, key: impl Into<Str<'a>>, draft: Draft<'a>) {
        self.fields.push((key.into(), Value::Draft(draft), Force::Set));
    }

    /// Whether no value was added.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// The object as one line of JSON, merged with the extra fields of its record.
    pub fn render(&self, extra: Option<&ExtraFields<'_>>) -> String {
        let mut out = String::with_capacity(256);
        self.write(extra, Own::of(extra), &mut out);
        out
    }

    fn write(&self, extra: Option<&ExtraFields<'_>>, own: Own, out: &mut String) {
        out.push('{');
        let from = out.len();
        let mut done = vec![false; self.fields.len()];
        let entries = extra.map_or([].as_slice(), |extra| extra.0.as_slice());
        let ordered = entries.iter().any(|(_, held)| !matches!(held, Held::Raw(_)));
        if !ordered {
            // Without holes the order of the record is unknown: the format's own order comes first.
            self.remaining(entries, own, &mut done, from, out);
        }
        for (at, (key, held)) in entries.iter().enumerate() {
            let put =
                self.fields.iter().zip(&done).position(|((name, _, force), done)| {
                    !done && name == key && (*force == Force::Set || own == Own::No)
                });
            match (held, put) {
                (Held::Hole, None) => {}
                (Held::Hole, Some(put)) => self.put(put, None, own, &mut done, from, out),
                (Held::Object(inner), put) => {
                    let empty = Draft::new();
                    let draft = put.and_then(|put| {
                        if let Some(done) = done.get_mut(put) {
                            *done = true;
                        }
                        self.fields.get(put)
                    });
                    name_into(key, from, out);
                    match draft {
                        Some((_, Value::Raw(raw), _)) => out.push_str(raw),
                        Some((_, Value::Draft(draft), _)) => draft.write(Some(inner), own, out),
                        None => empty.write(Some(inner), own, out),
                    }
                }
                (Held::Raw(_), Some(put)) if !occurs_later(entries, at, key) => {
                    self.put(put, None, own, &mut done, from, out);
                }
                (Held::Raw(raw), _) => {
                    if ordered || !self.was_put(key, &done) {
                        name_into(key, from, out);
                        out.push_str(raw);
                    }
                }
            }
        }
        self.remaining(&[], own, &mut done, from, out);
        out.push('}');
    }

    fn was_put(&self, key: &str, done: &[bool]) -> bool {
        self.fields.iter().zip(done).any(|((name, _, _), done)| *done && name == key)
    }

    fn remaining(&self, entries: &[(Str<'_>, Held<'_>)], own: Own, done: &mut [bool], from: usize, out: &mut String) {
        for at in 0..self.fields.len() {
            let Some((key, value, force)) = self.fields.get(at) else { continue };
            if done.get(at) == Some(&true) {
                continue;
            }
            let held = entries.iter().find(|(name, _)| name == key).map(|(_, held)| held);
            match (force, own, held) {
                // A field of the record itself goes where the format has it, unless the record has it twice.
                (Force::Default, Own::Yes, Some(Held::Raw(raw)))
                    if entries.iter().filter(|(name, _)| name == key).count() == 1 =>
                {
                    name_into(key, from, out);
                    out.push_str(raw);
                    if let Some(done) = done.get_mut(at) {
                        *done = true;
                    }
                }
                (Force::Default, Own::Yes, _) => continue,
                // The draft may add fields to an object that was kept whole.
                (_, _, Some(Held::Raw(raw))) => match (value, crate::json::Object::parse(raw)) {
                    (Value::Draft(_), Some(object)) => {
                        self.put(at, Some(&object.into_extra()), own, done, from, out);
                        continue;
                    }
                    _ => self.put(at, None, own, done, from, out),
                },
                (_, Own::Yes, None) if matches!(value, Value::Draft(draft) if draft.only_defaults()) => continue,
                _ => self.put(at, None, own, done, from, out),
            }
        }
    }

    fn only_defaults(&self) -> bool {
        self.fields.iter().all(|(_, value, force)| match value {
            Value::Raw(_) => *force == Force::Default,
            Value::Draft(draft) => draft.only_defaults(),
        })
    }

    fn put(
        &self,
        at: usize,
        extra: Option<&ExtraFields<'_>>,
        own: Own,
        done: &mut [bool],
        from: usize,
        out: &mut String,
    ) {
        let (Some((key, value, _)), Some(done)) = (self.fields.get(at), done.get_mut(at)) else { return };
        *done = true;
        name_into(key, from, out);
        match value {
            Value::Raw(raw) => out.push_str(raw),
            Value::Draft(draft) => draft.write(extra, own, out),
        }
    }
}

/// Whether the key occurs again later: of two equal keys the reader took the last one and kept the first.
fn occurs_later(entries: &[(Str<'_>, Held<'_>)], at: usize, key: &str) -> bool {
    let later = entries.get(at + 1..).unwrap_or_default();
    later.iter().any(|(name, _)| name == key)
}

/// Whether the record comes from the format it is written in.
#[derive(Clone, Copy, PartialEq)]
enum Own {
    Yes,
    No,
}

impl Own {
    fn of(extra: Option<&ExtraFields<'_>>) -> Own {
        if extra.is_some() { Own::Yes } else { Own::No }
    }
}

fn name_into(key: &str, from: usize, out: &mut String) {
    if out.len() > from {
        out.push(',');
    }
    out.push_str(&quote(key));
    out.push(':');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Object;

    fn record() -> Draft<'static> {
        let mut inner = Draft::new();
        inner.default_str("kind", "made");
        inner.set_str("text", "hi");
        let mut draft = Draft::new();
        draft.default_str("type", "user");
        draft.set_str("id", "1");
        draft.nest("message", inner);
        draft
    }

    #[test]
    fn a_new_record_has_its_defaults() {
        assert_eq!(record().render(None), r#"{"type":"user","id":"1","message":{"kind":"made","text":"hi"}}"#);
    }

    #[test]
    fn a_record_keeps_its_order_and_gets_no_defaults() {
        let source = r#"{"id":"1","x":[1, 2],"message":{"text":"hi","y":null},"type":"odd"}"#;
        let mut object = Object::parse(source).unwrap();
        object.take("id");
        let mut message = object.open("message").unwrap();
        message.take("text");
        object.close("message", message);
        assert_eq!(record().render(Some(&object.into_extra())), source);
    }

    #[test]
    fn without_holes_the_format_order_comes_first() {
        let extra = Object::parse(r#"{"x":1,"type":"odd","message":{"y":null}}"#).unwrap().into_extra();
        let expected = r#"{"type":"odd","id":"1","message":{"text":"hi","y":null},"x":1}"#;
        assert_eq!(record().render(Some(&extra)), expected);
    }

    #[test]
    fn a_duplicate_key_stays_duplicated() {
        let source = r#"{"id":"0","id":"1","message":{"text":"hi"}}"#;
        let mut object = Object::parse(source).unwrap();
        object.take("id");
        let mut message = object.open("message").unwrap();
        message.take("text");
        object.close("message", message);
        assert_eq!(record().render(Some(&object.into_extra())), source);
    }
}

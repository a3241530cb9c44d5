//! The attributes of a span: a list of keys and typed values. A text that events have leaves an empty text in its place.

use crate::json::{Object, items, value_at, word};
use crate::text::{Str, Text, quote};

/// The attributes of a span, as spelled.
#[derive(Debug, Default)]
pub struct Attributes<'a>(Vec<(Str<'a>, &'a str)>);

/// The path of a text in an attribute.
const TEXT: &str = "value.stringValue";

/// The types of values that are one word.
const WORDS: [&str; 4] = ["stringValue", "intValue", "doubleValue", "boolValue"];

impl<'a> Attributes<'a> {
    /// The attributes of a span. Elements of another form have an empty key.
    pub fn of(span: &Object<'a>) -> Attributes<'a> {
        Attributes::list(span.peek("attributes").unwrap_or_default())
    }

    /// The attributes in a list.
    pub fn list(raw: &'a str) -> Attributes<'a> {
        let one = |raw: &'a str| (Object::parse(raw).and_then(|one| one.peek_str("key")).unwrap_or_default(), raw);
        Attributes(items(raw).unwrap_or_default().into_iter().map(one).collect())
    }

    /// Adds an attribute.
    pub fn add(&mut self, key: &str, raw: &'a str) {
        self.0.push((key.to_owned().into(), raw));
    }

    /// The keys and the whole elements, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &'a str)> {
        self.0.iter().map(|(key, raw)| (key.as_ref(), *raw))
    }

    /// The word of the first of these attributes that has one.
    pub fn word(&self, keys: &[&str]) -> Option<Str<'a>> {
        keys.iter().find_map(|key| {
            let (_, raw) = self.0.iter().find(|(name, _)| name == key)?;
            let value = Object::parse(raw)?.peek_object("value")?;
            WORDS.iter().find_map(|kind| value.peek(kind).and_then(word))
        })
    }

    /// The text of an attribute.
    pub fn text(&self, key: &str) -> Option<Text<'a>> {
        self.0.iter().find(|(name, _)| name == key).and_then(|(_, raw)| text_of(raw))
    }

    /// The list with other texts for these attributes.
    pub fn with_texts(&self, text_of: &dyn Fn(&str, &str) -> Option<String>) -> String {
        let one = |(key, raw): &(Str<'a>, &'a str)| {
            let new = text_of(key, raw).and_then(|text| with_text(raw, &text));
            new.unwrap_or_else(|| (*raw).to_owned())
        };
        format!("[{}]", self.0.iter().map(one).collect::<Vec<_>>().join(","))
    }
}

/// The text of an attribute.
pub fn text_of(raw: &str) -> Option<Text<'_>> {
    Text::from_json(value_at(raw, TEXT)?)
}

/// The attribute with another text.
fn with_text(raw: &str, text: &str) -> Option<String> {
    let old = value_at(raw, TEXT)?;
    let from = (old.as_ptr() as usize).checked_sub(raw.as_ptr() as usize)?;
    let (before, rest) = raw.split_at_checked(from)?;
    Some(format!("{before}{}{}", quote(text), rest.get(old.len()..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_replaced_in_its_place() {
        let raw = r#"{"key":"a", "value":{"stringValue":"x\"y"},"z":1}"#;
        assert_eq!(with_text(raw, "").unwrap(), r#"{"key":"a", "value":{"stringValue":""},"z":1}"#);
        assert_eq!(with_text(r#"{"key":"a","value":{"intValue":"1"}}"#, ""), None);
    }
}

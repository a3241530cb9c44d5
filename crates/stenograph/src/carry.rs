//! Embeds a source in the records it was converted to, and restores it.
//!
//! A carrying record has an additional last key:
//! `"steno":{"v":1,"of":FORMAT,"in":FORMAT,"session":ID,"n":i,"seal":…,"src":…}`. The values of `src` are consecutive runs of
//! the source, whose format is `of`; joined, they are the source, byte for byte. The records have the format `in`, whatever
//! else they look like. `session` is the session of the source, if it states one: a copy that an agent continues under another
//! id still names the session it came from. The seal is a fingerprint of the record without the key, so that an edited record
//! is noticed.

use std::borrow::Cow;

use xxhash_rust::xxh3::xxh3_128;

use crate::json::Object;
use crate::text::{Text, quote};

/// The key that holds the embedded source.
pub const KEY: &str = "steno";

/// The version of the key's value.
const VERSION: u64 = 1;

/// The part of a source that one record carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Carried {
    /// The format of the source.
    pub of: String,
    /// The format of the file that carries the source; older files do not state it.
    pub within: Option<String>,
    /// The session of the source; older files do not state it.
    pub session: Option<String>,
    /// The number of this run, from 0.
    pub number: u64,
    /// Whether this run is the last one.
    pub last: bool,
    /// The fingerprint of the record without the key.
    pub seal: String,
    /// The run's bytes.
    pub source: Vec<u8>,
}

/// Takes the carried key from an object; `None` if the object has none, or one that is not ours.
pub fn take<'a>(object: &mut Object<'a>) -> Option<&'a str> {
    let raw = object.peek(KEY)?;
    Carried::parse(raw)?;
    object.take(KEY)
}

/// The version of a carried key that only a later version of this program can use.
pub(crate) fn later_version(raw: &str) -> Option<u64> {
    let mut object = Object::parse(raw)?;
    object.peek_str("of")?;
    object.take_number("v").filter(|version| *version > VERSION)
}

/// The source that the value of a carried key states: its format and its session. It does not decode the source.
pub fn stated_source(raw: &str) -> Option<(String, String)> {
    let mut object = Object::parse(raw)?;
    if object.take_number("v")? != VERSION {
        return None;
    }
    Some((object.take_str("of")?.into_owned(), object.take_str("session")?.into_owned()))
}

impl Carried {
    /// Parses the value of a carried key.
    pub fn parse(raw: &str) -> Option<Carried> {
        let mut object = Object::parse(raw)?;
        if object.take_number("v")? != VERSION {
            return None;
        }
        Some(Carried {
            of: object.take_str("of")?.into_owned(),
            within: object.take_str("in").map(Cow::into_owned),
            session: object.take_str("session").map(Cow::into_owned),
            number: object.take_number("n")?,
            last: object.take_bool("last").unwrap_or(false),
            seal: object.take_str("seal")?.into_owned(),
            source: object.take_text("src")?.bytes().into_owned(),
        })
    }

    /// Splits a record into the part of the source that it carries and the record without it; `None` if it carries nothing.
    pub fn open(record: &str) -> Option<(Carried, String)> {
        let mut object = Object::parse(record)?;
        let carried = Carried::parse(take(&mut object)?)?;
        let mut plain = String::new();
        object.into_extra().write_json(&mut plain);
        Some((carried, plain))
    }

    /// The value of the key, as JSON.
    pub fn render(&self) -> String {
        let last = if self.last { ",\"last\":true" } else { "" };
        let source = Text::from_bytes(&self.source).to_json();
        let (of, number, seal) = (quote(&self.of), self.number, quote(&self.seal));
        let named = |key: &str, value: &Option<String>| {
            value.as_deref().map(|value| format!(",\"{key}\":{}", quote(value))).unwrap_or_default()
        };
        let (within, session) = (named("in", &self.within), named("session", &self.session));
        format!(
            "{{\"v\":{VERSION},\"of\":{of}{within}{session},\"n\":{number}{last},\"seal\":{seal},\"src\":{source}}}"
        )
    }
}

/// The format of a carrying file, read from the beginning of the file.
pub(crate) fn carrier(head: &str) -> Option<Cow<'_, str>> {
    // The key is ours; inside a string its quotes would be escaped. The beginning may end in the middle of the key.
    let (_, mut rest) = head.split_once("\"steno\":")?;
    rest = rest.trim_start().strip_prefix('{')?;
    loop {
        let (key, after) = text(rest)?;
        let after = after.trim_start().strip_prefix(':')?.trim_start();
        if key == "in" {
            return Some(text(after)?.0);
        }
        // The values before `in` are a number or a name.
        let end = match text(after) {
            Some((_, rest)) => rest,
            None => after.trim_start_matches(|char: char| char.is_ascii_digit()),
        };
        rest = end.trim_start().strip_prefix(',')?;
    }
}

/// The string at the beginning of `json`, and the remaining JSON.
fn text(json: &str) -> Option<(Cow<'_, str>, &str)> {
    const NAME_SIZE_MAX: usize = 128;
    let json = json.trim_start();
    let inner = json.strip_prefix('"')?;
    let end = inner.bytes().take(NAME_SIZE_MAX).position(|byte| byte == b'"')?;
    let raw = json.get(..end + 2)?;
    Some((Text::from_json(raw)?.exact()?, json.get(end + 2..)?))
}

/// The fingerprint of a record. It ignores spaces and the order of keys: a tool that only reformats a record has not edited it.
pub fn seal(record: &[u8]) -> String {
    let text = String::from_utf8_lossy(record);
    format!("{:032x}", xxh3_128(crate::json::canonical(&text).as_bytes()))
}

/// Adds the carried key to a record.
pub fn attach(record: &[u8], carried: &Carried) -> Vec<u8> {
    attach_raw(record, &carried.render())
}

/// Adds the carried key to a record; `raw` is its value.
pub(crate) fn attach_raw(record: &[u8], raw: &str) -> Vec<u8> {
    let Some(end) = record.iter().rposition(|byte| *byte == b'}') else { return record.to_vec() };
    let (head, tail) = record.split_at(end);
    let body = head.trim_ascii_end();
    let comma = if body.ends_with(b"{") { "" } else { "," };
    let mut out = Vec::with_capacity(record.len() + raw.len() + 16);
    out.extend_from_slice(body);
    out.extend_from_slice(format!("{comma}\"{KEY}\":").as_bytes());
    out.extend_from_slice(raw.as_bytes());
    out.extend_from_slice(head.get(body.len()..).unwrap_or_default());
    out.extend_from_slice(tail);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_carried_run_comes_back_unchanged() {
        for record in [r#"{"a":1}"#, "{}", "{\n  \"a\": \"}\"\n}"] {
            let source = b"line \xff one\n".to_vec();
            let (within, session) = (Some("y".to_owned()), Some("s-1".to_owned()));
            let seal_of = seal(record.as_bytes());
            let carried = Carried { of: "x".into(), within, session, number: 3, last: true, seal: seal_of, source };
            let with = String::from_utf8(attach(record.as_bytes(), &carried)).unwrap();
            let raw = carried.render();
            assert_eq!(Object::parse(&with).unwrap().peek(KEY), Some(raw.as_str()));
            let (found, plain) = Carried::open(&with).unwrap();
            assert_eq!(seal(plain.as_bytes()), found.seal);
            assert_eq!(Carried::parse(&raw).unwrap(), carried);
            assert_eq!(carrier(&with).as_deref(), Some("y"));
            assert_eq!(stated_source(&raw), Some(("x".to_owned(), "s-1".to_owned())));
        }
    }

    #[test]
    fn only_the_key_itself_names_the_format() {
        assert_eq!(carrier(r#"{"a":1,"steno": {"v": 1, "of": "x", "in": "y","#).as_deref(), Some("y"));
        assert_eq!(carrier(r#"{"a":"\"steno\":{\"in\":\"y\"}"}"#), None);
        assert_eq!(carrier(r#"{"steno":{"v":1,"of":"x","n":0,"seal":"s","src":"\"in\":\"y\""}}"#), None);
        assert_eq!(carrier(r#"{"steno":{"#), None);
        assert_eq!(carrier(r#"{"steno":true}"#), None);
    }
}

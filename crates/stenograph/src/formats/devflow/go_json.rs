//! The JSON that Go's `encoding/json` writes: keys of maps are sorted, and HTML characters are escaped. This module does not
//! know what a value means.

use std::borrow::Cow;

use crate::json::{Object, compact, items};
use crate::text::quote;

/// Values nested deeper than this keep their order, so that no input exhausts the stack.
const DEPTH_MAX: u32 = 64;

/// The value with the keys of every object sorted, as Go writes a map.
pub fn sorted(raw: &str) -> Cow<'_, str> {
    sorted_below(raw, 0)
}

fn sorted_below(raw: &str, depth: u32) -> Cow<'_, str> {
    if depth > DEPTH_MAX {
        return compact(raw);
    }
    if let Some(object) = Object::parse(raw)
        && object.duplicate().is_none()
    {
        let mut fields: Vec<(&str, &str)> = object.pairs().collect();
        fields.sort_by_key(|(key, _)| *key);
        let field = |(key, raw): (&str, &str)| format!("{}:{}", quote(key), sorted_below(raw, depth + 1));
        let fields: Vec<String> = fields.into_iter().map(field).collect();
        return Cow::Owned(format!("{{{}}}", fields.join(",")));
    }
    if let Some(items) = items(raw) {
        let items: Vec<Cow<'_, str>> = items.into_iter().map(|item| sorted_below(item, depth + 1)).collect();
        return Cow::Owned(format!("[{}]", items.join(",")));
    }
    compact(raw)
}

/// The characters that Go escapes, and their escapes.
const ESCAPES: [(char, &str); 5] =
    [('<', "\\u003c"), ('>', "\\u003e"), ('&', "\\u0026"), ('\u{2028}', "\\u2028"), ('\u{2029}', "\\u2029")];

/// JSON with Go's escapes. In JSON these characters occur only inside strings.
pub fn escaped(json: &str) -> String {
    let mut out = String::with_capacity(json.len() + 16);
    for char in json.chars() {
        match ESCAPES.iter().find(|(plain, _)| *plain == char) {
            Some((_, escape)) => out.push_str(escape),
            None => out.push(char),
        }
    }
    out
}

/// JSON without Go's escapes, so that it does not matter whether they were used.
pub fn unescaped(json: Cow<'_, str>) -> Cow<'_, str> {
    if !json.contains("\\u") {
        return json;
    }
    let mut out = String::with_capacity(json.len());
    let mut rest = json.as_ref();
    while let Some((before, _)) = rest.split_once('\\') {
        out.push_str(before);
        let (_, escape) = rest.split_at(before.len());
        let matches =
            |escape_of: &str| escape.get(..escape_of.len()).is_some_and(|here| here.eq_ignore_ascii_case(escape_of));
        // Any other escape is the backslash and the character after it, which may be a backslash too.
        let length = 1 + escape.chars().nth(1).map_or(0, char::len_utf8);
        let (plain, length) = match ESCAPES.iter().find(|(_, escape_of)| matches(escape_of)) {
            Some((plain, escape_of)) => (plain.to_string(), escape_of.len()),
            None => (escape.get(..length).unwrap_or(escape).to_owned(), length),
        };
        out.push_str(&plain);
        rest = escape.get(length..).unwrap_or_default();
    }
    out.push_str(rest);
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_sorted_at_every_level() {
        assert_eq!(
            sorted(r#"{"b": [{"y":1, "x":2}], "a!":1.0, "a":null}"#),
            r#"{"a":null,"a!":1.0,"b":[{"x":2,"y":1}]}"#
        );
    }

    #[test]
    fn only_escapes_of_go_become_plain() {
        let plain = "\"<a&b>\u{2028}é\"";
        assert_eq!(unescaped(escaped(plain).into()), plain);
        assert_eq!(unescaped(r#""\u003C\u003e\\u003c\n\u00e9\"\u003""#.into()), r#""<>\\u003c\n\u00e9\"\u003""#);
    }

    #[test]
    fn html_characters_are_escaped() {
        assert_eq!(escaped("\"<a&b>\u{2028}é\""), r#""\u003ca\u0026b\u003e\u2028é""#);
    }
}

//! How Go's `encoding/json` spells values: keys of maps sorted, and the characters escaped that HTML would mistake.
//! Nothing here knows what a value is for.

use std::borrow::Cow;

use crate::json::{Object, compact, items};
use crate::text::quote;

/// Values nested deeper than this keep their order: no input may exhaust the stack.
const DEPTH_MAX: u32 = 64;

/// The value with the keys of every object in order, as Go writes a map.
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
        let spelled = |(key, raw): (&str, &str)| format!("{}:{}", quote(key), sorted_below(raw, depth + 1));
        let fields: Vec<String> = fields.into_iter().map(spelled).collect();
        return Cow::Owned(format!("{{{}}}", fields.join(",")));
    }
    if let Some(items) = items(raw) {
        let items: Vec<Cow<'_, str>> = items.into_iter().map(|item| sorted_below(item, depth + 1)).collect();
        return Cow::Owned(format!("[{}]", items.join(",")));
    }
    compact(raw)
}

/// JSON in which the characters are escaped that Go escapes. In JSON they stand only inside strings.
pub fn escaped(json: &str) -> String {
    let mut out = String::with_capacity(json.len() + 16);
    for char in json.chars() {
        match char {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            _ => out.push(char),
        }
    }
    out
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
    fn what_html_mistakes_is_escaped() {
        assert_eq!(escaped("\"<a&b>\u{2028}é\""), r#""\u003ca\u0026b\u003e\u2028é""#);
    }
}

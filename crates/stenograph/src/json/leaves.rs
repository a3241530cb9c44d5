//! The leaves of a JSON value in order, found in one pass without allocation. Search uses it; it must not be used to change a
//! value.

use super::scan::{self, Scan};
use crate::text::Text;

/// A string or a number. `true`, `false` and `null` are not leaves: no search asks for them.
#[derive(Clone, Debug, PartialEq)]
pub enum Leaf<'a> {
    /// A string.
    Text(Text<'a>),
    /// A number as spelled.
    Number(&'a str),
}

/// Calls `each` with every leaf and the key before it; an array element has the key of its array. Invalid JSON ends the walk.
pub fn leaves<'a>(raw: &'a str, each: &mut dyn FnMut(&'a str, Leaf<'a>)) {
    let bytes = raw.as_bytes();
    let (mut at, mut key) = (0, "");
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                let Some(end) = Scan::new(raw).string(at) else { return };
                let literal = raw.get(at..end).unwrap_or_default();
                at = scan::blank(bytes, end);
                if bytes.get(at) == Some(&b':') {
                    key = literal.get(1..literal.len() - 1).unwrap_or_default();
                } else if let Some(text) = Text::from_json(literal) {
                    each(key, Leaf::Text(text));
                }
            }
            b'-' | b'0'..=b'9' => {
                let rest = bytes.get(at..).unwrap_or_default();
                let length =
                    rest.iter().position(|byte| !matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E'));
                let length = length.unwrap_or(rest.len());
                each(key, Leaf::Number(raw.get(at..at + length).unwrap_or_default()));
                at += length;
            }
            _ => at += 1,
        }
    }
}

/// Calls `each` with the path of every field that is `null`: its keys as spelled, from the outermost to the innermost. Array
/// elements add no key and are not fields. Invalid JSON ends the walk.
pub(crate) fn nulls<'a>(raw: &'a str, each: &mut dyn FnMut(&[&'a str])) {
    let bytes = raw.as_bytes();
    let mut path: Vec<&str> = Vec::new();
    let (mut at, mut is_field) = (0, false);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                let Some(end) = Scan::new(raw).string(at) else { return };
                let literal = raw.get(at + 1..end - 1).unwrap_or_default();
                at = scan::blank(bytes, end);
                is_field = bytes.get(at) == Some(&b':');
                if let Some(key) = path.last_mut().filter(|_| is_field) {
                    *key = literal;
                }
                at += usize::from(is_field);
                continue;
            }
            b' ' | b'\t' | b'\n' | b'\r' => {}
            b'n' if is_field => {
                each(&path);
                is_field = false;
            }
            b'{' => {
                path.push("");
                is_field = false;
            }
            b'}' => {
                path.pop();
                is_field = false;
            }
            _ => is_field = false,
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_come_with_their_keys_in_order() {
        let mut found = Vec::new();
        leaves(r#"{"a":"x\"y","b":[1,{"c":-2.5e3},"z"],"d":true,"e":{"f" : "g:h"}}"#, &mut |key, leaf| {
            let text = match leaf {
                Leaf::Text(text) => text.decode().into_owned(),
                Leaf::Number(digits) => digits.to_owned(),
            };
            found.push(format!("{key} {text}"));
        });
        assert_eq!(found, ["a x\"y", "b 1", "c -2.5e3", "c z", "f g:h"]);
    }

    #[test]
    fn null_fields_are_found_with_their_paths() {
        let mut found = Vec::new();
        let raw = r#"{"a": null,"b":[null,{"c":null,"d":1}],"e":{"f":{"g" : null}},"h":"null","i":nullx,"j":[1]}"#;
        nulls(raw, &mut |path| found.push(path.join(".")));
        assert_eq!(found, ["a", "b.c", "e.f.g", "i"]);
        nulls("{\"a\":\"", &mut |_| {});
    }

    #[test]
    fn invalid_json_does_not_panic() {
        for odd in ["", "\"", "{\"a", "\"a\":", "é1", "--", "{\"a\":\"\\"] {
            leaves(odd, &mut |_, _| {});
        }
    }
}

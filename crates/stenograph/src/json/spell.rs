//! Other spellings of a JSON value: compact, indented, with sorted keys. Numbers and strings keep their spelling.

use std::borrow::Cow;

/// The value without white space between its tokens.
pub fn compact(raw: &str) -> Cow<'_, str> {
    let mut in_string = false;
    let mut escaped = false;
    let mut spaced = false;
    for byte in raw.bytes() {
        spaced |= step(byte, &mut in_string, &mut escaped);
    }
    if !spaced {
        return Cow::Borrowed(raw);
    }
    let mut out = String::with_capacity(raw.len());
    (in_string, escaped) = (false, false);
    for char in raw.chars() {
        let byte = if char.is_ascii() { char as u8 } else { b'x' };
        if !step(byte, &mut in_string, &mut escaped) {
            out.push(char);
        }
    }
    Cow::Owned(out)
}

/// The value on one line. A value without line breaks keeps its spaces.
pub fn one_line(raw: Cow<'_, str>) -> Cow<'_, str> {
    if memchr::memchr2(b'\n', b'\r', raw.as_bytes()).is_none() { raw } else { Cow::Owned(compact(&raw).into_owned()) }
}

/// Advances over one byte of JSON and returns whether it is white space between tokens.
fn step(byte: u8, in_string: &mut bool, escaped: &mut bool) -> bool {
    if *in_string {
        match byte {
            _ if *escaped => *escaped = false,
            b'\\' => *escaped = true,
            b'"' => *in_string = false,
            _ => {}
        }
        return false;
    }
    *in_string = byte == b'"';
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// Values below this depth stay on one line, because the indentation of deep values takes space in proportion to the square of
/// the depth.
const INDENT_DEPTH_MAX: usize = 64;

/// The value on several lines, indented by two spaces per level as in Go and JavaScript. `level` is the depth of the value.
pub fn indent(raw: &str, mut level: usize) -> String {
    let compact = compact(raw);
    let mut out = String::with_capacity(compact.len() * 2);
    let (mut in_string, mut escaped) = (false, false);
    let mut chars = compact.chars().peekable();
    let line = |out: &mut String, level: usize| {
        if level <= INDENT_DEPTH_MAX {
            out.push('\n');
            out.extend(std::iter::repeat_n("  ", level));
        }
    };
    while let Some(char) = chars.next() {
        let was_in_string = in_string;
        step(if char.is_ascii() { char as u8 } else { b'x' }, &mut in_string, &mut escaped);
        if was_in_string || in_string {
            out.push(char);
            continue;
        }
        match char {
            '{' | '[' => {
                out.push(char);
                if let Some(close @ ('}' | ']')) = chars.peek().copied() {
                    out.push(close);
                    chars.next();
                } else {
                    level += 1;
                    line(&mut out, level);
                }
            }
            '}' | ']' => {
                // A value that begins on one line ends on it.
                if level <= INDENT_DEPTH_MAX {
                    line(&mut out, level.saturating_sub(1));
                }
                level = level.saturating_sub(1);
                out.push(char);
            }
            ',' => {
                out.push(char);
                line(&mut out, level);
            }
            ':' if level <= INDENT_DEPTH_MAX => out.push_str(": "),
            _ => out.push(char),
        }
    }
    out
}

/// A spelling that equal values share: compact, keys sorted, strings with the fewest escapes. Equal keys keep their order,
/// because the last one counts. Use it only to compare.
pub fn canonical(raw: &str) -> Cow<'_, str> {
    canonical_below(raw, 0)
}

/// Deeper values are compared as spelled, so that no input exhausts the stack.
const DEPTH_MAX: u32 = 12;

fn canonical_below(raw: &str, depth: u32) -> Cow<'_, str> {
    if depth > DEPTH_MAX {
        return compact(raw);
    }
    if let Some(object) = super::Object::parse(raw) {
        let field = |(key, raw): (&str, &str)| {
            let key = crate::text::quote(key);
            (key.len() + 1, format!("{key}:{}", canonical_below(raw, depth + 1)))
        };
        let mut fields: Vec<(usize, String)> = object.pairs().map(field).collect();
        fields.sort_by(|(a, one), (b, other)| one.get(..*a).cmp(&other.get(..*b)));
        let fields: Vec<String> = fields.into_iter().map(|(_, field)| field).collect();
        return Cow::Owned(format!("{{{}}}", fields.join(",")));
    }
    if let Some(items) = super::items(raw) {
        let items: Vec<Cow<'_, str>> = items.into_iter().map(|item| canonical_below(item, depth + 1)).collect();
        return Cow::Owned(format!("[{}]", items.join(",")));
    }
    match crate::text::Text::from_json(raw).and_then(crate::text::Text::exact) {
        Some(text) => Cow::Owned(crate::text::quote(&text)),
        None => compact(raw),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compact_removes_spaces_and_indent_adds_them() {
        let spaced = "{ \"a b\" : [ 1 , {} , [] ] , \"c\" : \"x\\\" y\" }";
        assert_eq!(compact(spaced), r#"{"a b":[1,{},[]],"c":"x\" y"}"#);
        assert_eq!(indent(spaced, 0), "{\n  \"a b\": [\n    1,\n    {},\n    []\n  ],\n  \"c\": \"x\\\" y\"\n}");
    }

    #[test]
    fn deep_values_stay_on_one_line() {
        let depth = 100_000;
        let deep = format!("{}1,{{\"a\":2}}{}", "[".repeat(depth), "]".repeat(depth));
        let indented = indent(&deep, 3);
        assert!(indented.len() < deep.len() + 4 * INDENT_DEPTH_MAX * INDENT_DEPTH_MAX);
        assert_eq!(compact(&indented), deep);
    }

    #[test]
    fn equal_values_have_one_canonical_spelling() {
        assert_eq!(canonical(r#"{"b":1,"a":["\u0041"]}"#), canonical(r#"{ "a": ["A"], "b": 1 }"#));
        assert_ne!(canonical("1.0"), canonical("1"));
        assert_eq!(canonical(r#"{"b":1,"a":2,"b":3}"#), canonical(r#"{"a":2,"b":1,"b":3}"#));
        assert_ne!(canonical(r#"{"b":1,"b":3}"#), canonical(r#"{"b":3,"b":1}"#));
    }
}

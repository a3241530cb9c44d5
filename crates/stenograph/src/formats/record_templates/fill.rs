//! Fills the placeholders of a template. It knows the syntax of placeholders and not their meaning.

use crate::json::{Object, is_valid, items, word};
use crate::text::quote;

/// Finds the JSON value of a placeholder.
pub type PlaceholderValues<'v> = dyn Fn(&str) -> Option<String> + 'v;

/// A template with its values.
pub fn filled(template: &str, values: &PlaceholderValues<'_>) -> String {
    value(template, values).json
}

/// A part of a template with its values.
struct Filled {
    json: String,
    /// Whether anything decides that the part is needed: a placeholder with a value, or no placeholder at all.
    is_needed: bool,
}

fn value(template: &str, values: &PlaceholderValues<'_>) -> Filled {
    if let Some(object) = Object::parse(template) {
        let parts = object.pairs().map(|(key, raw)| (Some(key), raw));
        return list(parts, ('{', '}'), values);
    }
    if let Some(elements) = items(template) {
        return list(elements.into_iter().map(|raw| (None, raw)), ('[', ']'), values);
    }
    let name = word(template).and_then(|word| word.strip_prefix('<')?.strip_suffix('>').map(str::to_owned));
    let Some(name) = name else { return Filled { json: template.to_owned(), is_needed: true } };
    if let Some((flag, (yes, no))) = name.split_once('?').and_then(|(flag, words)| Some((flag, words.split_once(':')?)))
    {
        let chosen = if values(flag).as_deref() == Some("true") { yes } else { no };
        return Filled { json: quote(chosen), is_needed: true };
    }
    match name.split_once('|') {
        None => {
            let json = values(&name);
            Filled { is_needed: json.is_some(), json: json.unwrap_or_default() }
        }
        Some((name, default)) => {
            let default = || if is_valid(default) { default.to_owned() } else { quote(default) };
            let json = values(name).or_else(|| (!is_optional(template)).then(default));
            Filled { is_needed: json.is_some(), json: json.unwrap_or_default() }
        }
    }
}

/// Whether a placeholder ends in `|`: it has no default, and never decides that an object is needed.
fn is_optional(template: &str) -> bool {
    template.ends_with("|>\"")
}

/// The members of an object, or the elements of an array.
fn list<'t>(
    parts: impl Iterator<Item = (Option<&'t str>, &'t str)>,
    (open, close): (char, char),
    values: &PlaceholderValues<'_>,
) -> Filled {
    let mut json = String::from(open);
    let (mut deciding, mut found) = (0, 0);
    for (key, raw) in parts {
        let part = value(raw, values);
        if is_deciding(raw) {
            deciding += 1;
            found += usize::from(part.is_needed);
        }
        if !part.is_needed {
            continue;
        }
        if json.len() > 1 {
            json.push(',');
        }
        if let Some(key) = key {
            json.push_str(&quote(key));
            json.push(':');
        }
        json.push_str(&part.json);
    }
    json.push(close);
    Filled { json, is_needed: deciding == 0 || found > 0 }
}

/// Whether a part has a placeholder without a default.
fn is_deciding(raw: &str) -> bool {
    raw.match_indices("\"<").any(|(at, _)| {
        let name = raw.get(at + 2..).and_then(|rest| rest.split_once(">\"")).map(|(name, _)| name);
        name.is_some_and(|name| !name.contains(['|', '?']))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(template: &str) -> String {
        filled(template, &|name| match name {
            "id" => Some("\"1\"".to_owned()),
            "error" => Some("true".to_owned()),
            _ => None,
        })
    }

    #[test]
    fn placeholders_take_their_values_and_members_without_one_are_left_out() {
        assert_eq!(fill(r#"{"a":"<id>","b":"<cwd>","c":[1, 2]}"#), r#"{"a":"1","c":[1,2]}"#);
        assert_eq!(fill(r#"{"a":{"b":"<cost|0>"},"c":"<model|null>"}"#), r#"{"a":{"b":0},"c":null}"#);
        assert_eq!(fill(r#"{"a":"<cwd|/>","b":"<model|>","c":"<id|>"}"#), r#"{"a":"/","c":"1"}"#);
        assert_eq!(
            fill(r#"{"a":"<error?bad:good>","b":"<restates?x:y>","c":"a < b"}"#),
            r#"{"a":"bad","b":"y","c":"a < b"}"#
        );
    }

    #[test]
    fn an_object_without_any_value_is_left_out() {
        assert_eq!(fill(r#"{"u":{"in":"<input>","out":"<output|0>","k":1},"v":1}"#), r#"{"v":1}"#);
        assert_eq!(fill(r#"{"u":{"in":"<id>","out":"<output|0>"}}"#), r#"{"u":{"in":"1","out":0}}"#);
        assert_eq!(fill(r#"{"r":[{"x":{"y":"<cwd>"}}],"s":[{"x":"<id>"}],"t":{}}"#), r#"{"s":[{"x":"1"}],"t":{}}"#);
    }
}

//! The schema of a format's records: the fields and types that the real system's own reader requires. Every record written for
//! another system is checked against it. This module knows no format.
//!
//! A line of a schema is `CONDITION: FIELD TYPES, FIELD TYPES`. The condition is `*` for every record, or `PATH=TEXT` (several
//! joined by `&`). A field is a path (`message.content[].type` means every element). Its types are joined by `|`, out of
//! `text`, `number`, `flag`, `object`, `list`, `null` and `any`; a `?` at the end makes the field optional.

use crate::json::{Object, items};

/// The requirements of one format, parsed.
#[derive(Debug, Default)]
pub struct RecordSchema {
    rules: Vec<Rule>,
}

#[derive(Debug)]
struct Rule {
    conditions: Vec<(&'static str, &'static str)>,
    fields: Vec<Field>,
}

#[derive(Debug)]
struct Field {
    path: &'static str,
    types: &'static str,
    optional: bool,
}

impl RecordSchema {
    /// Parses the lines of a schema.
    pub fn new(lines: &'static [&'static str]) -> RecordSchema {
        RecordSchema { rules: lines.iter().filter_map(|line| rule(line)).collect() }
    }

    /// The first violation in a record, if there is one. A value that is not an object has none.
    pub(crate) fn objection(&self, record: &str) -> Option<String> {
        if self.rules.is_empty() {
            return None;
        }
        let mut record = Parsed { root: Object::parse(record)?, opened: Vec::new() };
        for rule in &self.rules {
            let met = rule.conditions.iter().all(|(path, value)| {
                record
                    .value(path)
                    .is_some_and(|raw| raw.strip_prefix('"').and_then(|raw| raw.strip_suffix('"')) == Some(*value))
            });
            if met && let Some(objection) = rule.fields.iter().find_map(|field| field.objection(&mut record)) {
                return Some(objection);
            }
        }
        None
    }
}

/// A record whose inner objects are parsed at most once, however many rules refer to them.
struct Parsed<'a> {
    root: Object<'a>,
    opened: Vec<(&'static str, Option<Object<'a>>)>,
}

impl<'a> Parsed<'a> {
    /// The raw value at a path without lists.
    fn value(&mut self, path: &'static str) -> Option<&'a str> {
        let Some((parent, key)) = path.rsplit_once('.') else { return self.root.peek(path) };
        if !self.opened.iter().any(|(opened, _)| *opened == parent) {
            let object = self.value(parent).and_then(Object::parse);
            self.opened.push((parent, object));
        }
        let (_, object) = self.opened.iter().find(|(opened, _)| *opened == parent)?;
        object.as_ref()?.peek(key)
    }

    /// The raw values at a path.
    fn values(&mut self, path: &'static str) -> Vec<&'a str> {
        let Some((list, below)) = path.split_once("[]") else { return self.value(path).into_iter().collect() };
        let elements = self.value(list).and_then(items).unwrap_or_default();
        let below = below.strip_prefix('.').unwrap_or(below);
        let at = |element: &'a str| {
            below.split('.').filter(|key| !key.is_empty()).try_fold(element, |raw, key| Object::parse(raw)?.peek(key))
        };
        elements.into_iter().filter_map(at).collect()
    }
}

impl Field {
    fn objection(&self, record: &mut Parsed<'_>) -> Option<String> {
        let found = record.values(self.path);
        // The schema requires nothing of the elements of an empty or missing list.
        if found.is_empty() && !self.optional && !self.path.contains("[]") {
            return Some(format!("{} is missing", self.path));
        }
        let fits = |found: &&str| self.types.split('|').any(|one| one == "any" || one == *found);
        let wrong = found.into_iter().map(type_of).find(|found| !fits(found))?;
        Some(format!("{} is {wrong}, not {}", self.path, self.types))
    }
}

fn rule(line: &'static str) -> Option<Rule> {
    let (conditions, fields) = line.split_once(": ")?;
    let conditions = conditions.split('&').filter_map(|condition| condition.trim().split_once('=')).collect();
    let field = |field: &'static str| {
        let (path, types) = field.trim().split_once(' ')?;
        let optional = types.ends_with('?');
        Some(Field { path, types: types.trim_end_matches('?'), optional })
    };
    Some(Rule { conditions, fields: fields.split(", ").filter_map(field).collect() })
}

fn type_of(raw: &str) -> &'static str {
    match raw.as_bytes().first() {
        Some(b'"') => "text",
        Some(b'{') => "object",
        Some(b'[') => "list",
        Some(b't' | b'f') => "flag",
        Some(b'n') => "null",
        _ => "number",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_checked_against_its_schema() {
        let schema = RecordSchema::new(&["*: id text", "type=a & b.c=x: list[].n number, on flag?, b object|null"]);
        assert_eq!(schema.objection(r#"{"id":"1"}"#), None);
        assert_eq!(schema.objection(r#"{"id":1}"#).unwrap(), "id is number, not text");
        assert_eq!(schema.objection(r#"{"a":1}"#).unwrap(), "id is missing");
        assert_eq!(schema.objection(r#"{"id":"1","type":"a","b":{"c":"x"},"list":[{"n":1},{"n":2}]}"#), None);
        let wrong = r#"{"id":"1","type":"a","b":{"c":"x"},"list":[{"n":1},{"n":"2"}]}"#;
        assert_eq!(schema.objection(wrong).unwrap(), "list[].n is text, not number");
    }
}

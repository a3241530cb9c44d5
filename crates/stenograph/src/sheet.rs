//! The sheet of a format: what the real system's own reader demands of a record, in a few lines. Everything that is written for
//! another system is held against its sheet. Nothing here knows a format.
//!
//! A line of a sheet is `CONDITION: FIELD TYPES, FIELD TYPES`. The condition is `*` for every record, or `PATH=TEXT` (several
//! joined by `&`). A field is a path (`message.content[].type` speaks of every element); its types are joined by `|`, out of `text`,
//! `number`, `flag`, `object`, `list`, `null` and `any`; a `?` at the end allows it to be absent.

use crate::json::{Object, items};

/// A sheet, ready to be used.
#[derive(Debug, Default)]
pub struct Sheet {
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

impl Sheet {
    /// The sheet of these lines.
    pub fn new(lines: &'static [&'static str]) -> Sheet {
        Sheet { rules: lines.iter().filter_map(|line| rule(line)).collect() }
    }

    /// What is wrong with a record, if anything is. What is no object has no sheet.
    pub fn objection(&self, record: &str) -> Option<String> {
        if self.rules.is_empty() {
            return None;
        }
        Object::parse(record)?;
        let meets = |rule: &&Rule| {
            let text = |path: &str| values(record, path).first().map(|raw| raw.trim_matches('"').to_owned());
            rule.conditions.iter().all(|(path, value)| text(path).as_deref() == Some(*value))
        };
        self.rules.iter().filter(meets).flat_map(|rule| &rule.fields).find_map(|field| field.objection(record))
    }
}

impl Field {
    fn objection(&self, record: &str) -> Option<String> {
        let found = values(record, self.path);
        // Of a list that is empty or is none, nothing is demanded.
        if found.is_empty() && !self.optional && !self.path.contains("[]") {
            return Some(format!("{} is missing", self.path));
        }
        let wrong = found
            .into_iter()
            .map(type_of)
            .find(|found| !self.types.split('|').any(|one| one == "any" || one == *found))?;
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

/// The raw values at a path.
fn values<'a>(record: &'a str, path: &str) -> Vec<&'a str> {
    let mut found = vec![record];
    for step in path.split('.') {
        let (key, each) = step.strip_suffix("[]").map_or((step, false), |key| (key, true));
        found = found.into_iter().filter_map(|raw| Object::parse(raw)?.peek(key)).collect();
        if each {
            found = found.into_iter().filter_map(items).flatten().collect();
        }
    }
    found
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
    fn a_record_is_held_against_its_sheet() {
        let sheet = Sheet::new(&["*: id text", "type=a & b.c=x: list[].n number, on flag?, b object|null"]);
        assert_eq!(sheet.objection(r#"{"id":"1"}"#), None);
        assert_eq!(sheet.objection(r#"{"id":1}"#).unwrap(), "id is number, not text");
        assert_eq!(sheet.objection(r#"{"a":1}"#).unwrap(), "id is missing");
        assert_eq!(sheet.objection(r#"{"id":"1","type":"a","b":{"c":"x"},"list":[{"n":1},{"n":2}]}"#), None);
        let wrong = r#"{"id":"1","type":"a","b":{"c":"x"},"list":[{"n":1},{"n":"2"}]}"#;
        assert_eq!(sheet.objection(wrong).unwrap(), "list[].n is text, not number");
    }
}

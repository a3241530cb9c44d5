//! Spells the rows of a table as lines, as [`stenograph::model::DatabaseTables`] describes them, so that each row can be
//! rebuilt.

use std::io::Write;

use base64::Engine as _;
use rusqlite::Row;
use rusqlite::types::ValueRef;
use stenograph::json::Object;
use stenograph::model::is_embedded;

/// The key of bytes in base64.
const BLOB: &str = "$blob";

/// What the upper row gives to a row below it: its table, and names with their JSON.
pub(super) type Inherited<'a> = (&'a str, &'a [(&'static str, String)]);

/// The line of a row without its line break.
pub(super) fn line(
    table: &str,
    columns: &[String],
    row: &Row<'_>,
    inherited: Option<Inherited<'_>>,
    line: &mut Vec<u8>,
) -> rusqlite::Result<()> {
    begin(table, inherited, line);
    for (at, name) in columns.iter().enumerate() {
        column(name, line);
        value(row.get_ref(at)?, line);
    }
    line.push(b'}');
    Ok(())
}

/// Begins the line of a row: its table and what it inherits.
pub(super) fn begin(table: &str, inherited: Option<Inherited<'_>>, line: &mut Vec<u8>) {
    line.clear();
    line.extend_from_slice(b"{\"table\":");
    text(table, line);
    if let Some((upper, fields)) = inherited {
        line.push(b',');
        text(upper, line);
        line.extend_from_slice(b":{");
        for (at, (name, value)) in fields.iter().enumerate() {
            line.extend_from_slice(if at > 0 { b"," } else { b"" });
            text(name, line);
            line.push(b':');
            line.extend_from_slice(value.as_bytes());
        }
        line.push(b'}');
    }
}

/// Begins a column, whose value follows.
pub(super) fn column(name: &str, line: &mut Vec<u8>) {
    line.push(b',');
    text(name, line);
    line.push(b':');
}

/// What the rows below a row inherit from its line.
pub(super) fn inherited(inherits: &[(&'static str, &'static str)], line: &[u8]) -> Vec<(&'static str, String)> {
    let line = std::str::from_utf8(line).unwrap_or_default();
    let value = |path: &str| path.split('.').try_fold(line, |value, key| Object::parse(value)?.peek(key));
    let stated = |path: &str| value(path).filter(|raw| *raw != "null").map(str::to_owned);
    inherits.iter().filter_map(|(name, path)| Some((*name, stated(path)?))).collect()
}

pub(super) fn value(value: ValueRef<'_>, out: &mut Vec<u8>) {
    match value {
        ValueRef::Null => out.extend_from_slice(b"null"),
        ValueRef::Integer(number) => drop(write!(out, "{number}")),
        // A number of SQLite may be infinite, which JSON spells as a number that is too large.
        ValueRef::Real(number) if number.is_infinite() => {
            out.extend_from_slice(if number > 0.0 { b"9e999" } else { b"-9e999" });
        }
        // It always has a point or an exponent, unlike an integer.
        ValueRef::Real(number) => drop(write!(out, "{number:?}")),
        ValueRef::Text(bytes) => match std::str::from_utf8(bytes) {
            Ok(json) if is_embedded(json) => out.extend_from_slice(bytes),
            Ok(plain) => text(plain, out),
            Err(_) => encoded("$text", bytes, out),
        },
        ValueRef::Blob(bytes) => encoded(BLOB, bytes, out),
    }
}

fn text(plain: &str, out: &mut Vec<u8>) {
    // Writing to memory does not fail.
    let _ = serde_json::to_writer(out, plain);
}

fn encoded(key: &str, bytes: &[u8], out: &mut Vec<u8>) {
    let digits = base64::engine::general_purpose::STANDARD.encode(bytes);
    drop(write!(out, "{{\"{key}\":\"{digits}\"}}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spelled(value_ref: ValueRef<'_>) -> String {
        let mut out = Vec::new();
        value(value_ref, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_value_can_be_told_from_every_other() {
        let text = |text: &str| spelled(ValueRef::Text(text.as_bytes()));
        assert_eq!(text("{\"a\": 1.50}"), "{\"a\": 1.50}");
        assert_eq!(text("[1,2]"), "[1,2]");
        assert_eq!(text("{\"a\": }"), r#""{\"a\": }""#);
        assert_eq!(text("{\n}"), r#""{\n}""#);
        assert_eq!(text("{\"$blob\":\"\"}"), r#""{\"$blob\":\"\"}""#);
        assert_eq!(text("12"), "\"12\"");
        assert_eq!(spelled(ValueRef::Integer(12)), "12");
        assert_eq!(spelled(ValueRef::Real(12.0)), "12.0");
        assert_eq!(spelled(ValueRef::Real(f64::NEG_INFINITY)), "-9e999");
        assert_eq!(spelled(ValueRef::Null), "null");
        assert_eq!(spelled(ValueRef::Blob(b"a")), "{\"$blob\":\"YQ==\"}");
        assert_eq!(spelled(ValueRef::Blob(b"ab\xff")), "{\"$blob\":\"YWL/\"}");
        assert_eq!(spelled(ValueRef::Text(b"\xff\xfe")), "{\"$text\":\"//4=\"}");
    }
}

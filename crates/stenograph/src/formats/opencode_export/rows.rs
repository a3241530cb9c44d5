//! Makes the document of a conversation from its rows, so that OpenCode imports what it once wrote. Every field of the rows that the
//! document has a place for keeps its spelling.

use std::io::{self, BufRead, Write};

use crate::json::{Draft, Object, compact, indent, number};
use crate::text::quote;

/// The columns of a session that have another name in the document. Others have none there, or their own.
const COLUMNS: &[(&str, &str)] = &[
    ("project_id", "projectID"),
    ("workspace_id", "workspaceID"),
    ("parent_id", "parentID"),
    ("time_created", "time.created"),
    ("time_updated", "time.updated"),
    ("time_compacting", "time.compacting"),
    ("time_archived", "time.archived"),
    ("share_url", "share.url"),
    ("summary_additions", "summary.additions"),
    ("summary_deletions", "summary.deletions"),
    ("summary_files", "summary.files"),
    ("summary_diffs", "summary.diffs"),
    ("tokens_input", "tokens.input"),
    ("tokens_output", "tokens.output"),
    ("tokens_reasoning", "tokens.reasoning"),
    ("tokens_cache_read", "tokens.cache.read"),
    ("tokens_cache_write", "tokens.cache.write"),
];

/// Writes the document of these rows. Returns the number of rows that have no place in it.
pub fn document(rows: &mut dyn BufRead, out: &mut dyn Write) -> io::Result<u64> {
    let (mut left_out, mut messages, mut has_parts, mut has_head) = (0, 0_u64, false, false);
    let mut line = String::new();
    loop {
        line.clear();
        if rows.read_line(&mut line)? == 0 {
            break;
        }
        let row = Object::parse(line.trim_end()).filter(|row| row.peek("unread").is_none());
        let table = row.as_ref().and_then(|row| row.peek_str("table"));
        match (row, table.as_deref()) {
            (Some(row), Some("session")) if !has_head => {
                has_head = true;
                write!(out, "{{\n  \"info\": {},\n  \"messages\": [", indent(&session(&row), 1))?;
            }
            (Some(row), Some("message")) if has_head => {
                let end = if messages > 0 { end_of_message(has_parts, ",") } else { String::new() };
                let info = indent(&with_ids(&row, &[("id", "id"), ("session_id", "sessionID")]), 3);
                write!(out, "{end}\n    {{\n      \"info\": {info},\n      \"parts\": [")?;
                (messages, has_parts) = (messages + 1, false);
            }
            (Some(row), Some("part")) if messages > 0 && row.peek("message") != Some("{}") => {
                let ids = [("id", "id"), ("session_id", "sessionID"), ("message_id", "messageID")];
                let comma = if has_parts { "," } else { "" };
                write!(out, "{comma}\n        {}", indent(&with_ids(&row, &ids), 4))?;
                has_parts = true;
            }
            _ => left_out += 1,
        }
    }
    if !has_head {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the rows have no session"));
    }
    let end = if messages > 0 { end_of_message(has_parts, "") + "\n  " } else { String::new() };
    writeln!(out, "{end}]\n}}")?;
    Ok(left_out)
}

fn end_of_message(has_parts: bool, comma: &str) -> String {
    let indentation = if has_parts { "\n      " } else { "" };
    format!("{indentation}]\n    }}{comma}")
}

/// The data of a row with the ids that its columns state.
fn with_ids(row: &Object<'_>, ids: &[(&str, &str)]) -> String {
    let data = row.peek("data").and_then(Object::parse);
    let own =
        data.iter().flat_map(|data| data.pairs().map(|(key, value)| format!("{}:{}", quote(key), compact(value))));
    let ids = ids.iter().filter_map(|(column, key)| Some(format!("{}:{}", quote(key), compact(row.peek(column)?))));
    format!("{{{}}}", own.chain(ids).collect::<Vec<_>>().join(","))
}

/// The information of a session: its columns, and the rest of its file if it had one.
fn session(row: &Object<'_>) -> String {
    let mut fields: Vec<(String, String)> = Vec::new();
    for (column, value) in row.pairs().filter(|(_, value)| *value != "null") {
        let path = COLUMNS.iter().find(|(name, _)| *name == column).map_or(column, |(_, path)| path);
        if !matches!(column, "table" | "database" | "data") {
            fields.push((path.to_owned(), compact(value).into_owned()));
        }
    }
    for (key, value) in row.peek("data").and_then(Object::parse).iter().flat_map(Object::pairs) {
        let is_known = |(path, _): &(String, String)| path.split('.').next() == Some(key);
        // The columns copy the time of the file.
        fields.retain(|field| key != "time" || !is_known(field));
        fields.push((key.to_owned(), compact(value).into_owned()));
    }
    // The importer needs it, and an earlier version did not write it.
    if !fields.iter().any(|(path, _)| path == "slug") {
        fields.push(("slug".to_owned(), quote("steno")));
    }
    if !fields.iter().any(|(path, _)| path == "time.updated" || path == "time") {
        let created = fields.iter().find(|(path, value)| path == "time.created" && number(value).is_some());
        let created = created.map_or_else(|| "0".to_owned(), |(_, value)| value.clone());
        fields.push(("time.updated".to_owned(), created));
    }
    nested(&fields.iter().map(|(path, value)| (path.as_str(), value.as_str())).collect::<Vec<_>>())
}

/// The object with these values at these paths.
fn nested(fields: &[(&str, &str)]) -> String {
    let mut draft = Draft::new();
    let mut done: Vec<&str> = Vec::new();
    for (path, value) in fields {
        match path.split_once('.') {
            None => draft.set((*path).to_owned(), (*value).to_owned()),
            Some((key, _)) if done.contains(&key) => {}
            Some((key, _)) => {
                done.push(key);
                let below = |(path, value): &(&'_ str, &'_ str)| {
                    let (of, below) = path.split_once('.')?;
                    (of == key).then(|| (below.to_owned(), (*value).to_owned()))
                };
                let inner: Vec<(String, String)> = fields.iter().filter_map(below).collect();
                let inner: Vec<(&str, &str)> =
                    inner.iter().map(|(path, value)| (path.as_str(), value.as_str())).collect();
                draft.set(key.to_owned(), nested(&inner));
            }
        }
    }
    draft.render(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::{opencode::OPENCODE, opencode_export::OPENCODE_EXPORT};
    use crate::model::Body;

    #[test]
    fn a_document_of_rows_has_the_events_of_the_rows() {
        let rows = include_str!("../opencode/fixtures/demo.jsonl");
        let mut made = Vec::new();
        let left_out = document(&mut rows.as_bytes(), &mut made).unwrap();
        // The row without its message, and the to-do list.
        assert_eq!(left_out, 2);
        let said = |format: &dyn crate::format::Format, bytes: &[u8]| -> Vec<String> {
            let events = crate::read::all(format, bytes).events;
            let of_row = |event: &&crate::model::Event<'_>| {
                !matches!(&event.body, Body::Fact { fact, .. } if fact == "todo")
                    && event.group.as_deref() != Some("msg_gone")
            };
            events
                .iter()
                .filter(of_row)
                .map(|event| format!("{:?} {:?} {:?}", event.body, event.id, event.group))
                .collect()
        };
        assert_eq!(said(&OPENCODE_EXPORT, &made), said(&OPENCODE, rows.as_bytes()));
    }

    #[test]
    fn rows_without_a_session_make_no_document() {
        assert!(document(&mut "{\"table\":\"message\"}\n".as_bytes(), &mut Vec::new()).is_err());
        let mut made = Vec::new();
        document(&mut "{\"table\":\"session\",\"id\":\"ses_1\"}\n".as_bytes(), &mut made).unwrap();
        let made = String::from_utf8(made).unwrap();
        assert!(crate::json::is_valid(&made) && made.contains("\"messages\": []"), "{made}");
    }
}

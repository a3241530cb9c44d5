//! The tables of a SQLite database in which an agent keeps its conversations. A program that opens databases gives each
//! conversation as lines: one row per line, in the order that these tables state.
//!
//! A line is a JSON object: `table` with the name of the table, then the columns of the row in their order. A text that is a
//! JSON object or array is embedded as it is spelled, any other text is a string; a number, and `null`, are themselves. Bytes
//! are `{"$blob":"…"}` in base64. The line of a row below another row states first what it inherits from that one, in an
//! object with the name of that one's table. If several agents have the same tables, the first line names the agent:
//! `"database":{"agent":"…"}` after `table`.

use serde::de::IgnoredAny;

/// Whether a text of a row is embedded in its line as it is spelled: a JSON object or array on one line that cannot be mistaken
/// for bytes.
pub fn is_embedded(json: &str) -> bool {
    let is_open = json.starts_with(['{', '[']) && !json.starts_with("{\"$");
    is_open
        && json.ends_with(['}', ']'])
        && memchr::memchr2(b'\n', b'\r', json.as_bytes()).is_none()
        && serde_json::from_str::<IgnoredAny>(json).is_ok()
}

/// The tables that hold conversations.
#[derive(Clone, Copy, Debug)]
pub struct DatabaseTables {
    /// The agent, if another one has the same tables.
    pub owner: Option<DatabaseOwner>,
    /// The table with one row per conversation, which is its first line.
    pub session: SessionTable,
    /// The tables with the rows of a conversation, one after the other.
    pub rows: &'static [RowTable],
}

/// A folder in which an earlier version of the agent kept the same rows, one JSON file per row: `session/*/<id>.json`,
/// `message/<session>/<id>.json`, `part/<message>/<id>.json`. The names are those of the tables; further tables have one file per
/// conversation, `todo/<session>.json`. The line of such a row has the columns that the file states, then `data` with the rest of
/// the file. If the file is not JSON, `unread` says so and `data` is its text.
#[derive(Clone, Copy, Debug)]
pub struct RowFolder {
    /// Its name.
    pub name: &'static str,
    /// For each table the fields that are columns, each with the name of its column. They are not part of `data`.
    pub columns: &'static [(&'static str, &'static [(&'static str, &'static str)])],
    /// Where a file may state when its row was made. The first of these that it has is the column `time_created`; if it has none,
    /// that of its upper row is.
    pub created: &'static [&'static str],
}

/// The agent of a database whose tables another agent has too.
#[derive(Clone, Copy, Debug)]
pub struct DatabaseOwner {
    /// Its name, which the first line of a conversation states.
    pub agent: &'static str,
    /// A table that only its databases have, by which one is recognized outside its home.
    pub table: &'static str,
}

/// The table with one row per conversation.
#[derive(Clone, Copy, Debug)]
pub struct SessionTable {
    /// Its name.
    pub table: &'static str,
    /// The column with the id of the conversation.
    pub key: &'static str,
    /// The column with its title, if it has one.
    pub title: Option<&'static str>,
    /// The column with the time of its last change.
    pub updated: &'static str,
}

/// A table with rows of a conversation.
#[derive(Clone, Copy, Debug)]
pub struct RowTable {
    /// Its name.
    pub table: &'static str,
    /// The column with the id of the conversation.
    pub session: &'static str,
    /// The columns that order the rows.
    pub order: &'static [&'static str],
    /// The columns with what the rows say, which every database has. None if the table came with a later version, or is gone with
    /// one.
    pub columns: &'static [&'static str],
    /// What a row inherits from the row of its conversation: a name, and the path in the line of that row. `null` is not inherited.
    pub inherits: &'static [(&'static str, &'static str)],
    /// The table whose rows follow each row of this one.
    pub below: Option<LowerTable>,
}

impl RowTable {
    /// A table that not every database has.
    pub const fn of(table: &'static str, session: &'static str, order: &'static [&'static str]) -> RowTable {
        RowTable { table, session, order, columns: &[], inherits: &[], below: None }
    }
}

/// A table whose rows belong to a row of another table. A row without such an upper row follows all others.
#[derive(Clone, Copy, Debug)]
pub struct LowerTable {
    /// Its name.
    pub table: &'static str,
    /// The column with the id of the conversation.
    pub session: &'static str,
    /// The column with the key of the upper row.
    pub upper: &'static str,
    /// The column of the upper row with its key.
    pub upper_key: &'static str,
    /// The columns that order the rows.
    pub order: &'static [&'static str],
    /// The columns with what the rows say, which every database has.
    pub columns: &'static [&'static str],
    /// What a row inherits from its upper row: a name, and the path in the line of that row.
    pub inherits: &'static [(&'static str, &'static str)],
}

//! Kilo: the rows of a conversation in its database, one per line. See `README.md` beside this file.

use super::record_map::MappedFormat;
use super::{opencode_export, opencode_rows};
use crate::format::{FormatInfo, Head, Sniff};
use crate::model::{DatabaseOwner, DatabaseTables};

const NAME: &str = "kilo";

static INFO: FormatInfo = FormatInfo {
    name: NAME,
    agent: NAME,
    title: "Kilo's sessions, the rows of its database",
    homes: &["{XDG_DATA_HOME|~/.local/share}/kilo/kilo.db"],
    database: Some(DatabaseTables {
        owner: Some(DatabaseOwner { agent: NAME, table: "kilo_board" }),
        ..opencode_rows::DATABASE
    }),
    resume: Some("kilo -s {session}"),
    import: Some(opencode_export::import("kilo import {file}", "kilo session delete {session}")),
    spec: "what release 7.7 writes",
    ..opencode_rows::INFO
};

/// The format `kilo`.
pub static KILO: MappedFormat =
    MappedFormat { info: &INFO, sniff, map_of: opencode_rows::map_of, kind: "table", foreign: None };

fn sniff(head: &Head<'_>) -> Sniff {
    opencode_rows::sniff(head, Some(NAME))
}

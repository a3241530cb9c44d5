//! OpenCode: the rows of a conversation in its database, one per line. See `README.md` beside this file.

use super::record_map::MappedFormat;
use super::{opencode_export, opencode_rows};
use crate::format::{FormatInfo, Head, Sniff};

static INFO: FormatInfo = FormatInfo {
    name: "opencode",
    agent: "opencode",
    title: "OpenCode's sessions, the rows of its database",
    homes: &[
        "{XDG_DATA_HOME|~/.local/share}/opencode/opencode.db",
        "{XDG_DATA_HOME|~/.local/share}/opencode/opencode-*.db",
        "{XDG_DATA_HOME|~/.local/share}/opencode/storage/session/*/<session>.json",
    ],
    folder: Some(opencode_rows::FOLDER),
    resume: Some("opencode -s {session}"),
    import: Some(opencode_export::import("opencode import {file}", "opencode session delete {session}")),
    spec: "what releases 1.1 and 1.18 write",
    ..opencode_rows::INFO
};

/// The format `opencode`.
pub static OPENCODE: MappedFormat =
    MappedFormat { info: &INFO, sniff, map_of: opencode_rows::map_of, kind: "table", foreign: None };

fn sniff(head: &Head<'_>) -> Sniff {
    opencode_rows::sniff(head, None)
}

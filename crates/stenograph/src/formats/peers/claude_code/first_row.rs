//! ccstat 0.6.2: of all lines about a call the first one counts.

use std::collections::HashSet;

use super::{amount, count, flag, text};
use crate::formats::claude_code::NAME;
use crate::formats::peers::{PeerCounter, PeerRule};
use crate::json::Object;
use crate::ledger::{PeerRows, Tokens};
use crate::text::Str;

/// Fields that must be strings if present; otherwise the program cannot read the line.
const TEXTS: [&str; 9] =
    ["sessionId", "type", "uuid", "cwd", "parentUuid", "userType", "version", "gitBranch", "requestId"];

/// The model name of answers that the agent wrote itself.
const SYNTHETIC: &str = "<synthetic>";

#[derive(Debug, Default)]
pub(super) struct FirstRow {
    counted: PeerRows,
    seen: HashSet<u128>,
    sources: u32,
    path: String,
    /// The last source that has a warning.
    warned: u32,
}

impl PeerCounter for FirstRow {
    fn source(&mut self, path: &str) {
        self.sources += 1;
        path.clone_into(&mut self.path);
    }

    fn line(&mut self, number: u64, line: &[u8]) {
        let Ok(line) = std::str::from_utf8(line) else {
            if self.warned != self.sources {
                self.warned = self.sources;
                let warning = format!(
                    "{}: ccstat stops at a file that is not UTF-8; steno skips only its invalid lines",
                    self.path
                );
                self.counted.warnings.push(warning);
            }
            return;
        };
        self.read(number, line);
    }

    fn finish(self: Box<Self>) -> PeerRows {
        self.counted
    }
}

impl FirstRow {
    /// Reads a line; nothing comes of one that the program cannot read or leaves out.
    fn read(&mut self, number: u64, line: &str) -> Option<()> {
        let record = Object::parse(line)?;
        let message = record.peek_object("message")?;
        let usage = message.peek_object("usage")?;
        let model = text(&message, "model")??;
        let tokens = Tokens {
            input: usage.peek("input_tokens").and_then(crate::json::number)?,
            output: count(&usage, "output_tokens")?,
            cache_read: count(&usage, "cache_read_input_tokens")?,
            cache_write: count(&usage, "cache_creation_input_tokens")?,
            ..Tokens::default()
        };
        let time = text(&record, "timestamp")??;
        let is_readable = TEXTS.iter().all(|key| text(&record, key).is_some())
            && flag(&record, "isSidechain").is_some()
            && ["cost_usd", "costUSD"].iter().all(|key| amount(&record, key).is_some());
        let is_failure = flag(&record, "isApiErrorMessage")?.unwrap_or(false);
        let (id, request) = (text(&message, "id")?, text(&record, "requestId")?);
        // Even a line that does not count occupies its key.
        if !is_readable || !self.is_first(id.as_deref(), request.as_deref()) {
            return None;
        }
        let is_answer = text(&record, "type")?.is_none_or(|kind| kind == "assistant");
        let time = PeerRule::FirstRow.moment(&time).filter(|_| is_answer && !is_failure && model != SYNTHETIC)?;
        let mut row = self.counted.row(NAME, number, Some(time), tokens);
        let mut name = |name: Option<Str<'_>>| name.map(|name| self.counted.name(&name));
        let field = |key: &str| text(&record, key).flatten();
        (row.model, row.session, row.cwd) = (name(Some(model)), name(field("sessionId")), name(field("cwd")));
        (row.branch, row.thread) = (name(field("gitBranch")), name(field("agentId")));
        self.counted.keep(self.sources.saturating_sub(1), row);
        Some(())
    }

    fn is_first(&mut self, id: Option<&str>, request: Option<&str>) -> bool {
        let key = match (id, request) {
            (Some(id), Some(request)) => format!("{id}-{request}"),
            (Some(one), None) | (None, Some(one)) => one.to_owned(),
            (None, None) => return true,
        };
        self.seen.insert(xxhash_rust::xxh3::xxh3_128(key.as_bytes()))
    }
}

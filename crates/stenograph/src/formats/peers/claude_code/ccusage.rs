//! The daily report of ccusage 20: which lines report a call. `calls.rs` decides which lines report the same call.

use memchr::memmem;

use super::calls::{Call, Calls};
use super::{amount, count, flag, text};
use crate::formats::claude_code::NAME;
use crate::formats::peers::{PeerCounter, PeerRule};
use crate::json::{Object, items, nulls};
use crate::ledger::{PeerRows, ServiceTier, Tokens};
use crate::text::Str;

/// The program skips lines without exactly these bytes, even if they spell the same JSON.
const MARK: &[u8] = b"\"usage\":{";

/// Fields that must not be null anywhere in a line, not even in the input of a tool.
const NEVER_NULL: [&str; 11] = [
    "id",
    "cwd",
    "model",
    "speed",
    "costUSD",
    "version",
    "sessionId",
    "requestId",
    "isApiErrorMessage",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
];

/// The exceptions: paths where such a field may be null.
const MAY_BE_NULL: [&[&str]; 2] =
    [&["message", "usage", "iterations", "model"], &["data", "message", "message", "usage", "iterations", "model"]];

/// The default folders of projects.
const HOMES: [&str; 2] = ["/.claude/projects/", "/.config/claude/projects/"];

#[derive(Debug, Default)]
pub(super) struct Ccusage {
    calls: Calls,
    counted: PeerRows,
    sources: u32,
    /// The session of lines that do not name one.
    session: String,
}

impl PeerCounter for Ccusage {
    fn source(&mut self, path: &str) {
        self.sources += 1;
        self.session = session_of(path).to_owned();
    }

    fn line(&mut self, number: u64, line: &[u8]) {
        if memmem::find(line, MARK).is_none() {
            return;
        }
        let Some(record) = std::str::from_utf8(line).ok().filter(|line| !has_null(line)).and_then(Object::parse) else {
            return;
        };
        if let Some(call) = CallLine::of(&record).filter(CallLine::is_valid) {
            self.add(number, &call);
        }
    }

    fn finish(mut self: Box<Self>) -> PeerRows {
        for (source, row) in self.calls.close() {
            self.counted.keep(source, row);
        }
        self.counted
    }
}

impl Ccusage {
    fn add(&mut self, line: u64, reported: &CallLine<'_>) {
        let Some(time) = PeerRule::Ccusage20.moment(&reported.time) else { return };
        let mut call = self.call(line, time, reported);
        let source = self.sources.saturating_sub(1);
        self.calls.add(source, call.clone(), &self.counted);
        for (at, (usage, model)) in reported.advisors().into_iter().enumerate() {
            call.id = reported.id.as_deref().map(|id| self.calls.id(&format!("{id}:advisor:{at}")));
            (call.row.tokens, call.row.service_tier) = (usage.tokens, usage.speed.unwrap_or_default());
            (call.has_speed, call.row.model) = (usage.speed.is_some(), Some(self.counted.name(&model)));
            self.calls.add(source, call.clone(), &self.counted);
        }
    }

    fn call(&mut self, line: u64, time: i64, reported: &CallLine<'_>) -> Call {
        let mut row = self.counted.row(NAME, line, Some(time), reported.usage.tokens);
        let session = self.counted.name(reported.session.as_deref().unwrap_or(&self.session));
        row.session = Some(session);
        row.service_tier = reported.usage.speed.unwrap_or_default();
        let mut name = |name: &Option<Str<'_>>| name.as_deref().map(|name| self.counted.name(name));
        row.model = name(&reported.model);
        (row.cwd, row.branch, row.thread) = (name(&reported.cwd), name(&reported.branch), name(&reported.thread));
        Call {
            id: reported.id.as_deref().map(|id| self.calls.id(id)),
            request: reported.request.as_deref().map(|request| self.calls.id(request)),
            session,
            time,
            is_sidechain: reported.is_sidechain,
            has_speed: reported.usage.speed.is_some(),
            cost: reported.cost,
            row,
        }
    }
}

/// Whether a field of [`NEVER_NULL`] is null.
fn has_null(line: &str) -> bool {
    let mut found = false;
    if memmem::find(line.as_bytes(), b"null").is_some() {
        nulls(line, &mut |path| {
            let is_meant = path.last().is_some_and(|key| NEVER_NULL.contains(key));
            found |= is_meant && !MAY_BE_NULL.contains(&path);
        });
    }
    found
}

/// The session that a path names: the file name in a project's folder, otherwise the folder of the file.
fn session_of(path: &str) -> &str {
    let (folders, file) = path.rsplit_once('/').unwrap_or(("", path));
    if folders.ends_with("/projects") {
        return "unknown";
    }
    let usual = HOMES.iter().find_map(|home| folders.split_once(home));
    let below = usual.or_else(|| folders.rsplit_once("/projects/")).map_or("", |(_, below)| below);
    let mut names = below.rsplit('/');
    match (names.next(), names.next(), names.next()) {
        (Some("subagents"), Some(session), Some(_)) => session,
        (Some(folder), Some(_), _) => folder,
        _ => file.strip_suffix(".jsonl").unwrap_or(file),
    }
}

/// A line that reports a call.
#[derive(Debug)]
struct CallLine<'a> {
    time: Str<'a>,
    usage: Usage,
    model: Option<Str<'a>>,
    id: Option<Str<'a>>,
    request: Option<Str<'a>>,
    session: Option<Str<'a>>,
    version: Option<Str<'a>>,
    is_sidechain: bool,
    cost: Option<f64>,
    /// Calls within the call, as JSON.
    iterations: Option<&'a str>,
    cwd: Option<Str<'a>>,
    branch: Option<Str<'a>>,
    thread: Option<Str<'a>>,
}

#[derive(Debug)]
struct Usage {
    tokens: Tokens,
    speed: Option<ServiceTier>,
}

impl<'a> CallLine<'a> {
    /// The call of the record itself, otherwise the sub-agent's call in its `data`.
    fn of(record: &Object<'a>) -> Option<CallLine<'a>> {
        let own = || {
            let version = text(record, "version")?;
            CallLine::within(record, record).map(|reported| CallLine { version, ..reported })
        };
        let forwarded = || {
            let inner = record.peek_object("data")?.peek_object("message")?;
            CallLine::within(&inner, record).map(|reported| CallLine { iterations: None, ..reported })
        };
        own().or_else(forwarded)
    }

    fn within(record: &Object<'a>, outer: &Object<'a>) -> Option<CallLine<'a>> {
        let message = record.peek_object("message")?;
        let usage = message.peek_object("usage")?;
        let note = |key: &str| text(outer, key).flatten();
        Some(CallLine {
            time: text(record, "timestamp")??,
            iterations: usage.peek("iterations"),
            usage: Usage::of(&usage)?,
            model: text(&message, "model")?,
            id: text(&message, "id")?,
            request: text(record, "requestId")?,
            session: text(outer, "sessionId")?,
            version: None,
            is_sidechain: flag(record, "isSidechain")?.unwrap_or(false),
            cost: amount(record, "costUSD")?,
            cwd: note("cwd"),
            branch: note("gitBranch"),
            thread: note("agentId"),
        })
    }

    /// Whether no name is empty and the version, if present, is a version.
    fn is_valid(&self) -> bool {
        let is_empty = |text: &Option<Str<'_>>| text.as_deref() == Some("");
        let is_named = ![&self.session, &self.request, &self.id, &self.model].into_iter().any(is_empty);
        is_named && self.version.as_deref().is_none_or(is_version)
    }

    /// Calls of advisor models; each counts as a call of its own.
    fn advisors(&self) -> Vec<(Usage, Str<'a>)> {
        let advisor = |raw: &&'a str| {
            let iteration = Object::parse(raw)?;
            let is_advisor = iteration.peek_str("type").as_deref() == Some("advisor_message");
            let model = iteration.peek_str("model");
            let model = model.filter(|model| is_advisor && !model.is_empty())?;
            Some((Usage::of(&iteration)?, model))
        };
        let iterations = self.iterations.and_then(items).unwrap_or_default();
        iterations.iter().filter_map(advisor).collect()
    }
}

impl Usage {
    fn of(usage: &Object<'_>) -> Option<Usage> {
        let stated = |key: &str| usage.peek(key).and_then(crate::json::number);
        let flat = count(usage, "cache_creation_input_tokens")?;
        let (cache_write, cache_write_hour) = match usage.peek("cache_creation") {
            None | Some("null") => (flat, 0),
            Some(_) => {
                let lifetimes = usage.peek_object("cache_creation")?;
                let hour = count(&lifetimes, "ephemeral_1h_input_tokens")?;
                (count(&lifetimes, "ephemeral_5m_input_tokens")?.saturating_add(hour), hour)
            }
        };
        let speed = match text(usage, "speed")?.as_deref() {
            None => None,
            Some("standard") => Some(ServiceTier::Standard),
            Some("fast") => Some(ServiceTier::Fast),
            Some(_) => return None,
        };
        let tokens = Tokens {
            input: stated("input_tokens")?,
            output: stated("output_tokens")?,
            cache_read: count(usage, "cache_read_input_tokens")?,
            cache_write,
            cache_write_hour,
            ..Tokens::default()
        };
        Some(Usage { tokens, speed })
    }
}

/// Whether a text begins like `1.2.3`.
fn is_version(text: &str) -> bool {
    let mut parts = text.splitn(3, '.');
    let mut is_number =
        || parts.next().is_some_and(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
    is_number() && is_number() && parts.next().is_some_and(|part| part.starts_with(|char: char| char.is_ascii_digit()))
}

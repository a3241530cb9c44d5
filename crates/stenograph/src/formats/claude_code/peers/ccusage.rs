//! The daily report of ccusage 20: which lines it reads a call from. Which of them are the same call is in `calls.rs`.

use memchr::memmem;

use super::calls::{Call, Calls};
use super::{amount, counter, flag, text};
use crate::formats::claude_code::NAME;
use crate::json::{Object, items, nulls};
use crate::ledger::{Rule, ServiceTier, Tallied, Tally, Tokens};
use crate::text::Str;

/// Lines without these bytes are passed over, however else they may spell the same.
const MARK: &[u8] = b"\"usage\":{";

/// Fields that must not be null anywhere in a line, not even in what a tool was given.
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

/// Where one of them may be null after all.
const MAY_BE_NULL: [&[&str]; 2] =
    [&["message", "usage", "iterations", "model"], &["data", "message", "message", "usage", "iterations", "model"]];

/// The folders of projects where nobody moved them.
const HOMES: [&str; 2] = ["/.claude/projects/", "/.config/claude/projects/"];

/// Counts as ccusage 20 does.
#[derive(Debug, Default)]
pub struct Ccusage {
    calls: Calls,
    tallied: Tallied,
    sources: u32,
    /// The session of lines that name none.
    session: String,
}

impl Tally for Ccusage {
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
        if let Some(told) = Told::of(&record).filter(Told::is_valid) {
            self.add(number, &told);
        }
    }

    fn close(mut self: Box<Self>) -> Tallied {
        for (source, row) in self.calls.close() {
            self.tallied.keep(source, row);
        }
        self.tallied
    }
}

impl Ccusage {
    fn add(&mut self, line: u64, told: &Told<'_>) {
        let Some(time) = Rule::Ccusage20.moment(&told.time) else { return };
        let mut call = self.call(line, time, told);
        let source = self.sources.saturating_sub(1);
        self.calls.add(source, call.clone(), &self.tallied);
        for (at, (usage, model)) in told.advisors().into_iter().enumerate() {
            call.id = told.id.as_deref().map(|id| self.calls.id(&format!("{id}:advisor:{at}")));
            (call.row.tokens, call.row.service_tier) = (usage.tokens, usage.speed.unwrap_or_default());
            (call.has_speed, call.row.model) = (usage.speed.is_some(), Some(self.tallied.name(&model)));
            self.calls.add(source, call.clone(), &self.tallied);
        }
    }

    fn call(&mut self, line: u64, time: i64, told: &Told<'_>) -> Call {
        let mut row = self.tallied.row(NAME, line, Some(time), told.usage.tokens);
        let session = self.tallied.name(told.session.as_deref().unwrap_or(&self.session));
        row.session = Some(session);
        row.service_tier = told.usage.speed.unwrap_or_default();
        let mut name = |name: &Option<Str<'_>>| name.as_deref().map(|name| self.tallied.name(name));
        row.model = name(&told.model);
        (row.cwd, row.branch, row.thread) = (name(&told.cwd), name(&told.branch), name(&told.thread));
        Call {
            id: told.id.as_deref().map(|id| self.calls.id(id)),
            request: told.request.as_deref().map(|request| self.calls.id(request)),
            session,
            time,
            is_sidechain: told.is_sidechain,
            has_speed: told.usage.speed.is_some(),
            cost: told.cost,
            row,
        }
    }
}

/// Whether a field is null that must not be.
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

/// The session that the place of a file names: the file in a project's folder, else the folder it is in.
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

/// What a line tells of a call.
#[derive(Debug)]
struct Told<'a> {
    time: Str<'a>,
    usage: Usage,
    model: Option<Str<'a>>,
    id: Option<Str<'a>>,
    request: Option<Str<'a>>,
    session: Option<Str<'a>>,
    version: Option<Str<'a>>,
    is_sidechain: bool,
    cost: Option<f64>,
    /// Calls that were made within the call.
    iterations: Option<&'a str>,
    cwd: Option<Str<'a>>,
    branch: Option<Str<'a>>,
    thread: Option<Str<'a>>,
}

/// The numbers of a call.
#[derive(Debug)]
struct Usage {
    tokens: Tokens,
    speed: Option<ServiceTier>,
}

impl<'a> Told<'a> {
    /// What the record tells itself, else what it passes on of a sub-agent.
    fn of(record: &Object<'a>) -> Option<Told<'a>> {
        let own = || {
            let version = text(record, "version")?;
            Told::within(record, record).map(|told| Told { version, ..told })
        };
        let passed_on = || {
            let passed = record.peek_object("data")?.peek_object("message")?;
            Told::within(&passed, record).map(|told| Told { iterations: None, ..told })
        };
        own().or_else(passed_on)
    }

    fn within(record: &Object<'a>, outer: &Object<'a>) -> Option<Told<'a>> {
        let message = record.peek_object("message")?;
        let usage = message.peek_object("usage")?;
        let note = |key: &str| text(outer, key).flatten();
        Some(Told {
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

    /// Whether nothing is empty, and the version is one.
    fn is_valid(&self) -> bool {
        let is_empty = |text: &Option<Str<'_>>| text.as_deref() == Some("");
        let is_named = ![&self.session, &self.request, &self.id, &self.model].into_iter().any(is_empty);
        is_named && self.version.as_deref().is_none_or(is_version)
    }

    /// Calls of models that advised: each is a call beside this one.
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
        let flat = counter(usage, "cache_creation_input_tokens")?;
        let (cache_write, cache_write_hour) = match usage.peek("cache_creation") {
            None | Some("null") => (flat, 0),
            Some(_) => {
                let lifetimes = usage.peek_object("cache_creation")?;
                let hour = counter(&lifetimes, "ephemeral_1h_input_tokens")?;
                (counter(&lifetimes, "ephemeral_5m_input_tokens")?.saturating_add(hour), hour)
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
            cache_read: counter(usage, "cache_read_input_tokens")?,
            cache_write,
            cache_write_hour,
            ..Tokens::default()
        };
        Some(Usage { tokens, speed })
    }
}

/// Whether it begins like `1.2.3`.
fn is_version(text: &str) -> bool {
    let mut parts = text.splitn(3, '.');
    let mut is_number =
        || parts.next().is_some_and(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
    is_number() && is_number() && parts.next().is_some_and(|part| part.starts_with(|char: char| char.is_ascii_digit()))
}

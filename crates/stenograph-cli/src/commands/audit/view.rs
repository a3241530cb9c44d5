//! Formats an audit for people: a head, then the parts, each with its totals first. Text from transcripts passes through
//! `harmless`. `run_parts.rs` formats the parts about the run.

use std::fmt::Write as _;
use std::path::Path;

use anstyle::Style;
use stenograph::audit::{Audit, AuditPart, Call, CallOutcome, EventPlace, FileOutcome, Parts};

use super::read::Audited;
use super::run_parts;
use crate::clock;
use crate::output::{Colour, TextStyle, counted, grouped, harmless, harmless_line, shortened};
use crate::table::{self, Align};
use crate::terminal::{Line, fitted_path};

/// How many lines of a part are shown among other parts.
const LINES_MAX: usize = 12;

/// The maximum length of a call's line, among other parts and alone.
const LINE_LENGTH_MAX: usize = 120;
const LINE_LENGTH_ALONE_MAX: usize = 400;

/// The columns of a file's line beside its path and its uses, and the narrowest path.
const FILE_LINE_REST: usize = 13;
const FILE_WIDTH_MIN: usize = 20;

/// The columns before the path of a file of the session.
const FILE_NUMBER_WIDTH: usize = 8;

/// How many further files are named.
const FILES_MAX: usize = 12;

/// The maximum length of the last message among other parts.
const LAST_LENGTH_MAX: usize = 1200;

/// How much of a part is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// Among other parts.
    Beside,
    Alone,
}

impl Room {
    /// The maximum number of lines of a list.
    pub fn lines(self) -> usize {
        match self {
            Room::Beside => LINES_MAX,
            Room::Alone => usize::MAX,
        }
    }

    /// The maximum length of a line.
    pub fn length(self) -> usize {
        match self {
            Room::Beside => LINE_LENGTH_MAX,
            Room::Alone => LINE_LENGTH_ALONE_MAX,
        }
    }
}

/// Whether a part has any content.
pub fn has(audit: &Audit, part: AuditPart) -> bool {
    match part {
        AuditPart::Tools => !audit.tools.is_empty(),
        AuditPart::Files => !audit.files.items.is_empty(),
        AuditPart::Commands => audit.commands > 0,
        AuditPart::Last => audit.last.is_some(),
        AuditPart::Failure => audit.failure.is_some(),
        AuditPart::Todos => audit.todos.as_ref().is_some_and(|todos| !todos.items.is_empty()),
        AuditPart::Agents => !audit.agents.items.is_empty(),
    }
}

/// The message for an empty part.
pub fn nothing(part: AuditPart) -> &'static str {
    match part {
        AuditPart::Tools => "no tool calls",
        AuditPart::Files => "no call used a file; changes made by commands are unknown",
        AuditPart::Commands => "no commands",
        AuditPart::Last => "no messages",
        AuditPart::Failure => "it did not fail",
        AuditPart::Todos => "no to-do list",
        AuditPart::Agents => "no sub-agents",
    }
}

pub fn text(audited: &Audited, parts: Parts, colour: Colour) -> String {
    let audit = &audited.audit;
    let mut out = String::new();
    match parts {
        // The last message alone is printed without decoration.
        Parts::Only(AuditPart::Last) => {
            if let Some(last) = &audit.last {
                out.push_str(&harmless(&last.text));
            }
        }
        Parts::Only(part) => {
            if has(audit, part) {
                one(audit, part, Room::Alone, colour, &mut out);
            }
        }
        Parts::All => {
            head(audited, colour, &mut out);
            for part in [AuditPart::Tools, AuditPart::Files, AuditPart::Commands, AuditPart::Agents, AuditPart::Todos] {
                if has(audit, part) {
                    one(audit, part, Room::Beside, colour, &mut out);
                }
            }
            run_parts::text(audit, colour, &mut out);
            for part in [AuditPart::Failure, AuditPart::Last] {
                if has(audit, part) {
                    one(audit, part, Room::Beside, colour, &mut out);
                }
            }
        }
    }
    out
}

/// The line that names the session of a part.
pub fn name(audited: &Audited, colour: Colour) -> String {
    let title = audited.audit.title.as_deref().map(|title| format!("  {}", brief(title, LINE_LENGTH_MAX)));
    let agent = audited.agent.as_deref().map(|agent| format!("  {agent}"));
    let rest = [agent, title].into_iter().flatten().collect::<String>();
    format!(
        "{}{}",
        colour.paint(TextStyle::Strong, &harmless_line(&audited.name)),
        colour.paint(TextStyle::Faint, &rest)
    )
}

fn one(audit: &Audit, part: AuditPart, room: Room, colour: Colour, out: &mut String) {
    match part {
        AuditPart::Tools => tools(audit, room, colour, out),
        AuditPart::Files => files(audit, room, colour, out),
        AuditPart::Commands => commands(audit, room, colour, out),
        AuditPart::Last => last(audit, colour, out),
        AuditPart::Failure => run_parts::failure(audit, colour, out),
        AuditPart::Todos => run_parts::todos(audit, room, colour, out),
        AuditPart::Agents => run_parts::agents(audit, room, colour, out),
    }
}

/// A heading with totals.
pub fn heading(name: &str, rest: &str, colour: Colour, out: &mut String) {
    if !out.is_empty() {
        out.push('\n');
    }
    let _ = writeln!(out, "{}  {rest}", colour.paint(TextStyle::Strong, name));
}

/// States how much more there is.
pub fn more(number: u64, part: &str, colour: Colour, out: &mut String) {
    if number > 0 {
        let hint = if part.is_empty() { String::new() } else { format!(": --only {part}") };
        let _ = writeln!(out, "  {}", colour.paint(TextStyle::Faint, &format!("and {} more{hint}", grouped(number))));
    }
}

/// The number of an event, preceded by the number of its file except for the first file.
pub fn number(place: EventPlace) -> String {
    match place.source {
        0 => place.event.to_string(),
        source => format!("{}:{}", source + 1, place.event),
    }
}

/// The beginning of a text, on one line.
pub fn brief(text: &str, length: usize) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    shortened(&harmless_line(&line), length).into_owned()
}

/// Formats a duration.
pub fn span(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms}ms"),
        1000..60_000 => format!("{:.1}s", ms as f64 / 1000.0),
        60_000..3_600_000 => format!("{}m {}s", ms / 60_000, ms / 1000 % 60),
        _ => format!("{}h {}m", ms / 3_600_000, ms / 60_000 % 60),
    }
}

fn head(audited: &Audited, colour: Colour, out: &mut String) {
    let audit = &audited.audit;
    let title = audit.title.as_deref().map(|title| brief(title, LINE_LENGTH_MAX)).unwrap_or_default();
    let name = colour.paint(TextStyle::Strong, &harmless_line(&audited.name));
    let agent = audited.agent.as_deref().unwrap_or_default();
    let _ = writeln!(out, "{}", [name.as_str(), agent, &title].join("  ").trim_end());
    let branch = audit.branch.as_deref().map(|branch| format!(" ({branch})")).unwrap_or_default();
    // A path has no place to break a line.
    let room = table::screen_width().saturating_sub(2 + table::display_width(&branch) + 1);
    let place = audit.cwd.as_deref().map(|cwd| format!("{}{branch}", fitted_path(Path::new(cwd), room)));
    let facts: Vec<String> =
        [place.unwrap_or_default(), audit.models.join(", ")].into_iter().filter(|fact| !fact.is_empty()).collect();
    if !facts.is_empty() {
        let line = brief(&facts.join(", "), LINE_LENGTH_ALONE_MAX);
        let lines = Line::of(&line, Style::new()).wrapped(table::screen_width().saturating_sub(2));
        for line in lines {
            let _ = writeln!(out, "  {}", line.text());
        }
    }
    let mut line = String::new();
    if let (Some(from), Some(to)) = (audit.started_ms, audit.ended_ms) {
        let took = u64::try_from(to.saturating_sub(from)).unwrap_or(0);
        let _ = write!(line, "{} to {} ({}), ", clock::format_minute(from), clock::format_minute(to), span(took));
    }
    let questions = counted(audit.asked, "question");
    let answers = counted(audit.answered, "answer");
    let _ = write!(line, "{}, {questions}, {answers}; ", counted(audit.events, "event"));
    let _ = write!(line, "{} ({})", audit.end.state.name(), run_parts::why(&audit.end));
    let _ = writeln!(out, "  {line}");
    if let Some(took) = audited.took.filter(|took| took.tokens > 0) {
        let _ = writeln!(out, "  {}", took.words());
    }
    if audited.paths.len() > 1 {
        let files = counted(audited.paths.len() as u64, "file");
        let _ = writeln!(out, "  {files}; 2:1 is event 1 of file 2");
        for (at, path) in audited.paths.iter().enumerate().skip(1).take(FILES_MAX) {
            let path = fitted_path(Path::new(path), table::screen_width().saturating_sub(FILE_NUMBER_WIDTH));
            let _ = writeln!(out, "    {}: {path}", at + 1);
        }
        more((audited.paths.len() - 1).saturating_sub(FILES_MAX) as u64, "", colour, out);
    }
}

fn tools(audit: &Audit, room: Room, colour: Colour, out: &mut String) {
    let sum = |of: fn(&stenograph::audit::Tool) -> u64| audit.tools.iter().map(of).sum::<u64>();
    let mut rest = counted(sum(|tool| tool.calls), "call");
    for (number, word) in [
        (sum(|tool| tool.failed), "failed"),
        (sum(|tool| tool.denied), "denied"),
        (sum(|tool| tool.unanswered), "without a result"),
        (sum(|tool| tool.retries), "retried"),
    ] {
        if number > 0 {
            let _ = write!(rest, ", {} {word}", grouped(number));
        }
    }
    heading("tools", &rest, colour, out);
    let mut tools: Vec<_> = audit.tools.iter().collect();
    tools.sort_by_key(|tool| std::cmp::Reverse(tool.calls));
    let number = |number: u64| if number == 0 { "-".to_owned() } else { grouped(number) };
    let time = |tool: &stenograph::audit::Tool, ms: u64| if tool.timed == 0 { "-".to_owned() } else { span(ms) };
    let rows: Vec<[String; 8]> = tools
        .iter()
        .take(room.lines())
        .map(|tool| {
            [
                format!("  {}", brief(&tool.name, 40)),
                grouped(tool.calls),
                number(tool.failed),
                number(tool.denied),
                number(tool.unanswered),
                number(tool.retries),
                time(tool, tool.time_ms),
                time(tool, tool.longest_ms),
            ]
        })
        .collect();
    let headings = [
        ("  tool", Align::Left),
        ("calls", Align::Right),
        ("failed", Align::Right),
        ("denied", Align::Right),
        ("open", Align::Right),
        ("retries", Align::Right),
        ("time", Align::Right),
        ("longest", Align::Right),
    ];
    for line in table::lines(headings, &rows, usize::MAX) {
        let _ = writeln!(out, "{line}");
    }
    more(tools.len().saturating_sub(room.lines()) as u64, "tools", colour, out);
    if room == Room::Alone {
        calls(audit, colour, out);
    }
}

/// Every call, in order.
fn calls(audit: &Audit, colour: Colour, out: &mut String) {
    out.push('\n');
    for call in audit.calls.items.iter().filter(|call| call.tool.is_some()) {
        let tool = call.tool.and_then(|tool| audit.tools.get(tool)).map(|tool| tool.name.as_str()).unwrap_or_default();
        let keys: Vec<String> =
            call.keys.iter().map(|(key, value)| format!("{key}: {}", brief(value, LINE_LENGTH_MAX))).collect();
        let remarks = remarks(audit, call);
        let line = format!("{} {}", brief(tool, 60), harmless_line(&keys.join("  ")));
        let _ = writeln!(
            out,
            "  {:>6}  {}{}",
            number(call.place),
            shortened(&line, LINE_LENGTH_ALONE_MAX),
            colour.paint(TextStyle::Faint, &remarks)
        );
        if let Some(text) = &call.error_text {
            let _ = writeln!(out, "          {}", brief(text, LINE_LENGTH_MAX));
        }
    }
    more(audit.calls.more, "", colour, out);
}

/// The outcome of a call, unless it is ordinary.
fn remarks(audit: &Audit, call: &Call) -> String {
    let mut words = Vec::new();
    match call.outcome {
        CallOutcome::Ok => {}
        CallOutcome::Failed | CallOutcome::Denied | CallOutcome::Interrupted | CallOutcome::Running => {
            words.push(call.outcome.name().to_owned());
        }
        CallOutcome::Unknown => words.push("no result".to_owned()),
    }
    words.extend(call.exit.map(|exit| format!("exit {exit}")));
    words.extend(call.took_ms.filter(|took| *took >= 1000).map(span));
    if call.is_retry {
        words.push("repeated".to_owned());
    }
    words.extend(call.asks_after.map(|event| format!("polls event {event}")));
    let thread = audit.threads.get(call.thread).and_then(|thread| thread.id.as_deref());
    words.extend(thread.map(|thread| format!("in {}", brief(thread, 24))));
    if words.is_empty() { String::new() } else { format!("  ({})", words.join(", ")) }
}

fn files(audit: &Audit, room: Room, colour: Colour, out: &mut String) {
    let of = |change: FileOutcome| audit.files.items.iter().filter(move |file| file.change == change);
    let counts: Vec<String> = FileOutcome::ALL
        .into_iter()
        .map(|change| (of(change).count() as u64, change.name()))
        .filter(|(number, _)| *number > 0)
        .map(|(number, name)| format!("{} {name}", grouped(number)))
        .collect();
    heading("files", &counts.join(", "), colour, out);
    let sorted = FileOutcome::ALL.into_iter().flat_map(of);
    let total = audit.files.count();
    let mut shown = 0;
    for file in sorted.take(room.lines()) {
        shown += 1;
        let uses: Vec<String> =
            [(file.writes, "written"), (file.edits, "edited"), (file.reads, "read"), (file.failed, "failed")]
                .into_iter()
                .filter(|(number, _)| *number > 0)
                .map(|(number, word)| format!("{word} {number}"))
                .collect();
        // A path below the folder of the session is shorter without it.
        let below = audit.cwd.as_deref().and_then(|cwd| file.path.strip_prefix(cwd)?.strip_prefix('/'));
        let uses = format!("({})", uses.join(", "));
        let room = table::screen_width().saturating_sub(FILE_LINE_REST + uses.len()).max(FILE_WIDTH_MIN);
        let path = fitted_path(Path::new(below.unwrap_or(&file.path)), room);
        let uses = colour.paint(TextStyle::Faint, &uses);
        let _ = writeln!(out, "  {:<8} {path}  {uses}", file.change.name());
    }
    more(total.saturating_sub(shown), if room == Room::Beside { "files" } else { "" }, colour, out);
}

fn commands(audit: &Audit, room: Room, colour: Colour, out: &mut String) {
    let commands: Vec<&Call> = audit.calls.items.iter().filter(|call| call.command.is_some()).collect();
    let failed = commands.iter().filter(|call| call.outcome.is_failure()).count() as u64;
    let left = audit.commands.saturating_sub(commands.len() as u64);
    let mut rest = counted(audit.commands, "command");
    if failed > 0 {
        let _ = write!(rest, ", {} failed", grouped(failed));
    }
    heading("commands", &rest, colour, out);
    // Among other parts, the last commands say most.
    let passed_over = commands.len().saturating_sub(room.lines());
    if passed_over > 0 {
        let text = format!("{} earlier: --only commands", grouped(passed_over as u64));
        let _ = writeln!(out, "  {}", colour.paint(TextStyle::Faint, &text));
    }
    for call in commands.into_iter().skip(passed_over) {
        let exit = match (call.exit, call.outcome) {
            (Some(exit), _) => format!("exit {exit}"),
            (None, CallOutcome::Unknown) => "no result".to_owned(),
            (None, outcome) => outcome.name().to_owned(),
        };
        let took =
            call.took_ms.filter(|took| *took >= 1000).map(|took| format!("  ({})", span(took))).unwrap_or_default();
        let command = brief(call.command.as_deref().unwrap_or_default(), room.length());
        let line =
            format!("  {:>6}  {exit:<9}  {command}{}", number(call.place), colour.paint(TextStyle::Faint, &took));
        let _ = writeln!(out, "{line}");
    }
    more(left, "", colour, out);
}

fn last(audit: &Audit, colour: Colour, out: &mut String) {
    let Some(last) = &audit.last else { return };
    heading("last", &format!("event {}", number(last.place)), colour, out);
    let text = shortened(&last.text, LAST_LENGTH_MAX);
    for line in harmless(&text).lines() {
        let _ = writeln!(out, "  {line}");
    }
    if last.text.chars().count() > LAST_LENGTH_MAX {
        let _ = writeln!(out, "  {}", colour.paint(TextStyle::Faint, "full text: --only last"));
    }
}

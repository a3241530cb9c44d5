//! What must be read from the whole conversation: the outline with its map, the context, what is to do, files, failures, cost; and
//! the net changes of its files. A page loads them after the events.

use std::fmt::Write as _;

use stenograph::audit::FileOutcome;
use stenograph::changes::Changes;
use stenograph::contents::{Contents, ContextShare, Density};
use stenograph::evidence::TodoProgress;
use stenograph::render::html::diff_html;
use stenograph::render::{bytes, dollars, grouped};

use super::super::address::{Params, link, session_path};
use super::super::html::{Nav, counted, short, text};
use super::super::state::Viewer;
use super::super::trouble::AnswerProblem;
use super::session::{NamedConversation, conversation};

/// How many prompts, files and failures are listed.
const LIST_MAX: usize = 400;

/// The height of the map, in units of its drawing.
const MAP_HEIGHT: usize = 1000;

/// The contents of a conversation, or of its page if there is no script.
pub fn contents_html(viewer: &Viewer, name: &str, params: &Params) -> Result<String, AnswerProblem> {
    let found = conversation(viewer, name, params.value("agent"))?;
    let contents = viewer.contents(&found.events)?;
    let path = session_path(&found.named.session.name);
    let places = EventLinks { path: &path, agent: found.agent.as_deref() };
    Ok(format!(
        "<nav class=\"outline\" aria-label=\"Outline\"><h2>Outline</h2>{}</nav><div class=\"panels\">{}{}{}{}{}{}</div><div class=\"map\" role=\"img\" aria-label=\"Map of the conversation\" data-events=\"{}\">{}</div>",
        outline_html(&contents, &places),
        context_html(&contents, &places),
        todos_html(&contents, &places),
        failures_html(&contents, &places),
        files_html(&contents, &places),
        cost_html(viewer, &found)?,
        compactions_html(&contents, &places),
        contents.audit.events,
        map_html(&contents.density, contents.audit.events),
    ))
}

/// The addresses of events.
pub struct EventLinks<'p> {
    pub path: &'p str,
    pub agent: Option<&'p str>,
}

impl EventLinks<'_> {
    pub fn event(&self, number: u64) -> String {
        let number = number.to_string();
        let params: Vec<(&str, &str)> =
            [("at", number.as_str())].into_iter().chain(self.agent.map(|agent| ("agent", agent))).collect();
        text(&format!("{}#e{number}", link(self.path, &params)))
    }
}

fn outline_html(contents: &Contents, places: &EventLinks<'_>) -> String {
    let turns = &contents.audit.turns;
    if turns.items.is_empty() {
        return "<p class=\"muted\">No prompts.</p>".to_owned();
    }
    let mut html = String::from("<ol>");
    // The outline of a long session covers all of it.
    let step = turns.items.len().div_ceil(LIST_MAX).max(1);
    for turn in turns.items.iter().step_by(step) {
        let asked = if turn.asked.trim().is_empty() { "(no text)" } else { &turn.asked };
        let failed = if turn.failed > 0 { format!(" <em>{} failed</em>", turn.failed) } else { String::new() };
        let _ = write!(
            html,
            "<li><a href=\"{}\" data-event=\"{}\">{}</a><small>{}{failed}</small></li>",
            places.event(turn.from.event),
            turn.from.event,
            short(asked, 90),
            counted(turn.calls, "call"),
        );
    }
    html.push_str("</ol>");
    if step > 1 {
        let _ = write!(html, "<p class=\"muted\">One of {step} prompts is listed.</p>");
    }
    let more = turns.count().saturating_sub(turns.items.len() as u64);
    if more > 0 {
        let _ = write!(html, "<p class=\"muted\">{} more prompts</p>", grouped(more));
    }
    html
}

/// A panel that can be closed.
fn panel(id: &str, title: &str, remark: &str, body: &str) -> String {
    format!(
        "<details class=\"panel\" id=\"panel-{id}\" open><summary>{title} <small>{remark}</small></summary>{body}</details>"
    )
}

/// What fills the context, from compaction to compaction.
fn context_html(contents: &Contents, places: &EventLinks<'_>) -> String {
    let context = &contents.audit.context;
    let remark = if context.max > 0 { format!("{} tokens at most", grouped(context.max)) } else { String::new() };
    let mut body = String::new();
    // A compaction may have several records; a phase without text is none.
    let phases = contents.phases.iter().filter(|phase| phase.bytes.iter().any(|bytes| *bytes > 0));
    for (at, phase) in phases.enumerate().take(LIST_MAX) {
        let total: u64 = phase.bytes.iter().sum();
        let tokens = if phase.tokens > 0 { format!("{} tokens", grouped(phase.tokens)) } else { bytes(total) };
        let _ = write!(
            body,
            "<p><a href=\"{}\">Phase {}</a> <small>{tokens}</small></p>",
            places.event(phase.first),
            at + 1
        );
        body.push_str("<svg class=\"stack\" viewBox=\"0 0 100 8\" preserveAspectRatio=\"none\" aria-hidden=\"true\">");
        let mut left = 0.0;
        for (share, size) in ContextShare::ALL.iter().zip(phase.bytes) {
            let width = size as f64 / total as f64 * 100.0;
            let _ = write!(
                body,
                "<rect class=\"share {}\" x=\"{left:.2}\" width=\"{width:.2}\" height=\"8\"></rect>",
                share.name()
            );
            left += width;
        }
        body.push_str("</svg><ul class=\"legend\">");
        for (share, size) in ContextShare::ALL.iter().zip(phase.bytes).filter(|(_, size)| *size > 0) {
            let percent = size as f64 / total as f64 * 100.0;
            let _ = write!(
                body,
                "<li><span class=\"share {0}\"></span>{0} <small>{percent:.0} %</small></li>",
                share.name()
            );
        }
        body.push_str("</ul>");
    }
    if body.is_empty() { String::new() } else { panel("context", "Context", &remark, &body) }
}

fn todos_html(contents: &Contents, places: &EventLinks<'_>) -> String {
    let Some(todos) = contents.audit.todos.as_ref().filter(|todos| !todos.items.is_empty()) else {
        return String::new();
    };
    let done = todos.items.iter().filter(|todo| todo.progress() == TodoProgress::Done).count();
    let mut body = String::from("<ul class=\"plan\">");
    for todo in todos.items.iter().take(LIST_MAX) {
        let (class, mark) = match todo.progress() {
            TodoProgress::Done => ("done", "✓"),
            TodoProgress::Active => ("active", "▸"),
            TodoProgress::Open => ("", "○"),
        };
        let _ = write!(body, "<li class=\"{class}\"><span>{mark}</span> {}</li>", short(&todo.text, 200));
    }
    let _ = write!(body, "</ul><p><a href=\"{}\">Last change</a></p>", places.event(todos.place.event));
    panel("todos", "To do", &format!("{done} of {} done", todos.items.len()), &body)
}

fn failures_html(contents: &Contents, places: &EventLinks<'_>) -> String {
    let count = contents.failures.len() as u64 + contents.failures_more + contents.audit.errors.count();
    if count == 0 {
        return String::new();
    }
    let mut body = String::from("<ol class=\"places\">");
    for fault in contents.audit.errors.items.iter().take(LIST_MAX) {
        let recovered = if fault.recovered_by.is_some() { " (recovered)" } else { "" };
        let words = fault.name.as_deref().filter(|name| !name.is_empty()).unwrap_or(fault.kind.name());
        let _ = write!(
            body,
            "<li><a href=\"{}\"><b>{}</b> {}{recovered}</a></li>",
            places.event(fault.place.event),
            short(words, 40),
            short(&fault.text, 90)
        );
    }
    for call in contents.failures.iter().take(LIST_MAX) {
        let _ = write!(
            body,
            "<li><a href=\"{}\"><b>{}</b> {} <small>{}</small></a></li>",
            places.event(call.event),
            short(&call.tool, 40),
            short(&call.about, 80),
            call.outcome.name()
        );
    }
    body.push_str("</ol>");
    let listed = contents.audit.errors.items.len().min(LIST_MAX) + contents.failures.len().min(LIST_MAX);
    if count > listed as u64 {
        let _ = write!(body, "<p>{} more are not listed.</p>", grouped(count - listed as u64));
    }
    if contents.audit.calls.more > 0 {
        let _ = write!(body, "<p>The last {} calls are not examined here.</p>", grouped(contents.audit.calls.more));
    }
    panel("failures", "Failures", &grouped(count), &body)
}

fn files_html(contents: &Contents, places: &EventLinks<'_>) -> String {
    let files = &contents.audit.files;
    let changed = files.items.iter().filter(|file| is_change(file.change)).count();
    if files.items.is_empty() {
        return String::new();
    }
    let cwd = contents.audit.cwd.as_deref().unwrap_or_default();
    let mut body = String::new();
    if changed > 0 {
        let agent = places.agent.map(|agent| ("agent", agent));
        let address = link(&format!("{}/changes", places.path), &agent.into_iter().collect::<Vec<_>>());
        let _ = write!(body, "<p><a href=\"{}\">Net diff of all files</a></p>", text(&address));
    }
    body.push_str("<ol class=\"places\">");
    let mut sorted: Vec<_> = files.items.iter().collect();
    sorted.sort_by_key(|file| (!is_change(file.change), file.first.event));
    for file in sorted.iter().take(LIST_MAX) {
        let name = file.path.strip_prefix(cwd).and_then(|rest| rest.strip_prefix('/')).unwrap_or(&file.path);
        let _ = write!(
            body,
            "<li><a href=\"{}\"><code>{}</code> <small>{}</small></a></li>",
            places.event(file.last.event),
            short(name, 90),
            file.change.name()
        );
    }
    body.push_str("</ol>");
    panel("files", "Files", &format!("{changed} changed, {} touched", grouped(files.count())), &body)
}

fn is_change(change: FileOutcome) -> bool {
    matches!(change, FileOutcome::Created | FileOutcome::Changed | FileOutcome::Deleted)
}

/// The cost by model, with the tokens behind it.
fn cost_html(viewer: &Viewer, found: &NamedConversation) -> Result<String, AnswerProblem> {
    let session = &found.named.session;
    let usage = viewer.usage(session, &found.named.catalogue)?;
    let report = &usage.report;
    if report.total.calls == 0 {
        return Ok(String::new());
    }
    let mut body = String::from(
        "<table class=\"small\"><thead><tr><th>Model</th><th>Cost</th><th>Calls</th><th>Input</th><th>Output</th><th>Cache</th></tr></thead><tbody>",
    );
    for group in &report.groups {
        let tokens = &group.tokens;
        let cost = match (group.cost.money, group.cost.unpriced) {
            (Some(money), 0) => dollars(money),
            _ => "no price".to_owned(),
        };
        let _ = write!(
            body,
            "<tr><th scope=\"row\">{}</th><td>{cost}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            short(&viewer.masked(group.key.as_deref().unwrap_or("(unknown)")), 40),
            grouped(group.calls),
            grouped(tokens.input),
            grouped(tokens.output),
            grouped(tokens.cache_read + tokens.cache_write),
        );
    }
    body.push_str("</tbody></table>");
    if !usage.decisions.is_empty() {
        body.push_str("<p class=\"muted\">Not counted, or counted once:</p><ul class=\"muted\">");
        for decision in &usage.decisions {
            let _ = write!(body, "<li>{}: {}</li>", text(decision.reason.says()), grouped(decision.count));
        }
        body.push_str("</ul>");
    }
    let remark = report.total.cost.money.map(dollars).unwrap_or_default();
    Ok(panel("cost", "Cost", &remark, &body))
}

/// What each compaction dropped.
fn compactions_html(contents: &Contents, places: &EventLinks<'_>) -> String {
    let compactions = &contents.audit.compactions;
    if compactions.items.is_empty() {
        return String::new();
    }
    let mut body = String::from("<ol class=\"places\">");
    for one in compactions.items.iter().take(LIST_MAX) {
        let tokens = match (one.tokens_before, one.tokens_after) {
            (Some(before), Some(after)) => format!("{} to {} tokens", grouped(before), grouped(after)),
            _ => String::new(),
        };
        let _ = write!(
            body,
            "<li><a href=\"{}\">dropped {} and {} <small>{tokens}</small></a></li>",
            places.event(one.place.event),
            counted(one.messages, "message"),
            counted(one.calls, "call"),
        );
    }
    body.push_str("</ol>");
    panel("compactions", "Compactions", &grouped(compactions.count()), &body)
}

/// The map: a row for each part of the conversation, coloured by what is in it.
fn map_html(density: &Density, events: u64) -> String {
    let mut html = format!("<svg viewBox=\"0 0 100 {MAP_HEIGHT}\" preserveAspectRatio=\"none\" aria-hidden=\"true\">");
    let unit = MAP_HEIGHT as f64 / (events.max(1) as f64 / density.step as f64).max(1.0);
    for (at, part) in density.parts.iter().enumerate() {
        let total: u32 = part.iter().take(ContextShare::ALL.len()).sum();
        if total == 0 {
            continue;
        }
        let (y, mut x) = (at as f64 * unit, 0.0);
        for (share, count) in ContextShare::ALL.iter().zip(part).filter(|(_, count)| **count > 0) {
            let width = f64::from(*count) / f64::from(total) * 88.0;
            let _ = write!(
                html,
                "<rect class=\"share {}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{unit:.2}\"></rect>",
                share.name()
            );
            x += width;
        }
        if part.last().is_some_and(|failed| *failed > 0) {
            let _ = write!(
                html,
                "<rect class=\"share failed\" x=\"90\" y=\"{y:.1}\" width=\"10\" height=\"{:.2}\"></rect>",
                unit.max(2.0)
            );
        }
    }
    html.push_str("</svg><span class=\"here\" hidden></span>");
    html
}

/// The net changes of all files of a conversation.
pub fn changes_html(viewer: &Viewer, name: &str, params: &Params) -> Result<String, AnswerProblem> {
    let found = conversation(viewer, name, params.value("agent"))?;
    let session = &found.named.session;
    let mut changes = Changes::default();
    found.events.all(&viewer.store, &mut |_, event| changes.add(event))?;
    let outcome = changes.finish();
    let mut body = String::new();
    for file in outcome.files.iter().take(LIST_MAX) {
        let from = file.from.as_deref().map(|from| format!(" from {from}")).unwrap_or_default();
        let exact = if file.exact { "" } else { " (approximate)" };
        let title = format!("{}{from}: {}, +{} -{}{exact}", file.path, file.how.name(), file.added, file.removed);
        diff_html(&title, &file.diff, &mut body);
    }
    if outcome.files.is_empty() {
        body.push_str(
            "<div class=\"empty\"><p>This conversation changed no file that Stenograph can follow.</p></div>",
        );
    }
    if !outcome.unseen.is_empty() {
        let _ = write!(
            body,
            "<details><summary>{} that may have changed files unseen</summary><ul>",
            counted(outcome.unseen.len() as u64, "call")
        );
        for unseen in outcome.unseen.iter().take(LIST_MAX) {
            let _ =
                write!(body, "<li>{} <small>{}</small></li>", short(&unseen.what, 160), text(unseen.why.sentence()));
        }
        body.push_str("</ul></details>");
    }
    let title = session.title.as_deref().or(session.query.as_deref()).unwrap_or(&session.name);
    let path = session_path(&session.name);
    let main = format!(
        "<header class=\"session-head\"><h1>Changes <small>{}</small></h1><div class=\"actions\"><a class=\"button\" href=\"{path}\">Back to the session</a></div></header><div class=\"changes\">{body}</div>",
        short(title, 120)
    );
    Ok(viewer.page("Changes", Nav::Sessions, "changes", &main))
}

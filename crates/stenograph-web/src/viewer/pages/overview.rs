//! The overview: agents that need somebody, the newest sessions, and what was spent. The newest sessions come first; the rest follows
//! when it is read.

use std::fmt::Write as _;

use stenograph::ledger::By;
use stenograph::render::{grouped, span};
use stenograph_store::runs::{Need, RunLook};

use super::super::address::{link, session_path};
use super::super::html::{Nav, counted, lazy, short, text};
use super::super::state::Viewer;
use super::super::trouble::AnswerProblem;
use super::sessions::{RowMarks, session_html};
use super::usage;

/// How many sessions and agents the overview shows.
const SESSIONS_MAX: usize = 12;
const RUNS_MAX: usize = 40;

/// How many days and models its charts have.
const DAYS: usize = 30;
const MODELS_MAX: usize = 6;

pub fn page_html(viewer: &Viewer) -> Result<String, AnswerProblem> {
    let (listing, catalogue) = (viewer.listing()?, viewer.store.catalogue()?);
    let mut rows = String::new();
    for session in listing.sessions.iter().take(SESSIONS_MAX) {
        rows.push_str(&session_html(viewer, &catalogue, session, 0, RowMarks::No));
    }
    if rows.is_empty() {
        rows.push_str(
            "<li class=\"empty\"><p>No sessions yet.</p><p>They appear here when an agent writes one.</p></li>",
        );
    }
    let main = format!(
        "<h1 class=\"visually-hidden\">Overview</h1><div class=\"columns overview\"><div>\
         <section aria-labelledby=\"agents\"><h2 id=\"agents\">Agents of the last day</h2>{}</section>\
         <section aria-labelledby=\"recent\"><h2 id=\"recent\">Newest sessions <a href=\"/sessions\">all {}</a></h2>\
         <ul class=\"rows\">{rows}</ul></section></div>\
         <aside aria-labelledby=\"spent\"><h2 id=\"spent\">Last {DAYS} days <a href=\"/usage\">usage</a></h2>{}</aside></div>",
        lazy("runs", "/overview/runs", "the agents"),
        listing.sessions.len(),
        lazy("spending", "/overview/usage", "the usage"),
    );
    Ok(viewer.page("Overview", Nav::Overview, "overview", &main))
}

/// The agents that run or need somebody, then those that are idle.
pub fn runs_html(viewer: &Viewer) -> Result<String, AnswerProblem> {
    let mut runs = viewer.runs();
    runs.retain(|run| !matches!(Need::of(run), Need::Over | Need::Unknown));
    if runs.is_empty() {
        return Ok("<p class=\"muted\">No agent runs or waits.</p>".to_owned());
    }
    runs.sort_by_key(|run| (Need::of(run), std::cmp::Reverse(run.active_ms())));
    let mut html = String::from("<ul class=\"runs\">");
    for run in runs.iter().take(RUNS_MAX) {
        html.push_str(&run_html(viewer, run));
    }
    html.push_str("</ul>");
    let more = runs.len().saturating_sub(RUNS_MAX);
    if more > 0 {
        let _ = write!(html, "<p class=\"muted\">{more} more: see steno status --all</p>");
    }
    Ok(html)
}

fn run_html(viewer: &Viewer, run: &RunLook) -> String {
    let (class, state) = match Need::of(run) {
        Need::Answer => ("ask", "needs your answer"),
        Need::Permission => ("ask", "needs your permission"),
        Need::Instruction => ("idle", "idle"),
        Need::Failed => ("failed", "failed"),
        Need::Stalled => ("failed", "stalled"),
        Need::Running => ("running", "running"),
        Need::Over => ("idle", "over"),
        Need::Unknown => ("idle", "unknown"),
    };
    let status = &run.status;
    let address = status.session.as_deref().map(|session| match status.thread.as_deref() {
        Some(thread) => link(&session_path(session), &[("agent", thread), ("at", "end")]),
        None => link(&session_path(session), &[("at", "end")]),
    });
    let name = run.agent().unwrap_or("agent");
    // The whole path shows whether the folder is named after a user.
    let masked = viewer.masked(status.cwd.as_deref().unwrap_or_default());
    let folder = masked.rsplit('/').next().unwrap_or_default();
    let title = format!("{name} {folder}");
    let title = match address {
        Some(address) => format!("<a href=\"{}\">{}</a>", text(&address), short(&title, 60)),
        None => short(&title, 60),
    };
    let open = status.open.first().map(|tool| format!(" in {}", short(&viewer.masked(tool), 40))).unwrap_or_default();
    format!(
        "<li class=\"run {class}\"><span class=\"state\">{state}</span> {title}<small>{open} silent for {}</small></li>",
        span(i64::try_from(run.silence_ms).unwrap_or(i64::MAX))
    )
}

/// The cost by day and by model.
pub fn usage_html(viewer: &Viewer) -> Result<String, AnswerProblem> {
    let since = format!("since:{DAYS}d");
    let days = usage::report(viewer, By::Day, Some(&since))?;
    if days.total.calls == 0 {
        return Ok("<p class=\"muted\">No model calls.</p>".to_owned());
    }
    let models = usage::report(viewer, By::Model, Some(&since))?;
    Ok(format!(
        "<p class=\"muted\">{} <span class=\"dot\">·</span> {} <span class=\"dot\">·</span> {} tokens</p>{}<h3>By model</h3>{}",
        usage::cost(&days.total),
        counted(days.total.calls, "call"),
        grouped(days.total.tokens.total()),
        usage::columns_html(&days, &viewer.zone, DAYS),
        usage::top_html(&models, By::Model, MODELS_MAX)
    ))
}

//! Tokens and cost: bars by day, model, project or agent. Every bar leads to the sessions behind it.

use std::fmt::Write as _;
use std::sync::Arc;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};
use stenograph::ledger::{
    self, By, CallDetail, Group, Ledger, LedgerBuilder, LedgerEntry, Money, UsageQuery, UsageReport,
};
use stenograph::query::{Query, SessionFacts};
use stenograph::render::{dollars, grouped};
use stenograph_store::index::NoObserver;
use stenograph_store::project::ProjectNames;
use stenograph_store::sessions::SessionDetails;
use stenograph_store::usage::{UsageRequest, UseIndex, pages};

use super::super::address::{Params, link};
use super::super::html::{Nav, counted, short, text};
use super::super::state::Viewer;
use super::super::trouble::AnswerProblem;

/// The groupings that the page offers.
const GROUPINGS: [By; 7] = [By::Day, By::Week, By::Month, By::Model, By::Project, By::Agent, By::Session];

/// How many bars are drawn. Of days, the last ones.
const BARS_MAX: usize = 120;

/// The sums of all calls that match a query, in groups. Asked again, it is answered from memory until the index changes.
pub fn report(viewer: &Viewer, by: By, query: Option<&str>) -> Result<Arc<UsageReport>, AnswerProblem> {
    let condition = query.map(|query| viewer.query(query)).transpose()?;
    viewer.report(format!("{} {}", by.name(), query.unwrap_or_default()), || {
        let ledger = ledger(viewer)?;
        Ok(ask(viewer, &ledger, by, condition.as_ref()))
    })
}

fn ledger(viewer: &Viewer) -> Result<Ledger, AnswerProblem> {
    let below: Vec<_> = viewer.root.iter().cloned().collect();
    let request = UsageRequest {
        places: Some(&viewer.places),
        files: &[],
        below: &below,
        store: &viewer.store,
        index: UseIndex::Yes,
        calls: CallDetail::Numbers,
        threads: 1,
    };
    let mut builder = LedgerBuilder::default();
    pages(&request, &mut NoObserver, &mut |page| page.add_to(&mut builder))?;
    Ok(builder.finish())
}

fn ask(viewer: &Viewer, ledger: &Ledger, by: By, query: Option<&Query>) -> UsageReport {
    let projects = || viewer.store.catalogue().ok().and_then(|catalogue| ProjectNames::of(&catalogue).ok());
    let (mut names, mut others) = (projects().unwrap_or_default(), projects().unwrap_or_default());
    let mut keep = |entry: &LedgerEntry| query.is_none_or(|query| is_wanted(ledger, entry, query, &mut others));
    let mut question = UsageQuery {
        by,
        then_by: None,
        zone: viewer.zone.clone(),
        prices: &viewer.prices,
        project: &mut |folder, session| names.name(folder, session),
        keep: &mut keep,
    };
    ledger::report(ledger, &mut question)
}

/// Whether a call matches a query about sessions.
fn is_wanted(ledger: &Ledger, entry: &LedgerEntry, query: &Query, projects: &mut ProjectNames) -> bool {
    let (row, name) = (&entry.row, |name| ledger.name(name));
    let sessions: Vec<String> = name(row.session).map(str::to_owned).into_iter().collect();
    let projects = name(row.cwd).map(|folder| projects.names(folder, name(row.session))).unwrap_or_default();
    let agent = name(Some(row.agent)).unwrap_or_default();
    let facts = SessionFacts { agent, projects: &projects, sessions: &sessions, ..SessionFacts::default() };
    let (model, started, ended) = (name(row.model), row.time, row.time);
    SessionDetails { facts, model, started, ended, ..SessionDetails::default() }.match_expr(query.expr())
}

pub fn page_html(viewer: &Viewer, params: &Params) -> Result<String, AnswerProblem> {
    let by = params.value("by").and_then(By::named).filter(|by| GROUPINGS.contains(by)).unwrap_or(By::Day);
    let query = params.value("q");
    let mut tabs = String::new();
    for one in GROUPINGS {
        let current = if one == by { " aria-current=\"true\"" } else { "" };
        let _ = write!(
            tabs,
            "<a href=\"{}\"{current}>{}</a>",
            text(&params.with("/usage", "by", Some(one.name()))),
            one.name()
        );
    }
    let body = match report(viewer, by, query) {
        Ok(report) => report_html(&report, by, query),
        Err(trouble) if query.is_some() => {
            format!(
                "<div class=\"empty\" role=\"alert\"><p>{}</p><p>{}</p></div>",
                text(&trouble.message),
                text(trouble.hint.as_deref().unwrap_or_default())
            )
        }
        Err(trouble) => return Err(trouble),
    };
    let main = format!(
        "<h1>Usage</h1><form class=\"filter\" action=\"/usage\"><input type=\"hidden\" name=\"by\" value=\"{}\">\
         <input type=\"search\" name=\"q\" value=\"{}\" aria-label=\"Filter\" placeholder=\"model:opus project:api since:30d\" autocomplete=\"off\" spellcheck=\"false\">\
         <button>Apply</button></form><nav class=\"tabs\" aria-label=\"Group by\">{tabs}</nav>{body}",
        by.name(),
        text(query.unwrap_or_default()),
    );
    Ok(viewer.page("Usage", Nav::Usage, "usage", &main))
}

fn report_html(report: &UsageReport, by: By, query: Option<&str>) -> String {
    if report.total.calls == 0 {
        return "<div class=\"empty\"><p>No model calls match.</p><p><a href=\"/usage\">Remove all filters</a></p></div>".to_owned();
    }
    let skipped = report.groups.len().saturating_sub(BARS_MAX);
    // Of days the last ones are shown, of everything else the most expensive ones.
    let shown: Vec<&Group> = match by.is_time() {
        true => report.groups.iter().skip(skipped).collect(),
        false => report.groups.iter().take(BARS_MAX).collect(),
    };
    let left_out = if skipped > 0 {
        format!("<p class=\"muted\">{} not shown</p>", counted(skipped as u64, "group"))
    } else {
        String::new()
    };
    let mut unpriced = String::new();
    if !report.unpriced.is_empty() {
        let names: Vec<String> =
            report.unpriced.iter().take(8).map(|one| text(one.model.as_deref().unwrap_or("(unnamed)"))).collect();
        let _ = write!(
            unpriced,
            "<p class=\"alert\">No price for {}: their calls are not in the sums. Add prices in prices.toml.</p>",
            names.join(", ")
        );
    }
    format!("{}{unpriced}{}{left_out}", cards_html(&report.total), table_html(&shown, &report.total, by, query))
}

/// The totals.
fn cards_html(total: &Group) -> String {
    let tokens = &total.tokens;
    let card = |name: &str, value: &str| format!("<div><dt>{name}</dt><dd>{value}</dd></div>");
    format!(
        "<dl class=\"cards\">{}{}{}{}{}{}</dl>",
        card("Cost", &cost(total)),
        card("Calls", &grouped(total.calls)),
        card("Input", &grouped(tokens.input)),
        card("Output", &grouped(tokens.output)),
        card("Cache read", &grouped(tokens.cache_read)),
        card("Cache write", &grouped(tokens.cache_write)),
    )
}

/// The cost of a group. A model without a price is never free.
pub fn cost(group: &Group) -> String {
    match (group.cost.money, group.cost.unpriced) {
        (Some(money), 0) => dollars(money),
        (_, unpriced) if unpriced > 0 && group.cost.priced == 0 => "no price".to_owned(),
        (Some(money), _) => format!("{} +?", dollars(money)),
        (None, _) => "too much".to_owned(),
    }
}

/// The size of a bar: its cost, or its tokens if nothing has a price.
fn size(group: &Group, has_cost: bool) -> f64 {
    match group.cost.money.filter(|_| has_cost) {
        Some(money) => money.rounded(6).parse().unwrap_or(0.0),
        None if has_cost => 0.0,
        None => group.tokens.total() as f64,
    }
}

/// A table with a bar for each group.
fn table_html(groups: &[&Group], total: &Group, by: By, query: Option<&str>) -> String {
    let has_cost = total.cost.money.is_some_and(|money: Money| !money.is_zero());
    let most = groups.iter().map(|group| size(group, has_cost)).fold(0.0, f64::max);
    let mut html = format!(
        "<div class=\"scroll\"><table class=\"bars\"><thead><tr><th>{}</th><th class=\"bar\"><span class=\"visually-hidden\">Share</span></th><th>Cost</th><th>Calls</th><th>Input</th>\
         <th>Output</th><th>Cache read</th><th>Cache write</th></tr></thead><tbody>",
        by.name()
    );
    for group in groups {
        let name = group.key.as_deref().unwrap_or("(unknown)");
        let width = if most > 0.0 { size(group, has_cost) / most * 100.0 } else { 0.0 };
        let label = match sessions_link(group.key.as_deref(), by, query) {
            Some(address) => format!("<a href=\"{}\">{}</a>", text(&address), short(name, 48)),
            None => short(name, 48),
        };
        let tokens = &group.tokens;
        let numbers: Vec<String> = [group.calls, tokens.input, tokens.output, tokens.cache_read, tokens.cache_write]
            .iter()
            .map(|number| format!("<td>{}</td>", grouped(*number)))
            .collect();
        let _ = write!(
            html,
            "<tr><th scope=\"row\">{label}</th><td class=\"bar\"><svg viewBox=\"0 0 100 10\" preserveAspectRatio=\"none\" aria-hidden=\"true\">\
             <rect width=\"{width:.2}\" height=\"10\"></rect></svg></td><td>{}</td>{}</tr>",
            cost(group),
            numbers.concat()
        );
    }
    html.push_str("</tbody></table></div>");
    html
}

/// The sessions behind a bar.
fn sessions_link(key: Option<&str>, by: By, query: Option<&str>) -> Option<String> {
    let key = key?;
    let quoted = format!("\"{}\"", key.replace('\\', "\\\\").replace('"', "\\\""));
    let condition = match by {
        By::Day => format!("since:{key} until:{key}"),
        By::Week => {
            let monday: Date = key.parse().ok()?;
            format!("since:{key} until:{}", monday.saturating_add(Span::new().days(6)))
        }
        By::Month => format!("since:{key} until:{key}"),
        // A call may have another model, project or agent than its session: the calls themselves know.
        By::Model | By::Project | By::Agent => {
            let whole = [query.unwrap_or_default(), &format!("{}:{quoted}", by.name())].join(" ");
            return Some(link("/usage", &[("by", By::Session.name()), ("q", whole.trim())]));
        }
        By::Session => return Some(super::super::address::session_path(key)),
        By::HourBlock | By::Branch | By::Tool | By::Subagent => return None,
    };
    let whole = [query.unwrap_or_default(), &condition].join(" ");
    Some(link("/sessions", &[("q", whole.trim())]))
}

/// The last days, one column each, also for days without a call.
pub fn columns_html(report: &UsageReport, zone: &TimeZone, days: usize) -> String {
    let has_cost = report.total.cost.money.is_some_and(|money| !money.is_zero());
    let most = report.groups.iter().map(|group| size(group, has_cost)).fold(0.0, f64::max);
    let today = Timestamp::now().to_zoned(zone.clone()).date();
    let day = |ago: usize| today.saturating_sub(Span::new().days(i64::try_from(ago).unwrap_or(0)));
    let mut html = String::from("<ol class=\"days\">");
    for ago in (0..days).rev() {
        let date = day(ago).to_string();
        let Some(group) = report.groups.iter().find(|group| group.key.as_deref() == Some(&date)) else {
            html.push_str("<li></li>");
            continue;
        };
        let height = if most > 0.0 { (size(group, has_cost) / most * 100.0).max(1.0) } else { 0.0 };
        let address = sessions_link(Some(&date), By::Day, None).unwrap_or_default();
        let _ = write!(
            html,
            "<li><a href=\"{}\" title=\"{date}: {}, {}\"><svg viewBox=\"0 0 10 100\" preserveAspectRatio=\"none\" aria-hidden=\"true\">\
             <rect y=\"{:.2}\" width=\"10\" height=\"{height:.2}\"></rect></svg><span class=\"visually-hidden\">{date}: {}</span></a></li>",
            text(&address),
            cost(group),
            counted(group.calls, "call"),
            100.0 - height,
            cost(group),
        );
    }
    let label = |ago: usize| day(ago).strftime("%b %-d").to_string();
    let (first, last) = (label(days.saturating_sub(1)), label(0));
    let _ = write!(html, "</ol><p class=\"axis\"><span>{first}</span><span>{last}</span></p>");
    html
}

/// The most expensive groups of a report, one bar each.
pub fn top_html(report: &UsageReport, by: By, most: usize) -> String {
    let groups: Vec<&Group> = report.groups.iter().take(most).collect();
    table_html(&groups, &report.total, by, None)
}

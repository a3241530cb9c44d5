//! Two sessions side by side, aligned by content, and the choice of the second one. The address names both sessions and the place.

use std::fmt::Write as _;

use axum::http::StatusCode;
use stenograph::compare::{Comparison, DiffChange, Side};
use stenograph::render::{dollars, grouped, span};
use stenograph_store::index::catalogue::IndexedSession;
use stenograph_store::sessions::matches_session;

use super::super::address::{Params, link, session_path};
use super::super::answer::PageAnswer;
use super::super::comparison::ComparedPair;
use super::super::html::{Nav, counted, moment, short, text};
use super::super::state::Viewer;
use super::super::trouble::AnswerProblem;
use super::compare_changes::changes_html;
use super::session::NamedConversation;

/// How many sessions the choice lists.
const CHOICES_MAX: usize = 60;

/// How many changes a page has.
const CHANGES_MAX: usize = 50;

/// How many columns the drawing of all changes has.
const STRIP_COLUMNS: usize = 400;

/// The comparison, or the choice of what to compare.
pub fn answer(viewer: &Viewer, params: &Params) -> Result<PageAnswer, AnswerProblem> {
    // The form of the list has one field for each marked session; the address of a comparison has their order.
    let marked = params.values("s");
    match (marked.as_slice(), params.value("a"), params.value("b")) {
        ([a, b], ..) => Ok(redirect(&link("/compare", &[("a", a), ("b", b)]))),
        ([a], ..) => Ok(redirect(&link("/compare", &[("a", a)]))),
        ([_, _, _, ..], ..) => Err(AnswerProblem::bad("more than two sessions are marked").hint("mark two sessions")),
        ([], Some(_), Some(_)) => Ok(PageAnswer::html(page_html(viewer, params)?)),
        ([], Some(a), None) => Ok(PageAnswer::html(choice_html(viewer, a, params)?)),
        ([], None, _) => Err(AnswerProblem::bad("no session is marked")
            .hint("mark two sessions in the list, or use Compare on the page of a session")),
    }
}

fn redirect(location: &str) -> PageAnswer {
    let status = StatusCode::SEE_OTHER;
    PageAnswer { status, location: Some(location.to_owned()), ..PageAnswer::html(String::new()) }
}

fn title_of(session: &IndexedSession) -> &str {
    session.title.as_deref().or(session.query.as_deref()).unwrap_or(&session.name)
}

/// The sessions with which a session can be compared: those of its project first.
fn choice_html(viewer: &Viewer, name: &str, params: &Params) -> Result<String, AnswerProblem> {
    let session = viewer.session(name)?.session;
    let query = params.value("q").map(|query| viewer.query(query)).transpose()?;
    let listing = viewer.listing()?;
    let kept = |other: &&IndexedSession| {
        other.id != session.id && query.as_ref().is_none_or(|query| matches_session(query, other))
    };
    let mut others: Vec<&IndexedSession> = listing.sessions.iter().filter(kept).collect();
    let project = |session: &IndexedSession| session.project.as_ref().map(|project| project.name.clone());
    let own = project(&session);
    others.sort_by_key(|other| own.is_none() || project(other) != own);
    let mut rows = String::new();
    for other in others.iter().take(CHOICES_MAX) {
        let address = params.with("/compare", "b", Some(&other.name));
        let facts = [Some(text(&other.agent)), project(other).map(|name| format!("<b>{}</b>", text(&name)))];
        let counts = [counted(other.messages, "message"), counted(other.calls, "call")];
        let facts: Vec<String> = facts.into_iter().flatten().chain(counts).collect();
        let _ = write!(
            rows,
            "<li class=\"row\"><a href=\"{}\">{}</a><span class=\"when\">{}</span><p>{}</p></li>",
            text(&address),
            short(title_of(other), 140),
            moment(other.ended, &viewer.zone),
            facts.join(" <span class=\"dot\">·</span> ")
        );
    }
    let list = match others.len() {
        0 => "<div class=\"empty\"><p>No other session matches.</p></div>".to_owned(),
        1..=CHOICES_MAX => format!("<ul class=\"rows\">{rows}</ul>"),
        all => format!(
            "<ul class=\"rows\">{rows}</ul><p class=\"muted\">{} more: type words to find them</p>",
            grouped((all - CHOICES_MAX) as u64)
        ),
    };
    let agent = params
        .value("agent_a")
        .map(|agent| format!("<input type=\"hidden\" name=\"agent_a\" value=\"{}\">", text(agent)));
    let main = format!(
        "<header class=\"session-head\"><h1>Compare <small>{}</small></h1><p class=\"facts\">Choose the second session.</p></header>\
         <form class=\"filter\" action=\"/compare\"><input type=\"hidden\" name=\"a\" value=\"{}\">{}\
         <input type=\"search\" name=\"q\" value=\"{}\" aria-label=\"Filter\" placeholder=\"Words of a title, or project:api since:7d\" autocomplete=\"off\">\
         <button>Find</button></form>{list}",
        short(title_of(&session), 120),
        text(&session.name),
        agent.unwrap_or_default(),
        text(params.value("q").unwrap_or_default()),
    );
    Ok(viewer.page("Compare", Nav::Sessions, "choice", &main))
}

fn page_html(viewer: &Viewer, params: &Params) -> Result<String, AnswerProblem> {
    let pair = ComparedPair::of(viewer, params)?;
    let found = pair.found.as_ref();
    let all = found.changes.len();
    let from = usize::try_from(params.number("from").unwrap_or(0)).unwrap_or(usize::MAX).min(all);
    let end = from.saturating_add(CHANGES_MAX).min(all);
    let mut more = String::new();
    let mut page_link = |rel: &str, from: usize, label: &str| {
        let value = (from > 0).then(|| from.to_string());
        let address = params.with("/compare", "from", value.as_deref());
        let _ = write!(more, " <a class=\"button\" rel=\"{rel}\" href=\"{}\">{label}</a>", text(&address));
    };
    if from > 0 {
        page_link("prev", from.saturating_sub(CHANGES_MAX), "Earlier");
    }
    if end < all {
        page_link("next", end, "Later");
    }
    let place = match all > CHANGES_MAX {
        true => {
            format!("<span>{} to {} of {}</span>", grouped(from as u64 + 1), grouped(end as u64), grouped(all as u64))
        }
        false => String::new(),
    };
    let more = if more.is_empty() { more } else { format!("<p class=\"pages\">{place}{more}</p>") };
    let main = format!(
        "<div class=\"compare\"><header class=\"session-head\"><h1>Compare</h1><div class=\"actions\">\
         <a class=\"button\" href=\"{}\">Swap</a><a class=\"button\" href=\"{}\">Compare A with another</a></div></header>\
         <div class=\"pair\">{}{}</div>{}{more}{}{more}</div>",
        text(&swapped(params)),
        text(&params.with("/compare", "b", None)),
        side_html(viewer, &pair.a, Side::A),
        side_html(viewer, &pair.b, Side::B),
        summary_html(found),
        changes_html(viewer, &pair, from..end, params)?,
    );
    let title = format!("{} and {}", title_of(&pair.a.named.session), title_of(&pair.b.named.session));
    Ok(viewer.page(&format!("Compare {title}"), Nav::Sessions, "compare", &main))
}

/// The address of the same comparison with its sides exchanged.
fn swapped(params: &Params) -> String {
    let pairs = [("a", "b"), ("b", "a"), ("agent_a", "agent_b"), ("agent_b", "agent_a")];
    let pairs = pairs.into_iter().filter_map(|(name, from)| Some((name, params.value(from)?)));
    link("/compare", &pairs.collect::<Vec<_>>())
}

/// One of the two sessions: its title and facts.
fn side_html(viewer: &Viewer, side: &NamedConversation, which: Side) -> String {
    let session = &side.named.session;
    let took = viewer.cost(session, &side.named.catalogue).unwrap_or_default();
    let agent = side.agent.as_deref();
    let lasted = session.started.zip(session.ended).map(|(from, to)| format!("took {}", span(to.saturating_sub(from))));
    let facts = [
        Some(text(&session.agent)),
        agent.map(|agent| format!("sub-agent {}", short(agent, 40))),
        session.project.as_ref().map(|project| format!("<b>{}</b>", text(&project.name))),
        session.branch.as_deref().map(|branch| short(branch, 40)),
        session.model.as_deref().map(text),
        Some(moment(session.ended, &viewer.zone)),
        lasted,
        Some(counted(session.messages, "message")),
        Some(counted(session.calls, "call")),
        (session.errors > 0).then(|| format!("<span class=\"errors\">{}</span>", counted(session.errors, "error"))),
        Some(took.tokens()).filter(|tokens| !tokens.is_empty()),
        took.cost.map(dollars),
    ];
    let facts: Vec<String> = facts.into_iter().flatten().collect();
    let params: Vec<(&str, &str)> = agent.map(|agent| ("agent", agent)).into_iter().collect();
    format!(
        "<section class=\"card\" aria-label=\"Session {0}\"><h2><span class=\"letter\">{0}</span> <a href=\"{1}\">{2}</a></h2><p>{3}</p></section>",
        which.name(),
        text(&link(&session_path(&session.name), &params)),
        short(title_of(session), 160),
        facts.join(" <span class=\"dot\">·</span> "),
    )
}

/// The counts, the first difference, and a drawing of where the sessions differ.
fn summary_html(found: &Comparison) -> String {
    let counts = found.counts();
    let shared = found.shared();
    let at = |steps: &[stenograph::compare::DiffStep]| {
        shared.checked_sub(1).and_then(|at| steps.get(at)).map_or(0, |step| step.number)
    };
    let first = match shared {
        _ if found.a.is_empty() && found.b.is_empty() => "Both are empty.".to_owned(),
        _ if found.is_equal() => "Both are equal.".to_owned(),
        0 => "Different from the first step.".to_owned(),
        _ => format!(
            "Equal up to step {} (event {} of A, event {} of B).",
            grouped(shared as u64),
            grouped(at(&found.a)),
            grouped(at(&found.b))
        ),
    };
    let mut html = format!("<p class=\"verdict\">{first}</p><ul class=\"counts\">");
    for (class, count, words) in [
        ("same", counts.same, "equal"),
        ("changed", counts.changed, "changed"),
        ("moved", counts.moved, "moved"),
        ("only-a", counts.only_a, "only in A"),
        ("only-b", counts.only_b, "only in B"),
    ] {
        if count > 0 {
            let _ = write!(html, "<li><span class=\"swatch {class}\"></span>{} {words}</li>", grouped(count));
        }
    }
    html.push_str("</ul>");
    html.push_str(&strip_html(found));
    // The last sentence has the counts again.
    let sentences = found.summary();
    let remarks = sentences.split_last().map(|(_, remarks)| remarks).unwrap_or_default();
    for remark in remarks {
        let _ = write!(html, "<p class=\"muted\">{}</p>", text(remark));
    }
    html
}

/// A drawing of all changes from the first to the last: each column has the colour of what differs there.
fn strip_html(found: &Comparison) -> String {
    let length = |change: &DiffChange| match change {
        DiffChange::Same { count, .. } => *count,
        DiffChange::Moved { .. } | DiffChange::Changed { .. } | DiffChange::Only { .. } => 1,
    };
    let all: usize = found.changes.iter().map(length).sum();
    if all == 0 {
        return String::new();
    }
    let mut columns = [""; STRIP_COLUMNS];
    let mut at = 0;
    for change in &found.changes {
        let class = match change {
            DiffChange::Same { .. } => "",
            DiffChange::Moved { .. } => "moved",
            DiffChange::Changed { .. } => "changed",
            DiffChange::Only { side: Side::A, .. } => "only-a",
            DiffChange::Only { side: Side::B, .. } => "only-b",
        };
        let end = at + length(change);
        if !class.is_empty() {
            let range = at * STRIP_COLUMNS / all..(end * STRIP_COLUMNS).div_ceil(all);
            columns.get_mut(range).unwrap_or_default().iter_mut().for_each(|column| *column = class);
        }
        at = end;
    }
    let mut html = format!(
        "<svg class=\"strip\" viewBox=\"0 0 {STRIP_COLUMNS} 10\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"Where the sessions differ\">"
    );
    let mut x = 0;
    for run in columns.chunk_by(|one, next| one == next) {
        if let Some(class) = run.first().filter(|class| !class.is_empty()) {
            let _ =
                write!(html, "<rect class=\"swatch {class}\" x=\"{x}\" width=\"{}\" height=\"10\"></rect>", run.len());
        }
        x += run.len();
    }
    html.push_str("</svg>");
    html
}

//! The pages. Each works as a document with links; scripts add keys, live changes and loading while scrolling.

mod compare;
mod compare_changes;
mod convert;
mod lanes;
mod login;
mod overview;
mod palette;
mod session;
mod session_panels;
mod sessions;
mod usage;

use axum::http::StatusCode;

use super::address::{Params, link, session_path};
use super::answer::PageAnswer;
use super::html::{Nav, text};
use super::marks;
use super::routes::ViewerRoute;
use super::state::Viewer;
use super::trouble::AnswerProblem;

pub use lanes::AgentLane;
pub use login::{login, welcome};
pub use session::{NamedConversation, conversation};
pub use usage::report as usage_report;

/// Answers a request for a page or a part of one.
pub fn answer(
    viewer: &Viewer,
    route: ViewerRoute,
    names: &[String],
    params: &Params,
) -> Result<PageAnswer, AnswerProblem> {
    let name = names.first().map_or("", String::as_str);
    let html = match route {
        ViewerRoute::Overview => overview::page_html(viewer)?,
        ViewerRoute::OverviewRuns => overview::runs_html(viewer)?,
        ViewerRoute::OverviewUsage => overview::usage_html(viewer)?,
        ViewerRoute::Sessions => sessions::page_html(viewer, params)?,
        ViewerRoute::Session => session::page_html(viewer, name, params)?,
        ViewerRoute::SessionEvents => session::events_html(viewer, name, params)?,
        ViewerRoute::SessionContents => session_panels::contents_html(viewer, name, params)?,
        ViewerRoute::SessionLanes => lanes::lanes_html(viewer, name, params)?,
        ViewerRoute::SessionChanges => session_panels::changes_html(viewer, name, params)?,
        ViewerRoute::SessionConvert => convert::page_html(viewer, name, params)?,
        ViewerRoute::SessionDownload => return convert::download(viewer, name, params),
        ViewerRoute::SessionMarks => {
            let path = session_path(&marks::change(viewer, name, params)?.session.name);
            let location = marked_location(&path, params);
            let status = StatusCode::SEE_OTHER;
            return Ok(PageAnswer { status, location: Some(location), ..PageAnswer::html(String::new()) });
        }
        ViewerRoute::Compare => return compare::answer(viewer, params),
        ViewerRoute::Usage => usage::page_html(viewer, params)?,
        ViewerRoute::Palette => palette::html(viewer, params)?,
        ViewerRoute::Live
        | ViewerRoute::Asset
        | ViewerRoute::Login
        | ViewerRoute::LoginForm
        | ViewerRoute::ApiSessions
        | ViewerRoute::ApiSession
        | ViewerRoute::ApiEvents
        | ViewerRoute::ApiContents
        | ViewerRoute::ApiMarks
        | ViewerRoute::ApiCompare
        | ViewerRoute::ApiSearch
        | ViewerRoute::ApiRuns
        | ViewerRoute::ApiUsage
        | ViewerRoute::ApiLive
        | ViewerRoute::OpenApi => return Err(AnswerProblem::not_found("no such page")),
    };
    Ok(PageAnswer::html(html))
}

/// The page for a request that has no answer.
pub fn problem(viewer: &Viewer, trouble: &AnswerProblem) -> String {
    let hint = trouble.hint.as_deref().map(|hint| format!("<p>{}</p>", text(&viewer.masked(hint)))).unwrap_or_default();
    let main = format!(
        "<section class=\"empty problem\" role=\"alert\"><h1>{}</h1>{hint}<p><a href=\"/sessions\">All sessions</a></p></section>",
        text(&viewer.masked(&trouble.message))
    );
    viewer.page("Problem", Nav::None, "problem", &main)
}

/// Where a change of marks leads: to the event that the note is about, or to the session.
fn marked_location(path: &str, params: &Params) -> String {
    let agent = params.value("agent").map(|agent| ("agent", agent));
    let event = params.number("event").map(|number| number.to_string());
    let pairs: Vec<(&str, &str)> = event.as_deref().map(|number| ("at", number)).into_iter().chain(agent).collect();
    let hash = event.as_deref().map(|number| format!("#e{number}")).unwrap_or_default();
    format!("{}{hash}", link(path, &pairs))
}

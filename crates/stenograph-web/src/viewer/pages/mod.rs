//! The pages. Each works as a document with links; scripts add keys, live changes and loading while scrolling.

mod convert;
mod login;
mod overview;
mod palette;
mod session;
mod session_panels;
mod sessions;
mod usage;

use axum::http::StatusCode;

use super::address::{Params, session_path};
use super::answer::Answer;
use super::html::{Nav, page, text};
use super::marks;
use super::routes::Route;
use super::state::Viewer;
use super::trouble::Trouble;

pub use login::{login, welcome};
pub use session::conversation;
pub use usage::report as usage_report;

/// Answers a request for a page or a part of one.
pub fn answer(viewer: &Viewer, route: Route, names: &[String], params: &Params) -> Result<Answer, Trouble> {
    let name = names.first().map_or("", String::as_str);
    let html = match route {
        Route::Overview => overview::page_html(viewer)?,
        Route::OverviewRuns => overview::runs_html(viewer)?,
        Route::OverviewUsage => overview::usage_html(viewer)?,
        Route::Sessions => sessions::page_html(viewer, params)?,
        Route::Session => session::page_html(viewer, name, params)?,
        Route::SessionEvents => session::events_html(viewer, name, params)?,
        Route::SessionContents => session_panels::contents_html(viewer, name, params)?,
        Route::SessionChanges => session_panels::changes_html(viewer, name, params)?,
        Route::SessionConvert => convert::page_html(viewer, name, params)?,
        Route::SessionDownload => return convert::download(viewer, name, params),
        Route::SessionMarks => {
            let location = session_path(&marks::change(viewer, name, params)?.session.name);
            let status = StatusCode::SEE_OTHER;
            return Ok(Answer { status, location: Some(location), ..Answer::html(String::new()) });
        }
        Route::Usage => usage::page_html(viewer, params)?,
        Route::Palette => palette::html(viewer, params)?,
        Route::Live
        | Route::Asset
        | Route::Login
        | Route::LoginForm
        | Route::ApiSessions
        | Route::ApiSession
        | Route::ApiEvents
        | Route::ApiContents
        | Route::ApiMarks
        | Route::ApiSearch
        | Route::ApiRuns
        | Route::ApiUsage
        | Route::ApiLive
        | Route::OpenApi => return Err(Trouble::not_found("no such page")),
    };
    Ok(Answer::html(html))
}

/// The page for a request that has no answer.
pub fn problem(trouble: &Trouble) -> String {
    let hint = trouble.hint.as_deref().map(|hint| format!("<p>{}</p>", text(hint))).unwrap_or_default();
    let main = format!(
        "<section class=\"empty problem\" role=\"alert\"><h1>{}</h1>{hint}<p><a href=\"/sessions\">All sessions</a></p></section>",
        text(&trouble.message)
    );
    page("Problem", Nav::None, "problem", &main)
}

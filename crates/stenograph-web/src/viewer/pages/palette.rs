//! The palette: sessions whose title, project or id has the words, then the places in all sessions that have them.

use std::fmt::Write as _;

use stenograph_store::index::search::{Order, SearchRequest};

use super::super::address::{Params, link, session_path};
use super::super::html::{short, text};
use super::super::state::Viewer;
use super::super::trouble::AnswerProblem;
use super::sessions::{hit_html, with_prefix};

/// How many sessions and hits the palette shows.
const SESSIONS_MAX: usize = 8;
const HITS_MAX: usize = 20;

/// The length of a snippet: one line.
const SNIPPET_LENGTH_MAX: usize = 110;

pub fn html(viewer: &Viewer, params: &Params) -> Result<String, AnswerProblem> {
    let words = params.value("q").unwrap_or_default().trim();
    let mut html = String::new();
    let lower: Vec<String> = words.to_lowercase().split_whitespace().map(str::to_owned).collect();
    let listing = viewer.listing()?;
    let has_words = |session: &&stenograph_store::index::catalogue::IndexedSession| {
        let project = session.project.as_ref().map(|project| project.name.as_str());
        let facts = [
            Some(session.name.as_str()),
            session.title.as_deref(),
            session.query.as_deref(),
            project,
            Some(&session.agent),
        ];
        let facts = facts.into_iter().flatten().collect::<Vec<_>>().join(" ").to_lowercase();
        lower.iter().all(|word| facts.contains(word))
    };
    let sessions: Vec<_> = listing.sessions.iter().filter(has_words).take(SESSIONS_MAX).collect();
    if !sessions.is_empty() {
        html.push_str("<h2>Sessions</h2><ul>");
        for session in sessions {
            let title = session.title.as_deref().or(session.query.as_deref()).unwrap_or(&session.name);
            let project = session.project.as_ref().map(|project| project.name.as_str()).unwrap_or_default();
            let _ = write!(
                html,
                "<li><a href=\"{}\"><small>{} {}</small> {}</a></li>",
                session_path(&session.name),
                text(&session.agent),
                text(project),
                short(title, 100)
            );
        }
        html.push_str("</ul>");
    }
    if words.is_empty() {
        return Ok(html);
    }
    // A query that is not complete yet finds nothing yet.
    let longer = with_prefix(words);
    for typed in [Some(words), longer.as_deref()].into_iter().flatten() {
        let Ok(query) = viewer.query(typed) else { continue };
        let request = SearchRequest {
            query: &query,
            order: Order::Best,
            offset: 0,
            limit: HITS_MAX,
            within: viewer.root.as_deref(),
        };
        let found = viewer.hits(&request, SNIPPET_LENGTH_MAX)?;
        if !found.hits.is_empty() {
            html.push_str("<h2>In all sessions</h2><ul>");
            for hit in &found.hits {
                html.extend(hit.session.as_ref().map(|session| hit_html(session, hit)));
            }
            html.push_str("</ul>");
            break;
        }
    }
    let all = link("/sessions", &[("q", words)]);
    let _ =
        write!(html, "<ul><li><a href=\"{}\">All results for <b>{}</b></a></li></ul>", text(&all), short(words, 60));
    Ok(html)
}

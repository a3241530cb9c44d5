//! Conversion of a session: the formats, what each conversion loses, measured, and the file.

use std::fmt::Write as _;
use std::io::Read as _;

use axum::body::Body;
use axum::http::StatusCode;
use stenograph::Registry;
use stenograph::convert::{self, Carry, Outcome, Reopen as _};
use stenograph::format::Format;
use stenograph_store::Spool;
use tokio::sync::mpsc;

use super::super::address::{Params, link, session_path};
use super::super::answer::PageAnswer;
use super::super::html::{Nav, short, text};
use super::super::live::Chunks;
use super::super::state::Viewer;
use super::super::trouble::AnswerProblem;
use super::session::{NamedConversation, conversation};

/// How many bytes of a file are sent at a time.
const CHUNK_SIZE: usize = 64 << 10;

pub fn page_html(viewer: &Viewer, name: &str, params: &Params) -> Result<String, AnswerProblem> {
    let found = conversation(viewer, name, params.value("agent"))?;
    let session = &found.named.session;
    let path = session_path(&session.name);
    let chosen = params.value("to").and_then(|name| Registry::built_in().named(name));
    let mut options = String::new();
    for format in Registry::built_in().targets() {
        let info = format.info();
        let selected = if chosen.is_some_and(|chosen| chosen.info().name == info.name) { " selected" } else { "" };
        let _ = write!(options, "<option value=\"{0}\"{selected}>{0}: {1}</option>", text(info.name), text(info.title));
    }
    let agent = found.agent.as_deref();
    let hidden = agent
        .map(|agent| format!("<input type=\"hidden\" name=\"agent\" value=\"{}\">", text(agent)))
        .unwrap_or_default();
    let result = match chosen {
        None => "<p class=\"muted\">Choose a format. Stenograph converts the session, reads the result back and lists every difference.</p>".to_owned(),
        Some(to) => {
            let (_, outcome) = converted(viewer, &found, to)?;
            let params: Vec<(&str, &str)> = [("to", to.info().name)].into_iter().chain(agent.map(|agent| ("agent", agent))).collect();
            losses_html(&outcome, to, &link(&format!("{path}/download"), &params))
        }
    };
    let title = session.title.as_deref().or(session.query.as_deref()).unwrap_or(&session.name);
    let main = format!(
        "<header class=\"session-head\"><h1>Convert <small>{}</small></h1><div class=\"actions\"><a class=\"button\" href=\"{path}\">Back to the session</a></div></header>\
         <form class=\"filter\" action=\"{path}/convert\">{hidden}<label>From {} to <select name=\"to\">{options}</select></label><button>Measure the loss</button></form>{result}",
        short(title, 120),
        text(found.events.format().info().name),
    );
    Ok(viewer.page("Convert", Nav::Sessions, "convert", &main))
}

fn losses_html(outcome: &Outcome, to: &dyn Format, address: &str) -> String {
    let summary = outcome.losses.summary();
    let mut html = match outcome.losses.is_lossy() {
        true => "<h2>What gets lost</h2><ul class=\"losses\">".to_owned(),
        false => "<h2>Nothing gets lost</h2><ul class=\"losses\">".to_owned(),
    };
    for line in &summary {
        let _ = write!(html, "<li>{}</li>", text(line));
    }
    let _ = write!(
        html,
        "</ul><p><a class=\"button primary\" href=\"{}\" download>Download as {}</a></p>",
        text(address),
        text(to.info().name)
    );
    html
}

/// Converts a conversation into a file that exists only while it is open.
fn converted(
    viewer: &Viewer,
    found: &NamedConversation,
    to: &'static dyn Format,
) -> Result<(Spool, Outcome), AnswerProblem> {
    let mut source = found.events.open(&viewer.store)?;
    let mut spool = Spool::new()?;
    let outcome = convert::convert(found.events.format(), &mut source, to, &mut spool, Carry::Omit);
    let outcome = outcome.map_err(|error| {
        let trouble = AnswerProblem::bad(error.to_string());
        match error.hint() {
            Some(hint) => trouble.hint(hint),
            None => trouble,
        }
    })?;
    Ok((spool, outcome))
}

/// The converted file.
pub fn download(viewer: &Viewer, name: &str, params: &Params) -> Result<PageAnswer, AnswerProblem> {
    let found = conversation(viewer, name, params.value("agent"))?;
    let to = params.value("to").and_then(|name| Registry::built_in().named(name));
    let to = to.ok_or_else(|| AnswerProblem::bad("choose a format").hint("the parameter to names a format"))?;
    let (mut spool, _) = converted(viewer, &found, to)?;
    let (sender, chunks) = mpsc::channel(4);
    std::thread::spawn(move || {
        let Ok(mut file) = spool.open() else { return };
        let mut buffer = vec![0; CHUNK_SIZE];
        loop {
            let length = match file.read(&mut buffer) {
                Ok(0) | Err(_) => return,
                Ok(length) => length,
            };
            let chunk = buffer.get(..length).unwrap_or_default().to_vec();
            if sender.blocking_send(chunk).is_err() {
                return;
            }
        }
    });
    let extension = to.info().extension;
    let plain = |name: &str| -> String {
        name.chars()
            .map(|one| if one.is_ascii_alphanumeric() || "-_.".contains(one) { one } else { '-' })
            .take(80)
            .collect()
    };
    Ok(PageAnswer {
        status: StatusCode::OK,
        media: "application/octet-stream".to_owned(),
        body: Body::from_stream(Chunks::new(chunks)),
        file: Some(format!("{}.{}.{extension}", plain(&found.named.session.name), plain(to.info().name))),
        location: None,
    })
}

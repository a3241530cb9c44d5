//! The styles and scripts of the viewer, which are part of the program. A browser that has a file already gets no copy of it.

use axum::http::header::{CACHE_CONTROL, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use stenograph::render::html::EVENT_CSS;
use xxhash_rust::xxh3::xxh3_64;

use super::respond::{problem_json, respond, set};

const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// The files by name.
const ASSETS: [(&str, &str, &str); 10] = [
    ("event.css", CSS, EVENT_CSS),
    ("viewer.css", CSS, include_str!("../../assets/viewer.css")),
    ("theme.js", SCRIPT, include_str!("../../assets/theme.js")),
    ("app.js", SCRIPT, include_str!("../../assets/app.js")),
    ("compare.js", SCRIPT, include_str!("../../assets/compare.js")),
    ("dom.js", SCRIPT, include_str!("../../assets/dom.js")),
    ("keys.js", SCRIPT, include_str!("../../assets/keys.js")),
    ("list.js", SCRIPT, include_str!("../../assets/list.js")),
    ("palette.js", SCRIPT, include_str!("../../assets/palette.js")),
    ("session.js", SCRIPT, include_str!("../../assets/session.js")),
];

/// The icon, without a file of its own on the network.
const ICON: (&str, &str, &str) = ("icon.svg", "image/svg+xml", include_str!("../../assets/icon.svg"));

/// Whether there is a file of this name.
pub fn is_known(name: &str) -> bool {
    ASSETS.iter().chain([&ICON]).any(|(known, ..)| *known == name)
}

pub fn answer(name: &str, headers: &HeaderMap) -> Response {
    let Some((_, media, text)) = ASSETS.iter().chain([&ICON]).find(|(known, ..)| *known == name) else {
        return problem_json(StatusCode::NOT_FOUND, "no such file", None);
    };
    let tag = format!("\"{:016x}\"", xxh3_64(text.as_bytes()));
    let is_known = headers.get_all(IF_NONE_MATCH).iter().any(|known| known.to_str().is_ok_and(|known| known == tag));
    let mut response = match is_known {
        true => respond(StatusCode::NOT_MODIFIED, "", media),
        false => respond(StatusCode::OK, *text, media),
    };
    set(&mut response, ETAG, &tag);
    // The browser asks each time: another version of the server may listen at the same address.
    set(&mut response, CACHE_CONTROL, "no-cache");
    response
}

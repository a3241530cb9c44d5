//! Responses: a body, a media type, and the headers that every answer has.

use axum::body::Body;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use axum::response::Response;
use stenograph::json::Draft;

/// What pages may load: scripts, styles and data of this server, and images inside a page. Nothing else, and nothing inline.
pub const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
    base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// Headers of every answer: no other site reads, embeds or is told about anything.
const HEADERS: [(&str, &str); 7] = [
    ("content-security-policy", POLICY),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("x-frame-options", "DENY"),
    ("permissions-policy", "camera=(), microphone=(), geolocation=(), payment=(), usb=()"),
];

pub const HTML: &str = "text/html; charset=utf-8";
pub const JSON: &str = "application/json";
pub const SERVER_SENT_EVENTS: &str = "text/event-stream; charset=utf-8";

/// An answer. Transcripts are not kept by the browser.
pub fn respond(status: StatusCode, body: impl Into<Body>, media: &str) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    for (name, value) in HEADERS {
        response.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    set(&mut response, CONTENT_TYPE, media);
    set(&mut response, CACHE_CONTROL, "no-store");
    response
}

/// Sets a header. A value that no header can have is left out.
pub fn set(response: &mut Response, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

/// A problem as JSON: what is wrong, and what to do.
pub fn problem_json(status: StatusCode, message: &str, hint: Option<&str>) -> Response {
    let mut draft = Draft::new();
    draft.set_str("error", message);
    draft.set_opt("hint", hint);
    respond(status, draft.render(None), JSON)
}

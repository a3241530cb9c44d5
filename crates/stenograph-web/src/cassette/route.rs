//! Maps a request's method and path to a route. Clients are configured with a base address with or without `/v1`, so both work.

use axum::http::{HeaderMap, Method};
use stenograph::cassette::Vendor;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// The next answer, in this vendor's format.
    Answer(Vendor),
    /// The number of tokens of a request.
    Count,
    Models,
    Model,
    /// The differences found so far.
    Drift,
    /// The start page, which shows that the server runs.
    Home,
    /// A known path with a method that it does not accept.
    WrongMethod,
    Unknown,
}

pub fn route(method: &Method, path: &str) -> Route {
    let unversioned = path.strip_prefix("/v1").filter(|rest| rest.starts_with('/')).unwrap_or(path);
    let (wanted, route) = match unversioned {
        "/chat/completions" => (Method::POST, Route::Answer(Vendor::OpenAi)),
        "/responses" => (Method::POST, Route::Answer(Vendor::Responses)),
        "/messages" => (Method::POST, Route::Answer(Vendor::Anthropic)),
        "/messages/count_tokens" => (Method::POST, Route::Count),
        "/models" => (Method::GET, Route::Models),
        "/steno/drift" => (Method::GET, Route::Drift),
        "/" => (Method::GET, Route::Home),
        _ if unversioned.strip_prefix("/models/").is_some_and(|name| !name.is_empty()) => (Method::GET, Route::Model),
        _ => return Route::Unknown,
    };
    let is_allowed = method == wanted || (wanted == Method::GET && method == Method::HEAD);
    if is_allowed { route } else { Route::WrongMethod }
}

/// The vendor whose format errors use where the route names none. Anthropic's clients always send a version header.
pub fn vendor(headers: &HeaderMap, path: &str) -> Vendor {
    let is_anthropic = headers.contains_key("anthropic-version") || path.contains("/messages");
    if is_anthropic { Vendor::Anthropic } else { Vendor::OpenAi }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_match_with_and_without_the_version_prefix() {
        for path in ["/v1/chat/completions", "/chat/completions"] {
            assert_eq!(route(&Method::POST, path), Route::Answer(Vendor::OpenAi));
        }
        for path in ["/v1/messages", "/messages"] {
            assert_eq!(route(&Method::POST, path), Route::Answer(Vendor::Anthropic));
        }
        assert_eq!(route(&Method::POST, "/v1/responses"), Route::Answer(Vendor::Responses));
        assert_eq!(route(&Method::POST, "/v1/messages/count_tokens"), Route::Count);
        assert_eq!(route(&Method::GET, "/v1/models/a/b"), Route::Model);
        assert_eq!(route(&Method::HEAD, "/"), Route::Home);
    }

    #[test]
    fn an_unknown_path_and_a_wrong_method_differ() {
        assert_eq!(route(&Method::GET, "/v1/messages"), Route::WrongMethod);
        assert_eq!(route(&Method::POST, "/steno/drift"), Route::WrongMethod);
        for path in ["/v1", "/v2/messages", "/v1/models/", "/v1messages", "/v1/completions", ""] {
            assert_eq!(route(&Method::POST, path), Route::Unknown, "{path}");
        }
    }
}

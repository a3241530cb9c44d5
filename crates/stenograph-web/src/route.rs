//! What an address asks for. Base addresses are given to clients with `/v1` and without it, so both are answered.

use axum::http::{HeaderMap, Method};
use stenograph::cassette::Vendor;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// The next answer, in the words of this vendor.
    Answer(Vendor),
    /// How many tokens a request has.
    Count,
    /// The models.
    Models,
    /// One model.
    Model,
    /// What has drifted.
    Drift,
    /// Whether anybody is here.
    Home,
    /// Something of ours, in a way that it cannot be asked.
    WrongMethod,
    /// Nothing of ours.
    Unknown,
}

/// What a request asks for.
pub fn route(method: &Method, path: &str) -> Route {
    let short = path.strip_prefix("/v1").filter(|rest| rest.starts_with('/')).unwrap_or(path);
    let (wanted, route) = match short {
        "/chat/completions" => (Method::POST, Route::Answer(Vendor::OpenAi)),
        "/responses" => (Method::POST, Route::Answer(Vendor::Responses)),
        "/messages" => (Method::POST, Route::Answer(Vendor::Anthropic)),
        "/messages/count_tokens" => (Method::POST, Route::Count),
        "/models" => (Method::GET, Route::Models),
        "/steno/drift" => (Method::GET, Route::Drift),
        "/" => (Method::GET, Route::Home),
        _ if short.strip_prefix("/models/").is_some_and(|name| !name.is_empty()) => (Method::GET, Route::Model),
        _ => return Route::Unknown,
    };
    let is_right = method == wanted || (wanted == Method::GET && method == Method::HEAD);
    if is_right { route } else { Route::WrongMethod }
}

/// In whose words a request is answered that no route says it of: Anthropic's clients always name a version.
pub fn vendor(headers: &HeaderMap, path: &str) -> Vendor {
    let is_anthropic = headers.contains_key("anthropic-version") || path.contains("/messages");
    if is_anthropic { Vendor::Anthropic } else { Vendor::OpenAi }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_known_with_and_without_their_version() {
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
    fn what_is_not_ours_and_what_is_asked_wrongly_are_told_apart() {
        assert_eq!(route(&Method::GET, "/v1/messages"), Route::WrongMethod);
        assert_eq!(route(&Method::POST, "/steno/drift"), Route::WrongMethod);
        for path in ["/v1", "/v2/messages", "/v1/models/", "/v1messages", "/v1/completions", ""] {
            assert_eq!(route(&Method::POST, path), Route::Unknown, "{path}");
        }
    }
}

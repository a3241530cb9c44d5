//! Admits only programs on this machine that address this server by a local name. A web page can send requests here under
//! another host name that resolves to this machine; the guard refuses those, and no header ever allows a page to read an
//! answer.

use axum::http::header::{HOST, HeaderValue, ORIGIN};
use axum::http::{HeaderMap, Uri};

/// The reason to refuse a request; `None` admits it.
pub fn refusal(headers: &HeaderMap, uri: &Uri) -> Option<&'static str> {
    let text = |value: &HeaderValue| value.to_str().map(str::to_owned).unwrap_or_default();
    let mut hosts = headers.get_all(HOST).iter().map(text).chain(uri.authority().map(|host| host.as_str().to_owned()));
    if !hosts.all(|host| is_local(&host)) {
        return Some("the host is not this machine: use 127.0.0.1 or localhost");
    }
    let mut origins = headers.get_all(ORIGIN).iter().map(text);
    let is_own = |origin: String| origin.split_once("://").is_some_and(|(_, host)| is_local(host));
    (!origins.all(is_own)).then_some("requests from web pages of other sites are refused")
}

/// Whether a host, with or without a port, is a name of this machine that nobody can redirect.
fn is_local(host: &str) -> bool {
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let name = match host.rsplit_once(':') {
        Some((name, port)) if is_port(port) => name,
        _ => host,
    };
    name == "127.0.0.1" || name.eq_ignore_ascii_case("localhost") || name == "[::1]"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal_for(pairs: &[(axum::http::HeaderName, &'static str)]) -> Option<&'static str> {
        let headers = pairs.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect();
        refusal(&headers, &Uri::from_static("/v1/models"))
    }

    #[test]
    fn only_names_of_this_machine_are_answered() {
        for host in ["127.0.0.1", "127.0.0.1:8080", "localhost:1", "LocalHost", "[::1]:80"] {
            assert!(is_local(host), "{host}");
        }
        for host in ["", "evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "127.0.0.1:x", "::1"] {
            assert!(!is_local(host), "{host}");
        }
    }

    #[test]
    fn a_page_of_another_site_is_refused_and_a_program_is_not() {
        assert_eq!(refusal_for(&[(HOST, "localhost:8080")]), None);
        assert_eq!(refusal_for(&[(HOST, "127.0.0.1:8080"), (ORIGIN, "http://localhost:3000")]), None);
        assert!(refusal_for(&[(HOST, "127.0.0.1:8080"), (ORIGIN, "https://evil.example")]).is_some());
        assert!(refusal_for(&[(HOST, "127.0.0.1:8080"), (ORIGIN, "null")]).is_some());
        assert!(refusal_for(&[(HOST, "evil.example:8080")]).is_some());
    }

    #[test]
    fn an_address_in_the_request_line_counts_too() {
        let headers = HeaderMap::new();
        assert!(refusal(&headers, &Uri::from_static("http://evil.example/v1/models")).is_some());
        assert!(refusal(&headers, &Uri::from_static("http://127.0.0.1:80/v1/models")).is_none());
    }
}

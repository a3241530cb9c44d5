//! Decides whether a request may be answered at all: by its host, its origin, its method and its proof. It sees no transcript.

use std::net::{IpAddr, SocketAddr};

use axum::http::header::{HOST, HeaderValue, ORIGIN};
use axum::http::{HeaderMap, Method, StatusCode, Uri};

use super::token::Proof;

/// The names under which this server may be addressed.
#[derive(Clone, Debug)]
pub struct Hosts {
    names: Vec<String>,
    /// The port that follows an address in the header, if the server listens on all addresses.
    any_address: Option<u16>,
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub status: StatusCode,
    pub message: &'static str,
}

impl Hosts {
    /// The names of a server that listens at this address. A name that others control is not among them, so a page of another
    /// site cannot reach the server under its own name.
    pub fn of(address: SocketAddr) -> Hosts {
        let (ip, port) = (address.ip(), address.port());
        let mut names = vec![address.to_string()];
        if ip.is_loopback() || ip.is_unspecified() {
            names.push(format!("localhost:{port}"));
        }
        if port == 80 {
            let bare: Vec<String> =
                names.iter().filter_map(|name| name.strip_suffix(":80").map(str::to_owned)).collect();
            names.extend(bare);
        }
        Hosts { names, any_address: ip.is_unspecified().then_some(port) }
    }

    fn has(&self, host: &str) -> bool {
        if self.names.iter().any(|name| name.eq_ignore_ascii_case(host)) {
            return true;
        }
        // An address cannot be redirected, as a name can.
        let is_address = |port: u16| {
            host.parse::<SocketAddr>().is_ok_and(|address| address.port() == port)
                || port == 80 && host.parse::<IpAddr>().is_ok()
        };
        self.any_address.is_some_and(is_address)
    }

    /// Whether an origin is that of this server.
    fn is_origin(&self, origin: &str) -> bool {
        origin.strip_prefix("http://").is_some_and(|host| self.has(host))
    }
}

/// Refuses a request that does not address this server by its own name, or that a page of another site sends.
pub fn check_sender(hosts: &Hosts, headers: &HeaderMap, uri: &Uri) -> Result<(), Refusal> {
    let text = |value: &HeaderValue| value.to_str().map(str::to_owned).unwrap_or_default();
    let named: Vec<String> =
        headers.get_all(HOST).iter().map(text).chain(uri.authority().map(|host| host.as_str().to_owned())).collect();
    if named.is_empty() || !named.iter().all(|host| hosts.has(host)) {
        return Err(Refusal { status: StatusCode::MISDIRECTED_REQUEST, message: "this server has another name" });
    }
    if !headers.get_all(ORIGIN).iter().map(text).all(|origin| hosts.is_origin(&origin)) {
        return Err(Refusal { status: StatusCode::FORBIDDEN, message: "pages of other sites are refused" });
    }
    // A browser says where a request comes from. A link on another site may open a page; nothing else may come from there.
    let fetch = |name: &str| headers.get(name).map(text).unwrap_or_default();
    let is_foreign = matches!(fetch("sec-fetch-site").as_str(), "cross-site" | "same-site");
    if is_foreign && fetch("sec-fetch-mode") != "navigate" {
        return Err(Refusal { status: StatusCode::FORBIDDEN, message: "pages of other sites are refused" });
    }
    Ok(())
}

/// Refuses a request that changes something unless its origin proves that a page of this server sends it. A program proves it with
/// the header that a page of another site cannot set.
pub fn check_change(headers: &HeaderMap, method: &Method, proof: Option<Proof>) -> Result<(), Refusal> {
    let is_reading = method == Method::GET || method == Method::HEAD;
    if is_reading || proof == Some(Proof::Header) || headers.contains_key(ORIGIN) {
        return Ok(());
    }
    Err(Refusal { status: StatusCode::FORBIDDEN, message: "a change needs the header Origin or Authorization" })
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderName;

    use super::*;

    const LOCAL: ([u8; 4], u16) = ([127, 0, 0, 1], 8080);

    fn status(address: SocketAddr, pairs: &[(&'static str, &str)]) -> Option<u16> {
        let header = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        };
        let headers = pairs.iter().map(header).collect();
        check_sender(&Hosts::of(address), &headers, &Uri::from_static("/")).err().map(|refusal| refusal.status.as_u16())
    }

    #[test]
    fn only_the_exact_name_and_port_are_answered() {
        for host in ["127.0.0.1:8080", "localhost:8080", "LOCALHOST:8080"] {
            assert_eq!(status(LOCAL.into(), &[("host", host)]), None, "{host}");
        }
        for host in [
            "",
            "127.0.0.1",
            "localhost",
            "127.0.0.1:8081",
            "127.0.0.2:8080",
            "[::1]:8080",
            "evil.example:8080",
            "127.0.0.1.evil.example:8080",
            "localhost.evil.example:8080",
            "127.0.0.1:8080@evil.example",
            "0.0.0.0:8080",
        ] {
            assert_eq!(status(LOCAL.into(), &[("host", host)]), Some(421), "{host}");
        }
        assert_eq!(status(LOCAL.into(), &[]), Some(421));
        assert_eq!(status(LOCAL.into(), &[("host", "localhost:8080"), ("host", "evil.example")]), Some(421));
    }

    #[test]
    fn a_server_on_all_addresses_is_addressed_by_an_address() {
        let all = ([0, 0, 0, 0], 8080).into();
        assert_eq!(status(all, &[("host", "192.168.1.7:8080")]), None);
        assert_eq!(status(all, &[("host", "localhost:8080")]), None);
        for host in ["evil.example:8080", "192.168.1.7", "192.168.1.7:80"] {
            assert_eq!(status(all, &[("host", host)]), Some(421), "{host}");
        }
    }

    #[test]
    fn pages_of_other_sites_are_refused() {
        let host = ("host", "127.0.0.1:8080");
        for origin in ["http://127.0.0.1:8080", "http://localhost:8080"] {
            assert_eq!(status(LOCAL.into(), &[host, ("origin", origin)]), None, "{origin}");
        }
        for origin in
            ["null", "https://127.0.0.1:8080", "http://127.0.0.1:3000", "http://evil.example", "", "127.0.0.1:8080"]
        {
            assert_eq!(status(LOCAL.into(), &[host, ("origin", origin)]), Some(403), "{origin}");
        }
        let site = ("sec-fetch-site", "cross-site");
        assert_eq!(status(LOCAL.into(), &[host, site, ("sec-fetch-mode", "no-cors")]), Some(403));
        assert_eq!(status(LOCAL.into(), &[host, site, ("sec-fetch-mode", "navigate")]), None);
        assert_eq!(status(LOCAL.into(), &[host, ("sec-fetch-site", "same-origin"), ("sec-fetch-mode", "cors")]), None);
    }

    #[test]
    fn a_change_needs_an_origin_or_the_header_of_a_program() {
        let (none, origin) = (HeaderMap::new(), [(ORIGIN, HeaderValue::from_static("http://127.0.0.1:8080"))]);
        let origin: HeaderMap = origin.into_iter().collect();
        assert!(check_change(&none, &Method::POST, Some(Proof::Cookie)).is_err());
        assert!(check_change(&none, &Method::POST, None).is_err());
        assert!(check_change(&none, &Method::POST, Some(Proof::Header)).is_ok());
        assert!(check_change(&origin, &Method::POST, Some(Proof::Cookie)).is_ok());
        assert!(check_change(&none, &Method::GET, None).is_ok());
    }
}

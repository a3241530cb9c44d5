//! The parts of a request's address: names in its path and parameters of its query. Everything in them comes from outside.

use std::fmt::Write as _;

/// The longest query that is read. A link has a few words in it.
const QUERY_LENGTH_MAX: usize = 8 << 10;

/// The most parameters of a query that are read.
const PARAMS_MAX: usize = 64;

/// The parameters of an address.
#[derive(Clone, Debug, Default)]
pub struct Params(Vec<(String, String)>);

impl Params {
    /// Parses a query. What is too long for one is not read.
    pub fn parse(query: &str) -> Params {
        Params::form(if query.len() > QUERY_LENGTH_MAX { "" } else { query })
    }

    /// Parses the body of a form, which has a limit of its own.
    pub fn form(query: &str) -> Params {
        let pairs = query.split('&').filter(|pair| !pair.is_empty()).take(PARAMS_MAX);
        Params(
            pairs
                .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
                .map(|(key, value)| (decoded(key), decoded(value)))
                .collect(),
        )
    }

    /// The value of a parameter, unless it is empty.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// All values of a parameter, without empty ones.
    pub fn values(&self, name: &str) -> Vec<&str> {
        let values = self.0.iter().filter(|(key, value)| key == name && !value.is_empty());
        values.map(|(_, value)| value.as_str()).collect()
    }

    /// The value of a parameter that is a number.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.value(name)?.parse().ok()
    }

    /// The same parameters with another value of one.
    #[must_use]
    pub fn set(&self, name: &str, value: &str) -> Params {
        let kept = self.0.iter().filter(|(key, _)| key != name).cloned();
        Params(kept.chain([(name.to_owned(), value.to_owned())]).collect())
    }

    /// The address of a path with these parameters, one of them replaced or, without a value, removed. It is the address of a whole
    /// page, also in a part of one.
    pub fn with(&self, path: &str, name: &str, value: Option<&str>) -> String {
        let kept = self.0.iter().filter(|(key, value)| key != name && key != "part" && !value.is_empty());
        let pairs = kept.map(|(key, value)| (key.as_str(), value.as_str())).chain(value.map(|value| (name, value)));
        link(path, &pairs.collect::<Vec<_>>())
    }
}

/// The address of a path with parameters.
pub fn link(path: &str, params: &[(&str, &str)]) -> String {
    let pairs: Vec<String> = params.iter().map(|(key, value)| format!("{}={}", encoded(key), encoded(value))).collect();
    if pairs.is_empty() { path.to_owned() } else { format!("{path}?{}", pairs.join("&")) }
}

/// The path of a session's page.
pub fn session_path(name: &str) -> String {
    format!("/sessions/{}", encoded(name))
}

/// A text as one segment of a path, or as a part of a query.
pub fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(char::from(byte)),
            _ => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    // These segments would change the path.
    match out.as_str() {
        "." => "%2E".to_owned(),
        ".." => "%2E%2E".to_owned(),
        _ => out,
    }
}

/// The text of an encoded one. What is not valid Unicode is replaced.
pub fn decoded(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.as_bytes().iter().copied();
    while let Some(byte) = bytes.next() {
        match byte {
            b'+' => out.push(b' '),
            b'%' => {
                let rest = bytes.clone().take(2).collect::<Vec<u8>>();
                let digits = std::str::from_utf8(&rest).ok().filter(|two| two.len() == 2);
                let is_hex = |two: &&str| two.bytes().all(|digit| digit.is_ascii_hexdigit());
                match digits.filter(is_hex).and_then(|two| u8::from_str_radix(two, 16).ok()) {
                    Some(value) => {
                        out.push(value);
                        bytes.nth(1);
                    }
                    None => out.push(b'%'),
                }
            }
            other => out.push(other),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_survives_an_address() {
        for text in ["", "a b", "100%", "%zz", "ü/ö?&=#+", "..", ".", "\u{0}", "a\\b"] {
            assert_eq!(decoded(&encoded(text)), text);
            assert_eq!(Params::parse(&format!("q={}", encoded(text))).value("q").unwrap_or_default(), text);
        }
        assert_eq!(encoded(".."), "%2E%2E");
        assert_eq!(decoded("%"), "%");
        assert_eq!(decoded("%f"), "%f");
        assert_eq!(decoded("%+1"), "% 1");
    }

    #[test]
    fn a_link_keeps_the_other_parameters() {
        let params = Params::parse("q=a+b&sort=newest&empty=");
        assert_eq!(params.with("/sessions", "sort", Some("oldest")), "/sessions?q=a%20b&sort=oldest");
        assert_eq!(params.with("/sessions", "q", None), "/sessions?sort=newest");
        assert_eq!((params.number("q"), params.value("empty")), (None, None));
    }
}

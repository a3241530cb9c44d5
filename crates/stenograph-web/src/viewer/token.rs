//! The secrets of one server: the token that every request must carry, and the one-time codes that give a browser its cookie. They
//! exist in memory only, and a comparison takes the same time whatever it compares.

use std::sync::{Mutex, PoisonError};

use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, COOKIE};
use constant_time_eq::constant_time_eq;

/// A secret of 256 bits, as hexadecimal digits.
#[derive(Clone)]
pub struct Token(String);

impl std::fmt::Debug for Token {
    /// A secret does not get into a log by accident.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Token")
    }
}

/// How a request proves that it may read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// The header `Authorization`, which a page of another site cannot set.
    Header,
    /// The cookie, which the browser sends by itself.
    Cookie,
}

impl Token {
    /// A new secret from the system's random numbers.
    pub fn random() -> std::io::Result<Token> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|error| std::io::Error::other(error.to_string()))?;
        Ok(Token(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// The digits, for the user who started the server.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether the text is the secret.
    pub fn is(&self, text: &str) -> bool {
        constant_time_eq(self.0.as_bytes(), text.as_bytes())
    }

    /// How the headers of a request contain the secret; `None` if they do not. Several servers of this machine share a browser's
    /// cookies, so the name of the cookie has the port in it.
    pub fn proof(&self, headers: &HeaderMap, port: u16) -> Option<Proof> {
        let is_bearer = |value: &str| value.strip_prefix("Bearer ").is_some_and(|token| self.is(token.trim()));
        if headers.get_all(AUTHORIZATION).iter().any(|value| value.to_str().is_ok_and(is_bearer)) {
            return Some(Proof::Header);
        }
        let name = cookie_name(port);
        let is_cookie =
            |pair: &str| pair.trim().split_once('=').is_some_and(|(key, token)| key == name && self.is(token));
        let mut cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        cookies.any(|value| value.split(';').any(is_cookie)).then_some(Proof::Cookie)
    }

    /// The header that gives a browser the cookie, until the browser is closed.
    pub fn set_cookie(&self, port: u16) -> String {
        format!("{}={}; HttpOnly; SameSite=Strict; Path=/", cookie_name(port), self.0)
    }
}

fn cookie_name(port: u16) -> String {
    format!("steno-{port}")
}

/// The code of the next link for a browser. It works once, so that a link in a history or a log opens nothing.
#[derive(Debug)]
pub struct LoginCode(Mutex<Token>);

impl LoginCode {
    /// A first code.
    pub fn random() -> std::io::Result<LoginCode> {
        Ok(LoginCode(Mutex::new(Token::random()?)))
    }

    /// The current code.
    pub fn current(&self) -> Token {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Uses a code: if it is the current one, a new one replaces it.
    pub fn redeem(&self, text: &str) -> bool {
        let mut code = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !code.is(text) {
            return false;
        }
        match Token::random() {
            Ok(next) => {
                *code = next;
                true
            }
            Err(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn headers(name: axum::http::HeaderName, value: &str) -> HeaderMap {
        [(name, HeaderValue::from_str(value).unwrap())].into_iter().collect()
    }

    #[test]
    fn only_the_whole_secret_under_its_name_is_a_proof() {
        let token = Token::random().unwrap();
        let secret = token.reveal().to_owned();
        assert_eq!(secret.len(), 64);
        let proof = |name, value: &str| token.proof(&headers(name, value), 80);
        assert_eq!(proof(AUTHORIZATION, &format!("Bearer {secret}")), Some(Proof::Header));
        assert_eq!(proof(COOKIE, &format!("a=b; steno-80={secret}")), Some(Proof::Cookie));
        let half = secret.get(..63).unwrap();
        for (name, value) in [
            (AUTHORIZATION, format!("Bearer {half}")),
            (AUTHORIZATION, format!("Bearer {secret}0")),
            (AUTHORIZATION, format!("Basic {secret}")),
            (AUTHORIZATION, secret.clone()),
            (COOKIE, format!("steno-81={secret}")),
            (COOKIE, format!("x-steno-80={secret}")),
            (COOKIE, "steno-80=".to_owned()),
        ] {
            assert_eq!(proof(name, &value), None, "{value}");
        }
        assert_eq!(format!("{token:?}"), "Token");
    }

    #[test]
    fn a_code_works_once() {
        let code = LoginCode::random().unwrap();
        let first = code.current().reveal().to_owned();
        assert!(!code.redeem("") && code.redeem(&first) && !code.redeem(&first));
        assert!(code.redeem(code.current().reveal()));
    }
}

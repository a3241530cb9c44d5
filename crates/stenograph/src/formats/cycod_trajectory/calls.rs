//! Calls and results as XML, both ways. This module does not know the fence around them.

use std::borrow::Cow;

use super::{CLOSES_CALLS, CLOSES_RESULTS, OPENS_CALLS, OPENS_RESULTS};
use crate::formats::placeholder;
use crate::json::Object;
use crate::model::{Body, Content, Input};
use crate::text::{Str, Text};

/// CycoD's text for an empty result.
const EMPTY_RESULT: &str = "<system>Tool ran without output or errors</system>";

/// The calls and results in a block. If each call is followed by its result, the calls were parallel: then all calls come
/// first, in their original order. `None` if the block is anything else.
pub fn parse(block: &[u8]) -> Option<Vec<Body<'static>>> {
    let mut cursor = Cursor(block);
    let mut found = Vec::new();
    loop {
        cursor.skip_space();
        if cursor.0.is_empty() {
            break;
        }
        if cursor.take(OPENS_CALLS) {
            cursor.calls(&mut found)?;
        } else {
            found.push(cursor.result()?);
        }
    }
    let is_call = |body: &Body<'_>| matches!(body, Body::ToolCall { .. });
    let pairs = found.len() % 2 == 0 && found.iter().enumerate().all(|(at, body)| is_call(body) == (at % 2 == 0));
    if pairs {
        found.sort_by_key(|body| !is_call(body));
    }
    (!found.is_empty()).then_some(found)
}

struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn skip_space(&mut self) {
        self.0 = self.0.trim_ascii_start();
    }

    fn take(&mut self, word: &str) -> bool {
        let rest = self.0.strip_prefix(word.as_bytes());
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn until(&mut self, word: &str) -> Option<&'a [u8]> {
        let at = memchr::memmem::find(self.0, word.as_bytes())?;
        let (before, rest) = self.0.split_at(at);
        self.0 = rest.get(word.len()..).unwrap_or_default();
        Some(before)
    }

    fn calls(&mut self, found: &mut Vec<Body<'static>>) -> Option<()> {
        loop {
            self.skip_space();
            if self.take(CLOSES_CALLS) {
                return Some(());
            }
            if !self.take("<invoke name=\"") {
                return None;
            }
            let name = unescaped_name(self.until("\">")?);
            let mut fields = Vec::new();
            loop {
                self.skip_space();
                if self.take("</invoke>") {
                    break;
                }
                if !self.take("<parameter name=\"") {
                    return None;
                }
                let key = unescaped_name(self.until("\">")?);
                let value = unescape(unwrapped(self.until("</parameter>")?));
                fields.push(format!("{}:{}", crate::text::quote(&key), Text::from_bytes(&value).to_json()));
            }
            let input = Input::Json(Cow::Owned(format!("{{{}}}", fields.join(","))));
            found.push(Body::ToolCall { call: None, name, input });
        }
    }

    fn result(&mut self) -> Option<Body<'static>> {
        if !self.take(OPENS_RESULTS) || !self.take("\n") {
            return None;
        }
        let text = if self.take(CLOSES_RESULTS) {
            &[]
        } else {
            let text = self.until(&format!("\n{CLOSES_RESULTS}"))?;
            if text == EMPTY_RESULT.as_bytes() { &[] } else { text }
        };
        let content = Content::Text(Text::from_bytes(&unescape(text)).into_owned());
        Some(Body::ToolResult { call: None, name: None, content, error: None })
    }
}

/// A value of several lines, without the line breaks around it.
fn unwrapped(value: &[u8]) -> &[u8] {
    let inside = value.strip_prefix(b"\n").and_then(|value| value.strip_suffix(b"\n"));
    inside.filter(|inside| inside.contains(&b'\n') && !inside.starts_with(b"\n")).unwrap_or(value)
}

fn unescaped_name(bytes: &[u8]) -> Str<'static> {
    Cow::Owned(String::from_utf8_lossy(&unescape(bytes)).into_owned())
}

const ESCAPES: [(u8, &str); 5] = [(b'&', "&amp;"), (b'<', "&lt;"), (b'>', "&gt;"), (b'"', "&quot;"), (b'\'', "&apos;")];

fn escape(bytes: &[u8], out: &mut Vec<u8>) {
    for byte in bytes {
        match ESCAPES.iter().find(|(plain, _)| plain == byte) {
            Some((_, escaped)) => out.extend_from_slice(escaped.as_bytes()),
            None => out.push(*byte),
        }
    }
}

/// Replaces the five escapes; any other ampersand stays.
fn unescape(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(at) = memchr::memchr(b'&', rest) {
        let (before, tail) = rest.split_at(at);
        out.extend_from_slice(before);
        let found = ESCAPES.iter().find_map(|(plain, escaped)| Some((*plain, tail.strip_prefix(escaped.as_bytes())?)));
        let (byte, tail) = found.unwrap_or((b'&', tail.get(1..).unwrap_or_default()));
        out.push(byte);
        rest = tail;
    }
    out.extend_from_slice(rest);
    out
}

/// Appends a call.
pub fn write_call(name: &str, input: &Input<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("{OPENS_CALLS}\n<invoke name=\"").as_bytes());
    escape(name.as_bytes(), out);
    out.extend_from_slice(b"\">\n");
    let object = input.to_object();
    for (key, raw) in Object::parse(&object).iter().flat_map(Object::pairs) {
        let value = formatted(raw);
        out.extend_from_slice(b"<parameter name=\"");
        escape(key.as_bytes(), out);
        out.extend_from_slice(b"\">");
        let wraps = value.contains(&b'\n') && !value.starts_with(b"\n");
        let edge: &[u8] = if wraps { b"\n" } else { b"" };
        out.extend_from_slice(edge);
        escape(&value, out);
        out.extend_from_slice(edge);
        out.extend_from_slice(b"</parameter>\n");
    }
    out.extend_from_slice(format!("</invoke>\n{CLOSES_CALLS}\n").as_bytes());
}

/// A value as .NET formats it: strings bare, `True` and `False`, nothing for null, and JSON for the rest.
fn formatted(raw: &str) -> Cow<'_, [u8]> {
    match (raw.trim(), Text::from_json(raw)) {
        ("true", _) => Cow::Borrowed(b"True"),
        ("false", _) => Cow::Borrowed(b"False"),
        ("null", _) => Cow::Borrowed(b""),
        (_, Some(text)) => Cow::Owned(text.bytes().into_owned()),
        (_, None) => Cow::Borrowed(raw.as_bytes()),
    }
}

/// Appends a result.
pub fn write_result(content: &Content<'_>, out: &mut Vec<u8>) {
    // A result that is an image is not empty, so it gets a placeholder.
    let text = placeholder::joined(content);
    let text = text.bytes();
    out.extend_from_slice(format!("{OPENS_RESULTS}\n").as_bytes());
    if text.is_empty() {
        out.extend_from_slice(EMPTY_RESULT.as_bytes());
    } else {
        escape(&text, out);
    }
    out.extend_from_slice(format!("\n{CLOSES_RESULTS}\n").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(bodies: &[Body<'_>]) -> String {
        let mut out = Vec::new();
        for body in bodies {
            match body {
                Body::ToolCall { name, input, .. } => write_call(name, input, &mut out),
                Body::ToolResult { content, .. } => write_result(content, &mut out),
                _ => unreachable!(),
            }
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn values_are_formatted_like_dotnet_values() {
        let input = Input::Json(r#"{"a":"x<y","b":true,"c":null,"d":[1, 2],"e":"one\ntwo"}"#.into());
        let call = Body::ToolCall { call: None, name: "T\"".into(), input };
        let text = written(&[call]);
        assert!(text.contains("<invoke name=\"T&quot;\">\n<parameter name=\"a\">x&lt;y</parameter>\n"));
        assert!(text.contains("<parameter name=\"b\">True</parameter>\n<parameter name=\"c\"></parameter>\n"));
        assert!(
            text.contains("<parameter name=\"d\">[1, 2]</parameter>\n<parameter name=\"e\">\none\ntwo\n</parameter>")
        );
        let again = parse(text.as_bytes()).unwrap();
        let Body::ToolCall { input: Input::Json(raw), .. } = &again[0] else { panic!() };
        assert_eq!(raw, r#"{"a":"x<y","b":"True","c":"","d":"[1, 2]","e":"one\ntwo"}"#);
        assert_eq!(written(&again), text);
    }

    #[test]
    fn calls_of_pairs_come_first() {
        let call =
            |name: &'static str| Body::ToolCall { call: None, name: name.into(), input: Input::Json("{}".into()) };
        let result =
            |text: &'static str| Body::ToolResult { call: None, name: None, content: Content::text(text), error: None };
        let text = written(&[call("a"), result(""), call("b"), result("<system>")]);
        assert!(text.contains(EMPTY_RESULT) && text.contains("&lt;system&gt;"));
        assert_eq!(parse(text.as_bytes()).unwrap(), [call("a"), call("b"), result(""), result("<system>")]);
        assert_eq!(parse(b"<function_calls>\nprose\n</function_calls>"), None);
    }
}

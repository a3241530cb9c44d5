//! Splits JSON that is known to be valid, because it stands inside a value that was parsed: the second look at the same bytes
//! need not check them again. What turns out not to be valid after all gives `None`, never a panic.

use memchr::memchr2;

/// Gives the fields of an object: keys as they are spelled, without quotes, and raw values.
pub fn fields<'a>(text: &'a str, mut each: impl FnMut(&'a str, &'a str)) -> Option<()> {
    let bytes = text.as_bytes();
    let mut at = blank(bytes, 0);
    if bytes.get(at) != Some(&b'{') {
        return None;
    }
    at = blank(bytes, at + 1);
    if bytes.get(at) == Some(&b'}') {
        return ends(bytes, at + 1).then_some(());
    }
    loop {
        let key_end = string(bytes, at)?;
        let key = text.get(at + 1..key_end - 1)?;
        at = blank(bytes, key_end);
        if bytes.get(at) != Some(&b':') {
            return None;
        }
        let from = blank(bytes, at + 1);
        let to = value(bytes, from)?;
        each(key, text.get(from..to)?);
        at = blank(bytes, to);
        match bytes.get(at) {
            Some(b',') => at = blank(bytes, at + 1),
            Some(b'}') => return ends(bytes, at + 1).then_some(()),
            _ => return None,
        }
    }
}

/// The elements of an array.
pub fn items(text: &str) -> Option<Vec<&str>> {
    let bytes = text.as_bytes();
    let mut at = blank(bytes, 0);
    if bytes.get(at) != Some(&b'[') {
        return None;
    }
    let mut found = Vec::new();
    at = blank(bytes, at + 1);
    if bytes.get(at) == Some(&b']') {
        return ends(bytes, at + 1).then_some(found);
    }
    loop {
        let to = value(bytes, at)?;
        found.push(text.get(at..to)?);
        at = blank(bytes, to);
        match bytes.get(at) {
            Some(b',') => at = blank(bytes, at + 1),
            Some(b']') => return ends(bytes, at + 1).then_some(found),
            _ => return None,
        }
    }
}

fn ends(bytes: &[u8], at: usize) -> bool {
    blank(bytes, at) == bytes.len()
}

pub(super) fn blank(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\n' | b'\t' | b'\r') = bytes.get(at) {
        at += 1;
    }
    at
}

/// Where the string ends that begins at `at`.
pub(super) fn string(bytes: &[u8], at: usize) -> Option<usize> {
    if bytes.get(at) != Some(&b'"') {
        return None;
    }
    let mut at = at + 1;
    loop {
        at += memchr2(b'"', b'\\', bytes.get(at..)?)?;
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            _ => at += 2,
        }
    }
}

/// Where the value ends that begins at `at`.
fn value(bytes: &[u8], at: usize) -> Option<usize> {
    match bytes.get(at)? {
        b'"' => string(bytes, at),
        b'{' | b'[' => nested(bytes, at),
        _ => {
            let scalar = bytes.get(at..)?.iter().take_while(|byte| !b",]} \n\t\r".contains(byte)).count();
            (scalar > 0).then_some(at + scalar)
        }
    }
}

fn nested(bytes: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    loop {
        match bytes.get(at)? {
            b'"' => {
                at = string(bytes, at)?;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(text: &str) -> Option<Vec<(&str, &str)>> {
        let mut found = Vec::new();
        fields(text, |key, raw| found.push((key, raw)))?;
        Some(found)
    }

    #[test]
    fn an_object_falls_into_its_fields() {
        let text = r#" { "a" : "x\"}" , "b":[1,{"c":"]"}],"d":{} ,"e":-1.5e3} "#;
        let expected = [("a", r#""x\"}""#), ("b", r#"[1,{"c":"]"}]"#), ("d", "{}"), ("e", "-1.5e3")];
        assert_eq!(listed(text).unwrap(), expected);
        assert_eq!(listed("{}").unwrap(), []);
        assert_eq!(items(r#"["a",{"b":2}, null]"#).unwrap(), [r#""a""#, r#"{"b":2}"#, "null"]);
        assert_eq!(items("[ ]").unwrap(), Vec::<&str>::new());
    }

    #[test]
    fn what_is_cut_is_none() {
        let text = r#"{"a":"x\\","b":[1,{"c":true}]}"#;
        for end in 0..text.len() {
            assert_eq!(listed(&text[..end]), None);
        }
        assert_eq!(listed("{\"a\":1}x"), None);
    }
}

//! Redaction of the forms in which transcripts show secrets: numbered lines, diffs, arrays of lines, options. Words of the
//! format stay, even if a home folder has the same name.

#![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

use serde_json::{Value, json};
use stenograph::redact::{RecordSyntax, RedactionSettings, RedactionSink, Redactor, SourceRedactor};

#[derive(Default)]
struct Redacted {
    bytes: Vec<u8>,
    places: Vec<String>,
}

impl RedactionSink for Redacted {
    fn bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    fn finding(&mut self, _line: u64, finding: &stenograph::redact::Finding) {
        self.places.push(finding.place.clone());
    }
}

/// The records after both passes, and the places of the findings of the second.
fn redact(records: &[Value]) -> (String, Vec<String>) {
    let source: String = records.iter().map(|record| format!("{record}\n")).collect();
    let mut redactor = Redactor::new(&RedactionSettings::default(), [7; 32]).unwrap();
    let mut redacted = Redacted::default();
    for _ in 0..2 {
        redacted = Redacted::default();
        let mut pass = SourceRedactor::new(&redactor, RecordSyntax::Json);
        pass.feed(source.as_bytes(), &mut redacted);
        let (_, known) = pass.end(&mut redacted);
        redactor.learn(known);
    }
    (String::from_utf8(redacted.bytes).unwrap(), redacted.places)
}

fn key_lines() -> Vec<String> {
    let digits = b"ABCDEFGHIJKLMNOPabcdefghijklmnop0123456789+/";
    let mut state: u64 = 7;
    let mut line = |length: usize| -> String {
        let mut digit = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            char::from(*digits.get((state >> 33) as usize % digits.len()).unwrap())
        };
        (0..length).map(|_| digit()).collect()
    };
    (0..12).map(|number| line(if number == 11 { 40 } else { 64 })).collect()
}

#[test]
fn a_private_key_is_masked_whatever_is_before_its_lines() {
    let body = key_lines();
    let ends = ["-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----"];
    let lines: Vec<&str> =
        ends.iter().take(1).copied().chain(body.iter().map(String::as_str)).chain([ends[1]]).collect();
    type Spelling = fn(usize, &str) -> String;
    let spellings: [(&str, Spelling); 8] = [
        ("plain", |_, line| line.to_owned()),
        ("numbered", |number, line| format!("{number:6}→{line}")),
        ("numbered with a tab", |number, line| format!("{number:6}\t{line}")),
        ("removed", |_, line| format!("-{line}")),
        ("found by grep", |number, line| format!("id_rsa:{number}:{line}")),
        ("Codex", |number, line| format!("L{number}: {line}")),
        ("a comment", |_, line| format!("# {line}")),
        ("string literals", |_, line| format!("    \"{line}\\n\"")),
    ];
    for (name, spelling) in spellings {
        let text: Vec<String> = lines.iter().enumerate().map(|(number, line)| spelling(number + 1, line)).collect();
        let (redacted, _) = redact(&[json!({"v": 1, "kind": "message", "role": "user", "content": text.join("\n")})]);
        let left: Vec<&String> = body.iter().filter(|line| redacted.contains(line.as_str())).collect();
        assert!(left.is_empty(), "{name}: {left:?} in {redacted}");
    }
    let array = json!({"v": 1, "kind": "message", "role": "user", "content": "x", "extra": {"lines": lines}});
    let (redacted, _) = redact(&[array]);
    assert!(body.iter().all(|line| !redacted.contains(line.as_str())), "{redacted}");
}

#[test]
fn a_user_name_never_changes_a_word_of_the_format() {
    let record = json!({
        "type": "assistant",
        "message": {"role": "assistant", "model": "mirabelle-2", "content": [
            {"type": "text", "text": "/home/mirabelle/x /home/text/y /home/message/z, says mirabelle"}]},
        "usage": {"mirabelle": 1},
    });
    let (redacted, _) = redact(std::slice::from_ref(&record));
    let read: Value = serde_json::from_str(&redacted).unwrap();
    for path in ["/type", "/message/role", "/message/model", "/message/content/0/type", "/usage/mirabelle"] {
        assert_eq!(read.pointer(path), record.pointer(path), "{redacted}");
    }
    let text = read.pointer("/message/content/0/text").and_then(Value::as_str).unwrap();
    assert!(!text.contains("mirabelle"), "{text}");
}

#[test]
fn a_field_called_signature_is_one_only_if_it_looks_like_one() {
    let token = "ghp_x7Kq2mZ9Lr4Tn8Wv1Bc5Yd3Fh6Js0PaGe1Ku";
    let (redacted, _) = redact(&[json!({"type": "user", "input": {"signature": token}})]);
    assert!(!redacted.contains(token), "{redacted}");
    let symbol =
        json!({"type": "user", "symbol": {"signature": "fn main(args: Vec<String>)", "doc": "ask eve@corp.io"}});
    let (redacted, _) = redact(&[symbol]);
    assert!(redacted.contains("fn main(args: Vec<String>)") && !redacted.contains("eve@corp.io"), "{redacted}");
    assert!(!redacted.contains("signed-thought"), "{redacted}");
}

#[test]
fn a_place_does_not_show_a_key_that_is_a_secret() {
    let token = "ghp_x7Kq2mZ9Lr4Tn8Wv1Bc5Yd3Fh6Js0PaGe1Ku";
    let (redacted, places) = redact(&[json!({"type": "user", "extra": {token: "y"}})]);
    assert!(!redacted.contains(token));
    assert_eq!(places, ["extra.[redacted]"]);
}

#[test]
fn names_and_passwords_with_unusual_characters_go_whole() {
    for (text, secret) in [
        ("cd /home/jürgenson/x", "rgenson"),
        ("cd /Users/Étienne/x", "tienne"),
        (r"dir C:\Users\John Smith\p", "Smith"),
        ("DB_PASSWORD=p4ss$w0rd!X9", "w0rd"),
        ("psql https://user:pa@ss9word@host.io/x", "ss9word"),
        ("mysql --password Zx9kQ2mW7p -u x", "Zx9kQ2mW7p"),
    ] {
        let (redacted, _) = redact(&[json!({"v": 1, "kind": "message", "role": "user", "content": text})]);
        assert!(!redacted.contains(secret), "{redacted}");
    }
}

#[test]
fn a_secret_that_a_rule_finds_beside_a_mask_is_masked() {
    let secret = "Zq81hs72kdWvT4nX";
    for text in [
        format!("DB_PASSWORD={secret}[redacted:github-pat:0123abcd]"),
        format!("postgres://me:[redacted:jwt:0123abcd]{secret}@db.internal/x"),
    ] {
        let (once, _) = redact(&[json!({"content": text})]);
        assert!(!once.contains(secret) && once.contains("[redacted:"), "{once}");
        let (again, _) = redact(&[serde_json::from_str(once.trim()).unwrap()]);
        assert_eq!(once, again);
    }
}

#[test]
fn a_command_that_is_repeated_has_all_its_passwords_masked() {
    let password = |number: usize| format!("Zq{number:04}hs72kdWv");
    let commands: String = (0..400).map(|number| format!("curl -u me:{} https://x.dev\n", password(number))).collect();
    let far = format!("curl -o libcurl.zip {} -u me:Tr4kh72kdWvQ https://x.dev\n", "--verbose ".repeat(40));
    let (redacted, _) = redact(&[json!({"content": commands + &far})]);
    let left = (0..400).find(|number| redacted.contains(&password(*number)));
    assert_eq!((left, redacted.contains("Tr4kh72kdWvQ")), (None, false));
}

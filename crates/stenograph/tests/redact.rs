//! Redaction: nothing that was planted is left in any format, almost nothing that only looks like a secret is taken, and
//! everything else stays as it was.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may fail loudly")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::Value;
use stenograph::convert::{Carry, convert};
use stenograph::format::Format;
use stenograph::formats::FORMATS;
use stenograph::model::{Body, Event};
use stenograph::redact::{
    FindingClass, RecordSyntax, RedactionReport, RedactionSettings, RedactionSink, Redactor, SourceRedactor,
};
use stenograph::text::quote;

/// Numbers that are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.0 >> 33
    }

    fn text(&mut self, alphabet: &str, length: usize) -> String {
        let letters: Vec<char> = alphabet.chars().collect();
        (0..length).map(|_| letters[self.next() as usize % letters.len()]).collect()
    }

    fn alnum(&mut self, length: usize) -> String {
        self.text("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", length)
    }

    fn hex(&mut self, length: usize) -> String {
        self.text("0123456789abcdef", length)
    }
}

/// A secret and a text around it.
fn planted(kind: u64, numbers: &mut Numbers) -> (String, String) {
    let around = |before: &str, secret: String, after: &str| (format!("{before}{secret}{after}"), secret);
    match kind {
        0 => around("git clone with ", format!("ghp_{}", numbers.alnum(36)), " works"),
        1 => around("token (", format!("github_pat_{}", numbers.alnum(82)), ")"),
        2 => around("use ", format!("glpat-{}", numbers.alnum(20)), "."),
        3 => around(
            "aws_access_key_id = ",
            format!("AKIA{}", numbers.text("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16)),
            "\nregion = x",
        ),
        4 => {
            let digits = |numbers: &mut Numbers| numbers.text("0123456789", 12);
            let token = format!("xoxb-{}-{}-{}", digits(numbers), digits(numbers), numbers.alnum(24));
            around("slack: ", token, "")
        }
        5 => around("key ", format!("sk-ant-api03-{}AA", numbers.alnum(93)), ", again"),
        6 => around("", format!("sk-proj-{}T3BlbkFJ{}", numbers.alnum(74), numbers.alnum(74)), "\n"),
        7 => around("maps: \"", format!("AIza{}", numbers.alnum(35)), "\""),
        8 => around("//registry/:_authToken=", format!("npm_{}", numbers.alnum(36)), "\n"),
        9 => around("stripe ", format!("sk_live_{}", numbers.alnum(24)), ";"),
        10 => around("mail ", format!("SG.{}.{}", numbers.alnum(22), numbers.alnum(43)), " "),
        11 => {
            let payload = format!("eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6{}", numbers.alnum(24));
            around("cookie jwt ", format!("eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.{payload}.{}", numbers.alnum(43)), "")
        }
        12 => {
            let lines: Vec<String> = (0..8).map(|_| numbers.alnum(64)).collect();
            let body = lines.join("\n");
            let text = format!("-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----\n");
            (text, lines[3].clone())
        }
        13 => around("DATABASE_URL=postgres://app:", numbers.alnum(14), "@db.internal:5432/app"),
        14 => around("Authorization: Bearer ", numbers.alnum(40), "\nAccept: */*"),
        15 => around("export DB_PASSWORD=", numbers.alnum(11), "\nexport DEBUG=1"),
        16 => around("SERVICE_TOKEN=\"", numbers.alnum(18), "\""),
        17 => around("{\"api_key\":\"", numbers.alnum(32), "\",\"retries\":3}"),
        18 => around("curl -H \"X-Api-Key: ", numbers.alnum(30), "\" https://api.internal/v1"),
        19 => around("hub ", format!("hf_{}", numbers.text("abcdefghijklmnopqrstuvwxyz", 34)), ""),
        20 => around("do ", format!("dop_v1_{}", numbers.hex(64)), "\n"),
        21 => around("password: \"", format!("{}!7", numbers.alnum(12)), "\""),
        22 => around("Author: Kim <", format!("kim.{}@{}.dev", numbers.hex(6), numbers.text("abcdefghijk", 8)), ">"),
        23 => around("cd /home/", format!("kim{}", numbers.hex(5)), "/work && ls"),
        24 => around("Authorization: Basic ", numbers.text(LETTERS, 24), "=\n"),
        25 => around("DB_PASS=", numbers.alnum(16), "\n"),
        26 => around("password: \"", format!("aB{}Cd", numbers.text("xYzWvU", 12)), "\""),
        27 => around("jdbc:mysql://db/app?user=u&password=", numbers.text("abcdefgh", 12), "&ssl=true"),
        28 => around("Set-Cookie: sid=", numbers.text(LETTERS, 32), "; Path=/"),
        29 => around("machine git.internal login kim password ", numbers.alnum(14), "\n"),
        30 => around("mysql -u root -p", numbers.alnum(12), " app"),
        31 => around("https://discord.com/api/webhooks/1234567890/", numbers.alnum(68), " posts"),
        32 => around("postgres://app:$", format!("ec{}9x", numbers.alnum(8)), "@db.internal/app"),
        33 => around("password: 'myYour", format!("9x{}", numbers.alnum(10)), "'"),
        _ => around("client_secret=", numbers.alnum(36), "&grant_type=x"),
    }
}

const LETTERS: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

const KINDS: u64 = 35;
const PRIVATE_KEY: u64 = 12;

/// A native session with 500 planted secrets, in messages, thoughts, calls and results.
fn session() -> (String, Vec<String>) {
    let (mut numbers, mut source, mut secrets) = (Numbers(7), String::new(), Vec::new());
    for number in 0..500_u64 {
        let (text, secret) = planted(number % KINDS, &mut numbers);
        let (at, id) =
            (format!("2026-03-02T09:{:02}:{:02}Z", number / 60 % 60, number % 60), format!("call_{number:04}"));
        let head = format!("\"v\":1,\"time\":\"{at}\",\"session\":\"8c1f5a52-3d0e-4c6b-9a57-2f1e0b7d4c10\"");
        let text_json = quote(&text);
        let line = match number % 4 {
            0 => format!("{{{head},\"kind\":\"message\",\"role\":\"user\",\"content\":{text_json}}}"),
            1 => format!("{{{head},\"kind\":\"message\",\"role\":\"assistant\",\"content\":{text_json}}}"),
            2 => {
                let input = format!("{{\"command\":{text_json}}}");
                let call =
                    format!("{{{head},\"kind\":\"tool_call\",\"call\":\"{id}\",\"name\":\"Bash\",\"input\":{input}}}");
                let result = format!("{{{head},\"kind\":\"tool_result\",\"call\":\"{id}\",\"content\":\"done\"}}");
                format!("{call}\n{result}")
            }
            _ => {
                let input = "{\"command\":\"cat .env\"}";
                let call =
                    format!("{{{head},\"kind\":\"tool_call\",\"call\":\"{id}\",\"name\":\"Bash\",\"input\":{input}}}");
                let result = format!("{{{head},\"kind\":\"tool_result\",\"call\":\"{id}\",\"content\":{text_json}}}");
                format!("{call}\n{result}")
            }
        };
        let _ = writeln!(source, "{line}");
        secrets.push(secret);
    }
    (source, secrets)
}

#[derive(Default)]
struct Output(Vec<u8>);

impl RedactionSink for Output {
    fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }
}

fn redactor(settings: &RedactionSettings) -> Redactor {
    Redactor::new(settings, [7; 32]).unwrap()
}

/// Redacts as commands do: what the first pass finds, the second masks wherever it occurs.
fn redact(source: &[u8], syntax: RecordSyntax) -> (Vec<u8>, RedactionReport) {
    let mut redactor = redactor(&RedactionSettings::default());
    let mut pass = SourceRedactor::new(&redactor, syntax);
    pass.feed(source, &mut ());
    let (_, known) = pass.end(&mut ());
    redactor.learn(known);
    let (mut pass, mut out) = (SourceRedactor::new(&redactor, syntax), Output::default());
    source.chunks(1000).for_each(|chunk| pass.feed(chunk, &mut out));
    let (report, _) = pass.end(&mut out);
    (out.0, report)
}

fn has(bytes: &[u8], text: &str) -> bool {
    memchr::memmem::find(bytes, text.as_bytes()).is_some()
}

fn ids(event: &Event<'_>) -> String {
    let call = match &event.body {
        Body::ToolCall { call, .. } | Body::ToolResult { call, .. } => format!("{call:?}"),
        _ => String::new(),
    };
    format!("{:?} {:?} {:?} {call} {:?}", event.id, event.parent, event.session, event.kind())
}

#[test]
fn nothing_that_was_planted_is_left_in_any_format() {
    let (native, secrets) = session();
    let steno = FORMATS.iter().find(|format| format.info().name == "steno").unwrap();
    let mut tried = 0;
    for format in FORMATS {
        let name = format.info().name;
        let mut source = Vec::new();
        if let Err(error) = convert(*steno, &mut native.as_bytes(), *format, &mut source, Carry::Omit) {
            // A format that takes no other sessions is tested with its fixtures.
            assert!(format.info().own_only, "{name}: {error}");
            continue;
        }
        let present: Vec<&String> = secrets.iter().filter(|secret| has(&source, secret)).collect();
        let syntax = RecordSyntax::of(*format);
        let (redacted, report) = redact(&source, syntax);
        let left: Vec<&&String> = present.iter().filter(|secret| has(&redacted, secret)).collect();
        assert!(left.is_empty(), "{name}: {} left of {}: {:?}", left.len(), present.len(), left.first());
        assert!(report.total() >= present.len() as u64, "{name}");
        tried += usize::from(present.len() > 300);
        assert_unharmed(*format, name, &source, &redacted);
    }
    assert!(tried >= 5, "only {tried} formats hold most of the secrets");
}

/// Redaction changes neither ids nor notes, and finds nothing in its own result.
fn assert_unharmed(format: &'static dyn Format, name: &str, source: &[u8], redacted: &[u8]) {
    let (before, after) = (stenograph::read::all(format, source), stenograph::read::all(format, redacted));
    let all = |events: &[Event<'static>]| events.iter().map(ids).collect::<Vec<String>>();
    // Spans repeat each other, and the reader leaves out what one of them said: two secrets may have the same mask.
    if format.info().name != "otlp" {
        assert_eq!(all(&before.events), all(&after.events), "{name}: ids");
        assert_eq!(before.notes.len(), after.notes.len(), "{name}: notes");
    }
    let (again, report) = redact(redacted, RecordSyntax::of(format));
    assert_eq!((again == redacted, report.total()), (true, 0), "{name}: not stable {:?}", report.by_rule());
}

/// How many secrets are planted in the fixtures of each format.
const PLANTED_IN_FIXTURES: usize = 500;

#[test]
fn nothing_that_was_planted_in_the_own_spelling_of_a_format_is_left() {
    let tried = FORMATS.iter().map(|format| (*format, std::thread::spawn(|| plant_in_fixtures(*format))));
    let broken: Vec<&str> =
        tried.filter_map(|(format, thread)| thread.join().is_err().then_some(format.info().name)).collect();
    assert!(broken.is_empty(), "{broken:?}");
}

fn plant_in_fixtures(format: &'static dyn Format) {
    let (name, syntax) = (format.info().name, RecordSyntax::of(format));
    let (mut numbers, mut planted_count, mut kind) = (Numbers(3), 0, 0);
    let fixtures = fixtures(name);
    while planted_count < PLANTED_IN_FIXTURES {
        let before = planted_count;
        for (file, fixture) in &fixtures {
            let mut secrets = Vec::new();
            let source = with_planted(fixture, syntax, &mut || {
                // A line of a text for people has no place for several lines.
                let is_wrong = kind % KINDS == PRIVATE_KEY && syntax == RecordSyntax::Text;
                kind += u64::from(is_wrong);
                let (text, secret) = planted(kind % KINDS, &mut numbers);
                kind += 1;
                secrets.push(secret);
                text
            });
            let (redacted, _) = redact(&source, syntax);
            let left: Vec<&String> = secrets.iter().filter(|secret| has(&redacted, secret)).collect();
            let about = format!("{name} {file}");
            assert!(left.is_empty(), "{about}: {} left of {}: {:?}", left.len(), secrets.len(), left.first());
            // What is planted in a text for people may look like its headings.
            if syntax == RecordSyntax::Json {
                assert_unharmed(format, &about, &source, &redacted);
            }
            planted_count += secrets.len();
        }
        if planted_count == before {
            // Some logs have no text.
            return assert!(is_without_text(format, &fixtures), "{name}: nothing is planted");
        }
    }
}

fn is_without_text(format: &'static dyn Format, fixtures: &[(String, Vec<u8>)]) -> bool {
    let has_text = |event: &Event<'_>| event.content().is_some_and(|content| content.texts().next().is_some());
    !fixtures.iter().any(|(_, source)| stenograph::read::all(format, source).events.iter().any(has_text))
}

/// The fixtures of a format.
fn fixtures(format: &str) -> Vec<(String, Vec<u8>)> {
    let formats = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/formats");
    let folder = formats.join(format.replace('-', "_")).join("fixtures");
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> = paths.collect();
    paths.retain(|path| !matches!(path.extension().and_then(|end| end.to_str()), Some("golden" | "losses")));
    paths.sort();
    paths.iter().map(|path| (path.file_name().unwrap().display().to_string(), std::fs::read(path).unwrap())).collect()
}

#[test]
fn a_backslash_that_is_no_escape_hides_nothing() {
    for record in [
        r#"{"a":"C:\quay ghp_x7Kq2mZ9Lr4Tn8Wv1Bc5Yd3Fh6Js0PaGe1Ku"}"#,
        r#"{"a":"ghp_x7Kq2mZ9Lr4Tn8Wv1Bc5Yd3Fh6Js0PaGe1Ku "#,
    ] {
        let text = redacted_text(record);
        assert!(!text.contains("ghp_"), "{text}");
    }
}

/// A source with a secret in each of its texts, spelled as the source spells its texts.
fn with_planted(source: &[u8], syntax: RecordSyntax, next: &mut dyn FnMut() -> String) -> Vec<u8> {
    if let (RecordSyntax::Json, Ok(mut document)) = (syntax, serde_json::from_slice::<Value>(source)) {
        plant(&mut document, next);
        let is_pretty = source.trim_ascii().contains(&b'\n');
        return if is_pretty { serde_json::to_vec_pretty(&document) } else { serde_json::to_vec(&document) }.unwrap();
    }
    let mut out = Vec::new();
    for line in source.split_inclusive(|byte| *byte == b'\n') {
        match (syntax, serde_json::from_slice::<Value>(line)) {
            (RecordSyntax::Json, Ok(mut record)) => {
                plant(&mut record, next);
                out.extend(serde_json::to_vec(&record).unwrap());
                out.push(b'\n');
            }
            (RecordSyntax::Text, _) if line.ends_with(b" \n") || line.split(|byte| *byte == b' ').count() > 3 => {
                out.extend_from_slice(line.trim_ascii_end());
                out.extend(format!(" {}\n", next().lines().next().unwrap_or_default()).into_bytes());
            }
            _ => out.extend_from_slice(line),
        }
    }
    out
}

/// Plants a secret into each text of several words, also in JSON inside a string.
fn plant(value: &mut Value, next: &mut dyn FnMut() -> String) {
    match value {
        Value::String(text) if text.contains(' ') || text.starts_with(['{', '[']) => {
            match serde_json::from_str::<Value>(text) {
                Ok(mut inner) if inner.is_object() || inner.is_array() => {
                    plant(&mut inner, next);
                    *text = inner.to_string();
                }
                _ => *text = format!("{text}\n{}", next()),
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| plant(item, next)),
        Value::Object(fields) => {
            // An id is not a text: it pairs records, and loses only what its form proves to be a secret.
            let is_text = |key: &str| !key.to_lowercase().ends_with("id");
            fields.iter_mut().filter(|(key, _)| is_text(key)).for_each(|(_, field)| plant(field, next));
        }
        _ => {}
    }
}

#[test]
fn a_carried_source_is_redacted_too() {
    let (native, secrets) = session();
    let named = |name: &str| *FORMATS.iter().find(|format| format.info().name == name).unwrap();
    let mut source = Vec::new();
    convert(named("steno"), &mut native.as_bytes(), named("claude-code"), &mut source, Carry::Embed).unwrap();
    let (redacted, _) = redact(&source, RecordSyntax::Json);
    let left: Vec<&String> = secrets.iter().filter(|secret| has(&redacted, secret)).collect();
    assert!(left.is_empty(), "{} left: {:?}", left.len(), left.first());
    // And the other way around: what is carried is the redacted source.
    let (clean, _) = redact(native.as_bytes(), RecordSyntax::Json);
    let mut carried = Vec::new();
    convert(named("steno"), &mut clean.as_slice(), named("claude-code"), &mut carried, Carry::Embed).unwrap();
    assert!(!secrets.iter().any(|secret| has(&carried, secret)));
}

/// A text that looks like a secret and is none.
fn look_alike(kind: u64, numbers: &mut Numbers) -> String {
    match kind {
        0 => format!("commit {}\nMerge: {} {}", numbers.hex(40), numbers.hex(7), numbers.hex(7)),
        1 => {
            let part = |numbers: &mut Numbers, length| numbers.hex(length);
            let uuid = [8, 4, 4, 4, 12].map(|length| part(numbers, length)).join("-");
            format!("request {uuid} done, session={uuid}")
        }
        2 => {
            let pixels = numbers.text("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", 600);
            format!("data:image/png;base64,iVBORw0KGgoAAAANSUhEUg{pixels}==")
        }
        3 => {
            let (one, two) = (numbers.text("abcdefgh", 2), numbers.text("ijklmnop", 3));
            format!(
                "!function({one},{two}){{var key={one}.key,token={two}||{one}.token;return {one}[{two}](key,token)}}"
            )
        }
        4 => format!("digest: sha256:{}", numbers.hex(64)),
        5 => format!("\"integrity\": \"sha512-{}==\"", numbers.alnum(86)),
        6 => format!("toolu_01{} called msg_01{}", numbers.alnum(22), numbers.alnum(22)),
        7 => format!("index {}..{} 100644\n--- a/src/token.rs\n+++ b/src/token.rs", numbers.hex(7), numbers.hex(7)),
        8 => format!("{{\"input_tokens\":{},\"max_tokens\":4096,\"token_count\":17}}", numbers.next() % 100_000),
        _ => format!(
            "let api_key = config.get(\"key\")?; // line {}\nconst PASSWORD = process.env.PASSWORD",
            numbers.next() % 999
        ),
    }
}

#[test]
fn at_most_one_look_alike_in_a_hundred_is_taken() {
    let (mut numbers, redactor) = (Numbers(11), redactor(&RedactionSettings::default()));
    let mut taken = Vec::new();
    for number in 0..5000_u64 {
        let text = look_alike(number % 10, &mut numbers);
        let record = format!("{{\"v\":1,\"kind\":\"message\",\"role\":\"user\",\"content\":{}}}", quote(&text));
        let redacted = redactor.record(record.as_bytes(), RecordSyntax::Json);
        if let Some(finding) = redacted.findings.iter().find(|finding| finding.class == FindingClass::Secret) {
            taken.push(format!("{}: {text}", finding.rule));
        }
    }
    assert!(taken.len() <= 50, "{} taken, such as {:#?}", taken.len(), &taken[..5]);
}

#[test]
fn a_secret_has_one_mask_and_the_rest_keeps_its_spelling() {
    let redactor = redactor(&RedactionSettings::default());
    let token = "ghp_x7Kq2mZ9Lr4Tn8Wv1Bc5Yd3Fh6Js0PaGe1Ku";
    let record = format!(r#"{{ "a" : "x\u00e9 {token}\n" ,"b":[1.50,"{{\"t\":\"{token}\"}}"],"id":"7"}}"#);
    let redacted = redactor.record(record.as_bytes(), RecordSyntax::Json);
    let text = String::from_utf8(redacted.bytes.into_owned()).unwrap();
    let mask = text.split('[').nth(1).unwrap().split(']').next().unwrap();
    assert!(mask.starts_with("redacted:github-pat:") && mask.len() == "redacted:github-pat:".len() + 8, "{text}");
    assert_eq!(text, record.replace(token, &format!("[{mask}]")));
    let places: Vec<&str> = redacted.findings.iter().map(|finding| finding.place.as_str()).collect();
    assert_eq!(places, ["a", "b[]"]);
    assert_eq!(redacted.findings[0].preview(), "ghp… (40 characters)");
    let other = Redactor::new(&RedactionSettings::default(), [8; 32]).unwrap();
    assert_ne!(
        String::from_utf8(other.record(record.as_bytes(), RecordSyntax::Json).bytes.into_owned()).unwrap(),
        text
    );
}

#[test]
fn a_signed_thought_with_a_secret_goes_whole() {
    let redactor = redactor(&RedactionSettings::default());
    let record = r#"{"type":"assistant","message":{"content":[{"type":"thinking","thinking":"use ghp_x7Kq2mZ9Lr4Tn8Wv1Bc5Yd3Fh6Js0PaGe1Ku now","signature":"EqQBCkgIARABGAIiQL"},{"type":"text","text":"ok"}]}}"#;
    let redacted = redactor.record(record.as_bytes(), RecordSyntax::Json);
    let text = String::from_utf8(redacted.bytes.into_owned()).unwrap();
    assert!(
        text.contains(r#""thinking":"[redacted:signed-thought:"#) && text.contains(r#"]","signature":""}"#),
        "{text}"
    );
    assert!(!text.contains("use ") && redacted.signed == 1, "{text}");
    let unchanged = record.replace("ghp_", "gap_");
    assert_eq!(redactor.record(unchanged.as_bytes(), RecordSyntax::Json).bytes, unchanged.as_bytes());
}

#[test]
fn a_signed_thought_of_an_indented_document_goes_whole() {
    let thought = |text: &str| {
        format!(
            "      {{\n        \"thinking\": \"{text}\",\n        \"type\": \"thinking\",\n        \"signature\": \"EqQBCkgIARABGAIiQL\"\n      }}"
        )
    };
    let document = |thoughts: &str| {
        format!("{{\n  \"messages\": [\n    {{\n      \"content\": [\n{thoughts}\n      ]\n    }}\n  ]\n}}\n")
    };
    let secret = thought("use ghp_x7Kq2mZ9Lr4Tn8Wv1Bc5Yd3Fh6Js0PaGe1Ku now");
    // The document has several blocks.
    let before: String = (0..2_000).map(|number| thought(&format!("{number} is even")) + ",\n").collect();
    let source = document(&format!("{before}{secret},\n{}", thought("it works")));
    let (redacted, report) = redact(source.as_bytes(), RecordSyntax::Json);
    let redacted = String::from_utf8(redacted).unwrap();
    assert_eq!((report.total(), report.signed, redacted.matches("EqQBCkgIARABGAIiQL").count()), (1, 1, 2_001));
    assert!(redacted.contains("\"[redacted:signed-thought:") && !redacted.contains("now"), "{redacted}");
    assert!(serde_json::from_str::<Value>(&redacted).is_ok());
    // A torn line hides nothing of the lines after it.
    let torn = format!("{{\n  \"a\": \"torn\\\n  \"b\": \"no\",\n{secret}\n}}\n");
    let (redacted, _) = redact(torn.as_bytes(), RecordSyntax::Json);
    assert!(!has(&redacted, "ghp_x7Kq2") && !has(&redacted, "EqQBC"));
}

#[test]
fn texts_inside_base64_and_deep_escapes_are_found() {
    use stenograph::json::is_valid;
    let redactor = redactor(&RedactionSettings::default());
    // base64 of "DB_PASSWORD=zq81hs72kd\nAPI=ghp_x7Kq2mZ9Lr4Tn8Wv1Bc5Yd3Fh6Js0PaGe1Ku\n"
    let encoded = "REJfUEFTU1dPUkQ9enE4MWhzNzJrZApBUEk9Z2hwX3g3S3EybVo5THI0VG44V3YxQmM1WWQzRmg2SnMwUGFHZTFLdQo=";
    let record = format!(r#"{{"data":"{encoded}"}}"#);
    let redacted = redactor.record(record.as_bytes(), RecordSyntax::Json);
    assert!(redacted.bytes != record.as_bytes() && !redacted.findings.is_empty(), "{redacted:?}");
    let deep = quote(&quote(&quote("Authorization: Bearer a8Fq2mZ9Lr4Tn8Wv1Bc5Yd3F\nnext")));
    let record = format!("{{\"text\":{deep}}}");
    let text = String::from_utf8(redactor.record(record.as_bytes(), RecordSyntax::Json).bytes.into_owned()).unwrap();
    assert!(!text.contains("a8Fq2mZ9Lr4Tn8Wv1Bc5Yd3F") && is_valid(&text), "{text}");
    let hidden = r#"{"text":"\u0067hp_x7Kq2mZ9Lr4Tn8Wv1Bc5Yd3Fh6Js0PaGe1Ku"}"#;
    let text = String::from_utf8(redactor.record(hidden.as_bytes(), RecordSyntax::Json).bytes.into_owned()).unwrap();
    assert!(text.starts_with(r#"{"text":"[redacted:"#) && text.ends_with(r#"]"}"#), "{text}");
}

#[test]
fn ids_stay_and_images_are_reported() {
    let redactor = redactor(&RedactionSettings::default());
    let record = r#"{"auth_token_id":"a8Fq2mZ9Lr4Tn8Wv1Bc5Yd3F","signature":"token=a8Fq2mZ9Lr4Tn8Wv1Bc5Yd3F","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"}}"#;
    let redacted = redactor.record(record.as_bytes(), RecordSyntax::Json);
    assert_eq!((redacted.bytes.as_ref(), redacted.unchecked), (record.as_bytes(), 1), "{:?}", redacted.findings);
}

#[test]
fn the_users_own_patterns_and_allow_list_count() {
    let settings = RedactionSettings {
        patterns: vec!["ACME-([0-9]{6})".to_owned()],
        allow: vec!["^ghp_x7Kq".to_owned()],
        user_names: vec!["kimberly".to_owned()],
    };
    let redactor = redactor(&settings);
    let record =
        br#"{"t":"ACME-123456 ghp_x7Kq2mZ9Lr4Tn8Wv1Bc5Yd3Fh6Js0PaGe1Ku kimberly kimberlyite /Users/kimberly/x"}"#;
    let text = String::from_utf8(redactor.record(record, RecordSyntax::Json).bytes.into_owned()).unwrap();
    assert!(
        text.contains("ACME-[redacted:custom:") && text.contains("ghp_x7Kq") && text.contains(" kimberlyite "),
        "{text}"
    );
    let user = text.split("/Users/").nth(1).unwrap().split('/').next().unwrap();
    assert!(user.starts_with("user-") && text.contains(&format!(" {user} ")), "{text}");
    assert!(Redactor::new(&RedactionSettings { patterns: vec!["(".to_owned()], ..settings }, [0; 32]).is_err());
}

/// A record after both passes, as text.
fn redacted_text(record: &str) -> String {
    String::from_utf8(redact(record.as_bytes(), RecordSyntax::Json).0).unwrap()
}

#[test]
fn escaped_slashes_hide_nothing() {
    for (record, secret) in [
        (r#"{"t":"cd \/home\/kimberly\/app"}"#, "kimberly"),
        (r#"{"t":"postgres:\/\/app:x7Kq2mZ9Lr@db.internal\/app"}"#, "x7Kq2mZ9Lr"),
        (r#"{"t":"{\"url\":\"postgres:\\/\\/app:x7Kq2mZ9Lr@db.internal\"}"}"#, "x7Kq2mZ9Lr"),
        (r#"{"t":"DB_PASSWORD=x7\/Kq2mZ9Lr"}"#, "Kq2mZ9Lr"),
    ] {
        let text = redacted_text(record);
        assert!(!text.contains(secret) && stenograph::json::is_valid(&text), "{text}");
    }
}

#[test]
fn a_known_secret_is_found_however_it_is_escaped() {
    let settings = RedactionSettings { patterns: vec![r#"PIN=(\S+)"#.to_owned()], ..RedactionSettings::default() };
    let with_pattern = redactor(&settings);
    let secret = r#"q"7/Kx\2<m&Z9"#;
    let mut pass = SourceRedactor::new(&with_pattern, RecordSyntax::Json);
    pass.feed(format!("{{\"t\":{}}}\n", quote(&format!("PIN={secret}"))).as_bytes(), &mut ());
    let (_, known) = pass.end(&mut ());
    let mut redactor = redactor(&RedactionSettings::default());
    redactor.learn(known);
    let (json, entities) = (quote(secret), secret.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;"));
    let spellings = [json.clone(), json.replace('/', "\\/"), quote(&json), quote(&quote(&json)), quote(&entities)];
    for spelling in spellings {
        let record = format!("{{\"t\":[{spelling}]}}");
        let redacted = redactor.record(record.as_bytes(), RecordSyntax::Json);
        assert_eq!(redacted.findings.len(), 1, "{record}");
        assert!(!has(&redacted.bytes, "2<m") && !has(&redacted.bytes, "2&lt;m"), "{redacted:?}");
    }
}

#[test]
fn colours_hide_nothing() {
    let token = "AKIAQ3EGRZ7WLNTKVB2X";
    let (start, end) = token.split_at(7);
    for (record, left) in [
        (format!(r#"{{"t":"\u001b[01;31m\u001b[K{token}\u001b[m\u001b[K now"}}"#), token),
        (format!(r#"{{"t":"{start}\u001b[1m{end}"}}"#), end),
        (format!(r#"{{"t":"{}"}}"#, r"\\u001b[32m".to_owned() + token), token),
        (r#"{"t":"\u001b[32mkimberly\u001b[0m in /home/kimberly"}"#.to_owned(), "kimberly"),
    ] {
        let text = redacted_text(&record);
        assert!(!text.contains(left) && stenograph::json::is_valid(&text), "{text}");
    }
}

#[test]
fn base64_inside_base64_is_decoded() {
    // base64 of base64 of "password=ghp_x7Kq2mZ9Lr4Tn8Wv1Bc5Yd3Fh6Js0PaGe1Ku"
    let twice = "Y0dGemMzZHZjbVE5WjJod1gzZzNTM0V5YlZvNVRISTBWRzQ0VjNZeFFtTTFXV1F6Um1nMlNuTXdVR0ZIWlRGTGRRPT0=";
    let text = redacted_text(&format!("{{\"data\":\"{twice}\"}}"));
    assert!(text.starts_with(r#"{"data":""#) && !text.contains(twice) && !text.contains('['), "{text}");
    assert_eq!(redacted_text(&text), text);
}

#[test]
fn base64_in_lines_is_decoded_line_by_line() {
    // base64 of "first line of the file, which says nothing at all, ok 12\nghp_x7Kq2mZ9Lr4Tn8Wv1Bc5Yd3Fh6Js0PaGe1Ku in line 2", at 76
    // columns.
    let record = r#"{"data":"Zmlyc3QgbGluZSBvZiB0aGUgZmlsZSwgd2hpY2ggc2F5cyBub3RoaW5nIGF0IGFsbCwgb2sgMTIK\r\nZ2hwX3g3S3EybVo5THI0VG44V3YxQmM1WWQzRmg2SnMwUGFHZTFLdSBpbiBsaW5lIDI="}"#;
    let text = redacted_text(record);
    assert!(text.starts_with(r#"{"data":"Zmlyc3Q"#) && !text.contains("Z2hwX3g3S3Eyb"), "{text}");
}

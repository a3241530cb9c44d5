//! Duplicate keys and unknown types anywhere in the fixtures of every format break no law. The last of two equal keys counts,
//! and the first one is not lost.

use std::fs;
use std::path::Path;

use stenograph::format::Format;
use stenograph::formats::FORMATS;
use stenograph::laws::{Effort, check};

/// The number of changes tried on the fixtures of each format. Every run tries the same ones.
const CHANGES: usize = 160;

/// The keys in a text of JSON values: the offset of each key, and the start and end of its value.
fn keys(text: &str) -> Vec<(usize, usize, usize)> {
    let bytes = text.as_bytes();
    let (mut found, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        if bytes.get(at) != Some(&b'"') {
            at += 1;
            continue;
        }
        let start = at;
        at += 1;
        while let Some(byte) = bytes.get(at).filter(|byte| **byte != b'"') {
            at += if *byte == b'\\' { 2 } else { 1 };
        }
        at += 1;
        let value = text.get(at..).unwrap_or_default().trim_start().strip_prefix(':').map(str::trim_start);
        if let Some(value) = value {
            let from = text.len() - value.len();
            if let Some(length) = value_length(value) {
                found.push((start, from, from + length));
            }
        }
    }
    found
}

fn value_length(text: &str) -> Option<usize> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<serde::de::IgnoredAny>();
    values.next()?.ok()?;
    Some(values.byte_offset())
}

/// The text with one key duplicated or its value changed.
fn changes(text: &str, (start, from, end): (usize, usize, usize)) -> Vec<String> {
    let key = &text[start..from];
    let mut changed = Vec::new();
    for other in ["null", "\"other\"", "{\"a\":1}", "[]"] {
        changed.push(format!("{}{key}{other},{}", &text[..start], &text[start..]));
        changed.push(format!("{},{key}{other}{}", &text[..end], &text[end..]));
    }
    changed.push(format!("{},{key}{}{}", &text[..end], &text[from..end], &text[end..]));
    if key.starts_with("\"type\"") {
        changed.push(format!("{}\"unheard_of\"{}", &text[..from], &text[end..]));
    }
    changed
}

fn sources(format: &dyn Format) -> Vec<String> {
    let folder = format.info().name.replace('-', "_");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/formats").join(folder).join("fixtures");
    let mut files: Vec<_> = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    files.sort();
    files.retain(|path| !matches!(path.extension().and_then(|end| end.to_str()), Some("golden" | "losses")));
    let texts = files.into_iter().filter_map(|path| fs::read_to_string(path).ok());
    let mut sources = Vec::new();
    for text in texts.filter(|text| text.trim_start().starts_with(['{', '['])) {
        let is_lines =
            text.lines().filter(|line| !line.is_empty()).all(|line| line.starts_with('{') && line.ends_with('}'));
        match is_lines {
            true => sources.extend(text.lines().filter(|line| !line.is_empty()).map(|line| format!("{line}\n"))),
            false => sources.push(text),
        }
    }
    sources
}

#[test]
fn duplicate_keys_break_no_law() {
    let mut broken = Vec::new();
    for format in FORMATS {
        let sources = sources(*format);
        let places: Vec<(usize, (usize, usize, usize))> =
            (0..).zip(&sources).flat_map(|(at, text)| keys(text).into_iter().map(move |key| (at, key))).collect();
        let all: usize = places.len() * 10;
        let step = (all / CHANGES).max(1);
        for number in (0..all).step_by(step) {
            let (source, key) = places[number / 10];
            let Some(text) = changes(&sources[source], key).into_iter().nth(number % 10) else { continue };
            for law in check(*format, text.as_bytes(), Effort { places: 2 }) {
                broken.push(format!("{} {}: {}\n  in {text}", format.info().name, law.law, law.what));
            }
        }
    }
    let few: Vec<String> = broken.iter().take(12).map(|what| what.chars().take(2_000).collect()).collect();
    assert!(broken.is_empty(), "{} broken:\n{}", broken.len(), few.join("\n"));
}

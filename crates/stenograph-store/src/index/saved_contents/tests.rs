//! The saved layout, which must not change without its version, and the use of a saved state. `tests/index/contents.rs` has the
//! whole of it with an index.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::Value;
use stenograph::Registry;

use super::*;

fn formats_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../stenograph/src/formats")
}

/// Objects whose keys are data.
const MAPS: [&str; 10] =
    ["names", "paths", "by_call", "by_thread", "jobs", "places", "open", "early", "by_key", "answers"];

/// The types of all values, by their place.
fn add_layout(place: &str, value: &Value, layout: &mut BTreeMap<String, BTreeSet<&'static str>>) {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(items) => {
            items.iter().for_each(|item| add_layout(&format!("{place}[]"), item, layout));
            "array"
        }
        Value::Object(fields) => {
            let name = place.rsplit('.').next().unwrap_or_default();
            let is_window_files = place.ends_with("window.files");
            for (key, value) in fields {
                let key = if MAPS.contains(&name) || is_window_files { "*" } else { key };
                add_layout(&format!("{place}.{key}"), value, layout);
            }
            "object"
        }
    };
    layout.entry(place.to_owned()).or_default().insert(kind);
}

fn value(saved: &impl Serialize) -> Value {
    serde_json::from_slice(&serde_json::to_vec(saved).unwrap()).unwrap()
}

/// The layout of what is saved of some sessions, half way and at the end.
fn layout() -> String {
    let mut layout = BTreeMap::new();
    for fixture in [
        "claude_code/fixtures/session.jsonl",
        "claude_code/fixtures/compaction.jsonl",
        "claude_code/fixtures/subagent.jsonl",
        "codex/fixtures/every_type.jsonl",
        "codex/fixtures/session.jsonl",
        "claude_events/fixtures/demo.jsonl",
        "steno/fixtures/demo.jsonl",
        "steno/../../../../stenograph-store/src/index/saved_contents/layout.jsonl",
    ] {
        let path = formats_folder().join(fixture);
        let bytes = fs::read(&path).unwrap();
        let format = Registry::built_in().named(&fixture.split('/').next().unwrap().replace('_', "-")).unwrap();
        let mut builder = ContentsBuilder::default();
        for (number, event) in (1..).zip(&stenograph::read::all(format, &bytes).events) {
            builder.add(number, event);
            let fingerprint = Fingerprint { head_length: 0, head: 0, end: 0, tail: 0 };
            let (path, repeats) = (Path::new("/a"), String::new());
            let state =
                StateAt { path, offset: 0, line: 1, event: 1, fingerprint, sum: Some(1), repeats, builder: &builder };
            add_layout("state", &value(&state), &mut layout);
        }
        let files = vec![(path, Some(FileStamp::default()))];
        let sources = ReadSources { files, archived: Some(("a".to_owned(), 1)), seen: 0 };
        let saved = SavedContents { sources, contents: builder.finish() };
        add_layout("contents", &value(&saved), &mut layout);
    }
    layout.iter().fold(format!("{VERSION}\n"), |mut text, (place, kinds)| {
        let _ = writeln!(text, "{place}: {}", kinds.iter().copied().collect::<Vec<_>>().join(" or "));
        text
    })
}

#[test]
fn the_saved_layout_changes_only_with_its_version() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/index/saved_contents/layout.golden");
    let (now, golden) = (layout(), fs::read_to_string(&path).unwrap_or_default());
    if now == golden {
        return;
    }
    let is_raised = golden.lines().next() != Some(VERSION);
    assert!(is_raised, "the layout of saved contents has changed: raise VERSION in index/saved_contents.rs\n{now}");
    assert!(std::env::var_os("STENO_UPDATE").is_some(), "run this test with STENO_UPDATE=1 to write the new layout");
    fs::write(&path, now).unwrap();
}

fn line(number: usize) -> String {
    let text = "sea ".repeat(200);
    format!(
        "{{\"v\":1,\"kind\":\"message\",\"id\":\"event-{number:08}\",\"role\":\"user\",\"content\":\"{number} {text}\"}}\n"
    )
}

#[test]
fn a_file_that_has_grown_is_read_from_the_saved_state() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    let steno = Registry::built_in().named("steno").unwrap();
    let mut text: String = (0..6_000).map(line).collect();
    fs::write(&path, &text).unwrap();
    let (first, state) = continued(&path, text.len() as u64, steno, None).unwrap();
    let mut state: SavedState = serde_json::from_slice(&state.unwrap()).unwrap();
    assert_eq!(first.audit.events, 6_000);
    assert!(state.offset + 2 * STATE_MARGIN > text.len() as u64 && state.event < 6_000, "{}", state.event);

    text.extend((6_000..6_010).map(line));
    fs::write(&path, &text).unwrap();
    let whole = continued(&path, text.len() as u64, steno, None).unwrap().0;
    let saved = serde_json::to_vec(&state).unwrap();
    let (grown, again) =
        continued(&path, text.len() as u64, steno, Some(serde_json::from_slice(&saved).unwrap())).unwrap();
    assert_eq!(format!("{grown:?}"), format!("{whole:?}"));
    assert!(again.is_none(), "little has followed the saved state");

    // A change that only the checksum shows.
    let changed = text.replacen("\"600 sea", "\"600 see", 1);
    fs::write(&path, &changed).unwrap();
    let read = |state: SavedState| continued(&path, changed.len() as u64, steno, Some(state)).unwrap().0;
    let asked = |contents: &Contents| format!("{:?}", contents.audit.turns).contains("600 see");
    assert!(asked(&read(serde_json::from_slice(&saved).unwrap())), "the file is read again");
    // Without the checksum, the same change proves that the bytes before the state are not read.
    state.sum = None;
    assert!(!asked(&read(state)));
}

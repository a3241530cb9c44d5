//! The contents of a conversation, saved and restored between any two events, equal those of one pass: of every fixture.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may fail loudly")]

use std::fs;
use std::path::Path;

use stenograph::contents::ContentsBuilder;
use stenograph::formats::FORMATS;
use stenograph::model::Event;

/// How many cuts of a fixture are tried.
const CUTS_MAX: usize = 24;

fn contents(events: &[Event<'static>], cut: Option<usize>) -> String {
    let mut builder = ContentsBuilder::default();
    for (at, event) in events.iter().enumerate() {
        if cut == Some(at) {
            builder = serde_json::from_slice(&serde_json::to_vec(&builder).unwrap()).unwrap();
        }
        builder.add(at as u64 + 1, event);
    }
    format!("{:?}", builder.finish())
}

#[test]
fn contents_that_are_saved_between_two_events_continue_as_if_nothing_had_happened() {
    let mut tried = 0;
    for format in FORMATS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/formats");
        let folder = folder.join(format.info().name.replace('-', "_")).join("fixtures");
        for fixture in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = fixture.path();
            if path.extension().is_some_and(|extension| extension == "golden" || extension == "losses") {
                continue;
            }
            let events = stenograph::read::all(*format, &fs::read(&path).unwrap()).events;
            let whole = contents(&events, None);
            for cut in (0..events.len()).step_by(events.len().div_ceil(CUTS_MAX).max(1)) {
                assert_eq!(contents(&events, Some(cut)), whole, "{} at event {cut}", path.display());
                tried += 1;
            }
        }
    }
    assert!(tried > 300, "{tried}");
}

//! What `cargo xtask new-format` copies compiles and keeps the laws, so that every new format begins with both. The copy has no tests of
//! its own: `tests/conformance.rs` covers every format in the list.

use std::fs;
use std::path::{Path, PathBuf};

use super::{FormatTemplate, NAME};
use crate::convert::{Carry, convert};
use crate::format::{Format as _, Head, Sniff};
use crate::formats::FORMATS;
use crate::laws::{Effort, check};
use crate::registry::Detected;
use crate::{Registry, read, wire};

fn fixtures(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/formats").join(folder).join("fixtures");
    let mut found: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.retain(|path| !matches!(path.extension().and_then(|ending| ending.to_str()), Some("golden" | "losses")));
    found
}

#[test]
fn the_fixture_reads_as_its_golden_says() {
    for path in fixtures("format_template") {
        let found = read::all(&FormatTemplate, &fs::read(&path).unwrap());
        let lines: Vec<String> =
            found.events.iter().map(wire::event_at).chain(found.notes.iter().map(wire::note)).collect();
        let golden = fs::read_to_string(format!("{}.golden", path.display())).unwrap();
        assert_eq!(lines.join("\n") + "\n", golden);
    }
}

#[test]
fn it_keeps_the_laws_on_its_own_fixture_and_on_those_of_all_formats() {
    for path in fixtures("format_template") {
        let broken = check(&FormatTemplate, &fs::read(&path).unwrap(), Effort { places: 64 });
        assert!(broken.is_empty(), "{broken:?}");
    }
    for format in FORMATS {
        for path in fixtures(&format.info().name.replace('-', "_")) {
            let broken = check(&FormatTemplate, &fs::read(&path).unwrap(), Effort { places: 1 });
            assert!(broken.is_empty(), "{}: {broken:?}", path.display());
        }
    }
}

#[test]
fn no_other_format_claims_its_fixture_and_it_claims_no_other() {
    for path in fixtures("format_template") {
        let source = fs::read(&path).unwrap();
        assert!(matches!(Registry::built_in().detect(&source), Detected::Unknown), "{NAME}");
        assert_eq!(FormatTemplate.sniff(&Head::new(&source)), Sniff::Certain);
    }
    for format in FORMATS {
        for path in fixtures(&format.info().name.replace('-', "_")) {
            assert_eq!(FormatTemplate.sniff(&Head::new(&fs::read(&path).unwrap())), Sniff::No, "{}", path.display());
        }
    }
}

#[test]
fn every_other_format_accepts_what_is_converted_from_it() {
    for path in fixtures("format_template") {
        let source = fs::read(&path).unwrap();
        for to in Registry::built_in().targets() {
            let outcome = convert(&FormatTemplate, &mut source.as_slice(), to, &mut Vec::new(), Carry::Omit).unwrap();
            assert!(outcome.output_notes.is_empty(), "{to:?}: {:?}", outcome.output_notes);
        }
    }
}

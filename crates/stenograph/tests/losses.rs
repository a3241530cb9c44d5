//! `docs/losses.md` and the pages of the formats list the losses of every conversion; this test measures them again.

use std::fs;
use std::path::{Path, PathBuf};

use stenograph::Registry;
use stenograph::convert::{Carry, convert};
use stenograph::format::Format;
use stenograph::formats::FORMATS;
use stenograph::laws::pairs::{Conversions, Sample, sample_name};
use stenograph::model::Event;

fn samples() -> Vec<Sample> {
    let formats = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/formats");
    let mut samples = Vec::new();
    for format in FORMATS {
        let folder: PathBuf = formats.join(format.info().name.replace('-', "_")).join("fixtures");
        let names = fs::read_dir(&folder).into_iter().flatten().flatten();
        let mut names: Vec<String> = names.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.retain(|name| !name.ends_with(".golden") && !name.ends_with(".losses"));
        if let Some(name) = sample_name(&names) {
            let bytes = fs::read(folder.join(name)).unwrap_or_default();
            samples.push(Sample { format: *format, name: name.clone(), bytes });
        }
    }
    samples
}

#[test]
fn the_losses_of_all_pairs_are_as_documented() {
    let targets: Vec<&'static dyn Format> = Registry::built_in().targets().collect();
    let samples = samples();
    let conversions = Conversions::measure(&samples, &targets);
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let page = fs::read_to_string(docs.join("losses.md")).unwrap_or_default();
    is_documented("losses.md", &page, &conversions.page());
    for sample in &samples {
        let name = format!("formats/{}.md", sample.format.info().name);
        let page = fs::read_to_string(docs.join(&name)).unwrap_or_default();
        let start = page.find("Measured with the fixture").unwrap_or(page.len());
        is_documented(&name, &page[start..], &conversions.of(sample.format));
    }
}

fn is_documented(name: &str, golden: &str, found: &str) {
    let line = golden.lines().zip(found.lines()).take_while(|(a, b)| a == b).count();
    let show = |text: &str| text.lines().nth(line).unwrap_or("(end)").to_owned();
    assert!(
        golden == found,
        "docs/{name} differs at line {} of the losses; run `cargo xtask gen` to update it\n  golden {}\n  found  {}",
        line + 1,
        show(golden),
        show(found)
    );
}

#[test]
fn joined_texts_are_reported_as_changed() {
    let source = r#"{"v":1,"kind":"message","role":"user","content":[{"text":"AB"},{"text":"CD"}]}"#;
    for from in FORMATS.iter().filter(|format| format.info().name == "steno") {
        for to in Registry::built_in().targets().filter(|to| to.info().name != from.info().name) {
            let mut out = Vec::new();
            let outcome = convert(*from, &mut source.as_bytes(), to, &mut out, Carry::Omit).unwrap();
            let events = stenograph::read::all(to, &out).events;
            let is_separate = |event: &Event<'_>| event.content().is_some_and(|content| content.texts().count() == 2);
            assert!(events.iter().any(is_separate) || outcome.losses.is_lossy(), "{}", to.info().name);
        }
    }
}

//! Forgotten sources are not archived again, and their space is freed.

use std::fs;

use stenograph_store::archive::{AddOutcome, CopyChange, CopyId, ForgottenState, Label, SourceCheck};

use crate::place::{Place, add, assert_change, assert_whole, label, last, lines};

#[test]
fn a_forgotten_source_is_not_archived_until_it_is_unforgotten() {
    let mut place = Place::new();
    let mut keeper = place.keeper();
    let bytes = lines(1, 200);
    let kept = place.keep(&mut keeper, "a.jsonl", &bytes);
    keeper.forget(&[kept.copy], "older than 90 days").unwrap();
    keeper.commit(5).unwrap();
    let grown = [bytes.as_slice(), b"more\n"].concat();
    let path = place.write("a.jsonl", &grown);
    let moved = place.write("moved.jsonl", &grown);
    let unknown = Label { format: "some".into(), session: None };
    for reopened in [false, true] {
        if reopened {
            drop(keeper);
            keeper = place.keeper();
        }
        assert_eq!(add(&mut keeper, &path, &label("a.jsonl")), None);
        assert_eq!(add(&mut keeper, &moved, &label("a.jsonl")), None);
        // A source of unknown session is recognised by its beginning; a fork with the same beginning has its own name.
        assert_eq!(add(&mut keeper, &moved, &unknown), None);
        let fork = label("0198f2c4-1111-7000-8000-000000000001");
        assert_eq!(keeper.forgotten_state(&fork, &moved).unwrap(), ForgottenState::Unknown);
    }
    assert_eq!(place.archive().copies().count(), 0);
    let log = fs::read_to_string(place.store().join("log.jsonl")).unwrap();
    assert!(log.contains("\"why\":\"older than 90 days\""));
    keeper.unforget(&label("a.jsonl")).unwrap();
    let again = add(&mut keeper, &path, &label("a.jsonl")).unwrap();
    assert_change(again, CopyChange::New);
    assert_ne!(again.copy, kept.copy);
    keeper.commit(6).unwrap();
    assert_eq!(last(&place.archive(), &path), grown);
    assert!(keeper.forget(&[CopyId(99)], "").is_err());
}

#[test]
fn a_source_with_a_common_name_is_forgotten_by_content_and_unforgotten_by_name() {
    let mut place = Place::new();
    let mut keeper = place.keeper();
    let (path, other) = (place.write("one-main", &lines(1, 200)), place.write("two-main", &lines(2, 200)));
    let kept = add(&mut keeper, &path, &label("main")).unwrap();
    keeper.forget(&[kept.copy], "").unwrap();
    keeper.commit(1).unwrap();
    assert_eq!(add(&mut keeper, &path, &label("main")), None);
    assert!(add(&mut keeper, &other, &label("main")).is_some());
    assert_eq!(place.archive().forgotten().collect::<Vec<_>>(), [label("main")]);
    keeper.unforget(&label("main")).unwrap();
    assert!(add(&mut keeper, &path, &label("main")).is_some());
    keeper.commit(2).unwrap();
    assert_eq!(place.archive().forgotten().count(), 0);
}

#[test]
fn only_a_copy_whose_source_is_complete_can_be_pruned() {
    let mut place = Place::new();
    let mut keeper = place.keeper();
    let bytes = lines(1, 3_000);
    let copy = place.keep(&mut keeper, "a.jsonl", &bytes).copy;
    let twin = place.keep(&mut keeper, "twin.jsonl", &bytes).copy;
    keeper.commit(1).unwrap();
    let (archive, path) = (place.archive(), place.path("a.jsonl"));
    assert_eq!(archive.check_source(copy, &path).unwrap(), SourceCheck::Whole);
    place.write("a.jsonl", &[bytes.as_slice(), b"more"].concat());
    assert_eq!(archive.check_source(copy, &path).unwrap(), SourceCheck::Whole);
    let mut changed = bytes.clone();
    *changed.last_mut().unwrap() ^= 1;
    place.write("a.jsonl", &changed);
    assert_eq!(archive.check_source(copy, &path).unwrap(), SourceCheck::Other);
    place.write("a.jsonl", &bytes[..bytes.len() - 1]);
    assert_eq!(archive.check_source(copy, &path).unwrap(), SourceCheck::Other);
    fs::remove_file(&path).unwrap();
    assert_eq!(archive.check_source(copy, &path).unwrap(), SourceCheck::Nothing);
    // Pieces that another copy shares free no space.
    assert_eq!(archive.freed_bytes(&[copy]), 0);
    assert!(archive.freed_bytes(&[copy, twin]) > 0);
}

#[test]
fn space_is_reclaimed_when_more_than_an_eighth_of_a_pack_is_unused() {
    let mut place = Place::new();
    let mut keeper = place.keeper();
    let names: Vec<String> = (0..10).map(|number| format!("{number}.jsonl")).collect();
    let mut copies = Vec::new();
    for (seed, name) in names.iter().enumerate() {
        copies.push(place.keep(&mut keeper, name, &lines(seed as u64, 3_000)).copy);
    }
    let before = place.stored();
    keeper.forget(&copies[..1], "").unwrap();
    assert_eq!(keeper.reclaim(1).unwrap().packs, 0);
    keeper.forget(&copies[1..8], "").unwrap();
    let reclaimed = keeper.reclaim(2).unwrap();
    assert!(reclaimed.packs == 1 && reclaimed.before >= before, "{reclaimed:?}");
    assert!(place.stored() < before * 3 / 10, "{} of {before}", place.stored());
    assert_eq!(place.packs(), [place.store().join("packs/000002.pack")]);
    for reopened in [false, true] {
        if reopened {
            drop(keeper);
            keeper = place.keeper();
            assert!(keeper.warnings().is_empty(), "{:?}", keeper.warnings());
        }
        let archive = place.archive();
        assert_eq!(
            archive.size().stored,
            place.stored() + fs::metadata(place.store().join("log.jsonl")).unwrap().len()
        );
        assert_eq!(last(&archive, &place.path("8.jsonl")), lines(8, 3_000));
        assert_eq!(last(&archive, &place.path("9.jsonl")), lines(9, 3_000));
        assert_whole(&archive);
    }
    // Removed content is stored again after an unforget.
    keeper.unforget(&label("0.jsonl")).unwrap();
    let kept = place.keep(&mut keeper, "new.jsonl", &lines(0, 3_000));
    assert_eq!(kept.added, kept.length);
    assert_eq!(last(&place.archive(), &place.path("new.jsonl")), lines(0, 3_000));
}

#[test]
fn a_reader_finds_its_data_after_a_pack_is_removed() {
    let mut place = Place::new();
    let mut keeper = place.keeper();
    let kept = place.keep(&mut keeper, "a.jsonl", &lines(1, 3_000));
    let other = place.keep(&mut keeper, "b.jsonl", &lines(2, 9_000));
    let mut archive = place.archive();
    keeper.forget(&[other.copy], "").unwrap();
    assert_eq!(keeper.reclaim(1).unwrap().packs, 1);
    archive.refresh().unwrap();
    assert_eq!(
        crate::place::read(&archive, kept.copy, stenograph_store::archive::WhichVersion::Last, 0),
        lines(1, 3_000)
    );
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut encoder, bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn a_forgotten_source_is_known_under_any_name_and_in_any_container() {
    for (stored, is_packed) in [(false, false), (true, true)] {
        let mut place = Place::new();
        let mut keeper = place.keeper();
        let (bytes, other) = (lines(1, 900), lines(2, 900));
        let packed = if is_packed { gzip(&bytes) } else { bytes.clone() };
        let kept = place.keep(&mut keeper, "a.jsonl", if stored { &packed } else { &bytes });
        keeper.forget(&[kept.copy], "").unwrap();
        keeper.commit(1).unwrap();
        let grown = [bytes.as_slice(), b"{\"new\":\"work\"}\n"].concat();
        let zstd = |bytes: &[u8]| zstd::encode_all(bytes, 3).unwrap();
        for (name, same, more) in [
            ("b.jsonl", bytes.clone(), grown.clone()),
            ("b.jsonl.gz", gzip(&bytes), gzip(&grown)),
            ("b.jsonl.zst", zstd(&bytes), zstd(&grown)),
        ] {
            let path = place.write(name, &same);
            for session in ["another", "0198f2c4-1111-7000-8000-000000000001"] {
                assert_eq!(keeper.add(&path, &label(session)).unwrap(), AddOutcome::Forgotten, "{name} {session}");
            }
            // New work is named; a session with its own unique name and the same beginning is a fork.
            let path = place.write(name, &more);
            let continued = AddOutcome::Continued { session: Some("a.jsonl".into()) };
            assert_eq!(keeper.add(&path, &label("another")).unwrap(), continued, "{name}");
            let fork = label("0198f2c4-1111-7000-8000-000000000001");
            assert_eq!(keeper.forgotten_state(&fork, &path).unwrap(), ForgottenState::Unknown, "{name}");
            let path = place.write(name, &other);
            assert_eq!(keeper.forgotten_state(&label("another"), &path).unwrap(), ForgottenState::Unknown, "{name}");
        }
    }
}

#[test]
fn every_version_of_a_forgotten_source_is_known() {
    let mut place = Place::new();
    let mut keeper = place.keeper();
    let versions = [lines(1, 900), lines(2, 700), lines(3, 40)];
    for bytes in &versions {
        place.keep(&mut keeper, "a.jsonl", bytes);
    }
    keeper.forget(&[CopyId(0)], "").unwrap();
    for bytes in &versions {
        let path = place.write("backup.jsonl", bytes);
        assert_eq!(keeper.forgotten_state(&label("b"), &path).unwrap(), ForgottenState::Forgotten);
    }
}

#[test]
fn a_short_forgotten_source_does_not_match_others() {
    let mut place = Place::new();
    let mut keeper = place.keeper();
    place.keep(&mut keeper, "a.json", b"{}\n");
    keeper.forget(&[CopyId(0)], "").unwrap();
    let path = place.write("b.json", b"{}\n{\"more\":1}\n");
    assert_eq!(keeper.forgotten_state(&label("b"), &path).unwrap(), ForgottenState::Unknown);
}

//! Copies equal their sources, and only new content is stored.

use std::fs;
use std::sync::Arc;

use stenograph_store::Problem;
use stenograph_store::archive::{Archive, ArchiveWriter, CopyChange, IfExists, Label, WhichVersion};
use stenograph_store::files::Disk;

use crate::place::{Place, add, assert_change, assert_whole, label, last, lines, read};

#[test]
fn an_archived_source_can_be_read_after_it_is_gone() {
    let mut place = Place::new();
    let bytes = lines(1, 40_000);
    assert!(bytes.len() > 4 << 20);
    let mut keeper = place.keeper();
    let kept = place.keep(&mut keeper, "a.jsonl", &bytes);
    assert_change(kept, CopyChange::New);
    assert_eq!((kept.length, kept.added), (bytes.len() as u64, bytes.len() as u64));
    fs::remove_file(place.path("a.jsonl")).unwrap();
    let archive = place.archive();
    let info = archive.copy_at(&place.path("a.jsonl")).unwrap();
    assert_eq!((info.length, &info.label), (bytes.len() as u64, &label("a.jsonl")));
    assert_eq!((info.first_ms, info.last_ms, info.versions.len()), (1_000, 1_000, 1));
    assert_eq!(last(&archive, &place.path("a.jsonl")), bytes);
    for from in [0, 1, 70_000, 1 << 20, bytes.len() - 1, bytes.len(), bytes.len() + 5] {
        assert_eq!(
            read(&archive, kept.copy, WhichVersion::Last, from as u64),
            bytes.get(from..).unwrap_or_default(),
            "{from}"
        );
    }
    assert!(place.stored() < bytes.len() as u64 / 2);
    assert_whole(&archive);
}

#[test]
fn a_source_that_grows_costs_what_is_new_and_stays_one_version() {
    let mut place = Place::new();
    let bytes = lines(2, 20_000);
    let ends: Vec<usize> = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1).collect();
    let mut keeper = place.keeper();
    place.keep(&mut keeper, "a.jsonl", &bytes[..ends[15_000]]);
    for step in [15_001, 15_002, 15_010, 15_400, 19_999] {
        let before = place.archive().copy_at(&place.path("a.jsonl")).unwrap().length;
        let kept = place.keep(&mut keeper, "a.jsonl", &bytes[..ends[step]]);
        assert_change(kept, CopyChange::Grown);
        assert!(kept.added <= kept.length - before + (2 << 20), "{kept:?} {before}");
        let archive = place.archive();
        assert_eq!(last(&archive, &place.path("a.jsonl")), &bytes[..ends[step]]);
        assert_eq!(archive.copy(kept.copy).unwrap().versions.len(), 1);
    }
    assert_whole(&place.archive());
}

#[test]
fn a_source_that_grows_by_single_lines_stays_compact() {
    let mut place = Place::new();
    let bytes = lines(3, 1_500);
    let mut keeper = place.keeper();
    let (mut added, mut end) = (0, 0);
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        end += line.len();
        added += place.keep(&mut keeper, "a.jsonl", &bytes[..end]).added;
    }
    assert_eq!(last(&place.archive(), &place.path("a.jsonl")), bytes);
    assert!(added < 5 * bytes.len() as u64, "{added} for {}", bytes.len());
    let before = place.stored();
    let reclaimed = keeper.reclaim(9_000_000).unwrap();
    assert!(reclaimed.packs > 0 && reclaimed.warnings.is_empty(), "{reclaimed:?}");
    assert!(place.stored() < before / 2, "{} of {before}", place.stored());
    let archive = place.archive();
    assert_eq!(last(&archive, &place.path("a.jsonl")), bytes);
    assert_whole(&archive);
    // It also continues to grow there.
    let more = [bytes.as_slice(), b"more\n"].concat();
    assert_change(place.keep(&mut keeper, "a.jsonl", &more), CopyChange::Grown);
    assert_eq!(last(&place.archive(), &place.path("a.jsonl")), more);
}

#[test]
fn an_unchanged_source_costs_nothing_and_a_touched_one_no_piece() {
    let mut place = Place::new();
    let bytes = lines(4, 3_000);
    let mut keeper = place.keeper();
    let path = place.path("a.jsonl");
    place.keep(&mut keeper, "a.jsonl", &bytes);
    let log = fs::read(place.store().join("log.jsonl")).unwrap();
    assert_change(add(&mut keeper, &path, &label("a.jsonl")).unwrap(), CopyChange::Same);
    keeper.commit(5).unwrap();
    assert_eq!(fs::read(place.store().join("log.jsonl")).unwrap(), log);
    let stored = place.stored();
    let kept = place.keep(&mut keeper, "a.jsonl", &bytes);
    assert_change(kept, CopyChange::Same);
    assert!(kept.added == 0 && place.stored() < stored + 1_000, "{kept:?}");
}

#[test]
fn a_rewritten_source_is_a_new_version_and_the_old_one_stays() {
    let mut place = Place::new();
    let (one, other) = (lines(5, 9_000), lines(6, 2_000));
    let mut edited = one.clone();
    let middle = edited.len() / 2;
    edited[middle] ^= 1;
    let mut keeper = place.keeper();
    let states = [one.clone(), edited, other, one[..one.len() / 3].to_vec(), Vec::new(), one];
    for (step, bytes) in states.iter().enumerate() {
        let kept = place.keep(&mut keeper, "a.jsonl", bytes);
        assert_eq!(
            kept.version,
            match step {
                5 => 5,
                step => step as u32 + 1,
            }
        );
    }
    let archive = place.archive();
    let info = archive.copies().next().unwrap();
    // An empty file may grow into anything.
    let numbers: Vec<(u32, u64)> = info.versions.iter().map(|version| (version.number, version.length)).collect();
    let lengths = [0, 1, 2, 3, 5].map(|step| states[step].len() as u64);
    assert_eq!(numbers, std::iter::zip(1.., lengths).collect::<Vec<_>>());
    for (number, step) in [(1, 0), (2, 1), (3, 2), (4, 3), (5, 5)] {
        assert_eq!(read(&archive, info.id, WhichVersion::Number(number), 0), states[step], "{number}");
    }
    assert_whole(&archive);
}

#[test]
fn copies_and_forks_share_their_pieces() {
    let mut place = Place::new();
    let bytes = lines(7, 60_000);
    let mut keeper = place.keeper();
    place.keep(&mut keeper, "a.jsonl", &bytes);
    let stored = place.stored();
    assert_eq!(place.keep(&mut keeper, "copy.jsonl", &bytes).added, 0);
    let fork = [&bytes[..bytes.len() / 2], b"{\"another\":\"end\"}\n"].concat();
    assert!(place.keep(&mut keeper, "fork.jsonl", &fork).added <= 2 << 20);
    assert!(place.stored() < stored + stored / 2);
    let archive = place.archive();
    for (name, bytes) in [("a.jsonl", &bytes), ("copy.jsonl", &bytes), ("fork.jsonl", &fork)] {
        assert_eq!(last(&archive, &place.path(name)), *bytes, "{name}");
    }
}

#[test]
fn a_document_rewritten_again_and_again_keeps_a_limited_number_of_versions() {
    let mut place = Place::new();
    let mut keeper = place.keeper();
    let whole = [b"{\"total\":999,".as_slice(), &lines(8, 400)].concat();
    place.keep(&mut keeper, "a.json", &whole);
    for number in 0..50_u32 {
        let text = format!("{{\"total\":{number},\"messages\":[{}]}}", "\"text\",".repeat(number as usize));
        place.keep(&mut keeper, "a.json", text.as_bytes());
    }
    let archive = place.archive();
    let info = archive.copies().next().unwrap();
    assert_eq!(info.versions.len(), 32);
    // The fact that history was lost must not get lost.
    assert_eq!(read(&archive, info.id, WhichVersion::Number(1), 0), whole);
    assert_eq!(info.versions.last().unwrap().number, 51);
    assert_whole(&archive);
}

#[test]
fn many_small_sources_share_a_commit() {
    let mut place = Place::new();
    let mut keeper = place.keeper();
    let sources: Vec<(String, Vec<u8>)> = (0..200).map(|seed| (format!("{seed}.jsonl"), lines(seed, 9))).collect();
    for (name, bytes) in &sources {
        let path = place.write(name, bytes);
        add(&mut keeper, &path, &label(name)).unwrap();
    }
    // It is invisible before it is committed.
    assert_eq!(place.archive().copies().count(), 0);
    keeper.commit(77).unwrap();
    let archive = place.archive();
    assert_eq!(archive.copies().count(), 200);
    for (name, bytes) in &sources {
        assert_eq!(last(&archive, &place.path(name)), *bytes);
    }
    let log = fs::read_to_string(place.store().join("log.jsonl")).unwrap();
    assert_eq!(log.matches("\"commit\":").count(), 1);
}

#[test]
fn a_source_added_twice_before_a_commit_has_one_copy() {
    let mut place = Place::new();
    let bytes = lines(9, 900);
    let mut keeper = place.keeper();
    let path = place.write("a.jsonl", &bytes[..500]);
    add(&mut keeper, &path, &label("a")).unwrap();
    place.write("a.jsonl", &bytes);
    assert_change(add(&mut keeper, &path, &label("a")).unwrap(), CopyChange::Grown);
    keeper.commit(1).unwrap();
    assert_eq!(last(&place.archive(), &path), bytes);
    drop(keeper);
    let mut keeper = place.keeper();
    assert!(keeper.warnings().is_empty());
    assert_change(add(&mut keeper, &path, &label("a")).unwrap(), CopyChange::Same);
}

#[test]
fn a_file_that_cannot_be_archived_is_an_error_and_harms_nothing() {
    let mut place = Place::new();
    let mut keeper = place.keeper();
    let path = place.write("a.jsonl", b"text\n");
    add(&mut keeper, &path, &label("a"));
    assert_eq!(keeper.add(&place.path("none"), &label("n")).unwrap_err().problem, Problem::Missing);
    assert_eq!(keeper.add(place.folder.path(), &label("n")).unwrap_err().problem, Problem::Folder);
    keeper.commit(1).unwrap();
    assert_eq!(last(&place.archive(), &path), b"text\n");
}

#[test]
fn one_writes_and_all_may_read() {
    let mut place = Place::new();
    let mut keeper = place.keeper();
    let refused = ArchiveWriter::open(Arc::new(Disk), &place.store()).unwrap_err();
    assert!(matches!(refused.problem, Problem::Locked { .. }));
    let mut reader = place.archive();
    place.keep(&mut keeper, "a.jsonl", b"one\n");
    assert_eq!(reader.copies().count(), 0);
    reader.refresh().unwrap();
    assert_eq!(last(&reader, &place.path("a.jsonl")), b"one\n");
    place.keep(&mut keeper, "a.jsonl", b"one\ntwo\n");
    reader.refresh().unwrap();
    assert_eq!(last(&reader, &place.path("a.jsonl")), b"one\ntwo\n");
    assert_eq!(reader.copies().next().unwrap(), keeper.copies().next().unwrap());
}

#[test]
fn a_copy_is_restored_whole_and_over_nothing_unless_asked() {
    let mut place = Place::new();
    let mut keeper = place.keeper();
    let bytes = lines(10, 5_000);
    let kept = place.keep(&mut keeper, "a.jsonl", &bytes);
    let archive = place.archive();
    let to = place.path("back.jsonl");
    assert_eq!(archive.restore(kept.copy, WhichVersion::Last, &to, IfExists::Fail).unwrap(), bytes.len() as u64);
    assert_eq!(fs::read(&to).unwrap(), bytes);
    fs::write(&to, "mine").unwrap();
    let refused = archive.restore(kept.copy, WhichVersion::Last, &to, IfExists::Fail).unwrap_err();
    assert_eq!(refused.problem, Problem::OutputExists);
    assert_eq!(fs::read(&to).unwrap(), b"mine");
    archive.restore(kept.copy, WhichVersion::Last, &to, IfExists::Replace).unwrap();
    assert_eq!(fs::read(&to).unwrap(), bytes);
    assert_eq!(
        archive.restore(kept.copy, WhichVersion::Number(9), &to, IfExists::Replace).unwrap_err().problem,
        Problem::NotKept
    );
}

#[test]
fn folders_are_known_until_they_are_removed() {
    let place = Place::new();
    let mut keeper = place.keeper();
    keeper.add_folder("/one".as_ref()).unwrap();
    keeper.add_folder("/two".as_ref()).unwrap();
    keeper.add_folder("/one".as_ref()).unwrap();
    keeper.remove_folder("/three".as_ref()).unwrap();
    keeper.commit(1).unwrap();
    assert_eq!(place.archive().folders(), ["/one", "/two"].map(std::path::PathBuf::from));
    keeper.remove_folder("/one".as_ref()).unwrap();
    keeper.commit(2).unwrap();
    assert_eq!(place.archive().folders(), ["/two"].map(std::path::PathBuf::from));
    assert_eq!(fs::read_to_string(place.store().join("log.jsonl")).unwrap().matches("folder").count(), 3);
}

#[test]
fn a_label_that_is_known_later_is_added_then() {
    let mut place = Place::new();
    let mut keeper = place.keeper();
    let path = place.write("a.jsonl", b"text\n");
    add(&mut keeper, &path, &Label::default());
    keeper.commit(1).unwrap();
    add(&mut keeper, &path, &label("s"));
    keeper.commit(2).unwrap();
    let archive = place.archive();
    assert_eq!(archive.copy_at(&path).unwrap().label, label("s"));
    assert_eq!(last(&archive, &path), b"text\n");
    add(&mut keeper, &path, &Label::default());
    keeper.commit(3).unwrap();
    assert_eq!(place.archive().copy_at(&path).unwrap().label, label("s"));
}

#[test]
fn an_archive_that_is_not_there_is_empty() {
    let place = Place::new();
    let archive = Archive::open(Arc::new(Disk), &place.path("none")).unwrap();
    assert_eq!(archive.copies().count(), 0);
    assert!(!place.path("none").exists());
}

#[cfg(unix)]
#[test]
fn only_the_owner_can_read_an_archive() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    drop(place.keeper());
    assert_eq!(fs::metadata(place.store()).unwrap().permissions().mode() & 0o777, 0o700);
}

//! Damage is found, limited to the sources whose bytes it hits, and repaired from sources that still exist.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;

use stenograph_store::Problem;
use stenograph_store::archive::{
    AddOutcome, Archive, ArchiveWriter, CopyChange, CopyId, IfExists, Repaired, WhichVersion,
};
use stenograph_store::files::{Disk, Files};

use crate::place::{Place, add, assert_change, assert_whole, label, last, lines};

fn log(place: &Place) -> PathBuf {
    place.store().join("log.jsonl")
}

fn repair(place: &Place) -> Repaired {
    let files: Arc<dyn Files> = Arc::new(Disk);
    ArchiveWriter::repair(&files, &place.store()).unwrap()
}

fn refused(place: &Place) -> Problem {
    let read = Archive::open(Arc::new(Disk), &place.store()).unwrap_err();
    let written = ArchiveWriter::open(Arc::new(Disk), &place.store()).unwrap_err();
    assert_eq!(read.problem, written.problem);
    assert!(read.hint().is_some(), "{read}");
    read.problem
}

/// The offsets of the commits in a log.
fn commits(log: &[u8]) -> Vec<usize> {
    memchr::memmem::find_iter(log, b"{\"archive\":").collect()
}

#[test]
fn a_flipped_bit_in_a_pack_costs_one_source_and_adding_it_again_heals_it() {
    let mut place = Place::new();
    let mut keeper = place.keeper();
    for seed in 0..4 {
        place.keep(&mut keeper, &format!("{seed}.jsonl"), &lines(seed, 3_000));
    }
    drop(keeper);
    let pack = &place.packs()[0];
    let whole = fs::read(pack).unwrap();
    let mut bad = whole.clone();
    let middle = bad.len() * 3 / 8;
    bad[middle] ^= 1;
    fs::write(pack, &bad).unwrap();
    let archive = place.archive();
    let mut steps = Vec::new();
    let verified = archive.verify(&mut |progress| {
        steps.push(progress);
        true
    });
    let verified = verified.unwrap();
    assert_eq!((verified.copies, verified.unmentioned), (4, 0));
    assert_eq!(verified.damaged.iter().map(|damaged| damaged.copy.0).collect::<Vec<_>>(), [1]);
    assert_eq!(steps.last().unwrap().done, steps.last().unwrap().total);
    let copies: Vec<_> = archive.copies().collect();
    assert_eq!(verified.damaged[0].bytes, copies[1].length);
    assert_eq!(verified.bytes, copies[0].length + copies[2].length + copies[3].length);
    let mut bytes = Vec::new();
    archive.read(copies[1].id, WhichVersion::Last, 0).unwrap().read_to_end(&mut bytes).unwrap_err();
    let to = place.path("back");
    let refused = archive.restore(copies[1].id, WhichVersion::Last, &to, IfExists::Fail).unwrap_err();
    assert_eq!(refused.problem, Problem::Damaged);
    assert!(!to.exists() && refused.hint().is_some());
    // Reclaiming space must not make it worse.
    let mut keeper = place.keeper();
    keeper.forget(&[copies[0].id, copies[2].id, copies[3].id], "").unwrap();
    let reclaimed = keeper.reclaim(1).unwrap();
    assert_eq!((reclaimed.packs, reclaimed.warnings.len()), (0, 1));
    assert!(fs::read(pack).unwrap().starts_with(&bad));
    // The source still exists, but the damage is unknown until the verification is recorded.
    let path = place.path("1.jsonl");
    assert_change(add(&mut keeper, &path, &label("1.jsonl")).unwrap(), CopyChange::Same);
    assert!(verified.is_unrecorded());
    keeper.record_damage(&verified).unwrap();
    keeper.commit(2).unwrap();
    drop(keeper);
    assert!(!place.archive().verify(&mut |_| true).unwrap().is_unrecorded());
    let mut keeper = place.keeper();
    let renewed = add(&mut keeper, &path, &label("1.jsonl")).unwrap();
    assert_change(renewed, CopyChange::Renewed);
    assert_eq!(renewed.added, renewed.length);
    keeper.commit(3).unwrap();
    assert_eq!(last(&place.archive(), &path), lines(1, 3_000));
    assert_eq!(keeper.reclaim(4).unwrap().packs, 1);
    assert_whole(&place.archive());
}

#[test]
fn pieces_of_a_missing_or_truncated_pack_are_not_reused_but_stored_again() {
    for is_missing in [true, false] {
        let mut place = Place::new();
        let mut keeper = place.keeper();
        let (bytes, gone) = (lines(1, 500), lines(3, 500));
        place.keep(&mut keeper, "a.jsonl", &bytes);
        let lost = place.keep(&mut keeper, "gone.jsonl", &gone);
        fs::remove_file(place.path("gone.jsonl")).unwrap();
        drop(keeper);
        let pack = &place.packs()[0];
        if is_missing {
            fs::remove_file(pack).unwrap();
        } else {
            fs::write(pack, &fs::read(pack).unwrap()[..100]).unwrap();
        }
        assert_eq!(place.archive().intact().unwrap().len(), 0);
        let mut keeper = place.keeper();
        assert_eq!(keeper.warnings().len(), 1, "{:?}", keeper.warnings());
        // A file with the lost content is stored and repairs the copy.
        let twin = place.keep(&mut keeper, "twin.jsonl", &bytes);
        assert_eq!(twin.added, twin.length);
        let archive = place.archive();
        for name in ["a.jsonl", "twin.jsonl"] {
            assert_eq!(last(&archive, &place.path(name)), bytes, "{name}");
        }
        assert_eq!(archive.intact().unwrap(), [CopyId(0), CopyId(2)].into());
        let verified = archive.verify(&mut |_| true).unwrap();
        assert_eq!(verified.damaged.iter().map(|damaged| damaged.copy).collect::<Vec<_>>(), [lost.copy]);
        assert!(verified.single_commits > 0);
        assert!(
            repair(&{
                drop(keeper);
                place
            })
            .to_packs
                > 0
        );
    }
}

#[test]
fn a_source_that_grew_is_whole_again_although_its_beginning_was_lost() {
    let mut place = Place::new();
    let mut keeper = place.keeper();
    let bytes = lines(1, 40_000);
    let middle = 5 << 20;
    assert!(bytes.len() > middle);
    place.keep(&mut keeper, "a.jsonl", &bytes[..middle]);
    drop(keeper);
    fs::remove_file(&place.packs()[0]).unwrap();
    let mut keeper = place.keeper();
    let kept = place.keep(&mut keeper, "a.jsonl", &bytes);
    assert_change(kept, CopyChange::Grown);
    assert_eq!(last(&place.archive(), &place.path("a.jsonl")), bytes);
}

#[test]
fn an_incomplete_last_commit_is_moved_aside_with_a_warning_and_nothing_is_lost() {
    let mut place = Place::new();
    let mut keeper = place.keeper();
    place.keep(&mut keeper, "a.jsonl", &lines(1, 500));
    let good = fs::read(log(&place)).unwrap();
    place.keep(&mut keeper, "b.jsonl", &lines(2, 500));
    drop(keeper);
    let (longer, pack) = (fs::read(log(&place)).unwrap(), fs::read(&place.packs()[0]).unwrap());
    for end in (good.len()..longer.len()).step_by(37) {
        for pack_is_whole in [true, false] {
            fs::write(log(&place), &longer[..end]).unwrap();
            let end_of_pack = if pack_is_whole { pack.len() } else { pack.len() - 1 };
            fs::write(&place.packs()[0], &pack[..end_of_pack]).unwrap();
            // A reader sees the complete commits of both places and changes nothing.
            let copies = 1 + usize::from(pack_is_whole);
            let archive = place.archive();
            assert_eq!(archive.copies().count(), copies);
            assert_eq!(archive.warnings().len(), usize::from(pack_is_whole));
            assert_eq!(last(&archive, &place.path("a.jsonl")), lines(1, 500));
            assert_eq!(fs::read(log(&place)).unwrap().len(), end);
            let keeper = place.keeper();
            let warnings = usize::from(pack_is_whole) + usize::from(end > good.len());
            assert_eq!(keeper.warnings().len(), warnings, "{:?}", keeper.warnings());
            assert_eq!(keeper.copies().count(), copies);
            drop(keeper);
            assert_eq!(fs::read(log(&place)).unwrap(), if pack_is_whole { &longer } else { &good }.as_slice());
            for extra in place.packs().into_iter().skip(1) {
                fs::remove_file(extra).unwrap();
            }
        }
    }
}

#[test]
fn a_damaged_commit_is_an_error_wherever_it_is_and_the_packs_repair_it() {
    let mut place = Place::new();
    let mut keeper = place.keeper();
    for seed in 0..4 {
        place.keep(&mut keeper, &format!("{seed}.jsonl"), &lines(seed, 100));
    }
    keeper.forget(&[CopyId(1)], "").unwrap();
    keeper.add_folder("/some/folder".as_ref()).unwrap();
    keeper.commit(9).unwrap();
    drop(keeper);
    let good = fs::read(log(&place)).unwrap();
    let ends = [&commits(&good)[1..], &[good.len()]].concat();
    assert_eq!(ends.len(), 5);
    for (at, end) in commits(&good).into_iter().zip(ends) {
        for position in [at, at + 20, (at + end) / 2, end - 1] {
            let mut bad = good.clone();
            bad[position] ^= 1;
            fs::write(log(&place), &bad).unwrap();
            assert_eq!(refused(&place), Problem::LogDamaged { at: at as u64 }, "{position}");
            let repaired = repair(&place);
            assert_eq!((repaired.commits, repaired.from_packs, repaired.lost.len()), (5, 1, 0), "{repaired:?}");
            assert_eq!(fs::read(repaired.moved_to.unwrap()).unwrap(), bad);
            assert_eq!(fs::read(log(&place)).unwrap(), good);
        }
    }
    assert_eq!(place.archive().copies().map(|copy| copy.id.0).collect::<Vec<_>>(), [0, 2, 3]);
    assert_whole(&place.archive());
}

#[test]
fn a_log_that_is_gone_or_older_is_read_from_the_packs_and_what_was_forgotten_stays_away() {
    let mut place = Place::new();
    let mut keeper = place.keeper();
    for seed in 0..6 {
        place.keep(&mut keeper, &format!("{seed}.jsonl"), &lines(seed, 3_000));
    }
    let older = fs::read(log(&place)).unwrap();
    keeper.forget(&[CopyId(0), CopyId(1), CopyId(2), CopyId(3)], "pruned").unwrap();
    // The pack with the first commits and the tombstones is rewritten and removed.
    assert_eq!(keeper.reclaim(5).unwrap().packs, 1);
    place.keep(&mut keeper, "6.jsonl", &lines(6, 10));
    drop(keeper);
    let good = fs::read(log(&place)).unwrap();
    for log_is_older in [false, true] {
        if log_is_older {
            fs::write(log(&place), &older).unwrap();
        } else {
            fs::remove_file(log(&place)).unwrap();
        }
        let archive = place.archive();
        assert_eq!(archive.warnings().len(), 1);
        assert_eq!(archive.copies().map(|copy| copy.id.0).collect::<Vec<_>>(), [4, 5, 6]);
        let mut keeper = place.keeper();
        assert_eq!(fs::read(log(&place)).unwrap(), good);
        for seed in 0..4 {
            let path = place.path(&format!("{seed}.jsonl"));
            assert_eq!(keeper.add(&path, &label("x")).unwrap(), AddOutcome::Forgotten);
        }
        drop(keeper);
        assert_whole(&place.archive());
    }
}

#[test]
fn a_commit_that_is_damaged_in_both_places_is_named_and_the_rest_is_rebuilt() {
    let mut place = Place::new();
    let mut keeper = place.keeper();
    for seed in 0..5 {
        place.keep(&mut keeper, &format!("{seed}.jsonl"), &lines(seed, 300));
    }
    keeper.forget(&[CopyId(0)], "").unwrap();
    keeper.commit(1).unwrap();
    // Changes that refer to the commit that will be lost.
    place.keep(&mut keeper, "2.jsonl", &[lines(2, 300), lines(9, 9)].concat());
    drop(keeper);
    let mut bad = fs::read(log(&place)).unwrap();
    let third = commits(&bad)[2];
    bad[third + 300] ^= 1;
    fs::write(log(&place), &bad).unwrap();
    let pack = &place.packs()[0];
    let mut bytes = fs::read(pack).unwrap();
    let blocks: Vec<usize> = memchr::memmem::find_iter(&bytes, b"STNBLOK2").collect();
    let commit = blocks[2 * 2 + 1];
    bytes[commit + 100] ^= 1;
    fs::write(pack, &bytes).unwrap();
    let repaired = repair(&place);
    assert_eq!(repaired.lost, [(3, 3)]);
    assert!(repaired.lines_lost > 0, "{repaired:?}");
    let archive = place.archive();
    let copies: BTreeSet<u32> = archive.copies().map(|copy| copy.id.0).collect();
    assert_eq!(copies, [1, 3, 4].into());
    assert_eq!(last(&archive, &place.path("4.jsonl")), lines(4, 300));
    let verified = archive.verify(&mut |_| true).unwrap();
    assert!(verified.damaged.is_empty() && verified.unmentioned >= 1, "{verified:?}");
    // Existing sources are archived again; forgotten ones are not.
    let mut keeper = place.keeper();
    assert!(add(&mut keeper, &place.path("2.jsonl"), &label("2.jsonl")).is_some());
    assert!(add(&mut keeper, &place.path("0.jsonl"), &label("0.jsonl")).is_none());
    keeper.commit(2).unwrap();
    assert_eq!(last(&place.archive(), &place.path("2.jsonl")), [lines(2, 300), lines(9, 9)].concat());
    assert_eq!(
        repair(&{
            drop(keeper);
            place
        })
        .lost,
        []
    );
}

#[test]
fn blocks_that_no_commit_mentions_are_counted() {
    let mut place = Place::new();
    let mut keeper = place.keeper();
    place.keep(&mut keeper, "a.jsonl", &lines(1, 500));
    let path = place.write("b.jsonl", &lines(2, 500));
    add(&mut keeper, &path, &label("b")).unwrap();
    drop(keeper);
    let verified = place.archive().verify(&mut |_| true).unwrap();
    assert_eq!((verified.unmentioned, verified.damaged.len()), (1, 0));
    // The next writer leaves them alone and stores the source again.
    let mut keeper = place.keeper();
    assert!(keeper.warnings().is_empty());
    place.keep(&mut keeper, "b.jsonl", &lines(2, 500));
    assert_eq!(last(&place.archive(), &path), lines(2, 500));
    assert_eq!(place.archive().verify(&mut |_| true).unwrap().unmentioned, 1);
}

#[test]
fn a_log_of_another_version_is_refused_and_left_alone() {
    let place = Place::new();
    let mut keeper = place.keeper();
    keeper.add_folder("/x".as_ref()).unwrap();
    keeper.commit(1).unwrap();
    drop(keeper);
    let text = fs::read_to_string(log(&place)).unwrap();
    let (head, lines) = text.split_once('\n').unwrap();
    let head = head.replace("{\"archive\":2,", "{\"archive\":99,");
    let (head, _) = head.split_once(",\"check\"").unwrap();
    let check = xxhash_rust::xxh3::xxh3_64(format!("{head}}}").as_bytes());
    let later = format!("{head},\"check\":\"{check:016x}\"}}\n{lines}");
    let earlier =
        "{\"archive\":1}\n{\"folder\":\"/x\"}\n{\"commit\":1,\"time\":1,\"sum\":\"0000000000000000\"}\n".to_owned();
    for (text, problem) in [(later, Problem::Newer), (earlier, Problem::Older)] {
        fs::write(log(&place), &text).unwrap();
        assert_eq!(refused(&place), problem);
        assert_eq!(fs::read_to_string(log(&place)).unwrap(), text);
    }
}

#[cfg(unix)]
#[test]
fn everything_in_the_archive_is_private_from_its_creation() {
    use std::os::unix::fs::PermissionsExt;
    fn check(path: &std::path::Path) {
        let mode = fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, if path.is_dir() { 0o700 } else { 0o600 }, "{}", path.display());
        if path.is_dir() {
            fs::read_dir(path).unwrap().for_each(|entry| check(&entry.unwrap().path()));
        }
    }
    let mut place = Place::new();
    let mut keeper = place.keeper();
    place.keep(&mut keeper, "a.jsonl", &lines(1, 50));
    check(&place.store());
    drop(keeper);
    let mut bad = fs::read(log(&place)).unwrap();
    bad[30] ^= 1;
    fs::write(log(&place), &bad).unwrap();
    repair(&place);
    let cut = fs::read(log(&place)).unwrap();
    fs::write(log(&place), &cut[..cut.len() - 1]).unwrap();
    drop(place.keeper());
    check(&place.store());
}

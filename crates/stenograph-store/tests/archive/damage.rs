//! What is damaged is found, told by copy, and stays where it is.

use std::fs;
use std::io::Read;

use stenograph_store::Problem;
use stenograph_store::archive::{Present, Which};

use crate::place::{Place, assert_whole, last, lines};

#[test]
fn verification_names_every_damaged_copy_and_goes_on() {
    let mut place = Place::new();
    let mut keeper = place.keeper();
    for seed in 0..4 {
        place.keep(&mut keeper, &format!("{seed}.jsonl"), &lines(seed, 3_000));
    }
    drop(keeper);
    let pack = &place.packs()[0];
    let whole = fs::read(pack).unwrap();
    let mut bad = whole.clone();
    let (second, last_byte) = (bad.len() / 4 + 5_000, bad.len() - 1);
    bad[second] ^= 1;
    bad[last_byte] ^= 1;
    fs::write(pack, &bad).unwrap();
    let archive = place.archive();
    let mut steps = Vec::new();
    let verified = archive.verify(&mut |progress| {
        steps.push(progress);
        true
    });
    assert_eq!(verified.copies, 4);
    assert_eq!(verified.damaged.iter().map(|damaged| damaged.copy.0).collect::<Vec<_>>(), [1, 3]);
    assert_eq!(steps.last().unwrap().done, steps.last().unwrap().total);
    let copies: Vec<_> = archive.copies().collect();
    assert_eq!(verified.damaged[0].bytes, copies[1].length);
    assert_eq!(verified.bytes, copies[0].length + copies[2].length);
    let mut bytes = Vec::new();
    archive.read(copies[1].id, Which::Last, 0).unwrap().read_to_end(&mut bytes).unwrap_err();
    let to = place.path("back");
    let refused = archive.restore(copies[1].id, Which::Last, &to, Present::Stays).unwrap_err();
    assert_eq!(refused.problem, Problem::Damaged);
    assert!(!to.exists() && refused.hint().is_some());
    // Reclaiming must not make it worse.
    let mut keeper = place.keeper();
    keeper.forget(&[copies[0].id, copies[2].id, copies[3].id], "").unwrap();
    let reclaimed = keeper.reclaim(1).unwrap();
    assert_eq!((reclaimed.packs, reclaimed.remarks.len()), (0, 1));
    assert_eq!(fs::read(pack).unwrap(), bad);
    fs::write(pack, whole).unwrap();
    assert_eq!(keeper.reclaim(1).unwrap().packs, 1);
    assert_whole(&place.archive());
    assert_eq!(last(&place.archive(), &copies[1].path), lines(1, 3_000));
}

#[test]
fn a_pack_that_is_gone_is_said_to_be_and_the_rest_is_read() {
    let mut place = Place::new();
    let mut keeper = place.keeper();
    let first = place.keep(&mut keeper, "a.jsonl", &lines(1, 500));
    drop(keeper);
    fs::remove_file(&place.packs()[0]).unwrap();
    let mut keeper = place.keeper();
    assert_eq!(keeper.remarks().len(), 1);
    place.keep(&mut keeper, "b.jsonl", &lines(2, 500));
    let archive = place.archive();
    assert_eq!(last(&archive, &place.path("b.jsonl")), lines(2, 500));
    let verified = archive.verify(&mut |_| true);
    assert_eq!(verified.damaged.len(), 1);
    assert_eq!(verified.damaged[0].copy, first.copy);
}

#[test]
fn half_a_commit_is_moved_aside_and_half_a_frame_is_cut_off() {
    let mut place = Place::new();
    let mut keeper = place.keeper();
    place.keep(&mut keeper, "a.jsonl", &lines(1, 500));
    let log = place.store().join("log.jsonl");
    let (good, pack) = (fs::read(&log).unwrap(), fs::read(&place.packs()[0]).unwrap());
    place.keep(&mut keeper, "b.jsonl", &lines(2, 500));
    drop(keeper);
    let (longer, longer_pack) = (fs::read(&log).unwrap(), fs::read(&place.packs()[0]).unwrap());
    let step = 37;
    for end in (good.len() + 1..longer.len()).step_by(step) {
        fs::write(&log, &longer[..end]).unwrap();
        let pack_end = pack.len() + (end % 7) * (longer_pack.len() - pack.len()) / 7;
        fs::write(&place.packs()[0], &longer_pack[..pack_end]).unwrap();
        // Who only reads sees what was committed, and changes nothing.
        let archive = place.archive();
        assert_eq!(archive.copies().count(), 1);
        assert_eq!(last(&archive, &place.path("a.jsonl")), lines(1, 500));
        assert_eq!(fs::read(&log).unwrap().len(), end);
        let keeper = place.keeper();
        assert_eq!(keeper.remarks().len(), 1 + usize::from(pack_end > pack.len()), "{:?}", keeper.remarks());
        drop(keeper);
        assert_eq!(fs::read(&log).unwrap(), good);
        assert_eq!(fs::read(&place.packs()[0]).unwrap(), pack);
    }
}

#[test]
fn frames_that_no_commit_speaks_of_are_used_and_not_thrown_away() {
    let mut place = Place::new();
    let mut keeper = place.keeper();
    place.keep(&mut keeper, "a.jsonl", &lines(1, 500));
    let log = place.store().join("log.jsonl");
    let good = fs::read(&log).unwrap();
    place.keep(&mut keeper, "b.jsonl", &lines(2, 5_000));
    drop(keeper);
    fs::write(&log, &good).unwrap();
    let stored = place.stored();
    let mut keeper = place.keeper();
    assert_eq!(place.keep(&mut keeper, "b.jsonl", &lines(2, 5_000)).added, 0);
    assert_eq!(place.stored(), stored);
    assert_eq!(last(&place.archive(), &place.path("b.jsonl")), lines(2, 5_000));
    drop(keeper);
    // Even when the whole log is lost: then nothing that is still there is stored again.
    fs::remove_file(&log).unwrap();
    let mut keeper = place.keeper();
    assert_eq!(place.keep(&mut keeper, "a.jsonl", &lines(1, 500)).added, 0);
    assert_eq!(place.keep(&mut keeper, "b.jsonl", &lines(2, 5_000)).added, 0);
    assert_eq!(place.stored(), stored);
    assert_whole(&place.archive());
}

#[test]
fn a_damaged_line_in_the_middle_costs_what_it_says_and_no_more() {
    let mut place = Place::new();
    let mut keeper = place.keeper();
    for seed in 0..3 {
        place.keep(&mut keeper, &format!("{seed}.jsonl"), &lines(seed, 100));
    }
    drop(keeper);
    let log = place.store().join("log.jsonl");
    let text = fs::read_to_string(&log).unwrap();
    fs::write(&log, text.replacen("{\"keep\":1", "{\"keeb\":1", 1)).unwrap();
    let keeper = place.keeper();
    assert_eq!(keeper.remarks().len(), 2, "{:?}", keeper.remarks());
    assert_eq!(fs::read(&log).unwrap().len(), text.len());
    let archive = place.archive();
    assert_eq!(archive.copies().map(|copy| copy.id.0).collect::<Vec<_>>(), [0, 2]);
    assert_eq!(last(&archive, &place.path("2.jsonl")), lines(2, 100));
}

#[test]
fn a_log_of_a_later_version_is_left_alone() {
    let place = Place::new();
    let mut keeper = place.keeper();
    keeper.add_folder("/x".as_ref()).unwrap();
    keeper.commit(1).unwrap();
    drop(keeper);
    let log = place.store().join("log.jsonl");
    let text = fs::read_to_string(&log).unwrap();
    let (lines, commit) = text.trim_end().rsplit_once('\n').unwrap();
    let lines = lines.replace("{\"archive\":1}", "{\"archive\":99}") + "\n";
    let sum = format!("{:016x}\"}}\n", xxhash_rust::xxh3::xxh3_64(lines.as_bytes()));
    let later = lines + commit.split_at(commit.len() - 18).0 + &sum;
    fs::write(&log, &later).unwrap();
    let files = std::sync::Arc::new(stenograph_store::files::Disk);
    let refused = stenograph_store::archive::Keeper::open(files.clone(), &place.store()).unwrap_err();
    assert_eq!(refused.problem, Problem::Newer);
    assert_eq!(stenograph_store::archive::Archive::open(files, &place.store()).unwrap_err().problem, Problem::Newer);
    assert_eq!(fs::read_to_string(&log).unwrap(), later);
}

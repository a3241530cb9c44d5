//! Damage to any byte of the log and the packs: nothing panics, nothing is lost silently, nothing is read wrongly, and adding
//! the sources again repairs everything that still exists.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stenograph_store::Problem;
use stenograph_store::archive::{AddOutcome, Archive, ArchiveWriter, CopyId, ForgottenState, Label, WhichVersion};
use stenograph_store::files::{Disk, Files};

use crate::place::{Place, label, lines};

/// The content of every version of every copy.
type Expected = BTreeMap<(CopyId, u32), Vec<u8>>;

struct Scene {
    place: Place,
    expected: Expected,
    /// The sources that still exist.
    present: Vec<PathBuf>,
    forgotten: Vec<PathBuf>,
}

fn scene() -> Scene {
    let mut place = Place::new();
    let mut keeper = place.keeper();
    let mut expected = Expected::new();
    let mut keep = |place: &mut Place, keeper: &mut ArchiveWriter, name: &str, bytes: Vec<u8>| {
        let kept = place.keep(keeper, name, &bytes);
        expected.insert((kept.copy, kept.version), bytes);
        kept.copy
    };
    for seed in 0..6_u64 {
        keep(&mut place, &mut keeper, &format!("{seed}.jsonl"), lines(seed, 20 + 30 * seed as usize));
    }
    keep(&mut place, &mut keeper, "1.jsonl", [lines(1, 50), lines(11, 5)].concat());
    keep(&mut place, &mut keeper, "2.jsonl", lines(12, 40));
    keep(&mut place, &mut keeper, "twin.jsonl", lines(4, 140));
    let pruned: Vec<CopyId> =
        (20..24).map(|seed| keep(&mut place, &mut keeper, &format!("{seed}.jsonl"), lines(seed, 400))).collect();
    keeper.forget(&pruned, "pruned").unwrap();
    keeper.add_folder("/some/folder".as_ref()).unwrap();
    assert_eq!(keeper.reclaim(7).unwrap().packs, 1);
    keep(&mut place, &mut keeper, "last.jsonl", lines(30, 3));
    expected.retain(|(copy, _), _| !pruned.contains(copy));
    let paths: Vec<PathBuf> = keeper.copies().map(|copy| copy.path).collect();
    drop(keeper);
    for gone in ["3.jsonl", "5.jsonl"] {
        fs::remove_file(place.path(gone)).unwrap();
    }
    let forgotten = (20..24).map(|seed| place.path(&format!("{seed}.jsonl"))).collect();
    let present = paths.into_iter().filter(|path| path.exists()).collect();
    Scene { place, expected, present, forgotten }
}

#[derive(Clone, Copy, Debug)]
enum Harm {
    Flip,
    Zeros,
    Truncate,
    Insert,
    Delete,
}

fn harm(random: &mut fastrand::Rng, path: &Path, kind: Harm) -> usize {
    let mut bytes = fs::read(path).unwrap();
    let at = random.usize(..bytes.len());
    match kind {
        Harm::Flip => bytes[at] ^= 1 << random.u8(..8),
        Harm::Zeros => {
            let end = (at + random.usize(1..200)).min(bytes.len());
            bytes[at..end].fill(0);
        }
        Harm::Truncate => bytes.truncate(at),
        Harm::Insert => _ = bytes.splice(at..at, *b"{\"archive\":2,"),
        Harm::Delete => {
            fs::remove_file(path).unwrap();
            return at;
        }
    }
    fs::write(path, bytes).unwrap();
    at
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap().is_dir() {
            true => copy_folder(&entry.path(), &to.join(entry.file_name())),
            false => _ = fs::copy(entry.path(), to.join(entry.file_name())).unwrap(),
        }
    }
}

/// The versions that cannot be read; all others must be correct.
fn unreadable(archive: &Archive, expected: &Expected, case: &str) -> BTreeSet<(CopyId, u32)> {
    let versions = |copy: stenograph_store::archive::CopyInfo| {
        copy.versions.into_iter().map(move |version| (copy.id, version.number))
    };
    let found: BTreeSet<(CopyId, u32)> = archive.copies().flat_map(versions).collect();
    assert_eq!(found, expected.keys().copied().collect(), "{case}: copies are lost or came back");
    let mut unreadable = BTreeSet::new();
    for ((copy, version), bytes) in expected {
        let mut read = Vec::new();
        match archive.read(*copy, WhichVersion::Number(*version), 0).unwrap().read_to_end(&mut read) {
            Ok(_) => assert!(read == *bytes, "{case}: {copy} {version} is read wrongly"),
            Err(_) => _ = unreadable.insert((*copy, *version)),
        }
    }
    unreadable
}

#[test]
fn no_damage_loses_anything_silently_and_existing_sources_repair_it() {
    let seed = std::env::var("STENO_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(20_261_116);
    let rounds = std::env::var("STENO_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(400);
    let scene = scene();
    let mut random = fastrand::Rng::with_seed(seed);
    let original = scene.place.store();
    let mut targets = vec![PathBuf::from("log.jsonl")];
    targets.extend(scene.place.packs().iter().map(|pack| pack.strip_prefix(&original).unwrap().to_owned()));
    let files: Arc<dyn Files> = Arc::new(Disk);
    let (mut refusals, mut losses) = (0, 0);
    for round in 0..rounds {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("archive");
        copy_folder(&original, &store);
        let target = &targets[round % targets.len()];
        let kind = match round / targets.len() % 12 {
            0..6 => Harm::Flip,
            6 | 7 => Harm::Zeros,
            8 | 9 => Harm::Truncate,
            10 => Harm::Insert,
            _ => Harm::Delete,
        };
        let at = harm(&mut random, &store.join(target), kind);
        let case = format!("seed {seed} round {round}: {kind:?} {} at {at}", target.display());
        let mut archive = Archive::open(Arc::clone(&files), &store);
        if let Err(error) = &archive {
            assert!(matches!(error.problem, Problem::LogDamaged { .. }), "{case}: {error}");
            refusals += 1;
            let repaired = ArchiveWriter::repair(&files, &store).unwrap();
            assert!(repaired.lost.is_empty() && repaired.lines_lost == 0, "{case}: {repaired:?}");
            archive = Archive::open(Arc::clone(&files), &store);
        }
        let archive = archive.unwrap_or_else(|error| panic!("{case}: {error}"));
        let bad = unreadable(&archive, &scene.expected, &case);
        losses += bad.len();
        let verified = archive.verify(&mut |_| true).unwrap();
        let reported: BTreeSet<(CopyId, u32)> =
            verified.damaged.iter().map(|damaged| (damaged.copy, damaged.version)).collect();
        assert_eq!(reported, bad, "{case}: verification reports something else");
        let mut writer = ArchiveWriter::open(Arc::clone(&files), &store).unwrap();
        if verified.is_unrecorded() {
            writer.record_damage(&verified).unwrap();
        }
        for path in &scene.present {
            let name = path.file_name().unwrap().to_str().unwrap();
            let added = writer.add(path, &label(name)).unwrap();
            assert!(matches!(added, AddOutcome::Archived(_)), "{case}: {name} {added:?}");
        }
        for path in &scene.forgotten {
            let forgotten_state = writer.forgotten_state(&Label::default(), path).unwrap();
            assert_eq!(forgotten_state, ForgottenState::Forgotten, "{case}: {} came back", path.display());
        }
        assert_eq!(writer.folders(), [PathBuf::from("/some/folder")], "{case}");
        writer.commit(99).unwrap();
        drop(writer);
        let archive = Archive::open(Arc::clone(&files), &store).unwrap();
        for (copy, version) in unreadable(&archive, &scene.expected, &case) {
            let info = archive.copy(copy).unwrap();
            let is_last = info.versions.last().unwrap().number == version;
            assert!(!is_last || !scene.present.contains(&info.path), "{case}: {} is not healed", info.path.display());
        }
    }
    assert!(refusals > 0 && losses > 0, "{refusals} {losses}");
}

//! Archiving and restoring runs, on a real disk and on one whose calls fail one after the other.

use super::*;
use crate::files::Disk;
use crate::layouts::devflow::index;
use crate::layouts::testing::Stopping;

const METADATA: &str = r#"{"flowId":"review","startedAt":"2026-01-05T09:00:00Z","endedAt":"2026-01-05T09:10:00Z","status":"completed","totalTokensIn":1,"totalTokensOut":2,"totalCost":0,"turnCount":1}"#;

fn base() -> (tempfile::TempDir, Base) {
    let folder = tempfile::tempdir().unwrap();
    let base = Base::at(&folder.path().join("base"));
    fs::create_dir_all(base.runs()).unwrap();
    (folder, base)
}

fn make_run(base: &Base, id: &str) -> DevflowRun {
    let folder = base.run(id);
    fs::create_dir_all(folder.join("artifacts/files/empty")).unwrap();
    fs::write(folder.join("metadata.json"), METADATA).unwrap();
    fs::write(folder.join("artifacts/files").join("n".repeat(180)), vec![7; 200_000]).unwrap();
    fs::write(folder.join("artifacts/none"), "").unwrap();
    DevflowRun::read(base, id)
}

fn found(base: &Base) -> Vec<ArchivedRun> {
    list(&Disk, base).unwrap()
}

fn contents(base: &Base, id: &str) -> Vec<(PathBuf, Option<Vec<u8>>)> {
    let entries = tree::walk(&Disk, &base.run(id)).unwrap();
    entries.into_iter().map(|entry| (entry.path.clone(), fs::read(base.run(id).join(&entry.path)).ok())).collect()
}

#[test]
fn an_archived_run_is_restored_unchanged() {
    let (_folder, base) = base();
    let run = make_run(&base, "2025-12-31-review-42");
    let before = contents(&base, &run.id);
    let maintenance = Maintenance::enter(&Disk, &base).unwrap();
    let path = maintenance.archive(&run).unwrap();
    assert_eq!(path, base.archive().join("2025-12/2025-12-31-review-42.tar.gz"));
    assert!(!base.run(&run.id).exists() && index::read_all(&Disk, &base).unwrap().is_empty());
    let archived = found(&base);
    assert_eq!(archived.len(), 1);
    maintenance.restore(&archived[0], ArchiveAfterRestore::Kept).unwrap();
    assert_eq!(contents(&base, &run.id), before);
    assert_eq!(found(&base).len(), 1);
    // The folder and its archive are equal, so only the folder must be removed.
    assert_eq!(maintenance.archive(&run).unwrap(), path);
    maintenance.restore(&archived[0], ArchiveAfterRestore::Removed).unwrap();
    assert_eq!(contents(&base, &run.id), before);
    assert!(found(&base).is_empty());
}

#[test]
fn the_month_is_that_of_the_id_else_of_the_beginning() {
    let (_folder, base) = base();
    let run = make_run(&base, "nightly");
    let path = Maintenance::enter(&Disk, &base).unwrap().archive(&run).unwrap();
    assert_eq!(path, base.archive().join("2026-01/nightly.tar.gz"));
}

#[test]
fn nothing_that_is_there_is_overwritten() {
    let (_folder, base) = base();
    let run = make_run(&base, "a");
    let maintenance = Maintenance::enter(&Disk, &base).unwrap();
    maintenance.archive(&run).unwrap();
    make_run(&base, "a");
    fs::write(base.run("a").join("metadata.json"), METADATA.replace("review", "other")).unwrap();
    assert_eq!(maintenance.archive(&DevflowRun::read(&base, "a")).unwrap_err().problem, Problem::Differs);
    assert_eq!(
        maintenance.restore(&found(&base)[0], ArchiveAfterRestore::Removed).unwrap_err().problem,
        Problem::Exists
    );
    assert!(fs::read_to_string(base.run("a").join("metadata.json")).unwrap().contains("other"));
    assert_eq!(found(&base).len(), 1);
}

#[test]
fn an_active_run_or_one_with_a_link_is_not_archived() {
    let (_folder, base) = base();
    let maintenance = Maintenance::enter(&Disk, &base).unwrap();
    let run = DevflowRun { status: RunStatus::Running, ..make_run(&base, "a") };
    assert_eq!(maintenance.archive(&run).unwrap_err().problem, Problem::Running);
    assert_eq!(maintenance.remove(&run).unwrap_err().problem, Problem::Running);
    let run = make_run(&base, "b");
    let lock = Lock::take(&lock::lock_path(&base.run("b").join(JOURNAL))).unwrap();
    assert!(matches!(maintenance.archive(&run).unwrap_err().problem, Problem::Locked { .. }));
    drop(lock);
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("/", base.run("b").join("artifacts/link")).unwrap();
        assert_eq!(maintenance.archive(&run).unwrap_err().problem, Problem::Odd);
        assert!(base.run("b").exists() && found(&base).is_empty());
    }
}

#[test]
fn only_one_process_moves_runs() {
    let (_folder, base) = base();
    let _house = Maintenance::enter(&Disk, &base).unwrap();
    let holder = Some(std::process::id());
    assert_eq!(Maintenance::enter(&Disk, &base).unwrap_err().problem, Problem::Locked { holder });
}

fn tar_of(entries: &[(&str, tar::EntryType)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    for (name, kind) in entries {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(*kind);
        header.set_size(if *kind == tar::EntryType::Regular { 4 } else { 0 });
        // The crate itself would refuse to write such names.
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        if matches!(kind, tar::EntryType::Symlink | tar::EntryType::Link) {
            header.set_link_name("/etc").unwrap();
        }
        header.set_cksum();
        builder.append(&header, if *kind == tar::EntryType::Regular { b"evil".as_slice() } else { b"" }).unwrap();
    }
    builder.into_inner().unwrap().finish().unwrap()
}

#[test]
fn an_archive_that_would_write_elsewhere_is_refused_whole() {
    use tar::EntryType::{Directory, Link, Regular, Symlink};
    let (folder, base) = base();
    fs::create_dir_all(base.archive().join("2026-01")).unwrap();
    let path = base.archive().join("2026-01/r.tar.gz");
    let maintenance = Maintenance::enter(&Disk, &base).unwrap();
    for bad in [
        &[("r/a", Regular), ("r/../../out", Regular)][..],
        &[("/tmp/out", Regular)],
        &[("../out", Regular)],
        &[("s/out", Regular)],
        &[("r", Regular)],
        &[("r/link", Symlink), ("r/link/passwd", Regular)],
        &[("r/link", Link)],
    ] {
        fs::write(&path, tar_of(bad)).unwrap();
        let refused = maintenance.restore(&found(&base)[0], ArchiveAfterRestore::Removed).unwrap_err();
        assert_eq!(refused.problem, Problem::LeadsOut, "{bad:?}");
        assert!(index::read_all(&Disk, &base).unwrap().is_empty() && path.exists());
        assert_eq!(fs::read_dir(base.runs()).unwrap().count(), 0);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
    // The same file twice is refused too; damage and emptiness are distinguished from it.
    fs::write(&path, tar_of(&[("r/a", Regular), ("r/a", Regular)])).unwrap();
    maintenance.restore(&found(&base)[0], ArchiveAfterRestore::Removed).unwrap_err();
    let good = tar_of(&[("r", Directory), ("r/a", Regular)]);
    fs::write(&path, &good[..good.len() - 9]).unwrap();
    let cut = maintenance.restore(&found(&base)[0], ArchiveAfterRestore::Removed).unwrap_err();
    assert!(matches!(cut.problem, Problem::Truncated(_)), "{cut}");
    fs::write(&path, tar_of(&[])).unwrap();
    maintenance.restore(&found(&base)[0], ArchiveAfterRestore::Removed).unwrap_err();
    fs::write(&path, &good).unwrap();
    maintenance.restore(&found(&base)[0], ArchiveAfterRestore::Removed).unwrap();
    assert_eq!(fs::read(base.run("r").join("a")).unwrap(), b"evil");
}

#[test]
fn a_crash_at_any_call_leaves_the_run_whole_in_one_of_its_places() {
    for last in 0.. {
        let (_folder, base) = base();
        let run = make_run(&base, "a");
        let before = contents(&base, "a");
        let files = Stopping::after(last);
        let put_away = Maintenance::enter(&files, &base).and_then(|maintenance| maintenance.archive(&run));
        // Whatever happened, a retry on a working disk succeeds, both ways.
        let maintenance = Maintenance::enter(&Disk, &base).unwrap();
        if base.run("a").exists() {
            assert_eq!(contents(&base, "a"), before, "call {last}");
            maintenance.archive(&run).unwrap();
        }
        let archived = found(&base);
        drop(maintenance);
        let files = Stopping::after(last);
        let back = Maintenance::enter(&files, &base)
            .and_then(|maintenance| maintenance.restore(&archived[0], ArchiveAfterRestore::Removed));
        let maintenance = Maintenance::enter(&Disk, &base).unwrap();
        if !base.run("a").exists() {
            maintenance.restore(&archived[0], ArchiveAfterRestore::Removed).unwrap();
        }
        assert_eq!(contents(&base, "a"), before, "call {last}");
        assert_eq!(fs::read_dir(base.runs()).unwrap().count(), 1, "call {last}");
        if put_away.is_ok() && back.is_ok() {
            assert!(last > 10);
            break;
        }
    }
}

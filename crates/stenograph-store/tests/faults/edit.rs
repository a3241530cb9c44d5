//! New files and edits on a failing disk: a file has its old or its new content, never anything else, and an edit can be
//! undone.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use stenograph_store::edit::FileEdit;
use stenograph_store::files::Files;
use stenograph_store::undo::{EditCommand, UndoOutcome, undo_on};
use stenograph_store::{Error, Existing, NewFile, Problem};

use crate::disk::{FaultyDisk, files_below, memory};
use crate::plan::{Planned, every_failure, rounds, seed};

const BEFORE: &[u8] = b"one\ntwo\nthree\n";
const AFTER: &[u8] = b"one\nthree\n";

fn on(disk: &FaultyDisk) -> Arc<dyn Files> {
    Arc::new(disk.clone())
}

fn create(disk: &FaultyDisk, path: &Path, existing: Existing) -> Result<(), Error> {
    let mut file = NewFile::options().existing(existing).on(&on(disk)).create(path, [])?;
    file.write_all(AFTER).map_err(|error| Error::at(path, Problem::Unwritable, error))?;
    file.commit()
}

fn edit(disk: &FaultyDisk, path: &Path) -> Result<(), Error> {
    let edit = FileEdit::begin_on(&on(disk), path)?;
    let mut out = edit.output()?;
    out.write_all(AFTER).map_err(|error| Error::at(path, Problem::Unwritable, error))?;
    edit.finish(out, EditCommand::Cut).map(drop)
}

/// Does something on a disk that fails in every way, then checks the result.
fn in_every_way(
    before: Option<&[u8]>,
    act: &dyn Fn(&FaultyDisk, &Path) -> Result<(), Error>,
    look: &dyn Fn(&FaultyDisk, &Path, bool, &str),
) {
    let start = || {
        let folder = memory();
        let path = folder.path().join("file");
        if let Some(before) = before {
            fs::write(&path, before).unwrap();
        }
        let disk = FaultyDisk::new(folder.path());
        (folder, path, disk)
    };
    let (_folder, path, disk) = start();
    disk.plan(&[]);
    act(&disk, &path).unwrap();
    let calls = disk.calls();
    let failures: Vec<Vec<Planned>> = every_failure(&calls).into_iter().map(|planned| vec![planned]).collect();
    for plan in failures {
        let (_folder, path, disk) = start();
        disk.plan(&plan);
        let done = act(&disk, &path).is_ok();
        disk.heal();
        look(&disk, &path, done, &format!("{plan:?}"));
    }
    let mut random = fastrand::Rng::with_seed(seed());
    for round in 0..rounds(3) {
        for call in 0..=calls.len() {
            let (_folder, path, disk) = start();
            disk.plan(&[]);
            disk.cut_power_at(call);
            let done = act(&disk, &path).is_ok();
            disk.cut_power();
            disk.restart(&mut random);
            look(&disk, &path, done, &format!("power cut at {call}, round {round}"));
        }
    }
}

#[test]
fn a_new_file_is_whole_or_not_there() {
    in_every_way(None, &|disk, path| create(disk, path, Existing::Refused), &|_, path, done, case| {
        let found = fs::read(path).ok();
        assert!(found.is_none() && !done || found.as_deref() == Some(AFTER), "{case}: {found:?}");
    });
}

#[test]
fn a_file_that_is_replaced_is_the_old_one_or_the_new_one() {
    in_every_way(Some(BEFORE), &|disk, path| create(disk, path, Existing::Replaced), &|_, path, done, case| {
        let found = fs::read(path).unwrap();
        assert!(found == AFTER || !done && found == BEFORE, "{case}: {found:?}");
    });
}

#[test]
fn an_edit_happens_or_not_and_can_be_undone() {
    in_every_way(Some(BEFORE), &edit, &|disk, path, done, case| {
        let found = fs::read(path).unwrap();
        assert!(found == AFTER || !done && found == BEFORE, "{case}: {found:?}");
        match undo_on(&on(disk), path).unwrap() {
            UndoOutcome::Restored { .. } | UndoOutcome::AlreadyRestored => {}
            UndoOutcome::Nothing => assert_eq!(found, BEFORE, "{case}"),
            outcome @ (UndoOutcome::Changed
            | UndoOutcome::Damaged { .. }
            | UndoOutcome::Removed
            | UndoOutcome::MovedBack { .. }
            | UndoOutcome::Continued) => panic!("{case}: {outcome:?}"),
        }
        assert_eq!(fs::read(path).unwrap(), BEFORE, "{case}");
        assert!(!path.with_file_name("file.undo").exists(), "{case}: {:?}", files_below(path.parent().unwrap()));
    });
}

#[test]
fn an_undo_happens_or_can_be_done_again() {
    let act = |disk: &FaultyDisk, path: &Path| {
        edit(disk, path)?;
        undo_on(&on(disk), path).map(drop)
    };
    in_every_way(Some(BEFORE), &act, &|disk, path, _, case| {
        // However far it came, undoing to the end restores the file.
        while let UndoOutcome::Restored { .. } | UndoOutcome::AlreadyRestored = undo_on(&on(disk), path).unwrap() {}
        assert_eq!(fs::read(path).unwrap(), BEFORE, "{case}");
    });
}

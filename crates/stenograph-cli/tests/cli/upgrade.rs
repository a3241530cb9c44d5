//! The law *upgrade*: files that an earlier version wrote still work, and files of a later version are kept and reported, never damaged.
//! `upgrade/1` holds files of version 1, `upgrade/2` an archive with marks, `upgrade/3` an embedded source with its session; a version that changes a format adds a folder and keeps the
//! others.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;

use crate::runner::Folder;

const SOURCE: &[u8] = include_bytes!("../upgrade/1/source.jsonl");
const NATIVE: &str = include_str!("../upgrade/1/native.jsonl");
const CARRIED: &str = include_str!("../upgrade/1/carried.jsonl");
const JOURNAL: &str = include_str!("../upgrade/1/journal.jsonl");

/// A store that has `source.jsonl`, whose file was deleted. It lacks the seal, as if the run that made it was killed: the seal
/// states the times of files, which a copy does not keep.
const STORE: &[u8] = include_bytes!("../upgrade/1/store.tar.gz");

/// An archive with `source.jsonl`, which is pinned and has a tag, a title, a note about its second event, and no index.
const MARKED_ARCHIVE: &[u8] = include_bytes!("../upgrade/2/archive.tar.gz");

/// The same source, embedded with its session.
const CARRIED_WITH_SESSION: &str = include_str!("../upgrade/3/carried.jsonl");

#[test]
fn an_embedded_source_with_its_session_still_works() {
    assert!(CARRIED_WITH_SESSION.contains("\"in\":\"codex\",\"session\":"));
    let folder = Folder::with("carried", CARRIED_WITH_SESSION);
    assert_eq!(folder.run("convert carried --to claude-code").ends(0).out, SOURCE);
}

#[test]
fn files_of_version_1_still_work() {
    let folder = Folder::with("native", NATIVE);
    folder.write("carried", CARRIED);
    folder.write("journal", JOURNAL);
    assert_eq!(folder.run("convert carried --to claude-code").ends(0).out, SOURCE);
    folder.run("check native").ends(0).says("no notes");
    assert_eq!(folder.run("convert native --to steno").ends(0).out, NATIVE.as_bytes());
    folder.run("check journal").ends(0).says("5 records").says("no notes");
    assert_eq!(folder.run("convert journal --to steno").ends(0).out, JOURNAL.as_bytes());
}

#[test]
fn lines_of_a_later_version_are_kept_and_reported() {
    let later = NATIVE.replace("{\"v\":1,", "{\"v\":2,");
    let folder = Folder::with("later", &later);
    folder.run("check later").ends(1).says("unknown_type");
    assert_eq!(folder.run("convert later --from steno --to steno").ends(0).out, later.as_bytes());
}

#[test]
fn a_source_that_a_later_version_embedded_is_reported() {
    let folder = Folder::with("later", CARRIED.replace("\"steno\":{\"v\":1,", "\"steno\":{\"v\":2,"));
    folder
        .run("check later")
        .ends(1)
        .says("embeds its source in version 2, which this version of steno cannot restore");
    folder.run("convert later --to claude-code -o out").ends(0).talks("notes about the source");
}

fn store() -> Folder {
    let folder = Folder::new();
    tar::Archive::new(GzDecoder::new(STORE)).unpack(folder.path("")).unwrap();
    fs::create_dir(folder.path("home")).unwrap();
    folder
}

#[test]
fn a_store_of_version_1_is_opened_searched_verified_and_restored() {
    let folder = store();
    folder.run("archive verify").ends(0).talks("no damage");
    folder.run("archive restore 8c1f -o back.jsonl").ends(0);
    assert_eq!(folder.read("back.jsonl"), SOURCE);
    // An index of an earlier version is rebuilt from the archive.
    folder.run("index --root home").ends(0).talks("1 gone");
    folder.run("find leap_days role:user").ends(0).says("8c1f5a52");
    folder.run("show 8c1f").ends(0).says("leap_days");
    folder.run("list").ends(0).says("Fix the leap day test");
}

#[test]
fn an_archive_with_marks_still_has_them() {
    let folder = Folder::new();
    tar::Archive::new(GzDecoder::new(MARKED_ARCHIVE)).unpack(folder.path("")).unwrap();
    fs::create_dir(folder.path("home")).unwrap();
    folder.run("archive verify").ends(0).talks("no damage");
    folder.run("index --root home").ends(0).talks("1 gone");
    let json = folder.run("mark 8c1f --json").ends(0).json().remove(0);
    assert_eq!(
        (&json["pinned"], &json["title"], &json["tags"][0]),
        (&true.into(), &"Leap days".into(), &"almanac".into())
    );
    // The key of the event is still the same.
    assert_eq!((&json["notes"][0]["text"], &json["notes"][0]["event"]), (&"the answer".into(), &2.into()));
}

/// The files below a folder, except locks, which are empty or hold a process id.
fn contents(folder: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            contents(&path, found);
        } else if path.extension().is_none_or(|ending| ending != "lock") {
            found.insert(path.clone(), fs::read(path).unwrap());
        }
    }
}

#[test]
fn a_store_of_a_later_version_is_refused_and_left_unchanged() {
    let folder = store();
    let mut database = folder.read("store/index/catalogue.db");
    // The version that SQLite stores for its user.
    database[60..64].copy_from_slice(&1000_u32.to_be_bytes());
    folder.write("store/index/catalogue.db", database);
    folder.write("store/archive/log.jsonl", "{\"archive\":1000}\n");
    let (mut before, mut after) = (BTreeMap::new(), BTreeMap::new());
    contents(&folder.path("store"), &mut before);
    for line in ["find leap_days", "list", "show 8c1f"] {
        folder.run(line).fails("the index has version 1000, but this steno supports only versions up to");
    }
    let archive =
        ["index --root home", "archive list", "archive verify", "archive verify --repair", "archive restore 8c1f -o x"];
    for line in archive {
        folder.run(line).fails("log.jsonl: was written by a later version of steno");
    }
    contents(&folder.path("store"), &mut after);
    assert!(before == after, "{:?} and {:?}", before.keys(), after.keys());
}

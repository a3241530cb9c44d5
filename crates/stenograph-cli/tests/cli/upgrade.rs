//! The law *upgrade*: files that an earlier version wrote still work, and files of a later version are kept and reported, never damaged.
//! `upgrade/1` holds files of version 1; a version that changes a format adds a folder and keeps the others.

use crate::runner::Folder;

const SOURCE: &[u8] = include_bytes!("../upgrade/1/source.jsonl");
const NATIVE: &str = include_str!("../upgrade/1/native.jsonl");
const CARRIED: &str = include_str!("../upgrade/1/carried.jsonl");
const JOURNAL: &str = include_str!("../upgrade/1/journal.jsonl");

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

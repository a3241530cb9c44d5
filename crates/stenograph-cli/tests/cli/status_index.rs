//! `steno status` shows the same with and without an index. With one, it opens no file that is unchanged since it was indexed.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use crate::runner::Folder;

const ASKED: &str = "{\"v\":1,\"kind\":\"message\",\"session\":\"s1\",\"role\":\"user\",\"content\":\"Build it\"}\n";
const STOP: &str = "{\"v\":1,\"kind\":\"stop\",\"session\":\"s1\",\"reason\":\"end_turn\"}\n";

/// The index trusts the time of a file that was written a while before it was read.
fn make_older(path: &Path) {
    let then = SystemTime::now() - Duration::from_secs(60);
    File::options().write(true).open(path).unwrap().set_modified(then).unwrap();
}

/// A folder with one indexed file.
fn indexed(text: &str) -> Folder {
    let folder = Folder::new();
    fs::create_dir_all(folder.path("files")).unwrap();
    fs::create_dir_all(folder.path("home")).unwrap();
    folder.write("files/a.jsonl", text);
    make_older(&folder.path("files/a.jsonl"));
    folder.run("config folder add files").ends(0);
    folder.run("index --root home").ends(0).talks("1 new");
    folder
}

fn why(folder: &Folder) -> String {
    folder.run("status files/a.jsonl --json").json()[0]["why"].as_str().unwrap().to_owned()
}

/// Writes other bytes of the same length and restores the time, so that only reading the file shows the difference.
fn replace_secretly(folder: &Folder) {
    let path = folder.path("files/a.jsonl");
    let modified = fs::metadata(&path).unwrap().modified().unwrap();
    let text = fs::read_to_string(&path).unwrap().replace("\"user\"", "\"tool\"");
    fs::write(&path, text).unwrap();
    File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
}

#[test]
fn an_unchanged_file_is_not_opened() {
    let folder = indexed(ASKED);
    replace_secretly(&folder);
    assert_eq!(why(&folder), "asked");
    // A format that the user names is not the one that the index found.
    assert_eq!(folder.run("status files/a.jsonl --json --from steno").json()[0]["why"], "nothing");
    fs::remove_dir_all(folder.path("store")).unwrap();
    assert_eq!(why(&folder), "nothing");
}

#[test]
fn a_file_that_grew_or_was_rewritten_after_it_was_indexed_is_read() {
    let folder = indexed(ASKED);
    let path = folder.path("files/a.jsonl");
    OpenOptions::new().append(true).open(&path).unwrap().write_all(STOP.as_bytes()).unwrap();
    assert_eq!(why(&folder), "waiting");
    make_older(&path);
    folder.run("index --root home").ends(0).talks("1 grown");
    replace_secretly(&folder);
    assert_eq!(why(&folder), "waiting");
    // The same length, another time.
    fs::write(&path, ASKED.to_owned() + &STOP.replace("end_turn", "tool_use")).unwrap();
    assert_eq!(why(&folder), "asked");
    make_older(&path);
    folder.run("index --root home").ends(0);
    assert_eq!(why(&folder), "asked");
}

#[test]
fn time_passes_for_a_saved_status_too() {
    let folder = indexed(ASKED);
    let state = |options: &str| {
        let done = folder.run(&format!("status files/a.jsonl --json {options}"));
        done.json()[0]["state"].as_str().unwrap().to_owned()
    };
    assert_eq!(state(""), "running");
    assert_eq!(state("--silence 30s"), "stalled");
}

#[test]
fn a_store_that_cannot_be_used_changes_nothing_and_is_left_alone() {
    let damages: [fn(&Folder); 4] = [
        |folder| fs::remove_dir_all(folder.path("store/index")).unwrap(),
        |folder| fs::write(folder.path("store/index/catalogue.db"), "nonsense").unwrap(),
        |folder| fs::write(folder.path("store/index/catalogue.db"), "").unwrap(),
        |folder| {
            // The schema version is at byte 60 of a database.
            let path = folder.path("store/index/catalogue.db");
            let mut bytes = fs::read(&path).unwrap();
            bytes[60..64].copy_from_slice(&3_u32.to_be_bytes());
            fs::write(path, bytes).unwrap();
        },
    ];
    for (number, damage) in damages.iter().enumerate() {
        let folder = indexed(ASKED);
        damage(&folder);
        let before = fs::read(folder.path("store/index/catalogue.db")).ok();
        replace_secretly(&folder);
        let done = folder.run("status files/a.jsonl --json");
        assert_eq!((&done.json()[0]["why"], done.talk.as_str()), (&"nothing".into(), ""), "damage {number}");
        assert!(fs::read(folder.path("store/index/catalogue.db")).ok() == before, "damage {number}");
    }
}

/// The files below a folder.
fn files_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        if entry.file_type().unwrap().is_dir() {
            files_below(&entry.path(), found);
        } else {
            found.push(entry.path());
        }
    }
}

/// The status of all files, with and without an index. A relative path keeps the folders that tell a format.
fn compare(files: &[PathBuf], root: &Path) -> usize {
    let folder = Folder::new();
    fs::create_dir_all(folder.path("home")).unwrap();
    let mut names = Vec::new();
    for file in files {
        let name = format!("files/{}", file.strip_prefix(root).unwrap().display());
        fs::create_dir_all(folder.path(&name).parent().unwrap()).unwrap();
        fs::copy(file, folder.path(&name)).unwrap();
        make_older(&folder.path(&name));
        names.push(name);
    }
    let statuses = || {
        let mut command = folder.command("status --json --explain");
        let output = command.args(&names).stdin(Stdio::null()).output().unwrap();
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (without, errors_without) = statuses();
    folder.run("config folder add files").ends(0);
    folder.run("index --root home").ends(0);
    let (with, errors_with) = statuses();
    for (with, without) in with.lines().zip(without.lines()) {
        assert_eq!(with, without);
    }
    assert_eq!((with.lines().count(), errors_with), (without.lines().count(), errors_without));
    with.lines().count()
}

#[test]
fn the_status_of_every_fixture_is_the_same_with_and_without_an_index() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../stenograph/src/formats");
    let mut files = Vec::new();
    files_below(&root, &mut files);
    files.retain(|path| path.components().any(|part| part.as_os_str() == "fixtures"));
    assert!(compare(&files, &root) > 100);
}

#[test]
fn the_status_of_the_corpus_is_the_same_with_and_without_an_index() {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    let Ok(root) = fs::canonicalize(&beside) else {
        eprintln!("{} is not there: the corpus is not compared", beside.display());
        return;
    };
    let mut files = Vec::new();
    files_below(&root, &mut files);
    assert!(compare(&files, &root) > 200);
}

#[test]
fn an_error_is_printed_once_however_often_the_runs_are_looked_at() {
    let folder = Folder::with("a.jsonl", ASKED);
    let mut waiting = folder
        .command("status a.jsonl gone.jsonl --wait")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Each growth wakes the command, so that it looks again.
    for _ in 0..3 {
        std::thread::sleep(Duration::from_millis(300));
        OpenOptions::new().append(true).open(folder.path("a.jsonl")).unwrap().write_all(ASKED.as_bytes()).unwrap();
    }
    OpenOptions::new().append(true).open(folder.path("a.jsonl")).unwrap().write_all(STOP.as_bytes()).unwrap();
    let mut talk = String::new();
    std::io::Read::read_to_string(&mut waiting.stderr.take().unwrap(), &mut talk).unwrap();
    assert_eq!(waiting.wait().unwrap().code(), Some(2));
    assert_eq!(talk.matches("error:").count(), 1, "{talk}");
}

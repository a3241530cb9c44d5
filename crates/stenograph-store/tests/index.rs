//! The index with real files that grow, shrink, move, are copied and vanish; and the law that it finds what a plain scan finds.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::print_stderr, reason = "a test may fail loudly")]

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stenograph::query::{Query, Today};
use stenograph_store::archive::{Archive, ArchiveWriter, Label, Which};
use stenograph_store::discover::Places;
use stenograph_store::files::Disk;
use stenograph_store::index::search::{Depth, Order, Request};
use stenograph_store::index::{Keep, Made, Nobody, Plan, Progress, Report, Scope, Store, Watch, run};

struct Ground {
    _folder: tempfile::TempDir,
    home: PathBuf,
    store: Store,
}

impl Ground {
    fn new() -> Ground {
        let folder = tempfile::tempdir().unwrap();
        let home = fs::canonicalize(folder.path()).unwrap().join("home");
        fs::create_dir_all(&home).unwrap();
        let store = Store::new(folder.path().join("store"));
        Ground { _folder: folder, home, store }
    }

    fn session(&self, name: &str) -> PathBuf {
        let folder = self.home.join(".claude/projects/-work-app");
        fs::create_dir_all(&folder).unwrap();
        folder.join(format!("{name}.jsonl"))
    }

    fn index(&self) -> Report {
        self.index_keeping(Keep::Yes)
    }

    fn index_keeping(&self, keep: Keep) -> Report {
        self.index_watched(keep, &mut Nobody)
    }

    fn index_watched(&self, keep: Keep, watch: &mut dyn Watch) -> Report {
        let places = Places::below(self.home.clone());
        // Far in the future, so that no file was changed just now.
        let now = 4_000_000_000_000_000_000;
        let plan = Plan { places: &places, scope: Scope::All, keep, memory: 256 << 20, threads: 1, now };
        run(&self.store, &plan, watch).unwrap()
    }

    fn find(&self, query: &str) -> Vec<String> {
        let query =
            Query::parse(query, &Today { now: jiff::Timestamp::UNIX_EPOCH, zone: jiff::tz::TimeZone::UTC }).unwrap();
        let mut searcher = self.store.searcher().unwrap();
        let request = Request { query: &query, order: Order::Newest, offset: 0, limit: 1000, within: None };
        let answer = searcher.find(&request).unwrap();
        let mut found = vec![String::new(); answer.hits.len()];
        searcher
            .read_each(&answer.hits, Depth::Texts, &mut |at, read| {
                found[at] = match read {
                    Ok((_, entry)) => entry.pieces().join(" "),
                    Err(absent) => absent.reason().to_owned(),
                };
            })
            .unwrap();
        found
    }
}

const SESSION: &str = "0f8fad5b-d9cb-469f-a165-70867728950e";

fn line(session: &str, number: u32, role: &str, text: &str) -> String {
    let minute = number % 60;
    format!(
        r#"{{"type":"{role}","uuid":"{number:08}-d9cb-469f-a165-{session:.12}","sessionId":"{session}","timestamp":"2026-01-02T03:{minute:02}:00.000Z","cwd":"/work/app","gitBranch":"main","message":{{"role":"{role}","content":"{text}"}}}}"#
    ) + "\n"
}

fn append(path: &Path, text: &str) {
    fs::File::options().create(true).append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

#[test]
fn what_was_said_is_found_and_what_is_added_too() {
    let ground = Ground::new();
    let path = ground.session(SESSION);
    append(&path, &line(SESSION, 1, "user", "where is the walrus"));
    append(&path, &line(SESSION, 2, "assistant", "on the ice floe"));
    let report = ground.index();
    assert_eq!((report.added, report.events), (1, 2));
    assert_eq!(ground.find("walrus"), ["where is the walrus"]);

    append(&path, &line(SESSION, 3, "user", "and the penguin"));
    let report = ground.index();
    assert_eq!((report.grown, report.added, report.events), (1, 0, 1));
    assert_eq!(ground.find("penguin"), ["and the penguin"]);
    assert_eq!(ground.find("ice OR walrus").len(), 2);

    let report = ground.index();
    assert_eq!((report.unchanged, report.grown, report.events, report.bytes), (1, 0, 0, 0));
}

#[test]
fn a_line_without_an_end_is_found_once_before_and_after_it_ends() {
    let ground = Ground::new();
    let path = ground.session(SESSION);
    append(&path, &line(SESSION, 1, "user", "whole walrus"));
    append(&path, line(SESSION, 2, "user", "open walrus").trim_end());
    ground.index();
    assert_eq!(ground.find("walrus").len(), 2);
    append(&path, "\n");
    append(&path, &line(SESSION, 3, "user", "last walrus"));
    ground.index();
    assert_eq!(ground.find("walrus"), ["last walrus", "open walrus", "whole walrus"]);
}

#[test]
fn a_rewritten_or_truncated_file_that_is_not_kept_says_only_what_it_says_now() {
    let ground = Ground::new();
    let path = ground.session(SESSION);
    append(&path, &line(SESSION, 1, "user", "old walrus"));
    append(&path, &line(SESSION, 2, "user", "old penguin"));
    ground.index_keeping(Keep::No);
    fs::write(&path, line(SESSION, 1, "user", "old walrus")).unwrap();
    assert_eq!(ground.index_keeping(Keep::No).rewritten, 1);
    assert!(ground.find("penguin").is_empty());
    assert_eq!(ground.find("walrus"), ["old walrus"]);
    fs::write(&path, line(SESSION, 1, "user", "new seal is here, longer than before")).unwrap();
    assert_eq!(ground.index_keeping(Keep::No).rewritten, 1);
    assert!(ground.find("walrus").is_empty());
    assert_eq!(ground.find("seal").len(), 1);
}

#[test]
fn what_earlier_versions_said_stays_findable_as_long_as_the_archive_has_it() {
    let ground = Ground::new();
    let path = ground.session(SESSION);
    append(&path, &line(SESSION, 1, "user", "old walrus"));
    append(&path, &line(SESSION, 2, "user", "old penguin"));
    ground.index();
    let expected = counts(&ground);
    fs::write(&path, line(SESSION, 1, "user", "old walrus")).unwrap();
    ground.index();
    fs::write(&path, line(SESSION, 3, "user", "a seal, and longer than what was there before")).unwrap();
    ground.index();
    for is_rebuilt in [false, true] {
        if is_rebuilt {
            fs::remove_dir_all(ground.store.index()).unwrap();
            ground.index();
        }
        assert_eq!(ground.find("walrus OR penguin OR seal").len(), 3, "{is_rebuilt}");
        assert_eq!(ground.find("penguin"), ["old penguin"]);
        assert_eq!(ground.find("/w.lrus/"), ["old walrus"]);
        // What the file says is told from what it said.
        let versions = |word: &str| {
            let today = Today { now: jiff::Timestamp::UNIX_EPOCH, zone: jiff::tz::TimeZone::UTC };
            let query = Query::parse(word, &today).unwrap();
            let mut searcher = ground.store.searcher().unwrap();
            let request = Request { query: &query, order: Order::Best, offset: 0, limit: 10, within: None };
            let hits = searcher.find(&request).unwrap().hits;
            hits.iter().map(|hit| (hit.version.is_some(), hit.copies)).collect::<Vec<_>>()
        };
        assert_eq!((versions("seal"), versions("walrus")), (vec![(false, 0)], vec![(true, 0)]));
        assert!(counts(&ground).0 < expected.0, "the session has what its file has");
    }
    // Once it is gone, its last version is what it is.
    fs::remove_file(&path).unwrap();
    ground.index();
    fs::remove_dir_all(ground.store.index()).unwrap();
    ground.index();
    assert_eq!(ground.find("walrus OR penguin OR seal").len(), 3);
    assert_eq!(counts(&ground).0, 1);
    let source = ground.store.catalogue().unwrap().sources().unwrap()[0].id;
    let places = Places::below(ground.home.clone());
    let plan = Plan { places: &places, scope: Scope::All, keep: Keep::No, memory: 256 << 20, threads: 1, now: 1 };
    stenograph_store::index::remove(&ground.store, &[source], &plan).unwrap();
    assert!(ground.find("walrus OR penguin OR seal").is_empty());
}

#[test]
fn a_moved_file_stays_one_and_a_copy_is_not_found_twice() {
    let ground = Ground::new();
    let path = ground.session(SESSION);
    append(&path, &line(SESSION, 1, "user", "a walrus"));
    ground.index();
    let moved = ground.home.join(".claude/projects/-elsewhere");
    fs::create_dir_all(&moved).unwrap();
    let moved = moved.join(path.file_name().unwrap());
    fs::rename(&path, &moved).unwrap();
    let report = ground.index();
    assert_eq!((report.moved, report.added, report.events), (1, 0, 0));
    assert_eq!(ground.find("walrus"), ["a walrus"]);

    fs::copy(&moved, ground.session("copy")).unwrap();
    let report = ground.index();
    assert_eq!((report.copies, report.events), (1, 0));
    assert_eq!(ground.find("walrus"), ["a walrus"]);
    assert_eq!(ground.store.catalogue().unwrap().sessions().unwrap().len(), 1);
    // A copy that goes its own way is a source like any other, and what it shares is still found once.
    append(&ground.session("copy"), &line(SESSION, 2, "user", "another walrus"));
    ground.index();
    assert_eq!(ground.find("walrus"), ["another walrus", "a walrus"]);
}

#[test]
fn what_is_gone_is_found_in_the_archive_even_by_an_index_made_anew() {
    let ground = Ground::new();
    let path = ground.session(SESSION);
    append(&path, &line(SESSION, 1, "user", "a walrus"));
    ground.index();
    fs::remove_file(&path).unwrap();
    assert_eq!(ground.index().gone, 1);
    assert_eq!(ground.find("walrus"), ["a walrus"]);
    fs::remove_dir_all(ground.store.index()).unwrap();
    ground.index();
    assert_eq!(ground.find("walrus"), ["a walrus"]);
    assert_eq!(ground.store.catalogue().unwrap().sessions().unwrap()[0].gone, 1);
}

#[test]
fn what_was_never_kept_is_found_without_its_words() {
    let ground = Ground::new();
    let path = ground.session(SESSION);
    append(&path, &line(SESSION, 1, "user", "a walrus"));
    ground.index_keeping(Keep::No);
    fs::remove_file(&path).unwrap();
    ground.index_keeping(Keep::No);
    assert_eq!(ground.find("walrus"), ["the source is gone and was never kept"]);
}

#[test]
fn a_damaged_index_is_made_anew_and_says_so() {
    for damage in ["index/catalogue.db", "index/text/meta.json"] {
        let ground = Ground::new();
        append(&ground.session(SESSION), &line(SESSION, 1, "user", "a walrus"));
        ground.index();
        let file = ground.store.folder().join(damage);
        let _ = fs::remove_file(ground.store.folder().join("index/catalogue.db-wal"));
        fs::write(&file, "this is not what was here before, and longer than a header of a database may be ".repeat(9))
            .unwrap();
        let report = ground.index();
        assert!(matches!(report.made, Some(stenograph_store::index::Made::Again(_))), "{damage}: {:?}", report.made);
        assert_eq!(ground.find("walrus"), ["a walrus"], "{damage}");
    }
}

#[test]
fn a_flipped_bit_anywhere_in_the_index_is_an_error_until_the_next_run_rebuilds_it() {
    let ground = Ground::new();
    append(&ground.session(SESSION), &line(SESSION, 1, "user", "a walrus"));
    append(&ground.session("other"), &line(SESSION, 2, "assistant", "a seal"));
    ground.index();
    let index = ground.store.index();
    let mut names: Vec<PathBuf> =
        fs::read_dir(index.join("text")).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.retain(|path| !path.file_name().unwrap().to_str().unwrap().starts_with('.'));
    let endings: Vec<String> =
        names.iter().map(|path| path.extension().unwrap().to_str().unwrap().to_owned()).collect();
    assert!(endings.iter().any(|ending| ending == "pos") && endings.iter().any(|ending| ending == "fast"));
    for (ending, at) in endings.iter().map(|ending| (Some(ending), 0.5)).chain([(None, 0.1), (None, 0.6), (None, 0.99)])
    {
        for is_deleted in [false, true] {
            // The names of segments are others each time.
            let path = match ending {
                None => index.join("catalogue.db"),
                Some(ending) => fs::read_dir(index.join("text"))
                    .unwrap()
                    .map(|entry| entry.unwrap().path())
                    // The engine's list of its own files answers nothing.
                    .filter(|path| !path.ends_with(".managed.json"))
                    .find(|path| path.extension().is_some_and(|found| found == ending.as_str()))
                    .unwrap(),
            };
            if is_deleted {
                fs::remove_file(&path).unwrap();
            } else {
                let mut bytes = fs::read(&path).unwrap();
                let place = (bytes.len() as f64 * at) as usize;
                bytes[place] ^= 0x10;
                fs::write(&path, bytes).unwrap();
            }
            let Err(refused) = ground.store.searcher() else {
                panic!("{}, deleted: {is_deleted}, at {at}: nobody noticed", path.display())
            };
            assert_eq!(refused.problem, stenograph_store::Problem::IndexDamaged, "{} {refused}", path.display());
            let report = ground.index();
            assert!(matches!(report.made, Some(Made::Again(_))), "{}: {:?}", path.display(), report.made);
            assert_eq!(ground.find("walrus OR seal").len(), 2);
            assert!(ground.index().made.is_none());
        }
    }
}

#[test]
fn text_that_is_none_in_a_row_has_the_index_rebuilt() {
    let ground = Ground::new();
    append(&ground.session(SESSION), &line(SESSION, 1, "user", "a walrus"));
    ground.index();
    let database = ground.store.index().join("catalogue.db");
    let mut bytes = fs::read(&database).unwrap();
    let at = bytes.windows(b"/work/app".len()).position(|window| window == b"/work/app").unwrap();
    bytes[at] = 0xff;
    fs::write(&database, bytes).unwrap();
    // Without the seal only the engine itself could notice, in the middle of the run.
    fs::remove_file(ground.store.index().join("seal")).unwrap();
    append(&ground.session(SESSION), &line(SESSION, 2, "user", "a seal"));
    ground.index();
    assert_eq!(ground.find("walrus OR seal").len(), 2);
    assert_eq!(ground.store.catalogue().unwrap().sessions().unwrap().len(), 1);
}

#[test]
fn a_copy_of_a_store_is_used_as_it_is() {
    let ground = Ground::new();
    append(&ground.session(SESSION), &line(SESSION, 1, "user", "a walrus"));
    ground.index();
    let index = ground.store.index();
    for path in [index.join("catalogue.db"), index.join("text/meta.json")] {
        let bytes = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        fs::write(&path, bytes).unwrap();
    }
    assert_eq!(ground.find("walrus"), ["a walrus"]);
    assert!(ground.index().made.is_none());
}

#[test]
fn a_run_that_was_killed_before_it_sealed_has_nothing_rebuilt() {
    let ground = Ground::new();
    append(&ground.session(SESSION), &line(SESSION, 1, "user", "a walrus"));
    ground.index();
    let seal = ground.store.index().join("seal");
    let before = fs::read(&seal).unwrap();
    append(&ground.session(SESSION), &line(SESSION, 2, "user", "a seal"));
    ground.index();
    for old in [Some(before), None] {
        match old {
            Some(old) => fs::write(&seal, old).unwrap(),
            None => fs::remove_file(&seal).unwrap(),
        }
        assert_eq!(ground.find("walrus OR seal").len(), 2);
        assert!(ground.index().made.is_none());
        assert!(seal.exists());
    }
}

#[test]
fn an_index_of_a_later_version_is_refused_and_stays() {
    let ground = Ground::new();
    append(&ground.session(SESSION), &line(SESSION, 1, "user", "a walrus"));
    ground.index();
    let database = ground.store.index().join("catalogue.db");
    let whole = fs::read(&database).unwrap();
    let mut later = whole.clone();
    // The version that SQLite keeps for its user.
    later[60..64].copy_from_slice(&1000_u32.to_be_bytes());
    fs::write(&database, &later).unwrap();
    // The seal says that no later version made it: a number that is damaged.
    assert_eq!(ground.store.catalogue().unwrap_err().problem, stenograph_store::Problem::IndexDamaged);
    fs::remove_file(ground.store.index().join("seal")).unwrap();
    let places = Places::below(ground.home.clone());
    let plan = Plan { places: &places, scope: Scope::All, keep: Keep::Yes, memory: 256 << 20, threads: 1, now: 1 };
    for refused in [run(&ground.store, &plan, &mut Nobody).unwrap_err(), ground.store.catalogue().unwrap_err()] {
        assert!(refused.to_string().contains("version 1000") && refused.hint().is_some(), "{refused}");
    }
    assert_eq!(fs::read(&database).unwrap(), later);
}

#[cfg(unix)]
#[test]
fn nobody_else_can_read_the_index() {
    use std::os::unix::fs::PermissionsExt as _;
    fn check(path: &Path) {
        let mode = fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{}: {mode:o}", path.display());
        if path.is_dir() {
            fs::read_dir(path).unwrap().for_each(|entry| check(&entry.unwrap().path()));
        }
    }
    let ground = Ground::new();
    append(&ground.session(SESSION), &line(SESSION, 1, "user", "a walrus"));
    ground.index();
    let searcher = ground.store.searcher().unwrap();
    append(&ground.session(SESSION), &line(SESSION, 2, "user", "a seal"));
    ground.index();
    assert!(ground.store.index().join("catalogue.db-wal").exists());
    check(&ground.store.index());
    drop(searcher);
}

#[test]
fn a_file_that_is_only_touched_is_not_read_into_the_index_again() {
    let ground = Ground::new();
    let path = ground.session(SESSION);
    for number in 0..300 {
        append(&path, &line(SESSION, number, "user", "a walrus"));
    }
    ground.index();
    // Grown once, so that the checksum goes on from where it was.
    append(&path, &line(SESSION, 301, "user", "a seal"));
    append(&path, "{\"type\":\"user\"");
    ground.index();
    let touch = |seconds: u64| {
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    };
    touch(1_700_000_000);
    let report = ground.index();
    assert_eq!((report.unchanged, report.rewritten, report.events), (1, 0, 0));
    // A change in the middle, of the same length, is none that a touch explains.
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    let at = middle + bytes[middle..].windows(6).position(|window| window == b"walrus").unwrap();
    bytes[at..at + 6].copy_from_slice(b"ottery");
    fs::write(&path, bytes).unwrap();
    touch(1_700_000_001);
    assert_eq!(ground.index().rewritten, 1);
    assert_eq!(ground.find("ottery").len(), 1);
}

/// What `list` says of the only session.
fn counts(ground: &Ground) -> (u64, u64, u64) {
    let sessions = ground.store.catalogue().unwrap().sessions().unwrap();
    assert_eq!(sessions.len(), 1);
    (sessions[0].events, sessions[0].messages, sessions[0].size)
}

#[test]
fn a_copy_does_not_double_its_session_once_the_original_is_gone() {
    for is_grown in [false, true] {
        let ground = Ground::new();
        let (path, copy) = (ground.session(SESSION), ground.session("copy"));
        append(&path, &line(SESSION, 1, "user", "a walrus"));
        append(&path, &line(SESSION, 2, "assistant", "a seal"));
        ground.index();
        let mut expected = counts(&ground);
        fs::copy(&path, &copy).unwrap();
        assert_eq!(ground.index().copies, 1);
        assert_eq!(counts(&ground), expected);
        fs::remove_file(&path).unwrap();
        if is_grown {
            let more = line(SESSION, 3, "user", "an otter");
            append(&copy, &more);
            expected = (expected.0 + 1, expected.1 + 1, expected.2 + more.len() as u64);
        }
        assert_eq!(ground.index().gone, 1);
        assert_eq!(counts(&ground), expected);
        assert_eq!(ground.find("walrus OR seal").len(), 2);
        fs::remove_dir_all(ground.store.index()).unwrap();
        ground.index();
        assert_eq!(counts(&ground), expected, "rebuilt");
        fs::remove_file(&copy).unwrap();
        ground.index();
        assert_eq!(counts(&ground), expected, "both are gone");
        assert_eq!(ground.find("walrus OR seal").len(), 2);
        fs::remove_dir_all(ground.store.index()).unwrap();
        ground.index();
        assert_eq!(counts(&ground), expected, "rebuilt of the archive alone");
    }
}

#[test]
fn an_original_that_is_gone_is_found_when_its_copy_says_something_else() {
    let ground = Ground::new();
    let (path, copy) = (ground.session(SESSION), ground.session("copy"));
    append(&path, &line(SESSION, 1, "user", "a walrus"));
    ground.index();
    fs::copy(&path, &copy).unwrap();
    ground.index();
    fs::remove_file(&path).unwrap();
    ground.index();
    fs::write(&copy, line(SESSION, 2, "user", "a seal")).unwrap();
    ground.index();
    assert_eq!(ground.find("seal"), ["a seal"]);
    assert_eq!(ground.find("walrus"), ["a walrus"]);
}

#[test]
fn an_index_that_is_rebuilt_knows_a_copy_whose_original_only_the_archive_has() {
    for both_gone in [false, true] {
        let ground = Ground::new();
        let (path, copy) = (ground.session(SESSION), ground.session("copy"));
        append(&path, &line(SESSION, 1, "user", "a walrus"));
        ground.index();
        let expected = counts(&ground);
        fs::copy(&path, &copy).unwrap();
        fs::remove_file(&path).unwrap();
        fs::remove_dir_all(ground.store.index()).unwrap();
        // The archive has both now, each under its own path.
        ground.index();
        assert_eq!(counts(&ground), expected);
        if both_gone {
            fs::remove_file(&copy).unwrap();
            fs::remove_dir_all(ground.store.index()).unwrap();
            ground.index();
            assert_eq!(counts(&ground), expected);
        }
        assert_eq!(ground.find("walrus"), ["a walrus"]);
    }
}

#[test]
fn a_copy_of_a_file_is_archived_under_its_own_name() {
    let ground = Ground::new();
    let (one, other) = (ground.session(SESSION), ground.session("copied"));
    append(&one, &line(SESSION, 1, "user", "walrus"));
    ground.index();
    fs::copy(&one, &other).unwrap();
    assert_eq!(ground.index().copies, 1);
    fs::remove_file(&one).unwrap();
    fs::remove_file(&other).unwrap();
    fs::remove_dir_all(ground.store.index()).unwrap();
    ground.index();
    let archive = Archive::open(Arc::new(Disk), &ground.store.archive()).unwrap();
    for path in [&one, &other] {
        assert!(archive.copy_at(path).is_some(), "{path:?}");
        assert!(ground.store.catalogue().unwrap().source_at(path).unwrap().is_some(), "{path:?}");
    }
    assert_eq!(ground.find("walrus"), ["walrus"]);
}

#[test]
fn records_that_nobody_understands_are_told_once() {
    let ground = Ground::new();
    let path = ground.session(SESSION);
    append(&path, &line(SESSION, 1, "user", "a walrus"));
    append(&path, "{\"type\":\"from-the-future\",\"sessionId\":\"x\",\"payload\":\"strange seal\"}\n");
    let report = ground.index();
    assert_eq!(report.unknown.len(), 1, "{:?}", report.unknown);
    assert_eq!((report.unknown[0].name.as_str(), report.unknown[0].line), ("from-the-future", 2));
    assert_eq!(ground.find("strange").len(), 1);
    append(&path, "{\"type\":\"from-the-future\",\"sessionId\":\"x\",\"payload\":\"again\"}\n");
    assert!(ground.index().unknown.is_empty());
    assert_eq!(ground.store.catalogue().unwrap().unknown(0).unwrap()[0].count, 2);
}

#[test]
fn a_file_that_is_written_anew_and_shorter_is_kept_as_it_is_now() {
    let ground = Ground::new();
    let path = ground.session(SESSION);
    append(&path, &line(SESSION, 1, "user", "an old walrus, and very long in the tooth"));
    append(&path, &line(SESSION, 2, "user", "an old penguin"));
    ground.index();
    fs::write(&path, line(SESSION, 3, "user", "a seal")).unwrap();
    ground.index();
    fs::remove_file(&path).unwrap();
    ground.index();
    assert_eq!(ground.find("seal"), ["a seal"]);
    assert_eq!(ground.find("walrus"), ["an old walrus, and very long in the tooth"]);
}

#[test]
fn a_file_that_grew_for_a_killed_run_and_is_short_again_is_archived_as_it_is_now() {
    let ground = Ground::new();
    let path = ground.session(SESSION);
    let short = line(SESSION, 1, "user", "walrus one");
    append(&path, &short);
    ground.index();
    // A run that is killed here has told the archive, and not the catalogue.
    append(&path, &line(SESSION, 2, "assistant", "walrus two"));
    let mut writer = ArchiveWriter::open(Arc::new(Disk), &ground.store.archive()).unwrap();
    let label = Label { format: "claude-code".to_owned(), session: Some(SESSION.to_owned()) };
    writer.add(&path, &label).unwrap();
    writer.commit(1).unwrap();
    drop(writer);
    fs::write(&path, &short).unwrap();
    ground.index();
    let archive = Archive::open(Arc::new(Disk), &ground.store.archive()).unwrap();
    let copy = archive.copy_at(&path).unwrap();
    let mut kept = String::new();
    archive.read(copy.id, Which::Last, 0).unwrap().read_to_string(&mut kept).unwrap();
    assert_eq!((kept, copy.length), (short.clone(), short.len() as u64));
    assert_eq!(ground.index().unchanged, 1);
}

#[test]
fn a_copy_is_found_when_what_it_is_a_copy_of_says_something_else() {
    for truncated in [String::new(), line(SESSION, 2, "user", "a seal")] {
        let ground = Ground::new();
        let path = ground.session(SESSION);
        append(&path, &line(SESSION, 1, "user", "a walrus"));
        ground.index();
        fs::copy(&path, ground.session("copy")).unwrap();
        assert_eq!(ground.index().copies, 1);
        fs::write(&path, truncated).unwrap();
        ground.index();
        assert_eq!(ground.find("walrus"), ["a walrus"]);
        fs::remove_file(ground.session("copy")).unwrap();
        ground.index();
        assert_eq!(ground.find("walrus"), ["a walrus"]);
    }
}

struct Impatient;

impl stenograph_store::index::Watch for Impatient {
    fn progress(&mut self, _progress: &stenograph_store::index::Progress) {}

    fn is_stopped(&self) -> bool {
        true
    }
}

#[test]
fn who_stops_an_index_that_is_made_anew_does_not_lose_what_is_gone() {
    let ground = Ground::new();
    let path = ground.session(SESSION);
    append(&path, &line(SESSION, 1, "user", "a walrus"));
    append(&ground.session("other"), &line(SESSION, 2, "user", "a seal"));
    ground.index();
    fs::remove_file(&path).unwrap();
    ground.index();
    fs::remove_dir_all(ground.store.index()).unwrap();
    let places = Places::below(ground.home.clone());
    let plan =
        Plan { places: &places, scope: Scope::All, keep: Keep::Yes, memory: 256 << 20, threads: 1, now: i64::MAX };
    assert!(run(&ground.store, &plan, &mut Impatient).unwrap().stopped);
    assert!(ground.index().made.is_none());
    assert_eq!(ground.find("walrus OR seal").len(), 2);
}

#[test]
fn a_small_file_that_moved_and_grew_stays_one_in_index_and_archive() {
    let ground = Ground::new();
    let path = ground.session(SESSION);
    append(&path, &line(SESSION, 1, "user", "a walrus"));
    ground.index();
    let moved = ground.session("moved");
    fs::rename(&path, &moved).unwrap();
    append(&moved, &line(SESSION, 2, "user", "a seal"));
    let report = ground.index();
    assert_eq!((report.moved, report.added, report.events), (1, 0, 1));
    fs::write(&moved, line(SESSION, 3, "user", "nobody")).unwrap();
    ground.index();
    // What the archive knows of it is not read as another file, either.
    fs::remove_dir_all(ground.store.index()).unwrap();
    ground.index();
    assert_eq!(ground.find("walrus OR seal").len(), 2);
    assert_eq!(ground.store.catalogue().unwrap().sources().unwrap().len(), 1);
}

#[test]
fn a_small_copy_that_moved_and_grew_stays_one_in_index_and_archive() {
    let ground = Ground::new();
    let (path, copy, moved) = (ground.session(SESSION), ground.session("copied"), ground.session("moved"));
    append(&path, &line(SESSION, 1, "user", "a walrus"));
    ground.index();
    fs::copy(&path, &copy).unwrap();
    ground.index();
    fs::rename(&copy, &moved).unwrap();
    append(&moved, &line(SESSION, 2, "user", "a seal"));
    assert_eq!(ground.index().moved, 1);
    for _ in 0..2 {
        // What the file was copied from says something else, and the index is rebuilt.
        fs::write(&path, line(SESSION, 3, "user", "nobody")).unwrap();
        ground.index();
        let sources = ground.store.catalogue().unwrap().sources().unwrap();
        let mut paths: Vec<_> = sources.iter().map(|source| source.path.clone()).collect();
        paths.sort();
        assert_eq!(paths, [path.clone(), moved.clone()]);
        fs::remove_dir_all(ground.store.index()).unwrap();
    }
}

#[test]
fn a_file_that_a_killed_run_archived_does_not_take_the_place_of_one_that_moved() {
    let ground = Ground::new();
    let [one, copy, moved] = ["one", "copy", "moved"].map(|name| ground.session(name));
    (0..30).for_each(|number| append(&one, &line(SESSION, number, "user", &format!("a walrus {number}"))));
    ground.index();
    fs::copy(&one, &copy).unwrap();
    // A run that is killed here has told the archive, and not the catalogue.
    let mut writer = ArchiveWriter::open(Arc::new(Disk), &ground.store.archive()).unwrap();
    writer.add(&copy, &Label { format: "claude-code".to_owned(), session: Some(SESSION.to_owned()) }).unwrap();
    writer.commit(1).unwrap();
    drop(writer);
    fs::rename(&one, &moved).unwrap();
    append(&copy, &line(SESSION, 41, "user", "an otter"));
    ground.index();
    let archive = Archive::open(Arc::new(Disk), &ground.store.archive()).unwrap();
    let mut paths: Vec<_> = archive.copies().map(|copy| copy.path).collect();
    paths.sort();
    assert_eq!(paths, [copy, moved]);
}

/// Writes a file anew as soon as some of it was read, so many times.
struct Rewriting {
    path: PathBuf,
    texts: Vec<String>,
}

impl Watch for Rewriting {
    fn progress(&mut self, progress: &Progress) {
        if progress.bytes_done > 0
            && let Some(text) = self.texts.pop()
        {
            fs::write(&self.path, text).unwrap();
        }
    }

    fn is_stopped(&self) -> bool {
        false
    }
}

#[test]
fn a_file_that_is_rewritten_while_it_is_read_is_read_again() {
    let version =
        |word: &str| (0..20).map(|number| line(SESSION, number, "user", &format!("{word} {number}"))).collect();
    for (texts, is_right_at_once) in [(vec![version("otter")], true), (vec![version("otter"), version("raven")], false)]
    {
        let ground = Ground::new();
        let path = ground.session(SESSION);
        append(&path, &line(SESSION, 1, "user", "a walrus"));
        ground.index_watched(Keep::Yes, &mut Rewriting { path, texts });
        let found = |word: &str| ground.find(word).len();
        assert!(!is_right_at_once || (found("otter"), found("walrus")) == (20, 0));
        ground.index();
        assert_eq!((found("otter"), found("walrus"), found("raven")), (20, 0, 0));
        assert_eq!(ground.index().unchanged, 1);
    }
}

#[test]
fn a_file_whose_place_a_folder_takes_is_gone() {
    let ground = Ground::new();
    let path = ground.session(SESSION);
    append(&path, &line(SESSION, 1, "user", "a walrus"));
    ground.index();
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    let report = ground.index();
    assert_eq!((report.gone, report.remarks.len()), (1, 0));
    assert_eq!(ground.find("walrus"), ["a walrus"]);
    fs::remove_dir(&path).unwrap();
    let folder = path.parent().unwrap();
    fs::remove_dir(folder).unwrap();
    fs::write(folder, "a file").unwrap();
    assert_eq!(ground.index().gone, 0);
    assert_eq!(ground.find("walrus"), ["a walrus"]);
}

#[test]
fn what_only_the_text_knows_never_counts_whoever_comes_next() {
    let ground = Ground::new();
    let (path, other) = (ground.session(SESSION), ground.session("other"));
    append(&path, &line(SESSION, 1, "user", "a walrus"));
    append(&other, &line(SESSION, 2, "user", "a seal"));
    ground.index();
    let (database, beside) = (ground.store.index().join("catalogue.db"), ground.home.join("catalogue.db"));
    assert!(!ground.store.index().join("catalogue.db-wal").exists());
    fs::copy(&database, &beside).unwrap();
    append(&path, &line(SESSION, 3, "user", "a ghost"));
    append(&ground.session("third"), &line(SESSION, 4, "user", "a ghost"));
    // What the archive has counts, whatever the catalogue knows of it; so only the text gets this.
    ground.index_keeping(Keep::No);
    // As if the power had gone between the two commits, before there was a seal.
    fs::copy(&beside, &database).unwrap();
    fs::remove_file(ground.store.index().join("seal")).unwrap();
    fs::remove_file(ground.session("third")).unwrap();
    fs::write(&path, line(SESSION, 1, "user", "a walrus")).unwrap();
    assert!(ground.find("ghost").is_empty());
    let catalogue = ground.store.catalogue().unwrap();
    let source = catalogue.source_at(&other).unwrap().unwrap().id;
    drop(catalogue);
    let places = Places::below(ground.home.clone());
    let plan = Plan { places: &places, scope: Scope::All, keep: Keep::No, memory: 256 << 20, threads: 1, now: 1 };
    stenograph_store::index::remove(&ground.store, &[source], &plan).unwrap();
    append(&path, &line(SESSION, 5, "user", "a penguin"));
    append(&ground.session("fourth"), &line(SESSION, 6, "user", "a penguin"));
    let report = ground.index();
    assert!(report.made.is_none());
    assert!(ground.find("ghost").is_empty());
    assert_eq!(ground.find("penguin").len(), 2);
    assert_eq!(ground.find("walrus"), ["a walrus"]);
}

#[test]
fn a_phrase_that_may_end_in_thousands_of_words_finds_all_of_them_and_nothing_else() {
    let ground = Ground::new();
    let path = ground.session(SESSION);
    let mut text = line(SESSION, 1, "user", "the otter w0001 and no walrus") + &line(SESSION, 2, "user", "walrus v1");
    (0..900).for_each(|number| text += &line(SESSION, number, "user", &format!("the walrus w{number} swims")));
    append(&path, &text);
    ground.index();
    assert_eq!(ground.find("\"walrus w1\"*").len(), 111);
    assert_eq!(ground.find("\"the walrus w\"*").len(), 900);
    text.clear();
    (900..4000).for_each(|number| text += &line(SESSION, number, "user", &format!("the walrus w{number} swims")));
    append(&path, &text);
    ground.index();
    // More words than the engine is asked for at once.
    assert_eq!(ground.find("\"walrus w1\"*").len(), 1000);
    assert_eq!(ground.find("\"the walrus w\"* -w17").len(), 1000);
}

#[test]
fn a_text_for_people_beside_its_exact_twin_is_not_found_twice() {
    let ground = Ground::new();
    let context = ground.home.join(".chibi/contexts/research");
    fs::create_dir_all(&context).unwrap();
    let entry = r#"{"id":"4d0c6a3e-0000-4000-8000-000000000001","timestamp":1705123456,"from":"alice","to":"research","content":"a walrus here","entry_type":"message"}"#;
    fs::write(context.join("context.jsonl"), format!("{entry}\n")).unwrap();
    fs::write(context.join("transcript.md"), "[USER]: a walrus here\n\n[USER]: an older walrus\n\n").unwrap();
    ground.index();
    assert_eq!(ground.store.catalogue().unwrap().sessions().unwrap().len(), 1);
    let mut found = ground.find("walrus");
    found.sort();
    assert_eq!(found, ["a walrus here", "an older walrus"]);
}

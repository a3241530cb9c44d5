//! The index with real files that grow, shrink and disappear. `contents.rs` has saved contents, `copies.rs` copies and moves, `damage.rs` damage and
//! interrupted runs, `marks.rs` marks of sessions, `narrow.rs` reading only what is needed, `status.rs` the saved status of
//! runs.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::print_stderr, reason = "a test may fail loudly")]

mod contents;
mod copies;
mod damage;
mod marks;
mod narrow;
mod status;

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stenograph::query::{Query, Today};
use stenograph_store::archive::{Archive, ArchiveWriter, Label, WhichVersion};
use stenograph_store::discover::Places;
use stenograph_store::files::Disk;
use stenograph_store::index::search::{EntryDetail, Order, SearchRequest};
use stenograph_store::index::{
    Archiving, IndexCreation, IndexPlan, IndexProgress, IndexReport, IndexScope, NoObserver, RunObserver, Store, run,
};

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

    fn index(&self) -> IndexReport {
        self.index_keeping(Archiving::Yes)
    }

    fn index_keeping(&self, archiving: Archiving) -> IndexReport {
        self.index_watched(archiving, &mut NoObserver)
    }

    fn index_watched(&self, archiving: Archiving, watch: &mut dyn RunObserver) -> IndexReport {
        let places = Places::below(self.home.clone());
        // Far in the future, so that no file was changed just now.
        let now = 4_000_000_000_000_000_000;
        let plan = IndexPlan { places: &places, scope: IndexScope::All, archiving, memory: 256 << 20, threads: 1, now };
        run(&self.store, &plan, watch).unwrap()
    }

    fn find(&self, query: &str) -> Vec<String> {
        let query =
            Query::parse(query, &Today { now: jiff::Timestamp::UNIX_EPOCH, zone: jiff::tz::TimeZone::UTC }).unwrap();
        let mut searcher = self.store.searcher().unwrap();
        let request = SearchRequest { query: &query, order: Order::Newest, offset: 0, limit: 1000, within: None };
        let answer = searcher.find(&request).unwrap();
        let mut found = vec![String::new(); answer.hits.len()];
        searcher
            .read_each(&answer.hits, EntryDetail::Texts, &mut |at, read| {
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

/// The counts of the only session, as `list` shows them.
fn counts(ground: &Ground) -> (u64, u64, u64) {
    let sessions = ground.store.catalogue().unwrap().sessions().unwrap();
    assert_eq!(sessions.len(), 1);
    (sessions[0].events, sessions[0].messages, sessions[0].size)
}

#[test]
fn existing_and_appended_messages_are_found() {
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
fn the_newest_sessions_are_read_without_the_others() {
    let ground = Ground::new();
    for number in 1..=5 {
        let session = format!("{number}f8fad5b-d9cb-469f-a165-70867728950e");
        append(&ground.session(&session), &line(&session, 3 * number, "user", "where is the walrus"));
    }
    ground.index();
    let newest = |limit: usize| -> Vec<String> {
        let sessions = ground.store.catalogue().unwrap().newest_sessions(limit).unwrap();
        let mut names: Vec<String> = sessions.iter().map(|session| session.name.chars().take(1).collect()).collect();
        names.sort();
        names
    };
    assert_eq!((newest(2), newest(9).len()), (vec!["4".to_owned(), "5".to_owned()], 5));
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
fn an_unarchived_file_that_is_rewritten_or_truncated_has_only_its_current_events() {
    let ground = Ground::new();
    let path = ground.session(SESSION);
    append(&path, &line(SESSION, 1, "user", "old walrus"));
    append(&path, &line(SESSION, 2, "user", "old penguin"));
    ground.index_keeping(Archiving::No);
    fs::write(&path, line(SESSION, 1, "user", "old walrus")).unwrap();
    assert_eq!(ground.index_keeping(Archiving::No).rewritten, 1);
    assert!(ground.find("penguin").is_empty());
    assert_eq!(ground.find("walrus"), ["old walrus"]);
    fs::write(&path, line(SESSION, 1, "user", "new seal is here, longer than before")).unwrap();
    assert_eq!(ground.index_keeping(Archiving::No).rewritten, 1);
    assert!(ground.find("walrus").is_empty());
    assert_eq!(ground.find("seal").len(), 1);
}

#[test]
fn events_of_earlier_versions_stay_findable_while_the_archive_has_them() {
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
        // A search distinguishes current events from earlier versions.
        let versions = |word: &str| {
            let today = Today { now: jiff::Timestamp::UNIX_EPOCH, zone: jiff::tz::TimeZone::UTC };
            let query = Query::parse(word, &today).unwrap();
            let mut searcher = ground.store.searcher().unwrap();
            let request = SearchRequest { query: &query, order: Order::Best, offset: 0, limit: 10, within: None };
            let hits = searcher.find(&request).unwrap().hits;
            hits.iter().map(|hit| (hit.version.is_some(), hit.copies)).collect::<Vec<_>>()
        };
        assert_eq!((versions("seal"), versions("walrus")), (vec![(false, 0)], vec![(true, 0)]));
        assert!(counts(&ground).0 < expected.0, "the session has what its file has");
    }
    // Once the file is gone, its last version is current.
    fs::remove_file(&path).unwrap();
    ground.index();
    fs::remove_dir_all(ground.store.index()).unwrap();
    ground.index();
    assert_eq!(ground.find("walrus OR penguin OR seal").len(), 3);
    assert_eq!(counts(&ground).0, 1);
    let source = ground.store.catalogue().unwrap().sources().unwrap()[0].id;
    let places = Places::below(ground.home.clone());
    let plan = IndexPlan {
        places: &places,
        scope: IndexScope::All,
        archiving: Archiving::No,
        memory: 256 << 20,
        threads: 1,
        now: 1,
    };
    stenograph_store::index::remove(&ground.store, &[source], &plan).unwrap();
    assert!(ground.find("walrus OR penguin OR seal").is_empty());
}

#[test]
fn a_missing_source_is_found_in_the_archive_even_by_a_rebuilt_index() {
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
fn an_event_that_was_never_archived_is_found_without_its_text() {
    let ground = Ground::new();
    let path = ground.session(SESSION);
    append(&path, &line(SESSION, 1, "user", "a walrus"));
    ground.index_keeping(Archiving::No);
    fs::remove_file(&path).unwrap();
    ground.index_keeping(Archiving::No);
    assert_eq!(ground.find("walrus"), ["the file no longer exists and was never archived"]);
}

#[test]
fn a_file_that_is_only_touched_is_not_read_into_the_index_again() {
    let ground = Ground::new();
    let path = ground.session(SESSION);
    for number in 0..300 {
        append(&path, &line(SESSION, number, "user", "a walrus"));
    }
    ground.index();
    // Grown once, so that the checksum is continued.
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
    // A touch does not explain a change in the middle of the same length.
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    let at = middle + bytes[middle..].windows(6).position(|window| window == b"walrus").unwrap();
    bytes[at..at + 6].copy_from_slice(b"ottery");
    fs::write(&path, bytes).unwrap();
    touch(1_700_000_001);
    assert_eq!(ground.index().rewritten, 1);
    assert_eq!(ground.find("ottery").len(), 1);
}

#[test]
fn unknown_records_are_reported_once() {
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
fn a_file_replaced_by_a_folder_counts_as_deleted() {
    let ground = Ground::new();
    let path = ground.session(SESSION);
    append(&path, &line(SESSION, 1, "user", "a walrus"));
    ground.index();
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    let report = ground.index();
    assert_eq!((report.gone, report.warnings.len()), (1, 0));
    assert_eq!(ground.find("walrus"), ["a walrus"]);
    fs::remove_dir(&path).unwrap();
    let folder = path.parent().unwrap();
    fs::remove_dir(folder).unwrap();
    fs::write(folder, "a file").unwrap();
    assert_eq!(ground.index().gone, 0);
    assert_eq!(ground.find("walrus"), ["a walrus"]);
}

#[test]
fn documents_without_a_catalogue_commit_never_count() {
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
    // The archive's content counts, whatever the catalogue knows, so only the text gets this.
    ground.index_keeping(Archiving::No);
    // As if the power had failed between the two commits, before there was a seal.
    fs::copy(&beside, &database).unwrap();
    fs::remove_file(ground.store.index().join("seal")).unwrap();
    fs::remove_file(ground.session("third")).unwrap();
    fs::write(&path, line(SESSION, 1, "user", "a walrus")).unwrap();
    assert!(ground.find("ghost").is_empty());
    let catalogue = ground.store.catalogue().unwrap();
    let source = catalogue.source_at(&other).unwrap().unwrap().id;
    drop(catalogue);
    let places = Places::below(ground.home.clone());
    let plan = IndexPlan {
        places: &places,
        scope: IndexScope::All,
        archiving: Archiving::No,
        memory: 256 << 20,
        threads: 1,
        now: 1,
    };
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
    // More words than the engine is queried for at once.
    assert_eq!(ground.find("\"walrus w1\"*").len(), 1000);
    assert_eq!(ground.find("\"the walrus w\"* -w17").len(), 1000);
}

#[test]
fn a_rendered_text_beside_its_exact_source_is_not_found_twice() {
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

#[test]
fn the_pages_of_an_answer_have_every_hit_once_and_the_newest_of_equals_first() {
    let ground = Ground::new();
    let names = [SESSION, "7c9e6679-7425-40de-944b-e07fc1f90ae7"];
    for (name, count) in names.into_iter().zip([6_000, 300]) {
        let text: String =
            (0..count).map(|number| line(name, number, "user", &format!("walrus number {number}"))).collect();
        append(&ground.session(name), &text);
        // A second segment of the text index, so that ties span several.
        ground.index();
    }
    for query in ["walrus", "role:user", "/walrus/", "number OR walrus"] {
        let query =
            Query::parse(query, &Today { now: jiff::Timestamp::UNIX_EPOCH, zone: jiff::tz::TimeZone::UTC }).unwrap();
        for order in [Order::Best, Order::Newest] {
            let mut searcher = ground.store.searcher().unwrap();
            let mut all = |offset: usize, limit: usize| {
                let request = SearchRequest { query: &query, order, offset, limit, within: None };
                searcher.find(&request).unwrap()
            };
            let whole = all(0, 10_000);
            let (mut paged, mut offset) = (Vec::new(), 0);
            loop {
                let page = all(offset, 701);
                offset = page.hits.last().map_or(0, |hit| hit.rank + 1);
                paged.extend(page.hits);
                if !page.has_more {
                    break;
                }
            }
            assert_eq!(whole.hits.len(), 6_300);
            let place = |hit: &stenograph_store::index::search::Hit| (hit.source, hit.event);
            assert!(whole.hits.iter().map(place).eq(paged.iter().map(place)), "{query:?} {order:?}");
        }
    }
}

#[test]
fn a_file_that_states_its_session_and_folder_late_gets_both_when_it_does() {
    let snapshot = "{\"type\":\"file-history-snapshot\",\"messageId\":\"m\",\"snapshot\":{}}\n";
    let (late, whole) = (Ground::new(), Ground::new());
    let parent = "11111111-d9cb-469f-a165-70867728950e";
    let lines = [snapshot.to_owned(), line(parent, 1, "user", "walrus"), line(SESSION, 2, "user", "penguin")];
    for text in &lines {
        append(&late.session("renamed"), text);
        append(&whole.session("renamed"), text);
        late.index();
    }
    whole.index();
    let sessions = |ground: &Ground| {
        let catalogue = ground.store.catalogue().unwrap();
        let sessions = catalogue.sessions().unwrap().into_iter();
        let rows = sessions.map(|row| (row.name, row.project, row.parent.map(|(_, link)| link)));
        (rows.collect::<Vec<_>>(), catalogue.sources().unwrap().len())
    };
    assert_eq!(sessions(&late), sessions(&whole));
    let catalogue = late.store.catalogue().unwrap();
    let found = catalogue.sessions_named(parent).unwrap();
    assert_eq!((found.len(), found[0].project.is_some()), (1, true));
    assert!(catalogue.sessions_named("renamed").unwrap().is_empty());
}

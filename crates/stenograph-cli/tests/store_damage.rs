//! Random damage to every file of a store: flipped bits, overwritten blocks, truncation, garbage at the end, deletion. No
//! command panics and no answer is wrong: it equals the answer of the undamaged store, or it is an error. The next `index`
//! repairs what it can; `--repair`, which the error names, repairs a damaged log of the archive.
//!
//! `STENO_SEED` and `STENO_ROUNDS` select other damage and more of it.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::print_stderr, reason = "a test may fail loudly")]

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use stenograph::query::{Query, Today};
use stenograph_store::archive::{Archive, ArchiveWriter, WhichVersion};
use stenograph_store::discover::Places;
use stenograph_store::files::Disk;
use stenograph_store::index::search::{EntryDetail, Order, SearchRequest};
use stenograph_store::index::{Archiving, IndexPlan, IndexReport, IndexScope, NoObserver, Store, run};
use tempfile::TempDir;

/// The minimum number of cases.
const CASES: usize = 520;

/// The interval of cases that also run the commands themselves.
const COMMANDS_EVERY: usize = 40;

const QUERIES: [&str; 5] = ["walrus", "\"the grey seal\"", "is:call", "tool:Bash", "role:user since:2026-01-01"];

/// All sources of this session exist but one.
const GONE: &str = "0198ffff-1111-4222-8333-444455556666";

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn message_line(session: &str, number: usize, role: &str, content: &str) -> String {
    format!(
        r#"{{"type":"{role}","uuid":"{session:.13}-0000-8333-{number:012}","sessionId":"{session}","timestamp":"2026-01-02T03:{:02}:00.000Z","cwd":"/work/app","gitBranch":"main","message":{{"role":"{role}","content":{content}}}}}"#,
        number % 60
    ) + "\n"
}

/// A home with a few sessions.
fn make_home(home: &Path) {
    let folder = home.join(".claude/projects/-work-app");
    fs::create_dir_all(&folder).unwrap();
    for (at, session) in ["0198aaaa", "0198bbbb", "0198cccc", "0198dddd", "0198ffff"].iter().enumerate() {
        let session = format!("{session}-1111-4222-8333-444455556666");
        let mut text = String::new();
        for turn in 0..12 {
            let words = format!("\"feed the walrus {at} and the grey seal, turn {turn}\"");
            text.push_str(&message_line(&session, 3 * turn, "user", &words));
            let call = format!(
                r#"[{{"type":"tool_use","id":"c{at}{turn}","name":"Bash","input":{{"command":"feed --animal {turn}"}}}}]"#
            );
            text.push_str(&message_line(&session, 3 * turn + 1, "assistant", &call));
            let result = format!(r#"[{{"type":"tool_result","tool_use_id":"c{at}{turn}","content":"fed {turn}"}}]"#);
            text.push_str(&message_line(&session, 3 * turn + 2, "user", &result));
        }
        fs::write(folder.join(format!("{session}.jsonl")), text).unwrap();
    }
}

fn index(store: &Path, home: &Path) -> Result<IndexReport, stenograph_store::Error> {
    let places = Places::below(home.to_owned());
    // Far in the future, so that no file was changed just now.
    let now = 4_000_000_000_000_000_000;
    let plan = IndexPlan {
        places: &places,
        scope: IndexScope::All,
        archiving: Archiving::Yes,
        memory: 128 << 20,
        threads: 1,
        now,
    };
    run(&Store::new(store), &plan, &mut NoObserver)
}

/// The answers of a store, by name.
type Answers = BTreeMap<String, Result<String, String>>;

fn ask(folder: &Path) -> Answers {
    let store = Store::new(folder);
    let message = |error: stenograph_store::Error| error.to_string();
    let mut answers = Answers::new();
    answers.insert("list".to_owned(), list(&store).map_err(message));
    for query in QUERIES {
        answers.insert(format!("find {query}"), find(&store, query).map_err(message));
    }
    answers.insert("archive".to_owned(), archive(folder));
    answers.insert("gone".to_owned(), gone(&store).map_err(message));
    answers
}

fn list(store: &Store) -> Result<String, stenograph_store::Error> {
    let mut sessions: Vec<String> = Vec::new();
    for session in store.catalogue()?.sessions()? {
        let project = session.project.map(|project| project.name);
        sessions.push(format!(
            "{} {} {project:?} {:?} {:?} {:?} {:?} {} {} {} {} {} {}",
            session.agent,
            session.name,
            session.query,
            session.started,
            session.ended,
            session.path.file_name(),
            session.events,
            session.messages,
            session.calls,
            session.errors,
            session.size,
            session.gone
        ));
    }
    sessions.sort();
    Ok(sessions.join("\n"))
}

fn find(store: &Store, query: &str) -> Result<String, stenograph_store::Error> {
    let today = Today { now: jiff::Timestamp::UNIX_EPOCH, zone: jiff::tz::TimeZone::UTC };
    let query = Query::parse(query, &today).unwrap();
    let mut searcher = store.searcher()?;
    let request = SearchRequest { query: &query, order: Order::Newest, offset: 0, limit: 10_000, within: None };
    let answer = searcher.find(&request)?;
    let mut found = vec![String::new(); answer.hits.len()];
    let mut absent = None;
    searcher.read_each(&answer.hits, EntryDetail::Texts, &mut |at, read| match read {
        Ok((_, entry)) => found[at] = format!("{:?} {}", answer.hits[at].time, entry.pieces().join(" ")),
        Err(reason) => absent = Some(reason),
    })?;
    // An unreadable hit is reported as such.
    if absent.is_some() {
        return Err(stenograph_store::Error::new(
            &stenograph_store::Place::Temporary,
            stenograph_store::Problem::Damaged,
        ));
    }
    found.sort();
    Ok(format!("{}\n{}", answer.total, found.join("\n")))
}

/// The bytes of everything archived, with names; an error if anything is unreadable or noticed to be missing.
fn archive(folder: &Path) -> Result<String, String> {
    let archive = Archive::open(Arc::new(Disk), &folder.join("archive")).map_err(|error| error.to_string())?;
    if let Some(warning) = archive.warnings().first() {
        return Err(warning.text.clone());
    }
    let mut kept = Vec::new();
    for copy in archive.copies() {
        let mut bytes = String::new();
        let mut reader = archive.read(copy.id, WhichVersion::Last, 0).map_err(|error| error.to_string())?;
        reader.read_to_string(&mut bytes).map_err(|error| error.to_string())?;
        kept.push(format!("{:?} {bytes}", copy.path.file_name()));
    }
    kept.sort();
    Ok(kept.join("\n"))
}

/// The output of `show` for the session that only the archive has.
fn gone(store: &Store) -> Result<String, stenograph_store::Error> {
    let catalogue = store.catalogue()?;
    let missing =
        || stenograph_store::Error::new(&stenograph_store::Place::Temporary, stenograph_store::Problem::NotKept);
    let session = catalogue.sessions_named(GONE)?.pop().ok_or_else(missing)?;
    let row = catalogue.source_at(&session.path)?.ok_or_else(missing)?;
    let (mut source, _) = store.open_source(&row)?;
    let mut text = String::new();
    source.pass()?.read_to_string(&mut text).map_err(|error| {
        stenograph_store::Error::from_system(
            &stenograph_store::Place::Temporary,
            stenograph_store::Problem::Damaged,
            error,
        )
    })?;
    Ok(text)
}

/// Every file of a store, sorted, with its relative path. Locks do not count.
fn files(folder: &Path) -> Vec<PathBuf> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_none_or(|ending| ending != "lock") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    walk(folder, &mut found);
    found.sort();
    found.iter().map(|path| path.strip_prefix(folder).unwrap().to_owned()).collect()
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy_folder(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

/// Damages a file and describes how. `region` of `regions` selects the position.
fn damage(path: &Path, kind: usize, region: (usize, usize), random: &mut fastrand::Rng) -> String {
    let mut bytes = fs::read(path).unwrap();
    let start = bytes.len() * region.0 / region.1;
    let end = (bytes.len() * (region.0 + 1) / region.1).max(start + 1).min(bytes.len());
    let at = if start < end { random.usize(start..end) } else { start };
    let description = match kind {
        _ if bytes.is_empty() => {
            bytes.extend((0..random.usize(1..64)).map(|_| random.u8(..)));
            "garbage in an empty file".to_owned()
        }
        0 | 1 => {
            let bit = random.u8(0..8);
            bytes[at] ^= 1 << bit;
            format!("bit {bit} of byte {at} flipped")
        }
        2 => {
            let until = (at + random.usize(1..64)).min(bytes.len());
            bytes[at..until].iter_mut().for_each(|byte| *byte = random.u8(..));
            format!("bytes {at} to {until} overwritten")
        }
        3 => {
            let until = (at + 512).min(bytes.len());
            bytes[at..until].fill(0);
            format!("bytes {at} to {until} zeroed")
        }
        4 => {
            bytes.truncate(at);
            format!("truncated to {at} bytes")
        }
        5 => {
            bytes.extend((0..random.usize(1..600)).map(|_| random.u8(..)));
            "garbage at the end".to_owned()
        }
        _ => {
            fs::remove_file(path).unwrap();
            return "deleted".to_owned();
        }
    };
    fs::write(path, bytes).unwrap();
    description
}

/// Runs the commands, which must not panic and must exit with 0, 1 or 2.
fn run_commands(store: &Path, home: &Path, context: &str) {
    let lines = [
        vec!["list", "--json"],
        vec!["find", "walrus", "--json"],
        vec!["show", GONE],
        vec!["archive", "list"],
        vec!["archive", "verify"],
        vec!["config", "folder", "list"],
        vec!["index", "--root", home.to_str().unwrap(), "--json"],
    ];
    for words in lines {
        let mut command = Command::new(env!("CARGO_BIN_EXE_steno"));
        command.args(&words).env("STENO_HOME", store).env("HOME", home).stdin(Stdio::null());
        let done = command.output().unwrap();
        let talk = String::from_utf8_lossy(&done.stderr);
        assert!(!talk.contains("panicked"), "{context}: {words:?}: {talk}");
        assert!(matches!(done.status.code(), Some(0..=2)), "{context}: {words:?}: {:?} {talk}", done.status);
        assert!(done.status.code() != Some(2) || talk.contains("error: "), "{context}: {words:?}: {talk}");
    }
}

struct Ground {
    folder: TempDir,
    home: PathBuf,
    whole: PathBuf,
    expected: Answers,
    files: Vec<PathBuf>,
}

impl Ground {
    /// A store with these files damaged.
    fn new(is_damaged: fn(&Path) -> bool) -> Ground {
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let path = fs::canonicalize(folder.path()).unwrap();
        let (home, whole) = (path.join("home"), path.join("whole"));
        make_home(&home);
        index(&whole, &home).unwrap();
        fs::remove_file(home.join(format!(".claude/projects/-work-app/{GONE}.jsonl"))).unwrap();
        index(&whole, &home).unwrap();
        let expected = ask(&whole);
        expected.iter().for_each(|(name, answer)| assert!(answer.as_ref().is_ok_and(|text| text.len() > 10), "{name}"));
        let mut files = files(&whole);
        files.retain(|file| is_damaged(file));
        assert!(!files.is_empty());
        Ground { folder, home, whole, expected, files }
    }

    /// One damage, and everything that must hold after it.
    fn check(&self, case: usize, seed: u64) {
        let mut random = fastrand::Rng::with_seed(seed ^ (case as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let file = &self.files[case % self.files.len()];
        let round = case / self.files.len();
        let rounds = CASES.div_ceil(self.files.len());
        let store = fs::canonicalize(self.folder.path()).unwrap().join(format!("case{case}"));
        copy_folder(&self.whole, &store);
        let how = damage(&store.join(file), round % 7, (round % rounds, rounds), &mut random);
        let context = format!("case {case}, seed {seed}: {}: {how}", file.display());
        let is_archive = file.starts_with("archive");
        self.compare(&ask(&store), &context, "before the next index", &mut |_, _| true);
        if case.is_multiple_of(COMMANDS_EVERY) {
            run_commands(&store, &self.home, &context);
        }
        match index(&store, &self.home) {
            // Only a damaged log stops the index, with a hint. The packs have a second copy of it, so nothing is lost.
            Err(error) => {
                assert!(is_archive && !file.starts_with("archive/packs"), "{context}: index: {error}");
                assert!(
                    matches!(error.problem, stenograph_store::Problem::LogDamaged { .. }),
                    "{context}: index: {error}"
                );
                assert!(error.hint().unwrap().contains("steno archive verify --repair"), "{context}: index: {error}");
                let files: Arc<dyn stenograph_store::files::Files> = Arc::new(Disk);
                let repaired = ArchiveWriter::repair(&files, &store.join("archive")).unwrap();
                assert!(repaired.lost.is_empty() && repaired.lines_lost == 0, "{context}: {repaired:?}");
                index(&store, &self.home).unwrap();
                self.compare(&ask(&store), &context, "repaired", &mut |_, _| false);
            }
            Ok(_) => self.compare(&ask(&store), &context, "healed", &mut |name, _| is_archive && name != "list"),
        }
        fs::remove_dir_all(&store).unwrap();
    }

    fn compare(&self, answers: &Answers, context: &str, when: &str, may_fail: &mut dyn FnMut(&str, &str) -> bool) {
        for (name, expected) in &self.expected {
            match &answers[name] {
                Ok(text) => assert_eq!(text, expected.as_ref().unwrap(), "{context}: {when}: {name}"),
                Err(error) => assert!(may_fail(name, error), "{context}: {when}: {name}: {error}"),
            }
        }
    }
}

fn is_of_archive(file: &Path) -> bool {
    file.starts_with("archive")
}

fn check_all(is_damaged: fn(&Path) -> bool) {
    let ground = Ground::new(is_damaged);
    let seed = number("STENO_SEED").unwrap_or(20_260_411);
    let cases = CASES * usize::try_from(number("STENO_ROUNDS").unwrap_or(1)).unwrap();
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let case = next.fetch_add(1, Ordering::Relaxed);
                    if case >= cases {
                        return;
                    }
                    ground.check(case, seed);
                }
            });
        }
    });
}

#[test]
fn damage_to_the_index_is_answered_with_the_truth_or_an_error_and_healed() {
    check_all(|file| !is_of_archive(file));
}

#[test]
fn damage_to_the_archive_is_answered_with_the_truth_or_an_error() {
    check_all(is_of_archive);
}

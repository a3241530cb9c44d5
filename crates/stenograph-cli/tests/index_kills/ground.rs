//! A home folder and a store, and the check that the store matches the home.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use serde_json::Value;
use stenograph::query::{Query, Today};
use stenograph_store::archive::{Archive, CopyId, WhichVersion};
use stenograph_store::files::Disk;
use stenograph_store::index::Store;
use stenograph_store::index::search::{EntryDetail, Order, SearchRequest};
use tempfile::TempDir;

use crate::tree::{COMMON, Tree};

pub struct Ground {
    _folder: TempDir,
    pub path: PathBuf,
    pub tree: Tree,
    /// Whether a run has ended successfully: from then on the index must not be rebuilt.
    pub is_made: bool,
}

/// How many lines the index knows, each counted once.
pub fn count(store: &Path) -> Result<u64, stenograph_store::Error> {
    let today = Today { now: jiff::Timestamp::UNIX_EPOCH, zone: jiff::tz::TimeZone::UTC };
    let query = Query::parse(COMMON, &today).unwrap();
    let request = SearchRequest { query: &query, order: Order::Newest, offset: 0, limit: 100_000, within: None };
    let hits = Store::new(store).searcher()?.find(&request)?.hits;
    Ok(hits.iter().filter(|hit| hit.version.is_none()).count() as u64)
}

impl Ground {
    pub fn new() -> Ground {
        // A kill does not lose data in the page cache, so no disk is needed.
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let path = fs::canonicalize(folder.path()).unwrap();
        let tree = Tree::new(&path.join("home"));
        Ground { _folder: folder, path, tree, is_made: false }
    }

    pub fn store(&self) -> PathBuf {
        self.path.join("store")
    }

    pub fn steno(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_steno"));
        command.args(words).current_dir(&self.path).env("HOME", self.path.join("home")).env("STENO_HOME", self.store());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn index(&self) -> Command {
        self.steno(&["index", "--root", "home", "--threads", "1", "--json"])
    }

    /// Deletes the index, as anybody may at any time. The archive stays.
    pub fn lose_index(&mut self) {
        let _ = fs::remove_dir_all(self.store().join("index"));
        self.is_made = false;
        // Without an index a move is invisible: the copy in the archive belongs to a file that no longer exists.
        self.tree.is_unknown();
        self.tree.story.push("the index is deleted".to_owned());
    }

    /// A complete run, after which everything must be right.
    pub fn check(&mut self) -> Result<(), String> {
        let done = self.index().output().unwrap();
        let report = self.report(&done)?;
        match (&report["made"], self.is_made) {
            (Value::Null, _) => {}
            (Value::String(reason), false) if reason == "first" => {}
            (reason, _) => return Err(format!("the index was made anew: {reason}")),
        }
        self.is_made = true;
        let is_expected = |warning: &Value| self.is_of_recovery(warning);
        if !report["remarks"].as_array().is_some_and(|warnings| warnings.iter().all(is_expected)) {
            return Err(format!("remarks: {}", report["remarks"]));
        }
        self.check_words()?;
        self.check_archive()?;
        self.tree.is_known();
        Ok(())
    }

    /// Whether a warning says that the last, interrupted commit of the archive was completed or ignored. Nothing is lost then,
    /// but a run reports it. At most one commit is interrupted.
    fn is_of_recovery(&self, warning: &Value) -> bool {
        let text = warning["text"].as_str().unwrap_or_default();
        let is_of_log =
            warning["path"].as_str().is_some_and(|path| Path::new(path) == self.store().join("archive/log.jsonl"));
        is_of_log
            && (text.starts_with("1 of ") && text.ends_with(" commits are missing from the log; the packs have them")
                || text.starts_with("commit ") && text.ends_with(" is incomplete and ignored")
                || text.starts_with("moved an incomplete commit of "))
    }

    fn report(&self, done: &Output) -> Result<Value, String> {
        let stderr = String::from_utf8_lossy(&done.stderr).into_owned();
        if !done.status.success() {
            return Err(format!("index failed with {}: {stderr}", done.status));
        }
        serde_json::from_slice(&done.stdout).map_err(|error| format!("{error}: {stderr}"))
    }

    /// Every word in the files is found once, at its position, and nothing else is found.
    fn check_words(&self) -> Result<(), String> {
        let failed = |error: stenograph_store::Error| error.to_string();
        let mut searcher = Store::new(self.store()).searcher().map_err(failed)?;
        let today = Today { now: jiff::Timestamp::UNIX_EPOCH, zone: jiff::tz::TimeZone::UTC };
        let query = Query::parse(COMMON, &today).unwrap();
        let request = SearchRequest { query: &query, order: Order::Newest, offset: 0, limit: 100_000, within: None };
        let mut answer = searcher.find(&request).map_err(failed)?;
        // The text of earlier versions is found too, and marked.
        answer.hits.retain(|hit| hit.version.is_none());
        let mut found = vec![String::new(); answer.hits.len()];
        searcher
            .read_each(&answer.hits, EntryDetail::Texts, &mut |at, read| {
                found[at] = match read {
                    Ok((_, entry)) => entry.pieces().join(" "),
                    Err(absent) => absent.reason().to_owned(),
                };
            })
            .map_err(failed)?;
        let sources = searcher.catalogue().sources().map_err(failed)?;
        // How often the documents contain each word: every source that is not a copy has its own documents.
        let mut expected: BTreeMap<u32, usize> = BTreeMap::new();
        for source in sources.iter().filter(|source| source.copy_of.is_none()) {
            let Some(words) = self.tree.words_at(&source.path) else {
                return Err(format!("nobody made {:?}", source.path));
            };
            words.iter().for_each(|word| *expected.entry(*word).or_default() += 1);
        }
        let known: BTreeSet<&Path> = sources.iter().map(|source| source.path.as_path()).collect();
        if let Some(path) = self.tree.paths().find(|path| !known.contains(path)) {
            return Err(format!("{path:?} is not in the catalogue"));
        }
        let mut seen = BTreeSet::new();
        for (text, hit) in found.iter().zip(&answer.hits) {
            let word = text.strip_prefix(COMMON).and_then(|text| text.trim().strip_prefix("word")?.parse::<u32>().ok());
            let Some(word) = word else { return Err(format!("a hit says {text:?}: {hit:?}")) };
            if !seen.insert(word) {
                return Err(format!("word {word} is found twice"));
            }
            if expected.get(&word) != Some(&(hit.copies + 1)) {
                return Err(format!("word {word} has {} documents, not {:?}", hit.copies + 1, expected.get(&word)));
            }
        }
        let words = self.tree.words();
        if seen != words {
            let missing: Vec<_> = words.difference(&seen).collect();
            let ghosts: Vec<_> = seen.difference(&words).collect();
            return Err(format!("missing: {missing:?}; superseded and still found: {ghosts:?}"));
        }
        Ok(())
    }

    /// The archive is sound and restores every file, including deleted ones.
    fn check_archive(&self) -> Result<(), String> {
        let failed = |error: stenograph_store::Error| error.to_string();
        let archive = Archive::open(Arc::new(Disk), &self.store().join("archive")).map_err(failed)?;
        let verified = archive.verify(&mut |_| true).map_err(failed)?;
        if !verified.damaged.is_empty() {
            return Err(format!("the archive is damaged: {:?}", verified.damaged));
        }
        let catalogue = Store::new(self.store()).catalogue().map_err(failed)?;
        let there = self.tree.paths().map(|path| (path, fs::read(path).unwrap()));
        for (path, bytes) in there.chain(self.tree.gone().map(|(path, bytes)| (path, bytes.to_vec()))) {
            let row = catalogue.source_at(path).map_err(failed)?.ok_or_else(|| format!("{path:?} is not known"))?;
            let Some(copy) = row.archive_copy.as_deref().and_then(|kept| kept.parse().ok()) else {
                return Err(format!("{path:?} is not kept"));
            };
            let mut kept = Vec::new();
            let mut reader = archive.read(CopyId(copy), WhichVersion::Last, 0).map_err(failed)?;
            reader.read_to_end(&mut kept).map_err(|error| format!("{path:?}: {error}"))?;
            if kept != bytes {
                return Err(format!("{path:?} is kept as {} bytes, not as {}", kept.len(), bytes.len()));
            }
        }
        Ok(())
    }

    /// The same check through the command.
    pub fn check_find(&self) -> Result<(), String> {
        let done = self.steno(&["find", "--json", "--limit", "100000", COMMON]).output().unwrap();
        let text = String::from_utf8_lossy(&done.stdout);
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap_or_default());
        let found = lines.filter(|line| line.get("version").is_some_and(Value::is_null)).count();
        let count = self.tree.words().len();
        if found == count {
            return Ok(());
        }
        Err(format!("find finds {found}, not {count}; {}", String::from_utf8_lossy(&done.stderr)))
    }
}

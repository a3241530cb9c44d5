//! A small tree of sessions that changes like real ones, and the words that must be found in it. It does not know the index.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::json;

/// A word of every line.
pub const COMMON: &str = "walrus";

/// A file: its words, and its changes since the index last matched it.
#[derive(Clone, Debug)]
struct Session {
    id: String,
    words: Vec<u32>,
    /// Whether its last line is incomplete.
    is_open: bool,
    /// Copies of a file share this number until one of them is rewritten.
    family: u32,
    is_clean: bool,
}

#[derive(Debug)]
pub struct Tree {
    home: PathBuf,
    sessions: BTreeMap<PathBuf, Session>,
    /// Deleted files as they were: the archive has them.
    gone: BTreeMap<PathBuf, (Session, Vec<u8>)>,
    next_word: u32,
    next_name: u32,
    next_family: u32,
    /// A log of all changes, for debugging.
    pub story: Vec<String>,
}

impl Tree {
    pub fn new(home: &Path) -> Tree {
        fs::create_dir_all(home.join(".claude/projects/-work-app")).unwrap();
        fs::create_dir_all(home.join(".claude/projects/-work-other")).unwrap();
        Tree {
            home: home.to_owned(),
            sessions: BTreeMap::new(),
            gone: BTreeMap::new(),
            next_word: 1,
            next_name: 1,
            next_family: 1,
            story: Vec::new(),
        }
    }

    /// Every word that must be found, once.
    pub fn words(&self) -> BTreeSet<u32> {
        let gone = self.gone.values().map(|(session, _)| session);
        self.sessions.values().chain(gone).flat_map(|session| session.words.iter().copied()).collect()
    }

    /// The words of the file that is, or was, at a path.
    pub fn words_at(&self, path: &Path) -> Option<&[u32]> {
        let gone = || self.gone.get(path).map(|(session, _)| session);
        self.sessions.get(path).or_else(gone).map(|session| session.words.as_slice())
    }

    /// The existing files.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.sessions.keys().map(PathBuf::as_path)
    }

    /// The deleted files, with their words.
    pub fn gone(&self) -> impl Iterator<Item = (&Path, &[u8])> {
        self.gone.iter().map(|(path, (_, bytes))| (path.as_path(), bytes.as_slice()))
    }

    /// Records that the index matches everything.
    pub fn is_known(&mut self) {
        self.sessions.values_mut().for_each(|session| session.is_clean = true);
        self.story.push("looked at".to_owned());
    }

    /// Records that there is no index.
    pub fn is_unknown(&mut self) {
        self.sessions.values_mut().for_each(|session| session.is_clean = false);
    }

    /// Changes a file. A change that leaves no trace if it was not indexed in time, such as a deletion, is made only to files
    /// that the index matches.
    pub fn change(&mut self, random: &mut fastrand::Rng) {
        let Some(path) = self.any(random) else { return self.create(10, random) };
        let session = self.sessions.get(&path).unwrap();
        let relatives = self.sessions.values().filter(|other| other.family == session.family).count();
        let is_clean = session.is_clean;
        match random.u8(..20) {
            0..3 if self.sessions.len() < 12 => self.create(random.usize(2..40), random),
            3..8 => self.grow(&path, random),
            8..10 => self.rewrite(&path, random),
            10..12 => self.truncate(&path, random),
            12..14 if is_clean => self.rename(&path, random),
            14..16 if self.sessions.len() < 12 => self.copy(&path, random),
            16 if is_clean && relatives == 1 && self.sessions.len() > 3 => self.delete(&path),
            17 => self.revive(random),
            18 if is_clean => self.replace(&path),
            _ => self.grow(&path, random),
        }
    }

    fn any(&self, random: &mut fastrand::Rng) -> Option<PathBuf> {
        let paths: Vec<&PathBuf> = self.sessions.keys().collect();
        random.choice(paths).cloned()
    }

    fn free_path(&mut self, random: &mut fastrand::Rng) -> (PathBuf, String) {
        let number = self.next_name;
        self.next_name += 1;
        let id = format!("{number:08x}-d9cb-469f-a165-70867728950e");
        let folder = *random.choice(["-work-app", "-work-other"].iter()).unwrap();
        // Not every name is text, and not every one is on one line.
        let name = match number % 7 {
            3 => std::ffi::OsString::from(format!("{id} of\nlines.jsonl")),
            5 => odd_name(&id),
            _ => std::ffi::OsString::from(format!("{id}.jsonl")),
        };
        (self.home.join(".claude/projects").join(folder).join(name), id)
    }

    /// A new session with this number of lines.
    pub fn create(&mut self, count: usize, random: &mut fastrand::Rng) {
        let (path, id) = self.free_path(random);
        let words = self.new_words(count);
        let family = self.new_family();
        self.say("create", &path);
        self.put(&path, Session { id, words, is_open: false, family, is_clean: false });
    }

    fn grow(&mut self, path: &Path, random: &mut fastrand::Rng) {
        let more = self.new_words(random.usize(1..8));
        let session = self.sessions.get_mut(path).unwrap();
        let mut text = String::new();
        if session.is_open {
            text.push('\n');
        }
        for word in &more {
            text.push_str(&line(&session.id, *word));
        }
        session.is_open = random.u8(..4) == 0;
        if session.is_open {
            text.truncate(text.trim_end().len());
        }
        session.words.extend(more);
        session.is_clean = false;
        fs::File::options().append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
        self.say("grow", path);
    }

    fn rewrite(&mut self, path: &Path, random: &mut fastrand::Rng) {
        // After a move the index must see the file once, or it does not count as moved.
        let session = self.sessions.get(path).unwrap().clone();
        if !session.is_clean && self.is_moving(path) {
            return;
        }
        let words = self.new_words(random.usize(2..30));
        let family = self.new_family();
        self.say("rewrite", path);
        self.put(path, Session { words, is_open: false, family, is_clean: false, ..session });
    }

    /// Rewrites every file.
    pub fn rewrite_all(&mut self, count: usize) {
        for (path, session) in self.sessions.clone() {
            let words = self.new_words(count);
            self.put(&path, Session { words, is_open: false, is_clean: false, ..session });
        }
    }

    fn truncate(&mut self, path: &Path, random: &mut fastrand::Rng) {
        let mut session = self.sessions.get(path).unwrap().clone();
        if session.words.len() < 4 || (!session.is_clean && self.is_moving(path)) {
            return;
        }
        session.words.truncate(random.usize(2..session.words.len()));
        (session.is_open, session.is_clean) = (false, false);
        self.say("truncate", path);
        self.put(path, session);
    }

    fn is_moving(&self, path: &Path) -> bool {
        let moved = format!("to {path:?}");
        let since = self.story.iter().rposition(|line| line == "looked at").unwrap_or(0);
        self.story.iter().skip(since).any(|line| line.ends_with(&moved))
    }

    fn rename(&mut self, path: &Path, random: &mut fastrand::Rng) {
        let (to, _) = self.free_path(random);
        fs::rename(path, &to).unwrap();
        let session = Session { is_clean: false, ..self.sessions.remove(path).unwrap() };
        self.story.push(format!("rename {path:?} to {to:?}"));
        self.sessions.insert(to.clone(), session);
        if random.bool() {
            self.grow(&to, random);
        }
    }

    fn copy(&mut self, path: &Path, random: &mut fastrand::Rng) {
        let (to, _) = self.free_path(random);
        fs::copy(path, &to).unwrap();
        let session = Session { is_clean: false, ..self.sessions.get(path).unwrap().clone() };
        self.story.push(format!("copy {path:?} to {to:?}"));
        self.sessions.insert(to, session);
    }

    /// Deletes a file that has no copy.
    pub fn delete_any(&mut self) {
        let alone = |session: &Session| {
            session.is_clean && self.sessions.values().filter(|other| other.family == session.family).count() == 1
        };
        let found = self.sessions.iter().find(|(_, session)| alone(session)).map(|(path, _)| path.clone());
        if let Some(path) = found {
            self.delete(&path);
        }
    }

    fn delete(&mut self, path: &Path) {
        let bytes = fs::read(path).unwrap();
        fs::remove_file(path).unwrap();
        let session = self.sessions.remove(path).unwrap();
        self.say("delete", path);
        self.gone.insert(path.to_owned(), (session, bytes));
    }

    /// Restores a deleted file.
    fn revive(&mut self, random: &mut fastrand::Rng) {
        let paths: Vec<PathBuf> = self.gone.keys().cloned().collect();
        let Some(path) = random.choice(paths) else { return };
        let (session, bytes) = self.gone.remove(&path).unwrap();
        fs::write(&path, bytes).unwrap();
        self.say("revive", &path);
        self.sessions.insert(path, Session { is_clean: false, ..session });
    }

    /// A new file with the same bytes replaces it.
    fn replace(&mut self, path: &Path) {
        let beside = path.with_extension("new");
        fs::copy(path, &beside).unwrap();
        fs::rename(&beside, path).unwrap();
        self.say("replace", path);
    }

    fn put(&mut self, path: &Path, session: Session) {
        let text: String = session.words.iter().map(|word| line(&session.id, *word)).collect();
        fs::write(path, text).unwrap();
        self.sessions.insert(path.to_owned(), session);
    }

    fn new_words(&mut self, count: usize) -> Vec<u32> {
        let first = self.next_word;
        self.next_word += u32::try_from(count).unwrap();
        (first..self.next_word).collect()
    }

    fn new_family(&mut self) -> u32 {
        self.next_family += 1;
        self.next_family
    }

    fn say(&mut self, what: &str, path: &Path) {
        self.story.push(format!("{what} {path:?}"));
    }
}

#[cfg(target_os = "linux")]
fn odd_name(id: &str) -> std::ffi::OsString {
    use std::os::unix::ffi::OsStringExt as _;
    std::ffi::OsString::from_vec([id.as_bytes(), b"\xff\xfe.jsonl"].concat())
}

#[cfg(not(target_os = "linux"))]
fn odd_name(id: &str) -> std::ffi::OsString {
    std::ffi::OsString::from(format!("{id} \u{7}.jsonl"))
}

fn line(session: &str, word: u32) -> String {
    let (role, minute, second) = (if word.is_multiple_of(2) { "assistant" } else { "user" }, word / 60 % 60, word % 60);
    let record = json!({
        "type": role, "uuid": format!("{word:08}-d9cb-469f-a165-70867728950e"), "sessionId": session,
        "timestamp": format!("2026-01-02T03:{minute:02}:{second:02}.000Z"), "cwd": "/work/app", "gitBranch": "main",
        "message": {"role": role, "content": format!("{COMMON} word{word}")},
    });
    format!("{record}\n")
}

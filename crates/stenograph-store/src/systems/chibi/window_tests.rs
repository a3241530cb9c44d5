//! What clearing and rebuilding a window preserve, even with a crash after any single step.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{fs, io};

use stenograph::time::{Time, TimeUnit};

use super::*;
use crate::files::{Disk, Files, OpenFile};
use crate::log::Durability;

pub(crate) fn environment(files: Arc<dyn Files>) -> Environment {
    let clock = Arc::new(|| Time { text: "2000".into(), unit: TimeUnit::Seconds });
    Environment { files, clock, durability: Durability::Always, home: None }
}

pub(crate) fn message(id: &str, to: &str, content: &str) -> String {
    let from = if to == "user" { "ctx" } else { "alice" };
    format!(
        "{{\"id\":\"{id}\",\"timestamp\":1000,\"from\":\"{from}\",\"to\":\"{to}\",\"content\":\"{content}\",\"entry_type\":\"message\"}}\n"
    )
}

pub(crate) fn ids(path: &Path) -> Vec<String> {
    entry::all(&Disk, path).unwrap().into_iter().map(|entry| entry.id.unwrap_or_default()).collect()
}

pub(crate) fn types(path: &Path) -> Vec<String> {
    entry::all(&Disk, path).unwrap().into_iter().map(|entry| entry.entry_type.unwrap_or_default()).collect()
}

pub(crate) fn held(folder: &Path) -> Window {
    Window::lock(&Context::at(folder), &environment(Arc::new(Disk))).unwrap()
}

#[test]
fn clearing_archives_first_and_adds_to_the_markdown() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let messages = [message("1", "ctx", "What is Rust?"), message("2", "user", "A\\nlanguage.")].concat();
    fs::write(folder.join("context.jsonl"), &messages).unwrap();
    let changed = held(folder).clear().unwrap();
    assert_eq!((changed.archived, changed.entries), (2, 1));
    assert_eq!(fs::read_to_string(folder.join("transcript_archive.jsonl")).unwrap(), messages);
    let page = fs::read_to_string(folder.join("transcript.md")).unwrap();
    assert_eq!(page, "[USER]: What is Rust?\n\n[ASSISTANT]: A\nlanguage.\n\n");
    assert_eq!(types(&folder.join("context.jsonl")), ["archival"]);
    assert!(held(folder).is_empty());
    // The same words again are a new message.
    let mut file = fs::read_to_string(folder.join("context.jsonl")).unwrap();
    file += &message("3", "ctx", "What is Rust?");
    fs::write(folder.join("context.jsonl"), file).unwrap();
    held(folder).clear().unwrap();
    let page = fs::read_to_string(folder.join("transcript.md")).unwrap();
    assert!(page.ends_with("language.\n\n[USER]: What is Rust?\n\n"));
    assert_eq!(types(&folder.join("transcript_archive.jsonl")), ["message", "message", "archival", "message"]);
}

#[test]
fn kept_entries_follow_the_anchor_and_a_rebuild_leaves_them_there() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let messages = ["1", "2", "3"].map(|id| message(id, "ctx", id)).concat();
    fs::write(folder.join("context.jsonl"), messages).unwrap();
    let marker = Anchor::Compaction("one".to_owned());
    let places = [EntryPlace::Aside, EntryPlace::Window, EntryPlace::Window];
    held(folder).put_aside(&marker, &places).unwrap();
    let window = ids(&folder.join("context.jsonl"));
    assert_eq!(window[1..], ["2", "3"]);
    assert_eq!(ids(&folder.join("transcript_archive.jsonl")), ["1"]);
    let changed = held(folder).rebuild().unwrap();
    assert_eq!((changed.archived, changed.entries), (0, 3));
    assert_eq!(ids(&folder.join("context.jsonl")), window);
    // A lost window comes back from the archive as far as it was archived.
    fs::remove_file(folder.join("context.jsonl")).unwrap();
    held(folder).rebuild().unwrap();
    assert_eq!(types(&folder.join("context.jsonl")), ["context_created", "message"]);
}

#[test]
fn the_current_transcript_gets_the_anchor_and_a_rebuild_knows_the_kept_entries() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::create_dir(folder.join("transcript")).unwrap();
    let messages = ["1", "2", "3"].map(|id| message(id, "ctx", id)).concat();
    fs::write(folder.join("transcript/active.jsonl"), &messages).unwrap();
    fs::write(folder.join("context.jsonl"), &messages).unwrap();
    let places = [EntryPlace::Aside, EntryPlace::Aside, EntryPlace::Window];
    held(folder).put_aside(&Anchor::Compaction("x".to_owned()), &places).unwrap();
    assert!(!folder.join("transcript.md").exists());
    assert_eq!(types(&folder.join("transcript/active.jsonl")), ["message", "message", "message", "compaction"]);
    let window = ids(&folder.join("context.jsonl"));
    assert_eq!(window[1..], ["3"]);
    fs::remove_file(folder.join("context.jsonl")).unwrap();
    held(folder).rebuild().unwrap();
    assert_eq!(ids(&folder.join("context.jsonl")), window);
}

#[test]
fn a_compaction_is_undone_and_the_next_one_too() {
    for today in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        if today {
            fs::write(folder.join("transcript.jsonl"), "").unwrap();
        }
        let messages = ["1", "2", "3"].map(|id| message(id, "ctx", id)).concat();
        fs::write(folder.join("context.jsonl"), messages).unwrap();
        assert!(held(folder).bring_back().unwrap().is_none());
        let spoken = || {
            let entries = entry::all(&Disk, &folder.join("context.jsonl")).unwrap();
            let spoken = entries.into_iter().filter(|entry| !entry.is_anchor());
            spoken.map(|entry| entry.id.unwrap()).collect::<Vec<_>>()
        };
        let compact = |aside: usize| {
            let window = held(folder);
            let place = |at: usize| if at < aside { EntryPlace::Aside } else { EntryPlace::Window };
            let places: Vec<EntryPlace> = (0..window.entries().len()).map(place).collect();
            window.put_aside(&Anchor::Compaction("sum".to_owned()), &places).unwrap();
        };
        compact(2);
        assert_eq!(spoken(), ["3"]);
        held(folder).bring_back().unwrap().unwrap();
        assert_eq!(spoken(), ["1", "2", "3"]);
        compact(2);
        let mut bytes = fs::read(folder.join("context.jsonl")).unwrap();
        bytes.extend_from_slice(message("4", "ctx", "4").as_bytes());
        fs::write(folder.join("context.jsonl"), bytes).unwrap();
        compact(2);
        let before = spoken();
        held(folder).bring_back().unwrap().unwrap();
        assert!(spoken().len() > before.len() && spoken().ends_with(&["4".to_owned()]));
        held(folder).rebuild().unwrap();
        assert!(spoken().len() > before.len() && spoken().ends_with(&["4".to_owned()]), "{today}: {:?}", spoken());
    }
}

#[test]
fn entries_that_chibi_kept_after_its_compaction_stay_and_get_their_ids_back() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let anchor = "{\"id\":\"a\",\"timestamp\":1500,\"from\":\"system\",\"to\":\"ctx\",\"content\":\"Context compacted\",\"entry_type\":\"compaction\"}\n";
    let transcript = ["1", "2", "3"].map(|id| message(id, "ctx", id)).concat() + anchor + &message("4", "ctx", "4");
    fs::write(folder.join("transcript.jsonl"), transcript).unwrap();
    // Chibi rewrote its window: other ids, the same words.
    let window = anchor.replace("\"a\"", "\"b\"") + &message("x", "ctx", "3") + &message("y", "ctx", "4");
    fs::write(folder.join("context.jsonl"), window).unwrap();
    fs::write(folder.join(".dirty"), "").unwrap();
    let before = fs::read(folder.join("transcript.jsonl")).unwrap();
    held(folder).rebuild().unwrap();
    assert_eq!(ids(&folder.join("context.jsonl")), ["a", "3", "4"]);
    let after = fs::read(folder.join("transcript.jsonl")).unwrap();
    assert!(after.starts_with(&before));
    assert!(!folder.join(".dirty").exists());
}

#[test]
fn a_system_prompt_that_changed_is_in_no_window() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let prompt = message("p", "ctx", "new prompt").replace("\"message\"", "\"system_prompt_changed\"");
    fs::write(folder.join("transcript.jsonl"), message("1", "ctx", "a") + &prompt + &message("2", "ctx", "b")).unwrap();
    held(folder).rebuild().unwrap();
    assert_eq!(types(&folder.join("context.jsonl")), ["context_created", "message", "message"]);
    let again = fs::read(folder.join("context.jsonl")).unwrap();
    held(folder).rebuild().unwrap();
    assert_eq!(fs::read(folder.join("context.jsonl")).unwrap(), again);
}

#[test]
fn a_crash_at_any_step_loses_nothing_and_doing_it_again_adds_nothing_twice() {
    for today in [false, true] {
        for steps in 0.. {
            let folder = tempfile::tempdir().unwrap();
            let folder = folder.path();
            let messages = ["1", "2", "3"].map(|id| message(id, "ctx", &format!("word {id}"))).concat();
            fs::write(folder.join("context.jsonl"), &messages).unwrap();
            fs::write(folder.join("transcript.md"), "[USER]: before\n\n").unwrap();
            let history = if today { "transcript/active.jsonl" } else { "transcript_archive.jsonl" };
            if today {
                fs::create_dir(folder.join("transcript")).unwrap();
                fs::write(folder.join(history), message("1", "ctx", "word 1")).unwrap();
            }
            let crashing = Arc::new(Crashing { left: Arc::new(AtomicUsize::new(steps)) });
            let first = Window::lock(&Context::at(folder), &environment(crashing)).and_then(Window::clear);
            let everywhere = fs::read_to_string(folder.join(history)).unwrap_or_default()
                + &fs::read_to_string(folder.join("context.jsonl")).unwrap_or_default();
            for id in ["1", "2", "3"] {
                assert!(everywhere.contains(&format!("word {id}\"")), "{id} is lost after {steps} steps");
            }
            let again = held(folder);
            if again.is_empty() {
                drop(again);
            } else {
                again.clear().unwrap();
            }
            assert!(held(folder).is_empty());
            let mut expected = vec!["message"; 3];
            expected.extend(today.then_some("archival"));
            assert_eq!(types(&folder.join(history)), expected, "after {steps} steps");
            assert_eq!(types(&folder.join("context.jsonl")), ["archival"]);
            let page = fs::read_to_string(folder.join("transcript.md")).unwrap();
            assert_eq!(page, "[USER]: before\n\n[USER]: word 1\n\n[USER]: word 2\n\n[USER]: word 3\n\n");
            assert!(!Pending::path(&Context::at(folder)).exists());
            if first.is_ok() {
                assert!(steps > 8, "the crash came nowhere");
                break;
            }
        }
    }
}

/// A disk on which everything fails after some number of steps; the failing write is half done.
#[derive(Clone, Debug)]
pub(crate) struct Crashing {
    pub(crate) left: Arc<AtomicUsize>,
}

impl Crashing {
    fn step(&self) -> io::Result<()> {
        let left = self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        left.map(|_| ()).map_err(|_| io::Error::other("crashed"))
    }
}

impl Files for Crashing {
    fn open(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        self.step()?;
        Ok(Box::new(CrashingFile(Disk.open(path)?, self.clone())))
    }

    fn create_new(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        self.step()?;
        Ok(Box::new(CrashingFile(Disk.create_new(path)?, self.clone())))
    }

    fn overwrite(&self, path: &Path, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.step()?;
        Disk.overwrite(path, offset, bytes)
    }

    fn reader(&self, path: &Path, offset: u64) -> io::Result<Box<dyn io::Read>> {
        Disk.reader(path, offset)
    }

    fn length(&self, path: &Path) -> io::Result<Option<u64>> {
        Disk.length(path)
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        Disk.list(folder)
    }

    fn create_folder(&self, folder: &Path) -> io::Result<()> {
        self.step()?;
        Disk.create_folder(folder)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step()?;
        Disk.rename(from, to)
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step()?;
        Disk.rename_new(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.step()?;
        Disk.remove(path)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        self.step()?;
        Disk.sync_folder(folder)
    }
}

#[derive(Debug)]
struct CrashingFile(Box<dyn OpenFile>, Crashing);

impl OpenFile for CrashingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Err(error) = self.1.step() {
            let _ = self.0.write(&bytes[..bytes.len() / 2]);
            return Err(error);
        }
        self.0.write(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.1.step()?;
        self.0.sync()
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.1.step()?;
        self.0.truncate(length)
    }

    fn is_linked(&self) -> io::Result<bool> {
        self.0.is_linked()
    }
}

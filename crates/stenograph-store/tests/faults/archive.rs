//! The archive on a failing disk: acknowledged content is present and complete, whichever call fails and wherever it is
//! stopped.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use stenograph_store::archive::{
    AddOutcome, Archive, ArchiveWriter, Label, MarkChange, Marks, SessionKey, WhichVersion,
};
use stenograph_store::files::Files;
use stenograph_store::{Error, Problem};

use crate::disk::{FaultyDisk, memory};
use crate::plan::{Call, Planned, every_failure, rounds, seed, some_failures};

/// The acknowledged content: every content that a source had, by its name.
type Acknowledged = BTreeMap<String, Vec<Vec<u8>>>;

struct Script {
    /// The sources are on another disk, which works.
    sources: PathBuf,
    store: PathBuf,
    disk: FaultyDisk,
    keeper: Option<ArchiveWriter>,
    contents: BTreeMap<String, Vec<u8>>,
    /// Content added since the last commit.
    waiting: Vec<(String, Vec<u8>)>,
    acknowledged: Acknowledged,
    /// Sources to forget with the next commit.
    leaving: Vec<String>,
    /// Sources that were ever asked to be forgotten, acknowledged or not.
    doomed: Vec<String>,
    /// Sources that were acknowledged as forgotten.
    forgotten: Vec<String>,
    /// How many notes of the session were acknowledged.
    notes_acknowledged: usize,
    now: u64,
}

fn text(seed: u64, size: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    std::iter::repeat_with(|| random.alphanumeric() as u8).take(size).collect()
}

fn label(name: &str) -> Label {
    Label { format: "some".into(), session: Some(name.into()) }
}

fn session_key() -> SessionKey {
    SessionKey { agent: "some".into(), name: "a".into(), home: String::new(), first: None }
}

impl Script {
    fn new(folder: &Path) -> Script {
        let (sources, root) = (folder.join("sources"), folder.join("disk"));
        fs::create_dir_all(&sources).unwrap();
        fs::create_dir_all(&root).unwrap();
        Script {
            sources,
            store: root.join("store/archive"),
            disk: FaultyDisk::new(&root),
            keeper: None,
            contents: BTreeMap::new(),
            waiting: Vec::new(),
            acknowledged: Acknowledged::new(),
            leaving: Vec::new(),
            doomed: Vec::new(),
            forgotten: Vec::new(),
            notes_acknowledged: 0,
            now: 0,
        }
    }

    fn files(&self) -> Arc<dyn Files> {
        Arc::new(self.disk.clone())
    }

    fn keeper(&mut self) -> Result<&mut ArchiveWriter, Error> {
        let keeper = match self.keeper.take() {
            Some(keeper) => keeper,
            None => ArchiveWriter::open(self.files(), &self.store)?,
        };
        Ok(self.keeper.insert(keeper))
    }

    /// Changes a source and archives it.
    fn keep(&mut self, name: &str, bytes: Vec<u8>) {
        let path = self.sources.join(name);
        self.now += 1_000;
        fs::write(&path, &bytes).unwrap();
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(UNIX_EPOCH + Duration::from_millis(self.now)).unwrap();
        self.contents.insert(name.into(), bytes.clone());
        if let Ok(keeper) = self.keeper()
            && let Ok(AddOutcome::Archived(_)) = keeper.add(&path, &label(name))
        {
            self.waiting.push((name.into(), bytes));
        }
    }

    fn grow(&mut self, name: &str, size: usize) {
        let mut bytes = self.contents.get(name).cloned().unwrap_or_default();
        bytes.extend(text(self.now, size));
        self.keep(name, bytes);
    }

    fn commit(&mut self) -> Result<(), Error> {
        let now = self.now as i64;
        let waiting = std::mem::take(&mut self.waiting);
        let leaving = std::mem::take(&mut self.leaving);
        self.keeper()?.commit(now)?;
        for (name, bytes) in waiting {
            let known = self.acknowledged.entry(name).or_default();
            // Of a source that only grew, the longest content counts.
            known.retain(|known| !bytes.starts_with(known));
            known.push(bytes);
        }
        self.forgotten.extend(leaving);
        self.notes_acknowledged = self.keeper()?.marks().map(|(_, marks)| marks.notes.len()).sum();
        Ok(())
    }

    /// Adds a note to the marks of a session.
    fn note(&mut self) {
        self.now += 1_000;
        let now = self.now as i64;
        let change = MarkChange::Note { text: format!("note at {now}"), event: None };
        let Ok(keeper) = self.keeper() else { return };
        let mut marks = keeper.marks().next().map(|(_, marks)| marks.clone()).unwrap_or_default();
        marks.apply(&change, now).unwrap();
        // The next commit reports a failure.
        let _ = keeper.set_marks(&session_key(), &marks);
    }

    fn forget(&mut self, name: &str) {
        let path = self.sources.join(name);
        let Ok(keeper) = self.keeper() else { return };
        let Some(copy) = keeper.copies().find(|copy| copy.path == path) else { return };
        if keeper.forget(&[copy.id], "a test").is_ok() {
            self.leaving.push(name.into());
            self.doomed.push(name.into());
        }
    }

    /// Every operation of an archive.
    fn run(&mut self) {
        self.keep("a", text(1, 3_000));
        self.keep("b", text(2, 2_000));
        let _ = self.commit();
        self.note();
        let _ = self.commit();
        self.grow("a", 50);
        self.keep("b", text(3, 1_000));
        self.note();
        let _ = self.commit();
        self.keep("garbage", text(4, 30_000));
        let _ = self.commit();
        self.keeper = None;
        self.waiting.clear();
        self.grow("a", 70);
        self.keep("c", text(1, 3_000));
        let _ = self.commit();
        self.forget("garbage");
        let _ = self.commit();
        let now = self.now as i64;
        let _ = self.keeper().and_then(|keeper| keeper.reclaim(now));
        self.note();
        self.grow("a", 20);
        let _ = self.commit();
        self.keeper = None;
        self.waiting.clear();
    }

    fn read(&self, case: &str) -> BTreeMap<String, Vec<Vec<u8>>> {
        let archive = Archive::open(self.files(), &self.store).unwrap();
        let verified = archive.verify(&mut |_| true).unwrap();
        assert!(verified.damaged.is_empty(), "{case}: {verified:?}");
        let mut found: BTreeMap<String, Vec<Vec<u8>>> = BTreeMap::new();
        for copy in archive.copies() {
            let name = copy.path.file_name().unwrap().to_string_lossy().into_owned();
            for version in copy.versions {
                let mut bytes = Vec::new();
                let mut reader = archive.read(copy.id, WhichVersion::Number(version.number), 0).unwrap();
                reader.read_to_end(&mut bytes).unwrap();
                found.entry(name.clone()).or_default().push(bytes);
            }
        }
        found
    }

    /// Checks that acknowledged content is present and that the archive still works.
    fn check(&mut self, case: &str) {
        let opened = self.keeper().map(|_| ());
        opened.unwrap_or_else(|error| panic!("{case}: the disk is well, and yet: {error}"));
        self.assert_acknowledged(case);
        for (name, bytes) in self.contents.clone() {
            if !self.doomed.contains(&name) {
                self.keep(&name, bytes);
            }
        }
        // A failure that was not reported yet is reported now, once.
        if self.commit().is_err() {
            for (name, bytes) in self.contents.clone() {
                if !self.doomed.contains(&name) {
                    self.keep(&name, bytes);
                }
            }
            self.commit().unwrap_or_else(|error| panic!("{case}: the disk is well, and yet: {error}"));
        }
        self.assert_acknowledged(case);
        let found = self.read(case);
        for (name, bytes) in self.contents.iter().filter(|(name, _)| !self.doomed.contains(name)) {
            assert_eq!(found.get(name).and_then(|versions| versions.last()), Some(bytes), "{case}: {name}");
        }
        self.keeper = None;
        assert!(self.disk.strangers().is_empty(), "{case}");
    }

    fn assert_acknowledged(&self, case: &str) {
        let found = self.read(case);
        for (name, contents) in &self.acknowledged {
            if self.doomed.contains(name) {
                continue;
            }
            let versions = found.get(name).unwrap_or_else(|| panic!("{case}: {name} is lost"));
            for content in contents {
                // A source may have grown since, in a commit without a known outcome.
                let held = versions.iter().any(|version| version.starts_with(content));
                assert!(held, "{case}: {} bytes of {name} are lost", content.len());
            }
        }
        let archive = Archive::open(self.files(), &self.store).unwrap();
        let marks: Vec<&Marks> = archive.marks().map(|(_, marks)| marks).collect();
        let count = marks.iter().map(|marks| marks.notes.len()).sum::<usize>();
        assert!(count >= self.notes_acknowledged, "{case}: {count} of {} notes", self.notes_acknowledged);
        for name in &self.forgotten {
            assert!(!found.contains_key(name), "{case}: {name} came back");
        }
    }
}

fn calls_of_script() -> Vec<Call> {
    let folder = memory();
    let mut script = Script::new(folder.path());
    script.disk.plan(&[]);
    script.run();
    let calls = script.disk.calls();
    assert_eq!(script.acknowledged.len(), 4);
    assert_eq!(script.forgotten, ["garbage"]);
    assert_eq!(script.notes_acknowledged, 3);
    assert!(calls.contains(&Call::Remove), "a pack was reclaimed");
    script.check("all is well");
    calls
}

fn check_after_failures(plan: &[Planned]) {
    let folder = memory();
    let mut script = Script::new(folder.path());
    script.disk.plan(plan);
    script.run();
    script.disk.heal();
    script.check(&format!("{plan:?}"));
}

#[test]
fn every_call_may_fail_in_every_way() {
    for planned in every_failure(&calls_of_script()) {
        check_after_failures(&[planned]);
    }
}

#[test]
fn several_calls_may_fail() {
    let calls = calls_of_script();
    let mut random = fastrand::Rng::with_seed(seed());
    for _ in 0..rounds(200) {
        check_after_failures(&some_failures(&calls, &mut random));
    }
}

#[test]
fn the_power_may_fail_before_every_call() {
    let calls = calls_of_script().len();
    let mut random = fastrand::Rng::with_seed(seed());
    for call in 0..calls {
        for round in 0..3 {
            let folder = memory();
            let mut script = Script::new(folder.path());
            script.disk.plan(&[]);
            script.disk.cut_power_at(call);
            script.run();
            script.keeper = None;
            script.disk.cut_power();
            script.disk.restart(&mut random);
            script.check(&format!("power cut at {call}, round {round}"));
        }
    }
}

#[test]
fn the_power_may_fail_after_a_failure() {
    let calls = calls_of_script();
    let mut random = fastrand::Rng::with_seed(seed() + 1);
    for round in 0..rounds(300) {
        let folder = memory();
        let mut script = Script::new(folder.path());
        let plan = some_failures(&calls, &mut random);
        let cut = random.usize(..calls.len() + 20);
        script.disk.plan(&plan);
        script.disk.cut_power_at(cut);
        script.run();
        script.keeper = None;
        script.disk.cut_power();
        script.disk.restart(&mut random);
        script.check(&format!("round {round}: {plan:?}, power cut at {cut}"));
    }
}

#[test]
fn the_process_may_be_killed_before_every_call() {
    let calls = calls_of_script().len();
    for call in 0..calls {
        let folder = memory();
        let mut script = Script::new(folder.path());
        script.disk.plan(&[]);
        script.disk.cut_power_at(call);
        script.run();
        script.keeper = None;
        script.disk.revive();
        script.check(&format!("killed at {call}"));
    }
}

#[test]
fn a_failed_commit_is_reported_and_the_next_one_works() {
    let folder = memory();
    let mut script = Script::new(folder.path());
    script.keep("a", text(1, 1_000));
    script.commit().unwrap();
    script.disk.plan(&[]);
    script.grow("a", 100);
    let before = script.disk.calls().len();
    script.disk.plan(&[Planned { at: 0, fault: crate::plan::Fault::Full, lasts: crate::plan::Lasts::UntilWell }]);
    let refused = script.commit().unwrap_err();
    assert_eq!(refused.problem, Problem::Full, "{refused} {before}");
    script.disk.heal();
    script.grow("a", 100);
    script.commit().unwrap();
    script.check("after a full disk");
}

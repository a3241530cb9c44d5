//! The log on a failing disk: acknowledged lines are present, in order and once, and refused lines are not.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use stenograph_store::files::Files;
use stenograph_store::log::{Durability, Log};
use stenograph_store::tail::{LastLineRule, repair_tail};
use stenograph_store::{Error, Problem, Warning};

use crate::disk::{FaultyDisk, files_below, memory};
use crate::plan::{Call, Lasts, Planned, every_failure, rounds, seed, some_failures};

/// Nothing is synced without the script: it syncs itself.
const HOURLY: Durability = Durability::Interval(Duration::from_secs(3600));

const EVERY_DURABILITY: [Durability; 3] = [Durability::Always, HOURLY, Durability::Never];

/// How many lines the script appends.
const COUNT: usize = 12;

/// The results that the log reported.
#[derive(Debug, Default)]
struct Reported {
    /// Every attempted line, in order, and whether it was acknowledged.
    lines: Vec<(usize, bool)>,
    /// All lines before this one are on disk.
    synced: usize,
    /// Refused lines that may be present, according to the error.
    doubtful: BTreeSet<usize>,
    /// Lines that were acknowledged before they were on disk, followed by a reported failure.
    maybe_lost: BTreeSet<usize>,
    /// Lines of a log that was closed before they were on disk: their outcome is never reported.
    unreported: BTreeSet<usize>,
    warnings: Vec<Warning>,
}

impl Reported {
    fn acknowledged(&self) -> Vec<usize> {
        self.lines.iter().filter(|(_, good)| *good).map(|(line, _)| *line).collect()
    }

    /// The lines after the last acknowledged one: their outcome is open if the power fails.
    fn open(&self) -> BTreeSet<usize> {
        self.lines.iter().rev().take_while(|(_, good)| !good).map(|(line, _)| *line).collect()
    }
}

impl Reported {
    /// Checks that the found lines are the acknowledged ones, except for reported differences.
    fn hold(&self, durability: Durability, plan: &[Planned], found: &[usize]) {
        let case = || format!("{durability:?} {plan:?}: {self:?} {found:?}");
        let found: Vec<usize> = found.iter().copied().filter(|line| !self.doubtful.contains(line)).collect();
        let acknowledged = self.acknowledged();
        if durability != Durability::Always && forgets(plan) {
            let maybe_lost = |line: &usize| self.maybe_lost.contains(line) || self.unreported.contains(line);
            let held = |line: &usize| found.contains(line) || !maybe_lost(line);
            assert_eq!(found, acknowledged.into_iter().filter(held).collect::<Vec<_>>(), "{}", case());
        } else {
            assert_eq!(found, acknowledged, "{}", case());
        }
    }
}

struct Recording {
    disk: FaultyDisk,
    path: PathBuf,
    durability: Durability,
    log: Option<Log<()>>,
    reported: Reported,
}

fn line(number: usize) -> String {
    format!("{{\"n\":{number},\"text\":\"{}\"}}\n", "x".repeat(number * 7 % 50))
}

impl Recording {
    fn new(disk: &FaultyDisk, path: &Path, durability: Durability) -> Recording {
        Recording { disk: disk.clone(), path: path.to_owned(), durability, log: None, reported: Reported::default() }
    }

    fn open(&mut self) -> Result<(), Error> {
        let files: Arc<dyn Files> = Arc::new(self.disk.clone());
        let tail = repair_tail(files.as_ref(), &self.path, LastLineRule::EndsWithNewline)?;
        self.reported.warnings.extend(tail.warning.clone());
        self.log = Some(Log::open(files, &self.path, &tail, self.durability)?);
        Ok(())
    }

    /// Appends a line and records the result. A log that cannot be opened is opened at the next line.
    fn append(&mut self, number: usize) -> Result<(), Error> {
        if self.log.is_none() {
            self.open()?;
        }
        let appended = self.log.as_ref().unwrap().append(line(number).as_bytes(), (), &|_| {});
        self.reported.lines.push((number, appended.is_ok()));
        match &appended {
            Ok(()) if self.durability == Durability::Always => self.reported.synced = number + 1,
            Ok(()) => {}
            Err(error) => {
                if error.problem == Problem::InDoubt {
                    self.reported.doubtful.insert(number);
                }
                self.shake();
            }
        }
        appended
    }

    fn sync(&mut self, next: usize) {
        match self.log.as_ref().map(Log::sync) {
            Some(Ok(())) => self.reported.synced = next,
            Some(Err(_)) => self.shake(),
            None => {}
        }
    }

    /// Lines that are not on disk yet may never be, as was reported.
    fn shake(&mut self) {
        let maybe_lost = self.not_on_disk();
        self.reported.maybe_lost.extend(maybe_lost);
    }

    fn not_on_disk(&self) -> BTreeSet<usize> {
        self.reported.lines.iter().map(|(line, _)| *line).filter(|line| *line >= self.reported.synced).collect()
    }

    /// Two runs, with a sync in each.
    fn script(&mut self) {
        for number in 0..COUNT {
            let _ = self.append(number);
            if number % 5 == 3 {
                self.sync(number + 1);
            }
            if number == COUNT / 2 {
                self.log = None;
                self.reported.unreported = self.not_on_disk();
            }
        }
    }
}

/// The numbers in a file, in order; `None` for a foreign line.
fn found(path: &Path) -> Vec<Option<usize>> {
    let bytes = fs::read(path).unwrap_or_default();
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    lines.map(|bytes| (0..100).find(|number| line(*number).as_bytes() == bytes)).collect()
}

fn whole(found: &[Option<usize>]) -> Vec<usize> {
    found.iter().flatten().copied().collect()
}

fn torn(folder: &Path) -> usize {
    files_below(folder).iter().filter(|path| path.to_string_lossy().contains(".torn-")).count()
}

/// A folder, a disk over it and the path of the log.
fn prepared() -> (tempfile::TempDir, FaultyDisk, PathBuf) {
    let folder = memory();
    let root = folder.path().join("disk");
    fs::create_dir_all(root.join("a")).unwrap();
    let path = root.join("a/b/log.jsonl");
    let disk = FaultyDisk::new(&root);
    (folder, disk, path)
}

fn calls_of_script(durability: Durability) -> Vec<Call> {
    let (_folder, disk, path) = prepared();
    disk.plan(&[]);
    let mut recording = Recording::new(&disk, &path, durability);
    recording.script();
    drop(recording.log.take());
    assert_eq!(recording.reported.acknowledged(), (0..COUNT).collect::<Vec<_>>());
    disk.calls()
}

/// Whether the disk immediately drops what it failed to sync: then it cannot be recovered.
fn forgets(plan: &[Planned]) -> bool {
    plan.iter().any(|planned| planned.fault == crate::plan::Fault::Reverted)
}

fn check_after_failures(durability: Durability, plan: &[Planned]) {
    let (_folder, disk, path) = prepared();
    disk.plan(plan);
    let mut recording = Recording::new(&disk, &path, durability);
    recording.script();
    disk.heal();
    // A failure that was not reported yet may be reported now, once.
    let last = recording.append(90).or_else(|_| recording.append(91));
    last.unwrap_or_else(|error| panic!("{durability:?} {plan:?}: the disk is well, and yet: {error}"));
    drop(recording.log.take());
    let (found, reported) = (found(&path), &recording.reported);
    reported.hold(durability, plan, &whole(&found));
    assert!(found.iter().all(Option::is_some), "{durability:?} {plan:?}: {found:?} {reported:?} {:?}", disk.calls());
    assert!(whole(&found).is_sorted(), "{durability:?} {plan:?}: {found:?}");
    assert!(torn(path.parent().unwrap()) <= usize::from(!reported.doubtful.is_empty()), "{durability:?} {plan:?}");
    assert_eq!(disk.strangers(), Vec::<PathBuf>::new());
}

#[test]
fn each_call_fails_once_in_each_way_and_for_good() {
    for durability in EVERY_DURABILITY {
        for planned in every_failure(&calls_of_script(durability)) {
            check_after_failures(durability, &[planned]);
        }
    }
}

#[test]
fn several_calls_fail() {
    let mut random = fastrand::Rng::with_seed(seed());
    eprintln!("STENO_SEED={}", seed());
    for durability in EVERY_DURABILITY {
        let calls = calls_of_script(durability);
        for _ in 0..rounds(400) {
            check_after_failures(durability, &some_failures(&calls, &mut random));
        }
    }
}

/// The process ends after the failure and never appends again: even then refused lines are not found.
#[test]
fn refused_lines_are_not_found_even_without_later_appends() {
    for durability in EVERY_DURABILITY {
        let every = every_failure(&calls_of_script(durability));
        // If no thread waits for the disk, the only sync may be the last one, and its loss is never reported.
        let is_heard = |planned: &Planned| durability == Durability::Always || !planned.loses();
        for planned in every.into_iter().filter(|planned| planned.lasts == Lasts::Once && is_heard(planned)) {
            let (_folder, disk, path) = prepared();
            disk.plan(&[planned]);
            let mut recording = Recording::new(&disk, &path, durability);
            let _ = (0..COUNT).try_for_each(|number| recording.append(number));
            drop(recording.log.take());
            assert!(recording.reported.doubtful.is_empty(), "{durability:?} {planned:?}");
            recording.reported.hold(durability, &[planned], &whole(&found(&path)));
        }
    }
}

fn check_after_power_cut(durability: Durability, plan: &[Planned], cut_at: usize, random: &mut fastrand::Rng) {
    let (_folder, disk, path) = prepared();
    let seed = random.u64(..);
    let case = format!("{durability:?} {plan:?}, power cut at call {cut_at}, outcome {seed}");
    disk.plan(plan);
    disk.cut_power_at(cut_at);
    let mut recording = Recording::new(&disk, &path, durability);
    recording.script();
    disk.cut_power();
    drop(recording.log.take());
    disk.restart(&mut fastrand::Rng::with_seed(seed));
    let reported = std::mem::take(&mut recording.reported);

    let mut again = Recording::new(&disk, &path, Durability::Always);
    again.append(90).unwrap_or_else(|error| panic!("{case}: the disk is well, and yet: {error}"));
    drop(again.log.take());
    let found = whole(&found(&path));
    assert_eq!(found.last(), Some(&90), "{case}");
    assert!(found.is_sorted_by(|a, b| a < b), "{case}: {found:?}");
    let may_be_lost =
        |line: &usize| (forgets(plan) && reported.maybe_lost.contains(line)) || reported.unreported.contains(line);
    // If a sync fails, and the repair fails unreported too, later writes may follow a hole.
    let holed = plan.len() > 1 && plan.iter().any(Planned::loses);
    let is_sure = |line: &usize| *line < reported.synced && !holed && (plan.is_empty() || !may_be_lost(line));
    let sure: Vec<usize> = match durability {
        Durability::Always => reported.acknowledged(),
        Durability::Interval(_) | Durability::Never => reported.acknowledged().into_iter().filter(is_sure).collect(),
    };
    assert!(sure.iter().all(|line| found.contains(line)), "{case}: {sure:?} are not all in {found:?}");
    if durability == Durability::Always {
        let mut possible = reported.open();
        possible.extend(reported.acknowledged());
        possible.extend(&reported.doubtful);
        assert!(found.iter().all(|line| *line == 90 || possible.contains(line)), "{case}: {reported:?} {found:?}");
        assert!(torn(path.parent().unwrap()) <= 1, "{case}");
        assert_eq!(torn(path.parent().unwrap()), again.reported.warnings.len() + reported.warnings.len(), "{case}");
    }
}

#[test]
fn the_power_fails_at_each_call() {
    let mut random = fastrand::Rng::with_seed(seed());
    for durability in EVERY_DURABILITY {
        for cut_at in 0..=calls_of_script(durability).len() {
            for _ in 0..rounds(8) {
                check_after_power_cut(durability, &[], cut_at, &mut random);
            }
        }
    }
}

#[test]
fn calls_fail_and_then_the_power_fails() {
    let mut random = fastrand::Rng::with_seed(seed());
    for durability in EVERY_DURABILITY {
        let calls = calls_of_script(durability);
        for _ in 0..rounds(600) {
            let plan = some_failures(&calls, &mut random);
            check_after_power_cut(durability, &plan, random.usize(..calls.len() + 10), &mut random);
        }
    }
}

/// The power fails again while the result of the first failure is repaired.
#[test]
fn the_power_fails_again_and_again() {
    let mut random = fastrand::Rng::with_seed(seed());
    for _ in 0..rounds(200) {
        let (_folder, disk, path) = prepared();
        let (mut kept, mut cuts) = (Vec::new(), 0);
        for life in 0..6 {
            let mut recording = Recording::new(&disk, &path, Durability::Always);
            disk.plan(&[]);
            disk.cut_power_at(random.usize(..20));
            let _ = (0..4).try_for_each(|number| recording.append(life * 10 + number));
            disk.cut_power();
            drop(recording.log.take());
            disk.restart(&mut random);
            kept.extend(recording.reported.acknowledged());
            cuts += 1;
            let found = whole(&found(&path));
            assert!(found.is_sorted_by(|a, b| a < b), "{found:?}");
            assert!(kept.iter().all(|line| found.contains(line)), "{kept:?} are not all in {found:?}");
            assert!(torn(path.parent().unwrap()) <= cuts);
        }
    }
}

/// Many threads append while syncs and writes fail: each gets its own failure, and the file holds the others' lines.
#[test]
fn every_append_that_a_failure_covers_reports_it() {
    let mut random = fastrand::Rng::with_seed(seed());
    for _ in 0..rounds(40) {
        let (_folder, disk, path) = prepared();
        let mut plan: Vec<Planned> = Vec::new();
        for at in 8..400 {
            if random.u8(..6) == 0 {
                let call = random.choice([Call::Write, Call::Sync, Call::Truncate]).unwrap();
                let fault = random.choice(call.faults()).copied().unwrap();
                plan.push(Planned { at, fault, lasts: Lasts::Once });
            }
        }
        let files: Arc<dyn Files> = Arc::new(disk.clone());
        let log: Log<String> = Log::open(files, &path, &Default::default(), Durability::Always).unwrap();
        disk.plan(&plan);
        let (good, followed) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let (log, good, followed) = (&log, &good, &followed);
                scope.spawn(move || {
                    for number in 0..20 {
                        let line = format!("{{\"thread\":{thread},\"n\":{number}}}\n");
                        let follow = |lines: Vec<String>| followed.lock().unwrap().extend(lines);
                        if log.append(line.as_bytes(), line.clone(), &follow).is_ok() {
                            good.lock().unwrap().push(line);
                        }
                    }
                });
            }
        });
        disk.heal();
        let last = "{\"thread\":9}\n".to_owned();
        log.append(last.as_bytes(), last.clone(), &|lines| followed.lock().unwrap().extend(lines)).unwrap();
        drop(log);
        let mut good = good.into_inner().unwrap();
        good.push(last);
        let text = fs::read_to_string(&path).unwrap();
        let lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
        assert_eq!(lines, followed.into_inner().unwrap(), "{plan:?}");
        for thread in 0..8 {
            let of_thread = |line: &&String| line.contains(&format!("\"thread\":{thread},"));
            let (reported, found): (Vec<_>, Vec<_>) =
                (good.iter().filter(of_thread).collect(), lines.iter().filter(of_thread).collect());
            assert_eq!(reported, found, "{plan:?}");
        }
    }
}

/// Continuous appends must not postpone the sync for ever.
#[test]
fn an_interval_ends_during_continuous_appends() {
    let (_folder, disk, path) = prepared();
    let files: Arc<dyn Files> = Arc::new(disk.clone());
    let interval = Durability::Interval(Duration::from_millis(20));
    let log: Log<()> = Log::open(files, &path, &Default::default(), interval).unwrap();
    disk.plan(&[]);
    let synced = |_: &usize| {
        log.append(b"{}\n", (), &|_| {}).unwrap();
        disk.calls().contains(&Call::Sync)
    };
    assert!((0..1_000_000).any(|number| synced(&number)));
}

#[test]
fn a_follower_that_panics_does_not_block_other_threads() {
    let (_folder, disk, path) = prepared();
    let files: Arc<dyn Files> = Arc::new(disk.clone());
    let log: Log<()> = Log::open(files, &path, &Default::default(), Durability::Always).unwrap();
    let panicking = std::panic::AssertUnwindSafe(|| log.append(b"{\"n\":1}\n", (), &|_| panic!("as planned")));
    assert!(std::panic::catch_unwind(panicking).is_err());
    log.append(b"{\"n\":2}\n", (), &|_| {}).unwrap();
    drop(log);
    assert_eq!(fs::read_to_string(&path).unwrap(), "{\"n\":1}\n{\"n\":2}\n");
}

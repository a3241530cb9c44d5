//! The recorder with every layout on a failing disk: acknowledged events are found, in order and once, whatever the layout.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use stenograph_store::layouts::{LAYOUTS, Layout};
use stenograph_store::log::Durability;
use stenograph_store::{Problem, Recorder, recover};

use crate::disk::{FaultyDisk, memory};
use crate::plan::{Call, Fault, Lasts, Planned, every_failure, rounds, seed, some_failures};
use crate::session::{Heard, Session, environment, event, found, place, torn};

/// Nothing is synced without the script.
const HOURLY: Durability = Durability::Interval(Duration::from_secs(3600));
const COUNT: usize = 8;

fn name(layout: &'static dyn Layout) -> &'static str {
    layout.info().name
}

fn prepared() -> (tempfile::TempDir, FaultyDisk, PathBuf) {
    let folder = memory();
    let root = folder.path().join("disk");
    fs::create_dir_all(&root).unwrap();
    let disk = FaultyDisk::new(&root);
    (folder, disk, root)
}

fn calls_of_script(layout: &'static dyn Layout, durability: Durability) -> Vec<Call> {
    let (_folder, disk, root) = prepared();
    disk.plan(&[]);
    let mut session = Session::new(layout, &root, environment(&disk, durability));
    session.script(COUNT);
    let everything: Vec<usize> = (0..COUNT).collect();
    assert_eq!(session.reported.acknowledged(), everything, "{}", name(layout));
    assert_eq!(found(layout, &place(&root)), everything, "{}", name(layout));
    assert_eq!(disk.strangers(), Vec::<PathBuf>::new(), "{}: not written through the disk", name(layout));
    disk.calls()
}

/// Completes the unfinished recordings, and checks that doing so again changes nothing.
fn recovered(disk: &FaultyDisk, root: &std::path::Path, case: &str) {
    let environment = environment(disk, Durability::Always);
    if place(root).exists() || recover::journal_path(&place(root)).exists() {
        recover::recover(&place(root), &environment)
            .unwrap_or_else(|error| panic!("{case}: cannot be completed: {error}"));
    }
    let before = contents(root);
    if place(root).exists() {
        let again = recover::recover(&place(root), &environment).unwrap();
        assert_eq!(again.warnings, [], "{case}: completed twice");
    }
    assert!(before == contents(root), "{case}: completing twice changes something");
}

fn contents(root: &std::path::Path) -> Vec<(PathBuf, Vec<u8>)> {
    let files = crate::disk::files_below(root).into_iter().filter(|path| path.is_file());
    let mut all: Vec<_> = files.map(|path| (path.clone(), fs::read(path).unwrap())).collect();
    all.sort();
    all
}

/// Everything in the folder, for a message.
fn shown(root: &std::path::Path) -> String {
    let one = |(path, bytes): (PathBuf, Vec<u8>)| format!("\n--- {}\n{}", path.display(), bytes.escape_ascii());
    contents(root).into_iter().map(one).collect::<String>().replace("\\n", "\n").replace("\\\"", "\"")
}

fn check_after_failures(layout: &'static dyn Layout, durability: Durability, plan: &[Planned]) {
    let (_folder, disk, root) = prepared();
    let case = format!("{} {durability:?} {plan:?}", name(layout));
    disk.plan(plan);
    let mut session = Session::new(layout, &root, environment(&disk, durability));
    session.script(COUNT);
    disk.heal();
    let calls = disk.calls();
    // A failure that was not reported yet may be reported now, once.
    let last = session.append(90).or_else(|_| session.append(91));
    last.unwrap_or_else(|error| panic!("{case}: the disk is well, and yet: {error}"));
    session.finish();
    recovered(&disk, &root, &case);
    let (mut found, reported) = (found(layout, &place(&root)), &session.reported);
    found.retain(|event| !reported.doubtful.contains(event));
    assert_eq!(found, reported.acknowledged(), "{case}: {reported:?} {calls:?} {}", shown(&root));
    assert!(torn(&root) <= 1, "{case}: {}", shown(&root));
    assert_eq!(disk.strangers(), Vec::<PathBuf>::new(), "{case}");
}

/// Whether the disk immediately drops what it failed to sync: without full durability it cannot be recovered.
fn forgets(durability: Durability, planned: &Planned) -> bool {
    durability != Durability::Always && planned.fault == Fault::Reverted
}

#[test]
fn each_call_fails_once_in_each_way_and_for_good() {
    for layout in LAYOUTS.iter().copied() {
        // Each call fails in one way, and in the next way the next time; the log's own tests try all of them.
        let every = every_failure(&calls_of_script(layout, Durability::Always));
        for failures in every.chunk_by(|one, next| one.at == next.at) {
            let at = failures[0].at;
            for turn in 0..rounds(2) {
                check_after_failures(layout, Durability::Always, &[failures[(at * 2 + turn) % failures.len()]]);
            }
        }
    }
}

#[test]
fn several_calls_fail() {
    let mut random = fastrand::Rng::with_seed(seed());
    for layout in LAYOUTS.iter().copied() {
        for durability in [Durability::Always, HOURLY, Durability::Never] {
            let calls = calls_of_script(layout, durability);
            for _ in 0..rounds(30) {
                let mut plan = some_failures(&calls, &mut random);
                plan.retain(|planned| !forgets(durability, planned));
                check_after_failures(layout, durability, &plan);
            }
        }
    }
}

fn check_after_power_cut(layout: &'static dyn Layout, plan: &[Planned], cut_at: usize, outcome: u64) {
    let (_folder, disk, root) = prepared();
    let case = format!("{} {plan:?}, power cut at call {cut_at}, outcome {outcome}", name(layout));
    disk.plan(plan);
    disk.cut_power_at(cut_at);
    let mut session = Session::new(layout, &root, environment(&disk, Durability::Always));
    session.script(COUNT);
    disk.cut_power();
    drop(session.recorder.take());
    disk.restart(&mut fastrand::Rng::with_seed(outcome));
    let left = shown(&root);
    recovered(&disk, &root, &case);
    let reported = session.reported;
    let check = |found: &[usize]| {
        assert!(found.is_sorted_by(|a, b| a < b), "{case}: {found:?} {left}");
        let acknowledged = reported.acknowledged();
        assert!(acknowledged.iter().all(|event| found.contains(event)), "{case}: {reported:?} {found:?} {left}");
        let mut possible = reported.open();
        possible.extend(acknowledged);
        possible.extend(&reported.doubtful);
        assert!(found.iter().all(|event| *event == 90 || possible.contains(event)), "{case}: {reported:?} {found:?}");
        assert!(torn(&root) <= 1, "{case}: {}", shown(&root));
    };
    check(&found(layout, &place(&root)));
    let mut again = Session::new(layout, &root, environment(&disk, Durability::Always));
    again
        .append(90)
        .unwrap_or_else(|error| panic!("{case}: the disk is well, and yet: {error} {left} {}", shown(&root)));
    again.finish();
    check(&found(layout, &place(&root)));
    assert!(found(layout, &place(&root)).contains(&90), "{case}: {left} {}", shown(&root));
}

#[test]
fn the_power_fails_at_each_call() {
    let mut random = fastrand::Rng::with_seed(seed());
    for layout in LAYOUTS.iter().copied() {
        for cut_at in 0..=calls_of_script(layout, Durability::Always).len() {
            for _ in 0..rounds(2) {
                check_after_power_cut(layout, &[], cut_at, random.u64(..));
            }
        }
    }
}

#[test]
fn calls_fail_and_then_the_power_fails() {
    let mut random = fastrand::Rng::with_seed(seed());
    for layout in LAYOUTS.iter().copied() {
        let calls = calls_of_script(layout, Durability::Always);
        for _ in 0..rounds(60) {
            let plan = some_failures(&calls, &mut random);
            check_after_power_cut(layout, &plan, random.usize(..calls.len() + 10), random.u64(..));
        }
    }
}

/// The power fails while the result of an earlier power failure is completed.
#[test]
fn the_power_fails_during_recovery() {
    let mut random = fastrand::Rng::with_seed(seed());
    for layout in LAYOUTS.iter().copied() {
        let calls = calls_of_script(layout, Durability::Always).len();
        for round in 0..rounds(30) {
            let (_folder, disk, root) = prepared();
            let case = format!("{} round {round}", name(layout));
            disk.plan(&[]);
            disk.cut_power_at(random.usize(..calls));
            let mut session = Session::new(layout, &root, environment(&disk, Durability::Always));
            session.script(COUNT);
            disk.cut_power();
            drop(session.recorder.take());
            disk.restart(&mut random);
            for cut_at in [0, random.usize(1..8), random.usize(1..30)] {
                disk.plan(&[]);
                disk.cut_power_at(cut_at);
                let _ = recover::recover(&place(&root), &environment(&disk, Durability::Always));
                disk.cut_power();
                disk.restart(&mut random);
            }
            recovered(&disk, &root, &case);
            let (found, reported) = (found(layout, &place(&root)), session.reported);
            assert!(found.is_sorted_by(|a, b| a < b), "{case}: {found:?} {}", shown(&root));
            assert!(
                reported.acknowledged().iter().all(|event| found.contains(event)),
                "{case}: {reported:?} {found:?}"
            );
        }
    }
}

#[test]
fn many_threads_record_on_a_failing_disk() {
    let mut random = fastrand::Rng::with_seed(seed());
    for layout in LAYOUTS.iter().copied() {
        for _ in 0..rounds(5) {
            let (_folder, disk, root) = prepared();
            let mut session = Session::new(layout, &root, environment(&disk, Durability::Always));
            session.append(0).unwrap();
            let plan: Vec<Planned> = (0..600)
                .filter_map(|at| {
                    let call = random.choice([Call::Write, Call::Sync]).unwrap();
                    let fault = random.choice(call.faults()).copied().unwrap();
                    (random.u8(..8) == 0).then_some(Planned { at, fault, lasts: Lasts::Once })
                })
                .collect();
            disk.plan(&plan);
            let heard = Heard::default();
            let recorder = session.recorder.as_ref().unwrap();
            std::thread::scope(|scope| {
                for thread in 1..6 {
                    let heard = &heard;
                    scope.spawn(move || {
                        for number in 0..8 {
                            // Messages only: other threads must not separate a call from its result.
                            let number = thread * 1_000 + number * 4;
                            let good = recorder.append(&event(number)).is_ok();
                            heard.lock().unwrap().push((number, good));
                        }
                    });
                }
            });
            disk.heal();
            session.finish();
            recovered(&disk, &root, name(layout));
            let found = found(layout, &place(&root));
            let heard = heard.into_inner().unwrap();
            for thread in 1..6 {
                let of_thread = |number: &usize| number / 1_000 == thread;
                let good = heard.iter().filter(|(_, good)| *good).map(|(number, _)| *number).filter(of_thread);
                let found: Vec<usize> = found.iter().copied().filter(of_thread).collect();
                assert_eq!(found, good.collect::<Vec<_>>(), "{} {plan:?}", name(layout));
            }
        }
    }
}

/// A second recorder in the same place gets the first one as its holder; a layout for concurrent agents accepts both.
#[test]
fn two_record_at_once() {
    for layout in LAYOUTS.iter().copied() {
        let (_folder, disk, root) = prepared();
        let mut first = Session::new(layout, &root, environment(&disk, Durability::Always));
        let mut second = Session::new(layout, &root, environment(&disk, Durability::Always));
        first.append(0).unwrap();
        match second.append(40) {
            Ok(()) => first.append(3).unwrap(),
            Err(error) => {
                let holder = Some(std::process::id());
                assert_eq!(error.problem, Problem::Locked { holder }, "{}: {error}", name(layout));
            }
        }
        first.finish();
        second.append(44).unwrap();
        second.finish();
        let mut found = found(layout, &place(&root));
        found.sort_unstable();
        let mut reported = [first.reported.acknowledged(), second.reported.acknowledged()].concat();
        reported.sort_unstable();
        assert_eq!(found, reported, "{}", name(layout));
    }
}

/// The disk is full for a while: events that do not fit are refused, earlier content is intact, and later content is recorded.
#[test]
fn recording_continues_after_a_full_disk_has_space_again() {
    for layout in LAYOUTS.iter().copied() {
        let takes_room = |call: &Call| call.faults().contains(&Fault::Full);
        let calls = calls_of_script(layout, Durability::Always);
        for (at, _) in calls.iter().enumerate().filter(|(_, call)| takes_room(call)) {
            let (_folder, disk, root) = prepared();
            let case = format!("{} full from call {at} on", name(layout));
            disk.plan(&[Planned { at, fault: Fault::Full, lasts: Lasts::Once }]);
            let mut session = Session::new(layout, &root, environment(&disk, Durability::Always));
            session.script(COUNT);
            disk.heal();
            session.append(40).unwrap_or_else(|error| panic!("{case}: {error}"));
            session.finish();
            recovered(&disk, &root, &case);
            assert_eq!(found(layout, &place(&root)), session.reported.acknowledged(), "{case}");
        }
    }
}

/// The real disk: the folder is removed during a recording.
#[test]
fn a_folder_deleted_during_a_recording_is_reported() {
    for layout in LAYOUTS.iter().copied() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("disk");
        fs::create_dir_all(&root).unwrap();
        let real = stenograph_store::layouts::Environment::default();
        let mut session = Session::new(layout, &root, real.clone());
        session.append(0).unwrap();
        fs::remove_dir_all(&root).unwrap();
        let refused = session.append(1).unwrap_err();
        assert_eq!(refused.problem, Problem::Gone, "{}: {refused}", name(layout));
        assert!(refused.hint().is_some());
        let recorder = session.recorder.take().unwrap();
        assert!(recorder.finish(&stenograph_store::journal::RecordingEnd::Completed).is_err(), "{}", name(layout));
        assert!(!root.exists(), "{}", name(layout));
        let mut again = Session::new(layout, &root, real);
        again.append(40).unwrap();
        again.finish();
        assert_eq!(found(layout, &place(&root)), [40], "{}", name(layout));
    }
}

#[test]
fn a_read_only_folder_is_reported_with_a_hint() {
    for layout in LAYOUTS.iter().copied() {
        let (_folder, disk, root) = prepared();
        disk.plan(&[Planned { at: 0, fault: Fault::Denied, lasts: Lasts::UntilWell }]);
        let target = stenograph_store::layouts::Target { path: Some(place(&root)), ..Default::default() };
        let refused = Recorder::open(layout, &target, environment(&disk, Durability::Always)).unwrap_err();
        assert_eq!(refused.problem, Problem::Denied, "{}: {refused}", name(layout));
        assert!(refused.hint().is_some());
    }
}

/// The clock of every test here jumps back: events stay in order, and so do the times stamped on them.
#[test]
fn a_clock_that_jumps_back_does_not_change_the_order() {
    for layout in LAYOUTS.iter().copied() {
        let (_folder, disk, root) = prepared();
        let mut session = Session::new(layout, &root, environment(&disk, Durability::Always));
        (0..40).for_each(|number| session.append(number).unwrap());
        session.finish();
        assert_eq!(found(layout, &place(&root)), (0..40).collect::<Vec<_>>(), "{}", name(layout));
        let events = crate::session::read(&place(&root));
        let times: Vec<_> = events.iter().filter_map(|event| event.time.as_ref()?.instant()).collect();
        assert!(times.is_sorted(), "{}: {times:?}", name(layout));
    }
}

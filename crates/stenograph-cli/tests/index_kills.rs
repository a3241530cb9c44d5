//! Kills `steno index` repeatedly at random: while it starts, reads, archives, commits and watches, over sessions that grow and
//! are rewritten, truncated, moved, copied and deleted in between. The next run must continue without rebuilding the index, and
//! then find exactly what the files contain: nothing missing, nothing twice, nothing outdated. Uses real processes and signals;
//! `STENO_SEED` sets the random numbers, `STENO_ROUNDS` the number of rounds. `index_kills/power.rs` does the same with power
//! cuts.

#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a test may fail loudly"
)]

#[path = "index_kills/ground.rs"]
mod ground;
#[cfg(target_os = "linux")]
#[path = "index_kills/power.rs"]
mod power;
#[path = "index_kills/tree.rs"]
mod tree;

use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use ground::Ground;

/// How many stores are created.
const ROUNDS: u64 = 14;

/// How often each of them is checked as a whole.
const LOOKS: usize = 5;

/// The number that CI requires.
const KILLS_MIN: usize = 500;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|value| value.parse().ok())
}

#[test]
fn an_index_survives_every_kill_and_finds_all_events() {
    let seed = number("STENO_SEED").unwrap_or(20_260_404);
    let rounds = number("STENO_ROUNDS").unwrap_or(ROUNDS);
    let (next, kills) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                loop {
                    let round = next.fetch_add(1, Ordering::Relaxed) as u64;
                    if round >= rounds {
                        return;
                    }
                    kills.fetch_add(series(seed + round), Ordering::Relaxed);
                }
            });
        }
    });
    let kills = kills.into_inner();
    assert!(rounds < ROUNDS || kills >= KILLS_MIN, "only {kills} kills");
}

/// Starts and kills runs over one tree, with regular checks. Returns the number of kills.
fn series(seed: u64) -> usize {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut ground = Ground::new();
    let mut kills = 0;
    (0..6).for_each(|_| ground.tree.change(&mut random));
    // Half of them are killed before there is an index.
    let mut longest = Duration::from_millis(300);
    if random.bool() {
        let start = Instant::now();
        expect(seed, &ground.check(), &ground);
        longest = start.elapsed();
    }
    for look in 0..LOOKS {
        // Deleted files are then read from the archive, and that may be killed too.
        if look > 0 && random.u8(..3) == 0 {
            ground.lose_index();
        }
        for _ in 0..random.usize(5..14) {
            (0..random.usize(1..4)).for_each(|_| ground.tree.change(&mut random));
            live(&mut ground, longest, &mut random);
            kills += 1;
        }
        let start = Instant::now();
        let checked = ground.check();
        expect(seed, &checked, &ground);
        if look == 0 {
            longest = longest.min(start.elapsed());
        }
    }
    expect(seed, &ground.check_find(), &ground);
    kills
}

/// One run that does not end by itself.
fn live(ground: &mut Ground, longest: Duration, random: &mut fastrand::Rng) {
    let watches = random.u8(..4) == 0;
    let mut command = ground.index();
    if watches {
        command.args(["--watch", "--keep-every", "0"]);
    }
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let micros = u64::try_from(longest.as_micros()).unwrap();
    let wait = match random.u8(..8) {
        0 => random.u64(..20_000),
        _ => random.u64(..micros),
    };
    std::thread::sleep(Duration::from_micros(wait));
    if watches {
        // The watcher should notice changes while it runs.
        ground.tree.change(random);
        std::thread::sleep(Duration::from_micros(random.u64(..micros)));
    }
    let _ = child.kill();
    child.wait().unwrap();
    ground.tree.story.push(format!("killed after {wait} µs{}", if watches { ", watching" } else { "" }));
}

fn expect(seed: u64, checked: &Result<(), String>, ground: &Ground) {
    if let Err(problem) = checked {
        let story = ground.tree.story.join("\n");
        panic!("{problem}\n\nSTENO_SEED={seed} STENO_ROUNDS=1, and then:\n{story}");
    }
}

#[test]
fn a_query_during_a_run_sees_one_consistent_state() {
    let seed = number("STENO_SEED").unwrap_or(20_260_406);
    let mut random = fastrand::Rng::with_seed(seed);
    let mut ground = Ground::new();
    (0..6).for_each(|_| ground.tree.create(3, &mut random));
    expect(seed, &ground.check(), &ground);
    let store = ground.store();
    let (is_done, asked) = (std::sync::atomic::AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                let count = ground::count(&store).unwrap();
                assert_eq!(count, 6 * 3, "STENO_SEED={seed}");
                asked.fetch_add(1, Ordering::Relaxed);
            }
        });
        for _ in 0..25 {
            // Rewrites every file with the same length.
            ground.tree.rewrite_all(3);
            let done = ground.index().output().unwrap();
            if !done.status.success() || asking.is_finished() {
                is_done.store(true, Ordering::Relaxed);
                panic!("{}", String::from_utf8_lossy(&done.stderr));
            }
        }
        is_done.store(true, Ordering::Relaxed);
    });
    assert!(asked.into_inner() > 25);
    expect(seed, &ground.check(), &ground);
}

#[test]
fn of_many_runs_at_once_one_works_and_the_others_say_so() {
    let seed = number("STENO_SEED").unwrap_or(20_260_407);
    let mut random = fastrand::Rng::with_seed(seed);
    let mut ground = Ground::new();
    for _ in 0..4 {
        (0..8).for_each(|_| ground.tree.change(&mut random));
        let children: Vec<_> = (0..5).map(|_| ground.index().spawn().unwrap()).collect();
        let mut worked = 0;
        for child in children {
            let done = child.wait_with_output().unwrap();
            let stderr = String::from_utf8_lossy(&done.stderr);
            worked += usize::from(done.status.success());
            assert!(done.status.success() || stderr.contains(" is writing to it"), "{}: {stderr}", done.status);
        }
        assert!(worked > 0);
        ground.is_made = true;
        expect(seed, &ground.check(), &ground);
    }
}

#[test]
fn an_interrupted_run_keeps_its_progress() {
    let seed = number("STENO_SEED").unwrap_or(20_260_408);
    let mut random = fastrand::Rng::with_seed(seed);
    let mut ground = Ground::new();
    (0..40).for_each(|_| ground.tree.create(300, &mut random));
    for wait in [0, 20, 60, 120, 250] {
        let child = ground.index().spawn().unwrap();
        std::thread::sleep(Duration::from_millis(wait));
        let killed = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
        let done = child.wait_with_output().unwrap();
        // Until the handler is installed, the signal ends the process as usual.
        let ended = killed.success() && done.status.code().is_none();
        assert!(ended || done.status.success(), "{}: {}", done.status, String::from_utf8_lossy(&done.stderr));
    }
    expect(seed, &ground.check(), &ground);
}

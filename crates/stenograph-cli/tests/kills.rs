//! Kills the recorder repeatedly at random: while it starts, records and finishes, and while `recover` completes the recording.
//! Every acknowledged message must be shown afterwards, in order and once. Uses real processes, pipes and signals; `STENO_SEED`
//! sets the random numbers, `STENO_ROUNDS` the number of rounds.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail loudly")]

#[path = "kills/inbox.rs"]
mod inbox;
#[path = "kills/life.rs"]
mod life;
#[path = "kills/place.rs"]
mod place;

use std::sync::atomic::{AtomicUsize, Ordering};

use life::Life;
use place::Place;
use stenograph_store::layouts::LAYOUTS;

const POLICIES: [&str; 3] = ["always", "interval=5", "never"];

/// How many recordings each layout gets with each policy, starting from an empty folder.
const ROUNDS: usize = 10;

/// How often the recorder is started in each of them.
const LIVES: usize = 12;

/// The number that CI requires.
const KILLS_MIN: usize = 2_000;

#[test]
fn acknowledged_events_survive_every_kill() {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse().ok());
    let seed = number("STENO_SEED").unwrap_or(20_260_302);
    let rounds = number("STENO_ROUNDS").map_or(ROUNDS, |rounds| usize::try_from(rounds).unwrap());
    let mut tasks = Vec::new();
    for round in 0..rounds {
        for layout in LAYOUTS {
            tasks.extend(POLICIES.map(|policy| (layout.info().name, policy, seed + round as u64)));
        }
    }
    let (next, kills) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some((layout, policy, seed)) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
                    kills.fetch_add(series(layout, policy, *seed), Ordering::Relaxed);
                }
            });
        }
    });
    let kills = kills.into_inner();
    assert!(rounds < ROUNDS || kills >= KILLS_MIN, "only {kills} kills");
}

/// Starts and kills a recorder in one folder, with regular checks. Returns the number of kills.
fn series(layout: &str, policy: &str, seed: u64) -> usize {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut place = Place::new(layout, policy, seed);
    for _ in 0..LIVES {
        let life = Life::chosen(&mut random);
        place.live(&life, &mut random);
        match random.u8(..8) {
            0 => place.recover(&mut random),
            1 => {
                place.recover(&mut random);
                place.check();
            }
            _ => {}
        }
    }
    place.recover(&mut random);
    place.check();
    place.kills
}

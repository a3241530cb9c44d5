//! An inbox whose senders and readers are killed: every sent message is delivered at least once.

use std::collections::BTreeSet;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

/// How often messages are sent and taken.
const ROUNDS: usize = 40;

fn steno(folder: &TempDir, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_steno"));
    command.args(words).current_dir(folder.path()).env("HOME", folder.path());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The numbers of the messages that a reader printed.
fn messages(printed: &[u8]) -> Vec<usize> {
    let text = String::from_utf8_lossy(printed).into_owned();
    let numbers = text.split("message ").skip(1).filter_map(|rest| rest.split_once('.')?.0.parse().ok());
    numbers.collect()
}

/// Kills a process unless it has ended; returns its output.
fn ended(mut child: Child, wait: Option<Duration>) -> Vec<usize> {
    if let Some(wait) = wait {
        std::thread::sleep(wait);
        let _ = child.kill();
    }
    let done = child.wait_with_output().unwrap();
    assert!(done.status.code().is_none_or(|code| code < 2), "{}", String::from_utf8_lossy(&done.stderr));
    messages(&done.stdout)
}

#[test]
fn messages_in_an_inbox_are_delivered_whichever_process_is_killed() {
    let seed = std::env::var("STENO_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(20_260_302);
    let mut random = fastrand::Rng::with_seed(seed);
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let (mut sent, mut taken) = (BTreeSet::new(), BTreeSet::new());
    let mut next = 0;
    for _ in 0..ROUNDS {
        for _ in 0..random.usize(1..4) {
            let text = format!("message {next}. {}", "word ".repeat(random.usize(..200)));
            let mut sending = steno(&folder, &["chibi", "inbox", "send", "contexts/a", &text]).spawn().unwrap();
            if random.u8(..4) == 0 {
                std::thread::sleep(Duration::from_micros(random.u64(..8_000)));
                let _ = sending.kill();
            }
            if sending.wait().unwrap().success() {
                sent.insert(next);
            }
            next += 1;
        }
        // Two at once, and each may be killed.
        let taking = [(); 2].map(|()| steno(&folder, &["chibi", "inbox", "take", "contexts/a"]).spawn().unwrap());
        for child in taking {
            let wait = (random.u8(..3) > 0).then(|| Duration::from_micros(random.u64(..9_000)));
            taken.extend(ended(child, wait));
        }
    }
    let last = steno(&folder, &["chibi", "inbox", "take", "contexts/a"]).spawn().unwrap();
    taken.extend(ended(last, None));
    let lost: Vec<&usize> = sent.difference(&taken).collect();
    assert!(lost.is_empty(), "STENO_SEED={seed}: sent and never handed over: {lost:?}");
    let again = steno(&folder, &["chibi", "inbox", "take", "contexts/a"]).spawn().unwrap();
    assert_eq!(ended(again, None), Vec::<usize>::new());
}

//! Measures the viewer over two stores: many sessions and a very large one, and a tree of real files for searches.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use super::Options;
use super::client::Viewer;
use crate::bench::goals::{Goals, percentile};
use crate::bench::store::queries;
use crate::{Failure, corpus, synthetic, tree};

const SCREEN_MS: f64 = 300.0;
const TYPING_MS: f64 = 50.0;
const MEMORY_MB: f64 = 150.0;

/// The CPU time of an idle server that counts as none: less than the kernel's tick.
const IDLE_MS: f64 = 10.0;

/// The very large session, below the home folder.
const LARGE: &str = "5e551000-0000-4000-8000-000000000000";

/// How long a new server may take to read its list and to look for new sessions, before the idle time begins.
const SETTLING: Duration = Duration::from_secs(15);

pub fn measure(options: &Options, steno: &Path, folder: &Path, goals: &mut Goals) -> Result<(), Failure> {
    let (many, searched) = (folder.join("many"), folder.join("searched"));
    fill(options, &many)?;
    index(steno, &many)?;
    screens(options, &Viewer::start(steno, &many)?, goals)?;
    corpus::tree(&searched, &tree::root().join("../shared/corpus"), options.tree_size, 0)?;
    index(steno, &searched)?;
    typing(&Viewer::start(steno, &searched)?, &searched, goals)
}

/// Writes many small sessions and one very large session.
fn fill(options: &Options, home: &Path) -> Result<(), Failure> {
    for number in 0..options.sessions {
        let folder = home.join(format!(".claude/projects/-home-ada-{}", number % 50));
        fs::create_dir_all(&folder)?;
        let (id, text) = synthetic::small_session(number)?;
        fs::write(folder.join(format!("{id}.jsonl")), text)?;
    }
    let folder = home.join(".claude/projects/-large");
    fs::create_dir_all(&folder)?;
    let mut out = BufWriter::new(File::create(folder.join(format!("{LARGE}.jsonl")))?);
    synthetic::session(options.session_size, &mut out)?;
    Ok(out.flush()?)
}

fn index(steno: &Path, home: &Path) -> Result<(), Failure> {
    let mut command = Command::new(steno);
    command.args(["index", "--no-keep"]).env("HOME", home).env("STENO_HOME", home.join("store")).env("TZ", "UTC");
    let done = command.stdin(Stdio::null()).output()?;
    match done.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&done.stderr).into_owned().into()),
    }
}

/// Measures the list and both ends of the very large session, then the memory, and the time of an idle server.
fn screens(options: &Options, viewer: &Viewer, goals: &mut Goals) -> Result<(), Failure> {
    let large = format!("/sessions/{LARGE}");
    let last = options.sessions.saturating_sub(100);
    for (name, path) in [
        ("the list of all sessions", "/sessions".to_owned()),
        ("the end of the list", format!("/sessions?part=list&from={last}")),
        ("the list, filtered", "/sessions?q=project:ada".to_owned()),
        ("the overview", "/".to_owned()),
        ("the first screen of the large session", large.clone()),
        ("its end", format!("{large}?at=end")),
        ("its middle", format!("{large}/events?at=100000")),
    ] {
        let mut times = Vec::new();
        for _ in 0..options.rounds.max(1) {
            times.push(viewer.get(&path)?.1);
        }
        // The first answer is the slowest: it reads what the others find in memory.
        goals.at_most(&format!("{name}, slowest"), percentile(&times, 100), SCREEN_MS, "ms");
        Goals::print(&format!("{name}, median"), percentile(&times, 50), "ms");
    }
    for (name, part) in [("its outline and panels, after the first screen", "contents"), ("its lanes", "lanes")] {
        Goals::print(name, viewer.get(&format!("{large}/{part}"))?.1.as_secs_f64(), "s");
    }
    memory("memory of the server", viewer, goals)?;
    let _open = viewer.follow(&format!("/live?session={LARGE}"))?;
    sleep(SETTLING);
    let before = viewer.cpu_time()?;
    sleep(Duration::from_secs(options.idle));
    let spent = viewer.cpu_time()?.saturating_sub(before);
    goals.at_most("CPU time of an idle server", spent.as_secs_f64() * 1e3, IDLE_MS, "ms");
    Ok(())
}

fn memory(name: &str, viewer: &Viewer, goals: &mut Goals) -> Result<(), Failure> {
    let memory = viewer.memory()?;
    goals.at_most(name, memory.own, MEMORY_MB, "MB");
    Goals::print("its peak, with mapped files", memory.peak, "MB");
    Ok(())
}

/// Measures searches while somebody types: an answer for each letter, from the list and from the palette.
fn typing(viewer: &Viewer, home: &Path, goals: &mut Goals) -> Result<(), Failure> {
    let kinds = queries::kinds(&home.join(".claude"))?;
    let texts = kinds.iter().filter(|kind| ["rare word", "common word", "two words"].contains(&kind.name));
    let texts: Vec<&str> = texts.flat_map(|kind| &kind.queries).map(|query| query.text.as_str()).collect();
    viewer.get("/sessions")?;
    for (name, path) in [("search as you type, list", "/sessions?part=list&q="), ("palette", "/palette?q=")] {
        let mut times = Vec::new();
        for text in &texts {
            for (end, letter) in text.char_indices() {
                let typed = text.get(..end + letter.len_utf8()).unwrap_or_default();
                times.push(viewer.get(&format!("{path}{}", typed.replace(' ', "+")))?.1);
            }
        }
        Goals::print(&format!("{name}, median of {}", times.len()), percentile(&times, 50), "ms");
        goals.at_most(&format!("{name}, 95 of 100"), percentile(&times, 95), TYPING_MS, "ms");
    }
    memory("memory of the server after the searches", viewer, goals)
}

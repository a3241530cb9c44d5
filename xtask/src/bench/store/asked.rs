//! Asks every kind of query: in process, as whole commands, with a plain scan, and of other programs that are installed. It must
//! not choose what is asked.

use std::process::Command;
use std::time::Duration;

use super::inside::Inside;
use super::peers::Installed;
use super::queries::{self, Kind, Query, Scan};
use super::{Ground, Options};
use crate::Failure;
use crate::bench::goals::{Goals, percentile};
use crate::bench::process::timed;

const COMMAND_MS: f64 = 40.0;
const INSIDE_MS: f64 = 2.0;

/// What was measured of a kind of query.
#[derive(Default)]
struct Asked {
    inside: Vec<Duration>,
    commands: Vec<Duration>,
    scans: Vec<Duration>,
    /// By name of the peer and its way.
    theirs: Vec<(String, Vec<Duration>)>,
}

/// Asks all kinds of queries.
pub fn asked(ground: &Ground, peers: &[Installed], options: &Options, goals: &mut Goals) -> Result<(), Failure> {
    let kinds = queries::kinds(&ground.tree)?;
    let mut all: Vec<Asked> = kinds.iter().map(|_| Asked::default()).collect();
    let serving = peers.iter().map(Installed::serve).collect::<Result<Vec<_>, _>>()?;
    let mut inside = Inside::open(&ground.home)?;
    for (kind, asked) in kinds.iter().zip(&mut all) {
        for query in &kind.queries {
            asked.inside.extend(inside.ask(&query.text, kind.order)?);
            for _ in 0..options.asks.max(1) {
                asked.commands.push(timed(&mut ground.find(kind, query))?.1);
            }
            asked.scans.extend(scanned(ground, query)?);
        }
        // A peer takes seconds for what it has no index for: two words of each kind are enough.
        let texts = kind.queries.iter().filter_map(|query| match &query.scan {
            Some(Scan::Text(text)) => Some(text),
            Some(Scan::Pattern(_)) | None => None,
        });
        for text in texts.take(2) {
            for (peer, serving) in peers.iter().zip(&serving) {
                for (way, time) in serving.search(text)? {
                    let name = format!("{}, {way}", peer.peer.name());
                    match asked.theirs.iter_mut().find(|(known, _)| *known == name) {
                        Some((_, times)) => times.push(time),
                        None => asked.theirs.push((name, vec![time])),
                    }
                }
            }
        }
    }
    drop(serving);
    report(&kinds, &all, goals);
    Ok(())
}

/// Looks for the same with a plain scan, where that can and is installed.
fn scanned(ground: &Ground, query: &Query) -> Result<Option<Duration>, Failure> {
    let mut command = Command::new("rg");
    command.args(["--no-messages", "--no-ignore", "--hidden", "--ignore-case", "--count"]);
    match &query.scan {
        Some(Scan::Text(text)) => command.args(["--fixed-strings", "--", text]),
        Some(Scan::Pattern(pattern)) => command.args(["--", pattern]),
        None => return Ok(None),
    };
    match timed(command.arg(&ground.tree)) {
        Ok((_, time)) => Ok(Some(time)),
        Err(error) if error.downcast_ref::<std::io::Error>().is_some() => Ok(None),
        Err(error) => Err(error),
    }
}

fn report(kinds: &[Kind], all: &[Asked], goals: &mut Goals) {
    println!(
        "\n{:<22} {:>8} {:>8} {:>9} {:>9} {:>9} {:>9}   others",
        "ms", "inside", "p99", "command", "best", "p99", "rg"
    );
    let mut worst = [("", 0.0_f64), ("", 0.0_f64)];
    for (kind, asked) in kinds.iter().zip(all) {
        if asked.inside.is_empty() {
            println!("{:<22} nothing of the kind is in this tree", kind.name);
            continue;
        }
        let figures = [&asked.inside, &asked.commands].map(|times| percentile(times, 50));
        for (worst, figure) in worst.iter_mut().zip(figures) {
            if figure > worst.1 {
                *worst = (kind.name, figure);
            }
        }
        let [inside, command] = figures;
        let theirs = asked.theirs.iter().map(|(name, times)| format!("{name} {:.0}", percentile(times, 50)));
        let scan = if asked.scans.is_empty() { "-".to_owned() } else { format!("{:.1}", percentile(&asked.scans, 50)) };
        println!(
            "{:<22} {inside:>8.3} {:>8.3} {command:>9.1} {:>9.1} {:>9.1} {scan:>9}   {}",
            kind.name,
            percentile(&asked.inside, 99),
            percentile(&asked.commands, 0),
            percentile(&asked.commands, 99),
            theirs.collect::<Vec<_>>().join("; ")
        );
    }
    println!();
    let [inside, command] = worst;
    let every = |times: fn(&Asked) -> &Vec<Duration>| all.iter().flat_map(times).copied().collect::<Vec<_>>();
    goals.at_most("in process, all kinds", percentile(&every(|asked| &asked.inside), 50), INSIDE_MS, "ms");
    goals.at_most(&format!("in process, slowest kind ({})", inside.0), inside.1, INSIDE_MS, "ms");
    goals.at_most("whole steno find, all kinds", percentile(&every(|asked| &asked.commands), 50), COMMAND_MS, "ms");
    goals.at_most(&format!("whole steno find, slowest kind ({})", command.0), command.1, COMMAND_MS, "ms");
}

//! Measures every kind of query: in process, as whole commands, with a plain scan, and with other installed programs. It must
//! not choose the queries.

use std::process::Command;
use std::time::Duration;

use super::in_process::OpenIndex;
use super::peers::Installed;
use super::queries::{self, Kind, Query, Scan};
use super::{Options, Setup};
use crate::Failure;
use crate::bench::goals::{Goals, percentile};
use crate::bench::process::timed;

const COMMAND_MS: f64 = 40.0;
const IN_PROCESS_MS: f64 = 2.0;

/// The measured times of a kind of query.
#[derive(Default)]
struct QueryTimes {
    in_process: Vec<Duration>,
    commands: Vec<Duration>,
    scans: Vec<Duration>,
    /// By the name of the peer and of its search method.
    theirs: Vec<(String, Vec<Duration>)>,
}

/// Measures all kinds of queries.
pub fn measure(setup: &Setup, peers: &[Installed], options: &Options, goals: &mut Goals) -> Result<(), Failure> {
    let kinds = queries::kinds(&setup.tree)?;
    let mut all: Vec<QueryTimes> = kinds.iter().map(|_| QueryTimes::default()).collect();
    let serving = peers.iter().map(Installed::serve).collect::<Result<Vec<_>, _>>()?;
    let mut index = OpenIndex::open(&setup.home)?;
    for (kind, times) in kinds.iter().zip(&mut all) {
        for query in &kind.queries {
            times.in_process.extend(index.ask(&query.text, kind.order)?);
            for _ in 0..options.asks.max(1) {
                times.commands.push(timed(&mut setup.find(kind, query))?.1);
            }
            times.scans.extend(scanned(setup, query)?);
        }
        // A peer takes seconds for queries that it has no index for, so two words of each kind are enough.
        let texts = kind.queries.iter().filter_map(|query| match &query.scan {
            Some(Scan::Text(text)) => Some(text),
            Some(Scan::Pattern(_)) | None => None,
        });
        for text in texts.take(2) {
            for (peer, serving) in peers.iter().zip(&serving) {
                for (way, time) in serving.search(text)? {
                    let name = format!("{}, {way}", peer.peer.name());
                    match times.theirs.iter_mut().find(|(known, _)| *known == name) {
                        Some((_, times)) => times.push(time),
                        None => times.theirs.push((name, vec![time])),
                    }
                }
            }
        }
    }
    drop(serving);
    report(&kinds, &all, goals);
    Ok(())
}

/// Measures a plain scan for the same text; `None` if the query cannot be scanned for or `rg` is not installed.
fn scanned(setup: &Setup, query: &Query) -> Result<Option<Duration>, Failure> {
    let mut command = Command::new("rg");
    command.args(["--no-messages", "--no-ignore", "--hidden", "--ignore-case", "--count"]);
    match &query.scan {
        Some(Scan::Text(text)) => command.args(["--fixed-strings", "--", text]),
        Some(Scan::Pattern(pattern)) => command.args(["--", pattern]),
        None => return Ok(None),
    };
    match timed(command.arg(&setup.tree)) {
        Ok((_, time)) => Ok(Some(time)),
        Err(error) if error.downcast_ref::<std::io::Error>().is_some() => Ok(None),
        Err(error) => Err(error),
    }
}

fn report(kinds: &[Kind], all: &[QueryTimes], goals: &mut Goals) {
    println!(
        "\n{:<22} {:>8} {:>8} {:>9} {:>9} {:>9} {:>9}   others",
        "ms", "inside", "p99", "command", "best", "p99", "rg"
    );
    let mut worst = [("", 0.0_f64), ("", 0.0_f64)];
    for (kind, times) in kinds.iter().zip(all) {
        if times.in_process.is_empty() {
            println!("{:<22} nothing of the kind is in this tree", kind.name);
            continue;
        }
        let figures = [&times.in_process, &times.commands].map(|times| percentile(times, 50));
        for (worst, figure) in worst.iter_mut().zip(figures) {
            if figure > worst.1 {
                *worst = (kind.name, figure);
            }
        }
        let [inside, command] = figures;
        let theirs = times.theirs.iter().map(|(name, times)| format!("{name} {:.0}", percentile(times, 50)));
        let scan = if times.scans.is_empty() { "-".to_owned() } else { format!("{:.1}", percentile(&times.scans, 50)) };
        println!(
            "{:<22} {inside:>8.3} {:>8.3} {command:>9.1} {:>9.1} {:>9.1} {scan:>9}   {}",
            kind.name,
            percentile(&times.in_process, 99),
            percentile(&times.commands, 0),
            percentile(&times.commands, 99),
            theirs.collect::<Vec<_>>().join("; ")
        );
    }
    println!();
    let [inside, command] = worst;
    let every = |times: fn(&QueryTimes) -> &Vec<Duration>| all.iter().flat_map(times).copied().collect::<Vec<_>>();
    goals.at_most("in process, all kinds", percentile(&every(|times| &times.in_process), 50), IN_PROCESS_MS, "ms");
    goals.at_most(&format!("in process, slowest kind ({})", inside.0), inside.1, IN_PROCESS_MS, "ms");
    goals.at_most("whole steno find, all kinds", percentile(&every(|times| &times.commands), 50), COMMAND_MS, "ms");
    goals.at_most(&format!("whole steno find, slowest kind ({})", command.0), command.1, COMMAND_MS, "ms");
}

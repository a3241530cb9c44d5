//! One rule for times: people see the local time zone, labelled, or UTC with `--utc`; programs get UTC.

use crate::list::home;
use crate::runner::{Folder, NATIVE};

/// The output of a command in a time zone two hours ahead of UTC.
fn printed(folder: &Folder, line: &str) -> String {
    let done = folder.command(line).env("TZ", "<+02>-02").output().unwrap();
    String::from_utf8(done.stdout).unwrap()
}

#[test]
fn every_command_shows_local_times_with_their_offset() {
    let folder = home();
    folder.write("a", NATIVE);
    for (line, local, utc) in [
        ("show a", "2026-03-02 11:14 +02:00", "2026-03-02 09:14 UTC"),
        ("show a --event 1", "── 2026-03-02 +02:00 ──", "── 2026-03-02 UTC ──"),
        ("tail a", "── 2026-03-02 +02:00 ──", "── 2026-03-02 UTC ──"),
        ("tail a", "11:14:05", "09:14:05"),
        ("export a --to markdown", "| Started | 2026-03-02 11:14:05 +02:00 |", "| Started | 2026-03-02 09:14:05 UTC |"),
        ("replay a", "2026-03-02 11:14 +02:00", "2026-03-02 09:14 UTC"),
        ("replay a --mode full", "11:14:05", "09:14:05"),
        ("audit a", "2026-03-02 11:14 +02:00", "2026-03-02 09:14 UTC"),
        ("diff a a --summary", "2026-03-02 11:14:05 +02:00", "2026-03-02 09:14:05 UTC"),
        ("find walrus --root home --events", "2026-01-02 05:01 +02:00", "2026-01-02 03:01 UTC"),
    ] {
        let here = printed(&folder, line);
        assert!(here.contains(local), "{line}: {here}");
        let there = printed(&folder, &format!("{line} --utc"));
        assert!(there.contains(utc), "{line} --utc: {there}");
    }
}

#[test]
fn programs_get_utc_wherever_the_clock_is() {
    let folder = home();
    folder.write("a", NATIVE.replace("2026-03-02T09:14:05Z", "2026-03-02T17:14:05+08:00"));
    for (line, utc) in [
        ("find walrus --root home --json", "\"time\":\"2026-01-02T03:01:00Z\""),
        ("list --root home --json", "\"started\":\"2026-01-02T03:01:00Z\""),
        ("export a --to json", "\"started\":\"2026-03-02T09:14:05Z\""),
        ("diff a a --json --summary", "\"a\":\"2026-03-02T09:14:05"),
    ] {
        let text = printed(&folder, line);
        assert!(text.contains(utc), "{line}: {text}");
    }
}

#[test]
fn days_in_queries_are_those_of_the_time_zone_that_is_shown() {
    let folder = home();
    // In UTC, 03:01 is on the same day; four hours behind UTC it is on the day before.
    let ask = |line: &str| folder.command(line).env("TZ", "<-04>04").output().unwrap().status.code();
    assert_eq!(ask("find walrus until:2026-01-01 --root home"), Some(0));
    assert_eq!(ask("find walrus until:2026-01-01 --root home --utc"), Some(1));
}

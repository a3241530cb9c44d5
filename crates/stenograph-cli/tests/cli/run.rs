//! `steno run`: lists, archives, restores and cleans real folders of runs.

use std::fs;

use crate::runner::{Folder, names};

/// A folder with runs of all kinds; the newest is from yesterday, relative to today.
fn runs() -> Folder {
    let folder = Folder::new();
    for (id, flow, status, started) in [
        ("2025-01-15-ticket-to-pr-TK421", "ticket-to-pr", "completed", "2025-01-15T10:30:00Z"),
        ("2025-02-01-review-7", "review", "failed", "2025-02-01T10:30:00+02:00"),
        ("2025-03-01-review-8", "review", "canceled", "2025-03-01T08:00:00Z"),
        ("nightly", "review", "completed", "2025-04-01T08:00:00Z"),
        ("live", "review", "running", "2025-05-01T08:00:00Z"),
    ] {
        run(&folder, id, flow, status, started);
    }
    fs::create_dir_all(folder.path(".devflow/runs/broken")).unwrap();
    folder.write(".devflow/runs/broken/metadata.json", "{\"flowId\":");
    folder
}

fn run(folder: &Folder, id: &str, flow: &str, status: &str, started: &str) {
    fs::create_dir_all(folder.path(&format!(".devflow/runs/{id}/artifacts"))).unwrap();
    let metadata = format!(
        r#"{{"flowId":"{flow}","startedAt":"{started}","endedAt":"{started}","status":"{status}","totalTokensIn":5,"totalTokensOut":6,"totalCost":1.5}}"#
    );
    folder.write(&format!(".devflow/runs/{id}/metadata.json"), &metadata);
    let turn = r#"{"id":1,"role":"user","content":"What <now>?","timestamp":"2025-01-15T10:30:00Z"}"#;
    let transcript = format!(r#"{{"runId":"{id}","metadata":{metadata},"turns":[{turn}]}}"#);
    folder.write(&format!(".devflow/runs/{id}/transcript.json"), transcript);
    folder.write(&format!(".devflow/runs/{id}/artifacts/patch.diff"), "+1\n");
}

fn ids(folder: &Folder, line: &str) -> Vec<String> {
    let listed = folder.run(&format!("devflow list --json {line}"));
    listed.json().iter().map(|run| run["runId"].as_str().unwrap().to_owned()).collect()
}

fn there(folder: &Folder) -> Vec<String> {
    names(&folder.path(".devflow/runs"))
}

#[test]
fn runs_are_listed_newest_first_by_flow_status_and_date() {
    let folder = runs();
    let all =
        ["live", "nightly", "2025-03-01-review-8", "2025-02-01-review-7", "2025-01-15-ticket-to-pr-TK421", "broken"];
    assert_eq!(ids(&folder, ""), all);
    assert_eq!(ids(&folder, "--flow review --status failed,canceled"), all[2..4]);
    assert_eq!(ids(&folder, "--status unreadable"), ["broken"]);
    assert_eq!(ids(&folder, "--since 2025-02-01T08:30:00Z --until 2025-03-30"), all[2..4]);
    assert_eq!(ids(&folder, "--limit 2"), all[..2]);
    assert_eq!(ids(&folder, "--find WHAT --flow ticket-to-pr"), all[4..5]);
    assert_eq!(ids(&folder, "--find tk421"), all[4..5]);
    assert!(ids(&folder, "--since 3d").is_empty());
    let people = folder.run("devflow list");
    people.ends(0).says("2025-02-01-review-7  failed  2025-02-01 08:30 UTC  review  1 turn  5 tokens in, 6 out  $1.50");
    people.says("What <now>?").says("broken  unreadable").says("metadata.json: is not what devflow writes");
    let index = String::from_utf8(folder.read(".devflow/index.json")).unwrap();
    assert!(
        index.contains("\"firstQuery\": \"What \\u003cnow\\u003e?\"") && index.contains("\"lastUpdated\""),
        "{index}"
    );
    folder.run("devflow list --flow none").ends(1).talks("no matching runs in .devflow");
    folder.run("devflow list --since soon").ends(2).talks("an age (");
    folder.run("devflow list --base nowhere").fails("nowhere: no such folder");
    assert_eq!(folder.run("run").code, 2);
}

#[test]
fn a_run_is_put_away_and_brought_back_as_it_was() {
    let folder = runs();
    let id = "2025-01-15-ticket-to-pr-TK421";
    let before = folder.read(&format!(".devflow/runs/{id}/transcript.json"));
    folder.run(&format!("devflow archive {id} --dry-run")).ends(0).says(&format!("would archive  {id}"));
    assert!(there(&folder).contains(&id.to_owned()));
    let done = folder.run(&format!("devflow archive {id} --json"));
    assert_eq!(done.ends(0).json()[0]["archive"], format!(".devflow/archive/2025-01/{id}.tar.gz"));
    assert!(!there(&folder).contains(&id.to_owned()));
    assert!(!String::from_utf8(folder.read(".devflow/index.json")).unwrap().contains(id));
    let listed = folder.run("devflow list --archived --json").ends(0).json();
    assert_eq!((&listed[0]["runId"], &listed[0]["flowId"]), (&id.into(), &"ticket-to-pr".into()));
    folder.run("devflow list --archived --flow review").ends(1);
    folder.run(&format!("devflow restore {id}")).ends(0).says("restored");
    assert_eq!(folder.read(&format!(".devflow/runs/{id}/transcript.json")), before);
    assert_eq!(folder.read(&format!(".devflow/runs/{id}/artifacts/patch.diff")), b"+1\n");
    assert!(names(&folder.path(".devflow/archive/2025-01")).is_empty());
    assert!(String::from_utf8(folder.read(".devflow/index.json")).unwrap().contains(id));
    folder.run(&format!("devflow restore {id}")).finds_nothing("no such archived run");
}

#[test]
fn a_run_that_cannot_be_moved_is_reported_and_does_not_stop_the_rest() {
    let folder = runs();
    folder.run("devflow archive").fails("say which runs to archive");
    folder.run("devflow archive live").fails("live: is still running");
    let some = folder.run("devflow archive nothing-here nightly");
    some.finds_nothing("nothing-here: no such run").says("archived  nightly  .devflow/archive/2025-04/nightly.tar.gz");
    run(&folder, "nightly", "another", "completed", "2025-04-01T08:00:00Z");
    folder.run("devflow restore nightly").fails("nightly: already exists");
    let filtered = folder.run("devflow archive --until 30d --status completed,running");
    filtered.ends(2).talks("already exists with different contents").talks("1 run skipped: still running");
    filtered.says("archived  2025-01-15-ticket-to-pr-TK421");
    folder.run("devflow archive --flow none").ends(1);
    folder.run("devflow restore ../x").finds_nothing("no such archived run");
}

#[test]
fn a_dry_run_of_clean_predicts_exactly_what_clean_does() {
    let folder = runs();
    run(&folder, "fresh", "review", "completed", "2999-01-01T00:00:00Z");
    let planned = folder.run("devflow clean --dry-run --json --keep-min-runs 2");
    let before = there(&folder);
    let done = folder.run("devflow clean --json --keep-min-runs 2");
    assert_eq!(planned.ends(0).text().replace(",\"dryRun\":true", ""), done.ends(0).text());
    assert_eq!(before.len(), 7);
    let fate = |id: &str| {
        let lines = done.json();
        let line = lines.iter().find(|line| line["runId"] == id).unwrap().clone();
        (line["action"].as_str().unwrap().to_owned(), line["reason"].as_str().unwrap_or_default().to_owned())
    };
    let kept = |reason: &str| ("keep".to_owned(), reason.to_owned());
    assert_eq!(fate("fresh"), kept("among the newest"));
    assert_eq!(fate("live"), kept("running"));
    assert_eq!(fate("2025-02-01-review-7"), kept("failed"));
    assert_eq!(fate("broken"), kept("unreadable"));
    assert_eq!(fate("nightly").0, "archive");
    assert_eq!(there(&folder), ["2025-02-01-review-7", "broken", "fresh", "live"]);
    assert_eq!(ids(&folder, "--archived").len(), 3);
    done.talks("4 runs kept: 1 running, 1 failed, 1 among the newest, 1 unreadable");
    // Archives made today stay, however old the run is; only `--delete` removes runs.
    folder.run("devflow clean --keep-min-runs 0").ends(0);
    assert_eq!(ids(&folder, "--archived").len(), 3);
    let deleted = folder.run("devflow clean --keep-min-runs 0 --include-failed --delete --archive-retention-days 0");
    deleted.ends(0).says("deleted  2025-02-01-review-7").says("deleted archive  nightly");
    assert!(ids(&folder, "--archived").is_empty());
    assert_eq!(there(&folder), ["broken", "fresh", "live"]);
}

#[test]
fn the_defaults_keep_a_hundred_runs() {
    let folder = runs();
    folder.run("devflow clean").ends(0).talks("6 runs kept");
    assert_eq!(there(&folder).len(), 6);
}

#[test]
fn a_hostile_archive_writes_nothing() {
    let folder = Folder::new();
    fs::create_dir_all(folder.path(".devflow/archive/2025-01")).unwrap();
    let mut header = [0_u8; 512];
    let name = b"r/../../../evil";
    header[..name.len()].copy_from_slice(name);
    header[100..107].copy_from_slice(b"0000644");
    header[124..135].copy_from_slice(b"00000000000");
    header[136..147].copy_from_slice(b"00000000000");
    header[148..156].copy_from_slice(b"        ");
    header[156] = b'0';
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    let tar = [header.to_vec(), vec![0; 1024]].concat();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut encoder, &tar).unwrap();
    folder.write(".devflow/archive/2025-01/r.tar.gz", encoder.finish().unwrap());
    folder.run("devflow restore r").fails("an entry outside its folder");
    assert_eq!(folder.names(), [".devflow"]);
    assert!(names(&folder.path(".devflow/runs")).is_empty());
}

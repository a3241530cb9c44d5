//! Rotation by Chibi's rules, and the manifest.

use super::*;
use crate::files::Disk;

fn message(number: u64, content: &str) -> ContextEntry {
    let line = format!(
        r#"{{"id":"{number}","timestamp":{},"from":"a","to":"b","content":"{content}","entry_type":"message"}}"#,
        1_000 + number
    );
    ContextEntry::new(line.as_bytes())
}

fn append(partitions: &mut Partitions, entries: &[ContextEntry], now: u64) -> Vec<Warning> {
    let entries: Vec<&ContextEntry> = entries.iter().collect();
    partitions.append(&Disk, &entries, now, SyncTime::Now).unwrap()
}

fn ids(partitions: &Partitions) -> Vec<u64> {
    let mut ids = Vec::new();
    for path in partitions.files(&Disk).unwrap() {
        ids.extend(entry::all(&Disk, &path).unwrap().iter().map(|entry| entry.id.clone().unwrap()));
    }
    ids.iter().map(|id| id.parse().unwrap()).collect()
}

fn names(folder: &Path) -> Vec<String> {
    let found = Disk.list(folder).unwrap();
    found.iter().map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect()
}

#[test]
fn a_full_file_becomes_a_partition_and_nothing_is_counted_twice() {
    let folder = tempfile::tempdir().unwrap();
    let mut partitions = Partitions::new(folder.path().to_owned());
    append(&mut partitions, &(0..999).map(|number| message(number, "x")).collect::<Vec<_>>(), 2_000);
    assert!(!folder.path().join("manifest.json").exists());
    append(&mut partitions, &(999..2_500).map(|number| message(number, "x")).collect::<Vec<_>>(), 2_000);
    assert_eq!(names(&folder.path().join("partitions")), ["1000-1999.jsonl", "2000-2999.jsonl"]);
    assert_eq!(ids(&partitions), (0..2_500).collect::<Vec<_>>());
    let manifest = std::fs::read_to_string(folder.path().join("manifest.json")).unwrap();
    let manifest = Manifest::parse(manifest).unwrap();
    assert_eq!(
        manifest.partitions[0],
        r#"{"file":"partitions/1000-1999.jsonl","start_ts":1000,"end_ts":1999,"entry_count":1000,"prompt_count":1000,"token_count":1000}"#
    );
    assert_eq!(manifest.policy, RotationPolicy::default());
}

#[test]
fn a_file_that_is_large_or_old_becomes_a_partition_too() {
    let folder = tempfile::tempdir().unwrap();
    let mut partitions = Partitions::new(folder.path().to_owned());
    append(&mut partitions, &[message(0, &"x".repeat(299_998))], 2_000);
    assert!(folder.path().join("partitions/1000-1000.jsonl").exists());
    append(&mut partitions, &[message(1, "x")], 1_001 + 30 * 24 * 60 * 60 - 1);
    assert_eq!(names(&folder.path().join("partitions")).len(), 1);
    append(&mut partitions, &[message(2, "x")], 1_001 + 30 * 24 * 60 * 60);
    assert_eq!(names(&folder.path().join("partitions")).len(), 2);
    assert_eq!(ids(&partitions), [0, 1, 2]);
}

#[test]
fn a_partition_never_takes_the_place_of_another() {
    let folder = tempfile::tempdir().unwrap();
    let mut partitions = Partitions::new(folder.path().to_owned());
    for _ in 0..3 {
        append(&mut partitions, &[message(0, &"x".repeat(300_000))], 2_000);
    }
    let expected = ["1000-1000-1.jsonl", "1000-1000-2.jsonl", "1000-1000.jsonl"];
    assert_eq!(names(&folder.path().join("partitions")), expected);
    assert_eq!(ids(&partitions), [0, 0, 0]);
}

#[test]
fn an_unlisted_partition_is_read_and_then_listed() {
    let folder = tempfile::tempdir().unwrap();
    let mut partitions = Partitions::new(folder.path().to_owned());
    append(&mut partitions, &[message(1, "x")], 2_000);
    std::fs::create_dir(folder.path().join("partitions")).unwrap();
    let mut line = message(0, "y").line;
    line.push(b'\n');
    std::fs::write(folder.path().join("partitions/1000-1000.jsonl"), line).unwrap();
    assert_eq!(ids(&partitions), [0, 1]);
    let mut again = Partitions::new(folder.path().to_owned());
    assert_eq!(append(&mut again, &[message(2, "x")], 2_000).len(), 1);
    assert_eq!(ids(&again), [0, 1, 2]);
    assert!(std::fs::read_to_string(folder.path().join("manifest.json")).unwrap().contains("1000-1000.jsonl"));
}

#[test]
fn a_manifest_keeps_what_is_not_known_here_and_leads_nowhere_else() {
    let folder = tempfile::tempdir().unwrap();
    let manifest = r#"{"version":1,"active_partition":"active.jsonl","partitions":[{"file":"partitions/1-2.jsonl","bloom_file":"b"}],"rotation_policy":{"max_entries":2,"max_age_seconds":60,"x":1},"later":true}"#;
    std::fs::write(folder.path().join("manifest.json"), manifest).unwrap();
    let mut partitions = Partitions::new(folder.path().to_owned());
    append(&mut partitions, &[message(0, "x"), message(1, "x"), message(2, "x")], 1_010);
    let text = std::fs::read_to_string(folder.path().join("manifest.json")).unwrap();
    for part in ["\"later\": true", "\"bloom_file\": \"b\"", "\"x\": 1", "1000-1001.jsonl"] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    std::fs::write(folder.path().join("manifest.json"), manifest.replace("active.jsonl", "../x.jsonl")).unwrap();
    assert_eq!(partitions.files(&Disk).unwrap_err().problem, Problem::BadName);
    std::fs::write(folder.path().join("manifest.json"), "{").unwrap();
    assert_eq!(partitions.files(&Disk).unwrap_err().problem, Problem::Unreadable);
}

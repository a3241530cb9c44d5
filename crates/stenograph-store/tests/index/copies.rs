//! Files that move or are copied: one session stays one, in the index and in the archive.

use super::*;

#[test]
fn a_moved_file_stays_one_and_a_copy_is_not_found_twice() {
    let ground = Ground::new();
    let path = ground.session(SESSION);
    append(&path, &line(SESSION, 1, "user", "a walrus"));
    ground.index();
    let moved = ground.home.join(".claude/projects/-elsewhere");
    fs::create_dir_all(&moved).unwrap();
    let moved = moved.join(path.file_name().unwrap());
    fs::rename(&path, &moved).unwrap();
    let report = ground.index();
    assert_eq!((report.moved, report.added, report.events), (1, 0, 0));
    assert_eq!(ground.find("walrus"), ["a walrus"]);

    fs::copy(&moved, ground.session("copy")).unwrap();
    let report = ground.index();
    assert_eq!((report.copies, report.events), (1, 0));
    assert_eq!(ground.find("walrus"), ["a walrus"]);
    assert_eq!(ground.store.catalogue().unwrap().sessions().unwrap().len(), 1);
    // A copy that diverges is a source like any other, and shared events are still found once.
    append(&ground.session("copy"), &line(SESSION, 2, "user", "another walrus"));
    ground.index();
    assert_eq!(ground.find("walrus"), ["another walrus", "a walrus"]);
}

#[test]
fn a_copy_does_not_double_its_session_once_the_original_is_gone() {
    for is_grown in [false, true] {
        let ground = Ground::new();
        let (path, copy) = (ground.session(SESSION), ground.session("copy"));
        append(&path, &line(SESSION, 1, "user", "a walrus"));
        append(&path, &line(SESSION, 2, "assistant", "a seal"));
        ground.index();
        let mut expected = counts(&ground);
        fs::copy(&path, &copy).unwrap();
        assert_eq!(ground.index().copies, 1);
        assert_eq!(counts(&ground), expected);
        fs::remove_file(&path).unwrap();
        if is_grown {
            let more = line(SESSION, 3, "user", "an otter");
            append(&copy, &more);
            expected = (expected.0 + 1, expected.1 + 1, expected.2 + more.len() as u64);
        }
        assert_eq!(ground.index().gone, 1);
        assert_eq!(counts(&ground), expected);
        assert_eq!(ground.find("walrus OR seal").len(), 2);
        fs::remove_dir_all(ground.store.index()).unwrap();
        ground.index();
        assert_eq!(counts(&ground), expected, "rebuilt");
        fs::remove_file(&copy).unwrap();
        ground.index();
        assert_eq!(counts(&ground), expected, "both are gone");
        assert_eq!(ground.find("walrus OR seal").len(), 2);
        fs::remove_dir_all(ground.store.index()).unwrap();
        ground.index();
        assert_eq!(counts(&ground), expected, "rebuilt of the archive alone");
    }
}

#[test]
fn a_deleted_original_is_found_if_its_copy_differs() {
    let ground = Ground::new();
    let (path, copy) = (ground.session(SESSION), ground.session("copy"));
    append(&path, &line(SESSION, 1, "user", "a walrus"));
    ground.index();
    fs::copy(&path, &copy).unwrap();
    ground.index();
    fs::remove_file(&path).unwrap();
    ground.index();
    fs::write(&copy, line(SESSION, 2, "user", "a seal")).unwrap();
    ground.index();
    assert_eq!(ground.find("seal"), ["a seal"]);
    assert_eq!(ground.find("walrus"), ["a walrus"]);
}

#[test]
fn an_index_that_is_rebuilt_knows_a_copy_whose_original_only_the_archive_has() {
    for both_gone in [false, true] {
        let ground = Ground::new();
        let (path, copy) = (ground.session(SESSION), ground.session("copy"));
        append(&path, &line(SESSION, 1, "user", "a walrus"));
        ground.index();
        let expected = counts(&ground);
        fs::copy(&path, &copy).unwrap();
        fs::remove_file(&path).unwrap();
        fs::remove_dir_all(ground.store.index()).unwrap();
        // The archive has both now, each under its own path.
        ground.index();
        assert_eq!(counts(&ground), expected);
        if both_gone {
            fs::remove_file(&copy).unwrap();
            fs::remove_dir_all(ground.store.index()).unwrap();
            ground.index();
            assert_eq!(counts(&ground), expected);
        }
        assert_eq!(ground.find("walrus"), ["a walrus"]);
    }
}

#[test]
fn a_copy_of_a_file_is_archived_under_its_own_name() {
    let ground = Ground::new();
    let (one, other) = (ground.session(SESSION), ground.session("copied"));
    append(&one, &line(SESSION, 1, "user", "walrus"));
    ground.index();
    fs::copy(&one, &other).unwrap();
    assert_eq!(ground.index().copies, 1);
    fs::remove_file(&one).unwrap();
    fs::remove_file(&other).unwrap();
    fs::remove_dir_all(ground.store.index()).unwrap();
    ground.index();
    let archive = Archive::open(Arc::new(Disk), &ground.store.archive()).unwrap();
    for path in [&one, &other] {
        assert!(archive.copy_at(path).is_some(), "{path:?}");
        assert!(ground.store.catalogue().unwrap().source_at(path).unwrap().is_some(), "{path:?}");
    }
    assert_eq!(ground.find("walrus"), ["walrus"]);
}

#[test]
fn a_copy_is_found_if_its_original_differs() {
    for truncated in [String::new(), line(SESSION, 2, "user", "a seal")] {
        let ground = Ground::new();
        let path = ground.session(SESSION);
        append(&path, &line(SESSION, 1, "user", "a walrus"));
        ground.index();
        fs::copy(&path, ground.session("copy")).unwrap();
        assert_eq!(ground.index().copies, 1);
        fs::write(&path, truncated).unwrap();
        ground.index();
        assert_eq!(ground.find("walrus"), ["a walrus"]);
        fs::remove_file(ground.session("copy")).unwrap();
        ground.index();
        assert_eq!(ground.find("walrus"), ["a walrus"]);
    }
}

#[test]
fn a_small_file_that_moved_and_grew_stays_one_in_index_and_archive() {
    let ground = Ground::new();
    let path = ground.session(SESSION);
    append(&path, &line(SESSION, 1, "user", "a walrus"));
    ground.index();
    let moved = ground.session("moved");
    fs::rename(&path, &moved).unwrap();
    append(&moved, &line(SESSION, 2, "user", "a seal"));
    let report = ground.index();
    assert_eq!((report.moved, report.added, report.events), (1, 0, 1));
    fs::write(&moved, line(SESSION, 3, "user", "nobody")).unwrap();
    ground.index();
    // The archive's copy is not read as another file, either.
    fs::remove_dir_all(ground.store.index()).unwrap();
    ground.index();
    assert_eq!(ground.find("walrus OR seal").len(), 2);
    assert_eq!(ground.store.catalogue().unwrap().sources().unwrap().len(), 1);
}

#[test]
fn a_small_copy_that_moved_and_grew_stays_one_in_index_and_archive() {
    let ground = Ground::new();
    let (path, copy, moved) = (ground.session(SESSION), ground.session("copied"), ground.session("moved"));
    append(&path, &line(SESSION, 1, "user", "a walrus"));
    ground.index();
    fs::copy(&path, &copy).unwrap();
    ground.index();
    fs::rename(&copy, &moved).unwrap();
    append(&moved, &line(SESSION, 2, "user", "a seal"));
    assert_eq!(ground.index().moved, 1);
    for _ in 0..2 {
        // The file's original changes, and the index is rebuilt.
        fs::write(&path, line(SESSION, 3, "user", "nobody")).unwrap();
        ground.index();
        let sources = ground.store.catalogue().unwrap().sources().unwrap();
        let mut paths: Vec<_> = sources.iter().map(|source| source.path.clone()).collect();
        paths.sort();
        assert_eq!(paths, [path.clone(), moved.clone()]);
        fs::remove_dir_all(ground.store.index()).unwrap();
    }
}

#[test]
fn a_file_that_a_killed_run_archived_does_not_take_the_place_of_one_that_moved() {
    let ground = Ground::new();
    let [one, copy, moved] = ["one", "copy", "moved"].map(|name| ground.session(name));
    (0..30).for_each(|number| append(&one, &line(SESSION, number, "user", &format!("a walrus {number}"))));
    ground.index();
    fs::copy(&one, &copy).unwrap();
    // A run that is killed here has updated the archive, but not the catalogue.
    let mut writer = ArchiveWriter::open(Arc::new(Disk), &ground.store.archive()).unwrap();
    writer.add(&copy, &Label { format: "claude-code".to_owned(), session: Some(SESSION.to_owned()) }).unwrap();
    writer.commit(1).unwrap();
    drop(writer);
    fs::rename(&one, &moved).unwrap();
    append(&copy, &line(SESSION, 41, "user", "an otter"));
    ground.index();
    let archive = Archive::open(Arc::new(Disk), &ground.store.archive()).unwrap();
    let mut paths: Vec<_> = archive.copies().map(|copy| copy.path).collect();
    paths.sort();
    assert_eq!(paths, [copy, moved]);
}

const OTHER: &str = "7c9e6679-7425-40de-944b-e07fc1f90ae7";

/// The sessions and their number of events, as `list` shows them.
fn sessions(ground: &Ground) -> Vec<(String, u64)> {
    let mut sessions: Vec<(String, u64)> =
        ground.store.catalogue().unwrap().sessions().unwrap().into_iter().map(|one| (one.name, one.events)).collect();
    sessions.sort();
    sessions
}

#[test]
fn a_session_that_takes_the_file_of_another_is_filed_under_its_own_name() {
    let ground = Ground::new();
    let path = ground.session("log");
    append(&path, &(line(SESSION, 1, "user", "one walrus") + &line(SESSION, 2, "assistant", "two walrus")));
    ground.index();
    fs::remove_file(&path).unwrap();
    append(&path, &line(OTHER, 3, "user", "a seal"));
    for _ in 0..2 {
        ground.index();
        assert_eq!(sessions(&ground), [(SESSION.to_owned(), 2), (OTHER.to_owned(), 1)]);
        assert_eq!((ground.find("walrus").len(), ground.find("seal").len()), (2, 1));
        assert_eq!(ground.find(&format!("walrus session:{OTHER}")).len(), 0);
        fs::remove_dir_all(ground.store.index()).unwrap();
    }
}

#[test]
fn two_files_that_swap_their_names_keep_their_sessions() {
    let ground = Ground::new();
    let (one, other) = (ground.session("one"), ground.session("other"));
    append(&one, &(line(SESSION, 1, "user", "one walrus") + &line(SESSION, 2, "assistant", "two walrus")));
    append(&other, &line(OTHER, 3, "user", "a seal"));
    ground.index();
    let aside = ground.home.join("aside");
    fs::rename(&one, &aside).unwrap();
    fs::rename(&other, &one).unwrap();
    fs::rename(&aside, &other).unwrap();
    for _ in 0..2 {
        ground.index();
        assert_eq!(sessions(&ground), [(SESSION.to_owned(), 2), (OTHER.to_owned(), 1)]);
        assert_eq!(ground.find(&format!("walrus session:{SESSION}")).len(), 2);
        assert_eq!(ground.find(&format!("seal session:{OTHER}")).len(), 1);
        fs::remove_dir_all(ground.store.index()).unwrap();
    }
}

#[test]
fn a_rotated_log_keeps_its_session_and_the_next_one_gets_its_own() {
    let ground = Ground::new();
    let (log, rotated) = (ground.session("log"), ground.session("log-1"));
    append(&log, &(line(SESSION, 1, "user", "one walrus") + &line(SESSION, 2, "assistant", "two walrus")));
    ground.index();
    fs::rename(&log, &rotated).unwrap();
    append(&log, &line(OTHER, 3, "user", "a seal"));
    for _ in 0..2 {
        ground.index();
        assert_eq!(sessions(&ground), [(SESSION.to_owned(), 2), (OTHER.to_owned(), 1)]);
        assert_eq!((ground.find("walrus").len(), ground.find("seal").len()), (2, 1));
        fs::remove_dir_all(ground.store.index()).unwrap();
    }
}

#[test]
fn a_session_outlives_a_file_that_becomes_empty_or_something_else() {
    for content in ["", "\n", "not json", "{\"type\":\"us", "\0\0\0\0\0\0\0\0"] {
        let ground = Ground::new();
        let path = ground.session(SESSION);
        append(&path, &line(SESSION, 1, "user", "one walrus"));
        ground.index();
        fs::write(&path, content).unwrap();
        for _ in 0..2 {
            for _ in 0..2 {
                ground.index();
                assert_eq!(sessions(&ground), [(SESSION.to_owned(), 1)], "{content:?}");
                assert_eq!(ground.find("walrus"), ["one walrus"], "{content:?}");
            }
            fs::remove_dir_all(ground.store.index()).unwrap();
        }
        fs::write(&path, line(SESSION, 1, "user", "one walrus") + &line(SESSION, 2, "user", "and a seal")).unwrap();
        ground.index();
        assert_eq!((sessions(&ground).len(), ground.find("walrus").len(), ground.find("seal").len()), (1, 1, 1));
    }
}

#[test]
fn a_file_that_turns_out_to_be_another_format_leaves_no_empty_session_behind() {
    let ground = Ground::new();
    fs::create_dir_all(ground.home.join("x")).unwrap();
    let path = ground.home.join("x/late.jsonl");
    append(&path, "{\"role\":\"user\",\"content\":\"x\"}\n");
    ground.index();
    assert_eq!(sessions(&ground).len(), 1);
    append(&path, &(line(SESSION, 1, "user", "one walrus") + &line(SESSION, 2, "assistant", "two walrus")));
    ground.index();
    let found = sessions(&ground);
    assert_eq!(found.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), [SESSION]);
}

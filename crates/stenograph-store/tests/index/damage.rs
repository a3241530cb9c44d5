//! An index that is damaged, foreign or incomplete, and files that change while it is built.

use super::*;

#[test]
fn a_damaged_index_is_rebuilt_and_the_report_states_it() {
    for damage in ["index/catalogue.db", "index/text/meta.json"] {
        let ground = Ground::new();
        append(&ground.session(SESSION), &line(SESSION, 1, "user", "a walrus"));
        ground.index();
        let file = ground.store.folder().join(damage);
        let _ = fs::remove_file(ground.store.folder().join("index/catalogue.db-wal"));
        fs::write(&file, "this is not what was here before, and longer than a header of a database may be ".repeat(9))
            .unwrap();
        let report = ground.index();
        assert!(
            matches!(report.made, Some(stenograph_store::index::IndexCreation::Rebuilt(_))),
            "{damage}: {:?}",
            report.made
        );
        assert_eq!(ground.find("walrus"), ["a walrus"], "{damage}");
    }
}

#[test]
fn a_flipped_bit_anywhere_in_the_index_is_an_error_until_the_next_run_rebuilds_it() {
    let ground = Ground::new();
    append(&ground.session(SESSION), &line(SESSION, 1, "user", "a walrus"));
    append(&ground.session("other"), &line(SESSION, 2, "assistant", "a seal"));
    ground.index();
    let index = ground.store.index();
    let mut names: Vec<PathBuf> =
        fs::read_dir(index.join("text")).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.retain(|path| !path.file_name().unwrap().to_str().unwrap().starts_with('.'));
    let endings: Vec<String> =
        names.iter().map(|path| path.extension().unwrap().to_str().unwrap().to_owned()).collect();
    assert!(endings.iter().any(|ending| ending == "pos") && endings.iter().any(|ending| ending == "fast"));
    for (ending, at) in endings.iter().map(|ending| (Some(ending), 0.5)).chain([(None, 0.1), (None, 0.6), (None, 0.99)])
    {
        for is_deleted in [false, true] {
            // Segments have new names each time.
            let path = match ending {
                None => index.join("catalogue.db"),
                Some(ending) => fs::read_dir(index.join("text"))
                    .unwrap()
                    .map(|entry| entry.unwrap().path())
                    // No answer depends on the engine's list of its own files.
                    .filter(|path| !path.ends_with(".managed.json"))
                    .find(|path| path.extension().is_some_and(|found| found == ending.as_str()))
                    .unwrap(),
            };
            if is_deleted {
                fs::remove_file(&path).unwrap();
            } else {
                let mut bytes = fs::read(&path).unwrap();
                let place = (bytes.len() as f64 * at) as usize;
                bytes[place] ^= 0x10;
                fs::write(&path, bytes).unwrap();
            }
            let Err(refused) = ground.store.searcher() else {
                panic!("{}, deleted: {is_deleted}, at {at}: nobody noticed", path.display())
            };
            assert_eq!(refused.problem, stenograph_store::Problem::IndexDamaged, "{} {refused}", path.display());
            let report = ground.index();
            assert!(matches!(report.made, Some(IndexCreation::Rebuilt(_))), "{}: {:?}", path.display(), report.made);
            assert_eq!(ground.find("walrus OR seal").len(), 2);
            assert!(ground.index().made.is_none());
        }
    }
}

#[test]
fn invalid_text_in_a_row_causes_a_rebuild_of_the_index() {
    let ground = Ground::new();
    append(&ground.session(SESSION), &line(SESSION, 1, "user", "a walrus"));
    ground.index();
    let database = ground.store.index().join("catalogue.db");
    let mut bytes = fs::read(&database).unwrap();
    let at = bytes.windows(b"/work/app".len()).position(|window| window == b"/work/app").unwrap();
    bytes[at] = 0xff;
    fs::write(&database, bytes).unwrap();
    // Without the seal only the engine itself could notice, in the middle of the run.
    fs::remove_file(ground.store.index().join("seal")).unwrap();
    append(&ground.session(SESSION), &line(SESSION, 2, "user", "a seal"));
    ground.index();
    assert_eq!(ground.find("walrus OR seal").len(), 2);
    assert_eq!(ground.store.catalogue().unwrap().sessions().unwrap().len(), 1);
}

#[test]
fn a_copy_of_a_store_is_used_as_it_is() {
    let ground = Ground::new();
    append(&ground.session(SESSION), &line(SESSION, 1, "user", "a walrus"));
    ground.index();
    let index = ground.store.index();
    for path in [index.join("catalogue.db"), index.join("text/meta.json")] {
        let bytes = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        fs::write(&path, bytes).unwrap();
    }
    assert_eq!(ground.find("walrus"), ["a walrus"]);
    assert!(ground.index().made.is_none());
}

#[test]
fn a_run_that_was_killed_before_it_sealed_has_nothing_rebuilt() {
    let ground = Ground::new();
    append(&ground.session(SESSION), &line(SESSION, 1, "user", "a walrus"));
    ground.index();
    let seal = ground.store.index().join("seal");
    let before = fs::read(&seal).unwrap();
    append(&ground.session(SESSION), &line(SESSION, 2, "user", "a seal"));
    ground.index();
    for old in [Some(before), None] {
        match old {
            Some(old) => fs::write(&seal, old).unwrap(),
            None => fs::remove_file(&seal).unwrap(),
        }
        assert_eq!(ground.find("walrus OR seal").len(), 2);
        assert!(ground.index().made.is_none());
        assert!(seal.exists());
    }
}

#[test]
fn an_index_of_an_earlier_version_is_not_called_damaged_and_is_rebuilt() {
    let ground = Ground::new();
    append(&ground.session(SESSION), &line(SESSION, 1, "user", "a walrus"));
    ground.index();
    ground.change("PRAGMA user_version = 11");
    assert_eq!(ground.store.catalogue().unwrap_err().problem, stenograph_store::Problem::IndexOlder);
    assert!(ground.index().made.is_some());
    assert!(ground.store.catalogue().is_ok());
}

#[test]
fn an_index_of_a_later_version_is_refused_and_stays() {
    let ground = Ground::new();
    append(&ground.session(SESSION), &line(SESSION, 1, "user", "a walrus"));
    ground.index();
    let database = ground.store.index().join("catalogue.db");
    let whole = fs::read(&database).unwrap();
    let mut later = whole.clone();
    // The version that SQLite stores for its user.
    later[60..64].copy_from_slice(&1000_u32.to_be_bytes());
    fs::write(&database, &later).unwrap();
    // The seal proves that no later version made it: the number is damaged.
    assert_eq!(ground.store.catalogue().unwrap_err().problem, stenograph_store::Problem::IndexDamaged);
    fs::remove_file(ground.store.index().join("seal")).unwrap();
    let places = Places::below(ground.home.clone());
    let plan = IndexPlan {
        places: &places,
        scope: IndexScope::All,
        archiving: Archiving::Yes,
        memory: 256 << 20,
        threads: 1,
        now: 1,
    };
    for refused in [run(&ground.store, &plan, &mut NoObserver).unwrap_err(), ground.store.catalogue().unwrap_err()] {
        assert!(refused.to_string().contains("version 1000") && refused.hint().is_some(), "{refused}");
    }
    assert_eq!(fs::read(&database).unwrap(), later);
}

#[cfg(unix)]
#[test]
fn only_the_owner_can_read_the_index() {
    use std::os::unix::fs::PermissionsExt as _;
    fn check(path: &Path) {
        let mode = fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{}: {mode:o}", path.display());
        if path.is_dir() {
            fs::read_dir(path).unwrap().for_each(|entry| check(&entry.unwrap().path()));
        }
    }
    let ground = Ground::new();
    append(&ground.session(SESSION), &line(SESSION, 1, "user", "a walrus"));
    ground.index();
    let searcher = ground.store.searcher().unwrap();
    append(&ground.session(SESSION), &line(SESSION, 2, "user", "a seal"));
    ground.index();
    assert!(ground.store.index().join("catalogue.db-wal").exists());
    check(&ground.store.index());
    drop(searcher);
}

#[test]
fn a_file_rewritten_with_less_content_is_archived_as_it_is_now() {
    let ground = Ground::new();
    let path = ground.session(SESSION);
    append(&path, &line(SESSION, 1, "user", "an old walrus, and very long in the tooth"));
    append(&path, &line(SESSION, 2, "user", "an old penguin"));
    ground.index();
    fs::write(&path, line(SESSION, 3, "user", "a seal")).unwrap();
    ground.index();
    fs::remove_file(&path).unwrap();
    ground.index();
    assert_eq!(ground.find("seal"), ["a seal"]);
    assert_eq!(ground.find("walrus"), ["an old walrus, and very long in the tooth"]);
}

#[test]
fn a_file_that_grew_for_a_killed_run_and_is_short_again_is_archived_as_it_is_now() {
    let ground = Ground::new();
    let path = ground.session(SESSION);
    let short = line(SESSION, 1, "user", "walrus one");
    append(&path, &short);
    ground.index();
    // A run that is killed here has updated the archive, but not the catalogue.
    append(&path, &line(SESSION, 2, "assistant", "walrus two"));
    let mut writer = ArchiveWriter::open(Arc::new(Disk), &ground.store.archive()).unwrap();
    let label = Label { format: "claude-code".to_owned(), session: Some(SESSION.to_owned()) };
    writer.add(&path, &label).unwrap();
    writer.commit(1).unwrap();
    drop(writer);
    fs::write(&path, &short).unwrap();
    ground.index();
    let archive = Archive::open(Arc::new(Disk), &ground.store.archive()).unwrap();
    let copy = archive.copy_at(&path).unwrap();
    let mut kept = String::new();
    archive.read(copy.id, WhichVersion::Last, 0).unwrap().read_to_string(&mut kept).unwrap();
    assert_eq!((kept, copy.length), (short.clone(), short.len() as u64));
    assert_eq!(ground.index().unchanged, 1);
}

struct Impatient;

impl stenograph_store::index::RunObserver for Impatient {
    fn progress(&mut self, _progress: &stenograph_store::index::IndexProgress) {}

    fn is_stopped(&self) -> bool {
        true
    }
}

#[test]
fn stopping_a_rebuild_does_not_lose_missing_sources() {
    let ground = Ground::new();
    let path = ground.session(SESSION);
    append(&path, &line(SESSION, 1, "user", "a walrus"));
    append(&ground.session("other"), &line(SESSION, 2, "user", "a seal"));
    ground.index();
    fs::remove_file(&path).unwrap();
    ground.index();
    fs::remove_dir_all(ground.store.index()).unwrap();
    let places = Places::below(ground.home.clone());
    let plan = IndexPlan {
        places: &places,
        scope: IndexScope::All,
        archiving: Archiving::Yes,
        memory: 256 << 20,
        threads: 1,
        now: i64::MAX,
    };
    assert!(run(&ground.store, &plan, &mut Impatient).unwrap().stopped);
    assert!(ground.index().made.is_none());
    assert_eq!(ground.find("walrus OR seal").len(), 2);
}

/// Rewrites a file once for each text, as soon as some of it was read.
struct Rewriting {
    path: PathBuf,
    texts: Vec<String>,
}

impl RunObserver for Rewriting {
    fn progress(&mut self, progress: &IndexProgress) {
        if progress.bytes_done > 0
            && let Some(text) = self.texts.pop()
        {
            fs::write(&self.path, text).unwrap();
        }
    }

    fn is_stopped(&self) -> bool {
        false
    }
}

#[test]
fn a_file_that_is_rewritten_while_it_is_read_is_read_again() {
    let version =
        |word: &str| (0..20).map(|number| line(SESSION, number, "user", &format!("{word} {number}"))).collect();
    for (texts, is_right_at_once) in [(vec![version("otter")], true), (vec![version("otter"), version("raven")], false)]
    {
        let ground = Ground::new();
        let path = ground.session(SESSION);
        append(&path, &line(SESSION, 1, "user", "a walrus"));
        ground.index_watched(Archiving::Yes, &mut Rewriting { path, texts });
        let found = |word: &str| ground.find(word).len();
        assert!(!is_right_at_once || (found("otter"), found("walrus")) == (20, 0));
        ground.index();
        assert_eq!((found("otter"), found("walrus"), found("raven")), (20, 0, 0));
        assert_eq!(ground.index().unchanged, 1);
    }
}

#[test]
fn damage_to_the_words_is_noticed_also_after_a_run_that_was_killed() {
    let ground = Ground::new();
    let text: String = (0..200).map(|number| line(SESSION, number, "user", &format!("walrus {number}"))).collect();
    append(&ground.session(SESSION), &text);
    ground.index();
    // What a killed run leaves: everything but the seal.
    fs::remove_file(ground.store.index().join("seal")).unwrap();
    assert_eq!(ground.find("walrus").len(), 200);
    let files: Vec<PathBuf> =
        fs::read_dir(ground.store.index().join("text")).unwrap().map(|entry| entry.unwrap().path()).collect();
    let endings = ["fast", "idx", "pos", "store", "term", "fieldnorm"];
    let is_segment =
        |path: &&PathBuf| path.extension().is_some_and(|ending| endings.iter().any(|other| ending == *other));
    let mut tried = 0;
    for path in files.iter().filter(is_segment) {
        let whole = fs::read(path).unwrap();
        for at in [0, whole.len() / 3, whole.len() / 2] {
            let mut bytes = whole.clone();
            bytes[at] ^= 4;
            fs::write(path, &bytes).unwrap();
            assert!(ground.store.searcher().is_err(), "{} byte {at}", path.display());
            tried += 1;
        }
        fs::write(path, [&whole[..whole.len() / 2], &whole[whole.len() / 4..]].concat()).unwrap();
        assert!(ground.store.searcher().is_err(), "{}", path.display());
        fs::write(path, &whole).unwrap();
    }
    assert!(tried > 12, "{tried}");
    assert_eq!(ground.find("walrus").len(), 200);
}

#[test]
fn a_file_that_is_changed_in_its_middle_and_grows_is_rewritten() {
    let ground = Ground::new();
    let path = ground.session(SESSION);
    let text: String = (0..9_000).map(|number| line(SESSION, number, "user", &format!("walrus {number}"))).collect();
    append(&path, &text);
    ground.index();
    let after = text.replacen("walrus 4500", "weasel 4500", 1) + &line(SESSION, 9_000, "user", "a seal");
    fs::write(&path, &after).unwrap();
    assert_eq!(ground.index().rewritten, 1);
    assert_eq!((ground.find("weasel").len(), ground.find("seal").len()), (1, 1));
    let archive = Archive::open(Arc::new(Disk), &ground.store.archive()).unwrap();
    let copy = archive.copies().next().unwrap();
    let mut kept = Vec::new();
    archive.read(copy.id, WhichVersion::Last, 0).unwrap().read_to_end(&mut kept).unwrap();
    assert!(kept == after.as_bytes(), "the archive has the file as it is");
}

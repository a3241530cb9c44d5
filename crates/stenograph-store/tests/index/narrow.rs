//! Commands read only the part of the index that they need, and get the same answer.

use super::*;

/// The size and the time of the last change of each file of the index.
fn files_of(ground: &Ground) -> Vec<(PathBuf, u64, std::time::SystemTime)> {
    let index = ground.store.index();
    let mut files = Vec::new();
    for folder in [index.clone(), index.join("text")] {
        for entry in fs::read_dir(folder).unwrap() {
            let (path, metadata) = entry.map(|entry| (entry.path(), entry.metadata().unwrap())).unwrap();
            let is_lock = path.file_name().unwrap().to_string_lossy().starts_with('.');
            if metadata.is_file() && !is_lock {
                files.push((path, metadata.len(), metadata.modified().unwrap()));
            }
        }
    }
    files.sort();
    files
}

#[test]
fn a_run_that_finds_nothing_new_changes_no_file_of_the_index() {
    let ground = Ground::new();
    append(&ground.session(SESSION), &line(SESSION, 1, "user", "where is the walrus"));
    ground.index();
    let before = files_of(&ground);
    assert_eq!(ground.index().unchanged, 1);
    assert_eq!(files_of(&ground), before);
    append(&ground.session(SESSION), &line(SESSION, 2, "user", "and the penguin"));
    assert_eq!(ground.index().grown, 1);
    assert_ne!(files_of(&ground), before);
    assert_eq!(ground.find("penguin"), ["and the penguin"]);
}

#[test]
fn a_copied_index_gets_a_new_seal_even_if_nothing_else_is_new() {
    let ground = Ground::new();
    append(&ground.session(SESSION), &line(SESSION, 1, "user", "where is the walrus"));
    ground.index();
    let (database, seal) = (ground.store.index().join("catalogue.db"), ground.store.index().join("seal"));
    let (bytes, before) = (fs::read(&database).unwrap(), fs::read(&seal).unwrap());
    fs::remove_file(&database).unwrap();
    fs::write(&database, bytes).unwrap();
    assert_eq!(ground.index().unchanged, 1);
    assert_ne!(fs::read(&seal).unwrap(), before);
    assert_eq!(ground.find("walrus"), ["where is the walrus"]);
}

#[test]
fn a_search_below_a_folder_finds_all_of_its_sessions_and_no_others() {
    let ground = Ground::new();
    let projects = ground.home.join(".claude/projects");
    // More than the engine looks up one by one.
    for number in 0..70 {
        let (folder, name) = (projects.join("-many"), format!("{number:08}-d9cb-469f-a165-70867728950e"));
        fs::create_dir_all(&folder).unwrap();
        append(&folder.join(format!("{name}.jsonl")), &line(&name, number, "user", "a walrus"));
    }
    fs::create_dir_all(projects.join("-many-not")).unwrap();
    append(&projects.join(format!("-many-not/{SESSION}.jsonl")), &line(SESSION, 99, "user", "one more walrus"));
    ground.index();
    let query =
        Query::parse("walrus", &Today { now: jiff::Timestamp::UNIX_EPOCH, zone: jiff::tz::TimeZone::UTC }).unwrap();
    let mut searcher = ground.store.searcher().unwrap();
    let mut total = |folder: &Path| {
        let request = SearchRequest { query: &query, order: Order::Best, offset: 0, limit: 10, within: Some(folder) };
        searcher.find(&request).unwrap().total
    };
    let everywhere = ["", ".claude", ".claude/projects"].map(|folder| total(&ground.home.join(folder)));
    assert_eq!(everywhere, [71, 71, 71]);
    assert_eq!((total(&projects.join("-many")), total(&projects.join("-many-not"))), (70, 1));
    assert_eq!((total(&projects.join("-man")), total(Path::new("/"))), (0, 71));
    assert_eq!((ground.find("walrus agent:claude").len(), ground.find("walrus session:0f8f").len()), (71, 1));
}

#[test]
fn the_neighbours_of_a_session_ignore_case() {
    let ground = Ground::new();
    for (number, name) in (1..).zip(["aa-0001", "Ab-0001", "aB-0002", "b\u{10ffff}-1"]) {
        append(&ground.session(name), &line(name, number, "user", "a walrus"));
    }
    ground.index();
    let catalogue = ground.store.catalogue().unwrap();
    let names = |prefix: &str| {
        let mut names: Vec<String> =
            catalogue.sessions_named(prefix).unwrap().into_iter().map(|session| session.name).collect();
        names.sort();
        names
    };
    assert_eq!(
        (names("ab"), names("AB-0002"), names("x")),
        (vec!["Ab-0001".to_owned(), "aB-0002".to_owned()], vec!["aB-0002".to_owned()], Vec::new())
    );
    assert_eq!(names("B"), ["b\u{10ffff}-1"]);
    let session = catalogue.sessions_named("ab-0001").unwrap().pop().unwrap();
    let neighbours: Vec<String> =
        catalogue.session_neighbours(&session).unwrap().into_iter().map(|(_, name)| name).collect();
    assert_eq!(neighbours, ["aa-0001", "aB-0002"]);
}

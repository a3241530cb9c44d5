//! The saved contents of conversations.

use std::time::{Duration, SystemTime};

use stenograph::contents::Contents;
use stenograph_store::index::remove;
use stenograph_store::session_events::SessionEvents;

use super::*;

impl Ground {
    /// A session of some megabytes.
    fn long_session(&self) -> PathBuf {
        let path = self.session(SESSION);
        append(&path, &(0..2_500).map(|number| walrus(number, "a walrus")).collect::<String>());
        long_ago(&path);
        self.index();
        path
    }

    fn contents(&self) -> Contents {
        let catalogue = self.store.catalogue().unwrap();
        let session = catalogue.sessions().unwrap().remove(0);
        let sources = catalogue.sources_of(session.id).unwrap();
        SessionEvents::of(&session, &sources, None).unwrap().contents(&self.store).unwrap()
    }

    fn saved(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.store.index().join("contents")).into_iter().flatten().flatten();
        let mut saved: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        saved.sort();
        saved
    }

    fn asks(&self, word: &str) -> bool {
        self.contents().audit.turns.items.iter().any(|turn| turn.asked.contains(word))
    }
}

fn walrus(number: u32, words: &str) -> String {
    line(SESSION, number, "user", &format!("{words} {}", "on the ice ".repeat(200)))
}

/// A file that was changed in this moment is never taken as unchanged.
fn long_ago(path: &Path) {
    let file = fs::File::options().append(true).open(path).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(60)).unwrap();
}

#[test]
fn contents_of_an_unchanged_file_are_not_read_again() {
    let ground = Ground::new();
    let path = ground.long_session();
    assert!(ground.asks("walrus"));
    assert_eq!(ground.saved().len(), 2, "{:?}", ground.saved());
    let before = fs::metadata(&path).unwrap().modified().unwrap();
    let text = fs::read_to_string(&path).unwrap().replace("a walrus", "a SEALss");
    fs::File::options().write(true).open(&path).unwrap().write_all(text.as_bytes()).unwrap();
    fs::File::options().append(true).open(&path).unwrap().set_modified(before).unwrap();
    assert!(ground.asks("walrus"), "the stat proves that the file is unchanged");
    long_ago(&path);
    assert!(!ground.asks("walrus") && ground.asks("SEALss"));
}

#[test]
fn contents_follow_a_file_that_grows_or_is_rewritten() {
    let ground = Ground::new();
    let path = ground.long_session();
    assert_eq!(ground.contents().audit.events, 2_500);
    append(&path, &walrus(2_500, "a puffin"));
    // A line that is not complete yet.
    append(&path, "{\"type\":\"us");
    long_ago(&path);
    assert_eq!(ground.contents().audit.events, 2_502);
    append(&path, "er\"}\n");
    long_ago(&path);
    let grown = ground.contents();
    ground.saved().iter().for_each(|path| fs::remove_file(path).unwrap());
    assert_eq!(format!("{grown:?}"), format!("{:?}", ground.contents()));
    ground.index();
    fs::write(&path, walrus(0, "a heron").repeat(600)).unwrap();
    long_ago(&path);
    assert!(ground.asks("heron") && !ground.asks("walrus"));
    let before = ground.saved();
    ground.index();
    assert!(ground.asks("heron"));
    assert!(ground.saved().iter().all(|path| !before.contains(path)), "the group of the old content is gone");
}

#[test]
fn damaged_contents_and_those_of_another_version_are_read_again() {
    let ground = Ground::new();
    ground.long_session();
    let whole = format!("{:?}", ground.contents());
    for path in ground.saved() {
        let bytes = fs::read(&path).unwrap();
        for at in [0, 16, 40, bytes.len() / 2, bytes.len() - 1] {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            fs::write(&path, &changed).unwrap();
            assert_eq!(format!("{:?}", ground.contents()), whole, "{} at {at}", path.display());
            fs::write(&path, &bytes[..at]).unwrap();
            assert_eq!(format!("{:?}", ground.contents()), whole, "{} cut at {at}", path.display());
        }
    }
    let other = |path: &PathBuf| {
        let text = fs::read_to_string(path).unwrap();
        let (head, body) = text.split_once('\n').unwrap();
        let mut words: Vec<&str> = head.split(' ').collect();
        words[1] = "0.0.0/0";
        fs::write(path, format!("{}\n{}", words.join(" "), body.replace("walrus", "dragon"))).unwrap();
    };
    ground.saved().iter().for_each(other);
    assert!(ground.asks("walrus"));
}

#[test]
fn saved_contents_are_private_and_go_with_their_source() {
    let ground = Ground::new();
    ground.long_session();
    ground.contents();
    assert_eq!(ground.saved().len(), 2);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&ground.store.index().join("contents")), 0o700);
        assert!(ground.saved().iter().all(|path| mode(path) == 0o600));
    }
    let catalogue = ground.store.catalogue().unwrap();
    let sources: Vec<_> = catalogue.sources().unwrap().iter().map(|row| row.id).collect();
    drop(catalogue);
    let places = Places::below(ground.home.clone());
    let (scope, archiving, now) = (IndexScope::All, Archiving::Yes, 4_000_000_000_000_000_000);
    let plan = IndexPlan { places: &places, scope, archiving, memory: 256 << 20, threads: 1, now };
    remove(&ground.store, &sources, &plan).unwrap();
    assert_eq!(ground.saved(), Vec::<PathBuf>::new());
}

#[test]
fn contents_of_a_short_conversation_are_not_saved() {
    let ground = Ground::new();
    let path = ground.session(SESSION);
    append(&path, &walrus(0, "a walrus"));
    long_ago(&path);
    ground.index();
    assert!(ground.asks("walrus"));
    assert_eq!(ground.saved(), Vec::<PathBuf>::new());
}

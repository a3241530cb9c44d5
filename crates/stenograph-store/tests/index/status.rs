//! The saved status of runs.

use stenograph_store::discover::Stat;
use stenograph_store::file_status::FileStatus;

use super::*;

impl Ground {
    fn saved_status(&self, path: &Path) -> Option<FileStatus> {
        self.store.saved_statuses().of(path, &Stat::of(path).unwrap())
    }

    /// Changes the database without the index knowing.
    pub fn change(&self, sql: &str) {
        let index = self.store.index();
        rusqlite::Connection::open(index.join("catalogue.db")).unwrap().execute_batch(sql).unwrap();
        let _ = fs::remove_file(index.join("seal"));
    }
}

#[test]
fn a_saved_status_holds_as_long_as_the_file_is_unchanged() {
    let ground = Ground::new();
    let path = ground.session(SESSION);
    append(&path, &line(SESSION, 1, "user", "a walrus"));
    assert!(ground.saved_status(&path).is_none());
    ground.index();
    assert_eq!(ground.saved_status(&path).unwrap().run.session.as_deref(), Some(SESSION));
    append(&path, &line(SESSION, 2, "assistant", "a seal"));
    assert!(ground.saved_status(&path).is_none());
    ground.index();
    assert!(ground.saved_status(&path).is_some());
}

#[test]
fn copies_and_moved_files_have_a_status_of_their_own() {
    let ground = Ground::new();
    let (path, copy, moved) = (ground.session(SESSION), ground.session("copy"), ground.session("moved"));
    append(&path, &line(SESSION, 1, "user", "a walrus"));
    ground.index();
    fs::copy(&path, &copy).unwrap();
    assert_eq!(ground.index().copies, 1);
    assert!(ground.saved_status(&copy).is_some());
    fs::remove_file(&copy).unwrap();
    ground.index();
    fs::rename(&path, &moved).unwrap();
    assert_eq!(ground.index().moved, 1);
    assert!(ground.saved_status(&moved).is_some());
}

#[test]
fn a_status_that_is_damaged_or_of_another_version_is_ignored() {
    for (sql, is_there) in [
        ("SELECT 1", true),
        ("UPDATE statuses SET status = substr(status, 1, 40)", false),
        ("UPDATE statuses SET status = replace(status, '/3\"', '/0\"')", false),
        ("DELETE FROM statuses", false),
        ("DROP TABLE statuses", false),
        ("PRAGMA user_version = 11", false),
        ("PRAGMA user_version = 999", false),
    ] {
        let ground = Ground::new();
        let path = ground.session(SESSION);
        append(&path, &line(SESSION, 1, "user", "a walrus"));
        ground.index();
        ground.change(sql);
        assert_eq!(ground.saved_status(&path).is_some(), is_there, "{sql}");
    }
}

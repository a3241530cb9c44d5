//! Marks of sessions: they survive a new index, rewritten and moved files, and other writers, and they are found.

use std::fs;
use std::thread;

use stenograph::query::{Query, Today};
use stenograph_store::Problem;
use stenograph_store::archive::{EventKey, MarkChange, Marks};
use stenograph_store::index::NoObserver;
use stenograph_store::index::catalogue::{IndexedSession, SessionId};
use stenograph_store::index::search::MarkHit;

use crate::{Ground, SESSION, append, line};

impl Ground {
    fn sessions(&self) -> Vec<IndexedSession> {
        self.store.catalogue().unwrap().sessions().unwrap()
    }

    fn only(&self) -> IndexedSession {
        let mut sessions = self.sessions();
        assert_eq!(sessions.len(), 1);
        sessions.remove(0)
    }

    fn mark(&self, session: SessionId, changes: Vec<MarkChange>) -> Marks {
        self.store.mark(&[(session, changes)], 5_000, &mut NoObserver).unwrap().remove(0)
    }

    fn find_marks(&self, query: &str) -> Vec<MarkHit> {
        let today = Today { now: jiff::Timestamp::UNIX_EPOCH, zone: jiff::tz::TimeZone::UTC };
        let query = Query::parse(query, &today).unwrap();
        self.store.searcher().unwrap().find_marks(&query, None).unwrap()
    }
}

fn tag(name: &str) -> MarkChange {
    MarkChange::Tag(name.to_owned())
}

fn note(text: &str, event: Option<EventKey>) -> MarkChange {
    MarkChange::Note { text: text.to_owned(), event }
}

fn two_messages(ground: &Ground) {
    let path = ground.session(SESSION);
    append(&path, &line(SESSION, 1, "user", "where is the walrus"));
    append(&path, &line(SESSION, 2, "assistant", "on the ice floe"));
    ground.index();
}

#[test]
fn marks_are_read_back_and_survive_a_new_index() {
    let ground = Ground::new();
    two_messages(&ground);
    let before = ground.only();
    assert!(before.marks.is_empty());
    let marks = ground.mark(before.id, vec![MarkChange::Pin, tag("zoo"), tag("Arctic"), note("look here", None)]);
    assert_eq!((marks.pinned, &marks.tags[..]), (true, &["Arctic".to_owned(), "zoo".to_owned()][..]));
    assert_eq!(ground.only().marks, marks);
    // The index is intact: it is not rebuilt, and searches do not complain.
    assert!(ground.index().made.is_none());
    assert_eq!(ground.only().marks, marks);
    fs::remove_dir_all(ground.store.index()).unwrap();
    assert!(ground.index().made.is_some());
    assert_eq!(ground.only().marks, marks);
    let found = ground.mark(ground.only().id, vec![MarkChange::Unpin, MarkChange::RemoveNote(1)]);
    assert_eq!((found.pinned, found.notes.len(), found.tags.len()), (false, 0, 2));
}

#[test]
fn a_given_title_replaces_that_of_the_agent_which_stays_known() {
    let ground = Ground::new();
    let path = ground.session(SESSION);
    append(&path, &line(SESSION, 1, "user", "where is the walrus"));
    append(&path, &format!("{{\"type\":\"custom-title\",\"customTitle\":\"Old\",\"sessionId\":\"{SESSION}\"}}\n"));
    ground.index();
    let agent_title = ground.only().title;
    assert!(agent_title.is_some());
    ground.mark(ground.only().id, vec![MarkChange::Title("Walrus hunt".to_owned())]);
    let session = ground.only();
    assert_eq!((session.title.as_deref(), session.agent_title), (Some("Walrus hunt"), agent_title.clone()));
    ground.mark(session.id, vec![MarkChange::NoTitle]);
    assert_eq!((ground.only().title, ground.only().agent_title), (agent_title, None));
}

#[test]
fn conditions_on_marks_select_sessions_and_words_find_titles_and_notes() {
    let ground = Ground::new();
    two_messages(&ground);
    let other = "1f8fad5b-d9cb-469f-a165-70867728950e";
    append(&ground.session(other), &line(other, 9, "user", "another walrus"));
    ground.index();
    let sessions = ground.sessions();
    let first = sessions.iter().find(|session| session.name == SESSION).unwrap().id;
    ground.mark(first, vec![MarkChange::Title("Marine mammals".to_owned()), tag("zoo/sea"), note("flippers", None)]);
    assert_eq!(ground.find("walrus").len(), 2);
    for query in ["walrus tag:zoo/sea", "walrus tag:zoo/*", "walrus is:marked", "walrus -is:pinned tag:ZOO/SEA"] {
        assert_eq!(ground.find(query), ["where is the walrus"], "{query}");
    }
    for query in ["walrus tag:zoo", "walrus is:pinned", "walrus tag:zoo/sea tag:more"] {
        assert_eq!(ground.find(query), Vec::<String>::new(), "{query}");
    }
    let texts = |query: &str| -> Vec<String> { ground.find_marks(query).into_iter().map(|hit| hit.text).collect() };
    assert_eq!(texts("mammals"), ["Marine mammals"]);
    assert_eq!(texts("flip* tag:zoo/sea"), ["flippers"]);
    assert_eq!(texts("flippers role:user"), Vec::<String>::new());
    assert_eq!(texts("walrus"), Vec::<String>::new());
}

#[test]
fn a_note_follows_its_event_into_a_rewritten_file_and_reports_a_missing_event() {
    let ground = Ground::new();
    two_messages(&ground);
    let session = ground.only().id;
    let key = |number: u64| {
        let searcher = ground.store.searcher().unwrap();
        let source = searcher.catalogue().sources_of(session).unwrap().remove(0);
        searcher.event_key(&source, number).unwrap()
    };
    let (question, answer) = (key(0).unwrap(), key(1).unwrap());
    assert_eq!(key(2), None);
    let never = EventKey(answer.0 ^ 1);
    ground.mark(session, vec![note("asked", Some(question)), note("here", Some(answer)), note("lost", Some(never))]);
    // Compacted: the question is gone, and the answer is the second event again, after a summary.
    let summary = line(SESSION, 5, "user", "a summary of what was said");
    fs::write(ground.session(SESSION), summary + &line(SESSION, 2, "assistant", "on the ice floe")).unwrap();
    ground.index();
    let notes = ground.only().marks.notes;
    assert_eq!(notes.len(), 3);
    let keys: Vec<EventKey> = notes.iter().filter_map(|note| note.event).collect();
    let found = ground.store.searcher().unwrap().events_with_keys(session, &keys).unwrap();
    assert_eq!(found.get(&answer).map(|hit| (hit.event, hit.version)), Some((1, None)));
    assert_eq!(found.get(&question).map(|hit| (hit.event, hit.version)), Some((0, Some(1))));
    assert!(!found.contains_key(&never));
    assert_eq!(ground.find_marks("here")[0].event.as_ref().map(|hit| hit.event), Some(1));
}

#[test]
fn marks_follow_a_session_without_an_id_whose_file_is_renamed_or_rewritten() {
    let ground = Ground::new();
    let chat = |name: &str| ground.home.join(name);
    let content = |texts: &[&str]| -> String {
        let messages = texts.iter().map(|text| format!("{{\"role\":\"user\",\"content\":\"{text}\"}}\n"));
        messages.collect()
    };
    fs::write(chat("first.jsonl"), content(&["feed the seals", "now"])).unwrap();
    fs::write(chat("other.jsonl"), content(&["count the terns", "now"])).unwrap();
    ground.index();
    let named = |name: &str| ground.sessions().into_iter().find(|session| session.name == name).unwrap();
    ground.mark(named("first").id, vec![tag("seal")]);
    ground.mark(named("other").id, vec![tag("tern")]);
    fs::rename(chat("first.jsonl"), chat("renamed.jsonl")).unwrap();
    // Rewritten, so that the first question is another one: the name still identifies it.
    fs::write(chat("other.jsonl"), content(&["a summary", "now", "more"])).unwrap();
    for _ in 0..2 {
        ground.index();
        let tagged = |tag: &str| -> Vec<String> {
            let sessions = ground.sessions().into_iter();
            let has_tag = |session: &IndexedSession| session.marks.tags.iter().any(|known| known == tag);
            sessions.filter(has_tag).map(|session| session.path.display().to_string()).collect()
        };
        assert_eq!(tagged("seal"), [chat("renamed.jsonl").display().to_string()]);
        assert_eq!(tagged("tern"), [chat("other.jsonl").display().to_string()]);
        fs::remove_dir_all(ground.store.index()).unwrap();
    }
}

#[test]
fn several_writers_lose_nothing() {
    let ground = Ground::new();
    two_messages(&ground);
    let session = ground.only().id;
    thread::scope(|scope| {
        for writer in 0..4 {
            let ground = &ground;
            scope.spawn(move || {
                for number in 0..4 {
                    ground.mark(session, vec![tag(&format!("tag-{writer}-{number}")), note("x", None)]);
                }
            });
        }
        // The index runs in between.
        for number in 10..14 {
            append(&ground.session(SESSION), &line(SESSION, number, "user", "more"));
            ground.index();
        }
    });
    let marks = ground.only().marks;
    assert_eq!((marks.tags.len(), marks.notes.len()), (16, 16));
    ground.index();
    assert_eq!(ground.only().marks, marks);
}

#[test]
fn marks_that_a_killed_process_did_not_copy_to_the_catalogue_are_found_by_the_next_run() {
    use std::sync::Arc;
    use stenograph_store::archive::ArchiveWriter;
    use stenograph_store::files::Disk;
    let ground = Ground::new();
    two_messages(&ground);
    let key = ground.store.catalogue().unwrap().session_key(ground.only().id).unwrap().unwrap();
    let mut marks = Marks::default();
    marks.apply(&MarkChange::Pin, 1).unwrap();
    let mut writer = ArchiveWriter::open(Arc::new(Disk), &ground.store.archive()).unwrap();
    writer.set_marks(&key, &marks).unwrap();
    writer.commit(1).unwrap();
    drop(writer);
    assert!(!ground.only().marks.pinned);
    ground.index();
    assert!(ground.only().marks.pinned);
}

#[test]
fn a_damaged_index_is_not_marked_and_stays_known_as_damaged() {
    let ground = Ground::new();
    two_messages(&ground);
    let session = ground.only().id;
    let path = ground.store.index().join("catalogue.db");
    let mut bytes = fs::read(&path).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&path, bytes).unwrap();
    let error = ground.store.mark(&[(session, vec![MarkChange::Pin])], 1, &mut NoObserver).unwrap_err();
    assert_eq!(error.problem, Problem::IndexDamaged);
    assert!(ground.index().made.is_some());
    assert!(ground.only().marks.is_empty());
}

#[test]
fn an_invalid_change_changes_nothing() {
    let ground = Ground::new();
    two_messages(&ground);
    let session = ground.only().id;
    let changes = vec![MarkChange::Pin, tag("two words")];
    let error = ground.store.mark(&[(session, changes)], 1, &mut NoObserver).unwrap_err();
    assert_eq!((error.problem, error.hint().is_some()), (Problem::BadTag, true));
    let error = ground.store.mark(&[(session, vec![MarkChange::RemoveNote(7)])], 1, &mut NoObserver).unwrap_err();
    assert_eq!(error.problem, Problem::NoNote { number: 7 });
    assert!(ground.only().marks.is_empty());
    ground.index();
    assert!(ground.only().marks.is_empty());
}

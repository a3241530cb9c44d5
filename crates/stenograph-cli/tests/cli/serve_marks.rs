//! Marks over HTTP: mistakes are explained, and a note about an event is shown at its event.

use serde_json::Value;

use crate::serve::Serving;

#[test]
fn a_mistake_of_the_client_is_explained_and_is_not_an_error_of_the_server() {
    let server = Serving::start();
    let (long_title, long_note) = (format!("title={}", "x".repeat(201)), format!("note={}", "x".repeat(4097)));
    for (form, status, words) in [
        ("", 400, "no change is given"),
        ("pin=maybe", 400, "pin must be yes or no"),
        ("tag=two%20words", 400, "tag"),
        ("tag=a%2Cb", 400, "tag"),
        ("title=%20", 400, "empty"),
        ("note=%20", 400, "empty"),
        (long_title.as_str(), 400, "200"),
        (long_note.as_str(), 400, "4096"),
        ("remove_note=first", 400, "the number of a note"),
        ("remove_note=7", 404, "7"),
        ("note=x&event=none", 400, "the number of an event"),
        ("note=x&event=0", 400, "the number of an event"),
        ("note=x&event=100000", 404, "event 100000 is not in the index"),
        ("note=x&event=1&agent=nobody", 404, "no such conversation"),
        ("event=1&pin=yes", 400, "only a note"),
    ] {
        let answer = server.post("/api/sessions/long-1/marks", form);
        assert_eq!(answer.status, status, "{form}: {}", answer.body);
        let said: Value = serde_json::from_str(&answer.body).unwrap();
        assert!(said.to_string().contains(words), "{form}: {said}");
        assert_eq!(server.post("/sessions/long-1/marks", form).status, status, "{form}");
    }
    for tag in 0..32 {
        assert_eq!(server.post("/api/sessions/long-1/marks", &format!("tag=t{tag}")).status, 200);
    }
    assert_eq!(server.post("/api/sessions/long-1/marks", "tag=more").status, 400);
    assert_eq!(server.post("/api/sessions/nobody/marks", "pin=yes").status, 404);
}

#[test]
fn a_note_about_an_event_is_shown_at_its_event() {
    let server = Serving::start();
    let answer = server.post("/sessions/long-1/marks", "note=high%20%3Cb%3Ewater&event=200");
    assert_eq!(answer.status, 303, "{}", answer.body);
    assert!(answer.head.contains("location: /sessions/long-1?at=200#e200"), "{}", answer.head);
    let page = server.get("/sessions/long-1?at=200").body;
    let (event, rest) = page.split_once("id=\"e200\"").unwrap();
    assert!(!event.contains("event-note"), "before its event");
    let (own, _) = rest.split_once("id=\"e201\"").unwrap();
    assert!(own.contains("Note on event 200") && own.contains("high &lt;b&gt;water"), "{own}");
    assert!(!server.get("/sessions/long-1/events?from=300").body.contains("event-note"));
    // A call and its result share one line; the note follows it.
    assert_eq!(server.post("/sessions/hostile-1/marks", "note=look%20here&event=4").status, 303);
    let events = server.get("/sessions/hostile-1/events?from=1").body;
    let after = events.split_once("id=\"e4\"").unwrap().1;
    let (before_note, _) = after.split_once("look here").unwrap();
    assert!(before_note.contains("</details>") && !before_note.contains("id=\"e5\""), "{after}");
    // The command line sees it, and it can be removed.
    assert_eq!(server.post("/sessions/long-1/marks", "remove_note=1").status, 303);
    assert!(!server.get("/sessions/long-1?at=200").body.contains("event-note"));
}

//! What keys do to the finder, without a terminal.

use std::path::Path;

use super::*;
use stenograph_store::hits::ShowAddress;

fn session(id: SessionId, title: &str) -> IndexedSession {
    let mut session = IndexedSession::bare("agent", &format!("id-{id}"), Path::new("/a.jsonl"));
    (session.id, session.title, session.sources) = (id, Some(title.to_owned()), 1);
    session
}

fn picker(titles: &[&str]) -> Picker {
    let mut picker = Picker::new("", Enter::Shows);
    let sessions = titles.iter().enumerate().map(|(at, title)| session(at as SessionId + 1, title)).collect();
    picker.take_sessions(SearchedSessions::new(sessions), Loading::Complete);
    picker.resize(80, 24);
    picker
}

fn hit(session: IndexedSession, event: u64) -> ShownHit {
    let span = stenograph::model::Span { offset: 0, length: 0, line: 1 };
    let found = Hit {
        rank: 0,
        score: 1.0,
        source: 1,
        session: session.id,
        version: None,
        event,
        at: span,
        part: 0,
        time: None,
        key: 0,
        twin: 0,
        restates: false,
        is_covered: false,
        pieces: Vec::new(),
        tool: None,
        has_failed: false,
        copies: 0,
    };
    let open = Some(ShowAddress::in_session(&session.name, event));
    let read = Err("not read");
    ShownHit { session: Some(session), short: String::new(), is_named: true, source: None, open, hit: found, read }
}

fn press(picker: &mut Picker, code: KeyCode) -> PickEffect {
    picker.update(KeyEvent::new(code, KeyModifiers::NONE))
}

fn with(picker: &mut Picker, modifiers: KeyModifiers, char: char) -> PickEffect {
    picker.update(KeyEvent::new(KeyCode::Char(char), modifiers))
}

fn typed(picker: &mut Picker, text: &str) {
    text.chars().for_each(|char| {
        press(picker, KeyCode::Char(char));
    });
}

fn titles(picker: &Picker) -> Vec<String> {
    picker.visible().map(|(row, _)| picker.session(row).unwrap().title.clone().unwrap()).collect()
}

fn task(effect: PickEffect) -> PickTask {
    match effect {
        PickEffect::Perform(task) => *task,
        other => panic!("{other:?}"),
    }
}

fn ids(task: &PickTask) -> Vec<SessionId> {
    task.sessions.iter().map(|session| session.id).collect()
}

#[test]
fn typing_narrows_the_list_and_enter_shows_what_is_selected() {
    let mut picker = picker(&["fix the parser", "write docs", "fix the lexer"]);
    typed(&mut picker, "fix");
    assert_eq!(titles(&picker), ["fix the parser", "fix the lexer"]);
    press(&mut picker, KeyCode::Down);
    let chosen = task(press(&mut picker, KeyCode::Enter));
    assert_eq!((chosen.action, ids(&chosen)), (PickAction::Show, vec![3]));
    // Another query selects the best match again.
    typed(&mut picker, " pars");
    assert_eq!(ids(&task(press(&mut picker, KeyCode::Enter))), [1]);
    with(&mut picker, KeyModifiers::CONTROL, 'u');
    assert_eq!(titles(&picker).len(), 3);
}

#[test]
fn a_letter_is_typed_and_acts_only_with_alt_or_in_the_menu() {
    let mut picker = picker(&["one", "two"]);
    assert!(matches!(press(&mut picker, KeyCode::Char('r')), PickEffect::Redraw));
    assert_eq!(picker.input().text(), "r");
    press(&mut picker, KeyCode::Backspace);
    assert_eq!(task(with(&mut picker, KeyModifiers::ALT, 'r')).action, PickAction::Resume);
    with(&mut picker, KeyModifiers::CONTROL, 'o');
    assert_eq!(task(press(&mut picker, KeyCode::Char('y'))).action, PickAction::CopyId);
    with(&mut picker, KeyModifiers::CONTROL, 'o');
    press(&mut picker, KeyCode::Esc);
    assert_eq!((picker.overlay(), picker.input().text()), (&Overlay::None, ""));
    assert!(matches!(press(&mut picker, KeyCode::Esc), PickEffect::Cancel));
    assert!(matches!(with(&mut picker, KeyModifiers::CONTROL, 'c'), PickEffect::Interrupt));
}

#[test]
fn two_marked_sessions_are_compared_in_the_order_of_their_marks() {
    let mut picker = picker(&["one", "two", "three"]);
    assert!(matches!(with(&mut picker, KeyModifiers::ALT, 'd'), PickEffect::Redraw));
    assert!(picker.notice().unwrap().contains("mark two sessions"));
    press(&mut picker, KeyCode::Down);
    press(&mut picker, KeyCode::Tab);
    // One mark and another selected session are two as well.
    assert_eq!(ids(&task(with(&mut picker, KeyModifiers::ALT, 'd'))), [2, 3]);
    press(&mut picker, KeyCode::PageUp);
    press(&mut picker, KeyCode::Tab);
    assert_eq!(ids(&task(with(&mut picker, KeyModifiers::ALT, 'd'))), [2, 1]);
    press(&mut picker, KeyCode::Tab);
    assert_eq!(ids(&task(with(&mut picker, KeyModifiers::ALT, 'd'))), [1, 3]);
}

#[test]
fn marks_survive_another_query_and_are_printed_together() {
    let mut picker = picker(&["one", "two", "three"]);
    picker.enter = Enter::Prints;
    press(&mut picker, KeyCode::Tab);
    typed(&mut picker, "three");
    press(&mut picker, KeyCode::Tab);
    assert_eq!(ids(&task(press(&mut picker, KeyCode::Enter))), [1, 3]);
}

#[test]
fn a_target_is_chosen_by_a_part_of_its_name() {
    let mut picker = picker(&["one"]);
    with(&mut picker, KeyModifiers::ALT, 'e');
    typed(&mut picker, "cs");
    let chosen = task(press(&mut picker, KeyCode::Enter));
    assert_eq!((chosen.action, chosen.target.as_deref()), (PickAction::Export, Some("csv")));
    with(&mut picker, KeyModifiers::ALT, 'c');
    typed(&mut picker, "no such thing");
    assert!(matches!(press(&mut picker, KeyCode::Enter), PickEffect::Redraw));
    press(&mut picker, KeyCode::Esc);
    assert_eq!((picker.overlay(), picker.input().text()), (&Overlay::None, ""));
}

#[test]
fn only_a_session_without_a_file_is_restored() {
    let mut picker = picker(&["one"]);
    with(&mut picker, KeyModifiers::ALT, 'R');
    assert_eq!(picker.notice(), Some("the file exists: nothing to restore"));
    let mut gone = session(1, "one");
    gone.gone = 1;
    picker.take_sessions(SearchedSessions::new(vec![gone.clone()]), Loading::Complete);
    assert_eq!(task(with(&mut picker, KeyModifiers::ALT, 'R')).action, PickAction::Restore);
    with(&mut picker, KeyModifiers::ALT, 'c');
    assert!(picker.notice().unwrap().contains("restore it first"));
    gone.lost = 1;
    picker.take_sessions(SearchedSessions::new(vec![gone]), Loading::Complete);
    with(&mut picker, KeyModifiers::ALT, 'R');
    assert!(picker.notice().unwrap().contains("never archived"));
}

#[test]
fn a_slash_and_a_key_search_the_full_text() {
    let mut picker = picker(&["one", "two"]);
    typed(&mut picker, "/walrus");
    assert_eq!(picker.wanted_search(), Some("walrus"));
    // Until the answer arrives, the list stays.
    assert_eq!(titles(&picker), ["one", "two"]);
    picker.take_hits("walru", Ok(vec![hit(session(1, "one"), 3)]));
    assert_eq!((titles(&picker).len(), picker.is_searching()), (2, true));
    let unlisted = session(9, "a log");
    let hits = vec![hit(session(2, "two"), 3), hit(unlisted, 0), hit(session(2, "two"), 5)];
    picker.take_hits("walrus", Ok(hits));
    assert_eq!((titles(&picker), picker.wanted_search()), (vec!["two".to_owned(), "a log".to_owned()], None));
    assert_eq!(picker.rows[0].hit, Some((0, 1)));
    let shown = task(press(&mut picker, KeyCode::Enter));
    assert_eq!(shown.event, Some(PickedEvent { name: "id-2".to_owned(), number: 4, version: None }));
    // The facts about sessions again; a session that only the search knows is not listed.
    with(&mut picker, KeyModifiers::CONTROL, 't');
    with(&mut picker, KeyModifiers::CONTROL, 'u');
    assert_eq!(titles(&picker), ["one", "two"]);
    with(&mut picker, KeyModifiers::CONTROL, 't');
    typed(&mut picker, "seal");
    assert_eq!(picker.wanted_search(), Some("seal"));
    picker.take_hits("seal", Err("invalid query".to_owned()));
    assert_eq!((picker.notice(), picker.wanted_search()), (Some("invalid query"), None));
}

#[test]
fn the_selection_stays_when_more_sessions_arrive() {
    let mut picker = picker(&["one", "two"]);
    press(&mut picker, KeyCode::Down);
    let more = vec![session(7, "new"), session(1, "one"), session(2, "two")];
    picker.take_sessions(SearchedSessions::new(more), Loading::Complete);
    assert_eq!(ids(&task(press(&mut picker, KeyCode::Enter))), [2]);
}

#[test]
fn the_selected_row_is_visible_at_every_size() {
    let titles: Vec<String> = (0..100).map(|number| format!("title {number}")).collect();
    let mut picker = picker(&titles.iter().map(String::as_str).collect::<Vec<_>>());
    for (columns, lines) in [(80, 24), (120, 40), (40, 10), (1, 3), (80, 24)] {
        picker.resize(columns, lines);
        for code in [KeyCode::PageDown, KeyCode::Down, KeyCode::PageUp, KeyCode::PageDown, KeyCode::PageDown] {
            press(&mut picker, code);
            assert_eq!(picker.visible().filter(|(_, is_selected)| *is_selected).count(), 1, "{columns}x{lines}");
        }
    }
    // No screen at all.
    picker.resize(0, 0);
    press(&mut picker, KeyCode::Down);
    assert_eq!(picker.visible().count(), 0);
}

#[test]
fn a_preview_is_asked_for_once_and_scrolls_within_its_lines() {
    let mut picker = picker(&["one", "two"]);
    let request = picker.wanted_preview().unwrap();
    assert_eq!((request.key.session, request.key.width), (1, 80));
    let lines = (0..100).map(|number| Line::of(&format!("line {number}"), anstyle::Style::new())).collect();
    picker.take_preview(request.key, lines);
    assert!(picker.wanted_preview().is_none());
    assert_eq!(picker.preview().unwrap().len(), 100);
    for _ in 0..20 {
        with(&mut picker, KeyModifiers::CONTROL, 'f');
    }
    assert_eq!(picker.preview().unwrap().len(), picker.layout().preview_lines());
    press(&mut picker, KeyCode::Down);
    assert_eq!((picker.preview().is_none(), picker.wanted_preview().unwrap().key.session), (true, 2));
    press(&mut picker, KeyCode::Up);
    assert_eq!(picker.preview().unwrap().len(), 100);
}

#[test]
fn a_question_mark_opens_the_help_only_before_a_query() {
    let mut picker = picker(&["one"]);
    press(&mut picker, KeyCode::Char('?'));
    assert_eq!(picker.overlay(), &Overlay::Help);
    press(&mut picker, KeyCode::Char('x'));
    assert_eq!((picker.overlay(), picker.input().text()), (&Overlay::None, ""));
    typed(&mut picker, "why?");
    assert_eq!(picker.input().text(), "why?");
}

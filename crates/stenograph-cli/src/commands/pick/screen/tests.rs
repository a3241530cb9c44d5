//! The finder on screens of all sizes, in memory.

use std::path::Path;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use stenograph_store::index::catalogue::ProjectRow;

use super::*;
use crate::commands::pick::matching::SearchedSessions;

const HOSTILE: [&str; 5] = [
    "\u{1b}[2J\u{9b}31m\u{202e}evil\u{200b}\n\t\u{7}",
    "漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字",
    "שלום עולם مرحبا بالعالم",
    "👨‍👩‍👧👨‍👩‍👧 e\u{301}\u{301}\u{301} family",
    "",
];

fn picker() -> Picker {
    let mut picker = Picker::new("", Enter::Shows);
    let session = |(at, text): (usize, &&str)| {
        let mut session = IndexedSession::bare(text, text, Path::new("/a"));
        (session.id, session.title, session.ended) = (at as i64, Some((*text).to_owned()), Some(0));
        let project = ProjectRow { name: (*text).to_owned(), root: String::new(), remote: None };
        (session.project, session.sources, session.gone) = (Some(project), 1, at as u64 % 2);
        session
    };
    let sessions: Vec<IndexedSession> = HOSTILE.iter().cycle().take(50).enumerate().map(session).collect();
    picker.take_costs(sessions.iter().map(|session| (session.id, "$1,234.56".to_owned())).collect());
    picker.take_sessions(SearchedSessions::new(sessions), Loading::Complete);
    picker
}

/// Draws in a terminal of this size, and returns its text.
fn drawn(picker: &Picker, columns: u16, lines: u16, colour: Colour) -> (String, bool) {
    let mut terminal = Terminal::new(TestBackend::new(columns, lines)).unwrap();
    terminal.draw(|frame| draw(frame, picker, PickLook { colour, now: 1_000_000 })).unwrap();
    let buffer = terminal.backend().buffer();
    let is_styled = buffer.content().iter().any(|cell| cell.style() != ratatui::buffer::Cell::default().style());
    let rows = buffer.content().chunks(usize::from(columns.max(1)));
    let rows = rows.map(|row| row.iter().map(ratatui::buffer::Cell::symbol).collect::<String>());
    (rows.collect::<Vec<_>>().join("\n"), is_styled)
}

#[test]
fn hostile_text_fits_every_screen_and_stays_text() {
    for (columns, lines) in [(80, 24), (120, 40), (40, 10), (20, 5), (3, 2), (1, 1), (200, 60)] {
        let mut picker = picker();
        picker.resize(usize::from(columns), usize::from(lines));
        let request = picker.wanted_preview();
        if let Some(request) = request {
            let lines = HOSTILE.iter().cycle().take(90).map(|text| Line::of(text, Style::new().bold())).collect();
            picker.take_preview(request.key, lines);
        }
        let keys = [KeyCode::Down, KeyCode::Tab, KeyCode::F(1), KeyCode::F(1), KeyCode::Char('漢'), KeyCode::Backspace];
        for key in keys {
            picker.update(KeyEvent::new(key, KeyModifiers::NONE));
            let (text, _) = drawn(&picker, columns, lines, Colour::Shown);
            assert!(!text.contains(['\u{1b}', '\u{9b}', '\u{202e}', '\u{200b}', '\u{7}']), "{columns}x{lines}: {text}");
        }
    }
}

#[test]
fn without_colour_nothing_is_styled_and_the_selection_is_still_visible() {
    let mut picker = picker();
    picker.resize(80, 24);
    picker.update(KeyEvent::new(KeyCode::Tab, KeyModifiers::NONE));
    let (text, is_styled) = drawn(&picker, 80, 24, Colour::Plain);
    assert!(!is_styled);
    let rows: Vec<&str> = text.lines().collect();
    assert!(rows[1].starts_with(" * ") && rows[2].starts_with("> "), "{text}");
    assert!(drawn(&picker, 80, 24, Colour::Shown).1);
}

#[test]
fn all_actions_are_in_the_last_line_of_eighty_columns() {
    let mut picker = picker();
    for columns in [80, 120] {
        picker.resize(columns, 24);
        let (text, _) = drawn(&picker, columns as u16, 24, Colour::Plain);
        let last = text.lines().last().unwrap().trim_end();
        for action in PickAction::MENU {
            assert!(last.contains(action.name()), "{last}");
        }
        assert!(last.ends_with("? keys"), "{last}");
    }
}

#[test]
fn a_long_query_shows_its_end() {
    let mut picker = picker();
    picker.resize(40, 10);
    "漢字 abc".repeat(20).chars().for_each(|char| {
        picker.update(KeyEvent::new(KeyCode::Char(char), KeyModifiers::NONE));
    });
    let (text, _) = drawn(&picker, 40, 10, Colour::Plain);
    assert!(text.lines().next().unwrap().contains("abc"), "{text}");
}

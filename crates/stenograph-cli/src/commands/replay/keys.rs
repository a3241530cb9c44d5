//! The meaning of keys during a replay. This file reads no keys.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use stenograph::replay::Command;

use super::search::Direction;

/// What a key asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyAction {
    /// A command for the player.
    ReplayClock(Command),
    /// Scroll within the visible events.
    Scroll(Scroll),
    /// Search for a text.
    Search(String),
    /// Go to another match.
    Match(Direction),
    EndSearch,
    /// Switch to the next mode.
    Mode,
    /// Fold long content, or show all of it.
    Fold,
    /// Show or hide the keys.
    Help,
    /// Redraw the status line: the user is typing.
    Typing,
    Suspend,
    Quit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scroll {
    LineUp,
    LineDown,
    PageUp,
    PageDown,
}

/// What the user is typing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Typed {
    /// The number of an event.
    Number(String),
    /// A text to search for.
    Query(String),
}

/// Interprets keys: digits after `g` form a number, and text after `/` forms a query.
#[derive(Clone, Debug, Default)]
pub struct Keys {
    typed: Option<Typed>,
    /// Whether `n` and `N` go to matches.
    is_searching: bool,
}

/// More digits than any event number has.
const DIGITS_MAX: usize = 12;

/// The maximum length of a query.
const QUERY_LENGTH_MAX: usize = 200;

impl Keys {
    /// What was typed so far.
    pub fn typed(&self) -> Option<&Typed> {
        self.typed.as_ref()
    }

    pub fn action(&mut self, key: KeyEvent) -> Option<KeyAction> {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                KeyCode::Char('c' | 'd') => Some(KeyAction::Quit),
                KeyCode::Char('z') => Some(KeyAction::Suspend),
                _ => None,
            };
        }
        match self.typed.take() {
            Some(Typed::Query(typed)) => return Some(self.query(typed, key.code)),
            // After g alone, every key but a digit has its usual meaning.
            Some(Typed::Number(typed)) if !typed.is_empty() || matches!(key.code, KeyCode::Char('0'..='9')) => {
                return Some(self.number(typed, key.code));
            }
            Some(Typed::Number(_)) if matches!(key.code, KeyCode::Enter | KeyCode::Esc | KeyCode::Backspace) => {
                return Some(KeyAction::Typing);
            }
            Some(Typed::Number(_)) | None => {}
        }
        let command = match key.code {
            KeyCode::Char('n') if self.is_searching => return Some(KeyAction::Match(Direction::Forward)),
            KeyCode::Char('N') if self.is_searching => return Some(KeyAction::Match(Direction::Backward)),
            KeyCode::Char(' ') => Command::Pause,
            KeyCode::Char('n') | KeyCode::Right | KeyCode::Enter => Command::Step,
            KeyCode::Char('b') | KeyCode::Left | KeyCode::Backspace => Command::Back,
            KeyCode::Char('u') => Command::NextTurn,
            KeyCode::Char('U') => Command::PreviousTurn,
            KeyCode::Char('g') => {
                self.typed = Some(Typed::Number(String::new()));
                Command::First
            }
            KeyCode::Char('<') | KeyCode::Home => Command::First,
            KeyCode::Char('>' | 'G') | KeyCode::End => Command::Last,
            KeyCode::Char('+' | '=') => Command::Faster,
            KeyCode::Char('-') => Command::Slower,
            other => return self.other(other),
        };
        Some(KeyAction::ReplayClock(command))
    }

    fn other(&mut self, code: KeyCode) -> Option<KeyAction> {
        match code {
            KeyCode::Char('/') => {
                self.typed = Some(Typed::Query(String::new()));
                Some(KeyAction::Typing)
            }
            KeyCode::Esc => {
                self.is_searching = false;
                Some(KeyAction::EndSearch)
            }
            KeyCode::Char('m') => Some(KeyAction::Mode),
            KeyCode::Char('f') => Some(KeyAction::Fold),
            KeyCode::Char('?' | 'h') => Some(KeyAction::Help),
            KeyCode::Char('q') => Some(KeyAction::Quit),
            KeyCode::Up | KeyCode::Char('k') => Some(KeyAction::Scroll(Scroll::LineUp)),
            KeyCode::Down | KeyCode::Char('j') => Some(KeyAction::Scroll(Scroll::LineDown)),
            KeyCode::PageUp => Some(KeyAction::Scroll(Scroll::PageUp)),
            KeyCode::PageDown => Some(KeyAction::Scroll(Scroll::PageDown)),
            _ => None,
        }
    }

    /// Handles a key while a number is typed. Any key but a digit ends it.
    fn number(&mut self, mut typed: String, code: KeyCode) -> KeyAction {
        match code {
            KeyCode::Char(digit) if digit.is_ascii_digit() && typed.len() < DIGITS_MAX => typed.push(digit),
            KeyCode::Char(digit) if digit.is_ascii_digit() => {}
            KeyCode::Backspace => {
                typed.pop();
            }
            KeyCode::Enter => {
                return typed.parse().map_or(KeyAction::Typing, |number| KeyAction::ReplayClock(Command::Go(number)));
            }
            _ => return KeyAction::Typing,
        }
        self.typed = Some(Typed::Number(typed));
        KeyAction::Typing
    }

    /// Handles a key while a query is typed.
    fn query(&mut self, mut typed: String, code: KeyCode) -> KeyAction {
        match code {
            KeyCode::Char(char) if typed.chars().count() < QUERY_LENGTH_MAX => typed.push(char),
            // Backspace in an empty query leaves it.
            KeyCode::Backspace if typed.pop().is_some() => {}
            KeyCode::Enter if !typed.is_empty() => {
                self.is_searching = true;
                return KeyAction::Search(typed);
            }
            KeyCode::Enter | KeyCode::Esc | KeyCode::Backspace => return KeyAction::Typing,
            _ => {}
        }
        self.typed = Some(Typed::Query(typed));
        KeyAction::Typing
    }
}

pub const HELP: &str = "\
space         pause or continue
n right enter next event
b left        previous event
u U           next message of the user, previous one
g G           beginning, end; also < >
g NUMBER      go to this event
/TEXT         search; n N: next match, previous match; esc: end the search
j k up down   scroll; also page up, page down
+ -           twice as fast, half as fast
m             next mode: full, summary, assistant, tools
f             show long calls and results in full, or folded
q Ctrl-C      quit";

#[cfg(test)]
mod tests {
    use super::*;

    fn actions(codes: &[KeyCode]) -> Vec<Option<KeyAction>> {
        let mut keys = Keys::default();
        codes.iter().map(|code| keys.action(KeyEvent::new(*code, KeyModifiers::NONE))).collect()
    }

    #[test]
    fn a_number_is_typed_after_g() {
        use KeyCode::{Backspace, Char, Enter, Esc};
        let typed = actions(&[Char('g'), Char('1'), Char('2'), Backspace, Char('7'), Enter, Char(' ')]);
        assert_eq!(typed.first(), Some(&Some(KeyAction::ReplayClock(Command::First))));
        assert_eq!(typed.get(4), Some(&Some(KeyAction::Typing)));
        assert_eq!(typed.get(5), Some(&Some(KeyAction::ReplayClock(Command::Go(17)))));
        assert_eq!(typed.get(6), Some(&Some(KeyAction::ReplayClock(Command::Pause))));
        // An empty number, and Escape.
        assert_eq!(actions(&[Char('g'), Enter, Char('q')]).last(), Some(&Some(KeyAction::Quit)));
        assert_eq!(actions(&[Char('g'), Char('q')]).last(), Some(&Some(KeyAction::Quit)));
        assert_eq!(
            actions(&[Char('g'), Char('3'), Esc, Char('n')]).last(),
            Some(&Some(KeyAction::ReplayClock(Command::Step)))
        );
    }

    #[test]
    fn n_goes_to_matches_until_the_search_ends() {
        use KeyCode::{Backspace, Char, Enter, Esc};
        let searched = actions(&[Char('/'), Char('q'), Char('x'), Backspace, Enter, Char('n'), Char('N')]);
        assert_eq!(searched.get(4), Some(&Some(KeyAction::Search("q".to_owned()))));
        assert_eq!(searched.get(5), Some(&Some(KeyAction::Match(Direction::Forward))));
        assert_eq!(searched.get(6), Some(&Some(KeyAction::Match(Direction::Backward))));
        let step = Some(Some(KeyAction::ReplayClock(Command::Step)));
        assert_eq!(actions(&[Char('/'), Char('a'), Enter, Esc, Char('n')]).last().cloned(), step);
        assert_eq!(actions(&[Char('/'), Char('a'), Esc, Char('n')]).last().cloned(), step);
        assert_eq!(actions(&[Char('/'), Enter, Char('n')]).last().cloned(), step);
    }

    #[test]
    fn control_c_quits_even_while_a_number_is_typed() {
        let mut keys = Keys::default();
        keys.action(KeyEvent::new(KeyCode::Char('g'), KeyModifiers::NONE));
        let quit = keys.action(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL));
        assert_eq!(quit, Some(KeyAction::Quit));
    }
}

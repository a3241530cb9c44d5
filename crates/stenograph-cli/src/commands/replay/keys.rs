//! The meaning of keys during a replay. This file reads no keys.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use stenograph::replay::Command;

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyAction {
    /// A command for the player.
    Player(Command),
    /// Scroll within the visible event.
    Scroll(Scroll),
    /// Switch to the next mode.
    Mode,
    /// Show or hide the keys.
    Help,
    /// Redraw the status line: the user is typing a number.
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

/// Interprets keys: digits after `g` form a number.
#[derive(Clone, Debug, Default)]
pub struct Keys {
    typed: Option<String>,
}

/// More digits than any event number has.
const DIGITS_MAX: usize = 12;

impl Keys {
    /// The number typed so far.
    pub fn typed(&self) -> Option<&str> {
        self.typed.as_deref()
    }

    pub fn action(&mut self, key: KeyEvent) -> Option<KeyAction> {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                KeyCode::Char('c' | 'd') => Some(KeyAction::Quit),
                KeyCode::Char('z') => Some(KeyAction::Suspend),
                _ => None,
            };
        }
        if let Some(typed) = self.typed.take() {
            return self.number(typed, key.code);
        }
        let command = match key.code {
            KeyCode::Char(' ') => Command::Pause,
            KeyCode::Char('n') | KeyCode::Right | KeyCode::Enter => Command::Step,
            KeyCode::Char('b') | KeyCode::Left | KeyCode::Backspace => Command::Back,
            KeyCode::Char('u') => Command::NextTurn,
            KeyCode::Char('U') => Command::PreviousTurn,
            KeyCode::Char('<') | KeyCode::Home => Command::First,
            KeyCode::Char('>') | KeyCode::End => Command::Last,
            KeyCode::Char('+' | '=') => Command::Faster,
            KeyCode::Char('-') => Command::Slower,
            other => return self.other(other),
        };
        Some(KeyAction::Player(command))
    }

    fn other(&mut self, code: KeyCode) -> Option<KeyAction> {
        match code {
            KeyCode::Char('g') => {
                self.typed = Some(String::new());
                Some(KeyAction::Typing)
            }
            KeyCode::Char('m') => Some(KeyAction::Mode),
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
    fn number(&mut self, mut typed: String, code: KeyCode) -> Option<KeyAction> {
        match code {
            KeyCode::Char(digit) if digit.is_ascii_digit() && typed.len() < DIGITS_MAX => typed.push(digit),
            KeyCode::Char(digit) if digit.is_ascii_digit() => {}
            KeyCode::Backspace => {
                typed.pop();
            }
            KeyCode::Enter => {
                return Some(typed.parse().map_or(KeyAction::Typing, |number| KeyAction::Player(Command::Go(number))));
            }
            _ => return Some(KeyAction::Typing),
        }
        self.typed = Some(typed);
        Some(KeyAction::Typing)
    }
}

pub const HELP: &str = "\
space         pause or continue
n right enter next event
b left        previous event
u U           next message of the user, previous one
g NUMBER      go to this event
< >           beginning, end
+ -           twice as fast, half as fast
m             next mode: full, summary, assistant, tools
up down       scroll within a long event
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
        assert_eq!(typed.get(4), Some(&Some(KeyAction::Typing)));
        assert_eq!(typed.get(5), Some(&Some(KeyAction::Player(Command::Go(17)))));
        assert_eq!(typed.get(6), Some(&Some(KeyAction::Player(Command::Pause))));
        // An empty number, and Escape.
        assert_eq!(actions(&[Char('g'), Enter, Char('q')]).last(), Some(&Some(KeyAction::Quit)));
        assert_eq!(
            actions(&[Char('g'), Char('3'), Esc, Char('n')]).last(),
            Some(&Some(KeyAction::Player(Command::Step)))
        );
    }

    #[test]
    fn control_c_quits_even_while_a_number_is_typed() {
        let mut keys = Keys::default();
        keys.action(KeyEvent::new(KeyCode::Char('g'), KeyModifiers::NONE));
        let quit = keys.action(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL));
        assert_eq!(quit, Some(KeyAction::Quit));
    }
}

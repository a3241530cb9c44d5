//! What keys mean while a conversation is played. Nothing here waits for one.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use stenograph::replay::Command;

/// What somebody wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Something that the player can do.
    Player(Command),
    /// Lines up or down within what is shown; pages are so many screens.
    Scroll(Scroll),
    /// Another mode.
    Mode,
    /// What keys there are.
    Help,
    /// Another line below: a number is being typed.
    Typing,
    /// Out of here for a moment.
    Suspend,
    /// Out of here.
    Quit,
}

/// How far to go within what is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scroll {
    LineUp,
    LineDown,
    PageUp,
    PageDown,
}

/// Understands keys: after `g` digits are a number.
#[derive(Clone, Debug, Default)]
pub struct Keys {
    typed: Option<String>,
}

/// A number of an event has fewer digits.
const DIGITS_MAX: usize = 12;

impl Keys {
    /// The number that is being typed.
    pub fn typed(&self) -> Option<&str> {
        self.typed.as_deref()
    }

    /// What a key means, if anything.
    pub fn wish(&mut self, key: KeyEvent) -> Option<Wish> {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                KeyCode::Char('c' | 'd') => Some(Wish::Quit),
                KeyCode::Char('z') => Some(Wish::Suspend),
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
        Some(Wish::Player(command))
    }

    fn other(&mut self, code: KeyCode) -> Option<Wish> {
        match code {
            KeyCode::Char('g') => {
                self.typed = Some(String::new());
                Some(Wish::Typing)
            }
            KeyCode::Char('m') => Some(Wish::Mode),
            KeyCode::Char('?' | 'h') => Some(Wish::Help),
            KeyCode::Char('q') => Some(Wish::Quit),
            KeyCode::Up | KeyCode::Char('k') => Some(Wish::Scroll(Scroll::LineUp)),
            KeyCode::Down | KeyCode::Char('j') => Some(Wish::Scroll(Scroll::LineDown)),
            KeyCode::PageUp => Some(Wish::Scroll(Scroll::PageUp)),
            KeyCode::PageDown => Some(Wish::Scroll(Scroll::PageDown)),
            _ => None,
        }
    }

    /// A key while a number is typed. Whatever is no digit ends it.
    fn number(&mut self, mut typed: String, code: KeyCode) -> Option<Wish> {
        match code {
            KeyCode::Char(digit) if digit.is_ascii_digit() && typed.len() < DIGITS_MAX => typed.push(digit),
            KeyCode::Char(digit) if digit.is_ascii_digit() => {}
            KeyCode::Backspace => {
                typed.pop();
            }
            KeyCode::Enter => {
                return Some(typed.parse().map_or(Wish::Typing, |number| Wish::Player(Command::Go(number))));
            }
            _ => return Some(Wish::Typing),
        }
        self.typed = Some(typed);
        Some(Wish::Typing)
    }
}

/// The keys, for people.
pub const HELP: &str = "\
space         pause, and go on
n right enter one event further
b left        one event back
u U           to the next message of a user, to the one before
g NUMBER      to that event
< >           to the beginning, to the end
+ -           twice as fast, half as fast
m             another mode: full, summary, assistant, tools
up down       within an event that is longer than the screen
q Ctrl-C      quit";

#[cfg(test)]
mod tests {
    use super::*;

    fn wishes(codes: &[KeyCode]) -> Vec<Option<Wish>> {
        let mut keys = Keys::default();
        codes.iter().map(|code| keys.wish(KeyEvent::new(*code, KeyModifiers::NONE))).collect()
    }

    #[test]
    fn a_number_is_typed_after_g() {
        use KeyCode::{Backspace, Char, Enter, Esc};
        let typed = wishes(&[Char('g'), Char('1'), Char('2'), Backspace, Char('7'), Enter, Char(' ')]);
        assert_eq!(typed.get(4), Some(&Some(Wish::Typing)));
        assert_eq!(typed.get(5), Some(&Some(Wish::Player(Command::Go(17)))));
        assert_eq!(typed.get(6), Some(&Some(Wish::Player(Command::Pause))));
        // Going nowhere, and changing one's mind.
        assert_eq!(wishes(&[Char('g'), Enter, Char('q')]).last(), Some(&Some(Wish::Quit)));
        assert_eq!(wishes(&[Char('g'), Char('3'), Esc, Char('n')]).last(), Some(&Some(Wish::Player(Command::Step))));
    }

    #[test]
    fn control_c_quits_even_while_a_number_is_typed() {
        let mut keys = Keys::default();
        keys.wish(KeyEvent::new(KeyCode::Char('g'), KeyModifiers::NONE));
        let quit = keys.wish(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL));
        assert_eq!(quit, Some(Wish::Quit));
    }
}

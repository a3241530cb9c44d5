//! A line that the user edits, with the keys of a shell.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unicode_segmentation::UnicodeSegmentation;

/// A text and the position of the cursor in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineEdit {
    text: String,
    /// The byte before which the next character is inserted.
    cursor: usize,
}

/// Whether a key belongs to the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineChange {
    Text,
    Cursor,
    /// The key means something else.
    No,
}

/// The longest text, in bytes: more than anybody types.
const LENGTH_MAX: usize = 1000;

impl LineEdit {
    pub fn new(text: &str) -> LineEdit {
        let mut line = LineEdit::default();
        text.chars().for_each(|char| line.insert(char));
        line
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text before the cursor.
    pub fn before(&self) -> &str {
        self.text.get(..self.cursor).unwrap_or_default()
    }

    fn after(&self) -> &str {
        self.text.get(self.cursor..).unwrap_or_default()
    }

    pub fn edit(&mut self, key: KeyEvent) -> LineChange {
        let length = self.text.len();
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if key.modifiers.contains(KeyModifiers::ALT) {
            return LineChange::No;
        }
        match key.code {
            KeyCode::Char('a') if is_control => self.cursor = 0,
            KeyCode::Char('e') if is_control => self.cursor = length,
            KeyCode::Char('u') if is_control => self.remove_back_to(0),
            KeyCode::Char('w') if is_control => self.remove_back_to(self.start_of_word()),
            KeyCode::Char('h') if is_control => self.remove_back_to(self.start_of_last()),
            KeyCode::Char(char) if !is_control => self.insert(char),
            KeyCode::Backspace => self.remove_back_to(self.start_of_last()),
            KeyCode::Delete => {
                let end = self.cursor + self.after().graphemes(true).next().map_or(0, str::len);
                self.text.replace_range(self.cursor..end, "");
            }
            KeyCode::Left => self.cursor = self.start_of_last(),
            KeyCode::Right => self.cursor += self.after().graphemes(true).next().map_or(0, str::len),
            KeyCode::Home => self.cursor = 0,
            KeyCode::End => self.cursor = length,
            _ => return LineChange::No,
        }
        if self.text.len() == length { LineChange::Cursor } else { LineChange::Text }
    }

    fn insert(&mut self, char: char) {
        if self.text.len() + char.len_utf8() <= LENGTH_MAX && !char.is_control() {
            self.text.insert(self.cursor, char);
            self.cursor += char.len_utf8();
        }
    }

    /// Removes the text from `start` to the cursor.
    fn remove_back_to(&mut self, start: usize) {
        self.text.replace_range(start..self.cursor, "");
        self.cursor = start;
    }

    fn start_of_last(&self) -> usize {
        self.cursor - self.before().graphemes(true).next_back().map_or(0, str::len)
    }

    fn start_of_word(&self) -> usize {
        let words = self.before().trim_end();
        words.rfind(char::is_whitespace).map_or(0, |at| at + words.get(at..).map_or(0, first_length))
    }
}

fn first_length(text: &str) -> usize {
    text.chars().next().map_or(0, char::len_utf8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(line: &mut LineEdit, code: KeyCode, modifiers: KeyModifiers) -> LineChange {
        line.edit(KeyEvent::new(code, modifiers))
    }

    #[test]
    fn characters_are_inserted_and_removed_at_the_cursor() {
        let mut line = LineEdit::new("flaky e\u{301}");
        assert_eq!(press(&mut line, KeyCode::Backspace, KeyModifiers::NONE), LineChange::Text);
        assert_eq!(line.text(), "flaky ");
        assert_eq!(press(&mut line, KeyCode::Home, KeyModifiers::NONE), LineChange::Cursor);
        press(&mut line, KeyCode::Char('漢'), KeyModifiers::NONE);
        press(&mut line, KeyCode::Right, KeyModifiers::NONE);
        press(&mut line, KeyCode::Delete, KeyModifiers::NONE);
        assert_eq!((line.text(), line.before()), ("漢faky ", "漢f"));
        press(&mut line, KeyCode::Char('u'), KeyModifiers::CONTROL);
        assert_eq!(line.text(), "aky ");
        assert_eq!(press(&mut line, KeyCode::Char('x'), KeyModifiers::ALT), LineChange::No);
        assert_eq!(press(&mut line, KeyCode::Up, KeyModifiers::NONE), LineChange::No);
    }

    #[test]
    fn a_word_is_removed_with_the_spaces_after_it() {
        let mut line = LineEdit::new("one two\u{3000}three  ");
        press(&mut line, KeyCode::Char('w'), KeyModifiers::CONTROL);
        assert_eq!(line.text(), "one two\u{3000}");
        press(&mut line, KeyCode::Char('w'), KeyModifiers::CONTROL);
        assert_eq!(line.text(), "one ");
        press(&mut line, KeyCode::Char('w'), KeyModifiers::CONTROL);
        assert_eq!(line.text(), "");
    }

    #[test]
    fn a_line_holds_no_control_characters_and_has_a_limit() {
        assert_eq!(LineEdit::new("a\u{1b}[2Jb\n").text(), "a[2Jb");
        assert_eq!(LineEdit::new(&"ä".repeat(5000)).text().len(), LENGTH_MAX);
    }
}

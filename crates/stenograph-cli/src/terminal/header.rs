//! The head of a conversation: its title, and one line each for where and when it happened and what it took.

use anstyle::Style;

use super::styled::Line;

/// What is known about a conversation. Empty texts are left out.
#[derive(Clone, Debug, Default)]
pub struct Header {
    /// The title, or what the person asked first.
    pub title: String,
    /// Where it happened: agent, project, branch, model.
    pub place: Vec<String>,
    /// When it happened, and what it took: times, tokens, cost.
    pub facts: Vec<String>,
}

impl Header {
    /// The lines of the header, with a blank line below them.
    pub fn lines(&self, width: usize) -> Vec<Line> {
        let separator = " \u{b7} ";
        let mut lines = Vec::new();
        if !self.title.is_empty() {
            lines.push(Line::of(&self.title, Style::new().bold()).fitted(width));
        }
        for parts in [&self.place, &self.facts] {
            let stated: Vec<&str> = parts.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
            if !stated.is_empty() {
                lines.extend(Line::of(&stated.join(separator), Style::new().dimmed()).wrapped(width));
            }
        }
        lines.push(Line::default());
        lines
    }
}

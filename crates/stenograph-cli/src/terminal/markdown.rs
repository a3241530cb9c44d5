//! Draws Markdown as people and models write it. Line breaks of the source stay, links name their target, and HTML is text.

use anstyle::{AnsiColor, Style};
use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::highlight::Highlighter;
use super::styled::Line;
use crate::output::{Colour, harmless};

/// The longest text that is read as Markdown. Longer text is data, and is drawn as it is.
const SIZE_MAX: usize = 256 << 10;

/// The deepest nesting of lists and quotes that is drawn.
const DEPTH_MAX: usize = 8;

/// The lines of a text.
pub fn lines(text: &str, width: usize, colour: Colour, highlighter: &mut Highlighter) -> Vec<Line> {
    if text.len() > SIZE_MAX {
        let text = harmless(text);
        return text.lines().flat_map(|line| Line::of(line, Style::new()).wrapped(width)).collect();
    }
    let options = Options::ENABLE_TABLES | Options::ENABLE_TASKLISTS | Options::ENABLE_STRIKETHROUGH;
    let mut page = Page {
        width,
        colour,
        highlighter,
        lines: Vec::new(),
        line: Line::default(),
        styles: Vec::new(),
        prefixes: Vec::new(),
        lists: Vec::new(),
        marker: None,
        code: None,
        link: None,
        table: None,
    };
    for event in Parser::new_ext(text, options) {
        page.event(event);
    }
    page.finish()
}

/// The state while a text is drawn.
struct Page<'h> {
    width: usize,
    colour: Colour,
    highlighter: &'h mut Highlighter,
    lines: Vec<Line>,
    line: Line,
    styles: Vec<Style>,
    /// The prefixes of the open quotes and list items.
    prefixes: Vec<Line>,
    /// The next number of each open list; `None` for a list with bullets.
    lists: Vec<Option<u64>>,
    /// The bullet or the number of an item whose first line was not drawn yet. It replaces the last prefix.
    marker: Option<Line>,
    /// The language and the text of an open code block.
    code: Option<(String, String)>,
    /// The target of an open link, and the text that the link shows.
    link: Option<(String, String)>,
    table: Option<Table>,
}

/// An open table.
#[derive(Default)]
struct Table {
    rows: Vec<Vec<Line>>,
    row: Vec<Line>,
}

impl Page<'_> {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match (&mut self.code, &mut self.link) {
                (Some((_, code)), _) => code.push_str(&text),
                (None, link) => {
                    if let Some((_, shown)) = link {
                        shown.push_str(&text);
                    }
                    self.push(&text);
                }
            },
            Event::Code(code) => {
                let style = self.style().fg_color(Some(AnsiColor::Cyan.into()));
                let code = match self.colour {
                    Colour::Shown => code.to_string(),
                    Colour::Plain => format!("`{code}`"),
                };
                self.line.push(&code, style);
            }
            Event::Html(html) | Event::InlineHtml(html) => {
                for (at, part) in html.split('\n').enumerate() {
                    if at > 0 {
                        self.end_line();
                    }
                    self.push(part);
                }
            }
            Event::SoftBreak | Event::HardBreak => self.end_line(),
            Event::Rule => {
                self.blank();
                let rule = "\u{2500}".repeat(self.room().min(40));
                self.line.push(&rule, Style::new().dimmed());
                self.end_line();
            }
            Event::TaskListMarker(is_done) => self.push(if is_done { "[x] " } else { "[ ] " }),
            Event::InlineMath(text) | Event::DisplayMath(text) => self.push(&text),
            Event::FootnoteReference(name) => self.push(&format!("[^{name}]")),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph => self.blank_between(),
            Tag::Heading { level, .. } => {
                self.blank();
                let style = Style::new().bold();
                self.styles.push(if level <= HeadingLevel::H2 { style.underline() } else { style });
                if self.colour == Colour::Plain {
                    self.push(&format!("{} ", "#".repeat(level as usize)));
                }
            }
            Tag::BlockQuote(_) => {
                self.blank_between();
                self.prefixes.push(Line::of("\u{2502} ", Style::new().dimmed()));
            }
            Tag::CodeBlock(kind) => {
                self.end_started();
                let language = match kind {
                    CodeBlockKind::Fenced(info) => info.split([' ', ',']).next().unwrap_or_default().to_owned(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((language, String::new()));
            }
            Tag::List(first) => {
                self.end_started();
                if self.lists.is_empty() {
                    self.blank();
                }
                self.lists.push(first);
            }
            Tag::Item => {
                self.end_started();
                let marker = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{}. ", *number - 1)
                    }
                    _ => "\u{2022} ".to_owned(),
                };
                self.prefixes.push(Line::of(&" ".repeat(marker.chars().count()), Style::new()));
                self.marker = Some(Line::of(&marker, Style::new().dimmed()));
            }
            Tag::Emphasis => self.emphasis(Style::new().italic(), "*"),
            Tag::Strong => self.emphasis(Style::new().bold(), "**"),
            Tag::Strikethrough => self.emphasis(Style::new().strikethrough(), "~~"),
            Tag::Link { dest_url, .. } => {
                self.link = Some((dest_url.to_string(), String::new()));
                self.styles.push(self.style().underline());
            }
            Tag::Image { dest_url, .. } => {
                self.push("[image: ");
                self.link = Some((dest_url.to_string(), String::new()));
            }
            Tag::Table(_) => {
                self.blank();
                self.table = Some(Table::default());
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph => self.end_started(),
            TagEnd::Heading(_) => {
                self.styles.pop();
                self.end_line();
            }
            TagEnd::BlockQuote(_) => {
                self.end_started();
                self.prefixes.pop();
            }
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::List(_) => {
                self.lists.pop();
            }
            TagEnd::Item => {
                if self.marker.is_some() || !self.line.is_empty() {
                    self.end_line();
                }
                self.prefixes.pop();
            }
            TagEnd::Emphasis => self.end_emphasis("*"),
            TagEnd::Strong => self.end_emphasis("**"),
            TagEnd::Strikethrough => self.end_emphasis("~~"),
            TagEnd::Link => {
                self.styles.pop();
                if let Some((target, shown)) = self.link.take()
                    && target != shown
                    && !target.is_empty()
                {
                    self.line.push(&format!(" ({target})"), Style::new().dimmed());
                }
            }
            TagEnd::Image => {
                let target = self.link.take().map(|(target, _)| target).unwrap_or_default();
                self.push(&format!("] ({target})"));
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.line);
                if let Some(table) = &mut self.table {
                    table.row.push(cell);
                }
            }
            TagEnd::TableHead | TagEnd::TableRow => {
                if let Some(table) = &mut self.table {
                    let row = std::mem::take(&mut table.row);
                    table.rows.push(row);
                }
            }
            TagEnd::Table => self.end_table(),
            _ => {}
        }
    }

    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or_default()
    }

    fn push(&mut self, text: &str) {
        let style = self.style();
        self.line.push(text, style);
    }

    /// Begins emphasis; without colour, its signs stay.
    fn emphasis(&mut self, style: Style, sign: &str) {
        if self.colour == Colour::Plain {
            self.push(sign);
        }
        let style = self.style() | style.get_effects();
        self.styles.push(style);
    }

    fn end_emphasis(&mut self, sign: &str) {
        self.styles.pop();
        if self.colour == Colour::Plain {
            self.push(sign);
        }
    }

    /// The columns between the prefixes and the right edge.
    fn room(&self) -> usize {
        let prefixes: usize = self.prefixes.iter().take(DEPTH_MAX).map(Line::width).sum();
        self.width.saturating_sub(prefixes).max(10)
    }

    /// The prefix of the next line. The first line of an item has its marker.
    fn prefix(&mut self) -> Line {
        let marker = self.marker.take();
        let mut prefix = Line::default();
        let depth = self.prefixes.len().min(DEPTH_MAX);
        for (at, part) in self.prefixes.iter().take(DEPTH_MAX).enumerate() {
            match &marker {
                Some(marker) if at + 1 == depth => prefix.append(marker.clone()),
                _ => prefix.append(part.clone()),
            }
        }
        prefix
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        for line in line.wrapped(self.room()) {
            let prefix = self.prefix();
            self.lines.push(line.indented(&prefix));
        }
    }

    /// Ends the line if something is on it.
    fn end_started(&mut self) {
        if !self.line.is_empty() {
            self.end_line();
        }
    }

    /// A blank line, unless one is there or nothing is.
    fn blank(&mut self) {
        self.end_started();
        if self.lines.last().is_some_and(|line| !line.is_empty()) {
            self.lines.push(Line::default());
        }
    }

    /// A blank line between paragraphs. The first one of an item follows its marker.
    fn blank_between(&mut self) {
        if self.marker.is_none() {
            self.blank();
        }
    }

    fn end_code(&mut self) {
        let Some((language, text)) = self.code.take() else { return };
        if self.marker.is_none() && self.lists.is_empty() {
            self.blank();
        }
        let code = match self.colour {
            Colour::Shown => self.highlighter.lines(&language, &text),
            Colour::Plain => harmless(&text).lines().map(|line| Line::of(line, Style::new())).collect(),
        };
        let indent = Line::of("  ", Style::new());
        for line in code {
            let room = self.room().saturating_sub(2);
            for line in line.wrapped(room) {
                let prefix = self.prefix();
                self.lines.push(line.indented(&indent).indented(&prefix));
            }
        }
    }

    /// Draws a table in columns if it fits, and each row as a line of cells if it does not.
    fn end_table(&mut self) {
        let Some(table) = self.table.take() else { return };
        let columns = table.rows.iter().map(Vec::len).max().unwrap_or_default();
        let width = |column: usize| table.rows.iter().filter_map(|row| row.get(column)).map(Line::width).max();
        let widths: Vec<usize> = (0..columns).filter_map(width).collect();
        let gap = 2;
        let fits = widths.iter().sum::<usize>() + gap * columns.saturating_sub(1) <= self.room();
        for (at, row) in table.rows.into_iter().enumerate() {
            let mut line = Line::default();
            for (cell, width) in row.into_iter().zip(&widths) {
                let missing = width.saturating_sub(cell.width()) + gap;
                line.append(cell);
                line.push(&if fits { " ".repeat(missing) } else { " | ".to_owned() }, Style::new());
            }
            self.line = line;
            self.end_line();
            if at == 0 && fits {
                let rules: Vec<String> = widths.iter().map(|width| "\u{2500}".repeat(*width)).collect();
                self.line.push(&rules.join("  "), Style::new().dimmed());
                self.end_line();
            }
        }
    }

    fn finish(mut self) -> Vec<Line> {
        self.end_started();
        while self.lines.last().is_some_and(Line::is_empty) {
            self.lines.pop();
        }
        self.lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(text: &str, width: usize) -> Vec<String> {
        let lines = lines(text, width, Colour::Plain, &mut Highlighter::default());
        lines.iter().map(|line| line.drawn(Colour::Plain)).collect()
    }

    #[test]
    fn paragraphs_lists_and_code_keep_their_shape() {
        let text = "# Title\nOne *two*\nthree `x`\n\n- a\n- b\n  - c\n\n1. x\n2. y\n\n```rust\nfn main() {}\n```\nend";
        assert_eq!(
            drawn(text, 40),
            [
                "# Title",
                "",
                "One *two*",
                "three `x`",
                "",
                "• a",
                "• b",
                "  • c",
                "",
                "1. x",
                "2. y",
                "",
                "  fn main() {}",
                "",
                "end"
            ]
        );
    }

    #[test]
    fn items_and_quotes_wrap_below_their_own_text() {
        assert_eq!(
            drawn("- one two three\n\n> four five six", 10),
            ["• one two", "  three", "", "│ four five", "│ six"]
        );
    }

    #[test]
    fn a_table_has_columns() {
        assert_eq!(drawn("| a | bb |\n|---|---|\n| ccc | d |", 40), ["a    bb", "───  ──", "ccc  d"]);
    }

    #[test]
    fn links_show_their_target_and_html_is_text() {
        assert_eq!(drawn("[a](http://b) <b>c</b>", 60), ["a (http://b) <b>c</b>"]);
        assert_eq!(drawn("<http://b>", 60), ["http://b"]);
        assert_eq!(drawn("![a](b)", 60), ["[image: a] (b)"]);
    }

    #[test]
    fn deep_nesting_stays_on_the_screen() {
        let text = format!("{}x", "> ".repeat(500));
        assert!(drawn(&text, 40).iter().all(|line| super::super::styled::text_width(line) <= 40));
    }
}

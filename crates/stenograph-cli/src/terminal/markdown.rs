//! Renders Markdown. It keeps the line breaks of the source, prints the targets of links, and prints HTML as text.

use anstyle::{AnsiColor, Style};
use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::highlight::Highlighter;
use super::styled::{Line, plain_lines};
use crate::output::Colour;

/// The longest text that is formatted, to bound the time. Longer text is printed as it is.
const SIZE_MAX: usize = 256 << 10;

/// The deepest nesting of lists and quotes that is drawn.
const DEPTH_MAX: usize = 8;

/// The lines of a text.
pub fn lines(text: &str, width: usize, colour: Colour, highlighter: &mut Highlighter) -> Vec<Line> {
    if text.len() > SIZE_MAX {
        return plain_lines(text).into_iter().flat_map(|line| line.wrapped(width)).collect();
    }
    let options = Options::ENABLE_TABLES | Options::ENABLE_TASKLISTS | Options::ENABLE_STRIKETHROUGH;
    let mut renderer = MarkdownRenderer {
        width,
        colour,
        highlighter,
        lines: Vec::new(),
        is_after_blank: false,
        line: Line::default(),
        styles: Vec::new(),
        prefixes: Vec::new(),
        lists: Vec::new(),
        code: None,
        links: Vec::new(),
        table: None,
    };
    for event in Parser::new_ext(text, options) {
        renderer.event(event);
    }
    renderer.finish()
}

/// The state while a text is drawn.
struct MarkdownRenderer<'h> {
    width: usize,
    colour: Colour,
    highlighter: &'h mut Highlighter,
    lines: Vec<Line>,
    /// Whether the last of the lines is blank.
    is_after_blank: bool,
    line: Line,
    styles: Vec<Style>,
    /// The open quotes and list items.
    prefixes: Vec<Prefix>,
    /// The next number of each open list; `None` for a list with bullets.
    lists: Vec<Option<u64>>,
    /// The language and the text of an open code block.
    code: Option<(String, String)>,
    /// The open links and images: the target of each, and the text that it shows.
    links: Vec<(String, String)>,
    table: Option<Table>,
}

/// What an open quote or list item puts before each of its lines.
struct Prefix {
    line: Line,
    /// The bullet or the number of an item. It replaces the prefix of the first line.
    marker: Option<Line>,
}

/// An open table.
#[derive(Default)]
struct Table {
    rows: Vec<Vec<Line>>,
    row: Vec<Line>,
}

impl MarkdownRenderer<'_> {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some((_, code)) => code.push_str(&text),
                None => {
                    self.show_in_links(&text);
                    self.push(&text);
                }
            },
            Event::Code(code) => {
                self.show_in_links(&code);
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
                self.ensure_blank_line();
                let rule = "\u{2500}".repeat(self.columns().min(40));
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
            Tag::Paragraph => self.separate_paragraph(),
            Tag::Heading { level, .. } => {
                self.ensure_blank_line();
                let style = Style::new().bold();
                self.styles.push(if level <= HeadingLevel::H2 { style.underline() } else { style });
                if self.colour == Colour::Plain {
                    self.push(&format!("{} ", "#".repeat(level as usize)));
                }
            }
            Tag::BlockQuote(_) => {
                self.separate_paragraph();
                let line = Line::of("\u{2502} ", Style::new().dimmed());
                self.prefixes.push(Prefix { line, marker: None });
            }
            Tag::CodeBlock(kind) => {
                self.flush_line();
                let language = match kind {
                    CodeBlockKind::Fenced(info) => info.split([' ', ',']).next().unwrap_or_default().to_owned(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((language, String::new()));
            }
            Tag::List(first) => {
                self.flush_line();
                if self.lists.is_empty() {
                    self.ensure_blank_line();
                }
                self.lists.push(first);
            }
            Tag::Item => {
                self.flush_line();
                let marker = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{}. ", *number - 1)
                    }
                    _ => "\u{2022} ".to_owned(),
                };
                let line = Line::of(&" ".repeat(marker.chars().count()), Style::new());
                self.prefixes.push(Prefix { line, marker: Some(Line::of(&marker, Style::new().dimmed())) });
            }
            Tag::Emphasis => self.start_emphasis(Style::new().italic(), "*"),
            Tag::Strong => self.start_emphasis(Style::new().bold(), "**"),
            Tag::Strikethrough => self.start_emphasis(Style::new().strikethrough(), "~~"),
            Tag::Link { dest_url, .. } => {
                self.links.push((dest_url.to_string(), String::new()));
                self.styles.push(self.style().underline());
            }
            Tag::Image { dest_url, .. } => {
                self.push("[image: ");
                self.links.push((dest_url.to_string(), String::new()));
            }
            Tag::Table(_) => {
                self.ensure_blank_line();
                self.table = Some(Table::default());
            }
            Tag::HtmlBlock => self.separate_paragraph(),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph => self.flush_line(),
            TagEnd::Heading(_) => {
                self.styles.pop();
                self.end_line();
            }
            TagEnd::BlockQuote(_) => {
                self.flush_line();
                self.prefixes.pop();
            }
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::List(_) => {
                self.lists.pop();
            }
            TagEnd::Item => {
                if self.has_marker() || !self.line.is_empty() {
                    self.end_line();
                }
                self.prefixes.pop();
            }
            TagEnd::Emphasis => self.end_emphasis("*"),
            TagEnd::Strong => self.end_emphasis("**"),
            TagEnd::Strikethrough => self.end_emphasis("~~"),
            TagEnd::Link => {
                self.styles.pop();
                if let Some((target, shown)) = self.links.pop()
                    && target != shown
                    && !target.is_empty()
                {
                    self.line.push(&format!(" ({target})"), Style::new().dimmed());
                }
            }
            TagEnd::Image => {
                let target = self.links.pop().map(|(target, _)| target).unwrap_or_default();
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

    /// Adds a text to what the open links and images show.
    fn show_in_links(&mut self, text: &str) {
        // A link can contain an image, and nothing else nests.
        self.links.iter_mut().for_each(|(_, shown)| shown.push_str(text));
    }

    /// Starts emphasis; without colour, its delimiters stay.
    fn start_emphasis(&mut self, style: Style, delimiter: &str) {
        if self.colour == Colour::Plain {
            self.push(delimiter);
        }
        let style = self.style() | style.get_effects();
        self.styles.push(style);
    }

    fn end_emphasis(&mut self, delimiter: &str) {
        self.styles.pop();
        if self.colour == Colour::Plain {
            self.push(delimiter);
        }
    }

    /// Whether the first line of the innermost item is not drawn yet.
    fn has_marker(&self) -> bool {
        self.prefixes.last().is_some_and(|prefix| prefix.marker.is_some())
    }

    /// The columns between the prefixes and the right edge.
    fn columns(&self) -> usize {
        let prefixes: usize = self.prefixes.iter().take(DEPTH_MAX).map(|prefix| prefix.line.width()).sum();
        self.width.saturating_sub(prefixes).max(10)
    }

    /// The prefix of the next line. The first line of an item has its marker.
    fn prefix(&mut self) -> Line {
        let mut line = Line::default();
        for (depth, prefix) in self.prefixes.iter_mut().enumerate() {
            let part = prefix.marker.take().unwrap_or_else(|| prefix.line.clone());
            if depth < DEPTH_MAX {
                line.append(part);
            }
        }
        line
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        self.is_after_blank = line.is_empty() && !self.has_marker();
        for line in line.wrapped(self.columns()) {
            let prefix = self.prefix();
            self.lines.push(line.indented(&prefix));
        }
    }

    /// Ends the line if something is on it.
    fn flush_line(&mut self) {
        if !self.line.is_empty() {
            self.end_line();
        }
    }

    /// Adds a blank line, except at the top or after another one. Inside a quote, it has the bar of the quote.
    fn ensure_blank_line(&mut self) {
        self.flush_line();
        if !self.is_after_blank && !self.lines.is_empty() {
            let prefix = self.prefix();
            let is_bare = prefix.text().trim().is_empty();
            self.lines.push(if is_bare { Line::default() } else { prefix });
            self.is_after_blank = true;
        }
    }

    /// Adds a blank line between paragraphs. The first paragraph of an item follows its marker.
    fn separate_paragraph(&mut self) {
        if !self.has_marker() {
            self.ensure_blank_line();
        }
    }

    fn end_code(&mut self) {
        let Some((language, text)) = self.code.take() else { return };
        if !self.has_marker() && self.lists.is_empty() {
            self.ensure_blank_line();
        }
        let code = match self.colour {
            Colour::Shown => self.highlighter.lines(&language, &text),
            Colour::Plain => plain_lines(&text),
        };
        let indent = Line::of("  ", Style::new());
        self.is_after_blank = false;
        for line in code {
            let columns = self.columns().saturating_sub(2);
            for line in line.wrapped(columns) {
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
        let fits = widths.iter().sum::<usize>() + gap * columns.saturating_sub(1) <= self.columns();
        for (at, row) in table.rows.into_iter().enumerate() {
            let mut line = Line::default();
            let mut gap_before = String::new();
            for (cell, width) in row.into_iter().zip(&widths) {
                line.push(&gap_before, Style::new());
                gap_before = if fits { " ".repeat(width.saturating_sub(cell.width()) + gap) } else { " | ".to_owned() };
                line.append(cell);
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
        self.flush_line();
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
    fn nested_items_and_quotes_keep_every_marker() {
        assert_eq!(drawn("1. - a\n2. - b", 40), ["1. • a", "2. • b"]);
        assert_eq!(drawn("- > q", 40), ["• │ q"]);
        assert_eq!(drawn("> a\n>\n> b", 40), ["│ a", "│", "│ b"]);
        assert_eq!(drawn("a\n\n<div>\nb\n</div>", 40), ["a", "", "<div>", "b", "</div>"]);
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
        assert_eq!(drawn("[![build](b.svg)](https://ci)", 60), ["[image: build] (b.svg) (https://ci)"]);
        assert_eq!(drawn("[`a.rs`](a.rs)", 60), ["`a.rs`"]);
    }

    #[test]
    fn deep_nesting_stays_on_the_screen() {
        let text = format!("{}x", "> ".repeat(500));
        assert!(drawn(&text, 40).iter().all(|line| super::super::styled::text_width(line) <= 40));
    }
}

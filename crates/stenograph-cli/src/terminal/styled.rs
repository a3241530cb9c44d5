//! Styled text: spans, lines, and how they wrap. Widths are those of graphemes on a terminal.

use anstyle::Style;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::output::{Colour, harmless};

/// A tab is this many columns.
pub const TAB: &str = "    ";

/// A text with a style. The text contains no control characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StyledText {
    text: String,
    style: Style,
}

/// A line of spans.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    spans: Vec<StyledText>,
}

/// The number of columns that a text takes.
pub fn text_width(text: &str) -> usize {
    text.width()
}

/// A text that fits a number of columns: cut between graphemes, with an ellipsis.
pub fn fitted(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut left = width.saturating_sub(1);
    for grapheme in text.graphemes(true) {
        if grapheme.width() > left {
            break;
        }
        left -= grapheme.width();
        out.push_str(grapheme);
    }
    out.push('\u{2026}');
    out
}

/// The end of a text that fits a number of columns, after an ellipsis if the beginning is cut.
pub fn fitted_end(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut left = width.saturating_sub(1);
    let fits = |grapheme: &&str| {
        let fits = grapheme.width() <= left;
        left = left.saturating_sub(grapheme.width());
        fits
    };
    let mut kept: Vec<&str> = text.graphemes(true).rev().take_while(fits).collect();
    kept.push("\u{2026}");
    kept.reverse();
    kept.concat()
}

/// The lines of a text, without styles.
pub fn plain_lines(text: &str) -> Vec<Line> {
    harmless(text).lines().map(|line| Line::of(line, Style::new())).collect()
}

impl StyledText {
    /// A span of a text from a transcript. Control characters are made visible, newlines too.
    pub fn new(text: &str, style: Style) -> StyledText {
        let text = harmless(text);
        let text = if text.contains(['\n', '\t']) {
            text.replace('\n', "\u{240a}").replace('\t', TAB)
        } else {
            text.into_owned()
        };
        StyledText { text, style }
    }
}

impl Line {
    /// A line of one span.
    pub fn of(text: &str, style: Style) -> Line {
        Line { spans: vec![StyledText::new(text, style)] }
    }

    /// Adds a span at the end.
    pub fn push(&mut self, text: &str, style: Style) {
        if !text.is_empty() {
            self.spans.push(StyledText::new(text, style));
        }
    }

    /// Adds the spans of another line.
    pub fn append(&mut self, mut other: Line) {
        self.spans.append(&mut other.spans);
    }

    /// Whether nothing is on the line.
    pub fn is_empty(&self) -> bool {
        self.spans.iter().all(|span| span.text.is_empty())
    }

    /// The number of columns it takes.
    pub fn width(&self) -> usize {
        self.spans.iter().map(|span| span.text.width()).sum()
    }

    /// The texts with their styles.
    pub fn spans(&self) -> impl Iterator<Item = (&str, Style)> {
        self.spans.iter().map(|span| (span.text.as_str(), span.style))
    }

    /// The text, without styles.
    pub fn text(&self) -> String {
        self.spans.iter().map(|span| span.text.as_str()).collect()
    }

    /// The line with this prefix.
    pub fn indented(self, prefix: &Line) -> Line {
        let mut line = prefix.clone();
        line.append(self);
        line
    }

    /// The line, cut to a number of columns with an ellipsis.
    pub fn fitted(self, width: usize) -> Line {
        if self.width() <= width {
            return self;
        }
        let mut out = Line::default();
        let mut left = width.saturating_sub(1);
        let mut last = Style::new();
        for span in self.spans {
            last = span.style;
            let mut text = String::new();
            for grapheme in span.text.graphemes(true) {
                let columns = grapheme.width();
                if columns > left {
                    left = 0;
                    break;
                }
                left -= columns;
                text.push_str(grapheme);
            }
            out.push(&text, span.style);
            if left == 0 {
                break;
            }
        }
        out.push("\u{2026}", last);
        out
    }

    /// The line as several that fit a number of columns. It breaks between words, or inside a word that is longer than a line.
    pub fn wrapped(self, width: usize) -> Vec<Line> {
        if self.width() <= width || width == 0 {
            return vec![self];
        }
        let text = self.text();
        let mut wrapper = Wrapper {
            spans: self.spans,
            span: 0,
            offset: 0,
            width,
            lines: Vec::new(),
            line: Line::default(),
            columns: 0,
        };
        let mut start = 0;
        for (end, _) in unicode_linebreak::linebreaks(&text) {
            wrapper.push_word(text.get(start..end).unwrap_or_default());
            start = end;
        }
        wrapper.finish()
    }

    /// The line with these ranges of its text in reverse video. The ranges are in order.
    pub fn marked(self, ranges: &[std::ops::Range<usize>]) -> Line {
        if ranges.is_empty() {
            return self;
        }
        let mut line = Line::default();
        let mut start = 0;
        for span in self.spans {
            let (at, end) = (start, start + span.text.len());
            start = end;
            let inside = ranges.iter().map(|range| range.start.clamp(at, end)..range.end.clamp(at, end));
            let mut done = at;
            for range in inside.filter(|range| !range.is_empty()) {
                for (part, style) in [(done..range.start, span.style), (range.clone(), span.style.invert())] {
                    let text = span.text.get(part.start - at..part.end - at).unwrap_or_default().to_owned();
                    line.spans.push(StyledText { text, style });
                }
                done = range.end;
            }
            let text = span.text.get(done - at..).unwrap_or_default().to_owned();
            line.spans.push(StyledText { text, style: span.style });
        }
        line.spans.retain(|span| !span.text.is_empty());
        line
    }

    /// The line as a terminal takes it.
    pub fn drawn(&self, colour: Colour) -> String {
        let mut out = String::new();
        for span in &self.spans {
            match colour {
                Colour::Shown if span.style != Style::new() => {
                    out.push_str(&format!("{}{}{}", span.style.render(), span.text, span.style.render_reset()));
                }
                Colour::Shown | Colour::Plain => out.push_str(&span.text),
            }
        }
        out.trim_end_matches(' ').to_owned()
    }
}

/// Wraps spans word by word. The words are those of the spans, in order, so every span is visited once.
struct Wrapper {
    spans: Vec<StyledText>,
    /// The span that comes next, and how many of its bytes are on lines.
    span: usize,
    offset: usize,
    width: usize,
    lines: Vec<Line>,
    line: Line,
    /// The columns that the line takes.
    columns: usize,
}

impl Wrapper {
    fn push_word(&mut self, word: &str) {
        let columns = word.trim_end().width();
        if self.columns > 0 && self.columns + columns > self.width {
            self.end_line();
        }
        if columns <= self.width {
            self.push_styled(word);
            return;
        }
        for grapheme in word.graphemes(true) {
            if self.columns > 0 && self.columns + grapheme.width() > self.width {
                self.end_line();
            }
            self.push_styled(grapheme);
        }
    }

    /// Copies the next text of the spans to the line, with its styles.
    fn push_styled(&mut self, text: &str) {
        self.columns += text.width();
        let mut missing = text.len();
        while missing > 0
            && let Some(span) = self.spans.get(self.span)
        {
            let end = span.text.len().min(self.offset + missing);
            let part = span.text.get(self.offset..end).unwrap_or_default();
            missing -= end - self.offset;
            match self.line.spans.last_mut() {
                Some(last) if last.style == span.style => last.text.push_str(part),
                _ => self.line.spans.push(StyledText { text: part.to_owned(), style: span.style }),
            }
            (self.span, self.offset) = if end == span.text.len() { (self.span + 1, 0) } else { (self.span, end) };
        }
    }

    fn end_line(&mut self) {
        let mut line = std::mem::take(&mut self.line);
        // The space between two words is not shown at the end of a line.
        if let Some(last) = line.spans.last_mut() {
            last.text.truncate(last.text.trim_end_matches(' ').len());
        }
        self.lines.push(line);
        self.columns = 0;
    }

    fn finish(mut self) -> Vec<Line> {
        if !self.line.is_empty() {
            self.end_line();
        }
        self.lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrapped(text: &str, width: usize) -> Vec<String> {
        let lines = Line::of(text, Style::new()).wrapped(width);
        lines.iter().map(|line| line.drawn(Colour::Plain)).collect()
    }

    #[test]
    fn the_end_of_a_long_path_is_kept() {
        assert_eq!(fitted_end("~/a/b.jsonl", 11), "~/a/b.jsonl");
        assert_eq!(fitted_end("~/folder/b.jsonl", 9), "\u{2026}/b.jsonl");
        assert_eq!(fitted_end("漢字漢字", 5), "\u{2026}漢字");
    }

    #[test]
    fn lines_break_between_words() {
        assert_eq!(wrapped("one two three", 8), ["one two", "three"]);
        assert_eq!(wrapped("exactly ten", 11), ["exactly ten"]);
        assert_eq!(wrapped("abcdefghij kl", 4), ["abcd", "efgh", "ij", "kl"]);
    }

    #[test]
    fn a_line_of_very_many_spans_wraps_in_one_pass() {
        let mut line = Line::default();
        for number in 0..200_000 {
            line.push("ab", if number % 2 == 0 { Style::new().bold() } else { Style::new() });
        }
        let lines = line.wrapped(80);
        assert_eq!((lines.len(), lines[0].width()), (5_000, 80));
    }

    #[test]
    fn wide_and_joined_characters_keep_their_width() {
        assert_eq!(wrapped("漢字漢字", 4), ["漢字", "漢字"]);
        assert_eq!(wrapped("👨‍👩‍👧👨‍👩‍👧", 2), ["👨‍👩‍👧", "👨‍👩‍👧"]);
        assert_eq!(fitted("漢字漢字", 5), "漢字…");
        assert_eq!(Line::of("漢字漢字", Style::new()).fitted(6).drawn(Colour::Plain), "漢字…");
    }

    #[test]
    fn styles_survive_a_wrap() {
        let mut line = Line::of("plain ", Style::new());
        line.push("bold words", Style::new().bold());
        let lines = line.wrapped(11);
        assert_eq!(
            lines.iter().map(|line| line.drawn(Colour::Shown)).collect::<Vec<_>>(),
            ["plain \u{1b}[1mbold\u{1b}[0m", "\u{1b}[1mwords\u{1b}[0m"]
        );
    }

    #[test]
    fn marks_keep_the_text_and_cross_spans() {
        let mut line = Line::of("one ", Style::new());
        line.push("two", Style::new().bold());
        let marked = line.marked(&[0..1, 2..5]);
        assert_eq!(marked.text(), "one two");
        assert_eq!(
            marked.drawn(Colour::Shown),
            "\u{1b}[7mo\u{1b}[0mn\u{1b}[7me \u{1b}[0m\u{1b}[1m\u{1b}[7mt\u{1b}[0m\u{1b}[1mwo\u{1b}[0m"
        );
    }

    #[test]
    fn no_control_character_gets_into_a_span() {
        let drawn = Line::of("a\x1b[2J\u{202e}\tb\nc", Style::new()).drawn(Colour::Shown);
        assert_eq!(drawn, "a␛[2J\\u{202e}    b␊c");
    }
}

//! Rows of cells for people: columns as wide as what is in them, the last one cut where the terminal ends. What is in a cell must be
//! harmless already.

use std::io::IsTerminal;

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// How wide a line becomes where nobody says how wide the screen is.
const WIDTH_USUAL: usize = 120;

/// The column that takes what is left is never narrower.
const LAST_WIDTH_MIN: usize = 20;

/// Which side of a column its cells stand at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// The lines of a table, its heading first. The last column takes what is left of the width.
pub fn lines<const N: usize>(headings: [(&str, Side); N], rows: &[[String; N]], width: usize) -> Vec<String> {
    let mut widths = headings.map(|(heading, _)| columns(heading));
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(columns(cell));
        }
    }
    if let Some((last, before)) = widths.split_last_mut() {
        let taken: usize = before.iter().map(|width| width + 2).sum();
        *last = (*last).min(width.saturating_sub(taken).max(LAST_WIDTH_MIN));
    }
    let line = |cells: &[String; N]| {
        let cells = cells.iter().zip(widths).zip(headings).map(|((cell, width), (_, side))| {
            let cell = cut(cell, width);
            let gap = " ".repeat(width.saturating_sub(columns(&cell)));
            match side {
                Side::Left => format!("{cell}{gap}"),
                Side::Right => format!("{gap}{cell}"),
            }
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let heading = headings.map(|(heading, _)| heading.to_owned());
    std::iter::once(&heading).chain(rows).map(line).collect()
}

/// How wide the screen is; without limit when what is written goes elsewhere.
pub fn screen_width() -> usize {
    if !std::io::stdout().is_terminal() {
        return usize::MAX;
    }
    #[cfg(unix)]
    if let Ok(size) = rustix::termios::tcgetwinsize(std::io::stdout())
        && size.ws_col > 0
    {
        return usize::from(size.ws_col);
    }
    let named = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    named.filter(|columns| *columns > 0).unwrap_or(WIDTH_USUAL)
}

/// The text in so many columns, with an ellipsis where it was cut.
pub fn cut(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let mut left = width.saturating_sub(1);
    let fits = |char: &char| {
        let wide = column(*char);
        let fits = wide <= left;
        left = left.saturating_sub(wide);
        fits
    };
    text.chars().take_while(fits).chain(['\u{2026}']).collect()
}

/// The text in lines of so many columns, broken at spaces where there are some.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let (mut lines, mut line, mut taken) = (Vec::new(), String::new(), 0);
    // After the last space of the line.
    let mut space = 0;
    for char in text.chars() {
        let wide = column(char);
        if taken + wide > width && !line.is_empty() {
            let kept = if space > 0 { space } else { line.len() };
            let rest = line.split_off(kept);
            lines.push(std::mem::replace(&mut line, rest).trim_end().to_owned());
            (taken, space) = (columns(&line), 0);
        }
        line.push(char);
        taken += wide;
        if char == ' ' {
            space = line.len();
        }
    }
    lines.push(line.trim_end().to_owned());
    lines
}

/// How many columns a text takes.
pub fn columns(text: &str) -> usize {
    text.width()
}

fn column(char: char) -> usize {
    char.width().unwrap_or(0)
}

/// How long ago, in the largest unit that fits.
pub fn ago(ms: i64) -> String {
    let seconds = ms.max(0) / 1000;
    let (number, unit) = match seconds {
        0..60 => (seconds, "s"),
        60..3600 => (seconds / 60, "m"),
        3600..86_400 => (seconds / 3600, "h"),
        _ => (seconds / 86_400, "d"),
    };
    format!("{number}{unit} ago")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        assert_eq!(
            [0, 59_999, 60_000, 7_200_000, 200_000_000].map(ago),
            ["0s ago", "59s ago", "1m ago", "2h ago", "2d ago"]
        );
    }

    #[test]
    fn a_long_text_is_broken_at_spaces_and_long_words_where_the_screen_ends() {
        assert_eq!(wrapped("one two three", 8), ["one two", "three"]);
        assert_eq!(wrapped("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(wrapped("数据库", 5), ["数据", "库"]);
        assert_eq!((wrapped("", 5), wrapped("ab", 0)), (vec![String::new()], vec!["a".to_owned(), "b".to_owned()]));
    }

    #[test]
    fn the_last_column_ends_where_the_screen_does() {
        let rows =
            [["a".to_owned(), "1".to_owned(), "x".repeat(50)], ["bb".to_owned(), "22".to_owned(), "数据库".repeat(9)]];
        let lines = lines([("ID", Side::Left), ("N", Side::Right), ("TITLE", Side::Left)], &rows, 30);
        assert_eq!(lines[0], "ID   N  TITLE");
        assert_eq!(lines[1], format!("a    1  {}…", "x".repeat(21)));
        assert_eq!(lines[2], format!("bb  22  {}数…", "数据库".repeat(3)));
    }
}

//! Tables for people: each column is as wide as its widest cell; the terminal's width limits the last one. The caller makes
//! cell texts harmless.

use std::io::IsTerminal;
pub use stenograph::render::{ago, span};

use unicode_width::UnicodeWidthStr as _;

use crate::terminal::fitted;

/// The width of a line if the terminal's width is unknown.
const WIDTH_DEFAULT: usize = 120;

/// The last column has at least this width, unless the other columns are at their minimum.
const LAST_WIDTH_MIN: usize = 20;

/// A column of words is not made narrower than this to give the last column room.
const WORD_WIDTH_MIN: usize = 8;

/// The alignment of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// For words.
    Left,
    /// For numbers.
    Right,
}

/// Formats a table, heading first. The last column takes the remaining width.
pub fn lines<const N: usize>(headings: [(&str, Align); N], rows: &[[String; N]], width: usize) -> Vec<String> {
    lines_at_least(headings, rows, headings.map(|(heading, _)| display_width(heading)), width)
}

/// The same, with columns of at least these widths.
pub fn lines_at_least<const N: usize>(
    headings: [(&str, Align); N],
    rows: &[[String; N]],
    mut widths: [usize; N],
    width: usize,
) -> Vec<String> {
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(display_width(cell));
        }
    }
    if let Some((last, before)) = widths.split_last_mut() {
        let taken = |before: &[usize]| before.iter().map(|width| width + 2).sum::<usize>();
        let wanted = (*last).min(LAST_WIDTH_MIN);
        while taken(before).saturating_add(wanted) > width {
            let words = before.iter_mut().zip(headings).filter(|(_, (_, align))| *align == Align::Left);
            let widest = words.map(|(width, _)| width).max().filter(|width| **width > WORD_WIDTH_MIN);
            let Some(widest) = widest else { break };
            *widest -= 1;
        }
        *last = (*last).min(width.saturating_sub(taken(before)));
    }
    let line = |cells: &[String; N]| {
        let cells = cells.iter().zip(widths).zip(headings).map(|((cell, width), (_, align))| {
            let cell = truncated(cell, width);
            let gap = " ".repeat(width.saturating_sub(display_width(&cell)));
            match align {
                Align::Left => format!("{cell}{gap}"),
                Align::Right => format!("{gap}{cell}"),
            }
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let heading = headings.map(|(heading, _)| heading.to_owned());
    std::iter::once(&heading).chain(rows).map(line).collect()
}

/// The width of the terminal; unlimited if standard output is not a terminal.
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
    #[cfg(not(unix))]
    if let Ok((columns, _)) = crossterm::terminal::size() {
        return usize::from(columns.max(1));
    }
    let named = std::env::var("COLUMNS").ok().and_then(|display_width| display_width.parse().ok());
    named.filter(|display_width| *display_width > 0).unwrap_or(WIDTH_DEFAULT)
}

/// Cuts a text to `width` columns, with an ellipsis.
pub fn truncated(text: &str, width: usize) -> String {
    fitted(text, width)
}

/// The number of terminal columns that a text takes.
pub fn display_width(text: &str) -> usize {
    text.width()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_row_is_wider_than_the_screen() {
        let row = ["x".repeat(10), "y".repeat(14), "z".repeat(14), "100d ago".to_owned(), "word ".repeat(20)];
        let headings = ["SESSION", "AGENT", "PROJECT", "LAST", "TITLE"].map(|heading| (heading, Align::Left));
        for width in [60, 80, 120] {
            let widest =
                lines(headings, std::slice::from_ref(&row), width).iter().map(|line| display_width(line)).max();
            assert!(widest.is_some_and(|widest| widest <= width), "{width}: {widest:?}");
        }
    }

    #[test]
    fn the_width_of_the_screen_limits_the_last_column() {
        let rows =
            [["a".to_owned(), "1".to_owned(), "x".repeat(50)], ["bb".to_owned(), "22".to_owned(), "数据库".repeat(9)]];
        let lines = lines([("ID", Align::Left), ("N", Align::Right), ("TITLE", Align::Left)], &rows, 30);
        assert_eq!(lines[0], "ID   N  TITLE");
        assert_eq!(lines[1], format!("a    1  {}…", "x".repeat(21)));
        assert_eq!(lines[2], format!("bb  22  {}数…", "数据库".repeat(3)));
    }
}

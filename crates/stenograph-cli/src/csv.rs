//! Lines of comma-separated values: for spreadsheets, which run what looks like a formula, and for programs.

use crate::output::harmless;

/// A line of these cells.
pub fn line<S: AsRef<str>>(cells: impl IntoIterator<Item = S>) -> String {
    cells.into_iter().map(|cell| quoted(cell.as_ref())).collect::<Vec<_>>().join(",")
}

/// A cell: quoted where it must be, on one line, and nothing that a spreadsheet would run.
fn quoted(text: &str) -> String {
    let text = harmless(text).replace(['\n', '\t'], " ");
    let is_number = text.parse::<f64>().is_ok();
    let text = if !is_number && text.starts_with(['=', '+', '-', '@']) { format!("'{text}") } else { text };
    if text.contains([',', '"']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_cell_is_run_or_ends_it() {
        assert_eq!(
            line(["a,b", "say \"x\"", "=1+1", "-3", "-x", "two\nlines"]),
            "\"a,b\",\"say \"\"x\"\"\",'=1+1,-3,'-x,two lines"
        );
        // Nor does it do anything to a terminal, or to a reader's eyes.
        assert_eq!(line(["\u{1b}[2J\u{202e}x"]), "␛[2J\\u{202e}x");
    }
}

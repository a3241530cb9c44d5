//! Lines of comma-separated values, for programs and for spreadsheets, which execute formulas.

use crate::output::harmless;

/// Formats one line.
pub fn line<S: AsRef<str>>(cells: impl IntoIterator<Item = S>) -> String {
    cells.into_iter().map(|cell| quoted(cell.as_ref())).collect::<Vec<_>>().join(",")
}

/// Formats a cell: on one line, quoted if necessary, and never a formula.
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
    fn a_cell_is_never_a_formula_and_never_ends_early() {
        assert_eq!(
            line(["a,b", "say \"x\"", "=1+1", "-3", "-x", "two\nlines"]),
            "\"a,b\",\"say \"\"x\"\"\",'=1+1,-3,'-x,two lines"
        );
        // Control characters reach neither a terminal nor a reader.
        assert_eq!(line(["\u{1b}[2J\u{202e}x"]), "␛[2J\\u{202e}x");
    }
}

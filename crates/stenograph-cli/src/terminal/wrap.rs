//! Breaks lines of plain text between words where they are wider than the terminal. The rest of a line is indented below its
//! beginning. Lines for programs, and commands and paths that people copy, stay whole.

use std::borrow::Cow;

use super::styled::text_width;

/// How much deeper the rest of a line is indented.
const HANGING: usize = 2;

/// A text with at most `width` columns per line, as far as words allow. It may contain our own colours.
pub fn wrapped_text(text: &str, width: usize) -> Cow<'_, str> {
    let fits = |line: &str| anstream_width(line) <= width;
    if text.lines().all(fits) {
        return Cow::Borrowed(text);
    }
    let lines: Vec<Cow<'_, str>> = text.split('\n').map(|line| wrapped_line(line, width)).collect();
    Cow::Owned(lines.join("\n"))
}

fn anstream_width(line: &str) -> usize {
    text_width(&anstream::adapter::strip_str(line).to_string())
}

fn wrapped_line(line: &str, width: usize) -> Cow<'_, str> {
    let plain = anstream::adapter::strip_str(line).to_string();
    let content = plain.trim_start();
    let is_whole = ["{", "[", "steno ", "$ ", "cd ", "/"].iter().any(|begin| content.starts_with(begin));
    if is_whole || text_width(&plain) <= width {
        return Cow::Borrowed(line);
    }
    let indent = (plain.len() - content.len() + HANGING).min(width / 2);
    let mut out = String::with_capacity(line.len() + 16);
    let mut used = 0;
    for word in line.split_inclusive(' ') {
        let length = anstream_width(word.trim_end_matches(' '));
        if used + length > width && used > indent {
            out.truncate(out.trim_end_matches(' ').len());
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            used = indent;
        }
        out.push_str(word);
        used += anstream_width(word);
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_of_a_line_is_indented_below_its_beginning() {
        assert_eq!(wrapped_text("one two three", 20), "one two three");
        assert_eq!(wrapped_text("  one two three four", 12), "  one two\n    three\n    four");
        assert_eq!(wrapped_text("\u{1b}[1mone two\u{1b}[0m three", 8), "\u{1b}[1mone two\u{1b}[0m\n  three");
        assert_eq!(wrapped_text("漢字 漢字 漢字", 9), "漢字 漢字\n  漢字");
    }

    #[test]
    fn lines_to_copy_and_lines_for_programs_stay_whole() {
        for line in
            ["{\"a\": 1, \"b\": 2}", "  steno show /a/b --event 1,2", "/a path/with spaces", "one-long-word-here"]
        {
            assert_eq!(wrapped_text(line, 10), line);
        }
    }
}

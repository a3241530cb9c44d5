//! The lines of a file that a tool shows, without what the tool adds: line numbers, and text before and after. The name of
//! the tool does not matter: numbers that count up are line numbers.

/// Lines of a file as they were shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shown {
    /// The first line, from 1.
    pub at: usize,
    /// The lines, each with its newline.
    pub text: String,
    /// Whether other text follows, for example that there are more lines.
    pub remark: bool,
}

impl Shown {
    /// The lines without an empty one at the end: tools that split a text at its newlines number the empty text after the
    /// last one.
    pub fn without_empty_end(&self) -> &str {
        let is_empty = self.text.ends_with("\n\n");
        self.text.strip_suffix('\n').filter(|_| is_empty).unwrap_or(&self.text)
    }
}

/// The most lines that a tool may print before those of the file.
const HEAD_LINES_MAX: usize = 4;

/// The lines in a numbered listing; `None` if there are none.
pub(super) fn numbered(listing: &str) -> Option<Shown> {
    let mut lines = listing.split_inclusive('\n').enumerate();
    let (at, first, sign) = lines.by_ref().take(HEAD_LINES_MAX).find_map(|(_, line)| {
        let (number, sign, rest) = number(line)?;
        Some((number, rest, sign))
    })?;
    let mut text = String::with_capacity(listing.len());
    push(&mut text, first);
    let (mut next, mut remark) = (at + 1, false);
    for (_, line) in lines {
        match number(line).filter(|(number, found, _)| *number == next && *found == sign) {
            Some((_, _, rest)) if !remark => {
                push(&mut text, rest);
                next += 1;
            }
            Some(_) | None => remark |= !line.trim().is_empty(),
        }
    }
    // A single line that begins with a number may be anything.
    (next > at + 1 || at == 1).then_some(Shown { at, text, remark })
}

fn push(text: &mut String, line: &str) {
    text.push_str(line.strip_suffix('\n').unwrap_or(line));
    text.push('\n');
}

/// The number before a line, the separator, and the line.
fn number(line: &str) -> Option<(usize, &'static str, &str)> {
    const SIGNS: [&str; 5] = ["\u{2192}", "\t", "| ", "|", ": "];
    let start = line.trim_start_matches([' ', 'L']);
    let digits = start.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = start.split_at_checked(digits).filter(|(number, _)| !number.is_empty() && number.len() < 9)?;
    let sign = SIGNS.into_iter().find(|sign| rest.starts_with(sign))?;
    // A separator at the end of a line, where white space was trimmed.
    Some((number.parse().ok()?, if sign == "|" { "| " } else { sign }, rest.strip_prefix(sign)?))
}

/// A listing without numbers, if it may be the file itself. Wrapped or cut text is not.
pub(super) fn plain(listing: &str) -> Option<&str> {
    const MARKS: [&str; 6] = ["truncated", "[...", "... (", "<system", "lines omitted", "<file"];
    let edge = |from: &str| MARKS.iter().any(|mark| from.contains(mark));
    let head = crate::text::beginning(listing, 200);
    let tail = crate::text::ending(listing, 400);
    let is_wrapped =
        head.trim_start().starts_with(['{', '[', '<']) || head.starts_with("File ") || head.starts_with("Error");
    (!is_wrapped && !edge(head) && !edge(tail) && listing.ends_with('\n')).then_some(listing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_taken_off_as_tools_put_them_on() {
        for listing in [
            "     7→fn main() {\n     8→\n     9→}",
            "7\tfn main() {\n8\t\n9\t}\n",
            "Here's the result of running `cat -n` on a.rs:\n     7\tfn main() {\n     8\t\n     9\t}\n",
            "L7: fn main() {\nL8: \nL9: }",
            "<file>\n00007| fn main() {\n00008|\n00009| }\n",
        ] {
            let shown = numbered(listing).unwrap();
            assert_eq!((shown.at, shown.text.as_str(), shown.remark), (7, "fn main() {\n\n}\n", false), "{listing}");
        }
    }

    #[test]
    fn an_empty_text_after_the_last_newline_is_not_a_line() {
        assert_eq!(numbered("1→a\n2→b\n3→").unwrap().without_empty_end(), "a\nb\n");
    }

    #[test]
    fn text_after_the_listing_is_not_part_of_the_file() {
        let shown = numbered("1→a\n2→b\n\n<system-reminder>\n3→c\n").unwrap();
        assert_eq!((shown.text.as_str(), shown.remark), ("a\nb\n", true));
    }

    #[test]
    fn text_without_numbers_is_not_a_numbered_listing() {
        assert_eq!(numbered("fn main() {\n}\n"), None);
        assert_eq!(numbered("404: not found\nmore\n"), None);
        assert_eq!(plain("a\nb\n"), Some("a\nb\n"));
        assert_eq!(plain("{\"output\":1}\n"), None);
        assert_eq!(plain("a\n[... 3 lines truncated]\n"), None);
    }
}

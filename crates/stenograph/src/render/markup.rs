//! Markdown text that stays in its place. Lists, emphasis and code still look like Markdown, but nothing in a text can open
//! or close anything around it: headings become smaller than those of the document, HTML is shown as text, code gets a new
//! fence that nothing inside can close, and link definitions (which apply to the whole document) and images (which are
//! fetched when the document is viewed) become literal text.

use std::borrow::Cow;

use super::harmless::{harmless, harmless_line};

/// Headings of a text move down by this many levels, below the headings of the document.
const HEADING_SHIFT: usize = 4;
const HEADING_LEVEL_MAX: usize = 6;

/// The length of the shortest fence.
const FENCE_LEN_MIN: usize = 3;

/// The longest name of a language.
const LANGUAGE_LEN_MAX: usize = 30;

/// A line that is indented to this column is code.
const CODE_INDENT: usize = 4;

/// Writes the text of a message as Markdown.
pub fn prose(text: &str, out: &mut String) {
    let text = harmless(text);
    let mut lines = text.lines().peekable();
    let (mut is_after_blank, mut is_in_list) = (true, false);
    while let Some(line) = lines.next() {
        if let Some(fence) = Fence::opened_by(line) {
            let mut inside = Vec::new();
            for line in lines.by_ref() {
                if fence.is_closed_by(line) {
                    break;
                }
                inside.push(without_indent(line, fence.indent));
            }
            code(fence.language, &inside.join("\n"), out);
            is_after_blank = false;
            continue;
        }
        let is_blank = line.trim().is_empty();
        if is_after_blank && !is_blank && !is_in_list && indent(line) >= CODE_INDENT {
            let mut inside = vec![without_indent(line, CODE_INDENT)];
            while let Some(line) = lines.next_if(|line| line.trim().is_empty() || indent(line) >= CODE_INDENT) {
                inside.push(without_indent(line, CODE_INDENT));
            }
            code("", inside.join("\n").trim_end(), out);
            out.push('\n');
            continue;
        }
        let marks = marks(line);
        is_in_list = match is_blank {
            true => is_in_list,
            false => marks.has_item || (is_in_list && indent(line) > 0),
        };
        is_after_blank = is_blank;
        out.push_str(line.get(..marks.length).unwrap_or_default());
        rest_of_line(line.get(marks.length..).unwrap_or_default(), out);
        out.push('\n');
    }
}

/// Writes code unchanged, in a fence that is longer than any fence inside.
pub fn code(language: &str, text: &str, out: &mut String) {
    let text = harmless(text);
    let fence = "`".repeat(FENCE_LEN_MIN.max(longest_run(&text) + 1));
    let is_language = |char: char| char.is_ascii_alphanumeric() || matches!(char, '+' | '-' | '_' | '.' | '#');
    let language = if language.len() <= LANGUAGE_LEN_MAX && language.chars().all(is_language) { language } else { "" };
    out.push_str(&fence);
    out.push_str(language);
    out.push('\n');
    out.push_str(&text);
    if !text.is_empty() && !text.ends_with('\n') {
        out.push('\n');
    }
    out.push_str(&fence);
    out.push('\n');
}

/// A short text as code on one line.
pub fn code_words(text: &str) -> String {
    let text = harmless_line(text);
    if text.trim().is_empty() {
        return "` `".to_owned();
    }
    let fence = "`".repeat(longest_run(&text) + 1);
    let pad = if text.starts_with(['`', ' ']) || text.ends_with(['`', ' ']) { " " } else { "" };
    format!("{fence}{pad}{text}{pad}{fence}")
}

/// A short text as literal text on one line, also in the cell of a table.
pub fn words(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for char in harmless_line(text).chars() {
        match char {
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '#' | '!' | '$' => {
                out.push('\\');
                out.push(char);
            }
            _ => out.push(char),
        }
    }
    out
}

/// The fence around a piece of code.
struct Fence<'a> {
    mark: char,
    length: usize,
    indent: usize,
    language: &'a str,
}

impl<'a> Fence<'a> {
    /// Any indentation is allowed: a line that Markdown does not read as a fence is read and written as one here.
    fn opened_by(line: &'a str) -> Option<Fence<'a>> {
        let inner = line.trim_start_matches([' ', '\t']);
        let mark = inner.chars().next().filter(|char| matches!(char, '`' | '~'))?;
        let info = inner.trim_start_matches(mark);
        let length = inner.len() - info.len();
        let is_fence = length >= FENCE_LEN_MIN && !(mark == '`' && info.contains('`'));
        let language = info.split_whitespace().next().unwrap_or_default();
        is_fence.then(|| Fence { mark, length, indent: indent(line), language })
    }

    fn is_closed_by(&self, line: &str) -> bool {
        let inner = line.trim();
        inner.len() >= self.length && inner.chars().all(|char| char == self.mark)
    }
}

/// The indentation of a line, in columns.
fn indent(line: &str) -> usize {
    let white = line.chars().take_while(|char| matches!(char, ' ' | '\t'));
    white.fold(0, |column, char| if char == '\t' { column / 4 * 4 + 4 } else { column + 1 })
}

/// The line without the given number of columns of white space, or without all it has.
fn without_indent(line: &str, columns: usize) -> Cow<'_, str> {
    let mut rest = line;
    let mut column = 0;
    while column < columns {
        let Some(char) = rest.chars().next().filter(|char| matches!(char, ' ' | '\t')) else { break };
        column = if char == '\t' { column / 4 * 4 + 4 } else { column + 1 };
        rest = rest.get(1..).unwrap_or_default();
    }
    // A tab may be wider than requested.
    match column.checked_sub(columns) {
        Some(over) if over > 0 => Cow::Owned(format!("{}{rest}", " ".repeat(over))),
        Some(_) | None => Cow::Borrowed(rest),
    }
}

/// The prefix of a line: white space, and the markers of quotes and lists.
struct Marks {
    length: usize,
    has_item: bool,
}

fn marks(line: &str) -> Marks {
    let mut found = Marks { length: 0, has_item: false };
    loop {
        let rest = line.get(found.length..).unwrap_or_default();
        let inner = rest.trim_start_matches([' ', '\t']);
        found.length += rest.len() - inner.len();
        let is_end = |rest: &str| rest.is_empty() || rest.starts_with([' ', '\t']);
        let digits = inner.bytes().take_while(u8::is_ascii_digit).count();
        let after = |length: usize| inner.get(length..).unwrap_or_default();
        let length = match inner.bytes().next() {
            Some(b'>') => 1,
            Some(b'-' | b'*' | b'+') if is_end(after(1)) && !after(1).trim().is_empty() => 1,
            Some(b'0'..=b'9') if digits <= 9 && after(digits).starts_with(['.', ')']) && is_end(after(digits + 1)) => {
                digits + 1
            }
            Some(_) | None => return found,
        };
        found.has_item |= !inner.starts_with('>');
        found.length += length;
    }
}

/// The text of a line after its prefix.
fn rest_of_line(rest: &str, out: &mut String) {
    let trimmed = rest.trim_end();
    let is_all = |mark: char| !trimmed.is_empty() && trimmed.chars().all(|char| char == mark);
    let hashes = rest.len() - rest.trim_start_matches('#').len();
    if hashes > 0 {
        let after = rest.get(hashes..).unwrap_or_default();
        if hashes > HEADING_LEVEL_MAX || !(after.is_empty() || after.starts_with([' ', '\t'])) {
            out.push('\\');
            out.push_str(rest.get(..hashes).unwrap_or_default());
        } else {
            out.push_str(&"#".repeat((hashes + HEADING_SHIFT).min(HEADING_LEVEL_MAX)));
        }
        return inline(after, out);
    }
    if is_all('-') && trimmed.len() >= 3 {
        // A line of hyphens would turn the line above it into a heading; a line of asterisks is only a rule.
        return out.push_str("***");
    }
    if is_all('-') || is_all('=') || rest.starts_with("~~~") || rest.starts_with(":::") || may_define(rest) {
        out.push('\\');
        let first = rest.chars().next().map_or(0, char::len_utf8);
        out.push_str(rest.get(..first).unwrap_or_default());
        return inline(rest.get(first..).unwrap_or_default(), out);
    }
    inline(rest, out);
}

/// Whether a line may begin the definition of a link or a footnote: its label ends before a colon, or on a later line.
fn may_define(rest: &str) -> bool {
    let Some(name) = rest.strip_prefix('[') else { return false };
    let mut is_escaped = false;
    for (at, char) in name.char_indices() {
        match char {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            ']' => return name.get(at + 1..).is_some_and(|after| after.starts_with(':')),
            _ => {}
        }
    }
    true
}

/// The text of a line. Code stays code. Every backtick that is not part of code on this line is escaped, so that it cannot
/// pair with another.
fn inline(text: &str, out: &mut String) {
    let mut rest = text;
    while let Some(char) = rest.chars().next() {
        let mut length = char.len_utf8();
        let next = rest.get(length..).and_then(|rest| rest.chars().next());
        match char {
            '\\' if next.is_some_and(|next| next.is_ascii_punctuation()) => {
                length += 1;
                out.push_str(rest.get(..length).unwrap_or_default());
            }
            '`' => {
                let run = rest.len() - rest.trim_start_matches('`').len();
                match closing(rest, run) {
                    Some(end) => {
                        length = end;
                        out.push_str(rest.get(..end).unwrap_or_default());
                    }
                    None => {
                        length = run;
                        out.push_str(&"\\`".repeat(run));
                    }
                }
            }
            // A comparison or an arrow: it cannot begin markup.
            '<' if next.is_none_or(|next| matches!(next, ' ' | '=' | '-' | '<' | '0'..='9')) => out.push('<'),
            '<' => out.push_str("&lt;"),
            '!' if next == Some('[') => {
                length += 1;
                out.push_str("!\\[");
            }
            _ => out.push(char),
        }
        rest = rest.get(length..).unwrap_or_default();
    }
}

/// The end of the code that a run of backticks begins.
fn closing(text: &str, run: usize) -> Option<usize> {
    let mut at = run;
    while let Some(found) = text.get(at..).and_then(|rest| rest.find('`')) {
        let start = at + found;
        let rest = text.get(start..).unwrap_or_default();
        let length = rest.len() - rest.trim_start_matches('`').len();
        at = start + length;
        if length == run {
            return Some(at);
        }
    }
    None
}

/// The longest run of backticks in a text.
fn longest_run(text: &str) -> usize {
    let (mut longest, mut run) = (0, 0);
    for byte in text.bytes() {
        run = if byte == b'`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(text: &str) -> String {
        let mut out = String::new();
        prose(text, &mut out);
        out
    }

    #[test]
    fn headings_are_smaller_than_those_of_the_document() {
        for (said, expected) in [
            ("# One", "##### One\n"),
            ("### User (Turn 9)", "###### User (Turn 9)\n"),
            ("> - ## deep", "> - ###### deep\n"),
            ("#hash", "\\#hash\n"),
            ("One\n===", "One\n\\===\n"),
            ("Two\n---", "Two\n***\n"),
            ("Two\n-", "Two\n\\-\n"),
        ] {
            assert_eq!(written(said), expected, "{said}");
        }
    }

    #[test]
    fn markup_of_html_is_text() {
        assert_eq!(written("<script>x</script> </details>"), "&lt;script>x&lt;/script> &lt;/details>\n");
        assert_eq!(written("<!-- a <?b"), "&lt;!-- a &lt;?b\n");
        assert_eq!(written("a < b, a<=b, a <- b, 1<<2, x<3"), "a < b, a<=b, a <- b, 1<<2, x<3\n");
        assert_eq!(written("\\<b>"), "\\<b>\n");
        assert_eq!(written("`Vec<T>` and ``a ` <b>``"), "`Vec<T>` and ``a ` <b>``\n");
    }

    #[test]
    fn a_backtick_without_a_partner_pairs_with_nothing() {
        assert_eq!(written("a ` b\n`<i>` c"), "a \\` b\n`<i>` c\n");
        assert_eq!(written("\\`<i>`"), "\\`&lt;i>\\`\n");
        assert_eq!(written("> ```\n> <b>"), "> \\`\\`\\`\n> &lt;b>\n");
    }

    #[test]
    fn code_stands_in_a_fence_that_nothing_inside_closes() {
        assert_eq!(written("```rust\nlet a = \"````\";\n```\nafter"), "`````rust\nlet a = \"````\";\n`````\nafter\n");
        assert_eq!(written("1. so\n\n   ~~~ a`b c\n     <x>\n   ~~~\n"), "1. so\n\n```\n  <x>\n```\n");
        assert_eq!(written("```\nnever closed\n# no heading"), "```\nnever closed\n# no heading\n```\n");
        assert_eq!(written("so:\n\n    <x>\n\n    y\n\nz"), "so:\n\n```\n<x>\n\ny\n```\n\nz\n");
        assert_eq!(written("- so:\n\n    and so"), "- so:\n\n    and so\n");
        let mut out = String::new();
        code("json", "", &mut out);
        assert_eq!(out, "```json\n```\n");
    }

    #[test]
    fn what_would_count_for_the_whole_document_does_not() {
        assert_eq!(written("[a]: http://x"), "\\[a]: http://x\n");
        assert_eq!(written("[a\nb]: http://x"), "\\[a\nb]: http://x\n");
        assert_eq!(written("[a]: http://x[a](b)"), "\\[a]: http://x[a](b)\n");
        assert_eq!(written("[a\\]]: http://x"), "\\[a\\]]: http://x\n");
        assert_eq!(written("[a](b) ![c](d)"), "[a](b) !\\[c](d)\n");
        assert_eq!(written("- [ ] open\n- [x] done"), "- [ ] open\n- [x] done\n");
        assert_eq!(written("::: note\n- ~~~"), "\\::: note\n- \\~~~\n");
    }

    #[test]
    fn control_characters_are_shown() {
        assert_eq!(written("a\rb\u{1b}[2J\u{202e}\r\nc"), "a␍b␛[2J\\u{202e}\nc\n");
    }

    #[test]
    fn words_are_nothing_but_themselves() {
        assert_eq!(words("a|b `c` <d> [e]\n#"), "a\\|b \\`c\\` &lt;d> \\[e\\]␊\\#");
        assert_eq!(code_words("a`b"), "``a`b``");
        assert_eq!(code_words("`"), "`` ` ``");
        assert_eq!(code_words(""), "` `");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// No markup begins outside our own fences, and every fence of ours is closed.
        #[test]
        fn nothing_is_left_open(text in "[`~<>#=\\-a \\\\\n\\[\\]!:|1.]{0,60}") {
            let out = written(&text);
            let mut fence: Option<String> = None;
            for line in out.lines() {
                let run: String = line.chars().take_while(|char| *char == '`').collect();
                let is_fence = run.len() >= 3 && !line.trim_start_matches('`').contains('`');
                match &fence {
                    Some(open) if *open == line => fence = None,
                    Some(_) => {}
                    None if is_fence => fence = Some(run),
                    None => {
                        prop_assert!(!line.starts_with("~~~") && !line.starts_with("# ") && !line.starts_with("### "), "{line}");
                        prop_assert!(line.is_empty() || line.trim_matches('=').len() == line.len() || !line.trim_matches('=').is_empty());
                    }
                }
            }
            prop_assert_eq!(fence, None);
        }
    }
}

//! Scans Rust source for tidy: string literals, the part before the tests, and the lengths of functions. It is not a full
//! parser; it relies on the formatting of this repository.

/// The source without its unit tests, which are at the end of a file. A `mod tests;` declaration does not end the source.
pub fn without_tests(source: &str) -> &str {
    let is_body = |at: &usize| {
        let declared = source.get(*at..).and_then(|tests| tests.lines().nth(2));
        declared.is_some_and(|line| line.ends_with('{'))
    };
    let mut starts = source.match_indices("\n#[cfg(test)]\nmod ").map(|(at, _)| at);
    starts.find(is_body).and_then(|at| source.get(..at)).unwrap_or(source)
}

/// The string literals, each with its line.
pub fn string_literals(source: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut line = 1;
    let mut rest = source;
    while let Some(char) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(length) = raw_string(rest) {
            found.push((line, rest.get(..length).unwrap_or_default().to_owned()));
            length
        } else if char == '"' {
            let length = plain_string(rest);
            found.push((line, rest.get(..length).unwrap_or_default().to_owned()));
            length
        } else if let Some(length) = character(rest) {
            length
        } else {
            char.len_utf8()
        };
        let (passed, tail) = rest.split_at_checked(length.max(char.len_utf8())).unwrap_or((rest, ""));
        line += passed.matches('\n').count();
        rest = tail;
    }
    found
}

fn plain_string(rest: &str) -> usize {
    let mut escaped = false;
    for (at, char) in rest.char_indices().skip(1) {
        match char {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

fn raw_string(rest: &str) -> Option<usize> {
    let after = rest.strip_prefix("br").or_else(|| rest.strip_prefix('r'))?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    let inside = after.get(hashes..)?.strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let start = rest.len() - inside.len();
    Some(inside.find(&end).map_or(rest.len(), |at| start + at + end.len()))
}

/// A character literal, which may contain a quotation mark; `None` for a lifetime.
fn character(rest: &str) -> Option<usize> {
    let inside = rest.strip_prefix('\'')?;
    if let Some(escape) = inside.strip_prefix('\\') {
        let from = escape.chars().next()?.len_utf8();
        return escape.get(from..)?.find('\'').map(|at| 2 + from + at + 1);
    }
    let char = inside.chars().next()?;
    inside.get(char.len_utf8()..)?.starts_with('\'').then(|| 2 + char.len_utf8())
}

/// Whether `text` contains `word` as a whole word.
pub fn holds_word(text: &str, word: &str) -> bool {
    let joins = |char: char| char.is_alphanumeric() || char == '-' || char == '_';
    text.match_indices(word).any(|(at, _)| {
        let before = text.get(..at).and_then(|text| text.chars().next_back());
        let after = text.get(at + word.len()..).and_then(|text| text.chars().next());
        !before.is_some_and(joins) && !after.is_some_and(joins)
    })
}

/// The functions, each with its line, its name and how many lines it has.
pub fn functions(source: &str) -> Vec<(usize, String, usize)> {
    let lines: Vec<&str> = source.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else { continue };
        let indent = line.len() - line.trim_start().len();
        // Formatted code closes a function with a brace in the column where it begins.
        let closes = |line: &&str| line.starts_with('}') || line.get(..=indent).is_some_and(|head| head.trim() == "}");
        let rest = lines.get(at..).unwrap_or_default();
        let one_line = line.ends_with(['}', ';']);
        let length = if one_line { 1 } else { rest.iter().position(closes).map_or(1, |end| end + 1) };
        found.push((at + 1, name, length));
    }
    found
}

fn function_name(line: &str) -> Option<String> {
    let mut words = line.trim_start();
    if let Some(rest) = words.strip_prefix("pub") {
        words =
            rest.strip_prefix('(').and_then(|rest| rest.split_once(')')).map_or(rest, |(_, rest)| rest).trim_start();
    }
    let words = words.strip_prefix("const ").unwrap_or(words);
    let name = words.strip_prefix("fn ")?;
    Some(name.chars().take_while(|char| char.is_alphanumeric() || *char == '_').collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_found_and_comments_are_not() {
        let source = "let a = \"x \\\" y\"; // \"no\"\nlet q = '\"';\nlet r = r#\"a \"b\" c\"#;\nfn f<'a>() {}\nlet z = \"end\";";
        let found: Vec<(usize, String)> = string_literals(source);
        let expected = [(1, "\"x \\\" y\""), (3, "r#\"a \"b\" c\"#"), (5, "\"end\"")];
        assert_eq!(found, expected.map(|(line, text)| (line, text.to_owned())));
    }

    #[test]
    fn tests_at_the_end_are_left_out_and_a_test_module_declaration_does_not_end_the_source() {
        let source = "mod a;\n#[cfg(test)]\nmod tests;\nfn f() {}\n";
        assert_eq!(without_tests(source), source);
        assert_eq!(without_tests("fn f() {}\n\n#[cfg(test)]\nmod tests {\n}\n"), "fn f() {}\n");
    }

    #[test]
    fn only_whole_words_match() {
        assert!(holds_word("to codex.", "codex"));
        assert!(!holds_word("codex-like", "codex"));
    }

    #[test]
    fn functions_are_measured() {
        let source = "impl A {\n    pub(crate) fn one(\n        a: u8,\n    ) {\n        b();\n    }\n}\nfn two() {}\n";
        assert_eq!(functions(source), [(2, "one".to_owned(), 5), (8, "two".to_owned(), 1)]);
    }
}

//! The remote in a git configuration. It reads no other keys and no other file.

/// The URL of the repository's remote: `origin`, otherwise the first one.
pub(super) fn remote(config: &str) -> Option<String> {
    let mut first: Option<String> = None;
    let mut section: Option<String> = None;
    for line in lines(config) {
        let mut line = line.trim();
        if let Some(rest) = line.strip_prefix('[') {
            let Some((head, rest)) = heading(rest) else { continue };
            section = remote_of(&head);
            // Git allows the first key on the line of its heading.
            line = rest.trim();
        }
        let Some(name) = &section else { continue };
        let Some((key, value)) = line.split_once('=') else { continue };
        if !key.trim().eq_ignore_ascii_case("url") {
            continue;
        }
        let value = value_of(value);
        if value.is_empty() {
            continue;
        }
        if name == "origin" {
            return Some(value);
        }
        first.get_or_insert(value);
    }
    first
}

/// The lines, with continuation lines joined.
fn lines(config: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut joined = false;
    for line in config.lines() {
        let ends_with_backslash = line.len() - line.trim_end_matches('\\').len();
        let joins = ends_with_backslash % 2 == 1;
        let text = if joins { line.strip_suffix('\\').unwrap_or(line) } else { line };
        match lines.last_mut() {
            Some(last) if joined => last.push_str(text),
            _ => lines.push(text.to_owned()),
        }
        joined = joins;
    }
    lines
}

/// The content of a heading, and the text after it. A bracket in quotes does not close it.
fn heading(rest: &str) -> Option<(String, &str)> {
    let (mut quoted, mut escaped) = (false, false);
    for (at, char) in rest.char_indices() {
        match char {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            ']' if !quoted => return Some((rest.get(..at)?.to_owned(), rest.get(at + 1..)?)),
            _ => {}
        }
    }
    None
}

/// The name of the remote in a heading.
fn remote_of(heading: &str) -> Option<String> {
    let (kind, name) = heading.trim().split_once(char::is_whitespace)?;
    kind.eq_ignore_ascii_case("remote").then(|| value_of(name))
}

/// A value without quotes, escapes and the comment after it.
fn value_of(text: &str) -> String {
    let mut value = String::new();
    let mut kept = 0;
    let mut quoted = false;
    let mut chars = text.trim().chars();
    while let Some(char) = chars.next() {
        match char {
            '"' => quoted = !quoted,
            '\\' => value.extend(chars.next()),
            '#' | ';' if !quoted => break,
            char => value.push(char),
        }
        if quoted || !char.is_whitespace() {
            kept = value.len();
        }
    }
    value.truncate(kept);
    value
}

#[cfg(test)]
mod tests {
    use super::remote;

    #[test]
    fn origin_counts_before_all_others() {
        let config =
            "[core]\n\turl = no\n[remote \"fork\"]\n\turl = a\n[Remote \"origin\"]\n\tfetch = x\n\tURL = b ; mine\n";
        assert_eq!(remote(config).as_deref(), Some("b"));
        assert_eq!(remote("[remote \"fork\"]\nurl=a\n[remote \"other\"]\nurl=b").as_deref(), Some("a"));
        assert_eq!(remote("[branch \"main\"]\n\tremote = origin\n"), None);
    }

    #[test]
    fn quotes_comments_and_joined_lines_are_read_as_git_does() {
        assert_eq!(remote("[remote \"origin\"] url = \"a # b\" # c").as_deref(), Some("a # b"));
        assert_eq!(remote("[remote \"a]b\"]\nurl = x\\\ny\n").as_deref(), Some("xy"));
        assert_eq!(remote("[remote \"origin\"]\nurl =   spaced   \n").as_deref(), Some("spaced"));
        assert_eq!(remote("[remote \"origin\"]\n# url = x\n"), None);
        assert_eq!(remote("[remote \"origin\"\nurl = x\n"), None);
    }
}

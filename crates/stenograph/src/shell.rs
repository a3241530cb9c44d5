//! What a command of a shell is made of: simple commands, their words, and the texts that are handed over in it. It takes them apart as a
//! shell would, roughly; what a program does is not known here, and nothing is run.

/// A word of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Word {
    pub text: String,
    /// Whether any of it stood between quotes.
    pub quoted: bool,
}

/// The simple commands of a command, in words.
pub(crate) fn commands(command: &str) -> Vec<Vec<Word>> {
    let mut found: Vec<Vec<Word>> = vec![Vec::new()];
    let mut word = Word::default();
    let mut quote: Option<char> = None;
    let mut chars = command.chars().peekable();
    let end_word = |word: &mut Word, found: &mut Vec<Vec<Word>>| {
        if (!word.text.is_empty() || word.quoted)
            && let Some(words) = found.last_mut()
        {
            words.push(std::mem::take(word));
        }
    };
    while let Some(char) = chars.next() {
        match (quote, char) {
            (Some(open), char) if open == char => quote = None,
            (Some('"') | None, '\\') => word.text.extend(chars.next()),
            (Some(_), char) => word.text.push(char),
            (None, '\'' | '"') => {
                quote = Some(char);
                word.quoted = true;
            }
            (None, '>') => {
                // `2>&1` sends nowhere new.
                if word.text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'&') {
                    word = Word::default();
                }
                end_word(&mut word, &mut found);
                let mut sign = String::from(">");
                while let Some(more) = chars.next_if(|next| matches!(next, '>' | '|')) {
                    sign.push(more);
                }
                while let Some(more) = chars.next_if(|next| *next == '&') {
                    word.text.push(more);
                }
                if let Some(words) = found.last_mut() {
                    words.push(Word { text: sign, quoted: false });
                }
            }
            (None, ';' | '|' | '\n' | '(' | ')') | (None, '&') if !(char == '&' && chars.peek() == Some(&'>')) => {
                end_word(&mut word, &mut found);
                found.push(Vec::new());
            }
            (None, char) if char.is_whitespace() => end_word(&mut word, &mut found),
            (None, char) => word.text.push(char),
        }
    }
    end_word(&mut word, &mut found);
    found.retain(|words| !words.is_empty());
    found
}

/// A text that a command hands to a program, in lines of its own.
pub(crate) struct Document {
    pub text: String,
    /// Whether the shell puts something else in place of parts of it.
    pub literal: bool,
}

/// A command without the texts that are handed over in it, and these: from `<<EOF` to a line that says no more than that.
pub(crate) fn without_documents(command: &str) -> (String, Vec<Document>) {
    let (mut kept, mut found) = (String::new(), Vec::new());
    let mut lines = command.split_inclusive('\n');
    while let Some(line) = lines.next() {
        let Some((before, after)) = line.split_once("<<").filter(|(_, after)| !after.starts_with('<')) else {
            kept.push_str(line);
            continue;
        };
        let tabs = after.starts_with('-');
        let after = after.trim_start_matches(['-', ' ']);
        let quoted = after.starts_with(['\'', '"', '\\']);
        let after = after.trim_start_matches(['\'', '"', '\\']);
        let length = after.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
        let (mark, rest) = after.split_at(length);
        if mark.is_empty() {
            kept.push_str(line);
            continue;
        }
        kept.push_str(before);
        kept.push_str(rest.trim_start_matches(['\'', '"']));
        let mut text = String::new();
        for line in lines.by_ref() {
            let line = if tabs { line.trim_start_matches('\t') } else { line };
            if line.trim_end() == mark {
                break;
            }
            text.push_str(line);
        }
        let literal = quoted || !text.contains(['$', '`', '\\']);
        found.push(Document { text, literal });
    }
    (kept, found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(command: &str) -> Vec<Vec<String>> {
        commands(command).into_iter().map(|words| words.into_iter().map(|word| word.text).collect()).collect()
    }

    #[test]
    fn signs_between_quotes_part_nothing() {
        assert_eq!(words(r#"rg "a|b; c" 'd && e' x"#), [["rg", "a|b; c", "d && e", "x"]]);
        assert_eq!(words("cd a && make 2>&1 | tail"), [vec!["cd", "a"], vec!["make", ">", "&1"], vec!["tail"]]);
        assert_eq!(words("a\\|b"), [["a|b"]]);
        assert!(words(" ; | ").is_empty());
    }

    #[test]
    fn texts_that_are_handed_over_are_no_commands() {
        let (bare, documents) = without_documents("cat <<'EOF' | sort\nrm a\nEOF\nls\n");
        assert_eq!(words(&bare), [["cat"], ["sort"], ["ls"]]);
        assert_eq!(documents.first().map(|document| document.text.as_str()), Some("rm a\n"));
    }
}

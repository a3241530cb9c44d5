//! What a command of a shell is made of: simple commands, their words, and the here-documents in it. It follows the lexical rules of a
//! POSIX shell for comments, quotes, substitutions and here-documents; what a program does is not known here, and nothing is run.
//!
//! Commands inside `$(...)` and backticks run before the command around them, so they come before it. What is too long or nested too
//! deeply is opaque: no commands are given, rather than wrong ones.

/// A word of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Word {
    pub text: String,
    /// Whether any of it stood between quotes.
    pub quoted: bool,
}

impl Word {
    fn is_blank(&self) -> bool {
        self.text.is_empty() && !self.quoted
    }
}

/// A text that a command hands to a program, in lines of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Document {
    pub text: String,
    /// Whether the shell puts nothing else in place of parts of it.
    pub literal: bool,
}

/// A command, taken apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CommandLine {
    /// The simple commands, in words. A redirection is the sign `>` or `>>`, then its target.
    pub commands: Vec<Vec<Word>>,
    /// The here-documents.
    pub documents: Vec<Document>,
    /// Whether it was too long or nested too deeply to be taken apart.
    pub is_opaque: bool,
}

/// How long a command may be to be taken apart: here-documents can be long, longer ones are data.
const SIZE_MAX: usize = 4 << 20;

/// How many words are kept.
const WORDS_MAX: usize = 16 << 10;

/// How deeply substitutions may be nested.
const DEPTH_MAX: u32 = 16;

impl CommandLine {
    /// Takes a command apart.
    pub fn of(text: &str) -> CommandLine {
        let opaque = || CommandLine { is_opaque: true, ..CommandLine::default() };
        if text.len() > SIZE_MAX {
            return opaque();
        }
        let mut lexer = Lexer { text, at: 0, words: 0, documents: Vec::new(), awaited: Vec::new(), is_opaque: false };
        let commands = lexer.list(End::OfText, 0);
        if lexer.is_opaque {
            return opaque();
        }
        CommandLine { commands, documents: lexer.documents, is_opaque: false }
    }
}

/// Where a list of commands ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    OfText,
    /// At the parenthesis that closes a substitution.
    Parenthesis,
}

/// A here-document whose lines are still to come.
struct Awaited {
    mark: String,
    quoted: bool,
    strips_tabs: bool,
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    words: usize,
    documents: Vec<Document>,
    awaited: Vec<Awaited>,
    is_opaque: bool,
}

/// The commands of a list so far.
#[derive(Default)]
struct List {
    done: Vec<Vec<Word>>,
    words: Vec<Word>,
    word: Word,
}

impl List {
    fn end_word(&mut self, lexer: &mut Lexer<'_>) {
        if !self.word.is_blank() {
            lexer.words += 1;
            lexer.is_opaque |= lexer.words > WORDS_MAX;
            self.words.push(std::mem::take(&mut self.word));
        }
    }

    fn end_command(&mut self, lexer: &mut Lexer<'_>) {
        self.end_word(lexer);
        if !self.words.is_empty() {
            self.done.push(std::mem::take(&mut self.words));
        }
    }
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let char = self.peek()?;
        self.at += char.len_utf8();
        Some(char)
    }

    fn next_if(&mut self, wanted: char) -> bool {
        let is_next = self.peek() == Some(wanted);
        if is_next {
            self.next();
        }
        is_next
    }

    /// The commands up to an end.
    fn list(&mut self, end: End, depth: u32) -> Vec<Vec<Word>> {
        let mut list = List::default();
        // Subshells that are open.
        let mut open = 0_u32;
        while let Some(char) = self.next() {
            match char {
                ')' if end == End::Parenthesis && open == 0 => break,
                _ if self.is_opaque => return Vec::new(),
                '\\' if !self.next_if('\n') => list.word.text.extend(self.next()),
                '\\' => {}
                '\'' => self.single(&mut list.word),
                '"' => self.double(&mut list, depth),
                '`' => self.backticks(&mut list, depth),
                '$' => self.dollar(&mut list, depth),
                '#' if list.word.is_blank() => self.comment(),
                '\n' => {
                    list.end_command(self);
                    self.bodies();
                }
                '(' if list.word.is_blank() && self.peek() == Some('(') => self.arithmetic(&mut list.word, "("),
                '(' => {
                    list.end_command(self);
                    open += 1;
                }
                ')' => {
                    list.end_command(self);
                    open = open.saturating_sub(1);
                }
                ';' | '|' => list.end_command(self),
                '&' if self.peek() != Some('>') => list.end_command(self),
                '<' if self.next_if('(') => self.nested(&mut list, "<(", depth),
                '<' if self.rest().starts_with("<<") => {
                    self.at += 2;
                    list.end_word(self);
                    list.words.push(Word { text: "<<<".to_owned(), quoted: false });
                }
                '<' if self.next_if('<') => {
                    list.end_word(self);
                    self.awaits();
                }
                '>' if self.next_if('(') => self.nested(&mut list, ">(", depth),
                '>' => self.redirection(&mut list),
                char if char.is_whitespace() => list.end_word(self),
                char => list.word.text.push(char),
            }
        }
        list.end_command(self);
        // Lines of a here-document may stop where the text does.
        if end == End::OfText {
            self.bodies();
        }
        list.done
    }

    fn redirection(&mut self, list: &mut List) {
        // `2>&1` sends nowhere new.
        if list.word.text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'&') {
            list.word = Word::default();
        }
        list.end_word(self);
        let mut sign = String::from(">");
        while let Some(more) = self.peek().filter(|char| matches!(char, '>' | '|')) {
            self.next();
            sign.push(more);
        }
        while self.next_if('&') {
            list.word.text.push('&');
        }
        list.words.push(Word { text: sign, quoted: false });
    }

    fn single(&mut self, word: &mut Word) {
        word.quoted = true;
        let rest = self.rest();
        let end = rest.find('\'').unwrap_or(rest.len());
        word.text.push_str(rest.get(..end).unwrap_or_default());
        self.at += end;
        self.next();
    }

    fn double(&mut self, list: &mut List, depth: u32) {
        list.word.quoted = true;
        while let Some(char) = self.next() {
            match char {
                '"' => return,
                _ if self.is_opaque => return,
                '\\' => match self.next() {
                    Some('\n') | None => {}
                    Some(char @ ('"' | '\\' | '$' | '`')) => list.word.text.push(char),
                    Some(char) => list.word.text.extend(['\\', char]),
                },
                '`' => self.backticks(list, depth),
                '$' => self.dollar(list, depth),
                char => list.word.text.push(char),
            }
        }
    }

    /// What follows a dollar sign: a substitution, arithmetic, a text with escapes, or a name.
    fn dollar(&mut self, list: &mut List, depth: u32) {
        if self.rest().starts_with("((") {
            return self.arithmetic(&mut list.word, "$");
        }
        if self.next_if('(') {
            return self.nested(list, "$(", depth);
        }
        list.word.text.push('$');
        match self.peek() {
            // The number of arguments begins no comment.
            Some('#') => list.word.text.extend(self.next()),
            Some('\'') if list.word.text == "$" && !list.word.quoted => {
                self.next();
                list.word = Word { text: String::new(), quoted: true };
                while let Some(char) = self.next() {
                    match char {
                        '\'' => return,
                        '\\' => list.word.text.extend(self.next()),
                        char => list.word.text.push(char),
                    }
                }
            }
            _ => {}
        }
    }

    /// The commands of a substitution, which run first. The word has it as it is written.
    fn nested(&mut self, list: &mut List, begins: &str, depth: u32) {
        if depth >= DEPTH_MAX {
            self.is_opaque = true;
            return;
        }
        let from = self.at;
        let inner = self.list(End::Parenthesis, depth + 1);
        list.done.extend(inner);
        list.word.text.push_str(begins);
        list.word.text.push_str(self.text.get(from..self.at).unwrap_or_default());
    }

    fn backticks(&mut self, list: &mut List, depth: u32) {
        let from = self.at;
        let mut inside = String::new();
        while let Some(char) = self.next() {
            match char {
                '`' => break,
                '\\' if matches!(self.peek(), Some('`' | '\\' | '$')) => inside.extend(self.next()),
                char => inside.push(char),
            }
        }
        list.word.text.push('`');
        list.word.text.push_str(self.text.get(from..self.at).unwrap_or_default());
        if depth >= DEPTH_MAX {
            self.is_opaque = true;
            return;
        }
        let mut lexer = Lexer {
            text: &inside,
            at: 0,
            words: self.words,
            documents: Vec::new(),
            awaited: Vec::new(),
            is_opaque: false,
        };
        let inner = lexer.list(End::OfText, depth + 1);
        self.words = lexer.words;
        self.is_opaque |= lexer.is_opaque;
        self.documents.append(&mut lexer.documents);
        list.done.extend(inner);
    }

    /// Arithmetic up to the parentheses that close it; a shift in it begins no here-document.
    fn arithmetic(&mut self, word: &mut Word, begins: &str) {
        word.text.push_str(begins);
        let mut open = usize::from(begins == "(");
        while let Some(char) = self.next() {
            word.text.push(char);
            match char {
                '(' => open += 1,
                ')' => open -= 1,
                _ => {}
            }
            if open == 0 {
                return;
            }
        }
    }

    fn comment(&mut self) {
        let rest = self.rest();
        self.at += rest.find('\n').unwrap_or(rest.len());
    }

    /// The mark of a here-document, whose lines come after this one.
    fn awaits(&mut self) {
        let strips_tabs = self.next_if('-');
        while self.next_if(' ') || self.next_if('\t') {}
        let (mut mark, mut quoted) = (String::new(), false);
        while let Some(char) = self.peek() {
            match char {
                '\'' | '"' => {
                    self.next();
                    quoted = true;
                    while let Some(inner) = self.next().filter(|inner| *inner != char) {
                        mark.push(inner);
                    }
                }
                '\\' => {
                    self.next();
                    quoted = true;
                    mark.extend(self.next());
                }
                ';' | '|' | '&' | '<' | '>' | '(' | ')' => break,
                char if char.is_whitespace() => break,
                char => {
                    self.next();
                    mark.push(char);
                }
            }
        }
        if !mark.is_empty() || quoted {
            self.awaited.push(Awaited { mark, quoted, strips_tabs });
        }
    }

    /// The lines of the here-documents that were announced on the line that ends here.
    fn bodies(&mut self) {
        for Awaited { mark, quoted, strips_tabs } in std::mem::take(&mut self.awaited) {
            let mut text = String::new();
            while !self.rest().is_empty() {
                let rest = self.rest();
                let end = rest.find('\n').map_or(rest.len(), |at| at + 1);
                let line = rest.get(..end).unwrap_or_default();
                let line = if strips_tabs { line.trim_start_matches('\t') } else { line };
                let is_end = line.trim_end_matches(['\n', '\r']) == mark;
                if !is_end {
                    text.push_str(line);
                }
                self.at += end;
                if is_end {
                    break;
                }
            }
            let literal = quoted || !text.contains(['$', '`', '\\']);
            self.documents.push(Document { text, literal });
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(command: &str) -> Vec<Vec<String>> {
        let commands = CommandLine::of(command).commands;
        commands.into_iter().map(|words| words.into_iter().map(|word| word.text).collect()).collect()
    }

    #[test]
    fn signs_between_quotes_part_nothing() {
        assert_eq!(words(r#"rg "a|b; c" 'd && e' x"#), [["rg", "a|b; c", "d && e", "x"]]);
        assert_eq!(words("cd a && make 2>&1 | tail"), [vec!["cd", "a"], vec!["make", ">", "&1"], vec!["tail"]]);
        assert_eq!(words("a\\|b"), [["a|b"]]);
        assert_eq!(words("a \\\n b"), [["a", "b"]]);
        assert_eq!(words(r#"grep "a\.b" x"#), [["grep", r"a\.b", "x"]]);
        assert!(words(" ; | ").is_empty());
    }

    #[test]
    fn a_comment_ends_with_its_line() {
        assert_eq!(words("# don't stop\nrm a"), [["rm", "a"]]);
        assert_eq!(words("ls # it's \"here\nrm a # b\n"), [vec!["ls"], vec!["rm", "a"]]);
        assert_eq!(words("echo a#b $# '#c'"), [["echo", "a#b", "$#", "#c"]]);
        assert_eq!(words("# cat <<EOF\nrm a"), [["rm", "a"]]);
    }

    #[test]
    fn a_sign_in_a_text_begins_no_document() {
        let told = CommandLine::of("echo 'a << EOF'\nrm b\necho \"x <<EOF\"\nrm c");
        assert!(told.documents.is_empty());
        assert_eq!(told.commands.len(), 4);
        assert_eq!(words("echo $((1 << 4))\nrm a"), [vec!["echo", "$((1 << 4))"], vec!["rm", "a"]]);
        assert_eq!(words("(( x <<= 2 ))\nrm a").last().unwrap(), &["rm", "a"]);
        assert_eq!(words("grep x <<< 'a\nb' && rm c"), [vec!["grep", "x", "<<<", "a\nb"], vec!["rm", "c"]]);
    }

    #[test]
    fn documents_are_no_commands() {
        let told = CommandLine::of("cat <<'EOF' | sort\nrm a\n# b'\nEOF\nls\n");
        let texts: Vec<Vec<&str>> =
            told.commands.iter().map(|words| words.iter().map(|word| word.text.as_str()).collect()).collect();
        assert_eq!(texts, [vec!["cat"], vec!["sort"], vec!["ls"]]);
        assert_eq!(told.documents, [Document { text: "rm a\n# b'\n".into(), literal: true }]);
        let told = CommandLine::of("a <<-X b <<\"Y Z\"\n\tone $x\n\tX\ntwo\nY Z\nc");
        assert_eq!(
            told.documents,
            [Document { text: "one $x\n".into(), literal: false }, Document { text: "two\n".into(), literal: true }]
        );
        assert_eq!(told.commands.len(), 2);
        let told = CommandLine::of("git commit -m \"$(cat <<'EOF'\nit's \"done\"; rm x\nEOF\n)\" && git push");
        assert_eq!(told.documents.len(), 1);
        let programs: Vec<&str> = told.commands.iter().map(|words| words[0].text.as_str()).collect();
        assert_eq!(programs, ["cat", "git", "git"]);
    }

    #[test]
    fn what_a_command_is_made_of_runs_first() {
        assert_eq!(
            words("echo $(grep a b) `ls c`"),
            [vec!["grep", "a", "b"], vec!["ls", "c"], vec!["echo", "$(grep a b)", "`ls c`"]]
        );
        assert_eq!(words("(cd a; make)"), [vec!["cd", "a"], vec!["make"]]);
        assert_eq!(words("diff <(sort a) <(sort b)")[2][0], "diff");
    }

    #[test]
    fn what_is_nested_too_deeply_is_opaque() {
        let deep = format!("echo {}x{}", "$(a ".repeat(1000), ")".repeat(1000));
        let told = CommandLine::of(&deep);
        assert!(told.is_opaque && told.commands.is_empty());
        assert!(CommandLine::of(&"a ".repeat(WORDS_MAX + 1)).is_opaque);
    }

    proptest! {
        #[test]
        fn no_text_upsets_it(text in "[a-c#'\"`$()<>|&;\\\\\n\t E0-]{0,80}") {
            let told = CommandLine::of(&text);
            for word in told.commands.iter().flatten() {
                prop_assert!(word.text.len() <= text.len() + 3);
            }
            prop_assert!(told.documents.iter().all(|document| document.text.len() <= text.len()));
        }

        #[test]
        fn a_comment_changes_nothing(before in "[a-c |&;]{0,20}", comment in "[a-c#'\"`$()<>|&;\\\\ ]{0,20}") {
            let with = CommandLine::of(&format!("{before} #{comment}\nls"));
            prop_assert_eq!(with, CommandLine::of(&format!("{before} \nls")));
        }
    }
}

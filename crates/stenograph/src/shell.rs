//! Splits a shell command into simple commands, their words, and its here-documents. It follows the lexical rules of POSIX shells and
//! bash for comments, quotes, expansions, substitutions and here-documents. It runs nothing and knows nothing of programs.
//!
//! Commands inside `$(...)` and backticks run before the command around them, so they come before it. A command that is too long or
//! nested too deeply is opaque: the lexer gives no commands rather than wrong ones.

/// A word of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Word {
    pub text: String,
    /// Whether any part of it was quoted.
    pub quoted: bool,
}

impl Word {
    fn is_blank(&self) -> bool {
        self.text.is_empty() && !self.quoted
    }
}

/// A here-document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Document {
    pub text: String,
    /// Whether the shell expands nothing in it.
    pub literal: bool,
}

/// A command, split into its parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CommandLine {
    /// The simple commands, each as its words. A redirection is a sign (`>`, `>>`, `>|`, `<`, `<<<`) as a word, then its target.
    pub commands: Vec<Vec<Word>>,
    /// The here-documents.
    pub documents: Vec<Document>,
    /// Whether it is too long or nested too deeply to be split.
    pub is_opaque: bool,
}

/// The longest command that is split, in bytes. Here-documents can be long; longer commands are data.
const SIZE_MAX: usize = 4 << 20;

/// The most words of a command.
const WORDS_MAX: usize = 16 << 10;

/// How deeply substitutions and expansions may be nested.
const DEPTH_MAX: u32 = 16;

/// How often text may be read again because `((` turned out to begin subshells and not arithmetic.
const REWINDS_MAX: u32 = 16;

/// Words after which another command begins.
const BEFORE_COMMAND: [&str; 10] = ["!", "{", "do", "elif", "else", "if", "then", "time", "until", "while"];

impl CommandLine {
    /// Splits a command.
    pub fn of(text: &str) -> CommandLine {
        let opaque = || CommandLine { is_opaque: true, ..CommandLine::default() };
        if text.len() > SIZE_MAX {
            return opaque();
        }
        let mut lexer = Lexer { text, ..Lexer::default() };
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

/// Whether text is inside double quotes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quotes {
    None,
    Double,
}

/// A here-document whose lines follow after the current line.
struct Awaited {
    mark: String,
    quoted: bool,
    strips_tabs: bool,
}

#[derive(Default)]
struct Lexer<'a> {
    text: &'a str,
    at: usize,
    words: usize,
    rewinds: u32,
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
    open_subshells: usize,
    /// For each open `case`, the subshells that were open before it: a parenthesis that closes none of its own ends a pattern.
    cases: Vec<usize>,
}

impl List {
    fn end_word(&mut self, lexer: &mut Lexer<'_>) {
        if !self.word.is_blank() {
            lexer.words += 1;
            lexer.is_opaque |= lexer.words > WORDS_MAX;
            let is_first = self.words.last().is_none_or(|last| BEFORE_COMMAND.contains(&last.text.as_str()));
            match self.word.text.as_str() {
                "case" if is_first && !self.word.quoted => self.cases.push(self.open_subshells),
                "esac" if is_first && !self.word.quoted => drop(self.cases.pop()),
                _ => {}
            }
            self.words.push(std::mem::take(&mut self.word));
        }
    }

    /// Ends the word before a redirection. The number of a descriptor, as in `2>&1`, is not an argument.
    fn end_descriptor(&mut self, lexer: &mut Lexer<'_>) {
        if !self.word.quoted && self.word.text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'&') {
            self.word = Word::default();
        }
        self.end_word(lexer);
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
        while let Some(char) = self.next() {
            match char {
                _ if self.is_opaque => return Vec::new(),
                '\\' if !self.next_if('\n') => list.word.text.extend(self.next()),
                '\\' => {}
                '\'' => self.single(&mut list.word),
                '"' => self.double(&mut list, depth),
                '`' => self.backticks(&mut list, Quotes::None, depth),
                '$' => self.dollar(&mut list, Quotes::None, depth),
                '#' if list.word.is_blank() => self.comment(),
                '\n' => {
                    list.end_command(self);
                    self.bodies();
                }
                '(' if list.word.is_blank() && self.peek() == Some('(') && self.arithmetic(&mut list.word, "(") => {}
                // The elements of an array are not commands.
                '(' if list.word.text.ends_with('=') => self.group(&mut list, '(', ')', Quotes::None, depth),
                '(' => {
                    list.end_command(self);
                    list.open_subshells += 1;
                }
                ')' => {
                    list.end_command(self);
                    if list.open_subshells > list.cases.last().copied().unwrap_or(0) {
                        list.open_subshells -= 1;
                    } else if end == End::Parenthesis && list.cases.is_empty() {
                        break;
                    }
                }
                ';' | '|' => list.end_command(self),
                '&' if self.peek() == Some('>') => list.end_word(self),
                '&' => list.end_command(self),
                '<' if self.next_if('(') => self.nested(&mut list, "<(", depth),
                '<' if self.rest().starts_with("<<") => {
                    self.at += 2;
                    self.redirection(&mut list, "<<<");
                }
                '<' if self.next_if('<') => {
                    list.end_descriptor(self);
                    self.awaits();
                }
                '<' => self.redirection(&mut list, "<"),
                '>' if self.next_if('(') => self.nested(&mut list, ">(", depth),
                '>' => self.redirection(&mut list, ">"),
                ' ' | '\t' | '\r' => list.end_word(self),
                char => list.word.text.push(char),
            }
        }
        list.end_command(self);
        // The text may end before the lines of a here-document.
        if end == End::OfText {
            self.bodies();
        }
        list.done
    }

    fn redirection(&mut self, list: &mut List, sign: &str) {
        list.end_descriptor(self);
        let mut sign = sign.to_owned();
        while let Some(more) = self.peek().filter(|char| matches!(char, '>' | '|') && sign != "<<<") {
            self.next();
            sign.push(more);
        }
        while self.next_if('&') {
            list.word.text.push('&');
        }
        self.words += 1;
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
                '`' => self.backticks(list, Quotes::Double, depth),
                '$' => self.dollar(list, Quotes::Double, depth),
                char => list.word.text.push(char),
            }
        }
    }

    /// Reads after a dollar sign: a substitution, arithmetic, an expansion, a text with escapes, or a name.
    fn dollar(&mut self, list: &mut List, quotes: Quotes, depth: u32) {
        if self.rest().starts_with("((") && self.arithmetic(&mut list.word, "$") {
            return;
        }
        if self.next_if('(') {
            return self.nested(list, "$(", depth);
        }
        match self.peek() {
            Some('\'') if quotes == Quotes::None => {
                self.next();
                self.escaped(&mut list.word);
            }
            Some('{') => {
                self.next();
                list.word.text.push('$');
                self.group(list, '{', '}', quotes, depth);
            }
            // The number of arguments begins no comment.
            Some('#') => {
                self.next();
                list.word.text.push_str("$#");
            }
            _ => list.word.text.push('$'),
        }
    }

    /// Text between `$'` and `'`, in which a backslash begins an escape.
    fn escaped(&mut self, word: &mut Word) {
        word.quoted = true;
        while let Some(char) = self.next() {
            match char {
                '\'' => return,
                '\\' => word.text.extend(self.next().map(|char| match char {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    char => char,
                })),
                char => word.text.push(char),
            }
        }
    }

    /// The rest of an expansion in braces, or of an array. Blanks and signs in it are part of the word; substitutions in it run first.
    fn group(&mut self, list: &mut List, opens: char, closes: char, quotes: Quotes, depth: u32) {
        if depth >= DEPTH_MAX {
            self.is_opaque = true;
            return;
        }
        list.word.text.push(opens);
        while let Some(char) = self.next() {
            match char {
                _ if self.is_opaque => return,
                '\\' => list.word.text.extend(self.next()),
                '\'' if quotes == Quotes::None => self.single(&mut list.word),
                '"' => self.double(list, depth + 1),
                '`' => self.backticks(list, quotes, depth + 1),
                '$' => self.dollar(list, quotes, depth + 1),
                char => list.word.text.push(char),
            }
            if char == closes {
                return;
            }
        }
    }

    /// Reads a substitution, whose commands run first. The word holds it as spelled.
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

    fn backticks(&mut self, list: &mut List, quotes: Quotes, depth: u32) {
        let from = self.at;
        let mut inside = String::new();
        while let Some(char) = self.next() {
            match char {
                '`' => break,
                '\\' if matches!(self.peek(), Some('`' | '\\' | '$')) => inside.extend(self.next()),
                '\\' if quotes == Quotes::Double && self.next_if('"') => inside.push('"'),
                char => inside.push(char),
            }
        }
        list.word.text.push('`');
        list.word.text.push_str(self.text.get(from..self.at).unwrap_or_default());
        if depth >= DEPTH_MAX {
            self.is_opaque = true;
            return;
        }
        let mut lexer = Lexer { text: &inside, words: self.words, rewinds: self.rewinds, ..Lexer::default() };
        let inner = lexer.list(End::OfText, depth + 1);
        (self.words, self.rewinds) = (lexer.words, lexer.rewinds);
        self.is_opaque |= lexer.is_opaque;
        self.documents.append(&mut lexer.documents);
        list.done.extend(inner);
    }

    /// Reads arithmetic up to the parentheses that close it; a shift in it begins no here-document. False, and nothing is read, if the
    /// last two parentheses are apart: they close subshells.
    fn arithmetic(&mut self, word: &mut Word, begins: &str) -> bool {
        let from = self.at;
        let mut open = usize::from(begins == "(");
        let mut last = ' ';
        while let Some(char) = self.next() {
            match char {
                '(' => open += 1,
                ')' => open -= 1,
                _ => {}
            }
            if open == 0 && last != ')' {
                self.at = from;
                self.rewinds += 1;
                self.is_opaque |= self.rewinds > REWINDS_MAX;
                return false;
            }
            if open == 0 {
                break;
            }
            last = char;
        }
        word.text.push_str(begins);
        word.text.push_str(self.text.get(from..self.at).unwrap_or_default());
        true
    }

    fn comment(&mut self) {
        let rest = self.rest();
        self.at += rest.find('\n').unwrap_or(rest.len());
    }

    /// Reads the delimiter of a here-document, whose lines follow after the current line.
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

    /// Reads the here-documents of the line that ends here.
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
mod tests;

//! Parses a query as people write it. The grammar, from the outside in:
//!
//! ```text
//! query  = any+                              all of them
//! any    = unit ( "OR" unit )*               one of them; binds closer than standing side by side
//! unit   = ( "-" | "NOT" ) unit | "(" query ")" | "/" regex "/" "i"? | name ":" value | words
//! words  = "quoted" "*"? | bare ( "*" | "~" | "~1" | "~2" )?
//! ```
//!
//! All other text is words: people paste paths, code and messages. Text that can only have meant something else is a
//! [`Mistake`]. What a query finds is decided elsewhere.

use super::expr::{Expr, Letters, Pattern, Query, all_of, any_of, not};
use super::field;
use super::fuzzy;
use super::moment::Today;
use super::words::{End, Phrase, PhraseMatch, end_of_words, is_word_char};

/// The size limit of a query, in bytes: more than anybody types, and fast to parse.
pub const QUERY_SIZE_MAX: usize = 8 << 10;

/// The nesting limit of conditions.
const DEPTH_MAX: usize = 32;

/// The most patterns in a query, because each one takes memory.
const PATTERNS_MAX: usize = 8;

/// The most words of a phrase: matching keeps one bit for each.
pub(super) const PHRASE_LENGTH_MAX: usize = 128;

/// An error in a query.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Mistake {
    /// The position, in bytes.
    pub at: usize,
    /// The error, without a full stop.
    pub message: String,
    /// The hint: what to write instead.
    pub hint: String,
}

impl Query {
    /// Parses a query. `since:` and `until:` need the current day.
    pub fn parse(text: &str, today: &Today) -> Result<Query, Mistake> {
        let mut parser = Parser { text, at: 0, today, open: 0, depth: 0, patterns: 0 };
        if text.len() > QUERY_SIZE_MAX {
            let message = format!("a query has at most {QUERY_SIZE_MAX} bytes, but this one has {}", text.len());
            return Err(parser.mistake(QUERY_SIZE_MAX, message, "search for a few words of it"));
        }
        let expr = parser.all()?;
        let nothing = || match text.trim() {
            "" => parser.mistake(0, "the query is empty", "write a word, or a field such as is:error"),
            other => {
                let hint =
                    format!("to find punctuation, use a pattern: /{}/", regex::escape(other).replace('/', "\\/"));
                parser.mistake(0, "the query has no words", hint)
            }
        };
        Ok(Query { expr: expr.ok_or_else(nothing)? })
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    today: &'a Today,
    /// The number of open parentheses.
    open: usize,
    /// The nesting depth.
    depth: usize,
    patterns: usize,
}

/// A parsed expression: `None` if there is nothing to search for, such as lone punctuation.
type Found = Result<Option<Expr>, Mistake>;

impl<'a> Parser<'a> {
    fn mistake(&self, at: usize, message: impl Into<String>, hint: impl Into<String>) -> Mistake {
        Mistake { at: at.min(self.text.len()), message: message.into(), hint: hint.into() }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn skip_blanks(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    fn is_at_end(&self) -> bool {
        self.rest().is_empty() || (self.open > 0 && self.rest().starts_with(')'))
    }

    fn is_boundary(&self, rest: &str) -> bool {
        rest.is_empty() || rest.starts_with(char::is_whitespace) || (self.open > 0 && rest.starts_with(')'))
    }

    /// Skips a word of the grammar.
    fn eat_word(&mut self, word: &str) -> bool {
        let eaten = self.rest().strip_prefix(word).is_some_and(|rest| self.is_boundary(rest));
        if eaten {
            self.at += word.len();
        }
        eaten
    }

    fn all(&mut self) -> Found {
        let mut parts = Vec::new();
        loop {
            self.skip_blanks();
            if self.is_at_end() {
                return Ok(all_of(parts));
            }
            if self.eat_word("AND") {
                continue;
            }
            parts.extend(self.any()?);
        }
    }

    fn any(&mut self) -> Found {
        let hint = "write word OR word, or \"OR\" in quotes to search for it";
        if self.eat_word("OR") {
            return Err(self.mistake(self.at - 2, "nothing precedes `OR`", hint));
        }
        let mut parts: Vec<Expr> = self.unit()?.into_iter().collect();
        loop {
            let before = self.at;
            self.skip_blanks();
            if !self.eat_word("OR") {
                self.at = before;
                return Ok(any_of(parts));
            }
            self.skip_blanks();
            if self.is_at_end() || self.eat_word("OR") {
                return Err(self.mistake(self.at, "nothing follows `OR`", hint));
            }
            parts.extend(self.unit()?);
        }
    }

    fn unit(&mut self) -> Found {
        let from = self.at;
        let rest = self.rest();
        if self.eat_word("NOT") {
            self.skip_blanks();
            return self.negated(from, "NOT");
        }
        // Nobody negates twice, but many people search for `--flag`.
        if rest.starts_with('-') && !rest.starts_with("--") {
            self.at += 1;
            return self.negated(from, "-");
        }
        if rest.starts_with('(') {
            return self.group();
        }
        if rest.starts_with('"') {
            return self.phrase();
        }
        if let Some(pattern) = self.pattern()? {
            return Ok(Some(pattern));
        }
        match field::name(rest) {
            Some(name) => self.field(name),
            None => self.bare(),
        }
    }

    fn negated(&mut self, from: usize, sign: &str) -> Found {
        if self.is_boundary(self.rest()) {
            let hint = "put it directly before what to exclude: -word, -\"a phrase\", -is:error";
            return Err(self.mistake(from, format!("nothing follows `{sign}`"), hint));
        }
        self.deeper(from)?;
        let inner = self.unit()?;
        self.depth -= 1;
        Ok(inner.map(not))
    }

    fn deeper(&mut self, from: usize) -> Result<(), Mistake> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            let hint = "simplify the query";
            return Err(self.mistake(from, format!("conditions are nested more than {DEPTH_MAX} levels deep"), hint));
        }
        Ok(())
    }

    /// An expression in parentheses. A missing closing parenthesis is implied at the end.
    fn group(&mut self) -> Found {
        self.deeper(self.at)?;
        self.at += 1;
        self.open += 1;
        let inner = self.all()?;
        if self.rest().starts_with(')') {
            self.at += 1;
        }
        self.open -= 1;
        self.depth -= 1;
        Ok(inner)
    }

    fn phrase(&mut self) -> Found {
        let from = self.at;
        let (text, end) = self.quoted();
        let end = end_of_words(&text, end);
        if self.rest().starts_with('~') {
            let hint = "put `~` after each word, without quotes: sort~ field~";
            return Err(self.mistake(self.at, "`~` works on one word, not on a phrase", hint));
        }
        Ok(self.words(from, &text, end)?.map(Expr::Phrase))
    }

    /// A quoted text, and whether a `*` follows it. A missing closing quote is implied at the end.
    fn quoted(&mut self) -> (String, End) {
        let mut text = String::new();
        let mut chars = self.rest().char_indices().skip(1).peekable();
        let mut length = self.rest().len();
        while let Some((offset, char)) = chars.next() {
            match char {
                '"' => {
                    length = offset + 1;
                    break;
                }
                '\\' => match chars.next_if(|(_, next)| matches!(next, '"' | '\\')) {
                    Some((_, next)) => text.push(next),
                    None => text.push('\\'),
                },
                other => text.push(other),
            }
        }
        self.at += length;
        let is_starred = self.rest().starts_with('*');
        self.at += usize::from(is_starred);
        (text, if is_starred { End::Open } else { End::Whole })
    }

    fn words(&self, from: usize, text: &str, end: End) -> Result<Option<Phrase>, Mistake> {
        let words = Phrase::ending(text, end);
        match words.as_ref().map_or(0, |words| words.words.len()) {
            0..=PHRASE_LENGTH_MAX => Ok(words),
            length => {
                let message = format!("a phrase has at most {PHRASE_LENGTH_MAX} words, but this one has {length}");
                Err(self.mistake(from, message, "quote a shorter part of it"))
            }
        }
    }

    /// A regular expression. Other text that begins with a slash is a path.
    fn pattern(&mut self) -> Found {
        let from = self.at;
        let Some(rest) = self.rest().strip_prefix('/') else { return Ok(None) };
        let mut source = String::new();
        let mut chars = rest.char_indices();
        let end = loop {
            match chars.next() {
                None => return Ok(None),
                Some((offset, '/')) => break offset + 1,
                Some((_, '\\')) => match chars.next() {
                    Some((_, '/')) => source.push('/'),
                    Some((_, other)) => source.extend(['\\', other]),
                    None => return Ok(None),
                },
                Some((_, other)) => source.push(other),
            }
        };
        let after = rest.get(end..).unwrap_or_default();
        let flag = usize::from(after.starts_with('i'));
        if source.is_empty() || !self.is_boundary(after.get(flag..).unwrap_or_default()) {
            return Ok(None);
        }
        self.patterns += 1;
        if self.patterns > PATTERNS_MAX {
            let message = format!("a query has at most {PATTERNS_MAX} patterns");
            return Err(self.mistake(from, message, "join them with |, as in /one|other/"));
        }
        let letters = if flag == 1 { Letters::AnyCase } else { Letters::Exact };
        let pattern = Pattern::new(&source, letters).map_err(|error| {
            let said = error.to_string();
            let why = said.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
            let hint = "to search for the text instead, put it in quotes";
            self.mistake(from, format!("invalid pattern /{source}/: {why}"), hint)
        })?;
        self.at = from + 1 + end + flag;
        Ok(Some(Expr::Pattern(pattern)))
    }

    /// All text up to a space. A parenthesis that opens in it also closes in it.
    fn token(&mut self) -> &'a str {
        let rest = self.rest();
        let mut open = 0_usize;
        let mut length = rest.len();
        for (offset, char) in rest.char_indices() {
            match char {
                '(' => open += 1,
                ')' if open > 0 => open -= 1,
                ')' if self.open > 0 => {
                    length = offset;
                    break;
                }
                char if char.is_whitespace() => {
                    length = offset;
                    break;
                }
                _ => {}
            }
        }
        self.at += length;
        rest.get(..length).unwrap_or_default()
    }

    fn bare(&mut self) -> Found {
        let from = self.at;
        let token = self.token();
        if let Some((name, hint)) = field::misspelled(token) {
            return Err(self.mistake(from, format!("unknown field `{name}:`"), hint));
        }
        if let Some((word, digits)) = token.rsplit_once('~')
            && digits.bytes().all(|byte| byte.is_ascii_digit())
            && word.ends_with(is_word_char)
        {
            return self.fuzzy(from, word, digits).map(Some);
        }
        let (text, end) = starred(token);
        Ok(self.words(from, text, end_of_words(text, end))?.map(Expr::Phrase))
    }

    fn fuzzy(&self, from: usize, text: &str, digits: &str) -> Result<Expr, Mistake> {
        let words = Phrase::of(text).filter(|words| words.words.len() == 1 && words.how == PhraseMatch::Exact);
        let pairwise = text.chars().any(super::words::is_pairwise);
        let Some(words) = words.filter(|_| !pairwise) else {
            let hint = format!("put `~` after a single word, or quote the text: \"{text}\"");
            return Err(self.mistake(from, "`~` works only on one word of letters", hint));
        };
        let length = words.words.iter().map(|word| word.chars().count()).sum::<usize>();
        let distance = match digits {
            "" if length <= 2 => 1,
            "" => fuzzy::usual(length),
            "1" => 1,
            "2" => 2,
            _ => return Err(self.mistake(from, "`~` allows 1 or 2 changes", format!("write {text}~2"))),
        };
        if usize::from(distance) >= length {
            let hint = "write a longer word, or drop the `~`";
            return Err(self.mistake(from, format!("`{text}` is too short for `~{distance}`"), hint));
        }
        Ok(Expr::Phrase(Phrase { how: PhraseMatch::Fuzzy(distance), ..words }))
    }

    fn field(&mut self, name: field::Name) -> Found {
        let from = self.at;
        self.at += name.word().len() + 1;
        let at = self.at;
        let read = |parser: &Self, text: &str, end: End| {
            let field = name.read(text, end, parser.today);
            field.map(Expr::Field).map_err(|(message, hint)| parser.mistake(at, message, hint))
        };
        if self.rest().starts_with('"') {
            let (text, end) = self.quoted();
            return read(self, &text, name.end_of(&text, end)).map(Some);
        }
        let token = self.token();
        let pieces = name.pieces(token);
        if pieces.is_empty() {
            let hint = format!("write {}, or \"{}:\" to search for the word", name.example(), name.word());
            return Err(self.mistake(from, format!("nothing follows `{}:`", name.word()), hint));
        }
        let mut fields = Vec::with_capacity(pieces.len());
        for piece in pieces {
            let (text, end) = starred(piece);
            fields.push(read(self, text, name.end_of(text, end))?);
        }
        Ok(if name.needs_all() { all_of(fields) } else { any_of(fields) })
    }
}

/// A text without the star at its end, and whether there was one.
fn starred(token: &str) -> (&str, End) {
    token.strip_suffix('*').map_or((token, End::Whole), |text| (text, End::Open))
}

#[cfg(test)]
mod tests;

//! A query as values, and how it is printed: parsing the printed query gives the same query. `parse.rs` parses it, and
//! `matches.rs` decides what it finds.

use std::fmt;

use jiff::Timestamp;

use super::field::Name;
use super::words::{Phrase, PhraseMatch};
use crate::model::{Kind, Role};

/// A query. See `docs/guide/finding.md` for how people write one.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    pub(super) expr: Expr,
}

impl Query {
    /// The expression.
    pub fn expr(&self) -> &Expr {
        &self.expr
    }

    /// Whether the answer for an event depends on its whole session, and not only on the events before it.
    pub fn depends_on_session(&self) -> bool {
        self.expr.depends_on_session()
    }

    /// The words and patterns that an event must contain to match, without the negated ones.
    pub fn sought(&self) -> Vec<Sought<'_>> {
        let mut found = Vec::new();
        self.expr.seek(&mut found);
        found
    }
}

/// A thing that a query looks for in texts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sought<'a> {
    /// Adjacent words.
    Phrase(&'a Phrase),
    /// A pattern.
    Pattern(&'a Pattern),
}

/// A condition on one event.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// All of at least two.
    All(Vec<Expr>),
    /// At least one of at least two.
    Any(Vec<Expr>),
    /// Not this one.
    Not(Box<Expr>),
    /// These words are adjacent in one of its texts.
    Phrase(Phrase),
    /// A regular expression matches one of its texts.
    Pattern(Pattern),
    /// A condition that is not about its texts.
    Field(Field),
}

impl Expr {
    /// Whether the answer for an event depends on its whole session: on its projects, or on the time of its file.
    fn depends_on_session(&self) -> bool {
        match self {
            Expr::All(parts) | Expr::Any(parts) => parts.iter().any(Expr::depends_on_session),
            Expr::Not(inner) => inner.depends_on_session(),
            Expr::Field(field) => matches!(field, Field::Project(_) | Field::Since(_) | Field::Until(_)),
            Expr::Phrase(_) | Expr::Pattern(_) => false,
        }
    }

    fn seek<'a>(&'a self, found: &mut Vec<Sought<'a>>) {
        match self {
            Expr::All(parts) | Expr::Any(parts) => parts.iter().for_each(|part| part.seek(found)),
            Expr::Phrase(words) => found.push(Sought::Phrase(words)),
            Expr::Pattern(pattern) => found.push(Sought::Pattern(pattern)),
            Expr::Not(_) | Expr::Field(_) => {}
        }
    }
}

/// The negation.
pub(super) fn not(expr: Expr) -> Expr {
    match expr {
        Expr::Not(inner) => *inner,
        other => Expr::Not(Box::new(other)),
    }
}

/// One of these; `None` if there are none. An alternative that is there twice counts once: each costs a search.
pub(super) fn any_of(parts: Vec<Expr>) -> Option<Expr> {
    let mut flat: Vec<Expr> = Vec::with_capacity(parts.len());
    let mut add = |part: Expr| {
        if !flat.contains(&part) {
            flat.push(part);
        }
    };
    for part in parts {
        match part {
            Expr::Any(inner) => inner.into_iter().for_each(&mut add),
            other => add(other),
        }
    }
    if flat.len() > 1 { Some(Expr::Any(flat)) } else { flat.pop() }
}

/// All of these. If an event can have only one value of a field, two conditions on that field are alternatives.
pub(super) fn all_of(parts: Vec<Expr>) -> Option<Expr> {
    let mut flat: Vec<Expr> = Vec::with_capacity(parts.len());
    let mut add = |part: Expr| {
        let single = only_field(&part);
        let earlier = flat.iter_mut().find(|other| single.is_some() && only_field(other) == single);
        match earlier {
            Some(earlier) => {
                let one = std::mem::replace(earlier, Expr::Any(Vec::new()));
                if let Some(merged) = any_of(vec![one, part]) {
                    *earlier = merged;
                }
            }
            None => flat.push(part),
        }
    };
    for part in parts {
        match part {
            Expr::All(inner) => inner.into_iter().for_each(&mut add),
            other => add(other),
        }
    }
    if flat.len() > 1 { Some(Expr::All(flat)) } else { flat.pop() }
}

/// The only field that this asks for, if an event can have only one value of it.
fn only_field(expr: &Expr) -> Option<Name> {
    match expr {
        Expr::Field(field) => Some(Name::of(field)).filter(|name| name.is_single()),
        Expr::Any(parts) => {
            let mut names = parts.iter().map(only_field);
            let first = names.next()??;
            names.all(|name| name == Some(first)).then_some(first)
        }
        Expr::All(_) | Expr::Not(_) | Expr::Phrase(_) | Expr::Pattern(_) => None,
    }
}

/// A condition that is not about the texts of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Field {
    /// The name of its session's format contains this, in lower case.
    Agent(String),
    /// A name of its project contains this, in lower case.
    Project(String),
    /// An id of its session begins with this, in lower case.
    Session(String),
    /// A tag of its session.
    Tag(TagPattern),
    /// The tool that was called or that answered.
    Tool(Phrase),
    /// A file that a tool was asked to touch.
    File(Phrase),
    /// The model that answered or was asked.
    Model(Phrase),
    /// The git branch.
    Branch(Phrase),
    /// The speaker.
    Role(Role),
    /// Its kind.
    Is(Is),
    /// Its content.
    Has(Has),
    /// Not before this time, in milliseconds since 1970.
    Since(i64),
    /// Before this time, in milliseconds since 1970: the end of the period that the query names.
    Until(i64),
}

/// The tags that a condition asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagPattern {
    /// The tag in lower case, or its beginning.
    pub text: String,
    /// Whether every tag that begins with the text matches.
    pub is_prefix: bool,
}

/// The kind of an event, or the mark of its session, in a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Is {
    /// A failure.
    Error,
    /// An event of a pinned session.
    Pinned,
    /// An event of a session with a pin, a title, a tag or a note that a person gave it.
    Marked,
    /// An event of this kind.
    Kind(Kind),
}

/// The content of an event in a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Has {
    /// Readable thinking.
    Thinking,
    /// A tool that was called or that answered.
    Tool,
    /// A file that a tool was asked to touch.
    File,
    /// An image, a document, a sound.
    Attachment,
}

impl Is {
    /// All values.
    pub fn all() -> impl Iterator<Item = Is> + Clone {
        [Is::Error, Is::Pinned, Is::Marked].into_iter().chain(Kind::ALL.into_iter().map(Is::Kind))
    }

    /// The word in queries.
    pub fn name(self) -> &'static str {
        match self {
            Is::Error => "error",
            Is::Kind(kind) => kind.word(),
            Is::Pinned => "pinned",
            Is::Marked => "marked",
        }
    }
}

impl Has {
    /// All values.
    pub const ALL: [Has; 4] = [Has::Thinking, Has::Tool, Has::File, Has::Attachment];

    /// The word in queries.
    pub fn name(self) -> &'static str {
        match self {
            Has::Thinking => "thinking",
            Has::Tool => "tool",
            Has::File => "file",
            Has::Attachment => "attachment",
        }
    }
}

/// A regular expression with limited cost.
#[derive(Clone, Debug)]
pub struct Pattern {
    pub(super) source: String,
    pub(super) letters: Letters,
    pub(super) regex: regex::Regex,
}

/// Whether upper and lower case differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Letters {
    /// They differ.
    Exact,
    /// They do not differ: `/…/i`.
    AnyCase,
}

/// The size limit of a compiled pattern: enough for what people type, too little for an attack.
const PATTERN_SIZE_MAX: usize = 1 << 20;

/// The nesting limit of a pattern.
const PATTERN_DEPTH_MAX: u32 = 64;

impl Pattern {
    /// Compiles a pattern. `^` and `$` match at line boundaries, because texts have many lines.
    pub fn new(source: &str, letters: Letters) -> Result<Pattern, regex::Error> {
        let regex = regex::RegexBuilder::new(source)
            .case_insensitive(letters == Letters::AnyCase)
            .multi_line(true)
            .nest_limit(PATTERN_DEPTH_MAX)
            .size_limit(PATTERN_SIZE_MAX)
            .dfa_size_limit(PATTERN_SIZE_MAX)
            .build()?;
        Ok(Pattern { source: source.to_owned(), letters, regex })
    }

    /// The compiled pattern.
    pub(crate) fn regex(&self) -> &regex::Regex {
        &self.regex
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        (&self.source, self.letters) == (&other.source, other.letters)
    }
}

impl fmt::Display for Query {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.expr {
            Expr::All(parts) => joined(parts, " ", out),
            other => write!(out, "{other}"),
        }
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expr::All(parts) => {
                out.write_str("(")?;
                joined(parts, " ", out)?;
                out.write_str(")")
            }
            Expr::Any(parts) => {
                out.write_str("(")?;
                joined(parts, " OR ", out)?;
                out.write_str(")")
            }
            Expr::Not(inner) => write!(out, "-{inner}"),
            Expr::Phrase(words) => write!(out, "{}", Quoted(words)),
            Expr::Pattern(pattern) => pattern.fmt(out),
            Expr::Field(field) => field.fmt(out),
        }
    }
}

fn joined(parts: &[Expr], between: &str, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            out.write_str(between)?;
        }
        write!(out, "{part}")?;
    }
    Ok(())
}

impl fmt::Display for Field {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let moment = |ms: i64| Timestamp::from_millisecond(ms).unwrap_or_default();
        match self {
            Field::Agent(text) => write!(out, "agent:{}", quoted(text)),
            Field::Project(text) => write!(out, "project:{}", quoted(text)),
            Field::Session(text) => write!(out, "session:{}", quoted(text)),
            Field::Tag(tag) => write!(out, "tag:{}{}", quoted(&tag.text), if tag.is_prefix { "*" } else { "" }),
            Field::Tool(words) => write!(out, "tool:{}", Quoted(words)),
            Field::File(words) => write!(out, "file:{}", Quoted(words)),
            Field::Model(words) => write!(out, "model:{}", Quoted(words)),
            Field::Branch(words) => write!(out, "branch:{}", Quoted(words)),
            Field::Role(role) => write!(out, "role:{}", role.name()),
            Field::Is(is) => write!(out, "is:{}", is.name()),
            Field::Has(has) => write!(out, "has:{}", has.name()),
            Field::Since(ms) => write!(out, "since:{}", moment(*ms)),
            Field::Until(ms) => write!(out, "until:{}", moment(*ms)),
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("/")?;
        let mut escaped = false;
        for char in self.source.chars() {
            if char == '/' && !escaped {
                out.write_str("\\")?;
            }
            escaped = char == '\\' && !escaped;
            write!(out, "{char}")?;
        }
        out.write_str(match self.letters {
            Letters::Exact => "/",
            Letters::AnyCase => "/i",
        })
    }
}

/// Words as a query writes them.
struct Quoted<'a>(&'a Phrase);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.text();
        if self.0.words.len() > 1 {
            write!(out, "\"{text}\"")?;
        } else {
            out.write_str(&text)?;
        }
        match self.0.how {
            PhraseMatch::Exact => Ok(()),
            PhraseMatch::Prefix => out.write_str("*"),
            PhraseMatch::Fuzzy(distance) => write!(out, "~{distance}"),
        }
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
